"""Tag many documents by several processes, in parts that a second run does not tag again.

The parent reads rows of any format in order and hands chunks of them to a pool of processes, which
write one numbered part per chunk, then a record of its size and hash. A folder of parts holds:

run.json             the model, the settings and the inputs
part-000000.jsonl    the predictions of one chunk, in the order of the input
part-000000.json     its record: its rows, size and hash, and the hash of its documents
manifest.json        all parts in their order; written last

For an output of one file, the folder lies beside it until the parts are joined.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import setrnn
from setrnn.config import check_same
from setrnn.data.disk import is_temporary, locked, seal_file, whole_file
from setrnn.data.example import Example
from setrnn.data.read import BadRows
from setrnn.data.read.delimited import Dialect, DialectName, find_dialect
from setrnn.data.read.write import write_table
from setrnn.data.source import Source
from setrnn.data.streaming import batched
from setrnn.errors import ConfigError, DataError, SetRNNError
from setrnn.models.hub import fix_place
from setrnn.progress import OnProgress, count_up, ignore_progress
from setrnn.systems.limits import Limits
from setrnn.tagging.rows import Columns, LabelColumns, check_table, write_predictions
from setrnn.training.pool import starting_processes, stop_with_parent

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

    from setrnn.tagging.prediction import Prediction
    from setrnn.tagging.tagger import Tagger

RUN, MANIFEST = "run.json", "manifest.json"
SUFFIXES = (".jsonl", ".csv", ".xlsx", ".parquet")
PARTS = ".parts"  # follows the name of a file whose parts are not joined yet
CHUNK_ROWS = 5000
CHUNKS_PER_WORKER = 2  # that wait or are being tagged
TICK = 1.0  # seconds after which a wait ends, so that Ctrl-C is heard on every system
BUSY = " Wait for it, or choose another --out."


@dataclass(frozen=True)
class TaggedFiles:
    """What `predict_files` has written.

    Attributes:
        place: the file or folder.
        files: the names of the parts in a folder, or the name of the file.
        n_documents: the number of documents that were tagged.
        bad_rows: the rows that could not be read.
    """

    place: str
    files: tuple[str, ...]
    n_documents: int
    bad_rows: BadRows


@dataclass(frozen=True)
class TagWork:
    """How to tag; it is sent to every worker."""

    model: str
    model_version: str
    device: str
    rule: str | None
    top: int
    limits: Limits
    calibrated: bool
    beam_width: int | None
    columns: Columns
    thresholds: Mapping[str, float] | None

    def load(self) -> Tagger:
        """Load the model; raise ConfigError if it is not the one that the run began with."""
        tagger = setrnn.load(self.model, self.device)
        if tagger.version != self.model_version:
            raise ConfigError(f"{self.model} has changed, or differs between machines.")
        if self.thresholds is not None:
            tagger = tagger.with_thresholds(self.thresholds)
        return tagger if self.beam_width is None else tagger.with_beam_width(self.beam_width)

    def tag(self, tagger: Tagger, documents: Iterable[Example]) -> Iterator[Prediction]:
        """Tag documents with the model that `load` returned."""
        pairs = ((each.text, each.features) for each in documents)
        how: dict[str, Any] = {"limits": self.limits, "calibrated": self.calibrated}
        return self.columns.tag(tagger, pairs, rule=self.rule, top=self.top, **how)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the predictions, as JSON values."""
        values = asdict(self) | {"setrnn_version": setrnn.__version__}
        del values["model"], values["device"]
        plain: dict[str, Any] = json.loads(json.dumps(values, default=list))
        return plain


def predict_files(
    model: str | Path,
    data: str | Sequence[str] | Source,
    out: str | Path,
    *,
    rule: str | None = None,
    thresholds: Mapping[str, float] | None = None,
    top: int = 1,
    limits: Limits | None = None,
    calibrated: bool = True,
    beam_width: int | None = None,
    split: str | None = None,
    chunk_rows: int = CHUNK_ROWS,
    device: str = "auto",
    workers: int | None = None,
    ray: str | None = None,
    gpus_per_worker: float = 0.0,
    csv_dialect: DialectName | None = None,
    label_columns: LabelColumns | None = None,
    on_progress: OnProgress = ignore_progress,
) -> TaggedFiles:
    """Tag files by several workers, each document once; write a file or a folder of parts.

    If it is stopped, however hard, the same call takes the parts that are whole and tags the rest.
    On one machine, rows are written in the order of the input. On a Ray cluster, inputs and outputs
    are Parquet files, `out` is a folder, and rows are written in any order.

    Args:
        model: a model folder; on a cluster, one that all nodes can read.
        data: files, globs or folders; with `ray`, also addresses such as "s3://bucket/in/".
        out: a .jsonl, .csv, .xlsx or .parquet file; or a folder, whose parts are JSON Lines.
        rule: the prediction rule; the model's own if None.
        thresholds: those of `Tagger.with_thresholds`, for rule "label-f1".
        top: how many sets to write per document.
        limits: limits on the predicted sets.
        calibrated: whether to write calibrated probabilities.
        beam_width: another beam width than that of training.
        split: the part to read, if the data has several.
        chunk_rows: the number of rows per part.
        device: "auto", "cpu", "cuda" or "mps".
        workers: the number of workers; by default one per core, or one per GPU.
        ray: the address of a Ray cluster; "auto" for that of this machine, "local" to start one.
        gpus_per_worker: the GPUs of each worker on a Ray cluster, which may be a fraction.
        csv_dialect: "excel" for a byte order mark and the delimiter of the input, "plain" for
            commas and no mark; by the input if None.
        label_columns: what a column per label holds in a table, "binary" or "probability"; there is
            none if None.
        on_progress: called with the progress.
    """
    for name, value in (("--workers", workers), ("--chunk-rows", chunk_rows)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}.")
    is_file = bool(Path(out).suffix) and not str(out).endswith("/")
    suffix = Path(out).suffix.lower() if is_file else ".jsonl"
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"Several workers write {', '.join(SUFFIXES)}, not {suffix}. Choose another --out."
        )
    source = data if isinstance(data, Source) else Source(data)
    keep_columns = suffix != ".jsonl" or ray is not None
    options = replace(source.options, require_labels=False, keep_columns=keep_columns)
    source = replace(source, options=options)
    from setrnn.tagging.ray_cluster import choose_device, tag_on_ray  # they need this file

    device = choose_device(device, ray, gpus_per_worker, "--gpus-per-worker")
    loaded = tagger = setrnn.load(model, "cpu")
    if thresholds is not None:
        if rule not in (None, "label-f1"):
            raise ConfigError(f"thresholds are for rule label-f1, not {rule}. Omit one of them.")
        tagger = tagger.with_thresholds(thresholds)
    if beam_width is not None:
        tagger.with_beam_width(beam_width)
    tagger.resolve(rule, top, limits, calibrated)
    columns = Columns.of(tagger, out, options.id_field, label_columns)
    work = TagWork(
        model=fix_place(model),
        model_version=loaded.version,
        device=device,
        rule=rule,
        top=top,
        limits=limits or Limits(),
        calibrated=calibrated,
        beam_width=beam_width,
        columns=columns,
        thresholds=thresholds,
    )
    if ray is not None:
        if is_file:
            raise ConfigError("--ray writes a folder of Parquet files: name one as --out FOLDER/.")
        return tag_on_ray(work, source, str(out), ray, workers, gpus_per_worker, chunk_rows)
    dataset = source.open()
    part = dataset.choose(split)
    target = Path(out)
    if target.resolve() in [file.resolve() for file in part.files]:
        raise ConfigError(f"{target} is an input. Choose another --out.")
    dialect = find_dialect(part.files, options, csv_dialect)
    check_table(target, tagger.labels.names, dialect.separator)
    folder = target.with_name(target.name + PARTS) if is_file else target
    with locked(target, wait=False, way_out=BUSY):
        inputs = [[str(file.absolute()), file.stat().st_size] for file in part.files]
        reading = {f"reading.{name}": str(value) for name, value in asdict(options).items()}
        run = work.settings() | reading | {"chunk_rows": chunk_rows, "format": suffix[1:]}
        begin_run(folder / RUN, run | {"inputs": inputs}, folder)
        bad_rows = BadRows(source.on_bad_row)
        of_parts = ".jsonl" if suffix == ".jsonl" else ".parquet"  # which keeps types
        parts = _Parts(folder, of_parts, work, workers, on_progress)
        files = parts.tag(batched(part.read(bad_rows), chunk_rows))
        names = tuple(file.name for file in files)
        if is_file:
            _join(files, target, dialect)
            for each in folder.iterdir():
                if each.name != RUN:  # by which a second run knows what a killed one left
                    each.unlink()
            shutil.rmtree(folder)
            names = (target.name,)
        else:
            rows = [{"file": file.name, **_read_record(file)} for file in files]
            _write_json(folder / MANIFEST, {"n_documents": parts.n_documents, "parts": rows})
        return TaggedFiles(str(out), names, parts.n_documents, bad_rows)


def begin_run(file: Path, run: dict[str, Any], place: Path) -> None:
    """Write the settings of a run, or check that they are those of the run that was begun."""
    if file.exists():
        check_same(place, read_run(file.read_bytes(), place), run)
        return
    names = os.listdir(file.parent) if file.parent.is_dir() else []  # noqa: PTH208
    if not all(map(is_temporary, names)):  # those are of a run that was killed as it began
        raise holds_other_files(place)
    _write_json(file, run)


def read_run(text: bytes, place: Path | str) -> dict[str, Any]:
    """Return the settings of the run that was begun in a folder."""
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError) as error:
        raise DataError(f"{place}/{RUN} is damaged. Choose another folder.") from error


def holds_other_files(place: Path | str) -> DataError:
    """Return the error for a folder that is not empty and was not begun by a run."""
    return DataError(f"{place} holds other files. Choose an empty folder.")


class _Parts:
    """Tags chunks by a pool of processes, except those whose parts are whole."""

    def __init__(
        self, folder: Path, suffix: str, work: TagWork, workers: int | None, on_progress: OnProgress
    ) -> None:
        from setrnn.model.devices import count_gpus, n_cores

        self.folder, self.suffix, self.work = folder, suffix, work
        self.n_gpus = 0 if work.device == "cpu" else count_gpus()
        self.n_workers = workers or self.n_gpus or n_cores()
        self.count = count_up("tagging", on_progress, unit="docs")
        self.n_documents = 0
        self.pool: ProcessPoolExecutor | None = None

    def tag(self, chunks: Iterable[list[Example]]) -> list[Path]:
        """Tag chunks; return their files in order."""
        files: list[Path] = []
        waiting: dict[Future[None], int] = {}  # the documents of each part
        try:
            for number, chunk in enumerate(chunks):
                file = self.folder / f"part-{number:06d}{self.suffix}"
                files.append(file)
                self.n_documents += len(chunk)
                if self._is_whole(file, chunk):
                    self.count(len(chunk))
                    continue
                while len(waiting) >= CHUNKS_PER_WORKER * self.n_workers:
                    self._wait(waiting)
                waiting[self._submit(file, chunk)] = len(chunk)
            while waiting:
                self._wait(waiting)
        except BrokenProcessPool as error:
            raise SetRNNError(
                "A worker was killed, usually out of memory. Run the same command again, with "
                "fewer --workers: the parts that are finished are kept."
            ) from error
        finally:
            self._close()
        if more := sorted(set(self.folder.glob(f"part-*{self.suffix}")) - set(files)):
            raise _changed(more[0])
        return files

    def _is_whole(self, file: Path, chunk: Sequence[Example]) -> bool:
        """Return whether a part is whole; raise DataError if it is of other documents."""
        try:
            record = _read_record(file)
            documents, is_whole = record["documents"], record.items() >= seal_file(file).items()
        except (OSError, ValueError, KeyError, TypeError):
            return False  # no record, a damaged one, or no part
        if documents != hash_documents(chunk):
            raise _changed(file)
        return is_whole

    def _submit(self, file: Path, chunk: list[Example]) -> Future[None]:
        if self.pool is None:
            context = multiprocessing.get_context("spawn")
            numbers = context.SimpleQueue()  # unlike a Value, it needs no file
            for number in range(self.n_workers):
                numbers.put(number)
            self.pool = ProcessPoolExecutor(
                self.n_workers, context, _start_worker, (self.work, numbers, self.n_gpus)
            )
        with starting_processes(n_threads=1):  # the first calls start processes
            return self.pool.submit(_tag_part, file, chunk)

    def _wait(self, waiting: dict[Future[None], int]) -> None:
        """Wait until a part is finished, at most TICK seconds."""
        done, _ = wait(waiting, TICK, FIRST_COMPLETED)
        for future in done:
            future.result()
            self.count(waiting.pop(future))

    def _close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None


_TAGGER: Tagger
_WORK: TagWork


def _start_worker(work: TagWork, numbers: SimpleQueue[int], n_gpus: int) -> None:
    """Load the model in a new process, which ends with its parent."""
    global _TAGGER, _WORK
    threading.Thread(target=stop_with_parent, daemon=True).start()
    if n_gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(numbers.get() % n_gpus)
    import torch

    torch.set_num_threads(1)
    _TAGGER, _WORK = work.load(), work


def _tag_part(file: Path, chunk: list[Example]) -> None:
    """Tag a chunk in a process of the pool: write its part, then its record."""
    found = _WORK.tag(_TAGGER, chunk)
    write_predictions(chunk, found, file, _WORK.columns)
    record = {"n_rows": len(chunk), "documents": hash_documents(chunk)} | seal_file(file)
    _write_json(file.with_suffix(".json"), record)


def hash_documents(chunk: Iterable[Example]) -> str:
    """Return a hash of the content of documents."""
    digest = hashlib.blake2b(digest_size=16)
    for each in chunk:
        digest.update(repr((each.id, each.text, each.features, each.columns)).encode())
    return digest.hexdigest()


def _join(files: Sequence[Path], target: Path, dialect: Dialect) -> None:
    """Write the rows of all parts into one file, whole or not at all."""
    if target.suffix.lower() == ".jsonl":
        with whole_file(target) as stream:
            for file in files:
                with file.open("rb") as source:
                    shutil.copyfileobj(source, stream, 1 << 20)
        return
    import pyarrow.parquet as pq

    batches = (batch for file in files for batch in pq.ParquetFile(file).iter_batches(1024))
    rows = (row for batch in batches for row in batch.to_pylist())
    write_table(rows, target, dialect)


def _read_record(file: Path) -> dict[str, Any]:
    """Return the record of a part."""
    return dict(json.loads(file.with_suffix(".json").read_bytes()))


def _write_json(file: Path, values: dict[str, Any]) -> None:
    with whole_file(file) as stream:
        stream.write(json.dumps(values, ensure_ascii=False, indent=1).encode())


def _changed(file: Path) -> DataError:
    return DataError(
        f"{file} was tagged from other documents: the input has changed. Restore it, or choose "
        "another --out."
    )
