"""Sums over subsets are sums over orders, when the decoder forgets the order."""

from itertools import permutations

import pytest
import torch

from brute_force_sequences import TEXTS, encoded, label_rows, set_log_probs
from setrnn.search.subset_sums import EXACT_UP_TO, set_log_prob_by_subsets

B = len(TEXTS)


def order_free(n_labels=5, seed=0):
    return encoded("order-free", n_labels=n_labels, seed=seed)


def by_subsets(decoder, encoding, label_sets, width=12, **options):
    sizes = torch.tensor([len(each) for each in label_sets])
    return set_log_prob_by_subsets(
        decoder, encoding, label_rows(label_sets), sizes, width, **options
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_sum_over_subsets_is_the_sum_over_orders(seed):
    decoder, encoding = order_free(seed=seed)
    for labels, wanted in set_log_probs(decoder, encoding).items():
        torch.testing.assert_close(by_subsets(decoder, encoding, [labels] * B), wanted)


@pytest.mark.parametrize("exact_up_to", [EXACT_UP_TO, 3, 1, 0])
def test_sets_of_different_sizes_in_one_batch(exact_up_to):
    """A search as wide as a level is exact too."""
    decoder, encoding = order_free()
    label_sets = [{0, 1, 2}, {3}, set(), {0, 1, 2, 3, 4}]
    every = set_log_probs(decoder, encoding)
    wanted = torch.stack([every[frozenset(each)][row] for row, each in enumerate(label_sets)])
    found = by_subsets(decoder, encoding, label_sets, exact_up_to=exact_up_to)
    torch.testing.assert_close(found, wanted)


@torch.no_grad()
def test_sets_of_a_document_share_their_subsets_without_gradients():
    decoder, encoding = order_free()
    label_sets, documents = [{0, 1, 2}, {3}, set(), {0, 1, 2, 3, 4}, {0, 2}], [1, 0, 1, 2, 1, 0]
    label_sets = [*label_sets, {3, 4}]
    every, computed, after = set_log_probs(decoder, encoding), [], decoder.after

    def count(encoding, subsets):
        computed.append(len(subsets.rows))
        return after(encoding, subsets)

    decoder.after = count
    found = by_subsets(decoder, encoding, label_sets, documents=torch.tensor(documents))
    wanted = [every[frozenset(each)][row] for each, row in zip(label_sets, documents, strict=True)]
    torch.testing.assert_close(found, torch.stack(wanted))
    assert computed == [8 + 4 + 32]  # of documents 1, 0 and 2


def test_a_narrow_search_gives_a_lower_bound_that_grows_to_the_exact_value():
    decoder, encoding = order_free(n_labels=8)
    label_sets = [set(range(8))] * B
    exact = by_subsets(decoder, encoding, label_sets)
    bounds = [
        by_subsets(decoder, encoding, label_sets, width, exact_up_to=0) for width in (1, 4, 16, 70)
    ]
    assert all((bound <= exact + 1e-5).all() for bound in bounds)
    assert bounds[0].mean() < bounds[1].mean() < bounds[2].mean()
    torch.testing.assert_close(bounds[-1], exact)


@pytest.mark.parametrize("exact_up_to", [EXACT_UP_TO, 2])
def test_gradients_are_those_of_the_sum_over_orders(exact_up_to):
    label_sets = [{0, 1, 2}, {3}, set(), {1, 2, 3, 4}]
    gradients = []
    for way in ("subsets", "orders"):
        decoder, encoding = order_free()
        if way == "subsets":
            total = by_subsets(decoder, encoding, label_sets, exact_up_to=exact_up_to).sum()
        else:
            total = sum(
                decoder.score(
                    encoding, torch.tensor([list(permutations(each))] * B, dtype=torch.long)
                )[row].logsumexp(0)
                for row, each in enumerate(label_sets)
            )
        total.backward()
        gradients.append({name: each.grad for name, each in decoder.named_parameters()})
    for name, found in gradients[0].items():
        torch.testing.assert_close(found, gradients[1][name], rtol=1e-3, atol=1e-5)


def test_twenty_labels_need_no_million_subsets():
    decoder, encoding = order_free(n_labels=20)
    found = by_subsets(decoder, encoding, [set(range(20)), set(), {3}, {1, 2}])
    assert (found <= 0).all()
    assert found.isfinite().all()
