from dataclasses import replace

import pytest

from setrnn.models.card import summarise, write_readme
from small_taggers import with_thresholds


@pytest.fixture
def automatic(taggers):
    """A model as it is trained without a method, for label-F1."""
    notes = {
        "data": "news",
        "automatic": {
            "measure": "label_f1",
            "rule": "label-f1",
            "minutes": None,
            "seed": 0,
            "members": [{"name": "br", "method": "br"}],
            "left_out": {},
            "better": [],
        },
    }
    return replace(taggers["br"], rule="label-f1", notes=notes)


def test_the_rule_is_that_of_predict(automatic):
    for tagger in (automatic, with_thresholds(automatic)):
        rule = tagger.rule_or_own(None)
        assert any(f"predicts by rule {rule}" in line for line in summarise(tagger))
        assert f"predicts by rule {rule}" in write_readme(tagger)
    assert "not calibrated" in write_readme(automatic)
