# SPDX-License-Identifier: BSD-3-Clause
"""Long pipelines of mixed verbs on lists of all dialects: answers in the order of the requests, each
client reads its own writes, and quiet verbs stay quiet."""

import random
import threading

import pytest

from harness import in_threads, write_ini
from model import converse, expect_bytes, value_answer
from test_dialects_support import DIALECTS, ONE_ITEM, SETS, lists_by_dialect

TINY = {"log_limit_bytes": 256, "max_item_bytes": 100}


def folded_often(**more):
    """All but pairs of items: when both are cut down, what was deleted is seen for a moment."""
    config = lists_by_dialect(**TINY)
    for name in SETS:
        config[f"lists {name}-"].update(more)
    config["lists paired-"] = {"dialect": "paired", "compact_chance": 0}
    return config


class Lists:
    """What a single client's lists hold. Items that are deleted are there, and items that are added
    are not: then all dialects of sets do the same."""

    def __init__(self, rng, prefix=""):
        self.rng = rng
        self.prefix = prefix
        self.content = {}
        self.next = 0

    def new_items(self):
        count = self.rng.choice([1, 1, 1, 2, 5])
        self.next += count
        return [b"%s%d" % (self.prefix.encode(), self.next - i) for i in range(count)]

    def pair(self):
        """A request and the answer to it."""
        dialect = self.rng.choice(DIALECTS)
        key = f"{dialect}-{self.prefix}{self.rng.randrange(2)}".encode()
        items = self.content.setdefault(key, [])
        if self.rng.random() < 0.4:
            return self.read(key, items)
        if dialect == "ring":
            new = self.new_items()
            self.content[key] = [*new[::-1], *items][:100]
            return self.add(key, new)
        return self.change(dialect, key, items)

    def add(self, key, new):
        if self.rng.random() < 0.2:
            return b"laddq %s %s\r\n" % (key, b" ".join(new)), b""
        if len(new) == 1 and self.rng.random() < 0.3:
            return b"laddb %s %d noreply\r\n%s\r\n" % (key, len(new[0]), new[0]), b""
        return b"ladd %s %s\r\n" % (key, b" ".join(new)), b"STORED\r\n"

    def change(self, dialect, key, items):
        kind = self.rng.choice(["add"] * 5 + ["delete"] * 3 + ["set", "care", "drop", "exact"])
        if kind == "add":
            new = self.new_items()
            items += new
            return self.add(key, new)
        if kind == "delete" and items:
            gone = self.rng.sample(items, min(len(items), self.rng.choice([1, 2])))
            self.content[key] = [item for item in items if item not in gone]
            if self.rng.random() < 0.2:
                return b"ldelq %s %s\r\n" % (key, b" ".join(gone)), b""
            return b"ldel %s %s\r\n" % (key, b" ".join(gone)), b"DELETED\r\n"
        if kind == "set" and self.rng.random() < 0.3:
            self.content[key] = self.new_items()
            return b"lset %s %s\r\n" % (key, b" ".join(self.content[key])), b"STORED\r\n"
        if kind == "care":
            return b"lcompact %s\r\n" % key, b"OK\r\n"
        if kind == "drop" and self.rng.random() < 0.2:
            self.content[key] = []
            return b"ldrop %s\r\n" % key, b"DELETED\r\n"
        if kind == "exact" and dialect in ONE_ITEM:
            new = self.new_items()
            asked = items[:1] + new
            items += new
            return b"laddx %s %s\r\n" % (key, b" ".join(asked)), b"%d\r\n" % len(new)
        if kind == "exact":
            return b"laddx %s x\r\n" % key, None
        return self.read(key, items)

    def read(self, key, items):
        kind = self.rng.choice(["lget", "llen", "lhas", "lrange", "lrevrange", "two"])
        if kind == "llen":
            return b"llen %s\r\n" % key, b"%d\r\n" % len(items)
        if kind == "lhas" and items:
            item = self.rng.choice(items)
            return b"lhas %s nobody %s\r\n" % (key, item), value_answer(key.decode(), [item])
        if kind == "lrange":
            return b"lrange %s -3 -1\r\n" % key, value_answer(key.decode(), items[-3:])
        if kind == "lrevrange":
            newest = items[:3] if key.startswith(b"ring") else items[-3:][::-1]
            return b"lrevrange %s 0 2\r\n" % key, value_answer(key.decode(), newest)
        if kind == "two":
            other, more = self.rng.choice(list(self.content.items()))
            answer = value_answer(key.decode(), items)[: -len(b"END\r\n")]
            return b"lget %s %s\r\n" % (key, other), answer + value_answer(other.decode(), more)
        return b"lget %s\r\n" % key, value_answer(key.decode(), items)


REFUSED = (
    b"CLIENT_ERROR laddx: a list of several items has no place where it could be decided; "
    b"use ladd or ldel\r\n"
)


def pairs_of(lists, count):
    return [
        (request, REFUSED if answer is None else answer)
        for request, answer in (lists.pair() for _ in range(count))
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("servers", [1, 3])
def test_1000_mixed_requests_in_one_write(start_memcached, start_daemon, seed, servers):
    daemon = start_daemon([start_memcached() for _ in range(servers)], config=lists_by_dialect())
    with daemon.conn() as conn:
        converse(conn, pairs_of(Lists(random.Random(seed)), 1000))


@pytest.mark.parametrize("seed", range(4))
def test_1000_mixed_requests_while_lists_are_folded(start_memcached, start_daemon, seed):
    """compact_chance = 1 and tiny logs: hardly a request without a fold beside it."""
    config = folded_often(compact_chance=1)
    daemon = start_daemon([start_memcached() for _ in range(2)], config=config)
    with daemon.conn() as conn:
        converse(conn, pairs_of(Lists(random.Random(seed)), 1000))
        assert int(conn.stats()["list_folds"]) > 50


def test_pipelines_of_several_clients(start_memcached, start_daemon):
    """Each has lists of its own; all share the connections to the servers."""
    daemon = start_daemon([start_memcached() for _ in range(2)], config=folded_often())

    def client(number):
        with daemon.conn() as conn:
            converse(conn, pairs_of(Lists(random.Random(number), f"c{number}x"), 700))

    in_threads(6, client)


@pytest.mark.parametrize("dialect", SETS)
def test_a_client_reads_its_own_writes(start_memcached, start_daemon, dialect):
    """In one write; another client changes the same list all the time. Through the same worker: in
    two logs an item that one worker deletes while another one folds may come back."""
    config = {**folded_often(), "proxy": {"threads": 1}}
    daemon = start_daemon([start_memcached()], config=config)
    key = f"{dialect}-k"
    stop = threading.Event()

    def other():
        with daemon.conn() as conn:
            n = 0
            while not stop.is_set():
                conn.cmd(f"ladd {key} other{n}")
                conn.cmd(f"ldel {key} other{n}")
                n += 1

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with daemon.conn() as conn:
            for n in range(100):
                conn.send(
                    f"ladd {key} mine{n}\r\nlhas {key} mine{n}\r\nldel {key} mine{n}\r\n"
                    f"lhas {key} mine{n}\r\n"
                )
                assert conn.line() == b"STORED"
                assert conn.values_answer()[0][2] == b"mine%d" % n
                line = conn.line()
                if line != b"DELETED":
                    assert dialect == "simple" and line.startswith(b"SERVER_ERROR busy")
                    conn.values_answer()
                    continue
                assert conn.values_answer() == []
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_quiet_verbs(start_memcached, start_daemon, dialect):
    daemon = start_daemon([start_memcached()], config=lists_by_dialect())
    key = f"{dialect}-k"
    with daemon.conn() as conn:
        conn.send(f"laddq {key} a b\r\nladdb {key} 1 noreply\r\nc\r\nmn\r\n")
        assert conn.line() == b"MN"
        assert sorted(conn.lget(key)) == [b"a", b"b", b"c"]
        # Quiet is only what was done.
        conn.send(f"laddq {key} x,y\r\nmn\r\n")
        assert conn.line().startswith(b"CLIENT_ERROR item holds the delimiter ',': ")
        assert conn.line() == b"MN"
        if dialect == "ring":
            conn.send(f"ldelq {key} a\r\nlsetq {key}\r\nldelb {key} 1 noreply\r\na\r\nmn\r\n")
            assert conn.line().startswith(b"CLIENT_ERROR ldel: ")
            assert conn.line().startswith(b"CLIENT_ERROR lset: ")
            while (line := conn.line()) != b"MN":
                assert line.startswith(b"CLIENT_ERROR ldel: ")
            return
        conn.send(f"ldelq {key} a\r\nldelb {key} 1 noreply\r\nb\r\nmn\r\n")
        assert conn.line() == b"MN"
        assert conn.lget(key) == [b"c"]
        conn.send(f"lsetq {key} x y\r\nmn\r\n")
        assert conn.line() == b"MN"
        assert conn.lget(key) == [b"x", b"y"]


def test_requests_of_a_client_that_leaves(start_memcached, start_daemon):
    """It closes in the middle; what it had sent is done or not, and no other client is held up."""
    daemon = start_daemon([start_memcached()], config=lists_by_dialect(**TINY))
    for n in range(30):
        with daemon.conn() as conn:
            for dialect in DIALECTS:
                conn.send(f"ladd {dialect}-k item{n}\r\nlcompact {dialect}-k\r\nlget {dialect}-k\r\n")
    with daemon.conn() as conn:
        for dialect in DIALECTS:
            assert conn.cmd(f"ladd {dialect}-k last") == b"STORED"
            assert b"last" in conn.lget(f"{dialect}-k")


def test_a_daemon_that_ends_while_lists_are_folded(start_memcached, start_daemon):
    memcached = start_memcached()
    daemon = start_daemon([memcached], config=lists_by_dialect(**TINY))
    with daemon.conn() as conn:
        for dialect in SETS:
            conn.send(*[f"ladd {dialect}-k item{n}\r\n" for n in range(50)], f"lcompact {dialect}-k\r\n")
        daemon.stop()
    write_ini(daemon.ini_path, daemon.sections)
    daemon.start()
    with daemon.conn() as conn:
        for dialect in SETS:
            found = conn.lget(f"{dialect}-k")
            assert found == [b"item%d" % n for n in range(len(found))]


def test_bytes_of_an_answer(start_memcached, start_daemon):
    """As of native lists, but for lstat's numbers."""
    daemon = start_daemon([start_memcached()], config=lists_by_dialect())
    with daemon.conn() as conn:
        for dialect in SETS:
            conn.send(f"ladd {dialect}-k a bb\r\nlget {dialect}-k none\r\nlgetb {dialect}-k\r\n")
            key = f"{dialect}-k".encode()
            expect_bytes(conn, b"STORED\r\n" + value_answer(key.decode(), [b"a", b"bb"]))
            expect_bytes(conn, b"ITEM %s 1\r\na\r\nITEM %s 2\r\nbb\r\nEND\r\n" % (key, key))
