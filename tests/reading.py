"""Read documents in tests."""

from setrnn.data.read import BadRows, ReadOptions, open_dataset


def read(place, bad_rows=None, split="train", reader=None, **options):
    """Read a part of a dataset; the options are those of ReadOptions."""
    dataset = open_dataset(place, ReadOptions(**options), reader)
    return list(dataset.require(split).read(bad_rows or BadRows()))


def read_bytes(folder, content, name="train.csv", bad_rows=None, **options):
    """Write a file, and read its documents."""
    (folder / name).write_bytes(content)
    return read(folder / name, bad_rows, **options)
