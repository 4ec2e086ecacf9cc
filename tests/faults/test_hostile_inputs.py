"""Hostile texts, models, names and arguments: refused in one line, or answered in time."""

import json
import re
import resource
import shutil

import pytest
from children import HUNG, run
from commands import CLASSICAL, SETTINGS
from hostile import ARGUMENTS, GOOD, LINES, MODELS, TEXTS, seal
from worlds import copy_parts

short = pytest.mark.short
SECONDS = 20.0
MEMORY = 6 << 30
BEFORE, AFTER = 3, 3  # good rows around a hostile one
ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and new line


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run_limited(world, work):
    return run(world, work, seconds=SECONDS, before=[limit_memory])


def problems_of_end(ended):
    """It must be done or refused, in time."""
    if ended.code == HUNG:
        return [f"not done in {SECONDS:.0f} s"]
    return [] if ended.is_done or ended.is_refused else [f"not refused: {ended}"]


def read_strictly(file):
    """Read JSON Lines; NaN and Infinity are not JSON."""

    def refuse(name):
        raise ValueError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in file.read_text().splitlines()]


@pytest.fixture
def world(base, tmp_path):
    return copy_parts(base, tmp_path / "world", ("data", "models/network", "models/br"))


def write_rows(world, line):
    """Write good rows around a hostile one."""
    line = line.encode() if isinstance(line, str) else line
    good = [
        json.dumps({"text": f"{GOOD} {n}", "labels": ["sport"]}).encode()
        for n in range(BEFORE + AFTER)
    ]
    rows = [*good[:BEFORE], line, *good[BEFORE:]]
    (world / "rows.jsonl").write_bytes(b"\n".join(rows) + b"\n")


EVERY_ROW = [
    *(pytest.param(name, json.dumps({"text": text}), id=name) for name, text in TEXTS.items()),
    *(pytest.param(f"row: {name}", line, id=f"row: {name}") for name, line in LINES.items()),
]


@pytest.mark.parametrize("model", ["network", "br"])
def test_one_row_does_not_defeat_a_file(model, world, tries, few):
    predict = ("predict", f"models/{model}", "rows.jsonl", "--out", "out/rows.jsonl")
    (world / "rows.jsonl").write_text(
        "".join(json.dumps({"text": f"{GOOD} {n}"}) + "\n" for n in range(BEFORE + AFTER))
    )
    assert run(world, predict).is_done
    good = [row["labels"] for row in read_strictly(world / "out/rows.jsonl")]
    with tries("hostile row in a file", f"predict, {model}") as found:
        for each in few(EVERY_ROW):
            name, line = each.values
            write_rows(world, line)
            for skip in ((), ("--on-bad-row", "skip")):
                shutil.rmtree(world / "out")
                ended = run_limited(world, (*predict, *skip))
                problems = problems_of_end(ended)
                if ended.is_done:
                    rows = read_strictly(world / "out/rows.jsonl")
                    kept = [row["labels"] for row in rows]
                    if kept[:BEFORE] + kept[-AFTER:] != good:
                        problems.append("other rows have other labels")
                elif not problems and skip:
                    problems.append(f"refused in spite of --on-bad-row skip: {ended}")
                elif not problems and "line 4" not in ended.output:
                    problems.append(f"the row is not named: {ended}")
                found.add(problems, name)


def test_one_row_does_not_defeat_a_preparation(world, tries, few):
    with tries("hostile row in a file", "data prepare") as found:
        for each in few(EVERY_ROW):
            name, line = each.values
            if isinstance(line, str) and name in TEXTS:
                line = json.dumps({"text": TEXTS[name], "labels": ["sport"]})
            write_rows(world, line)
            for skip in ((), ("--on-bad-row", "skip")):
                shutil.rmtree(world / "prepared", ignore_errors=True)
                work = ("data", "prepare", "rows.jsonl", "--out", "prepared", *SETTINGS, *skip)
                ended = run_limited(world, work)
                problems = problems_of_end(ended)
                if not problems and not ended.is_done:
                    if skip:
                        problems.append(f"refused in spite of --on-bad-row skip: {ended}")
                    elif "line 4" not in ended.output:
                        problems.append(f"the row is not named: {ended}")
                found.add(problems, name)


def test_a_hostile_model_is_refused_or_harmless(world, tries, few):
    predict = ("predict", "models/hostile", "data/test.jsonl", "--out", "out/rows.jsonl")
    with tries("hostile model folder", "predict") as found:
        for name in few(list(MODELS)):
            shutil.rmtree(world / "models/hostile", ignore_errors=True)
            shutil.rmtree(world / "out", ignore_errors=True)
            shutil.copytree(world / "models/network", world / "models/hostile")
            MODELS[name](world / "models/hostile")
            seal(world / "models/hostile")
            ended = run_limited(world, predict)
            problems = problems_of_end(ended)
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
            ended = run_limited(world, ARGUMENTS[name])
            problems = problems_of_end(ended)
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
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for split in ("train", "valid", "test"):
        (world / "escapes" / f"{split}.jsonl").write_text(text)
    (world / "escapes/bad.jsonl").write_text(
        json.dumps({"id": ESCAPE, "text": "a", "labels": ESCAPE}) + "\n"
    )
    with tries("control characters in names", "all that prints them") as found:
        for name, work in SHOWING.items():
            ended = run_limited(world, work)
            problems = problems_of_end(ended)
            if ESCAPES.search(ended.output):
                problems.append(f"{name}: a control character was printed")
            found.add(problems, name)


VALID = {
    "valid documents without labels": [{"text": f"{GOOD} {n}", "labels": []} for n in range(120)],
    "valid documents with unknown labels": [
        {"text": f"{GOOD} {n}", "labels": [f"unknown {n}"]} for n in range(120)
    ],
}


@pytest.mark.parametrize("method", ["set-rnn-exact", "br"])
def test_a_valid_part_that_cannot_calibrate_costs_no_model(method, world, tries):
    settings = SETTINGS if method != "br" else CLASSICAL[2:]
    with tries("valid part that cannot calibrate", f"train {method}") as found:
        for name, rows in VALID.items():
            (world / "valid.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            shutil.rmtree(world / "out", ignore_errors=True)
            work = ("train", "data/train.jsonl", "--valid", "valid.jsonl", "--method", method)
            ended = run(world, (*work, "--out", "out/model", *settings))
            is_saved = (world / "out/model/config.json").exists()
            found.add([] if ended.is_done and is_saved else [f"no model: {ended}"], name)
