"""The options of the service, checked before anything slow is imported."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from setrnn.data.tokenizing import whole_characters
from setrnn.errors import ConfigError
from setrnn.models.hub import name_place

MAX_BATCH_MS = 1_000
MAX_FIELDS = 100  # of a request: reporting each unknown one would take long
MAX_LISTS, MAX_VALUES = 10_000, 600_000  # in a body: more take too long to parse
FEATURES_PER_TEXT = 1_000
FIELDS_PER_TASK = 500  # of Label Studio, with its annotations and predictions
_HOST_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")


@dataclass(frozen=True)
class ServeSettings:
    """The limits of a service.

    Args:
        max_texts: texts per request.
        max_words: words per text.
        max_body_bytes: bytes per request body.
        queue: documents that may wait for a model; requests beyond it are refused.
        batch: documents per batch.
        batch_ms: how long a batch waits for another request, in milliseconds; up to ten times.
        workers: batches processed at once; None: one per core, or one on a GPU.
        body_seconds: how long a client may pause while it sends a body.
        max_connections: open connections; more are refused.
        label_studio: whether to answer as a machine learning backend of Label Studio.

    Example:
        >>> ServeSettings(max_texts=16).max_texts
        16
    """

    max_texts: int = 64
    max_words: int = 10_000
    max_body_bytes: int = 4 << 20
    queue: int = 4_096
    batch: int = 256
    batch_ms: float = 3.0
    workers: int | None = None
    body_seconds: float = 10.0
    max_connections: int = 1_000
    label_studio: bool = False

    def __post_init__(self) -> None:
        """Refuse values that allow no request at all."""
        for name in (
            "max_texts",
            "max_words",
            "max_body_bytes",
            "queue",
            "batch",
            "workers",
            "max_connections",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                option = "--" + name.replace("_", "-")
                raise ConfigError(f"{option} must be at least 1, got {value}.")
        if not 0 <= self.batch_ms <= MAX_BATCH_MS:
            raise ConfigError(
                f"--batch-ms must be between 0 and {MAX_BATCH_MS:,}, got {self.batch_ms:g}."
            )

    def shared_by(self, n_processes: int) -> ServeSettings:
        """Return the limits of each of several processes: together they have these.

        Example:
            >>> ServeSettings(queue=100).shared_by(3).queue
            33
        """
        queue, n_open = self.queue // n_processes, self.max_connections // n_processes
        return replace(self, queue=max(queue, 1), max_connections=max(n_open, 1))

    def with_workers(self, n_workers: int) -> ServeSettings:
        """Return the same with a number of workers, unless one was asked for."""
        return replace(self, workers=self.workers or n_workers)

    @property
    def max_fields(self) -> int:
        """Fields of all objects in a body; a task of Label Studio has many."""
        return MAX_FIELDS + (FIELDS_PER_TASK * self.max_texts if self.label_studio else 0)

    @property
    def max_lists(self) -> int:
        """Lists and objects in a body: far more than a request needs."""
        per_text = FIELDS_PER_TASK if self.label_studio else 1
        return per_text * self.max_texts + MAX_LISTS

    @property
    def max_values(self) -> int:
        """Values in a body: more than a request needs."""
        return max(FEATURES_PER_TEXT * self.max_texts, MAX_VALUES)

    @property
    def max_held_bytes(self) -> int:
        """Bytes of the bodies that all current requests may hold together."""
        return 16 * self.max_body_bytes


def name_folders(models: Sequence[str]) -> dict[str, Path]:
    """Return the model folders by name: the folder's own, or NAME in NAME=FOLDER.

    Example:
        >>> list(name_folders(["models/set-rnn-0", "other=models/br-0"]))
        ['set-rnn-0', 'other']
    """
    folders: dict[str, Path] = {}
    for each in models:
        name, is_named, folder = each.partition("=")
        if not is_named or Path(each).is_dir():
            name, folder = name_place(each), each
        path = Path(folder)
        if not name or whole_characters(name) != name:
            raise ConfigError(f"'{each}' gives the model no valid name. Write NAME=FOLDER.")
        if name in folders:
            raise ConfigError(
                f"Two models are named '{name}'. Give one another name: other-{name}={path}"
            )
        folders[name] = path
    return folders


def check_host_names(names: Collection[str]) -> None:
    """Refuse names that cannot be host names."""
    for name in names:
        if not _HOST_NAME.fullmatch(name):
            raise ConfigError(f"'{name}' is not a host name. Write --allow-host tags.example.org")
