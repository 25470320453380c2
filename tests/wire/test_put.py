# SPDX-License-Identifier: BSD-3-Clause
"""lput, lputb, and long lset and lcreate: a whole content in one step."""

import threading
import time

import pytest

from harness import in_threads, wait_until
from model import Head

SHORT = {"log_limit_bytes": 512, "log_hard_limit_bytes": 4096, "sublist_limit_bytes": 1024}
SHORT["max_item_bytes"] = 100


def names(prefix, count):
    return [b"%s-%d" % (prefix.encode(), number) for number in range(count)]


def put(conn, key, block, *more, verb="lput"):
    words = "".join(f" {word}" for word in more)
    return conn.cmd(f"{verb} {key} {len(block)}{words}", block)


def lines(items, key="any"):
    return b"".join(b"ITEM %s %d\r\n%s\r\n" % (key.encode(), len(item), item) for item in items)


@pytest.mark.config(lists=SHORT)
@pytest.mark.parametrize("count", [0, 1, 20, 300])
def test_lput_replaces_the_content(conn, memcached, count):
    for before in (None, "ladd k a b", "lset k " + " ".join(f"old-{n}" for n in range(400))):
        if before:
            assert conn.cmd(before) == b"STORED"
        items = names("item", count)
        assert put(conn, "k", b",".join(items)) == b"STORED"
        assert conn.lget("k") == items
        assert conn.cmd("lcompact k") == b"OK"
        assert conn.lget("k") == items
        with memcached.conn() as direct:
            head = Head(direct.get("k#") or b"^1\n")
            assert len(head.runs) == (count > 20)
            assert not head.garbage


def test_delimiters_at_the_ends_are_passed_over(conn):
    for block in (b",a,b", b"a,b,", b",a,b,", b"a,b,a"):
        assert put(conn, "k", block) == b"STORED"
        assert conn.lget("k") == [b"a", b"b"]
    assert put(conn, "k", b"a,,b") == b"CLIENT_ERROR item is empty"
    assert put(conn, "k", b"a" * 1025) == b"CLIENT_ERROR item is longer than 1024 bytes (max_item_bytes)"
    assert conn.lget("k") == [b"a", b"b"]


def test_lputb_takes_what_lgetb_answers(conn):
    items = [b"a b", b"line\r\nline", b"\0", b"ITEM k 3", b"END"]
    for block in (lines(items), lines(items) + b"END\r\n", lines(items).removesuffix(b"\r\n")):
        assert put(conn, "k", block, verb="lputb") == b"STORED"
        assert conn.lgetb("k") == items
    for block in (b"a", b"ITEM k 5\r\na\r\n", b"ITEM k x\r\na\r\n", lines(items) + b"x", b"ITEM 1\r\na\r\n"):
        assert put(conn, "k", block, verb="lputb").startswith(b"CLIENT_ERROR the block holds something else")
    assert put(conn, "k", b"ITEM k 0\r\n\r\n", verb="lputb") == b"CLIENT_ERROR item is empty"
    refusal = put(conn, "k", lines([b"a,b"]), verb="lputb")
    assert refusal.startswith(b"CLIENT_ERROR item holds the delimiter")
    assert conn.lgetb("k") == items


@pytest.mark.config(proxy={"max_value_bytes": 2048})
def test_a_block_that_is_too_long(conn):
    text = b"CLIENT_ERROR data block is longer than max_value_bytes: raise it, or fill a scratch list by "
    for verb in ("lput", "lputb"):
        assert put(conn, "k", b"a," * 1025, verb=verb) == text + b"ladd and lcopy it"
        assert conn.llen("k") == 0
    assert put(conn, "k", b"a," * 1023 + b"bc") == b"STORED"
    assert conn.lget("k") == [b"a", b"bc"]


@pytest.mark.config(lists={"delimiter": "none"})
def test_without_a_delimiter_there_is_lputb(conn):
    assert put(conn, "k", b"a,b") == b"CLIENT_ERROR this list has no delimiter: use lputb"
    assert put(conn, "k", lines([b"a,b"]), verb="lputb") == b"STORED"
    assert conn.lgetb("k") == [b"a,b"]


@pytest.mark.config(lists=SHORT)
@pytest.mark.parametrize("count", [2, 300])
def test_exptime_is_that_of_the_list(conn, count):
    block = b",".join(names("item", count))
    assert put(conn, "k", block) == b"STORED"
    assert conn.cmd("lttl k") == b"-1"
    assert put(conn, "k", block, 1000) == b"STORED"
    assert 990 <= int(conn.cmd("lttl k")) <= 1000
    assert put(conn, "k", block) == b"STORED"
    assert 990 <= int(conn.cmd("lttl k")) <= 1000
    assert put(conn, "k", block, 0) == b"STORED"
    assert conn.cmd("lttl k") == b"-1"
    assert put(conn, "k", block, int(time.time()) + 3000000) == b"STORED"
    assert 2999000 <= int(conn.cmd("lttl k")) <= 3000002
    assert put(conn, "k", block, -1) == b"CLIENT_ERROR EXPTIME is over already: ldrop removes a list"
    assert put(conn, "k", block, "x") == b"CLIENT_ERROR invalid exptime argument"
    assert conn.llen("k") == count


@pytest.mark.config(lists={**SHORT, "on_missing": "refuse"})
def test_a_missing_list_under_refuse(conn):
    block = b",".join(names("item", 300))
    assert conn.cmd("ladd k a") == b"NOT_STORED"
    assert put(conn, "k", b"a,b") == b"STORED"
    assert put(conn, "k", block) == b"STORED"
    assert put(conn, "long", block) == b"STORED"
    assert conn.llen("k") == conn.llen("long") == 300
    assert put(conn, "long", b"") == b"STORED"
    assert conn.lget("long") == []
    assert put(conn, "f-k", block, 0, 77) == b"EXISTS"


@pytest.mark.config(lists=SHORT)
def test_lset_and_lcreate_are_as_long_as_their_line(conn):
    items = names("item", 2000)
    line = b" ".join(items).decode()
    assert conn.cmd(f"lset k {line}") == b"STORED"
    assert conn.lget("k") == items
    assert conn.cmd(f"lcreate k {line}") == b"NOT_STORED"
    assert conn.cmd(f"lcreate new {line}") == b"STORED"
    assert conn.lget("new") == items
    assert conn.cmd("lset new") == b"STORED"
    assert conn.cmd(f"lcreate new {line}") == b"STORED"
    conn.send(f"lsetq k {line}\r\nllen k\r\n")
    assert conn.line() == b"2000"


@pytest.mark.config(lists={"dialect": "simple"})
def test_in_a_dialect_it_is_an_lset(conn):
    assert put(conn, "k", b"a,b,a") == b"STORED"
    assert conn.lget("k") == [b"a", b"b"]
    assert put(conn, "k", b"a", 5) == b"CLIENT_ERROR lput: lists of other dialects take neither EXPTIME nor TOKEN"


@pytest.mark.slow
@pytest.mark.config(lists=SHORT, proxy={"threads": 4})
def test_readers_and_twenty_clients_that_add_see_the_old_or_the_new(daemon):
    contents = {letter: names(letter, 400) for letter in "xyz"}
    over = threading.Event()

    def client(number):
        with daemon.conn() as conn:
            if number == 0:
                for turn in range(60):
                    letter = "xyz"[turn % 3]
                    assert put(conn, "k", b",".join(contents[letter])) == b"STORED"
                over.set()
            elif number < 4:
                while not over.is_set():
                    items = conn.lget("k")
                    if items and b"-" in items[0]:
                        letter = items[0][:1].decode()
                        assert items[:400] == contents[letter]
                        assert all(item.startswith(b"add") for item in items[400:])
            else:
                while not over.is_set():
                    assert conn.cmd(f"ladd k add{number}") == b"STORED"

    in_threads(24, client)
    with daemon.conn() as conn:
        assert conn.lget("k")[:400] == contents["z"]
        assert int(conn.stats()["list_puts"]) == 60


@pytest.mark.slow
@pytest.mark.config(proxy={"max_value_bytes": "32m"}, lists={"announcement_grace_s": 1})
def test_a_proxy_killed_in_the_middle_leaves_the_old_content(daemon, memcached):
    """What it has written is found by the next compaction, once its announcement is old."""
    block = b",".join(names("new", 1_000_000))
    with daemon.conn() as conn, memcached.conn() as direct:
        assert conn.cmd("lset k a b") == b"STORED"
        conn.send(f"lput k {len(block)}\r\n", block, "\r\n")
        wait_until("something is written", lambda: int(direct.stats()["curr_items"]) > 3)
        daemon.kill()
    daemon.start()
    with daemon.conn() as conn, memcached.conn() as direct:
        assert conn.lget("k") == [b"a", b"b"]
        time.sleep(2.1)  # the grace time
        assert conn.cmd("lcompact k") == b"OK"
        assert conn.lget("k") == [b"a", b"b"]
        head = Head(direct.get("k#"))
        assert not head.runs and not head.garbage and b"~" not in head.log
        assert int(direct.stats()["bytes"]) < 2_000_000


def test_new_of_one_request_is_not_that_of_the_next(conn):
    """Requests share their memory: linterstore replaces what is there, whatever came before it."""
    conn.cmd("ladd a x y")
    conn.cmd("ladd target z")
    for _ in range(3):
        assert conn.cmd("lput target 1 new", "n") == b"NOT_STORED"
        assert conn.cmd("linterstore target a") == b"2"
