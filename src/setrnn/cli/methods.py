"""`setrnn methods`: list the systems."""

from __future__ import annotations

from setrnn.cli.tables import show_table
from setrnn.cli.terminal import show
from setrnn.methods import METHODS


def methods() -> None:
    """List the systems: what each is for, what it maximises in training, how it predicts."""
    known = METHODS.values()
    titles = {"Which system is for what": False, "Systems of later papers": True}
    for title, is_later in titles.items():
        rows = [[each.name, each.purpose] for each in known if each.is_later == is_later]
        show_table(title, ["method", "for"], rows, words=["for"])
    show(
        "Without --method, setrnn train chooses: it trains several systems within its --budget and "
        "mixes them. To compare all of them: setrnn compare DATA --methods all,later --out DIR"
    )
    columns = ["method", "training objective", "prediction objective"]
    formulas = [[each.name, each.training, each.prediction] for each in known]
    show_table("What they maximise", columns, formulas, words=columns)
