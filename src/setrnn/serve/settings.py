"""What bounds the service."""

from __future__ import annotations

from dataclasses import dataclass

from setrnn.errors import ConfigError

MOST_BATCH_MS = 1_000


@dataclass(frozen=True)
class ServeSettings:
    """How much a request may ask for, and how much may wait.

    Args:
        max_texts: texts a request.
        max_words: words a text.
        max_body_bytes: bytes a request's body.
        queue: documents that may wait for a model; a request beyond them is refused.
        batch: documents that are tagged at once.
        batch_ms: how long the first request of a batch waits for others, in milliseconds.
        workers: batches that are tagged at once; None: one for each core, on a GPU one.
        body_seconds: how long a client may be silent while it sends a body.
    """

    max_texts: int = 64
    max_words: int = 10_000
    max_body_bytes: int = 4 << 20
    queue: int = 4_096
    batch: int = 256
    batch_ms: float = 3.0
    workers: int | None = None
    body_seconds: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what leaves no room for a request."""
        for name in ("max_texts", "max_words", "max_body_bytes", "queue", "batch", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                option = "--" + name.replace("_", "-")
                raise ConfigError(f"{option} must be 1 or more, got {value}.")
        if not 0 <= self.batch_ms <= MOST_BATCH_MS:
            raise ConfigError(
                f"--batch-ms must lie between 0 and {MOST_BATCH_MS:,}, got {self.batch_ms:g}."
            )

    @property
    def max_held_bytes(self) -> int:
        """Bytes of bodies that all requests under way may hold together."""
        return 16 * self.max_body_bytes
