"""`setrnn methods`: list the systems."""

from __future__ import annotations

from rich import box
from rich.table import Table

from setrnn.cli.console import stdout
from setrnn.methods import METHODS

ADVICE = (
    "Without --method, setrnn train chooses: it trains several of these within its --budget and "
    "mixes them."
)


def methods() -> None:
    """List the systems: what each is for, what it maximises in training, how it predicts."""
    purposes = Table(title="Which system is for what", title_justify="left", box=box.SIMPLE_HEAD)
    formulas = Table(title="What they maximise", title_justify="left", show_lines=True)
    for column in ("method", "for"):
        purposes.add_column(column)
    for column in ("method", "training objective", "prediction objective"):
        formulas.add_column(column)
    for method in METHODS.values():
        purposes.add_row(method.name, method.purpose)
        formulas.add_row(method.name, method.training, method.prediction)
    stdout.print(purposes)
    stdout.print(ADVICE, highlight=False, soft_wrap=True)
    stdout.print()
    stdout.print(formulas)
