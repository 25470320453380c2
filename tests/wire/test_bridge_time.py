# SPDX-License-Identifier: BSD-3-Clause
"""bridge = yes: times to live, conditions, values of any size, deadlines, clients that leave."""

import os
import signal

import pytest

from harness import as_bytes, in_threads, pause_process, wait_until
from test_bridge_support import BRIDGES, encoded, fill, store, ttl

pytestmark = pytest.mark.config(**BRIDGES)


# --- times to live ---


@pytest.mark.parametrize("key", ("b-x", "r-x", "s-x"))
def test_touch_and_gat(conn, key):
    assert conn.cmd(f"touch {key} 100") == b"NOT_FOUND"
    assert conn.values(f"gat 100 {key}") == []
    fill(conn, key, "a", "b")
    assert ttl(conn, key) == -1
    assert conn.cmd(f"touch {key} 100") == b"TOUCHED"
    assert 90 < ttl(conn, key) <= 100
    assert conn.values(f"gat 300 {key}") == [(key.encode(), [0, 3], b"a,b")]
    assert 290 < ttl(conn, key) <= 300
    conn.set("plain", "value")
    version = conn.values(f"gats 0 plain {key} none")[1][1][2]
    assert ttl(conn, key) == -1
    assert conn.values(f"gets {key}")[0][1][2] == version
    conn.send(f"touch {key} 50 noreply\r\ngat -1 {key}\r\nget {key}\r\n")
    assert len(conn.values_answer()) == 1
    assert conn.values_answer() == []


def test_mg_shows_and_sets_times(conn):
    fill(conn, "b-x", "a")
    assert conn.cmd("mg b-x t") == b"HD t-1"
    assert conn.cmd("mg b-x T100 t") == b"HD t100"
    assert 90 < int(conn.cmd("mg b-x t").split(b"t")[1]) <= 100
    assert conn.cmd("mg b-x v T0 t") == b"VA 1 t-1"
    assert conn.line() == b"a"
    assert ttl(conn, "b-x") == -1
    conn.send("mg b-x v T-1\r\nmg b-x\r\nmg b-none T100 t k\r\n")
    assert conn.lines(4) == [b"VA 1", b"a", b"EN", b"EN kb-none"]


def test_a_time_that_is_over_is_shown_without_a_sign(conn):
    """As memcached does, which shows 32 bits of it: -1 would be a list that lives for ever."""
    for time_s in ("-1", "-100", "1000000000"):
        for key in ("b-x", "plain"):
            conn.cmd(f"set {key} 0 0 1\r\na")
            shown = conn.cmd(f"mg {key} T{time_s} t")
            assert shown.startswith(b"HD t"), shown
            assert 2**31 <= int(shown[4:]) < 2**32, shown
            assert conn.cmd(f"mg {key} t") == b"EN"


def test_a_dialect_of_several_items_takes_no_times(conn):
    fill(conn, "f-x", "a")
    for line in ("touch f-x 100", "gat 100 f-x", "mg f-x T100"):
        assert conn.cmd(line).startswith(f"CLIENT_ERROR {line.split()[0]}: ".encode())
    assert conn.get("f-x") == b"a"


# --- conditions, and whole contents of any size ---


def version_of(conn, key):
    return conn.values(f"gets {key}")[0][1][2]


@pytest.mark.parametrize("key", ("b-x", "r-x"))
def test_replace_and_cas(conn, key):
    assert store(conn, "replace", key, "a") == b"NOT_STORED"
    assert store(conn, "cas", key, "a", tail=" 1") == b"NOT_FOUND"
    fill(conn, key, "a", "b")
    assert store(conn, "replace", key, "c,d") == b"STORED"
    seen = version_of(conn, key)
    conn.cmd(f"ladd {key} e")
    assert store(conn, "cas", key, "f", tail=f" {seen}") == b"EXISTS"
    assert conn.get(key) == b"c,d,e"
    seen = version_of(conn, key)
    assert store(conn, "cas", key, "g,h", tail=f" {seen}") == b"STORED"
    assert store(conn, "cas", key, "i", tail=f" {seen}") == b"EXISTS"
    assert conn.get(key) == b"g,h"
    conn.send(f"cas {key} 0 0 1 {seen} noreply\r\nz\r\nmn\r\n")
    assert conn.line() == b"MN"
    assert conn.values(f"lgets {key}")[0][1][2] == version_of(conn, key)


@pytest.mark.parametrize("key", ("b-x", "r-x"))
def test_ms_and_md_by_version(conn, key):
    assert conn.cmd(f"ms {key} 1 C5 c O1 k", "a") == f"NF c0 O1 k{key}".encode()
    fill(conn, key, "a")
    assert conn.cmd(f"ms {key} 1 C5 O1", "b") == b"EX O1"
    assert conn.cmd(f"ms {key} 1 MR T100", "b") == b"HD"
    assert 90 < ttl(conn, key) <= 100
    seen = version_of(conn, key)
    assert conn.cmd(f"ms {key} 1 C{seen} T0", "c") == b"HD"
    assert ttl(conn, key) == -1
    seen = version_of(conn, key)
    if key == "r-x":
        refused = b"CLIENT_ERROR md of this list has no flag C (bridge)"
        assert conn.cmd(f"md {key} C{seen}") == refused
        return
    assert conn.cmd(f"md {key} C{seen - 1} k") == f"EX k{key}".encode()
    assert conn.cmd(f"md {key} C{seen} k") == f"HD k{key}".encode()
    assert conn.get(key) is None
    assert conn.cmd(f"md {key} C{seen} k") == f"NF k{key}".encode()


@pytest.mark.parametrize("key", ("b-x", "r-x"))
def test_exptime_is_that_of_the_list(conn, key):
    assert store(conn, "add", key, "a", exptime=100) == b"STORED"
    assert 90 < ttl(conn, key) <= 100
    assert store(conn, "append", key, "b") == b"STORED"
    assert 90 < ttl(conn, key) <= 100
    assert store(conn, "set", key, "c", exptime=500) == b"STORED"
    assert 490 < ttl(conn, key) <= 500
    assert store(conn, "replace", key, "c") == b"STORED"
    assert ttl(conn, key) == -1
    assert store(conn, "set", key, "d", exptime=-1) == b"STORED"
    assert conn.get(key) is None
    assert store(conn, "set", key, "d", exptime=-1) == b"STORED"
    for verb in ("add", "replace"):
        assert store(conn, verb, key, "d", exptime=-1) == (
            f"CLIENT_ERROR {verb}: EXPTIME is over already: delete removes a list".encode()
        )


@pytest.mark.config(**{"lists b-": {"bridge": "yes", "ttl_s": 1000}})
def test_exptime_0_is_that_of_the_prefix(conn):
    assert store(conn, "set", "b-x", "a") == b"STORED"
    assert 990 < ttl(conn, "b-x") <= 1000
    assert store(conn, "set", "b-x", "a", exptime=50) == b"STORED"
    assert 40 < ttl(conn, "b-x") <= 50
    assert store(conn, "set", "b-x", "a") == b"STORED"
    assert 990 < ttl(conn, "b-x") <= 1000


@pytest.mark.config(
    **BRIDGES, **{"lists m-": {"bridge": "yes", "dialect": "simple", "migrate": "native"}}
)
@pytest.mark.parametrize("key", ("b-x", "s-x", "m-x"))
def test_a_set_that_is_refused_leaves_the_time_as_it_was(conn, key):
    """Its EXPTIME came beside the content once, and the old content went with it."""
    fill(conn, key, "a", "b")
    assert store(conn, "set", key, "x" * 2000, exptime=100).startswith(b"CLIENT_ERROR item is longer")
    assert ttl(conn, key) == -1
    assert store(conn, "set", key, "c,d", exptime=100) == b"STORED"
    assert 90 < ttl(conn, key) <= 100
    assert conn.get(key) == b"c,d"
    if key == "m-x":
        assert conn.cmd("lconvert m-x") == b"2"
        assert store(conn, "set", key, "e", exptime=300) == b"STORED"
        assert 290 < ttl(conn, key) <= 300


@pytest.mark.config(
    **BRIDGES, **{"lists m-": {"bridge": "yes", "dialect": "simple", "migrate": "native"}}
)
@pytest.mark.config(**{"lists s-": {"compact_chance": 0}, "lists m-": {"compact_chance": 0}})
@pytest.mark.parametrize("key", ("b-x", "s-x", "m-x"))
def test_conditions_come_with_content_and_time_in_one_step(conn, key):
    assert store(conn, "replace", key, "a") == b"NOT_STORED"
    assert store(conn, "cas", key, "a", tail=" 5") == b"NOT_FOUND"
    assert store(conn, "add", key, "a,b", exptime=100) == b"STORED"
    assert 90 < ttl(conn, key) <= 100
    assert store(conn, "add", key, "c", exptime=900) == b"NOT_STORED"
    version = version_of(conn, key)
    assert store(conn, "append", key, "c") == b"STORED"
    assert store(conn, "cas", key, "d", exptime=900, tail=" %d" % int(version)) == b"EXISTS"
    assert conn.get(key) == b"a,b,c"
    assert ttl(conn, key) <= 100
    version = version_of(conn, key)
    assert store(conn, "cas", key, "d", exptime=500, tail=" %d" % int(version)) == b"STORED"
    assert store(conn, "cas", key, "e", tail=" %d" % int(version)) == b"EXISTS"
    assert conn.get(key) == b"d"
    assert 490 < ttl(conn, key) <= 500
    assert store(conn, "replace", key, "f,g", exptime=900) == b"STORED"
    assert conn.get(key) == b"f,g"
    assert 890 < ttl(conn, key) <= 900


def test_what_dialects_cannot_do_at_once(conn):
    for verb in ("replace", "cas"):
        tail = " 5" if verb == "cas" else ""
        assert store(conn, verb, "f-x", "a", tail=tail) == (
            b"CLIENT_ERROR %s: lists of several items have no such step (bridge)" % verb.encode()
        )
    assert store(conn, "add", "f-x", "a", exptime=100) == (
        b"CLIENT_ERROR add: lists of several items have no EXPTIME (bridge)"
    )
    assert store(conn, "set", "f-x", "a", exptime=100) == (
        b"CLIENT_ERROR set: lists of several items have no EXPTIME (bridge)"
    )
    assert store(conn, "set", "s-x", "a,b", exptime=100) == b"STORED"
    assert 90 < ttl(conn, "s-x") <= 100
    assert conn.get("s-x") == b"a,b"
    assert conn.cmd("md s-x C5") == b"CLIENT_ERROR md of this list has no flag C (bridge)"


@pytest.mark.parametrize("key", ("b-x", "r-x"))
def test_large_values(conn, key):
    """As large as max_value_bytes, which no log could take."""
    items = [f"item-{n:06}" for n in range(80000)]
    value = ",".join(items)
    for verb in ("add", "replace", "set"):
        assert store(conn, verb, key, value) == b"STORED"
        assert conn.llen(key) == 80000
    assert store(conn, "append", key, "more") == b"STORED"
    assert conn.get(key) == as_bytes(value + ",more")
    # A compaction between the two makes another version.
    wait_until(
        "cas of a large value",
        lambda: store(conn, "cas", key, value, tail=f" {version_of(conn, key)}") == b"STORED",
    )
    assert conn.get(key) == as_bytes(value)
    assert conn.cmd(f"mg {key} s") == b"HD s%d" % len(value)


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("key", ("b-x", "r-x"))
def test_no_change_is_lost_beside_cas(memcacheds, start_daemon, key):
    """Clients of two proxies that read, add and write back, beside clients that append."""
    daemons = [start_daemon(memcacheds, config=BRIDGES) for _ in range(2)]
    rounds = 25
    with daemons[0].conn() as conn:
        fill(conn, key, "first")

    def add_by_cas(conn, number):
        for n in range(rounds):
            answer = b""
            while answer != b"STORED":
                (_, (_, _, seen), data), = conn.values(f"gets {key}")
                answer = store(conn, "cas", key, data + b",c%d-%d" % (number, n), tail=f" {seen}")
                assert answer in (b"STORED", b"EXISTS") or b"nothing done" in answer, answer

    def add_by_append(conn, number):
        for n in range(rounds):
            assert store(conn, "append", key, f"a{number}-{n},gone{number}-{n}") == b"STORED"
            assert store(conn, "prepend", key, f"gone{number}-{n}") == b"STORED"

    def work(number):
        with daemons[number % 2].conn() as conn:
            (add_by_cas if number < 4 else add_by_append)(conn, number)

    in_threads(6, work)
    with daemons[1].conn() as conn:
        found = conn.lget(key)
    expected = {b"%c%d-%d" % (b"c" if w < 4 else b"a", w, n) for w in range(6) for n in range(rounds)}
    assert len(found) == len(set(found))
    assert set(found) == expected | {b"first"}


# --- when things go wrong ---


@pytest.mark.parametrize("request_of, answer", [
    (lambda value: f"set b-x 0 0 {len(value)}\r\n{value}\r\n", b"STORED"),
    (lambda value: f"ms b-x {len(value)} ME\r\n{value}\r\n", b"NS"),
    (lambda _: "touch b-x 100\r\n", b"TOUCHED"),
])  # fmt: skip
def test_what_takes_long_waits_as_long_as_the_list_verb(start_daemon, memcached, conn, request_of,
                                                        answer):
    """Values that are written in several steps, as lput, and times to live, as ltouch."""
    config = {**BRIDGES, "proxy": {"deadline_ms": 100}, "pool main": {"timeout_ms": 60000}}
    daemon = start_daemon([memcached], config=config)
    request = request_of(",".join(f"item-{n:06}" for n in range(20000)))
    fill(conn, "b-x", "a")
    with daemon.conn() as hasty:
        memcached.pause()
        hasty.send(request)
        assert hasty.is_silent(0.4)
        memcached.resume()
        assert hasty.line() == answer


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
@pytest.mark.config(proxy={"deadline_ms": 300}, **{"pool main": {"timeout_ms": 5000}})
def test_a_get_of_both_kinds_ends_at_its_deadline(daemon, memcacheds, conn):
    """Lists by the engine's clock, plain keys by the proxy's; the answer is one."""
    keys = [f"b-{n}" for n in range(8)] + [f"plain-{n}" for n in range(8)]
    for key in keys:
        assert store(conn, "set", key, "a") == b"STORED"
    for server in memcacheds:
        pause_process(server.process.pid)
    try:
        conn.send(f"get {' '.join(keys)}\r\ngat 100 {' '.join(keys)}\r\nset b-1 0 0 1\r\nz\r\n")
        found = conn.lines(3)
    finally:
        for server in memcacheds:
            os.kill(server.process.pid, signal.SIGCONT)
    assert found[0].startswith(b"SERVER_ERROR deadline over")
    assert found[1].startswith(b"SERVER_ERROR deadline over")
    assert found[2].startswith(b"SERVER_ERROR deadline over, nothing done: earlier requests")
    assert len(conn.values("get " + " ".join(keys))) == len(keys)


@pytest.mark.memcacheds(2)
def test_clients_that_leave(daemon, conn):
    """In the middle of answers, with lists and plain keys under way."""
    fill(conn, "b-x", *(f"item-{n}" for n in range(2000)))
    conn.set("plain", "x" * 100000)
    code = encoded("b-x")
    for n in range(60):
        with daemon.conn() as other:
            other.send("get plain b-x plain b-x b-none plain\r\ngat 100 b-x plain\r\n" * 5)
            other.send(f"mg {code} b v t\r\nms {code} 1 b MA\r\na\r\nset b-x 0 0 3\r\na,b\r\n" * (n % 3))
            if n % 2:
                other.line()
    assert conn.cmd("mn") == b"MN"
    assert daemon.is_running()
