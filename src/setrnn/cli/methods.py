"""`setrnn methods`: list the systems."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from setrnn.cli.terminal import show, stdout
from setrnn.methods import METHODS, Method


def methods() -> None:
    """List the systems: what each is for, what it maximises in training, how it predicts."""
    known = METHODS.values()
    _show_purposes("Which system is for what", [each for each in known if not each.is_later])
    show(
        "Without --method, setrnn train chooses: it trains several of these within its --budget "
        "and mixes them.\n"
    )
    _show_purposes("Systems of later papers", [each for each in known if each.is_later])
    show("To compare them: setrnn compare DATA --methods all,later --out DIR\n")
    columns = ("method", "training objective", "prediction objective")
    formulas = Table(*columns, title="What they maximise", title_justify="left", show_lines=True)
    for each in known:
        formulas.add_row(each.name, each.training, each.prediction)
    stdout.print(formulas)


def _show_purposes(title: str, methods: Sequence[Method]) -> None:
    table = Table("method", "for", title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for each in methods:
        table.add_row(each.name, each.purpose)
    stdout.print(table)
