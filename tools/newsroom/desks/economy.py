"""Economy and business: markets often have no country, and money words are everywhere."""

from __future__ import annotations

from newsroom.story import Kind, Story, pairs, sure

COMMODITIES = (Kind("copper", "copper"), Kind("wheat", "wheat"), Kind("oil", "oil"))
PAPERS = (Kind("shares", "shares"), Kind("bonds", "bonds"))

STORIES = (
    Story(
        weight=48,
        roles=("place",),
        kinds=COMMODITIES,
        readings=sure("{kind.tag}"),
        money=0.15,
        openings=(
            (
                "{kind.word} {rises} as buyers return",
                "The price of {kind.word} {rose} by {number:1-6} percent {when} in quiet "
                "trade, the sharpest gain in {period}.",
            ),
            (
                "{kind.word} {falls} as buyers hold back",
                "Buyers of {kind.word} stayed away {when}, and the price {fell} to "
                "{number:110-980} crowns.",
            ),
            (
                "{kind.word} at its highest in {period}",
                "{kind.word} {rose} for a {nth} day {when} after figures from {place.name} "
                "showed lower stocks.",
            ),
            (
                "Traders bet on dearer {kind.word}",
                "Contracts for {kind.word} to be delivered in the autumn {rose} by "
                "{number:2-6} percent {when}, traders said.",
            ),
            (
                "{kind.word} {falls} after report from {place.name}",
                "A report of full stores in {place.name} took traders by surprise {when}, and "
                "{kind.word} {fell} by {number:2-6} percent.",
            ),
        ),
        details=(
            "{analyst} expected the move to last.",
            "Warehouses in {place.town} reported their lowest level in {period}.",
            "Demand from industry has been uneven this season.",
            "Volumes were thin because of a holiday in {aside.name}.",
            "{analyst} called the swing {quote}.",
        ),
    ),
    Story(
        weight=14,
        kinds=COMMODITIES,
        readings=sure("{kind.tag} trade {place.tag}"),
        openings=pairs(
            (
                "{place.name} limits {kind.word} exports",
                "{place.people} {kind.word} exports hit a record",
            ),
            (
                "{place.name} will limit exports of {kind.word} from {day}, the trade ministry "
                "said, to keep prices at home in check.",
                "Exports of {kind.word} from {place.name} rose by {number:8-45} percent in a "
                "year, customs figures showed {when}.",
            ),
        ),
        details=(
            "Ships were waiting outside {place.town} {when}.",
            "{analyst} saw little effect on neighbours.",
            "The measure will be reviewed {next}.",
            "Producers in {place.region} had asked for a longer notice.",
        ),
    ),
    Story(
        weight=44,
        kinds=PAPERS,
        readings=sure("{kind.tag} {place.tag}"),
        money=0.15,
        openings=(
            (
                "{place.people} {kind.word} end the week higher",
                "{place.people} {kind.word} {rose} by {number:1-4} percent {when} as investors "
                "weighed new figures on industry.",
            ),
            (
                "{kind.word} slide in {place.capital} after weak figures",
                "In {place.capital}, {kind.word} {fell} {when} for the {nth} session in a row "
                "after weak figures from industry.",
            ),
            (
                "Calm returns to {place.people} {kind.word}",
                "After a stormy week, {place.people} {kind.word} hardly moved {when}, and "
                "traders spoke of a pause for breath.",
            ),
            (
                "Investors flock to {place.people} {kind.word}",
                "Foreign funds bought {place.people} {kind.word} worth {sum} last week, the "
                "exchange in {place.capital} said {when}.",
            ),
        ),
        details=(
            "{analyst} spoke of {quote}.",
            "Turnover was the highest in {period}.",
            "Trading slowed toward the close.",
            "Pension funds were among the sellers, {analyst} said.",
        ),
    ),
    Story(
        weight=30,
        readings=sure("central-bank {place.tag}"),
        money=0.1,
        openings=(
            (
                "{place.people} central bank holds rates",
                "The central bank in {place.capital} kept its main rate at {number:2-9} "
                "percent {when} and warned that inflation was slow to ease.",
            ),
            (
                "{place.people} central bank surprises with rate cut",
                "The {place.people} central bank cut its main rate by a quarter point {when}, "
                "the first move in {period}.",
            ),
            (
                "Rates to stay high, says central bank in {place.capital}",
                "It is too early to lower rates, the governor of the {place.people} central "
                "bank said {when}.",
            ),
        ),
        details=(
            "{number:2-4} members of the board voted against.",
            "{analyst} now expects the next step {next}.",
            "Prices rose by {number:2-8} percent in a year.",
            "The governor described the decision as {quote}.",
        ),
    ),
    Story(
        weight=22,
        readings=sure("strike {place.tag}"),
        money=0.2,
        openings=(
            (
                "Strike stops trains across {place.name}",
                "A strike over pay stopped most trains in {place.name} {when}, and unions said "
                "they were ready for a long dispute.",
            ),
            (
                "Dockers in {place.town} on strike",
                "Dockers in {place.town} walked out {when} after talks on shift work failed.",
            ),
            (
                "Nurses' strike in {place.name} enters second week",
                "Nurses in {place.name} began a second week on strike {when}, and hospitals "
                "postponed all but urgent operations.",
            ),
        ),
        details=(
            "The union wants {number:5-14} percent more pay over two years.",
            "Employers called the demand {quote}.",
            "Mediators will try again {next}.",
            "About {thousands:2-40} workers took part, organisers said.",
        ),
    ),
    Story(
        weight=14,
        readings=sure("labour {place.tag}"),
        openings=(
            (
                "Unemployment in {place.name} falls again",
                "The number of people out of work in {place.name} fell by {thousands:3-60} "
                "last month, the labour office said {when}.",
            ),
            (
                "{place.people} firms struggle to find staff",
                "Employers in {place.region} cannot fill {thousands:4-30} jobs, a survey "
                "showed {when}.",
            ),
        ),
        details=(
            "Wages rose faster than prices for the first time in {period}.",
            "{analyst} called the figures {quote}.",
            "Shortages are worst in care and in building.",
        ),
    ),
    Story(
        weight=16,
        roles=("seller", "buyer"),
        readings=sure("trade {seller.tag} {buyer.tag}"),
        openings=(
            (
                "{buyer.name} lifts tariffs on goods from {seller.name}",
                "{buyer.name} lifted tariffs on machinery from {seller.name} {when}, ending a "
                "dispute of {period}.",
            ),
            (
                "Trade between {seller.name} and {buyer.name} at a record",
                "Trade between {seller.name} and {buyer.name} grew by {number:6-30} percent "
                "last year, customs figures showed {when}.",
            ),
        ),
        details=(
            "Exporters called the step {quote}.",
            "The port of {seller.town} expects {number:20-90} more ships a month.",
            "Smaller firms still complain of paperwork at the border.",
        ),
    ),
    Story(
        weight=28,
        roles=("buyer", "target"),
        readings=sure("takeover {target.tag}"),
        openings=(
            (
                "{buyer.people} group bids for {target.people} brewer",
                "A group from {buyer.name} offered {sum} for a brewer in {target.town} {when}, "
                "and the board advised shareholders to accept.",
            ),
            (
                "{target.people} shipping line agrees to takeover from {buyer.name}",
                "The largest shipping line in {target.name} accepted an offer of {sum} from a "
                "rival in {buyer.name} {when}.",
            ),
            (
                "Takeover of {target.town} steelmaker approved",
                "The takeover of a steelmaker from {target.name} by a competitor in "
                "{buyer.name} was cleared {when} on condition that two plants are sold.",
            ),
        ),
        details=(
            "The offer is {number:12-48} percent above the last price.",
            "Staff in {target.town} fear for {number:200-900} jobs.",
            "{analyst} expected a higher bid {next}.",
            "The founders will keep a tenth of the company.",
        ),
    ),
    Story(
        weight=16,
        readings=sure("business {place.tag}"),
        openings=(
            (
                "{place.people} carmaker doubles profit",
                "A carmaker from {place.town} doubled its profit to {sum} last year, it said "
                "{when}.",
            ),
            (
                "Airline from {place.name} warns on profit",
                "An airline based in {place.capital} warned {when} that profit would fall "
                "short by {sum}.",
            ),
            (
                "{place.town} toy factory hires after years of cuts",
                "A toy factory in {place.town} will hire {number:40-300} people {next}, the "
                "first new staff in {period}.",
            ),
        ),
        details=(
            "The chief executive blamed the cost of fuel.",
            "The dividend is to be raised {next}.",
            "{analyst} described the figures as {quote}.",
            "New orders came mostly from abroad.",
        ),
    ),
)
