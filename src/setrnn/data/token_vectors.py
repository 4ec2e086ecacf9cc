"""Pretrained vectors of subword tokens, from a package or a folder.

The vector of a word is the mean of those of its tokens, so that rare words have one too. Nothing is
downloaded, and no code of a package runs: only its files are read.
"""

# D dimensions, P dimensions of a token

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.arrays import load_arrays
from setrnn.data.ragged import Ragged
from setrnn.data.subwords import check_tokenizer
from setrnn.data.tokenizing import read_tokenizer, run_tokenizer
from setrnn.data.vector_files import Mask, Vectors, missing_file
from setrnn.errors import DataError, MissingExtraError, ModelError, SetRNNError

EXTRA = "vectors"
# Packages that hold token vectors: their arrays and their tokenizer.
PACKAGES = {
    "wordllama": (
        "weights/l2_supercat_256.safetensors",
        "tokenizers/l2_supercat_tokenizer_config.json",
    )
}
# The same in a folder of model2vec, and in one of sentence-transformers.
LAYOUTS = (
    ("model.safetensors", "tokenizer.json"),
    ("0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"),
)
TABLES = ("embeddings", "embedding.weight")  # the names of the array of vectors
MOST_TOKENS = 512  # of a word


def list_files(source: str) -> list[Path]:
    """Return the files of a source of vectors: one of words, or arrays and a tokenizer.

    The list is empty if the file, the folder or the package does not exist.
    """
    if source in PACKAGES:
        return _list_package_files(source)
    path = Path(source).expanduser()
    if not path.is_dir():
        return [path] if path.exists() else []
    for names in LAYOUTS:
        files = [path / name for name in names]
        if all(file.is_file() for file in files):
            return files
    raise DataError(
        f"{path} is not a folder of token vectors: it lacks {' or '.join(LAYOUTS[0])}. Give a "
        "folder of model2vec, or a file of word vectors."
    )


def _list_package_files(package: str) -> list[Path]:
    found = find_spec(package)  # does not import the package
    places = list(found.submodule_search_locations or ()) if found else []
    files = [Path(places[0]) / name for name in PACKAGES[package]] if places else []
    if any(not file.is_file() for file in files):
        raise DataError(
            f"The package {package} in {places[0]} does not hold the vectors that were expected. "
            f"Install the version that fits: pip install 'setrnn[{EXTRA}]'"
        )
    return files


def missing_source(source: str) -> SetRNNError:
    """Return the error of a source of vectors that does not exist."""
    if source in PACKAGES:
        return MissingExtraError(source, EXTRA, f"Reading the vectors of '{source}'")
    return missing_file(Path(source).expanduser())


def read_token_vectors(
    arrays_file: Path, tokenizer_file: Path, rows: Mapping[str, int], dimensions: int
) -> tuple[Vectors, Mask]:
    """Return the vectors of the words in `rows`, and whether each row has one: (R, D), (R,).

    Vectors of fewer than D dimensions are filled up with zeros, which keeps their products. Of
    more, the D principal components are kept.
    """
    try:
        arrays = load_arrays(arrays_file)
        tokenizer = read_tokenizer(tokenizer_file)
        check_tokenizer(tokenizer, MOST_TOKENS, str(tokenizer_file))
    except (ModelError, OSError) as error:
        raise DataError(f"{arrays_file.parent} holds no token vectors that can be read.") from error
    table = next((arrays[name] for name in TABLES if name in arrays), None)
    if table is None or table.ndim != 2:
        raise DataError(
            f"{arrays_file} holds no array '{TABLES[0]}' of token vectors: a folder of model2vec "
            "was expected."
        )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "")
    words = list(rows)
    found = [each.ids for each in run_tokenizer(tokenizer, words, special=False)]
    tokens = Ragged.from_lists([[id_ for id_ in ids if id_ != unknown] for ids in found])
    weights = np.ones(max(tokenizer.get_vocab().values(), default=0) + 1, dtype=np.float32)
    places = np.arange(len(weights))
    try:
        if "weights" in arrays:
            weights = arrays["weights"].astype(np.float32)
        if "mapping" in arrays:
            places = arrays["mapping"]
        means = _count(tokens, len(weights)) @ (weights[:, None] * table[places])  # (words, P)
    except (IndexError, ValueError) as error:
        raise DataError(f"{arrays_file} and {tokenizer_file} do not belong together.") from error
    vectors = np.zeros((max(rows.values()) + 1, dimensions), dtype=np.float32)
    is_found = np.zeros(len(vectors), dtype=np.bool_)
    row = np.array([rows[word] for word in words])
    vectors[row] = _fit_width(means / np.maximum(tokens.lengths, 1)[:, None], dimensions)
    is_found[row] = tokens.lengths > 0
    return vectors, is_found


def _count(tokens: Ragged, n_tokens: int) -> scipy.sparse.csr_array:
    """Return the count of each token in each word; ValueError if there is no such token."""
    if tokens.values.max(initial=0) >= n_tokens:
        raise ValueError("a token has no vector")
    ones = np.ones(len(tokens.values), dtype=np.float32)
    return scipy.sparse.csr_array(
        (ones, tokens.values, tokens.offsets), shape=(len(tokens), n_tokens)
    )


def _fit_width(vectors: Vectors, dimensions: int) -> Vectors:
    """Change the number of dimensions: add zeros, or keep the principal components."""
    n_missing = dimensions - vectors.shape[1]
    if n_missing >= 0:
        return np.pad(vectors, ((0, 0), (0, n_missing)))
    _, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)  # ascending
    return vectors @ axes[:, : -dimensions - 1 : -1].astype(np.float32)
