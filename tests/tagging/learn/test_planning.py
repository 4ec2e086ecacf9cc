"""What fits the time: epochs, valid documents and mixed documents."""

import shutil
import time
from types import SimpleNamespace

import pytest

from setrnn.config import load_config
from setrnn.data.prepared import Prepared
from setrnn.data.vectors import word_vectors
from setrnn.tagging.learn import planning
from setrnn.tagging.learn.planning import (
    MIXING_SHARE,
    Clock,
    Planner,
    fit_epochs,
    least_epochs,
    without_learned_vectors,
)
from setrnn.training.speed import Speed

N_TRAIN, N_VALID = 1_000, 4_000


def network(*settings):
    data = SimpleNamespace(description={"n_documents": {"train": N_TRAIN, "valid": N_VALID}})
    config = load_config(overrides=["training.epochs=20", *settings])
    return SimpleNamespace(config=config, prepared=data)


def planner(seconds, start_seconds=0.0, predicting=0.0):
    clock = Clock(seconds, time.perf_counter())
    return Planner(clock, N_VALID, start_seconds, predicting)


def test_more_time_never_means_fewer_epochs():
    found = [fit_epochs(20, 7.0, seconds) or 0 for seconds in range(0, 400, 5)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == 20
    assert all(each >= least_epochs(20) for each in found if each)


def test_with_enough_time_no_number_follows_from_a_speed():
    plans = []
    for speed in (Speed(1e-3, 1e-3), Speed(2e-3, 9e-3)):
        found = planner(1e6)
        ((_, plan),) = found.plan([(network(), speed)], n_groups=4)
        found.predicting = speed.predicting
        plans.append((plan, found.count_mixed()))
    assert plans[0] == plans[1]
    plan, n_mixed = plans[0]
    assert (plan.epochs, plan.valid_documents, plan.is_short) == (20, 5_000, False)
    assert n_mixed == N_VALID


def test_with_little_time_fewer_documents_are_measured_before_epochs_are_lost():
    slow = Speed(training=0.01, predicting=0.1)  # 10 s and 400 s per epoch
    ((estimate, plan),) = planner(2_000).plan([(network(), slow)], n_groups=1)
    assert plan.is_short
    assert plan.valid_documents == planning.LEAST_MEASURED
    assert estimate.epoch_seconds == pytest.approx(40)
    assert plan.epochs == 20
    ((_, plan),) = planner(100).plan([(network(), slow)], n_groups=1)
    assert plan is None


def test_measuring_all_valid_documents_is_not_short():
    speed = Speed(training=0.1, predicting=1e-6)
    (_, plan), _ = planner(2_500).plan([(network(), speed)] * 2, n_groups=4)
    assert (plan.epochs, plan.valid_documents, plan.is_short) == (20, 5_000, False)


def test_mixing_is_planned_for_the_members_that_will_be_mixed():
    found = planner(600, predicting=1e-6)
    found.plan([(network(), Speed(1.0, 0.05))], n_groups=1)  # 800 s for all valid documents
    assert found.seconds_left() > (1 - MIXING_SHARE) * 600 - 5


def test_the_start_of_a_process_takes_epochs():
    speed = Speed(0.01, 1e-6)
    plans = [
        planner(150, seconds).plan([(network(), speed)], n_groups=1)[0][1] for seconds in (0, 50)
    ]
    assert plans[0].epochs - plans[1].epochs == pytest.approx(50 * planning.SAFETY / 10, abs=1)


def test_vectors_that_were_learned_before_need_no_time(small_prepared, tmp_path):
    prepared = Prepared(shutil.copytree(small_prepared.folder, tmp_path / "p"))
    vectors = load_config(overrides=["vectors.dimensions=4", "vectors.epochs=1"]).vectors
    assert not planner(0).has_time_for_vectors(prepared, vectors)
    word_vectors(prepared, vectors)
    assert planner(0).has_time_for_vectors(prepared, vectors)


def test_vectors_are_random_when_there_is_no_time_to_learn_others():
    assert without_learned_vectors(load_config()).vectors.source == "none"
