"""`setrnn cache` on the command line."""

import setrnn as library


def test_the_cache_is_listed_and_cleared(setrnn, larger, tmp_path, monkeypatch):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    prepared = library.prepare(larger)
    result = setrnn("cache")
    assert result.code == 0, result.err
    assert prepared.folder.name in result.out
    assert "320" in result.out
    assert "1 folders" in result.err
    assert "Removed 1 folders" in setrnn("cache", "--clear").err
    assert not prepared.folder.exists()
    assert not setrnn("cache").out
