"""Slow, silent and talkative clients, over real connections."""

import json
import socket
import time
import urllib.error
import urllib.request
from contextlib import suppress

import pytest
from local_server import serving

from setrnn.serve import connections
from setrnn.serve.app import make_app
from setrnn.serve.connections import ConnectionLimits
from setrnn.serve.guards import ApiKeys
from setrnn.serve.registry import Registry
from setrnn.serve.work import Tagging

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def port(served):
    limits = ConnectionLimits(linger_seconds=0.5)
    with serving(make_app(Registry.of(*served)), limits=limits) as port:
        yield port


@pytest.fixture(scope="module")
def impatient_port(served):
    """A server that waits only for fractions of a second."""
    limits = ConnectionLimits(head_seconds=0.1, read_seconds=0.2, linger_seconds=0.1)
    with serving(make_app(Registry.of(*served)), limits=limits) as port:
        yield port


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=10)


@pytest.fixture
def connection(port):
    with connect(port) as connection:
        yield connection


def all_of(connection):
    """Read until the server closes."""
    found = b""
    while part := connection.recv(65_536):
        found += part
    return found


@pytest.mark.parametrize("said", [b"", b"GET /heal", HEAD])
def test_a_head_that_never_ends_is_not_waited_for(impatient_port, said):
    with connect(impatient_port) as connection:
        connection.sendall(said)
        start = time.monotonic()
        with suppress(ConnectionResetError):
            assert all_of(connection) == b""
        assert time.monotonic() - start < 5


def test_a_second_head_that_never_ends_is_not_waited_for(impatient_port):
    with connect(impatient_port) as connection:
        connection.sendall(HEAD + b"\r\n" + HEAD)
        start = time.monotonic()
        with suppress(ConnectionResetError):
            assert all_of(connection).count(b"HTTP/1.1 200") == 1
        assert time.monotonic() - start < 5


def test_a_long_request_is_waited_for(impatient_port, monkeypatch):
    run = Tagging.run
    monkeypatch.setattr(Tagging, "run", lambda *given: time.sleep(0.5) or run(*given))
    body = b'{"texts": ["x"]}'
    with connect(impatient_port) as connection:
        connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


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
    connection.sendall(HEAD + b"X-Filler: " + b"x" * (connections.MAX_HEAD_BYTES + 1))
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"urn:setrnn:problem:head-too-large" in answer


@pytest.mark.parametrize("n_headers", [10_000, 40_000])
def test_many_headers_are_answered_too_large(connection, n_headers):
    headers = b"".join(b"X-%d: a\r\n" % number for number in range(n_headers))
    connection.sendall(HEAD + headers + b"\r\n")
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"urn:setrnn:problem:head-too-large" in answer


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_client_that_sends_a_large_body_before_it_reads_gets_the_answer(port, is_chunked):
    body = b'{"texts": ["' + b"x" * 20_000_000 + b'"]}'
    content = iter([body[:10_000_000], body[10_000_000:]]) if is_chunked else body
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/tag", content, {"Content-Type": "application/json"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked, timeout=20)
    with refused.value as answer:
        assert answer.code == 413
        assert json.load(answer)["type"] == "urn:setrnn:problem:body-too-large"


def test_a_client_that_never_stops_sending_is_cut_off(impatient_port):
    with connect(impatient_port) as connection, suppress(ConnectionError):
        connection.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            connection.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        pytest.fail("it was not cut off")


def test_connections_beyond_the_limit_are_refused_until_others_are_closed(served, caplog):
    limits = ConnectionLimits(n_open=2)
    ask = HEAD + b"Connection: close\r\n\r\n"
    with serving(make_app(Registry.of(*served)), limits=limits) as port:
        first, second = connect(port), connect(port)
        with first, second:
            for _ in range(3):
                with connect(port) as refused:
                    refused.sendall(ask)
                    answer = all_of(refused)
                    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable")
                    assert b"urn:setrnn:problem:too-many-connections" in answer
                    assert b"retry-after: 1" in answer
            first.sendall(ask)
            assert all_of(first).startswith(b"HTTP/1.1 200")
            with connect(port) as third:
                third.sendall(ask)
                assert all_of(third).startswith(b"HTTP/1.1 200")
    lines = [each.message for each in caplog.records if "refused" in each.message]
    assert lines == ["connections: 1 refused, too many; 2 open"]  # the next line comes later


def test_a_long_body_is_no_long_head(connection):
    body = b'{"texts": ["' + b"x " * connections.MAX_HEAD_BYTES + b'"]}'
    head = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    connection.sendall(head + body)
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 422")  # too many words


def test_a_client_that_reads_no_answer_is_cut_off(impatient_port, caplog):
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.connect(("127.0.0.1", impatient_port))
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


def test_others_are_answered_meanwhile(port):
    silent = [connect(port) for _ in range(50)]
    with connect(port) as connection:
        connection.sendall(HEAD + b"Connection: close\r\n\r\n")
        assert all_of(connection).startswith(b"HTTP/1.1 200")
    for each in silent:
        each.close()


@pytest.mark.parametrize("piece", [b"X-a: bbbbb\r\n", b"X: " + b"a" * 1_000, b"1;" + b"e" * 1_000])
def test_what_comes_around_a_body_is_bounded_too(connection, piece):
    connection.sendall(
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + (b"" if piece[0:1] == b"1" else b"0\r\n")
    )
    many = piece * (8_192 // len(piece) + 1)
    with suppress(ConnectionError):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            connection.sendall(many)
        pytest.fail("it was not cut off")


def test_a_body_in_the_smallest_chunks_is_read(connection):
    body = b'{"texts": ["' + b"x" * 50_000 + b'"]}'
    head = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in body)
    connection.sendall(head + chunks + b"0\r\nX-Checksum: 1\r\n\r\n")
    assert all_of(connection).startswith(b"HTTP/1.1 200")


def test_a_client_that_sends_on_after_the_answer_is_cut_off(connection):
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    assert b"200 OK" in all_of(connection)  # and then it is closed


def test_a_connection_serves_one_request_after_the_other(connection):
    body = b'{"texts": ["' + b"x " * 5_000 + b'"]}'
    post = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    connection.sendall(20 * post + HEAD + b"Connection: close\r\n\r\n")
    assert all_of(connection).count(b"HTTP/1.1 200") == 21


@pytest.mark.parametrize("length", [b"100", b"10000000"])
def test_a_refusal_before_the_body_closes_the_connection(served, tmp_path, length):
    (tmp_path / "keys").write_text("0123456789abcdef")
    app = make_app(Registry.of(*served), keys=ApiKeys(tmp_path / "keys"))
    limits = ConnectionLimits(linger_seconds=0.1)
    with serving(app, limits=limits) as port, connect(port) as connection:
        connection.sendall(POST + b"Content-Length: %s\r\n\r\n" % length)
        answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answer


def test_a_body_that_is_too_large_closes_the_connection(connection):
    connection.sendall(POST + b"Content-Length: 10000000\r\n\r\n")
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer


def test_what_is_not_http_is_refused(connection):
    connection.sendall(b"zebrafish\r\n\r\n")
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"zebrafish" not in answer
