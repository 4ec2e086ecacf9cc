"""Measure a tagger on documents whose labels are known."""

# n documents, L labels

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.hierarchy import HierarchicalScores, Hierarchy, score_in_hierarchy
from setrnn.data.read import make_hierarchy
from setrnn.data.read.parents import Parents
from setrnn.errors import ConfigError, DataError
from setrnn.metrics import (
    RankingScores,
    Scores,
    evaluate_label_sets,
    evaluate_ranking,
    hide_labels,
    indicator_matrices,
    overlap_by_label,
)
from setrnn.progress import OnProgress, count_up, ignore_progress, log
from setrnn.systems.candidates import Bools, Floats, Floats32, to_probability
from setrnn.systems.limits import Limits
from setrnn.systems.predicting import NO_RULE, BatchSearch, ChosenSets, Question
from setrnn.systems.rules import count_candidates, find_rule
from setrnn.systems.true_marginals import TrueMarginals, hide_probs
from setrnn.tagging.documents import (
    MEASURED_ON_SEEN,
    MOST_SEEN,
    Batch,
    Documents,
    SeenCounts,
    find_hierarchy,
    open_documents,
)
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.acceptance import (
    MIN_SHOWN,
    LabelAcceptance,
    accuracy_interval,
    reliability,
)

RANKS = (1, 3, 5)  # the k of precision@k and nDCG@k
LEAST_LOG_PROB = float(np.log(1e-12))  # so that one impossible set does not decide the mean
SURE = 0.95  # labels of at least this probability should nearly always be right

OnDocuments: TypeAlias = Callable[[int], None]  # called with the documents done since the last call
OnMarginals: TypeAlias = Callable[[TrueMarginals], None]


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
        return self.share_trained_on > MOST_SEEN

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
    documents.note_skipped()
    note_incomplete(next(iter(results.values())).evaluation.scores)
    if seen.share > MOST_SEEN and not allow_training_documents:
        log.warning(MEASURED_ON_SEEN.format(share=seen.share))
    return {
        name: replace(each.evaluation, share_trained_on=seen.share)
        for name, each in results.items()
    }


def note_incomplete(scores: Scores) -> None:
    """Say how many documents have labels that are not known, and what that means."""
    if scores.n_incomplete:
        text = (
            f"{scores.n_incomplete:,} documents have labels that are not known: these count "
            "neither for nor against, so that wrong labels may go unnoticed there."
        )
        log.info(text)


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


class Truth:
    """The true labels of all documents, collected batch by batch."""

    def __init__(self) -> None:
        self.labels: list[tuple[str, ...]] = []
        self._unknown: list[Any] = []  # sparse, one per batch
        self._is_complete: list[Bools] = []

    def add(self, batch: Batch) -> None:
        """Add the documents of a batch."""
        self.labels.extend(batch.labels)
        self._is_complete.append(batch.is_complete)
        self._unknown.append(
            None if batch.unknown is None else scipy.sparse.csr_array(batch.unknown)
        )

    @property
    def is_complete(self) -> Bools:
        """Whether all labels of each document are known: (n,)."""
        return np.concatenate(self._is_complete)

    def unknown(self, n_labels: int) -> Any:  # noqa: ANN401 (sparse)
        """Mark the labels that are not known, (n, L); None if all are."""
        if all(each is None for each in self._unknown):
            return None
        pairs = zip(self._unknown, self._is_complete, strict=True)
        shapes = [((len(rows), n_labels), each) for each, rows in pairs]
        parts = [
            scipy.sparse.csr_array(shape, dtype=bool) if each is None else each
            for shape, each in shapes
        ]
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts))


def score_log_likelihood(true_log_probs: Sequence[float | None]) -> SetLogLikelihood:
    """Return the mean log-probability of the true sets; None marks those that are left out."""
    log_probs = np.array([each for each in true_log_probs if each is not None])
    mean = float(np.maximum(log_probs, LEAST_LOG_PROB).mean()) if len(log_probs) else None
    return SetLogLikelihood(mean, int((log_probs < LEAST_LOG_PROB).sum()))


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
    truth: Sequence[tuple[str, ...]],
    predictions: Sequence[Prediction],
    names: Sequence[str],
    acceptance: LabelAcceptance | None = None,
    unknown: Any = None,  # noqa: ANN401 (sparse)
) -> tuple[LabelScores, ...]:
    """Measure each label of a model, the most frequent first.

    Predictions of labels that are not known, marked in `unknown` (n, L), are not counted.
    """
    found = overlap_by_label(*_matrices(truth, [p.labels for p in predictions], names, unknown))
    accepted_sets = [each.accepted_labels or () for each in predictions]
    accepted = overlap_by_label(*_matrices(truth, accepted_sets, names, unknown))
    has_acceptance = any(each.accepted_labels is not None for each in predictions)
    order = np.argsort(-found.n_true[: len(names)], kind="stable")
    return tuple(
        LabelScores(
            label=names[label],
            support=int(found.n_true[label]),
            n_predicted=int(found.n_predicted[label]),
            precision=_share(found.n_correct[label], found.n_predicted[label]),
            recall=_share(found.n_correct[label], found.n_true[label]),
            f1=float(found.f1(empty=0.0)[label]),
            threshold=_threshold(acceptance, label),
            n_accepted=int(accepted.n_predicted[label]) if has_acceptance else None,
            accepted_share=_share(accepted.n_predicted[label], found.n_predicted[label])
            if has_acceptance
            else None,
            accepted_accuracy=_share(accepted.n_correct[label], accepted.n_predicted[label]),
        )
        for label in order
    )


def _matrices(
    truth: Sequence[tuple[str, ...]],
    label_sets: Sequence[tuple[str, ...]],
    names: Sequence[str],
    unknown: Any,  # noqa: ANN401 (sparse)
) -> tuple[Any, Any]:
    both = indicator_matrices(truth, label_sets, names)
    if unknown is None:
        return both.truth, both.predicted
    marks = unknown.copy()
    marks.resize(both.truth.shape)
    return both.truth, hide_labels(both.predicted, marks)


def _threshold(acceptance: LabelAcceptance | None, label: int) -> float | None:
    if acceptance is None or acceptance.thresholds[label] > 1:
        return None
    return float(acceptance.thresholds[label])


def _share(n: int, of: int) -> float | None:
    return float(n / of) if of else None


class LabelPairs:
    """The pairs of a document and a label that are shown, collected batch by batch."""

    def __init__(self) -> None:
        self.own: list[tuple[Floats, Bools]] = []
        self.calibrated: list[tuple[Floats, Bools]] = []

    def add(self, own: Floats32, calibrated: Floats32, truth: Any) -> None:  # noqa: ANN401 (sparse)
        """Add the probabilities (n, L) of a batch, and its true labels as a sparse matrix."""
        is_label = np.zeros(own.shape, dtype=bool)
        row, column = truth.nonzero()
        is_model = column < own.shape[1]
        is_label[row[is_model], column[is_model]] = True
        for kept, probs in ((self.own, own), (self.calibrated, calibrated)):
            is_shown = probs > MIN_SHOWN
            kept.append((probs[is_shown].astype(np.float64), is_label[is_shown]))

    def measure(self) -> LabelProbabilityScores:
        """Measure all pairs."""
        errors = []
        for kept in (self.calibrated, self.own):
            probs = np.concatenate([each for each, _ in kept])
            is_right = np.concatenate([each for _, each in kept])
            errors.append(reliability(probs, is_right).error if len(probs) else 0.0)
        probs = np.concatenate([each for each, _ in self.calibrated])
        is_right = np.concatenate([each for _, each in self.calibrated])
        is_sure = probs >= SURE
        n_sure, n_right = int(is_sure.sum()), int(is_right[is_sure].sum())
        return LabelProbabilityScores(
            errors[0], errors[1], len(probs), n_sure, n_right / n_sure if n_sure else None
        )
