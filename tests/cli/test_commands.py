"""The table of commands: quick help, exit codes, and one-line errors."""

import inspect
import json
import subprocess
import sys
from importlib import import_module

import pytest
import typer

from setrnn import __version__
from setrnn.cli.app import COMMANDS
from setrnn.methods import METHODS

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
    place, line = COMMANDS[name]
    module, attribute = place.split(":")
    found = getattr(import_module(module), attribute)
    is_group = isinstance(found, typer.Typer)
    assert line == (found.info.help if is_group else inspect.getdoc(found).splitlines()[0])


@pytest.mark.parametrize("arguments", [["--help"], ["no-such-command"]])
def test_general_help_and_unknown_commands_import_no_command(arguments):
    """A new process: here, other tests have imported the commands."""
    command = [sys.executable, "-c", LISTED, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(result.stderr.splitlines()[-1])
    assert code == (0 if arguments == ["--help"] else 2)
    heavy = {place.split(":")[0] for place, _ in COMMANDS.values()} | {"torch", "numpy", "sklearn"}
    assert not heavy.intersection(modules)


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


def test_importing_the_package_imports_no_other():
    code = "import sys; before = set(sys.modules); import setrnn; print(*set(sys.modules) - before)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    roots = {name.split(".")[0] for name in found.stdout.split()}
    assert roots - set(sys.stdlib_module_names) == {"setrnn"}


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

NOT_FOR_NETWORKS = ["scipy.sparse", "scipy.special", "numpy.f2py"]


@pytest.mark.parametrize("method", ["set-rnn", "set-rnn-exact", "br-support"])
def test_predicting_imports_only_what_it_needs(taggers, method, tmp_path):
    taggers[method].save(tmp_path / "model")
    file = tmp_path / "one.jsonl"
    file.write_text('{"text": "The ski race was cancelled."}\n')
    command = [sys.executable, "-c", LISTED, "predict", str(tmp_path / "model"), str(file)]
    command += ["--out", str(tmp_path / "out.jsonl"), "--device", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(result.stderr.splitlines()[-1])
    assert code == 0
    unwanted = {*NOT_TO_PREDICT, *(() if method == "br-support" else NOT_FOR_NETWORKS)}
    assert not unwanted.intersection(modules)


def test_help_lists_every_command(setrnn):
    for arguments in ([], ["--help"]):
        result = setrnn(*arguments)
        words = (result.out + result.err).split()
        assert set(COMMANDS) <= set(words)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_own_help(setrnn, name):
    result = setrnn(name, "--help")
    assert result.code == 0
    assert f"setrnn {name}" in result.out
    first_words = " ".join(COMMANDS[name][1].split()[:3])
    assert first_words in result.out


def test_the_version_is_shown(setrnn):
    assert setrnn("--version").out == f"setrnn {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tran"], "Did you mean 'train'?"),
        (["train"], "Missing"),
        (["methods", "--no-such-option"], "No such option"),
        (["data", "no-such-command"], "No such command"),
    ],
)
def test_wrong_usage_exits_with_2(setrnn, arguments, said):
    result = setrnn(*arguments)
    assert result.code == 2
    assert said in result.err


def test_a_failure_is_one_line_and_debug_adds_the_traceback(setrnn, tmp_path):
    arguments = ("evaluate", tmp_path / "no-model", "newsroom")
    plain, debug = setrnn(*arguments), setrnn(*arguments, "--debug")
    assert plain.code == debug.code == 1
    assert len(plain.err.splitlines()) == len(plain.error_lines) == 1
    assert "Traceback" in debug.err


def test_methods_says_what_each_is_for_before_the_formulas(setrnn):
    words, formulas = setrnn("methods").out.split("What they maximise")
    assert all(method.purpose[:40] in words for method in METHODS.values())
    assert "Without --method" in words
    assert "argmax" in formulas
    assert "argmax" not in words
    ours, later = words.split("Systems of later papers")
    assert all((each.purpose[:40] in later) == each.is_later for each in METHODS.values())
    assert all((each.purpose[:40] in ours) != each.is_later for each in METHODS.values())
    assert "--methods all,later" in later
