"""Data that several commands are tried on."""

from itertools import islice

import pytest

from setrnn.data import newsroom
from setrnn.data.read import write_examples


@pytest.fixture(scope="session")
def larger(tmp_path_factory):
    """A folder whose valid part is large enough to calibrate on."""
    folder = tmp_path_factory.mktemp("larger")
    for split, size in {"train": 200, "valid": 120}.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    return folder
