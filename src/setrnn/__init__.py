"""Tag documents with sets of labels, and know the probability of each set."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setrnn.comparison.compare import ComparisonResult, compare
    from setrnn.data.example import Example
    from setrnn.data.formats import open_dataset
    from setrnn.errors import ConfigError, DataError, ModelError, SetRNNError, TrainingError
    from setrnn.report.build import build_report
    from setrnn.systems.limits import Limits
    from setrnn.tagging.calibrating import calibrate
    from setrnn.tagging.estimator import SetRNNClassifier
    from setrnn.tagging.evaluation import Evaluation, evaluate
    from setrnn.tagging.explanation import Explanation
    from setrnn.tagging.prediction import Completion, Prediction
    from setrnn.tagging.tagger import Tagger, load
    from setrnn.tagging.train import train

__version__ = "0.1.0"

# Each public name and its module. It is imported when first used: torch and scikit-learn take
# seconds, and `setrnn --help` must not.
_HOMES = {
    "train": "setrnn.tagging.train",
    "load": "setrnn.tagging.tagger",
    "evaluate": "setrnn.tagging.evaluation",
    "calibrate": "setrnn.tagging.calibrating",
    "Tagger": "setrnn.tagging.tagger",
    "SetRNNClassifier": "setrnn.tagging.estimator",
    "Prediction": "setrnn.tagging.prediction",
    "Completion": "setrnn.tagging.prediction",
    "Explanation": "setrnn.tagging.explanation",
    "Evaluation": "setrnn.tagging.evaluation",
    "Limits": "setrnn.systems.limits",
    "Example": "setrnn.data.example",
    "compare": "setrnn.comparison.compare",
    "ComparisonResult": "setrnn.comparison.compare",
    "build_report": "setrnn.report.build",
    "open_dataset": "setrnn.data.formats",
    "SetRNNError": "setrnn.errors",
    "ConfigError": "setrnn.errors",
    "DataError": "setrnn.errors",
    "ModelError": "setrnn.errors",
    "TrainingError": "setrnn.errors",
}

__all__ = [
    "ComparisonResult",
    "Completion",
    "ConfigError",
    "DataError",
    "Evaluation",
    "Example",
    "Explanation",
    "Limits",
    "ModelError",
    "Prediction",
    "SetRNNClassifier",
    "SetRNNError",
    "Tagger",
    "TrainingError",
    "__version__",
    "build_report",
    "calibrate",
    "compare",
    "evaluate",
    "load",
    "open_dataset",
    "train",
]

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name from its module."""
        if name not in _HOMES:
            raise AttributeError(f"module 'setrnn' has no attribute '{name}'")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names too, whether or not they are imported yet."""
    return sorted({*globals(), *__all__})
