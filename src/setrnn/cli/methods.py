"""`setrnn methods`: list the systems."""

from __future__ import annotations

from rich import box
from rich.table import Table

from setrnn.cli.console import stdout
from setrnn.methods import METHODS, Method

ADVICE = (
    "Without --method, setrnn train chooses: it trains several of these within its --budget and "
    "mixes them."
)
LATER_ADVICE = "To compare them: setrnn compare DATA --methods all,later --out DIR"


def methods() -> None:
    """List the systems: what each is for, what it maximises in training, how it predicts."""
    ours = [method for method in METHODS.values() if not method.is_later]
    later = [method for method in METHODS.values() if method.is_later]
    stdout.print(_purposes("Which system is for what", ours))
    stdout.print(ADVICE, highlight=False, soft_wrap=True)
    stdout.print()
    stdout.print(_purposes("Systems of later papers", later))
    stdout.print(LATER_ADVICE, highlight=False, soft_wrap=True)
    stdout.print()
    formulas = Table(title="What they maximise", title_justify="left", show_lines=True)
    for column in ("method", "training objective", "prediction objective"):
        formulas.add_column(column)
    for method in METHODS.values():
        formulas.add_row(method.name, method.training, method.prediction)
    stdout.print(formulas)


def _purposes(title: str, listed: list[Method]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("method", "for"):
        table.add_column(column)
    for method in listed:
        table.add_row(method.name, method.purpose)
    return table
