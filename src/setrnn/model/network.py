"""A whole network: an encoder and a decoder by their names, with sizes from the settings."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.data.batches import Batch
from setrnn.model.decoders import DECODERS
from setrnn.model.encoders import ENCODERS
from setrnn.model.interfaces import Encoding

WORDS, LABELS = "encoder.words.weight", "decoder.labels.weight"


class Network(nn.Module):
    """An encoder and a decoder."""

    def __init__(
        self,
        word_vectors: Tensor,
        label_vectors: Tensor,
        settings: ModelSettings,
        encoder: str = "gru",
        decoder: str = "rnn",
    ) -> None:
        super().__init__()
        self.encoder = ENCODERS[encoder](word_vectors, settings)
        self.decoder = DECODERS[decoder](self.encoder.memory_size, label_vectors, settings)

    def encode(self, batch: Batch) -> Encoding:
        """Read the documents of a batch."""
        encoding: Encoding = self.encoder(batch.tokens, batch.lengths)
        return encoding


def rebuild_network(
    weights: Mapping[str, Tensor], settings: ModelSettings, decoder: str = "rnn"
) -> Network:
    """Build a network from its weights; sizes of vocabularies are theirs."""
    label_vectors = weights[LABELS][:-1]  # the last stands for "no label yet"
    with torch.device("meta"):
        network = Network(
            torch.empty_like(weights[WORDS], device="meta"),
            torch.empty_like(label_vectors, device="meta"),
            settings,
            decoder=decoder,
        )
    network.load_state_dict(dict(weights), assign=True)
    return network.eval()
