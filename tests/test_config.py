import dataclasses
import json
import typing

import pytest

from setrnn.config import (
    BOUNDS,
    ClassicalSettings,
    Config,
    DistillationSettings,
    EncoderSettings,
    ModelSettings,
    SearchSettings,
    TextSettings,
    TrainingSettings,
    VectorSettings,
)
from setrnn.errors import BadRowError, ConfigError, DataError, SetRNNError
from setrnn.plain_settings import load_config

GROUPS = {
    "text": TextSettings,
    "vectors": VectorSettings,
    "classical": ClassicalSettings,
    "model": ModelSettings,
    "search": SearchSettings,
    "training": TrainingSettings,
    "distillation": DistillationSettings,
}

# Of settings that take one of a few names, one that is not the default.
CHOICES = {
    "model.attention": "additive",
    "model.word_vectors": "frozen",
    "model.wide": "on",
    "model.empty_sets": "off",
    "training.metric": "label_f1",
    "training.random_start": "shared",
    "training.precision": "bfloat16",
}


def all_keys():
    """Every setting that has a value, with the type of the value."""
    for group, settings in GROUPS.items():
        types = typing.get_type_hints(settings)
        for each in dataclasses.fields(settings):
            yield f"{group}.{each.name}", types[each.name]
    yield "seed", int


def value_of(config, key):
    for name in key.split("."):
        config = getattr(config, name)
    return config


def one_line(error):
    message = str(error.value)
    assert message
    assert "\n" not in message
    return message


EVERY_KEY = pytest.mark.parametrize(("key", "wanted"), list(all_keys()))


def test_groups_cover_every_field_of_config():
    # The settings of an encoder only go together, and have tests of their own.
    assert {each.name for each in dataclasses.fields(Config)} == {*GROUPS, "seed", "encoder"}


@EVERY_KEY
def test_every_key_can_be_set_and_comes_back(key, wanted):
    values = {int: 4, float: 0.25, bool: True, str: "none"}
    value = CHOICES.get(key, values[wanted])
    config = load_config(overrides=[f"{key}={json.dumps(value)}"])
    assert value_of(config, key) == value
    assert type(value_of(config, key)) is wanted


@EVERY_KEY
def test_every_key_misspelt_is_refused_with_the_right_one(key, wanted):
    with pytest.raises(ConfigError) as error:
        load_config(overrides=[f"{key}x=1"])
    message = one_line(error)
    assert f"'{key}x'" in message
    assert f"Did you mean '{key}'?" in message


@EVERY_KEY
def test_every_key_refuses_the_other_types(key, wanted):
    wrong = {
        int: ["1.5", "true", "many", "null", "[1]", "{}"],
        float: ["true", "much", "null", "[0.5]"],
        bool: ["0", "1", "yes", "null"],
        str: ["1", "true", "null", "[]"],
    }
    for text in wrong[wanted]:
        with pytest.raises(ConfigError) as error:
            load_config(overrides=[f"{key}={text}"])
        assert f"'{key}'" in one_line(error)


@pytest.mark.parametrize(
    "override",
    [
        "text.max_words=0",
        "text.max_words=-3",
        "text.max_vocabulary=0",
        "text.min_count=0",
        "text.max_features=-1",
        "text.vocabulary_documents=0",
        "vectors.dimensions=0",
        "vectors.epochs=0",
        "vectors.window=0",
        "classical.l1=-0.1",
        "classical.l2=-1",
        "classical.l1=NaN",
        "classical.l2=Infinity",
        "classical.l1=1e999",
        "classical.tolerance=-1e-9",
        "classical.max_steps=0",
        "classical.beam_width=0",
    ],
)
def test_values_out_of_range_are_refused_with_their_key(override):
    with pytest.raises(ConfigError) as error:
        load_config(overrides=[override])
    assert f"'{override.partition('=')[0]}'" in one_line(error)


def test_every_number_has_bounds():
    rate = typing.get_type_hints(EncoderSettings)["learning_rate"]
    keys = [*all_keys(), ("encoder.learning_rate", rate)]
    assert {key for key, wanted in keys if wanted in (int, float)} == {*BOUNDS}


@pytest.mark.parametrize("key", BOUNDS)
def test_every_number_takes_its_bounds_and_nothing_beyond(key):
    for edge, beyond in zip(BOUNDS[key], (-1, 1), strict=True):
        assert value_of(load_config(overrides=[f"{key}={edge}"]), key) == edge
        with pytest.raises(ConfigError, match=f"'{key}' must be between") as error:
            load_config(overrides=[f"{key}={edge + beyond}"])
        one_line(error)


@pytest.mark.parametrize("value", [-1, 2**70, -(10**40)])
@pytest.mark.parametrize("key", ["seed", "vectors.seed"])
def test_seeds_that_no_generator_takes_are_refused(key, value):
    with pytest.raises(ConfigError, match=f"'{key}' must be between 0"):
        load_config(overrides=[f"{key}={value}"])
    with pytest.raises(ConfigError, match="'seed' must be between 0"):
        Config(seed=value)


@pytest.mark.parametrize(
    "override",
    ["text.max_words=1", "text.max_features=0", "classical.l1=0", "classical.l2=0.0"],
)
def test_values_at_the_edge_are_taken(override):
    key, _, text = override.partition("=")
    assert value_of(load_config(overrides=[override]), key) == json.loads(text)


def test_settings_cannot_be_changed_once_built():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().seed = 3


@pytest.mark.parametrize("key", [*CHOICES, "training.decay"])
def test_a_name_that_is_no_choice_is_refused_with_those_there_are(key):
    choice = value_of(Config(), key)
    with pytest.raises(ConfigError, match=f"'{key}' has no choice .*'{choice}'"):
        load_config(overrides=[f"{key}={choice}x"])


@pytest.mark.parametrize(
    "override",
    [
        "model.encoder_units=3",
        "model.encoder_units=0",
        "model.decoder_layers=0",
        "model.max_labels=0",
        "model.dropout=1",
        "model.word_dropout=-0.1",
        "search.beam_width=0",
        "training.epochs=-1",
        "training.batch_size=-1",
        "training.random_share=1.1",
        "training.warm_up=-1",
        "training.learning_rate=0",
        "training.learning_rate=NaN",
        "training.clip_norm=Infinity",
        "training.patience=-1",
    ],
)
def test_settings_that_no_network_can_have_are_refused(override):
    key = override.partition("=")[0]
    with pytest.raises(ConfigError, match=f"'{key}' must be") as error:
        load_config(overrides=[override])
    one_line(error)


def test_a_transformer_reads_with_its_own_tokenizer():
    config = load_config(overrides=["encoder.name=transformer", "encoder.path=some/name"])
    assert config.text.tokenizer == "some/name"
    assert load_config().text.tokenizer == "words"
    moved = dataclasses.replace(config, text=TextSettings(tokenizer="elsewhere", max_tokens=64))
    assert (moved.text.tokenizer, moved.text.max_tokens) == ("some/name", 64)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["encoder.name=transformer"], "--set encoder.path=NAME"),
        (["encoder.path=a/b"], "encoder.name=transformer"),
        (["encoder.learning_rate=0"], "'encoder.learning_rate'.* between"),
        (["text.max_tokens=3"], "'text.max_tokens'.* between 4 and"),
    ],
)
def test_an_encoder_that_cannot_be_is_one_line(overrides, said):
    with pytest.raises(ConfigError, match=said) as error:
        load_config(overrides=overrides)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("error", [ConfigError, DataError, BadRowError])
def test_bad_arguments_and_data_are_value_errors(error):
    """What a caller of a scikit-learn estimator expects."""
    assert issubclass(error, ValueError)
    assert issubclass(error, SetRNNError)
