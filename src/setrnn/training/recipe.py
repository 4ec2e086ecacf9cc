"""What tells one recurrent system from another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """The parts a system is made of."""

    objective: str
    decoder: str = "rnn"
    first_objective: str | None = None  # for the first share of the epochs
    rule: str = "sequence"  # how it predicts, in validation too

    def objective_at(self, epoch: int, n_epochs: int, first_share: float) -> str:
        """Return the objective of an epoch, counted from 0."""
        if self.first_objective is None:
            return self.objective
        return self.first_objective if epoch < round(n_epochs * first_share) else self.objective
