# SPDX-License-Identifier: BSD-3-Clause
"""Lists move to other servers while clients add to them: nothing that was answered is lost, and no
list is there twice."""

import re
import time

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
def test_a_list_with_a_time_to_live_takes_it_along(start, memcacheds):
    """With its sublists; also where memcached takes moments only, behind 30 days."""
    month_s = 30 * 24 * 3600
    items = " ".join(f"item-{n}" for n in range(300))
    with start(memcacheds[:1], memcacheds[1:], "move").conn() as conn:
        for name, exptime in (("short", 1000), ("long", int(time.time()) + 2 * month_s), ("ever", 0)):
            assert conn.cmd(f"ladd {name} {items}") == b"STORED"
            assert conn.cmd(f"lcompact {name}") == b"OK"
            assert conn.cmd(f"ltouch {name} {exptime}") == b"TOUCHED"
            wait_until("it has moved", lambda name=name: migrate(conn, name) == "OK")
            assert conn.cmd(f"ladd {name} last") == b"STORED"
            assert conn.llen(name) == 301
        assert 900 < int(conn.cmd("lttl short")) <= 1001
        assert 2 * month_s - 100 < int(conn.cmd("lttl long")) <= 2 * month_s + 1
        assert conn.cmd("lttl ever") == b"-1"
    new = memcacheds[1].conn()
    head = re.search(rb" (\w{13})\.", new.get("short#"))
    assert 1000 < int(new.cmd(f"mg short#{head.group(1).decode()}.0 t").decode().split("t")[-1])


@pytest.mark.memcacheds(2)
def test_a_list_under_a_lease_moves(start_daemon, memcacheds):
    config = {"pool main": {"gate_s": 1, "next": "grown", "step": "move"},
              "pool grown": {"servers": memcacheds[1].address},
              "lists": {"pool": "main", "on_missing": "refuse"}}
    with start_daemon(memcacheds[:1], config=config).conn() as conn:
        token = conn.cmd("llease fruit 30").decode()
        wait_until("it has moved", lambda: migrate(conn, "fruit") == "OK")
        assert conn.cmd("ladd fruit late") == b"STORED"
        assert conn.cmd("llease fruit 30") == b"NOT_STORED"
        assert conn.cmd(f"lputb fruit 17 0 {token}", "ITEM fruit 1\r\na\r\n") == b"STORED"
        assert conn.lget("fruit") == [b"a", b"late"]


def migrate(conn, name):
    return conn.cmd(f"lmigrate {name}").decode()


STAYS = "SERVER_ERROR the list stays on its old server: "


@pytest.mark.memcacheds(2)
def test_lmigrate_says_where_a_list_is(start, memcacheds):
    old, new = memcacheds
    with start([old], [new], None).conn() as conn:
        assert migrate(conn, "list") == "CLIENT_ERROR lmigrate: the pool of this list has no next, " \
            "and its lists do not move"
        for name in ("list", "lost"):
            assert conn.cmd(f"ladd {name} " + " ".join(f"item-{n}" for n in range(300))) == b"STORED"
            assert conn.cmd(f"lcompact {name}") == b"OK"
        assert old.conn().cmd("set odd# 0 0 3", "odd") == b"STORED"
    run = re.search(rb" (\w{13})\.", old.conn().get("lost#")).group(1).decode()
    assert old.conn().cmd(f"delete lost#{run}.0") == b"DELETED"
    with start([old], [new], "learn").conn() as conn:
        assert migrate(conn, "none") == "NOT_FOUND"
        assert migrate(conn, "list") == STAYS + "this proxy does not move lists yet: the step is learn, " \
            "or move has just begun"
    with start([old], [new], "move").conn() as conn:
        wait_until("it has moved", lambda: migrate(conn, "list") == "OK")
        assert count(conn, "list_moves") == 1
        assert migrate(conn, "list") == "OK"
        assert migrate(conn, "none") == "NOT_FOUND"
        assert migrate(conn, "lost") == STAYS + "a sublist of it is missing"
        assert migrate(conn, "odd") == STAYS + "what is stored there is no list that this release can read"
        new.stop()
        assert migrate(conn, "none").startswith("SERVER_ERROR")


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
def test_marks_of_an_earlier_move_are_not_in_the_way(start, memcacheds):
    """There and back again: what the first move has left on the server that lists return to."""
    names = ("list", "dropped", "missing")

    def begin(old, new, step):
        for server in memcacheds:
            server.conn().cmd("delete mclistd#pool.main")
        return start([memcacheds[old]], [memcacheds[new]], step)

    there = begin(0, 1, "move")
    with there.conn() as conn:
        for name in names[:2]:
            assert conn.cmd(f"ladd {name} a") == b"STORED"
            wait_until("it has moved", lambda name=name: migrate(conn, name) == "OK")
        assert conn.cmd("ldrop dropped") == b"DELETED"
    assert all(memcacheds[0].conn().get(f"{name}#").startswith(b"^> ") for name in names[:2])
    there.stop()
    back = begin(1, 0, "move")
    with back.conn() as conn:
        wait_until("it has moved", lambda: migrate(conn, "list") == "OK")
        for name in names:
            assert conn.cmd(f"ladd {name} b") == b"STORED"
    back.stop()
    with begin(0, 0, None).conn() as conn:
        assert [conn.lget(name) for name in names] == [[b"a", b"b"], [b"b"], [b"b"]]


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
