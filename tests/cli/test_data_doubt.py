"""`setrnn data doubt`: what it prints and writes, and what becomes of the file."""

import csv
from pathlib import Path

import pytest

from setrnn.data.read import write_examples

COLUMNS = ("nr", "text", "tags", "editor")


@pytest.fixture
def table(small_examples, tmp_path, monkeypatch):
    """A raw export whose first document has a label of another one."""
    monkeypatch.chdir(tmp_path)
    examples = small_examples["train"][:150]
    first = set(examples[0].labels)
    other = next(each.labels[0] for each in examples if not first & {*each.labels})
    wrong = (other, *examples[0].labels[1:])
    rows = [(each.id, each.text, "|".join(each.labels) or "[]", "ab") for each in examples]
    rows[0] = (examples[0].id, examples[0].text, "|".join(wrong), "ab")
    with Path("news.csv").open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream, delimiter=";").writerows([COLUMNS, *rows])
    return rows


HOW = ["--id-field", "nr", "--labels-field", "tags", "--label-separator", "|"]


def read_table(name):
    with Path(name).open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=";"))


def test_all_documents_are_written_with_their_columns_in_order_of_suspicion(table, setrnn):
    ended = setrnn("data", "doubt", "news.csv", "--out", "doubts.csv", "--folds", "3", *HOW)
    assert ended.code == 0, ended.err
    assert "150 documents" in ended.err
    assert Path("doubts.csv").read_bytes().startswith(b"\xef\xbb\xbf")  # as the input
    rows = read_table("doubts.csv")
    assert len(rows) == len(table)
    assert [*rows[0]][:5] == [*COLUMNS, "score"]
    place = [each["nr"] for each in rows].index(table[0][0])
    assert place < 15
    assert rows[place]["tags"] == table[0][2]
    assert table[0][2].split("|")[0] in rows[place]["remove"].split("|")
    scores = [float(each["score"]) for each in rows]
    assert scores == sorted(scores, reverse=True)
    assert sorted(each["text"] for each in rows) == sorted(each[1] for each in table)


def test_the_separator_of_a_cell_is_in_no_label(small_examples, setrnn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = small_examples["train"][:20]
    write_examples([each.relabel((*each.labels, "a;b"), ()) for each in examples], "news.jsonl")
    how = ("data", "doubt", "news.jsonl", "--method", "br", "--folds", "2", "--out")
    refused = setrnn(*how, "doubts.csv")
    assert refused.code == 1
    assert "'a;b' contains ';'" in refused.err
    assert "20 documents" in setrnn(*how, "doubts.jsonl").err
