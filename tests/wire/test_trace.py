# SPDX-License-Identifier: BSD-3-Clause
"""The command `trace`: what an operator sees of one key while clients use it."""

import re
import socket
import subprocess
import time

import pytest

from harness import SLOW, TIMEOUT_S, free_port, wait_until
from test_cli_support import CLI
from test_reload import Reloaded


class Trace:
    def __init__(self, operated, words):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30 * SLOW)
        self.sock.connect(str(operated.socket))
        self.sock.sendall(f"trace {words}\n".encode())
        self.file = self.sock.makefile()
        self.first = self.file.readline()

    def rows(self, count=None):
        """The next lines, or all up to the end: [{name: value}]"""
        lines = self.file if count is None else (self.file.readline() for _ in range(count))
        return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in lines]

    def close(self):
        self.file.close()
        self.sock.close()


@pytest.fixture
def operated(request, start_daemon, memcached, tmp_path):
    return Reloaded(start_daemon, [memcached], tmp_path, **{
        "lists p:": {"dialect": "paired"}, "lists s:": {"dialect": "sublists"}})  # fmt: skip


@pytest.fixture
def trace(operated):
    started = []

    def start(words):
        started.append(Trace(operated, words))
        return started[-1]

    yield start
    for one in started:
        one.close()


def shown(rows, *names):
    return [tuple(row.get(name) for name in names) for row in rows]


def test_requests_and_what_they_cause(operated, trace, memcached):
    with operated.daemon.conn() as conn:
        looks = trace("fruit 3")
        assert looks.first == "OK\n"
        assert conn.cmd("ladd other a") == b"STORED"
        assert conn.cmd("ladd fruit apple") == b"STORED"
        conn.send("lget other fruit\r\n")
        while conn.line() != b"END":
            pass
        conn.send("get x fruit\r\n")
        assert conn.line() == b"END"
        rows = looks.rows()
    assert [(row["verb"], row["key"]) for row in rows if "client" in row] == [
        ("ladd", "fruit"), ("lget", "fruit"), ("get", "fruit")]  # fmt: skip
    causes = [row for row in rows if "server" in row]
    assert [row["item"] for row in causes][-1] == "fruit"  # of the get
    assert {row["item"] for row in causes[:-1]} == {"fruit#"}
    assert {row["server"] for row in causes} == {memcached.address}
    assert ("add", "stored") in shown(causes, "verb", "status")
    assert [row for row in rows if not row["us"].isdigit()] == []
    # What a request causes stands before it.
    assert next(at for at, row in enumerate(rows) if "server" in row) < next(
        at for at, row in enumerate(rows) if "client" in row)


def test_plain_verbs(operated, trace, memcached):
    many = " ".join(f"k{n}" for n in range(20))
    plain = [("set fruit 0 0 5\r\napple", "STORED"), ("get fruit", "END"), ("gets fruit other", "END"),
             (f"get fruit {many}", "END"), ("get {} fruit".format(many), "END"), ("append fruit 0 0 1\r\ns", "STORED"),
             ("incr fruit 1", "CLIENT_ERROR"), ("mg fruit v", "apples"), ("ms fruit 1\r\nx", "HD"),
             ("touch fruit 9", "TOUCHED"), ("gat 9 fruit", "END"), ("delete fruit noreply\r\nmn", "MN"),
             ("get fruit", "END")]
    looks = trace(f"fruit {len(plain)}")
    with operated.daemon.conn() as conn:
        for request, last in plain:
            conn.send(request + "\r\n")
            while not conn.line().startswith(last.encode()):
                pass
        rows = looks.rows()
    # What a request causes stands before it, and is one line.
    assert ["server" in row for row in rows] == [True, False] * len(plain)
    assert {row["item"] for row in rows[::2]} == {"fruit"}
    assert {row["server"] for row in rows[::2]} == {memcached.address}
    assert shown(rows[::2], "verb", "status", "answer") == [
        ("set", "answered", "STORED"), ("fetch", "hit", None), ("fetch", "hit", None), ("get", "hit", None),
        ("get", "hit", None), ("append", "answered", "STORED"), ("incr", "answered", "CLIENT_ERROR"),
        ("mg", "answered", "VA"), ("ms", "answered", "HD"), ("touch", "answered", "TOUCHED"),
        ("gat", "hit", None), ("delete", "answered", "DELETED"), ("fetch", "miss", None)]


def test_plain_verbs_whose_server_is_down(operated, trace, memcached):
    looks = trace("fruit 3")
    memcached.stop()
    with operated.daemon.conn() as conn:
        for request in ("get fruit", "set fruit 0 0 1\r\nx", "mg fruit v"):
            conn.send(request + "\r\n")
            assert b"SERVER_ERROR" in conn.line()
    assert [row["status"] for row in looks.rows() if "server" in row] == ["down"] * 3


@pytest.mark.parametrize("key, items", [
    ("p:x", {"follow-p:x", "unfollow-p:x"}), ("s:x", {"s:x", "s:x.1"}),
])
def test_items_of_dialects(operated, trace, key, items):
    looks = trace(f"{key} 2")
    with operated.daemon.conn() as conn:
        assert conn.cmd(f"ladd {key}y apple") == b"STORED"  # another one
        assert conn.cmd(f"ladd {key} apple") == b"STORED"
        conn.send(f"lget {key}\r\n")
        while conn.line() != b"END":
            pass
    found = {row["item"] for row in looks.rows() if "item" in row}
    assert found and all(item in items or re.fullmatch(r"s:x\.\d+", item) for item in found)


def test_a_server_that_is_down(start_daemon, tmp_path):
    address = f"127.0.0.1:{free_port()}"
    operated = Reloaded(start_daemon, [address], tmp_path)
    looks = Trace(operated, "fruit 1")
    with operated.daemon.conn() as conn:
        assert conn.cmd("ladd fruit apple").startswith(b"SERVER_ERROR")
    text = looks.file.read()
    looks.close()
    assert "status=down" in text and f"why=backend {address} down" in text


def test_one_at_a_time_until_the_operator_goes(operated, trace):
    one = trace("fruit")
    assert one.first == "OK\n"
    assert trace("fruit").first == "ERROR another trace is under way\n"
    one.close()
    wait_until("the first has ended", lambda: trace("fruit").first == "OK\n")


def test_it_outlives_timeout_ms(start_daemon, memcached, tmp_path):
    operated = Reloaded(start_daemon, [memcached], tmp_path, admin={"timeout_ms": 100})
    looks = Trace(operated, "fruit 2")
    with operated.daemon.conn() as conn:
        looks.sock.sendall(b"reload\n")  # thrown away
        time.sleep(0.5)
        for _ in range(2):
            assert conn.cmd("ladd fruit apple") == b"STORED"
    assert len([row for row in looks.rows() if "client" in row]) == 2
    looks.close()


def test_a_daemon_ends_during_a_trace(operated, trace):
    looks = trace("fruit")
    operated.daemon.stop()
    assert looks.rows() == []


@pytest.mark.parametrize("words", ["", "a b", "a 0", "a 1001", "a 1 2", "x" * 251])
def test_what_is_no_trace(operated, trace, words):
    assert trace(words).first == "ERROR usage: trace KEY [N], 1 to 1000 requests\n"


def test_hostile_keys(operated, trace):
    looks = trace("a%s%n\\x1b 1")
    with operated.daemon.conn() as conn:
        assert conn.cmd("ladd a%s%n\\x1b y") == b"STORED"
    assert looks.rows()[-1]["key"] == r"a%s%n\x5cx1b"


def test_many_clients_at_once(operated, trace):
    looks = trace("fruit 1000")
    with operated.daemon.conn() as one, operated.daemon.conn() as other:
        for conn in (one, other):
            conn.send("ladd fruit apple\r\nlhas fruit apple\r\n" * 300)
        rows = looks.rows()
    assert len([row for row in rows if "client" in row]) == 1000


def test_by_the_prompt_s_program(operated):
    with subprocess.Popen([CLI, "--admin", operated.socket, "trace", "fruit", "1"],
                          stdout=subprocess.PIPE) as process:  # fmt: skip
        with operated.daemon.conn() as conn:
            # It may take a moment until it looks on.
            wait_until("it has seen one", lambda: conn.cmd("ladd fruit apple") == b"STORED" and
                       process.poll() is not None)
        text = process.stdout.read().decode()
        assert process.wait(TIMEOUT_S) == 0
    assert "verb=ladd" in text and "OK" not in text.splitlines()


@pytest.mark.memcacheds(2)
def test_a_key_in_base64_that_moves(start_daemon, memcacheds, tmp_path):
    """A sanitizer sees whether the key is still there when the last server has answered."""
    old, new = memcacheds
    operated = Reloaded(start_daemon, [old], tmp_path, **{
        "pool main": {"gate_s": 1, "next": "grown", "step": "learn"},
        "pool grown": {"servers": new.address}})  # fmt: skip
    with operated.daemon.conn() as conn:
        looks = Trace(operated, "fruit 5")
        assert conn.cmd("ms ZnJ1aXQ= 1 b\r\nx") == b"HD"
        assert shown(looks.rows(1), "status", "item") == [("stored", "fruit")]
        looks.close()
