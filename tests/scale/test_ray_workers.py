"""Ray clusters that do not answer or refuse; tests/faults/test_ray_cluster.py has one that does."""

import socket

import pytest

from setrnn.errors import ConfigError
from setrnn.scale.ray_workers import connect

ray = pytest.importorskip("ray")


def test_no_cluster_is_said_at_once():
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("127.0.0.1:1")


def test_a_cluster_that_refuses_is_told_from_none(monkeypatch):
    def refuse(**_):
        raise ConnectionError("InvalidAuthToken")

    monkeypatch.setattr(ray, "init", refuse)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigError, match="does not accept"):
            connect(f"127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("auto")
