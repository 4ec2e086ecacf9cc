"""Files of other names for labels and of their parents."""

import pytest

from reading import read
from setrnn.data.groups import Group
from setrnn.data.read import (
    BadRows,
    make_hierarchy,
    open_dataset,
    read_groups,
    read_hierarchy,
    read_label_map,
)
from setrnn.data.read.label_files import save_groups, save_label_map
from setrnn.data.statistics import dataset_statistics
from setrnn.errors import DataError

MAP = {"Dramas": "Drama", "Comedies": "Comedy", "TBD": ""}
PARENTS = {"football": ("sport",), "final": ("football", "news")}


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text("text,labels\nt,Dramas;Drama;TBD\nt,Comedies;Sports\nt,TBD\n")
    return file


def test_a_map_renames_merges_and_drops(table):
    found = [example.labels for example in read(table, label_map=MAP)]
    assert found == [("Drama",), ("Comedy", "Sports"), ()]


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


def test_the_twins_of_data_are_a_map_to_start_from(table, tmp_path):
    twins = dataset_statistics({"train": read(table)}).twins
    assert twins == {"Dramas": "Drama"}
    save_label_map(twins, tmp_path / "map.csv")
    assert read_label_map(tmp_path / "map.csv") == twins


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tree.csv", "label,parent\nfootball,sport\nfinal,football\nfinal,news\nsport,\n"),
        ("tree.csv", "football,sport\nfinal,football\nfinal,news\n"),
        ("tree.tsv", "football\tsport\nfinal\tfootball\nfinal\tnews\n"),
        ("tree.txt", "label\tparent\nfootball\tsport\nfinal\tfootball\nfinal\tnews\n"),
        ("tree.csv", "Parent;note;Label\nsport;x;football\nfootball;;final\nnews;;final\n"),
        ("tree.csv", "\ufefflabel,parent\r\n football , sport\r\n\r\nfinal,football\nfinal,news"),
    ],
)
def test_parents_are_read_from_csv_and_tsv(tmp_path, name, content):
    (tmp_path / name).write_text(content, newline="")
    assert read_hierarchy(tmp_path / name).parents == PARENTS


@pytest.mark.parametrize(
    ("read_file", "content", "message"),
    [
        (read_label_map, "from,to\na,b\na,c\n", 'line 3: "a" becomes "c" here and "b" above'),
        (read_label_map, "from,to\n,b\n", "line 2: the from is empty"),
        (read_label_map, "from,to\na\n", "line 2: expected 2 cells"),
        (read_label_map, "from,to\n", "names no label"),
        (read_label_map, "", "names no label"),
        (read_hierarchy, "label,parent\na,a\n", "labels.csv: 'a' is its own parent"),
        (read_hierarchy, "a,b\nb,c\nc,a\n", "labels.csv: .*cycle"),
        (read_hierarchy, ",b\n", "line 1: the label is empty"),
        (read_hierarchy, "a,b\na,b,c\n", "line 2: expected 2 cells, got 3"),
        (read_hierarchy, "a,\n", "names no parent"),
        (read_hierarchy, 'a,b\n"c,d\n', "line 2"),
        (read_groups, "a,g,at least,1\n", '"at least", "1". Write label,group,at most,1'),
        (read_groups, "a,g,exactly,-1\n", '"exactly", "-1". Write'),
        (read_groups, "a,g,exactly,1\nb,g,at most,1\n", 'line 2: group "g" has at most 1 here'),
        (read_groups, "a,exactly,1\n", "line 1: expected 4 cells, got 3"),
        (read_groups, "label,group,rule,n\n", "names no group"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, read_file, content, message):
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(DataError, match=message) as error:
        read_file(tmp_path / "labels.csv")
    assert "\n" not in str(error.value)


def test_groups_are_read_as_they_are_written(tmp_path):
    groups = (Group(["a", "b,c"], 1, exactly=True, name="kind"), Group(["d"], 2, name="place"))
    save_groups(groups, tmp_path / "groups.csv")
    assert read_groups(tmp_path / "groups.csv") == groups


def test_what_is_no_hierarchy_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_hierarchy(tmp_path / "tree.csv")
    with pytest.raises(DataError, match="--hierarchy"):
        make_hierarchy(None, close_labels=True)
    with pytest.raises(DataError, match="got int"):
        make_hierarchy(7)


def test_documents_get_the_labels_above_theirs(tmp_path):
    (tmp_path / "train.csv").write_text("text,labels\nA goal,final\nRain,weather\n")
    for close, wanted in ((True, ("final", "football", "news", "sport")), (False, ("final",))):
        first, second = read(tmp_path, hierarchy=make_hierarchy(PARENTS, close))
        assert first.labels == wanted
        assert second.labels == ("weather",)


def test_every_item_of_the_embedded_corpus_is_closed():
    tree = read_hierarchy("newsroom")
    splits = open_dataset("newsroom").splits
    assert all(tree.is_closed(each.labels) for each in splits["test"].read(BadRows()))
