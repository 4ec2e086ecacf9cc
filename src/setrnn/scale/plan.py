"""What a large prediction consists of: its model, its inputs and their shards, fixed in one file.

Whoever goes on with it, with any number of workers, makes the same shards, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from setrnn.data.folders import file_hash
from setrnn.data.formats import ReadOptions
from setrnn.data.formats.ranges import Range, cut_file, cut_stream, is_streamed
from setrnn.data.formats.several import name_places
from setrnn.errors import DataError
from setrnn.progress import OnProgress, Progress
from setrnn.scale.stores import Store, is_address, local_copy, modified_at, open_input

PLAN = "plan.json"
FORMAT = 1
FORMATS_OUT = ("jsonl", "csv", "parquet")


@dataclass(frozen=True)
class Input:
    """A file to tag."""

    place: str
    n_bytes: int
    hash: str
    ranges: tuple[Range, ...]
    is_streamed: bool  # whether its ranges are read where they are
    modified: int  # when, in nanoseconds; 0 if not known
    prefix: str = ""  # of its ids

    @property
    def n_rows(self) -> int:
        """The number of its rows; of its documents, if it must be read from its beginning."""
        return sum(each.n_rows for each in self.ranges)


@dataclass(frozen=True)
class Shard:
    """The rows of an input that become one file."""

    number: int
    source: Input
    rows: Range

    @property
    def name(self) -> str:
        """The name of its record, and the start of the name of its file."""
        return f"{self.number:06d}"


@dataclass(frozen=True)
class Plan:
    """A prediction: settings, in words that can be compared, and inputs."""

    settings: Mapping[str, Any]
    inputs: tuple[Input, ...]

    @property
    def n_rows(self) -> int:
        """The number of rows in all inputs."""
        return sum(each.n_rows for each in self.inputs)

    def shards(self) -> list[Shard]:
        """Return the shards, in the order of the inputs."""
        pairs = [(source, rows) for source in self.inputs for rows in source.ranges]
        return [Shard(number, *pair) for number, pair in enumerate(pairs)]

    def to_json(self) -> str:
        """Write the plan."""
        inputs = [
            asdict(each) | {"ranges": [list(asdict(rows).values()) for rows in each.ranges]}
            for each in self.inputs
        ]
        values = {"format": FORMAT, "settings": dict(self.settings), "inputs": inputs}
        return json.dumps(values, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: bytes, place: str) -> Plan:
        """Read a plan; raise DataError if it cannot be read."""
        try:
            values = json.loads(text)
            if values["format"] != FORMAT:
                raise DataError(
                    f"{place} holds a plan of another version of setrnn. Choose another folder."
                )
            inputs = tuple(
                Input(**each | {"ranges": tuple(Range(*rows) for rows in each["ranges"])})
                for each in values["inputs"]
            )
            return cls(values["settings"], inputs)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{place}/{PLAN} is damaged. Choose another folder.") from error


def list_inputs(
    places: Sequence[str],
    options: ReadOptions,
    reader: str | None,
    shard_rows: int,
    before: Plan | None,
    on_progress: OnProgress,
) -> tuple[Input, ...]:
    """Look at all inputs, and cut them into shards.

    An input that has the size and the time of the plan before is not read again.
    """
    known = {} if before is None else {each.place: each for each in before.inputs}
    has_prefix = options.id_prefix == "file" and len(places) > 1
    names = name_places(places) if has_prefix else [""] * len(places)
    inputs = []
    for number, (place, prefix) in enumerate(zip(places, names, strict=True)):
        on_progress(Progress("counting rows", number, len(places), unit="files"))
        found = _look_at(place, options, reader, shard_rows, known.get(place))
        inputs.append(replace(found, prefix=prefix))
    on_progress(Progress("counting rows", len(places), len(places), unit="files"))
    if not any(each.n_rows for each in inputs):
        raise DataError("The inputs hold no documents. Check the names.")
    return tuple(inputs)


def _look_at(
    place: str, options: ReadOptions, reader: str | None, shard_rows: int, known: Input | None
) -> Input:
    name = place.rpartition("/")[2]
    modified = modified_at(place)
    with open_input(place) as stream:
        n_bytes = stream.seek(0, 2)
        stream.seek(0)
        if (
            known is not None
            and modified
            and (known.n_bytes, known.modified) == (n_bytes, modified)
        ):
            return known
        streams = reader is None and is_streamed(name, stream)
        if streams:
            ranges = cut_stream(name, stream, shard_rows)
    if not streams:
        with local_copy(place) as path:
            ranges = cut_file(path, options, reader, shard_rows)
    # An object in a store is never changed, only replaced, at another time.
    hashed = str(modified) if is_address(place) else file_hash(Path(place))
    return Input(place, n_bytes, hashed, tuple(ranges), streams, modified)


def read_plan(store: Store, place: str) -> Plan | None:
    """Return the plan of a folder; None if it has none.

    Raises DataError if the folder holds other files.
    """
    text = store.read(PLAN)
    if text is not None:
        return Plan.from_json(text, place)
    if store.names():
        raise DataError(
            f"{place} holds other files. Choose an empty folder, or one that this command began."
        )
    return None


def check_same(before: Plan, now: Plan, place: str) -> None:
    """Raise DataError with the first difference of two plans."""
    for difference in _differences(before, now):
        raise DataError(
            f"{place} was begun with other settings: {difference}. Use the same, or choose another "
            "folder."
        )


def _differences(before: Plan, now: Plan) -> Iterator[str]:
    for name in {**before.settings, **now.settings}:
        old, new = before.settings.get(name), now.settings.get(name)
        if old != new:
            yield f"{name} was {_shown(old)}, now it is {_shown(new)}"
    old_inputs = {each.place: each for each in before.inputs}
    new_inputs = {each.place: each for each in now.inputs}
    for place, each in new_inputs.items():
        if place not in old_inputs:
            yield f"{place} is new among the inputs"
        elif (each.n_bytes, each.hash) != (old_inputs[place].n_bytes, old_inputs[place].hash):
            yield f"{place} has changed"
    for place in old_inputs:
        if place not in new_inputs:
            yield f"{place} is no longer among the inputs"
    if list(old_inputs) != list(new_inputs):
        yield "the inputs are in another order"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
