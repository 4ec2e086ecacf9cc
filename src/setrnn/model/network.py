"""A whole network: an encoder and a decoder, by their names, and the evidence for labels.

Long documents are read in windows: the memory of a document is that of all its windows.
"""

# B documents, T words, C words of a window, N windows of the longest document, R windows of all
# documents

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from setrnn.config import Config, TextSettings
from setrnn.data.batches import Batch
from setrnn.data.disk import select_prefix
from setrnn.data.prepared import Prepared
from setrnn.model.decoders import find_decoder
from setrnn.model.devices import without_values
from setrnn.model.encoders import find_encoder
from setrnn.model.evidence import (
    LABELS_PER_PLACE,
    LabelEvidence,
    ShortlistEvidence,
    WideEvidence,
    make_evidence,
)
from setrnn.model.interfaces import Encoder, Encoding
from setrnn.progress import OnProgress, ignore_progress


class Network(nn.Module):
    """An encoder and a decoder, and between them the evidence for each label, if there is any."""

    encoder: Any  # an Encoder
    decoder: Any  # of the kind that its system expects

    def __init__(
        self,
        encoder: Any,  # noqa: ANN401 (modules, see above)
        decoder: Any,  # noqa: ANN401
        evidence: LabelEvidence | None = None,
        wide: WideEvidence | None = None,
        window: int | None = None,
    ) -> None:
        """Combine the parts. The encoder reads `window` words at once; None means all."""
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.evidence = evidence
        self.wide = wide
        self.window = window

    def start_from(self, wide: WideEvidence) -> None:
        """Add the evidence of a fitted model, and let other logits start at 0, or near it."""
        self.wide = wide
        starts = [getattr(self.decoder, "output", None)]
        starts += [] if self.evidence is None else [self.evidence.value]
        for layer in starts:
            if isinstance(layer, nn.Linear):
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    def encode(self, batch: Batch) -> Encoding:
        """Read the documents of a batch."""
        encoding = encode_windows(self.encoder, batch.tokens, batch.lengths, self.window)
        if self.evidence is None and self.wide is None:
            return encoding
        if isinstance(self.evidence, ShortlistEvidence):
            return self.evidence.shorten(encoding, None if self.wide is None else self.wide(batch))
        parts = [] if self.evidence is None else [self.evidence(encoding)]
        parts += [] if self.wide is None else [self.wide(batch)]
        return replace(encoding, evidence=sum(parts[1:], parts[0]))


def make_network(
    prepared: Prepared,
    config: Config,
    decoder: str = "rnn",
    on_progress: OnProgress = ignore_progress,
) -> Network:
    """Build a network as it is before training: the same for the same seed."""
    torch.manual_seed(config.seed)
    encoder, labels = find_encoder(config.encoder.name).from_data(prepared, config, on_progress)
    made = find_decoder(decoder)(encoder.memory_size, labels, config.model)
    evidence = None
    if config.model.evidence:
        n_listed = config.model.shortlist
        is_short = 0 < n_listed * LABELS_PER_PLACE <= len(labels)
        evidence = make_evidence(encoder.word_size, len(labels), n_listed if is_short else 0)
    return Network(encoder, made, evidence, window=find_window(config.text))


def rebuild_network(weights: Mapping[str, Tensor], config: Config, decoder: str = "rnn") -> Network:
    """Build a network from its weights; the sizes of its vocabularies are theirs."""
    settings = config.model
    own = {
        part: select_prefix(f"{part}.", weights)
        for part in ("encoder", "decoder", "evidence", "wide")
    }
    encoder = find_encoder(config.encoder.name).from_weights(own["encoder"], settings)
    made = find_decoder(decoder).from_weights(own["decoder"], encoder.memory_size, settings)
    with without_values():
        n_listed = settings.shortlist if "proposal.weight" in own["evidence"] else 0
        evidence = (
            make_evidence(encoder.word_size, made.n_labels, n_listed) if own["evidence"] else None
        )
    wide = WideEvidence(own["wide"]) if own["wide"] else None
    network = Network(encoder, made, evidence, wide, find_window(config.text))
    for name, each in network.state_dict().items():
        if name in weights and weights[name].dtype != each.dtype:
            raise ValueError(f"{name} has values of type {weights[name].dtype}, not {each.dtype}")
    network.load_state_dict(dict(weights), assign=True)
    return network.eval()


def find_window(settings: TextSettings) -> int | None:
    """Return how many words an encoder reads at once; None if a document is one window."""
    return settings.window if settings.windows > 1 else None


def encode_windows(
    encoder: Encoder, tokens: Tensor, lengths: Tensor, window: int | None
) -> Encoding:
    """Encode tokens (B, T) of documents with given lengths (B,), in windows of `window` words.

    The windows of all documents are rows of one batch: their recurrence or self-attention is no
    longer than a window. All windows of a document but the last are full, so their memories one
    after the other are the memory of the document. Its summary is the mean of theirs, weighted by
    their words.
    """
    B, T = tokens.shape
    if window is None or window >= T:
        return encoder(tokens, lengths)
    N = -(-T // window)
    starts = torch.arange(0, T, window, device=tokens.device)
    sizes = (lengths[:, None] - starts).clamp(0, window).flatten()  # (B * N,)
    rows = sizes.nonzero()[:, 0]  # (R,) windows with words
    read = encoder(pad(tokens, (0, N * window - T)).view(-1, window)[rows], sizes[rows])

    def join(part: Tensor, fill: float = 0.0) -> Tensor:  # (R, C, ...) to (B, T, ...)
        full = part.new_full((B * N, *part.shape[1:]), fill).index_copy(0, rows, part)
        return full.view(B, N * window, *part.shape[2:])[:, :T]

    share = sizes[rows, None] / lengths[rows // N, None]  # (R, 1)
    parts = read.summary * share
    return Encoding(
        join(read.memory),
        join(read.closed, -torch.inf),
        parts.new_zeros(B, parts.shape[1]).index_add(0, rows // N, parts),
        None if read.details is None else join(read.details),
    )
