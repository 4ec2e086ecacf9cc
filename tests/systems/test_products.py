"""Products of independent labels, and an empty set as probable as it was frequent in training.

`classical/test_probabilities.py` has the brute force.
"""

import json
from itertools import islice

import numpy as np
import pytest
from scipy.special import expit

import setrnn
from brute_force import all_sets
from choices import as_sets
from setrnn.data.read import BadRows
from setrnn.systems.limits import no_limits
from setrnn.systems.products import fit_empty_shift, most_probable_products
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.expected_f1 import choose


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
        assert again.system.empty_shift == tagger.system.empty_shift
    assert f1[1] > f1[0] - 0.02


def test_empty_sets_are_predicted_where_many_documents_are_empty(tmp_path):
    tagger = setrnn.train(write_news(tmp_path, 24), "br-support")
    empty, other = tagger.tag(["the of and to in " * 4, "minister parliament vote government"])
    assert empty.labels == ()
    assert other.labels != ()


def test_many_labels_and_few_sets_are_exact():
    """The 5 best of 2^300: checked against the best that turning one or two labels gives."""
    logits = np.random.default_rng(0).normal(size=(3, 300)).astype(np.float32)
    candidates = most_probable_products(logits, 5)
    for document in range(3):
        cost = np.sort(np.abs(logits[document].astype(float)))[:6]
        totals = sorted(sum(cost[list(turned)]) for turned in all_sets(6))[:5]
        below_best = candidates.log_probs[document, 0] - candidates.log_probs[document]
        np.testing.assert_allclose(below_best, totals, atol=1e-6)


def test_many_labels_agree_with_drawn_sets():
    """The expected F1 of the chosen sets, against those of twenty thousand drawn ones."""
    random = np.random.default_rng(1)
    logits = (random.standard_normal((3, 400)) * 2 - 5).astype(np.float32)
    found = most_probable_products(logits, 2)
    chosen = choose(Choice(found, no_limits(400), lambda rows, sets: sets))
    for row, members in zip(expit(logits), as_sets(chosen), strict=True):
        drawn = random.random((20_000, 400)) < row
        by_rank = np.argsort(-row)

        def mean_f1(labels, drawn=drawn):
            both = drawn[:, labels].sum(axis=1)
            return float((2 * both / (len(labels) + drawn.sum(axis=1))).mean())

        values = {k: mean_f1(by_rank[:k]) for k in range(1, 40)}
        assert mean_f1(list(members)) >= max(values.values()) - 0.004
