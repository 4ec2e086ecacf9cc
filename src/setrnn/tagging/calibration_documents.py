"""Documents to calibrate on: what a model finds for them, and what is fitted to that."""

# n documents, L labels, K candidates, S labels of the largest set

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from setrnn.data.batches import take_rows
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.progress import OnProgress, count_up
from setrnn.systems.candidates import Bools, Floats, Ids, Ints, SetCandidates, pack_labels
from setrnn.systems.rules import LABEL_RULE, RULES, count_candidates, find_rule
from setrnn.systems.rules.marginal_rules import Thresholds, choose_thresholds
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.acceptance import (
    Acceptance,
    LabelAcceptance,
    Reliability,
    fit_acceptance,
    fit_label_acceptance,
    label_reliability,
)
from setrnn.tagging.calibration import (
    LEAST_DOCUMENTS,
    Calibration,
    Scaling,
    fit_scaling,
    held_out,
)
from setrnn.tagging.documents import LabelledDocuments
from setrnn.tagging.label_calibration import (
    LabelCurves,
    fit_label_curves,
    held_out_label_probs,
    with_knots,
)
from setrnn.tagging.tagger import Tagger


@dataclass(frozen=True)
class LabelReliability:
    """Pairs of a document and a label above 0.05, by their probability.

    `after` is measured on each fifth of the documents, with curves fitted on the others.
    """

    before: Reliability
    after: Reliability


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
            tokens.append(batch if is_complete.all() else take_rows(batch, complete))
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
        documents.note_skipped(on_progress)
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

    def fit(self, tagger: Tagger) -> Calibration:
        """Fit thresholds and scalings."""
        by_key = {
            key: choose_thresholds(each.probs, each.is_label, each.places)
            for key, each in self.marginals.items()
        }
        common = by_key.get("micro-f1", by_key["sets"]).common
        by_label = by_key.get("label-f1", by_key["sets"]).by_label
        return Calibration(
            n_documents=len(self.label_sets),
            thresholds=Thresholds(common, by_label),
            scalings={
                key: fit_scaling(found.log_probs, self.true_rank[key])
                for key, found in self.candidates.items()
            },
            label_curves=self._fit_label_curves(),
            share_trained_on=self.share_trained_on,
        )

    def _fit_label_curves(self) -> LabelCurves:
        own = self.label_marginals
        curves = fit_label_curves(own.probs, own.is_label, own.places)
        held_out_probs = held_out_label_probs(own.probs, own.is_label, own.places)
        return with_knots(curves, held_out_probs, own.is_label, own.places)

    @property
    def label_marginals(self) -> TrueMarginals:
        """The model's own p(label | document)."""
        return self.marginals.get(LABEL_RULE, self.marginals["sets"])

    def accept(
        self,
        tagger: Tagger,
        calibration: Calibration,
        targets: Mapping[str, tuple[float, float]],
    ) -> tuple[dict[str, Acceptance], dict[str, Predicted]]:
        """Find which predictions to accept, by rule: targets are an accuracy and a confidence."""
        fitted = replace(tagger, calibration=calibration)
        predicted = {rule: self.predict(fitted, rule) for rule in targets}
        acceptance = {
            rule: fit_acceptance(rule, found.probs(calibration.scalings), found.is_right, *asked)
            for (rule, found), asked in zip(predicted.items(), targets.values(), strict=True)
        }
        return acceptance, predicted

    def accept_labels(
        self, calibration: Calibration, target: float, confidence: float
    ) -> tuple[LabelAcceptance, LabelReliability]:
        """Find which labels to accept, and how far their probabilities can be trusted."""
        assert calibration.label_curves is not None
        curves = calibration.label_curves
        return accept_label_probs(self.label_marginals, curves, target, confidence)

    def predict(self, tagger: Tagger, rule: str) -> Predicted:
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


def accept_label_probs(
    own: TrueMarginals, curves: LabelCurves, target: float, confidence: float
) -> tuple[LabelAcceptance, LabelReliability]:
    """Find which labels to accept, from the model's own probabilities."""
    probs, is_label, places = own.probs, own.is_label, own.places
    # The knots were fitted on these documents, but have few parameters.
    held_out_probs = curves.interpolate(held_out_label_probs(probs, is_label, places))
    calibrated = curves(probs, None if places is None else places.label)
    found = fit_label_acceptance(
        probs, calibrated, held_out_probs, is_label, target, confidence, places
    )
    shown = [label_reliability(each, is_label) for each in (probs, held_out_probs)]
    return found, LabelReliability(*shown)


def _check(label_sets: Sequence[frozenset[str]], tagger: Tagger) -> None:
    if len(label_sets) < LEAST_DOCUMENTS:
        raise DataError(
            f"{len(label_sets):,} documents are too few to calibrate on: give at least "
            f"{LEAST_DOCUMENTS} that the model was not trained on, with all their labels."
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
