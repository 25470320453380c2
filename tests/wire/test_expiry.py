# SPDX-License-Identifier: BSD-3-Clause
"""Lists that expire: rewriting leaves them the very second, by the clock of their memcached, in which
they were to expire. That second is found out here as the proxy does it, by an item of the test's own
whose second is known."""

import pytest

from test_dialects_support import settings

TINY = {
    "log_limit_bytes": 256,
    "log_hard_limit_bytes": 2048,
    "sublist_limit_bytes": 512,
    "max_item_bytes": 200,
}
MONTH_S = 30 * 86400
YEAR_S = 365 * 86400
WITNESS_S = 2_000_000_000
CLOCKS = ["mclistd#clock.0", "mclistd#clock.1"]
CHANGES = 2000


class Times:
    """When items expire, in seconds of the server's clock."""

    def __init__(self, backend):
        self.backend = backend
        assert backend.set("witness", "w", exptime=WITNESS_S) == b"STORED"

    def look(self, key):
        """The server's clock, and what the key has left by it."""
        while True:
            self.backend.send(f"mg witness t\r\nmg {key} t\r\nmg witness t\r\n")
            lines = self.backend.lines(3)
            assert all(line.startswith(b"HD t") for line in lines), lines
            before, left, behind = (int(line[4:]) for line in lines)
            if before == behind:
                return WITNESS_S - before, left

    def now(self):
        return self.look("witness")[0]

    def end(self, key):
        now, left = self.look(key)
        assert left >= 0
        return now + left

    def give(self, key, left_s):
        exptime = left_s if left_s <= MONTH_S else self.now() + left_s
        assert self.backend.cmd(f"touch {key} {exptime}") == b"TOUCHED"
        return self.end(key)


@pytest.fixture
def backend(memcached):
    with memcached.conn() as conn:
        yield conn


@pytest.fixture
def times(backend):
    return Times(backend)


@pytest.fixture
def proxies(start_daemon, memcacheds):
    daemons = [start_daemon(memcacheds, config={"lists": TINY}) for _ in range(2)]
    conns = [daemon.conn() for daemon in daemons]
    yield conns
    for conn in conns:
        conn.close()


def change(proxies, rounds):
    """Exact changes of list l by all proxies at once, each a CAS, or more."""
    for n in rounds:
        verb = "laddx" if n % 2 == 0 else "ldelx"
        for number, conn in enumerate(proxies):
            conn.send(f"{verb} l item-{number}-{n // 2 % 50}\r\n")
        assert [conn.line() for conn in proxies] == [b"1"] * len(proxies)


@pytest.mark.parametrize("left_s", [86400, YEAR_S])
def test_thousands_of_exact_changes_keep_the_second(proxies, times, left_s):
    assert proxies[0].cmd("ladd l first") == b"STORED"
    end_s = times.give("l#", left_s)
    change(proxies, range(CHANGES // 2))
    assert times.end("l#") == end_s
    stats = proxies[0].stats()
    assert int(stats["list_flips"]) + int(stats["list_folds"]) > 0
    assert int(stats["list_clock_errors"]) == 0


@pytest.mark.thorough
def test_changes_over_several_seconds_keep_the_second(proxies, times):
    assert proxies[0].cmd("ladd l first") == b"STORED"
    end_s = times.give("l#", 600)
    until_s = times.now() + 5

    def rounds():
        n = 0
        while times.now() < until_s:
            yield n
            n += 1

    change(proxies, rounds())
    assert times.end("l#") == end_s


@pytest.mark.thorough
def test_a_list_that_expires_is_gone_under_changes(proxies, backend, times):
    assert proxies[0].cmd("ladd l first") == b"STORED"
    end_s = times.give("l#", 2)
    n = 0
    while times.now() < end_s:
        assert proxies[n % 2].cmd(f"laddx l item-{n % 50}") in (b"0", b"1")
        n += 1
    # What stands there now was made after that second, and is for ever.
    answer = backend.cmd("mg l# t")
    assert answer in (b"EN", b"HD t-1")
    assert b"first" not in proxies[0].lget("l")


@pytest.mark.memcacheds(3)
@pytest.mark.config(**{"pool main": {"connections": 4}, "lists": {**TINY, "placement": "spread"}})
def test_each_server_is_asked_for_its_own_clock(conn, memcacheds):
    """Over the connection of the list's head, whatever servers and connections there are."""
    servers = [server.conn() for server in memcacheds]
    times = [Times(server) for server in servers]
    ends_s = {}
    for n in range(36):
        assert conn.cmd(f"ladd l{n} first") == b"STORED"
        [home] = [i for i, server in enumerate(servers) if server.cmd(f"mg l{n}#") == b"HD"]
        ends_s[n] = home, times[home].give(f"l{n}#", YEAR_S + n)
    assert len({home for home, _ in ends_s.values()}) == 3
    for n in ends_s:
        for m in range(40):
            assert conn.cmd(f"laddx l{n} item-{m}") == b"1"
        assert conn.cmd(f"lcompact l{n}") == b"OK"
    for n, (home, end_s) in ends_s.items():
        assert times[home].end(f"l{n}#") == end_s
    for server in servers:
        assert [server.cmd(f"mg {key}") for key in CLOCKS] == [b"HD", b"HD"]
        server.close()


def test_lists_without_a_time_ask_for_no_clock(proxies, backend):
    assert proxies[0].cmd("ladd l first") == b"STORED"
    change(proxies, range(100))
    assert [backend.cmd(f"mg {key}") for key in CLOCKS] == [b"EN", b"EN"]


def test_clock_items_may_vanish_or_be_touched(proxies, backend, times):
    assert proxies[0].cmd("ladd l first") == b"STORED"
    end_s = times.give("l#", YEAR_S)
    for request in [
        "delete {}",
        "touch {} 100",
        "touch {} 0",
        f"touch {{}} {times.now() + YEAR_S}",
    ]:
        for keys in [CLOCKS[:1], CLOCKS[1:], CLOCKS]:
            change(proxies, range(2))
            for key in keys:
                assert backend.cmd(request.format(key)) in (b"DELETED", b"TOUCHED")
            change(proxies, range(2))
            assert times.end("l#") == end_s
    assert backend.cmd("flush_all") == b"OK"
    assert proxies[0].cmd("laddx l again") == b"1"
    Times(backend).give("l#", 1000)
    change(proxies, range(2))


def test_foreign_values_in_place_of_a_clock_are_left_alone(proxies, backend, times):
    assert proxies[0].cmd("ladd l first") == b"STORED"
    end_s = times.give("l#", 1000)
    assert backend.set(CLOCKS[1], "somebody's", flags=5, exptime=500) == b"STORED"
    assert proxies[0].cmd("laddx l more") == (
        b"SERVER_ERROR mclistd#clock.1 is not the server's clock: remove it. Nothing done"
    )
    assert int(proxies[0].stats()["list_clock_errors"]) == 1
    assert backend.get(CLOCKS[1]) == b"somebody's"
    assert proxies[0].cmd("ladd l more") == b"STORED"
    assert times.end("l#") == end_s
    assert backend.cmd(f"delete {CLOCKS[1]}") == b"DELETED"
    assert proxies[0].cmd("laddx l more other") == b"1"
    assert times.end("l#") == end_s


def test_a_restarted_server_has_another_clock_item(proxies, memcached, times):
    assert proxies[0].cmd("ladd l first") == b"STORED"
    times.give("l#", 1000)
    change(proxies, range(2))
    memcached.restart()
    for conn in proxies:
        while conn.cmd("ladd l first") != b"STORED":
            pass
    with memcached.conn() as backend:
        times = Times(backend)
        end_s = times.give("l#", YEAR_S)
        change(proxies, range(50))
        assert times.end("l#") == end_s


# --- dialects ---

NEVER = {"compact_chance": 0}
STORED = {
    "simple": [("topic-X", "a,b,b,")],
    "tombstone": [("topic-X", "a,b,|b,")],
    "signed": [("topic-X", "+a+b-b")],
    "paired": [("follow-topic-X", "a,a,b,"), ("unfollow-topic-X", "b,b,")],
    "sublists": [("topic-X", "+0+1+2-1"), ("topic-X.0", "+a+b+b"), ("topic-X.2", "+a+c-c")],
    "flip": [("topic-X.a", "+a+b-b"), ("topic-X.active", "topic-X.a")],
    "marker": [("topic-X.a", "+a+b-b")],
}


@pytest.mark.parametrize("dialect", STORED)
def test_items_of_dialects_keep_their_second(start_daemon, memcached, backend, times, dialect):
    """Also a log that is written beside another, to take its place."""
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    ends_s = {}
    for key, text in STORED[dialect]:
        assert backend.set(key, text) == b"STORED"
        ends_s[key] = times.give(key, YEAR_S - len(ends_s))
    with daemon.conn() as conn:
        items = sorted(conn.lget("topic-X"))
        for n in range(101):
            assert conn.cmd(f"ladd topic-X {'uvwxyz'[n % 6]}") == b"STORED"
            assert conn.cmd(f"ldel topic-X {'uvwxyz'[n % 6]}") == b"DELETED"
            assert conn.cmd("lcompact topic-X") == b"OK"
        assert sorted(conn.lget("topic-X")) == items
    if dialect in ("flip", "marker"):
        # Drained: with a pointer it stays, empty.
        assert backend.get("topic-X.a") == (b"" if dialect == "flip" else None)
        ends_s["topic-X.b"] = ends_s.pop("topic-X.a")
    for key, end_s in ends_s.items():
        assert times.end(key) == end_s, key
