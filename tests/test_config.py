import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.config import (
    PRESETS,
    ClassicalSettings,
    Config,
    ModelSettings,
    SearchSettings,
    TextSettings,
    TrainingSettings,
    from_dict,
    load_config,
    settings_hash,
    to_dict,
)
from setrnn.errors import BadRowError, ConfigError, DataError, SetRNNError

# The settings of an encoder only go together, and have tests of their own.
FIELDS = {"seed": dataclasses.fields(Config)[0]} | {
    f"{group.name}.{each.name}": each
    for group in dataclasses.fields(Config)
    if group.name not in ("seed", "encoder")
    for each in dataclasses.fields(group.default_factory)
}
BOUNDS = {key: each.metadata["bounds"] for key, each in FIELDS.items() if "bounds" in each.metadata}
CHOICES = {
    key: each.metadata["choices"] for key, each in FIELDS.items() if "choices" in each.metadata
}
TYPES = {
    key: {"int": int, "float": float, "bool": bool, "str": str}[each.type]
    for key, each in FIELDS.items()
}


def value_of(config, key):
    for name in key.split("."):
        config = getattr(config, name)
    return config


def refuse(words, *overrides, **more):
    with pytest.raises(ConfigError, match=words) as error:
        load_config(overrides=overrides, **more)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("key", FIELDS)
def test_every_key_can_be_set_and_refuses_other_names_and_types(key):
    wanted = TYPES[key]
    value = {int: 4, float: 0.25, bool: True, str: CHOICES.get(key, ["none"])[-1]}[wanted]
    found = value_of(load_config(overrides=[f"{key}={json.dumps(value)}"]), key)
    assert (found, type(found)) == (value, wanted)
    refuse(f"'{key}x'.*Did you mean '{key}'", f"{key}x=1")
    wrong = {
        int: ["1.5", "true", "many", "null", "[1]", "{}"],
        float: ["true", "much", "null", "[0.5]"],
        bool: ["0", "1", "yes", "null"],
        str: ["1", "true", "null", "[]"],
    }
    for text in wrong[wanted]:
        refuse(f"'{key}'", f"{key}={text}")


def test_every_number_has_bounds():
    numbers = {key for key, wanted in TYPES.items() if wanted in (int, float)}
    assert numbers == {*BOUNDS}


@pytest.mark.parametrize("key", BOUNDS)
def test_every_number_takes_its_bounds_and_nothing_beyond(key):
    for edge, beyond in zip(BOUNDS[key], (-1, 1), strict=True):
        assert value_of(load_config(overrides=[f"{key}={edge}"]), key) == edge
        refuse(f"'{key}' must be between", f"{key}={edge + beyond}")
    if TYPES[key] is float:
        refuse(f"'{key}' must be between", f"{key}=NaN")


@pytest.mark.parametrize("key", CHOICES)
def test_a_name_that_is_no_choice_is_refused_with_those_there_are(key):
    choice = CHOICES[key][0]
    assert value_of(Config(), key) == choice
    refuse(f"'{key}' has no choice .*'{choice}'", f"{key}={choice}x")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["seed=-1"], "'seed' must be between 0"),
        ([f"seed={2**70}"], "'seed' must be between 0"),
        (["model.encoder_units=3"], "'model.encoder_units' must be even"),
        (["training.forgotten=-0.5"], "'training.forgotten' must be"),
        (["classical.l1=1" + "0" * 400], "too large"),
        (["encoder.name=transformer"], "--set encoder.path=NAME"),
        (["encoder.path=a/b"], "encoder.name=transformer"),
        (["encoder.learning_rate=0"], "'encoder.learning_rate'.* between"),
        ([""], "key=value"),
        (["text.max_words"], "key=value"),
        (["=3"], "key=value"),
        (["text=3"], "group of settings"),
        (["classical=[1]"], "group of settings"),
        (["text.max_words.x=3"], "text.max_words"),
        (["seed.x=3"], "seed"),
        (["text..max_words=3"], "There is no setting"),
        ([".seed=3"], "There is no setting"),
        (["a.b.c=3"], "There is no setting 'a'"),
    ],
)
def test_what_no_config_can_have_is_refused_in_one_line(overrides, said):
    refuse(said, *overrides)


@given(st.text(), st.text())
def test_any_override_builds_a_config_or_is_refused_in_our_words(key, value):
    try:
        config = load_config(overrides=[f"{key}={value}"])
    except SetRNNError:
        return
    assert isinstance(config, Config)


def test_a_transformer_reads_with_its_own_tokenizer():
    config = load_config(overrides=["encoder.name=transformer", "encoder.path=some/name"])
    assert config.text.tokenizer == "some/name"
    assert load_config().text.tokenizer == "words"
    moved = dataclasses.replace(config, text=TextSettings(tokenizer="elsewhere", max_tokens=64))
    assert (moved.text.tokenizer, moved.text.max_tokens) == ("some/name", 64)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_builds_a_config_and_stays_as_it_is(preset):
    before = json.dumps(PRESETS[preset])
    needed = ["encoder.path=a/b"] if preset == "transformer" else []
    config = load_config(preset, overrides=needed)
    for group, values in PRESETS[preset].items():
        for name, value in values.items():
            assert getattr(getattr(config, group), name) == value
    load_config(preset, overrides=["text.max_words=7", "vectors.dimensions=3", *needed])
    assert json.dumps(PRESETS[preset]) == before
    assert load_config() == Config()


def test_the_paper_preset_has_the_settings_the_paper_states():
    config = load_config("paper")
    assert config.vectors.dimensions == 300
    assert config.vectors.source == "word2vec"
    assert (config.model.decoder_layers, config.model.decoder_units) == (2, 300)
    assert config.model.encoder_units == 2 * 300, "a GRU of 300 units in each direction"
    assert config.model.max_labels == 50
    assert (config.model.dropout, config.model.word_dropout) == (0.3, 0.0)
    assert config.search.beam_width == 12
    training = config.training
    assert (training.learning_rate, training.weight_decay) == (0.0005, 0.0)
    assert (training.warm_up, training.decay, training.clip_norm) == (0.0, "none", 0.0)
    assert config.text.max_words == 500


def test_values_are_json_or_plain_text():
    assert load_config(overrides=["text.stop_words=a=b.txt"]).text.stop_words == "a=b.txt"
    assert load_config(overrides=['text.stop_words="english"']).text.stop_words == "english"
    assert load_config(overrides=['text={"max_words": 9}']).text == TextSettings(max_words=9)
    l1 = load_config(overrides=["classical.l1=2"]).classical.l1
    assert (l1, type(l1)) == (2, float)


def test_later_sources_win_over_earlier_ones(tmp_path):
    file = tmp_path / "settings.json"
    file.write_text('{"text": {"max_words": 11, "min_count": 4}, "seed": 5}')
    config = load_config("paper", file, ["text.max_words=12", "text.max_words=13"])
    assert (config.text.max_words, config.text.min_count, config.seed) == (13, 4, 5)


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[1]", b"3", b'"text"', b"null", b"\xff\xfe{}", b'{"text": 3}']
)
def test_a_damaged_config_file_and_an_unknown_preset_are_refused(tmp_path, content):
    refuse("'papr'.*Did you mean 'paper'", preset="papr")
    file = tmp_path / "settings.json"
    if content is not None:
        file.write_bytes(content)
    refuse("text" if content == b'{"text": 3}' else r"settings\.json", file=file)


configs = st.builds(
    Config,
    seed=st.integers(0, 2**40),
    text=st.builds(TextSettings, max_words=st.integers(1, 10**6), stop_words=st.text()),
    classical=st.builds(ClassicalSettings, l1=st.floats(0, 1e9)),
    model=st.builds(ModelSettings, word_vectors=st.sampled_from(["tuned", "frozen"])),
    search=st.builds(SearchSettings, beam_width=st.integers(1, 99)),
    training=st.builds(TrainingSettings, learning_rate=st.floats(1e-12, 100)),
)


@given(configs)
def test_a_config_survives_json(config):
    values = json.loads(json.dumps(to_dict(config)))
    assert from_dict(Config, values) == config
    assert settings_hash(values) == settings_hash(to_dict(config))


def test_a_hash_depends_on_values_and_not_on_order():
    values = to_dict(Config())
    turned = {name: values[name] for name in reversed(values)}
    assert settings_hash(turned) == settings_hash(values)
    assert settings_hash("ab", "c") != settings_hash("a", "bc")
    assert settings_hash(1) != settings_hash("1")


@pytest.mark.parametrize("error", [ConfigError, DataError, BadRowError])
def test_bad_arguments_and_data_are_value_errors(error):
    """What a caller of a scikit-learn estimator expects."""
    assert issubclass(error, ValueError)
    assert issubclass(error, SetRNNError)
