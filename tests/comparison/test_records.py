import json
from dataclasses import replace

import pytest

from made_comparison import made_comparison
from setrnn.comparison.records import Comparison, load_record, load_records
from setrnn.errors import DataError


def made():
    """Return a comparison with a hierarchy, and its records."""
    comparison, records = made_comparison(("br", "set-rnn"), n_seeds=2, n_documents=20)
    return replace(comparison, parents={comparison.labels[0]: ["above"]}), records


@pytest.fixture
def folder(tmp_path):
    comparison, records = made()
    comparison.save(tmp_path)
    for record in records:
        record.save(tmp_path)
    return tmp_path


def test_records_come_back_as_they_were(folder):
    comparison, records = made()
    assert Comparison.load(folder) == comparison
    found = {record.name: record for record in load_records(folder, comparison)}
    assert list(found) == ["br-0", "set-rnn-0", "set-rnn-1"]
    for record in records:
        again = found[record.name]
        assert again.test == record.test
        assert again.costs == record.costs
        assert again.scores == record.scores


def test_a_record_of_another_version_is_refused(folder):
    file = folder / "runs" / "br-0.json"
    values = json.loads(file.read_text()) | {"format": 99, "setrnn": "9.9"}
    file.write_text(json.dumps(values))
    with pytest.raises(DataError, match=r"br-0.json was written by another version.*9\.9"):
        load_record(file)


def test_a_run_on_other_data_is_refused(folder):
    record = load_record(folder / "runs" / "br-0.json")
    replace(record, data_hash="other").save(folder)
    with pytest.raises(DataError, match="other data"):
        load_records(folder, Comparison.load(folder))


@pytest.mark.parametrize("content", [b"", b'{"format"', b"null", b"\0" * 50, b'{"format": 5}'])
def test_a_damaged_record_counts_as_missing_and_is_named(folder, content):
    (folder / "runs" / "set-rnn-0.json").write_bytes(content)
    said = []
    records = load_records(folder, Comparison.load(folder), said.append)
    assert [record.name for record in records] == ["br-0", "set-rnn-1"]
    (message,) = said
    assert "set-rnn-0.json is damaged" in message
    with pytest.raises(DataError, match=r"set-rnn-0\.json"):
        load_record(folder / "runs" / "set-rnn-0.json")


def test_a_changed_digit_is_found(folder):
    """It leaves the file readable: only the seal tells."""
    file = folder / "runs" / "br-0.json"
    text = file.read_text()
    at = text.index("0.") + 2
    file.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
    said = []
    load_records(folder, Comparison.load(folder), said.append)
    assert "br-0.json is damaged" in said[0]
    file = folder / "comparison.json"
    file.write_text(file.read_text().replace("[0, ", "[1, ", 1))
    with pytest.raises(DataError, match=r"comparison\.json is damaged\. Remove it"):
        Comparison.load(folder)
