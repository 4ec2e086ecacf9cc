"""API keys: one a line of a file, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from setrnn.errors import ConfigError
from setrnn.serve.problems import ProblemError, problem_response

SHORTEST_KEY = 16
_WANTED = ProblemError(
    "unauthorized",
    "Send the key in the header 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.",
    headers={"WWW-Authenticate": "Bearer"},
)


class ApiKeys:
    """The keys of a file; two are there while one takes the place of the other."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._digests: list[bytes] = []
        self.load()

    def load(self) -> None:
        """Read the file; if that fails, the keys stay as they were."""
        try:
            text = self.file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The API keys in {self.file} cannot be read.") from error
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise ConfigError(f"{self.file} has no API key. Write one a line.")
        if min(map(len, lines)) < SHORTEST_KEY:
            raise ConfigError(
                f"{self.file} has an API key of fewer than {SHORTEST_KEY} characters. Make one "
                "with: openssl rand -hex 32"
            )
        if not all(line.isascii() and line.isprintable() and " " not in line for line in lines):
            raise ConfigError(
                f"{self.file} has a line that is no API key: use letters, digits and signs of "
                "ASCII, without blanks."
            )
        self._digests = [_digest(line.encode()) for line in lines]

    def hold(self, key: bytes) -> bool:
        """Tell whether a key is one of them, in a time that says nothing of how near it is."""
        given = _digest(key)
        is_one = [hmac.compare_digest(given, digest) for digest in self._digests]
        return any(is_one)


class RequireKey:
    """Let requests through that carry a key, and those to open paths."""

    def __init__(self, app: ASGIApp, keys: ApiKeys, open_paths: Collection[str]) -> None:
        self.app, self.keys, self.open_paths = app, keys, frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 to a request without a key."""
        is_open = scope["type"] != "http" or scope["path"] in self.open_paths
        if is_open or self.keys.hold(_key_of(scope)):
            await self.app(scope, receive, send)
        else:
            await problem_response(_WANTED)(scope, receive, send)


def _key_of(scope: Scope) -> bytes:
    """Return the key a request carries, empty if none."""
    headers = dict(scope["headers"])
    scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        return bytes(key.strip())
    return bytes(headers.get(b"x-api-key", b""))


def _digest(key: bytes) -> bytes:
    """Bring keys to one length, which a comparison would tell otherwise."""
    return hashlib.sha256(key).digest()
