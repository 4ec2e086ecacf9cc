"""`setrnn cache`: list or remove the prepared data in the cache."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import setrnn
from setrnn.cli.options import option
from setrnn.cli.tables import show_table
from setrnn.cli.terminal import note
from setrnn.data.cache import cache_folder
from setrnn.errors import printable


def cache(
    clear: Annotated[bool, option("Remove all of it; the next training prepares again.")] = False,
) -> None:
    """List the prepared data and word vectors in the cache, or remove them.

    Do not clear it while a training runs, which may still read it.
    """
    found = setrnn.clear_cache() if clear else setrnn.list_cache()
    total = f"{len(found):,} folders, {sum(each.n_bytes for each in found) / 1e6:,.1f} MB"
    if clear:
        note(f"Removed {total} from {cache_folder()}")
        return
    rows = []
    for each in found:
        n_documents = "damaged" if each.n_documents is None else f"{each.n_documents:,}"
        size, used = f"{each.n_bytes / 1e6:,.1f}", datetime.fromtimestamp(each.last_used)
        row = [printable(each.folder.name), n_documents, f"{each.n_vectors:,}", size]
        rows.append([*row, f"{used:%Y-%m-%d %H:%M}"])
    if rows:
        show_table("Prepared data", ["", "documents", "vectors", "MB", "last use"], rows)
    note(f"{cache_folder()}: {total}")
