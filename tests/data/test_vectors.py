import gzip
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from setrnn.config import TextSettings, VectorSettings
from setrnn.data.example import Example
from setrnn.data.folders import locked
from setrnn.data.kept_vectors import find_vectors
from setrnn.data.prepared import Prepared
from setrnn.data.preparing import prepare
from setrnn.data.ragged import Ragged
from setrnn.data.seals import seal_file
from setrnn.data.tokenizing import FEATURE_PREFIX
from setrnn.data.vectors import NAME_WEIGHT, weave, word_vectors
from setrnn.errors import ConfigError, DataError

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


def kept_files(prepared):
    return sorted(prepared.folder.glob("word_vectors*.npy"))


class TestKeeping:
    def test_there_is_a_finite_row_for_each_token_and_label_and_padding_is_zero(self, prepared):
        vectors = word_vectors(prepared, SMALL)
        assert isinstance(vectors, np.memmap)
        assert vectors.dtype == np.float32
        assert vectors.shape == (prepared.encoder.n_tokens + len(prepared.labels), 8)
        assert np.isfinite(vectors).all()
        assert (np.abs(vectors).sum(1) > 0).tolist() == [False] + [True] * (len(vectors) - 1)

    def test_the_second_call_only_maps_the_file(self, prepared, monkeypatch):
        first = word_vectors(prepared, SMALL)
        monkeypatch.setattr("setrnn.data.vectors._learn", None)
        assert np.array_equal(word_vectors(prepared, SMALL), first)

    def test_only_the_finished_file_is_left(self, prepared):
        word_vectors(prepared, SMALL)
        found = [file.suffix for file in prepared.folder.glob("*word_vectors*")]
        assert sorted(found) == [".json", ".npy"]

    def test_other_settings_are_kept_in_another_file(self, prepared):
        word_vectors(prepared, SMALL)
        word_vectors(prepared, VectorSettings(dimensions=8, epochs=1, seed=1))
        assert len(kept_files(prepared)) == 2

    def test_a_failure_leaves_nothing(self, prepared):
        def interrupt(message, share):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            word_vectors(prepared, SMALL, interrupt)
        assert list(prepared.folder.glob("*word_vectors*")) == []

    @pytest.mark.parametrize("change", ["cut short", "bit", "shape", "description"])
    def test_damage_is_refused_and_what_is_deleted_is_made_again(self, prepared, change):
        whole = np.array(word_vectors(prepared, SMALL))
        [kept] = kept_files(prepared)
        if change == "cut short":
            kept.write_bytes(kept.read_bytes()[:-4])
        elif change == "shape":
            np.save(kept, np.zeros((2, 8), dtype=np.float32))
        else:
            file = kept if change == "bit" else kept.with_suffix(".json")
            content = bytearray(file.read_bytes())
            content[len(content) * 2 // 3] ^= 1
            file.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged.*Delete .*word_vectors-\w+\.npy"):
            word_vectors(prepared, SMALL)
        kept.unlink()
        assert np.array_equal(word_vectors(prepared, SMALL), whole)

    def test_numbers_that_are_not_finite_are_refused(self, prepared):
        word_vectors(prepared, SMALL)
        [kept] = kept_files(prepared)
        vectors = np.load(kept)
        vectors[3, 3] = np.nan
        store = find_vectors(prepared.folder, SMALL, lambda *_: None)
        with pytest.raises(DataError, match="not finite"):
            store.save(vectors)
        np.save(kept, vectors)
        store._describe(seal_file(kept))
        with pytest.raises(DataError, match=r"finite.*Delete"):
            word_vectors(prepared, SMALL)

    def test_vectors_without_their_description_are_made_again(self, prepared):
        whole = np.array(word_vectors(prepared, SMALL))
        [kept] = kept_files(prepared)
        kept.write_bytes(b"killed before the description was written")
        kept.with_suffix(".json").unlink()
        assert np.array_equal(word_vectors(prepared, SMALL), whole)

    def test_a_process_that_finds_others_at_work_takes_what_they_made(self, prepared, monkeypatch):
        made = np.array(word_vectors(prepared, SMALL))
        [kept] = kept_files(prepared)
        description = kept.with_suffix(".json")
        content = description.read_bytes()
        description.unlink()
        monkeypatch.setattr("setrnn.data.vectors._learn", None)
        said = []

        def finish(message, share):
            """Be the other process, which ends now."""
            said.append(message)
            description.write_bytes(content)
            other.close()

        with ExitStack() as other:
            other.enter_context(locked(kept))
            assert np.array_equal(word_vectors(prepared, SMALL, finish), made)
        assert [f"process {os.getpid()}" in message for message in said] == [True]

    def test_none_makes_no_vectors(self, prepared):
        with pytest.raises(ConfigError, match=r"vectors.source is 'none'"):
            word_vectors(prepared, VectorSettings(source="none"))


class TestWeaving:
    @pytest.fixture(params=range(5))
    def woven(self, request):
        random = np.random.default_rng(request.param)
        words = [list(range(n)) for n in random.integers(0, 9, 40)]
        tags = [list(range(100, 100 + n)) for n in random.integers(0, 9, 40)]
        rows = weave(Ragged.from_lists(words), Ragged.from_lists(tags), random)
        return words, tags, [row.tolist() for row in rows]

    def test_words_keep_their_order_and_every_tag_occurs(self, woven):
        for words, tags, sentence in zip(*woven, strict=True):
            assert [each for each in sentence if each < 100] == words
            assert {each for each in sentence if each >= 100} == set(tags)

    def test_tags_take_turns(self, woven):
        for words, tags, sentence in zip(*woven, strict=True):
            found = [each for each in sentence if each >= 100]
            assert len(found) == (max(len(words), len(tags)) if tags else 0)
            counts = [found.count(tag) for tag in tags]
            assert not tags or max(counts) - min(counts) <= 1

    def test_every_word_stands_beside_a_tag(self, woven):
        for words, tags, sentence in zip(*woven, strict=True):
            if tags:
                places = [place for place, each in enumerate(sentence) if each < 100]
                assert all(sentence[place + 1] >= 100 for place in places)
                assert len(places) == len(words)

    def test_the_order_of_tags_varies(self):
        tags = Ragged.from_lists([[100, 101, 102]] * 200)
        words = Ragged.from_lists([[]] * 200)
        rows = weave(words, tags, np.random.default_rng(0))
        assert len({tuple(row.tolist()) for row in rows}) == 6


class TestLearning:
    def test_a_seed_repeats_to_the_byte_in_another_process(self, prepared):
        word_vectors(prepared, SMALL)
        [kept] = kept_files(prepared)
        first = kept.read_bytes()
        kept.unlink()
        script = (
            "import sys; from pathlib import Path\n"
            "from setrnn.config import VectorSettings\n"
            "from setrnn.data.prepared import Prepared\n"
            "from setrnn.data.vectors import word_vectors\n"
            "word_vectors(Prepared(Path(sys.argv[1])), VectorSettings(dimensions=8, epochs=1))"
        )
        subprocess.run(
            [sys.executable, "-c", script, str(prepared.folder)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": "1"},
        )
        assert kept.read_bytes() == first

    def test_another_seed_gives_other_vectors(self, prepared):
        other = VectorSettings(dimensions=8, epochs=1, seed=1)
        assert not np.allclose(word_vectors(prepared, SMALL), word_vectors(prepared, other))

    def test_the_progress_ends_at_one(self, prepared):
        said = []
        word_vectors(
            prepared, VectorSettings(dimensions=8, epochs=3), lambda *each: said.append(each)
        )
        assert said[-1] == ("word2vec: 3 of 3 epochs", 1.0)
        assert [share for _, share in said] == sorted(share for _, share in said)

    def test_documents_without_words_or_labels_are_no_trouble(self, tmp_path):
        prepared = prepared_from([Example("1", ""), Example("2", "the")], tmp_path)
        vectors = word_vectors(prepared, SMALL)
        assert vectors.shape == (3, 8)

    def test_labels_alone_are_learned(self, tmp_path):
        prepared = prepared_from([Example("1", "", ("a", "b"))] * 3, tmp_path)
        assert word_vectors(prepared, SMALL).shape == (5, 8)

    def test_chunks_of_documents_change_nothing(self, prepared, monkeypatch):
        whole = word_vectors(prepared, SMALL)
        kept_files(prepared)[0].unlink()
        monkeypatch.setattr("setrnn.data.vectors.DOCUMENTS_AT_ONCE", 3)
        assert np.array_equal(word_vectors(prepared, SMALL), whole)

    def test_without_gensim_the_way_out_is_named(self, prepared, monkeypatch):
        monkeypatch.setitem(sys.modules, "gensim.models", None)
        with pytest.raises(ConfigError, match=r"needs gensim.*vectors.source=none"):
            word_vectors(prepared, SMALL)

    def test_kept_vectors_need_no_gensim(self, prepared, monkeypatch):
        word_vectors(prepared, SMALL)
        monkeypatch.setitem(sys.modules, "gensim.models", None)
        assert len(word_vectors(prepared, SMALL))


@pytest.fixture(scope="module")
def newsroom(tmp_path_factory):
    from setrnn.data.newsroom import examples

    folder = tmp_path_factory.mktemp("newsroom") / "prepared"
    streams = {"train": lambda: examples("train")}
    prepared = prepare(streams, folder, "newsroom", TextSettings(), {})
    vectors = word_vectors(prepared, VectorSettings(dimensions=40, epochs=5))
    return prepared, vectors / np.maximum(np.linalg.norm(vectors, axis=1)[:, None], 1e-9)


@pytest.mark.slow
class TestNewsroom:
    """Labels and features lie among the words of their topic."""

    @pytest.mark.parametrize(
        ("label", "near", "far"),
        [
            ("football", "goalkeeper striker defender", "soprano songs fever"),
            ("opera", "soprano songs", "goalkeeper striker fever"),
            ("elections", "turnout coalition polls", "soprano goalkeeper fever"),
            ("vaccine", "fever trial", "goalkeeper soprano coalition"),
        ],
    )
    def test_a_label_is_nearer_to_its_words_than_to_others(self, newsroom, label, near, far):
        prepared, unit = newsroom
        query = unit[row_of(prepared, label)]
        nearest = [unit[row_of(prepared, word)] @ query for word in near.split()]
        farthest = [unit[row_of(prepared, word)] @ query for word in far.split()]
        assert min(nearest) > max(farthest)

    @pytest.mark.parametrize(
        ("label", "company"),
        [
            ("crown-cup", {"football", "harbour-cup", "league", "transfers", "sport"}),
            ("opera", {"music", "culture"}),
            ("copper", {"commodities", "markets", "oil", "wheat"}),
        ],
    )
    def test_labels_that_go_together_are_neighbours(self, newsroom, label, company):
        prepared, unit = newsroom
        labels = unit[prepared.encoder.n_tokens :]
        order = np.argsort(-(labels @ unit[row_of(prepared, label)]))
        assert prepared.labels.names[order[1]] in company

    def test_a_reader_word_is_near_its_label(self, newsroom):
        prepared, unit = newsroom
        footy = unit[row_of(prepared, FEATURE_PREFIX + "footy")]
        football, opera = (unit[row_of(prepared, name)] for name in ("football", "opera"))
        assert footy @ football > footy @ opera


def text_file(words, header=None, separator=" ", end="\n"):
    lines = [] if header is None else [header]
    lines += [separator.join([word, *map(repr, vector)]) for word, vector in words]
    return end.join([*lines, ""]).encode()


def binary_file(words, newline=b"\n"):
    header = f"{len(words)} {len(words[0][1])}\n".encode()
    rows = [
        word.encode() + b" " + np.array(vector, dtype="<f4").tobytes() + newline
        for word, vector in words
    ]
    return header + b"".join(rows)


WORDS = [
    ("goal", [1.0, 0.5, -2.0]),
    ("unrelated", [9.0, 9.0, 9.0]),
    ("soprano", [-1.0, 0.25, 3.0]),
    ("aria", [-3.0, 0.75, 1.0]),
    ("Tenor", [0.5, 0.5, 0.5]),
    ("keen", [4.0, 0.0, 0.0]),
    ("football", [0.0, 5.0, 1.0]),
    ("house", [2.0, 2.0, 2.0]),
    ("opera", [4.0, 0.0, 0.0]),
    ("1", [1.0, 1.0, 0.0]),
    ("2", [0.0, 1.0, 1.0]),
]
FORMATS = {
    "glove.txt": text_file(WORDS),
    "word2vec.vec": text_file(WORDS, header=f"{len(WORDS)} 3"),
    "trailing.txt": text_file(WORDS, header=f"{len(WORDS)} 3", end=" \n"),
    "tabs.txt": text_file(WORDS, separator="\t"),
    "windows.txt": text_file(WORDS, end="\r\n"),
    "vectors.bin": binary_file(WORDS),
    "dense.bin": binary_file(WORDS, newline=b""),
    "glove.txt.gz": gzip.compress(text_file(WORDS)),
    "vectors.bin.gz": gzip.compress(binary_file(WORDS)),
}


def from_file(prepared, folder, content, name="vectors.txt", on_progress=lambda *_: None, **more):
    file = folder / name
    file.write_bytes(content)
    settings = VectorSettings(**{"source": str(file), "dimensions": 3, **more})
    return word_vectors(prepared, settings, on_progress)


class TestFiles:
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_format_gives_the_vectors_it_holds(self, prepared, tmp_path, name):
        vectors = from_file(prepared, tmp_path, FORMATS[name], name)
        for word, vector in WORDS[:1] + WORDS[2:4]:
            assert vectors[row_of(prepared, word)].tolist() == vector
        assert np.isfinite(vectors).all()
        assert not vectors[0].any()
        assert np.array_equal(vectors, from_file(prepared, tmp_path, FORMATS["glove.txt"]))

    def test_small_reads_change_nothing(self, prepared, tmp_path, monkeypatch):
        monkeypatch.setattr("setrnn.data.vector_files.BYTES_AT_ONCE", 7)
        vectors = from_file(prepared, tmp_path, FORMATS["vectors.bin"], "vectors.bin")
        assert vectors[row_of(prepared, "aria")].tolist() == WORDS[3][1]

    def test_a_capitalised_word_serves_until_the_plain_one_comes(self, prepared, tmp_path):
        words = [("Goal", [1, 1, 1]), ("GOAL", [2, 2, 2]), ("goal", [3, 3, 3]), ("goal", [4, 4, 4])]
        words += [("Tenor", [5, 5, 5]), ("TENOR", [6, 6, 6])]
        vectors = from_file(prepared, tmp_path, text_file(words))
        assert vectors[row_of(prepared, "goal")].tolist() == [3, 3, 3]
        assert vectors[row_of(prepared, "tenor")].tolist() == [5, 5, 5]

    def test_a_label_without_words_in_its_documents_goes_by_its_name(self, tmp_path):
        documents = [*DOCUMENTS, Example("9", "", ("house",))]
        prepared = prepared_from(documents, tmp_path)
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        assert vectors[row_of(prepared, "house")] == pytest.approx(np.array([2, 2, 2]) - vectors[1])

    def test_a_label_goes_by_its_documents_and_its_name(self, prepared, tmp_path):
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        # How often with the label, squared, over how often in all.
        weights = {"goal": 1 / 5, "aria": 9 / 4, "soprano": 4 / 2, "tenor": 4 / 2}
        by_words = sum(weights[word] * vectors[row_of(prepared, word)] for word in weights)
        documents = by_words / sum(weights.values())
        assert vectors[row_of(prepared, "cs.LG")] == pytest.approx(documents - vectors[1])
        name = np.array([3, 1, 1])
        both = (3 * documents + NAME_WEIGHT * name) / (3 + NAME_WEIGHT)
        assert vectors[row_of(prepared, "opera::house")] == pytest.approx(both - vectors[1])

    def test_a_word_of_many_names_weighs_little(self, tmp_path):
        labels = ("opera::house", "opera::goal", "opera::aria", "opera::keen")
        prepared = prepared_from([*DOCUMENTS[:2], Example("3", "", labels)], tmp_path)
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        mean = np.array([2.0, 2, 2]) * 0.8 + np.array([4.0, 0, 0]) * 0.2
        assert vectors[row_of(prepared, "opera::house")] == pytest.approx(mean - vectors[1])

    def test_a_feature_is_composed_as_a_label_is(self, prepared, tmp_path):
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        goal = vectors[row_of(prepared, "goal")]
        expected = (2 * goal + NAME_WEIGHT * np.array([4, 0, 0])) / (2 + NAME_WEIGHT) - vectors[1]
        assert vectors[row_of(prepared, FEATURE_PREFIX + "keen fan")] == pytest.approx(expected)

    def test_chunks_of_documents_add_up(self, prepared, tmp_path, monkeypatch):
        whole = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        monkeypatch.setattr("setrnn.data.vectors.DOCUMENTS_AT_ONCE", 2)
        assert np.allclose(from_file(prepared, tmp_path, FORMATS["glove.txt"], "other.txt"), whole)

    def test_numbers_are_the_mean_of_the_digits_and_the_unknown_word_of_all(
        self, prepared, tmp_path
    ):
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        assert vectors[2].tolist() == [0.5, 1, 0.5]
        ours = [np.array(dict(WORDS)[word]) for word in ("goal", "soprano", "aria", "Tenor")]
        assert vectors[1] == pytest.approx(np.mean(ours, axis=0))
        unknown = text_file([*WORDS, ("<unk>", [7, 7, 7])])
        assert from_file(prepared, tmp_path, unknown, "unk.txt")[1].tolist() == [7, 7, 7]

    def test_missing_words_are_drawn_from_the_distribution_of_the_file(self, tmp_path):
        random = np.random.default_rng(0)
        words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(600)]
        prepared = prepared_from([Example("1", " ".join(words), ("a",))], tmp_path, max_words=600)
        rows = random.normal([5, 0, -1], [0.1, 1, 2], (300, 3)).round(4).tolist()
        content = text_file(list(zip(words[:300], rows, strict=True)))
        vectors = from_file(prepared, tmp_path, content)
        missing = vectors[[row_of(prepared, word) for word in words[300:]]]
        assert missing.mean(0) == pytest.approx([5, 0, -1], abs=0.4)
        assert missing.std(0) == pytest.approx([0.1, 1, 2], rel=0.2)

    def test_the_number_of_words_found_is_reported(self, prepared, tmp_path):
        said = []
        from_file(prepared, tmp_path, FORMATS["glove.txt"], on_progress=lambda *x: said.append(x))
        n_words = prepared.encoder.tokens.index(FEATURE_PREFIX + "keen fan") - 3
        assert said[-1] == (f"4 of {n_words} words found in vectors.txt", 1.0)

    @pytest.fixture
    def two_of_a_name(self, tmp_path, monkeypatch):
        """Two files of one name in two folders; the second is older than all that is made."""
        contents = {"a": FORMATS["glove.txt"], "b": text_file([("goal", [8, 8, 8])])}
        for name, content in contents.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "vec.txt").write_bytes(content)
        os.utime(tmp_path / "b" / "vec.txt", (0, 0))
        return lambda name: monkeypatch.chdir(tmp_path / name)

    def test_files_of_one_name_are_told_apart_by_their_content(self, prepared, two_of_a_name):
        settings = VectorSettings(source="vec.txt", dimensions=3)
        for folder, first in (("a", 1), ("b", 8), ("a", 1)):
            two_of_a_name(folder)
            assert word_vectors(prepared, settings)[row_of(prepared, "goal")][0] == first
        assert len(kept_files(prepared)) == 2

    def test_a_lost_file_is_not_missed(self, prepared, tmp_path, two_of_a_name):
        settings = VectorSettings(source="vec.txt", dimensions=3)
        two_of_a_name("a")
        word_vectors(prepared, settings)
        Path("vec.txt").write_bytes(text_file([("goal", [5, 5, 5])]))
        word_vectors(prepared, settings)
        carried = Prepared(shutil.copytree(prepared.folder, tmp_path / "elsewhere"))
        Path("vec.txt").unlink()
        said = []
        found = word_vectors(carried, settings, lambda message, _: said.append(message))
        assert found[row_of(prepared, "goal")][0] == 5, "the last content of the file"
        assert "there is no file vec.txt" in said[0]
        two_of_a_name("b")
        word_vectors(prepared, settings)
        Path("vec.txt").unlink()
        with pytest.raises(DataError, match=r"no file vec.txt.* different files"):
            word_vectors(prepared, settings)

    def test_a_file_that_looks_the_same_is_not_hashed_again(self, prepared, tmp_path, monkeypatch):
        """Not even under another name, which is then known too."""
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"])
        file, link = tmp_path / "vectors.txt", tmp_path / "link.txt"
        link.symlink_to(file)
        monkeypatch.setattr("setrnn.data.kept_vectors.file_hash", None)
        settings = VectorSettings(source=str(link), dimensions=3)
        assert np.array_equal(word_vectors(prepared, settings), vectors)
        file.unlink()
        assert np.array_equal(word_vectors(prepared, settings), vectors)
        assert len(kept_files(prepared)) == 1

    def test_a_file_that_is_written_while_it_is_read_is_refused(self, prepared, tmp_path):
        def rewrite(message, share):
            (tmp_path / "vectors.txt").write_bytes(FORMATS["glove.txt"] * 2)

        with pytest.raises(DataError, match=r"vectors.txt was changed while"):
            from_file(prepared, tmp_path, FORMATS["glove.txt"], on_progress=rewrite)
        assert kept_files(prepared) == []

    def test_a_folder_that_cannot_be_written_serves_the_same_content_under_another_name(
        self, prepared, tmp_path, monkeypatch
    ):
        vectors = from_file(prepared, tmp_path, FORMATS["glove.txt"], "a.txt")

        def refuse(*_):
            raise DataError("read-only")

        monkeypatch.setattr("setrnn.data.kept_vectors.whole_file", refuse)
        again = from_file(prepared, tmp_path, FORMATS["glove.txt"], "b.txt")
        assert np.array_equal(again, vectors)

    def test_words_that_are_no_utf8_and_phrases_and_blank_lines_are_passed_over(
        self, prepared, tmp_path
    ):
        odd = b"\xff\xfe 1 2 3\n. . 1 2 3\nat name@place.com 1 2 3\n\n"
        content = text_file(WORDS[:1]) + odd + text_file(WORDS[2:])
        vectors = from_file(prepared, tmp_path, content)
        assert vectors[row_of(prepared, "aria")].tolist() == WORDS[3][1]

    def test_a_seed_repeats(self, prepared, tmp_path):
        first = from_file(prepared, tmp_path, FORMATS["glove.txt"], "a.txt")
        again = from_file(prepared, tmp_path, FORMATS["glove.txt"], "b.txt")
        other = from_file(prepared, tmp_path, FORMATS["glove.txt"], "c.txt", seed=1)
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("short.txt", b"goal 1 2 3\naria 1 2\n", r"short.txt line 2: 3 numbers .* found 2"),
            ("long.txt", b"goal 1 2 3\naria 1 2 3 4\n", r"long.txt line 2: 3 numbers .* found 4"),
            ("text.txt", b"2 3\ngoal 1 x 3\naria 1 2 3\n", r"text.txt line 2: .*'?x'?"),
            ("nan.txt", b"goal 1 2 3\naria 1 nan 3\n", r"nan.txt line 2: .*finite"),
            ("nan.bin", binary_file([("goal", [1, np.inf, 2])]), r"nan.bin vector 1: .*finite"),
            ("other.txt", b"ballon 1 2 3\n", r"other.txt and made-up have no word in common"),
            ("empty.txt", b"", r"empty.txt holds no vectors"),
            ("header.txt", b"5 3\ngoal 1 2 3\n", r"header.txt is cut short: 1 .* instead of 5"),
            ("cut.bin", FORMATS["vectors.bin"][:-9], r"cut.bin is cut short: 10 .* instead of 11"),
            ("cut.txt.gz", FORMATS["glove.txt.gz"][:-20], r"cut.txt.gz cannot be read: .*cut"),
            ("plain.txt.gz", FORMATS["glove.txt"], r"plain.txt.gz cannot be read"),
            ("fasttext.bin", b"\xba\x16\x4f\x2f" * 90, r"fasttext.bin is not a word2vec binary"),
        ],
    )
    def test_a_bad_file_is_named_with_the_place(self, prepared, tmp_path, name, content, message):
        with pytest.raises(DataError, match=message):
            from_file(prepared, tmp_path, content, name)
        assert kept_files(prepared) == []

    def test_a_missing_file_is_named(self, prepared):
        with pytest.raises(DataError, match=r"There is no file nowhere.txt"):
            word_vectors(prepared, VectorSettings(source="nowhere.txt"))

    @pytest.mark.parametrize("name", ["glove.txt", "word2vec.vec", "vectors.bin"])
    def test_the_dimensions_must_be_those_of_the_settings(self, prepared, tmp_path, name):
        with pytest.raises(ConfigError, match=r"3 dimensions.*Set vectors.dimensions=3"):
            from_file(prepared, tmp_path, FORMATS[name], name, dimensions=300)
