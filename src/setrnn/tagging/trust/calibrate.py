"""Calibrate a tagger on documents whose labels are known."""

# n documents, L labels, K candidates, S labels of the largest set

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.errors import DataError, ModelError, SetRNNError, explain_full_gpu, find_memory_problem
from setrnn.metrics import LOWER_IS_BETTER, evaluate_label_sets
from setrnn.models.folder import read_calibration
from setrnn.progress import OnProgress, count_up, ignore_progress, log, show_step
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    Ints,
    SetCandidates,
    pack_labels,
    to_probability,
    widen,
)
from setrnn.systems.limits import PLAUSIBLE
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import LABEL_RULE, RULES, count_candidates, find_rule
from setrnn.systems.rules.marginal_rules import Thresholds, choose_thresholds
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.documents import Documents, LabelledDocuments, open_documents, open_unseen
from setrnn.tagging.prediction import name_labels
from setrnn.tagging.tagger import Tagger, check_tagger
from setrnn.tagging.trust import Calibration, Target
from setrnn.tagging.trust.acceptance import (
    Acceptance,
    AcceptedShares,
    Reliability,
    as_plain,
    check_target,
    fit_acceptance,
    fit_label_acceptance,
    fit_shown,
    label_reliability,
    list_accepted_shares,
    reliability,
)
from setrnn.tagging.trust.labels import fit_label_curves, keep_better_curves
from setrnn.tagging.trust.sets import Scaling, fit_scaling, held_out, keep_better

MIN_DOCUMENTS = 100  # to calibrate on
UNKNOWN = -2  # no label id: a set that no prediction equals
FITTED = "thresholds, curves, acceptance"
# With the first, a set that is half as probable must be better by .02: benchmarks/plausible.py.
WEIGHTS = (0.03, 0.02, 0.01, 0.005, 0.002, 0.001)
MAX_LOSS = 0.01  # of the measure of the rule, against the free choice


@dataclass(frozen=True, repr=False)
class Calibrated:
    """A calibrated tagger, and the effect of the calibration on the predictions by one rule.

    `after` is measured on each fifth of the documents, with scalings fitted on the others.
    """

    rule: str
    tagger: Tagger
    before: Reliability
    after: Reliability
    accuracy: float  # of all predictions
    labels_before: Reliability  # of labels whose probability exceeds MIN_SHOWN
    labels_after: Reliability
    shares: tuple[AcceptedShares, ...] = ()  # what is accepted with each target accuracy
    kept: tuple[str, ...] = ()  # "sets" and "labels", where the calibration before is better

    def __repr__(self) -> str:
        return f"<Calibrated {self.tagger!r}, rule {self.rule}: {self.acceptance}>"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        names = ("before", "after", "labels_before", "labels_after")
        return {
            "rule": self.rule,
            "subset_accuracy": self.accuracy,
            "acceptance": as_plain(self.acceptance),
            **{name: getattr(self, name).as_dict() for name in names},
            "accepted_shares": [as_plain(each) for each in self.shares],
            "kept": list(self.kept),
            "calibration": self.calibration.as_dict(),
        }

    @property
    def calibration(self) -> Calibration:
        """What was fitted."""
        return self.tagger.fitted

    @property
    def acceptance(self) -> Acceptance:
        """Which predictions by the rule are accepted."""
        return self.calibration.acceptance[self.rule]


def calibrate(
    tagger: Tagger,
    data: Documents,
    rule: str | None = None,
    target: float = 0.9,
    confidence: float = 0.9,
    *,
    target_recall: float | None = None,
    split: str | None = None,
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Calibrated:
    """Calibrate probabilities, and find which predictions to accept without review.

    The acceptance of other rules, if the model has any, is fitted again to their targets. A curve
    that is worse on held-out documents than what the model has already is not used.

    Args:
        tagger: the model; it is not changed, the result has a calibrated copy.
        data: documents with labels that the model was not trained on: a file, a folder, a
            prepared folder, "newsroom", or examples; a `Source` says how to read a file.
        rule: the rule whose predictions are accepted; the model's own if not given.
        target: the least accuracy of the accepted predictions.
        confidence: the confidence that they reach the target.
        target_recall: the least mean share of a document's true labels among those that are shown
            beside the prediction; if not given, as before, or none are shown.
        split: the part of the data; valid, or the only one, if not given.
        allow_training_documents: whether to calibrate, with a warning, on documents that the model
            was trained on; otherwise they raise DataError.
        on_progress: called with the progress.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> calibrated = setrnn.calibrate(tagger, "newsroom", target=0.8)
        >>> calibrated.after.error < calibrated.before.error
        True
        >>> prediction = calibrated.tagger.tag(["The cup final was postponed after a storm."])[0]
        >>> prediction.accepted == (prediction.probability >= calibrated.acceptance.threshold)
        True
    """
    check_tagger(tagger)
    if target_recall is None and tagger.fitted.shown is not None:
        target_recall = tagger.fitted.shown.target
    check_target(target, confidence, target_recall)
    name = tagger.rule_or_own(rule)
    labelled = open_unseen(tagger, data, split, on_progress, allow_training_documents)
    documents = SearchedDocuments.collect(tagger, labelled, on_progress)
    asked = (target, confidence)
    targets = {**tagger.fitted.targets, name: asked}
    with show_step("fitting", FITTED, on_progress, "calibrating"):
        calibration, predicted, held_out_labels, keeps_curves = documents.fit(
            tagger, targets, asked, target_recall
        )
        found, labels = predicted[name], documents.label_marginals
        label_probs = calibration.label_probs(labels.probs, labels.label), held_out_labels
        sets = found.probs(found.scaling), found.is_right
        shares = list_accepted_shares(target, confidence, sets, labels, label_probs)
        return Calibrated(
            rule=name,
            tagger=replace(tagger, calibration=calibration),
            shares=shares,
            kept=("sets",) * found.is_kept + ("labels",) * keeps_curves,
            before=reliability(np.exp(found.log_probs), found.is_right),
            after=reliability(found.held_out_probs(), found.is_right),
            accuracy=float(found.is_right.mean()),
            labels_before=label_reliability(labels.probs, labels.is_label),
            labels_after=label_reliability(held_out_labels, labels.is_label),
        )


def fit_calibration(
    tagger: Tagger,
    data: Documents,
    *,
    before: Calibration | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Calibration:
    """Fit thresholds and scalings, and acceptance to the targets of the calibration `before`."""
    before = before or Calibration(0)
    labelled, kept = open_documents(data, default="valid"), before.label_acceptance
    documents = SearchedDocuments.collect(tagger, labelled, on_progress)
    of_labels = None if kept is None else (kept.target, kept.confidence)
    with show_step("fitting", FITTED, on_progress, "calibrating"):
        of_shown = None if before.shown is None else before.shown.target
        return documents.fit(tagger, before.targets, of_labels, of_shown)[0]


def find_calibration(folder: Path | None) -> Calibration | None:
    """Return the calibration of the model in a folder; None if there is none that can be read."""
    with suppress(ModelError, OSError):
        values = None if folder is None else read_calibration(folder)
        return None if values is None else Calibration.from_dict(values)
    return None


def calibrate_or_warn(
    tagger: Tagger,
    documents: LabelledDocuments,
    out: Path | None = None,
    before: Calibration | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Calibrate a tagger on documents, if there are enough; save the calibration in `out`.

    A calibration that fails leaves the tagger as it is: the model's own probabilities stay. One
    that cannot be written raises DataError.

    Args:
        tagger: the model.
        documents: how many there are must be known.
        out: the model's folder; None if it is in none.
        before: the calibration of the model that this one replaces: its targets are kept.
        on_progress: called with the progress.
    """
    n_documents, kind = documents.n_documents or 0, "valid " * (documents.split == "valid")
    try:
        if n_documents >= MIN_DOCUMENTS:
            way_out = "Calibrate it on fewer documents, with setrnn calibrate."
            with explain_full_gpu("Calibrating", way_out):
                found = fit_calibration(tagger, documents, before=before, on_progress=on_progress)
            tagger = replace(tagger, calibration=found)
            said = (
                f"Calibrated on the {n_documents:,} {kind}documents (temperature "
                f"{found.scalings['sets'].temperature:.2f}): predict gives calibrated "
                "probabilities, predict --raw the model's own."
            )
        else:
            said = (
                f"There are {n_documents:,} {kind}documents, and {MIN_DOCUMENTS} are needed to "
                "calibrate: probabilities are the model's own."
            )
    except (SetRNNError, MemoryError, RuntimeError) as error:  # torch has no MemoryError
        reason = str(error) if isinstance(error, SetRNNError) else find_memory_problem(error)
        if reason is None:
            raise
        log.warning(f"The model is not calibrated: {reason}")
        said = ""
    if out is not None and tagger.calibration is not None:
        tagger = tagger.save_calibration(out)
    if said:
        log.info(said)
    if before is not None:
        _warn_of_lost_targets(tagger, before)
    return tagger


def _warn_of_lost_targets(tagger: Tagger, before: Calibration) -> None:
    """Warn of rules by which the previous model accepted predictions, and this one does not."""
    found = tagger.fitted.acceptance
    for rule, each in before.acceptance.items():
        if rule not in found or found[rule].threshold is None:
            log.warning(
                f"The previous model had the target accuracy {each.target:g} for rule {rule}: this "
                "model accepts nothing by it. Run setrnn calibrate on more documents, or with a "
                "lower target."
            )
    if found and (own := tagger.rule_or_own(None)) not in found:
        log.warning(
            f"The model predicts by rule {own}, for which it has no acceptance: setrnn calibrate."
        )


@dataclass(frozen=True)
class Predicted:
    """The predictions by one rule for all documents, with the model's own probabilities."""

    scaling: Scaling
    candidates: SetCandidates
    true_rank: Ints  # (n,) -1 if no candidate is true
    labels: Ids  # (n, S)
    log_probs: Floats  # (n,)
    is_right: Bools  # (n,)
    is_kept: bool  # the scaling was not fitted on these documents

    def probs(self, scaling: Scaling) -> Floats:
        """Return the calibrated probabilities of the predicted sets: (n,)."""
        return np.exp(scaling.calibrate(self.candidates, self.labels, self.log_probs)[1])

    def held_out_probs(self) -> Floats:
        """Calibrate each fifth of the documents with a scaling fitted on the others: (n,)."""
        if self.is_kept:
            return self.probs(self.scaling)
        probs = np.zeros(len(self.log_probs))
        for is_out, fitted in held_out(self.scaling, self.candidates.log_probs, self.true_rank):
            probs[is_out] = self.probs(fitted)[is_out]
        return probs


@dataclass(frozen=True)
class SearchedDocuments:
    """Documents with their true sets and what one search found: all that is fitted uses it.

    Those with unknown labels have only marginals, of the labels that are known.
    """

    searches: list[BatchSearch]  # in batches
    label_sets: list[tuple[str, ...]]
    n_true: Ints  # the number of true labels, also of documents with unknown labels
    true_sets: Ids  # (n, S) padded with -1; UNKNOWN for a set with a label that the model lacks
    scaled: tuple[str, ...]  # the sources, and the rules with weights of their own in a mixture
    # Of "sets", of rules with thresholds and own weights, and of LABEL_RULE for labels.
    marginals: dict[str, TrueMarginals]
    share_trained_on: float  # of documents that the model was trained on

    @classmethod
    def collect(
        cls, tagger: Tagger, documents: LabelledDocuments, on_progress: OnProgress
    ) -> SearchedDocuments:
        """Search all documents once; raise DataError if they are too few or have no labels."""
        count = count_up("calibrating", on_progress, documents.n_documents)
        system = tagger.system
        sources = ("sets", "sequences") if system.emits_sequences else ("sets",)
        n_sets = dict.fromkeys(sources, count_candidates())
        own = [rule for rule in RULES if system.for_rule(rule) is not system]
        with_marginals = [r for r in own if RULES[r].needs_thresholds or r == LABEL_RULE]
        marginals: dict[str, list[TrueMarginals]] = {key: [] for key in ("sets", *with_marginals)}
        searches: list[BatchSearch] = []
        label_sets: list[tuple[str, ...]] = []
        n_true: list[int] = []
        for batch in documents.batches(tagger):
            search = BatchSearch(system, batch.tokens, n_sets)
            encoded = tagger.labels.encode(batch.labels)
            for key, parts in marginals.items():
                found = search.candidates["sets"].for_rule(key)  # a source is no rule's name
                probs = system.marginals(batch.tokens, found)
                parts.append(TrueMarginals.of(probs, encoded, batch.unknown))
            n_true += map(len, batch.labels)
            complete = np.flatnonzero(batch.is_complete)
            if len(complete):
                is_whole = len(complete) == len(batch.labels)
                searches.append(search if is_whole else search.take(complete))
                label_sets.extend(batch.labels[row] for row in complete)
            count(len(batch.labels))
        documents.bad_rows.report()
        _check(label_sets, tagger)
        known = tagger.labels.encode(label_sets)
        is_known = known.lengths == np.array([len(each) for each in label_sets])
        return cls(
            searches,
            label_sets,
            np.array(n_true),
            np.where(is_known[:, None], pack_labels(known.padded(min_width=1)), UNKNOWN),
            (*sources, *own),
            {key: TrueMarginals.concatenate(each) for key, each in marginals.items()},
            documents.share_trained_on,
        )

    @property
    def label_marginals(self) -> TrueMarginals:
        """The model's own p(label | document)."""
        return self.marginals.get(LABEL_RULE, self.marginals["sets"])

    def candidates(self, key: str) -> tuple[SetCandidates, Ints]:
        """Return the candidates by a source or rule, and which of them is true (n,), or -1."""
        found = (each.candidates.get(key, each.candidates["sets"]) for each in self.searches)
        joined = SetCandidates.concatenate([each.for_rule(key) for each in found])
        return joined, joined.ranks(self.true_sets)

    def fit(
        self,
        tagger: Tagger,
        targets: Mapping[str, Target],
        of_labels: Target | None,
        of_shown: float | None,
    ) -> tuple[Calibration, dict[str, Predicted], Floats32, bool]:
        """Fit thresholds, scalings, curves, and the acceptance of sets and of labels.

        Also return the predictions by each rule with a target; the calibrated probabilities (E,)
        of the pairs of `label_marginals`, by curves fitted on other documents; and whether the
        curves of labels are those from before.

        Args:
            tagger: the model.
            targets: those of the sets predicted by some rules; others than the model can use are
                left out.
            of_labels: the target of each label; None to accept no labels.
            of_shown: the target of the labels that are shown; None to show none.
        """
        by_key = {
            key: choose_thresholds(each.probs, each.is_label, each)
            for key, each in self.marginals.items()
        }
        common = by_key.get("micro-f1", by_key["sets"]).common
        by_label = by_key.get("label-f1", by_key["sets"]).by_label
        own = self.label_marginals
        before = tagger.fitted
        new_curves, label_probs = fit_label_curves(own)
        curves, label_probs = keep_better_curves(before.label_curves, new_curves, label_probs, own)
        scalings, kept = {}, set()
        for key in self.scaled:
            candidates, true_rank = self.candidates(key)
            new = fit_scaling(candidates.log_probs, true_rank)
            old = before.scalings.get(key)
            scalings[key] = keep_better(old, new, candidates.log_probs, true_rank)
            kept |= {key} if scalings[key] is not new else set()
        label_acceptance = None
        if of_labels is not None:
            calibrated = curves(own.probs, own.label)
            label_acceptance = fit_label_acceptance(own, calibrated, label_probs, *of_labels)
        calibration = Calibration(
            n_documents=len(self.label_sets),
            thresholds=Thresholds(common, by_label),
            scalings=scalings,
            label_curves=curves,
            label_acceptance=label_acceptance,
            shown=None if of_shown is None else fit_shown(own, self.n_true, of_shown),
            share_trained_on=self.share_trained_on,
        )
        fitted = replace(tagger, calibration=calibration)
        weight = choose_weight(fitted, self.searches, self.label_sets)
        calibration = replace(calibration, plausible=weight)
        fitted = replace(tagger, calibration=calibration)
        rules = [rule for rule in targets if rule in fitted.rules]
        predicted = {rule: self._predict(fitted, rule, kept) for rule in rules}
        acceptance = {
            rule: fit_acceptance(rule, found.probs(found.scaling), found.is_right, *targets[rule])
            for rule, found in predicted.items()
        }
        calibration = replace(calibration, acceptance=acceptance)
        return calibration, predicted, label_probs, curves is not new_curves

    def _predict(self, tagger: Tagger, rule: str, kept: Collection[str]) -> Predicted:
        """Predict by a rule; by the model's own as without one."""
        limits = tagger.resolve(None if rule == tagger.rule_or_own(None) else rule).limits
        chosen = [each.choose(rule, limits, tagger.fitted.thresholds) for each in self.searches]
        probs = np.array([to_probability(each) for part in chosen for each in part.log_probs])
        width = max(each.shape[1] for each in (self.true_sets, *(part.labels for part in chosen)))
        labels = np.concatenate([widen(part.labels, width) for part in chosen])
        is_right = (labels == widen(self.true_sets, width)).all(axis=1)
        with np.errstate(divide="ignore"):
            log_probs = np.log(probs)
        scalings = tagger.fitted.scalings
        key = rule if rule in scalings else find_rule(rule).source
        found = (*self.candidates(key), labels, log_probs, is_right)
        return Predicted(scalings[key], *found, is_kept=key in kept)


def choose_weight(
    tagger: Tagger, searches: Sequence[BatchSearch], label_sets: Sequence[Collection[str]]
) -> float:
    """Return the largest weight that costs little of the measure of the model's own rule.

    Args:
        tagger: the model, with thresholds if its rule needs some.
        searches: the candidates of documents that the model was not trained on.
        label_sets: their true sets.
    """
    how = tagger.resolve()
    rule = find_rule(how.rule)
    if rule.rate is None or rule.measure is None:  # the rule prefers the most probable set
        return PLAUSIBLE
    measure, sign = rule.measure, -1 if rule.measure in LOWER_IS_BETTER else 1

    def score(weight: float) -> float:
        limits = replace(how.limits, plausible=weight)
        found = [each.choose(how.rule, limits, tagger.fitted.thresholds) for each in searches]
        named = [name_labels(tagger.labels, row) for each in found for row in each.labels]
        scores = evaluate_label_sets(label_sets, named, tagger.labels.names)
        return sign * float(getattr(scores, measure))

    least = score(0.0) - MAX_LOSS
    return next((weight for weight in WEIGHTS if score(weight) >= least), WEIGHTS[-1])


def _check(label_sets: Sequence[Collection[str]], tagger: Tagger) -> None:
    if len(label_sets) < MIN_DOCUMENTS:
        raise DataError(
            f"{len(label_sets):,} documents are too few to calibrate on: give at least "
            f"{MIN_DOCUMENTS} that the model was not trained on, with all their labels."
        )
    if not any(label_sets):
        raise DataError(
            "No document has a label: calibration needs the true labels. Name their field with "
            "--labels-field."
        )
    is_known = [label in tagger.labels.index for each in label_sets for label in each]
    if sum(is_known) * 2 < len(is_known):
        raise DataError(
            f"The model knows {sum(is_known):,} of the documents' {len(is_known):,} labels: these "
            "are other labels. Name their field with --labels-field."
        )
