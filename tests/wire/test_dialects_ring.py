# SPDX-License-Identifier: BSD-3-Clause
"""Rings: the last N entries, newest first."""

import time

import pytest

from harness import in_threads
from test_dialects_support import Hand, settings

KEY = "topic-X"


def ring(capacity, **more):
    return settings("ring", capacity=capacity, **more)


def names(*numbers):
    return [b"item%d" % n for n in numbers]


def test_newest_first_and_around(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(5))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for n in range(1, 24):
            assert conn.cmd(f"ladd {KEY} item{n}") == b"STORED"
            assert conn.lget(KEY) == names(*range(n, max(0, n - 5), -1))
            assert conn.llen(KEY) == min(n, 5)
            assert conn.values(f"lrange {KEY} 0 0")[0][2] == b"item%d" % n
        assert [hand.get(f"{KEY}.{slot}") for slot in range(6)] == [
            b"20 item20", b"21 item21", b"22 item22", b"23 item23", b"19 item19", None
        ]
        assert conn.values(f"lrange {KEY} 0 9")[0][2] == b"item23,item22,item21,item20,item19"
        assert conn.values(f"lrange {KEY} -1 -1")[0][2] == b"item19"
        for positions in ("0 9", "0 0", "-1 -1", "-2 1", "1 3"):
            assert conn.values(f"lrevrange {KEY} {positions}") == \
                conn.values(f"lrange {KEY} {positions}")
        assert conn.values(f"lhas {KEY} item20 item7 item23")[0][2] == b"item20,item23"


def test_a_batch_larger_than_the_ring(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(3))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert conn.cmd(f"ladd {KEY} " + " ".join(f"item{n}" for n in range(1, 11))) == b"STORED"
        assert conn.lget(KEY) == names(10, 9, 8)
        assert hand.get(f"{KEY}.seq") == b"10"
        conn.send("".join(f"ladd {KEY} item{n}\r\n" for n in range(11, 1011)))
        assert set(conn.lines(1000)) == {b"STORED"}
        assert conn.lget(KEY) == names(1010, 1009, 1008)


def test_repeats_are_shown(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(5))
    with daemon.conn() as conn:
        assert conn.cmd(f"ladd {KEY} alice bob alice") == b"STORED"
        assert conn.lget(KEY) == [b"alice", b"bob", b"alice"]
        assert conn.llen(KEY) == 3


def test_gaps_are_skipped(memcached, start_daemon):
    """A number that was taken by a writer who died before it wrote."""
    daemon = start_daemon([memcached], config=ring(5))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        conn.cmd(f"ladd {KEY} item1 item2 item3 item4")
        assert hand.conn.cmd(f"incr {KEY}.seq 1") == b"5"
        assert conn.lget(KEY) == names(4, 3, 2, 1)
        assert hand.conn.cmd(f"incr {KEY}.seq 2") == b"7"
        assert conn.lget(KEY) == names(4, 3)
        assert conn.cmd(f"ladd {KEY} item8") == b"STORED"
        assert conn.lget(KEY) == names(8, 4)
        # The late one may still come, and stands where its number belongs.
        hand.store("set", f"{KEY}.2", "7 item7")
        assert conn.lget(KEY) == names(8, 7, 4)
        # One that comes a lap late is not shown, and what it overwrote is gone.
        hand.store("set", f"{KEY}.3", "3 item3")
        assert conn.lget(KEY) == names(7, 4)


NOT_AN_ENTRY = "no entry as slot = %n %v says"
ASKED = "nothing done; do slot and capacity say what clients write?"


@pytest.mark.parametrize("slot,reason", [
    ("x", NOT_AN_ENTRY), ("", NOT_AN_ENTRY), ("7", NOT_AN_ENTRY), ("7 ", NOT_AN_ENTRY),
    (" x", NOT_AN_ENTRY), ("-1 x", NOT_AN_ENTRY), ("1x y", NOT_AN_ENTRY),
    ("18446744073709551616 x", NOT_AN_ENTRY), ("8 x", "its number 8 is of another slot"),
    ("1299 1700000299", "its number 1299 is of another slot"),
])
def test_slots_that_hold_something_else(memcached, start_daemon, slot, reason):
    daemon = start_daemon([memcached], config=ring(5))
    says = f"SERVER_ERROR topic-X.2 is not of dialect ring: {reason}, {ASKED}".encode()
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        conn.cmd(f"ladd {KEY} item1 item2 item3")
        hand.store("set", f"{KEY}.2", slot)
        for verb in ("lget {}", "lrange {} 0 1", "llen {}", "lhas {} item3"):
            assert conn.cmd(verb.format(KEY)) == says
        # Once something like that was met, the proxy looks before it writes to a slot.
        for _ in range(4):
            assert conn.cmd(f"ladd {KEY} item4 item5 item6 item7") == says
        assert hand.get(f"{KEY}.2") == slot.encode() and hand.get(f"{KEY}.seq") == b"3"
        assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
        assert conn.cmd(f"ladd {KEY} item4") == b"STORED"
        assert conn.lget(KEY) == names(4)


def test_users_that_are_numbers_are_not_taken_for_numbers_of_entries(memcached, start_daemon):
    """Who and when, written by hand, and a prefix that is set up for numbers: nothing is lost."""
    daemon = start_daemon([memcached], config=ring(256))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        written = {f"{KEY}.{n % 256}": f"{1000 + n} {1700000000 + n}" for n in range(1, 301)}
        for name, text in written.items():
            hand.store("set", name, text)
        hand.store("set", f"{KEY}.seq", "300")
        for verb in ("ladd {} ann", "lget {}", "lrange {} 0 9", "llen {}"):
            answer = conn.cmd(verb.format(KEY))
            assert answer.startswith(b"SERVER_ERROR topic-X.") and ASKED.encode() in answer
        assert {name: hand.get(name).decode() for name in written} == written
        assert hand.get(f"{KEY}.seq") == b"300"


def test_a_slot_beyond_the_ring(memcached, start_daemon):
    """The ring is larger than this proxy believes."""
    daemon = start_daemon([memcached], config=ring(5, slot="%v %t"))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for n in range(1, 8):
            hand.store("set", f"{KEY}.{n}", f"user-{n} 170000000{n}")
        hand.store("set", f"{KEY}.seq", "7")
        assert conn.cmd(f"ladd {KEY} item1") == (
            f"SERVER_ERROR topic-X.5 is not of dialect ring: a slot beyond capacity = 5, {ASKED}"
        ).encode()
        assert hand.get(f"{KEY}.3") == b"user-3 1700000003"


def test_a_number_that_is_far_too_large_hides_nothing(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(5))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        conn.cmd(f"ladd {KEY} item1 item2 item3")
        hand.store("set", f"{KEY}.4", "900004 item9")
        assert conn.lget(KEY) == names(3, 2, 1)
        assert conn.cmd(f"ladd {KEY} item4 item5") == b"STORED"
        assert conn.lget(KEY) == names(5, 4, 3, 2, 1)


def test_two_proxies_write_at_the_same_time(memcached, start_daemon):
    daemons = [start_daemon([memcached], config=ring(1000)) for _ in range(2)]

    def client(number):
        with daemons[number % 2].conn() as conn:
            for n in range(50):
                assert conn.cmd(f"ladd {KEY} c{number}-{n}") == b"STORED"
                own = [item for item in conn.lget(KEY) if item.startswith(b"c%d-" % number)]
                assert own == [b"c%d-%d" % (number, i) for i in range(n, -1, -1)]

    in_threads(6, client)
    contents = []
    for daemon in daemons:
        with daemon.conn() as conn:
            contents.append(conn.lget(KEY))
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == sorted(b"c%d-%d" % (c, n) for c in range(6) for n in range(50))


def test_the_capacity_differs_between_two_proxies(memcached, start_daemon):
    """Numbers that are of other slots tell it, as soon as the ring has gone around."""
    small, large = [start_daemon([memcached], config=ring(n)) for n in (4, 8)]
    with small.conn() as few, large.conn() as many:
        for n in range(1, 4):
            assert few.cmd(f"ladd {KEY} item{n}") == b"STORED"
        assert few.lget(KEY) == many.lget(KEY) == names(3, 2, 1)
        for n in range(4, 7):
            assert few.cmd(f"ladd {KEY} item{n}") == b"STORED"
        assert few.lget(KEY) == names(6, 5, 4, 3)
        for verb in ("lget {}", "ladd {} item7"):
            answer = many.cmd(verb.format(KEY))
            assert answer.startswith(b"SERVER_ERROR topic-X.")
            assert b" is of another slot, " in answer
        assert few.lget(KEY) == names(6, 5, 4, 3)


def test_time_stamps(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(5, slot="%n %v %t"))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        before = int(time.time())
        assert conn.cmd(f"ladd {KEY} alice bob") == b"STORED"
        conn.send(f"laddb {KEY} 9\r\nmr x 1000\r\n")
        assert conn.line() == b"STORED"
        after = int(time.time()) + 1
        number, name, seconds = hand.get(f"{KEY}.1").split(b" ")
        assert (number, name) == (b"1", b"alice") and before - 1 <= int(seconds) <= after
        entries = conn.lgetb(KEY)
        assert [entry.rpartition(b" ")[0] for entry in entries] == [b"mr x 1000", b"bob", b"alice"]
        assert all(before - 1 <= int(entry.rpartition(b" ")[2]) <= after for entry in entries)
        assert conn.lget(KEY) == entries
        # By the name alone.
        assert conn.values(f"lhas {KEY} alice nobody bob")[0][2] == b"alice,bob"
        conn.send(f"lhasb {KEY} 9\r\nmr x 1000\r\n")
        assert conn.values_answer()[0][2] == b"mr x 1000"
        # "who, when", as an application by hand writes it.
        hand.conn.cmd(f"incr {KEY}.seq 1")
        hand.store("set", f"{KEY}.4", "4 carol 1700000000")
        assert conn.lget(KEY)[0] == b"carol 1700000000"
        assert conn.values(f"lhas {KEY} carol")[0][2] == b"carol"


def test_a_counter_that_was_thrown_out(memcached, start_daemon):
    """New entries come out newest all the same."""
    daemons = [start_daemon([memcached], config=ring(5)) for _ in range(2)]
    with Hand(memcached.port) as hand, daemons[0].conn() as conn, daemons[1].conn() as other:
        for n in range(1, 60):
            assert (conn if n % 2 else other).cmd(f"ladd {KEY} item{n}") == b"STORED"
            if n % 3 == 0:
                assert hand.conn.cmd(f"delete {KEY}.seq") == b"DELETED"
            assert conn.lget(KEY) == names(*range(n, max(0, n - 5), -1))
            assert other.lget(KEY) == conn.lget(KEY)


def test_a_counter_that_is_no_number(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(5))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", f"{KEY}.seq", "garbage")
        hand.store("set", f"{KEY}.3", "3 item3")
        for request in (f"ladd {KEY} item4", f"lget {KEY}", f"llen {KEY}"):
            assert conn.cmd(request) == (
                b"SERVER_ERROR topic-X.seq is not of dialect ring: no number, nothing done; "
                b"ldrop topic-X removes it"
            )
        assert conn.cmd("mn") == b"MN"
        assert hand.conn.cmd(f"delete {KEY}.seq") == b"DELETED"
        assert conn.cmd(f"ladd {KEY} item4") == b"STORED"
        assert conn.lget(KEY) == names(4, 3)


@pytest.mark.parametrize("text", ["garbage", "", "-5", "18446744073709551616"])
def test_dropping_a_ring_mends_its_counter(memcached, start_daemon, text):
    daemon = start_daemon([memcached], config=ring(5))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", f"{KEY}.seq", text)
        assert conn.cmd(f"ladd {KEY} item1").startswith(b"SERVER_ERROR")
        assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
        assert conn.cmd(f"ladd {KEY} item1") == b"STORED"
        assert conn.lget(KEY) == names(1)


def test_a_dropped_ring_is_empty_and_counts_on(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(50))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        conn.cmd(f"ladd {KEY} " + " ".join(f"item{n}" for n in range(1, 81)))
        assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
        assert conn.lget(KEY) == []
        assert hand.conn.stats()["curr_items"] == "1"
        assert conn.cmd(f"ladd {KEY} item81") == b"STORED"
        assert hand.get(f"{KEY}.31") == b"81 item81"
        assert conn.lget(KEY) == names(81)


@pytest.mark.parametrize("verb", ["ldel", "ldelq", "lset", "lsetq", "laddx", "ldelx", "lcreate"])
def test_verbs_that_a_ring_does_not_have(memcached, start_daemon, verb):
    daemon = start_daemon([memcached], config=ring(5))
    with daemon.conn() as conn:
        conn.cmd(f"ladd {KEY} item1")
        assert conn.cmd(f"{verb} {KEY} item1") == (
            b"CLIENT_ERROR %s: a ring takes ladd alone, and forgets by itself"
            % verb.rstrip("q").encode()
        )
        assert conn.lget(KEY) == names(1)
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.lget(KEY) == names(1)


def test_a_large_ring(memcached, start_daemon):
    daemon = start_daemon([memcached], config=ring(5000))
    with daemon.conn() as conn:
        for start in range(0, 7000, 1000):
            items = " ".join(f"item{n}" for n in range(start, start + 1000))
            assert conn.cmd(f"ladd {KEY} {items}") == b"STORED"
        assert conn.lget(KEY) == names(*range(6999, 1999, -1))
        assert conn.llen(KEY) == 5000
