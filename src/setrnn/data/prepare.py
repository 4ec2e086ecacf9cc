"""Streams of Examples to a prepared folder, in two passes and bounded memory.

The first pass over train counts labels and features and takes the vocabulary; the second
turns every split into ids, with the tokenizer on all cores in a thread beside the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import Encoding

from setrnn.config import WORDS, TextSettings, to_dict
from setrnn.data.example import Example
from setrnn.data.folders import whole_folder
from setrnn.data.labels import LabelVocabulary
from setrnn.data.prepared import (
    Prepared,
    SplitWriter,
    batched,
    is_prepared,
    smallest_dtype,
    write_description,
)
from setrnn.data.ragged import Ragged
from setrnn.data.subwords import pretrained_encoder
from setrnn.data.tokenizing import TextEncoder, learn_tokenizer
from setrnn.errors import DataError

BATCH = 4096
Stream = Callable[[], Iterable[Example]]


def prepare(
    splits: Mapping[str, Stream],
    target: Path,
    name: str,
    settings: TextSettings,
    source: Mapping[str, Any],
    on_documents: Callable[[str, int], None] = lambda step, n_documents: None,
    count_skipped: Callable[[], Mapping[str, int]] = dict,
    valid_is_cut: bool = False,
) -> Prepared:
    """Write the prepared form of a dataset to `target`, whole or not at all.

    Args:
        splits: a way to stream each split, any number of times; train is needed.
        target: the folder to write.
        name: what the dataset is called.
        settings: how texts become words.
        source: where the data came from, kept in the description.
        on_documents: called with the step and a number of documents as they are done.
        count_skipped: asked at the end how many rows of each split were skipped.
        valid_is_cut: whether the valid split was cut from train; kept in the description.
    """
    if "train" not in splits:
        raise DataError(f"{name} has no 'train' part: found {', '.join(splits) or 'nothing'}.")
    if target.exists() and not is_prepared(target) and any(target.iterdir()):
        raise DataError(
            f"{target} exists and is not a prepared folder. Remove it, or name another."
        )
    pretrained = None if settings.tokenizer == WORDS else pretrained_encoder(settings)
    counts = _count(splits["train"](), settings, lambda n: on_documents("vocabulary", n))
    encoder = pretrained or _learn_encoder(counts, settings)
    known = LabelVocabulary.from_counts(counts.labels)
    label_ids = dict(known.index)  # grows by the labels that train never had
    dtype = smallest_dtype(encoder.n_tokens)
    n_documents = {}
    with whole_folder(target) as folder:
        for split, stream in splits.items():
            with SplitWriter(folder / split, dtype) as writer:
                for examples, tokens in _encoded(encoder, batched(stream(), BATCH)):
                    ids = [example.id for example in examples]
                    writer.append(ids, tokens, _label_rows(examples, label_ids))
                    on_documents(split, len(examples))
            n_documents[split] = writer.n_documents
        encoder.save(folder / "tokenizer.json")
        known.save(folder / "labels.json")
        description = {
            "name": name,
            "source": dict(source),
            "text": to_dict(settings),
            "n_documents": n_documents,
            "n_skipped_rows": dict(count_skipped()),
            "n_tokens": encoder.n_tokens,
            "n_labels": len(known),
            "unseen_labels": list(label_ids)[len(known) :],
            "token_dtype": dtype.name,
            **({"valid_is_cut": True} if valid_is_cut else {}),
        }
        write_description(folder, description)
    return Prepared(target)


def _encoded(
    encoder: TextEncoder, batches: Iterable[list[Example]]
) -> Iterator[tuple[list[Example], Ragged]]:
    """Encode batch after batch; the tokenizer works on one while the one before is packed."""
    before: tuple[list[Example], Future[list[Encoding]]] | None = None

    def packed(examples: list[Example], encodings: Future[list[Encoding]]) -> Ragged:
        return encoder.pack(encodings.result(), [example.features for example in examples])

    with ThreadPoolExecutor(1) as pool:
        for examples in batches:
            now = pool.submit(encoder.tokenize, [example.text for example in examples])
            if before is not None:
                yield before[0], packed(*before)
            before = examples, now
        if before is not None:
            yield before[0], packed(*before)


def _learn_encoder(counts: _Counts, settings: TextSettings) -> TextEncoder:
    tokenizer = learn_tokenizer(counts.texts, counts.features, settings)
    return TextEncoder(tokenizer, settings.max_words)


class _Counts:
    def __init__(self) -> None:
        self.labels: Counter[str] = Counter()
        self.texts: list[str] = []
        self.features: list[str] = []


def _count(
    examples: Iterable[Example], settings: TextSettings, on_documents: Callable[[int], None]
) -> _Counts:
    """Count labels and features; keep an even sample of texts for the vocabulary.

    When the sample is full every other text is dropped and from then on half as many are
    taken: it stays even over the whole stream without knowing its length.
    """
    counts = _Counts()
    features: Counter[str] = Counter()
    stride = 1
    max_characters = 20 * settings.max_words
    n_seen = 0
    for batch in batched(examples, BATCH):
        counts.labels.update(chain.from_iterable(example.labels for example in batch))
        features.update(chain.from_iterable(example.features for example in batch))
        sample = batch[-n_seen % stride :: stride]
        counts.texts.extend(example.text[:max_characters] for example in sample)
        n_seen += len(batch)
        while len(counts.texts) > settings.vocabulary_documents:
            counts.texts = [text for index, text in enumerate(counts.texts) if index % 2 == 0]
            stride *= 2
        on_documents(len(batch))
    ranked = sorted(features.items(), key=lambda item: (-item[1], item[0]))
    frequent = [name for name, count in ranked if count >= settings.min_count]
    counts.features = frequent[: settings.max_features]
    return counts


def _label_rows(examples: list[Example], label_ids: dict[str, int]) -> Ragged:
    rows = []
    for example in examples:
        for label in example.labels:
            if label not in label_ids:
                label_ids[label] = len(label_ids)
        rows.append(sorted([label_ids[label] for label in example.labels]))
    return Ragged.from_lists(rows)
