"""What a request must pass before a route sees it: its host name and its API key."""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from setrnn.serve.problems import ProblemError, problem_response
from setrnn.serve.settings import ApiKeys

_OTHER_HOST = ProblemError(
    "other-host",
    "Use localhost or an address, or start the service with --allow-host NAME for this name.",
)
_KEY_REQUIRED = ProblemError(
    "unauthorized",
    "Send the key in the header 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.",
    headers={"WWW-Authenticate": "Bearer"},
)


class Guard:
    """Refuse requests for other host names, and requests without a key.

    Another site can make its own name resolve to this machine (DNS rebinding), so that its page
    asks this service from a reader's browser. It cannot do that with localhost or an address, which
    are always allowed.

    Args:
        app: the application.
        hosts: the allowed host names; None: all.
        keys: the valid keys; None: no key is required.
        open_paths: the paths that need no key; one that ends with a slash, all below it.
        takes_basic: whether the key may be the password of basic authentication, the only way in
            which Label Studio can send one.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str] | None,
        keys: ApiKeys | None,
        open_paths: Collection[str],
        takes_basic: bool,
    ) -> None:
        self.app, self.keys, self.takes_basic = app, keys, takes_basic
        # Browsers always send a host name; health checks may not.
        self.hosts = None if hosts is None else {"", "localhost", *map(str.lower, hosts)}
        self.open_paths = frozenset(open_paths)
        self.open_prefixes = tuple(each for each in open_paths if len(each) > 1 and each[-1] == "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 to a request for another host, 401 to one without a key."""
        answer: ASGIApp = self.app
        if scope["type"] == "http":
            path, headers = scope["path"], dict(scope["headers"])
            if not self._is_own_host(headers.get(b"host", b"").decode("latin-1").lower()):
                answer = problem_response(_OTHER_HOST)
            elif (
                self.keys is not None
                and path not in self.open_paths
                and not path.startswith(self.open_prefixes)
                and not self.keys.hold(self._find_key(headers))
            ):
                answer = problem_response(_KEY_REQUIRED)
        await answer(scope, receive, send)

    def _is_own_host(self, asked: str) -> bool:
        if self.hosts is None:
            return True
        name, _, port = asked.rpartition(":")
        host = (name if name and port.isdigit() else asked).rstrip(".")
        if host in self.hosts:
            return True
        try:
            ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True

    def _find_key(self, headers: dict[bytes, bytes]) -> bytes:
        """Return the key of a request; empty if it has none."""
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        if self.takes_basic and scheme.lower() == b"basic":
            try:
                return base64.b64decode(key.strip(), validate=True).partition(b":")[2]
            except binascii.Error:
                return b""
        return key.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
