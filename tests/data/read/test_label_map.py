"""Other names for labels, and the labels that need one."""

import pytest

from setrnn.data.labels import find_twins
from setrnn.data.read import BadRows, ReadOptions, open_dataset, read_label_map
from setrnn.data.read.label_files import save_label_map
from setrnn.data.statistics import dataset_statistics
from setrnn.errors import DataError

MAP = {"Dramas": "Drama", "Comedies": "Comedy", "TBD": ""}


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text("text,labels\nt,Dramas;Drama;TBD\nt,Comedies;Sports\nt,TBD\n")
    return file


def read(file, bad_rows=None, **options):
    split = open_dataset(file, ReadOptions(**options)).require("train")
    return list(split.read(bad_rows or BadRows()))


def test_a_map_renames_merges_and_drops(table):
    bad_rows = BadRows()
    found = [example.labels for example in read(table, bad_rows, label_map=MAP)]
    assert found == [("Drama",), ("Comedy", "Sports"), ()]
    assert bad_rows.notes == []


def test_labels_of_the_map_that_do_not_occur_are_said(table):
    bad_rows = BadRows()
    read(table, bad_rows, label_map={**MAP, "Dramaz": "Drama"})
    assert '"Dramaz"' in bad_rows.notes[0]
    assert "Dramas" not in bad_rows.notes[0]


def test_known_labels_are_renamed_too(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("text,right\nt,Dramas\n")
    options = {"present_field": "right", "require_labels": False, "label_map": MAP}
    assert read(file, **options)[0].known.present == ("Drama",)


@pytest.mark.parametrize(
    "content", ["from,to\nDramas,Drama\nTBD,\n", "\ufefffrom;to\nDramas;Drama\nTBD;\n"]
)
def test_a_map_is_read_like_any_table(tmp_path, content):
    (tmp_path / "map.csv").write_text(content, encoding="utf-8")
    assert read_label_map(tmp_path / "map.csv") == {"Dramas": "Drama", "TBD": ""}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("from,to\na,b\na,c\n", 'line 3: "a" becomes "c" here and "b" above'),
        ("from,to\n,b\n", "line 2: the from is empty"),
        ("old,new\na,b\n", "first line must name the columns from,to"),
        ("", "names no label"),
        ("from,to\na\n", "line 2: expected 2 cells"),
        ("from,to\n", "names no label"),
    ],
)
def test_a_wrong_map_is_refused(tmp_path, content, says):
    (tmp_path / "map.csv").write_text(content)
    with pytest.raises(DataError) as caught:
        read_label_map(tmp_path / "map.csv")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("label", "twin"),
    [
        ("Drama", "Dramas"),
        ("comedy", "Comedies"),
        ("Movie", "Movies"),
        ("Sci-Fi & Fantasy", "sci fi and fantasy"),
        ("SciFi", "Sci-Fi"),
        ("Café Culture", "Cafe culture"),
        ("TV Shows", "Show: TV"),
        ("Children's", "Children"),
        ("Children\u2019s", "Childrens"),
        ("Women's fiction", "Fiction: women"),
    ],
)
def test_spellings_of_one_label_are_twins(label, twin):
    assert find_twins({label: 1, twin: 9, "Other things": 3}) == {label: twin}


@pytest.mark.parametrize(
    "labels",
    [
        ("cs.AI", "cs.AR"),
        ("1980s", "1990s"),
        ("C", "C++"),
        ("lang:c", "lang:c++", "lang:c#"),
        ("Visual C", "Visual C++"),
        ("Web C", "Web C#"),
        ("News", "New"),
        ("a b", "ab"),
    ],
)
def test_different_labels_are_not_twins(labels):
    assert find_twins(dict.fromkeys(labels, 1)) == {}


def test_the_twins_of_data_are_a_map_to_start_from(table, tmp_path):
    twins = dataset_statistics({"train": read(table)}).twins
    assert twins == {"Dramas": "Drama"}
    save_label_map(twins, tmp_path / "map.csv")
    assert read_label_map(tmp_path / "map.csv") == twins
