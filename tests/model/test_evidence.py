"""Label evidence: the formula word by word, what decoders make of it, and a shortlist of labels.

The probabilities with a shortlist stay those of a model over all labels.
"""

from dataclasses import replace

import pytest
import torch

from brute_force_sequences import (
    EVERY_DECODER,
    TEXTS,
    all_sets,
    batch_of,
    encoded,
    label_rows,
    sequence_log_probs,
    set_log_probs,
    tiny_network,
)
from setrnn.config import Config, ModelSettings
from setrnn.model import evidence as evidence_module
from setrnn.model.evidence import ShortlistEvidence
from setrnn.model.network import make_network
from setrnn.search.lattice import search_sets
from setrnn.search.subset_sums import set_log_prob_by_subsets

N_LABELS = 5


def test_each_label_attends_to_the_words_by_itself():
    network = tiny_network("sigmoid")
    encoding, evidence = network.encode(batch_of()), network.evidence
    for document in range(len(TEXTS)):
        words = encoding.words[document][encoding.is_word[document]]
        for label in range(4):
            attention = (words @ evidence.query.weight[label]).softmax(0)
            values = words @ evidence.value.weight[label]
            expected = attention @ values + evidence.value.bias[label]
            torch.testing.assert_close(encoding.evidence[document, label], expected)
    assert not encoding.evidence[:, 4].any(), "STOP has no evidence"


@pytest.mark.parametrize("is_short", [False, True])
def test_the_words_add_up_to_the_evidence(is_short):
    network = shortened("order-free", 2)[1] if is_short else tiny_network("sigmoid")
    encoding = network.encode(batch_of())
    by_word = network.evidence.by_word(encoding)
    total = by_word.sum(1) + network.evidence.value.bias
    torch.testing.assert_close(total, encoding.evidence[:, :-1])
    assert not by_word[~encoding.is_word].any(), "padding says nothing"


def test_how_many_documents_are_computed_at_once_changes_nothing(monkeypatch):
    network = tiny_network("sigmoid")
    expected = network.encode(batch_of()).evidence
    monkeypatch.setattr(evidence_module, "MAX_SCORES", 1)
    torch.testing.assert_close(network.encode(batch_of()).evidence, expected)


@EVERY_DECODER
def test_much_evidence_for_a_label_makes_it_the_first(decoder):
    decoder, encoding = encoded(decoder)
    evidence = torch.zeros(len(TEXTS), 5)
    evidence[:, 2] = 30.0
    found = sequence_log_probs(decoder, replace(encoding, evidence=evidence))
    first = torch.stack([each for order, each in found.items() if order[:1] == (2,)])
    torch.testing.assert_close(first.logsumexp(0).exp(), torch.ones(len(TEXTS)))


# A shortlist of labels per document.


def shortened(decoder, n_listed, seed=0, is_proposing=True, **settings):
    """A tiny network, and the same one with a shortlist."""
    network = tiny_network(decoder, n_labels=N_LABELS, seed=seed, **settings).requires_grad_(False)
    evidence = ShortlistEvidence(network.encoder.word_size, N_LABELS, n_listed)
    evidence.load_state_dict(network.evidence.state_dict(), strict=False)
    if is_proposing:
        torch.nn.init.normal_(evidence.proposal.weight)
    short = tiny_network(decoder, n_labels=N_LABELS, seed=seed, **settings).requires_grad_(False)
    short.evidence = evidence.requires_grad_(False)
    return network, short


def all_log_probs(network, encoding):
    return set_log_probs(network.decoder, encoding)


@pytest.mark.parametrize("label_output", [True, False])
@EVERY_DECODER
def test_a_shortlist_of_all_labels_changes_no_probability(decoder, label_output):
    settings = {"label_output": label_output}
    network, short = shortened(decoder, N_LABELS, is_proposing=False, **settings)
    expected = all_log_probs(network, network.encode(batch_of()))
    found = all_log_probs(short, short.encode(batch_of()))
    for labels in expected:
        torch.testing.assert_close(found[labels], expected[labels])


@EVERY_DECODER
@pytest.mark.parametrize("n_listed", [1, 2, 4])
def test_the_probabilities_of_all_sets_sum_to_one(decoder, n_listed):
    _, short = shortened(decoder, n_listed, seed=n_listed)
    found = torch.stack(list(all_log_probs(short, short.encode(batch_of())).values()))
    torch.testing.assert_close(found.logsumexp(0).exp(), torch.ones(len(TEXTS)))


@pytest.mark.parametrize("seed", range(3))
def test_sums_over_subsets_are_those_over_orders_also_of_labels_not_listed(seed):
    _, short = shortened("order-free", 2, seed)
    encoding = short.encode(batch_of())
    for labels, expected in all_log_probs(short, encoding).items():
        rows = label_rows([labels] * len(TEXTS))
        sizes = (rows >= 0).sum(1)
        found = set_log_prob_by_subsets(short.decoder, encoding, rows, sizes, width=4)
        torch.testing.assert_close(found, expected)


def test_a_wide_search_finds_all_sets_also_of_labels_not_listed():
    _, short = shortened("order-free", 2)
    encoding = short.encode(batch_of())
    found = search_sets(short.decoder, encoding, 2**N_LABELS, N_LABELS, 2**N_LABELS)
    log_probs = all_log_probs(short, encoding)
    expected = torch.stack([log_probs[each] for each in all_sets(N_LABELS)])
    expected = expected.T.sort(dim=1, descending=True).values
    torch.testing.assert_close(found.log_probs[:, : 2**N_LABELS], expected)
    probs = [
        sum(log_probs[each].exp() for each in all_sets(N_LABELS) if label in each)
        for label in range(N_LABELS)
    ]
    torch.testing.assert_close(found.label_probs, torch.stack(probs, dim=1), atol=1e-4, rtol=0)


def test_labels_not_listed_keep_their_evidence_after_any_labels():
    _, short = shortened("order-free", 2)
    encoding = short.encode(batch_of())
    for document in range(len(TEXTS)):
        listed = encoding.shortlist[document].tolist()
        assert listed[-1] == N_LABELS, "STOP is listed"
        one, other, *_ = [each for each in range(N_LABELS) if each not in listed]
        expected = encoding.evidence[document, one] - encoding.evidence[document, other]
        state = short.decoder.start(encoding)
        for previous in (N_LABELS, listed[0], listed[1]):
            last = torch.full((len(TEXTS), 1), previous)
            after, state = short.decoder.step(encoding, state, last)
            torch.testing.assert_close(
                after[document, 0, one] - after[document, 0, other], expected
            )


def test_the_labels_with_the_largest_linear_evidence_are_listed():
    _, short = shortened("order-free", 2)
    encoding = short.encode(batch_of())
    for document in range(len(TEXTS)):
        words = encoding.words[document][encoding.is_word[document]]
        linear = words.sum(0) @ short.evidence.proposal.weight.T / len(words) ** 0.5
        best = (linear + short.evidence.value.bias).topk(2).indices.tolist()
        assert sorted(encoding.shortlist[document, :-1].tolist()) == sorted(best)
    with torch.no_grad():
        short.evidence.value.bias[3] = 100.0
    assert (short.encode(batch_of()).shortlist == 3).any(1).all()


def test_the_objective_has_gradients_for_labels_listed_or_not():
    _, short = shortened("order-free", 2)
    short.requires_grad_(True)
    encoding = short.encode(batch_of())
    sets = label_rows([{0, 1, 2, 3, 4}] * len(TEXTS))
    sizes = (sets >= 0).sum(1)
    set_log_prob_by_subsets(short.decoder, encoding, sets, sizes, width=4).sum().backward()
    gradient = short.evidence.proposal.weight.grad
    assert torch.isfinite(gradient).all()
    assert (gradient.abs().sum(1) > 0).all(), "labels that are not listed learn to be"
    assert (short.evidence.query.weight.grad.abs().sum(1) > 0).any()


@pytest.mark.parametrize(
    ("n_listed", "is_short"),
    [(256, False), (0, False), (1, True)],
    ids=["few labels", "0: all labels", "many labels"],
)
def test_networks_have_a_shortlist_from_eight_labels_per_place_on(
    small_prepared, n_listed, is_short
):
    settings = ModelSettings(encoder_units=6, decoder_units=5, shortlist=n_listed)
    config = Config(model=settings)
    network = make_network(small_prepared, config, "order-free")
    assert isinstance(network.evidence, ShortlistEvidence) == is_short
    assert (network.encode(batch_of()).shortlist is not None) == is_short
