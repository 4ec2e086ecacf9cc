"""The statistics of a dataset on the terminal, with what a user should act on."""

from __future__ import annotations

from itertools import chain

from rich.console import Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from setrnn.data.statistics import DatasetStatistics, SplitStatistics

N_LABELS_SHOWN = 8
N_SIZES_SHOWN = 12
BAR_WIDTH = 32
EIGHTHS = " ▏▎▍▌▋▊▉█"


def render(statistics: DatasetStatistics) -> Group:
    """Show the splits, the set sizes, the labels at both ends, and the warnings.

    Set sizes and labels are those of the training split, or of the first where none is.
    """
    parts: list[Table | Padding] = [_table_of_splits(statistics)]
    name = statistics.training_split or next(iter(statistics.splits), "")
    split = statistics.splits.get(name)
    if split is not None and split.n_documents:
        parts += [_table_of_set_sizes(name, split), _table_of_labels(name, split)]
    for warning in warnings(statistics):
        line = Text.assemble(("! ", "bold yellow"), warning)
        parts.append(Padding(line, (0, 1)))
    return Group(*parts)


def warnings(statistics: DatasetStatistics) -> list[str]:
    """Say in plain words what a user should act on before training."""
    shared = [
        f"{shared.second} repeats {shared.first} in {_count(shared.n_documents, 'document')}: "
        "its scores will be too good. Remove them from one of the two."
        for shared in statistics.shared_texts
        if shared.n_documents
    ]
    unseen = [
        f"{unseen.split} has {_count(len(unseen.labels), 'label')} that training never shows "
        f"({_count(sum(unseen.labels.values()), 'occurrence')}), bound to be missed: "
        f"{_some_names(list(unseen.labels))}."
        for unseen in statistics.unseen
        if unseen.labels
    ]
    of_splits = [_warnings_of_split(name, split) for name, split in statistics.splits.items()]
    return [*shared, *unseen, *chain.from_iterable(of_splits)]


def _warnings_of_split(name: str, split: SplitStatistics) -> list[str]:
    if split.n_documents == 0:
        return [f"{name} has no documents."]
    found = {
        f"{name} has {_count(split.n_empty_texts, 'document')} without text, "
        "from which nothing can be learned.": split.n_empty_texts,
        f"{name} has {_count(split.n_empty_label_sets, 'document')} without labels, taken to "
        "mean that none applies. Remove what is merely not labelled.": split.n_empty_label_sets,
        f"{name} repeats its own texts in {_count(split.n_repeated_texts, 'document')}.": (
            split.n_repeated_texts
        ),
        f"{name} repeats its own ids in {_count(split.n_repeated_ids, 'document')}.": (
            split.n_repeated_ids
        ),
    }
    return [warning for warning, n_documents in found.items() if n_documents]


def _table_of_splits(statistics: DatasetStatistics) -> Table:
    table = Table(title="Splits", title_justify="left")
    table.add_column("")
    for name in statistics.splits:
        table.add_column(escape(name), justify="right")
    splits = list(statistics.splits.values())
    unseen_share = {unseen.split: f"{unseen.share:.1%}" for unseen in statistics.unseen}
    table.add_row("documents", *(f"{s.n_documents:,}" for s in splits))
    table.add_row("labels", *(f"{s.n_labels:,}" for s in splits))
    table.add_row("labels a document", *(f"{s.mean_set_size:.2f}" for s in splits))
    table.add_row("labels a document, most", *(f"{s.max_set_size:,}" for s in splits))
    table.add_row("distinct label sets", *(f"{s.n_label_sets:,}" for s in splits))
    if unseen_share:
        shares = (unseen_share.get(name, "") for name in statistics.splits)
        table.add_row("label sets not in training", *shares)
    table.add_row("words a document", *(f"{s.lengths.mean:.0f}" for s in splits))
    table.add_row("words, median", *(f"{s.lengths.median:,}" for s in splits))
    table.add_row("words, 95th percentile", *(f"{s.lengths.percentile_95:,}" for s in splits))
    table.add_row("words, most", *(f"{s.lengths.max:,}" for s in splits))
    if any(s.n_documents_with_features for s in splits):
        table.add_row(
            "documents with features", *(f"{s.n_documents_with_features:,}" for s in splits)
        )
    return table


def _table_of_set_sizes(name: str, split: SplitStatistics) -> Table:
    table = Table(
        title=f"Labels a document, {escape(name)}",
        title_justify="left",
        box=None,
        header_style="dim",
    )
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


def _plain_table(title: str) -> Table:
    return Table(title=escape(title), title_justify="left", box=None, header_style="dim")


def _bar(share: float) -> str:
    """Draw a share of the bar's full width, to an eighth of a character; never nothing."""
    n_eighths = max(1, round(share * BAR_WIDTH * 8))
    return EIGHTHS[8] * (n_eighths // 8) + EIGHTHS[n_eighths % 8].strip()


def _some_names(names: list[str]) -> str:
    shown = ", ".join(names[:N_LABELS_SHOWN])
    n_more = len(names) - N_LABELS_SHOWN
    return f"{shown} and {n_more:,} more" if n_more > 0 else shown


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
