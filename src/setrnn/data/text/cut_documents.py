"""Say which share of documents is cut, and which setting reads more of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from string import ascii_letters, digits, whitespace

from setrnn.config import WORDS, TextSettings
from setrnn.data.text.words import TextEncoder, learn_tokenizer

MOST_SUGGESTED = 16  # windows
MOST_CUT = 0.01  # of the documents, with the suggested number of windows
_INSIDE_OR_SPACE = (ascii_letters + digits + whitespace).encode()


def describe_cut_documents(
    n_windows: Mapping[str, Mapping[int, int]], settings: TextSettings
) -> str | None:
    """Return one line on the documents that are cut; None if none is.

    Args:
        n_windows: the number of documents of each split by the windows that their text fills.
        settings: how texts are cut.

    Example:
        >>> describe_cut_documents({"train": {1: 90, 2: 9, 7: 1}}, TextSettings())
        'Cut after 500 words: 10.0% of train. To read up to 1,000 words: --set text.windows=2'
    """
    shares = {name: _share_above(each, settings.windows) for name, each in n_windows.items()}
    if not any(shares.values()):
        return None
    total = sum((Counter(each) for each in n_windows.values()), Counter[int]())
    wanted = settings.windows + 1
    while wanted < MOST_SUGGESTED and _share_above(total, wanted) > MOST_CUT:
        wanted += 1
    kind = "words" if settings.tokenizer == WORDS else "tokens"
    cut = ", ".join(f"{_percent(share)} of {name}" for name, share in shares.items() if share)
    return (
        f"Cut after {settings.window * settings.windows:,} {kind}: {cut}. To read up to "
        f"{settings.window * wanted:,} {kind}: --set text.windows={wanted}"
    )


def _share_above(n_windows: Mapping[int, int], most: int) -> float:
    """Return the share of documents that fill more windows."""
    n_above = sum(count for n, count in n_windows.items() if n > most)
    return n_above / max(sum(n_windows.values()), 1)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "less than 0.1%"


class WindowCounter:
    """Counts how many windows of words texts fill, without a vocabulary."""

    def __init__(self, settings: TextSettings) -> None:
        self.settings = settings

    @cached_property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(learn_tokenizer((), (), self.settings), self.settings.max_words)

    def count(self, text: str, n_spaced: int) -> int:
        """Return the number of windows that a text fills; `n_spaced` of its words are spaced.

        Example:
            >>> WindowCounter(TextSettings(max_words=2)).count("the rain falls on fields", 5)
            2
        """
        most = self.settings.max_words
        if len(text) <= most:
            return 1
        # A mark in ASCII begins one more word at most, any other character two: it has two bytes.
        written = text.encode("utf-8", "surrogatepass")
        if n_spaced + len(written.translate(None, _INSIDE_OR_SPACE)) <= most:
            return 1
        return self._encoder.count_windows(self._encoder.tokenize([text]))[0]
