import gzip
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from make_newsroom import list_parents
from newsroom import SIZES
from newsroom.tags import PARENTS, TAGS

import setrnn.data.newsroom
from setrnn.data.read import write_examples

EMBEDDED = Path(setrnn.data.newsroom.__file__).parent
EVALUATED = ("valid", "test")
TOOLS = Path(__file__).parents[2] / "tools"

PRINT_DIGEST = """
import hashlib
from newsroom import generate
print(hashlib.sha256(repr(generate()).encode()).hexdigest())
"""


@pytest.fixture(params=[0, 7])
def corpus(request, corpora):
    return corpora[request.param]


def everything(corpus):
    return [example for split in SIZES for example in corpus[split]]


def words(text):
    return re.findall(r"\w+", text.lower())


def test_the_embedded_parents_are_those_of_the_generator():
    assert (EMBEDDED / "parents.csv").read_text() == list_parents()


@pytest.mark.parametrize("split", SIZES)
def test_the_generator_makes_exactly_the_embedded_files(corpora, split, tmp_path):
    """Uncompressed: other versions of zlib may compress to other bytes."""
    file = f"{split}.jsonl.gz"
    write_examples(corpora[0][split], tmp_path / file)
    generated, embedded = (
        gzip.decompress((folder / file).read_bytes()) for folder in (tmp_path, EMBEDDED)
    )
    assert generated == embedded


def test_another_process_generates_the_same_corpus(corpora):
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        cwd=TOOLS,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = hashlib.sha256(repr(corpora[0]).encode()).hexdigest()
    assert printed.stdout.strip() == expected


def test_another_seed_generates_another_corpus(corpora):
    texts, others = ({example.text for example in corpora[seed]["train"]} for seed in (0, 7))
    assert len(texts & others) < 0.01 * len(texts)


def test_every_item_says_that_it_is_synthetic(corpus):
    ids = [example.id for example in everything(corpus)]
    assert ids == [f"synthetic-{i:06d}" for i in range(6000)]


def test_splits_have_their_sizes_and_share_no_text(corpus):
    assert {split: len(found) for split, found in corpus.items()} == SIZES
    texts = [" ".join(words(example.text)) for example in everything(corpus)]
    assert len(set(texts)) == len(texts) == 6000


def test_items_have_a_headline_and_thirty_to_eighty_words(corpus):
    for example in everything(corpus):
        headline, body = example.text.split("\n")
        assert 30 <= len(example.text.split()) <= 80
        assert headline[0].isupper()
        assert body[0].isupper() or body[0] in '"0123456789'
        assert body.endswith((".", '"'))


def test_no_template_leaves_a_trace_in_the_text(corpus):
    for example in everything(corpus):
        assert not re.search(r"[{}<>]|  |\b[Aa] [AEIOU]|\b(\w+) \1\b", example.text), example.text


def test_set_sizes_average_three_to_four_with_a_tail_to_ten(corpus):
    sizes = Counter(len(example.labels) for example in everything(corpus))
    assert 3 <= sum(n * count for n, count in sizes.items()) / 6000 <= 4
    assert max(sizes) == 10
    assert 0.005 <= sizes[0] / 6000 <= 0.02
    assert all(sizes[n] for n in range(2, 11))


def test_every_tag_occurs_in_train(corpus):
    tags = Counter(tag for example in corpus["train"] for tag in example.labels)
    assert set(tags) == set(TAGS)
    assert 55 <= len(TAGS) <= 70


def test_several_tags_are_rare_in_train(corpus):
    tags = Counter(tag for example in corpus["train"] for tag in example.labels)
    assert sum(5 <= count <= 35 for count in tags.values()) >= 5


def test_a_tag_implies_the_tags_above_it(corpus):
    for example in everything(corpus):
        for tag in example.labels:
            assert PARENTS[tag] is None or PARENTS[tag] in example.labels


def test_the_hierarchy_is_four_deep_and_without_cycles():
    def depth(tag):
        return 1 if PARENTS[tag] is None else 1 + depth(PARENTS[tag])

    assert max(map(depth, TAGS)) == 4


@pytest.mark.parametrize("split", EVALUATED)
def test_some_evaluated_sets_never_occur_in_train(corpus, split):
    seen = {example.labels for example in corpus["train"]}
    n_unseen = sum(example.labels not in seen for example in corpus[split])
    assert 0.05 <= n_unseen / len(corpus[split]) <= 0.15


def test_one_word_tells_siblings_apart(corpus):
    items = everything(corpus)
    differences = Counter()
    for one, other in pairwise(items):
        changed = set(zip(words(one.text), words(other.text), strict=False))
        changed = {(a, b) for a, b in changed if a != b}
        if len(words(one.text)) == len(words(other.text)) and len(changed) == 1:
            assert len(set(one.labels) - set(other.labels)) == 1
            assert len(set(other.labels) - set(one.labels)) == 1
            differences[frozenset(*changed)] += 1
    assert differences.total() >= 30
    assert frozenset({"harbour", "crown"}) in differences
    assert frozenset({"shares", "bonds"}) in differences


def test_features_are_on_half_of_the_items_and_not_all_true(corpus):
    featured = [example for example in everything(corpus) if example.features]
    assert 0.45 <= len(featured) / 6000 <= 0.55
    literal = [(w in e.labels) for e in featured for w in e.features if w in PARENTS]
    assert 0.5 < sum(literal) / len(literal) < 1
