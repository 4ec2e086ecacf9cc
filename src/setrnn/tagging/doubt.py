"""Find documents whose given labels are probably wrong.

Each document is judged by systems that did not see it. An error turned its true set T into the
given set S: a label was left out, added or replaced, with equal probability. One half of the wrong
labels are drawn in proportion to their frequency, the other half from all labels. By Bayes' rule,
p(T | document, S) is in proportion to p(T | document) p(S | T), over S itself and the sets that
differ from it by one error.
The systems vote: p(T | document, S) is the mean over them, and the score of a document is 1 minus
that of its given set.
"""

# n documents, S labels of the largest set, L labels, G alternatives, M likely labels, I systems

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy  # scipy.special is imported where it is first used

from setrnn.config import Config
from setrnn.data.cache import cache_folder, prepare
from setrnn.data.disk import explain_failed_write, temporary_folder
from setrnn.data.example import Example
from setrnn.data.labels import LabelVocabulary
from setrnn.data.prepared import Prepared
from setrnn.data.read import BadRows
from setrnn.data.read.delimited import Dialect
from setrnn.data.text.alignment import read_text
from setrnn.errors import ConfigError, DataError
from setrnn.progress import OnProgress, count_up, ignore_progress, log
from setrnn.systems.candidates import Floats, Floats32, Ids, Ints, join_sets, pack_labels
from setrnn.systems.classical.system import ClassicalSystem, TrainingData
from setrnn.systems.cross_fitted import CrossFitted, choose_folds, mark_folds
from setrnn.systems.products import fit_empty_set
from setrnn.systems.registry import SYSTEMS
from setrnn.tagging.choose import read_pool
from setrnn.tagging.prediction import name_labels
from setrnn.tagging.rows import free_name, list_columns, write_rows

if TYPE_CHECKING:
    from setrnn.tagging.choose import Pool

DOUBTING = ("br", "br-support", "pcc")  # the methods that vote
ERROR_RATE = 0.5  # p(S is not T) before a system has judged: the best for the order of documents
N_ADDED, N_REPLACED = 30, 10  # likely labels that may be missing, or replaced by another
LEAST_LOG_PROB = -700.0  # of a set that a system gives probability 0
AT_ONCE = 128  # documents that are judged together
LEAST_SHOWN, MOST_SHOWN, N_WORDS = 0.05, 3, 3  # suggested labels, and words for each
N_READ = 500  # documents with words


@dataclass(frozen=True)
class DoubtfulDocument:
    """A document with the labels that it was given, and those that it probably should have.

    Attributes:
        example: the document.
        score: how suspicious the given set is, from 0 to 1.
        labels: the most probable other set.
        probability: of this set, given the document and its given labels.
        to_add: labels that are probably missing, with their probabilities.
        to_remove: given labels that are probably wrong, with the probabilities that they are.
        words: for labels to add, the words that speak for them; for labels to remove, those that
            speak against them.

    Example:
        >>> example = Example("1", "Rates rise", ("sport",))
        >>> found = DoubtfulDocument(
        ...     example, 0.9, ("economy",), 0.8, {"economy": 0.8}, {"sport": 0.9}
        ... )
        >>> found.labels
        ('economy',)
    """

    example: Example
    score: float
    labels: tuple[str, ...]
    probability: float
    to_add: dict[str, float]
    to_remove: dict[str, float]
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)


def doubt(
    data: Pool,
    method: str | Sequence[str] | None = None,
    *,
    folds: int = 5,
    top: int | None = None,
    split: str | None = None,
    seed: int = 0,
    on_progress: OnProgress = ignore_progress,
) -> list[DoubtfulDocument]:
    """Find documents whose given labels are probably wrong, the most suspicious first.

    Each document is judged by systems that were trained on the other folds. Documents with unknown
    labels are trained on, but not judged.

    Args:
        data: documents with labels: files, a folder, a `Source`, or examples.
        method: the systems that vote, of br, br-support and pcc; all three if not given.
        folds: the number of folds.
        top: how many documents to return; all if not given.
        split: the part of the data; train, or the only one, if not given.
        seed: the random seed of the folds.
        on_progress: called with the progress.

    Example:
        >>> import setrnn
        >>> found = setrnn.doubt("newsroom", "br", split="test", folds=2, top=3)
        >>> len(found), found[0].score >= found[1].score
        (3, True)
    """
    names = DOUBTING if method is None else method
    methods = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    _check_arguments(methods, folds, top)
    bad_rows = BadRows()
    examples = list(read_pool(data, split, bad_rows, require_labels=True))
    bad_rows.report()
    if not any(each.labels for each in examples):
        raise DataError(
            f"None of {len(examples):,} documents has a label: there are none to doubt."
        )
    place = cache_folder() / "doubt"
    with explain_failed_write(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(place, is_private=True) as folder:
        text = Config().text
        prepared = prepare({"train": lambda: examples}, folder / "data", "data", text, {})
        judges = Judges.train(prepared, methods, folds, seed, on_progress)
        return judges.judge(examples, top, on_progress)


def _check_arguments(methods: Sequence[str], folds: int, top: int | None) -> None:
    for name in methods or [""]:
        if name not in DOUBTING:
            raise ConfigError(
                f"Labels are doubted by {', '.join(DOUBTING)}, got method '{name}'. Name some of "
                "these."
            )
    if not isinstance(folds, int) or folds < 2:
        raise ConfigError(f"folds must be a whole number of at least 2, got {folds}.")
    if top is not None and (not isinstance(top, int) or top < 1):
        raise ConfigError(f"top must be a whole number of at least 1, got {top}.")


class Alternatives(NamedTuple):
    """What I systems say of some documents."""

    rows: Ints  # (n,)
    sets: Ids  # (n, G, S) the given set, then those that may have become it
    log_prior: Floats  # (n, G) log p(given set | set), -inf where there are fewer sets
    votes: Floats  # (I, n, G) log p(set | document)
    marginals: Floats32  # (I, n, L)


@dataclass(frozen=True)
class Judges:
    """Systems that judge the train part of prepared data; none of them saw what it judges."""

    prepared: Prepared
    folds: Ints  # (n,)
    systems: Sequence[CrossFitted]

    @classmethod
    def train(
        cls,
        prepared: Prepared,
        methods: Sequence[str],
        n_folds: int,
        seed: int = 0,
        on_progress: OnProgress = ignore_progress,
    ) -> Judges:
        """Train a system of each method without each fold."""
        config = Config()
        folds = choose_folds(np.asarray(prepared.split("train").text_hashes), n_folds, seed)
        if (n_used := len(np.unique(folds))) < n_folds:
            raise DataError(
                f"{n_folds} folds need as many documents with different texts, and there are only "
                f"{n_used}. Give more documents, or fewer folds."
            )
        tfidf, documents = TrainingData.of(prepared, config)
        count = count_up("training", on_progress, len(methods) * n_folds, "fits")
        systems = []
        for method in methods:
            by_fold = []
            for fold in range(n_folds):
                some = documents.take(np.flatnonzero(folds != fold))
                system = SYSTEMS[method].fit(tfidf, some)
                by_fold.append(fit_empty_set(system, prepared, config.model.empty_sets))
                count(1)
            systems.append(CrossFitted(by_fold[0], by_fold))
        return cls(prepared, folds, systems)

    def judge(
        self,
        examples: Sequence[Example],
        top: int | None = None,
        on_progress: OnProgress = ignore_progress,
    ) -> list[DoubtfulDocument]:
        """Return the documents of the train part whose labels are all known, in order of score."""
        rows = np.flatnonzero(self.prepared.split("train").is_complete)
        if n_left := len(examples) - len(rows):
            log.info(f"Left out: {n_left:,} documents with labels that are not known.")
        found: list[tuple[float, int, DoubtfulDocument]] = []
        count = count_up("judging", on_progress, len(rows))
        for batch in self.find_alternatives(rows):
            probs = count_votes(batch.votes, batch.log_prior)
            for row, sets, its_probs in zip(batch.rows.tolist(), batch.sets, probs, strict=True):
                each = describe(examples[row], self.prepared.labels, sets, its_probs)
                found.append((-each.score, row, each))
            count(len(batch.rows))
        found.sort(key=lambda one: one[:2])
        return [
            replace(each, words=self._find_words(each, self.folds[row])) if place < N_READ else each
            for place, (_, row, each) in enumerate(found[:top])
        ]

    def find_alternatives(self, rows: Ints) -> Iterator[Alternatives]:
        """Yield some documents in batches, with what the systems say of their alternatives."""
        train, n_labels = self.prepared.split("train"), len(self.prepared.labels)
        counts = np.bincount(train.labels.values, minlength=n_labels)
        log_shares = np.log((counts / counts.sum() + 1 / n_labels) / 2)
        rows = rows[np.argsort(train.labels.lengths[rows], kind="stable")]  # of similar sizes
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            tokens = mark_folds(train.tokens.take(some), self.folds[some])
            marginals = np.stack([each.marginals(tokens) for each in self.systems])
            given = train.labels.take(some).padded(min_width=1)
            sets, log_prior = list_alternatives(given, marginals.mean(axis=0), log_shares)
            votes = np.stack([each.set_log_probs(tokens, sets) for each in self.systems])
            yield Alternatives(some, sets, log_prior, votes, marginals)

    def _find_words(self, document: DoubtfulDocument, fold: int) -> dict[str, tuple[str, ...]]:
        """Return the words for labels to add and against labels to remove, the strongest first."""
        signs = dict.fromkeys(document.to_add, 1) | dict.fromkeys(document.to_remove, -1)
        system = self.systems[0].by_fold[fold]
        assert isinstance(system, ClassicalSystem)
        example, language = document.example, self.prepared.text_settings.language
        reading = read_text(self.prepared.encoder, example.text, example.features, language)
        ids = [self.prepared.labels.index[name] for name in signs]
        weights = reading.sum_by_word(system.weigh_tokens(reading.tokens, ids).T)  # (N, R + 1)
        texts = [word.text.lower() for word in reading.words if word.place is not None]
        found = {}
        for (name, sign), row in zip(signs.items(), weights, strict=True):
            sums = Counter[str]()
            for text, weight in zip([*texts, *reading.features], row[:-1].tolist(), strict=True):
                sums[text] += sign * weight
            found[name] = tuple(text for text, total in sums.most_common(N_WORDS) if total > 0)
        return found


def list_alternatives(
    given: Ids, marginals: Floats | Floats32, log_shares: Floats
) -> tuple[Ids, Floats]:
    """Return the sets that may have become the given ones, (n, G, S), the given ones first.

    Also return log p(given set | set), (n, G), times p(set is given by error or not); it is -inf
    where a document has fewer sets.

    Args:
        given: the given sets, (n, S), padded with -1.
        marginals: p(label | document), (n, L), to find labels that may be missing.
        log_shares: log p(label) of a label that was given by error, (L,).

    Example:
        >>> given, marginals = np.array([[0]], dtype=np.int32), np.array([[0.1, 0.8]])
        >>> sets, log_prior = list_alternatives(given, marginals, np.log([0.5, 0.5]))
        >>> sets[0][log_prior[0] > -np.inf].tolist()
        [[0, -1], [-1, -1], [0, 1], [1, -1]]
    """
    n, S = given.shape
    is_label, size = given >= 0, (given >= 0).sum(axis=1, keepdims=True)
    others: Floats = np.pad(marginals, ((0, 0), (0, 1)))
    np.put_along_axis(others, given, -1, axis=1)
    others = others[:, :-1]  # where -1 wrote
    likely = np.argsort(-others, axis=1, kind="stable")[:, :N_ADDED]
    likely = np.where(np.take_along_axis(others, likely, axis=1) >= 0, likely, -1)  # (n, M)
    instead = likely[:, :N_REPLACED]
    without = np.where(np.eye(S, dtype=bool), -1, given[:, None])  # (n, S, S)
    M, R = likely.shape[1], instead.shape[1]
    added = np.concatenate([given[:, None].repeat(M, axis=1), likely[:, :, None]], axis=2)
    replaced = np.concatenate(
        [without[:, :, None].repeat(R, axis=2), instead[:, None, :, None].repeat(S, axis=1)], axis=3
    )
    log_error = np.log(ERROR_RATE / 3)  # of each kind
    log_wrong = np.where(is_label, log_shares[given], -np.inf)  # (n, S) the label was drawn
    log_prior = [
        np.full((n, 1), np.log(1 - ERROR_RATE)),
        log_error + log_wrong,
        log_error + np.where(likely >= 0, -np.log(size + 1), -np.inf),
        log_error
        + (log_wrong[:, :, None] + np.where(instead < 0, -np.inf, 0)[:, None]).reshape(n, S * R)
        - np.log(np.maximum(size, 1)),
    ]
    sets = [given[:, None], without, added, replaced.reshape(n, S * R, S + 1)]
    return pack_labels(join_sets(sets)), np.concatenate(log_prior, axis=1)


def count_votes(votes: Floats, log_prior: Floats) -> Floats:
    """Return p(set | document, given set), (n, G), the mean over systems: see `Alternatives`."""
    joint = np.maximum(votes, LEAST_LOG_PROB) + log_prior
    return np.asarray(scipy.special.softmax(joint, axis=2).mean(axis=0))


def describe(
    example: Example, labels: LabelVocabulary, sets: Ids, probs: Floats
) -> DoubtfulDocument:
    """Return a document with what the votes (G,) for its alternatives (G, S) say."""
    best = 1 + int(probs[1:].argmax())
    by_label = np.zeros(len(labels))
    rank, place = np.nonzero(sets >= 0)
    np.add.at(by_label, sets[rank, place], probs[rank])
    given = sets[0][sets[0] >= 0]
    to_remove = {labels.names[label]: 1 - float(by_label[label]) for label in given}
    by_label[given] = 0
    likely = np.argsort(-by_label, kind="stable")[:MOST_SHOWN]
    to_add = {labels.names[label]: float(by_label[label]) for label in likely}
    return DoubtfulDocument(
        example,
        1 - float(probs[0]),
        name_labels(labels, sets[best]),
        float(probs[best]),
        _keep_likely(to_add),
        _keep_likely(to_remove),
    )


def _keep_likely(probs: dict[str, float]) -> dict[str, float]:
    """Return the labels that are likely enough, in descending order of probability."""
    ranked = sorted(probs.items(), key=lambda item: -item[1])[:MOST_SHOWN]
    return {name: prob for name, prob in ranked if prob >= LEAST_SHOWN}


def write_doubts(
    doubtful: Iterable[DoubtfulDocument],
    path: str | Path,
    id_field: str = "id",
    dialect: Dialect = Dialect(),  # noqa: B008 - frozen
) -> None:
    """Write doubtful documents, whole or not at all: a table by the suffix, or JSON Lines.

    A row has the fields of the document, then `score`, `probable_labels`, their `probability`,
    `add`, `add_probabilities`, `remove`, `remove_probabilities` and `words`.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "doubts.csv"
        >>> example = Example("1", "Rates rise", ("sport",))
        >>> write_doubts([DoubtfulDocument(example, 0.9, (), 0.7, {}, {"sport": 0.9})], file)
        >>> file.read_text().splitlines()[1]
        '1,Rates rise,sport,0.9,,0.7,,,sport,0.9,'
    """
    write_rows((_make_row(each, id_field) for each in doubtful), path, dialect)


def _make_row(doubtful: DoubtfulDocument, id_field: str) -> dict[str, Any]:
    example = doubtful.example
    row = list_columns(example, id_field)
    if example.columns is None:
        row |= {"labels": list(example.labels)}
        row |= {"features": list(example.features)} if example.features else {}
    new = {
        "score": round(doubtful.score, 4),
        "probable_labels": list(doubtful.labels),
        "probability": round(doubtful.probability, 4),
        "add": list(doubtful.to_add),
        "add_probabilities": [round(prob, 4) for prob in doubtful.to_add.values()],
        "remove": list(doubtful.to_remove),
        "remove_probabilities": [round(prob, 4) for prob in doubtful.to_remove.values()],
        "words": ", ".join(
            f"{name}: {' '.join(words)}" for name, words in doubtful.words.items() if words
        ),
    }
    return row | {free_name(name, row): value for name, value in new.items()}
