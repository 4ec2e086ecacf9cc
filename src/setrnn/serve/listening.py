"""The socket that is listened on; taken before anything takes long."""

from __future__ import annotations

import errno
import ipaddress
import socket

from setrnn.errors import ConfigError

BACKLOG = 2_048  # connections that may wait to be taken


def take_address(host: str, port: int) -> socket.socket:
    """Take an address and port, or say why not; nobody can connect yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"There is no host '{host}' here to listen on.") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise in_use(host, port) from error
        raise ConfigError(f"{host} port {port} cannot be used: {error.strerror}.") from error
    return listener


def in_use(host: str, port: int) -> ConfigError:
    """Say that a port is another's."""
    return ConfigError(
        f"Port {port} of {host} is in use. Name another with --port, or end what uses it."
    )


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(listener: socket.socket) -> bool:
    """Tell whether only this machine can reach a listening socket."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback
