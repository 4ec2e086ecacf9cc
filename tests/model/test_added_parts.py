"""An encoder from outside the package: what is refused; `test_extensions.py` trains with one."""

import pytest

from setrnn.config import load_config
from setrnn.errors import ConfigError
from setrnn.methods import METHODS
from setrnn.model.encoders import ENCODERS, GRUEncoder
from setrnn.tagging.tagger import load
from setrnn.training.start import check_method
from small_taggers import SMALL_OVERRIDES, trained_tagger


class ToyEncoder(GRUEncoder):
    """An encoder that refuses some settings."""

    @classmethod
    def check(cls, config):
        if config.model.encoder_units > 1_000:
            raise ConfigError("too many units")


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setitem(ENCODERS, "toy", ToyEncoder)


def test_an_encoder_refuses_its_settings_before_any_data_is_read(added):
    config = load_config(overrides=["encoder.name=toy", "model.encoder_units=2000"])
    with pytest.raises(ConfigError, match="too many units"):
        check_method(METHODS["set-rnn"], config)
    unknown = load_config(overrides=["encoder.name=toi"])
    with pytest.raises(ConfigError, match=r"encoder.name.*'toi'.*'toy'"):
        check_method(METHODS["set-rnn"], unknown)
    check_method(METHODS["br"], unknown)  # it has no encoder


def test_a_model_with_an_encoder_that_is_not_there_is_one_line(
    added, small_prepared, tmp_path, monkeypatch
):
    config = load_config(overrides=[*SMALL_OVERRIDES, "encoder.name=toy", "training.epochs=1"])
    trained_tagger(small_prepared, "sigmoid", config).save(tmp_path / "model")
    monkeypatch.delitem(ENCODERS, "toy")
    with pytest.raises(ConfigError, match=r"encoder.name.*'toy'") as error:
        load(tmp_path / "model", "cpu")
    assert "\n" not in str(error.value)
