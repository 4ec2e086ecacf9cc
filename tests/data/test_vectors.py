import gzip
import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

from setrnn.config import TextSettings, VectorSettings
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.data.ragged import Ragged
from setrnn.data.text.words import FEATURE_PREFIX
from setrnn.data.vectors import (
    NAME_WEIGHT,
    SOURCES,
    _count_pairs,
    vectors_file,
    weave,
    word_vectors,
)
from setrnn.errors import ConfigError, DataError, MissingExtraError

SMALL = VectorSettings(dimensions=8, epochs=1)

# Two topics that share no word; "cs.LG" is a label whose name says nothing, "zzz" one that
# stands on documents without words.
DOCUMENTS = [
    Example("1", "goal keeper striker goal", ("football", "sport"), ("keen fan",)),
    Example("2", "striker goal penalty keeper", ("football",), ("keen fan", "kk7")),
    Example("3", "aria soprano tenor aria", ("opera::house", "cs.LG"), ("kk7",)),
    Example("4", "tenor soprano aria 1984", ("opera::house", "cs.LG")),
    Example("5", "", ("zzz",)),
    Example("6", "goal aria penalty 1990", ()),
    Example("7", "", ()),
    Example("8", "the goal of the", ("football", "sport", "opera::house", "cs.LG", "zzz")),
]


def prepared_from(documents, folder, **text):
    streams = {"train": lambda: iter(documents), "test": lambda: iter(documents[:1])}
    settings = TextSettings(min_count=1, **text)
    return prepare(streams, folder / "prepared", "made-up", settings, {})


@pytest.fixture
def prepared(tmp_path):
    return prepared_from(DOCUMENTS, tmp_path)


def row_of(prepared, name):
    if name in prepared.labels.index:
        return prepared.encoder.n_tokens + prepared.labels.index[name]
    return prepared.encoder.tokens.index(name)


def settings_of(source, **more):
    return VectorSettings(source, **{"dimensions": 8, "epochs": 1, **more})


class TestKeeping:
    def test_the_second_call_only_reads_the_file(self, prepared, monkeypatch):
        first = word_vectors(prepared, SMALL)
        monkeypatch.setattr("setrnn.data.vectors.SOURCES", dict.fromkeys(SOURCES))
        assert np.array_equal(word_vectors(prepared, SMALL), first)
        assert list(prepared.folder.glob("*word_vectors*")) == [vectors_file(prepared, SMALL)]

    def test_the_lock_of_a_process_that_was_killed_after_writing_is_removed(self, prepared):
        word_vectors(prepared, SMALL)
        kept = vectors_file(prepared, SMALL)
        kept.with_name(f".{kept.name}.lock").write_text("1\n")
        word_vectors(prepared, SMALL)
        assert list(prepared.folder.glob("*word_vectors*")) == [kept]

    @pytest.mark.parametrize("is_cut", [True, False])
    def test_damage_is_refused_and_what_is_deleted_is_made_again(self, prepared, is_cut):
        whole = word_vectors(prepared, SMALL)
        kept = vectors_file(prepared, SMALL)
        if is_cut:
            kept.write_bytes(kept.read_bytes()[:-4])
        else:
            np.savez(kept, vectors=np.zeros((2, 8), dtype=np.float32))
        with pytest.raises(DataError, match=r"word_vectors-\w+\.npz .*Delete it"):
            word_vectors(prepared, SMALL)
        kept.unlink()
        assert np.array_equal(word_vectors(prepared, SMALL), whole)


@pytest.mark.parametrize("source", SOURCES)
class TestLearning:
    def test_there_is_a_finite_row_for_each_token_and_label_and_padding_is_zero(
        self, prepared, source
    ):
        vectors = word_vectors(prepared, settings_of(source))
        assert vectors.dtype == np.float32
        assert vectors.shape == (prepared.encoder.n_tokens + len(prepared.labels), 8)
        assert np.isfinite(vectors).all()
        assert (np.abs(vectors).sum(1) > 0).tolist() == [False] + [True] * (len(vectors) - 1)

    def test_a_seed_repeats_to_the_byte_in_another_process(self, prepared, source):
        vectors = word_vectors(prepared, settings_of(source))
        vectors_file(prepared, settings_of(source)).unlink()
        script = (
            "import sys; from pathlib import Path\n"
            "from setrnn.config import VectorSettings\n"
            "from setrnn.data.prepared import Prepared\n"
            "from setrnn.data.vectors import word_vectors\n"
            "settings = VectorSettings(sys.argv[2], dimensions=8, epochs=1)\n"
            "word_vectors(Prepared(Path(sys.argv[1])), settings)"
        )
        subprocess.run(
            [sys.executable, "-c", script, str(prepared.folder), source],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": "1"},
        )
        assert np.array_equal(word_vectors(prepared, settings_of(source)), vectors)

    @pytest.mark.parametrize(
        "documents",
        [[Example("1", ""), Example("2", "the")], [Example("1", "", ("a", "b"))] * 3],
        ids=["nothing", "labels alone"],
    )
    def test_documents_without_words_are_no_trouble(self, tmp_path, source, documents):
        prepared = prepared_from(documents, tmp_path)
        vectors = word_vectors(prepared, settings_of(source))
        assert vectors.shape == (prepared.encoder.n_tokens + len(prepared.labels), 8)


def counts_of(prepared, window):
    return _count_pairs(prepared, window).toarray()


class TestPairs:
    def test_chunks_of_documents_change_nothing(self, prepared, monkeypatch):
        whole = counts_of(prepared, 5)
        monkeypatch.setattr("setrnn.data.vectors.DOCUMENTS_AT_ONCE", 3)
        assert np.allclose(counts_of(prepared, 5), whole)

    def test_the_weight_of_two_words_falls_with_their_distance(self, tmp_path):
        documents = [Example("1", "red blue green blue", ("a", "b")), Example("2", "red white")]
        prepared = prepared_from(documents, tmp_path)
        expected = np.zeros((prepared.encoder.n_tokens + 2,) * 2)
        row = {name: row_of(prepared, name) for name in ("red", "blue", "green", "white", "a", "b")}
        for example in documents:
            words = example.text.split()
            for i, j in combinations(range(len(words)), 2):
                expected[row[words[i]], row[words[j]]] += max(1 - (j - i - 1) / 3, 0)
            for label in example.labels:
                for word in words:
                    expected[row[label], row[word]] += 1 / 2
        expected[row["a"], row["b"]] = 1 / 4
        counts = counts_of(prepared, 3)
        assert np.allclose(counts, expected + expected.T)

    def test_the_rarest_pairs_are_dropped_if_there_are_too_many(self, tmp_path, monkeypatch):
        texts = ["storm warning"] * 9 + ["quiet sea"]
        prepared = prepared_from([Example(str(i), each) for i, each in enumerate(texts)], tmp_path)
        monkeypatch.setattr("setrnn.data.vectors.MAX_PAIRS", 1)
        counts = counts_of(prepared, 5)
        assert np.count_nonzero(counts) == 2
        assert counts[row_of(prepared, "storm"), row_of(prepared, "warning")] == 9

    def test_a_label_is_as_long_as_any_other_however_frequent_it_is(self, prepared):
        vectors = word_vectors(prepared, SMALL)
        lengths = np.linalg.norm(vectors[prepared.encoder.n_tokens :], axis=1)
        np.testing.assert_allclose(lengths, lengths[0], rtol=1e-4)
        assert 0.3 < lengths[0] / np.linalg.norm(vectors, axis=1).mean() < 3


def test_without_gensim_the_extra_is_named(prepared, monkeypatch):
    settings = settings_of("word2vec")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "gensim.models", None)
        with pytest.raises(MissingExtraError, match=r"gensim.*setrnn\[word2vec\]"):
            word_vectors(prepared, settings)
    made = word_vectors(prepared, settings)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert np.array_equal(word_vectors(prepared, settings), made), "what is kept needs none"


@pytest.mark.parametrize("seed", range(5))
def test_words_keep_their_order_and_tags_take_turns_behind_them(seed):
    random = np.random.default_rng(seed)
    words = [list(range(n)) for n in random.integers(0, 9, 40)]
    tags = [list(range(100, 100 + n)) for n in random.integers(0, 9, 40)]
    rows = weave(Ragged.from_lists(words), Ragged.from_lists(tags), random)
    for own_words, own_tags, row in zip(words, tags, rows, strict=True):
        sentence = row.tolist()
        assert [each for each in sentence if each < 100] == own_words
        found = [each for each in sentence if each >= 100]
        assert set(found) == set(own_tags), "every tag occurs"
        assert len(found) == (max(len(own_words), len(own_tags)) if own_tags else 0)
        counts = [found.count(tag) for tag in own_tags]
        assert not own_tags or max(counts) - min(counts) <= 1
        for place, each in enumerate(sentence):
            assert not own_tags or each >= 100 or sentence[place + 1] >= 100


@pytest.fixture(scope="module", params=SOURCES)
def newsroom(request, tmp_path_factory):
    from setrnn.data.newsroom import examples

    folder = tmp_path_factory.mktemp("newsroom") / "prepared"
    streams = {"train": lambda: examples("train")}
    prepared = prepare(streams, folder, "newsroom", TextSettings(), {})
    vectors = word_vectors(prepared, VectorSettings(request.param, dimensions=40))
    return prepared, vectors / np.maximum(np.linalg.norm(vectors, axis=1)[:, None], 1e-9)


@pytest.mark.slow
class TestNewsroom:
    """Labels and features lie among the words of their topic."""

    @pytest.mark.parametrize(
        ("label", "near", "far"),
        [
            ("football", "goalkeeper striker defender", "soprano songs fever"),
            ("vaccine", "fever trial", "goalkeeper soprano coalition"),
        ],
    )
    def test_a_label_is_nearer_to_its_words_than_to_others(self, newsroom, label, near, far):
        prepared, unit = newsroom
        query = unit[row_of(prepared, label)]
        nearest = [unit[row_of(prepared, word)] @ query for word in near.split()]
        farthest = [unit[row_of(prepared, word)] @ query for word in far.split()]
        assert min(nearest) > max(farthest)


def text_file(words, header=None, separator=" ", end="\n"):
    lines = [] if header is None else [header]
    lines += [separator.join([word, *map(repr, vector)]) for word, vector in words]
    return end.join([*lines, ""]).encode()


WORDS = [
    ("goal", [1.0, 0.5, -2.0]),
    ("unrelated", [9.0, 9.0, 9.0]),
    ("soprano", [-1.0, 0.25, 3.0]),
    ("aria", [-3.0, 0.75, 1.0]),
    ("Tenor", [0.5, 0.5, 0.5]),
    ("keen", [4.0, 0.0, 0.0]),
]
FORMATS = {
    "glove.txt": text_file(WORDS),
    "word2vec.vec": text_file(WORDS, header=f"{len(WORDS)} 3"),
    "trailing.txt": text_file(WORDS, header=f"{len(WORDS)} 3", end=" \n"),
    "tabs.txt": text_file(WORDS, separator="\t"),
    "windows.txt": text_file(WORDS, end="\r\n"),
    "glove.txt.gz": gzip.compress(text_file(WORDS), mtime=0),
    "odd.txt": b"goal 1.0 .5 -2\n\xff\xfe 1 2 3\n. . 1 2 3\nat name@place.com 1 2 3\n\n"
    + text_file(WORDS),
}


def from_file(prepared, folder, content, name="vectors.txt", **more):
    file = folder / name
    file.write_bytes(content)
    settings = VectorSettings(**{"source": str(file), "dimensions": 3, **more})
    return word_vectors(prepared, settings)


class TestFiles:
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_format_gives_the_vectors_it_holds(self, prepared, tmp_path, name):
        vectors = from_file(prepared, tmp_path, FORMATS[name], name)
        for word, vector in WORDS[:1] + WORDS[2:4]:
            assert vectors[row_of(prepared, word)].tolist() == vector
        assert np.isfinite(vectors).all()
        assert not vectors[0].any()
        assert np.array_equal(vectors, from_file(prepared, tmp_path, FORMATS["glove.txt"]))

    def test_a_word_has_the_first_of_its_vectors(self, prepared, tmp_path):
        words = [
            ("Goal", [1, 1, 1]),
            ("goal", [3, 3, 3]),
            ("tenor", [5, 5, 5]),
            ("TENOR", [6, 6, 6]),
        ]
        vectors = from_file(prepared, tmp_path, text_file(words))
        assert vectors[row_of(prepared, "goal")].tolist() == [1, 1, 1]
        assert vectors[row_of(prepared, "tenor")].tolist() == [5, 5, 5]

    def test_the_unknown_word_and_numbers_are_the_mean_of_all_words(self, prepared, tmp_path):
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        ours = [np.array(dict(WORDS)[word]) for word in ("goal", "soprano", "aria", "Tenor")]
        assert vectors[1] == pytest.approx(np.mean(ours, axis=0))
        assert np.array_equal(vectors[1], vectors[2])
        unknown = text_file([*WORDS, ("<unk>", [7, 7, 7])])
        assert from_file(prepared, tmp_path, unknown, "unk.txt")[1].tolist() == [7, 7, 7]

    def test_a_label_goes_by_its_documents_and_its_name(self, tmp_path):
        documents = [
            Example("1", "goal aria aria", ("x::goal", "zz"), ("keen fan",)),
            Example("2", "goal keen", ("x::goal",)),
            Example("3", "", ("aria",)),
        ]
        prepared = prepared_from(documents, tmp_path)
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        goal, aria, keen = (np.array(dict(WORDS)[word]) for word in ("goal", "aria", "keen"))
        mean = (goal + aria + keen) / 3
        # How often with the label, squared, over how often in all.
        first = (goal * 1 / 2 + aria * 4 / 2) / 2.5
        both = (goal * 4 / 2 + aria * 4 / 2 + keen) / 5
        total = 1 + NAME_WEIGHT
        expected = {
            "zz": first,
            "aria": aria,
            FEATURE_PREFIX + "keen fan": (first + NAME_WEIGHT * keen) / total,
            "x::goal": (2 * both + NAME_WEIGHT * goal) / (total + 1),
        }
        for name, vector in expected.items():
            assert vectors[row_of(prepared, name)] == pytest.approx(vector - mean)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("short.txt", b"goal 1 2 3\naria 1 2\n", r"short.txt line 2: 3 numbers .* found 2"),
            ("text.txt", b"2 3\ngoal 1 x 3\naria 1 2 3\n", r"text.txt line 2: .*'?x'?"),
            ("nan.txt", b"goal 1 2 3\naria 1 nan 3\n", r"nan.txt line 2: .*finite"),
            ("other.txt", b"ballon 1 2 3\n", r"other.txt and made-up have no word in common"),
            ("empty.txt", b"", r"empty.txt is cut short"),
            ("header.txt", b"5 3\ngoal 1 2 3\n", r"header.txt is cut short: 1 .* instead of 5"),
            ("four.txt", b"goal 1 2 3 4\n", r"4 dimensions.*Set vectors.dimensions=4"),
            ("four.vec", b"1 4\ngoal 1 2 3 4\n", r"4 dimensions.*Set vectors.dimensions=4"),
        ],
    )
    def test_a_bad_file_is_named_with_the_place(self, prepared, tmp_path, name, content, message):
        with pytest.raises((DataError, ConfigError), match=message):
            from_file(prepared, tmp_path, content, name)
        assert not list(prepared.folder.glob("word_vectors*"))

    def test_a_file_that_changes_is_read_again(self, prepared, tmp_path, notes):
        from_file(prepared, tmp_path, FORMATS["glove.txt"])
        assert "words found in vectors.txt" in notes.texts[-1]
        other = from_file(prepared, tmp_path, text_file([("goal", [8, 8, 8])]))
        assert other[row_of(prepared, "goal")].tolist() == [8, 8, 8]

    def test_a_missing_file_is_named(self, prepared):
        with pytest.raises(ConfigError, match=r"vectors.source is 'none'"):
            word_vectors(prepared, VectorSettings(source="none"))
        with pytest.raises(DataError, match=r"There is no file nowhere.txt"):
            word_vectors(prepared, VectorSettings(source="nowhere.txt"))
