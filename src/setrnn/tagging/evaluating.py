"""Measure a tagger on documents whose labels are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from setrnn.data.formats import make_hierarchy
from setrnn.data.formats.parents import Parents
from setrnn.data.hierarchy import Hierarchy, score_in_hierarchy
from setrnn.errors import ConfigError, DataError
from setrnn.metrics import (
    RankingScores,
    Scores,
    evaluate_label_sets,
    evaluate_ranking,
    indicator_matrices,
)
from setrnn.progress import Note, OnProgress, count_up, ignore_progress
from setrnn.systems.candidates import Bools, Floats, to_probability
from setrnn.systems.limits import Limits
from setrnn.systems.predicting import NO_RULE, BatchSearch, ChosenSets, Question
from setrnn.systems.rules import count_candidates, find_rule
from setrnn.systems.true_marginals import TrueMarginals, hide_probs
from setrnn.tagging.acceptance import reliability
from setrnn.tagging.documents import (
    MEASURED_ON_SEEN,
    MOST_SEEN,
    Batch,
    Documents,
    SeenCounts,
    find_hierarchy,
    open_documents,
)
from setrnn.tagging.evaluation import (
    Evaluation,
    score_accepted,
    score_certificates,
    score_log_likelihood,
)
from setrnn.tagging.label_scores import LabelPairs, LabelProbabilityScores, score_labels
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.truth import Truth

RANKS = (1, 3, 5)  # the k of precision@k and nDCG@k

OnDocuments: TypeAlias = Callable[[int], None]  # called with the documents done since the last call
OnMarginals: TypeAlias = Callable[[TrueMarginals], None]


@dataclass(frozen=True)
class RuleResults:
    """The predictions by one rule, and their measures."""

    evaluation: Evaluation
    predictions: Sequence[Prediction]
    raw_probabilities: Sequence[float]  # the model's own, of the predicted sets
    # The model's own log p of each true set; None if it has an unknown label.
    true_log_probs: Sequence[float | None]


def evaluate(
    tagger: Tagger,
    data: Documents,
    rule: str | None = None,
    *,
    split: str | None = None,
    limits: Limits | None = None,
    hierarchy: Parents | None = None,
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Evaluation:
    """Measure a tagger on documents whose labels are known.

    Args:
        tagger: the model.
        data: a file, a folder, a prepared folder, "newsroom", or examples; a `Source` says how
            to read a file.
        rule: the prediction rule; the model's own if not given.
        split: the part of the data; test, or the only one, if not given.
        limits: what the predicted sets must satisfy.
        hierarchy: the parents of labels, for the hierarchical measures: a file of label,parent, or
            a dict. If not given, that of the data or of the model.
        allow_training_documents: whether to measure without a warning on documents that the model
            was trained on. `Evaluation.share_trained_on` says how many they are.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> evaluation = setrnn.evaluate(tagger, "newsroom")
        >>> evaluation.scores.n_documents
        600
        >>> 0.8 < evaluation.scores.instance_f1 < 1
        True
        >>> evaluation.share_trained_on
        0.0
    """
    check_tagger(tagger)
    name = tagger.rule_or_own(rule)
    found = evaluate_rules(
        tagger,
        data,
        [name],
        split=split,
        limits=limits,
        hierarchy=hierarchy,
        allow_training_documents=allow_training_documents,
        on_progress=on_progress,
    )
    return found[name]


def evaluate_rules(
    tagger: Tagger,
    data: Documents,
    rules: Sequence[str] | None = None,
    *,
    split: str | None = None,
    limits: Limits | None = None,
    hierarchy: Parents | None = None,
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Evaluation]:
    """Measure a tagger by several prediction rules; what they share is computed once.

    Without `rules`, these are all that the model can predict by. The other arguments are those of
    `evaluate`.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> found = setrnn.evaluate_rules(tagger, "newsroom")
        >>> list(found)
        ['set', 'f1', 'hamming', 'micro-f1', 'label-f1']
        >>> found["f1"].scores.instance_f1 > found["set"].scores.instance_f1
        True
    """
    check_tagger(tagger)
    names = [tagger.rule_or_own(each) for each in (tagger.rules if rules is None else rules)]
    documents, seen = open_documents(data, split), SeenCounts(tagger)
    tagger.known_limits(limits)
    count = count_up("tagging", on_progress, documents.n_documents)
    tree = make_hierarchy(hierarchy) or find_hierarchy(data)
    batches = seen.watch(documents.batches(tagger))
    results = measure_rules(tagger, batches, names, count, limits, hierarchy=tree)
    documents.note_skipped(on_progress)
    note_incomplete(next(iter(results.values())).evaluation.scores, on_progress)
    if seen.share > MOST_SEEN and not allow_training_documents:
        on_progress(Note(MEASURED_ON_SEEN.format(share=seen.share), is_warning=True))
    return {
        name: replace(each.evaluation, share_trained_on=seen.share)
        for name, each in results.items()
    }


def note_incomplete(scores: Scores, on_progress: OnProgress) -> None:
    """Say how many documents have labels that are not known, and what that means."""
    if scores.n_incomplete:
        text = (
            f"{scores.n_incomplete:,} documents have labels that are not known: these count "
            "neither for nor against, so that wrong labels may go unnoticed there."
        )
        on_progress(Note(text))


def check_tagger(tagger: object) -> None:
    """Raise ConfigError for anything but a Tagger, such as the path of a model."""
    if not isinstance(tagger, Tagger):
        raise ConfigError(f"A Tagger is needed, got {tagger!r:.60}. Write setrnn.load(FOLDER).")


def measure_rules(
    tagger: Tagger,
    batches: Iterable[Batch],
    rules: Sequence[str],
    on_documents: OnDocuments = lambda n_documents: None,
    limits: Limits | None = None,
    on_marginals: OnMarginals | None = None,
    hierarchy: Hierarchy | None = None,
) -> dict[str, RuleResults]:
    """Predict by several rules and measure each; what the rules share is computed once.

    `on_marginals` is called with the model's own p(label | document) of each batch. Hierarchical
    measures go by `hierarchy`, or by that of the model.
    """
    truth = Truth()
    known_limits = tagger.known_limits(limits)
    found = {rule: _RulePredictions(tagger, rule) for rule in rules}
    # By source. Label probabilities need many sets: they are searched for at once.
    n_sets = {"sets": count_candidates()}
    for rule, each in found.items():
        n_wanted = tagger.n_candidates(rule, 1, known_limits)
        n_sets[each.source] = max(n_wanted, n_sets.get(each.source, 0))
    rankings: list[RankingScores] = []
    missing: list[Floats] = []
    log_probs: list[float | None] = []
    pairs = LabelPairs()
    for batch in batches:
        tokens, labels = batch.tokens, batch.labels
        search = BatchSearch(tagger.system, tokens, n_sets)
        true_sets = _true_sets(tagger, batch)
        chosen = search.choose_all(rules, known_limits, tagger.thresholds, [true_sets])
        for rule, each in found.items():
            each.add(search, chosen[rule])
        truth.add(batch)
        known = indicator_matrices(labels, [()] * len(labels), tagger.labels.names)
        candidates = search.many_sets()
        own = tagger.label_marginals(tokens, candidates, calibrated=False)
        marginals = tagger.calibrate_labels(own.probs)
        if on_marginals is not None:
            encoded = tagger.labels.encode(labels)
            on_marginals(TrueMarginals.of(own.probs, encoded, batch.unknown))
        # Unknown labels are the last in the ranking, and too improbable to be measured.
        measured, ranked = (hide_probs(each, batch.unknown) for each in (own.probs, marginals))
        pairs.add(measured, ranked, known.truth)
        rankings.append(evaluate_ranking(known.truth, ranked, RANKS))
        missing.append(own.missing_mass)
        log_probs += _by_document(true_sets, len(labels))
        on_documents(len(labels))
    if not truth.labels:
        raise DataError("There are no documents to evaluate.")
    shared = _Shared(
        _mean_ranking(rankings),
        float(np.concatenate(missing).mean()),
        log_probs,
        pairs.measure(),
        hierarchy or tagger.hierarchy,
    )
    return {rule: each.measure(truth, shared) for rule, each in found.items()}


@dataclass(frozen=True)
class _Shared:
    """The measures that do not depend on the rule."""

    ranking: RankingScores
    missing_mass: float
    true_log_probs: Sequence[float | None]
    label_probabilities: LabelProbabilityScores
    hierarchy: Hierarchy | None


class _RulePredictions:
    """The predictions by one rule, collected batch by batch."""

    def __init__(self, tagger: Tagger, name: str) -> None:
        self.tagger, self.name, self.source = tagger, name, find_rule(name).source
        self.predictions: list[Prediction] = []
        self.raw_probabilities: list[float] = []
        self.seconds = 0.0

    def add(self, search: BatchSearch, chosen: ChosenSets) -> None:
        """Add the sets that the rule chose for the documents of a batch."""
        start = time.perf_counter()
        self.predictions.extend(self.tagger.name_chosen(search, self.name, chosen, 1))
        self.seconds += time.perf_counter() - start + chosen.seconds + search.seconds[self.source]
        self.raw_probabilities.extend(map(to_probability, chosen.log_probs))

    def measure(self, truth: Truth, shared: _Shared) -> RuleResults:
        """Measure the predictions of all documents.

        Whether a set has its probability is known only of complete documents.
        """
        names, complete = self.tagger.labels.names, np.flatnonzero(truth.is_complete)
        probs, own_probs = (
            np.array(each)[complete]
            for each in ([p.probability for p in self.predictions], self.raw_probabilities)
        )
        whole = [self.predictions[row] for row in complete]
        true_sets, found_sets = [truth.labels[row] for row in complete], [p.labels for p in whole]
        pairs = zip(true_sets, found_sets, strict=True)
        is_right = np.array([set(one) == set(other) for one, other in pairs], dtype=bool)
        predicted = [each.labels for each in self.predictions]
        unknown = truth.unknown(len(names))
        evaluation = Evaluation(
            rule=self.name,
            scores=evaluate_label_sets(truth.labels, predicted, names, unknown),
            ranking=shared.ranking,
            mean_probability=float(np.mean([each.probability for each in self.predictions])),
            calibration_error=_reliability_error(probs, is_right),
            calibration_error_raw=_reliability_error(own_probs, is_right),
            documents_per_second=len(truth.labels) / max(self.seconds, 1e-9),
            missing_mass=shared.missing_mass,
            set_log_likelihood=score_log_likelihood(shared.true_log_probs),
            label_probabilities=shared.label_probabilities,
            labels=score_labels(
                truth.labels, self.predictions, names, self.tagger.label_acceptance, unknown
            ),
            accepted=score_accepted(whole, is_right),
            certificates=score_certificates(self.predictions),
            hierarchical=None
            if shared.hierarchy is None or not whole
            else score_in_hierarchy(shared.hierarchy, true_sets, found_sets),
        )
        return RuleResults(
            evaluation, self.predictions, self.raw_probabilities, shared.true_log_probs
        )


def _reliability_error(probs: Floats, is_right: Bools) -> float:
    """Return the expected calibration error; 0 if no document is complete."""
    return reliability(probs, is_right).error if len(probs) else 0.0


def _true_sets(tagger: Tagger, batch: Batch) -> Question:
    """Ask for log p of the true sets, of the documents all of whose labels are known."""
    labels = batch.labels
    has_all = np.array([all(name in tagger.labels.index for name in row) for row in labels])
    rows = np.flatnonzero(has_all & batch.is_complete)
    sets = tagger.labels.encode([labels[row] for row in rows]).padded(min_width=1)
    return Question(NO_RULE, rows, sets)


def _by_document(asked: Question, n_documents: int) -> list[float | None]:
    """Return log p of the true set of each document; None for those that were not asked for."""
    found: list[float | None] = [None] * n_documents
    for row, log_prob in zip(asked.rows, asked.log_probs, strict=True):
        found[row] = float(log_prob)
    return found


def _mean_ranking(parts: list[RankingScores]) -> RankingScores:
    weights = [part.n_documents for part in parts]

    def mean(values: list[float]) -> float:
        return float(np.average(values, weights=weights))

    return RankingScores(
        n_documents=sum(weights),
        precision={k: mean([part.precision[k] for part in parts]) for k in parts[0].precision},
        ndcg={k: mean([part.ndcg[k] for part in parts]) for k in parts[0].ndcg},
    )
