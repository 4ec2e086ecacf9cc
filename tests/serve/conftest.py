from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.server import make_app
from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.acceptance import Acceptance
from small_taggers import with_thresholds


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def served(taggers):
    """Two models: the first recurrent, with an acceptance; the second not."""
    recurrent = with_thresholds(taggers["set-rnn"])
    accepts = {"set": Acceptance("set", 0.9, 0.9, 0.4, 0.5, 0.95, 50)}
    calibration = replace(recurrent.calibration, acceptance=accepts)
    assert isinstance(calibration, Calibration)
    return (
        ServedModel("recurrent", "version-one", replace(recurrent, calibration=calibration)),
        ServedModel("classical", "version-two", taggers["br"]),
    )


@pytest.fixture(scope="session")
def client(served):
    """A client of an application in this process."""
    with TestClient(make_app(Registry.of(*served))) as client:
        yield client
