"""The table of variants says what each is worth beside the default, from records alone."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from made_comparison import made_comparison, made_record

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "ablations.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
ablations = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(ablations)


def test_a_worse_variant_is_shown_to_be_worse(tmp_path, capsys):
    comparison, _ = made_comparison(methods=("br", "set-rnn"), n_seeds=1)
    random = np.random.default_rng(1)
    errors = {"default": 0.1, "repeats": 0.1, "no-evidence": 0.3}
    for variant, share in errors.items():
        comparison.save(tmp_path / "made" / variant)
        for seed in range(2):
            record = made_record(comparison, "set-rnn", seed, share, random)
            record.save(tmp_path / "made" / variant)
    ablations.main(["table", str(tmp_path / "made")])
    rows = {row["variant"]: row for row in ablations.compare_variants(tmp_path / "made")}
    assert rows.keys() == errors.keys()
    assert rows["no-evidence"]["instance_f1"]["high"] < 0
    assert rows["no-evidence"]["instance_f1"]["p"] < 0.05 < rows["repeats"]["instance_f1"]["p"]
    assert "no-evidence | -0." in capsys.readouterr().out
