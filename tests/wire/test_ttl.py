# SPDX-License-Identifier: BSD-3-Clause
"""Times to live by list verbs and by configuration: ltouch, lttl, ttl_s, ttl_renew. No test asserts how
long something takes: what is left is compared with bounds that hold however slow the machine is."""

import pytest

from harness import wait_until

MONTH_S = 30 * 86400
TINY = {
    "log_limit_bytes": 256,
    "log_hard_limit_bytes": 2048,
    "sublist_limit_bytes": 512,
    "max_item_bytes": 200,
}


def ttl(conn, key):
    return int(conn.cmd(f"lttl {key}"))


def test_ltouch_and_lttl(conn):
    assert conn.cmd("lttl l") == conn.cmd("ltouch l 100") == b"NOT_FOUND"
    assert conn.cmd("ladd l a b") == b"STORED"
    assert ttl(conn, "l") == -1
    assert conn.cmd("ltouch l 1000") == b"TOUCHED"
    assert 0 < ttl(conn, "l") <= 1000
    assert conn.cmd(f"ltouch l {MONTH_S}") == b"TOUCHED"
    assert 1000 < ttl(conn, "l") <= MONTH_S
    assert conn.cmd("ltouch l 2000000000") == b"TOUCHED"
    assert MONTH_S < ttl(conn, "l")
    assert conn.cmd("ltouch l 0") == b"TOUCHED"
    assert ttl(conn, "l") == -1
    assert conn.lget("l") == [b"a", b"b"]
    assert conn.cmd("ldel l a b") == b"DELETED"
    assert conn.cmd("lttl l") == conn.cmd("ltouch l 100") == b"NOT_FOUND"


@pytest.mark.parametrize("exptime", [-1, MONTH_S + 1])
def test_ltouch_ends_a_list_at_once(conn, exptime):
    assert conn.cmd("ladd l a") == b"STORED"
    assert conn.cmd(f"ltouch l {exptime}") == b"TOUCHED"
    assert conn.cmd("lttl l") == b"NOT_FOUND"
    assert conn.lget("l") == []
    assert conn.cmd("ladd l b") == b"STORED"
    assert conn.lget("l") == [b"b"]


def test_a_list_is_gone_when_its_time_is_over(conn):
    assert conn.cmd("ladd l a") == b"STORED"
    assert conn.cmd("ltouch l 1") == b"TOUCHED"
    wait_until("gone", lambda: conn.cmd("lttl l") == b"NOT_FOUND")
    assert conn.lget("l") == []


@pytest.mark.memcacheds(3)
@pytest.mark.config(**{"lists": {**TINY, "placement": "spread"}})
def test_long_lists_take_a_time(conn):
    assert conn.cmd("ladd l first") == b"STORED"
    for n in range(100):
        assert conn.cmd(f"laddx l item-{n}") == b"1"
    assert conn.cmd("ltouch l 5000") == b"TOUCHED"
    for n in range(100):
        assert conn.cmd(f"ldelx l item-{n}") == b"1"
    assert conn.cmd("lcompact l") == b"OK"
    assert 0 < ttl(conn, "l") <= 5000


@pytest.mark.memcacheds(2)
def test_lists_in_a_pool_of_their_own_take_a_time(start_daemon, memcacheds):
    plain, own = memcacheds
    daemon = start_daemon([plain], config={"pool own": {"servers": own.address}, "lists": {"pool": "own"}})
    with daemon.conn() as conn:
        assert conn.cmd("ladd l a") == b"STORED"
        assert conn.cmd("ltouch l 100") == b"TOUCHED"
        assert 0 < ttl(conn, "l") <= 100


@pytest.mark.config(
    **{
        "lists": {"ttl_s": 1000},
        "lists change-": {"ttl_renew": "change"},
        "lists read-": {"ttl_renew": "read"},
        "lists long-": {"ttl_s": 31536000, "ttl_renew": "change"},
    }
)
def test_lists_begin_with_a_time_and_renew_it(conn):
    for prefix in ["", "change-", "read-"]:
        assert conn.cmd(f"ladd {prefix}l a") == b"STORED"
        assert 100 < ttl(conn, f"{prefix}l") <= 1000
        assert conn.cmd(f"ltouch {prefix}l 100") == b"TOUCHED"
        assert conn.lget(f"{prefix}l") == [b"a"]
    wait_until("renewed by a read", lambda: ttl(conn, "read-l") > 100)
    assert ttl(conn, "l") <= 100 and ttl(conn, "change-l") <= 100
    for prefix in ["", "change-"]:
        assert conn.cmd(f"ladd {prefix}l b") == b"STORED"
    wait_until("renewed by a blind change", lambda: ttl(conn, "change-l") > 100)
    assert ttl(conn, "l") <= 100
    assert conn.cmd("laddx l c") == b"1"
    assert ttl(conn, "l") <= 100
    assert conn.cmd("ltouch change-l 100") == conn.cmd("ltouch read-l 0") == b"TOUCHED"
    assert conn.cmd("laddx change-l c") == conn.cmd("laddx read-l c") == b"1"
    assert 100 < ttl(conn, "change-l") <= 1000
    assert ttl(conn, "read-l") == -1
    assert conn.cmd("laddx long-l a") == b"1"
    assert MONTH_S < ttl(conn, "long-l") <= 31536000
    assert int(conn.stats()["list_renewals"]) >= 2


@pytest.mark.parametrize("dialect", ["simple", "tombstone", "signed"])
def test_dialects_of_one_item(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config={"lists": {"dialect": dialect, "ttl_s": 1000}})
    with daemon.conn() as conn:
        assert conn.cmd("lttl l") == conn.cmd("ltouch l 100") == b"NOT_FOUND"
        assert conn.cmd("ladd l a b") == b"STORED"
        assert 100 < ttl(conn, "l") <= 1000
        assert conn.cmd("ltouch l 100") == b"TOUCHED"
        assert conn.cmd("laddx l c") == b"1"
        assert 0 < ttl(conn, "l") <= 100
        assert conn.cmd("ltouch l 0") == b"TOUCHED"
        assert ttl(conn, "l") == -1
        assert conn.lget("l") == [b"a", b"b", b"c"]


@pytest.mark.parametrize("dialect", ["paired", "flip", "marker", "sublists", "ring"])
def test_dialects_of_several_items(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config={"lists": {"dialect": dialect}})
    with daemon.conn() as conn, memcached.conn() as backend:
        assert conn.cmd("lttl l") == b"NOT_FOUND"
        assert conn.cmd("ladd l a") == b"STORED"
        assert conn.cmd("ltouch l 100").startswith(b"CLIENT_ERROR ltouch: ")
        assert ttl(conn, "l") == -1
        if dialect == "paired":
            assert backend.cmd("touch follow-l 50") == b"TOUCHED"
            assert 0 < ttl(conn, "l") <= 50
