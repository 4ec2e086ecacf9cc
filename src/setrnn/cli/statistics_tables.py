"""The tables of `setrnn data info`: the sizes of the parts, of label sets, and the labels."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from rich.console import Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from setrnn.data.statistics import DatasetStatistics, SplitStatistics

N_LABELS_SHOWN = 8
N_SIZES_SHOWN = 12
N_TWINS_SHOWN = 12
BAR_WIDTH = 32
EIGHTHS = " ▏▎▍▌▋▊▉█"


def show_statistics(statistics: DatasetStatistics) -> Group:
    """Lay out the splits, set sizes, most and least frequent labels, and warnings.

    Set sizes and labels are those of the training split, or of the first split if there is none.
    """
    parts: list[Table | Padding] = [_table_of_splits(statistics)]
    name = statistics.training_split or next(iter(statistics.splits), "")
    split = statistics.splits.get(name)
    if split is not None and split.n_documents:
        parts += [_table_of_set_sizes(name, split), _table_of_labels(name, split)]
    if statistics.twins:
        parts.append(_table_of_twins(statistics))
    for warning in statistics.warnings():
        line = Text.assemble(("! ", "bold yellow"), warning)
        parts.append(Padding(line, (0, 1)))
    return Group(*parts)


def _table_of_splits(statistics: DatasetStatistics) -> Table:
    table = Table(title="Parts", title_justify="left")
    table.add_column("")
    for name in statistics.splits:
        table.add_column(escape(name), justify="right")
    splits = list(statistics.splits.values())
    unseen_share = {unseen.split: f"{unseen.share:.1%}" for unseen in statistics.unseen}
    table.add_row("documents", *(f"{s.n_documents:,}" for s in splits))
    if any(s.n_incomplete for s in splits):
        table.add_row("documents with unknown labels", *(f"{s.n_incomplete:,}" for s in splits))
    table.add_row("labels", *(f"{s.n_labels:,}" for s in splits))
    table.add_row("labels per document", *(f"{s.mean_set_size:.2f}" for s in splits))
    table.add_row("labels per document, most", *(f"{s.max_set_size:,}" for s in splits))
    table.add_row("distinct label sets", *(f"{s.n_label_sets:,}" for s in splits))
    if unseen_share:
        shares = (unseen_share.get(name, "") for name in statistics.splits)
        table.add_row("label sets not in training", *shares)
    table.add_row("words per document", *(f"{s.lengths.mean:.0f}" for s in splits))
    table.add_row("words, median", *(f"{s.lengths.median:,}" for s in splits))
    table.add_row("words, 95th percentile", *(f"{s.lengths.percentile_95:,}" for s in splits))
    table.add_row("words, most", *(f"{s.lengths.max:,}" for s in splits))
    if any(s.n_documents_with_features for s in splits):
        table.add_row(
            "documents with features", *(f"{s.n_documents_with_features:,}" for s in splits)
        )
    return table


def _table_of_set_sizes(name: str, split: SplitStatistics) -> Table:
    table = _plain_table(f"Labels per document, {name}")
    table.add_column("labels", justify="right")
    table.add_column("documents", justify="right")
    table.add_column("")
    shown = {str(size): n for size, n in split.set_sizes.items() if size < N_SIZES_SHOWN}
    n_larger = split.n_documents - sum(shown.values())
    if n_larger:
        shown[f"{N_SIZES_SHOWN}+"] = n_larger
    longest = max(shown.values())
    for size, n_documents in shown.items():
        table.add_row(size, f"{n_documents:,}", Text(_bar(n_documents / longest), style="cyan"))
    return table


def _table_of_labels(name: str, split: SplitStatistics) -> Table:
    table = _plain_table(f"Labels, {name}")
    table.add_column("most frequent")
    table.add_column("documents", justify="right")
    table.add_column("least frequent")
    table.add_column("documents", justify="right")
    by_frequency = list(split.label_frequencies.items())
    n_shown = min(N_LABELS_SHOWN, len(by_frequency))
    for most, least in zip(by_frequency[:n_shown], reversed(by_frequency), strict=False):
        table.add_row(Text(most[0]), f"{most[1]:,}", Text(least[0]), f"{least[1]:,}")
    return table


def _table_of_twins(statistics: DatasetStatistics) -> Table:
    table = _plain_table("Likely twins, a start for --label-map")
    counts = Counter[str]()
    for split in statistics.splits.values():
        counts.update(split.label_frequencies)
    for column in ("from", "to"):
        table.add_column(column)
        table.add_column("documents", justify="right")
    for old, new in islice(statistics.twins.items(), N_TWINS_SHOWN):
        table.add_row(Text(old), f"{counts[old]:,}", Text(new), f"{counts[new]:,}")
    n_more = len(statistics.twins) - N_TWINS_SHOWN
    if n_more > 0:
        table.caption = f"and {n_more:,} more, which --write-label-map writes"
        table.caption_justify = "left"
    return table


def _plain_table(title: str) -> Table:
    return Table(title=escape(title), title_justify="left", box=None, header_style="dim")


def _bar(share: float) -> str:
    """Draw a share of the full width of the bar, in eighths of a character; at least one."""
    n_eighths = max(1, round(share * BAR_WIDTH * 8))
    return EIGHTHS[8] * (n_eighths // 8) + EIGHTHS[n_eighths % 8].strip()
