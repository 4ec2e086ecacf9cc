"""Systems that score each label by itself, with one sigmoid per label."""

# n documents, L labels, G given sets, S labels of the largest set

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setrnn.config import Config
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
from setrnn.model.interfaces import Encoding
from setrnn.systems.candidates import Floats, Floats32, Ids, SetCandidates
from setrnn.systems.empty_set import EMPTY_SHIFT, pack_shift, unpack_shift
from setrnn.systems.known import Known, check_known, refuse_sequences
from setrnn.systems.neural import NeuralSystem, Rows
from setrnn.systems.products import most_probable_products, product_log_probs
from setrnn.systems.system import Arrays

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class IndependentSystem(NeuralSystem):
    """A network whose labels are independent, given the document: all probabilities are exact."""

    empty_shift: float = 0.0  # added to the log-odds of the empty set

    @property
    def shifts_empty_set(self) -> bool:
        """True: a product over labels does not know how many documents have none."""
        return True

    @classmethod
    def from_arrays(cls, arrays: Arrays, method: Method, config: Config, device: str) -> Self:
        """Rebuild the system from its arrays on a device: auto, cpu or cuda."""
        weights = dict(arrays)
        shift = unpack_shift(weights.pop(EMPTY_SHIFT))
        return super().from_arrays(weights, method, config, device).with_empty_shift(shift)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all learned weights by name."""
        return {**super().arrays(), EMPTY_SHIFT: pack_shift(self.empty_shift)}

    def with_empty_shift(self, shift: float) -> Self:
        """Return the same system with another probability of the empty set."""
        return replace(self, empty_shift=shift)

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document; the first has all labels above 1/2."""
        refuse_sequences(source)
        known = check_known(known, source)
        return most_probable_products(self.logits(tokens), n_sets, known, self.empty_shift)

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return product_log_probs(self.logits(tokens), label_sets, self.empty_shift)

    @torch.inference_mode()
    def logits(self, tokens: Ragged) -> Floats32:
        """Return the log-odds of each label, (n, L)."""

        def score(rows: Rows, encoding: Encoding) -> Tensor:
            found: Tensor = self.network.decoder.logits(encoding)
            return found

        shape = (len(tokens), self.network.decoder.n_labels)
        return self.gather_values(tokens, np.zeros(shape, dtype=np.float32), score)
