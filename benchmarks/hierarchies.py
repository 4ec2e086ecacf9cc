"""Measure what keeping predictions closed in a hierarchy gives.

    python benchmarks/hierarchies.py DATA [--parents FILE] [--methods br,pcc] [--out JSON]

DATA has train, valid and test parts. Without a file of parents, the parent of a label such as
admin::backup is what is before the last "::", as in the tags of Debian. The labels are closed
upwards, one model is trained per method, and it predicts by every rule, closed or not.
"""

from __future__ import annotations

import argparse
import json
from itertools import chain
from pathlib import Path

import setrnn
from setrnn.data.formats import BadRows
from setrnn.data.hierarchy import Hierarchy
from setrnn.metrics import MEASURES

SHOWN = (*MEASURES, "hierarchical_f1")
FACET = "::"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--parents", help="a file of label,parent")
    parser.add_argument("--methods", default="br")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    tree = arguments.parents or find_facets(arguments.data)
    found: dict[str, dict[str, dict[str, object]]] = {}
    for method in arguments.methods.split(","):
        tagger = setrnn.train(
            arguments.data,
            method,
            hierarchy=tree,
            close_labels=True,
            seed=arguments.seed,
            device=arguments.device,
        )
        print(f"| {method} | " + " | ".join(SHOWN) + " | documents/s |")
        print("|---" * (len(SHOWN) + 2) + "|")
        for is_closed in (False, True):
            limits = setrnn.Limits(closed=is_closed)
            results = setrnn.evaluate_rules(tagger, arguments.data, limits=limits)
            for rule, each in results.items():
                values = each.as_dict()
                name = f"{rule}, {'closed' if is_closed else 'not closed'}"
                found.setdefault(method, {})[name] = values
                cells = " | ".join(f"{values[key]:.4f}" for key in SHOWN)
                print(f"| {name} | {cells} | {values['documents_per_second']:,.0f} |", flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=1))


def find_facets(data: str) -> Hierarchy:
    """Return the facet of each label as its parent."""
    documents = setrnn.open_dataset(data).require("train").read(BadRows())
    labels = set(chain.from_iterable(each.labels for each in documents))
    above = {label: label.rpartition(FACET)[0] for label in labels}
    return Hierarchy({label: parent for label, parent in sorted(above.items()) if parent})


if __name__ == "__main__":
    main()
