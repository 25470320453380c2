# SPDX-License-Identifier: BSD-3-Clause
"""Lists through many flips and merges, with limits so small that these never stop, against a model;
and what is left in the backends afterwards."""

import random

import pytest

from harness import wait_until
from model import (
    TINY,
    Model,
    assert_compact,
    assert_sizes,
    compact,
    converse,
    dump,
    head_of,
    random_request,
    sublists,
)

LAYOUTS = pytest.mark.parametrize(
    "servers, placement, cache_bytes",
    [(1, "head", "64m"), (3, "spread", 0), (1, "head", 0), (3, "head", "1k"), (3, "spread", "64m")],
)


@pytest.fixture
def layout(start_memcached, start_daemon, servers, placement, cache_bytes):
    """The daemon and the memcacheds of one layout."""
    memcacheds = [start_memcached() for _ in range(servers)]
    lists = {**TINY, "placement": placement, "cache_bytes": cache_bytes}
    return start_daemon(memcacheds, config={"lists": lists}), memcacheds


def assert_list(conn, model, key):
    assert conn.lget(key) == model.items(key)
    assert conn.llen(key) == len(model.items(key))


@LAYOUTS
@pytest.mark.parametrize("seed", [1, 2])
def test_random_requests_give_what_the_model_says(layout, seed):
    daemon, memcacheds = layout
    rng, model, keys = random.Random(seed), Model(), ["one", "two", "three"]
    with daemon.conn() as conn:
        for _ in range(15):
            pairs = [random_request(rng, model, rng.choice(keys), universe=300) for _ in range(200)]
            converse(conn, pairs)
            key = rng.choice(keys)
            compact(conn, key)
            assert_list(conn, model, key)
        stats = conn.stats()
        assert int(stats["list_flips"]) > 50 and int(stats["list_merges"]) > 10
        for key in keys:
            assert_compact(conn, key, memcacheds)
            assert_list(conn, model, key)
    assert_sizes(memcacheds, TINY["sublist_limit_bytes"] + TINY["log_hard_limit_bytes"])


@LAYOUTS
def test_request_after_request(layout):
    """Without a pipeline flips are published between requests, not beside them."""
    daemon, memcacheds = layout
    rng, model = random.Random(3), Model()
    with daemon.conn() as conn:
        for _ in range(2000):
            converse(conn, [random_request(rng, model, "l", universe=500, reads=0.2, lset=0.005)])
        assert_compact(conn, "l", memcacheds)
        assert_list(conn, model, "l")


@LAYOUTS
def test_ldrop_of_a_long_list_leaves_nothing_in_the_backends(layout):
    daemon, memcacheds = layout
    with daemon.conn() as conn:
        for n in range(500):
            assert conn.cmd(f"ladd l {n}-a {n}-b {n}-c") == b"STORED"
        assert sublists(memcacheds, "l") != []
        assert conn.cmd("ldrop l") == b"DELETED"
        assert conn.lget("l") == []
        compact(conn, "l")
    assert head_of(memcacheds, "l") is None
    assert sublists(memcacheds, "l") == []


@LAYOUTS
def test_deleting_all_items_leaves_nothing_in_the_backends(layout):
    daemon, memcacheds = layout
    with daemon.conn() as conn:
        for n in range(300):
            assert conn.cmd(f"ladd l {n}-a {n}-b {n}-c") == b"STORED"
        for n in range(300):
            assert conn.cmd(f"ldel l {n}-a {n}-b {n}-c") == b"DELETED"
        assert conn.llen("l") == 0
        compact(conn, "l")
    assert head_of(memcacheds, "l") is None
    assert sublists(memcacheds, "l") == []


@pytest.mark.memcacheds(3)
@pytest.mark.config(lists={**TINY, "placement": "head"})
def test_sublists_lie_beside_their_head(conn, memcacheds):
    keys = [f"list-{n}" for n in range(20)]
    for key in keys:
        for n in range(200):
            conn.send(f"laddq {key} item-{n}-a item-{n}-b\r\n")
        assert conn.llen(key) == 400
    held = [{name.split("#")[0] for name in dump(memcached)} for memcached in memcacheds]
    assert sorted(key for server in held for key in server) == sorted(keys)
    assert all(held)


@pytest.mark.memcacheds(3)
@pytest.mark.config(lists={**TINY, "placement": "spread"})
def test_spread_uses_all_servers_for_one_list(conn, memcacheds):
    for n in range(500):
        conn.send(f"laddq l item-{n}-a item-{n}-b\r\n")
    assert conn.llen("l") == 1000
    compact(conn, "l")
    assert {server.port for server, _ in sublists(memcacheds, "l")} == {m.port for m in memcacheds}


@pytest.mark.config(lists=TINY)
def test_lrange_reads_a_long_list_in_parts(conn):
    items = [b"item-%d" % n for n in range(3000)]
    for at in range(0, len(items), 10):
        assert conn.cmd(b"ladd l " + b" ".join(items[at : at + 10])) == b"STORED"
    read = []
    for at in range(0, 3100, 100):
        for _, _, data in conn.values(f"lrange l {at} {at + 99}"):
            read += data.split(b",")
    assert read == items
    assert conn.values("lrange l -5 -1")[0][2] == b",".join(items[-5:])
    assert conn.values("lrevrange l 0 4")[0][2] == b",".join(items[:-6:-1])
    assert conn.values("lrevrange l 1500 1999")[0][2] == b",".join(items[1499:999:-1])
    assert conn.values("lrevrange l -2 -1")[0][2] == b",".join(items[1::-1])
    assert conn.values("lrange l -3000 -2999")[0][2] == b",".join(items[:2])


@pytest.mark.config(lists=TINY)
def test_a_small_list_never_leaves_its_head(conn, memcacheds):
    for n in range(500):
        assert conn.cmd(f"ladd l a b c item-{n}") == b"STORED"
        assert conn.cmd(f"ldel l item-{n}") == b"DELETED"
    assert conn.lget("l") == [b"a", b"b", b"c"]
    assert int(conn.stats()["list_flips"]) == 0
    assert sublists(memcacheds, "l") == []


@pytest.mark.config(lists=TINY)
def test_a_long_list_is_cleared_by_lset(conn, memcacheds):
    for n in range(400):
        conn.send(f"laddq l item-{n}-a item-{n}-b\r\n")
    assert conn.cmd("lset l x y") == b"STORED"
    assert conn.lget("l") == [b"x", b"y"]
    assert_compact(conn, "l", memcacheds)
    assert conn.lget("l") == [b"x", b"y"]


@pytest.mark.config(lists=TINY, proxy={"threads": 4})
def test_workers_of_one_proxy_on_one_list(daemon, memcacheds):
    """Each connection may be another worker's, with a view of its own of how long the log is."""
    model, rng = Model(), random.Random(5)
    conns = [daemon.conn() for _ in range(8)]
    for _ in range(2000):
        converse(rng.choice(conns), [random_request(rng, model, "l", universe=200)])
    assert_compact(conns[0], "l", memcacheds)
    for conn in conns:
        assert_list(conn, model, "l")
        conn.close()


@pytest.mark.config(lists={**TINY, "cache_bytes": 0}, proxy={"threads": 1})
def test_lcompact_beside_automatic_merges_ends(daemon, memcacheds):
    """One may be about to merge when the other has merged and goes on."""
    with daemon.conn() as writer, daemon.conn() as compacter:
        for n in range(100):
            key = f"list-{n}"
            for m in range(100):
                writer.send(f"laddq {key} item-{m}-a item-{m}-b item-{m}-c\r\n")
                if m % 7 == 0:
                    compacter.send(f"lcompact {key}\r\n")
            assert writer.llen(key) == 300
            for _ in range(15):
                assert compacter.line() in (b"OK", b"SERVER_ERROR busy")


@pytest.mark.config(lists={**TINY, "announcement_grace_s": 300})
def test_a_time_to_live_given_to_the_head_survives_flips(conn, memcached):
    conn.cmd("ladd l a")
    with memcached.conn() as backend:
        assert backend.cmd("touch l# 1000") == b"TOUCHED"
        for n in range(300):
            assert conn.cmd(f"ladd l item-{n}") == b"STORED"
        assert int(conn.stats("lstat l")["runs"]) >= 1
        assert 900 <= int(conn.stats("lstat l")["ttl"]) <= 1000
        assert 900 <= int(backend.cmd("mg l# t").split(b"t")[1]) <= 1000


@pytest.mark.config(lists={**TINY, "log_hard_limit_bytes": 512, "fold_memory_bytes": "34k"})
def test_a_list_much_larger_than_the_fold_memory_stays_readable(conn, memcacheds):
    items = [b"item-%d-%s" % (n, b"x" * 20) for n in range(3000)]
    for n, item in enumerate(items):
        assert conn.cmd(b"ladd l " + item) == b"STORED"
        if n % 100 == 0:
            assert conn.llen("l") == n + 1
    assert conn.lget("l") == items
    for item in items[::2]:
        assert conn.cmd(b"ldel l " + item) == b"DELETED"
    assert conn.lget("l") == items[1::2]
    assert_compact(conn, "l", memcacheds)
    assert conn.lget("l") == items[1::2]


def load(conn, verb, key, items, batch=500):
    """Pipelined, so that a million items take seconds."""
    batches = [items[at : at + batch] for at in range(0, len(items), batch)]
    requests = [b" ".join([verb, key, *some]) + b"\r\n" for some in batches]
    answer = {b"ladd": b"STORED\r\n", b"ldel": b"DELETED\r\n"}[verb]
    for at in range(0, len(requests), 50):
        converse(conn, [(request, answer) for request in requests[at : at + 50]])


@pytest.mark.slow
@pytest.mark.memcacheds(2, "-m", "256")
@pytest.mark.config(**{"pool main": {"timeout_ms": 10000}})
def test_a_list_of_a_million_items(daemon, memcacheds):
    items = [b"user-%07d" % n for n in range(1000000)]
    with daemon.conn(timeout_s=60) as conn:
        load(conn, b"ladd", b"big", items)
        assert conn.llen("big") == 1000000
        assert conn.lget("big") == items
        load(conn, b"ldel", b"big", items[::10])
        rest = [item for n, item in enumerate(items) if n % 10]
        stat = compact(conn, "big")
        assert (stat["items"], stat["runs"]) == ("900000", "1")
        assert conn.lget("big") == rest
        wait_until("nothing to be tidied up", lambda: compact(conn, "big")["garbage_names"] == "0")
        assert_compact(conn, "big", memcacheds)
    assert_sizes(memcacheds, (128 + 128) * 1024)
