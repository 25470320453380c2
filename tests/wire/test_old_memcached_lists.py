# SPDX-License-Identifier: BSD-3-Clause
"""Lists on memcacheds before 1.6.10, by `gets` and classic changes."""

import random
import time

import pytest

from harness import wait_until
from model import TINY, Load, assert_compact, compact, converse_at_random
from test_dialects_support import DIALECTS

VERSIONS = pytest.mark.parametrize("version", ["1.4.15", "1.5.22", "1.6.9"])
NO_TIMES = (
    "SERVER_ERROR backend %s: memcached before 1.6.10 tells no times to live when asked for its clock, "
    "nothing done"
)


@VERSIONS
def test_lists_are_what_the_model_says(version, start_old, start_daemon):
    old, keys = start_old(version), ["one", "two", "three"]
    with start_daemon([old], config={"lists": TINY}).conn() as conn:
        converse_at_random(conn, 1, keys, rounds=6, requests=150, universe=300)
        stats = conn.stats()
        assert int(stats["list_flips"]) > 20 and int(stats["list_merges"]) > 3
        for key in keys:
            assert_compact(conn, key, [old.memcached])
    assert old.meta == []
    assert any(line.startswith(b"cas ") for line in old.lines)


@pytest.mark.parametrize("placement", ["head", "spread"])
def test_lists_on_old_and_new_servers(placement, start_old, start_memcached, start_daemon):
    servers = [start_old("1.5.22"), start_memcached(), start_old("1.6.9")]
    keys = [f"key{n}" for n in range(40)]  # so that each server has some, wherever it listens
    with start_daemon(servers, config={"lists": {**TINY, "placement": placement}}).conn() as conn:
        converse_at_random(conn, 2, keys, rounds=6, requests=150, universe=300)
    for old in (servers[0], servers[2]):
        assert old.lines != [] and old.meta == []


@VERSIONS
def test_what_needs_times_is_refused_by_name(version, start_old, start_daemon):
    old = start_old(version)
    refused = (NO_TIMES % old.address).encode()
    config = {"lists for-a-while:": {"ttl_s": 100}, "lists filled:": {"on_missing": "refuse"}}
    with start_daemon([old], config=config).conn() as conn:
        assert conn.cmd("lset l a b") == b"STORED"
        for request in ("ltouch l 100", "lput l 1 100\r\nc", "lput missing 1 100\r\nc", "llease filled:l 10",
                        "ladd for-a-while:l a", "laddx for-a-while:l a", "lset for-a-while:l a"):
            assert conn.cmd(request) == refused, request
        assert conn.lget("l") == [b"a", b"b"]
        assert conn.cmd("lget missing") == conn.cmd("lget for-a-while:l") == b"END"
        assert conn.cmd("lget filled:l") == b"END"
        assert conn.cmd("ltouch l 0") == b"TOUCHED"
        assert conn.cmd("lttl l") == b"-1"
        assert conn.cmd("lcopy l copy") == b"2"
        assert conn.cmd("laddx l c") == b"1"
    assert old.meta == []


def test_sublists_that_are_cached_are_touched(start_old, start_daemon):
    """By a `get`, whose value nobody needs."""
    old = start_old("1.5.22")
    with start_daemon([old], config={"lists": {**TINY, "touch_interval_s": 1}}).conn() as conn:
        items = [b"item-%d" % n for n in range(200)]
        for n in range(0, 200, 10):
            assert conn.cmd(b"ladd l " + b" ".join(items[n : n + 10])) == b"STORED"
        compact(conn, "l")
        assert conn.lget("l") == items
        before = sum(line.startswith(b"get l#") for line in old.lines)
        for _ in range(3):
            time.sleep(0.7)
            assert conn.lget("l") == items
        assert sum(line.startswith(b"get l#") for line in old.lines) > before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects(dialect, start_old, start_daemon):
    old = start_old("1.5.22")
    with start_daemon([old], config={"lists": {"dialect": dialect}}).conn() as conn:
        there = []
        for n in range(40):
            assert conn.cmd(f"ladd l item{n}") == b"STORED"
            there.append(b"item%d" % n)
            if n % 3 == 0 and dialect != "ring":
                assert conn.cmd(f"ldel l item{n // 2}") == b"DELETED"
                there = [item for item in there if item != b"item%d" % (n // 2)]
            if n % 10 == 9:
                assert conn.cmd("lcompact l") == b"OK"
        assert sorted(conn.lget("l")) == sorted(there)
        assert conn.cmd("ldrop l") == b"DELETED"
        assert conn.cmd("lget l") == b"END"
    assert old.meta == []


def answers(daemon):
    with daemon.conn() as conn:
        return not conn.cmd("llen one").startswith(b"SERVER_ERROR")


def load(start_daemon, servers, memcacheds, disturb, seconds=6):
    """Clients at two proxies while disturb(daemons) is called again and again."""
    config = {"lists": {**TINY, "log_hard_limit_bytes": 8192}}
    daemons = [start_daemon(servers, config=config) for _ in range(2)]
    keys, at_least = [b"one", b"two", b"three"], {"ladd": 100, "laddx": 10}
    work = Load(daemons, seconds, 6, keys, at_least=at_least)
    work.run(lambda: disturb(daemons))
    for daemon in daemons:
        wait_until("both workers are connected again", lambda: all(answers(daemon) for _ in range(8)))
        with daemon.conn() as conn:
            work.judge(conn)
    with daemons[0].conn() as conn:
        work.judge_leftovers(conn, memcacheds)
        assert work.has_done_enough()


@pytest.mark.slow
def test_connections_are_cut_and_versions_change_under_load(start_old, start_daemon):
    """A server that is upgraded and downgraded, of which the content stays, so that all can be judged."""
    old, rng = start_old("1.5.22"), random.Random(4)

    def disturb(_):
        time.sleep(rng.uniform(0.02, 0.2))
        old.version = rng.choice(["1.4.15", "1.5.22", "1.6.9", "1.6.45", "1.6.45"])
        old.cut()

    load(start_daemon, [old], [old.memcached], disturb)
    assert old.meta != []


@pytest.mark.slow
def test_proxies_are_killed_under_load(start_old, start_daemon):
    servers, rng = [start_old("1.5.22"), start_old("1.6.9")], random.Random(5)

    def disturb(daemons):
        time.sleep(rng.uniform(0.05, 0.4))
        daemon = rng.choice(daemons)
        daemon.kill()
        daemon.start()

    load(start_daemon, servers, [old.memcached for old in servers], disturb)
    assert all(old.meta == [] for old in servers)
