import shutil
import socket
import sys

import pytest

from setrnn.errors import MissingExtraError


def one_line(result):
    assert result.code == 1
    assert len(result.error_lines) == 1
    return result.error_lines[0]


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("--max-texts", "0", 2),
        ("--batch-ms", "-1", 2),
        ("--api-key-file", "none", 1),
        ("--allow-host", "http://x/", 1),
    ],
)
def test_bad_settings_are_refused_before_anything_is_loaded(setrnn, tmp_path, option, value, code):
    result = setrnn("serve", tmp_path, option, value)
    assert result.code == code
    assert "Listening" not in result.err


@pytest.mark.parametrize("damaged", ["config.json", "model.safetensors"])
def test_a_model_that_cannot_be_loaded_is_not_said_to_be_served(
    setrnn, br_model, tmp_path, damaged
):
    model = shutil.copytree(br_model, tmp_path / "model")
    (model / damaged).write_bytes(b"{")
    result = setrnn("serve", model, "--port", "0")
    assert result.code == 1
    assert result.error_lines[-1].startswith("error: ")
    assert "Listening" not in result.err


def test_listening_to_everyone_without_a_key_is_warned_of(setrnn, br_model, tmp_path, monkeypatch):
    greetings = []
    monkeypatch.setattr("setrnn.serve.server.serve", lambda *given: greetings.append(given[-1]))
    command = ("serve", br_model, "--host", "0.0.0.0", "--port", "0")
    result = setrnn(*command)
    assert "warning: anyone who can reach this address" in result.err
    (tmp_path / "key").write_text("0123456789abcdef")
    result = setrnn(*command, "--api-key-file", tmp_path / "key")
    assert "requests need an API key" in greetings[-1]
    assert "warning" not in result.err


def test_without_the_extra_it_is_named(setrnn, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    said = one_line(setrnn("serve", tmp_path))
    assert str(MissingExtraError("fastapi", "serve", "Serving")) in said
    assert "pip install 'setrnn[serve]'" in said


def test_a_port_in_use_is_refused(setrnn, br_model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = setrnn("serve", br_model, "--port", port)
    assert f"Cannot listen on 127.0.0.1 port {port}: Address already in use" in one_line(result)
    assert "Loading" not in result.err
