"""Calibrate a tagger on documents whose labels are known."""

# n documents, L labels, K candidates, S labels of the largest set

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError, SetRNNError
from setrnn.progress import Note, OnProgress, count_up, ignore_progress
from setrnn.systems.candidates import Bools, Floats, Floats32, Ids, Ints, SetCandidates, pack_labels
from setrnn.systems.rules import LABEL_RULE, RULES, count_candidates, find_rule
from setrnn.systems.rules.marginal_rules import Thresholds, choose_thresholds
from setrnn.tagging.acceptance import (
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
from setrnn.tagging.calibration import (
    LEAST_DOCUMENTS,
    Calibration,
    Scaling,
    fit_scaling,
    held_out,
)
from setrnn.tagging.documents import Documents, LabelledDocuments, open_documents, open_unseen
from setrnn.tagging.evaluation import check_tagger
from setrnn.tagging.label_calibration import (
    LabelCurves,
    fit_label_curves,
    held_out_label_probs,
    with_knots,
)
from setrnn.tagging.tagger import Tagger
from setrnn.training.failures import explain_full_gpu


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
    labels: LabelReliability

    def __repr__(self) -> str:
        return f"<Calibrated {self.tagger!r}, rule {self.rule}: {self.acceptance}>"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "rule": self.rule,
            "n_documents": self.calibration.n_documents,
            "subset_accuracy": self.accuracy,
            "calibration_error": self.after.error,
            "calibration_error_raw": self.before.error,
            "acceptance": as_plain(self.acceptance),
            "reliability": {"before": self.before.as_dict(), "after": self.after.as_dict()},
            "scalings": as_plain(self.calibration.scalings),
            "labels": {
                "calibration_error": self.labels.after.error,
                "calibration_error_raw": self.labels.before.error,
                "n_pairs": int(self.labels.after.n_documents.sum()),
                "acceptance": self._label_acceptance(),
            },
        }

    def _label_acceptance(self) -> dict[str, dict[str, Any]]:
        """Return the threshold of each label that can be accepted."""
        found = self.calibration.label_acceptance
        assert found is not None
        names = self.tagger.labels.names
        return {
            names[label]: {
                "threshold": float(found.thresholds[label]),
                "share": float(found.shares[label]),
                "is_rare": bool(found.is_rare[label]),
            }
            for label in np.flatnonzero(found.thresholds <= 1)
        }


@dataclass(frozen=True)
class LabelReliability:
    """Pairs of a document and a label above 0.05, by their probability.

    `after` is measured on each fifth of the documents, with curves fitted on the others.
    """

    before: Reliability
    after: Reliability


def fit_calibration(
    tagger: Tagger,
    data: Documents,
    *,
    split: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Calibration:
    """Fit thresholds and scalings; acceptance needs a target: see `calibrate`."""
    documents = open_documents(data, split, "valid")
    return _Documents.collect(tagger, documents, on_progress).fit(tagger)


def calibrate_on_valid(
    tagger: Tagger,
    prepared: Prepared,
    out: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Calibrate a tagger on the valid part, if there is one: see `calibrate_or_warn`."""
    if not prepared.description["n_documents"].get("valid", 0):
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
    if n_documents < LEAST_DOCUMENTS:
        text = (
            f"There are {n_documents:,} {kind}documents, and {LEAST_DOCUMENTS} are needed to "
            "calibrate: probabilities are the model's own."
        )
        on_progress(Note(text))
        return tagger
    way_out = "Calibrate it on fewer documents, with setrnn calibrate."
    try:
        with explain_full_gpu("Calibrating", way_out):
            calibration = fit_calibration(tagger, documents, on_progress=on_progress)
        calibrated = replace(tagger, calibration=calibration)
        if out is not None:
            calibrated = calibrated.save_calibration(out)
    except (SetRNNError, MemoryError, RuntimeError) as error:
        is_torch = type(error) is RuntimeError
        if is_torch and "allocate" not in str(error):  # its way to say: out of memory
            raise
        reason = "" if is_torch else str(error)
        on_progress(
            Note(f"The model is not calibrated: {reason or 'out of memory.'}", is_warning=True)
        )
        return tagger
    temperature = calibration.scalings["sets"].temperature
    on_progress(
        Note(
            f"Calibrated on the {n_documents:,} {kind}documents (temperature {temperature:.2f}): "
            "predict gives calibrated probabilities, predict --raw the model's own."
        )
    )
    return calibrated


def calibrate(
    tagger: Tagger,
    data: Documents,
    rule: str | None = None,
    target: float = 0.9,
    confidence: float = 0.9,
    *,
    split: str | None = None,
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
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> calibrated = setrnn.calibrate(tagger, "newsroom", target=0.8)
        >>> calibrated.after.error < calibrated.before.error
        True
        >>> prediction = calibrated.tagger.tag(["The ski race was cancelled."])[0]
        >>> prediction.accepted == (prediction.probability >= calibrated.acceptance.threshold)
        True
    """
    check_tagger(tagger)
    check_share("target accuracy", target)
    check_share("confidence", confidence)
    name, labelled = tagger.rule_or_own(rule), open_unseen(tagger, data, split, on_progress)
    documents = _Documents.collect(tagger, labelled, on_progress)
    calibration = documents.fit(tagger)
    fitted = replace(tagger, calibration=calibration)
    targets = {name: (target, confidence)}
    if tagger.calibration is not None:
        kept = tagger.calibration.acceptance.values()
        targets = {each.rule: (each.target, each.confidence) for each in kept} | targets
    predicted = {each: documents.predict(fitted, each) for each in targets}
    acceptance = {
        each: fit_acceptance(each, found.probs(calibration.scalings), found.is_right, *asked)
        for (each, found), asked in zip(predicted.items(), targets.values(), strict=True)
    }
    label_acceptance, of_labels = documents.accept_labels(tagger, calibration, target, confidence)
    calibration = replace(calibration, acceptance=acceptance, label_acceptance=label_acceptance)
    found = predicted[name]
    return Calibrated(
        rule=name,
        tagger=replace(tagger, calibration=calibration),
        calibration=calibration,
        acceptance=acceptance[name],
        before=reliability(found.probs({}), found.is_right),
        after=reliability(documents.held_out_probs(found, calibration), found.is_right),
        accuracy=float(found.is_right.mean()),
        labels=of_labels,
    )


@dataclass(frozen=True)
class _Predicted:
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
class _Documents:
    """Documents with their true sets, their candidates and their marginals."""

    tokens: Ragged
    label_sets: list[frozenset[str]]
    candidates: dict[str, SetCandidates]  # by the key of the scaling
    true_rank: dict[str, Ints]  # (n,) by the same key; -1 if no candidate is true
    # (n, L) of "sets", of rules with thresholds and own weights, and of LABEL_RULE for labels
    marginals: dict[str, Floats32]

    @classmethod
    def collect(
        cls, tagger: Tagger, documents: LabelledDocuments, on_progress: OnProgress
    ) -> _Documents:
        """Search all documents once; raise DataError if they are too few or have no labels."""
        count = count_up("calibrating", on_progress, documents.n_documents)
        system = tagger.system
        sources = ("sets", "sequences") if system.emits_sequences else ("sets",)
        own = [rule for rule in RULES if system.for_rule(rule) is not system]
        tokens: list[Ragged] = []
        label_sets: list[frozenset[str]] = []
        candidates: dict[str, list[SetCandidates]] = {key: [] for key in (*sources, *own)}
        with_marginals = [r for r in own if RULES[r].needs_thresholds or r == LABEL_RULE]
        marginals: dict[str, list[Floats32]] = {key: [] for key in ("sets", *with_marginals)}
        for batch, names in documents.batches(tagger):
            tokens.append(batch)
            label_sets.extend(map(frozenset, names))
            for source in sources:
                found = system.candidates(batch, count_candidates(), source)
                for key in [source, *(own if source == "sets" else ())]:
                    by_key = found.for_rule(key)  # a source is not the name of a rule
                    candidates[key].append(SetCandidates.concatenate([by_key]))
                    if key in marginals:
                        marginals[key].append(system.marginals(batch, by_key))
            count(len(names))
        documents.note_skipped(on_progress)
        _check(label_sets, tagger)
        joined = {source: SetCandidates.concatenate(parts) for source, parts in candidates.items()}
        truth, is_known = _encode_sets(tagger, label_sets)
        ranks = {
            source: np.where(is_known, found.ranks(truth), -1) for source, found in joined.items()
        }
        all_tokens = Ragged.concatenate(tokens)
        all_marginals = {key: np.concatenate(parts) for key, parts in marginals.items()}
        return cls(all_tokens, label_sets, joined, ranks, all_marginals)

    def fit(self, tagger: Tagger) -> Calibration:
        """Fit thresholds and scalings."""
        is_label = self.is_label(tagger)
        by_key = {key: choose_thresholds(each, is_label) for key, each in self.marginals.items()}
        common = by_key.get("micro-f1", by_key["sets"]).common
        by_label = by_key.get("label-f1", by_key["sets"]).by_label
        return Calibration(
            n_documents=len(self.label_sets),
            thresholds=Thresholds(common, by_label),
            scalings={
                key: fit_scaling(found.log_probs, self.true_rank[key])
                for key, found in self.candidates.items()
            },
            label_curves=self._fit_label_curves(is_label),
        )

    def _fit_label_curves(self, is_label: Bools) -> LabelCurves:
        own = self.label_marginals
        curves = fit_label_curves(own, is_label)
        return with_knots(curves, held_out_label_probs(own, is_label), is_label)

    def is_label(self, tagger: Tagger) -> Bools:
        """Return the true labels, (n, L)."""
        return _list_true_labels(tagger, self.label_sets)

    @property
    def label_marginals(self) -> Floats32:
        """The model's own p(label | document), (n, L)."""
        return self.marginals.get(LABEL_RULE, self.marginals["sets"])

    def accept_labels(
        self, tagger: Tagger, calibration: Calibration, target: float, confidence: float
    ) -> tuple[LabelAcceptance, LabelReliability]:
        """Find which labels to accept, and how far their probabilities can be trusted."""
        assert calibration.label_curves is not None
        own, is_label = self.label_marginals, self.is_label(tagger)
        return _accept_labels(own, is_label, calibration.label_curves, target, confidence)

    def predict(self, tagger: Tagger, rule: str) -> _Predicted:
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
        return _Predicted(
            key,
            self.candidates[key],
            pack_labels(label_ids.padded(min_width=1)),
            log_probs,
            np.array(is_right),
        )

    def held_out_probs(self, predicted: _Predicted, calibration: Calibration) -> Floats:
        """Calibrate each fifth of the documents with scalings fitted on the others: (n,)."""
        key = predicted.key
        log_probs, true_rank = self.candidates[key].log_probs, self.true_rank[key]
        probs = np.zeros(len(log_probs))
        for is_out, fitted in held_out(calibration.scalings[key], log_probs, true_rank):
            probs[is_out] = predicted.probs({key: fitted})[is_out]
        return probs


def find_label_acceptance(
    tagger: Tagger,
    marginals: Floats32,
    label_sets: Sequence[Iterable[str]],
    target: float = 0.9,
    confidence: float = 0.9,
) -> LabelAcceptance | None:
    """Find which labels a calibrated tagger could accept; None without curves of labels.

    Args:
        tagger: the model.
        marginals: its own p(label | document), (n, L), not calibrated.
        label_sets: the true labels of the documents.
        target: the least accuracy of a label where it is accepted.
        confidence: the confidence that a label reaches the target.
    """
    curves = None if tagger.calibration is None else tagger.calibration.label_curves
    if curves is None:
        return None
    is_label = _list_true_labels(tagger, label_sets)
    return _accept_labels(marginals, is_label, curves, target, confidence)[0]


def _accept_labels(
    own: Floats32, is_label: Bools, curves: LabelCurves, target: float, confidence: float
) -> tuple[LabelAcceptance, LabelReliability]:
    """Find which labels to accept, from the model's own probabilities (n, L)."""
    # The knots were fitted on these documents, but have few parameters.
    held_out_probs = curves.interpolate(held_out_label_probs(own, is_label))
    found = fit_label_acceptance(own, curves(own), held_out_probs, is_label, target, confidence)
    shown = [label_reliability(each, is_label) for each in (own, held_out_probs)]
    return found, LabelReliability(*shown)


def _list_true_labels(tagger: Tagger, label_sets: Sequence[Iterable[str]]) -> Bools:
    """Return the true labels, (n, L)."""
    known = tagger.labels.encode(label_sets)
    is_label = np.zeros((len(label_sets), len(tagger.labels)), dtype=bool)
    is_label[known.row_numbers, known.values] = True
    return is_label


def _check(label_sets: Sequence[frozenset[str]], tagger: Tagger) -> None:
    if len(label_sets) < LEAST_DOCUMENTS:
        raise DataError(
            f"{len(label_sets):,} documents are too few to calibrate on: give at least "
            f"{LEAST_DOCUMENTS} that the model was not trained on."
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
