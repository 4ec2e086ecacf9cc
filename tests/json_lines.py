"""JSON Lines files."""

import json


def read_rows(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write_rows(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
