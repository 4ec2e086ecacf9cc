import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from setrnn.data.disk import locked, recovered, remove_leftovers, whole_file, whole_folder
from setrnn.errors import BusyError, DataError


class Interrupted(BaseException):
    """As a Ctrl-C: no `except Exception` stops it."""


def write(target, content):
    """Write a folder of two files and a subfolder."""
    with whole_folder(target) as folder:
        (folder / "a.txt").write_text(content)
        (folder / "part").mkdir()
        (folder / "part" / "b.txt").write_text(content)


def content_of(target):
    """The content of a whole folder; fails on a mixture."""
    folder = recovered(target)
    contents = {file.read_text() for file in folder.rglob("*.txt")}
    assert len(list(folder.rglob("*.txt"))) == 2
    assert len(contents) == 1
    return contents.pop()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def target(tmp_path):
    return tmp_path / "model"


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    file = tmp_path / "scores.json"
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(file.exists()))
    with whole_file(file) as stream:
        stream.write(b"{}")
    assert flushed == [False, True], "first the content, then the name"
    assert file.read_bytes() == b"{}"


def test_a_relative_name_works_and_missing_parents_are_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for content in ("old", "new"):
        write(Path("a/model"), content)
        assert content_of(Path("a/model")) == content
    assert names_in(tmp_path / "a") == ["model"]
    assert mode_of(tmp_path / "a" / "model") == 0o755, "others may read it"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Interrupted])
@pytest.mark.parametrize("is_old_there", [True, False])
def test_a_block_that_fails_leaves_what_was_there(target, error, is_old_there):
    if is_old_there:
        write(target, "old")

    def write_half():
        with whole_folder(target) as folder:
            (folder / "a.txt").write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert names_in(target.parent) == (["model"] if is_old_there else [])
    if is_old_there:
        assert content_of(target) == "old"


# Every call that can fail on the way, and how it is reached.
FAULTS = {
    "mkdir": (Path, "mkdir"),
    "fsync": (os, "fsync"),
    "open": (Path, "open"),
    "exists": (Path, "exists"),
    "rename": (Path, "rename"),
    "rmtree": (shutil, "rmtree"),
}


def fail_at(monkeypatch, fault, n, error, is_lasting):
    """Make the n-th call fail, and those after it too if the trouble lasts."""
    place, name = FAULTS[fault]
    true_call = getattr(place, name)
    calls = iter(range(1, 10_000))

    def call(*args, **kwargs):
        number = next(calls)
        if number == n or (is_lasting and number > n):
            raise error
        return true_call(*args, **kwargs)

    monkeypatch.setattr(place, name, call)
    return calls


@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Interrupted()], ids=repr)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_call_leaves_the_old_or_the_new(
    target, monkeypatch, fault, error, is_lasting
):
    write(target, "old")
    n = 0
    n_faults = 0
    while n == n_faults:
        n += 1
        with monkeypatch.context() as patch:
            fail_at(patch, fault, n, error, is_lasting)
            try:
                write(target, "new")
            except (OSError, DataError, Interrupted):
                n_faults += 1
        assert content_of(target) in ("old", "new")
        if not is_lasting:
            assert len(names_in(target.parent)) <= 2, "at most one folder is left aside"
        write(target, "old")
        assert content_of(target) == "old"
    assert n_faults >= 1, "the fault was never reached"


def test_a_file_in_the_way_is_named_and_stays(target):
    target.write_text("precious")
    for place in (target, target / "model"):
        with pytest.raises(DataError, match="model"):
            write(place, "new")
    assert target.read_text() == "precious"


def test_a_reader_between_the_renames_does_not_make_the_write_fail(target, monkeypatch):
    """Who loads a model while it is replaced gets the old one; the new one still arrives."""
    write(target, "old")
    true_rename = Path.rename
    seen = []

    def rename(path, to):
        result = true_rename(path, to)
        if path == target and not seen:
            seen.append(None)
            seen[0] = content_of(target)
        return result

    monkeypatch.setattr(Path, "rename", rename)
    write(target, "new")
    monkeypatch.undo()
    assert seen in ([], ["old"])
    assert content_of(target) == "new"
    assert names_in(target.parent) == ["model"]


def test_a_link_to_a_folder_can_be_written_through_again_and_again(tmp_path):
    write(tmp_path / "real", "old")
    link = tmp_path / "model"
    link.symlink_to(tmp_path / "real", target_is_directory=True)
    for content in ("new", "newer", "newest"):
        write(link, content)
        assert content_of(link) == content
        assert not [name for name in names_in(tmp_path) if name.startswith(".")]


def mode_of(path):
    return path.stat().st_mode & 0o777


def test_a_private_folder_stays_private(target):
    write(target, "old")
    target.chmod(0o700)
    (target / "a.txt").chmod(0o600)
    with whole_folder(target) as folder:
        assert mode_of(folder) == 0o700, "private from the start"
        (folder / "a.txt").write_text("new")
        (folder / "more.txt").write_text("new")
    assert [mode_of(path) for path in (target, target / "a.txt", target / "more.txt")] == [
        0o700,
        0o600,
        0o600,
    ]


def test_a_private_file_stays_private(tmp_path):
    file = tmp_path / "predictions.jsonl"
    file.write_text("old")
    file.chmod(0o600)
    with whole_file(file) as stream:
        (temporary,) = set(tmp_path.iterdir()) - {file}
        assert mode_of(temporary) == 0o600, "private from the start"
        stream.write(b"new")
    assert (mode_of(file), file.read_text()) == (0o600, "new")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_names_the_file_and_the_way_out(tmp_path, code):
    file, folder = tmp_path / "scores.json", tmp_path / "model"
    full = OSError(code, os.strerror(code))
    with pytest.raises(DataError, match=r"scores\.json.* Free"), whole_file(file, " Free some."):
        raise full
    with pytest.raises(DataError, match=r"model.* Free"), whole_folder(folder, " Free some."):
        raise full
    assert names_in(tmp_path) == []


WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from setrnn.data.disk import private_folder, whole_file, whole_folder
place = Path(sys.argv[1])
with private_folder(), whole_file(place / "scores.json"), whole_folder(place / "model"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("is_zombie", [False, True])
def test_a_later_write_removes_what_a_killed_process_left(is_zombie, tmp_path, monkeypatch):
    """Also before its parent asks for its end, which some parents never do."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", WRITE_AND_DIE, str(tmp_path)]) as killed:
        if is_zombie:
            os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
        else:
            assert killed.wait() == -signal.SIGKILL
        assert len(names_in(tmp_path)) == 3
        with whole_file(tmp_path / "other.json"):
            pass
        assert names_in(tmp_path) == ["other.json"]


def test_what_a_running_process_writes_and_what_is_not_ours_stays(tmp_path):
    others = [".model.0123abcd", ".scores.json.swp", "setrnn-0123ab-1-01234567"]
    others.append(".model.setrnn-000000-999999999-01234567")  # of a process of another machine
    for name in others:
        (tmp_path / name).write_text("")
    with whole_file(tmp_path / "scores.json") as stream, whole_folder(tmp_path / "model"):
        remove_leftovers(tmp_path)
        stream.write(b"{}")
    assert names_in(tmp_path) == sorted([*others, "model", "scores.json"])


HOLD = """
import sys
from pathlib import Path
from setrnn.data.disk import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(target):
    """A process that holds the lock of the target."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()


def test_a_lock_that_is_held_is_refused_with_the_process(target, holder):
    with pytest.raises(BusyError, match=f"model.*process {holder.pid}"), locked(target, wait=False):
        pass


def test_a_lock_is_waited_for(target, holder):
    timer = threading.Timer(0.2, holder.stdin.close)
    timer.start()
    with locked(target):
        assert holder.wait(10) == 0
    timer.join()
    assert names_in(target.parent) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize("wait", [True, False])
def test_where_no_lock_can_be_made_nobody_is_said_to_hold_it(wait):
    place, said = Path("/proc/model"), "/proc/model cannot be written"
    with pytest.raises(DataError, match=said), locked(place, wait=wait):
        pass


def test_the_lock_of_a_killed_process_is_free(target, holder):
    holder.kill()
    holder.wait()
    with locked(target, wait=False):
        (lock,) = target.parent.iterdir()
        assert re.fullmatch(r"\d+\n", lock.read_text())
    assert names_in(target.parent) == [], "no lock file stays"


def test_a_read_only_folder_is_neither_replaced_nor_moved(target, monkeypatch):
    """The parent may be writable: the folder could be moved, but not removed then."""
    write(target, "old")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != target)
    with pytest.raises(DataError, match="model is read-only"):
        write(target, "new")
    assert content_of(target) == "old"
    assert names_in(target.parent) == ["model"]
