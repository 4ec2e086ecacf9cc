"""Ray clusters that do not answer or refuse; tests/faults/test_ray_cluster.py has one that does."""

import pytest

from setrnn.errors import ConfigError
from setrnn.tagging.ray_cluster import connect

ray = pytest.importorskip("ray")
AuthenticationError = pytest.importorskip("ray.exceptions").AuthenticationError


def test_no_cluster_is_said_at_once():
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("127.0.0.1:1")


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
