"""What a notebook shows of predictions."""

from dataclasses import replace
from html.parser import HTMLParser

from setrnn.systems.candidates import ScoredSet
from setrnn.tagging.prediction import Prediction, Predictions

EVIL = "<script>alert(1)</script> & \x1b[31m'\""


class Strict(HTMLParser):
    """Collects texts and tags; every tag must be closed in its order."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def test_a_prediction_shows_its_labels_and_the_other_sets():
    found = Prediction(
        ("sport", EVIL),
        0.6251,
        (ScoredSet((), 0.25), ScoredSet((EVIL,), 0.1)),
        accepted=True,
        label_probabilities={"sport": 0.98, EVIL: 0.51},
        accepted_labels=("sport",),
        notes=(f"2 unknown words: {EVIL}",),
    )
    page = Strict(found._repr_html_())
    for words in (
        "sport",
        "0.625",
        "0.98",
        "accepted",
        "no labels",
        "0.100",
        "alert(1)",
        "2 unknown",
    ):
        assert words in page.text
    assert "script" not in page.tags
    assert "\x1b" not in page.text
    assert "reviewed" in Strict(replace(found, accepted=False)._repr_html_()).text
    assert "no labels" in Strict(Prediction((), 0.5)._repr_html_()).text


def test_many_predictions_are_one_table_with_the_first_rows():
    found = Predictions([Prediction((EVIL,), 0.5)] * 30)
    page = Strict(found._repr_html_())
    assert "and 10 more" in page.text
    assert "accepted" not in page.text
    assert "script" not in page.tags
    accepted = Predictions([Prediction(("a",), 0.5, accepted=True)])
    assert "yes" in Strict(accepted._repr_html_()).text
    Strict(Predictions()._repr_html_())
