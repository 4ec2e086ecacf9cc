"""Settings that follow from the data."""

import pytest

from setrnn.config import load_config
from setrnn.tagging.learn import data
from setrnn.tagging.learn.data import choose_batch_size, choose_epochs, fit_to_data


@pytest.mark.parametrize(
    ("setting", "source", "expected"),
    [("slow", "ppmi", "slow"), ("frozen", "ppmi", "frozen"), ("frozen", "none", "tuned")],
)
def test_random_word_vectors_are_always_tuned(small_prepared, setting, source, expected):
    config = load_config(overrides=[f"model.word_vectors={setting}", f"vectors.source={source}"])
    assert fit_to_data(config, small_prepared).model.word_vectors == expected


def test_small_corpora_get_small_batches_and_more_epochs():
    assert [choose_batch_size(n) for n in (1, 6_400, 6_401, 22_000, 10**6)] == [16, 16, 32, 64, 128]
    found = [choose_epochs(n, choose_batch_size(n)) for n in (1, 100, 800, 1_600, 10**6)]
    assert found == [40, 40, 20, 10, 10]


def test_few_documents_start_from_br(small_prepared, monkeypatch):
    transformer = load_config(overrides=["encoder.name=transformer", "encoder.path=p"])
    given = load_config(overrides=["model.wide=on"])
    assert fit_to_data(load_config(), small_prepared).model.wide == "on"
    assert fit_to_data(transformer, small_prepared).model.wide == "off"
    assert fit_to_data(load_config("paper"), small_prepared).model.wide == "off"
    monkeypatch.setattr(data, "FEW_DOCUMENTS", 1)
    assert fit_to_data(load_config(), small_prepared).model.wide == "off"
    assert fit_to_data(given, small_prepared).model.wide == "on"


def test_given_settings_are_kept_and_chosen_ones_are_not_chosen_again(small_prepared):
    given = load_config(overrides=["training.epochs=3", "training.batch_size=7"])
    fitted = fit_to_data(given, small_prepared)
    assert (fitted.training.epochs, fitted.training.batch_size) == (3, 7)
    assert fit_to_data(fitted, small_prepared) == fitted
