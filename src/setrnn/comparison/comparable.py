"""The data of a comparison: prepared, with a part to choose on and a part to measure on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from setrnn.config import TextSettings
from setrnn.data.cache import Source, open_prepared
from setrnn.data.folders import recovered
from setrnn.data.formats import Dataset
from setrnn.data.prepared import Prepared, is_prepared
from setrnn.data.splits import VALID_SHARE
from setrnn.errors import DataError


def open_comparable(
    source: Source,
    settings: TextSettings,
    folder: Path | None = None,
    on_documents: Callable[[str, int], None] = lambda step, n_documents: None,
) -> Prepared:
    """Prepare data for a comparison, as `open_prepared`; a missing valid part is cut from train.

    `Prepared.valid_is_cut` tells whether it was: say so with `cut_note`.
    """
    place = Path(source.data)
    if is_prepared(recovered(place)):
        return _complete(open_prepared(source, settings, folder, on_documents))
    _require_test(source.open())
    return open_prepared(replace(source, cut_valid=True), settings, folder, on_documents)


def cut_note(prepared: Prepared) -> str:
    """Say that the valid part was cut, and what is left."""
    n_documents = prepared.description["n_documents"]
    return (
        f"{prepared.name} has no valid part: {VALID_SHARE:.0%} of train was cut off for it "
        f"(train {n_documents['train']:,}, valid {n_documents['valid']:,} documents)."
    )


def _complete(prepared: Prepared) -> Prepared:
    """Refuse a prepared folder that lacks a part: its vocabulary is that of all of train."""
    for name in ("train", "valid", "test"):
        if not prepared.description["n_documents"].get(name):
            raise DataError(
                f"{prepared.folder} was prepared without a '{name}' part, which a comparison "
                "needs. Give the data it was made from: a valid part is cut where there is none."
            )
    return prepared


def _require_test(dataset: Dataset) -> None:
    dataset.require("train")
    if "test" not in dataset.splits:
        kept = " --valid 0" if "valid" in dataset.splits else ""
        raise DataError(
            f"{dataset.place} has no 'test' part to compare on: found "
            f"{', '.join(sorted(dataset.splits))}. Cut one: setrnn data split {dataset.place} "
            f"FOLDER{kept}, then compare FOLDER."
        )
