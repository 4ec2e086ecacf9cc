"""What fits the time: epochs and mixed documents."""

import shutil
import time

import pytest

from setrnn.config import load_config
from setrnn.data.prepared import Prepared
from setrnn.data.vectors import word_vectors
from setrnn.tagging.learn import planning
from setrnn.tagging.learn.planning import (
    MIXING_SHARE,
    TIMED_DOCUMENTS,
    MemberPlan,
    Planner,
    Speed,
    fit_epochs,
    least_epochs,
    time_prediction,
)

N_TRAIN, N_VALID = 1_000, 4_000


SETTINGS = load_config(overrides=["training.epochs=20"]).training


def planner(seconds, start_seconds=0.0, predicting=0.0):
    return Planner(seconds, time.perf_counter(), N_TRAIN, N_VALID, start_seconds, predicting)


def plan(planner, speed, n_groups=1, names=("one",)):
    return planner.plan(dict.fromkeys(names, (SETTINGS, speed)), n_groups)["one"]


def test_more_time_never_means_fewer_epochs():
    found = [fit_epochs(20, 7.0, seconds) for seconds in range(0, 400, 5)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == 20
    assert all(each >= least_epochs(20) for each in found if each)


def test_with_enough_time_no_number_follows_from_a_speed():
    plans = []
    for speed in (Speed(1e-3, 1e-3), Speed(2e-3, 9e-3)):
        found = planner(1e6)
        made = plan(found, speed, n_groups=4)
        found.predicting = speed.predicting
        plans.append((made, found.count_mixed()))
    assert plans == [(MemberPlan(20), N_VALID)] * 2


def test_with_little_time_there_are_fewer_epochs_or_none():
    slow = Speed(training=0.03, predicting=0.01)  # 30 s and 40 s per epoch, 200 s to mix all
    full = plan(planner(1_900), slow)
    short = plan(planner(1_000), slow)
    assert full == MemberPlan(20)
    assert short.is_short
    assert short.epochs * 70 <= 1_000 < full.epochs * 70
    assert "4 epochs would take about 4.7 minutes" in plan(planner(100), slow)


def test_mixing_is_planned_for_the_members_that_will_be_mixed():
    found = planner(600, predicting=1e-6)
    plan(found, Speed(1.0, 0.05))  # 800 s for all valid documents
    assert found.left_to_train() > (1 - MIXING_SHARE) * 600 - 5


def test_the_start_of_a_process_takes_epochs():
    speed = Speed(0.01, 1e-6)
    plans = [plan(planner(150, seconds), speed) for seconds in (0, 50)]
    assert plans[0].epochs - plans[1].epochs == pytest.approx(50 * planning.SAFETY / 10, abs=1)


def test_vectors_that_were_learned_before_need_no_time(small_prepared, tmp_path):
    prepared = Prepared(shutil.copytree(small_prepared.folder, tmp_path / "p"))
    vectors = load_config(overrides=["vectors.dimensions=4", "vectors.epochs=1"]).vectors
    assert not planner(0).has_time_for_vectors(prepared, vectors)
    word_vectors(prepared, vectors)
    assert planner(0).has_time_for_vectors(prepared, vectors)


class SlowAtFirst:
    """A system whose first prediction loads something."""

    def __init__(self):
        self.sizes = []

    def candidates(self, tokens, n_sets):
        if not self.sizes:
            time.sleep(0.1)
        self.sizes.append(len(tokens))

    def marginals(self, tokens, candidates):
        return None


def test_what_only_the_first_prediction_needs_is_not_counted(small_prepared):
    system = SlowAtFirst()
    seconds = time_prediction(system, small_prepared)
    assert system.sizes[-1] == min(TIMED_DOCUMENTS, len(small_prepared.split("valid")))
    assert 0 < seconds * system.sizes[-1] < 0.1
