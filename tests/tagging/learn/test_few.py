"""Training without a method on few documents."""

import numpy as np
import pytest

import setrnn
from setrnn.data import newsroom
from setrnn.data.example import Example
from setrnn.data.read import write_examples
from setrnn.errors import DataError
from setrnn.metrics import evaluate_label_sets


@pytest.fixture
def train_few(tmp_path, monkeypatch):
    """Train on documents, given as texts with their labels."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))

    def run(documents, **arguments):
        examples = [
            each if isinstance(each, Example) else Example(str(n), *each, ())
            for n, each in enumerate(documents)
        ]
        write_examples(examples, tmp_path / "few.jsonl")
        return setrnn.train(tmp_path / "few.jsonl", device="cpu", **arguments)

    return run


def instance_f1(tagger, examples, found=None):
    found = found or tagger.tag([each.text for each in examples])
    truth = [each.labels for each in examples]
    predicted = [each.labels for each in found]
    return evaluate_label_sets(truth, predicted, tagger.labels.names).instance_f1


def best_constant(train, test):
    labels = [label for each in train for label in each.labels]
    order = sorted(set(labels), key=labels.count, reverse=True)
    truth = [each.labels for each in test]
    return max(
        evaluate_label_sets(truth, [tuple(order[:n])] * len(test), order).instance_f1
        for n in range(1, 6)
    )


@pytest.mark.parametrize("n_documents", [60, 200])
def test_few_documents_give_more_than_the_best_constant_set(train_few, n_documents):
    examples = list(newsroom.examples("train"))
    train, test = examples[:n_documents], examples[1000:1300]
    tagger = train_few(train)
    assert instance_f1(tagger, test) > best_constant(train, test) + 0.1
    # All documents are trained on, and all calibrate.
    assert tagger.notes["n_documents"] == n_documents
    assert (tagger.calibration is not None) == (n_documents >= 100)
    assert not tagger.notes.get("warnings")


def test_texts_that_say_nothing_give_the_best_constant_set_and_a_warning(
    train_few, notes, tmp_path
):
    random = np.random.default_rng(1)
    rows = [
        (f"word{random.integers(50)} word{random.integers(50)}", ("a", "b") if each else ("c",))
        for each in random.random(2_200) < 0.7
    ]
    tagger = train_few(rows[:200], out=tmp_path / "model")
    train, test = ([Example("", *row, ()) for row in part] for part in (rows[:200], rows[200:]))
    found = tagger.tag([each.text for each in test], limits=setrnn.Limits(free=True))
    assert instance_f1(tagger, test, found) >= best_constant(train, test) - 0.02
    assert any("learned little or nothing" in text for text in notes.warnings)
    assert "learned little or nothing" in (tmp_path / "model" / "README.md").read_text()


def test_three_documents_give_a_model(train_few, tmp_path):
    tagger = train_few([("red apple", ("fruit",)), ("car", ("ship",)), ("pear", ("fruit",))])
    assert tagger.tag(["red apple"])[0].labels == ("fruit",)
    tagger.save(tmp_path / "model")
    assert setrnn.load(tmp_path / "model").tag(["red apple"]) == tagger.tag(["red apple"])


@pytest.mark.parametrize(("n_labels", "n_documents"), [(4, 160), (2, 24), (1, 30)])
def test_few_documents_of_one_label_each_are_enough_for_a_model(train_few, n_labels, n_documents):
    rows = [(f"topic{n % n_labels} copy{n}", (f"l{n % n_labels}",)) for n in range(n_documents)]
    assert train_few(rows).tag([f"topic{n_labels - 1}"])[0].labels == (f"l{n_labels - 1}",)


def test_no_label_at_all_is_refused(train_few):
    with pytest.raises(DataError, match="nothing to learn"):
        train_few([(f"word{n}", ()) for n in range(30)])


def test_the_same_seed_gives_the_same_model(train_few):
    examples = list(newsroom.examples("train"))[:80]
    texts = [each.text for each in examples]
    assert train_few(examples).tag(texts) == train_few(examples).tag(texts)
