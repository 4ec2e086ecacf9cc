"""The classical systems: BR, BR-support and PCC on tf-idf."""

from __future__ import annotations

from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.br_support import SupportInference
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.classical.system import ClassicalSystem, TrainingData


class BinaryRelevanceSystem(ClassicalSystem):
    """BR: p(set) is the product over all labels."""

    model_class = BinaryRelevance


class SupportInferenceSystem(ClassicalSystem):
    """BR-support: the best set among those seen in training."""

    model_class = SupportInference


class ClassifierChainSystem(ClassicalSystem):
    """PCC: a chain of classifiers, in descending order of label frequency."""

    model_class = ClassifierChain


CLASSICAL: dict[str, type[ClassicalSystem]] = {
    "br": BinaryRelevanceSystem,
    "br-support": SupportInferenceSystem,
    "pcc": ClassifierChainSystem,
}

__all__ = ["CLASSICAL", "ClassicalSystem", "TrainingData"]
