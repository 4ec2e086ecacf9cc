"""The gap between the search over subsets and the exact probability of large sets.

    python benchmarks/lattice_bound.py MODEL DATA [--widths 6,12,24] [--least 9] [--most 12]

MODEL is a set-rnn-exact model; DATA is its training data (the prepared folder, or the data). For
the valid and test documents with `--least` to `--most` labels, log p of the true set is computed
exactly, over all its subsets, and over the best K subsets of each size, as training does for sets
of more than ten labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setrnn.data.batches import take_rows
from setrnn.data.cache import Source, open_prepared
from setrnn.search.subset_sums import EXACT_UP_TO, set_log_prob_by_subsets
from setrnn.systems.order_free import OrderFreeSystem
from setrnn.tagging.loading import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("data")
    parser.add_argument("--widths", default="6,12,24")
    parser.add_argument("--least", type=int, default=9)
    parser.add_argument("--most", type=int, default=12)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    tagger = load(arguments.model, arguments.device)
    prepared = open_prepared(Source(arguments.data), tagger.config.text)
    system, n_labels = tagger.system, len(tagger.labels)
    assert isinstance(system, OrderFreeSystem), "MODEL must be a set-rnn-exact model"
    train = prepared.split("train").labels.lengths
    print(f"{(train > EXACT_UP_TO).mean():.1%} of the training sets have over {EXACT_UP_TO} labels")
    widths = [int(each) for each in arguments.widths.split(",")]
    gaps: dict[int, list[Tensor]] = {width: [] for width in widths}
    for split in ("valid", "test"):
        part = prepared.split(split)
        sizes = part.labels.lengths
        rows = np.flatnonzero((sizes >= arguments.least) & (sizes <= arguments.most))
        sets = part.labels.padded(rows=rows, dtype=np.int64)
        is_known = sets.max(axis=1) < n_labels
        rows, sets = rows[is_known], sets[is_known]
        tokens = take_rows(part.tokens, rows)
        for batch, encoding in system.by_batch(tokens, lambda _, encoding: encoding):
            for row, place in enumerate(batch):
                one = encoding.rows(torch.tensor([row], device=system.device))
                labels = torch.from_numpy(sets[place : place + 1]).to(system.device)
                size = torch.tensor([int((sets[place] >= 0).sum())])
                labels = labels[:, : int(size)]
                with torch.inference_mode():
                    exact = _log_prob(system, one, labels, size, 1, arguments.most)
                    for width in widths:
                        found = _log_prob(system, one, labels, size, width, arguments.least - 1)
                        gaps[width].append((exact - found).cpu())
    print("| K | sets | mean gap | median | 90% quantile | largest | gap over 0.1 |")
    print("|---" * 7 + "|")
    for width, found in gaps.items():
        gap = torch.cat(found)
        median, most = gap.median(), gap.quantile(0.9)
        print(
            f"| {width} | {len(gap)} | {gap.mean():.3f} | {median:.3f} | {most:.3f} "
            f"| {gap.max():.3f} | {(gap > 0.1).float().mean():.1%} |"
        )


def _log_prob(system, encoding, labels, size, width, exact_up_to):  # noqa: ANN001, ANN202
    decoder = system.network.decoder
    return set_log_prob_by_subsets(decoder, encoding, labels, size, width, exact_up_to)


if __name__ == "__main__":
    main()
