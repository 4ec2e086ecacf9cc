"""The embedded corpus: a SYNTHETIC newsroom.

Every item is made from templates by a seeded generator. The countries, cups, clubs and
events are invented; no text comes from anywhere else. See DESCRIPTION for what the
corpus is good for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from setrnn.data.example import Example
from setrnn.data.formats.reader import BadRows, Split
from setrnn.data.newsroom.desks import STORIES
from setrnn.data.newsroom.draw import Draw
from setrnn.data.newsroom.readers import reader_tags
from setrnn.data.newsroom.story import Item, rewrite, siblings, write
from setrnn.data.newsroom.tags import PARENTS, TAGS
from setrnn.errors import DataError, nearest_name

__all__ = ["DESCRIPTION", "PARENTS", "SIZES", "TAGS", "examples", "splits"]

DESCRIPTION = (
    "newsroom: SYNTHETIC short news items, written from templates by a seeded generator; the "
    "countries, competitions and events in them do not exist. Tags form a hierarchy, some are "
    "rare, some hang on one word or on a combination, some mentions count for nothing, and "
    "about a quarter of the items leave two or three whole sets of tags possible, with known "
    "odds. Made to show what a method does with sets, not to measure it on real text."
)

SIZES = {"train": 4800, "valid": 600, "test": 600}

# How often an item of a story with siblings is followed by its twin, one word apart.
_TWIN = 0.05


def splits(seed: int = 0) -> dict[str, Split]:
    """Give the splits of the synthetic corpus; the same seed gives the same corpus."""
    return {name: Split(files=(), read=partial(_read, name, seed)) for name in SIZES}


def examples(split: str, seed: int = 0) -> Iterator[Example]:
    """Stream the items of one split: `train`, `valid` or `test`."""
    if split not in SIZES:
        raise DataError(f"newsroom has no split '{split}'. {nearest_name(split, SIZES)}")
    names = list(SIZES)
    start = sum(SIZES[name] for name in names[: names.index(split)])
    return iter(_corpus(seed)[start : start + SIZES[split]])


def _read(split: str, seed: int, bad_rows: BadRows) -> Iterator[Example]:
    """Stream a split as a reader does; a generated corpus has no bad rows."""
    return examples(split, seed)


@lru_cache(maxsize=2)
def _corpus(seed: int) -> tuple[Example, ...]:
    draw = Draw(seed)
    found: list[Example] = []
    seen: set[str] = set()
    for item in _items(draw):
        if item.text in seen:
            continue
        seen.add(item.text)
        features = reader_tags(item.tags, draw)
        found.append(Example(f"synthetic-{len(found):06d}", item.text, item.tags, features))
        if len(found) == sum(SIZES.values()):
            break
    return tuple(found)


def _items(draw: Draw) -> Iterator[Item]:
    """Write items without end."""
    weighted = [(story.weight, story) for story in STORIES]
    total = sum(story.weight for story in STORIES)
    while True:
        story = draw.pick_weighted(weighted, total=total)
        item = write(story, draw)
        yield item
        if item.kind is not None and draw.chance(_TWIN):
            others = siblings(item.kind, story.kinds)
            if others:
                yield rewrite(item, draw.pick(others))
