"""The data of a comparison, as all runs and the report share it, and its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from setrnn.comparison.records import COMPARISON_FILE, MODELS, REPORT, RUNS, Comparison
from setrnn.config import TextSettings, settings_hash
from setrnn.data.cache import Source, open_prepared
from setrnn.data.prepared import Prepared
from setrnn.errors import DataError
from setrnn.progress import OnProgress, ignore_progress

PREPARED = "prepared"  # prepared data may be kept in the folder too
_SHARED = ("data_hash", "labels", "label_counts", "ids", "truth")  # the same in all runs


def open_comparable(
    source: Source,
    settings: TextSettings,
    folder: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Prepared:
    """Prepare data as `open_prepared` does; a missing valid part is cut from train.

    `Prepared.valid_is_cut` says whether it was cut.
    """
    if source.prepared_folder is None:
        dataset = source.open()
        dataset.require("train")
        if "test" not in dataset.splits:
            kept = " --valid 0" if "valid" in dataset.splits else ""
            raise DataError(
                f"{dataset.place} has no 'test' part to compare on: found "
                f"{', '.join(sorted(dataset.splits))}. Cut one: setrnn data split {dataset.place} "
                f"FOLDER{kept}, then compare FOLDER."
            )
        return open_prepared(replace(source, cut_valid=True), settings, folder, on_progress)
    prepared = open_prepared(source, settings, folder, on_progress)
    for name in ("train", "valid", "test"):  # its vocabulary is that of all of train: no cut
        if not prepared.description["n_documents"].get(name):
            raise DataError(
                f"{prepared.folder} was prepared without a '{name}' part, which a comparison "
                "needs. Give the data it was made from: a missing valid part is cut from train."
            )
    return prepared


def describe(prepared: Prepared) -> Comparison:
    """Collect from the prepared data what all runs share."""
    n_documents: dict[str, int] = prepared.description["n_documents"]
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


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that holds anything other than a comparison."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Choose another --out.")
    if not folder.exists() or (folder / COMPARISON_FILE).is_file():
        return
    others = {each.name for each in folder.iterdir() if not each.name.startswith(".")}
    if not others <= {RUNS, MODELS, REPORT, PREPARED}:
        raise DataError(f"{folder} exists and is not a comparison. Choose another --out.")


def open_comparison(folder: Path, prepared: Prepared) -> Comparison:
    """Create the file of a comparison, or open an existing one."""
    refuse_other_folder(folder)
    described = describe(prepared)
    if not (folder / COMPARISON_FILE).is_file():
        described.save(folder)
        return described
    comparison = Comparison.load(folder)
    # The file may have been edited: its hash alone proves nothing.
    if any(getattr(comparison, name) != getattr(described, name) for name in _SHARED):
        raise DataError(
            f"{folder} compares systems on other data ({comparison.data}), or on the same data "
            "with other text settings. Choose another --out."
        )
    return comparison
