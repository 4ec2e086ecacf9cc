"""Workbooks of Excel: what a person sees in a sheet is read, and what is written is no formula."""

import datetime
import sys
import zipfile

import pytest

from json_lines import write_rows
from reading import read
from setrnn.data.example import Example
from setrnn.data.read import BadRows
from setrnn.data.read.delimited import Dialect, find_dialect
from setrnn.data.read.excel import MAX_CHARACTERS
from setrnn.data.read.reader import ReadOptions
from setrnn.data.read.write import write_table
from setrnn.errors import BadRowError, DataError, MissingExtraError

openpyxl = pytest.importorskip("openpyxl")
HEADER = ("id", "text", "labels", "day")


def save(file, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, (state, rows) in enumerate(sheets):
        sheet = book.create_sheet(f"S{number}")
        sheet.sheet_state = state
        for row in rows:
            sheet.append(row)
    book.save(file)
    return file


def test_cells_are_read_as_they_are_seen(tmp_path):
    day = datetime.datetime(2024, 5, 1)
    rows = [
        (None, None),
        HEADER,
        (1, 'One; "two"', "x; y", day),
        (),
        (2.0, "Line\nbreak_x000D_", "[]", True),
        (None, "no id", "['x', 'z']", 2.5),
    ]
    found = read(save(tmp_path / "news.xlsx", ("visible", rows)), keep_columns=True)
    assert [(each.id, each.text, each.labels, each.columns["day"]) for each in found] == [
        ("1", 'One; "two"', ("x", "y"), "2024-05-01"),
        ("2", "Line\nbreak", (), "true"),
        ("news-3", "no id", ("x", "z"), "2.5"),
    ]


def test_the_first_visible_sheet_is_read_or_the_named_one(tmp_path):
    sheets = [[("text", "labels"), (name, "x")] for name in ("hidden", "first", "second")]
    states = ("hidden", "visible", "visible")
    file = save(tmp_path / "news.xlsx", *zip(states, sheets, strict=True))
    bad_rows = BadRows()
    assert read(file, bad_rows) == [Example("news-1", "first", ("x",))]
    (note,) = bad_rows.notes
    assert "only the sheet 'S1' of S0, S1, S2 is read" in note
    bad_rows = BadRows()
    assert read(file, bad_rows, sheet="S2") == [Example("news-1", "second", ("x",))]
    assert not bad_rows.notes
    with pytest.raises(DataError, match=r"no sheet 'S3': it has S0, S1, S2\. Name"):
        read(file, sheet="S3")


def test_what_is_wrong_says_the_row(tmp_path):
    rows = [HEADER, (1, "a", "x", 1), (2, "b", "x", 1, "more")]
    file = save(tmp_path / "news.xlsx", ("visible", rows))
    with pytest.raises(BadRowError, match=r"^news\.xlsx row 3: has 5 cells, the header has 4"):
        read(file)
    with pytest.raises(DataError, match=r"has no column 'text'.*--text-field"):
        read(save(file, ("visible", [("id", "labels")])))


@pytest.mark.parametrize("content", [b"", b"not a zip", b"\xd0\xcf\x11\xe0 a password"])
def test_what_is_no_workbook_is_refused(tmp_path, content):
    file = tmp_path / "news.xlsx"
    file.write_bytes(content)
    with pytest.raises(DataError, match="is not a valid Excel workbook"):
        read(file)
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("xl/workbook.xml", "<a>")
    with pytest.raises(DataError, match="is not a valid Excel workbook"):
        read(file)


def test_a_workbook_that_grows_without_bound_is_refused(tmp_path, monkeypatch):
    file = save(tmp_path / "news.xlsx", ("visible", [("text", "labels"), ("a", "x")]))
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/more.xml", b" " * (300 << 20))
    with pytest.raises(DataError, match="bytes of memory"):
        read(file)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "news.xlsx").touch()
    with pytest.raises(MissingExtraError, match=r"pip install 'setrnn\[excel\]'"):
        read(tmp_path / "news.xlsx")


def test_written_cells_keep_numbers_and_are_no_formulas(tmp_path):
    long = "w" * (MAX_CHARACTERS + 1)
    row = {"=1+1": "=cmd()", "n": 0.25, "ok": True, "labels": ["-a", "b"], "none": None}
    file = tmp_path / "out.xlsx"
    assert write_table([row, {"n": 3, "odd": "a\x01\ud800"[:2], "long": long}], file) == 2
    header, first, second = openpyxl.load_workbook(file)["setrnn"].iter_rows()
    assert [cell.value for cell in header] == [*row, "odd", "long"]
    assert [cell.value for cell in first][:5] == ["=cmd()", 0.25, True, "-a;b", None]
    assert "f" not in {cell.data_type for cell in (*header, *first)}
    assert [cell.value for cell in second][1::4] == [3, "a\ufffd"]
    assert len(second[-1].value) == MAX_CHARACTERS
    assert find_dialect([file], ReadOptions()) == Dialect(mark=True)


def test_predictions_are_written_as_a_workbook(setrnn, taggers, tmp_path):
    taggers["br"].save(tmp_path / "model")
    save(tmp_path / "in.xlsx", ("visible", [("nr", "text"), (7, "=late goal"), (8, "a storm")]))
    how = ("--label-columns", "binary", "--overwrite")
    for more in ((), ("--workers", "1")):
        given = ("predict", tmp_path / "model", tmp_path / "in.xlsx", "--id-field", "nr", *more)
        ended = setrnn(*given, "--out", tmp_path / "out.xlsx", *how)
        assert ended.code == 0, ended.err
        rows = list(
            openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows(values_only=True)
        )
        first = dict(zip(rows[0], rows[1], strict=True))
        assert [row[0] for row in rows] == ["nr", "7", "8"]
        assert first["probability"] == round(first["probability"], 4)
        predicted = {name for name in taggers["br"].labels.names if first[name] == 1}
        assert predicted == set(filter(None, (first["labels"] or "").split(";")))
    write_rows(tmp_path / "in.jsonl", [{"text": "a goal"}])
    ended = setrnn(
        "predict", tmp_path / "model", tmp_path / "in.jsonl", "--out", tmp_path / "o.xlsx"
    )
    assert ended.code == 0, ended.err
