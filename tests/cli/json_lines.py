import json


def read_rows(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
