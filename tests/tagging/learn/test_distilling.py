import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import setrnn
from setrnn.config import TextSettings, load_config
from setrnn.data.cache import prepare
from setrnn.data.prepared import UNLABELLED
from setrnn.data.read import write_examples
from setrnn.errors import ConfigError, DataError, ModelError, StoppedError
from setrnn.systems.candidates import SetCandidates
from setrnn.tagging.learn.distil import aim, choose_weights
from setrnn.training.loop import Trainer
from small_taggers import SMALL, SMALL_OVERRIDES, trained_tagger

TINY = (*SMALL_OVERRIDES, "model.encoder_units=8", "model.decoder_units=8", "training.epochs=2")


@pytest.fixture(scope="module")
def data(small_examples, tmp_path_factory):
    """A folder of documents with labels, and a file of texts."""
    folder = tmp_path_factory.mktemp("data")
    write_examples(small_examples["train"][:60], folder / "train.jsonl")
    write_examples(small_examples["valid"][:10], folder / "valid.jsonl")
    texts = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    write_examples(small_examples["train"][60:100], texts)
    return folder, texts


@pytest.fixture(scope="module")
def prepared(small_examples, tmp_path_factory):
    """Documents with labels, and texts without, in one prepared folder."""
    train = small_examples["train"]
    splits = {
        "train": train[:60],
        "valid": small_examples["valid"][:10],
        UNLABELLED: [replace(each, labels=()) for each in train[60:100]],
    }
    streams = {name: partial(iter, examples) for name, examples in splits.items()}
    folder = tmp_path_factory.mktemp("unlabelled") / "prepared"
    return prepare(streams, folder, "newsroom", TextSettings(), {})


@pytest.fixture(scope="module")
def teacher(prepared):
    return trained_tagger(prepared, "br")


def distil(teacher, data, method="sigmoid", *settings, **more):
    return setrnn.distil(teacher, data, method, settings=[*TINY, *settings], device="cpu", **more)


def weights_of(tagger):
    return tagger.system.arrays()


@pytest.mark.parametrize("method", ["sigmoid", "set-rnn", "set-rnn-exact"])
def test_with_own_sets_alone_a_student_is_trained_as_without_a_teacher(prepared, teacher, method):
    own = ("distillation.true_share=1", "distillation.use_unlabelled=false")
    student = distil(teacher, prepared, method, *own)
    alone = setrnn.train(prepared, method, settings=[*TINY, *own], device="cpu")
    for name, array in weights_of(alone).items():
        np.testing.assert_allclose(weights_of(student)[name], array, atol=1e-5)


def test_a_student_comes_nearer_to_its_teacher_than_a_network_without(small_prepared, taggers):
    """Measured by the cross-entropy with the teacher's sets of documents that nobody has seen."""
    teacher = taggers["br"]
    tokens = small_prepared.split("test").tokens
    found = teacher.system.candidates(tokens, 4)
    shares = np.exp(found.log_probs[:, :4])
    settings = {"config": load_config(overrides=[*SMALL_OVERRIDES, "distillation.true_share=0"])}
    student = setrnn.distil(teacher, small_prepared, "set-rnn-exact", device="cpu", **settings)
    distance = [
        -(shares * each.system.set_log_probs(tokens, found.labels[:, :4])).sum(1).mean()
        for each in (student, taggers["set-rnn-exact"])
    ]
    assert distance[0] < distance[1]


def test_the_targets_are_the_teachers_sets_and_the_own_one(prepared, teacher):
    config = replace(SMALL, distillation=replace(SMALL.distillation, sets=3, true_share=0.25))
    tokens = [prepared.split(name).tokens for name in ("train", UNLABELLED)]
    found = [teacher.system.candidates(each, 3) for each in tokens]
    found = SetCandidates.concatenate(
        [SetCandidates(each.labels[:, :3], each.log_probs[:, :3]) for each in found]
    )
    documents = aim(found, prepared, teacher.labels, config)
    assert len(documents) == 100
    truth = [*prepared.split("train").labels, *prepared.split(UNLABELLED).labels]
    for row in range(len(documents)):
        share = 0.25 if row < 60 else 0.0
        batch = documents.batch(np.array([row]))
        sets = [tuple(each[each >= 0].tolist()) for each in batch.labels]
        weights = dict(zip(sets, batch.weights.tolist(), strict=True))
        assert len(weights) == len(sets)  # each once
        expected = {tuple(truth[row].tolist()): share} if share else {}
        for rank in range(3):
            prob = float(np.exp(found.log_probs[row, rank]))
            key = tuple(found.set_at(row, rank))
            if prob >= 0.005:
                expected[key] = expected.get(key, 0.0) + (1 - share) * prob
        assert weights == pytest.approx(expected, abs=1e-6)


def test_labels_that_one_side_lacks(small_prepared, taggers, prepared, notes):
    """The student's labels count: the teacher's others leave sets out, its own are learned."""
    teacher = taggers["br"]
    names = teacher.labels.names
    fewer = replace(teacher.labels, names=("other", *names[1:]))
    labels = np.array([[[0, 1], [1, 2], [2, -1]]] * 100, dtype=np.int32)
    found = SetCandidates(labels, np.log(np.full((100, 3), 0.3)))
    documents = aim(found, prepared, fewer, SMALL)
    most_frequent = prepared.labels.index[names[0]]
    for row, own in enumerate(prepared.split("train").labels):
        batch = documents.batch(np.array([row]))
        if most_frequent in own:  # the teacher does not know it
            assert batch.labels.tolist() == [own.tolist()]
            assert batch.weights.tolist() == [1.0]
    unlabelled = documents.batch(np.array([99]))
    assert len(unlabelled.weights) == 2  # without {other, ...}
    distil(replace(teacher, labels=fewer), small_prepared)
    assert any("'other'" in text and "left out" in text for text in notes.texts)
    assert any(f"'{names[0]}'" in text and "teacher lacks" in text for text in notes.texts)
    strange = replace(teacher.labels, names=tuple(f"x{n}" for n in range(len(names))))
    with pytest.raises(ConfigError, match="none of the labels"):
        distil(replace(teacher, labels=strange), small_prepared)


def test_a_mixture_teaches_with_the_mean_of_its_weights(taggers):
    mixture = taggers["mixture"].system
    assert choose_weights(mixture).weights.current.tolist() == [0.0, 0.9, 0.1]  # of its one rule
    by_rule = {**mixture.weights.by_rule, "set": np.array([0.5, 0.5, 0.0])}
    weighted = replace(mixture, weights=replace(mixture.weights, by_rule=by_rule))
    assert choose_weights(weighted).weights.current == pytest.approx([0.25, 0.7, 0.05])
    plain = taggers["br"].system
    assert choose_weights(plain) is plain


def test_a_text_without_a_target_is_left_out(prepared, teacher):
    labels = np.zeros((100, 1, 1), dtype=np.int32)
    log_probs = np.full((100, 1), np.log(0.5))
    log_probs[[70, 90]] = np.log(0.001)
    documents = aim(SetCandidates(labels, log_probs), prepared, teacher.labels, SMALL)
    assert len(documents) == 98
    kept = prepared.split(UNLABELLED).tokens
    assert documents.tokens[70].tolist() == kept[11].tolist()
    assert documents.tokens[97].tolist() == kept[39].tolist()
    for row in range(98):
        assert len(documents.batch(np.array([row])).weights)


def test_a_teacher_with_another_tokenizer_reads_the_texts_itself(data, taggers, tmp_path):
    folder, texts = data
    out = tmp_path / "student"
    student = distil(taggers["mixture"], folder, out=out, unlabelled=[texts])
    assert student.notes["distilled_from"] == {
        "name": "mixture",
        "method": "mixture",
        "members": ["br", "pcc", "set-rnn"],
        "data": "newsroom, synthetic",
        "n_labelled": 60,
        "n_unlabelled": 40,
    }
    text = (out / "README.md").read_text()
    assert "learned from: `mixture`, a mixture model: 60 texts" in text
    again = setrnn.load(out, "cpu")
    assert again.notes == student.notes
    assert [each.labels for each in again.tag(["A late goal."])] == [
        each.labels for each in student.tag(["A late goal."])
    ]


@pytest.fixture
def stopped(prepared, teacher, tmp_path):
    """A student that Ctrl-C stopped in its first epoch."""
    step, steps = Trainer._step, iter(range(1, 100))

    def step_and_stop(self, *arguments):
        result = step(self, *arguments)
        if next(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_step", step_and_stop)
        with pytest.raises(StoppedError, match="--resume"):
            distil(teacher, prepared, out=tmp_path / "student")
    return tmp_path / "student"


def test_a_run_is_resumed_only_with_its_own_teacher(prepared, taggers, teacher, stopped):
    other = trained_tagger(prepared, "br", load_config(overrides=["classical.l1=3"]))
    for model, resume, words in ((other, True, "teacher="), (other, False, "unfinished")):
        with pytest.raises(ConfigError, match=words):
            distil(model, prepared, out=stopped, resume=resume)
    with pytest.raises(ConfigError, match="teacher="):
        setrnn.train(prepared, "sigmoid", out=stopped, settings=TINY, device="cpu", resume=True)


@pytest.mark.parametrize("method", ["br", "seq2seq-rnn", "vinyals-max", "mixture"])
def test_other_methods_are_refused(prepared, teacher, method):
    with pytest.raises(ConfigError, match="student"):
        distil(teacher, prepared, method)


def test_what_cannot_be_distilled_is_refused(prepared, teacher, taggers, data, tmp_path):
    with pytest.raises(DataError, match="another vocabulary"):
        distil(taggers["br"], prepared)
    with pytest.raises(DataError, match=r"prepared already.*unlabelled"):
        distil(teacher, prepared, unlabelled=[data[1]])
    with pytest.raises(ConfigError, match="needs out"):
        distil(teacher, prepared, resume=True)
    teacher.save(tmp_path / "teacher")
    with pytest.raises(ConfigError, match="teacher itself"):
        distil(tmp_path / "teacher", prepared, out=tmp_path / "teacher")
    with pytest.raises(ModelError, match="model"):
        distil(tmp_path / "nothing", prepared)
