"""The figures of a report, drawn from records in one style."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setrnn.comparison.records import Comparison, Record
from setrnn.report.figures.costs import draw_prediction_speed, draw_training_time
from setrnn.report.figures.groups import draw_rare_labels, draw_set_size
from setrnn.report.figures.learning import draw_learning
from setrnn.report.figures.orders import draw_entropy, draw_orders
from setrnn.report.figures.overview import draw_overview
from setrnn.report.figures.reliability import draw_accepted, draw_reliability_diagrams
from setrnn.report.figures.style import Figure, Picture, house_style, to_svg
from setrnn.report.systems import Systems, group_by_system

__all__ = ["FIGURES", "Figure", "draw_figures"]

FIGURES: dict[str, Callable[[Systems], Picture | None]] = {
    "systems": draw_overview,
    "rare-labels": draw_rare_labels,
    "entropy": draw_entropy,
    "set-size": draw_set_size,
    "reliability": draw_reliability_diagrams,
    "accepted": draw_accepted,
    "training-time": draw_training_time,
    "prediction-speed": draw_prediction_speed,
    "orders": draw_orders,
    "learning": draw_learning,
}


def draw_figures(comparison: Comparison, records: Sequence[Record]) -> list[Figure]:
    """Draw all figures; those without data are left out."""
    systems = group_by_system(comparison, records)
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
