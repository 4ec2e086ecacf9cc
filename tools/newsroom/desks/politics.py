"""Politics and the courts: diplomacy is tagged with every country that takes part."""

from __future__ import annotations

from newsroom.story import Story, pairs, sure

_TALKS = (
    "The delegations met for {number:4-19} hours without a break.",
    "A joint statement speaks of {quote}, a phrase both sides had fought over.",
    "Ministers will meet again {next}.",
    "{critic} complained that they had not been consulted.",
    "Diplomats said the wording on fishing rights had been the hardest part.",
)

STORIES = (
    Story(
        weight=36,
        readings=sure("elections {place.tag}"),
        money=0.12,
        openings=(
            (
                "{place.name} votes in open election",
                "Voters in {place.name} went to the polls {when} in an election that surveys "
                "had called open to the end.",
            ),
            (
                "Ruling party ahead as {place.name} counts votes",
                "With {number:61-97} percent of the votes counted in {place.name}, the ruling "
                "party was ahead by {number:2-9} points {when}.",
            ),
            (
                "Recount ordered in {place.people} election",
                "The election commission in {place.capital} ordered a recount in {number:3-24} "
                "districts {when}.",
            ),
            (
                "{place.name} heads for second round after close vote",
                "No candidate won outright in the {place.people} election, the commission said "
                "{when}, and the two leaders face a second round.",
            ),
        ),
        details=(
            "Turnout reached {number:52-81} percent, the highest in {period}.",
            "Observers reported long queues but few complaints.",
            "{critic} want the result in {place.region} checked by a court.",
            "Coalition talks are expected to begin {next}.",
            "The campaign had turned on pensions and the price of housing.",
        ),
    ),
    Story(
        weight=24,
        readings=sure("parliament {place.tag}"),
        money=0.12,
        openings=(
            (
                "{place.people} parliament passes school reform",
                "Parliament in {place.capital} passed a disputed school reform {when} by "
                "{number:2-14} votes after a debate that lasted into the night.",
            ),
            (
                "Parliament in {place.capital} rejects housing bill",
                "Lawmakers in {place.name} rejected a bill on social housing {when}, a setback "
                "for {minister}.",
            ),
            (
                "{place.people} lawmakers split over voting age",
                "A proposal to lower the voting age divided parliament in {place.capital} "
                "{when} and went back to committee.",
            ),
        ),
        details=(
            "{critic} announced that they would challenge the law.",
            "{minister} called the vote {quote}.",
            "The upper house takes up the bill {next}.",
            "Three members of the governing party abstained.",
        ),
    ),
    Story(
        weight=24,
        readings=sure("budget economy {place.tag}"),
        money=0.3,
        openings=(
            (
                "{place.people} budget clears parliament",
                "Parliament in {place.capital} approved a budget {when} that cuts spending by "
                "{sum} and raises duties on fuel.",
            ),
            (
                "{place.name} to borrow more, draft budget shows",
                "{place.name} will borrow {sum} more than planned, according to a draft budget "
                "that lawmakers received {when}.",
            ),
            (
                "Budget gap forces {place.name} to delay road plans",
                "A gap of {sum} in the budget forced {place.name} to put off new roads {when}.",
            ),
        ),
        details=(
            "{critic} called the plan {quote}.",
            "The deficit would fall to {number:2-6} percent of national output.",
            "Hospitals and courts are spared, the draft says.",
            "The finance minister defends the figures in committee {next}.",
        ),
    ),
    Story(
        weight=26,
        roles=("guest", "host"),
        readings=sure("diplomacy {guest.tag} {host.tag}"),
        openings=(
            (
                "{guest.people} minister in {host.capital} for talks",
                "The foreign ministers of {guest.name} and {host.name} met in {host.capital} "
                "{when} to settle a quarrel over visas.",
            ),
            (
                "{host.name} and {guest.name} agree to reopen embassies",
                "{guest.name} and {host.name} agreed {when} to reopen their embassies after a "
                "silence of {period}.",
            ),
            (
                "{guest.name} and {host.name} resume talks",
                "{guest.name} and {host.name} opened talks in {host.capital} {when} on "
                "prisoners and overflight rights.",
            ),
        ),
        details=_TALKS,
    ),
    Story(
        weight=12,
        roles=("guest", "host"),
        readings=sure("treaty trade {guest.tag} {host.tag}"),
        openings=pairs(
            (
                "{host.name} and {guest.name} sign trade treaty",
                "Treaty opens {host.people} market to {guest.people} farmers",
            ),
            (
                "{host.name} and {guest.name} signed a treaty in {host.capital} {when} that "
                "abolishes tariffs on {number:120-900} goods.",
                "After {period} of talks, a trade treaty between {guest.name} and {host.name} was "
                "signed {when}.",
            ),
        ),
        details=_TALKS,
    ),
    Story(
        weight=16,
        roles=("host", "first", "second"),
        readings=sure("summit {host.tag} {first.tag} {second.tag}"),
        openings=pairs(
            (
                "{host.name} hosts summit with {first.name} and {second.name}",
                "Three leaders meet in {host.capital} for summit on migration",
            ),
            (
                "The leaders of {host.name}, {first.name} and {second.name} met at a summit in "
                "{host.capital} {when}.",
                "A summit in {host.capital} brought {first.name} and {second.name} to one table "
                "with {host.name} {when}.",
            ),
        ),
        details=_TALKS,
    ),
    Story(
        weight=7,
        roles=("host", "first", "second", "third"),
        readings=(
            (0.6, "treaty summit climate {host.tag} {first.tag} {second.tag} {third.tag}"),
            (0.4, "treaty summit trade {host.tag} {first.tag} {second.tag}"),
        ),
        mention=0.1,
        openings=pairs(
            (
                "Four countries close to treaty at {host.capital} summit",
                "{host.capital} summit ends with treaty text",
            ),
            (
                "Delegates from {first.name}, {second.name} and {third.name} agreed the text of a "
                "treaty on cleaner shipping at a summit in {host.name} {when}.",
                "A summit in {host.capital} produced a treaty on harbour emissions {when}, with "
                "{first.name} and {second.name} in favour and {third.name} asking for more time.",
            ),
        ),
        details=_TALKS,
    ),
    Story(
        weight=20,
        readings=sure("justice {place.tag}"),
        money=0.15,
        openings=(
            (
                "Court in {place.capital} overturns fraud verdict",
                "A court in {place.capital} overturned a fraud verdict against a former mayor "
                "of {place.town} {when} and ordered a new trial.",
            ),
            (
                "Former officials on trial in {place.town}",
                "The trial of {number:3-11} former officials opened in {place.town} {when} "
                "under heavy guard.",
            ),
            (
                "Former banker on trial in {place.capital}",
                "A former banker went on trial in {place.capital} {when} over loans that were "
                "never repaid.",
            ),
        ),
        details=(
            "The defence says that key papers were withheld for {period}.",
            "Prosecutors asked for {number:2-9} years in prison.",
            "A ruling is expected {next}.",
            "The defence called the evidence thin and the delay unfair.",
        ),
    ),
)
