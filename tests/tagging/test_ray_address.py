"""How a Ray cluster is found or started; tests/faults/test_ray_cluster.py has one that works."""

import os
import sys
from types import SimpleNamespace

import pytest

from setrnn.errors import ConfigError
from setrnn.tagging.ray_cluster import LOCAL_ONLY, connect


class StandIn(SimpleNamespace):
    """What `connect` uses of Ray; it records how it is called."""

    def __init__(self, node_address="127.0.0.1", refusal=None):
        self.asked, self.shutdowns, self.refusal = [], 0, refusal
        self.exceptions = SimpleNamespace(RayError=OSError)
        self.util = SimpleNamespace(get_node_ip_address=lambda: node_address)

    def is_initialized(self):
        return False

    def init(self, **options):
        self.asked.append(options)
        if self.refusal is not None:
            raise self.refusal

    def shutdown(self):
        self.shutdowns += 1


@pytest.fixture
def start(monkeypatch):
    def connect_to(address, **stand_in):
        ray = StandIn(**stand_in)
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")
        monkeypatch.setenv(LOCAL_ONLY, "1")
        try:
            connect(address)
        finally:
            ray.is_local_only = os.environ[LOCAL_ONLY] == "0"
        return ray

    return connect_to


def test_a_local_cluster_listens_on_loopback_and_joins_no_other(start):
    ray = start("local")
    (asked,) = ray.asked
    assert (asked["address"], asked["_node_ip_address"]) == ("local", "127.0.0.1")
    assert asked["include_dashboard"] is False
    assert ray.is_local_only


def test_a_local_cluster_that_would_be_open_to_others_is_refused(start):
    with pytest.raises(ConfigError, match="all network interfaces"):
        start("local", node_address="192.0.2.2")
    assert sys.modules["ray"].shutdowns == 1


def test_a_named_cluster_is_joined_as_it_is(start):
    ray = start("auto", node_address="192.0.2.2")
    assert ray.asked[0]["address"] == "auto"
    assert "_node_ip_address" not in ray.asked[0]
    assert not ray.is_local_only


def test_no_cluster_is_said_at_once(start):
    with pytest.raises(ConfigError, match="No Ray cluster"):
        start("127.0.0.1:1")
    assert sys.modules["ray"].asked == []
    with pytest.raises(ConfigError, match="RAY_AUTH_TOKEN"):
        start("auto", refusal=RuntimeError("InvalidAuthToken: missing or incorrect"))
