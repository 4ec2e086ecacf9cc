"""Tag documents with sets of labels, and know the probability of each set."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from setrnn import checks, scorers
    from setrnn.comparison.compare import ComparisonResult, compare
    from setrnn.data.cache import CachedData, clear_cache, list_cache
    from setrnn.data.example import Example
    from setrnn.data.groups import Group
    from setrnn.data.hierarchy import Hierarchy
    from setrnn.data.prepared import Prepared
    from setrnn.data.read import ReadOptions, open_dataset, read_groups, read_hierarchy
    from setrnn.data.source import Source
    from setrnn.errors import (
        BrokenPromiseError,
        BusyError,
        ConfigError,
        DataError,
        ModelError,
        SetRNNError,
        TrainingError,
    )
    from setrnn.models.card import describe_model
    from setrnn.models.hub import push
    from setrnn.report.build import build_report
    from setrnn.report.figures import draw_reliability
    from setrnn.systems.limits import Limits
    from setrnn.tagging.choose import ChosenDocument, choose, write_chosen
    from setrnn.tagging.documents import open_documents
    from setrnn.tagging.doubt import DoubtfulDocument, doubt, write_doubts
    from setrnn.tagging.estimator import SetRNNClassifier
    from setrnn.tagging.evaluate import Evaluation, evaluate, evaluate_rules
    from setrnn.tagging.explanation import Explanation
    from setrnn.tagging.files import TaggedFiles, predict_files
    from setrnn.tagging.learn.data import prepare
    from setrnn.tagging.learn.distil import distil
    from setrnn.tagging.learn.mix import mix
    from setrnn.tagging.learn.train import train
    from setrnn.tagging.learn.update import update
    from setrnn.tagging.prediction import Completion, Prediction, Predictions
    from setrnn.tagging.tagger import Tagger, load
    from setrnn.tagging.trust.calibrate import calibrate

__version__ = "1.0.0rc1"

# Each public name and its module. It is imported when first used: torch and scikit-learn take
# seconds, and `setrnn --help` must not.
_HOMES = {
    "prepare": "setrnn.tagging.learn.data",
    "train": "setrnn.tagging.learn.train",
    "load": "setrnn.tagging.tagger",
    "push": "setrnn.models.hub",
    "evaluate": "setrnn.tagging.evaluate",
    "evaluate_rules": "setrnn.tagging.evaluate",
    "open_documents": "setrnn.tagging.documents",
    "calibrate": "setrnn.tagging.trust.calibrate",
    "choose": "setrnn.tagging.choose",
    "write_chosen": "setrnn.tagging.choose",
    "ChosenDocument": "setrnn.tagging.choose",
    "doubt": "setrnn.tagging.doubt",
    "write_doubts": "setrnn.tagging.doubt",
    "DoubtfulDocument": "setrnn.tagging.doubt",
    "describe_model": "setrnn.models.card",
    "mix": "setrnn.tagging.learn.mix",
    "distil": "setrnn.tagging.learn.distil",
    "update": "setrnn.tagging.learn.update",
    "Tagger": "setrnn.tagging.tagger",
    "SetRNNClassifier": "setrnn.tagging.estimator",
    "scorers": "setrnn.scorers",
    "checks": "setrnn.checks",
    "Prediction": "setrnn.tagging.prediction",
    "Predictions": "setrnn.tagging.prediction",
    "Completion": "setrnn.tagging.prediction",
    "Explanation": "setrnn.tagging.explanation",
    "Evaluation": "setrnn.tagging.evaluate",
    "predict_files": "setrnn.tagging.files",
    "TaggedFiles": "setrnn.tagging.files",
    "Limits": "setrnn.systems.limits",
    "Example": "setrnn.data.example",
    "Source": "setrnn.data.source",
    "CachedData": "setrnn.data.cache",
    "list_cache": "setrnn.data.cache",
    "clear_cache": "setrnn.data.cache",
    "ReadOptions": "setrnn.data.read",
    "Group": "setrnn.data.groups",
    "Hierarchy": "setrnn.data.hierarchy",
    "read_groups": "setrnn.data.read",
    "read_hierarchy": "setrnn.data.read",
    "Prepared": "setrnn.data.prepared",
    "compare": "setrnn.comparison.compare",
    "ComparisonResult": "setrnn.comparison.compare",
    "build_report": "setrnn.report.build",
    "draw_reliability": "setrnn.report.figures",
    "open_dataset": "setrnn.data.read",
    "SetRNNError": "setrnn.errors",
    "ConfigError": "setrnn.errors",
    "DataError": "setrnn.errors",
    "BusyError": "setrnn.errors",
    "ModelError": "setrnn.errors",
    "TrainingError": "setrnn.errors",
    "BrokenPromiseError": "setrnn.errors",
}

__all__ = [
    "BrokenPromiseError",
    "BusyError",
    "CachedData",
    "ChosenDocument",
    "ComparisonResult",
    "Completion",
    "ConfigError",
    "DataError",
    "DoubtfulDocument",
    "Evaluation",
    "Example",
    "Explanation",
    "Group",
    "Hierarchy",
    "Limits",
    "ModelError",
    "Prediction",
    "Predictions",
    "Prepared",
    "ReadOptions",
    "SetRNNClassifier",
    "SetRNNError",
    "Source",
    "TaggedFiles",
    "Tagger",
    "TrainingError",
    "__version__",
    "build_report",
    "calibrate",
    "checks",
    "choose",
    "clear_cache",
    "compare",
    "describe_model",
    "distil",
    "doubt",
    "draw_reliability",
    "evaluate",
    "evaluate_rules",
    "list_cache",
    "load",
    "mix",
    "open_dataset",
    "open_documents",
    "predict_files",
    "prepare",
    "push",
    "read_groups",
    "read_hierarchy",
    "scorers",
    "train",
    "update",
    "write_chosen",
    "write_doubts",
]

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name from its module."""
        if name not in _HOMES:
            raise AttributeError(f"module 'setrnn' has no attribute '{name}'")
        with _paused_collector():
            home = import_module(_HOMES[name])
            value = home if home.__name__ == f"setrnn.{name}" else getattr(home, name)
        globals()[name] = value
        return value


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Collect no garbage during an import: torch makes many objects, and all of them stay."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def __dir__() -> list[str]:
    """List the public names too, whether or not they are imported yet."""
    return sorted({*globals(), *__all__})
