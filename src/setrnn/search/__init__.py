"""Search over label sequences and label sets; it sees a decoder's steps, never a network."""

from setrnn.search.beam_search import Sequences, beam_search, search_orders, search_sequences
from setrnn.search.set_search import ScoredSets, most_probable_sets, set_log_prob

__all__ = [
    "ScoredSets",
    "Sequences",
    "beam_search",
    "most_probable_sets",
    "search_orders",
    "search_sequences",
    "set_log_prob",
]
