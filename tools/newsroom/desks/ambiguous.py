"""Items whose words fit several stories: the odds of each whole set of tags are known.

The tags of one reading do not mix with those of another. Judged one by one, most tags
of such an item stay below one half, or too many rise above it; only whole sets tell.
"""

from __future__ import annotations

from newsroom.story import Story, pairs

STORIES = (
    # A final without its sport: football tags the host, hockey the winner.
    Story(
        weight=48,
        roles=("winner", "loser", "host"),
        readings=(
            (0.45, "harbour-cup {host.tag}"),
            (0.35, "silver-shield {winner.tag}"),
            (0.20, "sport business {winner.tag} {loser.tag}"),
        ),
        mention=0.2,
        openings=pairs(
            (
                "{winner.name} lift trophy in {host.capital}",
                "{winner.name} celebrate, {loser.name} go home",
                "Night of joy for {winner.name} in {host.capital}",
            ),
            (
                "{winner.name} held their nerve {matchday} to beat {loser.name} {score} and lift "
                "the trophy in {host.capital}.",
                "It took extra time in {host.capital}, but {winner.name} finished the stronger "
                "side and left {loser.name} with nothing.",
            ),
        ),
        details=(
            "Thousands welcomed the team at the airport in {winner.capital}.",
            "The coach called the trophy {quote}.",
            "{loser.name} have now lost {number:3-5} finals in a row.",
            "The captain is expected to stop {next}.",
        ),
    ),
    Story(
        weight=48,
        readings=(
            (0.40, "business takeover {place.tag}"),
            (0.35, "diplomacy {place.tag} {partner.tag}"),
            (0.25, "transfers {partner.tag}"),
        ),
        roles=("place", "partner"),
        mention=0.2,
        openings=pairs(
            (
                "Deal done between {place.capital} and {partner.capital}",
                "Long night ends with handshake in {place.capital}",
                "{place.name} and {partner.name}: the deal is signed",
            ),
            (
                "After {number:2-6} weeks of offers and counter-offers, a deal between "
                "{place.capital} and {partner.capital} was signed {when}.",
                "Negotiators from {place.name} and {partner.name} shook hands {when} on a deal "
                "that had been declared dead twice.",
            ),
        ),
        details=(
            "The terms were not published, and both sides spoke of {quote}.",
            "{source} had ruled out a result only days before.",
            "The formal announcement will follow {next}.",
            "A clause about the first {number:6-36} months had held things up.",
        ),
    ),
    Story(
        weight=39,
        readings=(
            (0.45, "strike {place.tag}"),
            (0.35, "league {place.tag}"),
            (0.20, "storm {place.tag}"),
        ),
        openings=pairs(
            (
                "Late strike decides long day in {place.town}",
                "{place.town} reels after late strike",
            ),
            (
                "A late strike changed everything in {place.town} {when}, just as most people "
                "were making their way home.",
                "Nobody in {place.town} had expected the strike that came {when}, with only "
                "minutes to go.",
            ),
        ),
        details=(
            "Crowds stayed on in the streets well into the evening.",
            "{source} said the response had been {quote}.",
            "It was the {nth} of the season.",
            "Much now depends on what happens {next}.",
        ),
    ),
    Story(
        weight=39,
        readings=(
            (0.45, "shares {place.tag}"),
            (0.30, "heatwave {place.tag}"),
            (0.25, "oil trade"),
        ),
        openings=pairs(
            (
                "Record high in {place.capital}",
                "{place.name} at an all-time high",
            ),
            (
                "A record high was reported from {place.capital} {when}, well above a mark that "
                "had stood for {period}.",
                "The figure climbed all day in {place.capital} {when} and closed at a level never "
                "seen before in {place.name}.",
            ),
        ),
        details=(
            "What rises this fast can also fall fast, {source} warned.",
            "Observers had seen it coming since the weekend.",
            "The old record was {number:2-9} percent lower.",
            "Some relief is expected {next}, though few dare to name a day.",
        ),
    ),
    Story(
        weight=39,
        readings=(
            (0.40, "medicine {place.tag}"),
            (0.40, "cyber business {place.tag}"),
            (0.20, "cyber justice"),
        ),
        openings=pairs(
            (
                "New virus spreads in {place.name}",
                "Offices in {place.town} empty as virus spreads",
            ),
            (
                "A virus that was first noticed in {place.town} {when} has spread to most of "
                "{place.name}, and offices sent their staff home.",
                "Experts in {place.capital} are trying to contain a virus that has reached "
                "{number:20-90} offices since {day}.",
            ),
        ),
        details=(
            "Its origin is unknown, {source} said.",
            "Protection exists, but many had put it off.",
            "The head of the response team called the situation {quote}.",
            "The worst may be over {next}.",
        ),
    ),
    Story(
        weight=36,
        readings=(
            (0.40, "film"),
            (0.35, "space {place.tag}"),
            (0.25, "tennis {place.tag}"),
        ),
        openings=pairs(
            (
                "A new star over {place.capital}",
                "Everyone in {place.name} wants to see the new star",
            ),
            (
                "A new star has {place.capital} looking up: those who saw it {when} spoke of a "
                "light that nobody had predicted.",
                "The star that appeared {when} is the talk of {place.name}, and experts rank it "
                "among the brightest in {period}.",
            ),
        ),
        details=(
            "Crowds waited for hours in the cold to catch a glimpse.",
            "One expert spoke of {quote} and would say no more.",
            "It should be seen in {aside.capital} {next}.",
            "Pictures from {place.town} went round the world within hours.",
        ),
    ),
    Story(
        weight=36,
        roles=("place", "rival"),
        readings=(
            (0.45, "elections {place.tag}"),
            (0.35, "highland-tour {place.tag} {rival.tag}"),
            (0.20, "cycling business"),
        ),
        openings=pairs(
            (
                "Race tightens in {place.region}",
                "Leader's margin melts in {place.name}",
            ),
            (
                "The race is open again: the leader's margin shrank to {number:2-9} points {when} "
                "as the field passed through {place.region}.",
                "In {place.name}, the front-runner lost ground {when} to a challenger backed by a "
                "team from {rival.name}.",
            ),
        ),
        details=(
            "The challenger said the last days would be {quote}.",
            "{place.town} is where the race will be decided, {source} said.",
            "The leader looked tired and answered no questions.",
            "The result is expected {next}.",
        ),
    ),
    # Two desks out of three sign each item: every tag is likely, all of them never.
    Story(
        weight=48,
        readings=(
            (0.35, "climate parliament {place.tag}"),
            (0.33, "climate business {place.tag}"),
            (0.32, "parliament business {place.tag}"),
        ),
        openings=pairs(
            (
                "Panel on coastal wind farms reports in {place.capital}",
                "Wind farm panel in {place.name} publishes findings",
            ),
            (
                "A panel of lawmakers, researchers and companies presented its findings on wind "
                "farms off {place.town} {when}.",
                "The joint panel on wind farms in {place.name} published {number:80-400} pages of "
                "findings {when}.",
            ),
        ),
        details=(
            "The members could not agree on a single recommendation.",
            "Its chair called the work {quote}.",
            "A hearing is planned {next}.",
            "{critic} welcomed parts of the report.",
        ),
    ),
    Story(
        weight=30,
        roles=("first", "second", "third"),
        readings=(
            (0.36, "trade diplomacy {first.tag} {second.tag}"),
            (0.33, "trade oil {second.tag} {third.tag}"),
            (0.31, "diplomacy oil {first.tag} {third.tag}"),
        ),
        mention=0.1,
        openings=pairs(
            (
                "Pipeline talks: {first.name}, {second.name} and {third.name} trade blame",
                "Who pays for the pipeline? {first.name}, {second.name}, {third.name} disagree",
            ),
            (
                "Talks on a pipeline from {first.name} through {second.name} to {third.name} "
                "ended {when} with only two of the three at the table.",
                "{first.name}, {second.name} and {third.name} gave different accounts {when} of "
                "who had left the pipeline talks first.",
            ),
        ),
        details=(
            "The line would carry {thousands:200-900} barrels a day.",
            "{source} described the mood as {quote}.",
            "A new round is planned {next}.",
            "Transit fees remain the main obstacle.",
        ),
    ),
    Story(
        weight=34,
        readings=(
            (0.40, "budget economy {place.tag}"),
            (0.35, "central-bank bonds {place.tag}"),
            (0.25, ""),
        ),
        openings=pairs(
            (
                "No decision yet on borrowing in {place.name}",
                "Borrowing: {place.capital} keeps everyone waiting",
            ),
            (
                "A decision on borrowing in {place.name} was put off {when} after a meeting that "
                "lasted {number:5-14} hours.",
                "Those who hoped for clarity on borrowing in {place.capital} were told {when} to "
                "wait.",
            ),
        ),
        details=(
            "{analyst} called the delay {quote}.",
            "The next meeting is {next}.",
            "The figures on the table range up to {sum}.",
            "Nobody would say on which side the chair had voted.",
        ),
    ),
)
