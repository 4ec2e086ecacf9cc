"""Choose the documents to tag next: uncertain ones that differ from each other.

A document is uncertain if its predicted set has a low expected F1. Documents are taken one by one:
the next one has the greatest expected loss, 1 - F1, times 1 - the squared similarity (the cosine of
the words) to the nearest document taken before.
"""

# n documents, L labels, W words

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.example import Example, hash_texts
from setrnn.data.read import BadRows
from setrnn.data.read.delimited import Dialect
from setrnn.data.source import Source, read_source
from setrnn.data.streaming import batched
from setrnn.errors import ConfigError, DataError
from setrnn.progress import OnProgress, count_up, ignore_progress, log
from setrnn.systems.candidates import Floats, Floats32
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.rows import free_name, list_columns, write_rows
from setrnn.tagging.tagger import Tagger, open_model

if TYPE_CHECKING:
    from typing import TypeAlias

    Pool: TypeAlias = str | Path | list[str] | Source | Iterable[Example]

UNDECIDED, MAX_UNDECIDED = 0.1, 3  # the least p and 1 - p of an undecided label; labels named
N_WORDS = 1 << 18  # hashes of words


@dataclass(frozen=True)
class ChosenDocument:
    """A document to tag next.

    Attributes:
        example: the document.
        prediction: what the model predicts for it; its `labels` are a proposal.
        expected_f1: the F1 of this set that the model expects, about.
        undecided: the labels that the model is least sure about, with their probabilities.

    Example:
        >>> proposal = Prediction(("economy", "trade"), 0.4)
        >>> ChosenDocument(Example("1", "Rates rise"), proposal, 0.6, {"trade": 0.52}).reason
        'undecided: trade 0.52'
    """

    example: Example
    prediction: Prediction
    expected_f1: float
    undecided: dict[str, float] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why it was chosen, in words."""
        if not self.undecided:
            return f"the set has the probability {self.prediction.probability:.2f}"
        return "undecided: " + ", ".join(f"{name} {p:.2f}" for name, p in self.undecided.items())


def choose(
    model: str | Path | Tagger,
    pool: Pool,
    n: int = 200,
    *,
    split: str | None = None,
    rule: str | None = None,
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> list[ChosenDocument]:
    """Choose documents to tag next, the ones that the model can learn most from.

    They are uncertain, and differ from each other in their words. They are in the order in which
    they were chosen: the first m are the choice for n = m. Documents that the model was trained on,
    repeated texts and empty texts are left out. Labels of the pool are not used.

    Args:
        model: a model folder or a tagger.
        pool: documents, which need no labels: files, a folder, a `Source`, or examples.
        n: how many to choose.
        split: the part of the pool; train, or the only one, if not given.
        rule: the prediction rule; the model's own if not given.
        device: where a model that is loaded from a folder computes: auto, cpu, cuda or mps.
        on_progress: called with the progress.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> chosen = setrnn.choose(tagger, "newsroom", n=2, split="test")
        >>> len(chosen), chosen[0].reason.split(":")[0]
        (2, 'undecided')
    """
    if not isinstance(n, int) or n < 1:
        raise ConfigError(f"n must be a whole number of at least 1, got {n}.")
    _, tagger = open_model(model, device)
    tagger.rule_or_own(rule)
    bad_rows, before, left_out = BadRows(), set[tuple[str, ...]](), Counter[str]()
    documents: list[ChosenDocument] = []
    count = count_up("tagging the pool", on_progress)
    for batch in batched(read_pool(pool, split, bad_rows), tagger.batch_size):
        kept = list(_leave_out(tagger, batch, before, left_out))
        if kept:
            documents += _tag(tagger, kept, rule)
        count(len(batch))
    bad_rows.report()
    _note_left_out(tagger, left_out, len(documents), n)
    losses = np.array([1 - each.expected_f1 for each in documents])
    words = weigh_words([each.example.text for each in documents])
    rows = choose_distinct(losses, words, min(n, len(documents)))
    return [documents[row] for row in rows]


def choose_distinct(losses: Floats, words: scipy.sparse.csr_matrix, n_taken: int) -> list[int]:
    """Choose rows with large losses (n,) and different words, unit vectors (n, W); best first."""
    nearest, taken = np.zeros(len(losses)), list[int]()
    for _ in range(n_taken):
        values = losses * (1 - nearest**2)
        values[taken] = -np.inf
        taken.append(int(values.argmax()))
        nearest = np.maximum(nearest, words @ words[taken[-1]].toarray().ravel()).clip(0, 1)
    return taken


def write_chosen(
    chosen: Iterable[ChosenDocument],
    path: str | Path,
    id_field: str = "id",
    dialect: Dialect = Dialect(),  # noqa: B008 - frozen
) -> None:
    """Write chosen documents, whole or not at all: a table by the suffix, or JSON Lines.

    A row has the fields of the document, then `predicted_labels`, `probability`, `expected_f1` and
    `reason`.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "next.csv"
        >>> chosen = ChosenDocument(Example("1", "Rates rise"), Prediction(("economy",), 0.4), 0.5)
        >>> write_chosen([chosen], file)
        >>> file.read_text().splitlines()[1]
        '1,Rates rise,economy,0.4,0.5,the set has the probability 0.40'
    """
    rows = map(partial(_make_row, id_field=id_field), chosen)
    write_rows(rows, path, dialect)


def _make_row(chosen: ChosenDocument, id_field: str) -> dict[str, Any]:
    example = chosen.example
    row = list_columns(example, id_field)
    if example.columns is None and example.features:
        row["features"] = list(example.features)
    new = {
        "predicted_labels": list(chosen.prediction.labels),
        "probability": chosen.prediction.probability,
        "expected_f1": chosen.expected_f1,
        "reason": chosen.reason,
    }
    return row | {free_name(name, row): value for name, value in new.items()}


def read_pool(
    pool: Pool, split: str | None, bad_rows: BadRows, require_labels: bool = False
) -> Iterator[Example]:
    """Yield documents with all their fields."""
    source = read_source(pool)
    if source is None:
        for example in cast("Iterable[Example]", pool):
            if not isinstance(example, Example):
                raise DataError("Documents are given as setrnn.Example(id, text, labels).")
            yield example
        return
    if source.prepared_folder is not None:
        raise DataError(f"{source} is a prepared folder, which has no texts. Give the data itself.")
    bad_rows.on_bad_row = source.on_bad_row
    options = replace(source.options, require_labels=require_labels, keep_columns=True)
    dataset = replace(source, options=options).open()
    yield from dataset.choose(split, "train").read(bad_rows)


def _tag(tagger: Tagger, examples: list[Example], rule: str | None) -> Iterator[ChosenDocument]:
    """Predict the sets of documents, and what F1 to expect."""
    documents = [(each.text, each.features) for each in examples]
    predictions, marginals = tagger.tag_with_marginals(documents, rule)
    names = tagger.labels.names
    for example, prediction, probs in zip(examples, predictions, marginals.probs, strict=True):
        nearest = np.argsort(np.abs(probs - 0.5), kind="stable")[:MAX_UNDECIDED]  # to a half
        undecided = {
            names[label]: float(probs[label])
            for label in nearest
            if UNDECIDED <= probs[label] <= 1 - UNDECIDED
        }
        yield ChosenDocument(example, prediction, _expect_f1(tagger, prediction, probs), undecided)


def _expect_f1(tagger: Tagger, prediction: Prediction, probs: Floats32) -> float:
    """Estimate the expected F1 of a set: the size of the true set is replaced by its mean."""
    labels = [tagger.labels.index[name] for name in prediction.labels]
    if not labels:
        return prediction.probability
    return float(2 * probs[labels].sum() / (len(labels) + probs.sum()))


def weigh_words(texts: list[str]) -> scipy.sparse.csr_matrix:
    """Return tf-idf vectors of length 1 (n, W); words that the model does not know count too."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    counts = HashingVectorizer(n_features=N_WORDS, norm=None, alternate_sign=False).transform(texts)
    return scipy.sparse.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(counts))


def _leave_out(
    tagger: Tagger,
    examples: Sequence[Example],
    before: set[tuple[str, ...]],
    left_out: Counter[str],
) -> Iterator[Example]:
    """Yield the documents that can be chosen; add their texts, and count the others by reason."""
    is_trained = np.zeros(len(examples), dtype=bool)
    if tagger.trained_documents is not None:
        hashes = hash_texts(each.text for each in examples)
        is_trained = np.isin(hashes, tagger.trained_documents)
    for example, was_trained in zip(examples, is_trained, strict=True):
        text = (" ".join(example.text.split()).casefold(), *example.features)
        if not example.text.strip():
            left_out["without text"] += 1
        elif was_trained:
            left_out["that the model was trained on"] += 1
        elif text in before:
            left_out["whose text occurs before"] += 1
        else:
            before.add(text)
            yield example


def _note_left_out(tagger: Tagger, left_out: Counter[str], n_left: int, n: int) -> None:
    """Say what was left out; raise DataError if nothing is left to choose from."""
    n_read = n_left + left_out.total()
    what = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items())
    if not n_left:
        start = f"Of {n_read:,} documents, {what}" if what else "There are no documents"
        raise DataError(f"{start}: nothing is left to choose from. Give another pool.")
    if what:
        log.info(f"Left out of {n_read:,} documents: {what}.")
    if n_left < n:
        log.warning(f"Only {n_left:,} documents are left to choose from: all are chosen.")
