# ruff: noqa: RUF001
import hashlib
from itertools import islice
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.config import TextSettings
from setrnn.data import newsroom
from setrnn.data.cache import open_prepared
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.read import write_examples
from setrnn.data.source import Source
from setrnn.data.text.alignment import words_of
from setrnn.data.text.languages import (
    detect_language,
    find_language,
    read_lists,
    read_stop_words,
    settle_language,
)
from setrnn.data.text.words import (
    STOP_WORDS,
    WAYS,
    TextEncoder,
    extend_tokenizer,
    learn_tokenizer,
    rank_words,
    split_words,
)
from setrnn.errors import ConfigError

# One sentence per language, written for this test.
SENTENCES = {
    "danish": "Regeringen har besluttet, at der skal være flere penge til skolerne, og det er ikke "
    "kun godt for børnene, men også for lærerne i kommunen.",
    "dutch": "De regering heeft besloten dat er meer geld naar de scholen moet, en dat is niet "
    "alleen goed voor de kinderen maar ook voor de leraren.",
    "english": "The government has decided that there will be more money for the schools, and that "
    "is not only good for the children but also for their teachers.",
    "french": "Le gouvernement a décidé que les écoles auront plus d'argent, et ce n'est pas "
    "seulement bon pour les enfants mais aussi pour les professeurs.",
    "german": "Die Regierung hat beschlossen, dass die Schulen mehr Geld bekommen, und das ist "
    "nicht nur gut für die Kinder, sondern auch für die Lehrer.",
    "italian": "Il governo ha deciso che le scuole avranno più soldi, e questo non è un bene solo "
    "per i bambini ma anche per gli insegnanti.",
    "norwegian": "Regjeringen har bestemt at det skal være mer penger til skolene, og det er ikke "
    "bare bra for barna, men også for lærerne i kommunen.",
    "polish": "Rząd zdecydował, że szkoły dostaną więcej pieniędzy, i to nie jest dobre tylko dla "
    "dzieci, ale także dla nauczycieli w gminie.",
    "portuguese": "O governo decidiu que as escolas terão mais dinheiro, e isso não é bom só para "
    "as crianças, mas também para os professores.",
    "russian": "Правительство решило, что школы получат больше денег, и это хорошо не только для "
    "детей, но и для учителей.",
    "spanish": "El gobierno ha decidido que las escuelas tendrán más dinero, y no es bueno solo "
    "para los niños sino también para los maestros.",
    "swedish": "Regeringen har beslutat att det ska vara mer pengar till skolorna, och det är inte "
    "bara bra för barnen utan även för lärarna i kommunen.",
    "turkish": "Hükümet okullara daha çok para verilmesine karar verdi ve bu sadece çocuklar için "
    "değil öğretmenler için de iyi bir haber.",
}
UNLISTED = {
    "finnish": "Hallitus päätti että koulut saavat lisää rahaa ja se on hyvä asia lapsille.",
    "ukrainian": "Уряд вирішив, що школи отримають більше грошей, і це добре для дітей.",
    "korean": "정부는 학교에 더 많은 돈을 주기로 결정했다",
    "arabic": "قررت الحكومة أن تحصل المدارس على المزيد من المال",
    "japanese": "政府は学校にもっとお金を出す。",
}


@pytest.mark.parametrize("language", read_lists())
def test_a_language_is_recognised_by_one_sentence(language):
    assert detect_language([SENTENCES[language]]).language == language
    assert (
        f"{language.capitalize()}: its stop words"
        in detect_language([SENTENCES[language]]).describe()
    )
    assert find_language(language.upper()) == language


@pytest.mark.parametrize("language", UNLISTED)
def test_a_language_without_a_list_is_not_clear(language):
    found = detect_language([UNLISTED[language]] * 40)
    assert found.language == "none"
    assert "not clear: no stop words are removed" in found.describe()


def test_several_languages_are_said():
    mixed = detect_language([SENTENCES["english"], SENTENCES["russian"]])
    assert mixed.language == "none"
    assert "several (" in mixed.describe()
    assert "English" in mixed.describe()
    mostly = [SENTENCES["english"]] * 9 + [SENTENCES["russian"]]
    assert detect_language(mostly).language == "english"


def test_few_ascii_words_without_stop_words_are_taken_as_english():
    assert detect_language(["red apple", "red car"]).language == "english"
    assert "few words" in detect_language(["red apple"]).describe()
    assert detect_language(["red apple"] * 200).language == "none"
    assert detect_language(["größere Äpfel"]).language == "none"
    assert detect_language([]).language == "english"


def test_lists_are_lower_case_composed_and_single_words():
    for words in read_lists().values():
        assert 60 <= len(words) <= 200
        for word in words:
            assert word == normalize("NFC", word)
            assert word == word.replace("İ", "i").lower()
    with pytest.raises(ConfigError, match="Did you mean 'german'"):
        find_language("germn")
    with pytest.raises(ConfigError, match="other language, give none"):
        find_language("japanese")
    assert read_stop_words("de") == read_stop_words("German") == read_stop_words("german")
    assert read_stop_words("en") == read_stop_words("english")
    with pytest.raises(ConfigError, match="language"):
        settle_language([], TextSettings(language="klingon"))


def test_english_texts_keep_their_ids():
    """Other ids would be those of another model."""
    texts = [each.text for each in islice(newsroom.examples("train"), 300)]
    texts += ["Café naïve cafe\u0301 STRASSE Straße", "İstanbul I 2,500 東京タワー น้ำ don't"]
    settings, _ = settle_language(texts, TextSettings())
    assert settings.language == "english"
    tokenizer = learn_tokenizer(texts, ("a", "b"), settings)
    rows = TextEncoder(tokenizer, 500).encode(texts)
    found = hashlib.sha256(tokenizer.to_str().encode())
    found.update(np.asarray(rows.values, dtype=np.int64).tobytes())
    assert found.hexdigest() == ENGLISH_IDS


ENGLISH_IDS = "b31ad89c49e07868f8ea057a2a2c042ffbfb4ba163fce3c758f7896ed2812916"


def encoder_of(texts, language, **changes):
    settings = TextSettings(**{"min_count": 1, "language": language, **changes})
    return TextEncoder(learn_tokenizer(texts, (), settings), settings.max_words)


def tokens_of(encoder, text):
    return [encoder.tokens[index] for index in encoder.encode([text])[0]]


def test_the_stop_words_of_the_language_are_out():
    text = SENTENCES["german"]
    assert tokens_of(encoder_of([text], "german"), "Die Schulen und daß DAS Geld") == [
        "schulen",
        "geld",
    ]
    assert "die" in tokens_of(encoder_of([text], "german", stop_words="none"), text)
    assert "die" in tokens_of(encoder_of([text], "none"), text)
    assert "die" not in tokens_of(encoder_of([text], "none", stop_words="german"), text)
    assert read_stop_words("auto", "none") == set()
    assert read_stop_words("auto") == read_stop_words("english")


def test_words_are_composed_and_cased_as_in_their_language():
    assert split_words("cafe\u0301 CAFÉ", "french") == ["café", "café"]
    assert split_words("Straße STRASSE ẞ", "german") == ["strasse", "strasse", "ss"]
    assert split_words("IŞIK İSTANBUL ılık", "turkish") == ["ışık", "istanbul", "ılık"]
    assert split_words("ISTANBUL", "french") == ["istanbul"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("東京タワーへ行く", ["東", "京", "タワー", "へ", "行", "く"]),
        ("เมืองไทย", ["เมื", "อ", "ง", "ไท", "ย"]),
        ("ພາສາລາວ", ["ພາ", "ສາ", "ລາ", "ວ"]),
        ("ភាសាខ្មែរ", ["ភា", "សា", "ខ្មែ", "រ"]),
        ("မြန်မာ", ["မြန်", "မာ"]),
        ("共3人 abc", ["共", "NUM", "人", "abc"]),
        ("국회 예산", ["국회", "예산"]),
    ],
)
def test_scripts_without_spaces_are_split_into_units(text, words):
    assert split_words(text, "none") == words
    assert set(words) == {*rank_words([text], 1, "none")}


@given(
    st.text(alphabet="aIİıßẞ字のカー3.,é\u0301กเาខ្မ န်\u0130 ", max_size=25),
    st.sampled_from([*WAYS]),
)
def test_every_way_reads_a_text_as_it_was_counted(text, way):
    language = {"plain": "english", "unicode": "none"}.get(way, way)
    encoder = encoder_of([text], language, stop_words="none")
    assert tokens_of(encoder, text) == split_words(text, language)
    for word in words_of(encoder, text):  # the words of an explanation stand in the text
        assert text[word.start : word.stop] == word.text != ""


@pytest.mark.parametrize("language", ["english", "german", "turkish", "none"])
def test_save_load_and_update_keep_the_way(tmp_path, language):
    encoder = encoder_of([SENTENCES["german"]], language)
    encoder.save(tmp_path / "tokenizer.json")
    loaded = TextEncoder.load(tmp_path / "tokenizer.json", 500)
    longer = extend_tokenizer(loaded, ["neu", "wort"], (), TextSettings())
    assert longer.normalizer.__getstate__() == encoder.tokenizer.normalizer.__getstate__()
    assert TextEncoder(longer, 500).tokens == [*encoder.tokens, "neu", "wort"]
    assert longer.token_to_id(STOP_WORDS) == encoder.n_tokens + 2


@pytest.mark.parametrize(
    "part", ["เ", "\u1000\u103a", "\u1780\u17d2", "ー", "\u1000\u1039", "e\u0301"]
)
def test_a_long_run_of_one_unit_takes_linear_time(part):
    text = part * (100_000 // len(part))
    assert split_words(text, "none")
    assert len(encoder_of(["a"], "none").encode([text])) == 1


def test_the_language_is_kept_with_the_data(tmp_path):
    examples = [Example(str(n), SENTENCES["german"], ("a",)) for n in range(3)]
    write_examples(examples, tmp_path / "data.jsonl")
    source = Source(str(tmp_path / "data.jsonl"))
    found = open_prepared(source, TextSettings(), tmp_path)
    assert Prepared(found.folder).text_settings.language == "german"
    assert "German" in found.language_note
    given = open_prepared(source, TextSettings(language="none"), tmp_path)
    assert (given.text_settings.language, given.folder != found.folder) == ("none", True)
