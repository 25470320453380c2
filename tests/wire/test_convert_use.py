# SPDX-License-Identifier: BSD-3-Clause
"""Lists are converted while they are in use, and by proxies that are killed in the middle of it."""

import threading
import time

import pytest

from harness import TIMEOUT_S
from test_convert_support import (
    DIALECTS,
    as_bytes,
    convert,
    items_of,
    old_names,
    sections,
    shown,
    store,
)
from test_dialects_support import Relay

KEY = "topic-X"
SMALL = {"max_item_bytes": 64, "log_limit_bytes": 256, "log_hard_limit_bytes": 4096, "sublist_limit_bytes": 512}
EVERYWHERE = pytest.mark.parametrize("dialect", DIALECTS)
LISTS = [f"topic-{n}" for n in range(8)]


class Writer(threading.Thread):
    """Adds items that no other client has to all lists in turn, deletes some of them again, and looks
    after each change whether it was done."""

    def __init__(self, daemon, name, deletes):
        super().__init__()
        self.proxy, self.name, self.deletes = daemon, name, deletes
        self.expected = {key: set() for key in LISTS}
        self.count, self.faults = 0, []
        self.stopping = threading.Event()

    def run(self):
        try:
            with self.proxy.conn() as conn:
                while not self.stopping.is_set():
                    self.turn(conn, LISTS[self.count % len(LISTS)])
        except Exception as fault:  # seen by the test, not lost in the thread
            self.faults.append(repr(fault))

    def turn(self, conn, key):
        item = f"{self.name}.{self.count}"
        self.count += 1
        self.change(conn, f"ladd {key} {item}")
        self.expected[key].add(item)
        if conn.cmd(f"lhas {key} {item}") == b"END":
            self.faults.append(f"{key}: {item} was not there behind its ladd")
        else:
            conn.lines(2)
        if self.deletes and self.count % 3 == 0:
            self.change(conn, f"ldel {key} {item}")
            self.expected[key].discard(item)
            if conn.cmd(f"lhas {key} {item}") != b"END":
                self.faults.append(f"{key}: {item} was there behind its ldel")
                conn.lines(2)

    def change(self, conn, text):
        for _ in range(50):
            answer = conn.cmd(text)
            if b"busy" not in answer:
                break
        if answer not in (b"STORED", b"OK", b"DELETED"):
            self.faults.append(f"{text}: {answer}")


@EVERYWHERE
@pytest.mark.slow
def test_nothing_is_lost_while_lists_move(start_memcached, start_daemon, dialect):
    memcached = start_memcached()
    more = {"capacity": 1000} if dialect == "ring" else {}
    daemons = [start_daemon([memcached], config=sections(dialect, **more)) for _ in range(2)]
    for key in LISTS:
        store(memcached, dialect, key, ["apple", "pear"])
    writers = [Writer(daemons[n % 2], f"w{n}", dialect != "ring") for n in range(4)]
    for writer in writers:
        writer.start()
    try:
        done = convert(daemons, "--rate=20", keys=LISTS)
    finally:
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join()
    assert [fault for writer in writers for fault in writer.faults] == []
    assert done.returncode == 0, done.stdout + done.stderr
    assert min(writer.count for writer in writers) > len(LISTS)
    native = start_daemon([memcached], config=sections("native"))
    with native.conn() as conn:
        for key in LISTS:
            items = conn.lget(key)
            assert len(items) == len(set(items))
            expected = {b"apple", b"pear"}
            for writer in writers:
                expected |= {item.encode() for item in writer.expected[key]}
            assert set(items) == expected
            for writer in writers:  # each one's items in the order in which it added them
                own = [int(i.split(b".")[1]) for i in items if i.startswith(writer.name.encode() + b".")]
                assert own == sorted(own)
    assert old_names(memcached) == []


@EVERYWHERE
@pytest.mark.slow
def test_readers_see_the_old_or_the_new_list(start_memcached, start_daemon, dialect):
    memcached = start_memcached("-I", "4m")
    more = {"capacity": 1000} if dialect == "ring" else {}
    daemons = [start_daemon([memcached], config=sections(dialect, **more)) for _ in range(2)]
    items = items_of(1000)
    allowed = [as_bytes(items), shown(dialect, items)]
    keys = [f"topic-{n}" for n in range(12)]
    for key in keys:
        store(memcached, dialect, key, items)
    stop, faults, reads = threading.Event(), [], [0] * 3

    def read(number):
        with daemons[number % 2].conn() as conn:
            while not stop.is_set() and not faults:
                for key in keys:
                    found = conn.lget(key)
                    reads[number] += 1
                    if found not in allowed:
                        faults.append(f"{key}: {len(found)} items, {len(set(found))} of them differ")
                    time.sleep(0.001)  # leaves the processor to the conversion

    readers = [threading.Thread(target=read, args=(n,)) for n in range(3)]
    for reader in readers:
        reader.start()
    done = convert(daemons, "--rate=20", keys=keys)
    stop.set()
    for reader in readers:
        reader.join()
    assert faults == []
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 hold exactly" in done.stdout
    assert min(reads) > len(keys)


@EVERYWHERE
@pytest.mark.slow
def test_proxy_killed_behind_every_change(start_memcached, start_daemon, dialect):
    """The changes that a conversion makes reach memcached up to the one, then the proxy is killed."""
    memcached = start_memcached()
    items = items_of(100)
    more = {"capacity": 100} if dialect == "ring" else {}
    config = sections(dialect, **SMALL, **more)
    other = start_daemon([memcached], config=config)
    native = start_daemon([memcached], config=sections("native"))
    step = 1 if dialect != "ring" else 7  # it has a hundred slots to delete
    for changes in range(0, 1000, step):
        key = f"topic-{changes}"
        store(memcached, dialect, key, items)
        is_held = convert_until_killed(memcached, start_daemon, config, key, changes)
        with other.conn() as conn:
            assert conn.lget(key) in (as_bytes(items), shown(dialect, items)), changes
            assert conn.cmd(f"lconvert {key}") == b"100", changes
            assert conn.lget(key) == as_bytes(items), changes
        with native.conn() as conn:
            assert conn.lget(key) == as_bytes(items)
        assert old_names(memcached) == [], changes
        if not is_held:
            break
    assert not is_held
    assert changes > 3


def convert_until_killed(memcached, start_daemon, config, key, changes):
    """So many changes pass before the proxy is killed. False: it needed no more."""
    relay = Relay(memcached)
    killed = start_daemon([relay], config=config)
    relay.hold_after(changes)
    with killed.conn() as conn:
        answered = threading.Event()
        watcher = threading.Thread(target=wait_for_answer, args=(conn, answered))
        conn.send(f"lconvert {key}\r\n")
        watcher.start()
        is_held = relay.wait_until_held_or(answered.is_set)
        killed.kill()
        relay.stop()
        watcher.join()
    return is_held


def wait_for_answer(conn, answered):
    try:
        conn.socket.settimeout(3 * TIMEOUT_S)
        conn.line()
        answered.set()
    except (OSError, EOFError):
        pass


@pytest.mark.release
@pytest.mark.slow
def test_no_list_is_refused_when_the_last_step_restarts_proxies(start_daemon, memcached):
    """As docs/replacing-hand-made-lists.md has it: with a higher `change` from step 3 on."""
    def start(lists, change):
        config = {"pool main": {"gate_s": 1, "change": change}, **lists}
        return start_daemon([memcached], config=config)

    old = [start(sections("signed", migrate="no"), 0) for _ in range(2)]
    store(memcached, "signed", KEY, ["apple", "pear"])
    for daemon in old:
        daemon.stop()
    daemons = [start(sections("signed"), 1) for _ in range(2)]
    with daemons[0].conn() as conn:
        assert conn.cmd(f"lconvert {KEY}") == b"2"
    for number in range(2):
        daemons[number].stop()
        daemons[number] = start(sections("native"), 1)
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            for daemon in daemons:
                with daemon.conn() as conn:
                    assert conn.lget(KEY) == [b"apple", b"pear"]
            time.sleep(0.05)
