# SPDX-License-Identifier: BSD-3-Clause
"""Clients that have to log in (auth_file), compared with memcached -Y, which reads the same file."""

import pathlib
import socket
import tempfile

import pytest
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheClientError

from harness import HOST, SLOW, Conn, Memcached, UnixConn, in_threads
from test_config_cli import run

USERS = "ann:secret\nbob:pw:with:colon\n"
# Who has not answered by then does not answer.
SILENCE_S = SLOW
LOGIN = b"set x 0 0 10\r\nann secret\r\n"


class MemcachedWithUsers(Memcached):
    def _is_mine_or_gone(self):
        if self.process.poll() is not None:
            return "gone"
        try:
            with self.conn() as conn:
                conn.send(LOGIN)
                conn.line()
                return "mine" if conn.stats().get("pid") == str(self.process.pid) else None
        except (OSError, EOFError):
            return None


@pytest.fixture
def users():
    """The file, where memcached can read it that has become another user."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "users"
        path.write_text(USERS)
        path.parent.chmod(0o755)
        yield path


@pytest.fixture
def proxy(users, memcached, start_daemon):
    return start_daemon([memcached], config={"proxy": {"auth_file": users}})


# What a client sends in pieces, each of which it waits behind for an answer.
TALKS = [
    [LOGIN, b"version\r\n"],
    [b"set x 0 0 10 noreply\r\n", b"ann secret\r\n"],
    [b"set x 0 0 10\n", b"ann secret\r\n"],
    [b" set  x ? 4294967296999 +010 \r\n", b"ann secret\r\n"],
    [b"set x 5 60 17\r\n", b"bob pw:with:colon\r\n"],
    [b"set " + b"k" * 300 + b" 0 0 10\r\n", b"ann secret\r\n"],
    [b"set x 0 0 16\r\n", b"ann secret extra\r\n"],
    [b"set x 0 0 11\r\n", b" ann secret\r\n"],
    [b"set x 0 0 11\r\n", b"ann secret\0\r\n"],
    [b"set x 0 0 10\t3\r\n", b"ann secret\r\n"],
    [b"set x 0 0 9\r\n", b"ann wrong\r\n", b"get x\r\n", LOGIN],
    [b"set x 0 0 10\r\n", b"eve secret\r\n"],
    [b"set x 0 0 7\r\n", b"ann pw:\r\n"],
    [b"set x 0 0 3\r\n", b"ann\r\n"],
    [b"set x 0 0 10\r\n", b"ann\tsecret\r\n"],
    [b"set x 0 0 0\r\n", b"\r\n"],
    [b"set x 0 0 10\r\n", b"ann secretXX"],
    [b"set x 0 0 3000\r\n" + b"a" * 3000 + b"\r\n"],
    [b"set x\0 0 0 10\r\n"],
    [b"set x 0 0 -1\r\n"],
    [b"set x 0 0 10x\r\n"],
    [b"set x 0 0 0x0a\r\n"],
    [b"set x 0 0\r\n"],
    [b"set\r\n"],
    [b"SET x 0 0 10\r\n"],
    [b"add x 0 0 10\r\n"],
    [b"ms x S10\r\n"],
    [b"get x\r\n"],
    [b"get x\n"],
    [b"version\r\n", b"quit\r\n", b"stats\r\n", b"mn\r\n"],
    [b"flush_all\r\n"],
    [b"shutdown\r\n"],
    [b"delete x noreply\r\n"],
    [b"\r\n"],
    [b"\n"],
    [b"a" * 2048],
    [b"a" * 2049],
    [b"s", b"et x 0 0 10\r", b"\n", b"ann ", b"secret\r", b"\n"],
]


def talk(port, pieces):
    heard = []
    with Conn(port, timeout_s=SILENCE_S) as conn:
        for piece in pieces:
            conn.send(piece)
            try:
                heard.append(conn.socket.recv(65536))
            except socket.timeout:
                heard.append(None)
    return [b"VERSION" if text and text.startswith(b"VERSION ") else text for text in heard]


@pytest.mark.thorough
def test_answers_are_memcacheds_byte_for_byte(users, proxy):
    real = MemcachedWithUsers("-Y", users)
    try:
        expected, found = {}, {}

        def compare(number):
            expected[number] = talk(real.port, TALKS[number])
            found[number] = talk(proxy.port, TALKS[number])

        in_threads(len(TALKS), compare)
        for number, pieces in enumerate(TALKS):
            assert found[number] == expected[number], pieces
    finally:
        real.stop()


def test_each_request_of_a_pipeline_is_answered(proxy):
    with proxy.conn() as conn:
        conn.send(b"get x\r\nset x 0 0 9\r\nann wrong\r\nset x 0 0 5000\r\n", b"a" * 5000, b"\r\n",
                  LOGIN, b"set k 0 0 9\r\nann wrong\r\nget k\r\n")
        assert conn.lines(8) == [
            b"CLIENT_ERROR unauthenticated", b"CLIENT_ERROR authentication failure",
            b"CLIENT_ERROR bad authentication token format", b"STORED", b"STORED", b"VALUE k 0 9",
            b"ann wrong", b"END"]
        stats = conn.stats()
        assert (stats["auth_cmds"], stats["auth_errors"]) == ("2", "1")
        assert stats["client_errors"] == "3"
        assert conn.get("x") is None
    proxy.wait_for_log(r"client 127.0.0.1 port \d+: its user and password are not in auth_file")


def test_a_listener_without_users(users, memcached, start_daemon, tmp_path):
    daemon = start_daemon([memcached], config={
        "proxy": {"auth_file": users},
        "listener open": {"listen": f"unix:{tmp_path}/open", "auth_file": ""},
        "listener closed": {"listen": f"unix:{tmp_path}/closed"},
    })
    for name, answer in (("open", b"MN\r\n"), ("closed", b"CLIENT_ERROR unauthenticated\r\n")):
        with UnixConn(tmp_path / name) as conn:
            conn.send("mn\r\n")
            assert conn.socket.recv(100) == answer
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"CLIENT_ERROR unauthenticated"
        conn.send(LOGIN)
        assert conn.line() == b"STORED"
        settings = conn.stats("stats settings")
        assert settings["listener:open:auth_file"] == "NULL"
        assert settings["listener:closed:auth_file"] == str(users)


def test_other_protocols_are_told_apart_all_the_same(proxy):
    with proxy.conn() as conn:
        conn.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert conn.read_exact(7)[:1] == b"\x15"
    proxy.wait_for_log("it begins with a TLS handshake")


def test_a_login_that_does_not_arrive_is_not_waited_for(users, memcached, start_daemon):
    daemon = start_daemon([memcached], config={
        "proxy": {"auth_file": users, "request_timeout_ms": 100}})
    with daemon.conn() as conn:
        conn.send(b"set x 0 0 10\r\nann")
        assert conn.line().startswith(b"CLIENT_ERROR the request did not arrive")
        assert conn.is_closed()


class LoggedIn(Client):
    def _connect(self):
        super()._connect()
        assert self.set("login", "ann secret", noreply=False)


def test_pymemcache(proxy):
    client = Client((HOST, proxy.port), default_noreply=False)
    with pytest.raises(MemcacheClientError, match="unauthenticated"):
        client.get("x")
    client.set("login", "ann secret")
    client.set("x", "1")
    assert client.get("x") == b"1"
    client = LoggedIn((HOST, proxy.port))
    for _ in range(2):
        assert client.get("x") == b"1"
        client.close()


@pytest.mark.parametrize("text, reason", [
    (None, "cannot be opened: No such file or directory"), ("", "names no user"),
    ("ann:x\nbob\n", "line 2 has no colon; expected user:password")])
def test_a_bad_file_is_refused_at_the_start(tmp_path, text, reason):
    if text is not None:
        (tmp_path / "users").write_text(text)
    (tmp_path / "ini").write_text(f"[proxy]\nauth_file = {tmp_path}/users\n")
    code, _, errors = run("-t", "-c", tmp_path / "ini")
    assert code == 78
    assert f"[proxy]: auth_file: {tmp_path}/users" in errors
    assert reason in errors and errors.count("\n") == 1
