"""The generator of the embedded corpus: what it promises, and that it made these files."""

import gzip
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import setrnn.data.newsroom
from setrnn.data.read import write_examples

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from make_newsroom import list_parents
from newsroom import SIZES, generate
from newsroom.desks import STORIES, read_desk
from newsroom.places import COUNTRIES
from newsroom.tags import PARENTS, TAGS, complete

EMBEDDED = Path(setrnn.data.newsroom.__file__).parent
MEMBERS = [country.tag for country in COUNTRIES if country.in_union]
OTHERS = [country.tag for country in COUNTRIES if not country.in_union]


@pytest.fixture(scope="module")
def corpus():
    return generate()


def everything(corpus):
    return [example for split in SIZES for example in corpus[split]]


def words(text):
    return re.findall(r"\w+", text.lower())


def test_the_generator_makes_exactly_the_embedded_files(corpus, tmp_path):
    """Uncompressed: other versions of zlib may compress to other bytes."""
    assert (EMBEDDED / "parents.csv").read_text() == list_parents()
    for split in SIZES:
        write_examples(corpus[split], tmp_path / f"{split}.jsonl.gz")
        generated, embedded = (
            gzip.decompress((folder / f"{split}.jsonl.gz").read_bytes())
            for folder in (tmp_path, EMBEDDED)
        )
        assert generated == embedded


def test_items_are_synthetic_by_name_and_no_text_is_in_two_splits(corpus):
    examples = everything(corpus)
    assert [each.id for each in examples] == [f"synthetic-{i:06d}" for i in range(6000)]
    assert {split: len(found) for split, found in corpus.items()} == SIZES
    assert len({" ".join(words(each.text)) for each in examples}) == 6000


def test_no_template_leaves_a_trace_in_the_text(corpus):
    for example in everything(corpus):
        assert 30 <= len(example.text.split()) <= 80
        assert not re.search(r"[{}<>]|  |\b[Aa] [AEIOU]|\b(\w+) \1\b", example.text), example.text


def test_set_sizes_average_three_to_four_with_a_tail_to_ten(corpus):
    sizes = Counter(len(example.labels) for example in everything(corpus))
    assert 3 <= sum(n * count for n, count in sizes.items()) / 6000 <= 4
    assert 0.005 <= sizes[0] / 6000 <= 0.02
    assert max(sizes) == 10


def test_every_tag_occurs_in_train_several_are_rare_and_each_implies_those_above_it(corpus):
    tags = Counter(tag for example in corpus["train"] for tag in example.labels)
    assert set(tags) == set(TAGS)
    assert sum(5 <= count <= 35 for count in tags.values()) >= 5
    for example in everything(corpus):
        assert {PARENTS[tag] for tag in example.labels} - {None} <= set(example.labels)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_some_evaluated_sets_never_occur_in_train(corpus, split):
    seen = {example.labels for example in corpus["train"]}
    n_unseen = sum(example.labels not in seen for example in corpus[split])
    assert 0.05 <= n_unseen / len(corpus[split]) <= 0.15


def test_one_word_tells_siblings_apart(corpus):
    differences = Counter()
    for one, other in pairwise(everything(corpus)):
        pairs = set(zip(words(one.text), words(other.text), strict=False))
        changed = {(a, b) for a, b in pairs if a != b}
        if len(words(one.text)) == len(words(other.text)) and len(changed) == 1:
            assert len(set(one.labels) - set(other.labels)) == 1
            assert len(set(other.labels) - set(one.labels)) == 1
            differences[frozenset(*changed)] += 1
    assert differences.total() >= 30
    assert frozenset({"harbour", "crown"}) in differences


def test_features_are_on_half_of_the_items_and_not_all_true(corpus):
    featured = [example for example in everything(corpus) if example.features]
    assert 0.45 <= len(featured) / 6000 <= 0.55
    literal = [(w in e.labels) for e in featured for w in e.features if w in PARENTS]
    assert 0.5 < sum(literal) / len(literal) < 1


@pytest.mark.parametrize(
    ("tags", "is_about_money", "added", "is_added"),
    [
        (["tennis"], True, "business", True),
        (["storm"], True, "economy", True),
        (["diplomacy", *OTHERS[:2]], False, "summit", False),
        (["diplomacy", *OTHERS[:3]], False, "summit", True),
        (["trade", *OTHERS[:3]], False, "summit", False),
        (MEMBERS[:1], False, "union", False),
        (MEMBERS[:2], False, "union", True),
        ([*MEMBERS[:2], OTHERS[0]], False, "union", False),
        (["crown-cup"], False, "football", True),
    ],
)
def test_tags_depend_on_each_other(tags, is_about_money, added, is_added):
    assert (added in complete(tags, is_about_money=is_about_money)) == is_added


@pytest.mark.parametrize("story", list(read_desk("ambiguous")), ids=lambda s: s.openings[0][0])
def test_judging_tags_one_by_one_gives_a_set_that_no_reading_allows(story):
    outsiders = [country for country in COUNTRIES if not country.in_union]
    cast = dict(zip(story.roles, outsiders, strict=False))
    chance, sets = Counter(), set()
    for odds, tags in story.readings:
        sets.add(frozenset(complete(tags.format_map(cast).split(), is_about_money=False)))
        for tag in complete(tags.format_map(cast).split(), is_about_money=False):
            chance[tag] += odds
    assert frozenset(tag for tag, p in chance.items() if p > 0.5) not in sets


def test_readings_occur_with_their_odds(corpus):
    assert all(sum(odds for odds, _ in story.readings) == pytest.approx(1) for story in STORIES)
    virus = [each.labels for each in corpus["train"] if "virus" in each.text.split("\n")[0]]
    share = sum("medicine" in labels for labels in virus) / len(virus)
    assert share == pytest.approx(0.4, abs=4 * (0.24 / len(virus)) ** 0.5)
