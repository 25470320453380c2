# SPDX-License-Identifier: BSD-3-Clause
"""An application by hand and the proxy work on the same lists at the same time: each sees what the
other does, over plain sockets and with pymemcache."""

import threading
import time

import pytest

from test_dialects_support import (
    DIALECTS, ONE_ITEM, SETS, Hand, blind, folded, lists_by_dialect, settings, unique,
)

NEVER = {"compact_chance": 0}


def never(dialect):
    return {} if dialect == "ring" else NEVER


@pytest.fixture
def pymemcache(memcached):
    missing = "python3-pymemcache is not installed"
    base = pytest.importorskip("pymemcache.client.base", reason=missing)
    address = ("127.0.0.1", memcached.port)
    client = base.Client(address, timeout=10, connect_timeout=10, default_noreply=False)
    yield client
    client.close()


class PymemcacheHand(Hand):
    """The same application on another client library."""

    def __init__(self, client, port):
        super().__init__(port)
        self.client = client

    def store(self, verb, key, text):
        return getattr(self.client, verb)(key, text) is True

    def get(self, key):
        return self.client.get(key)

    def gets(self, key):
        return self.client.gets(key)

    def cas(self, key, text, number):
        return self.client.cas(key, text, number) is True


@pytest.fixture(params=["sockets", "pymemcache"])
def hand(request, memcached):
    if request.param == "pymemcache":
        client = request.getfixturevalue("pymemcache")
        with PymemcacheHand(client, memcached.port) as hand:
            yield hand
    else:
        with Hand(memcached.port) as hand:
            yield hand


@pytest.mark.parametrize("dialect", SETS)
def test_each_sees_what_the_other_does(memcached, start_daemon, hand, dialect):
    key = "topic-X"
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with daemon.conn() as conn:
        for n in range(20):
            assert conn.cmd(f"ladd {key} proxy{n}") == b"STORED"
            hand.add(dialect, key, f"hand{n}")
            both = [b"proxy%d" % n, b"hand%d" % n]
            assert conn.lget(key) == both
            assert hand.read(dialect, key) == both
            hand.delete(dialect, key, f"proxy{n}")
            assert conn.lget(key) == both[1:]
            assert conn.cmd(f"ldel {key} hand{n}") == b"DELETED"
            assert conn.lget(key) == []
            assert hand.read(dialect, key) == []


@pytest.mark.parametrize("dialect", SETS)
def test_a_list_that_was_begun_by_hand(memcached, start_daemon, hand, dialect):
    """The first thing that the proxy does with it is to add, or to delete."""
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with daemon.conn() as conn:
        for n, change in enumerate(["ladd", "ldel"]):
            key = f"topic-{n}"
            for item in ("one", "two"):
                hand.add(dialect, key, item)
            assert conn.cmd(f"{change} {key} one") in (b"STORED", b"DELETED")
            expected = [b"one", b"two"] if change == "ladd" else [b"two"]
            assert conn.lget(key) == expected
            assert hand.read(dialect, key) == expected


def test_a_tombstone_list_without_a_bar_is_made_one_before_the_first_deletion(
    memcached, start_daemon
):
    daemon = start_daemon([memcached], config=blind("tombstone", **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", "topic-X", "a,b,c,")
        assert conn.cmd("ldel topic-X b") == b"DELETED"
        assert hand.get("topic-X") == b"|a,c,"
        assert conn.cmd("ldel topic-X a") == b"DELETED"
        assert hand.get("topic-X") == b"a,|a,c,"


def test_a_tombstone_list_that_is_made_anew_without_a_bar(memcached, start_daemon):
    daemon = start_daemon([memcached], config=blind("tombstone", **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert conn.cmd("ladd topic-X a b") == b"STORED"
        assert conn.lget("topic-X") == [b"a", b"b"]
        hand.conn.cmd("delete topic-X")
        assert conn.cmd("ldel topic-X a") == b"DELETED"
        hand.store("set", "topic-X", "a,b,")
        assert conn.cmd("ldel topic-X a") == b"DELETED"
        assert conn.lget("topic-X") == [b"b"]


def test_both_write_to_a_ring(memcached, start_daemon, hand):
    daemon = start_daemon([memcached], config=settings("ring"))
    expected = []
    with daemon.conn() as conn:
        for n in range(60):
            assert conn.cmd(f"ladd topic-X proxy{n} second{n}") == b"STORED"
            hand.add_ring("topic-X", f"hand{n}")
            expected = [b"hand%d" % n, b"second%d" % n, b"proxy%d" % n, *expected][:100]
            assert conn.lget("topic-X") == expected
            assert hand.read_ring("topic-X") == expected


def read_until_not_busy(conn, key):
    while True:
        try:
            return conn.lget(key)
        except RuntimeError as error:
            assert "busy" in str(error)


@pytest.mark.parametrize("dialect", SETS)
def test_a_crowd_of_both_kinds(memcached, start_daemon, dialect):
    """Two proxies and four applications by hand change a list that the proxies fold as they go. Each
    has items of its own and at the end all that it added last, and nothing that it deleted."""
    key, rounds = "topic-X", 60
    # In two logs an item that is deleted while they change places may come back.
    deletes = dialect not in ("flip", "marker")
    sizes = {"log_limit_bytes": 256, "max_item_bytes": 100}
    config = settings(dialect, compact_chance=2, **sizes)
    daemons = [start_daemon([memcached], config=config) for _ in range(2)]
    faults = []

    def kept(name, count):
        step = 2 if deletes else 1
        return [b"%sn%d" % (name.encode(), n) for n in range(step - 1, count, step)]

    def application(name):
        with Hand(memcached.port) as hand:
            for n in range(rounds):
                hand.add(dialect, key, f"{name}n{n}")
                if deletes and n % 2 == 1:
                    hand.delete(dialect, key, f"{name}n{n - 1}")

    def client(name, daemon):
        with daemon.conn() as conn:
            for n in range(rounds):
                assert until_not_busy(conn, f"ladd {key} {name}n{n}") == b"STORED"
                if deletes and n % 2 == 1:
                    assert until_not_busy(conn, f"ldel {key} {name}n{n - 1}") == b"DELETED"
                found = read_until_not_busy(conn, key)
                assert len(found) == len(set(found))
                own = [item for item in found if item.startswith(name.encode() + b"n")]
                newest = b"%sn%d" % (name.encode(), n)
                assert own == [*kept(name, n), newest]

    def run(work, *args):
        try:
            work(*args)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(application, f"h{n}")) for n in range(4)]
    threads += [threading.Thread(target=run, args=(client, f"p{n}", daemons[n])) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    expected = sorted(sum((kept(name, rounds) for name in ("h0", "h1", "h2", "h3", "p0", "p1")), []))
    for daemon in daemons:
        with daemon.conn() as conn:
            assert sorted(conn.lget(key)) == expected
            assert conn.cmd(f"lcompact {key}") == b"OK"
            assert sorted(conn.lget(key)) == expected
    with Hand(memcached.port) as hand:
        assert sorted(hand.read(dialect, key)) == expected


def until_not_busy(conn, request):
    while (line := conn.cmd(request)).startswith(b"SERVER_ERROR busy"):
        pass
    return line


# --- flags and times ---


REWRITTEN = {
    "simple": [("topic-X", "a,a,b,")],
    "tombstone": [("topic-X", "b,|a,b,")],
    "signed": [("topic-X", "+a+b-b")],
    "paired": [("follow-topic-X", "a,a,b,"), ("unfollow-topic-X", "b,b,")],
    "sublists": [("topic-X", "+0+1+2-1"), ("topic-X.0", "+a+b+b"), ("topic-X.2", "+a+c-c")],
}


@pytest.mark.parametrize("dialect", REWRITTEN)
@pytest.mark.parametrize("command", ["lcompact topic-X", "laddx topic-X new", "ladd topic-X new"])
def test_flags_and_times_of_items_by_hand_stay(memcached, start_daemon, dialect, command):
    if command.startswith("laddx") and dialect not in ONE_ITEM:
        pytest.skip("refused")
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for name, text in REWRITTEN[dialect]:
            assert hand.conn.set(name, text, flags=16, exptime=1000) == b"STORED"
        assert conn.cmd(command) in (b"OK", b"1", b"STORED")
        changed = 0
        for name, text in REWRITTEN[dialect]:
            answer = hand.conn.cmd(f"mg {name} f t v")
            assert answer.startswith(b"VA "), name
            _, _, flags, ttl = answer.split()
            assert flags == b"f16"
            assert 900 < int(ttl[1:]) <= 1000
            changed += hand.conn.line() != text.encode()
        assert changed > 0
        if command == "lcompact topic-X":
            assert int(conn.stats()["list_folds"]) >= 1


@pytest.mark.parametrize("dialect", ["flip", "marker"])
def test_lists_of_two_logs_keep_flags_and_times_of_what_is_rewritten(
    memcached, start_daemon, dialect
):
    """A fold makes a new item of the other log: that one has the times of the one it replaces."""
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert hand.conn.set("topic-X.a", "+a+b-b", flags=16, exptime=1000) == b"STORED"
        if dialect == "flip":
            assert hand.conn.set("topic-X.active", "topic-X.a", exptime=1000) == b"STORED"
        assert conn.cmd("lcompact topic-X") == b"OK"
        assert conn.lget("topic-X") == [b"a"]
        # The log that was drained stays, empty, where a pointer says which one is active.
        assert hand.get("topic-X.a") == (b"" if dialect == "flip" else None)
        words = hand.conn.cmd("mg topic-X.b f t").split()
        assert words[0] == b"HD"
        assert words[1] == b"f16" and 900 < int(words[2][1:]) <= 1000


# --- several at a time ---


def test_the_longest_prefix_wins_and_dialects_stand_side_by_side(memcached, start_daemon):
    config = {
        "lists a": {"dialect": "simple"},
        "lists a-": {"dialect": "signed"},
        "lists a-b": {"dialect": "tombstone"},
        "lists a-b-": {"dialect": "native"},
    }
    daemon = start_daemon([memcached], config=config)
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        keys = ["a", "ab", "a-", "a-a", "a-b", "a-bc", "a-b-", "a-b-c", "b"]
        for key in keys:
            assert conn.cmd(f"ladd {key} x") == b"STORED"
        stored = [(hand.get(key) or b"").decode() for key in keys]
        assert stored == ["x,", "x,", "+x", "+x", "|x,", "|x,", "", "", ""]
        found = conn.values("lget " + " ".join(keys))
        assert [(key.decode(), data) for key, _, data in found] == [(key, b"x") for key in keys]


def test_one_request_for_lists_of_all_dialects(memcached, start_daemon):
    daemon = start_daemon([memcached], config=lists_by_dialect())
    with daemon.conn() as conn:
        keys = [f"{dialect}-{n}" for n in range(5) for dialect in DIALECTS] + ["native"]
        for n, key in enumerate(keys):
            assert conn.cmd(f"ladd {key} first{n} second{n}") == b"STORED"
        for verb in ("lget", "lgets"):
            found = conn.values(f"{verb} missing " + " ".join(keys) + " ring-none flip-none")
            assert [key.decode() for key, _, _ in found] == keys
            for n, (key, numbers, data) in enumerate(found):
                pair = [b"first%d" % n, b"second%d" % n]
                assert data.split(b",") == (pair[::-1] if key.startswith(b"ring") else pair)
        # Version numbers change with the content, and only then.
        before = {key: numbers[2] for key, numbers, _ in conn.values("lgets " + " ".join(keys))}
        again = {key: numbers[2] for key, numbers, _ in conn.values("lgets " + " ".join(keys))}
        assert before == again
        for key in keys:
            conn.cmd(f"ladd {key} z")
        after = {key: numbers[2] for key, numbers, _ in conn.values("lgets " + " ".join(keys))}
        assert all(after[key] != before[key] for key in before)


def test_what_is_stored_is_seen_through_plain_verbs_of_the_proxy(daemon_of_three):
    """Each item lives where its own name belongs: an application that talks to the proxy, or has the
    same hash ring, finds it."""
    with daemon_of_three.conn() as conn:
        for dialect in SETS:
            for n in range(20):
                key = f"{dialect}-{n}"
                assert conn.cmd(f"ladd {key} one two") == b"STORED"
                assert conn.cmd(f"ldel {key} one") == b"DELETED"
                with_plain_verbs = Hand.__new__(Hand)
                with_plain_verbs.conn = conn
                assert with_plain_verbs.read(dialect, key) == [b"two"]
                with_plain_verbs.add(dialect, key, "three")
                assert conn.lget(key) == [b"two", b"three"]


@pytest.fixture
def daemon_of_three(start_memcached, start_daemon):
    return start_daemon([start_memcached() for _ in range(3)], config=lists_by_dialect())


def test_hand_helpers_fold_as_the_manual_says():
    assert folded(b"+1234+222+987-222") == [b"1234", b"987"]
    assert unique([b"a", b"", b"a", b"b"]) == [b"a", b"b"]


def test_deletions_get_through_among_four_writers_by_hand(memcached, start_daemon):
    """Each append of theirs makes a CAS of the proxy fail; so does each of its own other workers.
    They pause: without that, nothing says that the proxy ever finds a moment between two of them."""
    config = {**settings("simple", **NEVER), "proxy": {"threads": 2, "deadline_ms": 20000}}
    daemon = start_daemon([memcached], config=config)
    key, stop = "topic-X", threading.Event()

    def write(number):
        with Hand(memcached.port) as hand:
            while not stop.is_set():
                hand.add("simple", key, f"h{number}")
                time.sleep(0.002)

    with Hand(memcached.port) as hand, daemon.conn() as conn, daemon.conn() as other:
        for n in range(25):
            hand.add("simple", key, f"item{n}")
        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        try:
            for n in range(25):
                assert other.cmd(f"ladd {key} own") == b"STORED"
                assert conn.cmd(f"ldel {key} item{n}") == b"DELETED"
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert set(conn.lget(key)) <= {b"own", b"h0", b"h1", b"h2", b"h3"}
