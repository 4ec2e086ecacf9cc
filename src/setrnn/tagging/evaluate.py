"""Measure a tagger on documents whose labels are known."""

# n documents, L labels

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.hierarchy import HierarchicalScores, Hierarchy, score_in_hierarchy
from setrnn.data.read import make_hierarchy
from setrnn.data.read.label_files import Parents
from setrnn.errors import DataError
from setrnn.metrics import (
    Overlap,
    RankingScores,
    Scores,
    evaluate_label_sets,
    evaluate_ranking,
    hide_labels,
    indicator_matrices,
    overlap_by_label,
)
from setrnn.progress import OnProgress, count_up, ignore_progress, log
from setrnn.systems.candidates import Bools, Floats, to_probability
from setrnn.systems.limits import Limits
from setrnn.systems.predicting import NO_RULE, BatchSearch, ChosenSets, Question
from setrnn.systems.rules import count_candidates, find_rule
from setrnn.systems.true_marginals import TrueMarginals, hide_probs
from setrnn.tagging.documents import (
    MAX_SEEN,
    Batch,
    Documents,
    SeenCounts,
    find_hierarchy,
    open_documents,
)
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.tagger import Tagger, check_tagger
from setrnn.tagging.trust.acceptance import (
    MIN_SHOWN,
    LabelAcceptance,
    accuracy_interval,
    reliability,
)

RANKS = (1, 3, 5)  # the k of precision@k and nDCG@k
MIN_LOG_PROB = float(np.log(1e-12))  # so that one impossible set does not decide the mean
SURE = 0.95  # labels of at least this probability should nearly always be right

LabelSets: TypeAlias = Sequence[tuple[str, ...]]


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

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class LabelProbabilityScores:
    """How often labels are right, over pairs of a document and a label above 0.05."""

    label_calibration_error: float
    label_calibration_error_raw: float  # of the model's own probabilities
    n_label_pairs: int
    n_sure_labels: int  # pairs of 0.95 or more
    sure_labels_right: float | None  # the share of them that is right


@dataclass(frozen=True)
class SetLogLikelihood:
    """The mean of log p(true set), over documents all of whose labels the model knows."""

    mean: float | None  # None if there are no such documents
    n_impossible_sets: int  # sets of probability below 1e-12, counted as 1e-12


@dataclass(frozen=True)
class CertificateScores:
    """What the search proves, over the predictions that have a certificate."""

    share_proved: float
    pruned_mass: float  # mean


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
    ranking: RankingScores  # by p(label | document); does not depend on the rule
    # The mean probability of the predicted sets; by rule "set" and well calibrated, it is near
    # the subset accuracy.
    mean_probability: float
    calibration_error: float  # the expected calibration error of the predictions
    calibration_error_raw: float  # the same with the model's own probabilities
    # Prediction by the rule, with the search for many sets that all measures share.
    documents_per_second: float
    missing_mass: float  # the mean probability of the sets that were not found
    set_log_likelihood: SetLogLikelihood
    label_probabilities: LabelProbabilityScores  # does not depend on the rule
    labels: tuple[LabelScores, ...]  # the most frequent first; not part of `as_dict`
    accepted: AcceptedScores | None = None  # None if the model has no acceptance for the rule
    certificates: CertificateScores | None = None  # of set-rnn-exact, by rule "set"
    share_trained_on: float = 0.0  # of the documents, that the model was trained on; see `is_seen`
    hierarchical: HierarchicalScores | None = None  # None without a hierarchy

    @property
    def is_seen(self) -> bool:
        """Whether the model was trained on so many documents that the measures are too good."""
        return self.share_trained_on > MAX_SEEN

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
            **asdict(self.label_probabilities),
            **({} if self.accepted is None else asdict(self.accepted)),
            **({} if self.certificates is None else asdict(self.certificates)),
            **({} if self.hierarchical is None else asdict(self.hierarchical)),
            "share_trained_on": self.share_trained_on,
            "documents_per_second": round(self.documents_per_second, 1),
        }


@dataclass(frozen=True)
class RuleResults:
    """The predictions by one rule, and their measures."""

    evaluation: Evaluation
    predictions: list[Prediction]
    raw_probabilities: list[float]  # the model's own, of the predicted sets
    # The model's own log p of each true set; None if it has an unknown label.
    true_log_probs: list[float | None]


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
    results = measure_rules(
        tagger,
        seen.watch(documents.batches(tagger)),
        names,
        count_up("tagging", on_progress, documents.n_documents),
        limits,
        hierarchy=make_hierarchy(hierarchy) or find_hierarchy(data),
    )
    documents.note_skipped()
    if n_incomplete := next(iter(results.values())).evaluation.scores.n_incomplete:
        log.info(
            f"{n_incomplete:,} documents have labels that are not known: these count neither for "
            "nor against, so that wrong labels may go unnoticed there."
        )
    if seen.share > MAX_SEEN and not allow_training_documents:
        log.warning(
            f"The model was trained on about {seen.share:.0%} of these documents: it will do worse "
            "on new ones. Measure it on documents that it has not seen."
        )
    return {
        name: replace(each.evaluation, share_trained_on=seen.share)
        for name, each in results.items()
    }


def measure_rules(
    tagger: Tagger,
    batches: Iterable[Batch],
    rules: Sequence[str],
    on_documents: Callable[[int], None] = lambda n_documents: None,
    limits: Limits | None = None,
    on_marginals: Callable[[TrueMarginals], None] | None = None,
    hierarchy: Hierarchy | None = None,
) -> dict[str, RuleResults]:
    """Predict by several rules and measure each; what the rules share is computed once.

    `on_marginals` is called with the model's own p(label | document) of each batch. Hierarchical
    measures go by `hierarchy`, or by that of the model.
    """
    set_limits, names = tagger.known_limits(limits), tagger.labels.names
    n_sets = {"sets": count_candidates()}  # by source; label probabilities need many sets
    for rule in rules:
        source, n_wanted = find_rule(rule).source, tagger.n_candidates(rule, 1, set_limits)
        n_sets[source] = max(n_wanted, n_sets.get(source, 0))
    found = {rule: _Found() for rule in rules}
    label_sets: list[tuple[str, ...]] = []
    log_probs: list[float | None] = []
    unknown, rankings, missing, shown = [], [], [], []
    for batch in batches:
        search = BatchSearch(tagger.system, batch.tokens, n_sets)
        true_sets = _ask_for_true_sets(tagger, batch)
        chosen = search.choose_all(rules, set_limits, tagger.thresholds, [true_sets])
        for rule, each in found.items():
            each.add(tagger, rule, search, chosen[rule])
        truth = indicator_matrices(batch.labels, [()] * len(batch.labels), names).truth
        own = tagger.label_marginals(batch.tokens, search.many_sets(), calibrated=False)
        if on_marginals is not None:
            encoded = tagger.labels.encode(batch.labels)
            on_marginals(TrueMarginals.of(own.probs, encoded, batch.unknown))
        # Unknown labels are the last in the ranking, and too improbable to be measured.
        probs = hide_probs(own.probs, batch.unknown)
        calibrated = hide_probs(tagger.calibrate_labels(own.probs), batch.unknown)
        rankings.append(evaluate_ranking(truth, calibrated, RANKS))
        missing.append(own.missing_mass)
        is_shown = np.maximum(probs, calibrated) > MIN_SHOWN
        is_label = truth[:, : len(names)].toarray()
        pairs = [each[is_shown] for each in (probs, calibrated, is_label)]
        shown.append(np.stack(pairs).astype(np.float64))
        answers = dict(zip(true_sets.rows.tolist(), true_sets.log_probs.tolist(), strict=True))
        log_probs += [answers.get(row) for row in range(len(batch.labels))]
        label_sets += batch.labels
        marks = np.zeros(probs.shape, dtype=bool) if batch.unknown is None else batch.unknown
        unknown.append(scipy.sparse.csr_array(marks))
        on_documents(len(batch.labels))
    if not label_sets:
        raise DataError("There are no documents to evaluate.")
    shared = _Shared(
        label_sets,
        scipy.sparse.csr_array(scipy.sparse.vstack(unknown)),
        log_probs,
        _mean_ranking(rankings),
        float(np.concatenate(missing).mean()),
        score_label_probabilities(*np.concatenate(shown, axis=1)),
        hierarchy or tagger.hierarchy,
    )
    return {rule: _measure_rule(tagger, rule, each, shared) for rule, each in found.items()}


@dataclass
class _Found:
    """The predictions by one rule, collected batch by batch."""

    predictions: list[Prediction] = field(default_factory=list)
    raw_probabilities: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, tagger: Tagger, rule: str, search: BatchSearch, chosen: ChosenSets) -> None:
        """Add the sets that the rule chose for the documents of a batch."""
        start = time.perf_counter()
        self.predictions.extend(tagger.name_chosen(search, rule, chosen, 1))
        self.seconds += time.perf_counter() - start + chosen.seconds
        self.seconds += search.seconds[find_rule(rule).source]
        self.raw_probabilities.extend(map(to_probability, chosen.log_probs))


@dataclass(frozen=True)
class _Shared:
    """What does not depend on the rule: the true labels, and some measures."""

    label_sets: LabelSets
    unknown: Any  # (n, L) sparse, marks the labels that are not known
    true_log_probs: list[float | None]
    ranking: RankingScores
    missing_mass: float
    label_probabilities: LabelProbabilityScores
    hierarchy: Hierarchy | None


def _measure_rule(tagger: Tagger, rule: str, found: _Found, shared: _Shared) -> RuleResults:
    """Measure the predictions of all documents.

    Whether a set has its probability is known only of complete documents.
    """
    names, truth, predictions = tagger.labels.names, shared.label_sets, found.predictions
    complete = np.flatnonzero(np.diff(shared.unknown.indptr) == 0).tolist()
    unknown = shared.unknown if shared.unknown.nnz else None
    probs = np.array([each.probability for each in predictions])
    raw_probs = np.array(found.raw_probabilities)
    whole = [predictions[row] for row in complete]
    true_sets, found_sets = [truth[row] for row in complete], [each.labels for each in whole]
    pairs = zip(true_sets, found_sets, strict=True)
    is_right = np.array([set(one) == set(other) for one, other in pairs], dtype=bool)
    in_hierarchy = None
    if shared.hierarchy is not None and whole:
        in_hierarchy = score_in_hierarchy(shared.hierarchy, true_sets, found_sets)
    evaluation = Evaluation(
        rule=rule,
        scores=evaluate_label_sets(truth, [each.labels for each in predictions], names, unknown),
        ranking=shared.ranking,
        mean_probability=float(probs.mean()),
        calibration_error=_calibration_error(probs[complete], is_right),
        calibration_error_raw=_calibration_error(raw_probs[complete], is_right),
        documents_per_second=len(truth) / max(found.seconds, 1e-9),
        missing_mass=shared.missing_mass,
        set_log_likelihood=score_log_likelihood(shared.true_log_probs),
        label_probabilities=shared.label_probabilities,
        labels=score_labels(truth, predictions, names, tagger.label_acceptance, unknown),
        accepted=score_accepted(whole, is_right),
        certificates=score_certificates(predictions),
        hierarchical=in_hierarchy,
    )
    return RuleResults(evaluation, predictions, found.raw_probabilities, shared.true_log_probs)


def _calibration_error(probs: Floats, is_right: Bools) -> float:
    """Return the expected calibration error; 0 of no probabilities."""
    return reliability(probs, is_right).error if len(probs) else 0.0


def _ask_for_true_sets(tagger: Tagger, batch: Batch) -> Question:
    """Ask for log p of the true sets, of the documents all of whose labels are known."""
    labels = batch.labels
    has_all = np.array([all(name in tagger.labels.index for name in row) for row in labels])
    rows = np.flatnonzero(has_all & batch.is_complete)
    sets = tagger.labels.encode([labels[row] for row in rows]).padded(min_width=1)
    return Question(NO_RULE, rows, sets)


def _mean_ranking(parts: list[RankingScores]) -> RankingScores:
    weights = [part.n_documents for part in parts]
    return RankingScores(
        sum(weights),
        *(
            {k: float(np.average([each[k] for each in of_parts], weights=weights)) for k in RANKS}
            for of_parts in ([p.precision for p in parts], [p.ndcg for p in parts])
        ),
    )


def score_log_likelihood(true_log_probs: Sequence[float | None]) -> SetLogLikelihood:
    """Return the mean log-probability of the true sets; None marks those that are left out."""
    log_probs = np.array([each for each in true_log_probs if each is not None])
    mean = float(np.maximum(log_probs, MIN_LOG_PROB).mean()) if len(log_probs) else None
    return SetLogLikelihood(mean, int((log_probs < MIN_LOG_PROB).sum()))


def score_certificates(predicted: Sequence[Prediction]) -> CertificateScores | None:
    """Return the means over the predictions with a certificate; None if there are none."""
    found = [each.certificate for each in predicted if each.certificate is not None]
    if not found:
        return None
    return CertificateScores(
        float(np.mean([each.proved for each in found])),
        float(np.mean([each.pruned_mass for each in found])),
    )


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
        both = indicator_matrices(truth, label_sets, names)
        if unknown is None:
            return overlap_by_label(both.truth, both.predicted)
        marks = unknown.copy()
        marks.resize(both.truth.shape)
        return overlap_by_label(both.truth, hide_labels(both.predicted, marks))

    found = overlap([each.labels for each in predictions])
    accepted = overlap([each.accepted_labels or () for each in predictions])
    has_acceptance = any(each.accepted_labels is not None for each in predictions)
    f1, scores = found.f1(empty=0.0), []
    for label in np.argsort(-found.n_true[: len(names)], kind="stable"):
        n_true, n_predicted = int(found.n_true[label]), int(found.n_predicted[label])
        n_accepted = int(accepted.n_predicted[label])
        is_safe = acceptance is not None and acceptance.thresholds[label] <= 1
        scores.append(
            LabelScores(
                label=names[label],
                support=n_true,
                n_predicted=n_predicted,
                precision=_share(found.n_correct[label], n_predicted),
                recall=_share(found.n_correct[label], n_true),
                f1=float(f1[label]),
                threshold=float(acceptance.thresholds[label]) if acceptance and is_safe else None,
                n_accepted=n_accepted if has_acceptance else None,
                accepted_share=_share(n_accepted, n_predicted) if has_acceptance else None,
                accepted_accuracy=_share(accepted.n_correct[label], n_accepted),
            )
        )
    return tuple(scores)


def _share(n: int, of: int) -> float | None:
    return float(n / of) if of else None


def score_label_probabilities(
    own: Floats, calibrated: Floats, is_label: Floats
) -> LabelProbabilityScores:
    """Measure how often labels are right, over pairs of a document and a label (E,)."""
    is_shown, is_right = calibrated > MIN_SHOWN, is_label > 0
    is_own = own > MIN_SHOWN
    is_sure = calibrated >= SURE
    return LabelProbabilityScores(
        _calibration_error(calibrated[is_shown], is_right[is_shown]),
        _calibration_error(own[is_own], is_right[is_own]),
        int(is_shown.sum()),
        int(is_sure.sum()),
        float(is_right[is_sure].mean()) if is_sure.any() else None,
    )
