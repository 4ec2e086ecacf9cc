"""Read documents in tests."""

import pytest

from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.errors import BadRowError


def read(place, bad_rows=None, split="train", reader=None, **options):
    """Read a part of a dataset; the options are those of ReadOptions."""
    dataset = open_dataset(place, ReadOptions(**options), reader)
    return list(dataset.require(split).read(bad_rows or BadRows()))


def read_bytes(folder, content, name="train.csv", bad_rows=None, **options):
    """Write a file, and read its documents."""
    (folder / name).write_bytes(content)
    return read(folder / name, bad_rows, **options)


def check_bad_row(folder, content, name, place, *says):
    """Check that a file with one bad row says where and what, or is read without that row."""
    with pytest.raises(BadRowError) as caught:
        read_bytes(folder, content, name)
    message = str(caught.value)
    assert message.startswith(f"{place}: ")
    assert all(each in message for each in says), message
    assert len(message) <= 250
    assert message.isprintable()
    bad_rows = BadRows("skip")
    found = read(folder / name, bad_rows)
    assert bad_rows.first == [message]
    return found
