"""The listening socket, and what happens before and after the service; quick to import."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from setrnn.errors import ConfigError

MAX_OPEN_FILES = 65_536  # that are asked for
OTHER_FILES = 96  # open files that are no connections: models, logs, refused connections


def bind_address(host: str, port: int, is_shared: bool = False) -> socket.socket:
    """Return a socket bound to an address; it does not accept connections yet.

    If it is shared, other processes may bind the same address, and the system distributes the
    connections among them.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"This machine has no host '{host}' to listen on.") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise port_in_use(host, port) from error
        raise ConfigError(f"Cannot listen on {host} port {port}: {error.strerror}.") from error
    return listener


def port_in_use(host: str, port: int) -> ConfigError:
    """Return the error for a port that another process uses."""
    return ConfigError(
        f"Port {port} of {host} is in use. Choose another with --port, or stop the other process."
    )


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def describe_stop(n_unanswered: int) -> str:
    """Return the last line of a service."""
    if n_unanswered:
        return f"Stopped; {n_unanswered} requests were refused or left unanswered."
    return "Stopped; all requests were answered."


def is_loopback(listener: socket.socket) -> bool:
    """Return whether only this machine can reach a listening socket."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def raise_open_files() -> int | None:
    """Raise the limit of open files as far as this process may; return it, None if unknown."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if wanted > soft:
        with suppress(OSError, ValueError):  # a system may allow less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return soft


class EarlySignals:
    """Signals that arrive while the service's libraries are imported, which takes seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.is_serving = False  # from then on, the server handles the signals

    def _stop(self, number: int, frame: FrameType | None) -> None:
        # After a graceful stop, the server raises the signal again: there is nothing left to do.
        if not self.is_serving:
            self.say("Stopped before it was ready.")
            raise SystemExit(0)

    @contextmanager
    def handled(self) -> Iterator[EarlySignals]:
        """Exit with code 0 on SIGTERM and SIGINT; ignore SIGHUP: the models are about to load."""
        handlers = {signal.SIGTERM: self._stop, signal.SIGINT: self._stop}
        before = {number: signal.signal(number, each) for number, each in handlers.items()}
        if hasattr(signal, "SIGHUP"):
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            yield self
        finally:
            for number, each in before.items():
                signal.signal(number, each)
