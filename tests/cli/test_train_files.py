"""`setrnn train`: what it refuses, says and leaves behind."""

import pytest

from setrnn.errors import DataError
from setrnn.tagging.tagger import load
from small_taggers import SMALL_OVERRIDES


def test_ctrl_c_stops_in_one_line(setrnn, corpus, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("setrnn.systems.classical.logistic.fit_logistic", interrupt)
    result = setrnn("train", corpus, "--method", "br", "--out", tmp_path / "m")
    assert result.code == 130
    assert result.err.splitlines()[-1].startswith("Stopped setrnn train. No")
    assert "error" not in result.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("br", MemoryError("Unable to allocate 7 GiB")),
        ("br", DataError("No labels.")),
        ("sigmoid", RuntimeError("DefaultCPUAllocator: can't allocate memory")),
    ],
)
def test_a_failed_calibration_leaves_a_saved_model_and_a_warning(
    setrnn, larger, tmp_path, monkeypatch, method, error
):
    """The model is saved before it is calibrated: an hour of training must not be lost."""
    model = tmp_path / "model"

    def fail(*_, **__):
        assert load(model).method == method, "saved before"
        raise error

    monkeypatch.setattr("setrnn.tagging.trust.calibrate.fit_calibration", fail)
    small = [f"--set={each}" for each in (*SMALL_OVERRIDES, "training.epochs=1")]
    settings = small if method == "sigmoid" else []
    result = setrnn("train", larger, "--method", method, "--out", model, *settings)
    assert result.code == 0, result.err
    (line,) = [each for each in result.err.splitlines() if "not calibrated" in each]
    assert line.startswith("warning: ")
    assert ("No labels." if isinstance(error, DataError) else "not enough memory") in line
    assert load(model).calibration is None
    assert len(load(model).tag(["The cup final"])) == 1
