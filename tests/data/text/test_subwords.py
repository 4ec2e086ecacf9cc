import json
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from setrnn.config import Config, EncoderSettings, TextSettings
from setrnn.data.cache import prepared_path
from setrnn.data.ragged import Ragged
from setrnn.data.source import Source
from setrnn.data.text.subwords import (
    JointEncoder,
    SubwordEncoder,
    check_same_tokenizer,
    join_encoders,
    join_rows,
    load_text_encoder,
    pretrained_encoder,
    split_rows,
)
from setrnn.data.text.words import TextEncoder, learn_tokenizer
from setrnn.errors import DataError, MissingExtraError, ModelError
from tiny_transformers import minilm, tiny_tokenizer

TEXTS = ["Clubs bank on the rain.", "", "the court " * 40, "школа", "budgeting \ud800"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def settings(folder):
    return TextSettings(tokenizer=str(folder), max_tokens=12)


@pytest.fixture
def encoder(settings):
    return pretrained_encoder(settings)


def tokens_of(encoder, *texts, **more):
    return [[encoder.tokens[index] for index in row] for row in encoder.encode(texts, **more)]


def test_a_text_becomes_the_tokenizers_own_subwords_with_its_special_tokens(encoder):
    assert tokens_of(encoder, "Clubs bank") == [["[CLS]", "club", "##s", "bank", "[SEP]"]]


def test_what_is_beside_a_text_changes_nothing(encoder):
    together = encoder.encode(TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        np.testing.assert_array_equal(encoder.encode([text])[0], row)


def test_a_long_text_makes_room_for_features_and_these_for_the_text(encoder):
    (row,) = tokens_of(encoder, "the court " * 40, features=[["film"]])
    assert row[-3:] == ["the", "film", "[SEP]"]
    assert len(row) == 12
    (row,) = tokens_of(encoder, "rain", features=[["film"] * 50])
    assert row == ["[CLS]", "rain", *["film"] * 6, "[SEP]"]


def test_save_and_load_change_nothing(encoder, settings, tmp_path):
    encoder.save(tmp_path / "t.json")
    again = load_text_encoder(tmp_path / "t.json", settings)
    assert isinstance(again, SubwordEncoder)
    assert again.tokenizer.to_str() == encoder.tokenizer.to_str()
    np.testing.assert_array_equal(again.encode(TEXTS).values, encoder.encode(TEXTS).values)


def test_ids_without_a_token_count(tmp_path):
    values = json.loads(tiny_tokenizer().to_str())
    values["model"]["vocab"]["zebra"] = 500
    encoder = SubwordEncoder(Tokenizer.from_str(json.dumps(values)), 12)
    assert encoder.n_tokens == 501
    assert encoder.tokens[500] == "zebra"
    assert encoder.tokens[499] == ""


def test_the_cache_depends_on_what_the_tokenizer_is_not_on_where_it_lies(folder, tmp_path):
    (tmp_path / "train.jsonl").write_text('{"text": "a", "labels": []}\n')
    source = Source(str(tmp_path / "train.jsonl"))
    key = partial(prepared_path, source, source.open())
    own = key(TextSettings(tokenizer=str(folder)))
    copy, other = tmp_path / "copy", tmp_path / "other"
    for place in (copy, other):
        place.mkdir()
        tiny_tokenizer().save(str(place / "tokenizer.json"))
    changed = (other / "tokenizer.json").read_text().replace('"rain"', '"snow"')
    (other / "tokenizer.json").write_text(changed)
    assert key(TextSettings(tokenizer=str(copy))) == own
    assert key(TextSettings(tokenizer=str(other))) != own
    assert key(TextSettings(tokenizer=str(folder), max_tokens=9)) != own
    assert key(TextSettings()) != own


def transformer_at(path):
    return Config(encoder=EncoderSettings("transformer", str(path)))


def test_data_of_another_tokenizer_is_refused(settings, encoder, small_prepared, tmp_path):
    words, tiny, real = Config(), transformer_at(settings.tokenizer), transformer_at(minilm())
    check_same_tokenizer(tmp_path, tiny, encoder)
    check_same_tokenizer(tmp_path, words, small_prepared.encoder)
    for config in (words, Config(text=settings)):
        with pytest.raises(DataError, match="prepared for a transformer"):
            check_same_tokenizer(tmp_path, config, encoder)
    for config, own in ((tiny, small_prepared.encoder), (real, encoder)):
        with pytest.raises(DataError, match="another tokenizer"):
            check_same_tokenizer(tmp_path, config, own)


def test_a_folder_without_a_tokenizer_is_one_line(tmp_path):
    for name in ("/no/such/folder", "./models/mine", "a/b/c"):
        with pytest.raises(ModelError, match=f"there is no folder {name}"):
            pretrained_encoder(TextSettings(tokenizer=name))
    with pytest.raises(ModelError, match=r"has no tokenizer: it lacks tokenizer.json\.$"):
        pretrained_encoder(TextSettings(tokenizer=str(tmp_path)))


def test_a_hub_that_does_not_answer_is_one_line(monkeypatch):
    import transformers

    def fail(name):
        raise OSError(f"We could not connect\nto load {name}")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", fail)
    with pytest.raises(ModelError, match="could not be downloaded") as error:
        pretrained_encoder(TextSettings(tokenizer="some/name"))
    assert "\n" not in str(error.value)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'setrnn\[hf\]'"):
        pretrained_encoder(TextSettings(tokenizer="some/name"))


def test_minilm_reads_as_its_own_library_does():
    from transformers import AutoTokenizer

    encoder = pretrained_encoder(TextSettings(tokenizer=str(minilm()), max_tokens=20))
    theirs = AutoTokenizer.from_pretrained(minilm())
    texts = ["Deep learning for multi-label text.", "", "graph neural networks " * 30]
    expected = theirs(texts, truncation=True, max_length=20)["input_ids"]
    assert [row.tolist() for row in encoder.encode(texts)] == expected


ROW = st.lists(st.integers(0, 9), max_size=4)
APPLES = ["red apple", "red car", "", "a green car"]


def make_encoder(texts, max_words=10):
    return TextEncoder(learn_tokenizer(texts, [], TextSettings(min_count=1)), max_words)


@given(st.lists(st.tuples(ROW, ROW, ROW), max_size=6), st.randoms())
def test_rows_that_are_joined_and_taken_in_any_order_are_split_again(documents, random):
    parts = [Ragged.from_lists([row[part] for row in documents]) for part in range(3)]
    order = list(range(len(documents)))
    random.shuffle(order)
    rows = np.array(order, dtype=np.int64)
    for part, found in zip(parts, split_rows(join_rows(parts).take(rows), 3), strict=True):
        assert [row.tolist() for row in found] == [part[row].tolist() for row in order]


def test_a_joint_encoder_reads_with_each_tokenizer():
    one, other = make_encoder(APPLES[:2]), make_encoder(APPLES, max_words=1)
    both = join_encoders([one, other])
    assert isinstance(both, JointEncoder)
    for encoder, found in zip(both.parts, split_rows(both.encode(APPLES), 2), strict=True):
        assert [row.tolist() for row in found] == [row.tolist() for row in encoder.encode(APPLES)]
    assert both.n_tokens == max(one.n_tokens, other.n_tokens)


def test_encoders_are_the_same_if_they_give_the_same_ids():
    one, other = make_encoder(APPLES), make_encoder(APPLES)
    assert one.is_same(other)
    assert not one.is_same(make_encoder(APPLES, max_words=3))
    assert not one.is_same(make_encoder(APPLES[:2]))
    assert join_encoders([one, make_encoder(APPLES[:2])]).is_same(
        join_encoders([other, make_encoder(APPLES[:2])])
    )
    assert not one.is_same(join_encoders([one, make_encoder(APPLES[:2])]))
