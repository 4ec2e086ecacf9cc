"""What tells one network from another."""

from __future__ import annotations

from dataclasses import dataclass

from setrnn.config import TrainingSettings
from setrnn.errors import ConfigError


@dataclass(frozen=True)
class Recipe:
    """The parts a system is made of."""

    objective: str
    decoder: str = "rnn"
    first_objective: str | None = None  # for the first share of the epochs
    rule: str = "sequence"  # how it predicts, in validation too

    @property
    def emits_sequences(self) -> bool:
        """Whether the decoder emits labels one by one."""
        return self.decoder != "sigmoid"

    def n_first_epochs(self, settings: TrainingSettings) -> int:
        """Count the epochs of the first objective, after which the own one begins.

        Each objective gets an epoch, unless the share is 0.
        """
        share, n_epochs = settings.random_share, settings.epochs
        if self.first_objective is None or share == 0:
            return 0
        if share == 1 or n_epochs < 2:
            raise ConfigError(
                f"This method begins with {self.first_objective} and goes on with "
                f"{self.objective}, an epoch each at least, but training.random_share={share:g} of "
                f"training.epochs={n_epochs} leaves none for one of them. Raise the epochs, or "
                "lower the share."
            )
        return min(max(round(n_epochs * share), 1), n_epochs - 1)

    def objective_at(self, epoch: int, settings: TrainingSettings) -> str:
        """Return the objective of an epoch, counted from 0."""
        is_first = epoch < self.n_first_epochs(settings)
        return self.first_objective if is_first and self.first_objective else self.objective
