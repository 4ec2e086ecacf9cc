"""Tag documents with sets of labels, and know the probability of each set."""

from __future__ import annotations

__version__ = "0.1.0"
