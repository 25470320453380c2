# SPDX-License-Identifier: BSD-3-Clause
"""In order on a connection: plain verbs and list verbs wait for changes of the other kind that were
sent before them. Each kind has a server of its own, and one of these is held."""

import pytest

from harness import TIMEOUT_S, Conn, wait_until

CONFIG = {"proxy": {"threads": 1, "pool": "main", "allow_flush_all": True},
          "lists": {"pool": "lists"}, "lists b-": {"bridge": "yes", "pool": "lists"}}  # fmt: skip
SET = b"set k 0 0 1\r\nx\r\n"
APPEND = b"append b-l 0 0 1\r\nk\r\n"


@pytest.fixture
def both(start_memcached, start_relay, start_daemon):
    """A function that makes (daemon, relay of the plain items, relay of the lists)."""

    def make(**proxy):
        relays = [start_relay(start_memcached()) for _ in range(2)]
        config = {**CONFIG, "proxy": {**CONFIG["proxy"], **proxy}}
        config["pool main"] = {"servers": relays[0].address}
        config["pool lists"] = {"servers": relays[1].address}
        return start_daemon(config=config), *relays

    return make


def in_turns(changes, betweens, behinds):
    """Each with each behind it, and what stands between them in turns."""
    return [(change, betweens[(n + m) % len(betweens)], behind)
            for n, change in enumerate(changes) for m, behind in enumerate(behinds)]  # fmt: skip


@pytest.mark.parametrize("change, between, behind", in_turns(
    [SET, b"ms k 1\r\nx\r\n", b"set k 0 0 1 noreply\r\nx\r\n", b"incr n 1\r\n"],
    [b"", b"get z\r\n", b"version\r\n"],
    [b"ladd l k\r\n", APPEND, b"laddx l k\r\n"],
))  # fmt: skip
def test_a_change_of_a_list_waits_for_one_of_an_item(both, change, between, behind):
    key = "b-l" if behind == APPEND else "l"
    daemon, items, lists = both()
    with daemon.conn() as conn, daemon.conn() as other:
        other.cmd("ladd b-l a")
        other.cmd("ladd l a")
        assert other.set("n", "1") == b"STORED"
        items.hold_after(0)
        conn.send(change + between + behind)
        assert items.held.wait(TIMEOUT_S)
        assert other.lget(key) == [b"a"]
        items.release()
        conn.send("mn\r\n")
        conn.until_mn()
        assert other.lget(key) == [b"a", b"k"]


@pytest.mark.parametrize("change, between, behind", in_turns(
    [b"ladd l k\r\n", b"laddq l k\r\n", b"ldrop l\r\n", APPEND, b"ltouch l 100\r\n"],
    [b"", b"lget l\r\n"],
    [SET, b"ms k 1\r\nx\r\n", b"add k 0 0 1\r\nx\r\n"],
))  # fmt: skip
def test_a_change_of_an_item_waits_for_one_of_a_list(both, change, between, behind):
    daemon, items, lists = both()
    with daemon.conn() as conn, daemon.conn() as other:
        other.cmd("ladd b-l a")
        other.cmd("ladd l a")
        lists.hold_after(0)
        conn.send(change + between + behind)
        assert lists.held.wait(TIMEOUT_S)
        assert other.get("k") is None
        lists.release()
        conn.send("mn\r\n")
        conn.until_mn()
        assert other.get("k") == b"x"


def test_flush_all_waits_for_a_list_and_the_next_item_for_flush_all(both):
    daemon, items, lists = both()
    with daemon.conn() as conn, daemon.conn() as other:
        other.cmd("ladd l a")
        assert other.set("k", "old") == b"STORED"
        lists.hold_after(0)
        conn.send(b"ladd l k\r\nflush_all\r\n" + SET)
        assert lists.held.wait(TIMEOUT_S)
        assert other.get("k") == b"old"
        lists.release()
        assert conn.lines(3) == [b"STORED", b"OK", b"STORED"]
        assert other.get("k") == b"x" and other.lget("l") == []


@pytest.mark.parametrize("reads", [b"lget l\r\nget k\r\n", b"get k\r\nlget l\r\n", b"get k b-l\r\n"])
def test_reads_see_what_was_changed_before_them(both, reads):
    daemon, items, lists = both()
    with daemon.conn() as conn:
        assert conn.set("k", "old") == b"STORED"
        assert conn.cmd("ladd b-l a") == b"STORED"
        conn.send(SET + b"ladd l k\r\n" + APPEND + reads + b"mn\r\n")
        assert conn.lines(3) == [b"STORED"] * 3
        lines = conn.until_mn()
        assert b"old" not in lines and b"x" in lines and (b"k" in lines or b"a,k" in lines)


def test_what_has_waited_for_its_turn_until_its_deadline_is_not_done(both):
    daemon, items, lists = both(deadline_ms=300)
    with daemon.conn() as conn, daemon.conn() as other:
        lists.hold_after(0)
        conn.send(b"lput l 1\r\nk\r\n" + SET)
        assert lists.held.wait(TIMEOUT_S)
        wait_until("the deadline is over", lambda: other.stats()["deadlines_over"] != "0")
        lists.release()
        assert conn.line().startswith((b"STORED", b"SERVER_ERROR"))
        assert conn.line() == b"SERVER_ERROR deadline over, nothing done"
        # Under load a proxy with so short a deadline may have taken the server of the items for down.
        with Conn(items.server_port) as direct:
            assert direct.get("k") is None
