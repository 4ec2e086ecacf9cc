import json
import shutil

import numpy as np
import pytest

from setrnn.config import TextSettings, to_dict
from setrnn.data.example import Example
from setrnn.data.prepared import DESCRIPTION_FILE, FORMAT, Prepared, write_description, write_split
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError, SetRNNError

ARRAY_FILES = [
    *(f"{name}{kind}.bin" for name in ("token", "label", "id") for kind in ("s", "_offsets")),
    "unknown_offsets.bin",
    "text_hashes.bin",
]
OTHERS = (b"", b"[]", b"null", f'{{"format": {FORMAT}}}'.encode())


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


def write_train(folder, batches, n_tokens=2**16):
    """Write batches of (id, tokens, labels) as the only split, train."""
    folder.mkdir()
    rows = (
        (
            [Example(each, f"text of {each}") for each, _, _ in batch],
            Ragged.from_lists([tokens for _, tokens, _ in batch]),
            Ragged.from_lists([labels for _, _, labels in batch]),
            None,
        )
        for batch in batches
    )
    n_documents = write_split(folder / "train", n_tokens, rows)
    (folder / "tokenizer.json").touch()
    (folder / "labels.json").touch()
    description = {
        "name": "small",
        "text": to_dict(TextSettings()),
        "n_documents": {"train": n_documents},
        "n_tokens": n_tokens,
        "n_labels": 90,
        "unseen_labels": [str(label) for label in range(90, 100)],
    }
    write_description(folder, description)
    return Prepared(folder).split("train")


@pytest.mark.parametrize("n_tokens", [2**16, 2**16 + 1, 2**31])
def test_the_largest_token_id_is_kept(tmp_path, n_tokens):
    split = write_train(tmp_path / "prepared", [[("1", [n_tokens - 1, 1], [])]], n_tokens)
    assert split.tokens[0].tolist() == [n_tokens - 1, 1]


def test_the_arrays_are_memory_mapped_and_read_only(small_prepared):
    for name in small_prepared.splits:
        split = small_prepared.split(name)
        for ragged in (split.tokens, split.labels, split.id_bytes):
            for array in (ragged.values, ragged.offsets):
                assert isinstance(array, np.memmap)
                assert not array.flags.writeable


def test_a_split_that_is_not_there_is_refused_with_those_that_are(small_prepared):
    with pytest.raises(DataError, match="train, valid, test"):
        small_prepared.split("dev")


@pytest.mark.parametrize("number", [1, 99])
def test_another_format_is_refused_with_the_way_out(folder, number):
    description = json.loads((folder / DESCRIPTION_FILE).read_text())
    (folder / DESCRIPTION_FILE).write_text(json.dumps({**description, "format": number}))
    with pytest.raises(DataError, match=r"another version.*Prepare the data again"):
        Prepared(folder)


def open_all(folder):
    prepared = Prepared(folder)
    return [prepared.encoder, prepared.labels, *map(prepared.split, prepared.splits)]


def flip_bit(file, byte, bit):
    content = bytearray(file.read_bytes())
    content[byte] ^= 1 << bit
    file.write_bytes(content)


def test_no_damage_is_let_in(folder):
    random = np.random.default_rng(0)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    assert len(files) == 3 + 3 * (len(ARRAY_FILES) + 1)
    for file in files:
        whole = file.read_bytes()
        file.unlink()
        refused(lambda: Prepared(folder))
        for other in (whole[:-1], whole[: len(whole) // 2], whole + bytes(8), *OTHERS):
            file.write_bytes(other)
            if other != whole:
                refused(lambda: Prepared(folder))
        for byte in {0, len(whole) - 1, *random.integers(0, len(whole), 4)} if whole else ():
            file.write_bytes(whole)
            flip_bit(file, byte, int(random.integers(8)))
            refused(lambda: Prepared(folder))
        file.write_bytes(whole)
    open_all(folder)


def test_a_folder_too_large_to_be_hashed_at_once_is_hashed_on_request(folder, monkeypatch):
    """Sizes, descriptions and ranges are checked all the same."""
    monkeypatch.setattr("setrnn.data.prepared.HASHED_BYTES", 0)
    tokens = folder / "train" / "tokens.bin"
    whole = tokens.read_bytes()
    flip_bit(tokens, 0, 0)
    open_all(folder)
    with pytest.raises(DataError, match=r"train/tokens.bin is not as it was written.*again"):
        Prepared(folder).check()
    tokens.write_bytes(whole)
    Prepared(folder).check()
    flip_bit(folder / "labels.json", 30, 0)
    with pytest.raises(DataError, match=r"labels\.json"):
        Prepared(folder)


@pytest.mark.parametrize(
    ("file", "position", "value"),
    [
        ("tokens.bin", 0, np.uint16(0xFFFF)),
        ("labels.bin", 0, np.int32(-1)),
        ("labels.bin", -1, np.int32(9999)),
        ("label_offsets.bin", 0, np.int64(1)),
        ("token_offsets.bin", 5, np.int64(2**40)),
        ("id_offsets.bin", 5, np.int64(-1)),
        ("unknown_offsets.bin", 5, np.int64(1)),
    ],
)
def test_ids_and_offsets_out_of_range_are_refused_without_a_hash(
    folder, monkeypatch, file, position, value
):
    monkeypatch.setattr("setrnn.data.prepared.HASHED_BYTES", 0)
    monkeypatch.setattr("setrnn.data.ragged.CHECKED_AT_ONCE", 7)
    open_all(folder)
    path = folder / "train" / file
    array = np.fromfile(path, dtype=value.dtype)
    array[position] = value
    array.tofile(path)
    refused(lambda: open_all(folder))
