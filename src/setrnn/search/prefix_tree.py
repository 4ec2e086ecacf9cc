"""Algorithms 1 and 3 for a CPU, which spends its time on arithmetic: each prefix is computed once.

All searches of a batch share a tree of prefixes. A step computes the prefixes that are new and
still open, without padding, for searches that are not over. Sets that cannot be among those asked
for are dropped.
"""

# B documents, N searches, C labels to choose from, W beams now, K beams at most, S steps,
# R prefixes of t labels, G sets of a document, V = labels + STOP; labels are padded with -1

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding, RowDecoder, State

ROUNDING = 1e-4  # error of a sum of probabilities


@dataclass(frozen=True)
class _Level:
    """The prefixes of t labels."""

    keys: Tensor  # (R,) parent and last label
    documents: Tensor  # (R,)
    log_probs: Tensor  # (R, V) of what follows
    state: State  # (R, ...)

    def join(self, other: _Level) -> _Level:
        """Add prefixes behind these."""
        pairs = zip(self.state, other.state, strict=True)
        return _Level(
            torch.cat((self.keys, other.keys)),
            torch.cat((self.documents, other.documents)),
            torch.cat((self.log_probs, other.log_probs)),
            tuple(torch.cat(pair) for pair in pairs),
        )


class PrefixTree:
    """The prefixes of the documents of a batch that were computed so far, by their length."""

    @classmethod
    def of(cls, decoder: RowDecoder, encoding: Encoding) -> PrefixTree:
        """Return the tree of an encoding: all searches of its documents grow the same one."""
        if "tree" not in encoding.memo:
            encoding.memo["tree"] = cls(decoder, replace(encoding))  # a cycle would stay in memory
        tree: PrefixTree = encoding.memo["tree"]
        return tree

    @torch.no_grad()
    def __init__(self, decoder: RowDecoder, encoding: Encoding) -> None:
        self.decoder, self.encoding = decoder, encoding
        documents = torch.arange(len(encoding.memory))
        state = tuple(each[:, 0] for each in decoder.start(encoding))
        previous = torch.full_like(documents, decoder.n_labels)
        self.levels = [self._compute(documents, documents, state, documents, previous)]

    @property
    def nbytes(self) -> int:
        """The memory of the prefixes."""
        levels = ((each.log_probs, *each.state) for each in self.levels)
        return sum(tensor.nbytes for level in levels for tensor in level)

    def _compute(
        self, keys: Tensor, documents: Tensor, state: State, parents: Tensor, previous: Tensor
    ) -> _Level:
        log_probs, state = self.decoder.step_rows(
            self.encoding, documents, state, parents, previous
        )
        return _Level(keys, documents, log_probs, state)

    @torch.no_grad()
    def find(self, t: int, parents: Tensor, labels: Tensor) -> Tensor:
        """Return the rows of prefixes of t labels, given parents (N,) and last labels (N,).

        Those that are new are computed.
        """
        keys = parents * self.decoder.n_labels + labels
        wanted, place = torch.unique(keys, return_inverse=True)
        is_old = t < len(self.levels)
        rows, new = torch.arange(len(wanted)), wanted
        if is_old:
            keys, order = self.levels[t].keys.sort()
            at = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
            is_new = keys[at] != wanted
            new = wanted[is_new]
            rows = order[at]
            rows[is_new] = len(keys) + torch.arange(len(new))
        if len(new):
            above = self.levels[t - 1]
            rows_above = new // self.decoder.n_labels
            continued, parent = torch.unique(rows_above, return_inverse=True)
            state = tuple(each[continued] for each in above.state)
            label = new % self.decoder.n_labels
            level = self._compute(new, above.documents[rows_above], state, parent, label)
            self.levels[t:] = [
                self.levels[t].join(level) if is_old else level,
                *self.levels[t + 1 :],
            ]
        return rows[place]


def can_share_prefixes(decoder: Decoder, encoding: Encoding) -> TypeGuard[RowDecoder]:
    """Return whether a tree of prefixes is the way to search."""
    return bool(getattr(decoder, "computes_rows", False)) and encoding.memory.device.type == "cpu"


def search_in_tree(
    tree: PrefixTree,
    documents: Tensor,
    choices: Tensor | None,
    beam_width: int,
    max_labels: int,
    least: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Run Algorithm 1 for N searches: labels (N, K, S) and log-probabilities (N, K).

    Args:
        tree: the prefixes.
        documents: the document of each search, (N,).
        choices: the sets whose orders are wanted, (N, C), padded with -1 (ALL = 1); None for
            sequences of any labels (ALL = 0).
        beam_width: K, the number of sequences that are kept.
        max_labels: the largest number of labels in a sequence.
        least: a search ends without a result when its sequences have a lower probability in
            sum, (N,).
    """
    stop = tree.decoder.n_labels
    n_searches = len(documents)
    assert n_searches, "there is something to search for"
    columns = sizes = None
    if choices is not None:
        sizes = (choices >= 0).sum(1)  # (N,)
        columns = torch.nn.functional.pad(choices, (0, 1), value=-1)
        columns = columns.where(columns >= 0, stop)  # (N, C + 1), the last is STOP
        max_labels = min(max_labels, choices.shape[1])
    found_labels = documents.new_full((n_searches, beam_width, max_labels), -1)
    found = torch.full((n_searches, beam_width), -torch.inf)
    searches = torch.arange(n_searches)
    emitted = documents.new_empty((n_searches, 1, 0))
    scores = torch.zeros(n_searches, 1)
    is_finished = torch.zeros(n_searches, 1, dtype=torch.bool)
    rows = documents[:, None]  # (N, W) the prefix of each beam
    for n_emitted in range(max_labels + 1):
        # Step 1: extend every sequence by every label, or by STOP, the last column.
        grown = _look_up(tree.levels[n_emitted].log_probs, rows, columns)  # (N, W, C + 1)
        if columns is not None and sizes is not None:
            is_last = sizes == n_emitted
            closed = torch.zeros(columns.shape)
            closed[:, :-1].masked_fill_(columns[:, :-1] == stop, -torch.inf)
            closed[:, -1].masked_fill_(~is_last, -torch.inf)
            grown = grown + closed[:, None]
        elif n_emitted == max_labels:
            grown[..., :-1] = -torch.inf
        n_columns = grown.shape[2]
        grown[is_finished] = -torch.inf  # finished ones stay
        grown[..., -1].masked_fill_(is_finished, 0.0)
        candidates = (scores[..., None] + grown).flatten(1)

        # Step 2: keep the best K.
        scores, best = candidates.topk(min(beam_width, candidates.shape[1]), dim=1)  # (N, W)
        parent, column = best // n_columns, best % n_columns
        is_finished = column == n_columns - 1
        label = column if columns is None else columns.gather(1, column)
        emitted = emitted.gather(1, parent[..., None].expand(-1, -1, n_emitted))
        emitted = torch.cat((emitted, label[..., None]), dim=2)

        is_dead = is_finished | (scores == -torch.inf)
        is_over = is_dead.all(1)
        if least is not None:
            is_hopeless = scores.exp().sum(1) < least
            scores = scores.masked_fill(is_hopeless[:, None], -torch.inf)
            is_over |= is_hopeless
        if n_emitted == max_labels:
            is_over = torch.ones_like(is_over)
        if is_over.any():
            over, W = searches[is_over], scores.shape[1]
            found[over, :W] = scores[is_over]
            found_labels[over, :W, : n_emitted + 1] = emitted[is_over, :, :max_labels]
            is_open = ~is_over
            if not is_open.any():
                break
            searches, scores, emitted = searches[is_open], scores[is_open], emitted[is_open]
            is_finished, is_dead = is_finished[is_open], is_dead[is_open]
            parent, label, rows = parent[is_open], label[is_open], rows[is_open]
            columns = None if columns is None else columns[is_open]
            sizes = None if sizes is None else sizes[is_open]
            least = None if least is None else least[is_open]
        is_live = ~is_dead
        grown_from = rows.gather(1, parent)[is_live]
        rows = torch.zeros_like(label)
        rows[is_live] = tree.find(n_emitted + 1, grown_from, label[is_live])
    is_none = (found_labels == stop) | (found == -torch.inf)[..., None]
    found_labels = found_labels.masked_fill(is_none, -1)
    longest = int((found_labels >= 0).sum(2).max()) if found_labels.numel() else 0
    return found_labels[..., :longest], found


def _look_up(log_probs: Tensor, rows: Tensor, columns: Tensor | None) -> Tensor:
    """Look up log-probabilities (R, V) of columns (N, C + 1) after prefixes (N, W)."""
    if columns is None:
        return log_probs[rows]
    places = rows[..., None] * log_probs.shape[1] + columns[:, None]  # (N, W, C + 1)
    return log_probs.flatten().index_select(0, places.flatten()).view(places.shape)


def score_in_tree(
    tree: PrefixTree, label_sets: Tensor, masses: Tensor, beam_width: int, n_sets: int
) -> Tensor:
    """Return log p of the best `n_sets` sets, and of others (B, G, S) that come with them: (B, G).

    The sets (B, G, S) have masses (B, G) that a search found already, -1 where there is none. The
    most promising sets are summed first. Another set has at most what all others leave, and the
    mass of its prefixes: it is dropped when that is too little.
    """
    B, G, _ = label_sets.shape
    log_probs = torch.full((B, G), -torch.inf)
    n_first = min(n_sets, G)
    first = masses.topk(n_first, dim=1).indices
    is_first = torch.zeros(B, G, dtype=torch.bool).scatter_(1, first, True) & (masses >= 0)
    _sum_orders(tree, label_sets, is_first, beam_width, log_probs)
    if n_first == G:
        return log_probs
    least = log_probs.topk(n_first, dim=1).values[:, -1].exp() - ROUNDING  # (B,)
    known = masses.clamp(min=0).maximum(log_probs.exp())
    most = 1 - (known.sum(1, keepdim=True) - known)
    is_open = (masses >= 0) & ~is_first & (most >= least[:, None])
    _sum_orders(tree, label_sets, is_open, beam_width, log_probs, least)
    return log_probs


def sum_in_tree(tree: PrefixTree, label_sets: Tensor, beam_width: int) -> Tensor:
    """Return log p of all sets (B, G, S), summed over the orders found: (B, G)."""
    log_probs = torch.full(label_sets.shape[:2], -torch.inf)
    is_chosen = torch.ones_like(log_probs, dtype=torch.bool)
    _sum_orders(tree, label_sets, is_chosen, beam_width, log_probs)
    return log_probs


def _sum_orders(
    tree: PrefixTree,
    label_sets: Tensor,
    is_chosen: Tensor,
    beam_width: int,
    log_probs: Tensor,
    least: Tensor | None = None,
) -> None:
    """Write log p of the chosen sets into `log_probs` (B, G)."""
    document, place = is_chosen.nonzero(as_tuple=True)
    if not len(document):
        return
    sets = label_sets[document, place]
    bound = None if least is None else least[document]
    _, found = search_in_tree(tree, document, sets, beam_width, sets.shape[1], bound)
    log_probs[document, place] = found.logsumexp(1)
