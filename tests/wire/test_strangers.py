# SPDX-License-Identifier: BSD-3-Clause
"""Clients of other protocols are answered in their own words."""

import http.client
import socket
import ssl
import struct

import pytest

from harness import wait_until

BINARY = struct.Struct("!BBHBBHIIQ")


def logged(daemon, text):
    wait_until(f"{text!r} is in the log", lambda: text in daemon.log())


def ask(daemon, data, cut=None):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(data), cut or len(data)):
            sock.sendall(data[start : start + (cut or len(data))])
        if data[0] == 0x80:
            sock.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    return answer


@pytest.mark.parametrize("cut", [None, 1, 23])
@pytest.mark.parametrize("opcode", [0x00, 0x01, 0x09, 0x0A, 0x0B, 0x20])
def test_binary_protocol(daemon, opcode, cut):
    """get, set, getq, noop, version, sasl: an answer that every client takes for a failure."""
    key = b"key" if opcode in (0x00, 0x01, 0x09) else b""
    request = BINARY.pack(0x80, opcode, len(key), 0, 0, 0, len(key), 0xFEEDBEEF, 0)
    answer = ask(daemon, request if cut else request + key, cut)
    magic, again, key_len, extras, _, status, body, opaque, cas = BINARY.unpack(answer[:24])
    assert (magic, again, key_len, extras, status, opaque, cas) == (
        0x81, opcode, 0, 0, 0x81, 0xFEEDBEEF, 0)
    assert len(answer) == 24 + body and b"binary protocol" in answer[24:]
    with daemon.conn() as conn:
        assert conn.stats()["other_protocols"] == "1"
    logged(daemon, "speaks memcached's binary protocol; switch it off there (PHP: ")


def test_each_request_of_the_binary_protocol_is_answered(daemon):
    """Bodies are no commands, and no text is spoken behind them."""
    body = b"\r\nset victim 0 0 1\r\nx\r\n"
    one = BINARY.pack(0x80, 1, 3, 0, 0, 0, len(body), 7, 0) + body
    answer = ask(daemon, one * 3)
    assert answer == answer[: len(answer) // 3] * 3 and answer.startswith(b"\x81\x01")
    with daemon.conn() as conn:
        assert conn.get("victim") is None
        assert conn.stats()["other_protocols"] == "1"


def test_a_header_of_the_binary_protocol_that_is_cut_short(daemon):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as sock:
        sock.sendall(b"\x80\x0b\0\0")
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b""


def test_tls(daemon):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as sock:
        with pytest.raises(ssl.SSLError, match="(?i)handshake failure"):
            context.wrap_socket(sock)
    logged(daemon, "begins with a TLS handshake")


def test_http(daemon):
    client = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=10)
    client.request("GET", "/metrics")
    response = client.getresponse()
    assert response.status == 400
    assert response.read() == b"This port speaks the text protocol of memcached, not HTTP.\n"
    logged(daemon, "sends HTTP")


def test_redis(daemon):
    assert ask(daemon, b"*1\r\n$4\r\nPING\r\n").startswith(b"-ERR ")
    logged(daemon, "speaks the protocol of Redis")


@pytest.mark.parametrize("line", [b"\x80\x0b" + bytes(22), b"\x16\x03\x01", b"*1"])
def test_not_behind_a_request(conn, line):
    """There it is a bad line, as for memcached."""
    assert conn.cmd("mn") == b"MN"
    conn.send(line, b"\r\n")
    assert conn.line() == b"ERROR"
    assert conn.cmd("mn") == b"MN"


def test_many_are_one_line_of_log_a_second(daemon):
    for _ in range(50):
        ask(daemon, b"\x16\x03\x01")
    with daemon.conn() as conn:
        assert conn.stats()["other_protocols"] == "50"
    daemon.wait_for_log("TLS handshake")
    assert daemon.log().count("TLS handshake") < 50
