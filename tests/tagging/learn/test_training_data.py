"""Opening the data to train on: what is said of its language and its settings."""

import pytest

from setrnn.config import TextSettings, load_config
from setrnn.data.cache import Source
from setrnn.data.example import Example
from setrnn.data.preparing import prepare
from setrnn.errors import ConfigError
from setrnn.tagging.learn.data import open_training_data

TEXTS = {
    "english": "The government has decided that there will be more money for all of the schools.",
    "german": "Die Regierung hat beschlossen, dass es mehr Geld für die Schulen in dem Land gibt.",
}


@pytest.fixture
def opened(tmp_path):
    """Prepare texts of a language with some settings, and open them with others."""

    def open_again(language, overrides=(), **settings):
        examples = [Example(str(n), TEXTS[language], ("a",)) for n in range(4)]
        streams = {"train": lambda: examples}
        prepared = prepare(streams, tmp_path / "made", "x", TextSettings(**settings), {})
        said = []
        _, config = open_training_data(
            Source(str(prepared.folder)),
            load_config(overrides=overrides),
            overrides,
            on_progress=lambda event: said.append(getattr(event, "text", "")),
        )
        return config.text, " ".join(said)

    return open_again


@pytest.mark.parametrize("language", TEXTS)
def test_the_language_is_said_and_kept(opened, language):
    text, said = opened(language)
    assert text.language == language
    assert f"Language: {language.capitalize()}: its stop words" in said
    assert "other text settings" not in said


def test_a_folder_with_the_words_of_before_has_the_same_settings(opened):
    text, said = opened("english", ["text.max_words=500"], stop_words="english")
    assert text.stop_words == "english"
    assert "other text settings" not in said


def test_another_language_than_that_of_the_folder_is_refused(opened):
    assert opened("german", ["text.language=de"])[0].language == "german"
    with pytest.raises(ConfigError, match="other text settings"):
        opened("german", ["text.language=french"])
