"""The classical systems: BR, BR-support and PCC on tf-idf."""

from __future__ import annotations

from setrnn.baselines.br import BinaryRelevance
from setrnn.baselines.br_support import SupportInference
from setrnn.baselines.linear import ClassicalModel, TrainingData
from setrnn.baselines.pcc import ClassifierChain

BASELINES: dict[str, type[ClassicalModel]] = {
    "br": BinaryRelevance,
    "br-support": SupportInference,
    "pcc": ClassifierChain,
}

__all__ = ["BASELINES", "ClassicalModel", "TrainingData"]
