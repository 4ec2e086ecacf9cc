"""Tag files of any size, by several workers: `predict_files`.

The folder that it writes has, beside the shards of tags:

plan.json       the model, the settings, and the rows of each shard; written once
records/        one small file per shard that is done: its file, rows and hash
bad.jsonl       rows that could not be tagged, and why
log.txt         what happened, for whoever runs the cluster; only on a disk
manifest.json   all shards in the order of the input; written last
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import setrnn
from setrnn.data.cache import Source
from setrnn.data.folders import locked
from setrnn.data.formats import choose_split
from setrnn.errors import ConfigError, DataError, SetRNNError
from setrnn.models.hub import fix_place
from setrnn.progress import Note, OnProgress, ignore_progress
from setrnn.scale.crew import Crew, choose_device, hire
from setrnn.scale.driver import Driver
from setrnn.scale.plan import FORMATS_OUT, PLAN, Plan, check_same, list_inputs, read_plan
from setrnn.scale.stores import Store, find_inputs, is_address, open_store
from setrnn.scale.worker import RECORDS, Record, TagWork, describe_version
from setrnn.systems.limits import Limits
from setrnn.tagging.prediction_rows import check_separator

MANIFEST, BAD, LOG = "manifest.json", "bad.jsonl", "log.txt"
SHARD_ROWS = 50_000
N_READERS = 16  # records that are read at once
BUSY = " Wait for it, or choose another folder."


@dataclass(frozen=True)
class TaggedFiles:
    """What `predict_files` has written.

    Attributes:
        place: the folder.
        files: the names of the shards, in the order of the input.
        n_documents: the number of documents that were tagged.
        n_bad: the number of rows that could not be tagged; bad.jsonl has them.
    """

    place: str
    files: tuple[str, ...]
    n_documents: int
    n_bad: int


def predict_files(
    model: str | Path,
    data: str | Sequence[str] | Source,
    out: str | Path,
    *,
    rule: str | None = None,
    top: int = 1,
    limits: Limits | None = None,
    calibrated: bool = True,
    beam_width: int | None = None,
    split: str | None = None,
    format_out: str = "jsonl",
    shard_rows: int = SHARD_ROWS,
    device: str = "auto",
    crew: Crew = Crew(),  # noqa: B008 (frozen)
    on_progress: OnProgress = ignore_progress,
) -> TaggedFiles:
    """Tag files by several workers, each document exactly once; write a folder of shards.

    If it is stopped, however hard, the same call goes on with what is missing.

    Args:
        model: a model folder that all workers can read.
        data: files, globs or folders, also addresses such as "s3://bucket/*.parquet".
        out: the folder to write, or its address.
        rule: the prediction rule; the model's own if None.
        top: how many sets to write per document.
        limits: limits on the predicted sets.
        calibrated: whether to write calibrated probabilities.
        beam_width: another beam width than that of training.
        split: the part to read, if the data has several.
        format_out: "jsonl", "csv" or "parquet".
        shard_rows: the number of rows per shard.
        device: "auto", "cpu" or "cuda".
        crew: how many workers, and where.
        on_progress: called with the progress.
    """
    place = str(out).rstrip("/")
    source = data if isinstance(data, Source) else Source(data)
    source = replace(source, options=replace(source.options, require_labels=False))
    if format_out not in FORMATS_OUT:
        raise ConfigError(f"--format-out must be {', '.join(FORMATS_OUT)}, got '{format_out}'.")
    if shard_rows < 1:
        raise ConfigError(f"--shard-rows must be at least 1, got {shard_rows}.")
    if format_out != "jsonl":
        source = replace(source, options=replace(source.options, keep_columns=True))
    device = choose_device(device, crew.ray, crew.gpus_per_worker, "--gpus-per-worker")
    model = fix_place(model)
    tagger = setrnn.load(model, "cpu")
    if beam_width is not None:
        tagger.with_beam_width(beam_width)
    limits = limits or Limits()
    tagger.known_limits(limits)
    if format_out == "csv":
        check_separator(tagger.labels.names, source.options.label_separator)
    work = TagWork(
        model=model,
        model_version=describe_version(tagger),
        setrnn_version=setrnn.__version__,
        out=place if is_address(place) else str(Path(place).absolute()),
        format_out=format_out,
        device=device,
        options=source.options,
        reader=source.reader,
        on_bad_row=source.on_bad_row,
        rule=tagger.rule_or_own(rule),
        top=top,
        limits=limits,
        calibrated=calibrated,
        beam_width=beam_width,
    )
    places = _find_places(source, split)
    store = open_store(work.out)
    with _alone(work.out):
        plan = _settle_plan(store, work, places, shard_rows, on_progress)
        return _tag(store, work, plan, crew, on_progress)


def _find_places(source: Source, split: str | None) -> list[str]:
    """Return the files to tag, with absolute paths."""
    places: list[str] = []
    local = [each for each in source.places if not is_address(each)]
    if local:
        dataset = replace(source, data=local).open()
        part = dataset.require(split or choose_split(list(dataset.splits)))
        if not part.files:
            raise DataError(f"{source} is not in files. Convert it first: setrnn data convert")
        places += [str(file.absolute()) for file in part.files]
    for address in source.places:
        if is_address(address):
            places += find_inputs(address)
    return places


@contextmanager
def _alone(place: str) -> Iterator[None]:
    """Refuse two drivers of one folder, on a disk."""
    if is_address(place):
        yield
        return
    with locked(Path(place), wait=False, way_out=BUSY):
        yield


def _settle_plan(
    store: Store, work: TagWork, places: Sequence[str], shard_rows: int, on_progress: OnProgress
) -> Plan:
    """Write the plan, or check that it is the one that the folder has."""
    before = read_plan(store, work.out)
    inputs = list_inputs(places, work.options, work.reader, shard_rows, before, on_progress)
    plan = Plan(_settings(work, shard_rows), inputs)
    if before is None:
        store.write(PLAN, plan.to_json().encode())
        return plan
    check_same(before, plan, work.out)
    return before


def _settings(work: TagWork, shard_rows: int) -> dict[str, Any]:
    """Return all that decides the bytes of the output, as JSON values."""
    values = asdict(work)
    options = values.pop("options")
    options.pop("check_known")
    for name in ("model", "out", "device"):
        del values[name]
    values |= {f"reading.{name}": value for name, value in options.items()}
    values["shard_rows"] = shard_rows
    plain: dict[str, Any] = json.loads(json.dumps(values, default=list))
    return plain


def _tag(
    store: Store, work: TagWork, plan: Plan, crew: Crew, on_progress: OnProgress
) -> TaggedFiles:
    shards = plan.shards()
    records = _read_records(store, work.out)
    missing = [each for each in shards if each.number not in records]
    if missing:
        if len(missing) < len(shards):
            n_done = len(shards) - len(missing)
            text = f"{n_done:,} of {len(shards):,} shards are done already."
            on_progress(Note(text))
        n_rows = plan.n_rows
        rows_done = n_rows - sum(each.rows.n_rows for each in missing)
        with (
            _logging(work.out) as say,
            closing(hire(work, crew, len(missing), work.device)) as workers,
        ):
            say(
                f"setrnn {work.setrnn_version} on {platform.node()}: {len(missing):,} of "
                f"{len(shards):,} shards to tag, {workers.n_workers} workers"
            )
            driver = Driver(
                workers,
                missing,
                60 * crew.shard_minutes,
                on_progress,
                say,
                rows_done,
                n_rows,
                len(shards),
            )
            driver.run()
        if driver.lost:
            (shard, why), *_ = driver.lost
            raise SetRNNError(
                f"{len(driver.lost)} of {len(shards):,} shards could not be tagged, such as "
                f"{shard.name} of {shard.source.place}: {why}. All others are done; run the same "
                "command again to try these."
            )
        records = _read_records(store, work.out)
    return _finish(store, work, plan, records)


def _read_records(store: Store, place: str) -> dict[int, Record]:
    """Return the records of a folder by the numbers of their shards."""

    def read(name: str) -> Record:
        try:
            return Record.from_json(store.read(f"{RECORDS}/{name}") or b"")
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"{place}/{RECORDS}/{name} is damaged. Remove it: its shard is tagged again."
            ) from error

    names = [name for name in store.names(RECORDS) if name.endswith(".json")]
    with ThreadPoolExecutor(N_READERS) as readers:
        return {record.number: record for record in readers.map(read, names)}


@contextmanager
def _logging(place: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes a line to the log of a folder, with the time; log the end."""
    if is_address(place):
        yield lambda text: None
        return
    with (Path(place) / LOG).open("a", encoding="utf-8", buffering=1) as log:

        def say(text: str) -> None:
            print(time.strftime("%Y-%m-%d %H:%M:%S"), text, file=log)

        try:
            yield say
        except BaseException as error:
            say(f"stopped: {error if isinstance(error, SetRNNError) else type(error).__name__}")
            raise
        say("no shard is left")


def _finish(store: Store, work: TagWork, plan: Plan, records: Mapping[int, Record]) -> TaggedFiles:
    """Check that all is there, remove what no record names, and write the manifest."""
    if unrecorded := [each.name for each in plan.shards() if each.number not in records]:
        raise DataError(
            f"{len(unrecorded):,} shards have no record in {work.out}, such as {unrecorded[0]}. "
            "Run the same command again: they are tagged again."
        )
    ordered = [records[each.number] for each in plan.shards()]
    for shard, record in zip(plan.shards(), ordered, strict=True):
        n_found, n_rows = record.n_rows + len(record.bad_rows), shard.rows.n_rows
        is_wrong = n_found > n_rows if shard.rows.stop else n_found != n_rows  # lines may be empty
        if is_wrong:
            raise DataError(
                f"Shard {shard.name} has {n_found:,} rows instead of {n_rows:,}. Remove "
                f"{work.out}/{RECORDS}/{shard.name}.json: it is tagged again."
            )
    names = {each.file for each in ordered}
    there = [name for name in store.names() if name.startswith("shard-")]
    if lost := sorted(names - set(there)):
        number = next(each.number for each in ordered if each.file == lost[0])
        raise DataError(
            f"{work.out}/{lost[0]} is missing. Remove {RECORDS}/{number:06d}.json: it is tagged "
            "again."
        )
    for name in there:
        if name not in names:
            store.remove(name)
    bad = [row for each in ordered for row in each.bad_rows]
    if bad:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in bad)
        store.write(BAD, "".join(lines).encode())
    n_documents = sum(each.n_rows for each in ordered)
    shards = [{"file": each.file, "n_rows": each.n_rows, "hash": each.hash} for each in ordered]
    manifest = {"n_documents": n_documents, "n_bad": len(bad), "shards": shards}
    store.write(MANIFEST, json.dumps(manifest, indent=1).encode())
    return TaggedFiles(work.out, tuple(each.file for each in ordered), n_documents, len(bad))
