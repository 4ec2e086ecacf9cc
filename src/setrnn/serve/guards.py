"""What a request must pass before a route sees it: its host name, its API key, its body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
from collections.abc import Collection
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setrnn.errors import ConfigError
from setrnn.serve.problems import ProblemError, problem_response
from setrnn.serve.settings import ServeSettings

MIN_KEY_LENGTH = 16
MAX_PAUSES = 6  # a whole body may take this many times the longest pause
MIN_RATE = 1_000  # bytes/s of a body, on average, after the first pause
SMALL_BODY = 64 << 10  # bytes; small bodies are read even while large ones fill the memory limit
COUNTED_BODY = 64 << 10  # bytes; the values of smaller bodies are not counted, they are few
_OTHER_HOST = ProblemError(
    "other-host",
    "Use localhost or an address, or start the service with --allow-host NAME for this name.",
)
_KEY_REQUIRED = ProblemError(
    "unauthorized",
    "Send the key in the header 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.",
    headers={"WWW-Authenticate": "Bearer"},
)
_TOO_MANY_BODIES = ProblemError(
    "queue-full",
    "Too many requests at once. Try again after the seconds in the header Retry-After.",
    headers={"Retry-After": "1"},
)


class CheckHost:
    """Refuse host names that are not the service's own (DNS rebinding).

    Another site can make its own name resolve to this machine, so that its page asks this service
    from a reader's browser. It cannot do that with localhost or an address, which are always
    allowed. Starlette's TrustedHostMiddleware would need every address listed.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app, self.names = app, frozenset(each.lower() for each in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 to a request for another host."""
        if scope["type"] != "http" or self._is_own(_host_of(scope)):
            await self.app(scope, receive, send)
        else:
            await problem_response(_OTHER_HOST)(scope, receive, send)

    def _is_own(self, host: str) -> bool:
        # Browsers always send a host name; health checks may not.
        return host in ("", "localhost") or host in self.names or _is_address(host)


def _host_of(scope: Scope) -> str:
    """Return the requested host without the port."""
    asked: str = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
    host, _, port = asked.rpartition(":")
    return (host if host and port.isdigit() else asked).rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


class ApiKeys:
    """The API keys in a file, one per line; while keys are rotated, the file has two."""

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
            raise ConfigError(f"{self.file} has no API key. Write one per line.")
        if min(map(len, lines)) < MIN_KEY_LENGTH:
            raise ConfigError(
                f"{self.file} has an API key of fewer than {MIN_KEY_LENGTH} characters. Make one "
                "with: openssl rand -hex 32"
            )
        if not all(line.isascii() and line.isprintable() and " " not in line for line in lines):
            raise ConfigError(
                f"{self.file} has a line that is not an API key: use printable ASCII characters "
                "without spaces."
            )
        self._digests = [_digest(line.encode()) for line in lines]

    def hold(self, key: bytes) -> bool:
        """Return whether a key is one of them; the time it takes depends on no key."""
        given = _digest(key)
        is_one = [hmac.compare_digest(given, digest) for digest in self._digests]
        return any(is_one)


def _digest(key: bytes) -> bytes:
    """Hash a key, so that a comparison does not reveal its length."""
    return hashlib.sha256(key).digest()


class RequireKey:
    """Pass requests that carry a key or ask for an open path.

    Args:
        app: the application.
        keys: the valid keys.
        open_paths: the paths that need no key; one that ends with a slash, all below it.
        takes_basic: whether the key may be the password of basic authentication, the only way in
            which Label Studio can send one.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: ApiKeys,
        open_paths: Collection[str],
        takes_basic: bool = False,
    ) -> None:
        self.app, self.keys, self.open_paths = app, keys, frozenset(open_paths)
        self.takes_basic = takes_basic
        self.open_prefixes = tuple(
            each for each in open_paths if each.endswith("/") and each != "/"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 to a request without a key."""
        if scope["type"] != "http" or self._is_open(scope["path"]) or self._has_key(scope):
            await self.app(scope, receive, send)
        else:
            await problem_response(_KEY_REQUIRED)(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        return path in self.open_paths or path.startswith(self.open_prefixes)

    def _has_key(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        if self.takes_basic and scheme.lower() == b"basic":
            return self.keys.hold(_password_of(key))
        is_bearer = scheme.lower() == b"bearer"
        return self.keys.hold(key.strip() if is_bearer else headers.get(b"x-api-key", b""))


def _password_of(credentials: bytes) -> bytes:
    """Return the password of basic authentication; empty if it cannot be read."""
    try:
        return base64.b64decode(credentials.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


class ClientGoneError(Exception):
    """The client has disconnected: there is nobody to answer."""


class ReadBodies:
    """Read whole JSON bodies within limits of size and time, before a route is called."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings
        self.n_held = 0  # bytes of all current requests
        self.small_body = min(SMALL_BODY, settings.max_body_bytes // 16)
        self._counter = anyio.CapacityLimiter(1)  # of threads that count values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body and pass it on in one piece."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        body = bytearray()
        try:
            self._check_head(dict(scope["headers"]))
            await self._read(receive, body)
            whole = bytes(body)
            if len(whole) > COUNTED_BODY:
                await self._check_values(whole)
            await self.app(scope, _replay(whole, receive), send)
        except ProblemError as problem:
            await problem_response(problem)(scope, receive, send)
        except ClientGoneError:
            pass
        finally:
            self.n_held -= len(body)

    def _check_head(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a body by its headers, before it is read."""
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if media_type != b"application/json" or b"content-encoding" in headers:
            # Pages of other sites may not send this type, so that they cannot use the service.
            raise ProblemError(
                "not-json-type", "Send plain JSON with the header Content-Type: application/json."
            )
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self.settings.max_body_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive, body: bytearray) -> None:
        pause = self.settings.body_seconds
        start = anyio.current_time()
        with anyio.move_on_after(pause) as patience:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                part = message.get("body", b"")
                body += part
                self.n_held += len(part)
                if len(body) > self.settings.max_body_bytes:
                    raise self._too_large()
                if len(body) > self.small_body and self.n_held > self.settings.max_held_bytes:
                    raise _TOO_MANY_BODIES
                if not message.get("more_body", False):
                    return
                allowed = min(pause + len(body) / MIN_RATE, pause * MAX_PAUSES)
                patience.deadline = min(anyio.current_time() + pause, start + allowed)
        # The body is incomplete, whichever deadline has passed.
        raise ProblemError(
            "too-slow",
            f"No part of the body arrived for {pause:g} seconds, fewer than {MIN_RATE:,} bytes per "
            f"second after that time, or it took more than {pause * MAX_PAUSES:g} seconds in all.",
        )

    async def _check_values(self, body: bytes) -> None:
        """Refuse a body of many small values, which would take a second to parse."""
        found = await anyio.to_thread.run_sync(count_values, body, limiter=self._counter)
        limits = self.settings.max_fields, self.settings.max_lists, self.settings.max_values
        kinds = "fields", "lists and objects", "values"
        for n_found, most, kind in zip(found, limits, kinds, strict=True):
            if n_found > most:
                raise ProblemError(
                    "invalid", f"#/: A request may have {most:,} {kind}, got {n_found:,}."
                )

    def _too_large(self) -> ProblemError:
        limit = self.settings.max_body_bytes
        return ProblemError(
            "body-too-large", f"A body may have {limit:,} bytes. Send fewer texts per request."
        )


def count_values(body: bytes) -> tuple[int, int, int]:
    """Count the fields, the lists and objects, and all values in JSON, without parsing it.

    Example:
        >>> count_values(b'{"texts": ["a, [b]", "c"], "top": 2}')
        (2, 2, 5)
    """
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # without escaped quotes
    marks = np.frombuffer(plain, dtype=np.uint8)
    is_inside = np.cumsum(marks == ord('"'), dtype=np.uint8) & 1  # a string; may wrap at 256
    outside = marks[is_inside == 0].tobytes()
    n_lists = outside.count(b"[") + outside.count(b"{")
    return outside.count(b":"), n_lists, n_lists + outside.count(b",") + 1


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return the body in one piece, then the client's next event: a disconnect."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
