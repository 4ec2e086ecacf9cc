import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.tagging.calibration.isotonic import Isotonic, fit_isotonic


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_a_higher_probability_never_gets_a_lower_accuracy(rows):
    probs = np.array([row[0] for row in rows])
    is_right = np.array([row[1] for row in rows])
    fitted = fit_isotonic(probs, is_right)
    values = fitted(np.linspace(0, 1, 101))
    assert (np.diff(values) >= 0).all()
    assert (values > 0).all()
    assert (values < 1).all()


def test_a_known_curve_is_found():
    rng = np.random.default_rng(0)
    probs = rng.random(50_000)
    fitted = fit_isotonic(probs, rng.random(len(probs)) < probs**2)
    grid = np.linspace(0.05, 0.95, 19)
    assert np.abs(fitted(grid) - grid**2).max() < 0.03


def test_documents_are_kept_apart_between_the_ends():
    rng = np.random.default_rng(1)
    probs = rng.random(2000)
    fitted = fit_isotonic(probs, rng.random(2000) < probs)
    inner = probs[(probs > fitted.probabilities[0]) & (probs < fitted.probabilities[-1])]
    assert len(np.unique(fitted(inner))) == len(np.unique(inner))


def test_saving_changes_no_bit():
    rng = np.random.default_rng(2)
    probs = rng.random(500)
    fitted = fit_isotonic(probs, rng.random(500) < probs)
    again = Isotonic.from_dict(fitted.as_dict())
    assert (again(probs) == fitted(probs)).all()


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([0.5], [0.5, 0.6]), ([0.5, 0.4], [0.1, 0.2]), ([0.5], [1.0])]
)
def test_knots_that_make_no_rising_line_are_refused(x, y):
    with pytest.raises(ValueError, match="isotonic"):
        Isotonic.from_dict({"probabilities": x, "accuracies": y})
