"""How good a tagger is on documents whose labels are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.data.batches import padded, take_rows
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared, batched
from setrnn.data.ragged import Ragged
from setrnn.decoding import MANY_SETS, Limits, find_rule
from setrnn.errors import DataError
from setrnn.metrics import (
    RankingScores,
    Scores,
    evaluate_label_sets,
    evaluate_ranking,
    indicator_matrices,
)
from setrnn.tagger import BATCH, Tagger

RANKS = (1, 3, 5)  # the k of precision@k and nDCG@k


LEAST_LOG_PROB = float(np.log(1e-12))  # so that one impossible set is not all that is seen


@dataclass(frozen=True)
class SetLogLikelihood:
    """The mean of log p(true set), over documents all of whose labels the model knows."""

    mean: float | None  # None where there are no such documents
    n_impossible_sets: int  # of probability below 1e-12, which they are counted with


@dataclass(frozen=True)
class Evaluation:
    """The measures of one model, rule and set of documents."""

    rule: str
    scores: Scores
    ranking: RankingScores  # by p(label | document), whatever the rule
    # Of the predictions: by rule "set", near subset accuracy if well calibrated.
    mean_probability: float
    documents_per_second: float
    # p of the sets that were not found, a document: the marginals behind the ranking guess it
    missing_mass: float
    set_log_likelihood: SetLogLikelihood

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

    def batches() -> Iterable[tuple[Ragged, list[tuple[str, ...]]]]:
        for batch in batched(examples, BATCH):
            tokens = tagger.encoder.encode(
                [example.text for example in batch], [example.features for example in batch]
            )
            yield tokens, [example.labels for example in batch]

    return _evaluate(tagger, batches(), rule, on_documents, limits)


def evaluate_prepared(
    tagger: Tagger,
    prepared: Prepared,
    split: str,
    rule: str | None = None,
    on_documents: Callable[[int], None] = lambda n_documents: None,
    limits: Limits | None = None,
) -> Evaluation:
    """Predict a split of a prepared folder and measure."""
    if prepared.encoder.tokenizer.to_str() != tagger.encoder.tokenizer.to_str():
        raise DataError(
            f"{prepared.folder} was prepared with another vocabulary than the model's. "
            "Evaluate on the data itself."
        )
    part = prepared.split(split)
    names = [*prepared.labels.names, *prepared.unseen_labels]

    def batches() -> Iterable[tuple[Ragged, list[tuple[str, ...]]]]:
        for start in range(0, len(part), BATCH):
            stop = min(start + BATCH, len(part))
            truth = [tuple(names[label] for label in row) for row in part.labels.rows(start, stop)]
            yield part.tokens.rows(start, stop), truth

    return _evaluate(tagger, batches(), rule, on_documents, limits)


def _evaluate(
    tagger: Tagger,
    batches: Iterable[tuple[Ragged, list[tuple[str, ...]]]],
    rule: str | None,
    on_documents: Callable[[int], None],
    limits: Limits | None,
) -> Evaluation:
    truth: list[tuple[str, ...]] = []
    predicted: list[tuple[str, ...]] = []
    probabilities: list[float] = []
    rankings: list[RankingScores] = []
    missing: list[npt.NDArray[np.float64]] = []
    log_probs: list[npt.NDArray[np.float64]] = []
    seconds = 0.0
    name = tagger.rule_or_own(rule)
    chosen, known_limits = find_rule(name), tagger.known_limits(limits)
    for tokens, labels in batches:
        start = time.perf_counter()
        n_sets = chosen.n_sets(1, known_limits)
        candidates = tagger.system.candidates(tokens, n_sets, chosen.source)
        predictions = list(tagger.predictions(tokens, candidates, chosen, 1, known_limits))
        seconds += time.perf_counter() - start
        predicted.extend(prediction.labels for prediction in predictions)
        probabilities.extend(prediction.probability for prediction in predictions)
        truth.extend(labels)
        known = indicator_matrices(labels, [()] * len(labels), tagger.labels.names)
        # Best sequences are not sets: the shares of their labels are no marginals.
        is_found = chosen.source == "sets"
        found = candidates if is_found else tagger.system.candidates(tokens, MANY_SETS)
        marginals = tagger.system.marginals(tokens, found)
        rankings.append(evaluate_ranking(known.truth, marginals, RANKS))
        missing.append(found.missing_mass())
        log_probs.append(_log_probs_of_truth(tagger, tokens, labels))
        on_documents(len(labels))
    if not truth:
        raise DataError("There are no documents to evaluate.")
    return Evaluation(
        rule=name,
        scores=evaluate_label_sets(truth, predicted, tagger.labels.names),
        ranking=_mean_ranking(rankings),
        mean_probability=float(np.mean(probabilities)),
        documents_per_second=len(truth) / max(seconds, 1e-9),
        missing_mass=float(np.concatenate(missing).mean()),
        set_log_likelihood=_log_likelihood(np.concatenate(log_probs)),
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


def _mean_ranking(parts: list[RankingScores]) -> RankingScores:
    weights = [part.n_documents for part in parts]

    def mean(values: list[float]) -> float:
        return float(np.average(values, weights=weights))

    return RankingScores(
        n_documents=sum(weights),
        precision={k: mean([part.precision[k] for part in parts]) for k in parts[0].precision},
        ndcg={k: mean([part.ndcg[k] for part in parts]) for k in parts[0].ndcg},
    )
