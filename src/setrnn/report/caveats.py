"""The caveats of a report: what limits what its numbers show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from setrnn import __version__
from setrnn.comparison.records import Comparison, Record
from setrnn.comparison.statistics import DRAWS, LEVEL
from setrnn.report.systems import CLASSICAL
from setrnn.report.wording import format_count, join_names
from setrnn.tagging.calibration import LEAST_DOCUMENTS

MESSAGE_LENGTH = 200
FEW_DOCUMENTS = 500
MOST_NAMED = 10


def list_caveats(comparison: Comparison, records: Sequence[Record]) -> list[str]:
    """Return one sentence per caveat."""
    succeeded = [record for record in records if record.test is not None]
    return [
        *_check_data(comparison),
        *_check_failures(records),
        *_check_seeds(succeeded),
        *_check_tests(succeeded),
        *_check_runs(succeeded),
    ]


def _check_data(comparison: Comparison) -> Iterator[str]:
    n_valid, n_test = comparison.n_documents.get("valid", 0), len(comparison.truth)
    if comparison.synthetic:
        yield (
            "The data is synthetic: the numbers show that the systems work, not how they rank on "
            "real texts."
        )
    if comparison.valid_is_cut:
        n_cut = format_count(n_valid, "document")
        yield f"The data had no valid part: {n_cut} of train are used as one."
    if n_valid < LEAST_DOCUMENTS:
        yield (
            f"{format_count(n_valid, 'valid document')} are too few to calibrate: probabilities "
            "are not calibrated, and the rules micro-f1 and label-f1, which need thresholds, are "
            "left out."
        )
    if comparison.unseen_sets is None:
        yield (
            "It is not known which label sets of test do not occur in train, nor how long "
            "documents are: an older version made the comparison. 'setrnn report DIR --data DATA' "
            "adds it."
        )
    if n_test < FEW_DOCUMENTS:
        yield (
            f"The test part has only {format_count(n_test, 'document')}: small differences cannot "
            "be shown."
        )


def _check_failures(records: Sequence[Record]) -> Iterator[str]:
    reasons = []
    for record in records:
        if record.failure is not None:
            message = " ".join(record.failure.message.split()).rstrip(".")
            if len(message) > MESSAGE_LENGTH:
                message = f"{message[:MESSAGE_LENGTH]} …"
            reasons.append(f"{record.name} ({record.failure.kind}: {message})")
    if reasons:
        n_runs = format_count(len(records), "run")
        yield f"{len(reasons)} of {n_runs} failed and are left out: {'; '.join(reasons)}."


def _check_seeds(records: Sequence[Record]) -> Iterator[str]:
    n_seeds = Counter(
        record.method
        for record in records
        if record.method not in CLASSICAL and not record.is_added
    )
    single = [system for system, n in n_seeds.items() if n == 1]
    if single:
        which = f"{join_names(single)} {'was' if len(single) == 1 else 'were'}"
        if len(single) == len(n_seeds) > 1:
            which = "Each network was"
        yield (
            f"{which} trained with one seed only: the intervals cover the choice of documents, not "
            "the chance in training."
        )
    elif len(set(n_seeds.values())) > 1:
        yield "The systems have different numbers of seeds."


def _check_tests(records: Sequence[Record]) -> Iterator[str]:
    """Check whether the least p that the draws can give is small enough for all pairs."""
    n_systems = len({record.method for record in records})
    n_pairs = math.comb(n_systems, 2)
    if n_pairs * 2 / (DRAWS + 1) > LEVEL:
        yield (
            f"With {n_systems} systems, none of the {n_pairs:,} differences between them can be "
            "significant after the correction for so many tests: compare fewer at a time."
        )


def _check_runs(records: Sequence[Record]) -> Iterator[str]:
    """Check the budget, the machine, the versions and the origin of the runs."""
    cut = [record.name for record in records if record.treatment.get("was_cut_by_budget")]
    if cut:
        names = join_names(cut)
        yield f"The budget ended the training of {names}: more time may raise their scores."
    n_jobs = max((record.costs.n_jobs for record in records if record.costs is not None), default=1)
    if n_jobs > 1:
        yield (
            f"Up to {n_jobs} runs shared the machine: times, speeds and memory are not those of a "
            "run alone."
        )
    devices = {
        str(record.environment["device"])
        for record in records
        if "device" in record.environment and record.method not in CLASSICAL
    }
    if len(devices) > 1:
        names = join_names(sorted(devices))
        yield f"Runs used different devices ({names}): do not compare times."
    versions = sorted({record.setrnn for record in records} | {__version__})
    if len(versions) > 1:
        yield (
            "The runs and this report were made by different versions of setrnn "
            f"({join_names(versions)}): this may affect the numbers."
        )
    added = list(dict.fromkeys(record.method for record in records if record.is_added))
    if added:
        which = join_names(added) if len(added) <= MOST_NAMED else f"{len(added)} systems"
        yield (
            f"The predictions of {which} were made elsewhere, possibly with other "
            "training data and more tuning."
        )
