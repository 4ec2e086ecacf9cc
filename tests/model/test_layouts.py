"""Steps laid out without padding: what comes out is what a padded computation gives."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from setrnn.model.layouts import Prefixes, Steps, Subsets

N_LABELS = 5
STOP = N_LABELS
# documents of the same number of orders each; None is no order
batches = st.integers(1, 3).flatmap(
    lambda n_orders: st.lists(
        st.lists(
            st.none()
            | st.permutations(range(N_LABELS)).flatmap(
                lambda labels: st.integers(0, N_LABELS).map(lambda n: tuple(labels[:n]))
            ),
            min_size=n_orders,
            max_size=n_orders,
        ),
        min_size=1,
        max_size=4,
    )
)
MIXED = [[(2, 0, 1), (3,)], [(), None], [None, None], [(4, 3), (0, 1, 2, 3, 4)]]


def orders_and_lengths(batch, width=None):
    """Orders (B, K, S) with -1 behind, and their lengths (B, K), -1 for none."""
    lengths = torch.tensor([[-1 if each is None else len(each) for each in row] for row in batch])
    width = max(int(lengths.max()), 0) if width is None else width
    orders = torch.full((*lengths.shape, width), -1)
    for document, row in enumerate(batch):
        for number, order in enumerate(row):
            labels = order or ()
            orders[document, number, : len(labels)] = torch.tensor(labels, dtype=torch.long)
    return orders, lengths


def steps_of(batch):
    """{(document, order, step): (label before, label emitted, labels used)}, one by one."""
    return {
        (document, number, step): (
            order[step - 1] if step else STOP,
            order[step] if step < len(order) else STOP,
            set(order[:step]),
        )
        for document, row in enumerate(batch)
        for number, order in enumerate(row)
        if order is not None
        for step in range(len(order) + 1)
    }


def names(steps):
    """The document, order and step of every step, as laid out."""
    K = steps.shape[1]
    sequence = steps.sequence[steps.row]
    return list(
        zip((sequence // K).tolist(), (sequence % K).tolist(), steps.step.tolist(), strict=True)
    )


@given(batches, st.integers(0, 2))
def test_every_step_is_laid_out_once_with_its_labels(batch, more_width):
    orders, lengths = orders_and_lengths(batch)
    orders = nn.functional.pad(orders, (0, more_width), value=-1)
    steps, expected = Steps.of(orders, lengths), steps_of(batch)
    laid_out = names(steps)
    assert sorted(laid_out) == sorted(expected)
    is_used = steps.used_labels(N_LABELS)
    assert is_used.shape == (len(expected), N_LABELS + 1)
    for name, before, emitted, used in zip(
        laid_out,
        steps.previous(STOP).tolist(),
        steps.targets(STOP).tolist(),
        is_used,
        strict=True,
    ):
        assert (before, emitted, {*used.nonzero()[:, 0].tolist()}) == expected[name]


@given(batches)
def test_the_layout_is_that_of_a_packed_sequence(batch):
    """First steps first; at each step, the same orders as before, less those that ended."""
    steps = Steps.of(*orders_and_lengths(batch))
    assert steps.n_rows.tolist() == sorted(steps.n_rows.tolist(), reverse=True)
    rows, at = [], 0
    for number, n in enumerate(steps.n_rows.tolist()):
        assert steps.step[at : at + n].tolist() == [number] * n
        rows.append(steps.row[at : at + n].tolist())
        at += n
    assert at == len(steps.row)
    assert rows == [list(range(n)) for n in steps.n_rows.tolist()]
    assert torch.equal(steps.document, steps.sequence // steps.shape[1])


@given(batches)
def test_a_document_has_its_steps_together_and_takes_no_more_room_than_the_largest(batch):
    steps = Steps.of(*orders_and_lengths(batch))
    n_steps = [sum(len(each) + 1 for each in row if each is not None) for row in batch]
    assert steps.shape == (len(batch), len(batch[0]), max(n_steps))
    values = torch.randn(len(steps.row), 3)
    grouped = steps.by_document(values)
    assert grouped.shape == (len(batch), max(n_steps), 3)
    assert torch.equal(steps.by_step(grouped), values), "there and back"
    for document, n in enumerate(n_steps):
        mine = [row for row, name in enumerate(names(steps)) if name[0] == document]
        mine.sort(key=lambda row: names(steps)[row][1:])
        assert torch.equal(grouped[document, :n], values[mine]), "order after order"
        assert not grouped[document, n:].any(), "padded with 0"


@given(batches)
def test_sums_over_the_steps_of_each_order(batch):
    steps = Steps.of(*orders_and_lengths(batch))
    values = torch.randint(-9, 9, (len(steps.row),)).double()
    expected = torch.full(steps.shape[:2], -torch.inf, dtype=torch.double)
    for (document, number, _), value in zip(names(steps), values, strict=True):
        if expected[document, number] == -torch.inf:
            expected[document, number] = 0.0
        expected[document, number] += value
    assert torch.equal(steps.sum_by_order(values), expected)


def test_sets_without_labels_have_the_step_of_stop():
    steps = Steps.of(torch.empty(3, 2, 0, dtype=torch.long))
    assert steps.shape == (3, 2, 2)
    assert steps.n_rows.tolist() == [6]
    assert steps.previous(STOP).tolist() == steps.targets(STOP).tolist() == [STOP] * 6
    assert not steps.used_labels(N_LABELS).any()


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 3, 2)], ids=["no documents", "no orders"])
def test_where_there_is_no_order_there_is_no_step(shape):
    steps = Steps.of(torch.full(shape, -1), torch.full(shape[:2], -1))
    assert len(steps.row) == len(steps.sequence) == len(steps.n_rows) == 0
    assert steps.used_labels(N_LABELS).shape == (0, N_LABELS + 1)
    sums = steps.sum_by_order(torch.empty(0))
    assert sums.shape == shape[:2]
    assert (sums == -torch.inf).all()
    assert steps.by_step(steps.by_document(torch.empty(0, 4))).shape == (0, 4)


@given(batches)
def test_prefixes_are_distinct_and_complete(batch):
    orders, lengths = orders_and_lengths(batch)
    prefixes = Prefixes.of(orders, lengths, STOP)
    expected = {
        (document, order[:step])
        for document, row in enumerate(batch)
        for order in [(), *(each for each in row if each is not None)]
        for step in range(len(order) + 1)
    }
    found, first = [(document, ()) for document in range(len(batch))], 0
    for rows, place in prefixes.parents:
        parents = rows[place] + first
        first = len(found)
        labels = prefixes.label[first : first + len(place)].tolist()
        pairs = zip(parents.tolist(), labels, strict=True)
        found += [(found[parent][0], (*found[parent][1], label)) for parent, label in pairs]
    assert len(found) == len(set(found)) == len(prefixes.label)
    assert set(found) == expected
    assert prefixes.document.tolist() == [document for document, _ in found]
    used = [set(row.nonzero()[:, 0].tolist()) for row in prefixes.is_used]
    assert used == [set(labels) for _, labels in found]


@given(batches)
def test_orders_sum_what_follows_their_prefixes(batch):
    orders, lengths = orders_and_lengths(batch)
    prefixes = Prefixes.of(orders, lengths, STOP)
    values = torch.randint(0, 1000, prefixes.is_used.shape)  # of each output after each prefix
    names = {}
    for row, (document, is_used) in enumerate(
        zip(prefixes.document, prefixes.is_used, strict=True)
    ):
        names.setdefault((int(document), frozenset(is_used.nonzero()[:, 0].tolist())), []).append(
            row
        )
    sums = prefixes.sum_by_order(values.float())
    for (document, number), total in np.ndenumerate(sums.numpy()):
        order = batch[document][number]
        if order is None:
            assert total == -np.inf
            continue
        possible = {0.0}
        for step, label in enumerate((*order, STOP)):
            rows = names[document, frozenset(order[:step])]
            possible = {each + float(values[row, label]) for each in possible for row in rows}
        assert total in possible


def test_the_labels_of_subsets_are_summed():
    labels = torch.tensor([[0, 3], [0, 3], [0, 3], [0, 3], [4, 1], [4, 1], [4, 1], [4, 1], [2, 0]])
    is_member = torch.tensor([[0, 0], [1, 0], [0, 1], [1, 1]] * 2 + [[1, 0]]) > 0
    rows = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2])
    subsets = Subsets(torch.arange(3), [(2, 4), (1, 1)], rows, labels, is_member)
    values = torch.randn(STOP + 1, 3)
    expected = subsets.used_labels(STOP).float() @ values
    torch.testing.assert_close(subsets.sum_labels(values), expected)
