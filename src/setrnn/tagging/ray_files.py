"""Tag Parquet files on a Ray cluster: Ray Data reads, tags and writes, and resumes what was killed.

The folder that is written holds:

run.json         the model, the settings and the inputs
rows/            the rows of the inputs with their predictions, in any order; each once
checkpoint/      the keys of the rows that are written: Ray's own files, kept after success
manifest.json    the number of rows; written last
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import setrnn
from setrnn.config import check_same
from setrnn.data.cache import Source
from setrnn.data.read import BadRows, ReadOptions
from setrnn.data.read.dataset import expand_places
from setrnn.errors import ConfigError, DataError, SetRNNError
from setrnn.tagging.files import (
    MANIFEST,
    RUN,
    TaggedFiles,
    TagWork,
    holds_other_files,
    read_run,
)
from setrnn.tagging.ray_cluster import MAX_RETRIES, MIN_CPUS, check_node, connect, count_room
from setrnn.tagging.rows import COLUMNS, free_name, list_predicted

KEY = "row_hash"  # what Ray calls the hash of a row's file and place
SUFFIX = ".parquet"
ROWS, CHECKPOINT = "rows", "checkpoint"


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
        from setrnn.data.read.row import example_maker

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
        rows = [
            {"notes": problems[place]} if place in problems else list_predicted(next(found))
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
    kinds |= {"label_probabilities": pa.list_(number), "accepted_labels": names}
    kinds["alternatives"] = sets
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
