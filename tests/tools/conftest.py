import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))


@pytest.fixture(scope="session")
def corpora():
    """The generated corpora of two seeds, of which 0 is the embedded one."""
    from newsroom import generate

    return {seed: generate(seed) for seed in (0, 7)}
