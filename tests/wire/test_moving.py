# SPDX-License-Identifier: BSD-3-Clause
"""Lists move to other servers while clients add to them: nothing that was answered is lost, and no
list is there twice."""

import pytest

from harness import in_threads, wait_until
from test_cli_support import servers

NAMES = [f"list{n}" for n in range(40)]
LONG_NAMES = [f"long{n}" for n in range(6)]


def config(servers, step):
    """The pool `main` is the one that start_daemon makes."""
    lists = {"pool": "main", "log_limit_bytes": 1024, "max_item_bytes": 500}
    if step is None:
        return {"pool main": {"gate_s": 1}, "lists": lists}
    return {
        "pool main": {"gate_s": 1, "next": "grown", "step": step},
        "pool grown": {"servers": ", ".join(server.address for server in servers)},
        "lists": lists,
    }


@pytest.fixture
def start(start_daemon):
    """A function that starts a proxy with a step of the move from some servers to others."""
    def start(old, new, step):
        daemon = start_daemon(old, config=config(new, step))
        with daemon.conn() as conn:
            conn.cmd("version")
        return daemon
    return start


def count(conn, name):
    return int(conn.stats()[name])


def use_all(conn, names):
    """A pass over all lists; returns how many met a head that stays for now."""
    before = count(conn, "list_moves_kept")
    for name in names:
        assert conn.llen(name) > 0
    return count(conn, "list_moves_kept") - before


def has_moved_all(conn, names):
    kept = use_all(conn, names)
    # Some gate_s after its start the proxy begins to move them.
    return kept == 0 and count(conn, "list_moves") > 0


@pytest.mark.memcacheds(3)
def test_a_pool_grows_while_clients_add(start, memcacheds):
    old, new = memcacheds[:2], memcacheds
    names = NAMES + LONG_NAMES
    expected = {name: ["first"] for name in NAMES}
    first = start(old, new, None)
    with first.conn() as conn:
        for name in NAMES:
            assert conn.cmd(f"ladd {name} first") == b"STORED"
        for name in LONG_NAMES:
            expected[name] = [f"{name}-item-{n}" for n in range(300)]
            for at in range(0, 300, 100):
                items = " ".join(expected[name][at:at + 100])
                assert conn.cmd(f"ladd {name} {items}") == b"STORED"
    first.stop()
    proxies = [start(old, new, "learn"), start(old, new, "move")]

    def add(number):
        with proxies[number % 2].conn() as conn:
            for n in range(150):
                name = names[(number * 7 + n) % len(names)]
                assert conn.cmd(f"ladd {name} {number}-{n}") == b"STORED"
                expected[name].append(f"{number}-{n}")

    in_threads(4, add)
    with proxies[1].conn() as conn:
        wait_until("all lists have moved", lambda: has_moved_all(conn, names))
        assert count(conn, "list_moves_double") == 0
    in_threads(4, lambda number: add(number + 10))
    servers(proxies[1], "step")
    for proxy in proxies:
        with proxy.conn() as conn:
            assert all(sorted(conn.lget(name)) == sorted(i.encode() for i in expected[name]) for name in names)
        proxy.stop()
    with start(new, new, None).conn() as conn:
        assert all(sorted(conn.lget(name)) == sorted(i.encode() for i in expected[name]) for name in names)


@pytest.mark.memcacheds(3)
def test_a_proxy_that_knows_no_marks_is_refused(start, memcacheds):
    stays = start(memcacheds[:2], memcacheds, None)
    start(memcacheds[:2], memcacheds, "move")
    stays.wait_for_log("UNEQUAL PROXIES: lists that move: this proxy: step = stay, the pool: step = move")
    with stays.conn() as conn:
        assert conn.cmd("ladd any item").startswith(b"SERVER_ERROR proxies of pool main are unequal")


@pytest.mark.memcacheds(2)
def test_a_list_with_a_time_to_live_stays(start, memcacheds):
    with start(memcacheds[:1], memcacheds[1:], "move").conn() as conn:
        assert conn.cmd("ladd short a") == b"STORED"
        assert conn.cmd("ladd other a") == b"STORED"
        assert conn.cmd("ltouch short 1000") == b"TOUCHED"
        wait_until("the other list has moved", lambda: conn.llen("other") and count(conn, "list_moves") > 0)
        assert conn.cmd("ladd short b") == b"STORED"
        assert conn.lget("short") == [b"a", b"b"]
        assert count(conn, "list_moves_kept") > 0


@pytest.mark.memcacheds(3)
def test_two_pools_move_to_the_same_servers(start_daemon, memcacheds):
    moves = {"gate_s": 1, "next": "grown", "step": "move"}
    daemon = start_daemon(memcacheds[:1], config={
        "pool main": moves,
        "pool other": {"servers": memcacheds[1].address, **moves},
        "pool grown": {"servers": memcacheds[2].address},
        "lists": {"pool": "main"},
        "lists other-": {"pool": "other"},
    })
    with daemon.conn() as conn:
        for name in ("list", "other-list"):
            assert conn.cmd(f"ladd {name} a") == b"STORED"
        wait_until("both have moved", lambda: use_all(conn, ("list", "other-list")) == 0
                   and count(conn, "list_moves") == 2)
        assert conn.lget("list") == conn.lget("other-list") == [b"a"]
