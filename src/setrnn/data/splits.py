"""Cut documents into parts with similar label distributions: train, valid and test.

Iterative stratification, after Sechidis, Tsoumakas and Vlahavas, On the Stratification of
Multi-Label Data, 2011: labels are processed from the rarest to the most frequent, because a rare
one is the hardest to distribute later, and each document goes to the part that needs its label
most.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from setrnn.config import Config
from setrnn.data.example import Example, text_hash
from setrnn.data.read import BadRows, Dataset, Split
from setrnn.data.read.reader import OnBadRow
from setrnn.errors import DataError

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    Counts: TypeAlias = npt.NDArray[np.int64]
    Sparse: TypeAlias = scipy.sparse.csr_array[Any, tuple[int, int]]

VALID_SHARE = 0.1  # of train, if a valid split is cut from it
# Fewer documents neither choose nor calibrate well: a small train gives a larger share.
MIN_VALID, MAX_SHARE = 150, 0.25
SEED = 0

_NOT_PLACED = -1

# N documents, U units (documents or groups of them), L labels, P parts


def cut_train(
    dataset: Dataset, shares: Mapping[str, float] | None = None, seed: int = SEED
) -> Dataset:
    """Cut train into the named parts, one of which is train again; keep the other splits.

    Documents with the same text go to the same part; rare labels reach every part. Nothing is
    read yet. The first reading of a part takes one more pass over train. Rows that cannot be read
    are counted once, in the first part. Without shares, the parts are train and valid.

    Example:
        >>> from setrnn.data.read import open_dataset
        >>> dataset = open_dataset("newsroom")
        >>> list(cut_train(Dataset("news", "news", {"train": dataset.splits["train"]}),
        ...                {"train": 0.8, "test": 0.2}).splits)
        ['train', 'test']
    """
    if shares is not None:
        _check_shares(list(shares.values()), list(shares))
    Config(seed=seed)  # checks it
    train = dataset.require("train")
    others = {name: split for name, split in dataset.splits.items() if name != "train"}
    names = ["train", "valid"] if shares is None else list(shares)

    @cache
    def part_of_documents(on_bad_row: OnBadRow) -> list[int]:
        examples = train.read(BadRows(on_bad_row))
        chosen = None if shares is None else list(shares.values())
        return choose_parts(examples, chosen, seed, f"{dataset.place}: train")

    def read(part: int, bad_rows: BadRows) -> Iterator[Example]:
        counted = bad_rows if part == 0 else BadRows(bad_rows.on_bad_row)
        parts = part_of_documents(bad_rows.on_bad_row)
        for example, its_part in zip(train.read(counted), parts, strict=True):
            if its_part == part:
                yield example

    cut = {name: Split(train.files, partial(read, names.index(name))) for name in names}
    return Dataset(dataset.name, dataset.place, {**cut, **others})


def with_valid(dataset: Dataset) -> Dataset:
    """Cut a valid split from train if the data has none; always the same documents."""
    return dataset if "valid" in dataset.splits else cut_train(dataset)


def choose_parts(
    examples: Iterable[Example],
    shares: Sequence[float] | None = None,
    seed: int = SEED,
    place: str = "The data",
) -> list[int]:
    """Choose a part for each document; documents with the same text go to the same part.

    Without shares, the parts are train and valid, which is larger if there are few documents.
    """
    label_sets: list[tuple[str, ...]] = []
    texts: list[int] = []  # copies of a text have the same number
    numbers: dict[bytes, int] = {}
    for example in examples:
        label_sets.append(example.labels)
        texts.append(numbers.setdefault(text_hash(example.text), len(numbers)))
    if shares is None:
        share = max(VALID_SHARE, min(MIN_VALID / max(len(texts), 1), MAX_SHARE))
        shares = [1 - share, share]
    try:
        parts: list[int] = stratified_split(label_sets, shares, seed, texts).tolist()
    except DataError as error:
        raise DataError(
            f"{place} has too few different texts ({len(numbers)}) to be cut into {len(shares)} "
            "parts. Add documents."
        ) from error
    return parts


def stratified_split(
    label_sets: Sequence[Collection[Hashable]],
    shares: Sequence[float],
    seed: int,
    groups: npt.ArrayLike | None = None,
) -> npt.NDArray[np.int64]:
    """Choose a part for each document, so that each label is distributed like the documents.

    Part sizes are exact: `shares` of the documents, rounded so that no document is lost and no
    part is empty. A label in at least as many documents as there are parts reaches every part
    while the parts have room, unless rarer labels have already placed its documents: for some
    data, no split serves every label. For the same reason, the few most frequent labels are
    distributed about as evenly as by chance.

    Documents with the same value in `groups` (such as copies of a text) stay together. A group
    counts once for each of its labels, and part sizes are as close as the groups allow. The time
    is proportional to documents and labels: about 2 seconds for 200,000 documents.

    Example:
        >>> parts = stratified_split([["a"], ["a"], ["b"], ["b"]], (0.5, 0.5), seed=0)
        >>> sorted(parts[:2].tolist()), sorted(parts[2:].tolist())
        ([0, 1], [0, 1])
    """
    n_documents = len(label_sets)
    _check_shares(shares)
    if n_documents < len(shares):
        raise DataError(f"{n_documents} documents cannot make {len(shares)} parts.")
    generator = np.random.default_rng(seed)
    groups = np.arange(n_documents) if groups is None else np.asarray(groups)
    unit_of_document = np.unique(groups, return_inverse=True)[1]  # (N,)
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
    """Place the units of the rarest remaining label until none is left, then the others."""
    units_of_label = membership.T.tocsr()  # (L, U)
    n_left = np.diff(units_of_label.indptr)  # (L,) units that are not placed
    wanted = _wanted(n_left, shares)  # (L, P) units that each part still needs
    room = _part_sizes(int(unit_sizes.sum()), shares).tolist()
    part_of_unit = np.full(len(unit_sizes), _NOT_PLACED)
    rarest = [(n, label) for label, n in enumerate(n_left.tolist()) if n]
    heapq.heapify(rarest)
    while rarest:
        n, label = heapq.heappop(rarest)
        if n != n_left[label]:
            continue  # out of date: the label is in the heap again with fewer units
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
    """Choose a part for one unit after the other, and take its size from the room of the part.

    Prefer parts with room, or the least lack of it; then parts that need the label most; then
    parts with the most room.
    """
    parts = range(len(room))
    chosen = []
    for size in sizes:
        best = max(parts, key=lambda p: (min(0, room[p] - size), wanted[p], room[p]))
        wanted[best] -= 1
        room[best] -= size
        chosen.append(best)
    return chosen


def _wanted(totals: Counts, shares: Sequence[float]) -> npt.NDArray[np.float64]:
    """Distribute each total by shares, with fractions; at least 1 per part if there are enough."""
    wanted = np.outer(totals, shares) / math.fsum(shares)  # (n, P)
    raised = np.maximum(wanted, 1)
    # What is above 1 shrinks in proportion, so that the sum stays the same.
    above_one = (raised - 1).sum(axis=1)
    scale = (totals - len(shares)) / np.where(above_one > 0, above_one, 1)
    is_enough = totals >= len(shares)
    wanted[is_enough] = 1 + (raised[is_enough] - 1) * scale[is_enough, np.newaxis]
    return wanted


def _part_sizes(n_documents: int, shares: Sequence[float]) -> Counts:
    """Round the sizes of the parts to whole documents, largest remainders first."""
    wanted = _wanted(np.array([n_documents]), shares)[0]
    sizes: Counts = np.floor(wanted).astype(np.int64)
    by_remainder = np.argsort(sizes - wanted, kind="stable")
    sizes[by_remainder[: n_documents - sizes.sum()]] += 1
    return sizes


def _membership(
    label_sets: Sequence[Collection[Hashable]], unit_of_document: npt.NDArray[np.intp], n_units: int
) -> Sparse:
    """Return which unit has which label; labels are numbered in order of appearance."""
    lone_string = next((labels for labels in label_sets if isinstance(labels, str)), None)
    if lone_string is not None:
        raise DataError(f"Expected a set of labels per document, got {lone_string!r}.")
    sizes = np.fromiter(map(len, label_sets), dtype=np.int64, count=len(label_sets))
    column_of: dict[Hashable, int] = {}
    columns = [
        column_of.setdefault(label, len(column_of)) for label in chain.from_iterable(label_sets)
    ]
    units = np.repeat(unit_of_document, sizes)
    ones = np.ones(len(columns), dtype=bool)
    membership = scipy.sparse.csr_array((ones, (units, columns)), shape=(n_units, len(column_of)))
    membership.sum_duplicates()
    return membership


def _check_shares(shares: Sequence[float], names: Sequence[str] = ()) -> None:
    named = zip(names or [""] * len(shares), shares, strict=True)
    listed = ", ".join(f"{name} {share:g}".strip() for name, share in named)
    if not all(share > 0 for share in shares):
        raise DataError(f"The shares of the parts must be above 0, got {listed}.")
    if not math.isclose(math.fsum(shares), 1, abs_tol=1e-6):
        raise DataError(f"The shares of the parts must add up to 1, got {listed}.")
