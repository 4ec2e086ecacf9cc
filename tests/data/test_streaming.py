import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.data.streaming import batched, prefetch


@given(st.lists(st.integers(), max_size=30), st.integers(1, 8))
def test_batches_hold_everything_in_order(items, size):
    batches = list(batched(iter(items), size))
    assert [item for batch in batches for item in batch] == items
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(batches)


@pytest.mark.parametrize("n", [0, 1, 3, 20])
def test_the_order_stays(n):
    assert list(prefetch(lambda item: item * item, range(n))) == [i * i for i in range(n)]


def test_only_a_few_are_made_ahead():
    made = []
    stream = prefetch(made.append, range(100), n_ahead=4)
    next(stream)
    stream.close()
    assert len(made) <= 5


def test_an_error_comes_where_its_item_would():
    def make(item):
        return 1 // item

    stream = prefetch(make, [1, 0])
    assert next(stream) == 1
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_no_thread_is_left():
    before = threading.active_count()
    stream = prefetch(str, range(10))
    next(stream)
    stream.close()
    assert threading.active_count() == before
