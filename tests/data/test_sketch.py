import numpy as np
import pytest

from setrnn.data.sketch import (
    DocumentSketch,
    hash_texts,
    pack_sketch,
    unpack_sketch,
)

rng = np.random.default_rng(0)
DOCUMENTS = [" ".join(map(str, rng.integers(0, 50, rng.integers(1, 9)))) for _ in range(3_000)]
TRAINED, NEW = DOCUMENTS[:2_000], DOCUMENTS[1_500:]


def test_documents_are_recognised_one_by_one():
    sketch = DocumentSketch.of(hash_texts(["", *TRAINED]))
    texts = ["", " \n", *NEW]  # a text without words is never recognised
    hashes = hash_texts(texts)
    assert sketch.recognise(hashes).tolist() == [each in set(TRAINED) for each in texts]
    assert sketch.examines(hashes).tolist() == [False, False, *[True] * len(NEW)]


def test_a_small_sketch_estimates_the_share():
    sketch = DocumentSketch.of(hash_texts(TRAINED), most=400)
    assert len(sketch.hashes) == 400
    hashes = hash_texts(NEW)
    examined = hashes[sketch.examines(hashes)]
    share = sum(each in set(TRAINED) for each in NEW) / len(NEW)
    assert 150 < len(examined) < 600
    assert abs(sketch.recognise(examined).mean() - share) < 0.08


def test_a_union_knows_the_documents_of_all():
    parts = [DocumentSketch.of(hash_texts(part), 400) for part in (TRAINED[:900], TRAINED[900:])]
    both = DocumentSketch.union(parts)
    hashes = hash_texts(TRAINED)
    examined = hashes[both.examines(hashes)]
    assert both.recognise(examined).all()
    assert len(examined) > 300


def test_texts_differ_by_numbers_and_by_words_that_no_model_knows():
    """Hashes of token ids took all of these for one: a number is one token, as an unknown word."""
    texts = ["Invoice 17 of Zqxwv", "Invoice 18 of Zqxwv", "Invoice 17 of Vwxqz"]
    assert len(set(hash_texts(texts).tolist())) == 3
    assert hash_texts(["invoice  17 OF zqxwv\n"]) == hash_texts(texts[:1])


def test_the_array_of_a_model_keeps_a_sketch():
    for n in (100, 5_000):
        written = DocumentSketch.of(hash_texts(TRAINED), n)
        arrays = pack_sketch(written)
        read = unpack_sketch(arrays)
        assert not arrays
        assert read.limit == written.limit
        np.testing.assert_array_equal(read.hashes, written.hashes)
    assert unpack_sketch(pack_sketch(None)) is None
    with pytest.raises(ValueError, match="damaged"):
        unpack_sketch({"trained_texts": np.zeros(0, dtype=np.uint64)})
