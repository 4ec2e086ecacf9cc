from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import setrnn
from setrnn.cli.tables import show_members
from setrnn.config import Config, MixtureConfig, TextSettings, from_dict
from setrnn.data.cache import prepare
from setrnn.data.labels import LabelVocabulary
from setrnn.errors import ConfigError, DataError, ModelError
from setrnn.metrics import LOWER_IS_BETTER
from setrnn.models.card import write_readme
from setrnn.models.folder import load_model, save_model
from setrnn.systems.relabelled import RelabelledSystem
from setrnn.systems.rules import RULES
from setrnn.tagging.documents import example_batches
from setrnn.tagging.learn.mix import join
from setrnn.tagging.learn.mixture_weights import collect, fit_likelihood, label_log_probs
from small_taggers import SMALL, trained_tagger

SET_RULES = [name for name, rule in RULES.items() if rule.source == "sets"]


@pytest.fixture(scope="module")
def valid(small_examples):
    """The documents to fit on: enough to calibrate too."""
    return [*small_examples["valid"], *small_examples["test"]]


@pytest.fixture(scope="module")
def members(taggers):
    return [taggers[name] for name in ("br", "br-support", "set-rnn-exact")]


@pytest.fixture(scope="module")
def calibrated(members, valid):
    return [setrnn.calibrate(member, valid).tagger for member in members]


@pytest.fixture(scope="module")
def mixed(members, valid):
    return setrnn.mix(members, valid)


@pytest.fixture(scope="module")
def other_br(small_examples, tmp_path_factory):
    """A model with the same labels in another order, and another tokenizer."""
    examples = [*small_examples["train"], *small_examples["train"][:100]]
    folder = tmp_path_factory.mktemp("other") / "prepared"
    text = TextSettings(max_words=20, min_count=4)
    prepared = prepare({"train": lambda: iter(examples)}, folder, "other", text, {})
    return trained_tagger(prepared, "br", replace(SMALL, text=text))


@pytest.mark.parametrize("rule", SET_RULES)
def test_on_the_documents_it_is_fitted_on_no_member_is_better(mixed, calibrated, valid, rule):
    """And its notes have the same scores as evaluate gives."""
    found = mixed.notes["mixture"]["rules"][rule]
    evaluation = setrnn.evaluate(mixed, valid, rule)
    assert getattr(evaluation.scores, found["measure"]) == pytest.approx(found["mixture"])
    for member, score in zip(calibrated, found["members"], strict=True):
        own = getattr(setrnn.evaluate(member, valid, rule).scores, found["measure"])
        assert own == pytest.approx(score)
    best = (min if found["measure"] in LOWER_IS_BETTER else max)(found["members"])
    is_better = found["mixture"] <= best if rule == "hamming" else found["mixture"] >= best
    assert is_better


@pytest.mark.parametrize("rule", SET_RULES)
def test_held_out_scores_of_members_differ_only_by_thresholds(mixed, rule):
    found = mixed.notes["mixture"]["rules"][rule]
    is_same = found["members_held_out"] == pytest.approx(found["members"])
    assert is_same == (rule not in ("micro-f1", "label-f1"))


def test_only_held_out_scores_are_shown(mixed, capsys):
    notes = mixed.notes["mixture"]
    values = {"mixture": 0.11, "members": [0.12, 0.13], "held_out": 0.21}
    values |= {"members_held_out": [0.22, 0.23]}
    rules = {name: {**each, **values} for name, each in notes["rules"].items()}
    members = ["one", "other"]
    likelihood = {"members": [-1.0, -2.0], "mixture": -0.5}
    show_members({**notes, "members": members, "rules": rules, "log_likelihood": likelihood})
    said = capsys.readouterr().out
    assert all(each in said for each in ("0.210", "0.220", "0.230", "held out"))
    assert not any(each in said for each in ("0.110", "0.120", "0.130"))
    readme = write_readme(
        replace(mixed, notes={**mixed.notes, "mixture": {**notes, "rules": rules}})
    )
    assert "held out" in readme
    assert "0.210" in readme
    assert "0.110" not in readme


def test_the_likelihood_is_at_least_that_of_the_best_member(mixed, members, valid):
    found = mixed.notes["mixture"]["log_likelihood"]
    own = [setrnn.evaluate(each, valid).set_log_likelihood for each in members]
    assert found["members"] == pytest.approx(own)
    mixture = setrnn.evaluate(mixed, valid).set_log_likelihood
    assert found["mixture"] == pytest.approx(mixture)
    assert mixture >= max(own)


def test_the_order_of_the_members_changes_nothing_and_copies_share_the_weight(taggers, valid):
    members, few = [taggers[name] for name in ("br", "br-support", "pcc")], valid[:60]
    given = (members, members[::-1], [*members, members[0]])
    one, other, same = (setrnn.mix(each, few).notes["mixture"] for each in given)
    assert other["weights"][::-1] == pytest.approx(one["weights"], abs=1e-3)
    assert sum(same["weights"][::3]) == pytest.approx(one["weights"][0], abs=5e-3)
    for rule, fitted in one["rules"].items():
        for each in (other, same):
            assert each["rules"][rule]["mixture"] == pytest.approx(fitted["mixture"], abs=0.02)


def test_members_with_different_tokenizers_and_label_orders_mix(
    taggers, other_br, small_prepared, valid, test_texts, tmp_path
):
    members = [taggers["pcc"], other_br]
    assert members[0].labels.names != members[1].labels.names
    mixture = setrnn.mix(members, valid)
    assert mixture.is_calibrated
    assert len(mixture.encoder.parts) == 2
    assert isinstance(mixture.system.systems[1], RelabelledSystem)
    mixture.save(tmp_path / "model")
    loaded = setrnn.load(tmp_path / "model")
    assert (loaded.config, loaded.notes) == (mixture.config, mixture.notes)
    for rule in SET_RULES:
        assert loaded.tag(test_texts, rule) == mixture.tag(test_texts, rule)
    for given, kept in zip(members, loaded.members, strict=True):
        assert kept.labels.names == given.labels.names
        assert kept.tag(test_texts, top=3) == given.tag(test_texts, top=3)
    swapped = setrnn.mix(members[::-1], valid)
    for one, other in zip(swapped.tag(test_texts), mixture.tag(test_texts), strict=True):
        assert set(one.labels) == set(other.labels)
        assert one.probability == pytest.approx(other.probability, abs=1e-3)
    with pytest.raises(DataError, match="vocabulary"):
        setrnn.evaluate(mixture, small_prepared)


def test_each_tokenizer_of_a_model_folder_is_sealed(taggers, other_br, tmp_path):
    folder = tmp_path / "model"
    mixture = join([taggers["pcc"], other_br])
    mixture.save(folder)
    mixture.save(folder)  # again: its files are known
    (folder / "tokenizer-1.json").write_text("{}")
    with pytest.raises(ModelError, match="tokenizer-1"):
        setrnn.load(folder)
    (folder / "tokenizer-1.json").unlink()
    with pytest.raises(ModelError, match="lacks tokenizer-1"):
        setrnn.load(folder)
    join([taggers["pcc"]]).save(folder)
    assert not (folder / "tokenizer-1.json").exists()


def test_members_with_the_same_tokenizer_share_it_and_read_prepared_folders(
    members, small_prepared
):
    mixture = join(members)
    assert mixture.encoder.parts == (mixture.encoder,)
    assert setrnn.evaluate(mixture, small_prepared).scores.n_documents == 60


def test_other_labels_are_refused_by_name(taggers, valid):
    labels = taggers["br"].labels
    other = replace(
        taggers["br"], labels=LabelVocabulary(("new", *labels.names[1:]), labels.counts)
    )
    with pytest.raises(ConfigError, match=f"{labels.names[0]}.*br \\(2\\) has 'new'"):
        setrnn.mix([taggers["br"], other], valid)


def test_members_of_one_name_get_distinct_ones(taggers, valid, tmp_path):
    taggers["br"].save(tmp_path / "br (2)")
    mixture = setrnn.mix([tmp_path / "br (2)", taggers["br"], taggers["br"]], valid[:60])
    assert mixture.notes["mixture"]["members"] == ["br (2)", "br", "br (3)"]


def test_a_name_that_begins_as_another_does_not_mix_their_files(taggers, valid, tmp_path):
    """The folder of a run is called net.run: a model there may be a member beside net."""
    taggers["set-rnn-exact"].save(tmp_path / "net")
    taggers["br"].save(tmp_path / "net.run")
    mixture = setrnn.mix([tmp_path / "net", tmp_path / "net.run"], valid[:60])
    assert mixture.notes["mixture"]["members"] == ["net", "net.run"]
    mixture.save(tmp_path / "mixed")
    texts = [each.text for each in valid[:5]]
    assert setrnn.load(tmp_path / "mixed", "cpu").tag(texts) == mixture.tag(texts)


def test_what_cannot_be_mixed_is_refused(members, mixed, valid):
    with pytest.raises(ConfigError, match="list"):
        setrnn.mix([], valid)
    with pytest.raises(ConfigError, match="is a mixture"):
        setrnn.mix([mixed, members[0]], valid)
    with pytest.raises(DataError, match="20 documents"):
        setrnn.mix(members, valid[:5])
    with pytest.raises(ConfigError, match="setrnn mix"):
        setrnn.train("newsroom", "mixture")


def test_a_member_that_no_rule_uses_is_left_out(taggers, valid, notes):
    bad = taggers["br"]
    arrays = bad.system.arrays()
    arrays["weights"] = -10 * arrays["weights"]
    system = type(bad.system).from_arrays(arrays, None, bad.config, "cpu")
    found = setrnn.mix([taggers["pcc"], replace(bad, system=system)], valid)
    assert found.notes["mixture"]["left_out"] == ["br"]
    assert len(found.members) == 1
    assert any("Left out" in text for text in notes.texts)


def test_a_wider_beam_is_that_of_all_members(taggers, tmp_path):
    mixture = join([taggers["br"], taggers["set-rnn"]]).with_beam_width(7)
    assert mixture.system.systems[1].config.search.beam_width == 7
    mixture.save(tmp_path / "model")
    loaded = setrnn.load(tmp_path / "model")
    assert loaded.system.systems[1].config.search.beam_width == 7
    with pytest.raises(ConfigError, match="search"):
        join([taggers["br"]]).with_beam_width(7)


def test_maximum_likelihood_is_found():
    probs = np.random.default_rng(0).dirichlet([0.3] * 3, 400).T
    weights = fit_likelihood(np.log(probs))
    value = np.log(weights @ probs).mean()
    for other in np.random.default_rng(1).dirichlet([1] * 3, 300):
        assert np.log(other @ probs).mean() <= value + 1e-6
    with np.errstate(divide="ignore"):
        impossible = np.log(np.array([[0.0, 0.0], [0.5, 0.5]]))
    np.testing.assert_allclose(fit_likelihood(impossible), [0, 1], atol=1e-3)


def test_labels_are_likely_if_true_ones_are_probable_and_others_are_not():
    found = label_log_probs(np.array([[0.9, 0.2], [0.4, 0.5]]), np.array([True, False]))
    np.testing.assert_allclose(found, np.log([[0.9, 0.8], [0.4, 0.5]]))
    np.testing.assert_allclose(fit_likelihood(found), [1, 0])


@pytest.mark.parametrize(("limit", "value"), [("MOST_TO_FIT", 30), ("MOST_PAIRS", 30 * 65)])
def test_only_an_even_sample_of_many_documents_is_fitted_on(
    members, valid, monkeypatch, limit, value
):
    monkeypatch.setattr(f"setrnn.tagging.learn.mixture_weights.{limit}", value)
    tagger = join(members)
    outputs = collect(tagger, list(example_batches(tagger, valid)))
    n_labels = len(tagger.labels)
    assert outputs.truth.shape[0] == (30 if limit == "MOST_TO_FIT" else value // n_labels)


def _without(name):
    return lambda saved: {"arrays": {k: v for k, v in saved.arrays.items() if k != name}}


def _with(name, values):
    return lambda saved: {"arrays": {**saved.arrays, name: np.array(values)}}


def _with_member(**changes):
    def change(saved):
        first, *others = saved.config.members
        members = (replace(first, **changes), *others)
        return {"config": replace(saved.config, members=members)}

    return change


@pytest.mark.parametrize(
    "change",
    [
        _without("mixture.weights"),
        _with("mixture.weights", [0.5, 0.5]),
        _with("mixture.weights", [2.0, -1.0, 0.0]),
        _with("mixture.weights", [0.5, 0.5, 0.1]),
        _with("mixture.weights", [1.0, 0.0, np.nan]),
        _with("mixture.weights.f1", [[0.5, 0.5]]),
        _without("mixture.n_labels"),
        _with("mixture.n_labels", [3]),
        _with("mixture.n_labels", [float("1e300")]),
        _with("members.0.label_ids", [0, 0, 1]),
        _with("members.1.label_ids", [1, 0]),
        _without("members.1.chain"),
        _with_member(method="unheard-of"),
        _with_member(method="set-rnn"),
        _with_member(method="mixture"),
        lambda saved: {"config": replace(saved.config, members=saved.config.members[:2])},
        lambda saved: {"config": Config()},
        lambda saved: {"method": "br"},
    ],
)
def test_a_folder_whose_parts_do_not_fit_is_refused(taggers, tmp_path, change):
    taggers["mixture"].save(tmp_path / "model")
    saved = load_model(tmp_path / "model")
    save_model(tmp_path / "other", replace(saved, **change(saved)))
    with pytest.raises(ModelError) as error:
        setrnn.load(tmp_path / "other")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "members", [[], 3, ["br"], [{"tokenizer": 1}], [{"config": {"members": []}}], [{"x": 1}]]
)
def test_members_that_are_no_settings_are_refused(members):
    with pytest.raises(ConfigError):
        from_dict(MixtureConfig, {"members": members})


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()])
def test_a_failed_calibration_does_not_lose_the_mixture(
    taggers, small_examples, tmp_path, monkeypatch, notes, error
):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("setrnn.tagging.trust.calibrate.fit_calibration", fail)
    monkeypatch.setattr("setrnn.tagging.trust.calibrate.MIN_DOCUMENTS", 20)
    members = [replace(taggers["br"], rule="hamming")]
    few = small_examples["valid"][:20]
    stops = pytest.raises(KeyboardInterrupt) if type(error) is KeyboardInterrupt else nullcontext()
    with stops:
        setrnn.mix(members, few, out=tmp_path / "m")
        assert any("not calibrated" in text for text in notes.texts)
    found = setrnn.load(tmp_path / "m")
    assert found.calibration is None
    assert found.rule == "hamming", "the rule of all members"
