# SPDX-License-Identifier: BSD-3-Clause
"""Folding: on request, by chance, by size; and what contention does to those who have to look before
they write."""

import re
import statistics
import time

import pytest

from harness import SLOW, in_threads, wait_until
from test_dialects_support import DIALECTS, ONE_ITEM, SETS, Hand, blind, settings

KEY = "topic-X"

# What is there by hand, what it amounts to, what is there when it is folded.
FOLDED = [
    ("simple", {KEY: "a,b,a,c,b,"}, "a,b,c", {KEY: "a,b,c,"}),
    ("tombstone", {KEY: "b,z,|a,b,c,a,b,"}, "a,c,b", {KEY: "|a,c,b,"}),
    ("tombstone", {KEY: "b,b,|a,b,"}, "a", {KEY: "|a,"}),
    ("signed", {KEY: "+a+b-a+c+a-b"}, "c,a", {KEY: "+c+a"}),
    ("signed", {KEY: "+a-a"}, "", {KEY: ""}),
    ("paired", {f"follow-{KEY}": "a,b,c,a,", f"unfollow-{KEY}": "b,"}, "a,c",
     {f"follow-{KEY}": "a,c,", f"unfollow-{KEY}": ""}),
    ("paired", {f"follow-{KEY}": "a,a,b,", f"unfollow-{KEY}": "a,"}, "a,b",
     {f"follow-{KEY}": "a,b,", f"unfollow-{KEY}": ""}),
    # Marks: those of the last release stand among the deletions alone.
    ("paired", {f"follow-{KEY}": "a,b,c,a,", f"unfollow-{KEY}": "@5d0c81f2a4b69e37,b,"}, "a,c",
     {f"follow-{KEY}": "a,c,", f"unfollow-{KEY}": ""}),
    ("paired", {f"follow-{KEY}": "a,b,@5d0c81f2a4b69e37,b,c,",
                f"unfollow-{KEY}": "b,,@5d0c81f2a4b69e37,c,"}, "a,b",
     {f"follow-{KEY}": "a,b,", f"unfollow-{KEY}": ""}),
    ("paired", {f"follow-{KEY}": "a,@5d0c81f2a4b69e37,",
                f"unfollow-{KEY}": "@0000000000000000,,@5d0c81f2a4b69e37,"}, "a",
     {f"follow-{KEY}": "a,", f"unfollow-{KEY}": ""}),
    ("sublists", {KEY: "+0+1+2+3-3", f"{KEY}.0": "+a+b", f"{KEY}.1": "-a-b", f"{KEY}.2": "+c"},
     "c", {KEY: "+2", f"{KEY}.0": None, f"{KEY}.1": None, f"{KEY}.2": "+c"}),
    ("sublists", {KEY: "+0+1", f"{KEY}.0": "+a+b", f"{KEY}.1": "+a-b+d"},
     "a,d", {KEY: "+1", f"{KEY}.0": None, f"{KEY}.1": "+a+d"}),
    ("sublists", {KEY: "+0+1", f"{KEY}.0": "+a+b", f"{KEY}.1": "-b+d"},
     "a,d", {KEY: "+0+1", f"{KEY}.0": "+a", f"{KEY}.1": "+d"}),
    # Short neighbours become one, but for the newest.
    ("sublists", {KEY: "+0+1+2+3+4", f"{KEY}.0": "+a+b", f"{KEY}.1": "+c-b", f"{KEY}.2": "+d",
                  f"{KEY}.3": "+e", f"{KEY}.4": "+f"}, "a,c,d,e,f",
     {KEY: "+3+4", f"{KEY}.0": None, f"{KEY}.1": None, f"{KEY}.2": None, f"{KEY}.3": "+a+c+d+e",
      f"{KEY}.4": "+f"}),
    ("ring", {f"{KEY}.seq": "1", f"{KEY}.1": "1 a"}, "a", {f"{KEY}.seq": "1", f"{KEY}.1": "1 a"}),
]


def put(hand, items):
    for name, text in items.items():
        assert hand.store("set", name, text)


def without_marks(text):
    """What a pair's items hold besides the marks that foldings leave there."""
    return None if text is None else re.sub(rb"^,?@[0-9a-f]{16},|@[0-9a-f]{16},$", b"", text)


def is_folded(hand, expected):
    return all(
        without_marks(hand.get(name)) == (None if text is None else text.encode())
        for name, text in expected.items()
    )


def items_of(text):
    return text.encode().split(b",") if text else []


@pytest.mark.parametrize("dialect,items,content,folded", FOLDED)
def test_on_request(memcached, start_daemon, dialect, items, content, folded):
    chance = {} if dialect == "ring" else {"compact_chance": 0}
    daemon = start_daemon([memcached], config=settings(dialect, **chance))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, items)
        assert conn.lget(KEY) == items_of(content)
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert is_folded(hand, folded), [hand.get(name) for name in folded]
        assert conn.lget(KEY) == items_of(content)
        # Again, and there is nothing to do.
        before = int(conn.stats()["list_appends"])
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert is_folded(hand, folded)
        assert int(conn.stats()["list_appends"]) == before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_list_that_is_not_there(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=settings(dialect))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.lget(KEY) == []
        assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
        assert hand.conn.stats()["curr_items"] == "0"


BY_CHANCE = [case for case in FOLDED if case[0] not in ("paired", "ring")] + [
    ("paired", {f"follow-{KEY}": "a,b,c,a,d,", f"unfollow-{KEY}": "b,"}, "a,c,d",
     {f"follow-{KEY}": "a,c,d,", f"unfollow-{KEY}": ""}),
    ("paired", {f"follow-{KEY}": "a,b,c,a,d,", f"unfollow-{KEY}": "b,z,c,d,"}, "a",
     {f"follow-{KEY}": "a,", f"unfollow-{KEY}": ""}),
]


@pytest.mark.parametrize("dialect,items,content,folded", BY_CHANCE)
def test_by_chance(memcached, start_daemon, dialect, items, content, folded):
    """compact_chance = 1: each read that finds something to fold does it."""
    daemon = start_daemon([memcached], config=settings(dialect, compact_chance=1))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, items)

        def read():
            assert conn.lget(KEY) == items_of(content)
            return is_folded(hand, folded)

        wait_until("it is folded", read)
        conn.cmd("ladd topic-other x")  # the fold under way ends
        folds = conn.stats()["list_folds"]
        for _ in range(20):
            assert conn.lget(KEY) == items_of(content)
        assert conn.stats()["list_folds"] == folds, "it stays at rest"


def test_an_index_none_of_whose_sublists_is_there_is_left_alone(memcached, start_daemon):
    """Clients name their sublists otherwise than this proxy is told."""
    daemon = start_daemon([memcached], config=settings("sublists", compact_chance=1))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, {KEY: "+0+1+2", f"{KEY}-0": "+a", f"{KEY}-1": "+b", f"{KEY}-2": "+c"})
        for _ in range(20):
            assert conn.lget(KEY) == []
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert is_folded(hand, {KEY: "+0+1+2"})


@pytest.mark.parametrize("dialect", SETS)
def test_compact_chance_0_never_folds(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=blind(dialect, compact_chance=0))
    with daemon.conn() as conn:
        for _ in range(5):
            conn.cmd(f"ladd {KEY} a b c d")
        conn.send(f"lget {KEY}\r\n" * 500)
        for _ in range(500):
            assert conn.values_answer()[0][2] == b"a,b,c,d"
        assert conn.stats()["list_folds"] == "0"


@pytest.mark.parametrize("dialect", SETS)
def test_by_size(memcached, start_daemon, dialect):
    """An application adds and deletes the same all the time: what is stored stays small, though
    no reader reads."""
    config = blind(dialect, compact_chance=0, log_limit_bytes=1024, max_item_bytes=100)
    daemon = start_daemon([memcached], config=config)
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for n in range(700):
            assert conn.cmd(f"ladd {KEY} item{n % 7}") == b"STORED"
            assert conn.cmd(f"ldel {KEY} item{(n + 3) % 7}").startswith((b"DELETED", b"SERVER_ERROR busy"))
        names = [KEY, f"follow-{KEY}", f"unfollow-{KEY}", f"{KEY}.a", f"{KEY}.b"]
        names += [f"{KEY}.{n}" for n in range(10)]
        stored = sum(len(hand.get(name) or b"") for name in names)
        assert 0 < stored < 5000
        if dialect != "simple":
            assert int(conn.stats()["list_folds"]) >= 5


# --- contention ---


@pytest.mark.memcacheds(1)
def test_contended_deletions_of_simple_lists(memcached, start_daemon):
    """Each is done, or ends in "busy, nothing done"; no addition is lost over it."""
    daemons = [start_daemon([memcached], config=settings("simple", compact_chance=0))
               for _ in range(3)]
    clients, count = 9, 60
    left = [set() for _ in range(clients)]
    with daemons[0].conn() as conn:
        for c in range(clients):
            assert conn.cmd(f"ladd {KEY} " + " ".join(f"c{c}n{n}" for n in range(count))) == b"STORED"

    def client(c):
        with daemons[c % 3].conn() as conn:
            for n in range(count):
                line = conn.cmd(f"ldel {KEY} c{c}n{n}")
                if line != b"DELETED":
                    assert line.startswith(b"SERVER_ERROR busy, nothing done"), line
                    left[c].add(b"c%dn%d" % (c, n))
                assert conn.cmd(f"ladd {KEY} c{c}new{n}") == b"STORED"

    in_threads(clients, client)
    expected = set().union(*left)
    assert len(expected) < clients * count / 4
    expected |= {b"c%dnew%d" % (c, n) for c in range(clients) for n in range(count)}
    for daemon in daemons:
        with daemon.conn() as conn:
            found = conn.lget(KEY)
            assert set(found) == expected and len(found) == len(expected)


class AlwaysExists:
    """A memcached whose content another client changes before each CAS; other changes are done."""

    def __init__(self, value):
        self.value = value
        self.times = []

    def __call__(self, fake, sock):
        for line, _ in fake.requests(sock):
            word, *flags = line.split()
            if word == b"mg":
                value = KEY.encode() + b".a" if b".active " in line else self.value
                if b" unfollow-" in line:  # a mark stands there as a folding appends it
                    value = value.replace(b",@", b",,@")
                known = {b"k": b"k" + flags[0], b"f": b"f0", b"c": b"c7", b"t": b"t-1", b"s": b"s%d" % len(value)}
                told = b" ".join(known[flag] for flag in flags[1:] if flag != b"v")
                if b"v" in flags[1:]:
                    sock.sendall(b"VA %d %s\r\n%s\r\n" % (len(value), told, value))
                else:
                    sock.sendall(b"HD %s\r\n" % told)
            elif word == b"cas":
                self.times.append(time.monotonic())
                sock.sendall(b"EXISTS\r\n")
            elif word in (b"delete", b"md"):
                sock.sendall(b"DELETED\r\n" if word == b"delete" else b"HD\r\n")
            else:
                sock.sendall(b"STORED\r\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "dialect,value,request_text",
    [
        ("simple", b"a,a,b,", f"ldel {KEY} a"),
        ("simple", b"a,a,b,", f"lset {KEY} c"),
        ("simple", b"a,a,b,", f"laddx {KEY} c"),
        ("simple", b"a,a,b,", f"lcompact {KEY}"),
        ("tombstone", b"a,|a,b,", f"ldelx {KEY} b"),
        ("tombstone", b"a,b,", f"ldel {KEY} b"),
        ("tombstone", b"a,|a,b,", f"lcompact {KEY}"),
        ("signed", b"+a-a", f"lcreate {KEY} x"),
        ("signed", b"+a-a", f"lcompact {KEY}"),
        ("paired", b"a,a,b,@5d0c81f2a4b69e37,", f"lcompact {KEY}"),
        ("paired", b"a,a,b,@5d0c81f2a4b69e37,", f"lset {KEY} x"),
        ("sublists", b"+0+0", f"lset {KEY} x"),
    ],
)
def test_tries_are_bounded_and_pauses_grow(start_daemon, start_fake, dialect, value, request_text):
    behave = AlwaysExists(value)
    daemon = start_daemon([start_fake(behave)], config=settings(dialect, compact_chance=0))
    with daemon.conn() as conn:
        first, last = [], []
        for round_number in range(1, 5 if SLOW == 1 else 3):
            behave.times.clear()
            line = conn.cmd(request_text)
            assert line.startswith(b"SERVER_ERROR busy"), line
            times = list(behave.times)
            if dialect in ONE_ITEM:
                assert len(times) == 64 if "lcompact" in request_text else 64 < len(times) < 2000
            else:
                assert 8 <= len(times) <= 20, "bounded, and not at the first"
            pauses = [b - a for a, b in zip(times, times[1:])]
            first += pauses[:3]
            last += pauses[-40:] if dialect in ONE_ITEM else pauses[-3:]
            assert int(conn.stats()["list_busy"]) == round_number
        # Each is a random part of a bound that doubles; a busy machine adds some to a few of them.
        if dialect in ONE_ITEM:
            # From 0.2 ms to 12.8 ms, where it stays; what the requests take is in both.
            assert statistics.median(last) - statistics.median(first) > 0.003
        else:
            assert statistics.median(last) > 2 * statistics.median(first)
        assert conn.cmd("mn") == b"MN"


@pytest.mark.parametrize("dialect", ["flip", "marker"])
def test_two_logs_under_others_all_the_time(start_daemon, start_fake, dialect):
    fake = start_fake(AlwaysExists(b"+a-a+b-b+b"))
    daemon = start_daemon([fake], config=settings(dialect, compact_chance=0))
    with daemon.conn() as conn:
        assert conn.cmd(f"lcompact {KEY}").startswith(b"SERVER_ERROR busy")
        changes = re.findall(rb"^(cas|set|add|append|prepend) ", fake.all_received(), re.M)
        assert 8 <= len(changes) <= 64
        assert conn.lget(KEY) == [b"b"]


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", ONE_ITEM)
def test_busy_holds_nobody_else_up(start_daemon, start_fake, dialect):
    """While a deletion backs off, reads are answered."""
    behave = AlwaysExists({"simple": b"a,b,", "tombstone": b"a,b,", "signed": b"+a+b"}[dialect])
    daemon = start_daemon([start_fake(behave)], config=settings(dialect, compact_chance=0))
    with daemon.conn() as conn, daemon.conn() as other:
        conn.send(f"ldelx {KEY} a\r\n")
        wait_until("it tries", lambda: behave.times)
        assert other.lget(KEY) == [b"a", b"b"]
        assert re.match(rb"SERVER_ERROR busy, nothing done", conn.line())
