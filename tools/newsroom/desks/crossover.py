"""Events that something else stops: two desks in one item, in sets that may be new."""

from __future__ import annotations

from newsroom.story import Kind, Story, sure

_CAUSES = (
    Kind("storm", "storm"),
    Kind("flood", "flood"),
    Kind("heatwave", "heatwave"),
    Kind("strike", "strike"),
    Kind("cyberattack", "cyber"),
    Kind("lawsuit", "justice"),
)

# What was planned, with its tags.
_EVENTS = {
    "league match": "league",
    "rocket launch": "space",
    "film festival": "film festival",
    "Highland Tour stage": "highland-tour",
    "election count": "elections",
    "book fair": "books festival",
    "summer concert": "music",
    "hockey final": "hockey",
    "trade fair": "trade business",
    "medical congress": "medicine",
    "budget debate": "budget economy",
    "oil auction": "oil",
}


def _stopped(event: str, tags: str) -> Story:
    return Story(
        weight=7,
        kinds=_CAUSES,
        readings=sure(f"{tags} {{kind.tag}} {{place.tag}}"),
        mention=0.45,
        openings=(
            (
                f"{{place.people}} {event} called off over {{kind.word}}",
                f"The {event} planned for {{place.town}} {{when}} was called off because of the "
                "{kind.word}, {source} said.",
            ),
            (
                f"{event} moved to {{place.capital}} after {{kind.word}}",
                f"The {{kind.word}} forced {{place.name}} to move the {event} to {{place.capital}} "
                "{when}, only hours before it was due to begin.",
            ),
            (
                f"{{kind.word}} stops {event} in {{place.capital}}",
                f"A {{kind.word}} kept people away from the {event} in {{place.capital}}, which "
                "was broken off {when}.",
            ),
        ),
        details=(
            "What it means for next year will be decided {next}.",
            f"It is the first {event} to suffer in this way in {{period}}.",
            "Those who had travelled from {aside.name} were offered a night in {place.town}.",
            "{source} called the decision {quote}.",
            "Critics asked why no plan had been made after similar trouble in {aside.name}.",
            "Everyone involved was informed by telephone, and most took it calmly.",
        ),
    )


STORIES = tuple(_stopped(event, tags) for event, tags in _EVENTS.items())
