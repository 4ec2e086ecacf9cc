"""The embedded corpus: a SYNTHETIC newsroom, in the JSON Lines files beside this module.

`tools/make_newsroom.py` of the repository writes the files.
"""

from __future__ import annotations

from collections.abc import Iterator

from setrnn.data.example import Example
from setrnn.data.read import EMBEDDED, BadRows, open_dataset

DESCRIPTION = (
    "newsroom: SYNTHETIC short news items, written from templates by a seeded generator; the "
    "countries, competitions and events in them do not exist. Tags form a hierarchy, some are "
    "rare, some depend on one word or on a combination, some mentions count for nothing, and "
    "about a quarter of the items leave two or three whole sets of tags possible, with known "
    "odds. Made to show what a method does with sets, not to measure it on real text."
)


def examples(split: str) -> Iterator[Example]:
    """Stream the items of one split: `train`, `valid` or `test`.

    Example:
        >>> next(examples("test")).labels
        ('politics', 'parliament', 'budget', 'economy', 'sundareth')
    """
    return open_dataset(EMBEDDED).require(split).read(BadRows())
