"""The generator of the embedded corpus: what it promises, and that it made these files."""

import gzip
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import setrnn.data.newsroom
from setrnn.data.read import write_examples

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from make_newsroom import list_parents
from newsroom import SIZES, generate
from newsroom.desks import read_desk
from newsroom.places import COUNTRIES
from newsroom.tags import complete

EMBEDDED = Path(setrnn.data.newsroom.__file__).parent


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


@pytest.mark.parametrize("split", ["valid", "test"])
def test_some_evaluated_sets_never_occur_in_train(corpus, split):
    seen = {example.labels for example in corpus["train"]}
    n_unseen = sum(example.labels not in seen for example in corpus[split])
    assert 0.05 <= n_unseen / len(corpus[split]) <= 0.15


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
