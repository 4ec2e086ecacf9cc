import pytest
from tiny_runs import N_VALID, tiny_config

from setrnn.methods import find_method
from setrnn.metrics import MEASURES, evaluate_sets, indicator_matrix, is_better
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.tagging.evaluate import evaluate
from setrnn.tagging.tagger import Tagger
from setrnn.training.validation import MOST_CONSTANTS, best_constant, validate


@pytest.mark.parametrize("method", ["set-rnn", "seq2seq-rnn"])
def test_an_epoch_is_measured_as_its_model_will_be(train, tiny, method):
    run = train("training.epochs=1", method=method)
    tagger = Tagger(method, tiny_config(), tiny.encoder, tiny.labels, run.system)
    expected = evaluate(tagger, tiny, split="valid").as_dict()
    (row,) = run.notes["epochs"]
    for name in (*MEASURES, "mean_probability"):
        assert row[name] == pytest.approx(expected[name], rel=1e-5)


def test_batches_change_no_measure(never_stopped, tiny, monkeypatch):
    rule = find_method("set-rnn").rule
    system: RecurrentSystem = never_stopped.system
    whole = validate(system, tiny, rule, N_VALID)
    monkeypatch.setattr("setrnn.training.validation.MAX_DOCUMENTS", 3)
    calls = []
    parts = validate(system, tiny, rule, 1_000, lambda: calls.append(1))
    assert parts == pytest.approx(whole, rel=1e-5)
    assert len(calls) == 3


def test_thresholds_are_chosen_on_the_documents_that_are_measured(never_stopped, tiny):
    """The best threshold is at least as good as 1/2, that of rule "hamming"."""
    half, chosen = (
        validate(never_stopped.system, tiny, rule, N_VALID)["micro_f1"]
        for rule in ("hamming", "micro-f1")
    )
    assert chosen > half


@pytest.mark.parametrize("measure", MEASURES)
def test_the_best_constant_is_the_best_of_all_numbers_of_frequent_labels(tiny, measure):
    truth = list(tiny.split("valid").labels)
    L = len(tiny.labels) + len(tiny.unseen_labels)
    matrix = indicator_matrix(truth, L)
    every = [
        evaluate_sets(matrix, indicator_matrix([range(k)] * len(truth), L)).as_dict()[measure]
        for k in range(len(tiny.labels) + 1)
    ]
    found = best_constant(tiny, measure)
    assert found in every
    better = [each for each in every if is_better(each, found, measure)]
    assert not better or len(tiny.labels) + 1 > MOST_CONSTANTS
