import pytest

from setrnn.data.read import BadRows, ReadOptions, make_hierarchy, open_dataset, read_hierarchy
from setrnn.errors import DataError

PARENTS = {"football": ("sport",), "final": ("football", "news")}


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
    ("content", "message"),
    [
        ("label,parent\na,a\n", 'line 2: "a" is its own parent'),
        ("a,b\nb,c\nc,a\n", "tree.csv: .*cycle"),
        ("a,b\nc,b\na,b\n", "line 3: .*above"),
        (",b\n", "line 1: the label is empty"),
        ("a,b\na\n", "line 2: expected 2 cells, got 1"),
        ("a,b\na,b,c\n", "line 2: expected 2 cells, got 3"),
        ("label,parent\n", "names no parent"),
        ("a,\n", "names no parent"),
        ("", "names no parent"),
        ('a,b\n"c,d\n', "line 2"),
    ],
)
def test_a_file_that_is_no_hierarchy_is_refused_in_a_line(tmp_path, content, message):
    (tmp_path / "tree.csv").write_text(content)
    with pytest.raises(DataError, match=message) as error:
        read_hierarchy(tmp_path / "tree.csv")
    assert "\n" not in str(error.value)


def test_a_missing_file_and_labels_without_a_hierarchy_are_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_hierarchy(tmp_path / "tree.csv")
    with pytest.raises(DataError, match="--hierarchy"):
        make_hierarchy(None, close_labels=True)


def test_documents_get_the_labels_above_theirs(tmp_path):
    (tmp_path / "train.csv").write_text("text,labels\nA goal,final\nRain,weather\n")
    for close, wanted in ((True, ("final", "football", "news", "sport")), (False, ("final",))):
        options = ReadOptions(hierarchy=make_hierarchy(PARENTS, close))
        first, second = open_dataset(tmp_path, options).splits["train"].read(BadRows())
        assert first.labels == wanted
        assert second.labels == ("weather",)


def test_every_item_of_the_embedded_corpus_is_closed():
    tree = read_hierarchy("newsroom")
    splits = open_dataset("newsroom").splits
    assert all(tree.is_closed(each.labels) for each in splits["test"].read(BadRows()))


def test_another_kind_of_value_is_no_hierarchy():
    with pytest.raises(DataError, match="got int"):
        make_hierarchy(7)
