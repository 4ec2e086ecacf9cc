"""The commands that are broken: one line for each, as a stranger would give it.

A new command is one more `Command` in COMMANDS: every fault is then tried on it.
"""

from dataclasses import dataclass, field

import pytest

import setrnn

TINY = (
    "vectors.dimensions=8",
    "vectors.epochs=1",
    "training.average=0",
    "model.encoder_units=8",
    "model.decoder_units=8",
    "search.beam_width=3",
    "training.batch_size=16",
    "training.epochs=2",
    "training.checkpoint_minutes=0",
)
SETTINGS = tuple(each for setting in TINY for each in ("--set", setting))
NETWORK = ("--method", "set-rnn-exact", "--device", "cpu", *SETTINGS)
COMPARED = ("--methods", "br,sigmoid", "--seeds", "1", *NETWORK[2:])
TEXTS = ("--unlabelled", "data/test.jsonl")
MEMBERS = ("models/network", "models/br")
MIXTURE = ("train", "data", "--out", "out/mixture", "--budget", "0", *NETWORK[2:], "--overwrite")
CLASSICAL = ("--method", "br", "--set", "classical.max_steps=5")
OLD = ("--data", "data", "--device", "cpu")
INPUT = ("models/network", "data/test.jsonl")
WORKERS = ("--workers", "2", "--chunk-rows", "4", "--device", "cpu")


@dataclass(frozen=True)
class Command:
    """A command, the parts of the world that it needs, and what it replaces or keeps."""

    name: str
    work: object  # the arguments of `setrnn`, or a function without arguments
    needs: tuple[str, ...]
    keeps: tuple[str, ...] = ()  # readable after every fault: as before, or as the command ends
    again: tuple[str, ...] = ()  # added to the arguments when the command is given again
    copies: dict[str, str] = field(default_factory=dict)  # of parts, before the command
    most_tries: int = 200  # kills at calls; fewer where a try takes seconds
    uses_cache: bool = False
    is_only_killed: bool = False  # other faults are tried on commands that write the same in less

    @property
    def work_again(self):
        return self.work if callable(self.work) else (*self.work, *self.again)


# What writes nothing of its own, and where the others are broken.
NOT_BROKEN = {
    "show": "prints",
    "methods": "prints",
    "data info": "prints; its --json is written as that of evaluate",
    "demo": "runs other commands",
    "serve": "writes nothing; see test_service.py",
    "cache": "removes what can be made again, each folder whole",
}


def save_over():
    setrnn.load("models/network", "cpu").save("out/saved")


COMMANDS = (
    Command(
        "train set-rnn-exact",
        ("train", "data", "--out", "out/network", *NETWORK, "--overwrite"),
        needs=("data", "cache"),
        copies={"models/other": "out/network"},
        keeps=("out/network",),
        again=("--resume",),
        uses_cache=True,
    ),
    Command(
        "train",
        (*MIXTURE, "--jobs", "1"),
        needs=("data", "cache"),
        copies={"models/other": "out/mixture"},
        keeps=("out/mixture",),
        again=("--resume",),
        most_tries=15,
        uses_cache=True,
    ),
    Command(
        "train --jobs 2",
        (*MIXTURE, "--jobs", "2"),
        needs=("data", "cache"),
        keeps=("out/mixture",),
        again=("--resume",),
        most_tries=5,
        is_only_killed=True,
    ),
    Command(
        "train on few documents",
        ("train", "data/train.jsonl", "--out", "out/few", *CLASSICAL[2:], "--overwrite"),
        needs=("data",),
        copies={"models/other": "out/few"},
        keeps=("out/few",),
        most_tries=5,
        is_only_killed=True,
    ),
    Command(
        "train br",
        ("train", "data", "--out", "out/br", *CLASSICAL, "--overwrite"),
        needs=("data", "cache"),
        copies={"models/network": "out/br"},
        keeps=("out/br",),
        uses_cache=True,
    ),
    Command(
        "predict",
        ("predict", *INPUT, "--out", "out/rows.jsonl", "--overwrite"),
        needs=("data", "models/network"),
        copies={"rows-of-br.jsonl": "out/rows.jsonl"},
        keeps=("out/rows.jsonl", "models/network"),
    ),
    Command(
        "predict DIR/ --workers",
        ("predict", *INPUT, "--out", "out/parts/", *WORKERS),
        needs=("data", "models/network"),
        most_tries=15,
    ),
    Command(
        "predict FILE --workers",
        ("predict", *INPUT, "--out", "out/rows.csv", *WORKERS, "--overwrite"),
        needs=("data", "models/network"),
        copies={"rows-of-br.jsonl": "out/rows.csv"},
        keeps=("out/rows.csv",),
        most_tries=15,
    ),
    Command(
        "evaluate",
        ("evaluate", "models/br", "data", "--device", "cpu", "--json", "out/scores.json"),
        needs=("data", "models/br"),
        copies={"rows-of-br.jsonl": "out/scores.json"},
        keeps=("out/scores.json",),
    ),
    Command(
        "explain",
        ("explain", "models/br", "--text", "A storm.", "--html", "out/words.html"),
        needs=("models/br",),
        copies={"rows-of-br.jsonl": "out/words.html"},
        keeps=("out/words.html",),
    ),
    Command(
        "data choose",
        ("data", "choose", "models/br", "data/test.jsonl", "--n", "5", "--out", "out/next.csv"),
        needs=("data", "models/br"),
        copies={"rows-of-br.jsonl": "out/next.csv"},
        keeps=("out/next.csv",),
    ),
    Command(
        "data doubt",
        ("data", "doubt", "data/test.jsonl", "--method", "br", "--out", "out/doubts.csv"),
        needs=("data",),
        copies={"rows-of-br.jsonl": "out/doubts.csv"},
        keeps=("out/doubts.csv",),
        most_tries=20,
    ),
    Command(
        "data split",
        ("data", "split", "data/train.jsonl", "out/split"),
        needs=("data",),
        most_tries=20,
    ),
    Command(
        "data convert",
        ("data", "convert", "data", "out/tables", "--to", ".parquet"),
        needs=("data",),
        most_tries=20,
    ),
    Command(
        "data prepare",
        ("data", "prepare", "data", "--out", "out/prepared", *SETTINGS),
        needs=("data",),
        copies={"other-prepared": "out/prepared"},
        keeps=("out/prepared",),
    ),
    Command(
        "calibrate",
        ("calibrate", "out/calibrated", "data/valid.jsonl", "--device", "cpu"),
        needs=("data",),
        copies={"models/network": "out/calibrated"},
        keeps=("out/calibrated",),
    ),
    Command(
        "mix",
        ("mix", *MEMBERS, "--data", "data", "--out", "out/mixed", "--overwrite"),
        needs=("data", *MEMBERS),
        copies={"models/other": "out/mixed"},
        keeps=("out/mixed", *MEMBERS),
    ),
    Command(
        "distil",
        ("distil", "models/br", "data", "--out", "out/student", *TEXTS, *NETWORK, "--overwrite"),
        needs=("data", "models/br", "cache"),
        copies={"models/other": "out/student"},
        keeps=("out/student", "models/br"),
        again=("--resume",),
        most_tries=20,
        uses_cache=True,
    ),
    Command(
        "update",
        ("update", "models/network", "other-data", *OLD, "--out", "out/updated", "--overwrite"),
        needs=("data", "other-data", "models/network"),
        copies={"models/other": "out/updated"},
        keeps=("out/updated", "models/network"),
        most_tries=5,
        is_only_killed=True,
    ),
    Command(
        "push",
        ("push", "models/network", "out/shared"),
        needs=("models/network",),
        copies={"models/other": "out/shared"},
        keeps=("out/shared", "models/network"),
        most_tries=20,
    ),
    Command(
        "compare",
        ("compare", "data", "--out", "out/compared", *COMPARED),
        needs=("data", "cache"),
        most_tries=20,
        uses_cache=True,
    ),
    Command(
        "report",
        ("report", "out/compared"),
        needs=(),
        copies={"compared": "out/compared"},
        keeps=("out/compared/report", "out/compared/runs"),
        most_tries=15,
    ),
    Command(
        "Tagger.save",
        save_over,
        needs=("models/network",),
        copies={"models/other": "out/saved"},
        keeps=("out/saved", "models/network"),
    ),
)
BY_NAME = {command.name: command for command in COMMANDS}


def each_command(*short, is_kill=False):
    """Test every command by `reference`; those named are also part of the short selection."""
    return pytest.mark.parametrize(
        "reference",
        [
            pytest.param(name, marks=[pytest.mark.short] if name in short else [])
            for name, command in BY_NAME.items()
            if is_kill or not command.is_only_killed
        ],
        indirect=True,
    )
