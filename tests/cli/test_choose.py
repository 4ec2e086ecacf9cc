"""`setrnn data choose`, as from a shell."""

import csv
import json

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def pool(tmp_path, corpus):
    """A CSV file with columns of its own, and some documents that the model was trained on."""
    file = tmp_path / "pool.csv"
    rows = [json.loads(line) for part in ("test", "train") for line in read(corpus, part)[:40]]
    with file.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["key", "body", "owner"])
        writer.writerows([row["id"], row["text"], "=cmd()"] for row in rows)
    return file


def read(folder, part):
    return (folder / f"{part}.jsonl").read_text().splitlines()


FIELDS = ("--text-field", "body", "--id-field", "key")


def test_the_chosen_documents_keep_their_columns(setrnn, trained, pool, tmp_path):
    out = tmp_path / "next.csv"
    ended = setrnn("data", "choose", trained, pool, "--n", 10, "--out", out, *FIELDS)
    assert ended.code == 0, ended.err
    assert "trained on" in ended.err
    assert "10 documents" in ended.err
    with out.open(encoding="utf-8", newline="") as file:
        assert file.read(1) == "\ufeff"  # as in the pool
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("key", "body", "owner", "predicted_labels", "probability", "expected_f1", "reason")
    ]
    assert len(rows) == 10
    assert rows[0]["owner"] == "'=cmd()"
    assert 0 < float(rows[0]["probability"]) < 1


def test_json_lines_and_parquet_hold_the_same(setrnn, trained, corpus, tmp_path):
    found = []
    for name in ("next.jsonl", "next.parquet"):
        ended = setrnn(
            *("data", "choose", trained, corpus, "--split", "test", "--n", 5),
            *("--out", tmp_path / name),
        )
        assert ended.code == 0, ended.err
    found = [json.loads(line) for line in (tmp_path / "next.jsonl").read_text().splitlines()]
    table = pq.read_table(tmp_path / "next.parquet").to_pylist()
    assert [row["id"] for row in found] == [row["id"] for row in table]
    assert found[0]["predicted_labels"] == table[0]["predicted_labels"]
    assert "labels" in found[0]  # of the pool, as they were


def test_bad_input_is_one_line(setrnn, trained, pool, tmp_path):
    ended = setrnn("data", "choose", trained, pool, "--out", pool, *FIELDS)
    assert ended.code == 1
    assert "input itself" in ended.error_lines[0]
    ended = setrnn("data", "choose", trained, pool, "--out", tmp_path / "next.csv", "--n", 0)
    assert ended.code == 2
    (tmp_path / "empty.jsonl").write_text("")
    ended = setrnn("data", "choose", trained, tmp_path / "empty.jsonl", "--out", tmp_path / "x.csv")
    assert ended.code == 1
    assert "documents" in ended.error_lines[0]
    assert not (tmp_path / "x.csv").exists()
