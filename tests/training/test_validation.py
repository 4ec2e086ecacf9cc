import pytest
from tiny_runs import N_VALID, tiny_config

from setrnn.methods import find_method
from setrnn.metrics import MEASURES
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.tagging.evaluation import evaluate
from setrnn.tagging.tagger import Tagger
from setrnn.training.validation import validate


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


def test_fewer_documents_are_measured_if_asked_to(never_stopped, tiny):
    rule = find_method("set-rnn").rule
    few = validate(never_stopped.system, tiny, rule, 1)
    assert few["subset_accuracy"] in (0.0, 1.0)
