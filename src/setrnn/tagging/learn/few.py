"""Train without a method on few documents: classical systems, weighed by cross-validation.

A tenth of few documents is too small to choose on, and all of them are needed to learn from. The
members are trained on all documents. Their weights, the thresholds and the calibration come from
the predictions for each fold by systems that were trained on the other folds.
"""

# n documents

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from setrnn.config import Config
from setrnn.data.prepared import Prepared
from setrnn.data.source import Source
from setrnn.data.splits import MIN_VALID, VALID_SHARE
from setrnn.errors import DataError
from setrnn.methods import find_method
from setrnn.progress import OnProgress, count_up, log
from setrnn.systems.candidates import Ints
from setrnn.systems.cross_fitted import CrossFitted, choose_folds, mark_folds
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.products import fit_empty_set
from setrnn.systems.registry import find_system
from setrnn.systems.system import System
from setrnn.tagging.documents import Batch, LabelledDocuments, open_documents
from setrnn.tagging.learn.member_candidates import Candidate
from setrnn.tagging.learn.mix import join, mix_members
from setrnn.tagging.learn.mixture_weights import LEAST_TO_FIT
from setrnn.tagging.learn.train import train_uncalibrated
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust import Calibration
from setrnn.training.start import TrainOptions

MIN_FOLDS, MAX_FOLDS, FITTED = 5, 20, 2_000  # FITTED: documents times folds, about
# Of the usual L2 penalty: which strength suits depends on the documents. With the strongest, the
# probability of a label is hardly more than its frequency.
STRONG, STRONGEST = 10.0, 100.0


def is_few(source: Source, config: Config, prepared: Prepared) -> bool:
    """Return whether a valid part, which was cut from train, takes much of the documents.

    These are documents of which a tenth is too small to calibrate on.
    """
    is_pretrained = config.encoder.is_pretrained
    if is_pretrained or not source.cut_valid or source.prepared_folder is not None:
        return False
    n_documents = sum(prepared.description["n_documents"][part] for part in ("train", "valid"))
    return prepared.valid_is_cut and VALID_SHARE * n_documents < MIN_VALID


def choose_n_folds(n_documents: int) -> int:
    """Return the number of folds: the fewer documents, the less may be left out; 0 for too few.

    Example:
        >>> [choose_n_folds(n) for n in (10, 60, 200, 1_000)]
        [0, 20, 10, 5]
    """
    if n_documents < LEAST_TO_FIT:
        return 0
    return min(max(FITTED // n_documents, MIN_FOLDS), MAX_FOLDS)


def list_few(config: Config) -> list[Candidate]:
    """Return the systems that may become members."""
    usual = config.classical
    strong, strongest = (replace(usual, l1=0.0, l2=x * usual.l2) for x in (STRONG, STRONGEST))
    chosen = [
        ("br", "br", usual),
        ("br-support", "br-support", usual),
        ("pcc", "pcc", usual),
        ("br-support, strong penalty", "br-support", strong),
        ("br, strongest penalty", "br", strongest),
    ]
    return [
        Candidate(name, find_method(method), replace(config, classical=penalties))
        for name, method, penalties in chosen
    ]


def train_on_few(
    candidates: Sequence[Candidate],
    prepared: Prepared,
    before: Calibration | None,
    on_progress: OnProgress,
) -> tuple[Tagger, dict[str, str]]:
    """Train the members; weigh and calibrate them by cross-validation.

    Return the mixture, and why some candidates are left out, by name.
    """
    train, left_out = prepared.split("train"), dict[str, str]()
    n_folds = choose_n_folds(int(train.is_complete.sum()))
    log.info(
        f"{len(train):,} documents are few: none is set aside, and no networks are trained. "
        + (
            f"The members are weighed by cross-validation in {n_folds} folds."
            if n_folds
            else f"The members count the same: {LEAST_TO_FIT} documents with all their labels are "
            "needed to weigh them."
        )
    )
    seed = candidates[0].config.seed
    folds = choose_folds(np.asarray(train.text_hashes), max(n_folds, 1), seed)
    count = count_up("training", on_progress, len(candidates) * (n_folds + 1), "fits")
    trained: dict[str, Tagger] = {}
    for each in candidates:
        try:
            trained[each.name] = _train(each, prepared, folds, n_folds, count)
        except DataError as error:  # such as: no document is complete
            left_out[each.name] = str(error).rstrip(".")
    if not n_folds:
        return replace(join([*trained.values()]), notes=trained[candidates[0].name].notes), left_out
    documents = _mark(open_documents(prepared, "train"), folds)
    mixture = mix_members(trained, documents, before, on_progress)
    system = mixture.system
    assert isinstance(system, MixtureSystem)
    whole = [each.whole if isinstance(each, CrossFitted) else each for each in system.systems]
    return replace(mixture, system=replace(system, systems=tuple(whole))), left_out


def _train(
    candidate: Candidate,
    prepared: Prepared,
    folds: Ints,
    n_folds: int,
    count: Callable[[int], None],
) -> Tagger:
    """Train a member on all documents, and once without each fold."""
    method, config = candidate.method, candidate.config
    tagger = train_uncalibrated(prepared, method, config, TrainOptions())
    count(1)
    by_fold: list[System] = []
    for fold in range(n_folds):
        system = find_system(method).train(prepared, config, rows=np.flatnonzero(folds != fold))
        by_fold.append(fit_empty_set(system, prepared, config.model.empty_sets))
        count(1)
    if not by_fold:
        return tagger
    return replace(tagger, system=CrossFitted(tagger.system, by_fold))


def _mark(documents: LabelledDocuments, folds: Ints) -> LabelledDocuments:
    """Append its fold to the tokens of each document."""

    def batches(tagger: Tagger) -> Iterator[Batch]:
        start = 0
        for batch in documents.batches(tagger):
            own = folds[start : start + len(batch.labels)]
            start += len(batch.labels)
            yield batch._replace(tokens=mark_folds(batch.tokens, own))

    return replace(documents, batches=batches)
