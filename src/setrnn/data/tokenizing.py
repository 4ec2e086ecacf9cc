"""Texts to word ids, as in the paper: one tokenizer, saved as one JSON file.

Lower case; punctuation and stop words out; numbers and words outside the vocabulary as
special tokens; features as tokens of their own kind. Ids lie in this order:

    [PAD] [UNK] NUM | words by falling frequency | features | [STOP WORDS] and each of them

Stop words keep ids, above all others, so that one comparison drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar

from tokenizers import Encoding, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from setrnn.config import TextSettings
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError, DataError, ModelError

PAD, UNKNOWN, NUMBER, STOP_WORDS = "[PAD]", "[UNK]", "NUM", "[STOP WORDS]"
SPECIAL_TOKENS = (PAD, UNKNOWN, NUMBER)
FEATURE_PREFIX = "[feature] "

# Scripts without spaces between words: each character is a word.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_SPACED = rf"[[\p{{L}}\p{{M}}\p{{N}}]&&[^{_UNSPACED}]]"
_WORD = rf"{_SPACED}+|[{_UNSPACED}]\p{{M}}*"
# After the lower-casing, so that no text can hold the token NUM itself.
# Not \b: it takes the underscore and unspaced scripts for letters, and circled digits not.
# The digit first, then the look behind it: the search then skips from digit to digit.
_WHOLE_NUMBER = rf"\p{{Nd}}(?<!{_SPACED}\p{{Nd}})\p{{Nd}}*(?:[.,]\p{{Nd}}+)*(?!{_SPACED})"


@dataclass(frozen=True)
class TextEncoder:
    """Turns documents into rows of token ids: their words, then their features."""

    tokenizer: Tokenizer
    max_words: int
    adds_special_tokens: ClassVar[bool] = False

    @cached_property
    def n_tokens(self) -> int:
        """Count the ids a document can hold: every kind but stop words."""
        n_tokens = self.tokenizer.token_to_id(STOP_WORDS)
        assert n_tokens is not None, "every tokenizer of ours has stop words"
        return n_tokens

    @cached_property
    def tokens(self) -> list[str]:
        """List the token of each id, stop words aside."""
        by_id = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        return [token for token, _ in by_id[: self.n_tokens]]

    @cached_property
    def _feature_ids(self) -> dict[str, int]:
        start = len(FEATURE_PREFIX)
        return {
            token[start:]: index
            for index, token in enumerate(self.tokens)
            if token.startswith(FEATURE_PREFIX)
        }

    def encode(self, texts: Sequence[str], features: Sequence[Sequence[str]] = ()) -> Ragged:
        """Return one row of ids a document; unknown features are left out."""
        return self.pack(self.tokenize(texts), features)

    def pack(self, encodings: Sequence[Encoding], features: Sequence[Sequence[str]]) -> Ragged:
        """Turn what `tokenize` returned into rows of ids: the half of `encode` in Python."""
        words = Ragged.from_lists([encoding.ids for encoding in encodings])
        words = words.keep(words.values < self.n_tokens).truncate(self.max_words)
        if not self._feature_ids or not any(features):
            return words
        known = self._feature_ids
        return words.append(
            Ragged.from_lists([[known[name] for name in row if name in known] for row in features])
        )

    def tokenize(self, texts: Sequence[str]) -> list[Encoding]:
        """Run the tokenizer, on all cores: the half of `encode` that other threads run beside."""
        try:
            return self._run(list(texts))
        except TypeError as error:  # something that is not text, or half a character
            for index, text in enumerate(texts):
                if not isinstance(text, str):
                    kind = type(text).__name__
                    raise DataError(f"Text {index} must be a string, got {kind}.") from error
            whole = [text.encode("utf-8", "replace").decode() for text in texts]
            return self._run(whole)

    def _run(self, texts: list[str]) -> list[Encoding]:
        special = self.adds_special_tokens
        return self.tokenizer.encode_batch_fast(texts, add_special_tokens=special)

    def save(self, file: Path) -> None:
        """Write the tokenizer's JSON file."""
        file.write_text(self.tokenizer.to_str(), encoding="utf-8")

    @classmethod
    def load(cls, file: Path, max_words: int) -> TextEncoder:
        """Read the tokenizer's JSON file."""
        tokenizer = read_tokenizer(file)
        if tokenizer.token_to_id(STOP_WORDS) is None:
            raise ModelError(f"{file} is a tokenizer, but not one that setrnn wrote.")
        return cls(tokenizer, max_words)


def read_tokenizer(file: Path) -> Tokenizer:
    """Read any tokenizer's JSON file."""
    try:
        return Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as error:
        raise ModelError(f"{file} is not a tokenizer file, or is cut short.") from error


def learn_tokenizer(
    texts: Iterable[str], features: Iterable[str], settings: TextSettings
) -> Tokenizer:
    """Build the tokenizer: its vocabulary is the most frequent words of the texts.

    Args:
        texts: the training texts.
        features: the features, by falling frequency.
        settings: sizes and stop words.
    """
    tokenizer = _blank_tokenizer({})
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31 - 1, min_frequency=settings.min_count, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    stop_words = read_stop_words(settings.stop_words)
    ranked = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    set_aside = stop_words | {NUMBER}
    words = [word for word, _ in ranked if word not in set_aside][: settings.max_vocabulary]
    tokens = chain(
        SPECIAL_TOKENS,
        words,
        (FEATURE_PREFIX + name for name in features),
        (STOP_WORDS,),
        sorted(stop_words),
    )
    return _blank_tokenizer({token: index for index, token in enumerate(tokens)})


def read_stop_words(name: str) -> set[str]:
    """Return the stop words: a known list ("english", "none"), or a file with one a line."""
    if name == "none":
        return set()
    if name == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        # What is left of "it's", "don't", "we'll", "I've", "you're" without the apostrophe.
        return set(ENGLISH_STOP_WORDS) | {"s", "t", "ll", "ve", "re", "don", "doesn", "isn", "didn"}
    try:
        return set(Path(name).read_text(encoding="utf-8").lower().split())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"text.stop_words is 'english', 'none' or a file with one word a line; "
            f"'{name}' cannot be read."
        ) from error


def _blank_tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(Regex(_WHOLE_NUMBER), NUMBER)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), "removed", invert=True)
    return tokenizer
