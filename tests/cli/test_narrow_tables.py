import pytest

from setrnn.cli import tables
from setrnn.cli.terminal import Terminal

NAMES = ("br-support, strong penalty", "vinyals-max-direct")
NUMBERS = {f"measure-F{n}": f"{n / 100:.4f}" for n in range(1, 9)}


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_narrow_terminal_shows_whole_names_and_numbers_and_says_what_it_leaves_out(
    width, monkeypatch, capsys
):
    terminal = Terminal()
    terminal.width = width
    monkeypatch.setattr(tables, "stdout", terminal)
    rows = [[name, *NUMBERS.values()] for name in NAMES]
    tables.show_table("", ["system", *NUMBERS], rows)
    printed = capsys.readouterr().out
    assert all(word in printed for name in NAMES for word in name.split())
    shown = [name for name, number in NUMBERS.items() if number in printed]
    assert len(shown) >= 1
    assert ("Not shown" in printed) == (len(shown) < len(NUMBERS))
    assert all(name in printed.replace("\n", " ") for name in NUMBERS)
    assert max(map(len, printed.splitlines())) <= width
