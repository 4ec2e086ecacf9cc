"""Open the data that systems are trained on, and fit the settings to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from setrnn.cli.console import documents_progress, note
from setrnn.cli.data import report_skipped_count
from setrnn.errors import ConfigError, DataError

if TYPE_CHECKING:
    from setrnn.config import Config
    from setrnn.data.cache import Source
    from setrnn.data.prepared import Prepared


def opened_data(
    source: Source,
    config: Config,
    overrides: Sequence[str] = (),
    folder: Path | None = None,
    open_with: Callable[..., Prepared] | None = None,
) -> tuple[Prepared, Config]:
    """Prepare the data, or open it prepared; return it with the text settings it has.

    Args:
        source: what to read.
        config: the settings asked for.
        overrides: those of them given as `key=value`: a prepared folder must agree with them.
        folder: where prepared folders lie; the cache if not given.
        open_with: what prepares it, called as `open_prepared`, which does if none is given.
    """
    from setrnn.data.cache import open_prepared

    with documents_progress() as advance:
        prepared = (open_with or open_prepared)(source, config.text, folder, advance)
    # Of a tokenizer the content counts, and training checks it; not where it lies.
    text = replace(config.text, tokenizer=prepared.text_settings.tokenizer)
    note(f"Prepared data: {prepared.folder}")
    if prepared.text_settings != text and any("text." in each for each in overrides):
        raise ConfigError(f"{prepared.folder} is prepared with other text settings than --set.")
    if not len(prepared.labels):
        raise DataError(f"No document of {source.data} has a label: there is nothing to learn.")
    report_skipped_count(prepared.n_skipped_rows)
    if prepared.text_settings != text:
        note("The data was prepared with other text settings than these: its own are used.")
    return prepared, replace(config, text=prepared.text_settings)
