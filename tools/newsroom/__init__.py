"""The generator of the embedded corpus: a SYNTHETIC newsroom.

Every item is written from templates by a seeded generator. The countries, cups, clubs and
events are invented; no text comes from anywhere else. `make_newsroom.py` writes the corpus
into the package; `setrnn.data.newsroom` reads it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from newsroom.desks import STORIES
from newsroom.draw import Draw
from newsroom.readers import reader_tags
from newsroom.story import Item, rewrite, siblings, write
from setrnn.data.example import Example

SIZES = {"train": 4800, "valid": 600, "test": 600}

# The probability that an item of a story with siblings is followed by its twin, one word apart.
_TWIN = 0.05


def generate(seed: int = 0) -> dict[str, list[Example]]:
    """Write the corpus of a seed, by split; the same seed gives the same corpus."""
    examples = _examples(Draw(seed))
    return {split: list(islice(examples, size)) for split, size in SIZES.items()}


def _examples(draw: Draw) -> Iterator[Example]:
    """Turn items into examples without end; no text occurs twice."""
    seen: set[str] = set()
    for item in _items(draw):
        if item.text in seen:
            continue
        features = reader_tags(item.tags, draw)
        yield Example(f"synthetic-{len(seen):06d}", item.text, item.tags, features)
        seen.add(item.text)


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
