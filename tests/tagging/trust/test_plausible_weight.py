"""The weight of log p(set) that a calibration chooses."""

from dataclasses import replace

import numpy as np
import pytest

import setrnn
from setrnn.data import newsroom
from setrnn.metrics import evaluate_label_sets
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import count_candidates
from setrnn.tagging.trust.calibrate import MAX_LOSS, WEIGHTS, choose_weight


@pytest.fixture(scope="module")
def tagger():
    return setrnn.train("newsroom", "br", device="cpu")


def test_the_weight_is_the_largest_that_costs_little(tagger):
    examples = list(newsroom.examples("valid"))[:300]
    tokens = tagger.encoder.encode([each.text for each in examples], [()] * len(examples))
    truth = [each.labels for each in examples]
    found = BatchSearch(tagger.system, tokens, {"sets": count_candidates()})
    chosen = choose_weight(tagger, [found], truth)

    def score(limits=None, weight=None):
        model = tagger
        if weight is not None:
            fitted = replace(tagger.calibration, plausible=weight)
            model = replace(tagger, calibration=fitted)
        found = model.tag([each.text for each in examples], limits=limits)
        named = [each.labels for each in found]
        return evaluate_label_sets(truth, named, tagger.labels.names).instance_f1

    least = score(setrnn.Limits(free=True)) - MAX_LOSS
    assert score(weight=chosen) >= least or chosen == WEIGHTS[-1]
    assert all(score(weight=each) < least for each in WEIGHTS if each > chosen)


def test_the_weight_is_saved_and_used(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    loaded = setrnn.load(tmp_path / "model", "cpu")
    assert loaded.calibration.plausible == tagger.calibration.plausible in WEIGHTS
    assert loaded.resolve().limits.plausible == loaded.calibration.plausible
    assert np.isclose(loaded.resolve("f1").limits.plausible, 0)
