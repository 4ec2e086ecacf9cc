"""The empty set is as probable as it was frequent in training."""

import json
from itertools import combinations, islice

import numpy as np
import pytest

import setrnn
from brute_force import identity_weights, product_probability
from setrnn.data.ragged import Ragged
from setrnn.data.read.reader import BadRows
from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.br_support import SupportInference
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.empty_set import NEVER, fit_empty_shift
from setrnn.systems.known import Known

LOGITS = np.random.default_rng(0).normal(-1, 1.5, (5, 4)).astype(np.float32)
EMPTY = np.full((5, 1, 1), -1, dtype=np.int32)


def every_set(n_labels):
    return [each for size in range(n_labels + 1) for each in combinations(range(n_labels), size)]


def models(shift):
    linear, documents = identity_weights(LOGITS)
    chain = np.zeros((4, 4), dtype=np.float32)
    everything = Ragged.from_lists(every_set(4))
    yield BinaryRelevance(linear, shift), documents
    yield SupportInference(BinaryRelevance(linear), everything, shift), documents
    yield ClassifierChain(linear, chain, 16, shift), documents


@pytest.mark.parametrize("shift", [NEVER, -2.0, 0.0, 3.0])
def test_only_the_odds_of_the_empty_set_change(shift):
    """All models of independent labels give what brute force over all sets gives."""
    for model, documents in models(shift):
        found = model.candidates(documents, 16)
        marginals = found.marginals(4)
        table = found.label_size_probs(4)
        for document in range(5):
            truth = {each: product_probability(LOGITS[document], each) for each in every_set(4)}
            truth[()] *= np.exp(shift)
            total = sum(truth.values())
            best = sorted((p / total for p in truth.values()), reverse=True)
            found_best = np.exp(found.log_probs[document])
            np.testing.assert_allclose(found_best[:15], best[:15], rtol=1e-5)
            assert table.empty[document] == pytest.approx(truth[()] / total, rel=1e-5)
            if not isinstance(model, SupportInference):  # it takes the larger of two
                expected = sum(p for each, p in truth.items() if 1 in each) / total
                assert marginals[document, 1] == pytest.approx(expected, rel=1e-4)
        of_empty = np.exp(model.set_log_probs(documents, EMPTY))[:, 0]
        np.testing.assert_allclose(of_empty, table.empty, rtol=1e-5)
        asked = model.set_log_probs(documents, found.labels)
        is_set = found.log_probs > -np.inf
        np.testing.assert_allclose(asked[is_set], found.log_probs[is_set], atol=1e-5)


def test_a_likely_empty_set_is_found_among_few():
    for model, documents in models(12.0):
        assert (model.candidates(documents, 1).labels[:, 0] < 0).all()


@pytest.mark.parametrize("shift", [NEVER, 3.0])
def test_known_labels_are_followed(shift):
    """A set with a present label is not empty, however likely the empty set is."""
    present = np.array([[2]] * 5, dtype=np.int32)
    for model, documents in models(shift):
        found = model.candidates(documents, 3, Known(present, EMPTY[:, 0]))
        is_set = found.log_probs > -np.inf
        assert is_set[:, 0].all()
        assert (found.labels == 2).any(axis=2)[is_set].all()


@pytest.mark.parametrize("share", [0.004, 0.1, 0.9])
def test_the_mean_probability_becomes_the_share(share):
    log_empty = np.log(np.random.default_rng(1).uniform(0.01, 0.99, 200))
    shift = fit_empty_shift(log_empty, share)
    odds = np.exp(log_empty) / (1 - np.exp(log_empty)) * np.exp(shift)
    assert (odds / (1 + odds)).mean() == pytest.approx(share, rel=1e-6)


def write_news(folder, n_empty):
    """Write 240 documents to train on and 100 to measure on; some have no label."""
    documents = setrnn.open_dataset("newsroom").splits["train"].read(BadRows())
    rows = list(islice((each for each in documents if each.labels), 340))
    rows = [{"text": each.text, "labels": list(each.labels)} for each in rows]
    for row in rows[:n_empty] + rows[240 : 240 + 100 * n_empty // 240]:
        row.update(text="the of and to in " * 4, labels=[])
    for name, part in (("train", rows[:240]), ("valid", rows[240:])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (folder / f"{name}.jsonl").write_text(lines)
    return folder


@pytest.mark.parametrize("method", ["br", "br-support"])
def test_one_document_without_labels_changes_little(tmp_path, method):
    """It made every third prediction empty: .56 instead of .73."""
    f1 = {}
    for n_empty in (0, 1):
        folder = tmp_path / str(n_empty)
        folder.mkdir()
        tagger = setrnn.train(write_news(folder, n_empty), method, measure="instance-f1")
        f1[n_empty] = tagger.notes["valid"]["instance_f1"]
        tagger.save(folder / "model")
        again = setrnn.load(folder / "model")
        assert again.system.model.empty_shift == tagger.system.model.empty_shift
    assert f1[1] > f1[0] - 0.02


def test_empty_sets_are_predicted_where_many_documents_are_empty(tmp_path):
    tagger = setrnn.train(write_news(tmp_path, 24), "br-support")
    empty, other = tagger.tag(["the of and to in " * 4, "minister parliament vote government"])
    assert empty.labels == ()
    assert other.labels != ()
