"""Settings that follow from the data."""

import pytest

from setrnn.config import load_config
from setrnn.training import schedule
from setrnn.training.schedule import choose_batch_size, choose_epochs, fit_to_data


@pytest.mark.parametrize(
    ("setting", "source", "least", "expected"),
    [
        ("auto", "ppmi", 1, "frozen"),
        ("auto", "ppmi", 10**9, "tuned"),
        ("tuned", "ppmi", 1, "tuned"),
        ("frozen", "ppmi", 10**9, "frozen"),
        ("frozen", "none", 1, "tuned"),
    ],
)
def test_word_vectors_are_frozen_where_they_were_learned_from_many_words(
    small_prepared, monkeypatch, setting, source, least, expected
):
    """Random ones mean nothing, and are always tuned."""
    monkeypatch.setattr(schedule, "MANY_WORDS", least)
    config = load_config(overrides=[f"model.word_vectors={setting}", f"vectors.source={source}"])
    assert fit_to_data(config, small_prepared).model.word_vectors == expected


def test_small_corpora_get_small_batches_and_more_epochs(small_prepared, monkeypatch):
    assert [choose_batch_size(n) for n in (1, 6_400, 6_401, 22_000, 10**6)] == [16, 16, 32, 64, 128]
    plain = load_config(overrides=["model.wide=off"])
    few = fit_to_data(plain, small_prepared).training.epochs
    monkeypatch.setattr(schedule, "FEW_DOCUMENTS", 1)
    tuned = fit_to_data(load_config(), small_prepared).training.epochs
    monkeypatch.setattr(schedule, "MANY_WORDS", 1)
    frozen = fit_to_data(load_config(), small_prepared).training.epochs
    assert few > frozen > tuned


def test_few_documents_start_from_br_and_need_fewer_epochs(small_prepared, monkeypatch):
    assert [choose_epochs(n, True, True) for n in (50, 250, 500, 2_999)] == [40, 30, 15, 15]
    assert [choose_epochs(n, True, False) for n in (50, 500, 2_999)] == [40, 40, 40]
    transformer = load_config(overrides=["encoder.name=transformer", "encoder.path=p"])
    given = load_config(overrides=["model.wide=on"])
    assert fit_to_data(load_config(), small_prepared).model.wide == "on"
    assert fit_to_data(transformer, small_prepared).model.wide == "off"
    assert fit_to_data(load_config("paper"), small_prepared).model.wide == "off"
    monkeypatch.setattr(schedule, "FEW_DOCUMENTS", 1)
    assert fit_to_data(load_config(), small_prepared).model.wide == "off"
    assert fit_to_data(given, small_prepared).model.wide == "on"


def test_given_settings_are_kept_and_chosen_ones_are_not_chosen_again(small_prepared):
    given = load_config(overrides=["training.epochs=3", "training.batch_size=7"])
    fitted = fit_to_data(given, small_prepared)
    assert (fitted.training.epochs, fitted.training.batch_size) == (3, 7)
    assert fit_to_data(fitted, small_prepared) == fitted
