"""The search for settings: on measures whose best is known, and on tiny systems."""

import json
import math
import sys
from dataclasses import replace

import pytest

from setrnn.comparison.run import Task
from setrnn.comparison.tuning import SPACES, Between, OneOf, Tuned, find_space, search, tune_method
from setrnn.config import Config, TrainingSettings
from setrnn.errors import ConfigError, MissingExtraError, StoppedError
from setrnn.methods import METHODS
from setrnn.plain_settings import load_config
from setrnn.tagging.evaluating import evaluate
from setrnn.training.schedule import choose_batch_size
from setrnn.training.start import train_system
from small_taggers import SMALL, SMALL_OVERRIDES, trained_tagger

SPACE = {
    "training.learning_rate": Between(1e-4, 1e-2, is_log=True),
    "training.batch_size": OneOf((32, 128)),
    "model.dropout": Between(0.0, 0.6, step=0.1),
}


def peak(config, on_share=None):
    """A measure whose best is a learning rate of .001, batches of 128 and a dropout of .4."""
    rate = abs(math.log10(config.training.learning_rate) + 3)
    return 1 - rate - abs(config.model.dropout - 0.4) - (config.training.batch_size != 128)


class Watched:
    """A measure that keeps what it was asked, and may be stopped or fail on the way."""

    def __init__(self, stop_at=None, fail_at=()):
        self.asked, self.stop_at, self.fail_at = [], stop_at, fail_at

    def __call__(self, config, on_share):
        if len(self.asked) == self.stop_at:
            raise KeyboardInterrupt
        self.asked.append(config)
        if len(self.asked) - 1 in self.fail_at:
            raise RuntimeError("out of\nmemory")
        return peak(config)


GIVEN = Config(training=TrainingSettings(learning_rate=9e-3, batch_size=32))


def tune(measure, folder, n_trials=20, config=GIVEN, space=SPACE, identity="it") -> Tuned:
    return search(measure, config, space, n_trials, folder / "tuning" / "m.journal", identity)


def timeless(trials):
    return [{**trial, "seconds": None} for trial in trials]


def test_the_best_of_the_space_is_nearly_found(tmp_path):
    tuned = tune(peak, tmp_path, n_trials=25)
    assert peak(tuned.config) == max(trial["value"] for trial in tuned.trials) > 0.8 > peak(GIVEN)
    assert tuned.config.training.batch_size == 128


def test_there_are_as_many_trials_as_asked_for_and_all_lie_in_the_space(tmp_path):
    measure = Watched()
    trials = tune(measure, tmp_path, n_trials=8).trials
    assert len(trials) == len(measure.asked) == 8
    assert [trial["number"] for trial in trials] == list(range(8))
    for trial in trials:
        assert set(trial) == {"number", "settings", "value", "seconds", "error"}
        assert all(SPACE[key].contains(value) for key, value in trial["settings"].items())


def test_the_settings_as_given_are_the_first_trial(tmp_path):
    outside = replace(GIVEN, training=replace(GIVEN.training, batch_size=77, learning_rate=5.0))
    measure = Watched()
    trials = tune(measure, tmp_path, n_trials=3, config=outside).trials
    assert measure.asked[0] == outside
    assert trials[0]["settings"] == {
        "training.learning_rate": 5.0,
        "training.batch_size": 77,
        "model.dropout": 0.3,
    }
    assert trials[0]["value"] == peak(outside)


def test_nothing_is_changed_where_the_settings_as_given_are_the_best(tmp_path):
    best = load_config(
        overrides=["model.dropout=0.4", "training.batch_size=128", "training.learning_rate=0.001"]
    )
    assert tune(peak, tmp_path, n_trials=5, config=best).config == best


def test_other_settings_than_those_searched_stay(tmp_path):
    config = replace(GIVEN, seed=3, model=replace(GIVEN.model, encoder_units=64))
    tuned = tune(peak, tmp_path, n_trials=8, config=config).config
    assert (tuned.seed, tuned.model.encoder_units) == (3, 64)


def test_the_same_seed_gives_the_same_trials_and_another_one_others(tmp_path):
    first, again, other = (
        timeless(tune(peak, tmp_path / name, 6, replace(GIVEN, seed=seed)).trials)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert first == again
    assert first[1:] != other[1:]


@pytest.mark.parametrize("stop_at", [0, 6])
def test_a_stopped_search_continues_as_if_it_had_not_been_stopped(tmp_path, stop_at):
    whole = tune(peak, tmp_path / "whole", n_trials=8)
    stopped, rest = Watched(stop_at=stop_at), Watched()
    with pytest.raises(KeyboardInterrupt):
        tune(stopped, tmp_path, n_trials=8)
    tuned = tune(rest, tmp_path, n_trials=8)
    assert (len(stopped.asked), len(rest.asked)) == (stop_at, 8 - stop_at)
    assert timeless(tuned.trials) == timeless(whole.trials)
    assert tuned.config == whole.config


def test_a_line_cut_in_half_by_a_kill_does_not_spoil_the_journal(tmp_path):
    tune(peak, tmp_path, n_trials=4)
    with (tmp_path / "tuning" / "m.journal").open("a") as stream:
        stream.write('{"op_code": 4, "wor')
    measure = Watched()
    assert len(tune(measure, tmp_path, n_trials=6).trials) == 6
    assert len(measure.asked) == 2
    assert len(tune(Watched(stop_at=0), tmp_path, n_trials=6).trials) == 6


def test_the_journal_is_json(tmp_path):
    tune(peak, tmp_path, n_trials=2)
    lines = (tmp_path / "tuning" / "m.journal").read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_fewer_trials_than_before_are_the_first_of_them(tmp_path):
    many = tune(peak, tmp_path, n_trials=8)
    few = tune(Watched(stop_at=0), tmp_path, n_trials=3)
    assert few.trials == many.trials[:3]
    assert peak(few.config) == max(trial["value"] for trial in few.trials)


def test_trials_of_another_search_do_not_count(tmp_path):
    tune(peak, tmp_path, n_trials=5)
    measure = Watched()
    tune(measure, tmp_path, n_trials=5, identity="other")
    assert len(measure.asked) == 5


def test_a_trial_that_fails_is_kept_and_passed_over(tmp_path):
    measure = Watched(fail_at=(0, 2))
    tuned = tune(measure, tmp_path, n_trials=5)
    assert len(measure.asked) == len(tuned.trials) == 5
    failed = [trial["number"] for trial in tuned.trials if trial["value"] is None]
    assert failed == [0, 2]
    assert tuned.trials[2]["error"] == "RuntimeError: out of memory"
    assert tuned.trials[1]["error"] is None
    assert peak(tuned.config) == max(trial["value"] for trial in tuned.trials if trial["value"])
    assert len(tune(Watched(stop_at=0), tmp_path, n_trials=5).trials) == 5


def test_where_all_trials_fail_the_settings_stay(tmp_path):
    tuned = tune(Watched(fail_at=range(3)), tmp_path, n_trials=3)
    assert tuned.config == GIVEN
    assert all(trial["error"] for trial in tuned.trials)


def test_a_search_that_is_asked_to_stop_stops(tmp_path):
    def stopped(config, on_share):
        raise StoppedError("Stopped.")

    with pytest.raises(StoppedError):
        tune(stopped, tmp_path)


def test_of_the_hamming_loss_the_lowest_is_best(tmp_path):
    config = replace(GIVEN, training=replace(GIVEN.training, metric="hamming_loss"))
    tuned = tune(lambda trial, on_share: -peak(trial), tmp_path, n_trials=10, config=config)
    assert -peak(tuned.config) == min(trial["value"] for trial in tuned.trials)
    assert -peak(tuned.config) < -peak(config)


def test_progress_rises_from_trial_to_trial(tmp_path):
    seen = []

    def measure(config, on_share):
        on_share(0.5)
        return 0.0

    search(measure, GIVEN, SPACE, 2, tmp_path / "j", "it", seen.append)
    assert [(event.detail, event.share) for event in seen] == [
        ("trial 1 of 2", 0.0),
        ("trial 1 of 2", 0.25),
        ("trial 2 of 2", 0.5),
        ("trial 2 of 2", 0.75),
    ]


def test_at_least_one_trial_is_asked_for(tmp_path):
    with pytest.raises(ConfigError, match="--tune must be at least 1"):
        tune(peak, tmp_path, n_trials=0)


def test_without_optuna_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"--tune needs optuna.* 'setrnn\[tune\]'"):
        tune(peak, tmp_path)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_space_that_holds_the_defaults(name):
    for preset in ("default", "paper"):
        config = load_config(preset)
        if not config.training.batch_size:  # chosen from the data before any search
            size = choose_batch_size(10_000)
            config = replace(config, training=replace(config.training, batch_size=size))
        values = {key: key.split(".") for key in find_space(METHODS[name], config)}
        for key, (group, setting) in values.items():
            assert find_space(METHODS[name], config)[key].contains(
                getattr(getattr(config, group), setting)
            )


def test_a_transformer_is_searched_by_its_own_learning_rate():
    config = load_config("transformer", overrides=["encoder.path=x"])
    assert find_space(METHODS["set-rnn"], config) is SPACES["transformer"]
    assert find_space(METHODS["br"], config) is SPACES["classical"]


def test_a_classical_system_is_chosen_on_all_of_valid(small_prepared, tmp_path):
    tuned = tune_method(Task(small_prepared.folder, tmp_path, "br", 0, Config()), 2)
    tagger = trained_tagger(small_prepared, "br", Config())
    measured = evaluate(tagger, small_prepared, split="valid").scores.instance_f1
    assert tuned.trials[0]["value"] == pytest.approx(measured)
    assert (tmp_path / "tuning" / "br.journal").is_file()
    assert tuned.trials[1]["settings"] != tuned.trials[0]["settings"]


def test_a_network_is_chosen_by_its_best_epoch(small_prepared, tmp_path, monkeypatch):
    kept, shares = [], []

    def train(*arguments):
        kept.append(train_system(*arguments))
        return kept[-1]

    monkeypatch.setattr("setrnn.comparison.tuning.train_system", train)
    config = replace(SMALL, training=replace(SMALL.training, epochs=2))
    task = Task(small_prepared.folder, tmp_path, "sigmoid", 0, config, "cpu")
    tuned = tune_method(task, 1, lambda event: shares.append(event.share))
    assert tuned.trials[0]["value"] == max(row["instance_f1"] for row in kept[0].notes["epochs"])
    assert tuned.config == config
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_without_a_valid_part_nothing_can_be_chosen(small_prepared, tmp_path, monkeypatch):
    monkeypatch.setitem(small_prepared.description, "n_documents", {"train": 300, "test": 60})
    monkeypatch.setattr("setrnn.comparison.tuning.Prepared", lambda folder: small_prepared)
    with pytest.raises(ConfigError, match="--tune chooses on a valid part"):
        tune_method(Task(small_prepared.folder, tmp_path, "br", 0, Config()), 2)


def test_a_trial_has_the_budget_of_a_run(small_prepared, tmp_path):
    config = load_config(overrides=[*SMALL_OVERRIDES, "training.epochs=500"])
    task = Task(small_prepared.folder, tmp_path, "sigmoid", 0, config, "cpu", budget_seconds=0.5)
    (trial,) = tune_method(task, 1).trials
    assert trial["error"] is None
    assert trial["seconds"] < 20
