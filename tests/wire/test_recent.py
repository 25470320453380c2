# SPDX-License-Identifier: BSD-3-Clause
"""Lists with max_stale_ms: what is answered without a look at the server."""

import pytest

from harness import wait_until
from test_takeover import Place

LONG_MS = 600_000


@pytest.fixture
def recent(start_daemon, memcacheds):
    return start_daemon(memcacheds, config={"lists": {"max_stale_ms": LONG_MS}})


@pytest.fixture
def exact(start_daemon, memcacheds):
    return start_daemon(memcacheds)


def test_what_another_proxy_does_shows_later(recent, exact):
    with recent.conn() as reader, exact.conn() as writer:
        assert writer.cmd("ladd k a b c") == b"STORED"
        assert reader.lget("k") == [b"a", b"b", b"c"]
        assert writer.cmd("ldel k b") == b"DELETED"
        assert reader.llen("k") == 3
        assert reader.values("lhas k b c d")[0][2] == b"b,c"
        assert reader.values("lrange k 0 1")[0][2] == b"a,b"
        assert reader.values("lrevrange k 0 0")[0][2] == b"c"
        assert reader.values("lafter k a 1")[0][2] == b"b"
        assert int(reader.stats()["list_recent_reads"]) == 5
        assert reader.cmd("ldelx k b") == b"0"  # which has looked
        assert reader.lget("k") == [b"a", b"c"]


def test_own_changes_show_at_once_on_all_connections(recent):
    conns = [recent.conn() for _ in range(8)]  # of both workers
    for n in range(1, 40):
        assert conns[n % 8].cmd(f"ladd k item-{n}") == b"STORED"
        assert [conn.llen("k") for conn in conns] == [n] * 8
    assert conns[0].cmd("ladd other x") == b"STORED"
    assert [conn.llen("other") for conn in conns] == [1] * 8
    assert conns[0].cmd("lmove k other item-1") == b"1"
    assert [conn.llen("k") for conn in conns] == [38] * 8
    assert [conn.llen("other") for conn in conns] == [2] * 8
    assert conns[0].cmd("ldrop k") == b"DELETED"
    assert [conn.llen("k") for conn in conns] == [0] * 8
    assert int(conns[0].stats()["list_recent_reads"]) > 0


def test_what_is_asked_for_as_ever(recent, exact):
    with recent.conn() as reader, exact.conn() as writer:
        assert writer.cmd("ladd k a b") == b"STORED"
        assert reader.llen("k") == 2
        assert writer.cmd("ladd k c") == b"STORED"
        assert reader.values("lgets k")[0][2] == b"a,b,c"
        assert writer.cmd("ladd k d") == b"STORED"
        assert reader.cmd("linterlen k k") == b"4"
        assert reader.llen("missing") == 0
        assert writer.cmd("ladd missing a") == b"STORED"
        assert reader.llen("missing") == 1


def test_the_server_is_not_needed(recent, memcacheds):
    with recent.conn() as conn:
        assert conn.cmd("ladd k a b") == b"STORED"
        assert conn.llen("k") == 2
        for memcached in memcacheds:
            memcached.pause()
        try:
            assert conn.llen("k") == 2
            assert conn.lget("k") == [b"a", b"b"]
        finally:
            for memcached in memcacheds:
                memcached.resume()


def test_pipelined_changes_and_reads_keep_their_order(recent):
    with recent.conn() as conn:
        assert conn.llen("k") == 0
        for n in range(0, 60, 3):
            conn.send(f"ladd k {n}\r\nllen k\r\nladd k {n + 1} {n + 2}\r\nllen k\r\nllen k\r\n")
            assert conn.lines(5) == [b"STORED", b"%d" % (n + 1), b"STORED", b"%d" % (n + 3), b"%d" % (n + 3)]


def test_a_client_finds_its_own_changes_in_the_daemon_that_goes_on(start_daemon, memcached, tmp_path):
    """One that was in the middle of a change when others had gone on, and looked, already."""
    place = Place(start_daemon, [memcached], tmp_path, threads=1)
    place.daemon.sections["lists"] = {"max_stale_ms": LONG_MS}
    place.take_over()
    block = b",".join(b"item-%d" % n for n in range(12000))
    with place.conn() as late, place.conn() as other:
        assert other.cmd("ladd k old") == b"STORED"
        late.send(b"lput k %d\r\n" % len(block), block[:80000])
        wait_until("it is read", lambda: int(other.stats()["bytes_read"]) > 80000)
        before = other.stats()["pid"]
        place.daemon.args = ["--takeover", place.admin]
        place.daemon.start()
        wait_until("the other one has gone on", lambda: other.stats()["pid"] != before)
        assert other.llen("k") == other.llen("k") == 1
        late.send(block[80000:], b"\r\n")
        assert late.line() == b"STORED"
        wait_until("it has gone on, too", lambda: late.stats()["pid"] != before)
        assert late.llen("k") == other.llen("k") == 12000


def test_a_flush_through_the_proxy_shows_at_once(recent):
    with recent.conn() as one, recent.conn() as other:
        assert one.cmd("ladd k a") == b"STORED"
        assert one.llen("k") == other.llen("k") == 1
        assert one.cmd("flush_all") == b"OK"
        assert one.llen("k") == other.llen("k") == 0
