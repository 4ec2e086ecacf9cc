"""Documents longer than a window: learned from all of it, within the memory of short ones."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from setrnn.config import load_config
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.methods import find_method
from setrnn.tagging.tagger import load
from setrnn.training import gradients
from setrnn.training.gradients import _cut_by_windows
from setrnn.training.start import TrainOptions, make_trainer
from small_taggers import SMALL_OVERRIDES, trained_tagger
from tiny_transformers import save_transformer

WINDOW, N_WINDOWS = 6, 3
FILLING = ("budget", "club", "match", "film", "bank", "school")
DECISIVE = {"rain": ("weather",), "court": ("law", "state"), "police": ("state",)}


def make_documents(n, seed):
    """Documents whose labels depend on one word alone, in the last window."""
    random = np.random.default_rng(seed)
    for number in range(n):
        word = [*DECISIVE][number % len(DECISIVE)]
        before = random.choice(FILLING, WINDOW * (N_WINDOWS - 1) + 1)
        yield Example(str(number), " ".join([*before, word, word, word]), DECISIVE[word])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("transformer") / "tiny"
    return save_transformer(place, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def make_config(kind, folder, windows):
    settings = [*SMALL_OVERRIDES, f"text.windows={windows}", "training.batch_size=8"]
    settings += [f"text.max_words={WINDOW}", f"text.max_tokens={WINDOW + 2}"]
    if kind == "transformer":
        settings += ["encoder.name=transformer", f"encoder.path={folder}"]
        settings += ["encoder.learning_rate=0.003", "training.epochs=7", "model.dropout=0"]
    return load_config(overrides=settings)


def prepare_documents(config, place):
    parts = {"train": (60, 0), "valid": (12, 1), "test": (60, 2)}
    streams = {name: partial(make_documents, *part) for name, part in parts.items()}
    return prepare(streams, place, "toy", config.text, {})


def share_right(tagger):
    documents = [*make_documents(60, seed=2)]
    found = tagger.tag([each.text for each in documents], rule="set")
    return np.mean([set(a.labels) == set(b.labels) for a, b in zip(found, documents, strict=True)])


@pytest.mark.parametrize(("kind", "method"), [("gru", "set-rnn"), ("transformer", "sigmoid")])
def test_a_word_of_the_last_window_is_learned_and_lost_by_cutting(kind, method, folder, tmp_path):
    right = {}
    for windows in (1, N_WINDOWS):
        config = make_config(kind, folder, windows)
        prepared = prepare_documents(config, tmp_path / str(windows))
        assert prepared.n_windows["train"] == {N_WINDOWS: 60}
        tagger = trained_tagger(prepared, method, config)
        right[windows] = share_right(tagger)
    assert right[N_WINDOWS] == 1
    assert right[1] < 0.5  # a third by chance
    check_long_texts(tagger)
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model")
    texts = [each.text for each in make_documents(6, seed=3)]
    together, alone = again.tag(texts), [again.tag([text])[0] for text in texts]
    assert [each.labels for each in together] == [each.labels for each in tagger.tag(texts)]
    for one, other in zip(together, alone, strict=True):
        assert one.labels == other.labels
        assert one.probability == pytest.approx(other.probability, abs=1e-4)
    explained = again.explain(texts[0])
    (label,) = [each for each in explained.label_words if each.label == "weather"]
    (word,) = explained.words_for(label, 1)
    assert (word.text, word.n_times) == ("rain", 3)


def check_long_texts(tagger):
    """A text of any length is read up to the last window, and this is said."""
    short = " ".join(["club"] * WINDOW * N_WINDOWS)
    found, same = tagger.tag([f"{short} {'rain ' * 50_000}", short])
    assert found.labels == same.labels
    assert found.probability == pytest.approx(same.probability, abs=1e-4)
    assert "cut" in found.notes[-1]


@pytest.mark.parametrize("method", ["set-rnn", "set-rnn-exact", "sigmoid"])
def test_few_documents_at_a_time_have_the_gradient_of_all(method, tmp_path, monkeypatch):
    config = make_config("gru", None, N_WINDOWS)
    config = replace(config, model=replace(config.model, dropout=0.0, word_dropout=0.0))
    prepared = prepare_documents(config, tmp_path / "toy")
    trainer = make_trainer(find_method(method), prepared, config, TrainOptions("cpu"))
    trainer.network.train()
    (batch,) = trainer._make_batch(np.arange(7))
    sizes = [len(each) for each in _cut_by_windows(batch, trainer.network)]
    assert sizes == [2, 2, 2, 1]

    def compute():
        loss = trainer.gradients.compute([batch])
        return [loss, *(each.grad for each in trainer.network.parameters())]

    in_parts = compute()
    monkeypatch.setattr(gradients, "_cut_by_windows", lambda batch, network: [batch])
    torch.testing.assert_close(in_parts, compute(), rtol=1e-3, atol=1e-6)
