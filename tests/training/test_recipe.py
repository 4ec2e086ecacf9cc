import pytest

from setrnn.config import load_config
from setrnn.errors import ConfigError
from setrnn.methods import METHODS, find_method
from setrnn.training.recipe import count_first_epochs

TWO_PHASES = [name for name, each in METHODS.items() if each.first_objective]


@pytest.mark.parametrize("method", TWO_PHASES)
def test_patience_does_not_count_before_the_own_objective_begins(train, method):
    run = train("training.epochs=6", "training.patience=1", method=method)
    objectives = [row["objective"] for row in run.notes["epochs"]]
    assert objectives[:3] == ["random-order"] * 3
    assert objectives[3] == find_method(method).objective


@pytest.mark.parametrize("method", TWO_PHASES)
def test_the_best_epoch_is_one_of_the_own_objective(train, method):
    # Weights that hardly move score the same in every epoch: the first to count is the best.
    run = train("training.epochs=4", "training.learning_rate=1e-9", method=method)
    assert run.notes["best_epoch"] == 3


@pytest.mark.parametrize(("n_epochs", "share", "n_first"), [(2, 0.1, 1), (3, 0.9, 2), (5, 0, 0)])
def test_each_objective_gets_an_epoch_unless_the_share_is_zero(n_epochs, share, n_first):
    settings = _settings(f"training.epochs={n_epochs}", f"training.random_share={share}")
    assert count_first_epochs(find_method("vinyals-max"), settings) == n_first
    assert count_first_epochs(find_method("vinyals-max-direct"), settings) == 0


@pytest.mark.parametrize("override", ["training.epochs=1", "training.random_share=1"])
def test_an_objective_without_an_epoch_is_refused(train, override):
    with pytest.raises(ConfigError, match=r"Raise the epochs"):
        train(override, method="vinyals-max")


def _settings(*overrides):
    return load_config("default", None, overrides).training
