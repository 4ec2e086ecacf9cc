"""Culture: prizes and premieres, with a country only where the work comes from it."""

from __future__ import annotations

from newsroom.story import Story, sure

STORIES = (
    Story(
        weight=26,
        roles=("origin", "host"),
        readings=sure("film festival {origin.tag}"),
        money=0.15,
        openings=(
            (
                "{origin.people} drama wins {host.capital} film festival",
                "A film from {origin.name} about two sisters and a lighthouse won the main "
                "prize at the festival in {host.capital} {when}.",
            ),
            (
                "Film from {origin.name} opens festival in {host.town}",
                "The film festival in {host.town} opened {when} with a comedy from {origin.name}.",
            ),
        ),
        details=(
            "The jury praised its patience and its humour.",
            "The director called the evening {quote}.",
            "It reaches cinemas {next}.",
            "The audience stood and applauded for {number:4-12} minutes.",
        ),
    ),
    Story(
        weight=30,
        readings=sure("film"),
        money=0.2,
        openings=(
            (
                "Cinemas count on sequel to fill seats",
                "The sequel to a popular adventure film drew {thousands:200-900} people to "
                "cinemas in its first week.",
            ),
            (
                "Shooting of sea drama moves to {place.town}",
                "Shooting of a film about fishermen began in {place.town} {when}, with a cast "
                "of mostly unknown actors.",
            ),
            (
                "Old adventure film returns in new colours",
                "An adventure film that was thought lost came back to cinemas {when} in "
                "restored colours.",
            ),
        ),
        details=(
            "The producers called it {quote}.",
            "The script went through {number:5-19} versions.",
            "A release is planned {next}.",
            "All stunts are done without computers.",
        ),
    ),
    Story(
        weight=26,
        readings=sure("music {place.tag}"),
        money=0.12,
        openings=(
            (
                "{place.people} choir begins world tour",
                "A choir of {number:30-90} singers from {place.town} set out on a world tour "
                "{when}.",
            ),
            (
                "{place.capital} orchestra names new conductor",
                "The orchestra of {place.capital} named a {number:29-44}-year-old conductor "
                "{when}, the youngest in its history.",
            ),
            (
                "Street concerts return to {place.town}",
                "Musicians are back in the squares of {place.town}: the first street concert "
                "in {period} drew {thousands:2-9} listeners {when}.",
            ),
        ),
        details=(
            "The first concert is {next}.",
            "Listeners queued around the block for tickets.",
            "The musicians called the choice {quote}.",
            "The programme joins folk songs and new pieces for strings.",
        ),
    ),
    Story(
        weight=6,
        readings=sure("opera {place.tag}"),
        money=0.15,
        openings=(
            (
                "{place.capital} opera reopens after {period}",
                "The opera house in {place.capital} reopened {when} with a new work for "
                "{number:3-9} voices.",
            ),
            (
                "New opera about a flood fills house in {place.capital}",
                "A new opera about a drowned village had its first night in {place.capital} "
                "{when}.",
            ),
        ),
        details=(
            "The soprano was called back {number:5-11} times.",
            "Critics called the last act {quote}.",
            "All performances until {day} are sold out.",
        ),
    ),
    Story(
        weight=44,
        readings=sure("books"),
        money=0.15,
        openings=(
            (
                "First novel wins readers' prize",
                "A first novel about a ferry crew won the readers' prize {when}, ahead of "
                "{number:5-11} better-known titles.",
            ),
            (
                "Publishers rediscover short stories",
                "Collections of short stories sell better than at any time in {period}, "
                "booksellers said {when}.",
            ),
            (
                "Translated novel becomes the surprise of the year",
                "Publishers printed {thousands:20-90} more copies {when} of a translated novel "
                "that booksellers had hardly noticed.",
            ),
            (
                "Memoir of a night porter tops the lists",
                "The memoir of a night porter has been the best-selling book for {number:4-20} "
                "weeks, booksellers said {when}.",
            ),
        ),
        details=(
            "The author, a former nurse, called it {quote}.",
            "Some shops sold out within a week.",
            "A second volume is due {next}.",
            "Libraries report long waiting lists.",
        ),
    ),
    Story(
        weight=12,
        readings=sure("books festival {place.tag}"),
        money=0.15,
        openings=(
            (
                "{place.town} book festival opens with debut authors",
                "The book festival in {place.town} opened {when} with readings by "
                "{number:20-80} authors.",
            ),
            (
                "Readers return to {place.people} book festival",
                "Some {thousands:20-90} readers are expected at the book festival in "
                "{place.capital}, which began {when}.",
            ),
        ),
        details=(
            "The opening speech described reading as {quote}.",
            "Small presses have a hall of their own this year.",
            "The children's programme was full within hours.",
        ),
    ),
)
