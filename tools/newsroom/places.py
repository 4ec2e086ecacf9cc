"""The invented countries of the synthetic newsroom: none of them exists."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Country:
    """A country as the templates name it: `{place.people} officials in {place.capital}`."""

    name: str
    people: str
    capital: str
    town: str
    region: str
    in_union: bool
    weight: int

    @property
    def tag(self) -> str:
        """The tag of items that are about the country."""
        return self.name.lower()


# The weights say how often the wire writes about each.
COUNTRIES = (
    Country("Velmara", "Velmaran", "Sant Orel", "Castrona", "the Orel valley", True, 16),
    Country("Ostrany", "Ostran", "Hafenrode", "Lindholt", "the Lind basin", True, 15),
    Country("Tessoria", "Tessorian", "Porto Lumera", "Alcorva", "the Lumera lowlands", True, 13),
    Country("Karelund", "Karelunder", "Isvikby", "Norrhamna", "the northern fells", True, 11),
    Country("Dravona", "Dravonan", "Dravigrad", "Zelmice", "the Zelm hills", False, 11),
    Country("Palmeda", "Palmedan", "San Brisal", "Monteluza", "the Luza delta", False, 10),
    Country("Sundareth", "Sundarethi", "Kotamira", "Melaru Bay", "the Melaru islands", False, 9),
    Country("Azmeria", "Azmerian", "Qasr Dinar", "Tel Omara", "the Dinar plain", False, 8),
    Country("Ondoro", "Ondoran", "Kivandi", "Lake Ashua", "the Ashua highlands", False, 6),
    Country("Merrow", "Merrovian", "Tidewell", "Gullhaven", "the western dales", False, 4),
)

TOTAL_WEIGHT = sum(country.weight for country in COUNTRIES)
