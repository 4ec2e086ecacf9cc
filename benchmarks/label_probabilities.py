"""Measure how far label probabilities can be trusted.

    python benchmarks/label_probabilities.py DATA MODEL... [--target 0.9] [--device auto]
        [--split test] [--out FILE.json]

Each saved model is calibrated on the valid part of DATA (or on `--valid FILE`) and measured on the
test part, which is used for nothing else. The model folders are not changed. For each model:

- the expected calibration error (ECE) of p(label | document) over all pairs of a document and a
  label above 0.05, before and after calibration: in 15 bins of equal mass, and in 10 bins of equal
  width. A perfect model has an ECE above 0 too, because a bin has few pairs: `floor` is its mean
  for the same probabilities, over labels drawn from them;
- of the pairs at 0.95 or more, the share that is right;
- the same before: shares of the sets that the search found (`found sets`), as was shown before
  labels were calibrated;
- how many labels are accepted by themselves, the share of the predicted labels that this settles,
  and how many of these are right.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from setrnn import Tagger, calibrate, load, open_documents
from setrnn.indicators import indicator_matrices
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.rules import count_candidates
from setrnn.tagging.acceptance import LEAST_SHOWN, reliability
from setrnn.tagging.label_scores import SURE

N_DRAWS = 20
TARGET_ERROR, TARGET_SURE = 0.01, 0.93


def equal_width_error(probs: np.ndarray, is_right: np.ndarray, n_bins: int = 10) -> float:
    """Return the expected calibration error in bins of equal width."""
    of_bin = np.minimum((probs * n_bins).astype(int), n_bins - 1)
    n = np.bincount(of_bin, minlength=n_bins)
    gap = np.bincount(of_bin, probs - is_right, n_bins)
    return float(np.abs(gap).sum() / max(n.sum(), 1))


def describe(probs: np.ndarray, is_label: np.ndarray) -> dict[str, Any]:
    """Measure the probabilities (n, L) against the true labels."""
    is_shown = probs > LEAST_SHOWN
    shown, is_right = probs[is_shown].astype(np.float64), is_label[is_shown]
    is_sure = shown >= SURE
    random = np.random.default_rng(0)
    drawn = [random.random(len(shown)) < shown for _ in range(N_DRAWS)]
    inner = np.clip(probs.astype(np.float64), 1e-6, 1 - 1e-6)
    return {
        "n_pairs": len(shown),
        "ece": reliability(shown, is_right).error,
        "ece_floor": float(np.mean([reliability(shown, each).error for each in drawn])),
        "ece_equal_width": equal_width_error(shown, is_right),
        "ece_equal_width_floor": float(np.mean([equal_width_error(shown, d) for d in drawn])),
        "n_sure": int(is_sure.sum()),
        "sure_right": float(is_right[is_sure].mean()) if is_sure.any() else None,
        "log_loss": float(-np.log(np.where(is_label, inner, 1 - inner)).sum(1).mean()),
        "mean_sum": float(probs.sum(1).mean()),
        "mean_labels": float(is_label.sum(1).mean()),
    }


def measure(tagger: Tagger, arguments: argparse.Namespace) -> dict[str, Any]:
    """Calibrate on valid, and measure on test."""
    valid, split = (arguments.valid, None) if arguments.valid else (arguments.data, "valid")
    found = calibrate(tagger, valid, target=arguments.target, split=split)
    trusted, acceptance = found.tagger, found.tagger.label_acceptance
    assert acceptance is not None
    kept: dict[str, list[np.ndarray]] = {"found sets": [], "own": [], "calibrated": [], "true": []}
    n_predicted = n_accepted = n_right = n_documents = 0
    seconds = 0.0
    documents = open_documents(arguments.data, arguments.split)
    for tokens, names, *_ in documents.batches(trusted):
        both = indicator_matrices(names, [()] * len(names), trusted.labels.names)
        kept["true"].append(both.truth.toarray()[:, : len(trusted.labels)].astype(bool))
        candidates = trusted.system.candidates(tokens, count_candidates())
        own = trusted.label_marginals(tokens, candidates, calibrated=False).probs
        kept["own"].append(own)
        kept["calibrated"].append(trusted.calibrate_labels(own))
        only_sets = SetCandidates(candidates.labels, candidates.log_probs)
        kept["found sets"].append(only_sets.marginals(len(trusted.labels)))
        start = time.perf_counter()
        predictions = list(trusted.tag_tokens(tokens))
        seconds += time.perf_counter() - start
        for each, truth in zip(predictions, names, strict=True):
            accepted = each.accepted_labels or ()
            n_predicted += len(each.labels)
            n_accepted += len(accepted)
            n_right += len(set(accepted) & set(truth))
        n_documents += len(names)
    arrays = {name: np.concatenate(parts) for name, parts in kept.items()}
    is_label = arrays.pop("true")
    return {
        "method": tagger.method,
        "n_valid": found.calibration.n_documents,
        "n_documents": n_documents,
        **{name: describe(probs, is_label) for name, probs in arrays.items()},
        "accepted": {
            "target": acceptance.target,
            "n_labels": acceptance.n_safe,
            "n_labels_in_all": len(trusted.labels),
            "share_of_predicted": n_accepted / max(n_predicted, 1),
            "right": n_right / n_accepted if n_accepted else None,
        },
        "documents_per_second": n_documents / seconds,
    }


def line(name: str, row: dict[str, Any]) -> Iterator[str]:
    """Yield the row of one model, as Markdown."""
    stages = [row[stage] for stage in ("found sets", "own", "calibrated")]

    def numbers(key: str, digits: int) -> str:
        shown = ("-" if each[key] is None else f"{each[key]:.{digits}f}" for each in stages)
        return " -> ".join(shown)

    after, accepted = row["calibrated"], row["accepted"]
    right = "-" if accepted["right"] is None else f"{accepted['right']:.3f}"
    is_met = after["ece_equal_width"] < TARGET_ERROR and (after["sure_right"] or 1) >= TARGET_SURE
    yield (
        f"| {name} | {numbers('ece', 3)} (floor {after['ece_floor']:.3f}) "
        f"| {numbers('ece_equal_width', 3)} (floor {after['ece_equal_width_floor']:.3f}) "
        f"| {numbers('sure_right', 3)} ({after['n_sure']:,}) | {numbers('log_loss', 2)} "
        f"| {accepted['n_labels']} of {accepted['n_labels_in_all']}, "
        f"{accepted['share_of_predicted']:.1%}, {right} | {'yes' if is_met else 'no'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--valid", help="a file to calibrate on instead of the valid part")
    parser.add_argument("--split", default="test")
    parser.add_argument("--target", type=float, default=0.9)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()

    print("Found sets -> own -> calibrated, on", arguments.split)
    print("| model | ECE, equal mass | ECE, equal width | right at 0.95 or more (pairs) | log loss "
          "| accepted labels, share, right | target met |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    rows = {}
    for folder in arguments.models:
        tagger = replace(load(folder, arguments.device), calibration=None)
        rows[folder.name] = measure(tagger, arguments)
        print(*line(folder.name, rows[folder.name]), sep="\n", flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
