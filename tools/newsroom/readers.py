"""The features of the synthetic newsroom: tags that invented readers put on items."""

from __future__ import annotations

from newsroom.draw import Draw
from newsroom.tags import TAGS

HAS_FEATURES = 0.5
IS_ABOUT_THE_ITEM = 0.7

# What readers write for a tag; other tags they use as they are.
_READER_WORDS: dict[str, tuple[str, ...]] = {
    "sport": ("sports", "match-day"),
    "football": ("footy", "goals"),
    "league": ("weekend football", "derby"),
    "hockey": ("ice", "puck"),
    "cycling": ("bikes",),
    "tennis": ("racket",),
    "politics": ("power", "government"),
    "elections": ("vote", "ballot"),
    "diplomacy": ("abroad", "foreign affairs"),
    "economy": ("money", "prices"),
    "markets": ("traders", "money"),
    "shares": ("stocks",),
    "strike": ("walkout",),
    "business": ("companies", "money"),
    "science": ("research",),
    "space": ("sky", "stars"),
    "medicine": ("health",),
    "climate": ("warming",),
    "cyber": ("hackers", "computers"),
    "culture": ("arts",),
    "film": ("movies",),
    "books": ("reading",),
    "weather": ("forecast", "outdoors"),
    "storm": ("wind",),
    "flood": ("water",),
}
_CHATTER = ("must read", "for later", "shared", "long", "morning", "good picture", "again", "hm")


def reader_tags(tags: tuple[str, ...], draw: Draw) -> tuple[str, ...]:
    """Draw what readers made of an item: nothing for half of the items, else a few words.

    They know the item, so their words hint at the reading of an ambiguous one; but three
    in ten are chatter or belong to another item.
    """
    if not draw.chance(HAS_FEATURES):
        return ()
    words = []
    for _ in range(draw.between(1, 4)):
        if tags and draw.chance(IS_ABOUT_THE_ITEM):
            words.append(_reader_word(draw.pick(tags), draw))
        elif draw.chance(0.5):
            words.append(_reader_word(draw.pick(TAGS), draw))
        else:
            words.append(draw.pick(_CHATTER))
    return tuple(dict.fromkeys(words))


def _reader_word(tag: str, draw: Draw) -> str:
    return draw.pick(_READER_WORDS.get(tag, (tag,)))
