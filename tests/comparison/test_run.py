from dataclasses import replace
from itertools import permutations
from math import log

import numpy as np
import pytest
import torch

from setrnn.comparison.run import Task, run
from setrnn.comparison.sequences import normalised_entropies, order_entropies
from setrnn.config import load_config
from setrnn.data.batches import make_batch
from setrnn.data.ragged import Ragged
from setrnn.errors import TrainingError
from setrnn.metrics import evaluate_sets, indicator_matrix
from setrnn.tagging.tagger import load
from small_taggers import SMALL, SMALL_OVERRIDES


@pytest.fixture(scope="module")
def records(small_prepared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")

    def made(method):
        return run(Task(small_prepared.folder, folder, method, SMALL, "cpu"))

    return {method: made(method) for method in ("br", "set-rnn")}, folder


def test_the_scores_are_those_of_the_predictions(records, small_prepared):
    test = small_prepared.split("test")
    n_labels = len(small_prepared.labels) + len(small_prepared.unseen_labels)
    truth = indicator_matrix([row.tolist() for row in test.labels], n_labels)
    for record in records[0].values():
        for rule, sets in record.test.predicted.items():
            expected = evaluate_sets(truth, indicator_matrix(sets, n_labels)).as_dict()
            found = record.scores["test"][rule]
            for name in ("instance_f1", "label_f1", "micro_f1", "hamming_loss"):
                assert found[name] == pytest.approx(expected[name])


def test_a_mixture_is_made_of_the_models_of_other_runs(records, small_prepared):
    folder, needed = records[1], ("br-0", "set-rnn-0", "failed-0")
    task = Task(small_prepared.folder, folder, "mixture", SMALL, "cpu", needed=needed)
    record = run(task)
    assert record.treatment["needed"] == list(needed)
    assert set(record.scores["valid"]) >= {"set", "f1", "hamming"}
    assert record.test.order_entropy is None
    assert load(folder / "models" / "mixture-0").members
    with pytest.raises(TrainingError, match="Fewer than two"):
        run(replace(task, needed=needed[::2]))


def test_only_systems_that_emit_sequences_have_orders_and_cases(records):
    br, set_rnn = records[0]["br"], records[0]["set-rnn"]
    assert "sequence" not in br.test.predicted
    assert br.test.order_entropy is None
    assert not br.cases
    assert "sequence" in set_rnn.test.predicted
    n_documents = len(set_rnn.test.predicted["set"])
    assert len(set_rnn.test.order_entropy) == n_documents
    assert set_rnn.cases


def test_a_case_has_the_sequences_and_sets_of_its_explanation(records, small_examples):
    record, folder = records[0]["set-rnn"], records[1]
    tagger = load(folder / "models" / "set-rnn-0")
    texts = {each.id: (each.text, each.features) for each in small_examples["test"]}
    for case in record.cases:
        found = tagger.explain(*texts[case["id"]], rule="set")
        probs = {each.name: each.probability for each in found.sets}
        exact = {each.name: each.is_exact for each in found.sets}
        assert found.sequences[0].set != "A"
        for given, each in zip(case["sequences"], found.sequences, strict=False):
            assert tuple(given["labels"]) == each.labels
            assert given["probability"] == pytest.approx(each.probability, rel=1e-3)
            assert given["set_probability"] == pytest.approx(probs[each.set], rel=1e-3)
            assert given["is_exact"] == exact[each.set]


def test_the_kept_model_predicts_what_the_record_says(records, small_examples):
    record, folder = records[0]["set-rnn"], records[1]
    tagger = load(folder / "models" / "set-rnn-0")
    examples = small_examples["test"]
    features = [each.features for each in examples]
    found = tagger.tag([each.text for each in examples], features=features)
    index = tagger.labels.index
    predicted = [sorted(index[label] for label in each.labels) for each in found]
    assert predicted == record.test.predicted[record.own_rule]


def test_a_budget_ends_training_before_it_is_over(small_prepared, tmp_path):
    config = load_config(overrides=[*SMALL_OVERRIDES, "training.epochs=50"])
    task = Task(small_prepared.folder, tmp_path, "seq2seq-rnn", config, "cpu")
    record = run(replace(task, budget=1 / 60))
    assert 1 <= len(record.epochs) < 50
    assert record.treatment["was_cut_by_budget"]
    assert record.test is not None


def test_the_entropy_of_known_distributions():
    log_probs = np.full((4, 6), -np.inf)
    log_probs[0] = np.log(0.01)  # six orders as likely, whatever their sum
    log_probs[1, 0] = np.log(0.5)  # one order
    log_probs[2, :2] = np.log(0.2)  # two of six
    log_probs[3, 0] = 0.0  # one label: it has one order
    found = normalised_entropies(log_probs, np.array([3, 3, 3, 1]))
    assert found[:2] == [1.0, 0.0]
    assert found[2] == pytest.approx(log(2) / log(6), abs=1e-5)
    assert found[3] is None


@pytest.mark.parametrize("method", ["set-rnn", "sgm", "set-rnn-exact"])
def test_the_entropy_is_that_of_all_orders(taggers, small_prepared, method):
    system = taggers[method].system.with_beam_width(6)  # all orders of three labels
    test = small_prepared.split("test")
    known = [
        row.tolist() if (row < len(small_prepared.labels)).all() else [] for row in test.labels
    ]
    rows = [number for number, row in enumerate(known) if len(row) == 3][:4]
    tokens = Ragged.from_lists([test.tokens[row].tolist() for row in rows])
    sets = Ragged.from_lists([known[row] for row in rows])
    entropies = order_entropies(system, tokens, sets)
    for number, row in enumerate(rows):
        log_probs = {
            order: _log_prob(system, test.tokens.rows(row, row + 1), order)
            for order in permutations(known[row])
        }
        probs = np.exp(list(log_probs.values()))
        probs /= probs.sum()
        expected = -(probs * np.log(probs)).sum() / log(6)
        assert entropies[number] == pytest.approx(expected, abs=1e-4)


@torch.inference_mode()
def _log_prob(system, tokens, order):
    """Sum the steps of a sequence."""
    decoder = system.network.decoder
    encoding = system.network.encode(make_batch(tokens, None, np.zeros(1, dtype=np.int64)))
    state, total = decoder.start(encoding), 0.0
    previous = torch.full((1, 1), decoder.n_labels)
    for label in [*order, decoder.n_labels]:
        log_probs, state = decoder.step(encoding, state, previous)
        total += float(log_probs[0, 0, label])
        previous = torch.full((1, 1), label)
    return total
