"""What training learns and cannot learn on tiny corpora whose p(set | text) is known."""

from functools import partial
from math import log

import numpy as np
import pytest
import torch
from torch import nn

from brute_force_sequences import documents, sets_of, without_order
from setrnn.config import load_config
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.methods import METHODS
from setrnn.objectives import OBJECTIVES
from setrnn.training.start import TrainOptions, train_network
from tiny import TINY

pytestmark = pytest.mark.slow


def in_true_proportion(corpus, n_per_text):
    """Return examples in which each set is as frequent as it is probable: no sampling noise."""
    return [
        Example(f"synthetic {text} {number}", text, tuple(sorted(labels)))
        for text, truth in corpus.truth.items()
        for labels, p in truth.items()
        for number in range(round(p * n_per_text))
    ]


def train(corpus, method, folder, n_per_text, *overrides):
    """Train on the whole corpus, and return what was learned: {text: {set: p}}."""
    examples = in_true_proportion(corpus, n_per_text)
    config = load_config(
        overrides=[
            "text.stop_words=none",
            "vectors.source=none",
            "model.decoder_layers=1",
            "model.dropout=0",
            "model.word_dropout=0",
            "search.beam_width=64",
            f"training.batch_size={len(examples)}",
            "training.learning_rate=0.05",
            *overrides,
        ]
    )
    prepared = prepare({"train": partial(iter, examples)}, folder, "tiny", config.text, {})
    system = train_network(METHODS[method], prepared, config, TrainOptions("cpu")).system
    texts = list(corpus.truth)
    candidates = system.candidates(prepared.encoder.encode(texts), 64)
    learned = {}
    for row, text in enumerate(texts):
        ranks = np.flatnonzero(candidates.log_probs[row] > -np.inf)
        sets = prepared.labels.sets(candidates.set_at(row, rank) for rank in ranks)
        probs = np.exp(candidates.log_probs[row, ranks])
        learned[text] = dict(zip(map(frozenset, sets), probs, strict=True))
    return learned


def total_variation(corpus, learned):
    """Return the total variation distance per text; the mass of unknown sets counts as wrong."""
    distances = []
    for text, truth in corpus.truth.items():
        found = learned[text]
        differences = [abs(truth.get(each, 0) - found.get(each, 0)) for each in {*truth, *found}]
        distances.append((sum(differences) + 1 - sum(found.values())) / 2)
    return distances


@pytest.mark.parametrize(("name", "n_per_text"), [("exclusive", 20), ("independent", 40)])
def test_set_rnn_comes_close_to_the_true_distribution_of_sets(name, n_per_text, tmp_path):
    corpus = TINY[name]
    learned = train(
        corpus,
        "set-rnn",
        tmp_path / "tiny",
        n_per_text,
        "vectors.dimensions=16",
        "model.encoder_units=16",
        "model.decoder_units=16",
        "training.epochs=60",
    )
    assert max(total_variation(corpus, learned)) < 0.1


# The same without chance: a decoder that cannot express an exclusive-or at all.


class LogLinearDecoder(nn.Module):
    """Each step is log-linear in the words of the document and the labels so far."""

    def __init__(self, features, n_labels):
        super().__init__()
        self.features, self.n_labels = features, n_labels  # (n, F)
        self.from_words = nn.Linear(features.shape[1], n_labels + 1)
        self.from_labels = nn.Linear(n_labels, n_labels + 1, bias=False)

    def start(self, encoding):
        return (torch.zeros(len(encoding.memory), 1, self.n_labels + 1),)

    def step(self, encoding, state, previous):
        is_used = state[0].scatter(2, previous[..., None], 1.0)
        words = self.features[encoding.summary[:, 0]]
        logits = self.from_words(words)[:, None] + self.from_labels(is_used[..., :-1])
        is_masked = is_used.bool()
        is_masked[..., -1] = False
        return logits.masked_fill(is_masked, -torch.inf).log_softmax(2), (is_used,)

    def score(self, encoding, orders, lengths=None):
        B, K, S = orders.shape
        state = (self.start(encoding)[0].expand(B, K, -1),)
        previous, log_probs = torch.full((B, K), self.n_labels), torch.zeros(B, K)
        is_open = torch.ones(B, K, dtype=torch.bool)
        for step in range(S + 1):
            label = orders[:, :, step] if step < S else torch.full((B, K), -1)
            found, state = self.step(encoding, state, previous)
            previous = label.where(label >= 0, self.n_labels)
            chosen = found.gather(2, previous[..., None])[..., 0]
            log_probs = log_probs + chosen.where(is_open, 0.0)
            is_open = is_open & (label >= 0)
        return without_order(log_probs, lengths)


def trained_log_linear(objective, label_order):
    """Return the means of log p(set | text) and of the objective after training on `ordered`."""
    truth = {text: next(iter(sets)) for text, sets in TINY["ordered"].truth.items()}
    vocabulary = sorted({word for text in truth for word in text.split()})
    words = [[float(word in text.split()) for word in vocabulary] for text in truth]
    label_sets = sets_of([[*map(label_order.index, labels)] for labels in truth.values()])
    torch.manual_seed(0)
    decoder, encoding = LogLinearDecoder(torch.tensor(words), 4), documents(len(truth))
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.2)
    for _ in range(300):
        value = OBJECTIVES[objective](decoder, encoding, label_sets, 2).mean()
        optimizer.zero_grad()
        (-value).backward()
        optimizer.step()
    of_sets = OBJECTIVES["set-probability"](decoder, encoding, label_sets, 2).mean()
    return float(of_sets.detach()), float(value.detach())


def test_log_linear_steps_learn_the_sets_if_the_order_is_free_or_right_but_not_if_it_is_wrong():
    """Let u of wet and cold be so, and v of early and full.

    Where v = 1, the label `grey` must come before `queue` if u = 1, and `queue` must come
    first if u is 0 or 2. The difference of their logits is linear in u, so that the first step
    is worth at most log 1/2 on average over these 8 of 16 texts, whatever the weights.
    """
    by_frequency = ["grey", "queue", "snow", "rush"]
    of_sets, value = trained_log_linear("fixed-order", by_frequency)
    assert value <= 0.5 * log(0.5) + 1e-6
    assert of_sets < -0.3
    rare_first = by_frequency[::-1]
    assert trained_log_linear("fixed-order", rare_first)[0] > -0.05
    assert trained_log_linear("set-probability", by_frequency)[0] > -0.05
