"""The tags of the synthetic newsroom, and the rules by which its desk completes a set."""

from __future__ import annotations

from collections.abc import Iterable

from newsroom.places import COUNTRIES

# Each tag with the tag above it; an item that has a tag has all those above.
PARENTS: dict[str, str | None] = {
    "sport": None,
    "football": "sport",
    "harbour-cup": "football",
    "crown-cup": "football",
    "league": "football",
    "transfers": "football",
    "hockey": "sport",
    "silver-shield": "hockey",
    "cycling": "sport",
    "highland-tour": "cycling",
    "tennis": "sport",
    "rowing": "sport",
    "doping": "sport",
    "politics": None,
    "elections": "politics",
    "parliament": "politics",
    "budget": "parliament",
    "diplomacy": "politics",
    "treaty": "diplomacy",
    "summit": "diplomacy",
    "justice": None,
    "economy": None,
    "markets": "economy",
    "shares": "markets",
    "bonds": "markets",
    "commodities": "markets",
    "copper": "commodities",
    "wheat": "commodities",
    "oil": "commodities",
    "central-bank": "economy",
    "labour": "economy",
    "strike": "labour",
    "trade": "economy",
    "business": None,
    "takeover": "business",
    "science": None,
    "space": "science",
    "medicine": "science",
    "vaccine": "medicine",
    "climate": "science",
    "archaeology": "science",
    "technology": None,
    "cyber": "technology",
    "culture": None,
    "film": "culture",
    "festival": "culture",
    "music": "culture",
    "opera": "music",
    "books": "culture",
    "weather": None,
    "storm": "weather",
    "flood": "weather",
    "heatwave": "weather",
    "avalanche": "weather",
    "union": None,
    **{country.tag: None for country in COUNTRIES},
}

TAGS = tuple(PARENTS)

_RANK = {tag: rank for rank, tag in enumerate(TAGS)}
_IN_UNION = {country.tag: country.in_union for country in COUNTRIES}

# What money adds to an item, by the desk it comes from. Politics and the economy talk
# of money every day: there it adds nothing.
_MONEY_ADDS = {
    "sport": "business",
    "culture": "business",
    "science": "business",
    "technology": "business",
    "weather": "economy",
}


def ancestors(tag: str) -> list[str]:
    """List the tags above a tag, nearest first."""
    above = []
    parent = PARENTS[tag]
    while parent is not None:
        above.append(parent)
        parent = PARENTS[parent]
    return above


def complete(tags: Iterable[str], *, is_about_money: bool) -> tuple[str, ...]:
    """Add what the rules of the desk imply, and put the tags in the order of TAGS.

    Ancestors; what money adds; `summit` where diplomacy has three countries or more;
    `union` where two countries or more are tagged and all are members.
    """
    found = set(tags)
    found.update([above for tag in found for above in ancestors(tag)])
    if is_about_money:
        found.update([added for desk, added in _MONEY_ADDS.items() if desk in found])
    countries = found & _IN_UNION.keys()
    if "diplomacy" in found and len(countries) >= 3:
        found.add("summit")
    if len(countries) >= 2 and all(_IN_UNION[country] for country in countries):
        found.add("union")
    return tuple(sorted(found, key=_RANK.__getitem__))
