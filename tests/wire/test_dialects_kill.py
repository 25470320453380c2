# SPDX-License-Identifier: BSD-3-Clause
"""Proxies killed while they fold and replace lists of several items: what was acknowledged is there
afterwards, once, and another proxy finishes the job. Lists in two logs have more of this in
test_dialects_logs.py."""

import random
import threading

import pytest

from harness import wait_until
from test_dialects_support import SEVERAL_ITEMS, SETS, Hand, settings

KEY = "topic-X"
NEVER = {"compact_chance": 0}

BEFORE = {
    "simple": {KEY: "a,b,a,c,"},
    "tombstone": {KEY: "x,z,|a,x,b,a,c,"},
    "signed": {KEY: "+a+x+b-x+c+a"},
    "paired": {f"follow-{KEY}": "a,x,b,a,c,y,", f"unfollow-{KEY}": "x,y,y,z,"},
    "flip": {f"{KEY}.a": "+a+x+b-x+c+a", f"{KEY}.active": f"{KEY}.a"},
    "marker": {f"{KEY}.a": "+a+x+b-x+c+a"},
    "sublists": {
        KEY: "+0+1+2+3-3", f"{KEY}.0": "+a+x+b", f"{KEY}.1": "-x", f"{KEY}.2": "+c+a"
    },
    "ring": {},
}
CONTENT = [b"a", b"b", b"c"]


class Victim:
    """A proxy behind a relay that lets so many changes pass, then is killed."""

    def __init__(self, start_daemon, start_relay, memcached, config):
        self.relay = start_relay(memcached)
        self.daemon = start_daemon([self.relay], config=config)
        self.conn = self.daemon.conn()
        self.answers = []

    def run(self, request, changes):
        """True: it was held before the request had ended."""
        self.relay.hold_after(changes)
        self.conn.send(request, "\r\n")
        thread = threading.Thread(target=self._read)
        thread.start()
        held = self.relay.wait_until_held_or(lambda: bool(self.answers))
        self.daemon.kill()
        self.relay.stop()
        thread.join()
        self.conn.close()
        return held

    def _read(self):
        try:
            self.answers.append(self.conn.line())
        except (OSError, EOFError):
            pass


def fill(hand, dialect):
    hand.conn.cmd("flush_all")
    for name, text in BEFORE[dialect].items():
        assert hand.store("set", name, text)


@pytest.mark.parametrize("dialect", SETS)
@pytest.mark.parametrize(
    "request_text,after",
    [
        ("lcompact topic-X", CONTENT),
        ("lset topic-X new newer", [b"new", b"newer"]),
        ("ladd topic-X more", [*CONTENT, b"more"]),
        ("ldel topic-X b", [b"a", b"c"]),
        ("ldrop topic-X", []),
    ],
)
def test_killed_after_each_change(
    memcached, start_daemon, start_relay, dialect, request_text, after
):
    other = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, other.conn() as conn:
        for changes in range(30):
            fill(hand, dialect)
            victim = Victim(start_daemon, start_relay, memcached, settings(dialect, **NEVER))
            assert sorted(victim.conn.lget(KEY)) == CONTENT
            held = victim.run(request_text, changes)
            found = conn.lget(KEY)
            assert len(found) == len(set(found))
            if dialect == "paired" or not request_text.startswith("ldrop"):
                assert sorted(found) in (CONTENT, sorted(after)), changes
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
            if dialect in ("flip", "marker") and request_text.startswith("lset"):
                # Its copy may come to count when another proxy goes on with it.
                assert conn.lget(KEY) in (found, after)
                found = conn.lget(KEY)
            # In sublists an item that was added again moves to where that was.
            assert sorted(conn.lget(KEY)) == sorted(found)
            assert conn.cmd(f"ladd {KEY} later") == b"STORED"
            assert sorted(conn.lget(KEY)) == sorted([*found, b"later"])
            if not held:
                assert sorted(found) == sorted(after)
                return
        pytest.fail("the request has no end")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", SEVERAL_ITEMS)
@pytest.mark.parametrize("seed", range(2))
def test_proxies_killed_at_any_moment(memcached, start_daemon, dialect, seed):
    """Three proxies fold all the time and one after the other is killed; applications by hand add,
    too. All that was acknowledged is there at the end, once."""
    rng = random.Random(seed)
    config = settings(dialect, compact_chance=1, log_limit_bytes=256, max_item_bytes=100)
    daemons = [start_daemon([memcached], config=config) for _ in range(3)]
    stop = threading.Event()
    acknowledged, faults = [], []

    def client(name):
        n = 0
        while not stop.is_set():
            try:
                with daemons[rng.randrange(3)].conn() as conn:
                    while not stop.is_set():
                        n += 1
                        item = f"{name}n{n}"
                        if conn.cmd(f"ladd {KEY} {item}") == b"STORED":
                            acknowledged.append(item.encode())
                        found = conn.lget(KEY)
                        if len(found) != len(set(found)):
                            faults.append(found)
                        if n % 3 == 0:
                            conn.cmd(f"lcompact {KEY}")
            except TimeoutError as fault:
                faults.append(fault)
            except (OSError, EOFError, RuntimeError, AssertionError):
                pass  # the proxy was killed

    def application(name):
        with Hand(memcached.port) as hand:
            n = 0
            while not stop.is_set() and n < 150:
                n += 1
                hand.add(dialect, KEY, f"{name}n{n}")
                acknowledged.append(b"%sn%d" % (name.encode(), n))

    threads = [threading.Thread(target=client, args=(f"c{n}",)) for n in range(4)]
    threads += [threading.Thread(target=application, args=("h",))]
    for thread in threads:
        thread.start()
    for _ in range(12):
        before = len(acknowledged)
        victim = daemons[rng.randrange(3)]
        wait_until("some were added", lambda: len(acknowledged) >= before + 15)
        victim.kill()
        victim.start()
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []
    with daemons[0].conn() as conn, daemons[1].conn() as other:
        for _ in range(2):
            found = conn.lget(KEY)
            assert set(acknowledged) <= set(found)
            assert len(found) == len(set(found))
            assert sorted(found) == sorted(other.lget(KEY))
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
