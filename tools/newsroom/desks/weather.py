"""Weather, and what it does to harbours, fields and roads."""

from __future__ import annotations

from newsroom.story import Story, pairs, sure

_RESCUE = (
    "Fire crews were called out {number:40-400} times.",
    "Forecasters expect calmer days from {day}.",
    "Schools in {place.region} stayed closed.",
    "The mayor of {place.town} called the night {quote}.",
    "Power was back in most homes by {day}.",
)

STORIES = (
    Story(
        weight=30,
        readings=sure("storm {place.tag}"),
        money=0.2,
        openings=(
            (
                "Storm cuts power in {place.name}",
                "A storm with gusts of {number:100-170} kilometres an hour cut power to "
                "{thousands:4-90} homes in {place.name} {when}.",
            ),
            (
                "Gales close harbour of {place.town}",
                "Gales tore roofs off houses in {place.town} {when} and closed the harbour.",
            ),
            (
                "{place.name} clears up after storm",
                "Fallen trees still blocked roads in {place.region} {when}, a day after the "
                "storm crossed {place.name}.",
            ),
        ),
        details=_RESCUE,
    ),
    Story(
        weight=22,
        readings=sure("flood {place.tag}"),
        money=0.2,
        openings=(
            (
                "Hundreds leave homes as river floods {place.town}",
                "A river burst its banks near {place.town} {when}, and {number:200-900} people "
                "were taken to safety by boat.",
            ),
            (
                "Flood water rises in {place.region}",
                "Water stood {number:2-3} metres deep in the streets of {place.town} {when} "
                "after days of rain in {place.region}.",
            ),
        ),
        details=_RESCUE,
    ),
    Story(
        weight=14,
        readings=sure("storm flood {place.tag}"),
        money=0.2,
        openings=pairs(
            (
                "Storm and high tide flood {place.town}",
                "{place.people} coast under water after storm",
            ),
            (
                "A storm drove the sea over the dykes at {place.town} {when} and flooded "
                "{number:40-700} houses.",
                "Heavy rain and a storm tide flooded parts of {place.name} {when}.",
            ),
        ),
        details=_RESCUE,
    ),
    Story(
        weight=20,
        readings=sure("heatwave {place.tag}"),
        money=0.15,
        openings=(
            (
                "Heatwave empties streets of {place.capital}",
                "A heatwave pushed temperatures in {place.capital} to {number:37-44} degrees "
                "{when}.",
            ),
            (
                "{place.name} swelters in heatwave",
                "The heatwave in {place.name} entered its {nth} day {when}, with nights above "
                "{number:23-28} degrees.",
            ),
        ),
        details=(
            "Hospitals reported {number:20-200} cases of sunstroke.",
            "Forecasters expect relief {next}.",
            "Water may not be used on lawns until {day}.",
            "Outdoor work was banned at noon.",
        ),
    ),
    Story(
        weight=8,
        readings=sure("heatwave wheat {place.tag}"),
        openings=(
            (
                "Heat shrinks harvest in {place.name}",
                "The heatwave has cost farmers in {place.region} up to {number:20-60} percent "
                "of their wheat, and the price {rose} {when}.",
            ),
            (
                "{place.people} farmers fear for wheat as heatwave goes on",
                "Wheat withered in the fields of {place.name} {when} as the heatwave entered "
                "its {nth} day.",
            ),
        ),
        details=(
            "Millers spoke of {quote}.",
            "Rain is not expected before {day}.",
            "Farmers will ask the ministry for help {next}.",
        ),
    ),
    Story(
        weight=6,
        readings=sure("avalanche {place.tag}"),
        money=0.1,
        openings=(
            (
                "Avalanche blocks pass in {place.region}",
                "An avalanche buried the road to {place.town} {when} under {number:3-9} metres "
                "of snow.",
            ),
            (
                "Skiers rescued after avalanche near {place.town}",
                "A group of {number:4-19} skiers was dug out alive {when} after an avalanche "
                "near {place.town}.",
            ),
        ),
        details=(
            "Rescuers searched with dogs until dark.",
            "The danger remains high until {day}.",
            "The pass should reopen {next}.",
        ),
    ),
)
