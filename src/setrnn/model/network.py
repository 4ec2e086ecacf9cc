"""A whole network: an encoder and a decoder by their names, with sizes from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from setrnn.config import ModelSettings
from setrnn.data.batches import Batch
from setrnn.model.decoders import DECODERS, INDEPENDENT_DECODERS
from setrnn.model.encoders import ENCODERS
from setrnn.model.encoders.transformer import build_transformer
from setrnn.model.interfaces import Encoding

WORDS, ARCHITECTURE = "encoder.words.weight", "encoder.architecture"
LABELS, OUTPUT = "decoder.labels.weight", "decoder.output.weight"


class Network(nn.Module):
    """An encoder and a decoder."""

    decoder: Any  # of one of the kinds there are: its system knows which

    def __init__(
        self,
        source: Tensor | nn.Module,  # vectors of words, or a pretrained transformer
        label_vectors: Tensor,
        settings: ModelSettings,
        encoder: str = "gru",
        decoder: str = "rnn",
    ) -> None:
        super().__init__()
        decoders = {**DECODERS, **INDEPENDENT_DECODERS}
        self.encoder = ENCODERS[encoder](source, settings)
        self.decoder = decoders[decoder](self.encoder.memory_size, label_vectors, settings)

    def encode(self, batch: Batch) -> Encoding:
        """Read the documents of a batch."""
        encoding: Encoding = self.encoder(batch.tokens, batch.lengths)
        return encoding


def rebuild_network(
    weights: Mapping[str, Tensor], settings: ModelSettings, decoder: str = "rnn"
) -> Network:
    """Build a network from its weights; sizes of vocabularies are theirs."""
    source: Tensor | nn.Module
    if ARCHITECTURE in weights:
        encoder, source = "transformer", build_transformer(weights[ARCHITECTURE])
    else:
        encoder, source = "gru", torch.empty_like(weights[WORDS], device="meta")
    with torch.device("meta"), _NoStartingValues():
        network = Network(source, _label_vectors(weights), settings, encoder, decoder)
    network.load_state_dict(dict(weights), assign=True)
    return network.eval()


class _NoStartingValues(TorchFunctionMode):
    """Draws none: on the meta device that imports torch's compiler, and takes over a second."""

    def __torch_function__(
        self,
        function: Any,  # noqa: ANN401 (any of torch's)
        types: Any,  # noqa: ANN401
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        options = options or {}
        return options["tensor"] if function is nn.init.normal_ else function(*arguments, **options)


def _label_vectors(weights: Mapping[str, Tensor]) -> Tensor:
    """Return vectors of the shape that the labels' had."""
    if LABELS in weights:
        return torch.empty_like(weights[LABELS][:-1], device="meta")  # the last: "no label yet"
    return torch.empty(len(weights[OUTPUT]), 0, device="meta")  # scored, but never read
