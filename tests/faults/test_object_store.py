"""Tag into a bucket of S3, as moto imitates it: the shards are those of a disk.

Needs the program moto_server (pip install 'moto[server]'), which is not among our dependencies;
$MOTO_SERVER may name it.
"""

import os
import shutil
import signal
import socket
import subprocess
import time

import pytest
from pyarrow import fs

import setrnn
from setrnn.data import newsroom
from setrnn.data.formats import write_examples
from setrnn.errors import DataError
from setrnn.scale.processes import Processes

SERVER = os.environ.get("MOTO_SERVER") or shutil.which("moto_server")
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(SERVER is None, reason="needs moto_server: pip install 'moto[server]'"),
]
TWO = setrnn.Crew(workers=2)


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A bucket with inputs, and its file system."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")  # moto asks for any
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{port}")
    command = [SERVER, "-H", "127.0.0.1", "-p", str(port)]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(port, server)
        system = fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}",
            scheme="http",
            allow_bucket_creation=True,
            allow_delayed_open=True,
        )
        system.create_dir("news")
        examples = list(newsroom.examples("test"))
        for name, part in (("a.jsonl", examples[:250]), ("b.parquet", examples[250:])):
            write_examples(part, tmp_path / "in" / name)
            copy(system, tmp_path / "in" / name, f"news/in/{name}")
        yield system
    finally:
        server.kill()
        server.wait()


def wait_for(port, server):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("moto_server does not start")


def copy(system, path, target):
    with system.open_output_stream(target) as stream:
        stream.write(path.read_bytes())


def read(system, done):
    """The shards of a folder, in their order."""
    return [
        system.open_input_file(f"{done.place.removeprefix('s3://')}/{name}").read()
        for name in done.files
    ]


def test_shards_in_a_bucket_are_those_of_a_disk(taggers, tmp_path, bucket, monkeypatch):
    taggers["br"].save(tmp_path / "model")

    def tag(inputs, out, **options):
        return setrnn.predict_files(
            tmp_path / "model", inputs, out, **{"shard_rows": 100, "crew": TWO} | options
        )

    on_disk = tag(
        [str(tmp_path / "in" / name) for name in ("a.jsonl", "b.parquet")], tmp_path / "t"
    )
    expected = [(tmp_path / "t" / name).read_bytes() for name in on_disk.files]
    submitted, submit = [], Processes.submit

    def submit_and_kill(self, task):
        submit(self, task)
        submitted.append(task)
        if len(submitted) == 3:
            child = next(each for each in self._children if each.task is task)
            os.kill(child.process.pid, signal.SIGKILL)

    monkeypatch.setattr(Processes, "submit", submit_and_kill)
    done = tag("s3://news/in/*", "s3://news/tags/")
    assert read(bucket, done) == expected

    submitted.clear()
    bucket.delete_file("news/tags/records/000001.json")
    again = tag("s3://news/in/*", "s3://news/tags/", crew=setrnn.Crew(workers=1))
    assert read(bucket, again) == expected
    assert [each.shard.number for each in submitted] == [1]
    names = {each.base_name for each in bucket.get_file_info(fs.FileSelector("news/tags"))}
    assert {name for name in names if name.startswith("shard-")} == {*again.files}

    with pytest.raises(DataError, match="shard_rows"):
        tag("s3://news/in/*", "s3://news/tags/", shard_rows=50)
    with pytest.raises(DataError, match="No file matches"):
        tag("s3://news/in/*.csv", "s3://news/other/")
