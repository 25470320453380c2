# SPDX-License-Identifier: BSD-3-Clause
"""lcopy: a list has exactly the items that another one had at one instant."""

import threading
import time

import pytest

from harness import in_threads, wait_until
from model import Head

SHORT = {"log_limit_bytes": 512, "log_hard_limit_bytes": 4096, "sublist_limit_bytes": 1024}
SHORT["max_item_bytes"] = 100


def fill(conn, key, prefix, count):
    """Items of some runs and a log. Returns them in their order."""
    items = [b"%s-%d" % (prefix.encode(), number) for number in range(count)]
    for at in range(0, count, 2000):
        block = b" ".join(items[at : at + 2000])
        conn.send(b"ladd " + key.encode() + b" ", block, "\r\n")
        assert conn.line() == b"STORED"
    return items


@pytest.mark.config(lists=SHORT)
@pytest.mark.parametrize("count", [1, 20, 1500])
def test_lcopy_copies_what_there_is(conn, memcached, count):
    assert conn.cmd("lcopy src dst") == b"NOT_FOUND"
    assert conn.cmd("ladd dst old") == b"STORED"
    assert conn.cmd("lcopy src dst") == b"NOT_FOUND"
    items = []
    for at in range(0, count, 30):
        more = [f"item-{n}" for n in range(at, min(at + 30, count))]
        assert conn.cmd("ladd src " + " ".join(more)) == b"STORED"
        items += more
    for gone in items[::7]:
        assert conn.cmd(f"ldel src {gone}") == b"DELETED"
    items = [item.encode() for n, item in enumerate(items) if n % 7]
    assert conn.lget("dst") == [b"old"]
    answer = conn.cmd("lcopy src dst")
    assert answer == (b"%d" % len(items) if items else b"NOT_FOUND")
    assert conn.lget("dst") == (items or [b"old"])
    assert conn.lget("src") == items
    assert conn.cmd("lcopy src src") == answer
    assert conn.cmd("ladd dst more") == b"STORED"
    assert conn.lget("src") == items
    if items:
        assert conn.cmd("lcompact dst") == b"OK"
        assert conn.lget("dst") == items + [b"more"]
        with memcached.conn() as direct:
            head = Head(direct.get("dst#"))
            assert not head.garbage and b"~" not in head.log


@pytest.mark.config(lists=SHORT)
def test_a_missing_source_is_not_found_whatever_the_target_is(conn):
    """Also one whose items are all deleted, in sublists, and where SRC is DST."""
    items = [f"{n}" for n in range(400)]
    for at in range(0, 400, 40):
        assert conn.cmd("ladd gone " + " ".join(items[at : at + 40])) == b"STORED"
    for n in range(0, 400, 40):
        assert conn.cmd("ldel gone " + " ".join(items[n : n + 40])) == b"DELETED"
    for target in ("dst", "none"):
        assert conn.cmd("ladd dst old") == b"STORED"
        assert conn.cmd(f"lcopy src {target} new") == b"NOT_FOUND"
        assert conn.cmd(f"lcopy gone {target} new") == b"NOT_FOUND"
    assert conn.cmd("lcopy gone gone") == conn.cmd("lcopy src src") == b"NOT_FOUND"
    assert conn.lget("dst") == [b"old"]


@pytest.mark.config(lists=SHORT)
def test_new_finds_a_list_whose_items_are_all_deleted(conn):
    """Sublists of DST tell whether it is empty, not those of SRC."""
    items = [f"{n}" for n in range(120)]
    assert conn.cmd("ladd dst " + " ".join(items)) == b"STORED"
    assert conn.cmd("lset src a b") == b"STORED"
    assert conn.cmd("lcompact dst") == b"OK"
    assert conn.cmd("ldel dst " + " ".join(items[1:])) == b"DELETED"
    assert conn.cmd("lcopy src dst new") == b"NOT_STORED"
    assert conn.cmd("ldel dst 0") == b"DELETED"
    assert conn.stats("lstat dst")["runs"] != "0"
    assert conn.cmd("lcopy src dst new") == b"2"
    assert conn.lget("dst") == [b"a", b"b"]


@pytest.mark.memcacheds(2)
def test_between_pools_delimiters_and_times(start_daemon, memcacheds):
    config = {
        "pool other": {"servers": memcacheds[1].address},
        "lists": SHORT,
        "lists other-": {"pool": "other", "delimiter": "|", "max_item_bytes": 10, "placement": "spread"},
    }
    daemon = start_daemon(memcacheds[:1], config=config)
    with daemon.conn() as conn:
        assert conn.cmd("ladd a " + " ".join(f"item-{n}" for n in range(100))) == b"STORED"
        assert conn.cmd("lcopy a other-b") == b"100"
        assert conn.cmd("lget other-b") == b"VALUE other-b 0 %d" % (99 + 10 * 6 + 90 * 7)
        conn.lines(2)
        assert conn.cmd("ltouch other-b 1000") == b"TOUCHED"
        assert conn.cmd("lcopy a other-b") == b"100"
        assert 990 <= int(conn.cmd("lttl other-b")) <= 1000
        assert conn.cmd("lttl a") == b"-1"
        assert conn.cmd("ladd a x|y") == b"STORED"
        refusal = b"CLIENT_ERROR lcopy: an item holds the delimiter of the list that it would be in, nothing done"
        assert conn.cmd("lcopy a other-b") == refusal
        assert conn.cmd("ldel a x|y") == b"DELETED"
        assert conn.cmd("ladd a more-than-ten-bytes") == b"STORED"
        assert conn.cmd("lcopy a other-b") == b"CLIENT_ERROR lcopy: an item is longer than 10 bytes (max_item_bytes), nothing done"
        assert conn.llen("other-b") == 100
        assert conn.cmd("ladd other-c x,y") == b"STORED"
        assert conn.cmd("lcopy other-c a") == refusal
        with memcacheds[1].conn() as direct:
            assert conn.cmd("lcompact other-b") == b"OK"
            head = Head(direct.get("other-b#"))
            assert not head.garbage and b"~" not in head.log


@pytest.mark.config(lists={**SHORT, "on_missing": "refuse"})
def test_an_empty_list_is_copied_where_it_is_not_a_missing_one(conn):
    assert conn.cmd("lcopy src dst") == b"NOT_FOUND"
    assert conn.cmd("lset src") == b"STORED"
    assert conn.cmd("lcopy src dst") == b"0"
    assert conn.cmd("lcreate dst a") == b"NOT_STORED"
    assert conn.cmd("lset src " + " ".join(f"item-{n}" for n in range(500))) == b"STORED"
    assert conn.cmd("lcopy src new") == b"500"
    assert conn.llen("new") == 500


def test_what_a_client_sends_at_once_is_done_in_its_order(conn):
    """Also where it touches both lists: a scratch list is filled, copied and dropped."""
    for turn in range(50):
        conn.send(
            f"ladd scratch a{turn} b{turn}\r\nset plain 0 0 1\r\nx\r\nlcopy scratch list\r\nldrop scratch\r\n"
            "lget list\r\nget plain\r\n"
        )
        assert conn.lines(4) == [b"STORED", b"STORED", b"2", b"DELETED"]
        assert conn.lines(3)[1] == b"a%d,b%d" % (turn, turn)
        assert conn.lines(3)[1] == b"x"
    usage = b"CLIENT_ERROR usage: lcopy SRC DST [EXPTIME] [new]"
    for request in ("lcopy a", "lcopy a b 0 1", "lcopy a b 0 new new"):
        assert conn.cmd(request) == usage
    assert conn.cmd("lcopy a b c") == b"CLIENT_ERROR invalid exptime argument"


@pytest.mark.config(lists=SHORT, **{"lists s-": {"dialect": "simple"}})
def test_dialects_are_refused(conn):
    assert conn.cmd("ladd s-a x") == b"STORED"
    for request in ("lcopy s-a b", "lcopy b s-a"):
        assert conn.cmd(request).startswith(b"CLIENT_ERROR lcopy: both lists must be native")


@pytest.mark.slow
@pytest.mark.memcacheds(1, "-m", "512")
@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test_a_large_list_is_replaced_while_twenty_clients_read_and_add(daemon, count):
    """Each sees the old or the new content, and nothing else."""
    with daemon.conn(timeout_s=60) as conn:
        old, new = fill(conn, "list", "old", count), fill(conn, "scratch", "new", count)
        assert conn.cmd("lcompact list") == conn.cmd("lcompact scratch") == b"OK"
    over = threading.Event()
    seen = set()

    def client(number):
        with daemon.conn(timeout_s=60) as conn:
            if number == 0:
                time.sleep(0.2)
                assert conn.cmd("lcopy scratch list") == b"%d" % count
                time.sleep(0.2)
                over.set()
                return
            while not over.is_set():
                if number % 2:
                    assert conn.cmd(f"ladd list added-{number}") == b"STORED"
                    continue
                with_added = conn.llen("list")
                assert count <= with_added <= count + 10
                first, last = b"", b""
                for position, want in ((0, None), (count - 1, None)):
                    [(_, _, item)] = conn.values(f"lrange list {position} {position}")
                    kind, number_of = item.split(b"-")
                    assert int(number_of) == position
                    seen.add(kind)

    in_threads(21, client)
    with daemon.conn(timeout_s=60) as conn:
        items = conn.lget("list")
        assert items[:count] == new and all(item.startswith(b"added") for item in items[count:])
        assert conn.cmd("lcompact list") == b"OK"
    assert seen == {b"old", b"new"}
    assert old[0] != new[0]


@pytest.mark.slow
@pytest.mark.config(lists={"announcement_grace_s": 1})
def test_a_proxy_killed_while_it_copies_leaves_the_old_content(daemon, memcached):
    with daemon.conn(timeout_s=60) as conn, memcached.conn() as direct:
        fill(conn, "scratch", "new", 400_000)
        assert conn.cmd("lcompact scratch") == b"OK"
        assert conn.cmd("lset list a b") == b"STORED"
        before = int(direct.stats()["curr_items"])
        conn.send("lcopy scratch list\r\n")
        wait_until("something is written", lambda: int(direct.stats()["curr_items"]) > before + 3)
        daemon.kill()
    daemon.start()
    with daemon.conn() as conn, memcached.conn() as direct:
        assert conn.lget("list") == [b"a", b"b"]
        time.sleep(2.1)  # the grace time
        assert conn.cmd("lcompact list") == b"OK"
        head = Head(direct.get("list#"))
        assert not head.runs and not head.garbage and b"~" not in head.log
        assert conn.cmd("lcopy scratch list") == b"400000"


@pytest.mark.parametrize("request_", ["lcopy a b -1", "lcopy a b -1 new"])
def test_a_time_that_is_over_is_refused(conn, request_):
    """It would answer the items of a list that is gone at once."""
    over = b"CLIENT_ERROR EXPTIME is over already: ldrop removes a list"
    assert conn.cmd("ladd a x") == b"STORED"
    assert conn.cmd(request_) == over
    assert conn.cmd("ladd b z") == b"STORED"
    assert conn.cmd(request_) == over
    assert conn.lget("b") == [b"z"]
