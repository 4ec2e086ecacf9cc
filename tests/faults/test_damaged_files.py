"""Damaged files: the command refuses and names the file, or gives the same answer as before."""

import re
import shutil
from dataclasses import dataclass

import pytest
from children import Trap, run
from commands import CLASSICAL, NETWORK
from worlds import copy_parts, snapshot

short = pytest.mark.short
N_FLIPS, N_DIGITS = 6, 4


@dataclass(frozen=True)
class Kind:
    """Files of one kind, the command that reads them, and where its answer is."""

    files: str  # a glob in the world
    work: tuple[str, ...]
    needs: tuple[str, ...]
    answer: str  # a file or folder that the command writes
    copies: tuple[tuple[str, str], ...] = ()
    marks: tuple = ()


def predict(model):
    return ("predict", model, "data/test.jsonl", "--out", "out/rows.jsonl")


TRAIN = ("train", "prepared-data", "--out", "out/model")
EVALUATE = (
    "evaluate",
    "models/br",
    "prepared-data",
    "--split",
    "test",
    "--json",
    "out/scores.json",
)
RESUME = ("train", "data", "--out", "out/network", *NETWORK, "--resume")
REPORT = ("report", "compared")
SUMMARY = "compared/report/summary.json"
# One line for each kind of file that a command reads and we have written.
KINDS = {
    "model of a network": Kind(
        "models/network/*",
        predict("models/network"),
        ("data", "models/network"),
        "out/rows.jsonl",
        marks=(short,),
    ),
    "model of br": Kind(
        "models/br/*", predict("models/br"), ("data", "models/br"), "out/rows.jsonl"
    ),
    "checkpoints": Kind(
        "out/network.run/*.safetensors",
        RESUME,
        ("data", "cache"),
        "out/network/model.safetensors",
        copies=(("stopped.run", "out/network.run"),),
    ),
    "logs of a run": Kind(
        "out/network.run/e*",
        RESUME,
        ("data", "cache"),
        "out/network/model.safetensors",
        copies=(("stopped.run", "out/network.run"),),
    ),
    "prepared folder": Kind(
        "prepared-data/*.json", (*TRAIN, *CLASSICAL), ("prepared-data",), "out/model"
    ),
    "prepared train part": Kind(
        "prepared-data/train/*", (*TRAIN, *CLASSICAL), ("prepared-data",), "out/model"
    ),
    "prepared valid part": Kind(
        "prepared-data/valid/*", (*TRAIN, *CLASSICAL), ("prepared-data",), "out/model"
    ),
    "prepared test part": Kind(
        "prepared-data/test/*", EVALUATE, ("prepared-data", "models/br"), "out/scores.json"
    ),
    "prepared train part, for a network": Kind(
        "prepared-data/train/*", (*TRAIN, *NETWORK), ("prepared-data",), "out/model"
    ),
    "word vectors": Kind(
        "prepared-data/word_vectors*", (*TRAIN, *NETWORK), ("prepared-data",), "out/model"
    ),
    "comparison": Kind("compared/comparison.json", REPORT, ("compared",), SUMMARY),
    "records": Kind("compared/runs/*.json", REPORT, ("compared",), SUMMARY),
}


@pytest.fixture(scope="session")
def damaged_base(base, make_once, references):
    """The base, with the run of a training that was killed in its last epoch."""

    def write(folder):
        reference = references["train set-rnn-exact"]
        calls = reference.ended.calls
        at = [number for number, call in enumerate(calls, 1) if ".last." in call.path][-4]
        world = reference.new_world("stopped")
        run(world, reference.command.work, trap=Trap(at))
        shutil.copytree(base, folder)
        shutil.copytree(world / "out/network.run", folder / "stopped.run")
        shutil.rmtree(world)

    return make_once("faults-damaged", write)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=kind.marks) for name, kind in KINDS.items()]
)
def test_damage_is_refused_or_changes_nothing(name, request, tmp_path, tries, few, chance):
    kind = KINDS[name]
    world = tmp_path / "world"
    source = request.getfixturevalue("damaged_base" if kind.copies else "base")

    def new_world():
        shutil.rmtree(world, ignore_errors=True)
        return copy_parts(source, world, kind.needs, kind.copies)

    new_world()
    ended = run(world, kind.work)
    assert ended.is_done, ended.output
    expected = answer_of(world, kind)
    files = sorted(each for each in new_world().glob(kind.files) if each.is_file())
    assert files
    names = [file.relative_to(world) for file in files]
    with tries("damaged file", name) as found:
        damages = [(place, how) for place in names for how in damages_of(world / place, chance)]
        for place, (what, damage) in few(damages):
            new_world()
            (world / place).write_bytes(damage((world / place).read_bytes()))
            ended = run(world, kind.work)
            found.add(problems_of(ended, place, kind, world, expected), f"{place} {what}")


def damages_of(file, chance):
    """Return what is done to a file: bits flipped, its end cut off, a part of it zeroed."""
    size = file.stat().st_size
    if not size:
        return [("one byte more", lambda content: content + b"x")]
    places = [0, size - 1, *(chance.randrange(size) for _ in range(N_FLIPS))]
    flips = [(f"bit flipped at {at}", flip(at, chance.randrange(8))) for at in places]
    if file.suffix == ".json":  # a flipped bit that leaves it JSON
        digits = [at for at, byte in enumerate(file.read_bytes()) if byte in b"2468"]
        chosen = chance.sample(digits, min(N_DIGITS, len(digits)))
        flips += [(f"digit changed at {at}", flip(at, 0)) for at in chosen]
    lengths = [0, size // 2, size - 1]
    cuts = [(f"cut to {length}", lambda content, n=length: content[:n]) for length in lengths]
    zeros = [("second half zeroed", lambda content: content[: size // 2] + bytes(size - size // 2))]
    return flips + cuts + zeros


def flip(at, bit):
    def change(content):
        return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]

    return change


def answer_of(world, kind):
    place = world / kind.answer
    if place.is_dir():
        return snapshot(place)
    return snapshot(place.parent).get(place.name)


def problems_of(ended, place, kind, world, expected):
    if ended.is_done:
        # A record that is damaged may be left out, if that is said.
        is_same_or_said = answer_of(world, kind) == expected or place.name in ended.output
        return [] if is_same_or_said else [f"another answer without a word: {_general(place)}"]
    if not ended.is_refused:
        return [f"not refused: {_general(place)}: {ended}"]
    is_named = place.name in ended.output or f"{place.parent}" in ended.output
    return [] if is_named else [f"the file is not named: {_general(place)}: {ended}"]


def _general(place):
    return re.sub(r"[0-9a-f]{8,}", "N", place.name)
