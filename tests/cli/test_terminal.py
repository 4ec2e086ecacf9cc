"""No label, id or file name steers the terminal, in whatever a command prints."""

import io
import json
import re

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import labels_text
from setrnn.cli.terminal import Terminal, escape_controls, escape_json, write_json
from setrnn.data.example import Example
from setrnn.data.read import write_examples
from setrnn.progress import Epoch
from setrnn.progress import Progress as Step

# Escape, bell, carriage return, backspace, delete, the 8-bit CSI, and three that turn the text.
HOSTILE = "a\x1b[31mb\x07c\rd\x08e\x7ff\x9b2Jg\u202eh\u2066i\u2069"
SEEN = r"a\x1b[31mb"  # how it begins when it is shown
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def is_clean(text):
    return not CONTROLS.search(text)


@pytest.fixture
def file():
    return io.StringIO()


@pytest.fixture
def terminal(file):
    """A terminal without colours, on which every control character is somebody else's."""
    made = Terminal()
    made.file = file
    return made


def in_a_table(text):
    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    table.add_row(Text(text, "bold"))
    return table


@pytest.mark.parametrize(
    "make",
    [
        str,
        Text,
        in_a_table,
        lambda text: Text.assemble("set ", (labels_text([text]), "bold green")),
        lambda text: Text(" · ").join([Text(text), Text(text)]),
    ],
)
def test_whatever_is_printed_holds_no_control_character(terminal, file, make):
    terminal.print(make(HOSTILE))
    assert is_clean(file.getvalue())
    assert r"\x1b" in file.getvalue()


def test_letters_of_all_scripts_and_the_marks_they_need_are_shown_as_they_are(terminal, file):
    text = "é 漢字 สวัสดี עִבְרִית \u0645\u06cc\u200c\u062e\u0648 👩\u200d💻 :smile:\ttab"
    assert escape_controls(text) == escape_json(text) == text
    terminal.print(Text(text), soft_wrap=True)
    assert "\u0645\u06cc\u200c\u062e\u0648" in file.getvalue()
    terminal.print(":smile:")
    assert ":smile:" in file.getvalue()


def test_escaped_json_has_the_same_value():
    values = {"id": HOSTILE, "labels": [HOSTILE]}
    line = json.dumps(values, ensure_ascii=False)
    assert not is_clean(line)
    assert is_clean(escape_json(line))
    assert json.loads(escape_json(line)) == values


@pytest.fixture
def hostile_file(tmp_path):
    """Documents whose labels and ids hold control characters, under a name that does too."""
    place = tmp_path / f"d{HOSTILE}"
    place.mkdir()
    labels = [f"{HOSTILE}{number}" for number in range(3)]
    words = ["rain", "club", "bank"]
    examples = [
        Example(f"{HOSTILE}{n}", f"the {words[n % 3]} of {words[n % 3]}", [labels[n % 3]])
        for n in range(60)
    ]
    for split in ("train", "valid", "test"):
        write_examples(examples, place / f"{split}.jsonl")
    return place


def test_commands_print_no_control_character_of_labels_ids_and_file_names(
    setrnn, hostile_file, tmp_path, small_settings
):
    model = tmp_path / f"m{HOSTILE}"
    info = setrnn("data", "info", hostile_file)
    assert info.code == 0
    assert SEEN in info.out
    trained = setrnn("train", hostile_file, "--method", "set-rnn", "--out", model, *small_settings)
    assert trained.code == 0, trained.err
    explained = setrnn("explain", model, "--text", "the rain of bank")
    assert explained.code == 0, explained.err
    assert r"\x1b" in explained.out
    evaluated = setrnn("evaluate", model, hostile_file)
    assert evaluated.code == 0, evaluated.err
    predicted = setrnn("predict", model, hostile_file / "test.jsonl", "--out", "-")
    assert json.loads(predicted.out.splitlines()[0])["id"] == f"{HOSTILE}0"
    written = setrnn("predict", model, hostile_file / "test.jsonl", "--out", tmp_path / HOSTILE)
    assert SEEN in written.err
    for result in (info, trained, explained, evaluated, predicted, written):
        assert is_clean(result.out)
        assert is_clean(result.err)


@pytest.fixture
def small_settings():
    settings = ("vectors.source=none", "vectors.dimensions=4", "model.encoder_units=4")
    settings += ("model.decoder_units=4", "search.beam_width=2", "training.epochs=1")
    return [part for each in settings for part in ("--set", each)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["data", "info", f"no\nwhere{HOSTILE}.jsonl"], 1),
        (["train", "newsroom", "--method", HOSTILE, "--out", "m"], 1),
        (["train", "newsroom", "--method", "br", "--out", "m", "--set", f"{HOSTILE}=1"], 1),
        (["data", "info", "newsroom", HOSTILE], 1),
        ([HOSTILE], 2),
        (["data", "info", "newsroom", f"--{HOSTILE}"], 2),
    ],
)
@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_errors_hold_no_control_character(setrnn, arguments, code, debug):
    result = setrnn(*arguments, *debug)
    assert result.code == code
    assert is_clean(result.err)
    assert r"\x1b" in result.err
    if code == 1:
        (line,) = result.error_lines
        assert line == result.err.splitlines()[-1]


def test_a_json_file_has_null_for_what_is_not_a_number(tmp_path):
    nan, infinite = float("nan"), float("inf")
    values = {"a": nan, "b": [1.5, -infinite, {"c": (infinite, "x", None, True)}], "d": 3}
    write_json(tmp_path / "f.json", values)
    text = (tmp_path / "f.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": None,
        "b": [1.5, None, {"c": [None, "x", None, True]}],
        "d": 3,
    }


def test_a_terminal_shows_one_bar_per_activity(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    screen.shows_notes = True
    monkeypatch.setattr("setrnn.cli.progress.stderr", screen)
    with terminal_progress() as show:
        show(Step("word vectors", 0.2, 1.0, detail="PPMI"))
        screen.file.write("|")
        for n in (10, 20):
            show(Step("training", n, 40, epoch=Epoch(2, 28, "set-probability", 3.25, 1234.0)))
    vectors, training = screen.file.getvalue().split("|")
    assert "PPMI" in vectors
    last = [line for line in training.splitlines() if "epoch" in line][-1]
    for part in ("epoch 2/28", "set-probability", "loss 3.25", "1,234 docs/s"):
        assert part in last


@pytest.mark.parametrize("place", [0, 4])
def test_quiet_leaves_results_warnings_and_errors(setrnn, larger, tmp_path, monkeypatch, place):
    class Bars(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "0")
    words = ["train", larger, "--method", "br", "--out", tmp_path / "model"]
    assert "Wrote" in setrnn(*words).err
    words.insert(place, "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", bars := Bars())
        result = setrnn(*words, "--overwrite")
    assert result.code == 0
    assert bars.getvalue() == ""
    assert "instance-" in result.out
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n{"text": 3}\n')
    bad = setrnn("predict", tmp_path / "model", tmp_path / "bad.jsonl", "--quiet")
    assert (bad.code, len(bad.error_lines)) == (1, 1)
    bad = setrnn(
        "predict", tmp_path / "model", tmp_path / "bad.jsonl", "--on-bad-row", "skip", "--quiet"
    )
    assert "skipped" in bad.err
    assert "warning" in bad.err
