"""Names this service answers to.

A page of another site can have its own name lead to this machine, and then ask as if it came from
here. Names that cannot be made to: localhost, and addresses.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from setrnn.errors import ConfigError
from setrnn.serve.problems import ProblemError, problem_response

_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")
_REFUSED = ProblemError(
    "other-host", "Ask for localhost, or start the service with --allow-host NAME for this name."
)


def check_names(names: Collection[str]) -> None:
    """Refuse what can be no host name."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"'{name}' is no host name. Write --allow-host tags.example.org")


class CheckHost:
    """Let requests through that ask for a name of this service."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app, self.names = app, frozenset(each.lower() for each in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 to a request for another host."""
        if scope["type"] != "http" or self._is_ours(_host_of(scope)):
            await self.app(scope, receive, send)
        else:
            await problem_response(_REFUSED)(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        # No browser leaves it out; checks of a service's health do.
        return host in ("", "localhost") or host in self.names or _is_address(host)


def _host_of(scope: Scope) -> str:
    """Return the host that is asked for, without the port."""
    asked: str = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
    host, _, port = asked.rpartition(":")
    return (host if host and port.isdigit() else asked).rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
