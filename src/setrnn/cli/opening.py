"""Open the data that systems are trained on, and show what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from setrnn.cli.console import documents_progress, note
from setrnn.cli.data import report_skipped_count

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
    """Open prepared data, or prepare data; return it with the configuration that fits it.

    Args:
        source: what to read.
        config: the configuration.
        overrides: the settings given as `key=value`; a prepared folder must agree with them.
        folder: the folder of prepared folders; the cache if not given.
        open_with: the function that prepares data; `open_prepared` if not given.
    """
    from setrnn.data.cache import fit_text_settings, has_text_settings, open_prepared

    with documents_progress() as advance:
        prepared = (open_with or open_prepared)(source, config.text, folder, advance)
    note(f"Prepared data: {prepared.folder}")
    fitted = fit_text_settings(prepared, config, any("text." in each for each in overrides))
    report_skipped_count(prepared.n_skipped_rows)
    if not has_text_settings(prepared, config):
        note("The data was prepared with other text settings: these are used.")
    return prepared, fitted
