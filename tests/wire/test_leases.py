# SPDX-License-Identifier: BSD-3-Clause
"""Leases: one client of many fills a list that is missing."""

import threading

import pytest

from harness import in_threads, wait_until

REFUSE = {"on_missing": "refuse"}
ITEMS = [b"apple", b"pear"]
CLIENTS = 200

pytestmark = pytest.mark.config(lists=REFUSE)


def lease(conn, key="k", seconds=60):
    """The token, or the word that the proxy answers instead."""
    answer = conn.cmd(f"llease {key} {seconds}")
    return int(answer) if answer.isdigit() else answer


def put(conn, key, items, token=None):
    block = b",".join(items)
    words = "" if token is None else f" 0 {token}"
    return conn.cmd(f"lput {key} {len(block)}{words}", block)


def is_there(conn, key="k"):
    return bool(conn.values(f"lget {key}"))


def stat(daemons, name):
    total = 0
    for daemon in daemons:
        with daemon.conn() as conn:
            total += int(conn.stats()[name])
    return total


@pytest.fixture
def two(start_daemon, memcached):
    """Two proxies before the same memcached."""
    return [start_daemon([memcached], config={"lists": REFUSE}) for _ in range(2)]


def test_a_token_is_a_number_that_every_client_can_give_back(conn):
    token = lease(conn)
    assert float(token) == token < 2**53  # JavaScript's numbers are doubles
    assert put(conn, "k", ITEMS, token) == b"STORED"


def test_of_many_clients_that_miss_at_once_one_fills(two):
    fills = []
    together = threading.Barrier(CLIENTS)

    def read_through(number):
        """What an application does."""
        with two[number % 2].conn() as conn:
            together.wait()
            while not is_there(conn):
                token = lease(conn)
                if isinstance(token, int):
                    fills.append(number)  # the database is asked here
                    assert put(conn, "k", ITEMS, token) == b"STORED"
            assert conn.lget("k") == ITEMS

    in_threads(CLIENTS, read_through)
    assert len(fills) == 1
    assert stat(two, "list_leases") == 1
    assert stat(two, "list_fills_late") == 0


def test_a_holder_that_dies_is_replaced(two):
    with two[0].conn() as first:
        token = lease(first, seconds=1)
    with two[1].conn() as second:
        newer = wait_until("a second lease", lambda: isinstance(t := lease(second, seconds=60), int) and t)
        assert newer != token
    with two[0].conn() as late:
        assert put(late, "k", [b"old"], token) == b"EXISTS"
        assert not is_there(late)
        assert put(late, "k", ITEMS, newer) == b"STORED"
        assert put(late, "k", [b"old"], newer) == b"EXISTS"
        assert late.lget("k") == ITEMS
    assert stat(two, "list_fills_late") == 2


def test_a_late_fill_brings_nothing_back_that_was_dropped(conn):
    token = lease(conn)
    assert conn.cmd("ldrop k") == b"NOT_FOUND"
    assert put(conn, "k", ITEMS, token) == b"EXISTS"
    newer = lease(conn)
    assert isinstance(newer, int) and newer != token
    assert put(conn, "k", ITEMS, token) == b"EXISTS"
    assert put(conn, "k", ITEMS, newer) == b"STORED"
    assert conn.cmd("ldrop k") == b"DELETED"
    assert put(conn, "k", ITEMS, newer) == b"EXISTS"
    assert not is_there(conn)


@pytest.mark.parametrize("fill", ["lset k a", "lcreate k a", "lput"])
def test_a_fill_without_a_token_ends_the_lease(conn, fill):
    token = lease(conn)
    assert (put(conn, "k", [b"a"]) if fill == "lput" else conn.cmd(fill)) == b"STORED"
    assert put(conn, "k", ITEMS, token) == b"EXISTS"
    assert conn.lget("k") == [b"a"]
    assert lease(conn) == b"EXISTS"
    assert conn.cmd("ladd k b") == b"STORED"


def test_a_leased_list_is_missing(conn):
    assert isinstance(lease(conn), int)
    assert lease(conn) == b"NOT_STORED"
    for request, answer in {
        "ltouch k 10": b"NOT_FOUND",
        "lttl k": b"NOT_FOUND",
        "llen k": b"0",
        "lcompact k": b"NOT_FOUND",
        "lget k": b"END",
        "lstat k": b"END",
        "lhas k a": b"END",
        "lrange k 0 -1": b"END",
    }.items():
        assert conn.cmd(request) == answer, request


def test_changes_under_a_lease_stand_behind_the_fill(two):
    conn, other = (daemon.conn() for daemon in two)
    token = lease(conn)
    assert conn.cmd("ladd k new") == b"STORED"
    assert other.cmd("ldel k a") == b"DELETED"
    assert conn.cmd("llen k") == b"0"
    assert put(conn, "k", [b"a", b"b"], token) == b"STORED"
    assert conn.lget("k") == [b"b", b"new"]


@pytest.mark.parametrize("change, answer", [("laddx", b"NOT_STORED"), ("ldelx", b"NOT_FOUND")])
def test_exact_changes_end_a_lease(conn, change, answer):
    token = lease(conn)
    assert conn.cmd(f"{change} k a") == answer
    assert put(conn, "k", [b"a", b"b"], token) == b"EXISTS"
    assert conn.cmd("ladd k a") == b"NOT_STORED"
    assert isinstance(lease(conn), int)


@pytest.mark.config(lists={**REFUSE, "log_limit_bytes": 512, "max_item_bytes": 100})
def test_a_long_content_fills_by_its_token(conn, memcached):
    items = [b"item-%d" % number for number in range(300)]
    token = lease(conn)
    assert put(conn, "k", items, token + 1) == b"EXISTS"
    assert put(conn, "k", items, token) == b"STORED"
    assert conn.lget("k") == items
    assert conn.cmd("lttl k") == b"-1"


def test_the_head_of_a_lease_goes_by_itself(conn, memcached):
    assert isinstance(lease(conn, seconds=60), int)
    with memcached.conn() as direct:
        answer = direct.cmd("mg k# t")
        assert 60 < int(answer.split()[1][1:]) <= 120


@pytest.mark.parametrize(
    "lists, text",
    [
        ({}, b"on_missing = refuse"),
        ({"dialect": "simple"}, b"dialect native only"),
        ({**REFUSE, "lease_max_s": 9}, b"1 to 9 (lease_max_s)"),
    ],
)
def test_what_is_needed_is_said(start_daemon, memcached, lists, text):
    with start_daemon([memcached], config={"lists": lists}).conn() as conn:
        assert text in conn.cmd("llease k 10")
        assert conn.cmd("version").startswith(b"VERSION")
