from pathlib import Path

import pytest

from setrnn.errors import ConfigError
from setrnn.serve.listening import MAX_OPEN_FILES, raise_open_files
from setrnn.serve.settings import ServeSettings, name_folders


def test_folders_are_named_by_themselves_or_otherwise(tmp_path, monkeypatch):
    (tmp_path / "a=b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert name_folders(["models/one", "two=models/one", "a=b", "."]) == {
        "one": Path("models/one"),
        "two": Path("models/one"),
        "a=b": Path("a=b"),
        tmp_path.name: Path(),
    }


def test_two_models_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="Two models are named 'one'"):
        name_folders(["a/one", "b/one"])
    with pytest.raises(ConfigError, match="no valid name"):
        name_folders(["=folder"])
    with pytest.raises(ConfigError, match="no valid name"):
        name_folders(["models/\udcff"])  # a file name that is no UTF-8
    assert list(name_folders(["good=models/\udcff"])) == ["good"]


def test_a_link_is_named_by_itself(tmp_path, monkeypatch):
    (tmp_path / "set-rnn-7").mkdir()
    (tmp_path / "current").symlink_to("set-rnn-7")
    monkeypatch.chdir(tmp_path)
    assert list(name_folders(["current", "set-rnn-7"])) == ["current", "set-rnn-7"]
    (tmp_path / "set-rnn-7" / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "set-rnn-7" / "inner")
    assert list(name_folders([".."])) == ["set-rnn-7"]


@pytest.mark.parametrize("name", ["max_texts", "queue", "workers", "max_connections"])
def test_a_service_that_could_answer_nobody_is_refused(name):
    option = "--" + name.replace("_", "-")
    with pytest.raises(ConfigError, match=f"{option} must be at least 1"):
        ServeSettings(**{name: 0})


def test_the_limit_of_open_files_is_raised():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = MAX_OPEN_FILES if before[1] == resource.RLIM_INFINITY else before[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
        assert raise_open_files() == min(hard, MAX_OPEN_FILES)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, MAX_OPEN_FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_processes_share_the_limits():
    """Together they allow no more than one process would."""
    whole = ServeSettings(queue=10, max_connections=7)
    for n_processes in (1, 2, 3, 7):
        each = whole.shared_by(n_processes)
        assert n_processes * each.queue <= 10
        assert n_processes * each.max_connections <= 7
    assert whole.shared_by(100).queue == 1
    assert whole.with_workers(3).workers == 3
    assert ServeSettings(workers=2).with_workers(3).workers == 2
