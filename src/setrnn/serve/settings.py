"""The options of the service, checked before anything slow is imported."""

from __future__ import annotations

import hmac
import re
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from typer import Option

from setrnn.data.text.words import whole_characters
from setrnn.errors import ConfigError
from setrnn.models.hub import is_hub, name_place

MAX_NESTED = 10_000  # fields, lists and objects in a body: far more than a request needs
FIELDS_PER_TASK = 500  # of Label Studio, with its annotations and predictions
MIN_KEY_LENGTH = 16
_HOST_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")


@dataclass(frozen=True)
class ServeSettings:
    """The limits of a service: each is an option of `setrnn serve`.

    Example:
        >>> ServeSettings(max_texts=16).max_texts
        16
    """

    workers: Annotated[
        int | None,
        Option(
            help="Batches to process at once.",
            show_default="one per core; on a GPU, one",
            min=1,
        ),
    ] = None
    label_studio: Annotated[
        bool,
        Option(
            help="Also answer as a machine learning backend of Label Studio, by the first model."
        ),
    ] = False
    max_texts: Annotated[int, Option(help="The most texts per request.", min=1)] = 64
    max_words: Annotated[int, Option(help="The most words per text.", min=1)] = 10_000
    max_body_bytes: Annotated[int, Option(help="The most bytes per request.", min=1)] = 4 << 20
    max_connections: Annotated[
        int, Option(help="The most open connections; with more, requests are answered 503.", min=1)
    ] = 1_000
    queue: Annotated[
        int, Option(help="The most documents that may wait; more are answered 503.", min=1)
    ] = 4_096
    batch: Annotated[int, Option(help="The most documents per batch.", min=1)] = 256
    batch_ms: Annotated[
        float,
        Option(
            help="Milliseconds without another request after which a batch starts.",
            min=0,
            max=1_000,
        ),
    ] = 3.0

    @property
    def max_nested(self) -> int:
        """The most fields, lists and objects in a body: more take too long to parse."""
        return MAX_NESTED + self.max_texts * (FIELDS_PER_TASK if self.label_studio else 1)


class ApiKeys:
    """The API keys in a file, one per line; while keys are rotated, the file has two."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.load()

    def load(self) -> None:
        """Read the file; if that fails, the keys stay as they were."""
        try:
            keys = self.file.read_text(encoding="utf-8-sig").split()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The API keys in {self.file} cannot be read.") from error
        if not keys:
            raise ConfigError(f"{self.file} has no API key. Write one per line.")
        if not all(len(key) >= MIN_KEY_LENGTH and key.isascii() for key in keys):
            raise ConfigError(
                f"{self.file} has an API key of fewer than {MIN_KEY_LENGTH} characters, or not of "
                "ASCII characters. Make one with: openssl rand -hex 32"
            )
        self._digests = [sha256(key.encode()).digest() for key in keys]

    def hold(self, key: bytes) -> bool:
        """Return whether a key is one of them.

        Hashes of all keys are compared, so that the time tells nothing about a key.
        """
        given = sha256(key).digest()
        return sum(hmac.compare_digest(given, each) for each in self._digests) > 0


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
        if is_hub(path) and not is_hub(folder):
            path = path.absolute()  # ./hub:a/b is a folder, and its Path is hub:a/b
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
    """Return a socket that listens on an address."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]
        raise ConfigError(
            f"Cannot listen on {host} port {port}: {reason}. Choose another with --host or --port."
        ) from error
