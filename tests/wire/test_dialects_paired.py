# SPDX-License-Identifier: BSD-3-Clause
"""Pairs: an acknowledged deletion stays one, and an acknowledged addition too, when two proxies fold
at once, when one dies over it, and beside clients that write by hand."""

import random
import re
import threading

import pytest

from harness import wait_until
from test_dialects_support import Hand, blind

KEY = "topic-X"
ADDS, DELETES = f"follow-{KEY}", f"unfollow-{KEY}"
MARK = "@5d0c81f2a4b69e37"
NEVER = {"compact_chance": 0}
# Some were deleted, some of them added again.
BEFORE = {ADDS: "a,b,c,d,e,f,b,", DELETES: "b,d,"}
CONTENT = [b"a", b"b", b"c", b"e", b"f"]


@pytest.fixture
def hand(memcached):
    with Hand(memcached.port) as hand:
        yield hand


@pytest.fixture
def daemon(memcached, start_daemon):
    return start_daemon([memcached], config=blind("paired", **NEVER))


class Slow:
    """A proxy behind a relay that holds what it changes."""

    def __init__(self, start_daemon, start_relay, memcached):
        self.relay = start_relay(memcached)
        self.daemon = start_daemon([self.relay], config=blind("paired", **NEVER))
        self.conn = self.daemon.conn()
        self.answers = []

    def begin(self, request, changes):
        """Lets so many changes pass. True: the next one is held, False: there is none."""
        self.relay.hold_after(changes)
        self.conn.send(request, "\r\n")
        self.thread = threading.Thread(target=self._read)
        self.thread.start()
        return self.relay.wait_until_held_or(lambda: bool(self.answers))

    def _read(self):
        try:
            self.answers.append(self.conn.line())
        except (OSError, EOFError):
            pass  # it was killed

    def end(self):
        self.relay.release()
        self.thread.join()
        return self.answers.pop()


def fill(hand):
    hand.conn.cmd("flush_all")
    for name, text in BEFORE.items():
        assert hand.store("set", name, text)


# What another proxy does while the slow one stands still.
BESIDE = [
    ["lcompact topic-X"],
    ["ldel topic-X a c"],
    ["ldel topic-X a c", "lcompact topic-X"],
    ["lcompact topic-X", "ldel topic-X a c"],
    ["ldel topic-X a", "lcompact topic-X", "ldel topic-X c", "lcompact topic-X", "ladd topic-X g"],
    ["ldel topic-X b", "ladd topic-X g d", "lcompact topic-X"],
    ["lset topic-X a g", "ldel topic-X a"],
    ["ldrop topic-X", "ladd topic-X g d"],
]


def after(requests):
    items = set(CONTENT)
    for request in requests:
        verb, _, *named = request.encode().split(b" ")
        items = {b"ldel": items - set(named), b"ladd": items | set(named), b"lset": set(named),
                 b"ldrop": set(), b"lcompact": items}[verb]
    return sorted(items)


@pytest.mark.parametrize("requests", BESIDE, ids="; ".join)
def test_two_that_fold_at_once(memcached, hand, daemon, start_daemon, start_relay, requests):
    """One is stopped before each of its changes, another one folds and deletes in that time."""
    slow = Slow(start_daemon, start_relay, memcached)
    with daemon.conn() as conn:
        for changes in range(30):
            fill(hand)
            assert sorted(slow.conn.lget(KEY)) == CONTENT
            held = slow.begin("lcompact topic-X", changes)
            assert sorted(conn.lget(KEY)) == CONTENT
            assert sorted(hand.read("paired", KEY)) == CONTENT
            for request in requests:
                assert conn.cmd(request) in (b"OK", b"STORED", b"DELETED")
            expected = after(requests)
            assert sorted(conn.lget(KEY)) == expected
            assert slow.end().startswith((b"OK", b"SERVER_ERROR busy"))
            for _ in range(2):
                assert sorted(conn.lget(KEY)) == sorted(slow.conn.lget(KEY)) == expected
                assert sorted(hand.read("paired", KEY)) == expected
                assert conn.cmd("lcompact topic-X") == b"OK"
            if not held:
                assert changes >= 4
                return
    pytest.fail("the folding has no end")


@pytest.mark.parametrize("requests", BESIDE, ids="; ".join)
def test_one_that_dies_over_a_folding(memcached, hand, daemon, start_daemon, start_relay, requests):
    with daemon.conn() as conn:
        for changes in range(30):
            fill(hand)
            slow = Slow(start_daemon, start_relay, memcached)
            held = slow.begin("lcompact topic-X", changes)
            if not held:
                slow.end()
                assert changes >= 4
                return
            slow.daemon.kill()
            slow.relay.stop()
            slow.thread.join()
            assert sorted(conn.lget(KEY)) == CONTENT
            assert sorted(hand.read("paired", KEY)) == CONTENT
            for request in requests:
                assert conn.cmd(request) in (b"OK", b"STORED", b"DELETED")
            for _ in range(2):
                assert sorted(conn.lget(KEY)) == after(requests)
                assert conn.cmd("lcompact topic-X") == b"OK"
                assert sorted(hand.read("paired", KEY)) == after(requests)
    pytest.fail("the folding has no end")


def names_of(client):
    return [b"c%dn%d" % (client, n) for n in range(30)]


@pytest.mark.parametrize("kills", [0, pytest.param(10, marks=pytest.mark.slow)])
def test_what_was_deleted_stays_deleted(memcached, start_daemon, kills):
    """Three proxies fold all the time. Each client has its items, and sees what it was told."""
    config = blind("paired", compact_chance=1, log_limit_bytes=256, max_item_bytes=100)
    daemons = [start_daemon([memcached], config=config) for _ in range(3)]
    stop = threading.Event()
    faults, rounds = [], [0] * 4

    def client(number):
        rng = random.Random(number)
        there, gone = set(names_of(number)), set()  # items of unknown state are in neither
        while not stop.is_set():
            try:
                with daemons[rng.randrange(3)].conn() as conn:
                    while not stop.is_set():
                        item = rng.choice(names_of(number))
                        sure, deletes = item in there or item in gone, item in there
                        there.discard(item)
                        gone.discard(item)
                        verb = "ldel" if deletes else "ladd"
                        line = conn.cmd(f"{verb} {KEY} {item.decode()}")
                        if sure and line in (b"STORED", b"DELETED"):
                            (gone if deletes else there).add(item)
                        if rng.random() < 0.3:
                            conn.cmd(f"lcompact {KEY}")
                        found = {item for item in conn.lget(KEY)
                                 if item.startswith(b"c%dn" % number)}
                        if not there <= found or gone & found:
                            faults.append((number, there - found, gone & found))
                        rounds[number] += 1
            except TimeoutError as fault:
                faults.append(fault)
            except (OSError, EOFError, RuntimeError, AssertionError):
                pass  # the proxy was killed

    with daemons[0].conn() as conn:
        for number in range(4):
            names = b" ".join(names_of(number)).decode()
            assert conn.cmd(f"ladd {KEY} {names}") == b"STORED"
    threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for n in range(kills):
        before = sum(rounds)
        wait_until("some was done", lambda: sum(rounds) >= before + 40)
        daemons[n % 3].kill()
        daemons[n % 3].start()
    wait_until("all have done some", lambda: min(rounds) >= 150)
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []


# --- beside clients by hand ---


def test_the_recipe_of_the_manual_beside_marks(hand, daemon):
    """The additions less the deletions in their place, then no deletions."""
    fill(hand)
    with daemon.conn() as conn:
        for n in range(3):
            assert conn.cmd(f"ldel {KEY} later") == b"DELETED"
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
            kept = hand.read("paired", KEY)
            assert sorted(kept) == CONTENT
            _, number = hand.gets(ADDS)
            assert hand.cas(ADDS, b"".join(item + b"," for item in kept), number)
            assert sorted(conn.lget(KEY)) == CONTENT
            assert hand.store("set", DELETES, "")
            assert sorted(conn.lget(KEY)) == CONTENT
            assert conn.cmd(f"ldel {KEY} a") == b"DELETED"
            assert sorted(conn.lget(KEY)) == CONTENT[1:]
            assert conn.cmd(f"ladd {KEY} a") == b"STORED"
            assert conn.cmd(f"lcompact {KEY}") == b"OK"


@pytest.mark.parametrize("lost", [DELETES, ADDS])
@pytest.mark.parametrize("how", ["delete {}", "set"])
def test_one_of_the_items_is_lost_or_emptied(hand, daemon, lost, how):
    fill(hand)
    with daemon.conn() as conn:
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.cmd(f"ldel {KEY} a") == b"DELETED"
        assert hand.store("set", lost, "") if how == "set" else hand.conn.cmd(how.format(lost))
        left = [] if lost == ADDS else CONTENT  # the deletion is lost, too
        assert sorted(conn.lget(KEY)) == left
        assert conn.cmd(f"ldel {KEY} c") == b"DELETED"
        assert conn.cmd(f"ladd {KEY} g") == b"STORED"
        expected = sorted({*left, b"g"} - {b"c"})
        for _ in range(2):
            assert sorted(conn.lget(KEY)) == expected
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
            assert sorted(hand.read("paired", KEY)) == expected
        assert sorted(conn.lget(KEY)) == expected


@pytest.mark.parametrize(
    "adds,deletes", [("a,b,c", "a,b,"), ("a,b,c,", "a,b"), ("a,b,c", "a,b"), (",a,,b,c", ",a,,b")]
)
def test_a_last_item_without_delimiter_is_not_joined_with_a_mark(hand, daemon, adds, deletes):
    hand.store("set", ADDS, adds)
    hand.store("set", DELETES, deletes)
    with daemon.conn() as conn:
        assert conn.lget(KEY) == [b"c"]
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.lget(KEY) == hand.read("paired", KEY) == [b"c"]
        assert re.fullmatch(rb"c,@[0-9a-f]{16},", hand.get(ADDS))


def test_items_in_the_form_of_a_mark_are_refused(daemon):
    error = (b"CLIENT_ERROR item looks like a mark of a folding "
             b"(@ and 16 hexadecimal digits)")
    with daemon.conn() as conn:
        for verb in ("ladd", "ldel", "lset"):
            assert conn.cmd(f"{verb} {KEY} a {MARK}") == error
        assert conn.lget(KEY) == []
        assert conn.cmd(f"ladd {KEY} {MARK}0 {MARK[:-1]} {MARK.upper()}") == b"STORED"
        assert conn.llen(KEY) == 3


@pytest.mark.parametrize("compacted", [False, True])
def test_a_dropped_pair_leaves_nothing(hand, daemon, compacted):
    fill(hand)
    with daemon.conn() as conn:
        if compacted:
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
        assert hand.get(ADDS) is None and hand.get(DELETES) is None
        assert conn.cmd(f"ladd {KEY} b d") == b"STORED"
        assert conn.lget(KEY) == [b"b", b"d"]
