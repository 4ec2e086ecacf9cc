"""A pretrained transformer that reads subwords."""

# B documents, T subwords, M hidden size

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.data.subwords import import_transformers, without_reports
from setrnn.model.interfaces import Encoding


class TransformerEncoder(nn.Module):
    """Reads a document with a transformer: the last hidden states, and their mean.

    What the transformer is built like is kept among the weights, so that they are all it takes
    to build it again.
    """

    architecture: Tensor  # the transformer's own config: JSON, as bytes

    def __init__(self, transformer: nn.Module, settings: ModelSettings) -> None:
        super().__init__()
        config: Any = transformer.config
        self.memory_size: int = config.hidden_size
        if getattr(transformer, "pooler", None) is not None:
            transformer.pooler = None  # type: ignore[assignment]  # its output is not used
        self.transformer = transformer
        if settings.word_vectors == "frozen":
            self._embeddings.requires_grad_(False)
        self.dropout = nn.Dropout(settings.dropout)
        self.register_buffer("architecture", _as_bytes(config))

    @property
    def _embeddings(self) -> nn.Embedding:
        embeddings: nn.Embedding = self.transformer.get_input_embeddings()  # type: ignore[operator]
        return embeddings

    @property
    def n_tokens(self) -> int:
        """Count the token ids it knows."""
        return len(self._embeddings.weight)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        """Encode tokens (B, T), of which each row has its length (B,)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        is_word = positions < lengths[:, None]  # (B, T)
        read = self.transformer(input_ids=tokens, attention_mask=is_word.long())
        memory = read.last_hidden_state.masked_fill(~is_word[..., None], 0.0)  # (B, T, M)
        # Hundreds of words are too many to add up in half precision.
        exact = torch.promote_types(memory.dtype, torch.float32)
        summary = memory.sum(1, dtype=exact) / lengths[:, None]  # (B, M)
        closed = memory.new_zeros(is_word.shape).masked_fill(~is_word, -torch.inf)
        return Encoding(self.dropout(memory), closed, self.dropout(summary))


def build_transformer(architecture: Tensor) -> nn.Module:
    """Build a transformer as one was built before; its weights are yet to be filled in."""
    transformers = import_transformers()
    values = json.loads(architecture.cpu().numpy().tobytes())
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    # Weights that are thrown away must not cost chance.
    with torch.random.fork_rng(devices=[]), without_reports(transformers):
        transformer: nn.Module = transformers.AutoModel.from_config(config)
    return transformer.float()


def _as_bytes(config: Any) -> Tensor:  # noqa: ANN401 (transformers' own type)
    values = json.loads(config.to_json_string(use_diff=False))
    for name in ("_name_or_path", "dtype", "torch_dtype"):  # of the folder it came from
        values.pop(name, None)
    return torch.tensor(list(json.dumps(values).encode()), dtype=torch.uint8)
