"""The command line as a whole: train, predict and evaluate, wrong usage, failures."""

import json
import shutil

import pytest
from rich.console import Console

from setrnn import __version__
from setrnn.methods import METHODS
from small_taggers import SMALL_OVERRIDES

SMALL_SETTINGS = [
    part for each in (*SMALL_OVERRIDES, "training.epochs=12") for part in ("--set", each)
]


# A classical system and a network; tests/test_methods.py trains all.
@pytest.mark.parametrize("method", ["pcc", "set-rnn"])
def test_a_method_trains_predicts_and_evaluates(setrnn, corpus, tmp_path, method):
    model, out, scores = tmp_path / "model", tmp_path / "out.jsonl", tmp_path / "scores.json"
    settings = SMALL_SETTINGS if METHODS[method].is_network else []
    trained = setrnn("train", corpus, "--method", method, "--out", model, *settings)
    assert trained.code == 0, trained.err
    assert {file.name for file in model.iterdir()} == {
        "README.md",
        "config.json",
        "labels.json",
        "model.safetensors",
        "tokenizer.json",
    }
    predicted = setrnn("predict", model, corpus / "test.jsonl", "--out", out, "--top", 3)
    assert predicted.code == 0, predicted.err
    evaluated = setrnn("evaluate", model, corpus, "--json", scores)
    assert evaluated.code == 0, evaluated.err
    measures = json.loads(scores.read_text())
    assert measures["n_documents"] == 80
    assert measures["split"] == "test"
    for name in ("label_f1", "instance_f1", "micro_f1", "hamming_loss", "subset_accuracy"):
        assert 0 <= measures[name] <= 1
    # The same set for every document comes to 0.13.
    assert measures["instance_f1"] > (0.4 if METHODS[method].is_network else 0.5)


def test_training_on_prepared_data_gives_the_same_model(setrnn, corpus, trained, tmp_path):
    prepared = setrnn("data", "prepare", corpus, "--out", tmp_path / "p", "--vectors", "none")
    model = tmp_path / "other"
    assert setrnn("train", prepared.out.strip(), "--method", "br", "--out", model).code == 0
    weights = [folder / "model.safetensors" for folder in (trained, model)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_valid_file_gives_a_valid_part(setrnn, corpus, tmp_path):
    arguments = ["train", corpus / "train.jsonl", "--method", "br", "--out", tmp_path / "m"]
    result = setrnn(*arguments, "--valid", corpus / "valid.jsonl")
    assert "On the valid part" in result.out
    assert "set aside" not in result.err
    result = setrnn(*arguments)
    assert "On the valid part" in result.out
    assert "set aside" in result.err


def test_penalties_are_chosen_on_valid(setrnn, corpus, tmp_path):
    arguments = ["train", corpus, "--method", "br", "--out", tmp_path / "m"]
    result = setrnn(*arguments, "--set", "classical.tune=true")
    assert result.code == 0, result.err
    assert "Chosen on valid: classical.l1=" in result.err
    only_train = tmp_path / "only"
    only_train.mkdir()
    shutil.copy(corpus / "train.jsonl", only_train)
    prepared = setrnn("data", "prepare", only_train, "--out", tmp_path / "p", "--vectors", "none")
    arguments[1] = prepared.out.strip()
    result = setrnn(*arguments, "--set", "classical.tune=true")
    assert result.code == 1
    assert "--valid FILE" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "bre"], "There is no method 'bre'. Did you mean 'br'?"),
        (["--method", "br", "--set", "clasical.l1=3"], "Did you mean 'classical'?"),
        (["--method", "br", "--set", "classical.l1=much"], "'classical.l1' must be a number"),
        (["--method", "br", "--set", "classical.l1"], "must be key=value"),
        (["--method", "br", "--preset", "papers"], "Did you mean 'paper'?"),
        (["--method", "br", "--config", "nowhere.json"], "nowhere.json cannot be read"),
        (["--method", "br", "--on-bad-row", "ignore"], "--on-bad-row"),
        (["--method", "br", "--seed", "1", "--format", "jsn"], "Did you mean 'jsonl'?"),
    ],
)
def test_wrong_settings_are_one_line_with_the_way_out(setrnn, corpus, tmp_path, arguments, said):
    result = setrnn("train", corpus, "--out", tmp_path / "m", *arguments)
    assert result.code == 1
    (line,) = result.error_lines
    assert said in line
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("option", "key"),
    [
        (["--seed", "-1"], "'seed'"),
        (["--seed", str(2**70)], "'seed'"),
        (["--set", "model.encoder_units=1000000000"], "'model.encoder_units'"),
        (["--set", "model.decoder_layers=1000000"], "'model.decoder_layers'"),
        (["--set", "search.beam_width=1000000000"], "'search.beam_width'"),
        (["--set", "training.batch_size=100000000000000000000"], "'training.batch_size'"),
    ],
)
def test_absurd_numbers_are_refused_before_anything_is_read(setrnn, tmp_path, option, key):
    result = setrnn("train", "nowhere", "--method", "set-rnn", "--out", tmp_path / "m", *option)
    assert result.code == 1
    (line,) = result.error_lines
    assert f"{key} must be between" in line


def test_absurd_arguments_are_refused(setrnn, corpus, trained, tmp_path):
    split = setrnn("data", "split", corpus / "train.jsonl", tmp_path / "s", "--seed", "-1")
    assert "'seed' must be between" in split.error_lines[0]
    predict = ["predict", trained, corpus / "test.jsonl", "--out", "-"]
    assert "top must be" in setrnn(*predict, "--top", "1000000000").error_lines[0]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 8.45 TiB for an array with shape (1162, 1000000000)"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
            "allocate memory: you tried to allocate 1800000000000 bytes."
        ),
    ],
)
def test_too_little_memory_is_one_line_that_says_what_to_lower(
    setrnn, corpus, tmp_path, monkeypatch, error
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("setrnn.systems.classical.br.fit_logistic", fail)
    result = setrnn("train", corpus, "--method", "br", "--out", tmp_path / "m")
    assert result.code == 1
    (line,) = result.error_lines
    assert "not enough memory" in line
    assert "unexpected" not in line
    assert "training.batch_size" in line


def test_wrong_usage_exits_with_2(setrnn, corpus):
    assert setrnn("train", corpus).code == 2
    assert setrnn("trian").code == 2
    assert setrnn("predict", "--top", "x").code == 2


def test_a_folder_that_is_no_model_is_never_replaced(setrnn, corpus, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    result = setrnn("train", corpus, "--method", "br", "--out", tmp_path / "notes")
    assert result.code == 1
    assert "is not a model" in result.err
    assert (tmp_path / "notes" / "diary.txt").read_text() == "mine"


def test_a_config_file_of_another_program_is_no_model(setrnn, corpus, tmp_path):
    place = tmp_path / "project"
    place.mkdir()
    (place / "config.json").write_text('{"my": "app"}')
    assert setrnn("train", corpus, "--method", "br", "--out", place).code == 1
    assert (place / "config.json").read_text() == '{"my": "app"}'


def test_data_without_any_label_is_refused(setrnn, tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text("".join(f'{{"text": "a{n}", "labels": []}}\n' for n in range(5)))
    result = setrnn("train", file, "--method", "br", "--out", tmp_path / "m")
    assert result.code == 1
    assert "there is nothing to learn" in result.err


def test_ctrl_c_stops_in_one_line(setrnn, corpus, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("setrnn.systems.classical.br.fit_logistic", interrupt)
    result = setrnn("train", corpus, "--method", "br", "--out", tmp_path / "m")
    assert result.code == 130
    assert "stopped." in result.err
    assert not (tmp_path / "m").exists()


def test_methods_lists_every_system(setrnn):
    result = setrnn("methods")
    assert result.code == 0
    assert all(name in result.out for name in METHODS)


def test_the_version_is_told(setrnn):
    assert setrnn("--version").out == f"setrnn {__version__}\n"


def test_debug_shows_the_traceback_and_nothing_else_does(setrnn):
    assert "Traceback" not in setrnn("data", "info", "nowhere.jsonl").err
    assert "Traceback" in setrnn("data", "info", "nowhere.jsonl", "--debug").err


def test_methods_shows_what_each_system_maximises_and_how_it_predicts(setrnn, monkeypatch):
    """The paper's Table 1, for its ten and those beyond it."""
    monkeypatch.setattr("setrnn.cli.methods.stdout", Console(width=300))
    rows = [line for line in setrnn("methods").out.splitlines() if line.startswith("│")]
    cells = [tuple(cell.strip() for cell in row.strip("│").split("│")) for row in rows]
    assert cells == [(each.name, each.training, each.prediction) for each in METHODS.values()]
    assert len(cells) == len(METHODS) > 10


def test_paragraphs_of_help_are_wrapped_by_the_terminal(setrnn, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = [" ".join(line.split()) for line in setrnn("push", "--help").out.splitlines()]
    start = next(line for line in said if line.startswith("Every command reads a MODEL"))
    assert len(start) > 120  # no line of a docstring is as long
    assert "Usage: setrnn push [OPTIONS] {MODEL}... {TO}" in said
