"""Turn texts into subword ids by the tokenizer of a pretrained encoder, or of several at once.

The tokenizer cuts a text into windows and adds its special tokens to each. A row has the windows of
a document one after the other; all but the last are full. Features follow the text as if they were
words of it.

A mixture may have members with different tokenizers. Everything between the texts and the system
handles one row per document, which holds the ids of each tokenizer; the system splits it again.
"""

# n documents, P tokenizers

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from tokenizers import Encoding, Tokenizer

from setrnn.config import WORDS, Config, TextSettings
from setrnn.data.ragged import Ragged
from setrnn.data.text.words import (
    NUMBERED,
    NameText,
    TextEncoder,
    break_runs,
    read_tokenizer,
    run_tokenizer,
)
from setrnn.errors import DataError, MissingExtraError, ModelError

TOKENIZER_FILE = "tokenizer.json"
# Limits of tokenizers.
MAX_GROWTH, MAX_STEPS, MAX_LETTERS = 64, 200, 1_000
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class SubwordEncoder(TextEncoder):
    """Turns documents into rows of subword ids, special tokens included."""

    adds_special_tokens: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Set the length of a window, without padding."""
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(self.max_words)

    @cached_property
    def n_tokens(self) -> int:
        """The number of ids, including those without a token."""
        return max(self.tokenizer.get_vocab().values(), default=0) + 1

    @cached_property
    def tokens(self) -> list[str]:
        """The token of each id."""
        tokens = [""] * self.n_tokens
        for token, index in self.tokenizer.get_vocab().items():
            tokens[index] = token
        return tokens

    @cached_property
    def n_special(self) -> tuple[int, int]:
        """The number of special tokens before and after the text of a window."""
        is_special = self.tokenizer.encode("a").special_tokens_mask
        if 0 not in is_special:
            return len(is_special), 0
        return is_special.index(0), is_special[::-1].index(0)

    def pack(self, encodings: Sequence[Encoding], features: Sequence[Sequence[str]]) -> Ragged:
        """Turn the result of `tokenize` into rows of ids; features replace the end of the text."""
        windows = [[each.ids for each in self.cut(encoding)] for encoding in encodings]
        no_tags: list[list[int]] = [[] for _ in windows]
        tags = (
            self.encode_names([" ".join(each) for each in features]) if any(features) else no_tags
        )
        return Ragged.from_lists([*map(self.join_windows, windows, tags)])

    def cut(self, encoding: Encoding) -> list[Encoding]:
        """Return the windows of a text that are read."""
        if self.windows == 1 or len(encoding) < self.max_words:
            return [encoding]
        return [encoding, *encoding.overflowing[: self.windows - 1]]

    def count_windows(self, encodings: Sequence[Encoding]) -> list[int]:
        """Return how many windows the whole of each text would fill, read or not."""
        return [
            1 if len(each) < self.max_words else 1 + len(each.overflowing) for each in encodings
        ]

    def encode_names(self, names: Sequence[str]) -> list[list[int]]:
        """Return the ids of names, such as labels, without special tokens."""
        found = run_tokenizer(self.tokenizer, [*map(break_runs, names)], special=False)
        return [each.ids for each in found]

    def join_windows(self, windows: Sequence[list[int]], tags: list[int]) -> list[int]:
        """Join windows, each with a value per subword, and put those of the features at the end.

        Features take at most half of a window; if they need it, the end of the text is cut.
        """
        if not tags:
            return [*chain.from_iterable(windows)]
        before, after = self.n_special
        first, last, tags = windows[0], windows[-1], tags[: self.max_words // 2]
        opening, closing = first[:before], last[len(last) - after :]
        text = [*chain.from_iterable(each[before : len(each) - after] for each in windows)]
        room = self.max_words - before - after  # of a window
        text = text[: room * self.windows - len(tags)] + tags
        starts = range(0, len(text), room)
        return [*chain.from_iterable((*opening, *text[i : i + room], *closing) for i in starts)]

    @classmethod
    def load(cls, file: Path, max_words: int, windows: int = 1) -> SubwordEncoder:
        """Read the JSON file of a tokenizer."""
        tokenizer = read_tokenizer(file)
        check_tokenizer(tokenizer, max_words, str(file))
        return cls(tokenizer, max_words, windows)


def load_text_encoder(file: Path, settings: TextSettings) -> TextEncoder:
    """Read the tokenizer of a prepared folder or a model."""
    kind = TextEncoder if settings.tokenizer == WORDS else SubwordEncoder
    return kind.load(file, settings.window, settings.windows)


def pretrained_encoder(settings: TextSettings) -> SubwordEncoder:
    """Read the tokenizer of a transformer from a folder or the hub."""
    path = settings.tokenizer
    file = Path(path) / TOKENIZER_FILE
    if file.is_file():
        return SubwordEncoder.load(file, settings.max_tokens, settings.windows)
    check_place(path)
    if file.parent.is_dir():
        raise ModelError(f"{path} has no tokenizer: it lacks {TOKENIZER_FILE}.")
    with quiet_transformers() as transformers:
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(path).backend_tokenizer
        except Exception as error:  # a broken file or the network may raise anything
            raise ModelError(
                f"'{path}' is not a folder, and its tokenizer could not be downloaded from the "
                "Hugging Face hub. Check the name and the connection, or give a folder as "
                "encoder.path."
            ) from error
    check_tokenizer(tokenizer, settings.max_tokens, path)
    return SubwordEncoder(tokenizer, settings.max_tokens, settings.windows)


def check_tokenizer(tokenizer: Tokenizer, max_tokens: int, place: str) -> None:
    """Refuse a tokenizer that multiplies texts, or that needs more than linear time for a word.

    Tokenizers of well-known transformers stay far within the limits.
    """
    problem, growth, n_steps = "", 1, 0
    for part in (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.post_processor):
        state = b"null" if part is None else part.__getstate__()
        for step in _list_steps(json.loads(state)):
            n_steps += 1
            growth *= _find_growth(step)
            if sum("Sequence" in piece for piece in step.get("single", ())) > 1:
                problem = "repeats the text"
    if growth > MAX_GROWTH:
        problem = f"may make a text {MAX_GROWTH} times as long"
    if n_steps > MAX_STEPS:
        problem = f"has {n_steps:,} steps"
    if tokenizer.num_special_tokens_to_add(is_pair=False) > max_tokens // 2:
        problem = f"adds more special tokens than half of text.max_tokens ({max_tokens:,})"
    if getattr(tokenizer.model, "max_input_chars_per_word", 0) > MAX_LETTERS:
        problem = f"splits words of more than {MAX_LETTERS:,} letters"
    if problem:
        raise ModelError(f"The tokenizer of {place} {problem}. Use another tokenizer.")


def _list_steps(state: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 (JSON values)
    """Yield the steps of a part of a tokenizer, however they are nested."""
    if isinstance(state, dict) and "type" in state:
        yield state
    inner = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    for each in inner:
        yield from _list_steps(each)


def _find_growth(step: dict[str, Any]) -> int:
    """Return how many times as long a step may make a text."""
    added = max(len(step.get(name) or "") for name in ("content", "prepend"))
    if step["type"] == "Precompiled":  # after its own length, a table: what to write for characters
        table = base64.b64decode(step["precompiled_charsmap"])
        written = table[4 + int.from_bytes(table[:4], "little") :]
        added = max(map(len, written.split(b"\0")))  # bytes; 33 are the most in Unicode's own table
    return max(added, 1)


@contextmanager
def quiet_transformers() -> Iterator[Any]:
    """Import the optional library when it is needed, and hide its progress bars and messages."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError("transformers", "hf", "A transformer as encoder") from error
    logging = transformers.utils.logging
    level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()


def check_place(path: str) -> None:
    """Raise if a path is neither a folder nor a possible name on the hub."""
    if not Path(path).is_dir() and not _HUB_NAME.fullmatch(path):
        raise ModelError(f"encoder.path: there is no folder {path}.")


def check_same_tokenizer(place: Path, config: Config, own: TextEncoder) -> None:
    """Raise if data was prepared with another tokenizer than the encoder has."""
    has_subwords = isinstance(own, SubwordEncoder)
    if has_subwords and not config.encoder.is_pretrained:
        raise DataError(
            f"{place} was prepared for a transformer. Train one with --set "
            "encoder.name=transformer and its encoder.path, or give the data itself."
        )
    if config.encoder.is_pretrained and (
        not has_subwords
        or pretrained_encoder(config.text).tokenizer.get_vocab() != own.tokenizer.get_vocab()
    ):
        raise DataError(
            f"{place} was prepared with another tokenizer than that of {config.encoder.path}. "
            "Give the data itself, or prepare it with the same --set encoder.path."
        )


@dataclass(frozen=True)
class JointEncoder(TextEncoder):
    """Turns documents into rows: the number of ids of each tokenizer, then their ids.

    The tokenizer and the lengths are those of the first one.
    """

    encoders: tuple[TextEncoder, ...] = ()

    @property
    def parts(self) -> tuple[TextEncoder, ...]:
        """The encoder of each tokenizer."""
        return self.encoders

    @cached_property
    def n_tokens(self) -> int:
        """The most ids that a tokenizer has."""
        return max(each.n_tokens for each in self.encoders)

    def encode(
        self,
        texts: Sequence[str],
        features: Sequence[Sequence[str]] = (),
        name: NameText = NUMBERED,
    ) -> Ragged:
        """Return one row per document."""
        return join_rows([each.encode(texts, features, name) for each in self.encoders])

    def is_same(self, other: TextEncoder) -> bool:
        """Return whether another encoder gives the same ids."""
        pairs = zip(self.parts, other.parts, strict=False)
        return len(self.parts) == len(other.parts) and all(a.is_same(b) for a, b in pairs)


def join_encoders(encoders: Sequence[TextEncoder]) -> TextEncoder:
    """Return an encoder of several tokenizers; of one, the encoder itself."""
    first = encoders[0]
    if len(encoders) == 1:
        return first
    return JointEncoder(first.tokenizer, first.max_words, first.windows, tuple(encoders))


def join_rows(parts: Sequence[Ragged]) -> Ragged:
    """Join the rows of several tokenizers.

    Example:
        >>> words, subwords = Ragged.from_lists([[7, 8], []]), Ragged.from_lists([[3], [4, 5, 6]])
        >>> joined = join_rows([words, subwords])
        >>> joined[0].tolist(), joined[1].tolist()
        ([2, 1, 7, 8, 3], [0, 3, 4, 5, 6])
        >>> [part.padded().tolist() for part in split_rows(joined, 2)]
        [[[7, 8], [-1, -1]], [[3, -1, -1], [4, 5, 6]]]
    """
    lengths = np.stack([each.lengths for each in parts], axis=1)  # (n, P)
    joined = Ragged.from_lengths(
        lengths.astype(np.int32).ravel(), np.full(len(lengths), len(parts))
    )
    for each in parts:
        joined = joined.append(each)
    return joined


def split_rows(tokens: Ragged, n_parts: int) -> list[Ragged]:
    """Return the rows of each tokenizer; those of one tokenizer are not joined."""
    if n_parts == 1:
        return [tokens]
    starts = np.asarray(tokens.offsets[:-1])
    lengths = np.asarray(tokens.values)[starts[:, None] + np.arange(n_parts)].astype(np.int64)
    ends = starts[:, None] + n_parts + lengths.cumsum(axis=1)  # (n, P)
    return [
        tokens.spans(end - length, length) for end, length in zip(ends.T, lengths.T, strict=True)
    ]
