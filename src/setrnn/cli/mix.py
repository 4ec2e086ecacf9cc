"""`setrnn mix`: make one model of several."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

import setrnn
from setrnn.cli.console import note, stdout
from setrnn.cli.options import AllowTrainingDocuments, Device, Reading, with_reading
from setrnn.cli.progress import terminal_progress
from setrnn.errors import ConfigError
from setrnn.metrics import LOWER_IS_BETTER, MEASURES


@with_reading
def mix(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL",
            help="Models with the same labels: folders or hub:NAME.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="DATA",
            help="Documents with labels that no model was trained on: a file, a folder with a "
            "valid part, a prepared folder, hf:NAME, or newsroom.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: Reading,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", help="The part of DATA to read.", show_default="valid, or the only one"
        ),
    ] = None,
    device: Device = "auto",
    allow_training_documents: AllowTrainingDocuments = False,
) -> None:
    """Make one model of several, with weights fitted for each prediction rule.

    The probability of a set is the weighted mean of those of the models. The weights are fitted on
    DATA. The tables show each measure by its own rule on these documents, for each model and for
    the mixture, and the weights.
    """
    if out.resolve() in (model.resolve() for model in models):
        raise ConfigError(f"--out is {out}, one of the models to mix. Name another folder.")
    with terminal_progress() as show:
        tagger = setrnn.mix(
            models,
            reading.source(data),
            split=split,
            out=out,
            device=device,
            allow_training_documents=allow_training_documents,
            on_progress=show,
        )
    print_mixture(tagger.notes["mixture"])
    note(f"Wrote {out}")


def print_mixture(found: Mapping[str, Any]) -> None:
    """Print what each member and the mixture give, and the weights."""
    stdout.print(scores_of_members(found), _weights_table(found), sep="\n")


def scores_of_members(found: Mapping[str, Any]) -> Table:
    """Show the measure of each rule for each member and the mixture; the best is bold."""
    title = f"On {found['n_documents']:,} documents, each measure by the rule made for it"
    names = [*found["members"], "mixture"]
    held_out = "mixture,\nheld out"
    table = Table(title=title, title_justify="left")
    table.add_column("", min_width=max(map(len, names)))
    rows: list[list[str]] = [[] for _ in (*names, held_out)]
    for fitted in found["rules"].values():
        measure = fitted["measure"]
        table.add_column(MEASURES[measure].replace("-", " ").replace(" ", "\n"), justify="right")
        values = [*fitted["members"], fitted["mixture"]]
        best = (min if measure in LOWER_IS_BETTER else max)(values)
        for row, value in zip(rows, [*values, fitted["held_out"]], strict=True):
            cell = f"{value:.{4 if measure in LOWER_IS_BETTER else 3}f}"
            row.append(f"[bold]{cell}[/bold]" if value == best else cell)
    table.add_column("log p\n(set)", justify="right")
    likelihood = found["log_likelihood"]
    for row, value in zip(rows, [*likelihood["members"], likelihood["mixture"], None], strict=True):
        row.append("" if value is None else f"{value:.3f}")
    for name, row in zip([*map(escape, names), held_out], rows, strict=True):
        table.add_row(name, *row)
    return table


def _weights_table(found: Mapping[str, Any]) -> Table:
    """Show the weights of each rule, and how they were chosen."""
    table = Table(title="Weights by rule", title_justify="left")
    table.add_column("", min_width=max(map(len, found["members"])))
    for rule in found["rules"]:
        table.add_column(rule, justify="right")
    table.add_column("others*", justify="right")
    columns = [*(each["weights"] for each in found["rules"].values()), found["weights"]]
    for name, *weights in zip(found["members"], *columns, strict=True):
        table.add_row(escape(name), *(f"{weight:.2f}" for weight in weights))
    ways = [f"{rule}: {each['chosen']}" for rule, each in found["rules"].items()]
    table.caption = (
        f"Chosen for {'; '.join(ways)}. * Completion and the likelihood of sets: likelihood. Label "
        "probabilities: as hamming."
    )
    table.caption_justify = "left"
    return table
