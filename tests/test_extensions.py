"""One file and one line: the parts that CONTRIBUTING.md adds from outside the package work.

Its code blocks are run, and each part is trained with, saved, loaded and used to predict. One more
system implements the protocol of systems and nothing else.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import setrnn
from setrnn.cli import main
from setrnn.config import load_config
from setrnn.data.read import READERS
from setrnn.methods import METHODS, Method
from setrnn.model.decoders import DECODERS
from setrnn.model.encoders import ENCODERS
from setrnn.objectives import OBJECTIVES
from setrnn.systems.candidates import SetCandidates, pack_labels
from setrnn.systems.known import make_completions
from setrnn.systems.registry import SYSTEMS
from setrnn.systems.rules import RULES
from setrnn.systems.system import System
from small_taggers import SMALL_OVERRIDES

pytestmark = pytest.mark.slow
GUIDE = Path(__file__).parents[1] / "CONTRIBUTING.md"
DICTS = (OBJECTIVES, ENCODERS, DECODERS, RULES, READERS, SYSTEMS, METHODS)
SETTINGS = (*SMALL_OVERRIDES, "training.epochs=2")
TEXTS = ["The match ended late.", "", "Parliament passed the budget after the storm."]


@pytest.fixture(scope="module")
def guide():
    """The names that the code of CONTRIBUTING.md defines; its entries are removed again."""
    saved = [dict(each) for each in DICTS]
    names = {"__name__": "guide"}
    sys.modules["guide"] = sys.modules[__name__]  # where dataclasses look for their module
    try:
        for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S):
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
    tagger = train(small_prepared, "rare-first-rnn")
    check_saved_and_loaded(tagger, tmp_path / "model")
    explained = tagger.explain(TEXTS[2])
    assert explained.predicted.labels == tagger.tag(TEXTS)[2].labels


def test_an_encoder_from_outside_is_selected_by_its_name(guide, small_prepared, tmp_path):
    tagger = train(small_prepared, "set-rnn-exact", "encoder.name=mean")
    assert isinstance(tagger.system.network.encoder, guide["MeanEncoder"])
    check_saved_and_loaded(tagger, tmp_path / "model")


def test_a_decoder_from_outside_trains(guide, small_prepared, tmp_path):
    tagger = train(small_prepared, "strongest-word")
    assert isinstance(tagger.system.network.decoder, guide["StrongestWord"])
    check_saved_and_loaded(tagger, tmp_path / "model", "f1")


@pytest.mark.parametrize("method", ["br", "set-rnn"])
def test_a_rule_from_outside_predicts(guide, method, taggers, tmp_path):
    found = check_saved_and_loaded(taggers[method], tmp_path / "model", "three")
    assert [len(each.labels) for each in found] == [3, 3, 3]
    limits = setrnn.Limits(max_labels=2, forbidden=found[0].labels[:1])
    for one in taggers[method].tag(TEXTS, rule="three", limits=limits):
        assert len(one.labels) == 2
        assert found[0].labels[0] not in one.labels


def test_a_system_from_outside_is_fitted(guide, small_prepared, tmp_path):
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


class SeenSetSystem(System):
    """p(set) is its share of the training documents: the protocol of systems, and nothing else."""

    def __init__(self, sets, log_probs, n_labels):
        self.sets, self.log_probs, self.n_labels = sets, log_probs, n_labels

    @classmethod
    def train(cls, prepared, config, on_progress):
        sets, counts = np.unique(
            prepared.split("train").labels.padded(min_width=1), axis=0, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")
        sets = pack_labels(sets[order].astype(np.int32))
        return cls(sets, np.log(counts[order] / counts.sum()), len(prepared.labels))

    def candidates(self, tokens, n_sets, source="sets", known=None):
        shape = (len(tokens), *self.sets.shape)
        log_probs = np.tile(self.log_probs, (len(tokens), 1))
        found = SetCandidates(np.broadcast_to(self.sets, shape), log_probs)
        if known is None or known.is_nothing:
            return found
        is_in = np.zeros((len(self.sets), self.n_labels + 1), dtype=bool)
        np.put_along_axis(is_in, self.sets, True, axis=1)
        is_in = is_in[:, :-1]
        present, absent = known.is_present(self.n_labels), known.is_absent(self.n_labels)
        fits = (is_in | ~present[:, None]).all(2) & ~(is_in & absent[:, None]).any(2)
        log_probs = np.where(fits, log_probs, -np.inf)
        order = np.argsort(-log_probs, axis=1, kind="stable")
        found = SetCandidates(self.sets[order], np.take_along_axis(log_probs, order, axis=1))
        return make_completions(found, known)

    def set_log_probs(self, tokens, label_sets):
        return np.nan_to_num(self.candidates(tokens, 1).log_probs_of(label_sets), nan=-np.inf)

    def marginals(self, tokens, candidates=None):
        return self.candidates(tokens, 1).marginals(self.n_labels)

    def arrays(self):
        return {"sets": self.sets, "log_probs": self.log_probs, "n": np.array([self.n_labels])}

    @classmethod
    def from_arrays(cls, arrays, method, config, device):
        return cls(arrays["sets"], arrays["log_probs"], int(arrays["n"][0]))

    def check_sizes(self, n_tokens, n_labels):
        if n_labels != self.n_labels:
            raise ValueError("other labels")


def test_a_system_needs_the_protocol_only(small_prepared, small_examples, tmp_path, monkeypatch):
    method = Method("seen-sets", "count the sets", "argmax p(y)", "#000000", is_in_paper=False)
    monkeypatch.setitem(SYSTEMS, "seen-sets", SeenSetSystem)
    monkeypatch.setitem(METHODS, "seen-sets", method)
    tagger = train(small_prepared, "seen-sets")
    for rule in ("set", "f1", "hamming"):
        check_saved_and_loaded(tagger, tmp_path / rule, rule)
    train_sets = [frozenset(each.labels) for each in small_examples["train"]]
    best = max(set(train_sets), key=train_sets.count)
    raw = replace(tagger, calibration=None).tag(TEXTS[:1], "set")[0]
    assert set(raw.labels) == best
    assert raw.probability == pytest.approx(train_sets.count(best) / len(train_sets))
    label = next(iter(best))
    completed = tagger.complete(TEXTS[0], absent=[label])
    assert label not in completed.labels
