"""The words and labels of data: learned from it, or those of a model with more added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from setrnn.config import WORDS, TextSettings
from setrnn.data.labels import LabelVocabulary
from setrnn.data.text.subwords import pretrained_encoder
from setrnn.data.text.words import TextEncoder, choose_tokenizer, extend_tokenizer


def learn_vocabulary(
    label_counts: Mapping[str, int],
    words: Callable[[], Iterable[str]],
    features: Sequence[str],
    settings: TextSettings,
) -> tuple[TextEncoder, LabelVocabulary]:
    """Return the frequent words and features, or those of a pretrained encoder, and the labels.

    `words` is called only if words are needed.
    """
    labels = LabelVocabulary.from_counts(label_counts)
    if settings.tokenizer != WORDS:
        return pretrained_encoder(settings), labels
    tokenizer = choose_tokenizer(words(), features, settings)
    return TextEncoder(tokenizer, settings.max_words, settings.windows), labels


@dataclass(frozen=True)
class Vocabulary:
    """The words and labels of a model, which keep their places when others are added."""

    encoder: TextEncoder
    labels: LabelVocabulary
    adds_words: bool = True

    def extend(
        self,
        label_counts: Mapping[str, int],
        words: Callable[[], Iterable[str]],
        features: Sequence[str],
        settings: TextSettings,
    ) -> tuple[TextEncoder, LabelVocabulary]:
        """Add frequent words and features of new texts, unless the words are fixed, and labels."""
        encoder = self.encoder
        if self.adds_words and type(encoder) is TextEncoder:
            tokenizer = extend_tokenizer(encoder, words(), features, settings)
            encoder = replace(encoder, tokenizer=tokenizer)
        return encoder, self.labels.extend(label_counts, keeps_counts=not self.adds_words)
