"""Let a trained network read more words and know more labels: rows are added to its weights."""

# L labels, D dimensions of a label vector

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setrnn.config import ModelSettings
from setrnn.data.cache import Vocabulary
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.vectors import compose_vectors
from setrnn.model.decoders import find_decoder
from setrnn.model.devices import without_values
from setrnn.model.encoders.transformer import average_names
from setrnn.model.network import Network

WORDS, LABELS, SIZES = "encoder.words.weight", "decoder.labels.weight", "decoder.sizes.weight"
INTERCEPTS = "wide.intercepts"


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
    are the mean of those of all labels. The arrays of wide evidence are only right for the words
    that they were fitted on.

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
    if INTERCEPTS in weights:  # a label that br does not know is rare
        own = weights[INTERCEPTS]
        weights[INTERCEPTS] = _add_rows(own, places, len(labels), own.min())
        to = torch.tensor(places, dtype=torch.long)
        weights["wide.labels"] = to[weights["wide.labels"]]
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
        larger: Any = find_decoder(decoder)(network.encoder.memory_size, vectors, settings)
    shapes = {name: each.shape for name, each in own.state_dict().items()}
    names = [
        f"decoder.{name}"
        for name, each in larger.state_dict().items()
        if each.shape != shapes[name] and f"decoder.{name}" != SIZES
    ]
    evidence = [] if network.evidence is None else network.evidence.state_dict()
    return [*names, *(f"evidence.{name}" for name in evidence)]
