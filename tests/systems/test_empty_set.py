"""The empty set is as probable as it was frequent in training."""

import json
from itertools import islice

import numpy as np
import pytest

import setrnn
from setrnn.data.read import BadRows
from setrnn.systems.products import fit_empty_shift


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
