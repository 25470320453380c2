# SPDX-License-Identifier: BSD-3-Clause
"""lpurge: the plain items that a list names are deleted, and their names leave the list. A name
leaves it only when its item was deleted after the name was added last."""

import re
import threading
import time

import pytest

from harness import in_threads, wait_until

SHORT = {"log_limit_bytes": 512, "log_hard_limit_bytes": 4096, "sublist_limit_bytes": 1024}
SHORT["max_item_bytes"] = 300
FAST = {"timeout_ms": 300, "connect_timeout_ms": 300, "retry_min_ms": 50, "retry_max_ms": 100}
COUNT = 10_000


def store(conn, names, tag="tag"):
    """Stores an item under each name, then adds the names, as applications do."""
    for at in range(0, len(names), 100):
        some = names[at : at + 100]
        conn.send("".join(f"set {name} 0 0 1\r\nx\r\n" for name in some))
        assert set(conn.lines(len(some))) == {b"STORED"}
        assert conn.cmd(f"ladd {tag} " + " ".join(some)) == b"STORED"


def stored(conn, names):
    """Those of the names that have an item."""
    found = []
    for at in range(0, len(names), 1000):
        found += [key.decode() for key, _, _ in conn.values("get " + " ".join(names[at : at + 1000]))]
    return found


def partial(line):
    """The numbers and the reason of an answer that says what stays."""
    match = re.fullmatch(rb"SERVER_ERROR lpurge: (\d+) names purged, (\d+) stay in the list: (.*)", line)
    assert match, line
    return int(match[1]), int(match[2]), match[3].decode()


@pytest.mark.config(lists=SHORT)
@pytest.mark.parametrize("count", [1, 20, 2000])
def test_items_are_deleted_and_names_leave(conn, memcached, count):
    assert conn.cmd("lpurge tag") == b"0"
    names = [f"user:7:{n}" for n in range(count)]
    store(conn, names)
    assert conn.set("other", "stays") == b"STORED"
    assert conn.cmd(f"ldel tag {names[0]}") == b"DELETED"
    assert conn.cmd("lpurge tag") == b"%d" % (count - 1)
    assert stored(conn, names) == names[:1]
    assert conn.get("other") == b"stays"
    assert conn.llen("tag") == 0
    assert conn.cmd("lpurge tag") == b"0"
    assert conn.cmd("lcompact tag") == b"OK"
    with memcached.conn() as direct:
        assert direct.get("tag#") is None
    store(conn, names)
    assert conn.cmd("lpurge tag") == b"%d" % count
    assert int(conn.stats()["list_purged_items"]) >= 2 * count - 1


@pytest.mark.config(lists={"on_missing": "refuse"})
def test_a_missing_list_is_said(conn):
    assert conn.cmd("lpurge tag") == b"NOT_FOUND"
    assert conn.cmd("lcreate tag") == b"STORED"
    assert conn.cmd("lpurge tag") == b"0"
    assert conn.cmd("ladd tag a") == b"STORED"
    assert conn.cmd("lpurge tag") == b"1"
    assert conn.values("lget tag") == [(b"tag", [0, 0], b"")]


def test_usage(conn):
    for request in ("lpurge", "lpurge a b"):
        assert conn.cmd(request) == b"CLIENT_ERROR usage: lpurge KEY"


def test_what_is_sent_behind_it_waits(conn):
    conn.send("set k 0 0 1\r\nx\r\nladd tag k\r\nlpurge tag\r\nget k\r\nllen tag\r\n")
    assert conn.lines(5) == [b"STORED", b"STORED", b"1", b"END", b"0"]


@pytest.mark.memcacheds(2)
def test_the_pool_is_that_of_plain_keys(start_daemon, memcacheds):
    config = {"pool other": {"servers": memcacheds[1].address}, "lists": {**SHORT, "pool": "other"}}
    daemon = start_daemon(memcacheds[:1], config=config)
    names = [f"n{n}" for n in range(500)]
    with daemon.conn() as conn, memcacheds[0].conn() as plain, memcacheds[1].conn() as lists:
        store(conn, names)
        assert lists.set("n1", "not the pool of plain keys") == b"STORED"
        assert len(stored(plain, names)) == 500
        assert conn.cmd("lpurge tag") == b"500"
        assert stored(plain, names) == []
        assert stored(lists, names) == ["n1"]


BRIDGE = {"lists": {}, "lists fans-": {"bridge": True}}


@pytest.mark.config(**BRIDGE)
def test_names_that_are_no_plain_items_stay(conn):
    """Those that memcached takes for no key, the items of lists, and lists by memcached's verbs."""
    long = "x" * 251
    assert conn.cmd(f"ladd tag good {long} other# mclistd#clock.0 fans-7 last") == b"STORED"
    assert conn.cmd("laddb tag 3", b"a b") == b"STORED"
    assert conn.cmd("ladd other item") == b"STORED"
    assert conn.cmd("append fans-7 0 0 3", b"ann") == b"STORED"
    done, stay, why = partial(conn.cmd("lpurge tag"))
    assert (done, stay) == (2, 5)
    assert why == "x" * 60 + "...: not a key that memcached takes"
    assert conn.lgetb("tag") == [long.encode(), b"other#", b"mclistd#clock.0", b"fans-7", b"a b"]
    assert conn.lget("other") == [b"item"] and conn.get("fans-7") == b"ann"
    for name, reason in [
        ("other#", "this key belongs to a list (protect_lists)"),
        ("mclistd#clock.0", "this key belongs to a list (protect_lists)"),
        ("fans-7", "this key is a list (bridge): ldrop removes it"),
    ]:
        assert conn.cmd(f"lset tag {name}") == b"STORED"
        assert partial(conn.cmd("lpurge tag")) == (0, 1, f"{name}: {reason}")


@pytest.mark.parametrize("dialect", ["simple", "tombstone", "signed"])
def test_lists_in_one_item(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config={"lists": {"dialect": dialect}})
    names = [f"user:7:{n}" for n in range(5000)]
    with daemon.conn() as conn:
        assert conn.cmd("lpurge tag") == b"0"
        store(conn, names)
        assert conn.cmd("ladd tag a#b") == b"STORED"
        assert conn.cmd("laddb tag 3", b"a b") == b"STORED"
        assert partial(conn.cmd("lpurge tag")) == (5001, 1, "a\\x20b: not a key that memcached takes")
        assert stored(conn, names) == []
        assert conn.lget("tag") == [b"a b"]


@pytest.mark.parametrize("dialect", ["paired", "flip", "marker", "sublists", "ring"])
def test_lists_in_several_items_are_refused(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config={"lists": {"dialect": dialect}})
    with daemon.conn() as conn:
        assert conn.cmd("ladd tag a") == b"STORED"
        assert conn.cmd("lpurge tag").startswith(b"CLIENT_ERROR lpurge: a list of several items")


def test_a_list_that_may_move_is_to_be_moved_first(start_daemon, memcached):
    config = {"lists": {"dialect": "simple", "migrate": "native"}}
    daemon = start_daemon([memcached], config=config)
    with memcached.conn() as direct, daemon.conn() as conn:
        assert direct.set("tag", "a,b,") == b"STORED"
        assert b"lconvert it first" in conn.cmd("lpurge tag")
        assert conn.cmd("lconvert tag") == b"2"
        assert conn.cmd("lpurge tag") == b"2"


@pytest.mark.memcacheds(3)
@pytest.mark.config(**{"pool main": FAST})
def test_a_server_that_is_down(daemon, memcacheds):
    """Ten thousand names in one command: what is on the dead server stays, and is said."""
    names = [f"user:7:{n}" for n in range(COUNT)]
    with daemon.conn() as conn:
        store(conn, names)
        # Not the server that has the list's head.
        head = conn.stats("lstat tag")["head_server"]
        dead = next(server for server in memcacheds if server.address != head)
        with dead.conn() as direct:
            lost = stored(direct, names)
        dead.stop()
        done, stay, why = partial(conn.cmd("lpurge tag"))
        assert (done, stay) == (COUNT - len(lost), len(lost))
        assert dead.address in why
        assert [name.decode() for name in conn.lget("tag")] == [n for n in names if n in set(lost)]
        dead.start()
        wait_until("it is back", lambda: conn.cmd("lpurge tag").isdigit())
        assert conn.llen("tag") == 0 and stored(conn, names) == []


@pytest.mark.memcacheds(3)
@pytest.mark.config(**{"pool main": {**FAST, "eject_failures": 2}})
def test_a_server_that_is_silent(daemon, memcacheds):
    names = [f"user:7:{n}" for n in range(COUNT)]
    with daemon.conn() as conn:
        store(conn, names)
        head = conn.stats("lstat tag")["head_server"]
        silent = next(server for server in memcacheds if server.address != head)
        with silent.conn() as direct:
            lost = stored(direct, names)
        silent.pause()
        done, stay, why = partial(conn.cmd("lpurge tag"))
        assert (done, stay) == (COUNT - len(lost), len(lost)) and silent.address in why
        silent.resume()
        assert conn.llen("tag") == len(lost)
        wait_until("it is back", lambda: conn.cmd("lpurge tag").isdigit())
        assert conn.llen("tag") == 0 and stored(conn, names) == []


@pytest.mark.memcacheds(2)
@pytest.mark.config(**{"pool main": FAST})
def test_the_head_s_server_is_down(daemon, memcacheds):
    with daemon.conn() as conn:
        store(conn, [f"n{n}" for n in range(100)])
        head = conn.stats("lstat tag")["head_server"]
        next(server for server in memcacheds if server.address == head).stop()
        line = conn.cmd("lpurge tag")
        assert line.startswith(b"SERVER_ERROR lpurge: 0 names purged, the others stay in the list: backend")


def test_the_deadline(start_daemon, memcacheds, start_memcached):
    lists = start_memcached()
    config = {
        "proxy": {"long_timeout_ms": 300},
        "pool main": {"timeout_ms": 60000},
        "pool other": {"servers": lists.address},
        "lists": {"pool": "other"},
    }
    daemon = start_daemon(memcacheds, config=config)
    with daemon.conn() as conn:
        store(conn, [f"n{n}" for n in range(100)])
        memcacheds[0].pause()
        text = b"SERVER_ERROR lpurge: deadline over: 0 names purged, the others stay in the list"
        assert conn.cmd("lpurge tag") == text
        assert conn.llen("tag") == 100
        memcacheds[0].resume()
        wait_until("it goes on", lambda: conn.cmd("lpurge tag").isdigit())
        assert conn.llen("tag") == 0


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("dialect", ["native", "simple"])
def test_no_item_is_forgotten(start_daemon, memcacheds, dialect):
    """Clients set an item and add its name, over and over, while others purge; some of them have a
    proxy of their own. When all is quiet, each item that is stored stands in the list, so that one
    more lpurge leaves none."""
    config = {"lists": {**SHORT, "dialect": dialect} if dialect == "native" else {"dialect": dialect}}
    daemons = [start_daemon(memcacheds, config=config) for _ in range(2)]
    names = [f"user:7:{n}" for n in range(60)]
    over = threading.Event()
    purged = [0]

    def work(number):
        with daemons[number % 2].conn() as conn:
            if number < 2:
                while not over.is_set():
                    line = conn.cmd("lpurge tag")
                    assert line.isdigit() or b"busy" in line, line
                    purged[0] += int(line) if line.isdigit() else 0
                return
            try:
                for turn in range(400):
                    name = names[(turn * number + number) % len(names)]
                    assert conn.set(name, "x") == b"STORED"
                    assert conn.cmd(f"ladd tag {name}") == b"STORED"
                    if turn % 16 == 0:
                        conn.send(f"ladd tag {name}\r\nlhas tag {name}\r\nladd tag {name}\r\n")
                        assert conn.line() == b"STORED"
                        conn.values_answer()
                        assert conn.line() == b"STORED"
            finally:
                if number == 3:
                    over.set()

    in_threads(6, work)
    with daemons[0].conn() as conn:
        assert purged[0] > 0
        assert set(stored(conn, names)) <= {name.decode() for name in conn.lget("tag")}
        assert conn.cmd("lpurge tag").isdigit()
        assert not stored(conn, names) and conn.llen("tag") == 0


def test_a_lease_keeps_a_late_reader_from_storing_what_is_old(conn):
    """As the guide has it: the empty item of the client that fills is deleted as well."""
    def begin():
        conn.send("mg user7:page v c N30\r\n")
        _, size, *flags = conn.line().decode().split()
        assert size == "0" and conn.line() == b""
        assert conn.cmd("ladd tag user7:page") == b"STORED"
        return next(flag[1:] for flag in flags if flag[0] == "c"), "W" in flags

    cas, wins = begin()
    assert wins and not begin()[1]
    assert conn.cmd("lpurge tag") == b"1"
    assert conn.cmd(f"ms user7:page 3 C{cas} T3600", b"old") == b"NF"
    cas, wins = begin()
    assert wins
    assert conn.cmd(f"ms user7:page 3 C{cas} T3600", b"new") == b"HD"
    assert conn.get("user7:page") == b"new"
    assert conn.cmd("lpurge tag") == b"1" and conn.get("user7:page") is None


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("after_s", [0.001, 0.004, 0.008, 0.012, 0.016])
def test_a_proxy_that_is_killed_forgets_nothing(start_daemon, memcacheds, after_s):
    """What is left in the cache is in the list, and the next lpurge has all of it."""
    names = [f"user:7:{n}" for n in range(COUNT)]
    daemon, other = start_daemon(memcacheds), start_daemon(memcacheds)
    with daemon.conn() as conn, other.conn() as rest:
        store(conn, names)
        conn.send("lpurge tag\r\n")
        time.sleep(after_s)  # somewhere in the middle; where is up to the machine
        daemon.kill()
        assert set(stored(rest, names)) <= {name.decode() for name in rest.lget("tag")}
        assert rest.cmd("lpurge tag").isdigit()
        assert not stored(rest, names) and rest.llen("tag") == 0
