"""A wrong separator of labels stops the reading, with the right one."""

import pytest

from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.data.read.delimited import N_CELLS, find_separator, split_cell
from setrnn.errors import DataError


def read(tmp_path, cells, on_bad_row="stop", **options):
    rows = "".join(f'{number},some text,"{cell}"\n' for number, cell in enumerate(cells))
    (tmp_path / "train.csv").write_text(f"id,text,labels\n{rows}", encoding="utf-8")
    split = open_dataset(tmp_path / "train.csv", ReadOptions(**options)).require("train")
    return [example.labels for example in split.read(BadRows(on_bad_row))]


GENRES = ["Dramas, Comedies", "Dramas", "", "Comedies, Sports", "Sports"]


@pytest.mark.parametrize("held", [", ", ",", "|", " | "])
@pytest.mark.parametrize("on_bad_row", ["stop", "skip"])
def test_another_separator_in_the_cells_stops_with_it(tmp_path, held, on_bad_row):
    cells = [cell.replace(", ", held) for cell in GENRES]
    with pytest.raises(DataError) as caught:
        read(tmp_path, cells, on_bad_row)
    message = str(caught.value)
    assert "4 labels, one per document" in message
    meant = held.strip()
    assert f"Did you mean --label-separator '{meant}'?" in message
    labels = read(tmp_path, cells, label_separator=meant)
    assert labels[0] == ("Dramas", "Comedies")


def test_the_message_is_that_of_the_docs(tmp_path):
    with pytest.raises(DataError, match=r"one per document: your labels contain ', '\. Did you"):
        read(tmp_path, GENRES)


def test_a_chosen_separator_is_checked_too(tmp_path):
    with pytest.raises(DataError, match="--label-separator ','"):
        read(tmp_path, GENRES, label_separator="|")
    with pytest.raises(DataError, match="--label-separator ';'"):
        read(tmp_path, ["a;b", "a", "b"], label_separator=",")


def test_one_label_per_cell_can_be_asked_for(tmp_path):
    assert read(tmp_path, ["Home, Garden"] * 3, label_separator="none") == [("Home, Garden",)] * 3


def test_a_separator_that_occurs_somewhere_is_the_right_one(tmp_path):
    cells = ["Home, Garden", "Books, Music", "Home, Garden;Toys"]
    assert read(tmp_path, cells)[2] == ("Home, Garden", "Toys")


def test_a_separator_that_is_hardly_ever_there_is_told_of(tmp_path):
    file = tmp_path / "a.csv"
    cells = [f"a{n % 5}, b{n % 3}" for n in range(40)] + ["a1; b1"]
    file.write_text("\n".join(["text,labels", *(f'x,"{each}"' for each in cells)]))
    bad_rows = BadRows()
    list(open_dataset(file).splits["train"].read(bad_rows))
    (note,) = bad_rows.notes
    assert "--label-separator ','" in note


def test_a_comma_in_one_name_of_many_is_no_reason_to_stop(tmp_path):
    cells = ["Dramas", "Comedies", "Sports", "News", "Home, Garden"]
    assert read(tmp_path, cells)[-1] == ("Home, Garden",)
    assert find_separator(cells) is None


def test_a_large_file_stops_early(tmp_path):
    path = tmp_path / "train.csv"
    rows = '1,t,"a, b"\n' * (2 * N_CELLS)
    path.write_text(f"id,text,labels\n{rows}")
    with pytest.raises(DataError, match="in the first 1,000 documents"):
        next(open_dataset(path).require("train").read(BadRows()))


def test_labels_that_are_not_needed_are_not_checked(tmp_path):
    assert len(read(tmp_path, GENRES, require_labels=False)) == len(GENRES)


def test_a_tab_separates_labels_with_spaces_in_them():
    assert split_cell("Action Movies\tDramas", "\t") == ["Action Movies", "Dramas"]


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("['Drama', 'Sci-Fi']", ["Drama", "Sci-Fi"]),
        ('["Drama"]', ["Drama"]),
        ("[]", []),
        ("[draft]", ["[draft]"]),
        ("[1, 2]", ["[1, 2]"]),
        ("[" * 9000 + "]" * 9000, ["[" * 9000 + "]" * 9000]),
    ],
)
def test_a_list_in_a_cell_is_a_list(cell, labels):
    assert split_cell(cell, ";") == labels
