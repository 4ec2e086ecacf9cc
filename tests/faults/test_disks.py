"""A full disk, a limit on the size of files, a read-only folder: refused, and nothing lost."""

import ctypes
import os
import resource
import subprocess
from functools import partial

import pytest
from children import run
from commands import each_command
from worlds import differences, snapshot

PAGE = 4096
FREE_PAGES = (0, 1, 2, 4, 8, 16, 32, 64)  # left on the disk
FILE_BYTES = (0, 100, 2_000, 20_000)  # the most bytes of a file
CAN_OVERRIDE_MODES = 1 << 1 | 1 << 2  # capabilities of root: to write, and to read or search


@pytest.fixture
def disk(tmp_path):
    """A file system of its own, in memory, and a function to change its size."""
    place = tmp_path / "disk"
    place.mkdir()

    def resize(n_bytes):
        how = f"remount,size={n_bytes}" if place.is_mount() else f"size={n_bytes}"
        command = ["mount", "-t", "tmpfs", "-o", how, "faults", str(place)]
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        if mounted.returncode:
            pytest.skip(f"a file system can only be mounted by root: {mounted.stderr}")

    resize(1 << 30)
    yield place, resize
    subprocess.run(["umount", "-l", str(place)], check=True)


@each_command("Tagger.save", "predict")
def test_a_full_disk_is_refused_and_loses_nothing(reference, tries, is_short, disk):
    place, resize = disk
    with tries("full disk", reference.command.name) as found:
        for n_free in FREE_PAGES[:2] if is_short else FREE_PAGES:
            world = reference.new_world("world", place)
            used = os.statvfs(place)
            resize((used.f_blocks - used.f_bfree + n_free) * PAGE)
            ended = run(world, reference.command.work)
            problems = problems_of_refusal(reference, world, ended, "No space left")
            resize(1 << 30)
            if problems or not ended.is_done:  # otherwise there was space enough
                found.add(problems + reference.problems_again(world), f"{n_free} pages free")


@each_command()
def test_a_limit_on_file_sizes_is_refused_and_loses_nothing(reference, tries, few):
    with tries("file-size limit", reference.command.name) as found:
        for n_bytes in few(FILE_BYTES):
            world = reference.new_world("world")
            limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
            ended = run(world, reference.command.work, before=[limit])
            problems = problems_of_refusal(reference, world, ended, "File too large")
            if problems or not ended.is_done:  # otherwise no file was so large
                found.add(problems + reference.problems_again(world), f"{n_bytes} bytes")


@each_command()
def test_a_read_only_folder_is_refused_and_loses_nothing(reference, tries):
    def snapshot_kept(world):
        return {path: each for path, each in snapshot(world).items() if "cache" not in path}

    with tries("read-only folder", reference.command.name) as found:
        for name in ("out", "everything"):
            world = reference.new_world("world")
            (world / "out").mkdir(exist_ok=True)
            folders = sorted(each for each in (world, *world.rglob("*")) if each.is_dir())
            chosen = [world / "out"] if name == "out" else folders[::-1]
            before = snapshot_kept(world)
            set_modes(chosen, 0o500)
            ended = run(world, reference.command.work, before=[obey_modes])
            set_modes(chosen, 0o700)
            problems = problems_of_refusal(reference, world, ended, "ermission", "not writable")
            if not ended.is_done:
                problems += differences(snapshot_kept(world), before)
            found.add(problems + reference.problems_again(world), name)


def problems_of_refusal(reference, world, ended, *reasons):
    """The command ends as if nothing had happened, or is refused with the reason and a place."""
    problems = reference.problems_now(world)
    if ended.is_done:
        return problems + differences(snapshot(world), reference.files)
    if not ended.is_refused:
        return [*problems, f"not refused: {ended}"]
    if not any(reason in ended.output for reason in reasons):
        return [*problems, f"no reason given: {ended}"]
    if "/" not in ended.last_line:
        problems.append(f"no place named: {ended}")
    return problems


def set_modes(folders, mode):
    for folder in folders:
        folder.chmod(mode)


def obey_modes():
    """Give up root's right to ignore the modes of files; other users do not have it."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    rights = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    libc.capget(header, rights)
    rights[0] &= ~CAN_OVERRIDE_MODES
    assert libc.capset(header, rights) == 0, os.strerror(ctypes.get_errno())
