"""`setrnn --install-completion`, and what the shell is then offered."""

import sys

import pytest

from setrnn.cli.app import COMMANDS


@pytest.fixture
def offered(setrnn, monkeypatch):
    """Return what a shell is offered for the last word of a line."""
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "", raising=False)

    def complete(*words):
        monkeypatch.setenv("_SETRNN_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["setrnn", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return setrnn().out.split()

    return complete


def test_completion_is_installed_and_is_told_of(setrnn, monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "--install-completion" in setrnn("--help").out
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert setrnn("--install-completion", "bash").code == 0
    script = tmp_path / ".bash_completions" / "setrnn.sh"
    assert "_SETRNN_COMPLETE" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


def test_commands_and_their_options_are_offered(offered):
    assert offered("") == list(COMMANDS)
    assert offered("ev") == ["evaluate"]
    assert offered("train", "--me") == ["--method", "--measure"]
    assert "split" in offered("data", "")
    assert "--label-separator" in offered("data", "info", "--la")
