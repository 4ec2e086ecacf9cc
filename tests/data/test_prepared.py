import json
import shutil
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.data.prepared import (
    DESCRIPTION_FILE,
    Prepared,
    SplitWriter,
    batched,
    is_prepared,
    prefetch,
    smallest_dtype,
    write_description,
)
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError, SetRNNError

ARRAY_FILES = [
    f"{name}{kind}.bin" for name in ("token", "label", "id") for kind in ("s", "_offsets")
]
ids = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)


@pytest.fixture
def folder(small_prepared, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(small_prepared.folder, tmp_path / "prepared")


def refused(action):
    with pytest.raises(SetRNNError) as error:
        action()
    message = str(error.value)
    assert "\n" not in message
    assert "prepared" in message, "it names the folder or file"


def write_split(folder, batches, dtype=np.uint16):
    """Write batches of (id, tokens, labels) as the only split, train."""
    folder.mkdir()
    with SplitWriter(folder / "train", dtype) as writer:
        for batch in batches:
            writer.append(
                [each for each, _, _ in batch],
                Ragged.from_lists([tokens for _, tokens, _ in batch]),
                Ragged.from_lists([labels for _, _, labels in batch]),
            )
    (folder / "tokenizer.json").touch()
    (folder / "labels.json").touch()
    description = {
        "n_documents": {"train": writer.n_documents},
        "token_dtype": np.dtype(dtype).name,
    }
    write_description(folder, description)
    return Prepared(folder).split("train")


@given(
    st.lists(
        st.lists(
            st.tuples(ids, st.lists(st.integers(0, 65535)), st.lists(st.integers(0, 99))),
            max_size=4,
        ),
        max_size=4,
    )
)
@settings(deadline=None, max_examples=30)
def test_written_documents_come_back_whatever_the_batches(tmp_path_factory, batches):
    split = write_split(tmp_path_factory.mktemp("split") / "prepared", batches)
    documents = [document for batch in batches for document in batch]
    assert len(split) == len(documents)
    assert split.ids(0, len(split)) == [each for each, _, _ in documents]
    assert [row.tolist() for row in split.tokens] == [tokens for _, tokens, _ in documents]
    assert [row.tolist() for row in split.labels] == [labels for _, _, labels in documents]


def test_ids_past_two_bytes_are_kept(tmp_path):
    split = write_split(tmp_path / "prepared", [[("1", [70_000, 1, 2**31 - 1], [])]], np.int32)
    assert split.tokens[0].tolist() == [70_000, 1, 2**31 - 1]


def test_a_stretch_of_ids_is_a_slice(small_prepared):
    split = small_prepared.split("test")
    everything = split.ids(0, len(split))
    assert split.ids(3, 7) == everything[3:7]
    assert split.ids(5, 5) == []


def test_the_arrays_are_memory_mapped_and_read_only(small_prepared):
    for name in small_prepared.splits:
        split = small_prepared.split(name)
        for ragged in (split.tokens, split.labels, split.id_bytes):
            for array in (ragged.values, ragged.offsets):
                assert isinstance(array, np.memmap)
                assert not array.flags.writeable


def test_opening_leaves_the_folder_as_it_is(small_prepared, folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    prepared = Prepared(folder)
    prepared.split("train")
    assert prepared.encoder.n_tokens == prepared.description["n_tokens"]
    assert len(prepared.labels) == prepared.description["n_labels"]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_description_tells_what_is_inside(small_prepared, small_examples):
    assert small_prepared.name == "newsroom"
    assert small_prepared.splits == ["train", "valid", "test"]
    for name, examples in small_examples.items():
        assert len(small_prepared.split(name)) == len(examples)


def test_a_split_that_is_not_there_is_refused_with_those_that_are(small_prepared):
    with pytest.raises(DataError, match="train, valid, test"):
        small_prepared.split("dev")


@pytest.mark.parametrize("n_bytes", [1, 2, 8, 16, None], ids=lambda n: f"short of {n or 'all'}")
@pytest.mark.parametrize("file", ARRAY_FILES)
def test_a_file_cut_short_is_refused(folder, file, n_bytes):
    path = folder / "train" / file
    content = path.read_bytes()
    path.write_bytes(content[:-n_bytes] if n_bytes else b"")
    refused(lambda: Prepared(folder).split("train"))


@pytest.mark.parametrize("file", ARRAY_FILES)
def test_a_file_too_long_is_refused(folder, file):
    path = folder / "train" / file
    path.write_bytes(path.read_bytes() + bytes(8))
    refused(lambda: Prepared(folder).split("train"))


@pytest.mark.parametrize("file", ARRAY_FILES)
def test_a_missing_array_is_refused(folder, file):
    (folder / "train" / file).unlink()
    refused(lambda: Prepared(folder).split("train"))


@pytest.mark.parametrize("file", ["tokenizer.json", "labels.json", DESCRIPTION_FILE])
def test_a_missing_description_is_refused(folder, file):
    (folder / file).unlink()
    refused(lambda: Prepared(folder))


@pytest.mark.parametrize("file", ["tokenizer.json", "labels.json", DESCRIPTION_FILE])
def test_a_description_cut_short_is_refused(folder, file):
    content = (folder / file).read_bytes()
    for length in (0, 1, len(content) // 2, len(content) - 1):
        (folder / file).write_bytes(content[:length])

        def read_all():
            prepared = Prepared(folder)
            return prepared.encoder, prepared.labels

        refused(read_all)


@pytest.mark.parametrize("content", ["[]", "3", "null", '"x"', '{"format": 1}'])
def test_a_description_that_is_something_else_is_refused(folder, content):
    (folder / DESCRIPTION_FILE).write_text(content)
    refused(lambda: Prepared(folder).split("train"))


def test_another_format_is_refused_with_the_way_out(folder):
    description = json.loads((folder / DESCRIPTION_FILE).read_text())
    (folder / DESCRIPTION_FILE).write_text(json.dumps({**description, "format": 99}))
    with pytest.raises(DataError, match="Prepare the data again"):
        Prepared(folder)


def test_only_a_prepared_folder_is_taken_for_one(small_prepared, tmp_path):
    assert is_prepared(small_prepared.folder)
    assert not is_prepared(tmp_path)
    assert not is_prepared(tmp_path / "absent")


@pytest.mark.parametrize("n_values", [1, 2**16 - 1, 2**16, 2**16 + 1, 2**20])
def test_the_smallest_type_holds_every_id(n_values):
    dtype = smallest_dtype(n_values)
    last = n_values - 1
    assert np.array([last], dtype=np.int64).astype(dtype)[0] == last
    assert dtype.itemsize == (2 if n_values <= 2**16 else 4)


@given(st.lists(st.integers(), max_size=30), st.integers(1, 8))
def test_batches_hold_everything_in_order(items, size):
    batches = list(batched(iter(items), size))
    assert [item for batch in batches for item in batch] == items
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(batches)


@pytest.mark.parametrize("n", [0, 1, 3, 20])
def test_the_order_stays(n):
    assert list(prefetch(lambda item: item * item, range(n))) == [i * i for i in range(n)]


def test_only_a_few_are_made_ahead():
    made = []
    stream = prefetch(made.append, range(100), n_ahead=4)
    next(stream)
    stream.close()
    assert len(made) <= 5


def test_an_error_comes_where_its_item_would():
    def make(item):
        return 1 // item

    stream = prefetch(make, [1, 0])
    assert next(stream) == 1
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_no_thread_is_left():
    before = threading.active_count()
    stream = prefetch(str, range(10))
    next(stream)
    stream.close()
    assert threading.active_count() == before
