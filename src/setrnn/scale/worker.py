"""What one worker does: load the model once, then tag one shard after the other.

A shard is written under a name of its own, then its record, which makes it count. A worker that is
killed in between leaves a file that no record names; a shard that is tagged twice has the same
bytes twice.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice, tee
from pathlib import Path

import setrnn
from setrnn.data.example import Example
from setrnn.data.folders import file_hash
from setrnn.data.formats import BadRows, ReadOptions
from setrnn.data.formats.ranges import has_changed, read_file, read_stream
from setrnn.data.formats.reader import OnBadRow, file_stem
from setrnn.data.formats.several import add_prefix
from setrnn.errors import BadRowError, ConfigError
from setrnn.scale.plan import PLAN, Shard
from setrnn.scale.stores import is_address, local_copy, open_input, open_store
from setrnn.scale.workers import check_seen, check_version
from setrnn.systems.limits import Limits
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.prediction_rows import write_predictions
from setrnn.tagging.tagger import Tagger

RECORDS = "records"


@dataclass(frozen=True)
class Record:
    """A shard that is done: readers trust these records alone."""

    number: int
    file: str
    n_rows: int  # that were written
    hash: str  # of the file
    bad_rows: tuple[Mapping[str, str], ...] = ()  # where, and why

    def to_json(self) -> bytes:
        """Write the record."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Record:
        """Read a record."""
        values = json.loads(text)
        return cls(**values | {"bad_rows": tuple(values["bad_rows"])})


@dataclass(frozen=True)
class TagWork:
    """How to tag; it is sent to every worker."""

    model: str
    model_version: str
    setrnn_version: str
    out: str
    format_out: str
    device: str
    options: ReadOptions
    reader: str | None
    on_bad_row: OnBadRow
    rule: str | None = None
    top: int = 1
    limits: Limits = Limits()  # noqa: RUF009 (frozen)
    calibrated: bool = True
    beam_width: int | None = None

    def start(self) -> TagWorker:
        """Load the model; raise ConfigError if it is not the one of the plan."""
        import torch

        torch.set_num_threads(1)
        return TagWorker(self)


@dataclass(frozen=True)
class Task:
    """A shard to tag; or some of its documents to try, without writing anything."""

    shard: Shard
    left_out: tuple[tuple[int, str], ...] = ()  # places of documents in the shard, and why
    only: tuple[int, int] | None = None  # try only the documents of some places


class TagWorker:
    """Tags shards."""

    def __init__(self, work: TagWork) -> None:
        """Load the model; raise ConfigError if it is not the one of the plan."""
        check_version(work.setrnn_version)
        check_seen([Path(work.model)])
        if not is_address(work.out):
            check_seen([Path(work.out) / PLAN])
        tagger = setrnn.load(work.model, work.device)
        if describe_version(tagger) != work.model_version:
            raise ConfigError(
                f"{work.model} is not the model of the plan on a worker. Give all machines the "
                "same folder."
            )
        self.tagger = tagger if work.beam_width is None else tagger.with_beam_width(work.beam_width)
        self.work, self.store = work, open_store(work.out)

    def __call__(self, task: Task, on_documents: Callable[[int], None]) -> Record | None:
        """Tag a shard and record it; return None for a trial."""
        bad_rows = _ListedRows(self.work.on_bad_row)
        with _reading(task.shard, self.work, bad_rows) as examples:
            if task.only is not None:
                for _ in self._tag(islice(examples, *task.only)):
                    on_documents(1)
                return None
            kept, for_rows = tee(_leave_out(examples, dict(task.left_out), bad_rows))
            found = _count(self._tag(kept), on_documents)
            return self._write(task.shard, for_rows, found, bad_rows)

    def _tag(self, examples: Iterable[Example]) -> Iterator[Prediction]:
        work = self.work
        documents = ((each.text, each.features) for each in examples)
        return self.tagger.tag_stream(
            documents, work.rule, work.top, work.limits, calibrated=work.calibrated
        )

    def _write(
        self,
        shard: Shard,
        examples: Iterator[Example],
        found: Iterator[Prediction],
        bad_rows: _ListedRows,
    ) -> Record:
        options = self.work.options
        name = f"shard-{shard.name}-{secrets.token_hex(4)}.{self.work.format_out}"
        counted = _Counted(examples)
        with self.store.writing(name) as path:
            write_predictions(counted, found, path, options.id_field, options.label_separator)
            hashed = file_hash(path)
        record = Record(shard.number, name, counted.n, hashed, tuple(bad_rows.listed))
        self.store.write(f"{RECORDS}/{shard.name}.json", record.to_json())
        return record


def describe_version(tagger: Tagger) -> str:
    """Return what changes when a model or its calibration changes."""
    return f"{tagger.version.model}-{tagger.version.calibration}"


@contextmanager
def _reading(shard: Shard, work: TagWork, bad_rows: BadRows) -> Iterator[Iterator[Example]]:
    """Yield the documents of a shard."""
    place = shard.source.place
    if not is_address(place):
        check_seen([Path(place)])
    if shard.source.is_streamed:
        with open_input(place) as stream:
            if stream.seek(0, 2) != shard.source.n_bytes:
                raise has_changed(place)
            name = place.rpartition("/")[2]
            examples = read_stream(name, stream, shard.rows, work.options, bad_rows)
            if work.options.source_feature:
                examples = _add_feature(examples, f"source:{file_stem(Path(name))}")
            yield add_prefix(examples, shard.source.prefix)
        return
    with local_copy(place) as path:
        if path.stat().st_size != shard.source.n_bytes:
            raise has_changed(place)
        examples = read_file(path, shard.rows, work.options, work.reader, bad_rows)
        yield add_prefix(examples, shard.source.prefix)


def _add_feature(examples: Iterator[Example], feature: str) -> Iterator[Example]:
    return (replace(each, features=(*each.features, feature)) for each in examples)


def _leave_out(
    examples: Iterable[Example], left_out: Mapping[int, str], bad_rows: _ListedRows
) -> Iterator[Example]:
    """Yield the documents, without those that workers have died of."""
    for place, example in enumerate(examples):
        if place in left_out:
            bad_rows.listed.append({"id": example.id, "reason": left_out[place]})
        else:
            yield example


def _count(
    found: Iterable[Prediction], on_documents: Callable[[int], None]
) -> Iterator[Prediction]:
    for each in found:
        on_documents(1)
        yield each


class _Counted(Iterator[Example]):
    """Documents, and how many there were."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self._examples, self.n = iter(examples), 0

    def __next__(self) -> Example:
        example = next(self._examples)
        self.n += 1
        return example


class _ListedRows(BadRows):
    """All bad rows, where they are and what is wrong with them."""

    def __init__(self, on_bad_row: OnBadRow) -> None:
        super().__init__(on_bad_row)
        self.listed: list[dict[str, str]] = []

    def add(self, error: BadRowError) -> None:
        super().add(error)
        self.listed.append({"place": error.args[0], "reason": error.args[1]})
