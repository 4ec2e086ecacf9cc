"""`setrnn methods`: list the systems."""

from __future__ import annotations

from rich.table import Table

from setrnn.cli.console import stdout
from setrnn.methods import METHODS


def methods() -> None:
    """List the systems, with what each maximises in training and how it predicts."""
    table = Table(title="Systems", title_justify="left", show_lines=True)
    for column in ("method", "training objective", "prediction objective"):
        table.add_column(column)
    for method in METHODS.values():
        table.add_row(method.name, method.training, method.prediction)
    stdout.print(table)
