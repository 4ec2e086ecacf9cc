"""How good a tagger is on documents whose labels are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.data.batches import take_rows
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.metrics import (
    RankingScores,
    Scores,
    evaluate_label_sets,
    evaluate_ranking,
    indicator_matrices,
)
from setrnn.systems.rules import MANY_SETS, Limits, SetCandidates, find_rule
from setrnn.tagging.calibration.acceptance import accuracy_interval
from setrnn.tagging.calibration.reliability import reliability
from setrnn.tagging.labelled import Batch, example_batches, prepared_batches
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.tagger import Tagger

RANKS = (1, 3, 5)  # the k of precision@k and nDCG@k


LEAST_LOG_PROB = float(np.log(1e-12))  # so that one impossible set is not all that is seen


@dataclass(frozen=True)
class SetLogLikelihood:
    """The mean of log p(true set), over documents all of whose labels the model knows."""

    mean: float | None  # None where there are no such documents
    n_impossible_sets: int  # of probability below 1e-12, which they are counted with


@dataclass(frozen=True)
class CertificateScores:
    """What the search says of its predictions, over the documents that have a certificate."""

    share_proved: float
    pruned_mass: float  # mean


@dataclass(frozen=True)
class AcceptedScores:
    """How often the accepted predictions are right, and the 95% interval of it."""

    n_accepted: int
    share_accepted: float
    accuracy_accepted: float | None  # None: nothing was accepted
    accuracy_accepted_low: float
    accuracy_accepted_high: float


@dataclass(frozen=True)
class Evaluation:
    """The measures of one model, rule and set of documents."""

    rule: str
    scores: Scores
    ranking: RankingScores  # by p(label | document), whatever the rule
    # Of the predictions: by rule "set", near subset accuracy if well calibrated.
    mean_probability: float
    calibration_error: float  # how far they are from how often the sets are right
    calibration_error_raw: float  # the same of the model's own probabilities
    documents_per_second: float
    # p of the sets that were not found, a document: the marginals behind the ranking guess it
    missing_mass: float
    set_log_likelihood: SetLogLikelihood
    accepted: AcceptedScores | None = None  # None: the model has no acceptance for the rule
    certificates: CertificateScores | None = None  # of set-rnn-exact, by rule "set"

    def as_dict(self) -> dict[str, Any]:
        """Return all measures as plain values."""
        return {
            "rule": self.rule,
            **self.scores.as_dict(),
            **self.ranking.as_dict(),
            "mean_probability": self.mean_probability,
            "missing_mass": self.missing_mass,
            "set_log_likelihood": self.set_log_likelihood.mean,
            "n_impossible_sets": self.set_log_likelihood.n_impossible_sets,
            "calibration_error": self.calibration_error,
            "calibration_error_raw": self.calibration_error_raw,
            **({} if self.accepted is None else asdict(self.accepted)),
            **({} if self.certificates is None else asdict(self.certificates)),
            "documents_per_second": round(self.documents_per_second, 1),
        }


@dataclass(frozen=True)
class Measured:
    """What a rule predicts for each document, and how good that is."""

    evaluation: Evaluation
    predictions: Sequence[Prediction]
    raw_probabilities: Sequence[float]  # the model's own, of the predicted sets


OnDocuments = Callable[[int], None]


def evaluate(
    tagger: Tagger,
    examples: Iterable[Example],
    rule: str | None = None,
    on_documents: OnDocuments = lambda n_documents: None,
    limits: Limits | None = None,
) -> Evaluation:
    """Predict a stream of documents and measure."""
    name = tagger.rule_or_own(rule)
    batches = example_batches(tagger, examples)
    return measure_rules(tagger, batches, [name], on_documents, limits)[name].evaluation


def evaluate_prepared(
    tagger: Tagger,
    prepared: Prepared,
    split: str,
    rule: str | None = None,
    on_documents: OnDocuments = lambda n_documents: None,
    limits: Limits | None = None,
) -> Evaluation:
    """Predict a split of a prepared folder and measure."""
    name = tagger.rule_or_own(rule)
    batches = prepared_batches(tagger, prepared, split)
    return measure_rules(tagger, batches, [name], on_documents, limits)[name].evaluation


def measure_rules(
    tagger: Tagger,
    batches: Iterable[Batch],
    rules: Sequence[str],
    on_documents: OnDocuments = lambda n_documents: None,
    limits: Limits | None = None,
) -> dict[str, Measured]:
    """Predict by several rules and measure; what they share is computed once."""
    truth: list[tuple[str, ...]] = []
    found = {rule: _RulePredictions(tagger, rule, limits) for rule in rules}
    rankings: list[RankingScores] = []
    missing: list[npt.NDArray[np.float64]] = []
    log_probs: list[npt.NDArray[np.float64]] = []
    for tokens, labels in batches:
        searched = _Searched(tagger, tokens, list(found.values()))
        for each in found.values():
            each.predict(tokens, searched)
        truth.extend(labels)
        known = indicator_matrices(labels, [()] * len(labels), tagger.labels.names)
        candidates = searched.many_sets()
        marginals = tagger.system.marginals(tokens, candidates)
        rankings.append(evaluate_ranking(known.truth, marginals, RANKS))
        missing.append(candidates.missing_mass())
        log_probs.append(_log_probs_of_truth(tagger, tokens, labels))
        on_documents(len(labels))
    if not truth:
        raise DataError("There are no documents to evaluate.")
    shared = _Shared(
        _mean_ranking(rankings),
        float(np.concatenate(missing).mean()),
        _log_likelihood(np.concatenate(log_probs)),
    )
    return {rule: each.measured(truth, shared) for rule, each in found.items()}


@dataclass(frozen=True)
class _Shared:
    """What does not depend on the rule."""

    ranking: RankingScores
    missing_mass: float
    set_log_likelihood: SetLogLikelihood


class _Searched:
    """The candidates of a batch: one search for all rules of a source."""

    def __init__(self, tagger: Tagger, tokens: Ragged, rules: Sequence[_RulePredictions]) -> None:
        self.tagger, self.tokens = tagger, tokens
        self.candidates: dict[str, SetCandidates] = {}
        self.seconds: dict[str, float] = {}
        self.n_sets: dict[str, int] = {}
        for source in dict.fromkeys(each.rule.source for each in rules):
            n_sets = max(each.n_sets for each in rules if each.rule.source == source)
            start = time.perf_counter()
            self.candidates[source] = tagger.system.candidates(tokens, n_sets, source)
            self.seconds[source] = time.perf_counter() - start
            self.n_sets[source] = n_sets

    def many_sets(self) -> SetCandidates:
        """Return enough sets for marginals, searched for only where they were not yet."""
        # Best sequences are not sets: the shares of their labels are no marginals. A search
        # that stops when the best is proved has not looked at the rest.
        found = self.candidates.get("sets")
        if found is not None and (self.n_sets["sets"] >= MANY_SETS or found.certificates is None):
            return found
        return self.tagger.system.candidates(self.tokens, MANY_SETS)


class _RulePredictions:
    """What a rule predicts, batch by batch."""

    def __init__(self, tagger: Tagger, name: str, limits: Limits | None) -> None:
        self.tagger, self.name = tagger, name
        self.rule, self.limits = find_rule(name), tagger.known_limits(limits)
        self.acceptance = tagger.acceptance(name)
        self.n_sets = max(self.rule.n_sets(1, self.limits), tagger.n_candidates(self.rule))
        self.predictions: list[Prediction] = []
        self.raw_probabilities: list[float] = []
        self.seconds = 0.0

    def predict(self, tokens: Ragged, searched: _Searched) -> None:
        """Choose a set for each document of a batch."""
        candidates = searched.candidates[self.rule.source]
        predict = partial(self.tagger.predictions, tokens, candidates, self.rule, 1, self.limits)
        start = time.perf_counter()
        found = list(predict(acceptance=self.acceptance))
        self.seconds += time.perf_counter() - start + searched.seconds[self.rule.source]
        self.predictions.extend(found)
        if self.tagger.calibration is not None:
            found = list(predict(calibrated=False))
        self.raw_probabilities.extend(each.probability for each in found)

    def measured(self, truth: list[tuple[str, ...]], shared: _Shared) -> Measured:
        """Measure the predictions of all documents."""
        probs = np.array([each.probability for each in self.predictions])
        pairs = zip(self.predictions, truth, strict=True)
        is_right = np.array([set(each.labels) == set(labels) for each, labels in pairs])
        accepted = None
        if self.acceptance is not None:
            accepted = _accepted_scores(self.predictions, is_right)
        predicted = [each.labels for each in self.predictions]
        evaluation = Evaluation(
            rule=self.name,
            scores=evaluate_label_sets(truth, predicted, self.tagger.labels.names),
            ranking=shared.ranking,
            mean_probability=float(probs.mean()),
            calibration_error=reliability(probs, is_right).error,
            calibration_error_raw=reliability(np.array(self.raw_probabilities), is_right).error,
            documents_per_second=len(truth) / max(self.seconds, 1e-9),
            missing_mass=shared.missing_mass,
            set_log_likelihood=shared.set_log_likelihood,
            accepted=accepted,
            certificates=_certificate_scores(self.predictions),
        )
        return Measured(evaluation, self.predictions, self.raw_probabilities)


def _log_probs_of_truth(
    tagger: Tagger, tokens: Ragged, labels: list[tuple[str, ...]]
) -> npt.NDArray[np.float64]:
    """Return log p of the true sets of the documents all of whose labels are known."""
    is_known = [all(name in tagger.labels.index for name in row) for row in labels]
    rows = np.flatnonzero(is_known)
    sets = tagger.labels.encode([labels[row] for row in rows])
    padded = sets.padded(min_width=1)
    return tagger.system.set_log_probs(take_rows(tokens, rows), padded[:, None])[:, 0]


def _log_likelihood(log_probs: npt.NDArray[np.float64]) -> SetLogLikelihood:
    mean = float(np.maximum(log_probs, LEAST_LOG_PROB).mean()) if len(log_probs) else None
    return SetLogLikelihood(mean, int((log_probs < LEAST_LOG_PROB).sum()))


def _certificate_scores(predicted: Sequence[Prediction]) -> CertificateScores | None:
    found = [each.certificate for each in predicted if each.certificate is not None]
    if not found:
        return None
    return CertificateScores(
        float(np.mean([each.proved for each in found])),
        float(np.mean([each.pruned_mass for each in found])),
    )


def _accepted_scores(
    predicted: Sequence[Prediction], is_right: npt.NDArray[np.bool_]
) -> AcceptedScores:
    is_accepted = np.array([bool(each.accepted) for each in predicted])
    n, n_right = int(is_accepted.sum()), int(is_right[is_accepted].sum())
    low, high = accuracy_interval(n_right, n)
    return AcceptedScores(n, n / len(predicted), n_right / n if n else None, low, high)


def _mean_ranking(parts: list[RankingScores]) -> RankingScores:
    weights = [part.n_documents for part in parts]

    def mean(values: list[float]) -> float:
        return float(np.average(values, weights=weights))

    return RankingScores(
        n_documents=sum(weights),
        precision={k: mean([part.precision[k] for part in parts]) for k in parts[0].precision},
        ndcg={k: mean([part.ndcg[k] for part in parts]) for k in parts[0].ndcg},
    )
