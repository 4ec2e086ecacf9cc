"""Write the embedded corpus, newsroom, into the package: `python tools/make_newsroom.py`.

The results in docs/results are measured on these files. Change the generator only if every
result is measured again; tests/tools checks that it still produces exactly these files.
"""

from __future__ import annotations

from pathlib import Path

from newsroom import generate
from newsroom.tags import PARENTS

from setrnn.data.read import write_examples

FOLDER = Path(__file__).parents[1] / "src" / "setrnn" / "data" / "newsroom"


def main() -> None:
    """Write one file per split, and the parents of the tags."""
    for split, examples in generate(seed=0).items():
        write_examples(examples, FOLDER / f"{split}.jsonl.gz")
    (FOLDER / "parents.csv").write_text(list_parents())


def list_parents() -> str:
    """Return the rows of label,parent of all tags that have one."""
    rows = ["label,parent", *(f"{tag},{parent}" for tag, parent in PARENTS.items() if parent)]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
