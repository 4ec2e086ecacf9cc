"""How good predictions are by the number of true labels."""

from __future__ import annotations

import numpy as np

from setrnn.report.figures.lines import Groups, draw_over_groups
from setrnn.report.figures.style import Picture, counted, listed, looks, share
from setrnn.report.series.groups import group_means, size_groups
from setrnn.report.series.systems import Systems


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
    best = {
        name: max(lines, key=lambda each: lines[each][place])
        for place, name in ((0, groups.names[0]), (len(n) - 1, groups.names[-1]))
    }
    return Picture(
        "Quality by set size",
        f"Instance-F1 of the {systems.n_documents:,} test documents by how many true labels they "
        f"have; the bars count the documents. Each system by its own rule, {systems.over_seeds}.",
        "Lines of instance-F1 by the size of the true set. "
        + listed(
            [
                f"{name} is best for documents of {_labels(size)} with "
                f"{share(lines[name][0 if size == groups.names[0] else -1])}"
                for size, name in best.items()
            ]
        )
        + f"; {counted(int(n[-1]), 'document')} of {systems.n_documents:,} "
        + f"{'has' if n[-1] == 1 else 'have'} {_labels(groups.names[-1])}.",
        drawing,
    )


def _labels(size: str) -> str:
    return (
        f"{size.removesuffix('+')} or more labels" if "+" in size else counted(int(size), "label")
    )
