"""A network with a shortlist of labels: all use cases treat labels on it and off it alike."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from setrnn import load
from setrnn.data import newsroom
from setrnn.model.evidence import ShortlistEvidence
from setrnn.tagging.trust.calibrate import calibrate
from small_taggers import SMALL, trained_tagger

CONFIG = replace(SMALL, model=replace(SMALL.model, shortlist=3))


@pytest.fixture(scope="module")
def short(small_prepared, make_once):
    folder = make_once("shortlisted", trained_tagger(small_prepared, "set-rnn-exact", CONFIG).save)
    tagger = load(folder, device="cpu")
    assert isinstance(tagger.system.network.evidence, ShortlistEvidence)
    return tagger


def test_labels_that_are_not_listed_can_be_known_and_are_explained(short, test_texts):
    text = test_texts[0]
    rarest = short.labels.names[np.argmin(short.predict_proba([text])[0])]
    completed = short.complete(text, present=[rarest])
    assert rarest in completed.labels
    explained = short.explain(text, labels=[rarest])
    (found,) = [each for each in explained.sets if each.labels == (rarest,)]
    assert 0 < found.probability < 0.01


def test_a_model_with_shortlists_is_calibrated(short):
    found = calibrate(short, list(islice(newsroom.examples("valid"), 120)))
    assert len(found.calibration.thresholds.by_label) == len(short.labels)
