"""Iterative stratification: cut documents with label sets into parts that look alike.

After Sechidis, Tsoumakas and Vlahavas, On the Stratification of Multi-Label Data, 2011:
labels are treated from the rarest to the most frequent, since a rare one is the hardest
to spread later, and each document goes where its label is most wanted.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from setrnn.errors import DataError

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    Counts: TypeAlias = NDArray[np.int64]
    Values: TypeAlias = NDArray[np.float64]
    Sparse: TypeAlias = csr_array[Any, tuple[int, int]]

_NOT_PLACED = -1

# N documents, U units (documents or groups of them), L labels, P parts


def stratified_split(
    label_sets: Sequence[Collection[Hashable]],
    shares: Sequence[float],
    seed: int,
    groups: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Choose a part for each document so that each label is shared out as the documents are.

    Part sizes are exact: `shares` of the documents, rounded so that none is lost and no
    part is empty. A label in at least as many documents as there are parts wants one in
    each, and gets it while those parts have room, save where rarer labels have placed its
    documents before: for some data no split serves every label. For the same reason the
    few most frequent labels, whose documents others have placed, lie about as far from
    their shares as by chance.

    Documents with the same value in `groups` (copies of one text, say) stay together. A
    group counts once for each of its labels, and part sizes are as close as groups allow.
    Takes time in proportion to documents and labels: some 2 seconds for 200,000 documents.
    """
    n_documents = len(label_sets)
    _check_shares(shares, n_documents)
    generator = np.random.default_rng(seed)
    unit_of_document = _units(groups, n_documents)  # (N,)
    unit_sizes = np.bincount(unit_of_document)  # (U,)
    membership = _membership(label_sets, unit_of_document, len(unit_sizes))  # (U, L)
    part_of_unit = _place_all(membership, unit_sizes, shares, generator)  # (U,)
    if len(np.unique(part_of_unit)) < len(shares):
        raise DataError("The groups are too large for these shares: a part would be empty.")
    return part_of_unit[unit_of_document]


def _place_all(
    membership: Sparse,
    unit_sizes: Counts,
    shares: Sequence[float],
    generator: np.random.Generator,
) -> Counts:
    """Place the units of the rarest label left, again and again, then those without labels."""
    units_of_label = membership.T.tocsr()  # (L, U)
    n_left = np.diff(units_of_label.indptr)  # (L,) units not placed yet
    wanted = _wanted(n_left, shares)  # (L, P) units still wanted by each part
    room = _part_sizes(int(unit_sizes.sum()), shares).tolist()
    part_of_unit = np.full(len(unit_sizes), _NOT_PLACED)
    rarest = [(n, label) for label, n in enumerate(n_left.tolist()) if n]
    heapq.heapify(rarest)
    while rarest:
        n, label = heapq.heappop(rarest)
        if n != n_left[label]:
            continue  # out of date: the label stands in the heap again with fewer units
        units = units_of_label.indices[slice(*units_of_label.indptr[label : label + 2])]
        units = generator.permutation(units[part_of_unit[units] == _NOT_PLACED])
        parts = _place(unit_sizes[units].tolist(), wanted[label].tolist(), room)
        part_of_unit[units] = parts
        placed = membership[units]
        np.subtract.at(wanted, (placed.indices, np.repeat(parts, np.diff(placed.indptr))), 1)
        touched, n_placed = np.unique(placed.indices, return_counts=True)
        n_left[touched] -= n_placed
        for other in touched[n_left[touched] > 0].tolist():
            heapq.heappush(rarest, (int(n_left[other]), other))
    unlabelled = generator.permutation(np.flatnonzero(part_of_unit == _NOT_PLACED))
    nothing_wanted = [0.0] * len(room)
    part_of_unit[unlabelled] = _place(unit_sizes[unlabelled].tolist(), nothing_wanted, room)
    return part_of_unit


def _place(sizes: list[int], wanted: list[float], room: list[int]) -> list[int]:
    """Choose a part for units in turn, and take their sizes from its room.

    First come the parts with room, or those least short of it; then those that want
    the label most; then those with the most room.
    """
    parts = range(len(room))
    chosen = []
    for size in sizes:
        best = max(parts, key=lambda p: (min(0, room[p] - size), wanted[p], room[p]))
        wanted[best] -= 1
        room[best] -= size
        chosen.append(best)
    return chosen


def _wanted(totals: Counts, shares: Sequence[float]) -> Values:
    """Share out each total, fractions and all, but at least 1 to each part where it suffices."""
    wanted = np.outer(totals, shares) / math.fsum(shares)  # (n, P)
    raised = np.maximum(wanted, 1)
    # What lies above 1 shrinks in proportion, so that the sum stays.
    above_one = (raised - 1).sum(axis=1)
    scale = (totals - len(shares)) / np.where(above_one > 0, above_one, 1)
    is_enough = totals >= len(shares)
    wanted[is_enough] = 1 + (raised[is_enough] - 1) * scale[is_enough, np.newaxis]
    return wanted


def _part_sizes(n_documents: int, shares: Sequence[float]) -> Counts:
    """Round the sizes of the parts to whole documents, the largest remainders up."""
    wanted = _wanted(np.array([n_documents]), shares)[0]
    sizes: Counts = np.floor(wanted).astype(np.int64)
    by_remainder = np.argsort(sizes - wanted, kind="stable")
    sizes[by_remainder[: n_documents - sizes.sum()]] += 1
    return sizes


def _units(groups: ArrayLike | None, n_documents: int) -> NDArray[np.intp]:
    """Number the groups; without any, each document is its own."""
    if groups is None:
        return np.arange(n_documents)
    groups = np.asarray(groups)
    if groups.shape != (n_documents,):
        raise DataError(
            f"groups must name one group for each of the {n_documents} documents, "
            f"got the shape {groups.shape}."
        )
    return np.unique(groups, return_inverse=True)[1]


def _membership(
    label_sets: Sequence[Collection[Hashable]], unit_of_document: NDArray[np.intp], n_units: int
) -> Sparse:
    """Mark which unit carries which label; labels are numbered as they first come."""
    lone_string = next((labels for labels in label_sets if isinstance(labels, str)), None)
    if lone_string is not None:
        raise DataError(f"Wanted a set of labels for each document, got {lone_string!r}.")
    sizes = np.fromiter(map(len, label_sets), dtype=np.int64, count=len(label_sets))
    column_of: dict[Hashable, int] = {}
    columns = [
        column_of.setdefault(label, len(column_of)) for label in chain.from_iterable(label_sets)
    ]
    units = np.repeat(unit_of_document, sizes)
    ones = np.ones(len(columns), dtype=bool)
    membership = csr_array((ones, (units, columns)), shape=(n_units, len(column_of)))
    membership.sum_duplicates()
    return membership


def _check_shares(shares: Sequence[float], n_documents: int) -> None:
    listed = ", ".join(f"{share:g}" for share in shares)
    if not all(share > 0 for share in shares):
        raise DataError(f"The shares of the parts must be above 0, got {listed}.")
    if not math.isclose(math.fsum(shares), 1, abs_tol=1e-6):
        raise DataError(f"The shares of the parts must add up to 1, got {listed}.")
    if n_documents < len(shares):
        raise DataError(f"{n_documents} documents cannot make {len(shares)} parts.")
