"""The options of the service, checked before anything slow is imported."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from setrnn.data.text.words import whole_characters
from setrnn.errors import ConfigError
from setrnn.models.hub import name_place

MAX_BATCH_MS = 1_000
# In a body of more than 64 KiB: more take too long to parse, or to report as unknown.
MAX_FIELDS, MAX_LISTS, MAX_VALUES = 100, 10_000, 600_000
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
        max_connections: open connections; with more, requests are refused.
        queue: documents that may wait for a model; requests beyond it are refused.
        batch: documents per batch.
        batch_ms: how long a batch waits for another request, in milliseconds; up to ten times.
        workers: batches processed at once; None: one per core, or one on a GPU.
        label_studio: whether to answer as a machine learning backend of Label Studio.

    Example:
        >>> ServeSettings(max_texts=16).max_texts
        16
    """

    max_texts: int = 64
    max_words: int = 10_000
    max_body_bytes: int = 4 << 20
    max_connections: int = 1_000
    queue: int = 4_096
    batch: int = 256
    batch_ms: float = 3.0
    workers: int | None = None
    label_studio: bool = False

    def __post_init__(self) -> None:
        """Refuse values that allow no request at all."""
        for name, value in vars(self).items():
            if name not in ("batch_ms", "label_studio") and value is not None and value < 1:
                option = "--" + name.replace("_", "-")
                raise ConfigError(f"{option} must be at least 1, got {value}.")
        if not 0 <= self.batch_ms <= MAX_BATCH_MS:
            raise ConfigError(
                f"--batch-ms must be between 0 and {MAX_BATCH_MS:,}, got {self.batch_ms:g}."
            )

    @property
    def max_counts(self) -> dict[str, int]:
        """The most fields, lists and values in a body: far more than a request needs."""
        n_fields = FIELDS_PER_TASK * self.max_texts if self.label_studio else 0
        return {
            "fields": MAX_FIELDS + n_fields,
            "lists and objects": MAX_LISTS + (n_fields or self.max_texts),
            "values": max(FEATURES_PER_TEXT * self.max_texts, MAX_VALUES),
        }


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


def bind_address(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; it does not accept connections yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"This machine has no host '{host}' to listen on.") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"Port {port} of {host} is in use. Choose another with --port, or stop the other "
                "process."
            ) from error
        raise ConfigError(f"Cannot listen on {host} port {port}: {error.strerror}.") from error
    return listener
