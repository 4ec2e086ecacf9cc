"""How good predictions are by the number of true labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from setrnn.report.figures.lines import Groups, draw_over_groups
from setrnn.report.figures.style import Picture, looks
from setrnn.report.figures.words import counted, listed, share
from setrnn.report.series.groups import group_means, size_groups
from setrnn.report.series.systems import Systems

Values = npt.NDArray[np.float64]


def set_size(systems: Systems) -> Picture | None:
    """Draw instance-F1 by the size of the true set."""
    groups = size_groups(systems.comparison.truth)
    means = {
        system.name: group_means(system.document_f1(system.own_rule), groups.of_document)
        for system in systems.all
    }
    lines = {name: values for name, (values, _) in means.items()}
    n = next(iter(means.values()))[1]
    x = np.arange(len(n), dtype=np.float64)
    drawing = draw_over_groups(
        lines,
        Groups(x, n.tolist(), list(zip(x.tolist(), groups.names, strict=True)), "documents"),
        looks(systems),
        "true labels of a document",
        "instance-F1",
    )
    return Picture(
        "Quality by set size",
        f"Instance-F1 of the {systems.n_documents:,} test documents by how many true labels they "
        f"have; the bars count the documents. Each system by its own rule, {systems.over_seeds}.",
        "Lines of instance-F1 by the size of the true set. "
        + listed(
            [
                f"{_best(lines, place)} for the {counted(int(n[place]), 'document')} of "
                + _labels(groups.names[place])
                for place in sorted({0, len(n) - 1})
            ]
        )
        + ".",
        drawing,
    )


def _best(lines: Mapping[str, Values], place: int) -> str:
    name = max(lines, key=lambda each: lines[each][place])
    return f"{name} is best with {share(float(lines[name][place]))}"


def _labels(size: str) -> str:
    return (
        f"{size.removesuffix('+')} or more labels" if "+" in size else counted(int(size), "label")
    )
