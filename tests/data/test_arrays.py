import numpy as np
import pytest

from setrnn.data.arrays import LEAST_SHARED, share_arrays


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    return {
        "large": random.normal(size=(LEAST_SHARED // 4, 2)).astype(np.float32),
        "other": np.arange(LEAST_SHARED, dtype=np.int64),
        "small": np.ones(3, dtype=np.float32),
        "empty": np.zeros((0, 4)),
    }


def test_shared_arrays_are_equal_and_aligned(arrays, tmp_path):
    for _ in range(2):  # the second time they are there
        shared = share_arrays(arrays, tmp_path / "weights" / "version")
        assert list(shared) == list(arrays)
        for name, array in arrays.items():
            assert shared[name].dtype == array.dtype
            np.testing.assert_array_equal(shared[name], array)
            assert shared[name].ctypes.data % 16 == 0  # products have other bits otherwise
    assert [each.name for each in (tmp_path / "weights").iterdir()] == ["version"]


def test_what_one_process_writes_into_shared_arrays_stays_its_own(arrays, tmp_path):
    first, second = (share_arrays(arrays, tmp_path / "version") for _ in range(2))
    first["large"][0] = 7
    assert second["large"][0, 0] == arrays["large"][0, 0]


def test_shared_arrays_outlive_their_files(arrays, tmp_path):
    shared = share_arrays(arrays, tmp_path / "version")
    for file in (tmp_path / "version").iterdir():
        file.unlink()
    np.testing.assert_array_equal(shared["large"], arrays["large"])
    assert share_arrays(arrays, tmp_path / "version")["large"] is arrays["large"]  # none to share


def test_arrays_are_kept_if_there_is_no_place_to_share_them(arrays, tmp_path):
    (tmp_path / "file").write_text("")
    shared = share_arrays(arrays, tmp_path / "file" / "version")
    assert shared["large"] is arrays["large"]
