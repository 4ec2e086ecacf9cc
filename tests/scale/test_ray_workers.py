"""Ray clusters that do not answer or refuse; tests/faults/test_ray_cluster.py has one that does."""

import socket

import pytest

from setrnn.errors import ConfigError
from setrnn.scale.ray_workers import connect

ray = pytest.importorskip("ray")
AuthenticationError = pytest.importorskip("ray.exceptions").AuthenticationError


def test_no_cluster_is_said_at_once():
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("127.0.0.1:1")


def test_a_cluster_that_refuses_is_told_from_none(monkeypatch):
    def refuse(**_):
        raise ConnectionError("not this one")

    monkeypatch.setattr(ray, "init", refuse)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigError, match="does not accept"):
            connect(f"127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("auto")


@pytest.mark.parametrize(
    "error",
    [RuntimeError("InvalidAuthToken: missing or incorrect"), AuthenticationError("none was found")],
)
@pytest.mark.parametrize("address", ["auto", "ray://cluster"])
def test_a_cluster_that_wants_a_token_names_the_way_to_give_it(error, address, monkeypatch):
    def refuse(**_):
        try:
            raise error
        except RuntimeError:
            raise ConnectionError("Failed to connect") from None

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(ConfigError, match=r"RAY_AUTH_MODE=token.*RAY_AUTH_TOKEN"):
        connect(address)
