"""Notice that training has become much slower than it was."""

from __future__ import annotations

from dataclasses import dataclass

SLOW_SHARE = 0.1  # of the best speed so far
LEAST_SECONDS = 5.0  # that a speed is measured over: single batches differ a lot


@dataclass
class SpeedWatch:
    """Compares the recent speed with the best one so far, per objective; warns once per fall.

    Example:
        >>> watch = SpeedWatch()
        >>> watch.add("set-probability", n_documents=6_000, seconds=6.0)
        >>> watch.add("set-probability", n_documents=300, seconds=10.0)
        'Training has slowed down to 30 documents/s, from 1,000: is another program ...
    """

    objective: str = ""
    best: float = 0.0  # documents/s
    is_slow: bool = False  # a warning was given
    n_documents: int = 0  # recently, in these seconds
    seconds: float = 0.0

    def add(self, objective: str, n_documents: int, seconds: float) -> str | None:
        """Count documents that were trained on in some seconds; return a warning if it is due."""
        if objective != self.objective:  # another objective has another speed
            self.objective, self.best, self.is_slow = objective, 0.0, False
            self.n_documents, self.seconds = 0, 0.0
        self.n_documents += n_documents
        self.seconds += seconds
        if self.seconds < LEAST_SECONDS:
            return None
        speed = self.n_documents / self.seconds
        self.n_documents, self.seconds = 0, 0.0
        self.best = max(self.best, speed)
        was_slow, self.is_slow = self.is_slow, speed <= SLOW_SHARE * self.best
        if was_slow or not self.is_slow:
            return None
        return (
            f"Training has slowed down to {speed:,.0f} documents/s, from {self.best:,.0f}: is "
            "another program using the processor or the GPU?"
        )
