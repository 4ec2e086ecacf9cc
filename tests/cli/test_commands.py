"""The table of commands: quick help, exit codes, and one-line errors."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from setrnn.cli import main
from setrnn.cli.app import COMMANDS, RARE, load_command

LISTED = """
import json, sys
sys.argv = ["setrnn", *sys.argv[1:]]
from setrnn.cli import main
try:
    main()
except SystemExit as stop:
    print(json.dumps([stop.code, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_line_of_a_command_is_the_first_of_its_docstring(name):
    found, line = getattr(import_module(f"setrnn.cli.{name}"), name), COMMANDS[name]
    is_group = isinstance(found, typer.Typer)
    assert line == (found.info.help if is_group else inspect.getdoc(found).splitlines()[0])


@pytest.mark.parametrize("arguments", [["--help"], ["predict", "--help"], ["data", "--help"]])
def test_the_help_shows_no_type_behind_flags(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["setrnn", *arguments])
    with pytest.raises(SystemExit, match="0"):
        main()
    found = capsys.readouterr().out
    assert "--help" in found
    assert "bool" not in found


@pytest.mark.parametrize("words", [["train"], ["predict"], ["serve"], ["data", "info"]])
def test_the_help_shows_what_most_people_use_and_help_all_the_rest(setrnn, words):
    flags = re.compile(r"^[│ *]+(--[a-z-]+)", re.MULTILINE)
    few = flags.findall(setrnn(*words, "--help").out)
    result = setrnn(*words, "--help-all")
    every = flags.findall(result.out)
    command = load_command(words[0])
    command = getattr(command, "commands", {}).get(words[-1], command)
    options = [each for each in command.params if each.param_type_name == "option"]
    assert {name for name in every if name != "--help"} == {each.opts[0] for each in options}
    assert len(few) <= 15
    assert set(few) < set(every)
    assert "--help-all" in setrnn(*words, "--help").out


def test_the_help_says_the_budget_of_each_command(setrnn):
    assert "without --method" in " ".join(setrnn("train", "--help").out.split())
    found = " ".join(setrnn("distil", "--help").out.split())
    assert "without --method" not in found
    assert "[default: (no limit)]" in found


def test_every_option_that_the_help_leaves_out_exists():
    commands = [load_command(name) for name in COMMANDS]
    every = [each for one in commands for each in getattr(one, "commands", {"": one}).values()]
    assert {option.name for each in every for option in each.params} >= RARE


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_each_name_of_an_option_once(name):
    command = load_command(name)
    for each in getattr(command, "commands", {name: command}).values():
        for option in each.params:
            assert len(option.opts) == len(set(option.opts)), option.opts


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("data doubt newsroom --folds 1 --out x.csv", "'--folds': it must be greater than or"),
        ("train newsroom --unlabelled-rows maybe --out x", "rows': 'maybe' is not one of"),
    ],
)
def test_a_wrong_value_is_refused_in_plain_words(setrnn, line, said):
    result = setrnn(*line.split())
    assert result.code == 2
    assert said in result.err
    assert "Value error" not in result.err


@pytest.mark.parametrize("arguments", [["--help"], ["no-such-command"]])
def test_general_help_and_unknown_commands_import_no_command(arguments):
    """A new process: here, other tests have imported the commands."""
    command = [sys.executable, "-c", LISTED, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(result.stderr.splitlines()[-1])
    assert code == (0 if arguments == ["--help"] else 2)
    heavy = {f"setrnn.cli.{name}" for name in COMMANDS} | {"torch", "numpy", "sklearn"}
    assert not heavy.intersection(modules)


INTERRUPTED = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

from setrnn.cli import main
sys.meta_path.insert(0, Interrupt())
sys.argv = ["setrnn", "train", "newsroom", "--out", "model"]
main()
"""


@pytest.mark.parametrize("library", ["typer", "rich.console", "numpy", "torch"])
def test_an_interrupted_import_ends_the_command_in_one_line(library, tmp_path):
    script = INTERRUPTED.replace("sys.argv[1]", repr(library))
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 130
    (line,) = result.stderr.splitlines()
    assert line.startswith("Stopped setrnn train. ")
    assert "run the same command again" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_reading_of_a_file(number, tmp_path):
    """The rows share one long text: the file is small, and to read it takes minutes."""
    file, n_rows = tmp_path / "train.parquet", 200_000
    zeros = pa.array(np.zeros(n_rows, dtype=np.int32))
    text = pa.DictionaryArray.from_arrays(zeros, pa.array(["word " * 400_000]))
    pq.write_table(pa.table({"text": text, "labels": pa.array([["x"]] * n_rows)}), file)
    process = subprocess.Popen(
        [sys.executable, "-m", "setrnn", "data", "info", file],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored
    )
    opened = Path(f"/proc/{process.pid}/fd")
    while file not in [Path(os.path.realpath(each)) for each in opened.iterdir()]:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    try:
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("Stopped setrnn data. ")


HELPED = """
import sys
from setrnn.cli import main
from setrnn.cli.app import COMMANDS
parts = [["data", name] for name in ("info", "convert", "split", "prepare")]
for arguments in [*([name] for name in COMMANDS), *parts]:
    for last in ("--help", "--no-such-option"):
        sys.argv = ["setrnn", *arguments, last]
        try:
            main()
        except SystemExit as stop:
            assert stop.code == (0 if last == "--help" else 2), sys.argv
        heavy = {"torch", "sklearn", "gensim", "pyarrow", "matplotlib", "scipy.sparse", "fastapi"}
        assert not heavy & set(sys.modules), (sys.argv, heavy & set(sys.modules))
"""


def test_the_help_of_a_command_and_wrong_usage_import_no_heavy_library():
    """They must be quick: torch alone takes more than a second."""
    result = subprocess.run([sys.executable, "-c", HELPED], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr.splitlines()[-1]


# Libraries that predicting does not need; torch imports its compiler only if something asks for it.
NOT_TO_PREDICT = [
    "torch._dynamo",
    "torch._inductor",
    "sympy",
    "scipy.stats",
    "scipy.optimize",
    "sklearn",
    "pandas",
    "pyarrow",
    "matplotlib",
    "gensim",
    "transformers",
    "datasets",
    "fastapi",
]


@pytest.mark.parametrize("method", ["set-rnn-exact", "br", "br-support", "pcc"])
def test_predicting_imports_only_what_it_needs(taggers, method, tmp_path):
    """Without torch, where the model has no network, and with the same probabilities as with it."""
    taggers[method].save(tmp_path / "model")
    file, out, text = tmp_path / "one.jsonl", tmp_path / "out.jsonl", "The ski race was cancelled."
    file.write_text(json.dumps({"text": text}))
    command = [sys.executable, "-c", LISTED, "predict", str(tmp_path / "model"), str(file)]
    command += ["--out", str(out), "--device", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(result.stderr.splitlines()[-1])
    assert code == 0
    assert not {*NOT_TO_PREDICT}.intersection(modules)
    assert ("torch" in modules) == (method == "set-rnn-exact")
    assert {"id": "one-1", **taggers[method].tag([text])[0].as_dict()} == json.loads(
        out.read_text()
    )


@pytest.fixture
def offered(setrnn, monkeypatch):
    """Return what a shell is offered for the last word of a line."""
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "", raising=False)

    def complete(*words):
        monkeypatch.setenv("_SETRNN_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["setrnn", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return setrnn().out.split()

    return complete


def test_commands_and_their_options_are_offered(offered):
    assert offered("") == list(COMMANDS)
    assert offered("ev") == ["evaluate"]
    assert offered("train", "--mea") == ["--measure"]
    assert "split" in offered("data", "")
    assert "--label-separator" in offered("data", "info", "--la")
