"""`setrnn methods`: list the systems."""

from __future__ import annotations

from rich import box
from rich.table import Table

from setrnn.cli.terminal import show, stdout
from setrnn.methods import METHODS


def methods() -> None:
    """List the systems: what each is for, what it maximises in training, how it predicts."""
    for title, is_later, advice in (
        (
            "Which system is for what",
            False,
            "Without --method, setrnn train chooses: it trains several of these within its "
            "--budget and mixes them.",
        ),
        (
            "Systems of later papers",
            True,
            "To compare them: setrnn compare DATA --methods all,later --out DIR",
        ),
    ):
        purposes = Table("method", "for", title=title, title_justify="left", box=box.SIMPLE_HEAD)
        for method in METHODS.values():
            if method.is_later == is_later:
                purposes.add_row(method.name, method.purpose)
        stdout.print(purposes)
        show(f"{advice}\n")
    formulas = Table(
        *("method", "training objective", "prediction objective"),
        title="What they maximise",
        title_justify="left",
        show_lines=True,
    )
    for method in METHODS.values():
        formulas.add_row(method.name, method.training, method.prediction)
    stdout.print(formulas)
