"""One search over sets, against every set of a few labels; its certificate never lies."""

from math import exp

import pytest
import torch

from brute_force_sequences import (
    TEXTS,
    OrderFreeTable,
    as_tuple,
    encoded,
    found_sets,
    set_log_probs,
)
from setrnn.config import Config, SearchSettings
from setrnn.data.ragged import Ragged
from setrnn.model.interfaces import Encoding
from setrnn.search.lattice import merge_equal, rank_by_exact, search_sets
from setrnn.systems import neural
from setrnn.systems.recurrent import OrderFreeSystem

ROUNDING = 1e-5


def order_free(n_labels=5, seed=0):
    return encoded("order-free", n_labels=n_labels, seed=seed)


def truths(decoder, encoding):
    """{set: p} for each document."""
    every = set_log_probs(decoder, encoding)
    return [
        {labels: float(log_prob[row].exp()) for labels, log_prob in every.items()}
        for row in range(len(TEXTS))
    ]


def found_probs(found, row):
    return {labels: exp(log_prob) for labels, log_prob in found_sets(found, row).items()}


@pytest.mark.parametrize("seed", range(3))
def test_a_search_as_wide_as_the_space_finds_every_set_with_its_probability(seed):
    decoder, encoding = order_free(seed=seed)
    found = search_sets(decoder, encoding, width=64, max_labels=5, n_sets=32)
    for row, truth in enumerate(truths(decoder, encoding)):
        sets = found_probs(found, row)
        assert sets.keys() == truth.keys()
        assert all(abs(sets[each] - truth[each]) < ROUNDING for each in truth)
    torch.testing.assert_close(
        found.certificate.pruned, torch.zeros(len(TEXTS)), atol=ROUNDING, rtol=0
    )
    assert found.certificate.is_proved.all()


def exactly(decoder, encoding, found, n_exact):
    """The search with its first sets summed exactly."""
    best = found.labels[:, :n_exact]
    every = set_log_probs(decoder, encoding)
    exact = torch.tensor(
        [
            [float(every[frozenset(as_tuple(row))][document]) for row in rows]
            for document, rows in enumerate(best)
        ]
    )
    is_set = found.log_probs[:, :n_exact] > -torch.inf
    return rank_by_exact(found, exact.where(is_set, -torch.inf), torch.ones_like(is_set))


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [3, 4, 6])
@pytest.mark.parametrize("width", [1, 2, 3, 6])
@pytest.mark.parametrize("max_labels", [1, 2, 50])
@pytest.mark.parametrize("n_exact", [0, 2, 4])
def test_the_certificate_never_lies(n_labels, width, max_labels, n_exact):
    """What is proved is the most probable of all sets; what was pruned bounds every other."""
    for seed in range(4):
        decoder, encoding = order_free(n_labels, seed)
        found = search_sets(decoder, encoding, width, max_labels)
        if n_exact:
            found = exactly(decoder, encoding, found, n_exact)
        for row, truth in enumerate(truths(decoder, encoding)):
            sets = found_probs(found, row)
            best, found_prob = next(iter(sets.items()))
            pruned, left = float(found.certificate.pruned[row]), float(found.certificate.left[row])
            for labels, prob in sets.items():
                assert prob <= truth[labels] + ROUNDING, "what was found is a part of the truth"
                assert truth[labels] <= prob + pruned + ROUNDING
            for labels, prob in truth.items():
                if labels not in sets:
                    assert prob <= found_prob + pruned + left + ROUNDING
            if found.certificate.is_proved[row]:
                assert truth[best] >= max(truth.values()) - ROUNDING


def test_equal_keys_are_added_up():
    keys = torch.tensor([[7, 3, 7, 5, 3, 7]])
    log_masses = torch.tensor([[0.1, 0.2, 0.15, 0.3, 0.05, 0.01]]).log()
    sums, where = merge_equal(keys, log_masses, 3)
    torch.testing.assert_close(sums.exp(), torch.tensor([[0.3, 0.26, 0.25]]))
    assert keys.gather(1, where).tolist() == [[5, 7, 3]]


def test_what_has_no_mass_stays_without():
    sums, where = merge_equal(
        torch.zeros(1, 4, dtype=torch.long), torch.full((1, 4), -torch.inf), 2
    )
    assert (sums == -torch.inf).all()
    assert ((where >= 0) & (where < 4)).all()


N_TOYS = 10_000


class ToyNetwork:
    """A table in place of a network: the one token of a document is its number."""

    training = False

    def __init__(self, decoder):
        self.decoder = decoder

    def encode(self, batch):
        B = len(batch.tokens)
        return Encoding(torch.zeros(B, 1, 1), torch.zeros(B, 1), batch.tokens)

    def train(self, mode=True):
        return self

    eval = train


def system_of(decoder, beam_width, exact_sets):
    config = Config(search=SearchSettings(beam_width=beam_width, exact_sets=exact_sets))
    return OrderFreeSystem(ToyNetwork(decoder), config, torch.device("cpu"))


@pytest.mark.parametrize(("exact_sets", "first"), [(0, [0]), (1, [0]), (4, [0, 1])])
def test_a_set_that_was_found_but_not_kept_can_refute_the_first(exact_sets, first):
    """Of {0, 1}, .359 are found and .166 pruned: more than the .4 of {0}.

    Where several sets are summed exactly, it is the first.
    """
    decoder = OrderFreeTable(3, 1)
    decoder.table = torch.full((1, 8, 4), -torch.inf)
    for used, column, prob in (
        ((), 0, 0.81),
        ((), 1, 0.19),
        ((0,), 3, 0.4 / 0.81),
        ((0,), 1, 0.41 / 0.81),
        ((1,), 0, 1.0),
        ((0, 1), 3, 0.875),
        ((0, 1), 2, 0.125),
        ((0, 1, 2), 3, 1.0),
    ):
        number = sum(2**label for label in used)
        decoder.table[0, number, column] = torch.tensor(prob).log()
    assert decoder.set_probs()[0, 3] == pytest.approx(0.525)
    found = system_of(decoder, 1, exact_sets).candidates(Ragged.from_lists([[0]]), 1)
    assert found.set_at(0, 0) == first
    assert found.is_proved[0] == (first == [0, 1])


@pytest.mark.parametrize("n_labels", [2, 3, 4])
@pytest.mark.parametrize("exact_sets", [0, 1, 4])
def test_no_proof_is_false_among_thousands_of_random_decoders(n_labels, exact_sets, monkeypatch):
    """Nor is a proof so rare that it says nothing; a wide search proves every one."""
    monkeypatch.setattr(neural, "MAX_DOCUMENTS_ON_CPU", N_TOYS)  # one batch: it is quicker
    decoder = OrderFreeTable(n_labels, N_TOYS, seed=n_labels)
    truth = decoder.set_probs()
    tokens = Ragged.from_lists([[number] for number in range(N_TOYS)])
    shares = []
    for width in (1, 2, 3, 5, 8):
        found = system_of(decoder, width, exact_sets).candidates(tokens, 1)
        first = decoder.number_of(torch.from_numpy(found.labels[:, 0]).long())
        prob = truth.gather(1, first[:, None])[:, 0]
        is_false = (prob < truth.max(1).values - ROUNDING).numpy() & found.is_proved
        assert not is_false.any(), f"{is_false.sum()} of width {width}"
        shares.append(found.is_proved.mean())
    assert shares[0] > 0.15
    assert shares[-1] > 0.9
