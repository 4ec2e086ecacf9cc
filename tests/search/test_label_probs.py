"""The probability of each label, against the sum over every set of a few labels."""

import pytest
import torch

from brute_force_sequences import TEXTS, batch_of, encoded, set_log_probs, tiny_network
from setrnn.search.beam_search import search_sequences
from setrnn.search.label_probs import resample, sample_label_probs
from setrnn.search.lattice import search_sets

N_LABELS = 5
WIDE = 400  # more than all sequences of five labels


def truth(decoder, encoding):
    probs = torch.zeros(len(TEXTS), N_LABELS)
    for labels, log_prob in set_log_probs(decoder, encoding).items():
        probs[:, list(labels)] += log_prob.exp().float()[:, None]
    return probs


def estimate(kind, decoder, encoding, width, max_labels=N_LABELS):
    if kind == "order-free":
        return search_sets(decoder, encoding, width, max_labels, n_sets=2).label_probs
    return sample_label_probs(decoder, encoding, width, max_labels)


@pytest.mark.parametrize("kind", ["rnn", "order-free"])
def test_a_search_that_prunes_nothing_gives_the_exact_probabilities(kind):
    decoder, encoding = encoded(kind, n_labels=N_LABELS)
    if kind == "order-free":
        found = search_sets(decoder, encoding, WIDE, N_LABELS, n_sets=2**N_LABELS)
        probs = found.label_probs
    else:
        probs = estimate(kind, decoder, encoding, WIDE)
    expected = truth(decoder, encoding)
    torch.testing.assert_close(probs, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["rnn", "order-free"])
def test_a_narrow_search_is_closer_to_the_truth_than_the_sets_it_found(kind, seed):
    decoder, encoding = encoded(kind, n_labels=N_LABELS, seed=seed)
    expected, width = truth(decoder, encoding), 3 if kind == "order-free" else 16
    error = (estimate(kind, decoder, encoding, width) - expected).abs().mean()
    if kind == "order-free":
        found = search_sets(decoder, encoding, width, N_LABELS, n_sets=2)
        labels, probs = found.labels, found.log_probs.exp()
    else:
        sequences = search_sequences(decoder, encoding, width, N_LABELS)
        labels, probs = sequences.labels[:, 0], sequences.log_probs[:, 0].exp()
    shares = probs / probs.sum(1, keepdim=True)
    is_in = (labels[..., None] == torch.arange(N_LABELS)).any(2)  # (B, K, L)
    renormalised = (shares[..., None] * is_in).sum(1)
    assert error < 0.5 * (renormalised - expected).abs().mean()
    assert error < 0.05


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("kind", ["rnn", "order-free"])
def test_estimates_are_probabilities_and_do_not_depend_on_the_batch(kind, width):
    network = tiny_network(kind, n_labels=N_LABELS)
    together = estimate(kind, network.decoder, network.encode(batch_of()), width, max_labels=3)
    assert ((together >= 0) & (together <= 1)).all()
    for row, text in enumerate(TEXTS):
        alone = network.encode(batch_of([text]))
        probs = estimate(kind, network.decoder, alone, width, max_labels=3)
        torch.testing.assert_close(probs[0], together[row], atol=1e-5, rtol=0)


def test_a_sample_stands_for_all_masses():
    masses = torch.rand(3, 20, generator=torch.Generator().manual_seed(0)) ** 4
    for n_kept in (1, 4, 19, 20, 30):
        places, weights = resample(masses, n_kept, offset=0.5)
        torch.testing.assert_close(weights.sum(1), masses.sum(1))
        own = masses.gather(1, places)
        # What keeps its own weight is larger than what shares one.
        assert (weights >= own - 1e-6).all()
    torch.testing.assert_close(weights, own)


def test_the_mean_over_all_offsets_is_the_truth():
    masses = torch.tensor([[0.4, 0.2, 0.1, 0.06, 0.04]])
    total, n_offsets = torch.zeros_like(masses), 1_000
    for number in range(n_offsets):
        places, weights = resample(masses, 3, offset=(number + 0.5) / n_offsets)
        total.scatter_add_(1, places, weights)
    torch.testing.assert_close(total / n_offsets, masses, atol=2e-3, rtol=0)
