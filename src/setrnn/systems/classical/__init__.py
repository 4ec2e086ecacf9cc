"""The classical systems: BR, BR-support and PCC on tf-idf."""

from __future__ import annotations

from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.br_support import SupportInference
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.classical.system import ClassicalSystem

# By the names of their methods.
CLASSICAL: dict[str, type[ClassicalSystem]] = {
    "br": BinaryRelevance,
    "br-support": SupportInference,
    "pcc": ClassifierChain,
}

__all__ = ["CLASSICAL", "ClassicalSystem"]
