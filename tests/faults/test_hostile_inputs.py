"""Hostile texts, models, names and arguments: refused in one line, or answered in time."""

import json
import re
import resource
import shutil
from functools import partial

import pytest
from children import HUNG, run
from commands import CLASSICAL, SETTINGS
from hostile import ARGUMENTS, GOOD, LINES, MODELS, TEXTS, seal
from worlds import copy_parts

SECONDS = 20.0
MEMORY = 6 << 30
BEFORE, AFTER = 3, 3  # good rows around a hostile one
ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and new line


def run_limited(world, work):
    """Run a command with the limits; return how it ends, and what is wrong with that."""
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (MEMORY, MEMORY))
    ended = run(world, work, seconds=SECONDS, before=[limit])
    if ended.code == HUNG:
        return ended, [f"not done in {SECONDS:.0f} s"]
    return ended, [] if ended.is_done or ended.is_refused else [f"not refused: {ended}"]


def write_rows(file, rows):
    """Write JSON Lines of rows, or of lines as they are."""
    lines = (json.dumps(row) if isinstance(row, dict) else row for row in rows)
    file.write_bytes(
        b"\n".join(each if isinstance(each, bytes) else each.encode() for each in lines)
    )


def read_strictly(file):
    """Read JSON Lines; NaN and Infinity are not JSON."""

    def refuse(name):
        raise ValueError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in file.read_text().splitlines()]


@pytest.fixture
def world(base, tmp_path):
    return copy_parts(base, tmp_path / "world", ("data", "models/network", "models/br"))


GOOD_ROWS = [{"text": f"{GOOD} {n}", "labels": ["sport"]} for n in range(BEFORE + AFTER)]
READING = {
    "predict, network": ("predict", "models/network", "rows.jsonl", "--out", "out/rows.jsonl"),
    "predict, br": ("predict", "models/br", "rows.jsonl", "--out", "out/rows.jsonl"),
    "data prepare": ("data", "prepare", "rows.jsonl", "--out", "out", *SETTINGS),
}


@pytest.mark.parametrize("name", READING)
def test_one_row_does_not_defeat_a_file(name, world, tries, few):
    work, written = READING[name], world / "out/rows.jsonl"
    write_rows(world / "rows.jsonl", GOOD_ROWS)
    assert run(world, work).is_done
    good = [row["labels"] for row in read_strictly(written)] if written.exists() else None
    hostile = {name: {"text": text, "labels": ["sport"]} for name, text in TEXTS.items()}
    hostile |= {f"row: {name}": line for name, line in LINES.items()}
    with tries("hostile row in a file", name) as found:
        for what in few(list(hostile)):
            rows = [*GOOD_ROWS[:BEFORE], hostile[what], *GOOD_ROWS[BEFORE:]]
            write_rows(world / "rows.jsonl", rows)
            for skip in ((), ("--on-bad-row", "skip")):
                shutil.rmtree(world / "out")
                ended, problems = run_limited(world, (*work, *skip))
                if ended.is_done and good:
                    kept = [row["labels"] for row in read_strictly(written)]
                    if kept[:BEFORE] + kept[-AFTER:] != good:
                        problems.append("other rows have other labels")
                elif not ended.is_done and not problems and skip:
                    problems.append(f"refused in spite of --on-bad-row skip: {ended}")
                elif not ended.is_done and not problems and "line 4" not in ended.output:
                    problems.append(f"the row is not named: {ended}")
                found.add(problems, what)
                (world / "out").mkdir(exist_ok=True)


def test_a_hostile_model_is_refused_or_harmless(world, tries, few):
    predict = ("predict", "models/hostile", "data/test.jsonl", "--out", "out/rows.jsonl")
    with tries("hostile model folder", "predict") as found:
        for name in few(list(MODELS)):
            shutil.rmtree(world / "models/hostile", ignore_errors=True)
            shutil.rmtree(world / "out", ignore_errors=True)
            shutil.copytree(world / "models/network", world / "models/hostile")
            MODELS[name](world / "models/hostile")
            seal(world / "models/hostile")
            ended, problems = run_limited(world, predict)
            if ended.is_done:
                try:
                    read_strictly(world / "out/rows.jsonl")
                except ValueError as error:
                    problems.append(str(error))
            elif not problems and "hostile" not in ended.output:
                problems.append(f"the model is not named: {ended}")
            found.add([f"{name}: {each}" for each in problems], name)


@pytest.mark.short
def test_impossible_arguments_are_refused_in_one_line(world, tries, few):
    with tries("impossible arguments", "train, predict, calibrate") as found:
        for name in few(list(ARGUMENTS)):
            _, problems = run_limited(world, ARGUMENTS[name])
            found.add([f"{name}: {each}" for each in problems], name)
            shutil.rmtree(world / "out", ignore_errors=True)


ESCAPE = "\x1b]0;stolen\x07\x1b[31m\x9b2J\rsport"
TRAIN = ("train", "escapes", "--out", "out/model", *CLASSICAL)
SHOWING = {
    "data info": ("data", "info", "escapes"),
    "train": TRAIN,
    "evaluate": ("evaluate", "out/model", "escapes", "--split", "valid"),
    "explain": ("explain", "out/model", "--text", GOOD),
    "predict, a label that no model has": (
        *("predict", "out/model", "escapes/valid.jsonl", "--out", "out/rows.jsonl"),
        *("--require", ESCAPE + "x"),
    ),
    "predict, present labels that no model has": (
        *("predict", "models/br", "escapes/valid.jsonl", "--out", "out/rows.jsonl"),
        *("--present-field", "labels"),
    ),
    "compare": ("compare", "escapes", "--out", "out/compared", "--methods", "br"),
    "a bad row": ("data", "info", "escapes/bad.jsonl"),
    "a file that is not there": ("data", "info", f"escapes/{ESCAPE}.jsonl"),
    "a folder that is not a model": ("predict", f"escapes/{ESCAPE}", "x", "--out", "out/x"),
}


def test_control_characters_do_not_reach_the_terminal(world, tries):
    """Label names and ids are someone else's words: the terminal must not obey them."""
    (world / "escapes").mkdir()
    rows = [
        {"id": f"{ESCAPE}{n}", "text": f"{GOOD} {n}", "labels": [ESCAPE, f"{ESCAPE}{n % 3}"]}
        for n in range(30)
    ]
    for split in ("train", "valid", "test"):
        write_rows(world / "escapes" / f"{split}.jsonl", rows)
    bad = {"id": ESCAPE, "text": "a", "labels": ESCAPE}
    write_rows(world / "escapes/bad.jsonl", [bad])
    with tries("control characters in names", "all that prints them") as found:
        for name, work in SHOWING.items():
            ended, problems = run_limited(world, work)
            if ESCAPES.search(ended.output):
                problems.append(f"{name}: a control character was printed")
            found.add(problems, name)
