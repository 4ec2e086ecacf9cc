"""Notes from the newsroom to its customers: items with no tags at all."""

from __future__ import annotations

from newsroom.story import Story, sure

STORIES = (
    Story(
        weight=10,
        readings=sure(""),
        mention=0.0,
        openings=(
            (
                "Correction to an earlier item",
                "In the item on {topic} in {place.name}, a figure in the second paragraph was "
                "wrong.",
            ),
            (
                "Note to editors: item from {place.capital} withdrawn",
                "An item sent {when} on {topic} in {place.name} has been withdrawn and should "
                "not be used.",
            ),
            (
                "Service message: delayed items",
                "Because of work on our systems, items from {place.name} will arrive later "
                "than usual until {day}.",
            ),
        ),
        details=(
            "A new version will follow {next}, and archives should be updated.",
            "Customers who have already published it are asked to take it down.",
            "The desk apologises for the delay and can be reached at any hour.",
            "Pictures and graphics are not affected, and no further change is planned.",
        ),
    ),
)
