"""The classical systems: BR, BR-support and PCC on tf-idf."""

from __future__ import annotations

from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.br_support import SupportInference
from setrnn.systems.classical.linear import ClassicalModel, TrainingData
from setrnn.systems.classical.pcc import ClassifierChain

BASELINES: dict[str, type[ClassicalModel]] = {
    "br": BinaryRelevance,
    "br-support": SupportInference,
    "pcc": ClassifierChain,
}

__all__ = ["BASELINES", "ClassicalModel", "TrainingData"]
