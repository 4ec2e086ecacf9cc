"""Any bytes give documents or our own error; documents survive writing and reading."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setrnn.data.read import BadRows, ReadOptions, open_dataset, write_examples
from setrnn.errors import BadRowError, DataError, SetRNNError

FUZZ = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
rows = st.fixed_dictionaries(
    {},
    optional={
        "id": words | st.integers() | anything,
        "text": words | anything,
        "labels": st.lists(words, max_size=4) | anything,
        "features": st.lists(words, max_size=4) | anything,
        "more": anything,
    },
)
jsonl_files = st.lists(rows, max_size=5).map(
    lambda many: "\n".join(json.dumps(row) for row in many).encode()
)
cells = st.text(st.sampled_from('ab ;,"\n\r\t\0é'), max_size=8)
csv_files = st.lists(st.tuples(cells, cells, cells), max_size=5).map(
    lambda many: ("id,text,labels\n" + "\n".join(",".join(row) for row in many)).encode()
)
quoted_csv_files = st.lists(st.tuples(cells, cells), max_size=5).map(
    lambda many: (
        "text,labels\n"
        + "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in many)
    ).encode()
)


@st.composite
def mutated(draw, files):
    """Cut, double or overwrite some bytes of a valid file."""
    content = bytearray(draw(files))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 4)))
        content[start:end] = draw(st.binary(max_size=4) | st.just(bytes(content[start:end]) * 2))
    return bytes(content)


def check(name, content, max_row_bytes):
    """Read under both policies, then write what came and read it again."""
    options = ReadOptions(max_row_bytes=max_row_bytes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        examples = []
        bad_rows = {policy: BadRows(policy) for policy in ("stop", "skip")}
        errors = {}
        for policy in ("stop", "skip"):
            examples = []
            try:
                for example in open_dataset(path, options).require("train").read(bad_rows[policy]):
                    examples.append(example)
            except SetRNNError as error:
                errors[policy] = error
        assert all(str(error).isprintable() for error in errors.values())
        assert not isinstance(errors.get("skip"), BadRowError)
        assert isinstance(errors.get("stop"), BadRowError) == (bad_rows["skip"].n_skipped > 0)
        for suffix in (".jsonl", ".parquet"):
            again = Path(folder) / f"again{suffix}"
            assert write_examples(examples, again) == len(examples)
            if examples:
                assert list(open_dataset(again).require("train").read(BadRows())) == examples


sgml_files = st.just(
    b'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1">\n<TOPICS><D>x</D></TOPICS>\n'
    b"<TEXT><TITLE>T</TITLE><BODY>one &amp; two</BODY></TEXT>\n</REUTERS>\n"
)
packed_files = jsonl_files.map(lambda content: gzip.compress(content, mtime=0))
FILES = {
    "train.jsonl": st.binary(max_size=200) | mutated(jsonl_files),
    "train.csv": st.binary(max_size=200) | mutated(csv_files) | mutated(quoted_csv_files),
    "train.tsv": mutated(quoted_csv_files),
    "train.jsonl.gz": mutated(packed_files),
    "train.csv.gz": mutated(packed_files),
    "reut2-000.sgm": mutated(sgml_files),
}


@pytest.mark.parametrize("name", FILES)
@FUZZ
@given(st.data())
def test_any_bytes_give_documents_or_our_error(name, data):
    check(name, data.draw(FILES[name]), data.draw(st.sampled_from([20, 10_000_000])))


@FUZZ
@given(st.lists(st.tuples(words, words, st.lists(words.filter(bool)))))
def test_sound_rows_are_all_read(many):
    content = b"".join(
        json.dumps({"id": i, "text": t, "labels": ls}, ensure_ascii=False).encode() + b"\n"
        for i, t, ls in many
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        path.write_bytes(content)
        split = open_dataset(path).require("train")
        if not many:
            with pytest.raises(DataError, match="holds no documents"):
                list(split.read(BadRows()))
            return
        read = [(e.id, e.text, e.labels) for e in split.read(BadRows())]
    assert read == [(i, t, tuple(dict.fromkeys(ls))) for i, t, ls in many]
