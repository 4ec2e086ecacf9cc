"""Other names for labels: a map that merges and drops them, and the labels that need one."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from setrnn.data.disk import whole_file
from setrnn.data.example import Example, rename_labels
from setrnn.data.read.delimited import read_table
from setrnn.data.read.printing import printable, shown
from setrnn.data.read.reader import BadRows, Split
from setrnn.errors import DataError

FROM, TO = "from", "to"
N_SHOWN = 5  # labels in a note

_WORD = re.compile(r"[^\W_]+[+#]*")  # C, C++ and C# are three
_POSSESSIVE = re.compile(r"['\u2019]s\b")


def read_label_map(path: str | Path, encoding: str | None = None) -> dict[str, str]:
    """Read a CSV file with the columns from and to; an empty cell in `to` drops a label.

    Several labels may get the same name, which merges them. Names are not mapped again.
    """
    path = Path(path)
    found: dict[str, str] = {}
    for line, row in read_table(path, (FROM, TO), encoding):
        old, new = row[FROM].strip(), row[TO].strip()
        where = f"{printable(path.name)} line {line}"
        if not old:
            raise DataError(f"{where}: the column '{FROM}' is empty. Name a label, or remove it.")
        if found.setdefault(old, new) != new:
            raise DataError(
                f"{where}: {shown(old)} becomes {shown(new)} here and {shown(found[old])} above. "
                "Remove one."
            )
    if not found:
        raise DataError(f"{path} names no label. Write rows of {FROM},{TO}.")
    return found


def save_label_map(label_map: Mapping[str, str], path: Path) -> None:
    """Write a CSV file that `read_label_map` reads, whole or not at all."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow([FROM, TO])
    rows.writerows(label_map.items())
    with whole_file(path) as stream:
        stream.write(text.getvalue().encode())


def map_labels(splits: Mapping[str, Split], label_map: Mapping[str, str]) -> dict[str, Split]:
    """Rename the labels of all splits; note which labels of the map do not occur."""
    noting = "train" if "train" in splits else next(iter(splits), "")

    def renamed(name: str, split: Split) -> Split:
        def read(bad_rows: BadRows) -> Iterator[Example]:
            unused = dict.fromkeys(label_map)
            for example in split.read(bad_rows):
                for label in example.labels:
                    unused.pop(label, None)
                    unused.pop(label.strip(), None)
                yield _rename(example, label_map)
            if name == noting and unused:
                some = ", ".join(map(shown, list(unused)[:N_SHOWN]))
                more = f" and {len(unused) - N_SHOWN:,} more" if len(unused) > N_SHOWN else ""
                bad_rows.note(f"The label map has labels that do not occur: {some}{more}.")

        return replace(split, read=read)

    return {name: renamed(name, split) for name, split in splits.items()}


def _rename(example: Example, label_map: Mapping[str, str]) -> Example:
    labels = rename_labels(example.labels, label_map)
    unknown = rename_labels(example.unknown, label_map)
    kept = tuple(label for label in unknown if label not in labels)  # a given label is known
    return replace(example, labels=labels, unknown=kept)


def find_twins(label_counts: Mapping[str, int]) -> dict[str, str]:
    """Return labels that are probably spellings of another: a map to the most frequent of them.

    Case, accents, punctuation, spaces, the order of words, plural endings and the 's of Children's
    are not compared; the signs of C++ and C# are.

    Example:
        >>> find_twins({"Drama": 40, "Dramas": 90, "drama ": 1, "TV Shows": 3, "Sci-Fi": 1})
        {'Drama': 'Dramas', 'drama ': 'Dramas'}
    """
    groups: dict[str, list[str]] = {}  # by each of the keys of its labels
    for label in label_counts:
        own = {id(group): group for key in _keys(label) if (group := groups.get(key))}
        joined = [label] + [each for group in own.values() for each in group]
        groups |= dict.fromkeys((key for each in joined for key in _keys(each)), joined)
    twins: dict[str, str] = {}
    for labels in {id(group): group for group in groups.values()}.values():
        kept, *others = sorted(labels, key=lambda label: (-label_counts[label], label))
        twins |= dict.fromkeys(others, kept)
    return twins


def _keys(label: str) -> set[str]:
    """Return values of which spellings of one label share one: words in their order, and sorted."""
    plain = unicodedata.normalize("NFKD", label.casefold().replace("&", " and "))
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    words = _WORD.findall(_POSSESSIVE.sub("", letters))
    words = [_singular(word) for word in words if word != "and"]
    joined = "".join(words)
    # Short names and names with digits are often codes, of which each letter counts.
    if not joined.isalpha() or len(joined) <= 3:
        return {label.strip()}
    return {joined, " ".join(sorted(words))}


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    # Comedies and comedy, movies and movie.
    return f"{word[:-2]}y" if len(word) > 3 and word.endswith("ie") else word
