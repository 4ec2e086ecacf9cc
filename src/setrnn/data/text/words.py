"""Turn texts into word ids, as in the paper, by one tokenizer that is one JSON file.

Texts are lower-cased, punctuation and stop words are removed, and numbers and words outside the
vocabulary become special tokens. Features are tokens of their own kind. The order of ids is:

    [PAD] [UNK] NUM | words in descending order of frequency | features | [STOP WORDS] stop words

Stop words have the highest ids, so that one comparison removes them.

English texts are split as in the paper. Those of other languages are composed first (Unicode NFC),
are lower-cased by the rules of their language, and have longer words in scripts without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import ClassVar, TypeAlias

from tokenizers import Encoding, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from setrnn.config import AUTO, TextSettings
from setrnn.data.ragged import Ragged
from setrnn.data.text.languages import ENGLISH, find_language, read_stop_words
from setrnn.errors import BadRowError, ModelError

PAD, UNKNOWN, NUMBER, STOP_WORDS = "[PAD]", "[UNK]", "NUM", "[STOP WORDS]"
SPECIAL_TOKENS = (PAD, UNKNOWN, NUMBER)
FEATURE_PREFIX = "[feature] "

# In scripts without spaces between words, each character is a word.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
SPACED = rf"[[\p{{L}}\p{{M}}\p{{N}}]&&[^{_UNSPACED}]]"
WORD = rf"{SPACED}+|[{_UNSPACED}]\p{{M}}*"
# In languages other than English, a run of Katakana is a word, and so is what is written as one
# unit in Thai and Lao (vowels before and after their consonant), Khmer and Myanmar (stacked and
# final consonants). Han and Hiragana have no marks of words: each character is one.
_LONG_SOUND = r"\u30FC\uFF70"  # of Katakana; Unicode has it in several scripts
_UNITS = (
    rf"[\p{{Katakana}}{_LONG_SOUND}]+",
    r"[\u0E40-\u0E44]*\p{Thai}[\p{M}\u0E30\u0E32\u0E33\u0E45]*",
    r"[\u0EC0-\u0EC4]*\p{Lao}[\p{M}\u0EB0\u0EB2\u0EB3]*",
    r"\p{Khmer}\p{M}*(?:(?<=\u17D2)\p{Khmer}\p{M}*)*",
    r"\p{Myanmar}\p{M}*(?:(?:(?<=\u1039)\p{Myanmar}|\p{Myanmar}(?=\u103A))\p{M}*)*",
)
_UNICODE_WORD = rf"{'|'.join(_UNITS)}|[{SPACED}&&[^{_LONG_SOUND}]]+|[{_UNSPACED}]\p{{M}}*"
# Applied after lower-casing, so that no text can hold the token NUM itself.
# Not \b, which counts the underscore and unspaced scripts as letters, but not circled digits.
# A digit comes before the look-behind, so that the search skips from digit to digit. No digit is
# given back (*+, ++): a digit would follow, and millions of digits would exceed the stack.
WHOLE_NUMBER = rf"\p{{Nd}}(?<!{SPACED}\p{{Nd}})\p{{Nd}}*+(?:[.,]\p{{Nd}}++)*(?!{SPACED})"

# A longer run without spaces is broken into pieces: the expressions of a tokenizer fail on millions
# of characters. Scripts without spaces have other ends of words, so that they lose nothing.
MAX_RUN = 100_000
_RUN = re.compile(r"\S+")
# A failure inside the library, such as an expression that takes too many steps. The class is not an
# Exception, and cannot be imported.
_PANIC = "PanicException"

# How texts are split, with what is replaced before and after they are lower-cased.
PLAIN, UNICODE = "plain", "unicode"
Replaced: TypeAlias = tuple[tuple[str, str], ...]
WAYS: dict[str, tuple[Replaced, Replaced]] = {
    PLAIN: ((), ()),
    UNICODE: ((), ()),
    "german": ((), (("ß", "ss"),)),  # STRASSE and Straße are one word
    "turkish": ((("\u0130", "i"), ("I", "\u0131")), ()),  # dotted and dotless i are two letters
}

NameText: TypeAlias = Callable[[int], str]  # the name of a text by its number, for errors
NUMBERED: NameText = "Text {}".format


@dataclass(frozen=True)
class TextEncoder:
    """Turns documents into rows of token ids: first words, then features."""

    tokenizer: Tokenizer
    max_words: int  # per window
    windows: int = 1  # the most per document
    adds_special_tokens: ClassVar[bool] = False

    @cached_property
    def n_tokens(self) -> int:
        """The number of ids that a document can hold: all except stop words."""
        n_tokens = self.tokenizer.token_to_id(STOP_WORDS)
        assert n_tokens is not None, "every tokenizer that setrnn learns has stop words"
        return n_tokens

    @property
    def n_words(self) -> int:
        """The number of ids below the first feature."""
        return self.n_tokens - len(self.feature_ids)

    @property
    def limit(self) -> int:
        """The most words of a document that are read."""
        return self.max_words * self.windows

    @cached_property
    def tokens(self) -> list[str]:
        """The token of each id, without stop words."""
        return _list_tokens(self.tokenizer)[: self.n_tokens]

    @cached_property
    def feature_ids(self) -> dict[str, int]:
        """The id of each feature."""
        return {
            token.removeprefix(FEATURE_PREFIX): index
            for index, token in enumerate(self.tokens)
            if token.startswith(FEATURE_PREFIX)
        }

    def encode(
        self,
        texts: Sequence[str],
        features: Sequence[Sequence[str]] = (),
        name: NameText = NUMBERED,
    ) -> Ragged:
        """Return one row of ids per document; unknown features are left out."""
        return self.pack(self.tokenize(texts, name), features)

    def pack(self, encodings: Sequence[Encoding], features: Sequence[Sequence[str]]) -> Ragged:
        """Turn the result of `tokenize` into rows of ids: the part of `encode` in Python."""
        words = Ragged.from_lists([encoding.ids for encoding in encodings])
        words = words.keep(words.values < self.n_tokens).truncate(self.limit)
        if not self.feature_ids or not any(features):
            return words
        known = self.feature_ids
        return words.append(
            Ragged.from_lists([[known[name] for name in row if name in known] for row in features])
        )

    def count_windows(self, encodings: Sequence[Encoding]) -> list[int]:
        """Return how many windows the whole of each text would fill, read or not."""
        sizes = (
            sum(token < self.n_tokens for token in each.ids) if len(each) > self.max_words else 1
            for each in encodings
        )
        return [max(-(-size // self.max_words), 1) for size in sizes]

    def tokenize(self, texts: Sequence[str], name: NameText = NUMBERED) -> list[Encoding]:
        """Run the tokenizer on all cores: the part of `encode` that releases the interpreter.

        `name` returns the name of a text by its number, for errors.
        """
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise BadRowError(name(index), f"must be a string, got {type(text).__name__}.")
        broken, special = [break_runs(text) for text in texts], self.adds_special_tokens
        try:
            return run_tokenizer(self.tokenizer, broken, special, name)
        except TypeError:  # half a surrogate pair
            whole = [whole_characters(text) for text in broken]
            return run_tokenizer(self.tokenizer, whole, special, name)

    @property
    def parts(self) -> tuple[TextEncoder, ...]:
        """The encoder of each tokenizer: only a mixture may have several."""
        return (self,)

    def is_same(self, other: TextEncoder) -> bool:
        """Return whether another encoder has the same tokenizer and reads as many words."""
        return (
            type(self) is type(other)
            and (self.max_words, self.windows) == (other.max_words, other.windows)
            and self.tokenizer.to_str() == other.tokenizer.to_str()
        )

    def save(self, file: Path) -> None:
        """Write the JSON file of the tokenizer."""
        file.write_text(self.tokenizer.to_str(), encoding="utf-8")

    @classmethod
    def load(cls, file: Path, max_words: int, windows: int = 1) -> TextEncoder:
        """Read the JSON file of a tokenizer that setrnn learned."""
        tokenizer = read_tokenizer(file)
        vocabulary = tokenizer.get_vocab()
        has_all_ids = {*vocabulary.values()} == {*range(len(vocabulary))}
        if not has_all_ids or not {*SPECIAL_TOKENS, STOP_WORDS} <= vocabulary.keys():
            raise ModelError(f"{file} is a tokenizer, but not one that setrnn wrote.")
        # The rest is always the same. Anything else, such as a rule that multiplies the text, could
        # exhaust the memory.
        if tokenizer.to_str() != _blank_tokenizer(vocabulary, _recognise_way(tokenizer)).to_str():
            raise ModelError(
                f"{file} splits texts in another way than this version of setrnn. Train or "
                "prepare again."
            )
        return cls(tokenizer, max_words, windows)


def run_tokenizer(
    tokenizer: Tokenizer, texts: list[str], special: bool, name: NameText = NUMBERED
) -> list[Encoding]:
    """Tokenize texts; raise BadRowError with the name of a text that the tokenizer fails on."""
    try:
        return tokenizer.encode_batch_fast(texts, add_special_tokens=special)
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        if len(texts) == 1:
            problem = "the tokenizer fails on this text. Shorten it."
            raise BadRowError(name(0), problem) from error
    found = []
    for number, text in enumerate(texts):  # one of them fails
        found += run_tokenizer(tokenizer, [text], special, [name(number)].__getitem__)
    return found


def break_runs(text: str) -> str:
    """Put a space into runs of characters without spaces that are too long for a tokenizer."""
    if len(text) <= MAX_RUN or max(map(len, text.split()), default=0) <= MAX_RUN:
        return text

    def break_run(found: re.Match[str]) -> str:
        run = found[0]
        starts = range(0, len(run), MAX_RUN)
        return " ".join(run[start : start + MAX_RUN] for start in starts)

    return _RUN.sub(break_run, text)


def read_tokenizer(file: Path) -> Tokenizer:
    """Read the JSON file of any tokenizer."""
    try:
        return Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as error:
        raise ModelError(f"{file} is not a tokenizer file, or is cut short.") from error


def learn_tokenizer(
    texts: Iterable[str], features: Iterable[str], settings: TextSettings
) -> Tokenizer:
    """Build a tokenizer whose vocabulary is the most frequent words of texts, without stop words.

    The features come in descending order of frequency.
    """
    words = rank_words(texts, settings.min_count, settings.language)
    way = find_way(settings.language)
    stop_words = read_stop_words(settings.stop_words, settings.language)
    if way != PLAIN:  # write them as the texts: "daß" is "dass" where ß is ss
        stop_words = {_steps(way)[0].normalize_str(word) for word in stop_words} - {NUMBER}
    without = stop_words | {NUMBER}
    kept = islice((word for word in words if word not in without), settings.max_vocabulary)
    tags = (FEATURE_PREFIX + name for name in features)
    return _make_tokenizer(kept, tags, sorted(stop_words), way)


def extend_tokenizer(
    encoder: TextEncoder, new_words: Iterable[str], features: Iterable[str], settings: TextSettings
) -> Tokenizer:
    """Add words and features, the most frequent first, to a tokenizer; its stop words stay.

    New words follow the others, and new features theirs, so that only ids of features change.
    """
    own = _list_tokens(encoder.tokenizer)
    stop_words = own[encoder.n_tokens + 1 :]
    tags = [FEATURE_PREFIX + name for name in encoder.feature_ids]
    words = own[len(SPECIAL_TOKENS) : encoder.n_words]
    n_free = max(settings.max_vocabulary - len(words), 0)
    is_own = {*own}.__contains__
    words += islice(filterfalse(is_own, new_words), n_free)
    known = {*tags}
    tags += [tag for name in features if (tag := FEATURE_PREFIX + name) not in known]
    n_tags = max(settings.max_features, len(known))
    return _make_tokenizer(words, tags[:n_tags], stop_words, _recognise_way(encoder.tokenizer))


def rank_words(texts: Iterable[str], min_count: int, language: str = AUTO) -> list[str]:
    """Return words that occur often enough, in descending order of frequency, then by name.

    The tokenizer uses all cores.
    """
    tokenizer = _blank_tokenizer({}, find_way(language))
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31 - 1, min_frequency=min_count, show_progress=False
    )
    tokenizer.train_from_iterator(map(break_runs, texts), trainer)
    return _list_tokens(tokenizer)


def split_words(text: str, language: str = AUTO) -> list[str]:
    """Return the words of a text, as `rank_words` counts them."""
    normalizer, splitter = _steps(find_way(language))
    found = splitter.pre_tokenize_str(normalizer.normalize_str(break_runs(text)))
    return [word for word, _ in found]


def _list_tokens(tokenizer: Tokenizer) -> list[str]:
    """Return all tokens in the order of their ids."""
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _make_tokenizer(
    words: Iterable[str], tags: Iterable[str], stop_words: Iterable[str], way: str
) -> Tokenizer:
    tokens = chain(SPECIAL_TOKENS, words, tags, (STOP_WORDS,), stop_words)
    return _blank_tokenizer({token: index for index, token in enumerate(tokens)}, way)


def find_way(language: str) -> str:
    """Return how texts of a language are split: "plain" (as in the paper), or one of `WAYS`."""
    name = find_language(language)
    if name in (AUTO, ENGLISH):
        return PLAIN
    return name if name in WAYS else UNICODE


def _recognise_way(tokenizer: Tokenizer) -> str:
    """Return how a tokenizer splits texts; "plain" if that is unknown."""
    normalizer = tokenizer.normalizer
    state = None if normalizer is None else normalizer.__getstate__()
    return next((way for way in WAYS if _steps(way)[0].__getstate__() == state), PLAIN)


def _blank_tokenizer(vocabulary: dict[str, int], way: str) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = _steps(way)
    return tokenizer


@cache
def _steps(way: str) -> tuple[normalizers.Normalizer, pre_tokenizers.PreTokenizer]:
    """Return what is done to a text before its words are looked up."""
    before, after = WAYS[way]
    steps = [
        *([] if way == PLAIN else [normalizers.NFC()]),
        *(normalizers.Replace(old, new) for old, new in before),
        normalizers.Lowercase(),
        *(normalizers.Replace(old, new) for old, new in after),
        normalizers.Replace(Regex(WHOLE_NUMBER), NUMBER),
    ]
    pattern = WORD if way == PLAIN else _UNICODE_WORD
    return normalizers.Sequence(steps), pre_tokenizers.Split(Regex(pattern), "removed", invert=True)


def whole_characters(text: str) -> str:
    """Replace half of a surrogate pair by a question mark, as the encoder does."""
    return text.encode("utf-8", "replace").decode()
