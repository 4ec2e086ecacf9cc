"""The caveats of a report: what limits what its numbers show."""

from __future__ import annotations

from collections.abc import Sequence

from setrnn import __version__
from setrnn.comparison.records import Comparison, Record
from setrnn.report.systems import CLASSICAL
from setrnn.report.wording import format_count, join_names

MESSAGE_LENGTH = 200
FEW_DOCUMENTS = 500
LEAST_VALID = 100  # for a calibration; the same as in setrnn.tagging.calibrating


def list_caveats(comparison: Comparison, records: Sequence[Record]) -> list[str]:
    """Return one sentence per caveat."""
    succeeded = [record for record in records if record.test is not None]
    return [
        *_data(comparison),
        *_failures(records),
        *_seeds(succeeded),
        *_budget(succeeded),
        *_machine(succeeded),
        *_versions(succeeded),
        *_added(succeeded),
    ]


def _data(comparison: Comparison) -> list[str]:
    said = []
    if comparison.synthetic:
        said.append(
            "The data is synthetic: the numbers show that the systems work, not how they rank on "
            "real texts."
        )
    if comparison.valid_is_cut:
        n_valid = comparison.n_documents.get("valid", 0)
        n_cut = format_count(n_valid, "document")
        said.append(f"The data had no valid part: {n_cut} of train are used as one.")
    n_valid = comparison.n_documents.get("valid", 0)
    if n_valid < LEAST_VALID:
        said.append(
            f"{format_count(n_valid, 'valid document')} are too few to calibrate: probabilities "
            "are not calibrated, and the rules micro-f1 and label-f1, which need thresholds, are "
            "left out."
        )
    n_test = len(comparison.truth)
    if n_test < FEW_DOCUMENTS:
        said.append(
            f"The test part has only {format_count(n_test, 'document')}: small differences cannot "
            "be shown."
        )
    return said


def _failures(records: Sequence[Record]) -> list[str]:
    failed = [record for record in records if record.failure is not None]
    if not failed:
        return []
    reasons = [
        f"{record.name} ({record.failure.kind}: {_short(record.failure.message)})"
        for record in failed
        if record.failure is not None
    ]
    return [
        f"{len(failed)} of {format_count(len(records), 'run')} failed and are left out: "
        f"{'; '.join(reasons)}."
    ]


def _short(message: str) -> str:
    line = " ".join(message.split()).rstrip(".")
    return line if len(line) <= MESSAGE_LENGTH else f"{line[:MESSAGE_LENGTH]} …"


def _seeds(records: Sequence[Record]) -> list[str]:
    by_system: dict[str, int] = {}
    for record in records:
        if record.method not in CLASSICAL and not record.is_added:
            by_system[record.method] = by_system.get(record.method, 0) + 1
    single = [system for system, n in by_system.items() if n == 1]
    if single:
        if len(single) == len(by_system) > 1:
            which = "Each network was"
        else:
            which = f"{join_names(single)} {'was' if len(single) == 1 else 'were'}"
        return [
            f"{which} trained with one seed only: the intervals cover the choice of documents, not "
            "the chance in training."
        ]
    if len(set(by_system.values())) > 1:
        return ["The systems have different numbers of seeds."]
    return []


def _budget(records: Sequence[Record]) -> list[str]:
    cut = [record.name for record in records if record.treatment.get("was_cut_by_budget")]
    if not cut:
        return []
    return [
        f"The budget ended the training of {join_names(cut)}: more time may raise their scores."
    ]


def _machine(records: Sequence[Record]) -> list[str]:
    said = []
    n_jobs = max((record.costs.n_jobs for record in records if record.costs is not None), default=1)
    if n_jobs > 1:
        said.append(
            f"Up to {n_jobs} runs shared the machine: times, speeds and memory are not those of a "
            "run alone."
        )
    devices = {
        str(record.environment["device"])
        for record in records
        if "device" in record.environment and record.method not in CLASSICAL
    }
    if len(devices) > 1:
        said.append(
            f"Runs used different devices ({join_names(sorted(devices))}): do not compare times."
        )
    return said


def _versions(records: Sequence[Record]) -> list[str]:
    found = sorted({record.setrnn for record in records} | {__version__})
    if len(found) == 1:
        return []
    return [
        "The runs and this report were made by different versions of setrnn "
        f"({join_names(found)}): this may affect the numbers."
    ]


def _added(records: Sequence[Record]) -> list[str]:
    added = list(dict.fromkeys(record.method for record in records if record.is_added))
    if not added:
        return []
    return [
        f"The predictions of {join_names(added)} were made elsewhere, possibly with other training "
        "data and more tuning."
    ]
