# SPDX-License-Identifier: BSD-3-Clause
"""Lists of sublists whose texts have delimiters in place of signs."""

import pytest

from harness import in_threads
from test_convert_data import put, server, values_of
from test_convert_support import convert
from test_dialects_support import Hand, settings

KEY = "topic-X"
TEXT = {"sublist_text": "delimited"}
QUIET = {"compact_chance": 0}


def test_a_list_by_hand_is_one(memcached, start_daemon):
    daemon = start_daemon([memcached], config=settings("sublists", **TEXT, **QUIET))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for name, text in ((KEY, "0,1"), (f"{KEY}.0", "ann,bob,eve,"), (f"{KEY}.1", "dan,bob")):
            assert hand.store("set", name, text)
        assert conn.lget(KEY) == [b"ann", b"bob", b"eve", b"dan"]
        assert conn.cmd(f"ladd {KEY} zoe") == b"STORED"
        assert hand.get(f"{KEY}.1") == b"dan,bob,zoe,"
        assert conn.cmd(f"ldel {KEY} bob") == b"DELETED"
        assert (hand.get(f"{KEY}.0"), hand.get(f"{KEY}.1")) == (b"ann,eve,", b"dan,zoe,")
        assert conn.lget(KEY) == [b"ann", b"eve", b"dan", b"zoe"]
        assert conn.cmd(f"ldel {KEY} ann eve") == b"DELETED"
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert (hand.get(KEY), hand.get(f"{KEY}.0")) == (b"1,", None)
        assert conn.cmd(f"lset {KEY} x y") == b"STORED"
        assert conn.lget(KEY) == [b"x", b"y"]
        assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
        assert conn.lget(KEY) == []
        assert conn.cmd(f"ladd {KEY} a,b") != b"STORED"


def test_a_list_that_grows_and_shrinks(memcached, start_daemon):
    config = settings("sublists", sublist_limit_bytes=512, max_item_bytes=100, **TEXT, **QUIET)
    daemon = start_daemon([memcached], config=config)
    items = [f"user-{n}" for n in range(500)]
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for at in range(0, 500, 10):
            assert conn.cmd(f"ladd {KEY} {' '.join(items[at : at + 10])}") == b"STORED"
        assert hand.get(KEY).startswith(b"0,1,2,3,")
        assert conn.lget(KEY) == [item.encode() for item in items]
        for at in range(0, 400, 20):
            assert conn.cmd(f"ldel {KEY} {' '.join(items[at : at + 20])}") == b"DELETED"
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.lget(KEY) == [item.encode() for item in items[400:]]
        assert hand.get(f"{KEY}.0") is None and not hand.get(KEY).startswith(b"0,")


def test_what_is_foreign_is_refused(memcached, start_daemon):
    daemon = start_daemon([memcached], config=settings("sublists", **TEXT, **QUIET))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for index in ("+0+1", "0,x,", "007,", "0;1"):
            hand.store("set", KEY, index)
            assert conn.cmd(f"ladd {KEY} a").startswith(b"SERVER_ERROR topic-X is not of dialect")
            assert hand.get(KEY) == index.encode()


def test_all_clients_at_once(memcached, start_daemon):
    """What each adds and does not delete is there in the end, and nothing else."""
    config = settings("sublists", sublist_limit_bytes=512, max_item_bytes=100, **TEXT)
    daemons = [start_daemon([memcached], config=config) for _ in range(2)]

    def work(thread):
        with daemons[thread % 2].conn() as conn:
            for n in range(60):
                assert conn.cmd(f"ladd {KEY} t{thread}-{n}") == b"STORED"
                if n % 3 == 2:
                    assert conn.cmd(f"ldel {KEY} t{thread}-{n - 1}") == b"DELETED"
                if n % 20 == 19:
                    assert conn.cmd(f"lcompact {KEY}").startswith((b"OK", b"SERVER_ERROR busy"))

    in_threads(4, work)
    expected = {b"t%d-%d" % (t, n) for t in range(4) for n in range(60) if n % 3 != 1}
    for daemon in daemons:
        with daemon.conn() as conn:
            assert set(conn.lget(KEY)) == expected


@pytest.mark.parametrize("last", ["", ","])
def test_converting(start_daemon, memcached, last):
    daemon = start_daemon([memcached], config=settings("sublists", migrate="native", **TEXT))
    stored = {KEY: "0,7" + last, f"{KEY}.0": "ann,bob,ann,", f"{KEY}.7": "eve" + last}
    put(memcached, **stored)
    done = convert([daemon], server(memcached))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 lists converted" in done.stdout
    with daemon.conn() as conn:
        assert conn.lget(KEY) == [b"ann", b"bob", b"eve"]
    assert values_of(memcached, stored) == dict.fromkeys(stored)
