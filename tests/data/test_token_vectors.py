"""Words get the mean of their tokens' vectors, from a folder or a package."""

import sys
import warnings

import numpy as np
import pytest
from safetensors.numpy import save_file

from setrnn.config import TextSettings, VectorSettings
from setrnn.data.arrays import load_arrays
from setrnn.data.example import Example
from setrnn.data.preparing import prepare
from setrnn.data.token_vectors import PACKAGES, list_files, read_token_vectors
from setrnn.data.vectors import word_vectors
from setrnn.errors import ConfigError, DataError, MissingExtraError
from tiny_transformers import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
TOKENIZER.no_padding()
N_TOKENS = TOKENIZER.get_vocab_size()
TABLE = np.random.default_rng(0).normal(size=(N_TOKENS, 6)).astype(np.float32)
WORDS = {"budget": 4, "clubs": 2, "rainmatch": 7, "ß": 5}
DOCUMENTS = [
    Example("1", "budget clubs budget", ("money", "sport"), ("fan",)),
    Example("2", "clubs rainmatch 1984", ("sport",)),
]


def tokens_of(word):
    unknown = TOKENIZER.token_to_id("[UNK]")
    return [id_ for id_ in TOKENIZER.encode(word, add_special_tokens=False).ids if id_ != unknown]


def write_table(folder, names=("model.safetensors", "tokenizer.json"), **arrays):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    save_file(arrays or {"embeddings": TABLE}, folder / names[0])
    tiny_tokenizer().save(str(folder / names[1]))  # it truncates and pads
    return folder


@pytest.fixture
def prepared(tmp_path):
    streams = {"train": lambda: iter(DOCUMENTS)}
    return prepare(streams, tmp_path / "prepared", "made-up", TextSettings(min_count=1), {})


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package that must not be imported."""
    folder = write_table(
        tmp_path / "site" / "wordllama", PACKAGES["wordllama"], **{"embedding.weight": TABLE}
    )
    (folder / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setattr("setrnn.data.token_vectors.find_spec", lambda name: None)


class TestReading:
    def test_the_vector_of_a_word_is_the_mean_of_those_of_its_tokens(self, tmp_path):
        vectors, is_found = read_token_vectors(*list_files(str(write_table(tmp_path))), WORDS, 6)
        assert np.flatnonzero(is_found).tolist() == [2, 4, 7]  # no token is known of "ß"
        assert len(tokens_of("rainmatch")) > 1
        for word in ("budget", "clubs", "rainmatch"):
            assert np.allclose(vectors[WORDS[word]], TABLE[tokens_of(word)].mean(0), atol=1e-6)
        assert not vectors[~is_found].any()

    def test_tokens_may_have_weights_and_share_vectors(self, tmp_path):
        weights = np.linspace(0.1, 2, N_TOKENS)
        mapping = np.arange(N_TOKENS) % 9
        folder = write_table(tmp_path, embeddings=TABLE[:9], weights=weights, mapping=mapping)
        vectors, _ = read_token_vectors(*list_files(str(folder)), WORDS, 6)
        ids = tokens_of("rainmatch")
        expected = (weights[ids, None] * TABLE[mapping[ids]]).mean(0)
        assert np.allclose(vectors[WORDS["rainmatch"]], expected, atol=1e-6)

    @pytest.mark.parametrize("dimensions", [6, 9, 3])
    def test_another_width_keeps_products_where_it_can(self, tmp_path, dimensions):
        flat = TABLE.copy()
        flat[:, 3:] = flat[:, :3] @ np.ones((3, 3), dtype=np.float32)  # three dimensions in six
        files = list_files(str(write_table(tmp_path, embeddings=flat)))
        native, _ = read_token_vectors(*files, WORDS, 6)
        vectors, _ = read_token_vectors(*files, WORDS, dimensions)
        assert vectors.shape == (8, dimensions)
        assert np.allclose(vectors @ vectors.T, native @ native.T, atol=1e-4)

    def test_a_folder_of_sentence_transformers_is_read_too(self, tmp_path):
        names = ("0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json")
        write_table(tmp_path, names, **{"embedding.weight": TABLE.astype(np.float16)})
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as an overflow in half precision
            vectors, _ = read_token_vectors(*list_files(str(tmp_path)), WORDS, 6)
        assert np.allclose(vectors[4], TABLE[tokens_of("budget")].mean(0), atol=1e-2)

    @pytest.mark.parametrize(
        ("arrays", "problem"),
        [
            ({"embeddings": TABLE[:20]}, "belong together"),
            ({"embeddings": TABLE, "weights": np.ones(3)}, "belong together"),
            ({"embeddings": TABLE[0]}, "no array"),
            ({"linear.weight": TABLE}, "no array"),
            ({"embeddings": TABLE * np.inf}, "cannot|can be read"),
        ],
    )
    def test_arrays_that_do_not_fit_are_refused(self, tmp_path, arrays, problem):
        files = list_files(str(write_table(tmp_path, **arrays)))
        with pytest.raises(DataError, match=problem), np.errstate(invalid="ignore"):
            read_token_vectors(*files, WORDS, 6)

    @pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
    def test_a_damaged_file_is_refused(self, tmp_path, name):
        write_table(tmp_path)
        (tmp_path / name).write_bytes(b"{")
        with pytest.raises(DataError, match="can be read"):
            read_token_vectors(*list_files(str(tmp_path)), WORDS, 6)

    def test_a_folder_without_tokens_is_refused(self, tmp_path):
        with pytest.raises(DataError, match=r"model\.safetensors"):
            list_files(str(tmp_path))


class TestPackage:
    def test_its_files_are_read_but_its_code_does_not_run(self, prepared, package):
        vectors = word_vectors(prepared, VectorSettings(source="wordllama", dimensions=8))
        row = prepared.encoder.tokens.index("budget")
        assert np.allclose(vectors[row, :6], TABLE[tokens_of("budget")].mean(0), atol=1e-6)
        assert "wordllama" not in sys.modules

    @pytest.mark.usefixtures("no_package")
    def test_without_it_the_extra_is_named(self, prepared):
        with pytest.raises(MissingExtraError, match=r"setrnn\[vectors\]"):
            word_vectors(prepared, VectorSettings(source="wordllama", dimensions=8))

    def test_a_package_with_other_files_is_refused(self, prepared, package):
        (package / PACKAGES["wordllama"][0]).unlink()
        with pytest.raises(DataError, match=r"wordllama.*setrnn\[vectors\]"):
            word_vectors(prepared, VectorSettings(source="wordllama", dimensions=8))

    def test_vectors_in_the_folder_need_no_package(self, prepared, package, monkeypatch):
        settings = VectorSettings(pretrained="wordllama", dimensions=8, epochs=1)
        made = word_vectors(prepared, settings)
        monkeypatch.setattr("setrnn.data.token_vectors.find_spec", lambda name: None)
        monkeypatch.setattr("setrnn.data.vectors._learn", None)
        assert np.array_equal(word_vectors(prepared, settings), made)

    def test_another_tokenizer_gives_other_vectors(self, prepared, tmp_path):
        folder = write_table(tmp_path / "table")
        settings = VectorSettings(source=str(folder), dimensions=6)
        word_vectors(prepared, settings)
        other = tiny_tokenizer()
        other.add_tokens(["budget clubs"])
        other.save(str(folder / "tokenizer.json"))
        save_file({"embeddings": np.vstack((TABLE, TABLE[:1]))}, folder / "model.safetensors")
        word_vectors(prepared, settings)
        assert len(list(prepared.folder.glob("word_vectors*.npy"))) == 2


class TestAdding:
    def test_pretrained_vectors_have_as_much_weight_as_learned_ones(self, prepared, tmp_path):
        folder = str(write_table(tmp_path / "table"))
        settings = VectorSettings(dimensions=8, epochs=1)
        learned = word_vectors(prepared, settings)
        pretrained = word_vectors(prepared, VectorSettings(source=folder, dimensions=8))
        both = VectorSettings(pretrained=folder, dimensions=8, epochs=1)
        added = word_vectors(prepared, both)
        parts = learned / learned.std() + pretrained / pretrained.std()
        assert np.allclose(added / learned.std(), parts / np.sqrt(2), atol=1e-4)
        assert added.dtype == np.float32
        assert not added[0].any()

    @pytest.mark.parametrize(
        "settings", [{"pretrained": "word2vec"}, {"source": "none", "pretrained": "wordllama"}]
    )
    def test_what_cannot_be_added_is_refused(self, settings):
        with pytest.raises(ConfigError, match=r"vectors\.pretrained"):
            VectorSettings(**settings)


def test_arrays_in_half_precision_are_checked_without_a_warning(tmp_path):
    save_file({"a": np.ones(3, dtype=np.float16)}, tmp_path / "a.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_arrays(tmp_path / "a.safetensors")["a"].dtype == np.float16
