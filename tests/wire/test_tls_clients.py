# SPDX-License-Identifier: BSD-3-Clause
"""Clients over TLS: a part of the other tests once more, stock clients, and what only TLS has."""

import signal
import socket
import ssl
import subprocess
import time

import pytest
from pymemcache.client.base import Client

import test_answers
import test_deadlines
import test_list_packets
import test_multiget
import test_order
import test_pass_large
import test_pop
from couchbase_support import adopt
from harness import HOST, Conn, UnixConn, wait_until
from tls_support import client_context, make_certificate

FIXTURES = {"conn", "daemon", "memcached", "memcacheds", "start_daemon"}
# They connect by themselves, without TLS.
NOT_HERE = {
    "test_a_pipeline_of_10000_requests",
    "test_requests_of_a_client_that_has_half_closed",
}

for each in (test_answers, test_deadlines, test_list_packets, test_multiget, test_order,
             test_pass_large, test_pop):
    adopt(each, FIXTURES, NOT_HERE, globals())


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls") / "proxy.pem")


@pytest.fixture(autouse=True)
def everything_by_tls(monkeypatch, certificate):
    monkeypatch.setenv("MCLISTD_TEST_TLS", str(certificate))


def plain_conn(daemon):
    return Conn(daemon.port)


def raw(daemon):
    return socket.create_connection((HOST, daemon.port), timeout=10)


# --- stock clients ---


def test_pymemcache(daemon, certificate):
    client = Client((HOST, daemon.port), tls_context=client_context(certificate))
    assert client.set("a", b"x" * 100_000, noreply=False)
    assert client.get("a") == b"x" * 100_000
    client.close()


@pytest.mark.parametrize("version", ["-tls1_3", "-tls1_2"])
def test_openssl(daemon, certificate, version):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"{HOST}:{daemon.port}", "-CAfile", certificate,
         "-verify_return_error", "-quiet", version],
        input=b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\n", capture_output=True, timeout=30)
    assert done.stdout == b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"


def test_versions_before_1_2_are_refused(daemon):
    done = subprocess.run(["openssl", "s_client", "-connect", f"{HOST}:{daemon.port}", "-tls1_1",
                           "-cipher", "ALL:@SECLEVEL=0"], input=b"", capture_output=True)
    assert done.returncode != 0
    daemon.wait_for_log("closed: TLS: unsupported protocol")


def test_a_client_that_renegotiates_is_not_followed(daemon, certificate):
    client = subprocess.Popen(["openssl", "s_client", "-connect", f"{HOST}:{daemon.port}", "-CAfile",
                               certificate, "-tls1_2"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    client.stdin.write(b"mn\r\n")
    client.stdin.flush()
    time.sleep(0.2)
    client.stdin.write(b"R\n")
    out, _ = client.communicate(timeout=30)
    assert b"no renegotiation" in out or b"handshake failure" in out


# --- certificates ---


def test_certificates_of_clients(memcached, start_daemon, certificate, tmp_path):
    own = make_certificate(tmp_path / "own.pem", "DNS:client", "client")
    daemon = start_daemon([memcached], config={"proxy": {"tls_client_ca": own}})
    with daemon.conn(tls=client_context(certificate, own)) as conn:
        assert conn.cmd("mn") == b"MN"
    other = make_certificate(tmp_path / "other.pem", "DNS:client", "client")
    for context in (client_context(certificate), client_context(certificate, other)):
        with pytest.raises((ssl.SSLError, ConnectionResetError, EOFError)):
            with daemon.conn(tls=context) as conn:
                conn.cmd("mn")
    daemon.wait_for_log("closed: TLS: peer did not return a certificate")
    with daemon.conn(tls=client_context(certificate, own)) as conn:
        wait_until("both are counted", lambda: int(conn.stats()["tls_failures"]) >= 2)


def test_a_certificate_is_read_anew(memcached, start_daemon, certificate, tmp_path):
    path = tmp_path / "proxy.pem"
    path.write_text(certificate.read_text())
    daemon = start_daemon([memcached], config={"proxy": {"tls_cert": path, "tls_key": path}})
    old = daemon.conn()
    assert old.cmd("mn") == b"MN"
    other = make_certificate(tmp_path / "other.pem")
    path.write_text(other.read_text().split("-----BEGIN CERT")[0] + certificate.read_text().split(
        "-----END PRIVATE KEY-----\n")[1])
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log(r"reload refused.*\[proxy\]: tls_key: .* holds no key of tls_cert")
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"
    path.write_text(other.read_text())
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log("configuration read anew")
    with daemon.conn(tls=client_context(other)) as conn:
        assert conn.cmd("mn") == b"MN"
    assert old.cmd("mn") == b"MN"
    with pytest.raises(ssl.SSLError):
        daemon.conn()


def test_days_left_are_shown(memcached, start_daemon, tmp_path):
    own = make_certificate(tmp_path / "own.pem", days=100)
    daemon = start_daemon([memcached], config={
        "admin": {"listen": f"unix:{tmp_path}/admin"},
        "listener other": {"listen": f"unix:{tmp_path}/socket", "tls_cert": own, "tls_key": own}})
    with daemon.conn() as conn:
        stats = conn.stats()
    assert stats["tls:proxy:days_left"] in ("1", "2")
    left = stats["tls:listener:other:days_left"]
    assert left in ("99", "100")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{tmp_path}/admin")
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = client.makefile().read()
    assert f'mclistd_tls_certificate_days{{owner="[listener other]",file="{own}"}} {left}\n' in text


# --- those that do not speak it, or not to the end ---


def test_a_plain_client_is_told(daemon):
    with plain_conn(daemon) as conn:
        conn.send(b"get a\r\n")
        assert conn.line() == b"CLIENT_ERROR this address wants TLS"
        assert conn.is_closed()
    daemon.wait_for_log(r"client 127.0.0.1 port \d+ closed: it speaks without TLS")
    with daemon.conn() as conn:
        assert conn.stats()["other_protocols"] == "1"


def test_a_listener_without_tls_beside_one_with(memcached, start_daemon, tmp_path):
    daemon = start_daemon([memcached], config={
        "listener local": {"listen": f"unix:{tmp_path}/socket", "tls_cert": ""}})
    with UnixConn(tmp_path / "socket") as conn:
        conn.send("mn\r\n")
        assert conn.socket.recv(100) == b"MN\r\n"
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"


def test_who_only_looks_is_not_counted(daemon):
    for _ in range(5):
        raw(daemon).close()
    with daemon.conn() as conn:
        assert conn.stats()["tls_failures"] == "0"
    assert "closed: TLS" not in daemon.log()


def test_garbage_after_a_good_beginning(daemon):
    with raw(daemon) as client:
        client.sendall(b"\x16\x03\x01\x00\x05" + b"\xff" * 5 + b"more")
        with pytest.raises((ConnectionResetError, StopIteration)):
            while client.recv(1000):
                pass
            raise StopIteration
    daemon.wait_for_log(r"client 127.0.0.1 port \d+ closed: TLS: ")
    with daemon.conn() as conn:
        assert conn.stats()["tls_failures"] == "1"


@pytest.mark.config(proxy={"request_timeout_ms": 300})
def test_a_handshake_has_the_time_of_a_request(daemon):
    halves = [raw(daemon) for _ in range(50)]
    for half in halves[::2]:
        half.sendall(b"\x16\x03\x01\x02\x00")
    for half in halves:
        assert half.recv(1) == b""
        half.close()
    daemon.wait_for_log("TLS: its handshake did not end within request_timeout_ms")
    with daemon.conn() as conn:
        assert conn.stats()["tls_failures"] == "50"


def test_half_open_handshakes_harm_no_others(daemon):
    halves = [raw(daemon) for _ in range(900)]
    for half in halves:
        half.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    with daemon.conn() as conn:
        for i in range(100):
            assert conn.set(f"k{i}", "x") == b"STORED"
        assert int(conn.stats()["memory_bytes"]) < 900 * 100_000
    for half in halves:
        half.close()
    with daemon.conn() as conn:
        wait_until("they are gone", lambda: conn.stats()["curr_connections"] == "1")


def test_what_connections_take_is_counted_and_given_back(daemon):
    def held():
        return int(first.stats()["memory_bytes"])

    def connected():
        return int(first.stats()["curr_connections"])

    with daemon.conn() as first:
        before = held()
        conns = [daemon.conn() for _ in range(200)]
        for conn in conns:
            assert conn.cmd("mn") == b"MN"
        assert held() > before + 200 * 8192
        for left, conn in reversed(list(enumerate(conns, 1))):
            conn.close()  # one by one: those that end together leave blocks for input behind
            wait_until("it is gone", lambda: connected() <= left)
        assert held() < before + 500_000


# --- ends ---


class Memory:
    """A client of TLS whose bytes pass through the test."""

    def __init__(self, daemon, certificate):
        self.socket = raw(daemon)
        self.input, self.output = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = client_context(certificate).wrap_bio(self.input, self.output,
                                                        server_hostname=HOST)
        self.do(self.tls.do_handshake)

    def flush(self):
        if self.output.pending:
            self.socket.sendall(self.output.read())

    def do(self, function, *args):
        while True:
            try:
                result = function(*args)
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                data = self.socket.recv(65536)
                if data:
                    self.input.write(data)
                else:
                    self.input.write_eof()

    def read_to_the_end(self):
        out = b""
        while data := self.do(self.tls.read, 65536):  # without close_notify it raises SSLEOFError
            out += data
        return out


def test_quit_is_answered_by_close_notify(daemon, certificate):
    client = Memory(daemon, certificate)
    client.do(client.tls.write, b"mn\r\nquit\r\nmn\r\n")
    assert client.read_to_the_end() == b"MN\r\n"


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_half_closed_client_gets_everything(daemon, certificate, says_goodbye):
    with daemon.conn() as conn:
        assert conn.set("big", b"v" * 1_000_000) == b"STORED"
    client = Memory(daemon, certificate)
    client.do(client.tls.write, b"get big\r\n" * 8)
    if says_goodbye:
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.unwrap()
        client.flush()
    client.socket.shutdown(socket.SHUT_WR)
    out = client.read_to_the_end() if not says_goodbye else drain(client)
    if not says_goodbye:
        assert out == (b"VALUE big 0 1000000\r\n" + b"v" * 1_000_000 + b"\r\nEND\r\n") * 8
    else:
        assert out > 8_000_000


def drain(client):
    """Python's ssl reads no more once it has said goodbye: counts the bytes."""
    total = 0
    while data := client.socket.recv(65536):
        total += len(data)
    return total


def test_many_clients_at_once(daemon):
    conns = [daemon.conn() for _ in range(100)]
    for i, conn in enumerate(conns):
        conn.send(f"set k{i} 0 0 5000\r\n", b"x" * 5000, "\r\n", f"get k{i}\r\n" * 4)
    for i, conn in enumerate(conns):
        assert conn.line() == b"STORED"
        for _ in range(4):
            assert conn.values_answer() == [(b"k%d" % i, [0, 5000], b"x" * 5000)]
        conn.close()


def test_login_over_tls(memcached, start_daemon, tmp_path):
    (tmp_path / "users").write_text("ann:secret\n")
    daemon = start_daemon([memcached], config={"proxy": {"auth_file": tmp_path / "users"}})
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"CLIENT_ERROR unauthenticated"
        assert conn.cmd("set x 0 0 10", "ann secret") == b"STORED"
        assert conn.cmd("mn") == b"MN"


def test_an_end_while_handshakes_are_half_open(daemon):
    halves = [raw(daemon) for _ in range(10)]
    daemon.stop()
    for half in halves:
        half.close()
