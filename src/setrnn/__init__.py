"""Tag documents with sets of labels, and know the probability of each set."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setrnn.comparison.compare import ComparisonResult, compare
    from setrnn.data.example import Example
    from setrnn.data.formats import open_dataset
    from setrnn.errors import SetRNNError
    from setrnn.report.build import build_report
    from setrnn.systems.limits import Limits
    from setrnn.tagging.completion import Completion
    from setrnn.tagging.estimator import SetRNNClassifier
    from setrnn.tagging.explanation import Explanation
    from setrnn.tagging.loading import load
    from setrnn.tagging.prediction import Prediction
    from setrnn.tagging.tagger import Tagger
    from setrnn.tagging.train import train

__version__ = "0.1.0"

__all__ = [
    "SetRNNClassifier",
    "Tagger",
    "Prediction",
    "Completion",
    "Limits",
    "Explanation",
    "Example",
    "ComparisonResult",
    "train",
    "load",
    "compare",
    "build_report",
    "open_dataset",
    "SetRNNError",
    "__version__",
]

# Imported when first asked for: torch and scikit-learn take seconds, `setrnn --help` must not.
_HOMES = {
    "SetRNNClassifier": "setrnn.tagging.estimator",
    "train": "setrnn.tagging.train",
    "Tagger": "setrnn.tagging.tagger",
    "Prediction": "setrnn.tagging.prediction",
    "Completion": "setrnn.tagging.completion",
    "Limits": "setrnn.systems.limits",
    "Explanation": "setrnn.tagging.explanation",
    "Example": "setrnn.data.example",
    "load": "setrnn.tagging.loading",
    "compare": "setrnn.comparison.compare",
    "ComparisonResult": "setrnn.comparison.compare",
    "build_report": "setrnn.report.build",
    "open_dataset": "setrnn.data.formats",
    "SetRNNError": "setrnn.errors",
}

if not TYPE_CHECKING:  # a type checker would take any name for one that exists

    def __getattr__(name: str) -> object:
        """Import a public name from its module."""
        if name not in _HOMES:
            raise AttributeError(f"module 'setrnn' has no attribute '{name}'")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names too, before they are imported."""
    return sorted({*globals(), *__all__})
