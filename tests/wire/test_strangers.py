# SPDX-License-Identifier: BSD-3-Clause
"""Clients of other protocols are answered in their own words."""

import http.client
import socket
import ssl

import pytest

from harness import wait_until


def logged(daemon, text):
    wait_until(f"{text!r} is in the log", lambda: text in daemon.log())


def ask(daemon, data, cut=None):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(data), cut or len(data)):
            sock.sendall(data[start : start + (cut or len(data))])
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    return answer


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
    assert response.read() == b"This port speaks the protocols of memcached, not HTTP.\n"
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
