"""How good a tagger is on documents whose labels are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.calibration.acceptance import accuracy_interval
from setrnn.calibration.reliability import reliability
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.decoding import find_rule
from setrnn.errors import DataError
from setrnn.labelled import Batch, example_batches, prepared_batches
from setrnn.metrics import (
    RankingScores,
    Scores,
    evaluate_label_sets,
    evaluate_ranking,
    indicator_matrices,
)
from setrnn.tagger import Prediction, Tagger

RANKS = (1, 3, 5)  # the k of precision@k and nDCG@k


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
    accepted: AcceptedScores | None = None  # None: the model has no acceptance for the rule

    def as_dict(self) -> dict[str, Any]:
        """Return all measures as plain values."""
        return {
            "rule": self.rule,
            **self.scores.as_dict(),
            **self.ranking.as_dict(),
            "mean_probability": self.mean_probability,
            "calibration_error": self.calibration_error,
            "calibration_error_raw": self.calibration_error_raw,
            **({} if self.accepted is None else asdict(self.accepted)),
            "documents_per_second": round(self.documents_per_second, 1),
        }


def evaluate(
    tagger: Tagger,
    examples: Iterable[Example],
    rule: str | None = None,
    on_documents: Callable[[int], None] = lambda n_documents: None,
) -> Evaluation:
    """Predict a stream of documents and measure."""
    return _evaluate(tagger, example_batches(tagger, examples), rule, on_documents)


def evaluate_prepared(
    tagger: Tagger,
    prepared: Prepared,
    split: str,
    rule: str | None = None,
    on_documents: Callable[[int], None] = lambda n_documents: None,
) -> Evaluation:
    """Predict a split of a prepared folder and measure."""
    return _evaluate(tagger, prepared_batches(tagger, prepared, split), rule, on_documents)


def _evaluate(
    tagger: Tagger,
    batches: Iterable[Batch],
    rule: str | None,
    on_documents: Callable[[int], None],
) -> Evaluation:
    truth: list[tuple[str, ...]] = []
    predicted: list[Prediction] = []
    raw_probabilities: list[float] = []
    rankings: list[RankingScores] = []
    seconds = 0.0
    name = tagger.rule_or_own(rule)
    chosen, acceptance = find_rule(name), tagger.acceptance(name)
    for tokens, labels in batches:
        start = time.perf_counter()
        n_sets = tagger.n_candidates(chosen)
        candidates = tagger.system.candidates(tokens, n_sets, chosen.source)
        predicted.extend(tagger.predictions(candidates, chosen, 1, acceptance=acceptance))
        seconds += time.perf_counter() - start
        own = tagger.predictions(candidates, chosen, 1, calibrated=False)
        raw_probabilities.extend(each.probability for each in own)
        truth.extend(labels)
        known = indicator_matrices(labels, [()] * len(labels), tagger.labels.names)
        # Best sequences are not sets: the shares of their labels are no marginals.
        found = candidates if chosen.source == "sets" else None
        marginals = tagger.system.marginals(tokens, found)
        rankings.append(evaluate_ranking(known.truth, marginals, RANKS))
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
        accepted=None if acceptance is None else _accepted_scores(predicted, is_right),
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
