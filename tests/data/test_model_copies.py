"""Zip files of models: equal bytes for equal models, and nothing else is unpacked."""

import stat
import zipfile

import pytest

from setrnn.data.model_copies import unpack_zip, write_zip
from setrnn.data.model_places import fix_place, is_zip, name_place, open_place, require_folder
from setrnn.errors import ConfigError, ModelError

FILES = {
    "config.json": b'{"setrnn": "1"}',
    "labels.json": b"[]",
    "model.safetensors": b"\0" * 5000,
    "tokenizer.json": b"{}",
    "tokenizer-1.json": b"{}",
    "README.md": b"# A model\n",
}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    place.mkdir()
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    return place


def make_zip(file, entries=(), files=FILES, kind=zipfile.ZIP_STORED):
    """Write a zip file of (name or ZipInfo, content) pairs besides the files of a model."""
    with zipfile.ZipFile(file, "w", kind) as packed:
        for name, content in [*files.items(), *entries]:
            packed.writestr(name, content)
    return file


def unpack(file, tmp_path):
    target = tmp_path / "unpacked"
    target.mkdir()
    unpack_zip(file, target)
    return {each.name: each.read_bytes() for each in target.iterdir()}


def test_a_zip_file_holds_the_files_of_a_model_and_nothing_else(folder, tmp_path):
    (folder / "notes.pkl").write_bytes(b"private")
    write_zip(folder, tmp_path / "model.zip")
    assert unpack(tmp_path / "model.zip", tmp_path) == FILES


def test_equal_models_give_equal_bytes(folder, tmp_path):
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    write_zip(folder, first)
    (folder / "labels.json").touch()  # another time
    (folder / "labels.json").chmod(0o600)
    write_zip(folder, second)
    assert first.read_bytes() == second.read_bytes()


def test_a_file_that_people_packed_is_read_too(tmp_path):
    file = make_zip(tmp_path / "model.zip", kind=zipfile.ZIP_DEFLATED)
    assert unpack(file, tmp_path) == FILES


def link(name):
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    "name",
    [
        "../labels.json",
        "/etc/passwd",
        "C:\\labels.json",
        "model/config.json",
        "model.pkl",
        "pytorch_model.bin",
        "calibration.json/",
        "tokenizer-01.json",
        "LABELS.JSON",
        link("calibration.json"),
    ],
    ids=str,
)
def test_anything_but_the_files_of_a_model_is_refused(name, tmp_path):
    file = make_zip(tmp_path / "model.zip", [(name, b"/etc/passwd")])
    with pytest.raises(ModelError, match="not a file of a model"):
        unpack(file, tmp_path)
    assert not list((tmp_path / "unpacked").iterdir())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_twice_is_refused(tmp_path):
    file = make_zip(tmp_path / "model.zip", [("labels.json", b"[1]")])
    with pytest.raises(ModelError, match="twice"):
        unpack(file, tmp_path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    bomb = {"config.json": b"{}", "model.safetensors": b"\0" * (8 << 20)}
    file = make_zip(tmp_path / "model.zip", files=bomb, kind=zipfile.ZIP_DEFLATED)
    assert file.stat().st_size < 20_000
    with pytest.raises(ModelError, match="8,388,610 bytes"):
        unpack(file, tmp_path)
    assert not list((tmp_path / "unpacked").iterdir())


def test_other_compressions_and_encrypted_files_are_refused(tmp_path):
    file = make_zip(tmp_path / "model.zip", kind=zipfile.ZIP_BZIP2)
    with pytest.raises(ModelError, match="compressed"):
        unpack(file, tmp_path)
    content = bytearray(make_zip(file).read_bytes())
    content[content.index(b"PK\1\2") + 8] |= 1  # the flag of the first entry
    file.write_bytes(content)
    with pytest.raises(ModelError, match="encrypted"):
        unpack_zip(file, tmp_path)


def test_a_damaged_file_is_refused_in_one_line(folder, tmp_path):
    file = tmp_path / "model.zip"
    write_zip(folder, file)
    whole = file.read_bytes()
    changed = whole.replace(b"[]", b"[1", 1)
    for n, content in enumerate([b"", b"text", whole[:3000], whole[3000:], changed]):
        file.write_bytes(content)
        (tmp_path / str(n)).mkdir()
        with pytest.raises(ModelError, match="damaged"):
            unpack_zip(file, tmp_path / str(n))


def test_an_unpacked_file_that_has_no_config_is_not_a_model(tmp_path):
    file = make_zip(tmp_path / "model.zip", files={"labels.json": b"[]"})
    with pytest.raises(ModelError, match=r"no config\.json"):
        unpack(file, tmp_path)


def test_another_zip_file_is_not_overwritten(folder, tmp_path):
    file = tmp_path / "model.zip"
    for content in (b"text", make_zip(tmp_path / "a.zip", files={"a.txt": b""}).read_bytes()):
        file.write_bytes(content)
        with pytest.raises(ModelError, match="not a model"):
            write_zip(folder, file)
        assert file.read_bytes() == content
    make_zip(file)
    write_zip(folder, file)  # a model is replaced


def test_a_folder_may_have_the_name_of_a_zip_file(folder, tmp_path):
    place = folder.rename(tmp_path / "model.zip")
    assert not is_zip(place)
    with open_place(place) as opened:
        assert opened == place


def test_errors_name_the_zip_file_and_nothing_is_left(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    write_zip(folder, tmp_path / "model.zip")
    with (
        pytest.raises(ModelError, match=r"model\.zip/labels\.json is damaged"),
        open_place(tmp_path / "model.zip") as opened,
    ):
        raise ModelError(f"{opened / 'labels.json'} is damaged.")
    assert not list((tmp_path / "temporary").iterdir())


def test_names_and_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert name_place("..") == tmp_path.parent.name
    assert fix_place("a/model.zip") == str(tmp_path / "a/model.zip")
    with pytest.raises(ConfigError, match="setrnn push hub:me/news@v1 news"):
        require_folder("hub:me/news@v1", "calibrate")
