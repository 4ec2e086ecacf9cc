"""The message of a missing column lists the right one first, and whole."""

import pytest

from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.data.read.row import list_names
from setrnn.errors import DataError

LONG = "description_of_the_programme_as_the_provider_wrote_it_in_the_catalogue_of_last_year"


def refusal(tmp_path, header, **options):
    (tmp_path / "train.csv").write_text(f"{','.join(header)}\n{','.join('x' for _ in header)}\n")
    with pytest.raises(DataError) as caught:
        list(
            open_dataset(tmp_path / "train.csv", ReadOptions(**options))
            .require("train")
            .read(BadRows())
        )
    return str(caught.value)


@pytest.mark.parametrize(
    ("header", "near"),
    [
        ([*(f"column_{n}" for n in range(40)), "full_text"], "full_text"),
        ([*(f"c{n}" for n in range(40)), "Text"], "Text"),
        ([*(f"c{n}" for n in range(40)), "description"], "description"),
    ],
)
def test_near_names_come_first(tmp_path, header, near):
    message = refusal(tmp_path, header)
    assert f"it has {near}, " in message
    assert f"Did you mean '{near}'?" in message
    assert "more" not in message
    assert all(f"{each}," in message or f"{each}." in message for each in header)


def test_near_names_are_never_cut_off(tmp_path):
    assert LONG in refusal(tmp_path, ["id", LONG, "labels"], text_field="description")


def test_names_are_whole_or_not_there():
    names = [f"{n:04}" + "x" * 30 for n in range(1_030)]
    listed = list_names("text", names)
    assert listed.endswith(" and 30 more")
    assert set(listed.removesuffix(" and 30 more").split(", ")) == set(names[:1_000])


def test_the_labels_are_found_by_what_they_are_usually_called(tmp_path):
    assert "Did you mean 'genres'?" in refusal(tmp_path, ["id", "text", "genres"])
