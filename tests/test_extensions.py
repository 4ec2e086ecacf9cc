"""One file and one line: the parts that CONTRIBUTING.md adds from outside the package work.

Its code blocks are run, and each part is trained with, saved, loaded and used to predict.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import setrnn
from setrnn import checks
from setrnn.cli import main
from setrnn.config import load_config
from setrnn.data.example import Example
from setrnn.data.read import READERS
from setrnn.methods import METHODS
from setrnn.model.decoders import DECODERS
from setrnn.model.encoders import ENCODERS
from setrnn.objectives import OBJECTIVES
from setrnn.systems.registry import SYSTEMS
from setrnn.systems.rules import RULES
from small_taggers import SMALL_OVERRIDES

pytestmark = pytest.mark.slow
GUIDE = Path(__file__).parents[1] / "CONTRIBUTING.md"
DICTS = (OBJECTIVES, ENCODERS, DECODERS, RULES, READERS, SYSTEMS, METHODS)
SETTINGS = (*SMALL_OVERRIDES, "training.epochs=2")
TEXTS = ["The match ended late.", "", "Parliament passed the budget after the storm."]


BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_part_is_added_in_fewer_than_25_lines(block):
    without_docstrings = re.sub(r'""".*?"""', "", block)
    lines = [each.strip() for each in without_docstrings.splitlines()]
    assert len([each for each in lines if each and not each.startswith("#")]) < 25


@pytest.fixture(scope="module")
def guide():
    """The names that the code of CONTRIBUTING.md defines; its entries are removed again."""
    saved = [dict(each) for each in DICTS]
    names = {"__name__": "guide"}
    sys.modules["guide"] = sys.modules[__name__]  # where dataclasses look for their module
    try:
        for block in BLOCKS:
            exec(compile(block, GUIDE.name, "exec"), names)
        yield names
    finally:
        del sys.modules["guide"]
        for each, entries in zip(DICTS, saved, strict=True):
            each.clear()
            each.update(entries)


def train(prepared, method, *settings):
    config = load_config(overrides=[*SETTINGS, *settings])
    return setrnn.train(prepared, method, config=config, device="cpu")


def check_saved_and_loaded(tagger, folder, rule=None):
    """Save and load change nothing; the predictions are sets with probabilities."""
    tagger.save(folder)
    again = setrnn.load(folder, device="cpu")
    found = tagger.tag(TEXTS, rule=rule, top=3)
    assert again.tag(TEXTS, rule=rule, top=3) == found
    assert [each.labels for each in found] == [
        tuple(name for name in tagger.labels.names if name in each.labels) for each in found
    ]
    assert all(0 <= each.probability <= 1 + 1e-9 for each in found)
    return found


def test_an_objective_from_outside_trains(guide, small_prepared, tmp_path):
    checks.check_objective(OBJECTIVES["rare-first"])
    tagger = train(small_prepared, "rare-first-rnn")
    check_saved_and_loaded(tagger, tmp_path / "model")
    explained = tagger.explain(TEXTS[2])
    assert explained.predicted.labels == tagger.tag(TEXTS)[2].labels


def test_an_encoder_from_outside_is_selected_by_its_name(guide, small_prepared, tmp_path):
    checks.check_encoder(ENCODERS["mean"])
    tagger = train(small_prepared, "set-rnn-exact", "encoder.name=mean")
    assert isinstance(tagger.system.network.encoder, guide["MeanEncoder"])
    check_saved_and_loaded(tagger, tmp_path / "model")


def test_a_decoder_from_outside_trains(guide, small_prepared, tmp_path):
    checks.check_decoder(DECODERS["strongest-word"])
    tagger = train(small_prepared, "strongest-word")
    assert isinstance(tagger.system.network.decoder, guide["StrongestWord"])
    check_saved_and_loaded(tagger, tmp_path / "model", "f1")


@pytest.mark.parametrize("method", ["br", "set-rnn"])
def test_a_rule_from_outside_predicts(guide, method, taggers, tmp_path):
    checks.check_rule(RULES["three"])
    found = check_saved_and_loaded(taggers[method], tmp_path / "model", "three")
    assert [len(each.labels) for each in found] == [3, 3, 3]
    limits = setrnn.Limits(max_labels=2, forbidden=found[0].labels[:1])
    for one in taggers[method].tag(TEXTS, rule="three", limits=limits):
        assert len(one.labels) == 2
        assert found[0].labels[0] not in one.labels


def test_a_system_from_outside_is_fitted(guide, small_prepared, tmp_path):
    checks.check_system(METHODS["label-frequencies"])
    tagger = train(small_prepared, "label-frequencies")
    found = check_saved_and_loaded(tagger, tmp_path / "model")
    assert len({each.labels for each in found}) == 1, "the text says nothing"
    shares = np.array(small_prepared.labels.counts) / len(small_prepared.split("train"))
    np.testing.assert_allclose(tagger.predict_proba(TEXTS)[0], shares, atol=0.01)
    first, second = tagger.labels.names[:2]
    completed = tagger.complete(TEXTS[0], present=[second], absent=[first])
    assert second in completed.labels
    assert first not in completed.labels


def test_the_command_line_takes_a_format_and_a_method_from_outside(
    guide, small_examples, tmp_path, monkeypatch, capsys
):
    data, model = tmp_path / "data", tmp_path / "model"
    data.mkdir()
    for split in ("train", "valid", "test"):
        rows = [f"{one.id} | {' '.join(one.labels)}\n" for one in small_examples[split]]
        (data / f"{split}.bars").write_text("".join(rows))
    documents = [
        Example(str(n), one.id, one.labels) for n, one in enumerate(small_examples["train"], 1)
    ]
    checks.check_reader(READERS["bars"], data, documents)
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    for command in (
        f"train {data} --method label-frequencies --out {model} --device cpu",
        f"evaluate {model} {data} --rule three",
        f"predict {model} {data}/test.bars --rule three --out {tmp_path}/tagged.jsonl",
    ):
        monkeypatch.setattr(sys, "argv", ["setrnn", *command.split()])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code, capsys.readouterr().err
    assert len((tmp_path / "tagged.jsonl").read_text().splitlines()) == len(small_examples["test"])
