import json

import pytest

from made_comparison import made_comparison


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A comparison; its report has no figures, as drawing takes most of the time."""
    monkeypatch.setattr("setrnn.report.build.draw_figures", lambda comparison, records: [])
    comparison, records = made_comparison(("br", "set-rnn"), n_seeds=1, n_documents=30)
    comparison.save(tmp_path / "comparison")
    for record in records:
        record.save(tmp_path / "comparison")
    return tmp_path / "comparison"


def test_it_shows_the_systems_and_names_the_page(setrnn, folder):
    result = setrnn("report", folder)
    assert result.code == 0, result.err
    assert "set-rnn" in result.out
    assert "instance-F1" in result.out
    assert str(folder / "report" / "index.html") in result.err
    assert (folder / "report" / "index.html").is_file()
    assert "synthetic" in result.err


def test_out_takes_it_elsewhere(setrnn, folder, tmp_path):
    assert setrnn("report", folder, "--out", tmp_path / "there").code == 0
    assert (tmp_path / "there" / "index.html").is_file()
    assert not (folder / "report").exists()


def test_the_likelihood_is_a_column_and_deviations_need_a_wide_terminal(setrnn, folder):
    result = setrnn("report", folder)
    assert "p(true" in result.out
    assert "±" not in result.out


def test_no_comparison_there_is_one_line(setrnn, tmp_path):
    result = setrnn("report", tmp_path)
    assert result.code == 1
    (line,) = result.error_lines
    assert "no comparison" in line
    assert "setrnn compare --out" in line


def test_no_runs_yet_is_one_line(setrnn, folder):
    for file in (folder / "runs").iterdir():
        file.unlink()
    result = setrnn("report", folder)
    assert result.code == 1
    (line,) = result.error_lines
    assert "no runs yet" in line


def test_against_itself_nothing_has_drifted(setrnn, folder, tmp_path):
    setrnn("report", folder, "--out", tmp_path / "stored")
    result = setrnn("report", folder, "--against", tmp_path / "stored")
    assert result.code == 0, result.err
    assert "0 of 18 scores have drifted" in result.err
    assert "same" in (folder / "report" / "tables" / "drift.csv").read_text()
    assert "drift.csv" in (folder / "report" / "index.html").read_text(encoding="utf-8")


def test_against_a_better_result_the_drift_and_the_settings_are_shown(setrnn, folder, tmp_path):
    setrnn("report", folder, "--out", tmp_path / "stored")
    file = tmp_path / "stored" / "summary.json"
    summary = json.loads(file.read_text())
    summary["scores"]["br"]["set"]["label_f1"]["mean"] += 0.2
    summary["setups"]["environment"]["common"]["torch"] = "1.0"
    file.write_text(json.dumps(summary))
    result = setrnn("report", folder, "--against", tmp_path / "stored")
    assert result.code == 1
    (line,) = [each for each in result.out.splitlines() if each.startswith("drift:")]
    assert "br, label-F1 by set" in line
    assert "torch: 1.0 → 2.13.0" in result.err


def test_nothing_stored_is_one_line_and_writes_nothing(setrnn, folder, tmp_path):
    result = setrnn("report", folder, "--against", tmp_path / "no")
    assert result.code == 1
    assert "summary.json" in result.error_lines[0]
    assert not (folder / "report").exists()
