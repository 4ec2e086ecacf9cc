"""Calibrate a tagger on documents whose labels are known."""

# n documents, L labels, K candidates, S labels of the largest set

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError, SetRNNError
from setrnn.progress import OnProgress, count_up, ignore_progress, log, show_step
from setrnn.systems.candidates import Bools, Floats, Ids, Ints, SetCandidates, pack_labels
from setrnn.systems.rules import LABEL_RULE, RULES, count_candidates, find_rule
from setrnn.systems.rules.marginal_rules import Thresholds, choose_thresholds
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.documents import Documents, LabelledDocuments, open_documents, open_unseen
from setrnn.tagging.evaluate import check_tagger
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.acceptance import (
    Acceptance,
    LabelAcceptance,
    Reliability,
    as_plain,
    check_share,
    fit_acceptance,
    fit_label_acceptance,
    label_reliability,
    reliability,
)
from setrnn.tagging.trust.labels import LabelCurves, fit_label_curves, held_out_label_probs
from setrnn.tagging.trust.saved import MIN_DOCUMENTS, Calibration
from setrnn.tagging.trust.sets import Scaling, fit_scaling, held_out
from setrnn.tagging.trust.targets import note_targets
from setrnn.training.failures import explain_full_gpu

Target = tuple[float, float]  # an accuracy and a confidence


@dataclass(frozen=True, repr=False)
class Calibrated:
    """A calibrated tagger, and the effect of the calibration on the predictions by one rule.

    `after` is measured on each fifth of the documents, with scalings fitted on the others.
    """

    rule: str
    tagger: Tagger
    calibration: Calibration
    acceptance: Acceptance
    before: Reliability
    after: Reliability
    accuracy: float  # of all predictions
    labels_before: Reliability  # of labels whose probability exceeds MIN_SHOWN
    labels_after: Reliability

    def __repr__(self) -> str:
        return f"<Calibrated {self.tagger!r}, rule {self.rule}: {self.acceptance}>"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        of_labels = self.calibration.label_acceptance
        assert of_labels is not None
        return {
            "rule": self.rule,
            "n_documents": self.calibration.n_documents,
            "share_trained_on": self.calibration.share_trained_on,
            "subset_accuracy": self.accuracy,
            "calibration_error": self.after.error,
            "calibration_error_raw": self.before.error,
            "acceptance": as_plain(self.acceptance),
            "reliability": {"before": self.before.as_dict(), "after": self.after.as_dict()},
            "scalings": as_plain(self.calibration.scalings),
            "labels": {
                "calibration_error": self.labels_after.error,
                "calibration_error_raw": self.labels_before.error,
                "n_pairs": int(self.labels_after.n_documents.sum()),
                "acceptance": {
                    self.tagger.labels.names[label]: {
                        "threshold": float(of_labels.thresholds[label]),
                        "share": float(of_labels.shares[label]),
                        "is_rare": bool(of_labels.is_rare[label]),
                    }
                    for label in np.flatnonzero(of_labels.thresholds <= 1)
                },
            },
        }


def calibrate(
    tagger: Tagger,
    data: Documents,
    rule: str | None = None,
    target: float = 0.9,
    confidence: float = 0.9,
    *,
    split: str | None = None,
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Calibrated:
    """Calibrate probabilities, and find which predictions to accept without review.

    The acceptance of other rules, if the model has any, is fitted again to their targets.

    Args:
        tagger: the model; it is not changed, the result has a calibrated copy.
        data: documents with labels that the model was not trained on: a file, a folder, a
            prepared folder, "newsroom", or examples; a `Source` says how to read a file.
        rule: the rule whose predictions are accepted; the model's own if not given.
        target: the least accuracy of the accepted predictions.
        confidence: the confidence that they reach the target.
        split: the part of the data; valid, or the only one, if not given.
        allow_training_documents: whether to calibrate, with a warning, on documents that the model
            was trained on; otherwise they raise DataError.
        on_progress: called with the progress and with notes for the user.

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
    check_share("target accuracy", target)
    check_share("confidence", confidence)
    name = tagger.rule_or_own(rule)
    labelled = open_unseen(tagger, data, split, on_progress, allow_training_documents)
    documents = CalibrationDocuments.collect(tagger, labelled, on_progress)
    with _show_fitting(on_progress):
        targets = _list_targets(tagger) | {name: (target, confidence)}
        calibration, predicted = documents.fit(tagger, targets)
        of_labels = accept_labels(
            documents.label_marginals, calibration.label_curves, (target, confidence)
        )
        calibration = replace(calibration, label_acceptance=of_labels[0])
        found = predicted[name]
        return Calibrated(
            rule=name,
            tagger=replace(tagger, calibration=calibration),
            calibration=calibration,
            acceptance=calibration.acceptance[name],
            before=reliability(found.probs({}), found.is_right),
            after=reliability(documents.held_out_probs(found, calibration), found.is_right),
            accuracy=float(found.is_right.mean()),
            labels_before=of_labels[1],
            labels_after=of_labels[2],
        )


def fit_calibration(
    tagger: Tagger,
    data: Documents,
    *,
    split: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Calibration:
    """Fit thresholds and scalings, and acceptance to the targets of the tagger's calibration."""
    labelled = open_documents(data, split, "valid")
    documents = CalibrationDocuments.collect(tagger, labelled, on_progress)
    with _show_fitting(on_progress):
        calibration, _ = documents.fit(tagger, _list_targets(tagger))
        if (kept := tagger.label_acceptance) is None:
            return calibration
        asked = (kept.target, kept.confidence)
        found = accept_labels(documents.label_marginals, calibration.label_curves, asked)
        return replace(calibration, label_acceptance=found[0])


def _list_targets(tagger: Tagger) -> dict[str, Target]:
    """Return the target and the confidence of each rule that has an acceptance."""
    kept = {} if tagger.calibration is None else tagger.calibration.acceptance
    return {rule: (each.target, each.confidence) for rule, each in kept.items()}


def calibrate_on_valid(
    tagger: Tagger,
    prepared: Prepared,
    out: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Calibrate a tagger on the valid part, if there is one: see `calibrate_or_warn`."""
    if not prepared.description["n_documents"].get("valid", 0):
        note_targets(tagger)
        return tagger
    return calibrate_or_warn(tagger, open_documents(prepared, "valid"), out, on_progress)


def calibrate_or_warn(
    tagger: Tagger,
    documents: LabelledDocuments,
    out: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Calibrate a tagger on documents, if there are enough; save the calibration in `out`.

    A calibration that fails leaves the tagger as it is: the model's own probabilities stay.

    Args:
        tagger: the model.
        documents: how many there are must be known.
        out: the model's folder; None if it is in none.
        on_progress: called with the progress and with notes for the user.
    """
    n_documents, kind = documents.n_documents or 0, "valid " * (documents.split == "valid")
    if n_documents < MIN_DOCUMENTS:
        text = (
            f"There are {n_documents:,} {kind}documents, and {MIN_DOCUMENTS} are needed to "
            "calibrate: probabilities are the model's own."
        )
        log.info(text)
        note_targets(tagger)
        return tagger
    hint = "Calibrate it on fewer documents, with setrnn calibrate."
    try:
        with explain_full_gpu("Calibrating", hint):
            calibration = fit_calibration(tagger, documents, on_progress=on_progress)
        calibrated = replace(tagger, calibration=calibration)
        if out is not None:
            calibrated = calibrated.save_calibration(out)
    except (SetRNNError, MemoryError, RuntimeError) as error:
        is_torch = type(error) is RuntimeError
        if is_torch and "allocate" not in str(error):  # its way to say: out of memory
            raise
        reason = "" if is_torch else str(error)
        log.warning(f"The model is not calibrated: {reason or 'out of memory.'}")
        note_targets(tagger)
        return tagger
    temperature = calibration.scalings["sets"].temperature
    log.info(
        f"Calibrated on the {n_documents:,} {kind}documents (temperature {temperature:.2f}): "
        "predict gives calibrated probabilities, predict --raw the model's own."
    )
    note_targets(calibrated)
    return calibrated


def _show_fitting(on_progress: OnProgress) -> AbstractContextManager[None]:
    return show_step("fitting", "thresholds, curves, acceptance", on_progress, "calibrating")


@dataclass(frozen=True)
class Predicted:
    """The predictions by one rule for all documents, with the model's own probabilities."""

    key: str  # of its scaling
    candidates: SetCandidates
    labels: Ids  # (n, S)
    log_probs: Floats  # (n,)
    is_right: Bools  # (n,)

    def probs(self, scalings: Mapping[str, Scaling]) -> Floats:
        """Return the probabilities of the predicted sets after some scalings: (n,)."""
        calibration = Calibration(0, scalings=scalings)
        _, log_probs = calibration.apply(self.key, self.candidates, self.labels, self.log_probs)
        return np.exp(log_probs)


@dataclass(frozen=True)
class CalibrationDocuments:
    """Documents with their true sets, their candidates and their marginals.

    Those with unknown labels have only marginals, of the labels that are known.
    """

    tokens: Ragged
    label_sets: list[frozenset[str]]
    candidates: dict[str, SetCandidates]  # by the key of the scaling
    true_rank: dict[str, Ints]  # (n,) by the same key; -1 if no candidate is true
    # Of "sets", of rules with thresholds and own weights, and of LABEL_RULE for labels.
    marginals: dict[str, TrueMarginals]
    share_trained_on: float = 0.0  # of documents that the model was trained on

    @classmethod
    def collect(
        cls, tagger: Tagger, documents: LabelledDocuments, on_progress: OnProgress
    ) -> CalibrationDocuments:
        """Search all documents once; raise DataError if they are too few or have no labels."""
        count = count_up("calibrating", on_progress, documents.n_documents)
        system = tagger.system
        sources = ("sets", "sequences") if system.emits_sequences else ("sets",)
        own = [rule for rule in RULES if system.for_rule(rule) is not system]
        tokens: list[Ragged] = []
        label_sets: list[frozenset[str]] = []
        candidates: dict[str, list[SetCandidates]] = {key: [] for key in (*sources, *own)}
        with_marginals = [r for r in own if RULES[r].needs_thresholds or r == LABEL_RULE]
        marginals: dict[str, list[TrueMarginals]] = {key: [] for key in ("sets", *with_marginals)}
        for documents_at_once in documents.batches(tagger):
            batch, names, _, unknown = documents_at_once
            is_complete = documents_at_once.is_complete
            complete = np.flatnonzero(is_complete)
            tokens.append(batch if is_complete.all() else batch.take(complete))
            label_sets.extend(frozenset(names[row]) for row in complete)
            for source in sources:
                found = system.candidates(batch, count_candidates(), source)
                for key in [source, *(own if source == "sets" else ())]:
                    by_key = found.for_rule(key)  # a source is not the name of a rule
                    whole = SetCandidates.concatenate([by_key])
                    candidates[key].append(whole if unknown is None else whole.take(complete))
                    if key in marginals:
                        probs = system.marginals(batch, by_key)
                        encoded = tagger.labels.encode(names)
                        marginals[key].append(TrueMarginals.of(probs, encoded, unknown))
            count(len(names))
        documents.note_skipped()
        _check(label_sets, tagger)
        joined = {source: SetCandidates.concatenate(parts) for source, parts in candidates.items()}
        truth, is_known = _encode_sets(tagger, label_sets)
        ranks = {
            source: np.where(is_known, found.ranks(truth), -1) for source, found in joined.items()
        }
        all_tokens = Ragged.concatenate(tokens)
        all_marginals = {key: TrueMarginals.concatenate(each) for key, each in marginals.items()}
        share_trained_on = documents.share_trained_on
        return cls(all_tokens, label_sets, joined, ranks, all_marginals, share_trained_on)

    @property
    def label_marginals(self) -> TrueMarginals:
        """The model's own p(label | document)."""
        return self.marginals.get(LABEL_RULE, self.marginals["sets"])

    def fit(
        self, tagger: Tagger, targets: Mapping[str, Target]
    ) -> tuple[Calibration, dict[str, Predicted]]:
        """Fit thresholds, scalings, curves, and the acceptance of each rule with a target.

        Also return the predictions by these rules.
        """
        by_key = {
            key: choose_thresholds(each.probs, each.is_label, each.places)
            for key, each in self.marginals.items()
        }
        common = by_key.get("micro-f1", by_key["sets"]).common
        by_label = by_key.get("label-f1", by_key["sets"]).by_label
        calibration = Calibration(
            n_documents=len(self.label_sets),
            thresholds=Thresholds(common, by_label),
            scalings={
                key: fit_scaling(found.log_probs, self.true_rank[key])
                for key, found in self.candidates.items()
            },
            label_curves=fit_label_curves(self.label_marginals),
            share_trained_on=self.share_trained_on,
        )
        fitted = replace(tagger, calibration=calibration)
        predicted = {rule: self._predict(fitted, rule) for rule in targets}
        acceptance = {
            rule: fit_acceptance(rule, found.probs(calibration.scalings), found.is_right, *asked)
            for (rule, found), asked in zip(predicted.items(), targets.values(), strict=True)
        }
        return replace(calibration, acceptance=acceptance), predicted

    def _predict(self, tagger: Tagger, rule: str) -> Predicted:
        """Predict by a rule."""
        predictions = list(tagger.tag_tokens(self.tokens, rule, calibrated=False))
        label_ids = tagger.labels.encode([each.labels for each in predictions])
        is_right = [
            frozenset(each.labels) == truth
            for each, truth in zip(predictions, self.label_sets, strict=True)
        ]
        probs = np.array([each.probability for each in predictions])
        key = rule if rule in self.candidates else find_rule(rule).source
        with np.errstate(divide="ignore"):
            log_probs = np.log(probs)
        return Predicted(
            key,
            self.candidates[key],
            pack_labels(label_ids.padded(min_width=1)),
            log_probs,
            np.array(is_right),
        )

    def held_out_probs(self, predicted: Predicted, calibration: Calibration) -> Floats:
        """Calibrate each fifth of the documents with scalings fitted on the others: (n,)."""
        key = predicted.key
        log_probs, true_rank = self.candidates[key].log_probs, self.true_rank[key]
        probs = np.zeros(len(log_probs))
        for is_out, fitted in held_out(calibration.scalings[key], log_probs, true_rank):
            probs[is_out] = predicted.probs({key: fitted})[is_out]
        return probs


def accept_labels(
    own: TrueMarginals, curves: LabelCurves | None, asked: Target
) -> tuple[LabelAcceptance, Reliability, Reliability]:
    """Find which labels to accept, and the reliability of their probabilities before and after.

    `after` is measured on each fifth of the documents, with curves fitted on the others.

    Args:
        own: the model's own p(label | document), not calibrated, and the true labels.
        curves: those of the calibrated model.
        asked: the least accuracy of a label where it is accepted, and the confidence in it.
    """
    assert curves is not None
    # The knots were fitted on these documents, but have few parameters.
    after = curves.interpolate(held_out_label_probs(own))
    calibrated = curves(own.probs, None if own.places is None else own.places.label)
    found = fit_label_acceptance(own, calibrated, after, *asked)
    shown = [label_reliability(each, own.is_label) for each in (own.probs, after)]
    return found, shown[0], shown[1]


def find_label_acceptance(
    tagger: Tagger, marginals: TrueMarginals, target: float = 0.9, confidence: float = 0.9
) -> LabelAcceptance | None:
    """Find which labels a calibrated tagger could accept; None without curves of labels."""
    curves = None if tagger.calibration is None else tagger.calibration.label_curves
    return None if curves is None else accept_labels(marginals, curves, (target, confidence))[0]


def _check(label_sets: Sequence[frozenset[str]], tagger: Tagger) -> None:
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


def _encode_sets(tagger: Tagger, label_sets: Sequence[frozenset[str]]) -> tuple[Ids, Bools]:
    """Return the label ids (n, S) of each true set, and whether the model knows all of them."""
    known = tagger.labels.encode([tuple(each) for each in label_sets])
    sizes = np.fromiter(map(len, label_sets), dtype=np.int64, count=len(label_sets))
    return pack_labels(known.padded(min_width=1)), known.lengths == sizes
