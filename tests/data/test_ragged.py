import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.data.ragged import Ragged

row = st.lists(st.integers(0, 2**15), max_size=6)
rows_of_ids = st.lists(row, max_size=12)
pairs_of_rows = st.lists(st.tuples(row, row), max_size=12)


def as_lists(ragged):
    return [each.tolist() for each in ragged]


def check_sound(ragged):
    """What every Ragged must hold."""
    assert ragged.offsets[0] == 0
    assert ragged.offsets[-1] == len(ragged.values)
    assert (np.diff(ragged.offsets) >= 0).all()


@given(rows_of_ids)
def test_lists_come_back(rows):
    ragged = Ragged.from_lists(rows)
    check_sound(ragged)
    assert as_lists(ragged) == rows
    assert len(ragged) == len(rows)
    assert ragged.lengths.tolist() == [len(each) for each in rows]
    assert ragged.row_numbers.tolist() == [i for i, each in enumerate(rows) for _ in each]
    assert [ragged[i].tolist() for i in range(len(rows))] == rows


@given(pairs_of_rows)
def test_append_joins_row_by_row(pairs):
    first = Ragged.from_lists([a for a, _ in pairs])
    second = Ragged.from_lists([b for _, b in pairs])
    joined = first.append(second)
    check_sound(joined)
    assert as_lists(joined) == [a + b for a, b in pairs]
    assert as_lists(first) == [a for a, _ in pairs], "the parts must not change"


@given(rows_of_ids, st.data())
def test_keep_drops_values_but_no_rows(rows, data):
    ragged = Ragged.from_lists(rows)
    n = len(ragged.values)
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    kept = ragged.keep(np.array(mask, dtype=bool))
    check_sound(kept)
    is_kept = iter(mask)
    assert as_lists(kept) == [[value for value in each if next(is_kept)] for each in rows]


@given(rows_of_ids, st.integers(0, 8))
def test_truncate_cuts_each_row(rows, length):
    truncated = Ragged.from_lists(rows).truncate(length)
    check_sound(truncated)
    assert as_lists(truncated) == [each[:length] for each in rows]


@given(rows_of_ids, st.data())
def test_a_view_of_rows_behaves_as_these_rows_alone(rows, data):
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    view = Ragged.from_lists(rows).rows(start, stop)
    packed = Ragged.from_lists(rows[start:stop])
    assert as_lists(view) == rows[start:stop]
    assert as_lists(view.truncate(2)) == as_lists(packed.truncate(2))
    assert as_lists(view.append(packed)) == as_lists(packed.append(view))
    is_even = view.values % 2 == 0
    assert as_lists(view.keep(is_even)) == as_lists(packed.keep(is_even))
    assert view.row_numbers.tolist() == packed.row_numbers.tolist()


def test_rows_share_their_values():
    ragged = Ragged.from_lists([[1, 2], [3], [4, 5]])
    assert np.shares_memory(ragged.rows(1, 3).values, ragged.values)


@given(st.lists(rows_of_ids, max_size=4))
def test_concatenate_puts_rows_behind_each_other(parts):
    joined = Ragged.concatenate(Ragged.from_lists(rows) for rows in parts)
    check_sound(joined)
    assert as_lists(joined) == [each for rows in parts for each in rows]


def test_a_row_past_the_end_is_refused():
    with pytest.raises(IndexError):
        Ragged.from_lists([[1], [2]])[2]


@given(st.lists(row, min_size=1, max_size=8), st.data(), st.integers(0, 8))
def test_padded_rows_are_the_rows_and_then_the_padding(rows, data, min_width):
    chosen = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)), dtype=int)
    matrix = Ragged.from_lists(rows).padded(-7, rows=chosen, min_width=min_width)
    width = max([min_width, *(len(rows[each]) for each in chosen)])
    assert matrix.shape == (len(chosen), width)
    assert matrix.dtype == np.int32
    assert matrix.tolist() == [rows[each] + [-7] * (width - len(rows[each])) for each in chosen]
