"""The desks of the synthetic newsroom: one file of stories each, read into one table.

A story begins with `story: WEIGHT`; the lines after it are the attributes of `Story`. `opening` is
a headline and its lead; `headline` and `lead` go together in every way. `tags ODDS` is one of
several readings. A story with `event: NAME = TAGS` is told of each event: `[event]`, `[tags]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from newsroom.story import Kind, Story

DESKS = ("sport", "politics", "economy", "science", "culture", "weather", "crossover", "ambiguous")
DESKS += ("service",)  # in this order: a story is drawn by its place


def read_desk(desk: str) -> Iterator[Story]:
    """Read the stories of a desk."""
    text = (Path(__file__).parent / f"{desk}.txt").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    for story in text.strip().split("\n\n"):
        events = re.findall(r"^event: (.+) = (.+)$", story, re.MULTILINE)
        for event, tags in events or [("", "")]:
            yield _read_story(story.replace("[event]", event).replace("[tags]", tags))


def _read_story(text: str) -> Story:
    lines = [line.partition(":")[::2] for line in text.splitlines()]
    found: dict[str, list[str]] = {}
    for name, value in lines:
        found.setdefault(name, []).append(value.strip())
    kinds = [kind.split(" = ") for line in found.get("kinds", ()) for kind in line.split(", ")]
    openings = [tuple(each.split(" // ")) for each in found.get("opening", ())]
    openings += [(one, lead) for one in found.get("headline", ()) for lead in found["lead"]]
    return Story(
        weight=int(found["story"][0]),
        roles=tuple(found.get("roles", ["place"])[0].split()),
        kinds=tuple(Kind(kind[0], kind[-1]) for kind in kinds),
        readings=tuple(
            (float(name[5:] or 1), value.strip()) for name, value in lines if name[:4] == "tags"
        ),
        money=float(found.get("money", ["0"])[0]),
        mention=float(found.get("mention", ["0.35"])[0]),
        openings=tuple(openings),
        details=tuple(found["detail"]),
    )


STORIES = tuple(story for desk in DESKS for story in read_desk(desk))
