"""Languages: lists of stop words, and the language of texts by its stop words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from unicodedata import normalize

from setrnn.config import AUTO, NO_LANGUAGE, TextSettings
from setrnn.errors import ConfigError, nearest_name

ENGLISH = "english"
LISTS_FILE = Path(__file__).parent / "stop_words.txt"
MAX_TEXTS, MAX_CHARACTERS = 1_000, 2_000  # that are read to find a language, and of each text
MIN_EVIDENCE = 0.08  # of the words, that are stop words of a language: see `_weigh`
MAX_OTHERS = 0.25  # stop words of another language only, per stop word of the language
FEW_WORDS = 200  # of these, a language that is not clear is taken as English
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class FoundLanguage:
    """The language of texts, and why it is not certain.

    Example:
        >>> found = detect_language(["Der Hund und die Katze sind nicht in dem Haus."])
        >>> found.language, found.describe()
        ('german', 'German: its stop words are removed.')
    """

    language: str  # a name of the lists, or "none"
    why: str = ""  # why it is none, or is not certain

    def describe(self) -> str:
        """Say which stop words are removed, and why."""
        if self.language == NO_LANGUAGE:
            return f"{self.why or 'none'}: no stop words are removed."
        why = f" ({self.why})" if self.why else ""
        return f"{self.language.capitalize()}{why}: its stop words are removed."


def _read_rows() -> Iterator[tuple[list[str], list[str]]]:
    """Yield the name and the code (ISO 639-1) of each language, and its stop words."""
    for line in LISTS_FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            names, words = line.split(":", 1)
            yield names.split(), words.split()


@cache
def read_lists() -> dict[str, frozenset[str]]:
    """Return the stop words of all languages, by name."""
    return {name: frozenset(words) for (name, _), words in _read_rows()}


def find_language(name: str) -> str:
    """Return the name of a language from its name or code; raise ConfigError if there is none."""
    names = {AUTO: AUTO, NO_LANGUAGE: NO_LANGUAGE, **_names()}
    if name.lower() not in names:
        raise ConfigError(
            f"There is no text.language '{name}'. {nearest_name(name, {*names.values()})} For any "
            "other language, give none: all words are kept."
        )
    return names[name.lower()]


@cache
def _names() -> dict[str, str]:
    """Return the names of the languages with a list, by name and by code."""
    return {key: names[0] for names, _ in _read_rows() for key in names}


def detect_language(texts: Iterable[str]) -> FoundLanguage:
    """Find the language of texts by the share of its stop words; "none" if that is not clear."""
    counts = Counter[str]()
    for text in islice(texts, MAX_TEXTS):
        counts.update(_WORD.findall(normalize("NFC", text[:MAX_CHARACTERS]).lower()))
    n_words = counts.total()
    evidence = {name: _weigh(counts, words) for name, words in read_lists().items()}
    best = max(evidence, key=lambda name: evidence[name])
    if evidence[best] < MIN_EVIDENCE * n_words or not n_words:
        if n_words < FEW_WORDS and all(word.isascii() for word in counts):
            return FoundLanguage(ENGLISH, "not clear from few words")
        return FoundLanguage(NO_LANGUAGE, "not clear")
    names = [best, *_list_others(counts, best, evidence[best])]
    if len(names) == 1:
        return FoundLanguage(best)
    return FoundLanguage(NO_LANGUAGE, f"several ({', '.join(map(str.capitalize, names))})")


def _weigh(counts: Counter[str], words: Set[str]) -> int:
    """Count how often stop words occur, without the two most frequent.

    One or two of them may be common words of another language by chance.
    """
    return sum(sorted((counts[word] for word in words), reverse=True)[2:])


def _list_others(counts: Counter[str], best: str, own: int) -> list[str]:
    """Return the languages that have many stop words which are not also those of the best one."""
    lists = read_lists()
    found = {name: _weigh(counts, lists[name] - lists[best]) for name in lists}
    others = [name for name in found if found[name] > MAX_OTHERS * own]
    return sorted(others, key=lambda name: -found[name])


def settle_language(
    texts: Iterable[str], settings: TextSettings
) -> tuple[TextSettings, FoundLanguage]:
    """Return settings with a language: that of the texts if it is not given."""
    name = find_language(settings.language)
    found = detect_language(texts) if name == AUTO else FoundLanguage(name)
    return replace(settings, language=found.language), found


def read_stop_words(name: str, language: str = AUTO) -> set[str]:
    """Return the stop words of a language, of none, or of a file with one word per line.

    "auto" is the list of the given language; of an unknown one, that of English.
    """
    chosen = _names().get(name.lower(), name)
    if name == AUTO:
        chosen = ENGLISH if language == AUTO else find_language(language)
    if chosen == NO_LANGUAGE:
        return set()
    if chosen == ENGLISH:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        # The parts of "it's", "don't", "we'll", "I've" and "you're" around the apostrophe.
        return set(ENGLISH_STOP_WORDS) | {"s", "t", "ll", "ve", "re", "don", "doesn", "isn", "didn"}
    if chosen in read_lists():
        return set(read_lists()[chosen])
    try:
        return set(Path(name).read_text(encoding="utf-8").lower().split())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"text.stop_words is 'auto', 'none', a language such as 'english' or a file with one "
            f"word per line; '{name}' cannot be read."
        ) from error
