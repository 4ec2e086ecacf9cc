import json

import numpy as np
import pytest

from setrnn.errors import ModelError
from setrnn.systems.rules import SetCandidates
from setrnn.systems.rules.thresholds import Thresholds
from setrnn.tagging.calibration import Acceptance, Calibration, Scaling
from setrnn.tagging.calibration.isotonic import Isotonic
from synthetic import candidates

FULL = Calibration(
    1234,
    Thresholds(0.4, np.array([0.3, 0.5])),
    {
        "sets": Scaling(3, 1.3, Isotonic(np.array([0.1, 0.9]), np.array([0.05, 0.8]))),
        "sequences": Scaling(3, 0.7),
    },
    {
        "set": Acceptance("set", 0.9, 0.95, 0.87, 0.2, 0.93, 246),
        "sequence": Acceptance("sequence", 0.9, 0.95, None, 0.0, 0.7, 0),
    },
)


@pytest.fixture
def found():
    labels = np.array([[0, 1], [2, -1], [-1, -1]], dtype=np.int32)
    return SetCandidates(np.tile(labels, (50, 1, 1)), candidates(50, 3))


def test_json_and_back_changes_nothing(found):
    again = Calibration.from_dict(json.loads(json.dumps(FULL.as_dict())))
    assert again.as_dict() == FULL.as_dict()
    one = FULL.apply("sets", found, found.labels[:, 0], found.log_probs[:, 0])
    other = again.apply("sets", found, found.labels[:, 0], found.log_probs[:, 0])
    assert (one[0].log_probs == other[0].log_probs).all()
    assert (one[1] == other[1]).all()


def test_a_file_of_before_there_were_scalings_is_read():
    old = Calibration.from_dict({"n_documents": 7, "thresholds": None})
    assert old == Calibration(7)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_predicted_candidate_has_its_probability(found, rank):
    labels = np.pad(found.labels[:, rank], ((0, 0), (0, 2)), constant_values=-1)
    scaled, log_probs = FULL.apply("sets", found, labels, found.log_probs[:, rank])
    assert (log_probs == scaled.log_probs[:, rank]).all()


def test_a_predicted_set_that_is_no_candidate_is_less_probable_than_what_is_left(found):
    labels = np.tile(np.array([[0, 2]], dtype=np.int32), (50, 1))
    scaled, log_probs = FULL.apply("sets", found, labels, found.log_probs[:, 2] - 5)
    left = 1 - np.exp(scaled.log_probs).sum(1)
    assert (np.exp(log_probs) <= left + 1e-12).all()


def test_a_source_without_scaling_keeps_the_models_own(found):
    plain = Calibration(10, scalings={"sequences": Scaling(3, 2.0)})
    scaled, log_probs = plain.apply("sets", found, found.labels[:, 0], found.log_probs[:, 0])
    assert scaled is found
    assert (log_probs == found.log_probs[:, 0]).all()
    assert (plain.n_candidates("sets"), plain.n_candidates("sequences")) == (1, 3)


DAMAGES = [
    {},
    {"n_documents": "many", "thresholds": None},
    {"n_documents": 5, "thresholds": None, "scalings": []},
    {"n_documents": 5, "thresholds": None, "scalings": {"sets": {"temperature": 1}}},
    {
        "n_documents": 5,
        "thresholds": None,
        "scalings": {"sets": {"n_candidates": 3, "temperature": 0, "isotonic": None}},
    },
    {"n_documents": 5, "thresholds": None, "acceptance": {"set": {"threshold": 0.5}}},
    {"n_documents": 5, "thresholds": 0.5},
]


@pytest.mark.parametrize("values", DAMAGES)
def test_what_is_damaged_is_one_line(values):
    with pytest.raises(ModelError, match=r"^m/calibration.json is damaged\.") as error:
        Calibration.from_dict(values, "m/calibration.json")
    assert "\n" not in str(error.value)
