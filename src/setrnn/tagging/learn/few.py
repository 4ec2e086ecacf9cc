"""Train without a method on few documents: classical systems, weighed by cross-validation.

A tenth of few documents is too small to choose on, and all of them are needed to learn from. The
members are trained on all documents. Their weights, the thresholds and the calibration come from
the predictions for each fold by systems that were trained on the other folds.
"""

# n documents

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from setrnn.config import Config
from setrnn.data.cache import Source, open_prepared
from setrnn.data.prepared import Prepared
from setrnn.data.splits import MIN_VALID, VALID_SHARE
from setrnn.errors import DataError
from setrnn.methods import find_method
from setrnn.progress import OnProgress, count_up, log
from setrnn.systems.candidates import Ints
from setrnn.systems.cross_fitted import CrossFitted, choose_folds, mark_folds
from setrnn.systems.empty_set import fit_empty_set
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.registry import find_system
from setrnn.systems.rules import rule_for
from setrnn.systems.system import System
from setrnn.tagging.documents import Batch, open_documents
from setrnn.tagging.learn.data import Asked, open_training_data
from setrnn.tagging.learn.member_candidates import Candidate, suggest_transformer
from setrnn.tagging.learn.mix import join, mix_members
from setrnn.tagging.learn.mixture_weights import LEAST_TO_FIT
from setrnn.tagging.learn.train import train_uncalibrated, warn_if_nothing_learned
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.calibrate import find_calibration
from setrnn.tagging.trust.saved import Calibration
from setrnn.training.start import TrainOptions

MIN_FOLDS, MAX_FOLDS, FITTED = 5, 20, 2_000  # FITTED: documents times folds, about
# Of the usual L2 penalty: which strength suits depends on the documents. With the strongest, the
# probability of a label is hardly more than its frequency.
STRONG, STRONGEST = 10.0, 100.0


def open_few(source: Source, asked: Asked, on_progress: OnProgress) -> Prepared | None:
    """Return all documents as the train part, if a valid part would take much of them.

    These are documents of which a tenth is too small to calibrate on.
    """
    is_pretrained = asked.config.encoder.is_pretrained
    if is_pretrained or not source.cut_valid or source.prepared_folder is not None:
        return None
    prepared = open_prepared(source, asked.config.text, on_progress=on_progress)
    if not prepared.valid_is_cut:
        return None
    n_documents = sum(prepared.description["n_documents"][part] for part in ("train", "valid"))
    if VALID_SHARE * n_documents >= MIN_VALID:
        return None
    whole = replace(source, cut_valid=False)
    return open_training_data(whole, asked.config, asked.overrides, on_progress=on_progress)[0]


def choose_n_folds(n_documents: int) -> int:
    """Return the number of folds: the fewer documents, the less may be left out; 0 for too few.

    Example:
        >>> [choose_n_folds(n) for n in (10, 60, 200, 1_000)]
        [0, 20, 10, 5]
    """
    if n_documents < LEAST_TO_FIT:
        return 0
    return min(max(FITTED // n_documents, MIN_FOLDS), MAX_FOLDS)


def list_members(config: Config) -> list[Candidate]:
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
        Candidate(name, method, replace(config, classical=penalties))
        for name, method, penalties in chosen
    ]


def train_on_few(
    prepared: Prepared, asked: Asked, out: Path | None, on_progress: OnProgress
) -> Tagger:
    """Train the members, weigh and calibrate them by cross-validation, and save the mixture."""
    config = replace(asked.config, text=prepared.text_settings)
    train, measure = prepared.split("train"), config.training.metric
    members, left_out = list_members(config), {}
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
    folds = choose_folds(np.asarray(train.text_hashes), max(n_folds, 1), config.seed)
    count = count_up("training", on_progress, len(members) * (n_folds + 1), "fits")
    trained: dict[str, Tagger] = {}
    for member in members:
        try:
            trained[member.name] = _train(member, prepared, folds, n_folds, count)
        except DataError as error:  # such as: no document is complete
            left_out[member.name] = str(error).rstrip(".")
    if n_folds:
        tagger = _mix(trained, prepared, folds, find_calibration(out), on_progress)
    else:
        tagger = replace(join([*trained.values()]), notes=trained[members[0].name].notes)
    notes = {
        **tagger.notes,
        "automatic": {
            "measure": measure,
            "rule": rule_for(measure),
            "minutes": None,
            "seed": config.seed,
            "members": [{"name": name, "method": each.method} for name, each in trained.items()],
            "left_out": left_out,
            "better": [
                f"More documents with labels: there are {len(train):,} to train on.",
                suggest_transformer(),
            ],
        },
    }
    tagger = replace(tagger, notes=notes, rule=rule_for(measure))
    warn_if_nothing_learned(tagger, prepared, measure, "train")
    return tagger if out is None else tagger.saved_to(out)


def _train(
    member: Candidate, prepared: Prepared, folds: Ints, n_folds: int, count: Callable[[int], None]
) -> Tagger:
    """Train a member on all documents, and once without each fold."""
    method, config = find_method(member.method), member.config
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


def _mix(
    members: Mapping[str, Tagger],
    prepared: Prepared,
    folds: Ints,
    before: Calibration | None,
    on_progress: OnProgress,
) -> Tagger:
    """Weigh and calibrate by what the folds show; return the members trained on all documents."""
    documents = open_documents(prepared, "train")

    def batches(tagger: Tagger) -> Iterator[Batch]:
        start = 0
        for batch in documents.batches(tagger):
            own = folds[start : start + len(batch.labels)]
            start += len(batch.labels)
            yield batch._replace(tokens=mark_folds(batch.tokens, own))

    marked = replace(documents, batches=batches)
    tagger = mix_members([*members], [*members.values()], marked, before, on_progress)
    system = tagger.system
    assert isinstance(system, MixtureSystem)
    whole = [each.whole if isinstance(each, CrossFitted) else each for each in system.systems]
    return replace(tagger, system=replace(system, systems=tuple(whole)))
