"""Write files and folders atomically: completely, or not at all; one process at a time."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any, BinaryIO, TypeVar

from setrnn.errors import BusyError, DataError
from setrnn.progress import log

MAX_TRIES = 20
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # only writing causes them; others: reading too
_TEMPORARY = re.compile(r"\..+\.setrnn-(?P<host>[0-9a-f]{6})-(?P<pid>\d+)-[0-9a-f]{8}")
Array = TypeVar("Array")  # of NumPy or torch


@contextmanager
def explain_failed_write(
    place: Path | str, way_out: str = "", only: Collection[int] = ()
) -> Iterator[None]:
    """Turn the errors of writing, or those with `only` some numbers, into one line: a DataError."""
    try:
        yield
    except OSError as error:
        if only and error.errno not in only:
            raise
        reason = str(error.strerror or error).rstrip(".")
        raise DataError(f"{place} cannot be written: {reason}.{way_out}") from error


@contextmanager
def whole_folder(target: Path, way_out: str = "") -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` if the block succeeds.

    An existing folder is replaced by two renames; its permissions are kept. If the process is
    killed between the renames, the old folder lies beside `target` under a name that `recovered`
    finds, so a complete folder always exists.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "model"
        >>> with whole_folder(place) as folder:
        ...     _ = (folder / "labels.json").write_text("[]")
        >>> [file.name for file in place.iterdir()]
        ['labels.json']
    """
    target = target.resolve()  # replace what a link points to, not the link
    check_folder_place(target)
    with explain_failed_write(target, way_out):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary_folder(target, way_out=way_out) as temporary:
            with explain_failed_write(target, way_out, FULL):
                yield temporary
            with explain_failed_write(target, way_out):
                for file in temporary.rglob("*"):
                    if file.is_file():
                        with file.open("rb+") as stream:  # Windows does not flush a read-only one
                            os.fsync(stream.fileno())
                _keep_permissions(target, temporary)
                _exchange(temporary, target)
                _flush_folder(target.parent)
    except BaseException:
        recovered(target)
        raise


@contextmanager
def temporary_folder(target: Path, is_private: bool = False, way_out: str = "") -> Iterator[Path]:
    """Yield a folder beside `target` that is removed at the end, or after a kill by a later write.

    Others have the permissions that they have for `target`, if that exists, or none at all in a
    private folder.
    """
    folder = _beside(target)
    with explain_failed_write(target, way_out):
        remove_leftovers(target.parent)
        folder.mkdir(0o700 if is_private else 0o777)
    try:
        if target.exists() and not is_private:
            folder.chmod(stat.S_IMODE(target.stat().st_mode) | stat.S_IRWXU)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def private_folder() -> AbstractContextManager[Path]:
    """Yield a folder in the temporary folder of the machine, for texts that nobody else may see."""
    return temporary_folder(Path(gettempdir()) / "setrnn", is_private=True)


@contextmanager
def whole_file(target: Path, way_out: str = "") -> Iterator[BinaryIO]:
    """Yield a stream to a temporary file that becomes `target` if the block succeeds.

    The permissions of an existing file are kept.
    """
    check_file_place(target)
    target = target.resolve()  # replace what a link points to, not the link
    temporary = _beside(target)
    with explain_failed_write(target, way_out):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent)
        stream = temporary.open("xb")
    try:
        with explain_failed_write(target, way_out, FULL), stream:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        with explain_failed_write(target, way_out):
            temporary.replace(target)
            _flush_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def locked(target: Path, wait: bool = True, way_out: str = "") -> Iterator[None]:
    """Hold the lock of a file or folder, which need not exist; a kill releases it.

    If another process holds it, log that and wait; or raise BusyError, with the way out, if `wait`
    is False. The lock is a file beside `target`, which is removed at the end.
    """
    from filelock import FileLock, Timeout

    target = target.resolve()
    file = _hidden(target, "lock")
    lock = FileLock(file, timeout=0, thread_local=False)
    with explain_failed_write(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            with suppress(FileExistsError):  # where no file can be made, it seems to be held
                file.touch(exist_ok=False)
                file.unlink()
            busy = f"{target} is being written by {_name_holder(file)}."
            if not wait:
                raise BusyError(f"{busy}{way_out}") from None
            log.info(f"{busy} Waiting for it.")
            lock.acquire(timeout=-1)
    try:
        with suppress(OSError):  # Windows does not write to a locked file
            file.write_text(f"{os.getpid()}\n", encoding="ascii")
        yield
    finally:
        with suppress(OSError):  # nor does it remove one
            file.unlink()
        lock.release()


def was_left(target: Path) -> bool:
    """Return whether a process that held the lock of `target` was killed, or holds it still."""
    return _hidden(target.resolve(), "lock").exists() and os.access(target.parent, os.W_OK)


def _name_holder(lock: Path) -> str:
    """Name the process that holds a lock."""
    with suppress(OSError, ValueError):
        return f"process {int(lock.read_text(encoding='ascii'))}"
    return "another process"


def check_folder_place(target: Path) -> None:
    """Raise if `target` is a file, or a folder that may not be changed."""
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file. Remove it, or name another folder.")
    if target.exists() and not os.access(target, os.W_OK):  # what is in it could not be removed
        raise DataError(f"{target} is read-only. Make it writable, or name another folder.")


def check_file_place(target: Path) -> None:
    """Raise if `target` is a folder, a device or a pipe."""
    if target.is_dir():
        raise DataError(f"{target} is a folder. Name a file.")
    if target.exists() and not target.is_file():
        raise DataError(f"{target} is a device or a pipe, not a file. Name a file.")


def file_hash(file: Path) -> str:
    """Return a hash of the content of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def seal_file(file: Path) -> dict[str, Any]:
    """Return the size and the hash of a file, by which damage is found.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "labels.json"
        >>> _ = file.write_text("[]")
        >>> seal_file(file)
        {'bytes': 2, 'blake2b': '7ebb3c7c2a87b1a2f8a7ed729ecb040d'}
    """
    return {"bytes": file.stat().st_size, "blake2b": file_hash(file)}


def recovered(target: Path) -> Path:
    """Return `target`, restored first if a killed process left it under its temporary name."""
    previous = _hidden(target.resolve(), "previous")
    if previous.is_dir() and not target.exists():
        with suppress(FileNotFoundError):  # another reader restored it first
            previous.rename(target)
    return target


def is_temporary(name: str) -> bool:
    """Return whether a name is one of our temporary files and folders."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes of this machine were writing into a folder."""
    with os.scandir(folder) as entries:
        found = [(entry.name, _TEMPORARY.fullmatch(entry.name)) for entry in entries]
    for name, match in found:
        if match is None or match["host"] != _host() or _is_alive(int(match["pid"])):
            continue
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def remove_folder(target: Path) -> None:
    """Remove a folder at once: a kill leaves no half of it under its name.

    One that may not be removed, or that Windows keeps while a file in it is open, stays.
    """
    temporary = _beside(target)
    with suppress(OSError):
        target.rename(temporary)
        shutil.rmtree(temporary)


def _keep_permissions(target: Path, temporary: Path) -> None:
    """Give files the permissions they had in the old folder; new ones no more than the folder."""
    if not target.exists():
        return
    mode = stat.S_IMODE(target.stat().st_mode)
    for file in temporary.rglob("*"):
        old, its_mode = target / file.relative_to(temporary), file.stat().st_mode & mode
        file.chmod(stat.S_IMODE(old.stat().st_mode if old.exists() else its_mode))
    temporary.chmod(mode)


def _exchange(temporary: Path, target: Path) -> None:
    """Replace the old folder by the new one.

    A reader may restore the old folder (`recovered`) between the two renames: then try again.
    """
    previous = _hidden(target, "previous")
    for _ in range(MAX_TRIES):
        if target.exists():
            shutil.rmtree(previous, ignore_errors=True)
            with suppress(FileNotFoundError):  # another process moved it first
                target.rename(previous)
        try:
            temporary.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            break
    else:
        raise DataError(f"{target} is being written by another process. Try again.")
    shutil.rmtree(previous, ignore_errors=True)


def _flush_folder(folder: Path) -> None:
    """Write the names in a folder to disk; Windows cannot, and does not need to."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_alive(pid: int) -> bool:
    """Return whether a process of this machine runs; a zombie does not."""
    if os.name == "nt":  # asking would end it
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    with suppress(OSError):  # without /proc, as on macOS
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state != b"Z"
    return True


def _host() -> str:
    """Return a short name of the machine and the container whose processes we can see."""
    container = ""
    with suppress(OSError):
        container = str(Path("/proc/self/ns/pid").stat().st_ino)
    return hashlib.blake2b(f"{platform.node()} {container}".encode(), digest_size=3).hexdigest()


def _beside(target: Path) -> Path:
    """Return a new temporary name beside `target`."""
    return _hidden(target, f"setrnn-{_host()}-{os.getpid()}-{secrets.token_hex(4)}")


def _hidden(target: Path, ending: str) -> Path:
    return target.with_name(f".{target.name}.{ending}")


def select_prefix(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of a file whose names have a prefix, without it."""
    return {
        name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)
    }
