from io import BytesIO

import numpy as np
import pytest

from setrnn.report.figures.reliability import (
    draw_reliability,
)
from setrnn.tagging.trust.acceptance import reliability

STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", STARTS)
def test_the_same_numbers_give_the_same_file(kind):
    rng = np.random.default_rng(0)
    probs = rng.random(300)
    before, after = (reliability(probs, rng.random(300) < each) for each in (probs**2, probs))
    files = []
    for _ in range(2):
        file = BytesIO()
        draw_reliability(before, after, file, kind)
        files.append(file.getvalue())
    assert files[0] == files[1]
    assert files[0].startswith(STARTS[kind])
