"""Measure a tagger on documents whose labels are known."""

# n documents, L labels

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.hierarchy import HierarchicalScores, Hierarchy, score_in_hierarchy
from setrnn.errors import DataError
from setrnn.metrics import (
    Overlap,
    Scores,
    evaluate_label_sets,
    hide_labels,
    indicator_matrices,
    overlap_by_label,
)
from setrnn.progress import OnProgress, count_up, ignore_progress, log
from setrnn.systems.candidates import Bools, to_probability
from setrnn.systems.limits import Limits
from setrnn.systems.predicting import NO_RULE, BatchSearch, Question
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.documents import MAX_SEEN, Batch, Documents, SeenCounts, open_documents
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.tagger import Tagger, check_tagger, count_by_source
from setrnn.tagging.trust.acceptance import (
    LabelAcceptance,
    accuracy_interval,
    label_reliability,
    reliability,
)

LabelSets: TypeAlias = Sequence[tuple[str, ...]]

MIN_LOG_PROB = float(np.log(1e-12))  # so that one impossible set does not decide the mean


@dataclass(frozen=True)
class LabelScores:
    """The measures of one label.

    Precision is None if the label is never predicted, recall if it never occurs.
    """

    label: str
    support: int  # documents that have it
    n_predicted: int
    precision: float | None
    recall: float | None
    f1: float
    threshold: float | None  # it is accepted from this probability on; None if never
    n_accepted: int | None  # None if the model has no acceptance of labels
    accepted_share: float | None  # of the documents where it is predicted
    accepted_accuracy: float | None


@dataclass(frozen=True)
class AcceptedScores:
    """The accuracy of the accepted predictions, with its 95% confidence interval."""

    n_accepted: int
    share_accepted: float
    accuracy_accepted: float | None  # None if nothing was accepted
    accuracy_accepted_low: float
    accuracy_accepted_high: float


@dataclass(frozen=True)
class Evaluation:
    """The measures of one model by one rule, on one set of documents."""

    rule: str
    scores: Scores
    # The mean probability of the predicted sets; by rule "set" and well calibrated, it is near
    # the subset accuracy.
    mean_probability: float
    calibration_error: float  # the expected calibration error of the predictions
    calibration_error_raw: float  # the same with the model's own probabilities
    # What follows, up to `labels`, does not depend on the rule.
    documents_per_second: float  # of prediction by all rules that were measured together
    missing_mass: float  # the mean probability of the sets that were not found
    # The mean of log p(true set), over the documents all of whose labels the model knows; None if
    # there are none.
    set_log_likelihood: float | None
    n_impossible_sets: int  # of probability below 1e-12, counted as 1e-12
    # How often labels are right, over pairs of a document and a label above 0.05.
    label_calibration_error: float
    label_calibration_error_raw: float  # of the model's own probabilities
    labels: tuple[LabelScores, ...]  # the most frequent first; not part of `as_dict`
    # The mean number of labels that are shown beside a prediction, if any are, and the mean share
    # of the document's true labels among them.
    n_shown: float | None = None
    shown_recall: float | None = None
    accepted: AcceptedScores | None = None  # None if the model has no acceptance for the rule
    share_trained_on: float = 0.0  # of the documents, that the model was trained on; see `is_seen`
    hierarchical: HierarchicalScores | None = None  # None without a hierarchy
    # Of each document; not part of `as_dict`.
    predictions: tuple[Prediction, ...] = field(default=(), repr=False)
    # The model's own log p of each true set; None if it has an unknown label.
    true_log_probs: tuple[float | None, ...] = field(default=(), repr=False)

    @property
    def is_seen(self) -> bool:
        """Whether the model was trained on so many of the documents that the measures mislead."""
        return self.share_trained_on > MAX_SEEN

    def as_dict(self) -> dict[str, Any]:
        """Return all measures as plain values."""
        groups = ("scores", "labels", "accepted", "hierarchical")
        of_documents = ("predictions", "true_log_probs")
        names = [each.name for each in fields(self)]
        names = [name for name in names if name not in (*groups, *of_documents)]
        values = {name: getattr(self, name) for name in names}
        values |= self.scores.as_dict()
        for group in (self.accepted, self.hierarchical):
            values |= {} if group is None else asdict(group)
        return {**values, "documents_per_second": round(self.documents_per_second, 1)}


def evaluate(
    tagger: Tagger,
    data: Documents,
    rule: str | None = None,
    *,
    split: str | None = None,
    limits: Limits | None = None,
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Evaluation:
    """Measure a tagger on documents whose labels are known.

    Args:
        tagger: the model.
        data: a file, a folder, a prepared folder, "newsroom", or examples; a `Source` says how
            to read a file. Hierarchical measures go by its hierarchy, or by that of the model.
        rule: the prediction rule; the model's own if not given.
        split: the part of the data; test, or the only one, if not given.
        limits: what the predicted sets must satisfy.
        allow_training_documents: whether to measure without a warning on documents that the model
            was trained on. `Evaluation.share_trained_on` says how many they are.
        on_progress: called with the progress.

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
    found = evaluate_rules(
        tagger,
        data,
        [rule],
        split=split,
        limits=limits,
        allow_training_documents=allow_training_documents,
        on_progress=on_progress,
    )
    return next(iter(found.values()))


def evaluate_rules(
    tagger: Tagger,
    data: Documents,
    rules: Sequence[str | None] | None = None,
    *,
    split: str | None = None,
    limits: Limits | None = None,
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Evaluation]:
    """Measure a tagger by several prediction rules; what they share is computed once.

    Without `rules`, these are all that the model can predict by: its own among the sets that it
    finds plausible, as without a rule, the others among all. The other arguments are those of
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
    if rules is None:
        own = tagger.rule_or_own(None)
        rules = [None if rule == own else rule for rule in tagger.rules]
    documents, seen = open_documents(data, split), SeenCounts(tagger)
    results = measure_rules(
        tagger,
        seen.watch(documents.batches(tagger)),
        rules,
        count_up("tagging", on_progress, documents.n_documents),
        limits,
        hierarchy=documents.hierarchy,
    )
    documents.bad_rows.report()
    if n_incomplete := next(iter(results.values())).scores.n_incomplete:
        log.info(
            f"{n_incomplete:,} documents have labels that are not known: these count neither for "
            "nor against, so that wrong labels may go unnoticed there."
        )
    if seen.share > MAX_SEEN and not allow_training_documents:
        log.warning(
            f"The model was trained on about {seen.share:.0%} of these documents: it will do worse "
            "on new ones. Measure it on documents that it has not seen."
        )
    return {name: replace(each, share_trained_on=seen.share) for name, each in results.items()}


def measure_rules(
    tagger: Tagger,
    batches: Iterable[Batch],
    rules: Sequence[str | None],
    on_documents: Callable[[int], None] = lambda n_documents: None,
    limits: Limits | None = None,
    hierarchy: Hierarchy | None = None,
) -> dict[str, Evaluation]:
    """Predict by several rules and measure each; what the rules share is computed once.

    None is the model's own rule. Hierarchical measures go by `hierarchy`, or by
    that of the model.
    """
    options = [tagger.resolve(rule, limits=limits) for rule in rules]
    n_sets, limits_of = count_by_source(options), {each.rule: each.limits for each in options}
    predictions: dict[str, list[Prediction]] = {each.rule: [] for each in options}
    own_probs: dict[str, list[float]] = {each.rule: [] for each in options}
    label_sets: list[tuple[str, ...]] = []
    log_probs: list[float | None] = []
    unknown, missing, marginals, seconds = [], [], [], 0.0
    for batch in batches:
        start = time.perf_counter()
        search = BatchSearch(tagger.system, batch.tokens, n_sets)
        true_sets = _ask_for_true_sets(tagger, batch)
        chosen = search.choose_all(limits_of, tagger.fitted.thresholds, [true_sets])
        for each in options:
            sets = chosen[each.rule]
            predictions[each.rule].extend(tagger.name_chosen(search, each, sets))
            own_probs[each.rule].extend(map(to_probability, sets.log_probs))
        seconds += time.perf_counter() - start
        own = tagger.label_marginals(batch.tokens, search.many_sets(), calibrated=False)
        true_labels = tagger.labels.encode(batch.labels)
        marginals.append(TrueMarginals.of(own.probs, true_labels, batch.unknown))
        missing.append(own.missing_mass)
        answers = dict(zip(true_sets.rows.tolist(), true_sets.log_probs.tolist(), strict=True))
        log_probs += [answers.get(row) for row in range(len(batch.labels))]
        label_sets += batch.labels
        marks = np.zeros(own.probs.shape, bool) if batch.unknown is None else batch.unknown
        unknown.append(scipy.sparse.csr_array(marks))
        on_documents(len(batch.labels))
    if not label_sets:
        raise DataError("There are no documents to evaluate.")
    known = np.array([each for each in log_probs if each is not None])
    of_labels = TrueMarginals.concatenate(marginals)
    calibrated = tagger.fitted.label_probs(of_labels.probs, of_labels.label)
    shared = {
        "documents_per_second": len(label_sets) / max(seconds, 1e-9),
        "missing_mass": float(np.concatenate(missing).mean()),
        "set_log_likelihood": float(np.maximum(known, MIN_LOG_PROB).mean()) if len(known) else None,
        "n_impossible_sets": int((known < MIN_LOG_PROB).sum()),
        "label_calibration_error": label_reliability(calibrated, of_labels.is_label).error,
        "label_calibration_error_raw": label_reliability(of_labels.probs, of_labels.is_label).error,
        "true_log_probs": tuple(log_probs),
    }
    all_marks = scipy.sparse.csr_array(scipy.sparse.vstack(unknown))
    tree = hierarchy or tagger.hierarchy
    return {
        rule: _measure(tagger, rule, found, own_probs[rule], label_sets, all_marks, tree, shared)
        for rule, found in predictions.items()
    }


def _measure(
    tagger: Tagger,
    rule: str,
    predictions: Sequence[Prediction],
    own_probs: Sequence[float],
    truth: LabelSets,
    unknown: Any,  # noqa: ANN401 (sparse)
    hierarchy: Hierarchy | None,
    shared: Mapping[str, Any],
) -> Evaluation:
    """Measure the predictions of all documents by one rule.

    Whether a set has its probability is known only of complete documents.

    Args:
        tagger: the model.
        rule: the rule.
        predictions: the predictions by it.
        own_probs: the model's own probabilities of the predicted sets.
        truth: the true sets.
        unknown: marks the labels that are not known, (n, L).
        hierarchy: what the hierarchical measures go by.
        shared: the measures that do not depend on the rule.
    """
    names = tagger.labels.names
    complete = np.flatnonzero(np.diff(unknown.indptr) == 0).tolist()
    unknown = unknown if unknown.nnz else None
    probs = np.array([[each.probability for each in predictions], own_probs])
    whole = [predictions[row] for row in complete]
    true_sets, found_sets = [truth[row] for row in complete], [each.labels for each in whole]
    pairs = zip(true_sets, found_sets, strict=True)
    is_right = np.array([set(one) == set(other) for one, other in pairs], dtype=bool)
    errors, in_hierarchy = [0.0, 0.0], None
    if whole:
        errors = [reliability(each[complete], is_right).error for each in probs]
        if hierarchy is not None:
            in_hierarchy = score_in_hierarchy(hierarchy, true_sets, found_sets)
    label_sets = [each.labels for each in predictions]
    shown = [each.shown_labels for each in predictions if each.shown_labels is not None]
    shares = [  # all documents have shown labels, or none
        len(found.keys() & {*true}) / max(len(true), 1) + (not true)
        for found, true in zip(shown, truth, strict=False)
    ]
    return Evaluation(
        rule=rule,
        scores=evaluate_label_sets(truth, label_sets, names, unknown),
        mean_probability=float(probs[0].mean()),
        calibration_error=errors[0],
        calibration_error_raw=errors[1],
        labels=score_labels(truth, predictions, names, tagger.fitted.label_acceptance, unknown),
        n_shown=float(np.mean([*map(len, shown)])) if shown else None,
        shown_recall=float(np.mean(shares)) if shown else None,
        accepted=score_accepted(whole, is_right),
        hierarchical=in_hierarchy,
        predictions=tuple(predictions),
        **shared,
    )


def _ask_for_true_sets(tagger: Tagger, batch: Batch) -> Question:
    """Ask for log p of the true sets, of the documents all of whose labels are known."""
    labels = batch.labels
    has_all = np.array([all(name in tagger.labels.index for name in row) for row in labels])
    rows = np.flatnonzero(has_all & batch.is_complete)
    sets = tagger.labels.encode([labels[row] for row in rows]).padded(min_width=1)
    return Question(NO_RULE, rows, sets)


def score_accepted(predicted: Sequence[Prediction], is_right: Bools) -> AcceptedScores | None:
    """Return the accuracy of the accepted predictions; None if acceptance is not known."""
    if not predicted or predicted[0].accepted is None:
        return None
    is_accepted = np.array([each.accepted for each in predicted])
    n, n_right = int(is_accepted.sum()), int(is_right[is_accepted].sum())
    low, high = accuracy_interval(n_right, n)
    return AcceptedScores(n, n / len(predicted), n_right / n if n else None, low, high)


def score_labels(
    truth: LabelSets,
    predictions: Sequence[Prediction],
    names: Sequence[str],
    acceptance: LabelAcceptance | None = None,
    unknown: Any = None,  # noqa: ANN401 (sparse)
) -> tuple[LabelScores, ...]:
    """Measure each label of a model, the most frequent first.

    Predictions of labels that are not known, marked in `unknown` (n, L), are not counted.
    """

    def overlap(label_sets: LabelSets) -> Overlap:
        true, predicted = indicator_matrices(truth, label_sets, names)
        if unknown is None:
            return overlap_by_label(true, predicted)
        marks = unknown.copy()
        marks.resize(true.shape)
        return overlap_by_label(true, hide_labels(predicted, marks))

    found = overlap([each.labels for each in predictions])
    accepted = overlap([each.accepted_labels or () for each in predictions])
    has_acceptance = any(each.accepted_labels is not None for each in predictions)
    f1, scores = found.f1(empty=0.0), []
    for label in np.argsort(-found.n_true[: len(names)], kind="stable"):
        n_true, n_predicted = int(found.n_true[label]), int(found.n_predicted[label])
        n_accepted = int(accepted.n_predicted[label])
        scores.append(
            LabelScores(
                label=names[label],
                support=n_true,
                n_predicted=n_predicted,
                precision=_share(found.n_correct[label], n_predicted),
                recall=_share(found.n_correct[label], n_true),
                f1=float(f1[label]),
                threshold=acceptance.threshold_of(int(label)) if acceptance else None,
                n_accepted=n_accepted if has_acceptance else None,
                accepted_share=_share(n_accepted, n_predicted) if has_acceptance else None,
                accepted_accuracy=_share(accepted.n_correct[label], n_accepted),
            )
        )
    return tuple(scores)


def _share(n: int, of: int) -> float | None:
    return float(n / of) if of else None
