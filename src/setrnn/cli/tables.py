"""The tables that commands print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from setrnn.data.hierarchy import HIERARCHICAL_MEASURES
from setrnn.errors import printable
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, write_measure

if TYPE_CHECKING:
    from setrnn.data.prepared import Prepared
    from setrnn.data.statistics import DatasetStatistics, SplitStatistics
    from setrnn.report import table as report
    from setrnn.tagging.measures import AcceptedScores, LabelScores
    from setrnn.tagging.trust.acceptance import Reliability

MOST_LABELS, MOST_SIZES, MOST_TWINS = 8, 12, 12  # rows of the tables of `data info`
BAR_WIDTH = 30
PLAIN: dict[str, Any] = {"box": None, "header_style": "dim"}


def make_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    caption: str = "",
    **style: Any,  # noqa: ANN401 (rich's own)
) -> Table:
    """Lay out rows of text; the first column is to the left and not cut, numbers to the right."""
    cells = [[each if isinstance(each, Text) else Text(each) for each in row] for row in rows]
    style = {"title_justify": "left", "caption_justify": "left", **style}
    table = Table(title=Text(title), caption=Text(caption) if caption else None, **style)
    names = max((len(row[0].plain) for row in cells), default=0)
    for number, name in enumerate(columns):
        if number:
            table.add_column(Text(name), justify="right")
        else:
            table.add_column(Text(name), min_width=min(names, 40), overflow="fold")
    for row in cells:
        table.add_row(*row)
    return table


def measures_table(
    title: str,
    rows: Mapping[str, Mapping[str, Any]],
    measures: Mapping[str, str] = MEASURES,
    caption: str = "",
) -> Table:
    """Lay out measures, one system per row; the best value of each column is bold.

    Args:
        title: what was measured, and where.
        rows: the values of each system by the key of the measure; one may lack some.
        measures: the names of the measures to show, by their keys.
        caption: what to know about the values.
    """
    best = {}
    for key in measures:
        values = [row[key] for row in rows.values() if row.get(key) is not None]
        best[key] = (min if key in LOWER_IS_BETTER else max)(values, default=None)
    columns = ["", *(_wrap(name) for name in measures.values())]
    return make_table(
        title,
        columns,
        (
            [name, *(_measure(key, row.get(key), best[key], len(rows) > 1) for key in measures)]
            for name, row in rows.items()
        ),
        caption,
    )


def _wrap(name: str) -> str:
    """Break the name of a column between its words."""
    return name.replace(" ", "\n")


def _measure(key: str, value: float | None, best: float | None, is_marked: bool) -> Text:
    if value is None:
        return Text()
    text = f"{value:,.0f}" if key == "documents_per_second" else write_measure(value, key)
    return Text(text, "bold" if is_marked and value == best else "")


def hierarchical_table(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Lay out the measures of sets with the labels above theirs."""
    return measures_table("With the labels above, in the hierarchy", rows, HIERARCHICAL_MEASURES)


def members_table(found: Mapping[str, Any]) -> Table:
    """Show what each member of a mixture gives, and the mixture: each measure by its own rule."""
    rows: dict[str, dict[str, float]] = {
        name: {} for name in [*found["members"], "mixture", "mixture, held out"]
    }
    columns = [
        (each["measure"], [*each["members"], each["mixture"], each["held_out"]])
        for each in found["rules"].values()
    ]
    likelihood = found["log_likelihood"]
    columns.append(("log_prob", [*likelihood["members"], likelihood["mixture"]]))
    for measure, values in columns:
        for row, value in zip(rows.values(), values, strict=False):
            row[measure] = value
    names = {measure: MEASURES.get(measure, "log p (set)") for measure, _ in columns}
    title = f"On {found['n_documents']:,} documents, each measure by the rule made for it"
    return measures_table(title, rows, names)


def weights_table(found: Mapping[str, Any]) -> Table:
    """Show the weights of each rule of a mixture, and how they were chosen."""
    rules = found["rules"]
    columns = [*(each["weights"] for each in rules.values()), found["weights"]]
    ways = "; ".join(f"{rule}: {each['chosen']}" for rule, each in rules.items())
    return make_table(
        "Weights by rule",
        ["", *rules, "others*"],
        (
            [name, *(f"{weight:.2f}" for weight in weights)]
            for name, *weights in zip(found["members"], *columns, strict=True)
        ),
        f"Chosen for {ways}. * Completion and the likelihood of sets: likelihood. Label "
        "probabilities: as hamming.",
    )


def change_table(found: Mapping[str, Any], rule: str) -> Table:
    """Show the measures of a model before and after an update, on old and on new documents."""
    rows, seen = {}, []
    for kind, row in found["scores"].items():
        for when, values in row.items():
            share = values["share_trained_on"]
            if share > 0:
                seen.append(f"{when} on {kind} documents: {share:.0%}")
            rows[f"{found['n_measured'][kind]:,} {kind}, {when}{'*' * (share > 0)}"] = values
    caption = f"* Too good: the model was trained on some of these documents ({'; '.join(seen)})."
    title = f"On valid documents, by rule {rule}"
    return measures_table(title, rows, _common(rows), caption if seen else "")


def student_table(found: Mapping[str, Mapping[str, float]]) -> Table:
    """Show the measures and the speed of a teacher and its student."""
    names = {**_common(found), "documents_per_second": "documents/s"}
    return measures_table("On the valid part, each measure by its own rule", found, names)


def _common(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the measures that all rows have."""
    return {key: name for key, name in MEASURES.items() if all(key in row for row in rows.values())}


def prepared_table(prepared: Prepared) -> Table:
    """Show the numbers of a prepared folder."""
    splits = [prepared.split(name) for name in prepared.splits]
    rows = [["documents", *(f"{len(split):,}" for split in splits)]]
    if any(split.unknown is not None for split in splits):
        n_incomplete = (int((~split.is_complete).sum()) for split in splits)
        rows.append(["documents with unknown labels", *(f"{n:,}" for n in n_incomplete)])
    for row, parts in (
        ("labels per document", [split.labels for split in splits]),
        ("words per document", [split.tokens for split in splits]),
    ):
        rows.append([row, *(f"{len(each.values) / max(len(each), 1):.1f}" for each in parts)])
    return make_table(prepared.name, ["", *prepared.splits], rows)


def statistics_tables(statistics: DatasetStatistics) -> Group:
    """Lay out the splits, set sizes, most and least frequent labels, and warnings.

    Set sizes and labels are those of the training split, or of the first split if there is none.
    """
    parts: list[Table | Padding] = [_parts_table(statistics)]
    name = "train" if "train" in statistics.splits else next(iter(statistics.splits), "")
    split = statistics.splits.get(name)
    if split is not None and split.n_documents:
        parts += [_sizes_table(name, split), _labels_table(name, split)]
    if statistics.twins:
        parts.append(_twins_table(statistics))
    for warning in statistics.warnings():
        parts.append(Padding(Text.assemble(("! ", "bold yellow"), warning), (0, 1)))
    return Group(*parts)


def _parts_table(statistics: DatasetStatistics) -> Table:
    splits = statistics.splits.values()
    unseen = ("" if s.unseen_share is None else f"{s.unseen_share:.1%}" for s in splits)
    rows = [
        ["documents", *(f"{s.n_documents:,}" for s in splits)],
        ["documents with unknown labels", *(f"{s.n_incomplete:,}" for s in splits)],
        ["labels", *(f"{s.n_labels:,}" for s in splits)],
        ["labels per document", *(f"{s.mean_set_size:.2f}" for s in splits)],
        ["most labels per document", *(f"{s.max_set_size:,}" for s in splits)],
        ["distinct label sets", *(f"{s.n_label_sets:,}" for s in splits)],
        ["label sets not in training", *unseen],
        ["words per document", *(f"{s.lengths.mean:.0f}" for s in splits)],
        ["words, median", *(f"{s.lengths.median:,}" for s in splits)],
        ["words, 95th percentile", *(f"{s.lengths.percentile_95:,}" for s in splits)],
        ["words, most", *(f"{s.lengths.max:,}" for s in splits)],
        ["documents with features", *(f"{s.n_documents_with_features:,}" for s in splits)],
    ]
    optional = ("documents with unknown labels", "documents with features")
    shown = (row for row in rows if row[0] not in optional or set(row[1:]) != {"0"})
    return make_table("Parts", ["", *statistics.splits], (row for row in shown if any(row[1:])))


def _sizes_table(name: str, split: SplitStatistics) -> Table:
    sizes = {str(size): n for size, n in split.set_sizes.items() if size < MOST_SIZES}
    if n_larger := split.n_documents - sum(sizes.values()):
        sizes[f"{MOST_SIZES}+"] = n_larger
    most = max(sizes.values())
    rows = [(size, f"{n:,}", _bar(n / most)) for size, n in sizes.items()]
    title = f"Labels per document, {name}"
    return make_table(title, ["labels", "documents", ""], rows, **PLAIN)


def _labels_table(name: str, split: SplitStatistics) -> Table:
    """Show the most and the least frequent labels side by side."""
    labels = [(printable(label), f"{n:,}") for label, n in split.label_frequencies.items()]
    n_shown = min(MOST_LABELS, len(labels))
    rows = ([*most, *least] for most, least in zip(labels[:n_shown], labels[::-1], strict=False))
    columns = ["most frequent", "documents", "least frequent", "documents"]
    return make_table(f"Labels, {name}", columns, rows, **PLAIN)


def _twins_table(statistics: DatasetStatistics) -> Table:
    counts = Counter[str]()
    for split in statistics.splits.values():
        counts.update(split.label_frequencies)
    n_more = len(statistics.twins) - MOST_TWINS
    return make_table(
        "Likely twins, a start for --label-map",
        ["from", "documents", "to", "documents"],
        (
            [printable(old), f"{counts[old]:,}", printable(new), f"{counts[new]:,}"]
            for old, new in islice(statistics.twins.items(), MOST_TWINS)
        ),
        f"and {n_more:,} more, which --write-label-map writes" if n_more > 0 else "",
        **PLAIN,
    )


def _bar(share: float) -> Text:
    """Draw a share of the full width of the bar; at least one character."""
    return Text(("█" * max(1, round(share * BAR_WIDTH))).ljust(BAR_WIDTH, "·"), "cyan")


def label_scores_table(labels: Sequence[LabelScores], n_shown: int) -> Table:
    """Show the measures of the most frequent labels, and from where they are accepted."""
    shown = labels[:n_shown]
    columns = ["label", "support", "precision", "recall", "F1"]
    has_accepted = any(each.accepted_share is not None for each in labels)

    def cells(each: LabelScores) -> list[str]:
        values = [each.precision, each.recall, each.f1]
        if has_accepted:
            values += [each.threshold, each.accepted_share]
        texts = ("-" if value is None else f"{value:.3f}" for value in values)
        return [printable(each.label), f"{each.support:,}", *texts]

    return make_table(
        f"The {len(shown)} most frequent of {len(labels):,} labels",
        [*columns, *(["accepted\nfrom", "accepted\nshare"] if has_accepted else [])],
        map(cells, shown),
    )


def accepted_table(accepted: AcceptedScores, target: float) -> Table:
    """Show how many predictions are accepted, and how many of these are right."""
    accuracy, interval = "-", "-"
    if accepted.accuracy_accepted is not None:
        accuracy = f"{accepted.accuracy_accepted:.3f}"
        low, high = accepted.accuracy_accepted_low, accepted.accuracy_accepted_high
        interval = f"{low:.3f} to {high:.3f}"
    row = [f"{accepted.n_accepted:,}", f"{accepted.share_accepted:.1%}", accuracy, interval]
    columns = ["documents", "share", "accuracy", "95% interval", "target"]
    return make_table("Accepted predictions", columns, [[*row, f"{target:g}"]])


def reliability_table(title: str, reliability: Reliability) -> Table:
    """Show the accuracy of sets by their probability."""
    columns = zip(
        reliability.n_documents, reliability.mean_probability, reliability.accuracy, strict=True
    )
    return make_table(
        title,
        ["documents", "probability", "accuracy", ""],
        ([f"{n:,}", f"{p:.3f}", f"{right:.3f}", _bar(right)] for n, p, right in columns),
        box=box.SIMPLE_HEAD,
    )


def systems_table(found: report.Table, is_narrow: bool) -> Table:
    """Lay out a table of the report: the best in bold, tied cells underlined.

    A narrow one has no deviations over seeds.
    """

    def cell(each: report.Cell) -> Text:
        text = each.text.partition(" ± ")[0] if is_narrow else each.text
        return Text(text, {"best": "bold", "tied": "underline"}.get(each.mark, ""))

    return make_table(
        found.title,
        [_wrap(column.header.replace("(rule ", "(")) for column in found.values],
        ([cell(each) for each in row] for row in found.cells),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )


def labels_text(labels: Sequence[str]) -> str:
    """Write a label set for a reader; a label with a comma is quoted."""
    names = [f'"{label}"' if "," in label else label for label in labels]
    return "{" + ", ".join(names) + "}" if labels else "{} (no labels)"
