import threading

import pytest

from setrnn.training.prefetch import prefetched


@pytest.mark.parametrize("n", [0, 1, 3, 20])
def test_the_order_stays(n):
    assert list(prefetched(lambda item: item * item, range(n))) == [i * i for i in range(n)]


def test_only_a_few_are_made_ahead():
    made = []
    stream = prefetched(made.append, range(100), n_ahead=4)
    next(stream)
    stream.close()
    assert len(made) <= 5


def test_an_error_comes_where_its_item_would():
    def make(item):
        return 1 // item

    stream = prefetched(make, [1, 0])
    assert next(stream) == 1
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_no_thread_is_left():
    before = threading.active_count()
    stream = prefetched(str, range(10))
    next(stream)
    stream.close()
    assert threading.active_count() == before
