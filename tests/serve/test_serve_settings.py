from pathlib import Path

import pytest

from setrnn.errors import ConfigError
from setrnn.serve.settings import name_folders


def test_folders_are_named_by_themselves_or_otherwise(tmp_path, monkeypatch):
    (tmp_path / "a=b").mkdir()
    (tmp_path / "set-rnn-7" / "inner").mkdir(parents=True)
    (tmp_path / "current").symlink_to("set-rnn-7")  # a link is named by itself
    monkeypatch.chdir(tmp_path)
    assert name_folders(["models/one", "two=models/one", "a=b", ".", "current"]) == {
        "one": Path("models/one"),
        "two": Path("models/one"),
        "a=b": Path("a=b"),
        tmp_path.name: Path(),
        "current": Path("current"),
    }
    monkeypatch.chdir(tmp_path / "set-rnn-7" / "inner")
    assert list(name_folders([".."])) == ["set-rnn-7"]
    assert list(name_folders(["good=models/\udcff"])) == ["good"]


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        (["a/one", "b/one"], "Two models are named 'one'"),
        (["=folder"], "no valid name"),
        (["models/\udcff"], "no valid name"),  # not UTF-8
    ],
)
def test_names_that_cannot_be_used_are_refused(folders, said):
    with pytest.raises(ConfigError, match=said):
        name_folders(folders)
