"""The speed of a network."""

import time

from setrnn.training.speed import TIMED_DOCUMENTS, time_prediction


class SlowAtFirst:
    """A system whose first prediction loads something."""

    def __init__(self):
        self.sizes = []

    def candidates(self, tokens, n_sets):
        if not self.sizes:
            time.sleep(0.1)
        self.sizes.append(len(tokens))

    def marginals(self, tokens, candidates):
        return None


def test_what_only_the_first_prediction_needs_is_not_counted(tiny):
    system = SlowAtFirst()
    seconds = time_prediction(system, tiny)
    assert system.sizes[-1] == min(TIMED_DOCUMENTS, len(tiny.split("valid")))
    assert 0 < seconds * system.sizes[-1] < 0.1
