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


@pytest.mark.parametrize("empty", ["ldel k a", "lset k", "lmove k other a"])
def test_an_emptied_list_keeps_its_time_until_it_is_removed(conn, empty):
    assert conn.cmd("ladd k a") == b"STORED" and conn.cmd("ltouch k 50") == b"TOUCHED"
    conn.cmd(empty)
    assert conn.cmd("lttl k") == b"NOT_FOUND"
    assert conn.cmd("ladd k b") == b"STORED" and 0 < ttl(conn, "k") <= 50
    assert conn.cmd("ldel k b") == b"DELETED" and conn.cmd("ldrop k") == b"DELETED"
    assert conn.cmd("ladd k c") == b"STORED" and ttl(conn, "k") == -1


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


# ---- sublists ----

HOUR_S = 3600
ENDING = {"lists": {**TINY}}


class Sublists:
    """What a list's head says of its sublists, and what memcached says."""

    def __init__(self, backend, key):
        wait_until("sublists that a head names", lambda: self.look(backend, key))

    def look(self, backend, key):
        """False when the head has named others meanwhile."""
        value = backend.get(f"{key}#") or b"^1\n"
        fields = value.split(b"\n", 1)[0].split(b" ")[1:]
        untils = [int(field[1:]) for field in fields if field[:1] == b"@"]
        self.until_s = untils[0] if untils else None
        self.ttls = []
        for field in fields:
            if field[:1].isalnum():
                name, count = field.split(b":")[0].split(b".")
                for n in range(int(count)):
                    answer = backend.cmd(f"mg {key}#{name.decode()}.{n} t")
                    if answer == b"EN":
                        return False
                    self.ttls.append(int(answer[4:]))
        return True

    def end(self):
        """Do all of them end?"""
        return self.until_s is not None and self.ttls and min(self.ttls) >= 0

    def last(self):
        return self.until_s is None and self.ttls and max(self.ttls) == -1


def fill(conn, key, count=100):
    for n in range(count):
        assert conn.cmd(f"ladd {key} item-{n}") == b"STORED"
    assert conn.cmd(f"lcompact {key}") == b"OK"
    assert len(conn.lget(key)) == count


@pytest.fixture
def backend(memcached):
    with memcached.conn() as conn:
        yield conn


@pytest.mark.config(**{"lists": {**TINY, "ttl_s": 1000}})
def test_sublists_end_behind_their_list(conn, backend):
    fill(conn, "l")
    left_s = ttl(conn, "l")
    sublists = Sublists(backend, "l")
    assert sublists.end()
    assert left_s < min(sublists.ttls) and max(sublists.ttls) < left_s + 2 * HOUR_S
    for n in range(100, 200):  # flips beside runs that end
        assert conn.cmd(f"ladd l item-{n}") == b"STORED"
    assert Sublists(backend, "l").end()


@pytest.mark.memcacheds(2)
@pytest.mark.config(**{"lists": {**TINY, "placement": "spread", "ttl_s": 1000}})
def test_sublists_on_other_servers_end_as_well(conn, memcacheds):
    fill(conn, "l", 200)
    ends = set()
    for server in memcacheds:
        with server.conn() as backend:
            listed = backend.get("l#")
            for field in (listed or b"").split(b"\n", 1)[0].split(b" ")[1:]:
                if field[:1].isalnum():
                    name, count = field.split(b":")[0].split(b".")
                    ends |= {f"l#{name.decode()}.{n}" for n in range(int(count))}
    answers = []
    for server in memcacheds:
        with server.conn() as backend:
            answers += [backend.cmd(f"mg {key} t") for key in ends]
    found = [int(answer[4:]) for answer in answers if answer != b"EN"]
    assert len(found) == len(ends) > 1 and min(found) > ttl(conn, "l")


@pytest.mark.config(**ENDING)
def test_ltouch_takes_the_sublists_along(conn, backend):
    fill(conn, "l")
    assert Sublists(backend, "l").last()
    assert conn.cmd("ltouch l 100") == b"TOUCHED"
    wait_until("they end", lambda: Sublists(backend, "l").end())
    first = Sublists(backend, "l").until_s
    assert conn.cmd("ltouch l 200") == b"TOUCHED"  # within
    assert Sublists(backend, "l").until_s == first
    assert conn.cmd("ltouch l 1000000") == b"TOUCHED"  # beyond
    sublists = Sublists(backend, "l")
    assert sublists.end() and min(sublists.ttls) >= ttl(conn, "l") > 900000
    assert conn.cmd("ltouch l 2000000000") == b"TOUCHED"
    sublists = Sublists(backend, "l")
    assert sublists.until_s > 2000000000 and min(sublists.ttls) > ttl(conn, "l") > MONTH_S
    assert conn.cmd("ltouch l 0") == b"TOUCHED"
    assert Sublists(backend, "l").last() and ttl(conn, "l") == -1
    assert len(conn.lget("l")) == 100


@pytest.mark.config(**ENDING)
def test_a_touch_of_the_head_is_mended(conn, backend):
    fill(conn, "l")
    assert conn.cmd("ltouch l 100") == b"TOUCHED"
    wait_until("they end", lambda: Sublists(backend, "l").end())
    assert backend.cmd("touch l# 1000000") == b"TOUCHED"
    assert len(conn.lget("l")) == 100
    wait_until("they end later", lambda: min(Sublists(backend, "l").ttls, default=0) > 999000)
    assert ttl(conn, "l") > 900000
    assert backend.cmd("touch l# 0") == b"TOUCHED"
    assert len(conn.lget("l")) == 100
    wait_until("they last", lambda: Sublists(backend, "l").last())
    assert ttl(conn, "l") == -1


@pytest.mark.config(**ENDING)
def test_no_touch_of_the_head_through_the_proxy(conn):
    assert conn.cmd("ladd l a") == b"STORED"
    for line in ("touch l# 100", "gat 100 l#", "mg l# T100"):
        assert conn.cmd(line).startswith(b"CLIENT_ERROR this key belongs to a list"), line
    assert ttl(conn, "l") == -1


def test_ltouch_under_load(start_daemon, memcached, backend):
    daemons = [start_daemon([memcached], config=ENDING) for _ in range(2)]
    conns = [daemon.conn() for daemon in daemons]
    fill(conns[0], "l")
    for n in range(300):
        conns[1].send(f"ladd l more-{n}\r\n")
        exptime = [100, 1000000, 0, 50000][n % 4]
        assert conns[0].cmd(f"ltouch l {exptime}") == b"TOUCHED"
        assert conns[1].line() == b"STORED"
    assert conns[0].cmd("ltouch l 700000") == b"TOUCHED"
    sublists = Sublists(backend, "l")
    assert not sublists.ttls or sublists.last() or min(sublists.ttls) > 600000
    for conn in conns:
        assert len(conn.lget("l")) == 400
        assert 600000 < ttl(conn, "l") <= 700000
        conn.close()


@pytest.mark.config(**ENDING)
def test_sublists_of_a_list_that_lives_as_long_as_memcached_can_tell_are_written_once(conn, backend):
    """They cannot outlive it, so they have no end: that no read is to find wrong."""
    fill(conn, "l")
    assert conn.cmd("ltouch l 2147483647") == b"TOUCHED"
    assert conn.cmd("lcompact l") == b"OK"
    assert Sublists(backend, "l").last()
    merges = conn.stats()["list_merges"]
    for _ in range(20):
        assert conn.llen("l") == 100
        assert conn.cmd("lcompact l") == b"OK"
    assert conn.stats()["list_merges"] == merges
