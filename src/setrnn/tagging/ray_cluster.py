"""Connect to a Ray cluster, and check what it has."""

from __future__ import annotations

import logging
import os
import platform
import socket
from collections.abc import Iterable
from pathlib import Path

import setrnn
from setrnn.errors import ConfigError

LOCAL, LOOPBACK = "local", "127.0.0.1"
LOCAL_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # if 0, Ray listens on the loopback interface only
MIN_CPUS = 3  # for Ray Data: a worker, the filter of a resumed run, and reading and writing
SECONDS_TO_ANSWER = 5.0
MAX_RETRIES = 4  # of work whose worker or node is lost


def connect(address: str) -> None:
    """Connect to a cluster by its address: "auto" for that of this machine, "local" to start one.

    A started one listens on the loopback interface only, and never joins what RAY_ADDRESS names.
    Raises ConfigError if there is none.
    """
    if address == LOCAL:
        os.environ[LOCAL_ONLY] = "0"  # Ray reads it when it is imported
    try:
        import ray
    except ImportError:
        raise ConfigError("--ray needs Ray: pip install 'setrnn[ray]'") from None
    if ray.is_initialized():
        return
    from setrnn.model.devices import n_cores

    _check_address(address)
    options: dict[str, object] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        options |= {
            "_node_ip_address": LOOPBACK,
            "include_dashboard": False,
            "num_cpus": max(MIN_CPUS, n_cores()),
        }
    try:
        ray.init(address=address, **options)  # "local" also ignores RAY_ADDRESS
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise _no_cluster(address) from error
    if address == LOCAL and ray.util.get_node_ip_address() != LOOPBACK:
        ray.shutdown()
        raise ConfigError(
            "Ray was imported before and would listen on all network interfaces. Do not import it "
            f"before, or set {LOCAL_ONLY}=0."
        )


def _check_address(address: str) -> None:
    """Raise ConfigError if nobody listens at HOST:PORT: Ray itself would wait for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address) from error


def _no_cluster(address: str) -> ConfigError:
    return ConfigError(
        f"No Ray cluster of this version answers at '{address}'. Start one with ray start --head, "
        "check the address, and set RAY_AUTH_MODE and RAY_AUTH_TOKEN if it asks for a token."
    )


def choose_device(device: str, ray: str | None, gpus: float, option: str) -> str:
    """Return where workers compute; on a Ray cluster, only those that ask for GPUs may use one.

    Raises ConfigError if the option for GPUs does not fit.
    """
    if ray is None:
        if gpus:
            raise ConfigError(f"{option} is for a Ray cluster: add --ray ADDRESS.")
        return device
    if not gpus >= 0 or (gpus > 1 and gpus % 1):
        raise ConfigError(f"{option} must be a share of one GPU or a whole number, got {gpus:g}.")
    if device == "cuda" and not gpus:
        raise ConfigError(f"--device cuda on a Ray cluster needs {option}, such as 1.")
    return device if gpus else "cpu"


def count_room(gpus_each: float, n_reserved: int = 0) -> int:
    """Return how many workers the connected cluster has room for; ConfigError if none."""
    import ray

    resources = ray.cluster_resources()
    n = int(resources.get("CPU", 0)) - n_reserved
    if gpus_each:
        n = min(n, int(resources.get("GPU", 0) / gpus_each))
    if n < 1:
        wanted = f"{1 + n_reserved} CPUs" + (f" and {gpus_each:g} GPUs" if gpus_each else "")
        raise ConfigError(f"The Ray cluster needs at least {wanted}. See: ray status")
    return n


def check_node(version: str, paths: Iterable[str | Path]) -> None:
    """Raise ConfigError if this node has another version of setrnn, or does not see a path."""
    if setrnn.__version__ != version:
        raise ConfigError(
            f"{platform.node()} has setrnn {setrnn.__version__} instead of {version}. Install the "
            "same version everywhere."
        )
    for path in map(Path, paths):
        if path.is_absolute() and not path.exists():
            raise ConfigError(
                f"{platform.node()} does not see {path}. Model, data and --out must be on a disk "
                "that all machines share, at the same path."
            )
