"""How good a tagger is on documents whose labels are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.calibration.acceptance import accuracy_interval
from setrnn.calibration.reliability import reliability
from setrnn.data.batches import padded, take_rows
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.decoding import MANY_SETS, Limits, find_rule
from setrnn.errors import DataError
from setrnn.labelled import Batch, example_batches, prepared_batches
from setrnn.metrics import (
    RankingScores,
    Scores,
    evaluate_label_sets,
    evaluate_ranking,
    indicator_matrices,
)
from setrnn.prediction import Prediction
from setrnn.tagger import Tagger

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


def evaluate(
    tagger: Tagger,
    examples: Iterable[Example],
    rule: str | None = None,
    on_documents: Callable[[int], None] = lambda n_documents: None,
    limits: Limits | None = None,
) -> Evaluation:
    """Predict a stream of documents and measure."""
    return _evaluate(tagger, example_batches(tagger, examples), rule, on_documents, limits)


def evaluate_prepared(
    tagger: Tagger,
    prepared: Prepared,
    split: str,
    rule: str | None = None,
    on_documents: Callable[[int], None] = lambda n_documents: None,
    limits: Limits | None = None,
) -> Evaluation:
    """Predict a split of a prepared folder and measure."""
    batches = prepared_batches(tagger, prepared, split)
    return _evaluate(tagger, batches, rule, on_documents, limits)


def _evaluate(
    tagger: Tagger,
    batches: Iterable[Batch],
    rule: str | None,
    on_documents: Callable[[int], None],
    limits: Limits | None,
) -> Evaluation:
    truth: list[tuple[str, ...]] = []
    predicted: list[Prediction] = []
    raw_probabilities: list[float] = []
    rankings: list[RankingScores] = []
    missing: list[npt.NDArray[np.float64]] = []
    log_probs: list[npt.NDArray[np.float64]] = []
    seconds = 0.0
    name = tagger.rule_or_own(rule)
    chosen, known_limits = find_rule(name), tagger.known_limits(limits)
    acceptance = tagger.acceptance(name)
    for tokens, labels in batches:
        start = time.perf_counter()
        n_sets = max(chosen.n_sets(1, known_limits), tagger.n_candidates(chosen))
        candidates = tagger.system.candidates(tokens, n_sets, chosen.source)
        predict = partial(tagger.predictions, tokens, candidates, chosen, 1, known_limits)
        predictions = list(predict(acceptance=acceptance))
        seconds += time.perf_counter() - start
        predicted.extend(predictions)
        if tagger.calibration is not None:
            predictions = list(predict(calibrated=False))
        raw_probabilities.extend(each.probability for each in predictions)
        truth.extend(labels)
        known = indicator_matrices(labels, [()] * len(labels), tagger.labels.names)
        # Best sequences are not sets: the shares of their labels are no marginals. A search
        # that stops when the best is proved has not looked at the rest.
        is_whole = chosen.source == "sets" and (
            n_sets >= MANY_SETS or candidates.certificates is None
        )
        found = candidates if is_whole else tagger.system.candidates(tokens, MANY_SETS)
        marginals = tagger.system.marginals(tokens, found)
        rankings.append(evaluate_ranking(known.truth, marginals, RANKS))
        missing.append(found.missing_mass())
        log_probs.append(_log_probs_of_truth(tagger, tokens, labels))
        on_documents(len(labels))
    if not truth:
        raise DataError("There are no documents to evaluate.")
    probs = np.array([each.probability for each in predicted])
    pairs = zip(predicted, truth, strict=True)
    is_right = np.array([set(each.labels) == set(labels) for each, labels in pairs])
    return Evaluation(
        rule=name,
        scores=evaluate_label_sets(truth, [each.labels for each in predicted], tagger.labels.names),
        ranking=_mean_ranking(rankings),
        mean_probability=float(probs.mean()),
        calibration_error=reliability(probs, is_right).error,
        calibration_error_raw=reliability(np.array(raw_probabilities), is_right).error,
        documents_per_second=len(truth) / max(seconds, 1e-9),
        missing_mass=float(np.concatenate(missing).mean()),
        set_log_likelihood=_log_likelihood(np.concatenate(log_probs)),
        accepted=None if acceptance is None else _accepted_scores(predicted, is_right),
        certificates=_certificate_scores(predicted),
    )


def _log_probs_of_truth(
    tagger: Tagger, tokens: Ragged, labels: list[tuple[str, ...]]
) -> npt.NDArray[np.float64]:
    """Return log p of the true sets of the documents all of whose labels are known."""
    is_known = [all(name in tagger.labels.index for name in row) for row in labels]
    rows = np.flatnonzero(is_known)
    sets = tagger.labels.encode([labels[row] for row in rows])
    padded_sets = padded(sets, np.arange(len(rows)), fill=-1, min_width=1).astype(np.int32)
    return tagger.system.set_log_probs(take_rows(tokens, rows), padded_sets[:, None])[:, 0]


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
