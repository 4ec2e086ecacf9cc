"""The data of a comparison, as far as its report needs it: described once, from prepared data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from setrnn.comparison.records import Comparison
from setrnn.data.prepared import Prepared
from setrnn.errors import DataError
from setrnn.plain_settings import settings_hash

SHARED = ("labels", "label_counts", "ids", "truth")


def describe(prepared: Prepared) -> Comparison:
    """Collect from the prepared data what all runs share."""
    n_documents: dict[str, int] = prepared.description["n_documents"]
    if not n_documents.get("test"):
        raise DataError(
            f"{prepared.name} has no test part, and systems are compared on one. Give a folder "
            "with train and test files, or split the data with: setrnn data split"
        )
    test = prepared.split("test")
    if test.unknown is not None:
        raise DataError(
            f"{int((~test.is_complete).sum()):,} test documents of {prepared.name} have labels "
            "that are not known, and systems are compared on complete ones. Leave them out of "
            "test; setrnn evaluate can measure a model on them."
        )
    truth = [row.tolist() for row in test.labels]
    seen = {frozenset(row.tolist()) for row in prepared.seen_sets()}
    return Comparison(
        data=prepared.name,
        data_hash=settings_hash(prepared.description),
        synthetic=bool(prepared.description["source"].get("synthetic")),
        n_documents=dict(n_documents),
        valid_is_cut=prepared.valid_is_cut,
        labels=(*prepared.labels.names, *prepared.unseen_labels),
        label_counts=(*map(int, prepared.labels.counts), *[0] * len(prepared.unseen_labels)),
        ids=tuple(test.ids(0, len(test))),
        truth=truth,
        unseen_sets=tuple(row for row, each in enumerate(truth) if frozenset(each) not in seen),
        mean_words={
            split: round(float(prepared.split(split).tokens.lengths.mean()), 2)
            for split, n in n_documents.items()
            if n
        },
        parents=None if prepared.hierarchy is None else dict(prepared.hierarchy.parents),
    )


def is_same_data(comparison: Comparison, other: Comparison) -> bool:
    """Return whether two comparisons have the same labels, and the same test documents."""
    return all(getattr(comparison, name) == getattr(other, name) for name in SHARED)


def complete(folder: Path, comparison: Comparison, made: Comparison) -> Comparison:
    """Add what an older version did not record about the data."""
    names = ("unseen_sets", "mean_words")
    missing = [name for name in names if getattr(comparison, name) is None]
    if missing:
        comparison = replace(comparison, **{name: getattr(made, name) for name in missing})
        comparison.save(folder)
    return comparison
