# SPDX-License-Identifier: BSD-3-Clause
"""Lists that are too large for view_bytes are read by the indexes of their runs."""

import random

import pytest

from harness import wait_until
from model import TINY

# A view has room for a fraction of what the tests' lists take.
PROXY = {"view_bytes": 4096, "threads": 2}


@pytest.fixture
def proxies(start_daemon, memcacheds):
    """A function that starts two proxies before the same servers."""
    return lambda **more: [
        start_daemon(memcacheds, config={"proxy": {**PROXY, **more}, "lists": TINY})
        for _ in range(2)
    ]


def shown(conn, text):
    """The items of an answer that is one value or none."""
    return [item for _, _, data in conn.values(text) for item in data.split(b",")]


def assert_shows(conn, items, rng):
    """That list, whichever way it is asked for."""
    n = len(items)
    assert conn.cmd("llen k") == b"%d" % n
    assert shown(conn, "lrange k -10 -1") == items[-10:]
    assert shown(conn, "lrange k 0 9") == items[:10]
    assert shown(conn, "lrevrange k 0 9") == items[::-1][:10]
    at = rng.randrange(n - 20)
    assert shown(conn, f"lrange k {at} {at + 19}") == items[at : at + 20]
    assert shown(conn, f"lrevrange k {at} {at + 19}") == items[::-1][at : at + 20]
    one = items[at].decode()
    assert shown(conn, f"lhas k {one} absent") == [items[at]]
    assert shown(conn, f"lafter k {one} 3") == items[at + 1 : at + 4]
    assert shown(conn, f"lbefore k {one} 3") == items[max(at - 3, 0) : at][::-1]
    sample = shown(conn, "lrandom k 5")
    assert len(set(sample)) == 5 and set(sample) <= set(items)


def has_read_by_index(daemon):
    with daemon.conn() as conn:
        assert shown(conn, "lhas k item-11-0") == [b"item-11-0"]
    return indexed_reads(daemon) > 0


def indexed_reads(daemon):
    with daemon.conn() as conn:
        stats = conn.stats()
    assert int(stats["index_bytes"]) <= int(stats["index_limit_bytes"])
    return int(stats["list_indexed_reads"])


@pytest.mark.parametrize("index_bytes", ["256m", "4k", "0"])
def test_reads_through_two_proxies_while_the_list_changes(proxies, index_bytes):
    rng = random.Random(7)
    daemons = proxies(index_bytes=index_bytes)
    conns = [daemon.conn() for daemon in daemons]
    items = []
    for round_ in range(12):
        fresh = [b"item-%d-%d" % (round_, i) for i in range(150)]
        again = rng.sample(items, 20) if items else []
        gone = rng.sample(items, 30) if items else []
        for at in range(0, 150, 15):
            added = b" ".join(fresh[at : at + 15]).decode()
            assert rng.choice(conns).cmd(f"ladd k {added}") == b"STORED"
        for item in again:
            assert rng.choice(conns).cmd(f"ladd k {item.decode()}") == b"STORED"
        for item in gone:
            assert rng.choice(conns).cmd(f"ldel k {item.decode()}") == b"DELETED"
        items = [item for item in items if item not in gone] + fresh
        for conn in conns:
            assert_shows(conn, items, rng)
    assert conns[0].cmd("lcompact k") == b"OK"
    for conn in conns:
        assert_shows(conn, items, rng)
        conn.close()
    for daemon in daemons:
        if index_bytes == "256m":
            wait_until("the index that a read asked for is made", lambda: has_read_by_index(daemon))
        else:
            assert indexed_reads(daemon) == 0
