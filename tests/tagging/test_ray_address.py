"""Ray clusters that do not answer or refuse; tests/faults/test_ray_cluster.py has one that does."""

import pytest

from setrnn.errors import ConfigError
from setrnn.tagging.ray_cluster import connect

ray = pytest.importorskip("ray")


def test_no_cluster_is_said_at_once(monkeypatch):
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("127.0.0.1:1")

    def refuse(**_):
        raise RuntimeError("InvalidAuthToken: missing or incorrect")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(ConfigError, match="RAY_AUTH_TOKEN"):
        connect("auto")
