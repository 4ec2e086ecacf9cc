import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setrnn.config import TextSettings
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import JointEncoder, join_encoders, join_rows, split_rows
from setrnn.data.text.words import TextEncoder, learn_tokenizer

ROW = st.lists(st.integers(0, 9), max_size=4)
TEXTS = ["red apple", "red car", "", "a green car"]


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
    one, other = make_encoder(TEXTS[:2]), make_encoder(TEXTS, max_words=1)
    both = join_encoders([one, other])
    assert isinstance(both, JointEncoder)
    for encoder, found in zip(both.parts, split_rows(both.encode(TEXTS), 2), strict=True):
        assert [row.tolist() for row in found] == [row.tolist() for row in encoder.encode(TEXTS)]
    assert both.n_tokens == max(one.n_tokens, other.n_tokens)


def test_encoders_are_the_same_if_they_give_the_same_ids():
    one, other = make_encoder(TEXTS), make_encoder(TEXTS)
    assert one.is_same(other)
    assert not one.is_same(make_encoder(TEXTS, max_words=3))
    assert not one.is_same(make_encoder(TEXTS[:2]))
    assert join_encoders([one, make_encoder(TEXTS[:2])]).is_same(
        join_encoders([other, make_encoder(TEXTS[:2])])
    )
    assert not one.is_same(join_encoders([one, make_encoder(TEXTS[:2])]))
