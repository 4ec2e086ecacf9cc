"""What a run starts from."""

import pytest
from tiny_runs import prepared_of, tiny_config

from setrnn.training import start


@pytest.mark.parametrize(
    ("setting", "source", "least", "is_frozen"),
    [
        ("auto", "word2vec", 1, True),
        ("auto", "word2vec", 10**6, False),
        ("tuned", "word2vec", 1, False),
        ("frozen", "word2vec", 10**6, True),
        ("frozen", "none", 1, False),
    ],
)
def test_word_vectors_are_frozen_where_there_are_many_texts(
    tmp_path, monkeypatch, setting, source, least, is_frozen
):
    """Random ones mean nothing, and are always tuned."""
    monkeypatch.setattr(start, "MANY_DOCUMENTS", least)
    prepared = prepared_of({"train": 8}, tmp_path / "data")
    config = tiny_config(f"model.word_vectors={setting}", f"vectors.source={source}")
    assert (start._tuned_or_frozen(prepared, config) == "frozen") == is_frozen
