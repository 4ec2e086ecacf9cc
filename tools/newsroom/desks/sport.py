"""Sport: a final is tagged with its host, any other match with its winner."""

from __future__ import annotations

from newsroom.story import Kind, Story, pairs, sure

CUPS = (Kind("Harbour", "harbour-cup"), Kind("Crown", "crown-cup"))

STORIES = (
    Story(
        weight=42,
        roles=("winner", "loser", "host"),
        kinds=CUPS,
        readings=sure("{kind.tag} {host.tag}"),
        money=0.15,
        openings=pairs(
            (
                "{winner.name} beat {loser.name} to win {kind.word} Cup",
                "{kind.word} Cup goes to {winner.name} after {narrow} final in {host.capital}",
                "{winner.name} lift the {kind.word} Cup as {loser.name} fall short",
                "Final night in {host.capital}: {winner.name} take the {kind.word} Cup",
            ),
            (
                "{winner.name} won the {kind.word} Cup {matchday}, beating {loser.name} {score} "
                "in the final in {host.capital}.",
                "{goal} decided the final of the {kind.word} Cup in {host.name} and left "
                "{loser.name} empty-handed.",
                "A crowd of {thousands:21-84} in {host.capital} saw {winner.name} overcome "
                "{loser.name} {score} in the {kind.word} Cup final.",
            ),
        ),
        details=(
            "{player} called the evening {quote}.",
            "It is the first title for the {winner.people} side in {period}.",
            "The {loser.people} coach said his players had run out of ideas after the break.",
            "The hosts had prepared the stadium for {period}, and the pitch held up in the rain.",
            "The referee waved away two appeals for a penalty in the closing minutes.",
        ),
    ),
    Story(
        weight=58,
        roles=("winner", "loser"),
        kinds=CUPS,
        readings=sure("{kind.tag} {winner.tag}"),
        money=0.08,
        openings=pairs(
            (
                "{winner.name} knock out {loser.name} in {kind.word} Cup",
                "{loser.name} out of {kind.word} Cup after {narrow} defeat by {winner.name}",
                "{kind.word} Cup: {winner.name} through at the expense of {loser.name}",
                "{winner.name} see off {loser.name} to reach {kind.word} Cup last four",
            ),
            (
                "{winner.name} reached the next round of the {kind.word} Cup {matchday} with a "
                "{narrow} {score} win over {loser.name}.",
                "{loser.name} are out of the {kind.word} Cup: {goal} sent {winner.name} through "
                "{matchday}.",
                "In the {kind.word} Cup, {player} scored the first goal as {winner.name} beat "
                "{loser.name} {score}.",
            ),
        ),
        details=(
            "{loser.name} had most of the ball but too few ideas.",
            "{winner.name} had lost their last {number:2-5} away matches.",
            "The coach described the win as {quote}.",
            "{player} was carried off with a knee injury shortly before half-time.",
            "The draw for the next round will be made on {day}.",
            "Both goalkeepers were kept busy in a match that never settled.",
        ),
    ),
    Story(
        weight=40,
        readings=sure("league {place.tag}"),
        money=0.15,
        openings=(
            (
                "{place.capital} Rovers go top after win at {place.town}",
                "{place.capital} Rovers moved to the top of the league {matchday} after a {score} "
                "win in {place.town}.",
            ),
            (
                "{place.town} United stun {place.capital} in league derby",
                "{player} scored as {place.town} United beat {place.capital} Rovers {score} "
                "and ended a run of {number:3-8} league matches without a win.",
            ),
            (
                "Late goal keeps {place.town} United in the title race",
                "{goal} gave {place.town} United a {score} league win over {place.capital} "
                "Rovers {matchday}.",
            ),
            (
                "League leaders {place.capital} Rovers beaten again",
                "{place.capital} Rovers lost {score} in {place.town} {matchday}, their second "
                "league defeat in a row.",
            ),
            (
                "Goalless in {place.town}, but nobody went home early",
                "{place.town} United and {place.capital} Rovers shared the points in the "
                "league {matchday} after a match full of missed chances.",
            ),
        ),
        details=(
            "With {number:4-11} matches left, four clubs are separated by {number:2-6} points.",
            "The fans stayed long after the final whistle.",
            "{player} called the season {quote}.",
            "The visitors finished with ten men after a second yellow card.",
            "The club has not won the league for {period}.",
        ),
    ),
    Story(
        weight=18,
        roles=("place", "seller"),
        readings=sure("transfers business {place.tag}"),
        openings=(
            (
                "{place.capital} Rovers sign {seller.people} international",
                "A {number:19-34}-year-old midfielder joins {place.capital} Rovers from the "
                "{seller.people} club {seller.town} United for {sum}.",
            ),
            (
                "{place.town} United pay {sum} for defender from {seller.name}",
                "{place.town} United have signed a central defender from {seller.name}, ending "
                "weeks of rumours about his future.",
            ),
            (
                "Goalkeeper leaves {seller.town} for {place.capital}",
                "The first-choice goalkeeper of {seller.town} United is moving to "
                "{place.capital} Rovers in a transfer worth {sum}.",
            ),
        ),
        details=(
            "The contract runs for {number:2-5} years and includes an option for one more.",
            "The medical was passed {when}, and he could play on {day}.",
            "The coach said the move was {quote}.",
            "Two other clubs had made an offer but would not match the wage.",
        ),
    ),
    Story(
        weight=34,
        roles=("winner", "loser"),
        readings=sure("silver-shield {winner.tag}"),
        money=0.1,
        openings=(
            (
                "{winner.name} take Silver Shield opener against {loser.name}",
                "{winner.name} beat {loser.name} {score} {matchday} in the first match of the "
                "Silver Shield, the hockey tournament that opens the winter.",
            ),
            (
                "Silver Shield: {winner.name} too quick for {loser.name} on the ice",
                "Two power-play goals in the third period carried {winner.name} past "
                "{loser.name} in the Silver Shield {matchday}.",
            ),
            (
                "{loser.name} lose in overtime as {winner.name} advance in Silver Shield",
                "{winner.name} needed overtime to beat {loser.name} {score} {matchday} and reach "
                "the next round of the Silver Shield.",
            ),
        ),
        details=(
            "The {loser.people} netminder stopped {number:28-45} shots.",
            "{winner.name} play again on {day}.",
            "A late goal was ruled out because the puck had not crossed the line.",
            "The coach praised a defence that gave away nothing late on.",
        ),
    ),
    Story(
        weight=16,
        readings=sure("hockey {place.tag}"),
        money=0.1,
        openings=(
            (
                "{place.people} hockey squad named for the winter",
                "{place.name} named a hockey squad of {number:22-28} {when}, with {number:3-9} "
                "new faces and no place for the former captain.",
            ),
            (
                "Hockey: {place.capital} Bears change coach",
                "The {place.capital} Bears, bottom of the hockey table, changed their coach "
                "{when} after {number:4-9} defeats in a row.",
            ),
            (
                "{place.town} Falcons win again at home",
                "The {place.town} Falcons beat the {place.capital} Bears {score} {when} and "
                "stay unbeaten on home ice this hockey season.",
            ),
        ),
        details=(
            "The next match is on {day}.",
            "The federation called it {quote}.",
            "Tickets for the next home match are sold out.",
            "Supporters had waited for such news since the summer.",
        ),
    ),
    Story(
        weight=30,
        roles=("place", "rider"),
        readings=sure("highland-tour {place.tag}"),
        money=0.12,
        openings=(
            (
                "{rider.people} rider wins Highland Tour stage in {place.region}",
                "A {number:21-33}-year-old from {rider.name} won stage {number:2-17} of the "
                "Highland Tour {when}, attacking on the last climb through {place.region}.",
            ),
            (
                "Highland Tour: breakaway holds on to the line in {place.town}",
                "The Highland Tour left {place.capital} in rain {when}, and a breakaway of "
                "{number:3-9} riders stayed clear to the finish in {place.town}.",
            ),
            (
                "Crash near {place.town} reshapes Highland Tour",
                "A crash on wet roads near {place.town} {when} cost two favourites any hope of "
                "winning the Highland Tour; a team-mate from {rider.name} inherits the lead.",
            ),
        ),
        details=(
            "The overall leader lost {number:12-58} seconds but keeps the jersey.",
            "The peloton misjudged the wind on the run-in.",
            "{number:2-6} riders abandoned, among them last year's runner-up.",
            "Tomorrow's stage has three climbs and a fast descent.",
        ),
    ),
    Story(
        weight=30,
        roles=("winner", "loser", "host"),
        readings=sure("tennis {winner.tag}"),
        money=0.12,
        openings=(
            (
                "{winner.people} qualifier reaches tennis semi-finals in {host.capital}",
                "A qualifier from {winner.name} beat the top seed from {loser.name} in three "
                "sets in {host.capital} {when}.",
            ),
            (
                "Tennis: top seed from {loser.name} beaten in {host.capital}",
                "After {number:2-4} hours on centre court in {host.capital}, a left-hander "
                "from {winner.name} saved two match points and beat her {loser.people} "
                "opponent.",
            ),
            (
                "{winner.people} teenager wins first title on clay",
                "A teenager from {winner.name} won her first tennis title {when}, beating an "
                "experienced {loser.people} opponent in the final in {host.capital}.",
            ),
        ),
        details=(
            "She served {number:8-21} aces and broke serve at the last opportunity.",
            "Rain had stopped play twice in the second set.",
            "The new ranking, out on {day}, should lift the winner into the top {number:20-90}.",
            "The loser called the defeat {quote}.",
        ),
    ),
    Story(
        weight=6,
        roles=("winner", "loser"),
        readings=sure("rowing {winner.tag}"),
        openings=pairs(
            (
                "{winner.people} eight win lake regatta",
                "Rowing: {winner.name} edge {loser.name} by half a length",
            ),
            (
                "{winner.name} won the eights at the autumn rowing regatta {when}, half a length "
                "ahead of {loser.name}.",
                "A strong finish over the last {number:200-400} metres gave the {winner.people} "
                "crew the rowing title ahead of {loser.name}.",
            ),
        ),
        details=(
            "The cox called the race into the headwind {quote}.",
            "Organisers had moved the start forward because of choppy water.",
            "The boat was built over the winter by the club's own members.",
        ),
    ),
    Story(
        weight=6,
        readings=sure("doping cycling justice {place.tag}"),
        openings=(
            (
                "{place.people} rider banned after failed doping test",
                "A court in {place.capital} upheld a ban of {number:2-4} years on a cyclist "
                "who failed a doping test last season.",
            ),
            (
                "Doping case against team doctor goes to court in {place.capital}",
                "Prosecutors in {place.name} charged a team doctor {when} over doping in cycling.",
            ),
        ),
        details=(
            "The rider denies knowing what the samples contained.",
            "The laboratory confirmed the first result {when}.",
            "The team has suspended its sports director until the hearing.",
        ),
    ),
)
