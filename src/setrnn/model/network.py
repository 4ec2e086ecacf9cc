"""A whole network: an encoder and a decoder, by their names, and the evidence for labels.

Long documents are read in windows: the memory of a document is that of all its windows. To learn
more words and labels, a trained network grows: rows are added to its weights.
"""

# B documents, T words, C words of a window, N windows of the longest document, R windows of all
# documents, L labels, D dimensions of a label vector

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from setrnn.config import Config, ModelSettings, TextSettings
from setrnn.data.batches import Batch
from setrnn.data.cache import Vocabulary
from setrnn.data.disk import select_prefix
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.vectors import compose_vectors
from setrnn.model.decoders import find_decoder
from setrnn.model.devices import without_values
from setrnn.model.encoders import find_encoder
from setrnn.model.encoders.transformer import average_names
from setrnn.model.evidence import (
    LABELS_PER_PLACE,
    LabelEvidence,
    ShortlistEvidence,
    make_evidence,
)
from setrnn.model.interfaces import Encoder, Encoding
from setrnn.progress import OnProgress, ignore_progress

# The names of weights that grow.
WORDS, LABELS, SIZES = "encoder.words.weight", "decoder.labels.weight", "decoder.sizes.weight"


class Network(nn.Module):
    """An encoder and a decoder, and between them the evidence for each label, if there is any."""

    encoder: Any  # an Encoder
    decoder: Any  # of the kind that its system expects

    def __init__(
        self,
        encoder: Any,  # noqa: ANN401 (modules, see above)
        decoder: Any,  # noqa: ANN401
        evidence: LabelEvidence | None = None,
        window: int | None = None,
    ) -> None:
        """Combine the parts. The encoder reads `window` words at once; None means all."""
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.evidence = evidence
        self.window = window

    def encode(self, batch: Batch) -> Encoding:
        """Read the documents of a batch."""
        encoding = encode_windows(self.encoder, batch.tokens, batch.lengths, self.window)
        if self.evidence is None:
            return encoding
        if isinstance(self.evidence, ShortlistEvidence):
            return self.evidence.shorten(encoding)
        return replace(encoding, evidence=self.evidence(encoding))


def make_network(
    prepared: Prepared,
    config: Config,
    decoder: str = "rnn",
    on_progress: OnProgress = ignore_progress,
) -> Network:
    """Build a network as it is before training: the same for the same seed."""
    torch.manual_seed(config.seed)
    encoder, labels = find_encoder(config.encoder.name).from_data(prepared, config, on_progress)
    made = find_decoder(decoder, config.model)(encoder.memory_size, labels, config.model)
    evidence = None
    if config.model.evidence:
        n_listed = config.model.shortlist
        is_short = 0 < n_listed * LABELS_PER_PLACE <= len(labels)
        evidence = make_evidence(encoder.word_size, len(labels), n_listed if is_short else 0)
    return Network(encoder, made, evidence, find_window(config.text))


def rebuild_network(weights: Mapping[str, Tensor], config: Config, decoder: str = "rnn") -> Network:
    """Build a network from its weights; the sizes of its vocabularies are theirs."""
    settings = config.model
    parts = ("encoder", "decoder", "evidence")
    own = {part: select_prefix(f"{part}.", weights) for part in parts}
    encoder = find_encoder(config.encoder.name).from_weights(own["encoder"], settings)
    kind = find_decoder(decoder, settings)
    made = kind.from_weights(own["decoder"], encoder.memory_size, settings)
    with without_values():
        n_listed = settings.shortlist if "proposal.weight" in own["evidence"] else 0
        evidence = (
            make_evidence(encoder.word_size, made.n_labels, n_listed) if own["evidence"] else None
        )
    network = Network(encoder, made, evidence, find_window(config.text))
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


@dataclass(frozen=True)
class Grown:
    """The weights of a network that has grown."""

    weights: Mapping[str, Tensor]
    new_rows: Mapping[str, Tensor]  # of the weights of labels, by their names


def grow_weights(
    network: Network, decoder: str, settings: ModelSettings, known: Vocabulary, prepared: Prepared
) -> Grown:
    """Return the weights of a network for the words and labels of prepared data.

    What the network knows keeps its values. The vector of a new word is composed of those of the
    words in its documents, that of a new label also of the words of its name; its other weights
    are the mean of those of all labels.

    Args:
        network: the network.
        decoder: the name of its decoder.
        settings: its settings.
        known: the words and labels that it knows.
        prepared: the data, with all of them and more.
    """
    weights = {name: each.detach().cpu().clone() for name, each in network.state_dict().items()}
    labels = prepared.labels
    places = [labels.index[name] for name in known.labels.names]
    of_labels = _list_label_weights(network, decoder, settings)
    for name in of_labels:
        mean = weights[name][: len(places)].mean(0)
        weights[name] = _add_rows(weights[name], places, len(labels), mean)
    if SIZES in weights:  # larger sets than before are like the largest
        n_more = settings.max_labels + 1 - len(weights[SIZES])
        weights[SIZES] = torch.cat([weights[SIZES], *[weights[SIZES][-1:]] * n_more])
    composed = _compose(network, weights, known, prepared)
    is_new = np.ones(len(labels), dtype=bool)
    is_new[places] = False
    if LABELS in weights:
        vectors = weights[LABELS][:-1]
        vectors[is_new] = _fit(composed, vectors, is_new)
    new_rows = torch.from_numpy(np.flatnonzero(is_new))
    return Grown(weights, dict.fromkeys(of_labels, new_rows) if len(new_rows) else {})


def _compose(
    network: Network, weights: dict[str, Tensor], known: Vocabulary, prepared: Prepared
) -> Tensor:
    """Add the vectors of new words, and return composed vectors of all labels: (L, D)."""
    encoder = prepared.encoder
    if isinstance(encoder, SubwordEncoder):  # of a transformer, whose tokens stay
        names = Ragged.from_lists(encoder.encode_names(prepared.labels.names))
        return average_names(network.encoder.transformer, names).cpu()
    rows = {token: row for row, token in enumerate(encoder.tokens)}
    own_rows = [rows[token] for token in known.encoder.tokens]
    words = _add_rows(weights[WORDS], own_rows, len(rows), torch.zeros(()))
    is_new = np.ones(len(rows), dtype=bool)
    is_new[own_rows] = False
    composed = torch.from_numpy(compose_vectors(prepared, words.numpy(), is_new))
    words[is_new] = composed[: len(rows)][is_new]
    weights[WORDS] = words
    return composed[len(rows) :]


def _fit(composed: Tensor, vectors: Tensor, is_new: np.ndarray) -> Tensor:
    """Return composed vectors of new labels, placed and scaled like those of the others."""
    known, new = composed[~is_new], composed[is_new]
    own = vectors[~is_new]
    scale = own.std() / known.std().clamp(min=1e-9)
    return own.mean(0) + scale * (new - known.mean(0))


def _add_rows(weights: Tensor, places: Sequence[int], n_rows: int, value: Tensor) -> Tensor:
    """Put rows into their places among `n_rows`; rows after those with a place stay the last."""
    n_own = len(places)
    grown = weights.new_empty(n_rows + len(weights) - n_own, *weights.shape[1:])
    grown[:] = value
    grown[list(places)] = weights[:n_own]
    grown[n_rows:] = weights[n_own:]
    return grown


def _list_label_weights(network: Network, decoder: str, settings: ModelSettings) -> list[str]:
    """Return the names of the weights that have a row per label: with one more, they are longer."""
    own = network.decoder
    dimensions = own.labels.embedding_dim if hasattr(own, "labels") else 0
    with without_values():
        vectors = torch.empty(own.n_labels + 1, dimensions, device="meta")
        kind = find_decoder(decoder, settings)
        larger: Any = kind(network.encoder.memory_size, vectors, settings)
    shapes = {name: each.shape for name, each in own.state_dict().items()}
    names = [
        f"decoder.{name}"
        for name, each in larger.state_dict().items()
        if each.shape != shapes[name] and f"decoder.{name}" != SIZES
    ]
    evidence = [] if network.evidence is None else network.evidence.state_dict()
    return [*names, *(f"evidence.{name}" for name in evidence)]
