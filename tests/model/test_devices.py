"""The threads of torch: how many, how they wait, and that the user's setting is left as it was."""

import threading

import pytest
import torch

from setrnn.model.devices import (
    WAITING_VARIABLES,
    limited_threads,
    n_cores,
    patient_threads,
    threads_of_jobs,
)

SLEEPER = "setrnn-sleeper"


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    """Three threads for torch, and no variable that says how they wait."""
    for name in (*WAITING_VARIABLES, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def has_sleeper():
    return any(each.name == SLEEPER for each in threading.enumerate())


def test_patient_threads_end_after_a_failure():
    with pytest.raises(ValueError, match="inside"), patient_threads():
        raise ValueError("inside")
    assert not has_sleeper()
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("name", WAITING_VARIABLES)
def test_how_threads_wait_is_the_users_choice(name, monkeypatch):
    monkeypatch.setenv(name, "0")
    with patient_threads():
        assert not has_sleeper()


def test_patient_threads_change_no_bit():
    random = torch.Generator().manual_seed(0)
    numbers = torch.randn(300, 2_000, generator=random)

    def compute():
        return (numbers @ numbers.T).sum(), numbers.exp().sum(0)

    plain = compute()
    with patient_threads():
        patient = compute()
    assert all(torch.equal(one, other) for one, other in zip(plain, patient, strict=True))


def test_a_limit_on_threads_ends_with_the_block():
    with limited_threads(2):
        assert torch.get_num_threads() == 2
        with limited_threads(1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 3


def test_jobs_share_the_cores_unless_the_user_sets_the_threads(monkeypatch):
    assert threads_of_jobs(1) == n_cores()
    assert threads_of_jobs(10 * n_cores()) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads_of_jobs(10 * n_cores()) == 3


@pytest.mark.parametrize(("limit", "n"), [("50000 100000", 1), ("150000 100000", 2)])
def test_the_limit_of_a_container_limits_the_cores(monkeypatch, tmp_path, limit, n):
    (tmp_path / "cpu.max").write_text(f"{limit}\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(64), raising=False)
    monkeypatch.setattr("setrnn.model.devices.CONTAINER_LIMIT", tmp_path / "cpu.max")
    assert n_cores() == n


@pytest.mark.parametrize("content", ["max 100000\n", "", None])
def test_without_a_limit_all_cores_count(monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / "cpu.max").write_text(content)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(64), raising=False)
    monkeypatch.setattr("setrnn.model.devices.CONTAINER_LIMIT", tmp_path / "cpu.max")
    assert n_cores() == 64
