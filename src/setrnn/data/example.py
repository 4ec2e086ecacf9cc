"""One document with its labels, and hashes that tell whether a model was trained on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.errors import DataError

# n documents, H hashes

# Of texts, without case and white space: the texts cannot be read from them.
Hashes = npt.NDArray[np.uint64]
NOTHING = np.uint64(0)  # the hash of a text without words, which is never recognised


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """Labels of one document that are known before it is tagged.

    Attributes:
        present: labels known to be right.
        absent: labels known to be wrong.

    Example:
        >>> KnownLabels(present=["sport", "sport"], absent=["politics"])
        KnownLabels(present=('sport',), absent=('politics',))
    """

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Merge repeats."""
        _merge_repeats(self, "present", "absent")


@dataclass(frozen=True, slots=True)
class Example:
    """A document, its set of labels, and its features (the paper's user tags).

    An empty label set is legal. Repeated labels are merged. The order of labels has no
    meaning but is kept, so that converting a file and reading it again changes nothing.

    Labels in `unknown` count neither for nor against the document. With `complete` false, this is
    true of every label that is not given.

    Example:
        >>> example = Example("1", "Rates rise again", ["economy", "economy", "markets"])
        >>> example.labels
        ('economy', 'markets')
    """

    id: str
    text: str
    labels: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    known: KnownLabels | None = None  # of a document to be tagged; None if not read
    # The whole row that it was read from, to be written again; None if not kept.
    columns: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    unknown: tuple[str, ...] = ()
    complete: bool = True

    def __post_init__(self) -> None:
        """Merge repeats; raise DataError if a label is given and unknown."""
        _merge_repeats(self, "labels", "features", "unknown")
        for label in self.unknown:
            if label in self.labels:
                raise DataError(
                    f"Document '{self.id}': '{label}' is given and unknown. Remove it from one."
                )

    @property
    def is_incomplete(self) -> bool:
        """Whether some label may or may not belong to the document."""
        return bool(self.unknown) or not self.complete

    def relabel(self, labels: tuple[str, ...], unknown: tuple[str, ...]) -> Example:
        """Return the document with other labels; those that are given are not unknown."""
        unknown = tuple(label for label in unknown if label not in labels)
        return replace(self, labels=labels, unknown=unknown)


def name_example(examples: Sequence[Example], index: int) -> str:
    """Return the name of one of some documents, for errors."""
    return f"Document '{examples[index].id}'"


def rename_labels(labels: tuple[str, ...], label_map: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return labels by their other names; those whose name is "" are dropped.

    The map need not repeat spaces around labels.

    Example:
        >>> rename_labels(("Dramas", "TBD", "Comedies"), {"Dramas": "Drama", "TBD": ""})
        ('Drama', 'Comedies')
    """
    if label_map is None:
        return labels
    renamed = (label_map.get(label, label_map.get(label.strip(), label)) for label in labels)
    return tuple(label for label in renamed if label)


def _merge_repeats(instance: object, *names: str) -> None:
    """Make each field a tuple without repeats; raise if it is a single string."""
    for name in names:
        values: Iterable[str] = getattr(instance, name)
        if values == ():
            continue
        if isinstance(values, str):
            raise DataError(f"'{name}' must be a collection of strings, got {values!r}.")
        object.__setattr__(instance, name, tuple(dict.fromkeys(values)))


def join_hashes(parts: Sequence[Hashes]) -> Hashes:
    """Return the hashes of documents, in ascending order and without repeats: (H,).

    Example:
        >>> trained = join_hashes([hash_texts(["Rates rise to 4%", "A late goal", ""])])
        >>> np.isin(hash_texts(["rates  rise to 4%", "Rates rise to 5%", ""]), trained).tolist()
        [True, False, False]
    """
    return np.setdiff1d(np.concatenate(parts), NOTHING)  # sorted and unique


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Return the hash of each text, (n,)."""
    hashes = b"".join(text_hash(text) if text.strip() else bytes(8) for text in texts)
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64)


def text_hash(text: str) -> bytes:
    """Return a hash of a text that ignores case and white space."""
    return string_hash(" ".join(text.split()).lower())


def sampling_rank(document_id: str, text: str) -> int:
    """Return a number that orders documents at random: a sample has those with the lowest."""
    return int.from_bytes(string_hash(f"{document_id}\0{text}"), "little")


def string_hash(text: str) -> bytes:
    """Return a hash of a string, eight bytes."""
    # JSON may hold half of a surrogate pair, which plain UTF-8 refuses.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
