from collections import Counter

import pytest
from newsroom.desks import STORIES, ambiguous
from newsroom.draw import Draw
from newsroom.places import COUNTRIES
from newsroom.story import Kind, siblings
from newsroom.tags import ancestors, complete

MEMBERS = [country.tag for country in COUNTRIES if country.in_union]
OTHERS = [country.tag for country in COUNTRIES if not country.in_union]


def true_sets(story):
    """The sets of tags a story allows, with their odds, for one choice of countries."""
    outsiders = [country for country in COUNTRIES if not country.in_union]
    cast = dict(zip(story.roles, outsiders, strict=False))
    return [
        (odds, frozenset(complete(tags.format_map(cast).split(), is_about_money=False)))
        for odds, tags in story.readings
    ]


def test_a_cup_implies_football_and_sport():
    assert ancestors("crown-cup") == ["football", "sport"]
    assert complete(["crown-cup"], is_about_money=False) == ("sport", "football", "crown-cup")


@pytest.mark.parametrize(
    ("tag", "added"),
    [("tennis", "business"), ("books", "business"), ("storm", "economy"), ("elections", None)],
)
def test_what_money_adds_depends_on_the_desk(tag, added):
    without = set(complete([tag], is_about_money=False))
    assert set(complete([tag], is_about_money=True)) - without == ({added} if added else set())


def test_three_countries_make_diplomacy_a_summit():
    assert "summit" not in complete(["diplomacy", *OTHERS[:2]], is_about_money=False)
    assert "summit" in complete(["diplomacy", *OTHERS[:3]], is_about_money=False)
    assert "summit" not in complete(["trade", *OTHERS[:3]], is_about_money=False)


def test_union_is_tagged_only_when_all_of_several_countries_are_members():
    assert "union" not in complete(MEMBERS[:1], is_about_money=False)
    assert "union" in complete(MEMBERS[:2], is_about_money=False)
    assert "union" not in complete([*MEMBERS[:2], OTHERS[0]], is_about_money=False)


def test_the_odds_of_every_story_sum_to_one():
    for story in STORIES:
        assert sum(odds for odds, _ in story.readings) == pytest.approx(1)


@pytest.mark.parametrize("story", ambiguous.STORIES, ids=lambda s: s.openings[0][0])
def test_judging_tags_one_by_one_gives_a_set_that_no_reading_allows(story):
    chance = Counter()
    for odds, tags in true_sets(story):
        for tag in tags:
            chance[tag] += odds
    one_by_one = frozenset(tag for tag, p in chance.items() if p > 0.5)
    assert one_by_one not in {tags for _, tags in true_sets(story)}


def test_readings_occur_with_their_odds(corpora):
    virus = [
        example.labels
        for corpus in corpora.values()
        for example in corpus["train"]
        if "virus" in example.text.split("\n")[0]
    ]
    share = sum("medicine" in labels for labels in virus) / len(virus)
    assert share == pytest.approx(0.4, abs=4 * (0.24 / len(virus)) ** 0.5)


def test_a_cup_final_is_tagged_with_its_host_alone(corpora):
    by_capital = {country.capital: country.tag for country in COUNTRIES}
    n_finals = 0
    for example in corpora[0]["train"]:
        headline = example.text.split("\n")[0]
        if not headline.startswith("Final night in "):
            continue
        n_finals += 1
        host = by_capital[headline.removeprefix("Final night in ").split(":")[0]]
        assert [tag for tag in example.labels if tag in MEMBERS + OTHERS] == [host]
    assert n_finals >= 10


def test_siblings_share_a_parent():
    storm, flood, strike = Kind("storm", "storm"), Kind("flood", "flood"), Kind("s", "strike")
    lawsuit, business = Kind("lawsuit", "justice"), Kind("firm", "business")
    assert siblings(storm, (storm, flood, strike)) == [flood]
    assert siblings(lawsuit, (lawsuit, business)) == []


def test_draws_follow_their_weights():
    draw = Draw(1)
    drawn = Counter(
        draw.pick_weighted([(1, "a"), (2, "b"), (5, "c")], total=8) for _ in range(8000)
    )
    assert drawn["a"] == pytest.approx(1000, abs=150)
    assert drawn["b"] == pytest.approx(2000, abs=200)
    numbers = Counter(draw.between(3, 5) for _ in range(3000))
    assert set(numbers) == {3, 4, 5}
    assert min(numbers.values()) > 850
