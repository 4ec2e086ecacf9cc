"""What cannot be done is refused in one line that says why, and nothing is written."""

import pytest

NETWORK = "--method set-rnn --set vectors.source=none"
CALIBRATE, EXPLAIN = "calibrate br data", "explain set-rnn --text goal"
EXPORTS = "exports --text-field title --labels-field listed_in"
KNOWN = "predict br texts.jsonl --out o.jsonl --present-field right"
REFUSED = {
    # Arguments
    "train data --method bre --out m": "no method 'bre'. Did you mean 'br'?",
    "train data --method mixture --out m": "setrnn mix",
    "train data --out m --measure instance-f2": "instance-f1",
    "train data --method br --out m --set clasical.l1=3": "Did you mean 'classical'?",
    "train data --method br --out m --set classical.l1=much": "'classical.l1' must be a number",
    "train data --method br --out m --set classical.l1": "must be key=value",
    "train data --method br --out m --preset papers": "Did you mean 'paper'?",
    "train data --method br --out m --config nowhere.json": "nowhere.json cannot be read",
    "train data --method br --out m --format jsn": "Did you mean 'jsonl'?",
    "train data --method br --out m --seed -1": "'seed' must be between",
    "train data --method br --out m --no-valid --valid data/valid.jsonl": "valid",
    f"train nowhere {NETWORK} --out m --set model.encoder_units=1000000000": "must be between",
    f"train nowhere {NETWORK} --out m --set training.batch_size=10000000000000": "between",
    f"train data {NETWORK} --out m --device gpu": "no device 'gpu'",
    "predict br": "either INPUT or --text",
    "predict br data --text goal": "either INPUT or --text",
    "predict br data --out o.jsonl --rule sett": "Did you mean 'set'?",
    "predict br data --out o.jsonl --rule sequence": "'br' does not. Use rule 'set'",
    "predict br data --out o.jsonl --rule label-f1": "setrnn calibrate MODEL VALID",
    "predict br data --out o.jsonl --top 1000000000": "top must be",
    "predict set-rnn data --out o.jsonl --device gpu": "no device 'gpu'",
    "predict br data --out o.jsonl --min-labels 3 --max-labels 2": "min_labels is 3",
    "predict br data --out o.jsonl --max-labels -1": "max_labels must be 0 or more",
    "predict br data --out o.jsonl --require nothing": "no label 'nothing'",
    "predict br data --out o.jsonl --closed": "--hierarchy",
    "predict br data --out o.docx": "predict writes .jsonl, .csv, .xlsx and .parquet",
    "predict br - data --out o.jsonl": "- is standard input",
    "predict br - --out parts/": "are for files",
    f"{KNOWN} --rule f1": "leave out --rule",
    f"{KNOWN} --absent-field right": "Name two fields",
    f"{KNOWN} --require football": "Required labels belong into",
    "predict br --text goal --present-field right": "--text has no fields",
    "evaluate br data --rule sequence --json s.json": "'br' does not",
    "evaluate br data --min-labels 10000 --json s.json": "min_labels is 10000",
    "evaluate br data --split dev --json s.json": "has no 'dev' part",
    f"{EXPLAIN} --top 0": "top must be",
    f"{EXPLAIN} --rule sett": "Did you mean 'set'?",
    f"{EXPLAIN} --label footbal": "Did you mean 'football'?",
    f"{EXPLAIN} --label football --rule set": "Leave them out, or the labels",
    f"{EXPLAIN} --label football --no-label": "--no-label means the empty set",
    f"{CALIBRATE} --target-accuracy 1.5": "must lie between 0 and 1, got 1.5",
    f"{CALIBRATE} --confidence 1": "The confidence must lie between 0 and 1",
    f"{CALIBRATE} --figure f.jpeg": "--figure must end in .svg, .png, .pdf",
    "distil br data --out m --method pcc": "student",
    "distil br data --out m --set distillation.true_share=2": "between",
    "update br few.jsonl --data data --out m --set model.dropout=0.1": "training",
    "compare data --out c --methods set-rn": "Did you mean 'set-rnn'",
    "compare data --out c --budget 0": "budget",
    "compare data --out c --quick --preset paper": "quick",
    "compare data --out c --add mine": "NAME=FILE",
    "compare data --out c --add a=x.jsonl --add a=y.jsonl": "'a' twice",
    "push br pcc place": "ends in /",
    # Files and folders
    "train nowhere --method br --out m": "nowhere",
    "train data --method br --out no-model": "is not a model",
    "train unlabelled.jsonl --method br --no-valid --out m": "there is nothing to learn",
    "train data --method br --hierarchy cycle.csv --out m": "cycle",
    "train data --method br --hierarchy strange.csv --out m": "none of",
    "predict no-model data --out o.jsonl": "is not a model",
    "predict br texts.jsonl --out texts.jsonl": "is the input itself",
    "predict br texts.jsonl --out no-model": "is a folder",
    "predict br bad.jsonl --out o.jsonl": "bad.jsonl line 2: ",
    "evaluate no-model data": "is not a model",
    "show no-model": "is not a model",
    "calibrate br few.jsonl": "20 documents are too few to calibrate on",
    "calibrate br data --split train": "--allow-training-documents",
    "calibrate hub:me/news data": "setrnn push",
    "mix br pcc --data nowhere --out m": "nowhere",
    "mix br mixture --data data --out m": "is a mixture",
    "mix br pcc --data data --out no-model": "not a model",
    "mix br pcc --data data --out br": "one of the models",
    "distil nowhere data --out m": "nowhere",
    "distil br data --out br": "teacher itself",
    "distil br data --out m --unlabelled none.jsonl": "none.jsonl",
    "update br few.jsonl --data data --out br": "itself",
    "update br few.jsonl --out m": "--data",
    "compare data/train.jsonl --methods br --out c": "'test' part",
    "report no-model": "no comparison",
    "data convert data data/train.csv": "must end in",
    "data convert data no-model": "exists already",
    "data convert texts.jsonl texts.jsonl": "the input itself",
    "data split data/train.jsonl parts --valid 0.7 --test 0.5": "train -0.2, valid 0.7, test 0.5",
    "data split data/train.jsonl parts --valid -0.2": "train 1.1, valid -0.2, test 0.1",
    "data convert bad.jsonl o.jsonl": "bad.jsonl line 1: 'labels' is missing",
    "data convert bad.jsonl parts": "bad.jsonl line 1: 'labels' is missing",
    "data info nowhere.jsonl --on-bad-row skip": "does not exist",
    "data split data parts": "keep it with --valid 0",
    "data split data/train.jsonl parts --seed -1": "'seed' must be between",
    "data choose br texts.jsonl --out texts.jsonl": "the input itself",
    "data choose br empty.jsonl --out o.csv": "documents",
    "data doubt data/train.jsonl --out data/train.jsonl": "the input itself",
    "data doubt data --method br,set-rnn --out o.csv": "br, br-support, pcc, got method 'set-rnn'",
    "data info exports": "it has show_id, title, ",
    f"data info {EXPORTS}": "--label-separator ','",
    f"train {EXPORTS} --method br --out m": "--label-separator ','",
    f"evaluate br {EXPORTS} --json s.json": "--label-separator ','",
    "train empty.jsonl --method br --out m --on-bad-row skip": "holds no documents",
    "serve no-model --port 0": "is not a model",
    "serve br nowhere --port 0": "is not a model",
    "serve a/model b/model": "named 'model'",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_refusal_is_one_line_and_changes_nothing(run, world, line):
    before = contents(world)
    ended = run(line, code=1)
    (said,) = ended.error_lines
    assert REFUSED[line] in said
    assert said == ended.err.splitlines()[-1]
    assert contents(world) == before


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tran", "Did you mean 'train'?"),
        ("train data", "Missing"),
        ("methods --no-such-option", "No such option"),
        ("data no-such-command", "No such command"),
        ("predict --top x", "valid integer"),
        ("data info data --on-bad-row ignore", "--on-bad-row"),
        ("mix br pcc --out m", "--data"),
        ("data choose br data --out o.csv --n 0", "--n"),
        ("data doubt data --out o.csv --folds 1", "--folds"),
    ],
)
def test_wrong_usage_exits_with_2(run, line, said):
    assert said in run(line, code=2).err


def test_only_debug_shows_the_traceback(setrnn, world):
    plain, debug = (setrnn("show", "no-model", *more) for more in ([], ["--debug"]))
    assert plain.code == debug.code == 1
    assert "Traceback" not in plain.err
    assert "Traceback" in debug.err
