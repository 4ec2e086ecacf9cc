"""Damaged files: the command refuses and names the file, or gives the same answer as before."""

import re
import shutil
import signal
from dataclasses import dataclass

import pytest
from children import run
from commands import CLASSICAL, NETWORK
from worlds import copy_parts, snapshot

N_FLIPS, N_DIGITS = 6, 4


@dataclass(frozen=True)
class Kind:
    """Files of one kind, the command that reads them, and where its answer is."""

    files: str  # a glob in the world
    work: tuple[str, ...]
    needs: tuple[str, ...]
    answer: str  # a file or folder that the command writes
    copies: tuple[tuple[str, str], ...] = ()


def predictions(model):
    work = ("predict", model, "data/test.jsonl", "--out", "out/rows.jsonl", "--overwrite")
    return Kind(f"{model}/*", work, ("data", model), "out/rows.jsonl")


def training(files, settings=CLASSICAL):
    work = ("train", "prepared-data", "--out", "out/model", "--overwrite", *settings)
    return Kind(f"prepared-data/{files}", work, ("prepared-data",), "out/model")


def resumed_training(files):
    work = ("train", "data", "--out", "out/network", *NETWORK, "--resume", "--overwrite")
    copies = (("stopped.run", "out/network.run"),)
    weights = "out/network/model.safetensors"
    return Kind(f"out/network.run/{files}", work, ("data", "cache"), weights, copies)


def report(files):
    work = ("report", "compared")
    return Kind(f"compared/{files}", work, ("compared",), "compared/report/summary.json")


EVALUATE = ("evaluate", "models/br", "prepared-data", "--split", "test", "--json", "out/s.json")
# One line for each kind of file that a command reads and we have written.
KINDS = {
    "model of a network": predictions("models/network"),
    "model of br": predictions("models/br"),
    "checkpoints": resumed_training("*.safetensors"),
    "logs of a run": resumed_training("e*"),
    "prepared folder": training("*.json"),
    "prepared train part": training("train/*"),
    "prepared valid part": training("valid/*"),
    "prepared test part": Kind(
        "prepared-data/test/*", EVALUATE, ("prepared-data", "models/br"), "out/s.json"
    ),
    "prepared train part, for a network": training("train/*", NETWORK),
    "word vectors": training("word_vectors*", NETWORK),
    "comparison": report("comparison.json"),
    "records": report("runs/*.json"),
}


@pytest.fixture(scope="session")
def damaged_base(base, make_once, references):
    """The base, with the run of a training that was killed in its last epoch."""

    def write(folder):
        reference = references["train set-rnn-exact"]
        calls = reference.ended.calls
        at = [number for number, call in enumerate(calls, 1) if ".last." in call.path][-4]
        world = reference.new_world("stopped")
        run(world, reference.command.work, trap=(at, signal.SIGKILL))
        shutil.copytree(base, folder)
        shutil.copytree(world / "out/network.run", folder / "stopped.run")
        shutil.rmtree(world)

    return make_once("faults-damaged", write)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.short] * (not n)) for n, name in enumerate(KINDS)],
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
