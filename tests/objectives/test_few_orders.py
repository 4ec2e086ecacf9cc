"""Orders of small sets from a table, of larger ones from a search, in groups or not."""

from itertools import permutations
from math import factorial

import pytest
import torch

from brute_force_sequences import TableDecoder, as_tuple, documents, sets_of
from setrnn.objectives.few_orders import count_orders, fill_in_all_orders, search_large_sets
from setrnn.search.beam_search import search_orders

LABEL_SETS = [(0, 1, 2, 3, 4), (1, 3), (), (0, 2, 3, 4), (2,), (1, 2, 4), (0, 1, 2, 4)]


@pytest.mark.parametrize("n_orders", [1, 2, 5, 6, 12, 30])
def test_a_set_has_all_its_orders_or_as_many_as_asked_for(n_orders):
    sizes = torch.arange(12)
    expected = [min(factorial(size), n_orders) for size in range(12)]
    assert count_orders(sizes, n_orders).tolist() == expected


@pytest.mark.parametrize("n_orders", [1, 2, 6, 12, 24, 30])
def test_the_table_holds_every_order_of_every_small_set_once_and_leaves_the_others(n_orders):
    label_sets = sets_of(LABEL_SETS)
    counts = count_orders(label_sets.sizes, n_orders).tolist()
    orders = fill_in_all_orders(label_sets, torch.full((len(LABEL_SETS), n_orders, 5), 77))
    for labels, rows, n in zip(LABEL_SETS, orders, counts, strict=True):
        if factorial(len(labels)) <= n_orders:
            assert sorted(map(as_tuple, rows[:n])) == sorted(permutations(labels))
        else:
            assert (rows == 77).all()


@pytest.mark.parametrize("n_orders", [1, 5, 30, 130])
@pytest.mark.parametrize("largest_known", [1, 3])
def test_sets_are_searched_together_as_they_are_alone(n_orders, largest_known):
    decoder = TableDecoder(5, n_documents=len(LABEL_SETS))
    encoding, label_sets = documents(len(LABEL_SETS)), sets_of(LABEL_SETS)
    found = search_large_sets(decoder, encoding, label_sets, n_orders, largest_known)
    assert found.shape == (len(LABEL_SETS), n_orders, 5)
    for document, labels in enumerate(LABEL_SETS):
        if len(labels) <= largest_known:
            assert all(as_tuple(row) == labels for row in found[document])
            continue
        n = min(factorial(len(labels)), n_orders)
        alone = encoding.rows(torch.tensor([document]))
        expected = search_orders(decoder, alone, torch.tensor([[labels]]), n_orders).labels[0, 0]
        assert [*map(as_tuple, found[document, :n])] == [*map(as_tuple, expected)]
