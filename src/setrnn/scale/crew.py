"""Who does the work: processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass

from setrnn.errors import ConfigError
from setrnn.scale.workers import ResultT, TaskT, Work, Workers

SHARD_MINUTES = 60.0


@dataclass(frozen=True)
class Crew:
    """Who does the work.

    Attributes:
        workers: the number of workers; None for one per core, or per GPU or share of one.
        ray: the address of a Ray cluster, "auto" for that of this machine; None for processes.
        gpus_per_worker: the GPUs of each worker on a Ray cluster, which may be a fraction.
        shard_minutes: a shard that takes longer is tried by another worker.
    """

    workers: int | None = None
    ray: str | None = None
    gpus_per_worker: float = 0.0
    shard_minutes: float = SHARD_MINUTES

    def __post_init__(self) -> None:
        """Raise ConfigError if a value cannot be used."""
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"There must be at least 1 worker, got {self.workers}.")
        if not self.shard_minutes > 0:
            raise ConfigError(f"--shard-minutes must be more than 0, got {self.shard_minutes:g}.")


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


def hire(
    work: Work[TaskT, ResultT], crew: Crew, n_tasks: int, device: str = "cpu"
) -> Workers[TaskT, ResultT]:
    """Start the workers; no more than there are tasks."""
    if crew.ray is not None:
        from setrnn.scale.ray_workers import RayWorkers, connect

        connect(crew.ray)
        return RayWorkers(work, crew.workers, n_tasks, crew.gpus_per_worker)
    from setrnn.model.devices import count_gpus, n_cores
    from setrnn.scale.processes import Processes

    n_gpus = 0 if device == "cpu" else count_gpus()
    return Processes(work, min(crew.workers or n_gpus or n_cores(), n_tasks), n_gpus)
