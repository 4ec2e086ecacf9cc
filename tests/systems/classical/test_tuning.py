from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from setrnn.config import ClassicalSettings, TextSettings
from setrnn.data.prepared import prepare
from setrnn.errors import DataError
from setrnn.metrics import evaluate_label_sets
from setrnn.systems.classical import CLASSICAL, tuning
from setrnn.systems.classical.system import training_data
from setrnn.systems.classical.tuning import GRID, tune_penalties

MODELS = {name: system.model_class for name, system in CLASSICAL.items()}
EVERY_BASELINE = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
QUICK = ClassicalSettings(max_steps=5, beam_width=7)


@pytest.fixture
def few(monkeypatch):
    """Three trials, of which the middle one learns something."""
    grid = ((50.0, 50.0), (0.05, 0.05), (200.0, 0.0))
    monkeypatch.setattr(tuning, "GRID", grid)
    return grid


def sum_of_f1(model, prepared, settings):
    """The same measure by another way: predicted sets of names."""
    tfidf, data = training_data(prepared, settings)
    fitted = model.fit(data, settings, lambda n_labels: None)
    valid = prepared.split("valid")
    candidates = fitted.candidates(tfidf.transform(valid.tokens), 1)
    names = prepared.labels.names
    scores = evaluate_label_sets(
        [tuple(names[i] for i in row if i < len(names)) for row in valid.labels],
        [tuple(names[i] for i in candidates.set_at(j, 0)) for j in range(len(valid))],
        names,
    )
    return scores.instance_f1 + scores.label_f1 + scores.micro_f1


@EVERY_BASELINE
def test_the_chosen_penalties_are_the_best_of_the_grid(model, small_prepared, few):
    chosen = tune_penalties(model, small_prepared, QUICK)
    sums = [sum_of_f1(model, small_prepared, replace(QUICK, l1=l1, l2=l2)) for l1, l2 in few]
    assert (chosen.l1, chosen.l2) == few[int(np.argmax(sums))]
    assert max(sums) > min(sums), "the trials must differ for this to mean anything"


@EVERY_BASELINE
def test_every_point_of_the_grid_is_tried_once_and_scored(model, small_prepared, few):
    trials = []
    tune_penalties(
        model, small_prepared, QUICK, lambda l1, l2, scores: trials.append((l1, l2, scores))
    )
    assert [(l1, l2) for l1, l2, _ in trials] == list(few)
    for l1, l2, scores in trials:
        expected = sum_of_f1(model, small_prepared, replace(QUICK, l1=l1, l2=l2))
        assert scores.instance_f1 + scores.label_f1 + scores.micro_f1 == pytest.approx(expected)


@EVERY_BASELINE
def test_the_other_settings_are_kept(model, small_prepared, few):
    chosen = tune_penalties(model, small_prepared, QUICK)
    assert replace(chosen, l1=QUICK.l1, l2=QUICK.l2) == QUICK


@EVERY_BASELINE
def test_tuning_repeats(model, small_prepared, few):
    assert tune_penalties(model, small_prepared, QUICK) == tune_penalties(
        model, small_prepared, QUICK
    )


def test_the_grid_holds_the_default_and_is_valid():
    assert (ClassicalSettings().l1, ClassicalSettings().l2) in GRID
    assert len(set(GRID)) == len(GRID)
    for l1, l2 in GRID:
        ClassicalSettings(l1=l1, l2=l2)


@EVERY_BASELINE
def test_without_a_valid_part_tuning_is_refused(model, small_examples, tmp_path):
    streams = {"train": partial(iter, small_examples["train"])}
    prepared = prepare(streams, tmp_path / "p", "newsroom", TextSettings(), {})
    with pytest.raises(DataError, match="valid"):
        tune_penalties(model, prepared, QUICK)
