"""A folder with small data and models under the names that the pages use."""

import csv
import json
import shutil

from made_comparison import made_comparison

# In place of the preset: networks that train in a moment.
SMALL = {
    "text": {"min_count": 1, "max_words": 30},
    "vectors": {"source": "none", "dimensions": 8},
    "classical": {"max_steps": 3, "max_pairs": 0},
    "model": {
        "encoder_units": 8,
        "decoder_units": 8,
        "decoder_layers": 1,
        "max_labels": 8,
    },
    "search": {"beam_width": 2},
    "training": {"epochs": 1, "batch_size": 64, "valid_documents": 20},
}
MODELS = {
    "br": ("model", "br", "models/br-0"),
    "set-rnn": ("models/set-rnn-0", "first-look/models/set-rnn-0"),
    "br-support": ("br-support",),
    "set-rnn-exact": ("exact",),
    "sigmoid": ("sigmoid",),
}


def write_world(folder, examples, taggers):
    """Write all files that commands of the pages read."""
    parts = {
        "train": examples["train"][:100],
        "valid": [*examples["valid"], *examples["test"]],  # as many as a calibration needs
        "test": examples["test"][:20],
    }
    for split, documents in parts.items():
        write_lines(folder / f"news/{split}.jsonl", map(row_of, documents))
    write_lines(folder / "news.jsonl", map(row_of, examples["train"]))
    few = [row_of(each) for each in examples["test"][:12]]
    for name in ("new", "texts", "archive", "in/a", "in/b"):
        write_lines(folder / f"{name}.jsonl", few)
    write_lines(
        folder / "in.jsonl", ({**row, "checked": row["labels"][:1], "refused": []} for row in few)
    )
    write_lines(folder / "half.jsonl", ({**row, "labels": row["labels"][:1]} for row in few))
    write_lines(
        folder / "reviewed.jsonl", ({**row, "labels": [*row["labels"], "draft"]} for row in few)
    )
    lines = (f"{row['id']},{json.dumps(row['text'].splitlines()[0])}" for row in few)
    (folder / "untagged.csv").write_text("\n".join(["id,text", *lines]), encoding="utf-8")
    headed = (f"{json.dumps(row['text'].splitlines()[0])},{row['id']}" for row in few)
    (folder / "new.csv").write_text("\n".join(["title,body", *headed]), encoding="utf-8")
    for name in ("more.csv", "test.csv"):
        write_table(folder / name, parts["valid"])
    (folder / "small.json").write_text(json.dumps(SMALL))
    for method, places in MODELS.items():
        for place in places:
            taggers[method].save(folder / place)
    comparison, records = made_comparison(("seq2seq-rnn", "set-rnn"), 1, 60)
    comparison.save(folder / "results")
    for record in records:
        record.save(folder / "results")


def row_of(example):
    return {"id": example.id, "text": example.text, "labels": list(example.labels)}


def write_lines(file, rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_table(file, examples):
    with file.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("title", "body", "topics"))
        for each in examples:
            rows.writerow((*each.text.split("\n", 1), ";".join(each.labels) or "[]"))


def make_room(words):
    """Return a command whose output has room: pages show several ways to make one thing."""
    if words[1] in ("train", "update"):
        shutil.rmtree(f"{words[words.index('--out') + 1]}.run", ignore_errors=True)
    if words[1] in ("train", "predict", "mix", "distil", "update") and "--out" in words:
        return [*words, "--overwrite"]
    if words[1:3] == ["data", "split"]:
        return [*words[:3], "news.jsonl", "parts-of-it", *words[5:]]
    return words
