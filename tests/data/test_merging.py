"""Old and new documents become one dataset."""

import pytest

from setrnn.data.example import Example, hash_texts, join_hashes
from setrnn.data.merging import MIN_NEW, merge
from setrnn.data.read import write_examples
from setrnn.data.source import Source
from setrnn.errors import DataError

OLD = [Example(f"o{n}", f"old text {n}", ("a",)) for n in range(40)]


def write(folder, name, examples):
    write_examples(examples, folder / name)
    return Source(str(folder / name))


def read(merged, kind, part):
    return getattr(merged, kind)[part]


def all_of(merged, kind):
    return [each for part in getattr(merged, kind) for each in read(merged, kind, part)]


def test_a_new_document_replaces_an_old_one_with_its_id_or_its_text(tmp_path):
    new = [
        Example("o3", "old text 3", ("b",)),
        Example("o4", "changed", ("b",)),
        Example("other", "Old  TEXT 5", ("b",)),
    ]
    merged = merge(write(tmp_path, "new.jsonl", new), write(tmp_path, "old.jsonl", OLD))
    kept = {each.id for each in all_of(merged, "old")}
    assert kept == {each.id for each in OLD} - {"o3", "o4", "o5"}
    assert (merged.n_replaced, merged.n_other_texts) == (3, 1)
    assert sum(merged.n_old.values()) == len(OLD) - 3
    assert read(merged, "new", "train") == new  # so few that none are set aside


def test_documents_that_nobody_reviewed_are_left_out(tmp_path):
    file = tmp_path / "export.csv"
    file.write_text("id,text,labels,reviewed\n1,one,a,true\n2,two,a,false\n3,three,a,\n")
    merged = merge(Source(str(file)))
    assert [each.id for each in read(merged, "new", "train")] == ["1", "3"]
    (note,) = merged.bad_rows.notes
    assert "1 of the new documents" in note


def test_ids_that_a_reader_made_up_do_not_count(tmp_path):
    for folder, text in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        rows = "".join(f"{text} {n},x\n" for n in range(30))
        (tmp_path / folder / "train.csv").write_text("text,labels\n" + rows)
    places = [Source(str(tmp_path / name / "train.csv")) for name in "ba"]
    merged = merge(*places)
    assert merged.n_replaced == 0
    assert len(all_of(merged, "old")) == 30


def test_what_the_model_has_not_seen_is_the_valid_part(tmp_path):
    unseen = {f"o{n}" for n in range(MIN_NEW)}

    def hashes_of(examples):
        return join_hashes([hash_texts(each.text for each in examples)])

    old = write(tmp_path, "old.jsonl", OLD)
    new = write(tmp_path, "new.jsonl", [Example("o0", "changed", ("b",))])
    merged = merge(new, old, hashes_of([each for each in OLD if each.id not in unseen]))
    assert {each.id for each in read(merged, "old", "valid")} == unseen - {"o0"}
    assert merged.share_seen == 0.5
    # A model that has seen all documents, or none, does not decide.
    for seen in (OLD, [Example("x", "another text")]):
        merged = merge(new, old, hashes_of(seen))
        assert 0 < merged.n_old["valid"] < len(OLD) / 2


def test_new_documents_are_set_aside_if_there_are_enough(tmp_path):
    new = [Example(f"n{n}", f"new text {n}", ("b",)) for n in range(MIN_NEW)]
    merged = merge(write(tmp_path, "new.jsonl", new))
    assert merged.n_new["valid"] > 0
    assert sorted(each.id for each in all_of(merged, "new")) == sorted(each.id for each in new)
    assert set(merged.streams()) == {"train", "valid"}
    merged = merge(write(tmp_path, "few.jsonl", new[1:]))
    assert set(merged.streams()) == {"train"}


def test_own_valid_parts_are_kept(tmp_path):
    for kind in ("old", "new"):
        (tmp_path / kind).mkdir()
        for part in ("train", "valid"):
            examples = [Example(f"{kind}-{part}-{n}x", f"{kind} {part} {n}") for n in range(25)]
            write_examples(examples, tmp_path / kind / f"{part}.jsonl")
    merged = merge(Source(str(tmp_path / "new")), Source(str(tmp_path / "old")))
    for part in ("train", "valid"):
        ids = [each.id for each in merged.streams()[part]()]
        assert ids == [f"{kind}-{part}-{n}x" for kind in ("old", "new") for n in range(25)]


def test_a_prepared_folder_is_refused(small_prepared, tmp_path):
    new = write(tmp_path, "new.jsonl", OLD)
    with pytest.raises(DataError, match="prepared"):
        merge(new, Source(str(small_prepared.folder)))
