"""A world: a folder with data, a cache, models and a comparison, in which commands are broken.

It is made once per test run; every try works in a copy of the parts that it needs.
"""

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from children import TEMPORARY, Ended, run
from commands import CLASSICAL, COMPARED, NETWORK, SETTINGS, Command

from setrnn.data import newsroom
from setrnn.data.disk import recovered
from setrnn.data.read import write_examples
from setrnn.models.folder import load_model

SIZES = {"train": 40, "valid": 110, "test": 20}  # 100 valid documents are needed to calibrate
# Times and what holds them: the same command writes others.
VARYING = {"costs", "environment", "seal", "seconds", "trained", "training_seconds"}
VARYING |= {"documents_per_second", "training_documents_per_second"}
VARYING |= {"inputs"}  # of predict, with the path of the world
ONLY_NAMED = (".run/", "out/compared/report/")  # files with times in them, by a part of the path


def make_base(base, is_short=False):
    """Make the parts, with the commands themselves; all of them only for the whole suite."""

    def make(work):
        ended = run(base, work)
        assert ended.is_done, ended.output

    base.mkdir(parents=True)
    for split, size in SIZES.items():
        (base / "data").mkdir(exist_ok=True)
        write_examples(islice(newsroom.examples(split), size), base / "data" / f"{split}.jsonl")
    (base / "other-data").mkdir()
    write_examples(islice(newsroom.examples("train"), 50, 80), base / "other-data" / "train.jsonl")
    for work in (
        ("train", "data", "--out", "models/network", *NETWORK),
        ("train", "data", "--out", "models/other", *NETWORK, "--seed", "1"),
        ("train", "data", "--out", "models/br", *CLASSICAL),
        ("predict", "models/br", "data/test.jsonl", "--out", "rows-of-br.jsonl"),
    ):
        make(work)
    if is_short:
        return
    make(("data", "prepare", "data", "--out", "prepared", *SETTINGS))
    make(("data", "prepare", "other-data", "--out", "other-prepared", *SETTINGS))
    make(("compare", "data", "--out", "compared", *COMPARED))
    prepared = base / "prepared"
    (found,) = prepared.iterdir()
    found.rename(base / "prepared-data")
    prepared.rmdir()
    page = base / "compared" / "report" / "index.html"  # so that the old report is another one
    page.write_text(page.read_text() + "<!-- old -->")


def copy_parts(base, world, needs, copies=()):
    """Copy parts of the base into a new world."""
    (world / TEMPORARY).mkdir(parents=True)
    for source, target in [*((each, each) for each in needs), *dict(copies).items()]:
        place = world / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if (base / source).is_dir():
            shutil.copytree(base / source, place)
        else:
            shutil.copy2(base / source, place)
    return world


def snapshot(world):
    """Return a hash of each file by its path, without the times that it holds."""
    found = {}
    for file in sorted(world.rglob("*")):
        path = file.relative_to(world).as_posix()
        if "torchinductor_" in path:  # torch makes this folder when it likes
            continue
        if file.is_dir():
            found[f"{path}/"] = ""
        else:
            found[path] = "" if any(each in path for each in ONLY_NAMED) else _hash(file)
    return found


def differences(found, expected):
    """Describe in a few words how two snapshots differ."""
    more = sorted(found.keys() - expected.keys())
    folders = tuple(path for path in more if path.endswith("/"))
    return [
        *(f"left over: {path}" for path in more if path in folders or not path.startswith(folders)),
        *(f"missing: {path}" for path in sorted(expected.keys() - found.keys())),
        *(
            f"another result: {path}"
            for path in sorted(found.keys() & expected.keys())
            if found[path] != expected[path]
        ),
    ]


class ModelState(NamedTuple):
    """What a model folder holds, as it is read."""

    learned: str  # a hash
    calibration: str


def state_of(place):
    """Read a file or folder as its users do, and return what it holds."""
    if not place.suffix:
        recovered(place)
    if (place / "model.safetensors").exists():
        saved = load_model(place)
        arrays = {name: array.tobytes() for name, array in sorted(saved.arrays.items())}
        learned = hashlib.sha256(repr((arrays, saved.labels.names)).encode()).hexdigest()
        return ModelState(learned, json.dumps(saved.calibration, sort_keys=True))
    if place.is_dir():
        return {path: each for path, each in snapshot(place).items() if "/." not in f"/{path}"}
    return _hash(place) if place.exists() else None


def _hash(file):
    content = file.read_bytes()
    if file.name == "README.md":
        content = b"".join(line for line in content.splitlines() if b"trained at" not in line)
    if file.suffix == ".json":
        with suppress(ValueError):
            values = json.loads(
                content,
                object_hook=lambda found: {
                    name: each for name, each in found.items() if name not in VARYING
                },
            )
            content = json.dumps(values).encode()
    return hashlib.sha256(content).hexdigest()


@dataclass
class Reference:
    """A command that nothing disturbed: how it ends, and the files before and after."""

    command: Command
    base: Path
    place: Path

    @cached_property
    def ended(self) -> Ended:
        world = self.new_world("undisturbed")
        self.before = {path: state_of(world / path) for path in self.command.keeps}
        ended = run(world, self.command.work)
        assert ended.is_done, f"{ended.code} {ended.output!r}"
        self.after = {path: state_of(world / path) for path in self.command.keeps}
        self.files = snapshot(world)
        self.n_bytes = sum(each.stat().st_size for each in world.rglob("*") if each.is_file())
        shutil.rmtree(world)
        return ended

    def new_world(self, name, folder=None):
        world = (folder or self.place) / name
        shutil.rmtree(world, ignore_errors=True)
        return copy_parts(self.base, world, self.command.needs, self.command.copies)

    def problems_now(self, world):
        """What was there before must be readable: as it was, or as the command leaves it."""
        self.ended  # noqa: B018 (sets what is expected)
        problems = []
        for path in self.command.keeps:
            try:
                if not self._is_expected(state_of(world / path), path):
                    problems.append(f"neither old nor new: {path}")
            except Exception as error:  # noqa: BLE001 (whatever it is, it cannot be read)
                problems.append(f"unreadable: {path} ({error})")
        return problems

    def _is_expected(self, now, path):
        before, after = self.before[path], self.after[path]
        if isinstance(before, dict) and not (path.endswith("report")):
            # A folder of parts: those from before are unchanged, and the new ones are whole.
            kept = {each: now.get(each) for each in before}
            return kept == before and all(after.get(each) == now[each] for each in now)
        if isinstance(now, ModelState) and now.calibration == "null":  # saved, not calibrated yet
            return now.learned == after.learned
        return now in (before, after)

    def problems_again(self, world):
        """The same command again must end as if nothing had happened."""
        self.ended  # noqa: B018
        ended = run(world, self.command.work_again)
        # What writes a new folder refuses one that is there, which must then be the whole one.
        if not (ended.is_done or (ended.is_refused and "exists already" in ended.output)):
            return [f"again: {ended}"]
        return [f"again: {each}" for each in differences(snapshot(world), self.files)]
