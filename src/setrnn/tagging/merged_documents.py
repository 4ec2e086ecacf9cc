"""The old and new documents of an update: what to say about them, and measures on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from setrnn.data.batches import even_rows
from setrnn.data.example import Example
from setrnn.data.merging import Merged
from setrnn.metrics import evaluate_label_sets
from setrnn.progress import Note, OnProgress, count_up
from setrnn.tagging.documents import (
    MOST_SEEN,
    Batch,
    LabelledDocuments,
    SeenCounts,
    example_batches,
)
from setrnn.tagging.tagger import Tagger

MEASURES = ("instance_f1", "label_f1", "micro_f1")


def note_documents(merged: Merged, on_progress: OnProgress) -> None:
    """Say how many documents there are, which are replaced, and what may be wrong with them."""
    for text in merged.notes:
        on_progress(Note(text))
    if merged.n_skipped:
        text = f"{merged.n_skipped:,} rows could not be read and were skipped."
        on_progress(Note(text, is_warning=True))
    parts = [
        f"{kind} documents: train {n.get('train', 0):,}, valid {n.get('valid', 0):,}"
        for kind, n in (("old", merged.n_old), ("new", merged.n_new))
        if n
    ]
    on_progress(Note("; ".join(parts).capitalize() + "."))
    if merged.n_replaced:
        text = f"{merged.n_replaced:,} old documents are replaced by new ones."
        if merged.n_other_texts:
            text += f" {merged.n_other_texts:,} of them had the same id and another text."
        on_progress(Note(text, is_warning=bool(merged.n_other_texts)))
    if not merged.n_old:
        text = (
            "Without the old documents, the model may lose what it knows, above all about labels "
            "that the new documents lack, and it is measured and calibrated on new documents only. "
            "Give the documents that it was trained on: --data OLD."
        )
        on_progress(Note(text, is_warning=True))
    elif merged.share_seen is not None and merged.share_seen < MOST_SEEN:
        text = "The model was not trained on the old documents. Are they the right ones?"
        on_progress(Note(text, is_warning=True))


def valid_documents(
    merged: Merged, kinds: Sequence[str], most: int | None = None
) -> LabelledDocuments:
    """Return the valid documents of kinds, old or new; an even sample if they exceed `most`."""
    both = {"old": (merged.old, merged.n_old), "new": (merged.new, merged.n_new)}
    n_documents = sum(both[kind][1].get("valid", 0) for kind in kinds)
    rows = even_rows(n_documents, n_documents if most is None else most)

    def read() -> Iterator[Example]:
        for kind in kinds:
            if "valid" in both[kind][0]:
                yield from both[kind][0]["valid"]()

    def choose() -> Iterator[Example]:
        examples, n_done = read(), 0
        for row in rows.tolist():
            yield next(islice(examples, row - n_done, None))
            n_done = row + 1

    return LabelledDocuments(
        "valid", lambda tagger: example_batches(tagger, choose()), n_documents=len(rows)
    )


def measure_documents(
    tagger: Tagger,
    documents: LabelledDocuments,
    labels: Sequence[str],
    kind: str,
    on_progress: OnProgress,
) -> dict[str, float]:
    """Measure a model by its own rule, over labels that it need not know.

    The result also has the share of documents that the model was trained on.
    """
    seen = SeenCounts(tagger)
    truth: list[tuple[str, ...]] = []
    predicted: list[tuple[str, ...]] = []
    count = count_up(f"measuring on {kind} documents", on_progress, documents.n_documents)
    for batch in seen.watch(documents.batches(tagger)):
        truth += batch.labels
        predicted += _hide_unknown(tagger, batch)
        count(len(batch.labels))
    scores = evaluate_label_sets(truth, predicted, labels)
    measures = {name: float(getattr(scores, name)) for name in MEASURES}
    return {**measures, "share_trained_on": seen.share}


def _hide_unknown(tagger: Tagger, batch: Batch) -> list[tuple[str, ...]]:
    """Predict the sets of documents, without the labels that are not known."""
    predicted = [each.labels for each in tagger.tag_tokens(batch.tokens)]
    if batch.unknown is None:
        return predicted
    index = tagger.labels.index
    return [
        tuple(label for label in labels if not marks[index[label]])
        for labels, marks in zip(predicted, batch.unknown, strict=True)
    ]
