"""Read documents with labels: one format per file, and one dict of all formats."""

from setrnn.data.read.dataset import EMBEDDED, READERS, Dataset, choose_split, open_dataset
from setrnn.data.read.label_files import (
    make_hierarchy,
    read_groups,
    read_hierarchy,
    read_label_map,
    read_thresholds,
)
from setrnn.data.read.reader import SPLIT_NAMES, BadRows, Format, ReadOptions, Split
from setrnn.data.read.write import write_examples, write_folder

__all__ = [
    "EMBEDDED",
    "READERS",
    "SPLIT_NAMES",
    "BadRows",
    "Dataset",
    "Format",
    "ReadOptions",
    "Split",
    "choose_split",
    "make_hierarchy",
    "open_dataset",
    "read_groups",
    "read_hierarchy",
    "read_label_map",
    "read_thresholds",
    "write_examples",
    "write_folder",
]
