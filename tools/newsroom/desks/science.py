"""Science and technology."""

from __future__ import annotations

from newsroom.story import Story, sure

STORIES = (
    Story(
        weight=30,
        readings=sure("space {place.tag}"),
        money=0.15,
        openings=(
            (
                "{place.people} probe enters orbit",
                "A probe built in {place.name} entered orbit around a moon {when} after a "
                "journey of {period}.",
            ),
            (
                "Rocket from {place.town} carries small satellites",
                "A rocket lifted off from {place.town} {when} with {number:3-24} small "
                "satellites on board.",
            ),
            (
                "Telescope in {place.region} finds distant planet",
                "Astronomers working in {place.region} reported a planet {number:12-90} light "
                "years away {when}.",
            ),
        ),
        details=(
            "The first pictures are expected {next}.",
            "Engineers described the last minutes as {quote}.",
            "The launch had been put off {number:2-5} times because of wind.",
            "The instrument will map dust and ice for {period}.",
        ),
    ),
    Story(
        weight=30,
        readings=sure("medicine {place.tag}"),
        money=0.15,
        openings=(
            (
                "{place.people} doctors report progress against joint pain",
                "Doctors in {place.capital} reported {when} that a cheap drug eased joint pain "
                "in {number:40-80} percent of patients.",
            ),
            (
                "Hospital in {place.town} tests new heart valve",
                "A hospital in {place.town} has fitted {number:6-60} patients with a new heart "
                "valve, it said {when}.",
            ),
            (
                "Sleep study from {place.name} surprises doctors",
                "People who slept in two parts felt no worse for it, doctors in "
                "{place.capital} reported {when}.",
            ),
        ),
        details=(
            "The study followed {number:200-950} people for {period}.",
            "Independent doctors called the result {quote}.",
            "A larger trial begins {next}.",
            "Side effects were mild and passed within days.",
        ),
    ),
    Story(
        weight=6,
        readings=sure("vaccine {place.tag}"),
        openings=(
            (
                "{place.name} reports success of vaccine against river fever",
                "A vaccine against river fever protected {number:62-93} percent of those who "
                "took part in a trial in {place.region}.",
            ),
            (
                "Vaccine for children approved in {place.name}",
                "Health officials in {place.name} approved a vaccine for children against "
                "river fever {when}.",
            ),
        ),
        details=(
            "Doses should reach clinics {next}.",
            "Doctors called the approval {quote}.",
            "The trial followed {number:900-990} families through two rainy seasons.",
        ),
    ),
    Story(
        weight=24,
        readings=sure("climate {place.tag}"),
        money=0.1,
        openings=(
            (
                "Glaciers in {place.region} shrink faster",
                "Glaciers in {place.region} lost {number:3-12} metres in a year, researchers "
                "from {place.capital} said {when}.",
            ),
            (
                "{place.people} study links drought to warmer seas",
                "A study published {when} links the long drought in {place.name} to warmer seas.",
            ),
            (
                "Warmer winters change forests in {place.name}",
                "Spruce is giving way to oak in {place.region} as winters grow warmer, "
                "foresters and climate researchers said {when}.",
            ),
        ),
        details=(
            "The team compared measurements that go back {period}.",
            "Emissions would have to fall by half, the authors write.",
            "Other researchers called the method {quote}.",
            "A second report follows {next}.",
        ),
    ),
    Story(
        weight=14,
        readings=sure("climate parliament {place.tag}"),
        openings=(
            (
                "{place.name} writes emissions goal into law",
                "Parliament in {place.capital} voted {when} to cut emissions by {number:30-70} "
                "percent, following advice from climate researchers.",
            ),
            (
                "{place.people} parliament argues over carbon price",
                "A carbon price divided lawmakers in {place.name} {when} as new climate "
                "figures were presented.",
            ),
        ),
        details=(
            "{critic} called the plan {quote}.",
            "Farmers are exempt for {period}.",
            "A first review is due {next}.",
        ),
    ),
    Story(
        weight=6,
        readings=sure("archaeology {place.tag}"),
        money=0.1,
        openings=(
            (
                "Road works near {place.town} uncover ancient harbour",
                "Archaeologists uncovered the walls of an ancient harbour near {place.town} "
                "{when}.",
            ),
            (
                "Dig in {place.region} yields painted tomb",
                "A dig in {place.region} has brought to light a painted tomb, archaeologists "
                "said {when}.",
            ),
        ),
        details=(
            "The oldest finds are thought to be {number:18-40} centuries old.",
            "Building work has been stopped until {day}.",
            "The finds will be shown in {place.capital} {next}.",
        ),
    ),
    Story(
        weight=24,
        readings=sure("cyber {place.tag}"),
        money=0.2,
        openings=(
            (
                "Hackers block city services in {place.town}",
                "Hackers blocked the computers of the city of {place.town} {when} and asked "
                "for a ransom.",
            ),
            (
                "Data of {thousands:20-900} {place.people} patients stolen",
                "Intruders copied the files of patients from a clinic in {place.capital}, "
                "hackers boasted {when}, and the clinic had to confirm it.",
            ),
            (
                "{place.people} ministry restores computers after attack",
                "A ministry in {place.capital} took its computers off the network {when} after "
                "an attack on its mail servers.",
            ),
        ),
        details=(
            "Experts traced the break-in to a stolen password.",
            "Most services should be back {next}.",
            "A security firm called the attack {quote}.",
            "No ransom will be paid, {source} said.",
        ),
    ),
    Story(
        weight=16,
        readings=sure("technology business {place.tag}"),
        openings=(
            (
                "{place.people} start-up shows repair robot",
                "A young company from {place.capital} presented a robot {when} that repairs "
                "water pipes from inside.",
            ),
            (
                "Chip plant planned near {place.town}",
                "A maker of computer chips plans a plant near {place.town} for {sum}, it said "
                "{when}.",
            ),
        ),
        details=(
            "Production could begin {next}.",
            "Engineers called the first tests {quote}.",
            "The software was written in {period}.",
            "Some {number:200-900} jobs are promised.",
        ),
    ),
)
