"""Slow and plain: every sequence of a few labels, its probability, and decoders made of tables."""

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pytest
import torch

from setrnn.config import ModelSettings
from setrnn.data.batches import make_batch
from setrnn.data.ragged import Ragged
from setrnn.model.decoders import DECODERS
from setrnn.model.encoders import GRUEncoder
from setrnn.model.evidence import LabelEvidence
from setrnn.model.interfaces import Encoding
from setrnn.model.network import Network
from setrnn.objectives import LabelSets

N_WORDS = 20
# The decoders that emit labels one by one.
STEPPING_DECODERS = [name for name, each in DECODERS.items() if each.emits != "labels"]
EVERY_DECODER = pytest.mark.parametrize("decoder", STEPPING_DECODERS)
TEXTS = [
    [3, 4, 5, 6],
    [7, 8, 3],
    [9, 10],
    [],
]  # token ids, in descending order of length; one is empty


def network_of(word_vectors, label_vectors, settings, decoder="rnn"):
    """A network over given vectors, before training."""
    encoder = GRUEncoder(word_vectors, settings)
    evidence = None
    if settings.evidence:
        evidence = LabelEvidence(encoder.word_size, len(label_vectors))
    own = DECODERS[decoder](encoder.memory_size, label_vectors, settings)
    return Network(encoder, own, evidence)


def tiny_network(decoder="rnn", n_labels=4, seed=0, **settings):
    """A network of a few units, far from uniform; without dropout unless asked for."""
    torch.manual_seed(seed)
    sizes = {"encoder_units": 6, "decoder_units": 5, "dropout": 0.0, "word_dropout": 0.0}
    words, labels = torch.randn(N_WORDS, 4), torch.randn(n_labels, 4) / 2
    # Half as large: label vectors are both read and written.
    network = network_of(words, labels, ModelSettings(**(sizes | settings)), decoder)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2.0)
    return network.eval()


def batch_of(texts=TEXTS, label_sets=None):
    labels = None if label_sets is None else Ragged.from_lists(label_sets)
    return make_batch(Ragged.from_lists(texts), labels, np.arange(len(texts)))


def encoded(decoder="rnn", texts=TEXTS, **settings):
    """The decoder of a tiny network, and the documents as it sees them."""
    network = tiny_network(decoder, **settings)
    return network.decoder, network.encode(batch_of(texts))


def label_rows(label_sets, width=None):
    """Label sets as a matrix, padded with -1."""
    width = max(map(len, label_sets), default=0) if width is None else width
    rows = torch.full((len(label_sets), width), -1)
    for row, labels in zip(rows, label_sets, strict=True):
        row[: len(labels)] = torch.tensor(sorted(labels), dtype=torch.long)
    return rows


def sets_of(label_sets, width=None):
    """Label sets as the objectives take them."""
    labels = label_rows(label_sets, width)
    return LabelSets(labels, (labels >= 0).sum(1))


def as_tuple(row):
    """The labels of a row that is padded with -1; none may follow a -1."""
    labels = [int(label) for label in row]
    found = tuple(label for label in labels if label >= 0)
    assert labels == [*found, *[-1] * (len(labels) - len(found))]
    return found


def found_sets(scored, document):
    """{set: log p} of one document, best first."""
    labels, scores = scored.labels[document], scored.log_probs[document]
    assert (scores[:-1] >= scores[1:]).all(), "probabilities must fall"
    found = []
    for row, score in zip(labels, scores, strict=True):
        if score > -torch.inf:
            assert list(as_tuple(row)) == sorted(as_tuple(row)), "labels ascend"
            found.append((frozenset(as_tuple(row)), float(score)))
    assert len(dict(found)) == len(found), "a set was found twice"
    return dict(found)


def all_sets(n_labels):
    return [
        frozenset(chosen)
        for n in range(n_labels + 1)
        for chosen in combinations(range(n_labels), n)
    ]


def all_sequences(n_labels):
    """Every sequence without repeats, the empty one first."""
    return [each for n in range(n_labels + 1) for each in permutations(range(n_labels), n)]


def sequence_log_probs(decoder, encoding):
    """{sequence: log p of each document (B,)}, by scoring them all."""
    B = len(encoding.memory)
    found = {}
    for n in range(decoder.n_labels + 1):
        sequences = list(permutations(range(decoder.n_labels), n))
        orders = torch.tensor(sequences, dtype=torch.long).view(1, len(sequences), n)
        scores = decoder.score(encoding, orders.expand(B, -1, -1)).detach()
        found.update(zip(sequences, scores.unbind(1), strict=True))
    return found


def set_log_probs(decoder, encoding):
    """{set: log p of each document (B,)}, the sum over all its orders."""
    orders = {}
    for sequence, log_prob in sequence_log_probs(decoder, encoding).items():
        orders.setdefault(frozenset(sequence), []).append(log_prob)
    return {labels: torch.stack(each).logsumexp(0) for labels, each in orders.items()}


def documents(n_documents=1):
    """Documents for the decoders below, which know them by their number."""
    numbers = torch.arange(n_documents)[:, None]
    return Encoding(torch.zeros(n_documents, 1, 1), torch.zeros(n_documents, 1), numbers)


def without_order(log_probs, lengths):
    """-inf where the length of an order is -1."""
    return log_probs if lengths is None else log_probs.masked_fill(lengths < 0, -torch.inf)


class PlainDecoder:
    """A decoder that is a function of the document and the labels so far; it notes its steps."""

    training = False

    def __init__(self, n_labels):
        self.n_labels = n_labels
        self.prefixes = []  # for each step and document, the prefixes that were stepped
        self.encodings = []  # what each step saw

    def train(self, mode=True):
        self.training = mode
        return self

    def start(self, encoding):
        B = len(encoding.memory)
        return (torch.full((B, 1, self.n_labels), -1),)

    def step(self, encoding, state, previous):
        (sequences,) = state
        n_emitted = (sequences >= 0).sum(2, keepdim=True)
        is_label = (previous < self.n_labels)[..., None]
        grown = sequences.scatter(2, n_emitted.clamp(max=self.n_labels - 1), previous[..., None])
        sequences = grown.where(is_label, sequences)
        self.prefixes.append([[as_tuple(row) for row in rows] for rows in sequences])
        self.encodings.append(encoding)
        return self._log_probs(encoding, sequences), (sequences,)

    def score(self, encoding, orders, lengths=None):
        B, K, S = orders.shape
        sequences = torch.full((B, K, self.n_labels), -1)
        log_probs = torch.zeros(B, K)
        for step in range(S + 1):
            label = orders[:, :, step] if step < S else torch.full((B, K), -1)
            before = orders[:, :, step - 1] if step else torch.zeros(B, K)
            chosen = label.where(label >= 0, self.n_labels)[..., None]
            each = self._log_probs(encoding, sequences).gather(2, chosen)[..., 0]
            log_probs = log_probs + each.where(before >= 0, 0.0)
            if step < S:
                sequences = torch.cat((orders[:, :, : step + 1], sequences[:, :, step + 1 :]), 2)
        return without_order(log_probs, lengths)

    def follow(self, encoding, sequences, lengths=None):
        B, S = sequences.shape
        before = torch.full((B, S + 1, self.n_labels), -1)
        for step in range(1, min(S, self.n_labels) + 1):
            before[:, step, :step] = sequences[:, :step]
        return self._log_probs(encoding, before)

    def next_log_probs(self, document, sequence):
        """log p of each label and STOP after one sequence."""
        rows = torch.full((document + 1, 1, self.n_labels), -1)
        rows[:, 0, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
        return self._log_probs(documents(document + 1), rows)[document, 0]

    def _log_probs(self, encoding, sequences):
        used = sequences.where(sequences >= 0, self.n_labels)
        is_used = torch.zeros(*used.shape[:2], self.n_labels + 1, dtype=torch.bool)
        is_used = is_used.scatter(2, used, True)
        is_used[..., -1] = False
        logits = self._logits(encoding.summary, sequences, is_used)
        return logits.masked_fill(is_used, -torch.inf).log_softmax(-1)


class TableDecoder(PlainDecoder):
    """Random probabilities after every prefix of every document."""

    def __init__(self, n_labels, n_documents=1, seed=0, spread=2.0):
        super().__init__(n_labels)
        random = torch.Generator().manual_seed(seed)
        n_prefixes = (n_labels + 1) ** n_labels
        shape = (n_documents, n_prefixes, n_labels + 1)  # in float64, there are no ties
        self.table = torch.randn(shape, generator=random, dtype=torch.float64) * spread

    def _logits(self, document, sequences, is_used):
        digits = (self.n_labels + 1) ** torch.arange(self.n_labels)
        return self.table[document, ((sequences + 1) * digits).sum(2)]


class UniformOrderDecoder(PlainDecoder):
    """Given probabilities of the sets; the orders of a set share its probability equally."""

    def __init__(self, set_probs):
        """Take {set: p}, the same for all documents."""
        n_labels = max(map(len, set_probs))
        super().__init__(n_labels)
        table = torch.zeros(2**n_labels, n_labels + 1, dtype=torch.float64)
        for used in all_sets(n_labels):
            for labels, p in set_probs.items():
                # of the orders of `labels`, those that begin with `used` in a given order
                left = labels - used
                share = p * factorial(len(left)) / factorial(len(labels))
                if used <= labels and left:
                    table[_number(used), sorted(left)] += share / len(left)
                elif used == labels:
                    table[_number(used), n_labels] += share
        self.table = table.log()

    def _logits(self, document, sequences, is_used):
        numbers = (is_used[..., :-1] * 2 ** torch.arange(self.n_labels)).sum(2)
        return self.table[numbers]


class OrderFreeTable(PlainDecoder):
    """Random probabilities after every SET of labels of each of many documents, all at once."""

    emits = "sets"

    def __init__(self, n_labels, n_documents, seed=0):
        super().__init__(n_labels)
        random = torch.Generator().manual_seed(seed)
        spread = 0.5 + 2 * torch.rand(n_documents, 1, 1, generator=random)
        self.bits = 2 ** torch.arange(n_labels)
        is_used = (torch.arange(2**n_labels)[:, None] & self.bits) > 0
        is_used = torch.nn.functional.pad(is_used, (0, 1), value=False)
        logits = torch.randn(n_documents, 2**n_labels, n_labels + 1, generator=random) * spread
        self.table = logits.masked_fill(is_used, -torch.inf).log_softmax(-1)

    def start(self, encoding):
        return (torch.zeros(len(encoding.memory), 1, dtype=torch.long),)

    def step(self, encoding, state, previous):
        added = torch.nn.functional.pad(self.bits, (0, 1))[previous]
        numbers = state[0] | added
        return self.table[encoding.summary, numbers], (numbers,)

    def after(self, encoding, subsets):
        document = encoding.summary[subsets.documents[subsets.rows], 0]
        return self.table[document, (self.bits[subsets.labels] * subsets.is_member).sum(1)]

    def set_probs(self):
        """p of every set, by the number that its labels make as bits: (documents, 2^labels)."""
        probs = self.table.double().exp()
        reached = torch.zeros(probs.shape[:2], dtype=torch.float64)
        reached[:, 0] = 1.0
        for number in range(1, 2**self.n_labels):
            for label in range(self.n_labels):
                if number & 2**label:
                    before = number - 2**label
                    reached[:, number] += reached[:, before] * probs[:, before, label]
        return reached * probs[..., -1]

    def number_of(self, label_sets):
        """The number of each set (..., S), padded with -1."""
        return (self.bits[label_sets.clamp(min=0)] * (label_sets >= 0)).sum(-1)


def _number(labels):
    return sum(2**label for label in labels)
