"""What bounds the service."""

from __future__ import annotations

from dataclasses import dataclass, fields

from setrnn.errors import ConfigError


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
        body_seconds: how long a client may be silent while it sends a body.
    """

    max_texts: int = 64
    max_words: int = 10_000
    max_body_bytes: int = 4 << 20
    queue: int = 4_096
    batch: int = 256
    batch_ms: float = 3.0
    body_seconds: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what leaves no room for a request."""
        for each in fields(self):
            value = getattr(self, each.name)
            least = 0 if each.name == "batch_ms" else 1
            if not value >= least:
                name = "--" + each.name.replace("_", "-")
                raise ConfigError(f"{name} must be at least {least}, got {value}.")

    @property
    def max_held_bytes(self) -> int:
        """Bytes of bodies that all requests under way may hold together."""
        return 16 * self.max_body_bytes
