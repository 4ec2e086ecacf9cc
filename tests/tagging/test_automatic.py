"""Training without a method."""

import json
import shutil

import numpy as np
import pytest

import setrnn
from setrnn.config import load_config
from setrnn.data.example import Example
from setrnn.data.formats import write_examples
from setrnn.errors import ConfigError, ModelError
from setrnn.metrics import LOWER_IS_BETTER, MEASURES
from setrnn.progress import Note
from setrnn.tagging.planning import fit_epochs, least_epochs, list_candidates
from setrnn.training.speed import Speed
from small_taggers import SMALL_OVERRIDES, with_thresholds

QUICK = [*SMALL_OVERRIDES, "training.epochs=2", "classical.max_steps=5", "classical.max_pairs=0"]
NAMES = ["br-support", "pcc", "set-rnn-exact", "sigmoid", "set-rnn-exact-2", "sigmoid-2"]


@pytest.fixture(scope="module")
def trained(small_prepared, tmp_path_factory):
    """A model without a limit on time, and its folder."""
    out = tmp_path_factory.mktemp("automatic") / "model"
    tagger = setrnn.train(small_prepared, out=out, budget=0, device="cpu", settings=QUICK)
    return tagger, out


@pytest.fixture
def no_time(monkeypatch):
    """Every network is far too slow."""
    slow = Speed(training=1e6, measuring=1.0)
    monkeypatch.setattr("setrnn.tagging.automatic.measure_speed", lambda *_: slow)


def collect(notes):
    return lambda event: notes.append(event) if isinstance(event, Note) else None


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
        assert model.tag(texts) == model.tag(texts, rule="f1")
    readme = (out / "README.md").read_text()
    assert all(name in readme for name in NAMES)
    assert "--set training.epochs=2" in readme


def test_a_description_that_a_person_wrote_is_kept(trained, tmp_path):
    tagger, _ = trained
    tagger.save(tmp_path / "m")
    tagger.save(tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text("mine")
    tagger.save(tmp_path / "m")
    assert (tmp_path / "m" / "README.md").read_text() == "mine"


def test_what_was_trained_before_is_not_trained_again_and_the_bits_are_the_same(
    trained, small_prepared, tmp_path
):
    _, done = trained
    out = tmp_path / "model"
    shutil.copytree(f"{done}.run", f"{out}.run")
    run = tmp_path / "model.run"
    (run / "saved").unlink()
    for name in NAMES[-2:]:  # they are trained in processes of their own this time
        shutil.rmtree(run / name)
        shutil.rmtree(run / f"{name}.run")
    plan = json.loads((run / "plan.json").read_text())
    del plan["epochs"]["sigmoid-2"]
    (run / "plan.json").write_text(json.dumps(plan))
    arguments = {"out": out, "budget": 0, "jobs": 2, "device": "cpu", "settings": QUICK}
    with pytest.raises(ConfigError, match="--resume"):
        setrnn.train(small_prepared, **arguments)
    with pytest.raises(ConfigError, match="measure"):
        setrnn.train(small_prepared, resume=True, measure="label-f1", **arguments)
    notes = []
    setrnn.train(small_prepared, resume=True, on_progress=collect(notes), **arguments)
    before = [each.text for each in notes if "trained before" in each.text]
    assert [text.partition(":")[0] for text in before] == NAMES[:-2]
    assert (out / "model.safetensors").read_bytes() == (done / "model.safetensors").read_bytes()
    assert (run / "saved").exists()


def test_a_network_is_not_trained_among_the_members_of_a_mixture(trained, small_prepared):
    _, out = trained
    with pytest.raises(ModelError, match="without a method"):
        setrnn.train(small_prepared, "sigmoid", out=out, device="cpu", settings=QUICK)


def test_networks_that_are_too_slow_are_left_out(no_time, small_prepared):
    notes = []
    tagger = setrnn.train(
        small_prepared, budget=1, device="cpu", settings=QUICK, on_progress=collect(notes)
    )
    automatic = tagger.notes["automatic"]
    assert [each["name"] for each in automatic["members"]] == NAMES[:2]
    assert list(automatic["left_out"]) == NAMES[2:]
    assert any("--budget" in hint for hint in automatic["better"])
    assert any("set-rnn-exact is left out" in each.text for each in notes)


def test_a_budget_that_is_used_up_at_once_still_gives_a_model(small_prepared):
    tagger = setrnn.train(small_prepared, budget=1e-6, device="cpu", settings=QUICK)
    assert [each["name"] for each in tagger.notes["automatic"]["members"]] == NAMES[:1]


def test_a_finished_training_that_is_resumed_keeps_its_calibration(trained, small_prepared):
    _, out = trained
    calibrated = with_thresholds(setrnn.load(out)).save_calibration(out)
    setrnn.train(small_prepared, out=out, resume=True, budget=0, device="cpu", settings=QUICK)
    assert setrnn.load(out).version == calibrated.version


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


def test_more_time_never_means_fewer_epochs():
    found = [fit_epochs(20, 7.0, seconds) or 0 for seconds in range(0, 400, 5)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == 20
    assert all(each >= least_epochs(20) for each in found if each)


def test_a_transformer_stands_beside_the_gru():
    words = load_config()
    pretrained = load_config("transformer", overrides=["encoder.path=folder"])
    found = list_candidates(words, pretrained, is_on_gpu=True)
    assert len({each.name for each in found}) == len(found)
    assert {each.method for each in found if each.is_pretrained} == {
        each.method for each in found if each.is_network and not each.is_pretrained
    }


def write_documents(file, texts_and_labels):
    examples = [
        Example(str(n), text, labels, ()) for n, (text, labels) in enumerate(texts_and_labels)
    ]
    write_examples(examples, file)
    return file


@pytest.fixture
def warn(tmp_path, monkeypatch, no_time):
    """Train on a few documents; return the warnings and the tagger."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))

    def run(documents):
        notes = []
        file = write_documents(tmp_path / "few.jsonl", documents)
        tagger = setrnn.train(
            file, budget=1, device="cpu", settings=QUICK, on_progress=collect(notes)
        )
        return [each.text for each in notes if each.is_warning], tagger

    return run


def test_a_model_that_learned_nothing_is_not_silent(warn):
    random = np.random.default_rng(0)
    noise = [(f"word{random.integers(50)} number{n}", (f"l{n % 7}",)) for n in range(160)]
    texts, _ = warn(noise)
    assert any("learned little or nothing" in text for text in texts)


def test_a_model_of_one_label_per_document_is_sensible(warn):
    texts, tagger = warn([(f"topic{n % 4} copy{n}", (f"l{n % 4}",)) for n in range(160)])
    assert not texts
    assert tagger.tag(["topic3"])[0].labels == ("l3",)


def test_few_documents_are_enough_for_a_model(warn):
    texts, tagger = warn([(f"topic{n % 2} copy{n}", (f"l{n % 2}",)) for n in range(24)])
    assert any("no networks" in text for text in texts)
    assert tagger.tag(["topic1"])[0].labels == ("l1",)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_measure_chooses_the_rule(small_prepared, measure):
    tagger = setrnn.train(small_prepared, "br", measure=measure.replace("_", "-"), settings=QUICK)
    rules = {"instance_f1": "f1", "subset_accuracy": "set", "hamming_loss": "hamming"}
    assert tagger.rule == rules.get(measure, measure.replace("_", "-"))
    # 60 valid documents give no thresholds: without them, the model predicts by f1.
    needs_thresholds = measure in ("label_f1", "micro_f1")
    assert tagger.rule_or_own(None) == ("f1" if needs_thresholds else tagger.rule)
