"""The figures of a report, drawn from records: a file each, one style for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setrnn.comparison.records import Comparison, Record
from setrnn.report.figures.accepted import accepted
from setrnn.report.figures.entropy import entropy
from setrnn.report.figures.learning import learning
from setrnn.report.figures.orders import orders
from setrnn.report.figures.overview import overview
from setrnn.report.figures.prediction_speed import prediction_speed
from setrnn.report.figures.rare_labels import rare_labels
from setrnn.report.figures.reliability import reliability
from setrnn.report.figures.set_size import set_size
from setrnn.report.figures.style import Picture, house_style
from setrnn.report.figures.svg import to_svg
from setrnn.report.figures.training_time import training_time
from setrnn.report.parts import Figure
from setrnn.report.series.systems import Systems, systems_of

__all__ = ["FIGURES", "draw_figures"]

FIGURES: dict[str, Callable[[Systems], Picture | None]] = {
    "systems": overview,
    "rare-labels": rare_labels,
    "entropy": entropy,
    "set-size": set_size,
    "reliability": reliability,
    "accepted": accepted,
    "training-time": training_time,
    "prediction-speed": prediction_speed,
    "orders": orders,
    "learning": learning,
}


def draw_figures(comparison: Comparison, records: Sequence[Record]) -> list[Figure]:
    """Draw all figures; those that the records have nothing for are left out."""
    systems = systems_of(comparison, records)
    if not systems.all:
        return []
    figures = []
    for name, draw in FIGURES.items():
        with house_style(name):
            picture = draw(systems)
            if picture is not None:
                svg = to_svg(picture.drawing, name, picture.alt)
                figures.append(Figure(name, picture.title, picture.caption, picture.alt, svg))
    return figures
