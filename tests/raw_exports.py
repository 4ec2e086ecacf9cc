"""Raw exports of catalogues, as ugly as they come.

Semicolons and a byte order mark, UTF-16 with tabs, cp1252 with pipes; labels joined by ", "; ids
that start from s1 in every file; labels in two spellings; formulas in cells; line breaks in quotes.
"""

import csv
import io
from itertools import islice

from setrnn.data import newsroom

COLUMNS = ("show_id", "title", "description", "listed_in")


def in_plural(name):
    return name.title() if name.endswith("s") else f"{name.title()}s"


# The delimiter, the encoding, and how this file spells its labels.
FILES = {
    "alpha.csv": (";", "utf-8-sig", str.title),
    "beta.csv": (",", "utf-8", in_plural),
    "gamma.csv": ("\t", "utf-16", str.title),
}
LATIN = {"delta.csv": ("|", "cp1252", str.title)}


def write_exports(folder, n_rows=40, files=FILES):
    """Write a folder of exports with so many rows each, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    examples = newsroom.examples("train")
    for name, (delimiter, encoding, spell) in files.items():
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for number, example in enumerate(islice(examples, n_rows), 1):
            words = example.text.split()
            title = f"=SUM({number}) café" if number == 2 else " ".join(words[:3])
            body = " ".join(words[3:]).replace(". ", ".\n", 1)
            labels = ", ".join(map(spell, example.labels)) or "[]"  # no label applies
            writer.writerow([f"s{number}", title, body, labels])
        (folder / name).write_bytes(text.getvalue().encode(encoding))
    return folder
