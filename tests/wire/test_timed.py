# SPDX-License-Identifier: BSD-3-Clause
"""Items with a time of their own: laddt, and what every other verb makes of them."""

import pytest

from harness import wait_until


timed = pytest.mark.config(lists={})


def lttl(conn, item, key="k"):
    answer = conn.cmd(f"lttl {key} {item}")
    return int(answer) if answer.lstrip(b"-").isdigit() else answer


def ranged(conn, line):
    return [item for _, _, value in conn.values(line) for item in value.split(b",")]


def all_ways(conn, key="k"):
    """The list as each kind of read shows it; they must agree, unless an item ends in between."""
    items = conn.lget(key)
    assert conn.lgetb(key) == items
    assert conn.llen(key) == len(items)
    assert ranged(conn, f"lrange {key} 0 -1") == items
    return items


def wait_until_gone(conn, item, key="k"):
    wait_until(f"{item} is over", lambda: item.encode() not in conn.lget(key))


@timed
def test_an_item_is_in_the_list_until_its_time_is_over(conn):
    assert conn.cmd("ladd k stays") == b"STORED"
    assert conn.cmd("laddt k 1 soon") == b"STORED"
    assert conn.cmd("laddt k 1000 later last") == b"STORED"
    wait_until_gone(conn, "soon")
    assert all_ways(conn) == [b"stays", b"later", b"last"]
    assert conn.cmd("lhas k soon") == b"END"
    assert 990 < lttl(conn, "later") <= 1000
    assert lttl(conn, "stays") == -1
    assert lttl(conn, "soon") == b"NOT_FOUND"
    assert lttl(conn, "never") == b"NOT_FOUND"
    assert conn.cmd("lttl k") == b"-1"


@timed
def test_a_time_moves_an_item_to_the_end_and_ladd_takes_the_time_away(conn):
    conn.cmd("ladd k a b c")
    conn.cmd("laddt k 1000 a")
    assert all_ways(conn) == [b"b", b"c", b"a"]
    conn.cmd("laddt k 2000 b")
    assert lttl(conn, "b") > 1000
    conn.cmd("ladd k a")
    assert all_ways(conn) == [b"c", b"b", b"a"]
    assert lttl(conn, "a") == -1
    assert conn.cmd("laddx k b d") == b"1"
    assert lttl(conn, "b") == -1
    assert all_ways(conn) == [b"c", b"a", b"b", b"d"]
    conn.cmd("laddt k 1000 d")
    assert conn.cmd("ldelx k d") == b"1"
    assert all_ways(conn) == [b"c", b"a", b"b"]


@timed
def test_the_same_behind_a_compaction(conn):
    conn.cmd("ladd k a b c")
    conn.cmd("lcompact k")
    conn.cmd("laddt k 1 b")
    conn.cmd("laddt k 1000 a d")
    assert conn.cmd("lcompact k") == b"OK"
    wait_until_gone(conn, "b")
    assert all_ways(conn) == [b"c", b"a", b"d"]
    conn.cmd("ladd k b")
    assert conn.cmd("lcompact k") == b"OK"
    assert all_ways(conn) == [b"c", b"a", b"d", b"b"]
    assert lttl(conn, "b") == -1
    assert lttl(conn, "d") > 900


@pytest.mark.config(lists={"log_limit_bytes": 1024, "max_item_bytes": 100, "sublist_limit_bytes": 1024})
def test_a_long_list_of_which_some_end(conn):
    """Runs, views and counts: the head does not change when an item leaves."""
    for i in range(200):
        conn.cmd(f"laddt k {1 if i % 2 else 1000} item-{i}")
    kept = [b"item-%d" % i for i in range(0, 200, 2)]
    wait_until("half of the list is over", lambda: conn.llen("k") == len(kept))
    assert all_ways(conn) == kept
    assert ranged(conn, "lrange k -2 -1") == kept[-2:]
    assert ranged(conn, "lrevrange k 0 1") == kept[:-3:-1]
    assert conn.cmd("lcompact k") == b"OK"
    assert all_ways(conn) == kept


@timed
def test_bytes_and_delimiters(conn):
    assert conn.cmd("laddtb k 1000 3", b"a b") == b"STORED"
    assert conn.lgetb("k") == [b"a b"]
    conn.send(b"laddtb k 1000 1 noreply\r\nx\r\n")
    wait_until("the quiet one is there", lambda: conn.lgetb("k") == [b"a b", b"x"])


@timed
def test_what_a_missing_list_is(conn):
    conn.cmd("laddt k 1 a")
    wait_until_gone(conn, "a")
    assert conn.values("lget k") == []
    assert conn.llen("k") == 0
    assert conn.cmd("ltouch k 100") == b"NOT_FOUND"
    assert conn.cmd("lcreate k b") == b"STORED"
    assert all_ways(conn) == [b"b"]


@timed
def test_a_copy_keeps_the_times(conn):
    conn.cmd("laddt a 1 short")
    conn.cmd("laddt a 1000 long")
    wait_until_gone(conn, "short", "a")
    assert conn.cmd("lcopy a b") == b"1"
    assert lttl(conn, "long", "b") > 900
    conn.cmd("lcompact a")
    assert conn.cmd("lcopy a c") == b"1"
    assert lttl(conn, "long", "c") > 900


REFUSED = [
    ("laddt k 0 a", b"CLIENT_ERROR laddt: SECONDS must be 1 to 999999999, about 31 years"),
    ("laddt k 1000000000 a", b"CLIENT_ERROR laddt: SECONDS must be 1 to 999999999, about 31 years"),
    ("laddt k -1 a", b"CLIENT_ERROR laddt: SECONDS must be 1 to 999999999, about 31 years"),
    ("laddt k x a", b"CLIENT_ERROR usage: laddt KEY SECONDS ITEM..."),
    ("laddt k 5", b"CLIENT_ERROR usage: laddt KEY SECONDS ITEM..."),
    ("laddt k", b"CLIENT_ERROR usage: laddt KEY SECONDS ITEM..."),
    ("lttl k a b", b"CLIENT_ERROR usage: lttl KEY [ITEM]"),
]


@timed
@pytest.mark.parametrize("line, answer", REFUSED)
def test_refused(conn, line, answer):
    assert conn.cmd(line) == answer
    assert conn.cmd("ladd k b") == b"STORED"


@pytest.mark.config(lists={"dialect": "tombstone"})
def test_dialects_have_no_times(conn):
    assert conn.cmd("laddt k 5 a").startswith(b"CLIENT_ERROR laddt works on lists of dialect native only")
    conn.cmd("ladd k a")
    assert conn.cmd("lttl k a") == (
        b"CLIENT_ERROR lttl: only lists of dialect native have items with a time of their own"
    )


@pytest.mark.config(lists={"on_missing": "refuse"})
def test_missing_lists_that_refuse(conn):
    assert conn.cmd("laddt k 5 a") == b"NOT_STORED"
    conn.cmd("lcreate k")
    assert conn.cmd("laddt k 1 a") == b"STORED"
    wait_until_gone(conn, "a")
    assert conn.llen("k") == 0
    assert lttl(conn, "a") == b"NOT_FOUND"


@timed
def test_changes_and_looks_in_turns(conn):
    conn.cmd("ladd k x")
    conn.cmd("laddt k 1000 a b")
    conn.send(b"ladd k a\r\nlhas k a\r\nldel k b\r\nlhas k b\r\nladd k x\r\n")
    lines = [conn.line() for _ in range(7)]
    assert lines == [b"STORED", b"VALUE k 0 1", b"a", b"END", b"DELETED", b"END", b"STORED"]
    assert all_ways(conn) == [b"x", b"a"]
    assert lttl(conn, "a") == -1
