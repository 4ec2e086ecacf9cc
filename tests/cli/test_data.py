import json

import pytest

from json_lines import read_rows


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_convert_reads_tables_with_other_names(setrnn, place):
    (place / "in.tsv").write_text("key\ttitle\tbody\ttags\n7\tA\tB c\tx|y|x\n8\tD\t\t\n")
    options = ["--id-field", "key", "--text-field", "title,body", "--labels-field", "tags"]
    result = setrnn("data", "convert", "in.tsv", "o.jsonl", *options, "--label-separator", "|")
    assert result.code == 0, result.err
    assert read_rows(place / "o.jsonl") == [
        {"id": "7", "text": "A\nB c", "labels": ["x", "y"]},
        {"id": "8", "text": "D", "labels": []},
    ]


def test_split_copies_the_parts_that_are_there(setrnn, corpus, place):
    (place / "in").mkdir()
    for name in ("train", "test"):
        (place / "in" / f"{name}.jsonl").write_bytes((corpus / f"{name}.jsonl").read_bytes())
    assert setrnn("data", "split", "in", "out", "--test", "0").code == 0
    assert read_rows(place / "out" / "test.jsonl") == read_rows(corpus / "test.jsonl")


def test_train_says_which_share_is_cut_and_the_setting(setrnn, place):
    texts = ["rain in the valley", "budget " * 700, "goal " * 60]
    rows = [{"text": texts[n % 3], "labels": [f"label {n % 3}"]} for n in range(30)]
    (place / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = setrnn("train", "news.jsonl", "--method", "br", "--no-valid", "--out", "cut")
    assert "500 words: 33.3% of train. " in result.err
    assert "--set text.windows=2" in result.err
