"""A story the synthetic newsroom can tell, and how one item is written from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from newsroom.draw import Draw
from newsroom.places import COUNTRIES, TOTAL_WEIGHT, Country
from newsroom.tags import PARENTS, complete

MIN_WORDS, MAX_WORDS = 30, 80
MAX_TAGS = 10

PHRASES: dict[str, list[str]] = {}  # what fills the places of templates, by name
for _line in (Path(__file__).parent / "desks" / "phrases.txt").read_text("utf-8").splitlines():
    if _line and not _line.startswith("#"):
        _name, _, _phrases = _line.partition(": ")
        PHRASES.setdefault(_name, []).extend(_phrases.split(" | "))

# The tags an item may carry, each set with its odds: `"league {place.tag}"`.
Readings = tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Kind:
    """One of several siblings: a word in the text, and the tag that it alone decides."""

    word: str
    tag: str


@dataclass(frozen=True)
class Story:
    """Templates that belong together, and the tags of what is written from them.

    Attributes:
        weight: how often the story is told, against the others.
        readings: the sets of tags the text allows, with their odds. One reading makes a
            plain story; with several, the text does not say which one is true.
        openings: templates of a headline and the lead that fits it; an item takes one.
        details: templates of further sentences; an item takes one or two.
        roles: names under which the templates know distinct countries.
        kinds: siblings, of which the templates know one as `kind`.
        money: how often a sentence about money is added; the rules in `tags` turn it
            into a tag for some desks.
        mention: how often a sentence on something else is added, which is not a tag.
    """

    weight: int
    readings: Readings
    openings: tuple[tuple[str, str], ...]
    details: tuple[str, ...]
    roles: tuple[str, ...] = ("place",)
    kinds: tuple[Kind, ...] = ()
    money: float = 0.0
    mention: float = 0.35


@dataclass(frozen=True)
class Item:
    """What the newsroom writes: a text and its tags."""

    text: str
    tags: tuple[str, ...]
    kind: Kind | None


def write(story: Story, draw: Draw) -> Item:
    """Write one item, of a length and with no more tags than the wire accepts."""
    while True:
        item = _draft(story, draw)
        n_words = len(item.text.split())
        if MIN_WORDS <= n_words <= MAX_WORDS and len(item.tags) <= MAX_TAGS:
            return item


def siblings(kind: Kind, kinds: Sequence[Kind]) -> list[Kind]:
    """Find the kinds that share their parent tag with one of them."""
    parent = PARENTS[kind.tag]
    if parent is None:
        return []
    return [other for other in kinds if other != kind and PARENTS[other.tag] == parent]


def rewrite(item: Item, kind: Kind) -> Item:
    """Write the item once more for a sibling: one word differs, and with it one tag."""
    assert item.kind is not None, "only a story with kinds has siblings"
    text = item.text
    for old, new in ((item.kind.word, kind.word), (_capital(item.kind.word), _capital(kind.word))):
        text = re.sub(rf"\b{old}\b", new, text)
    kept = [tag for tag in item.tags if tag != item.kind.tag]
    return Item(text, complete([*kept, kind.tag], is_about_money=False), kind)


def _draft(story: Story, draw: Draw) -> Item:
    cast = _draw_cast(story, draw)
    has_money = draw.chance(story.money)
    has_mention = draw.chance(story.mention)
    n_details = 1 if has_money and has_mention else draw.between(1, 2)

    slots = _Slots(cast, draw)
    headline, lead = map(slots.fill, draw.pick(story.openings))
    sentences = [lead]
    sentences += [slots.fill(detail) for detail in _pick_distinct(story.details, n_details, draw)]
    if has_money:
        sentences.append(slots.fill(draw.pick(PHRASES["money"])))
    if has_mention:
        sentences.insert(draw.between(1, len(sentences)), slots.fill(draw.pick(PHRASES["mention"])))

    tags = draw.pick_weighted(story.readings).format_map(cast).split()
    kind = cast["kind"] if story.kinds else None
    assert kind is None or isinstance(kind, Kind)
    text = "\n".join([headline, " ".join(sentences)])
    return Item(text, complete(tags, is_about_money=has_money), kind)


def _draw_cast(story: Story, draw: Draw) -> dict[str, Country | Kind]:
    """Give every role its own country, and one more to `aside`, for mentions."""
    cast: dict[str, Country | Kind] = {}
    taken: list[Country] = []
    for role in (*story.roles, "aside"):
        country = _draw_country(draw)
        while country in taken:
            country = _draw_country(draw)
        taken.append(country)
        cast[role] = country
    if story.kinds:
        cast["kind"] = draw.pick(story.kinds)
    return cast


def _draw_country(draw: Draw) -> Country:
    return draw.pick_weighted([(c.weight, c) for c in COUNTRIES], total=TOTAL_WEIGHT)


def _pick_distinct(choices: tuple[str, ...], n: int, draw: Draw) -> list[str]:
    left = list(choices)
    return [left.pop(draw.between(0, len(left) - 1)) for _ in range(n)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_SMALL_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class _Number:
    """Fills `{number:3-45}` with a whole number of that range, in a word below ten."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __format__(self, limits: str) -> str:
        low, high = limits.split("-")
        number = self._draw.between(int(low), int(high))
        return _SMALL_NUMBERS[number] if number < len(_SMALL_NUMBERS) else str(number)


class _Thousands:
    """Fills `{thousands:3-45}` with that many thousands, in digits."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __format__(self, limits: str) -> str:
        low, high = limits.split("-")
        return f"{self._draw.between(int(low), int(high))},000"


class _Slots(dict[str, object]):
    """Fills templates: from the cast, or with a phrase drawn and not used before in the item."""

    def __init__(self, cast: Mapping[str, object], draw: Draw) -> None:
        super().__init__(cast, number=_Number(draw), thousands=_Thousands(draw))
        self._draw = draw
        self._left: dict[str, list[str]] = {}

    def __missing__(self, name: str) -> str:
        left = self._left.get(name)
        if not left:
            left = self._left[name] = list(PHRASES[name])
        phrase = left.pop(self._draw.between(0, len(left) - 1))
        return phrase.format_map(self) if "{" in phrase else phrase

    def fill(self, template: str) -> str:
        return _capital(template.format_map(self))
