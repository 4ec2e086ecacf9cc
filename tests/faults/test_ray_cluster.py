"""Tag Parquet files on a Ray cluster of this machine: each row once, also after a kill."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from children import descendants

import setrnn
from setrnn.errors import ConfigError, DataError
from setrnn.tagging.ray_cluster import LOCAL_ONLY

N_FILES, N_ROWS = 3, 400
KILLS = (2, 20)  # written files after which the command is killed, one kill after the other


def tag(folder, **how):
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    place, out = f"{folder}/in/*.parquet", f"{folder}/tags/"
    return setrnn.predict_files(folder / "model", place, out, ray="local", chunk_rows=20, **how)


def wait_for_files(folder, n_files, process):
    while process.is_alive() and len(list(folder.glob("tags/rows/*.parquet"))) < n_files:
        time.sleep(0.05)


def listening_addresses(pids):
    """The addresses, as the kernel writes them, at which processes accept connections."""
    found = set()
    for pid in pids:
        places = Path(f"/proc/{pid}/fd").iterdir()
        sockets = {str(each.readlink()) for each in places if each.is_symlink()}
        for table in ("tcp", "tcp6"):
            rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
            for _, local, _, state, *rest in map(str.split, rows):
                if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                    found.add(local.partition(":")[0])
    return found


@pytest.mark.faults
def test_rows_are_written_once_after_kills(taggers, tmp_path, monkeypatch, tries):
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")  # is not contacted
    monkeypatch.setenv(LOCAL_ONLY, "0")  # ray may be imported before `connect` is called
    ray = pytest.importorskip("ray")
    taggers["br"].save(tmp_path / "model")
    (tmp_path / "in").mkdir()
    for number in range(N_FILES):  # with the same ids in all files, and rows without one
        rows = [{"id": str(n) if n % 2 else None, "text": f"storm {n}"} for n in range(N_ROWS)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"in/{number}.parquet")
    n_struck = 0
    for n_files in KILLS:
        process = multiprocessing.get_context("spawn").Process(target=tag, args=(tmp_path,))
        process.start()
        wait_for_files(tmp_path, n_files, process)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        n_struck += process.exitcode == -signal.SIGKILL
    try:
        done = tag(tmp_path)
        addresses = listening_addresses(descendants(os.getpid()))
        assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1
        assert addresses
        table = pq.read_table(tmp_path / "tags/rows")
        assert done.n_documents == table.num_rows == N_FILES * N_ROWS
        assert len(set(table["row_hash"].to_pylist())) == N_FILES * N_ROWS
        undisturbed = taggers["br"].tag([f"storm {n}" for n in range(N_ROWS)])
        expected = {
            f"storm {n}": (each.labels, each.probability) for n, each in enumerate(undisturbed)
        }
        rows = table.to_pylist()
        with tries("kill -9 of the command, again and again", "predict --ray") as found:
            same = all(
                (tuple(row["labels"]), row["probability"]) == expected[row["text"]] for row in rows
            )
            for _ in range(n_struck):
                found.add([] if same else ["other predictions"])
            for _ in range(len(KILLS) - n_struck):
                found.add_late()
        assert tag(tmp_path).files == done.files  # nothing is written again
        with pytest.raises(ConfigError, match="top"):
            tag(tmp_path, top=2)
        damaged = tmp_path / "tags" / done.files[0]
        damaged.write_bytes(damaged.read_bytes()[:1000])
        with pytest.raises(DataError, match=r"can be read.*Remove .*tags/"):
            tag(tmp_path)
        damaged.unlink()
        with pytest.raises(DataError, match=r"rows instead of.*Remove .*tags/"):
            tag(tmp_path)
    finally:
        ray.shutdown()
