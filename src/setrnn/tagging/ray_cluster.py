"""Connect to a Ray cluster, and tag Parquet files there.

Ray Data reads, tags and writes, and resumes what was killed. The folder that is written holds:

run.json         the model, the settings and the inputs
rows/            the rows of the inputs with their predictions, in any order; each once
checkpoint/      the keys of the rows that are written: Ray's own files, kept after success
manifest.json    the number of rows; written last
"""

from __future__ import annotations

import json
import logging
import os
import platform
import socket
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import setrnn
from setrnn.config import check_same
from setrnn.data.read import BadRows, ReadOptions
from setrnn.data.read.dataset import expand_places
from setrnn.data.source import Source
from setrnn.errors import ConfigError, DataError, SetRNNError
from setrnn.tagging.files import (
    MANIFEST,
    RUN,
    TaggedFiles,
    TagWork,
    holds_other_files,
    read_run,
)
from setrnn.tagging.rows import COLUMNS, free_name

LOCAL, LOOPBACK = "local", "127.0.0.1"
LOCAL_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # if 0, Ray listens on the loopback interface only
MIN_CPUS = 3  # for Ray Data: a worker, the filter of a resumed run, and reading and writing
SECONDS_TO_ANSWER = 5.0
MAX_RETRIES = 4  # of work whose worker or node is lost
KEY = "row_hash"  # what Ray calls the hash of a row's file and place
SUFFIX = ".parquet"
ROWS, CHECKPOINT = "rows", "checkpoint"


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


def tag_on_ray(
    work: TagWork,
    source: Source,
    out: str,
    address: str,
    workers: int | None,
    gpus_per_worker: float,
    chunk_rows: int,
) -> TaggedFiles:
    """Tag Parquet files into a folder, or the rows of a begun folder that are missing."""
    connect(address)
    import ray.data
    from pyarrow import fs

    target = out.rstrip("/") if "://" in out else str(Path(out).absolute())
    system, folder = fs.FileSystem.from_uri(target)
    files = _find_files(source)
    n_rows = sum(
        _count_rows(of_file, path, "Copy or write it again.")
        for of_file, path in map(fs.FileSystem.from_uri, files)
    )
    room = count_room(gpus_per_worker, MIN_CPUS - 1)
    run = work.settings() | {"inputs": files, "n_rows": n_rows, "on_bad_row": source.on_bad_row}
    _begin(system, folder, run)
    if system.get_file_info(f"{folder}/{MANIFEST}").type != fs.FileType.File:
        before = ray.data.DataContext.get_current().checkpoint_config
        n_workers = min(workers or room, room)
        try:
            _run(work, source, files, target, n_workers, gpus_per_worker, chunk_rows)
        except ray.exceptions.RayError as error:
            raise _explain(error) from error
        finally:
            ray.data.DataContext.get_current().checkpoint_config = before
    written = _list_files(system, f"{folder}/{ROWS}")
    way_out = f"Remove {out}, and run the command again."
    n_written = sum(_count_rows(system, file, way_out) for file in written)
    if n_written != n_rows:
        raise DataError(
            f"{out} has {n_written:,} rows instead of {n_rows:,}: its files were changed. {way_out}"
        )
    _write(system, f"{folder}/{MANIFEST}", {"n_rows": n_rows})
    names = tuple(f"{ROWS}/{Path(each).name}" for each in written)
    return TaggedFiles(out, names, n_rows, BadRows())


def _run(
    work: TagWork,
    source: Source,
    files: list[str],
    target: str,
    n_workers: int,
    gpus: float,
    chunk_rows: int,
) -> None:
    """Read, tag and write all rows that the checkpoint does not have."""
    import ray.data
    from ray.data.checkpoint import CheckpointConfig

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.checkpoint_config = CheckpointConfig(
        id_column=KEY,
        checkpoint_path=f"{target}/{CHECKPOINT}",
        delete_checkpoint_on_success=False,  # or the same command would write all rows again
    )
    rows = ray.data.read_parquet(files, include_row_hash=True)  # Ray retries tasks three times
    small = rows.repartition(target_num_rows_per_block=chunk_rows)
    with warnings.catch_warnings():  # bounds on retries are to get another name in Ray 2.64
        warnings.simplefilter("ignore", DeprecationWarning)
        tagged = small.map_batches(
            _BatchTagger,
            fn_constructor_args=(work, source.options, source.on_bad_row, setrnn.__version__),
            batch_size=chunk_rows,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=n_workers),
            num_cpus=1,
            num_gpus=gpus,
            max_restarts=MAX_RETRIES,
            max_task_retries=MAX_RETRIES,
        )
    tagged.write_parquet(f"{target}/{ROWS}")


class _BatchTagger:
    """A worker on the cluster: adds the columns of predictions to batches of rows."""

    def __init__(self, work: TagWork, options: ReadOptions, on_bad_row: str, version: str) -> None:
        from setrnn.data.read.rows import example_maker

        check_node(version, [work.model])
        self._tagger, self._work, self._on_bad_row = work.load(), work, on_bad_row
        self._make = example_maker(options, "row")

    def __call__(self, batch: Any) -> Any:  # noqa: ANN401 (a pyarrow table)
        """Return the batch with new columns; a row that cannot be read has no labels."""
        import pyarrow as pa

        from setrnn.data.read.lines import RowProblem

        examples, problems = [], {}
        for place, row in enumerate(batch.to_pylist()):
            key = row.pop(KEY)
            try:
                examples.append(self._make(row, key))
            except RowProblem as problem:
                if self._on_bad_row == "stop":
                    raise DataError(f"Row {row}: {problem}"[:300]) from problem
                problems[place] = str(problem)
        found = self._work.tag(self._tagger, examples)
        columns = self._work.columns
        rows = [
            {"notes": problems[place]}
            if place in problems
            else dict(columns.list_predicted(next(found)))
            for place in range(batch.num_rows)
        ]
        for name, kind in _column_types().items():
            values = pa.array([row.get(name) for row in rows], kind)
            batch = batch.append_column(free_name(name, batch.column_names), values)
        return batch


def _column_types() -> dict[str, Any]:
    """Return the types of predicted columns, which are the same in all files."""
    import pyarrow as pa

    names, number = pa.list_(pa.string()), pa.float64()
    sets = pa.list_(pa.struct([("labels", names), ("probability", number)]))
    kinds = {"labels": names, "probability": number, "accepted": pa.bool_(), "notes": pa.string()}
    kinds |= {"label_probabilities": pa.list_(number), "alternatives": sets}
    kinds |= {"accepted_labels": names, "shown_labels": names}
    return {name: kinds[name] for name in COLUMNS if name in kinds}


def _find_files(source: Source) -> list[str]:
    """Return all input files: absolute paths or addresses of Parquet files."""
    from pyarrow import fs

    local = [each for each in source.places if "://" not in each]
    found = [str(Path(each).absolute()) for each in expand_places(local)] if local else []
    files = []
    for place in [*found, *(each for each in source.places if "://" in each)]:
        system, path = fs.FileSystem.from_uri(place)
        scheme = place.partition("://")[0] + "://" if "://" in place else ""
        is_folder = system.get_file_info(path).type == fs.FileType.Directory
        files += [scheme + each for each in _list_files(system, path)] if is_folder else [place]
    if wrong := next((each for each in files if not each.lower().endswith(SUFFIX)), None):
        raise ConfigError(
            f"--ray reads Parquet files, not {wrong}. Convert it: setrnn data convert"
        )
    if not files:
        raise DataError("The inputs hold no Parquet files. Check the names.")
    return files


def _list_files(system: Any, folder: str) -> list[str]:  # noqa: ANN401 (pyarrow has no types)
    from pyarrow import fs

    found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return sorted(each.path for each in found if each.path.lower().endswith(SUFFIX))


def _count_rows(system: Any, path: str, way_out: str) -> int:  # noqa: ANN401
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with system.open_input_file(path) as stream:
            return int(pq.read_metadata(stream).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a Parquet file that can be read. {way_out}") from error


def _begin(system: Any, folder: str, run: dict[str, Any]) -> None:  # noqa: ANN401
    """Write the settings of a run, or check that they are those of the run that was begun."""
    from pyarrow import fs

    if system.get_file_info(f"{folder}/{RUN}").type == fs.FileType.File:
        with system.open_input_file(f"{folder}/{RUN}") as stream:
            check_same(folder, read_run(stream.read(), folder), run)
        return
    if system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        raise holds_other_files(folder)
    system.create_dir(folder, recursive=True)
    _write(system, f"{folder}/{RUN}", run)


def _write(system: Any, path: str, values: dict[str, Any]) -> None:  # noqa: ANN401
    with system.open_output_stream(path) as stream:
        stream.write(json.dumps(values, ensure_ascii=False, indent=1).encode())


def _explain(error: Exception) -> SetRNNError:
    """Return an error of one line for what went wrong on the cluster."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SetRNNError):
            return type(cause)(str(cause))
        cause = getattr(cause, "cause", None) or cause.__cause__
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return SetRNNError(f"The Ray cluster could not tag the rows: {' '.join(lines[-1:])[:300]}")
