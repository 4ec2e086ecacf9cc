"""Training without a method."""

import json
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

import setrnn
from setrnn import Limits
from setrnn.config import load_config
from setrnn.data import newsroom
from setrnn.data.prepared import Prepared
from setrnn.data.read import write_examples
from setrnn.data.source import Source
from setrnn.errors import BusyError, ConfigError, ModelError
from setrnn.methods import find_method
from setrnn.metrics import LOWER_IS_BETTER, MEASURES
from setrnn.tagging.learn import automatic
from setrnn.tagging.learn.automatic import Automatic, train_member
from setrnn.tagging.learn.data import read_settings
from setrnn.tagging.learn.member_candidates import Candidate, list_candidates
from setrnn.tagging.learn.planning import FORMAT, Planner, Speed, time_prediction
from setrnn.training.run_folder import only_trainer
from small_taggers import SMALL_OVERRIDES
from tiny_transformers import save_transformer

QUICK = [*SMALL_OVERRIDES, "training.epochs=2", "classical.max_steps=5", "classical.max_pairs=0"]
NAMES = ["br-support", "pcc", "sigmoid", "set-rnn-exact", "sigmoid-2", "set-rnn-exact-2"]


@pytest.fixture(scope="module")
def trained(small_prepared, tmp_path_factory):
    """A model without a limit on time, and its folder."""
    out = tmp_path_factory.mktemp("automatic") / "model"
    arguments = {"budget": 0, "device": "cpu", "settings": QUICK, "keep_run": True}
    tagger = setrnn.train(small_prepared, out=out, **arguments)
    return tagger, out


@pytest.fixture
def no_time(monkeypatch):
    """Every network is far too slow."""
    slow = Speed(training=1e6, predicting=1.0)
    monkeypatch.setattr("setrnn.tagging.learn.automatic.measure_speed", lambda *_: slow)


def test_the_mixture_is_at_least_as_good_as_each_member_by_every_rule(trained):
    tagger, _ = trained
    assert [each["name"] for each in tagger.notes["automatic"]["members"]] == NAMES
    for fitted in tagger.notes["mixture"]["rules"].values():
        sign = -1 if fitted["measure"] in LOWER_IS_BETTER else 1
        assert sign * fitted["mixture"] >= max(sign * each for each in fitted["members"]) - 1e-12


def test_the_model_predicts_by_the_rule_of_its_measure_and_says_so(trained, small_examples):
    tagger, out = trained
    texts = [example.text for example in small_examples["test"]]
    for model in (tagger, setrnn.load(out, "cpu")):
        assert model.rule == "f1"
        assert model.tag(texts) == model.tag(texts, rule="f1", limits=Limits(free=False))
    readme = (out / "README.md").read_text()
    assert all(name in readme for name in NAMES)
    assert "2 epochs" in readme


def test_what_was_trained_before_is_not_trained_again_and_the_bits_are_the_same(
    trained, small_prepared, tmp_path, notes
):
    _, done = trained
    out = tmp_path / "model"
    shutil.copytree(f"{done}.run", f"{out}.run")
    run = tmp_path / "model.run"
    (run / "saved").unlink()
    shutil.rmtree(run / "set-rnn-exact-2")  # it is trained in a process of its own this time
    shutil.rmtree(run / "set-rnn-exact-2.run")
    plan = json.loads((run / "plan.json").read_text())
    del plan["members"]["set-rnn-exact-2"]
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "sigmoid-2.log").touch()  # left by a process that was killed
    arguments = {"out": out, "budget": 0, "jobs": 2, "device": "cpu", "settings": QUICK}
    arguments["keep_run"] = True
    with pytest.raises(ConfigError, match="--resume"):
        setrnn.train(small_prepared, **arguments)
    with pytest.raises(ConfigError, match=r"training.metric=.*instance_f1.*label_f1"):
        setrnn.train(small_prepared, resume=True, measure="label-f1", **arguments)
    setrnn.train(small_prepared, resume=True, **arguments)
    before = [text for text in notes.texts if "trained before" in text]
    assert [text.partition(":")[0] for text in before] == NAMES[:-1]
    assert (out / "model.safetensors").read_bytes() == (done / "model.safetensors").read_bytes()
    assert (run / "saved").exists()
    assert not list(run.glob("*.log"))


def test_a_budget_that_is_used_up_mixes_what_is_finished(trained, small_prepared, tmp_path):
    out, arguments = tmp_path / "model", {"budget": 1e-4, "device": "cpu", "settings": QUICK}
    run = Path(shutil.copytree(f"{trained[1]}.run", f"{out}.run"))
    (run / "saved").unlink()
    shutil.rmtree(run / "sigmoid-2")  # its run is still there
    for name in ("set-rnn-exact-2", "set-rnn-exact-2.run"):
        shutil.rmtree(run / name)
    setrnn.train(small_prepared, out=out, resume=True, **arguments)
    automatic = setrnn.load(out).notes["automatic"]
    assert [each["name"] for each in automatic["members"]] == NAMES[:-1]
    assert automatic["left_out"] == {"set-rnn-exact-2": "no time was left"}


def test_the_members_are_removed_once_the_mixture_is_written(trained, small_prepared, tmp_path):
    out = tmp_path / "model"
    shutil.copytree(f"{trained[1]}.run", f"{out}.run")
    (tmp_path / "model.run" / "saved").unlink()
    arguments = {"budget": 0, "device": "cpu", "settings": QUICK}
    tagger = setrnn.train(small_prepared, out=out, resume=True, **arguments)
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    texts = ["The ski race was cancelled."]
    assert tagger.tag(texts) == setrnn.load(out, "cpu").tag(texts)


def test_a_network_is_not_trained_among_the_members_of_a_mixture(trained, small_prepared):
    _, out = trained
    with pytest.raises(ModelError, match="without a method"):
        setrnn.train(small_prepared, "sigmoid", out=out, device="cpu", settings=QUICK)


def test_networks_that_are_too_slow_are_left_out(no_time, small_prepared, notes):
    tagger = setrnn.train(small_prepared, budget=1, device="cpu", settings=QUICK)
    automatic = tagger.notes["automatic"]
    assert [each["name"] for each in automatic["members"]] == NAMES[:2]
    assert list(automatic["left_out"]) == NAMES[2:]
    assert any("--budget" in hint for hint in automatic["better"])
    assert not any("is left out" in text for text in notes.texts), "the summary says it once"


def test_without_documents_to_weigh_members_on_no_network_is_trained(
    small_examples, tmp_path, monkeypatch, notes
):
    """That is so if no document has all its labels; members then count the same."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "data"
    for name in ("train", "valid"):
        rows = (replace(each, complete=False) for each in small_examples[name])
        write_examples(rows, data / f"{name}.jsonl")
    arguments = {"out": tmp_path / "model", "device": "cpu", "settings": QUICK}
    for resume in (False, True):
        tagger = setrnn.train(data, budget=0, resume=resume, **arguments)
        automatic = tagger.notes["automatic"]
        assert [each["name"] for each in automatic["members"]] == NAMES[:2]
        assert "all their labels" in automatic["better"][-1]
        assert sum("no networks are trained" in text for text in notes.warnings) == 1 + resume
    assert setrnn.load(tmp_path / "model").tag(["The ski race was cancelled."])[0].labels


def test_a_budget_that_is_used_up_at_once_still_gives_a_model(small_prepared):
    tagger = setrnn.train(small_prepared, budget=1e-6, device="cpu", settings=QUICK)
    assert [each["name"] for each in tagger.notes["automatic"]["members"]] == NAMES[:1]


def test_a_folder_that_is_not_ours_is_refused(small_prepared, tmp_path):
    (tmp_path / "m.run").mkdir()
    (tmp_path / "m.run" / "plan.json").write_text("[]")
    with pytest.raises(ModelError, match="damaged"):
        setrnn.train(small_prepared, out=tmp_path / "m", settings=QUICK)
    (tmp_path / "m.run" / "thesis.txt").write_text("precious")
    with pytest.raises(ModelError, match="not a run"):
        setrnn.train(small_prepared, out=tmp_path / "m", settings=QUICK)
    assert (tmp_path / "m.run" / "thesis.txt").exists()


@pytest.mark.parametrize("wrong", [{"budget": -1}, {"jobs": 0}, {"measure": "f1"}])
def test_wrong_arguments_are_refused_before_the_data_is_read(wrong):
    with pytest.raises(ConfigError):
        setrnn.train("no-such-data.jsonl", **wrong)


def test_an_unfinished_training_is_refused_before_the_data_is_read(tmp_path):
    (tmp_path / "m.run").mkdir()
    (tmp_path / "m.run" / "plan.json").write_text(json.dumps({"format": FORMAT}))
    with pytest.raises(ConfigError, match="--resume"):
        setrnn.train("no-such-data.jsonl", out=tmp_path / "m", device="cpu")


def test_nobody_else_trains_in_the_run_of_a_member(small_prepared, tmp_path, monkeypatch):
    def train(prepared, method, config, options, place):
        with pytest.raises(BusyError), only_trainer(Path(f"{place}.run")):
            pass
        used.append(options)

    used = []
    monkeypatch.setattr(automatic, "train_uncalibrated", train)
    candidate = Candidate("sigmoid", find_method("sigmoid"), load_config())
    place = tmp_path / "sigmoid"
    train_member(candidate, small_prepared, place, "cpu", "f1", 100.0, print)
    assert used[0].max_seconds < 0  # it should have ended in 1970
    assert used[0].run_folder == tmp_path / "sigmoid.run"


@pytest.fixture
def only(monkeypatch):
    """Let few candidates become members, so that a training is quick."""

    def choose(*names):
        chosen = ("br-support", *names)
        monkeypatch.setattr(
            "setrnn.tagging.learn.automatic.list_candidates",
            lambda *given: [each for each in list_candidates(*given) if each.name in chosen],
        )

    return choose


def test_word_vectors_are_chosen_once_and_the_plan_keeps_the_choice(
    small_prepared, tmp_path, monkeypatch, only, notes
):
    only("sigmoid", "set-rnn-exact-2")
    answers = iter([False, True, True, True])
    monkeypatch.setattr(Planner, "has_time_for_vectors", lambda *_: next(answers))
    settings = [each for each in QUICK if not each.startswith("vectors.source")]
    out = tmp_path / "m"
    arguments = {"budget": 0, "device": "cpu", "settings": settings, "out": out}
    setrnn.train(small_prepared, keep_run=True, **arguments)
    networks = [tmp_path / "m.run" / name for name in ("sigmoid", "set-rnn-exact-2")]
    assert [setrnn.load(each).config.vectors.source for each in networks] == ["none", "none"]
    shutil.rmtree(networks[1])  # its run is there, and fits the same vectors only
    (tmp_path / "m.run" / "saved").unlink()
    setrnn.train(small_prepared, resume=True, **arguments)
    assert not any("left out" in text for text in notes.texts)


def test_the_prepared_folder_is_opened_once_for_all_members(small_prepared, monkeypatch, only):
    only("sigmoid")
    opened, check = [], Prepared._refuse_damage
    monkeypatch.setattr(
        Prepared, "_refuse_damage", lambda self, *how: (opened.append(1), check(self, *how))
    )
    setrnn.train(small_prepared, budget=0, device="cpu", settings=QUICK)
    assert len(opened) == 1


def test_running_out_of_memory_while_measuring_leaves_out_the_network(
    small_prepared, monkeypatch, only
):
    only("sigmoid")
    errors = iter([RuntimeError("can't allocate memory"), RuntimeError("a bug")])

    def fail(*_):
        raise next(errors)

    monkeypatch.setattr("setrnn.tagging.learn.automatic.measure_speed", fail)
    tagger = setrnn.train(small_prepared, budget=5, device="cpu", settings=QUICK)
    assert "memory" in tagger.notes["automatic"]["left_out"]["sigmoid"]
    with pytest.raises(RuntimeError, match="a bug"):
        setrnn.train(small_prepared, budget=5, device="cpu", settings=QUICK)


def test_the_threads_of_a_network_do_not_depend_on_the_number_of_jobs(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("setrnn.model.devices.n_cores", lambda: 8)
    asked = read_settings("default", None, (), None, None)
    found = [
        Automatic(Source("x"), asked, None, "cpu", False, None, 0.0, n_jobs, print)
        for n_jobs in (1, 2, 4)
    ]
    assert {each.n_threads for each in found} == {2}


def test_members_with_a_transformer_are_timed_on_their_own_tokens(tmp_path, monkeypatch, only):
    only("transformer-sigmoid")
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "setrnn.tagging.learn.automatic.measure_speed",
        lambda *_: Speed(training=1e-4, predicting=1e-4),
    )
    timed = []

    def note(system, prepared):
        timed.append(prepared.text_settings.tokenizer == "words")
        return time_prediction(system, prepared)

    monkeypatch.setattr("setrnn.tagging.learn.automatic.time_prediction", note)
    examples = islice(newsroom.examples("train"), 100)
    write_examples(examples, tmp_path / "few.jsonl")
    folder = save_transformer(tmp_path / "tiny")
    settings = [*QUICK, "training.epochs=1", "text.max_tokens=16", f"encoder.path={folder}"]
    setrnn.train(
        tmp_path / "few.jsonl", budget=60, device="cpu", preset="transformer", settings=settings
    )
    assert timed == [True, False]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_measure_chooses_the_rule(small_prepared, measure):
    tagger = setrnn.train(small_prepared, "br", measure=measure.replace("_", "-"), settings=QUICK)
    rules = {"instance_f1": "f1", "subset_accuracy": "set", "hamming_loss": "hamming"}
    assert tagger.rule == rules.get(measure, measure.replace("_", "-"))
    # 60 valid documents give no thresholds: without them, the model predicts by f1.
    needs_thresholds = measure in ("label_f1", "micro_f1")
    assert tagger.rule_or_own(None) == ("f1" if needs_thresholds else tagger.rule)
