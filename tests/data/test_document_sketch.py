import numpy as np
import pytest

from setrnn.data.document_sketch import (
    DocumentSketch,
    hash_rows,
    pack_sketches,
    unpack_sketches,
)
from setrnn.data.ragged import Ragged

rng = np.random.default_rng(0)
DOCUMENTS = [tuple(rng.integers(0, 50, rng.integers(1, 9))) for _ in range(3_000)]
TRAINED, NEW = DOCUMENTS[:2_000], DOCUMENTS[1_500:]


def test_documents_are_recognised_one_by_one():
    sketch = DocumentSketch.of(Ragged.from_lists(TRAINED))
    hashes, lengths = sketch.examine(Ragged.from_lists([(), *NEW]))  # an empty one has no hash
    assert sketch.has(hashes).tolist() == [each in set(TRAINED) for each in NEW]
    assert lengths.tolist() == [*map(len, NEW)]
    rows = [(), *NEW]
    expected = [each in set(TRAINED) for each in rows]
    assert sketch.find_seen(Ragged.from_lists(rows)).tolist() == expected


def test_a_small_sketch_estimates_the_share():
    sketch = DocumentSketch.of(Ragged.from_lists(TRAINED), most=400)
    assert len(sketch.hashes) == 400
    hashes, lengths = sketch.examine(Ragged.from_lists(NEW))
    share = sum(each in set(TRAINED) for each in NEW) / len(NEW)
    assert 150 < len(hashes) == len(lengths) < 600
    assert abs(sketch.has(hashes).mean() - share) < 0.08


def test_a_union_knows_the_documents_of_all():
    parts = [
        DocumentSketch.of(Ragged.from_lists(part), 400) for part in (TRAINED[:900], TRAINED[900:])
    ]
    both = DocumentSketch.union(parts)
    hashes, _ = both.examine(Ragged.from_lists(TRAINED))
    assert both.has(hashes).all()
    assert len(hashes) > 300


def test_the_hash_depends_on_order_and_nothing_around():
    rows = [[1, 2], [2, 1], [1, 2], [1], [1, 2, 0]]
    hashes = hash_rows(Ragged.from_lists(rows))
    assert hashes[0] == hashes[2]
    assert len(set(hashes.tolist())) == 4
    np.testing.assert_array_equal(hash_rows(Ragged.from_lists([[], [1, 2], []])), hashes[:1])


def test_the_arrays_of_a_model_keep_a_sketch():
    sketches = [DocumentSketch.of(Ragged.from_lists(TRAINED), n) for n in (100, 5_000)]
    arrays = pack_sketches(sketches)
    found = unpack_sketches(arrays, 2)
    assert not arrays
    for read, written in zip(found, sketches, strict=True):
        assert read.limit == written.limit
        np.testing.assert_array_equal(read.hashes, written.hashes)
    with pytest.raises(ValueError, match="tokenizers"):
        unpack_sketches(pack_sketches(sketches), 1)
