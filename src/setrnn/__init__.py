"""Tag documents with sets of labels, and know the probability of each set."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setrnn.completion import Completion
    from setrnn.data.example import Example
    from setrnn.datasets import open_dataset
    from setrnn.decoding.limits import Limits
    from setrnn.errors import SetRNNError
    from setrnn.estimator import SetRNNClassifier
    from setrnn.explanation import Explanation
    from setrnn.loading import load
    from setrnn.prediction import Prediction
    from setrnn.tagger import Tagger

__version__ = "0.1.0"

__all__ = [
    "SetRNNClassifier",
    "Tagger",
    "Prediction",
    "Completion",
    "Limits",
    "Explanation",
    "Example",
    "load",
    "open_dataset",
    "SetRNNError",
    "__version__",
]

# Imported when first asked for: torch and scikit-learn take seconds, `setrnn --help` must not.
_HOMES = {
    "SetRNNClassifier": "setrnn.estimator",
    "Tagger": "setrnn.tagger",
    "Prediction": "setrnn.prediction",
    "Completion": "setrnn.completion",
    "Limits": "setrnn.decoding.limits",
    "Explanation": "setrnn.explanation",
    "Example": "setrnn.data.example",
    "load": "setrnn.loading",
    "open_dataset": "setrnn.datasets",
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
