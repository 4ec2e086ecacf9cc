"""Ray clusters that do not answer; tests/faults/test_ray_cluster.py has one that does."""

import pytest

from setrnn.errors import ConfigError
from setrnn.scale.ray_workers import connect

pytest.importorskip("ray")


def test_no_cluster_is_said_at_once():
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("127.0.0.1:1")
