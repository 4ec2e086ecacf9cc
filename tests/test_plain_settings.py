import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.config import (
    ClassicalSettings,
    Config,
    ModelSettings,
    SearchSettings,
    TextSettings,
    TrainingSettings,
)
from setrnn.errors import ConfigError, SetRNNError
from setrnn.plain_settings import PRESETS, from_dict, load_config, settings_hash, to_dict


def one_line(error):
    message = str(error.value)
    assert message
    assert "\n" not in message
    return message


def test_without_arguments_the_defaults_hold():
    assert load_config() == Config()


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_builds_a_config(preset):
    needed = ["encoder.path=a/b"] if preset == "transformer" else []
    config = load_config(preset, overrides=needed)
    for group, values in PRESETS[preset].items():
        for name, value in values.items():
            assert getattr(getattr(config, group), name) == value


@pytest.mark.parametrize("preset", PRESETS)
def test_overrides_do_not_change_the_preset_itself(preset):
    before = json.dumps(PRESETS[preset])
    overrides = ["text.max_words=7", "vectors.dimensions=3"]
    if preset == "transformer":
        overrides.append("encoder.path=a/b")
    load_config(preset, overrides=overrides)
    assert json.dumps(PRESETS[preset]) == before


def test_an_unknown_preset_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'paper'") as error:
        load_config("papr")
    assert "papr" in one_line(error)


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


def test_a_whole_number_is_taken_for_a_float():
    l1 = load_config(overrides=["classical.l1=2"]).classical.l1
    assert l1 == 2
    assert isinstance(l1, float)


def test_a_number_too_large_for_a_float_is_refused():
    with pytest.raises(ConfigError):
        load_config(overrides=["classical.l1=1" + "0" * 400])


@pytest.mark.parametrize("override", ["", "text.max_words", "=3", "="])
def test_an_override_without_key_and_value_is_refused(override):
    with pytest.raises(ConfigError, match="key=value") as error:
        load_config(overrides=[override])
    one_line(error)


@pytest.mark.parametrize("override", ["text=3", "text=english", "classical=[1]"])
def test_a_group_set_to_a_value_is_refused(override):
    with pytest.raises(ConfigError, match="group of settings"):
        load_config(overrides=[override])


@pytest.mark.parametrize("key", ["text.max_words.x", "seed.x", "text..max_words", ".seed", "a.b.c"])
def test_a_key_that_leads_nowhere_is_refused(key):
    with pytest.raises(ConfigError) as error:
        load_config(overrides=[f"{key}=3"])
    one_line(error)


def test_a_value_may_hold_an_equals_sign_and_need_no_quotes():
    assert load_config(overrides=["text.stop_words=a=b.txt"]).text.stop_words == "a=b.txt"
    assert load_config(overrides=['text.stop_words="english"']).text.stop_words == "english"


def test_a_group_may_be_set_whole():
    config = load_config(overrides=['text={"max_words": 9}'])
    assert config.text == TextSettings(max_words=9)


def test_later_sources_win_over_earlier_ones(tmp_path):
    file = tmp_path / "settings.json"
    file.write_text('{"text": {"max_words": 11, "min_count": 4}, "seed": 5}')
    config = load_config("paper", file, ["text.max_words=12", "text.max_words=13"])
    assert config.text.max_words == 13
    assert config.text.min_count == 4
    assert config.seed == 5


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"3", b'"text"', b"null", b"\xff\xfe{}", b'{"text": 3}']
)
def test_a_damaged_config_file_is_refused(tmp_path, content):
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        load_config(file=file)
    one_line(error)


def test_a_missing_config_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.json"):
        load_config(file=tmp_path / "absent.json")


configs = st.builds(
    Config,
    seed=st.integers(0, 2**40),
    text=st.builds(
        TextSettings,
        max_words=st.integers(1, 10**6),
        min_count=st.integers(1, 99),
        stop_words=st.text(),
    ),
    classical=st.builds(
        ClassicalSettings,
        l1=st.floats(0, 1e9),
        l2=st.floats(0, 1e9),
        tune=st.booleans(),
        tolerance=st.floats(0, 1),
    ),
    model=st.builds(
        ModelSettings,
        dropout=st.floats(0, 0.99),
        word_vectors=st.sampled_from(["tuned", "frozen"]),
    ),
    search=st.builds(SearchSettings, beam_width=st.integers(1, 99)),
    training=st.builds(
        TrainingSettings,
        epochs=st.integers(1, 99),
        learning_rate=st.floats(1e-12, 100),
        decay=st.sampled_from(["linear", "none"]),
    ),
)


@given(configs)
def test_a_config_survives_json(config):
    values = json.loads(json.dumps(to_dict(config)))
    assert from_dict(Config, values) == config
    assert settings_hash(values) == settings_hash(to_dict(config))


@given(configs, configs)
def test_hashes_agree_exactly_when_settings_do(first, second):
    same = to_dict(first) == to_dict(second)
    # -0.0 equals 0.0 but is written otherwise: a needless difference, never a false agreement
    if not same:
        assert settings_hash(to_dict(first)) != settings_hash(to_dict(second))
    assert settings_hash(to_dict(first)) == settings_hash(to_dict(first))


def test_the_order_of_keys_does_not_change_the_hash():
    values = to_dict(Config())
    turned = {name: values[name] for name in reversed(values)}
    turned["text"] = {name: values["text"][name] for name in reversed(values["text"])}
    assert settings_hash(turned) == settings_hash(values)


def test_values_do_not_run_together_in_the_hash():
    assert settings_hash("ab", "c") != settings_hash("a", "bc")
    assert settings_hash(["a"], "b") != settings_hash("a", ["b"])
    assert settings_hash(1) != settings_hash("1")


def test_another_process_gives_the_same_hash():
    code = (
        "from setrnn.config import Config;"
        "from setrnn.plain_settings import settings_hash, to_dict;"
        "import sys; sys.stdout.write(settings_hash(to_dict(Config()), 'é'))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout == settings_hash(to_dict(Config()), "é")


@given(st.text(), st.text())
def test_any_override_builds_a_config_or_is_refused_in_our_words(key, value):
    try:
        config = load_config(overrides=[f"{key}={value}"])
    except SetRNNError:
        return
    assert isinstance(config, Config)
