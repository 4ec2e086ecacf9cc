"""Clients that are slow, silent, or say too much, over real connections."""

import socket
import threading
import time
from contextlib import suppress

import pytest
import uvicorn

from setrnn.serve import protocol
from setrnn.serve.app import make_app
from setrnn.serve.registry import Registry

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server(served):
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        make_app(Registry.of(*served)), http=protocol.PatientProtocol, ws="none", log_config=None
    )
    server = uvicorn.Server(config)
    server.port = listener.getsockname()[1]
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    yield server
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def connection(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        yield connection


def all_of(connection):
    """Read until the server closes."""
    found = b""
    while part := connection.recv(65_536):
        found += part
    return found


@pytest.mark.parametrize("said", [b"", b"GET /heal", HEAD])
def test_a_head_that_never_ends_is_not_waited_for(server, monkeypatch, said):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(said)
        start = time.monotonic()
        with suppress(ConnectionResetError):
            assert all_of(connection) == b""
        assert time.monotonic() - start < 5


def test_a_head_in_pieces_is_read(connection):
    for piece in (HEAD[:5], HEAD[5:20], HEAD[20:], b"Connection: close\r\n\r\n"):
        connection.sendall(piece)
        time.sleep(0.01)
    assert all_of(connection).startswith(b"HTTP/1.1 200")


def test_a_head_without_end_is_refused(connection):
    connection.sendall(HEAD)
    answer = b""
    try:
        for _ in range(1_000):
            connection.sendall(b"X-Filler: " + b"x" * 16_000 + b"\r\n")
        answer = all_of(connection)
    except ConnectionError:  # it no longer listens
        pass
    assert b"200 OK" not in answer


def test_a_head_of_some_length_is_answered_too_large(connection):
    connection.sendall(HEAD + b"X-Filler: " + b"x" * (protocol.MAX_HEAD_BYTES + 1))
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"urn:setrnn:problem:head-too-large" in answer


def test_a_long_body_is_no_long_head(connection):
    body = b'{"texts": ["' + b"x " * protocol.MAX_HEAD_BYTES + b'"]}'
    head = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    connection.sendall(head + body)
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 422")  # too many words


def test_a_client_that_takes_no_answer_is_cut_off(server, monkeypatch, caplog):
    monkeypatch.setattr(protocol, "LISTEN_SECONDS", 0.2)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.connect(("127.0.0.1", server.port))
    with connection:
        connection.settimeout(10)
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with suppress(ConnectionError):
            connection.sendall(ask * 200)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                connection.sendall(ask)
                time.sleep(0.02)
            pytest.fail("it was not cut off")
    assert "failed" not in caplog.text


def test_others_are_answered_meanwhile(server):
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(HEAD + b"Connection: close\r\n\r\n")
        assert all_of(connection).startswith(b"HTTP/1.1 200")
    for each in silent:
        each.close()


@pytest.mark.parametrize("piece", [b"X-a: bbbbb\r\n", b"X: " + b"a" * 1_000, b"1;" + b"e" * 1_000])
def test_what_comes_around_a_body_is_bounded_too(connection, piece):
    connection.sendall(
        b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + (b"" if piece[0:1] == b"1" else b"0\r\n")
    )
    many = piece * (8_192 // len(piece) + 1)
    with suppress(ConnectionError):
        for _ in range(1_000):  # 8 MB
            connection.sendall(many)
        pytest.fail("it read on")


def test_a_body_in_the_smallest_chunks_is_read(connection):
    body = b'{"texts": ["' + b"x" * 50_000 + b'"]}'
    head = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in body)
    connection.sendall(head + chunks + b"0\r\nX-Checksum: 1\r\n\r\n")
    assert all_of(connection).startswith(b"HTTP/1.1 200")


def test_who_goes_on_sending_after_the_answer_is_left(connection):
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    assert b"200 OK" in all_of(connection)  # and then it is closed


def test_a_connection_serves_one_request_after_the_other(connection):
    body = b'{"texts": ["' + b"x " * 5_000 + b'"]}'
    post = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    post += b"Content-Length: %d\r\n\r\n" % len(body) + body
    connection.sendall(20 * post + HEAD + b"Connection: close\r\n\r\n")
    assert all_of(connection).count(b"HTTP/1.1 200") == 21
