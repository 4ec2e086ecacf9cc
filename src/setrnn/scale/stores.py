"""Folders and input files, on a disk or in a store of objects such as S3.

A file is written whole or not at all: by renaming it on a disk, by one PUT in a store.
"""

from __future__ import annotations

import fnmatch
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from setrnn.data.folders import explain_failed_write, whole_file
from setrnn.data.formats.reader import file_errors
from setrnn.errors import ConfigError, DataError

SINGLE_PUT = "?allow_delayed_open=true"  # a small file is written by one PUT, not in parts


def is_address(place: str) -> bool:
    """Return whether a place is an address such as s3://bucket/folder, not a path."""
    return "://" in place


class Store(Protocol):
    """A folder of files that are written whole or not at all."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""

    def writing(self, name: str) -> AbstractContextManager[Path]:
        """Yield a path to write to: what is there at the end of the block becomes the file."""

    def names(self, folder: str = ".") -> list[str]:
        """Return the names of the files of a folder, sorted."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""


def open_store(place: str) -> Store:
    """Return the folder of a path or an address; it need not exist."""
    return _Objects(place) if is_address(place) else _Disk(Path(place))


class _Disk:
    """A folder on a disk, which several machines may share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        with whole_file(self._folder / name) as stream:
            stream.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        yield self._folder / name  # written by whole_file

    def names(self, folder: str = ".") -> list[str]:
        try:
            return sorted(each.name for each in (self._folder / folder).iterdir() if each.is_file())
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


class _Objects:
    """A folder in a store of objects."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._system, self._folder = _file_system(self._address)

    def read(self, name: str) -> bytes | None:
        try:
            with _reaching(self._address), self._system.open_input_file(self._path(name)) as stream:
                return cast(bytes, stream.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        with self._explained(name):
            self._make_folder(name)
            with self._system.open_output_stream(self._path(name)) as stream:
                stream.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="setrnn-") as folder:
            path = Path(folder) / Path(name).name
            yield path
            with self._explained(name), path.open("rb") as source:
                self._make_folder(name)
                with self._system.open_output_stream(self._path(name)) as stream:
                    shutil.copyfileobj(source, stream, 1 << 20)

    def names(self, folder: str = ".") -> list[str]:
        with _reaching(self._address):
            return sorted(Path(path).name for path in _list_files(self._system, self._path(folder)))

    def remove(self, name: str) -> None:
        try:
            self._system.delete_file(self._path(name))
        except FileNotFoundError:
            return

    def _path(self, name: str) -> str:
        return self._folder if name == "." else f"{self._folder}/{name}"

    def _make_folder(self, name: str) -> None:
        self._system.create_dir(self._path(name).rpartition("/")[0], recursive=True)

    def _explained(self, name: str) -> AbstractContextManager[None]:
        return explain_failed_write(f"{self._address}/{name}")


@contextmanager
def open_input(place: str) -> Iterator[BinaryIO]:
    """Open an input file at a path or an address; the stream can be moved."""
    if not is_address(place):
        with Path(place).open("rb") as stream:
            yield stream
        return
    system, path = _file_system(place)
    try:
        with _reaching(place):
            stream = system.open_input_file(path)
    except FileNotFoundError:
        raise DataError(f"{place} does not exist. Check the address.") from None
    with stream:
        yield cast(BinaryIO, stream)


@contextmanager
def local_copy(place: str) -> Iterator[Path]:
    """Yield the path of an input file; one at an address is copied to a temporary folder."""
    if not is_address(place):
        yield Path(place)
        return
    with tempfile.TemporaryDirectory(prefix="setrnn-") as folder, open_input(place) as source:
        path = Path(folder) / place.rpartition("/")[2]
        with path.open("wb") as stream:
            shutil.copyfileobj(source, stream, 1 << 20)
        yield path


def modified_at(place: str) -> int:
    """Return when a file was last written, in nanoseconds; 0 if that is not known."""
    if not is_address(place):
        with file_errors(Path(place)):
            return Path(place).stat().st_mtime_ns
    system, path = _file_system(place)
    with _reaching(place):
        return system.get_file_info(path).mtime_ns or 0


def find_inputs(address: str) -> list[str]:
    """Return the files that an address names: a file, all files of a folder, or a pattern."""
    scheme, _, path = address.partition("://")
    folder, _, pattern = path.rstrip("/").rpartition("/")
    if any(sign in folder for sign in "*?["):
        raise DataError(f"{address} has a wildcard in a folder. Use them in file names only.")
    with _reaching(address):
        if any(sign in pattern for sign in "*?["):
            system, place = _file_system(f"{scheme}://{folder}")
            found = [each for each in _list_files(system, place) if _fits(each, pattern)]
        else:
            system, place = _file_system(address.rstrip("/"))
            is_file = system.get_file_info(place).is_file
            found = [place] if is_file else _list_files(system, place)
    if not found:
        raise DataError(f"No file matches {address}. Check the pattern.")
    start = f"{scheme}:///" if path.startswith("/") else f"{scheme}://"
    return [start + each.lstrip("/") for each in sorted(found)]


def _fits(path: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(path.rpartition("/")[2], pattern)


@lru_cache(maxsize=16)
def _file_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, by pyarrow or else by fsspec, and the path in it."""
    import pyarrow as pa
    from pyarrow import fs

    scheme, _, path = address.partition("://")
    for uri in [address + SINGLE_PUT, address] if scheme == "s3" else [address]:
        try:
            return cast("tuple[Any, str]", fs.FileSystem.from_uri(uri))
        except OSError as error:  # nobody answers, or nobody may read there
            raise _unopened(address, error) from error
        except (pa.ArrowException, ValueError):
            pass  # pyarrow does not know the scheme, or is too old for the option
    try:
        import fsspec

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme))), path
    except (ImportError, OSError, ValueError) as error:
        raise _unopened(address, error) from error


@contextmanager
def _reaching(address: str) -> Iterator[None]:
    """Turn the errors of a store that does not answer into a ConfigError of one line."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unopened(address, error) from error


def _unopened(address: str, error: Exception) -> ConfigError:
    message = " ".join(str(error).split())[:200].rstrip(".")
    return ConfigError(f"{address} cannot be opened: {message}. Check the address.")


def _list_files(system: Any, folder: str) -> list[str]:  # noqa: ANN401 (pyarrow has no types)
    from pyarrow import fs

    selected = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return [each.path for each in selected if each.type == fs.FileType.File]
