# SPDX-License-Identifier: BSD-3-Clause
"""Plain keys move to other servers while clients use them: each client sees what one memcached
would answer, and no value is shown that was overwritten."""

import bisect
import math
import random
import re
import threading
import time
from collections import Counter
from itertools import accumulate

import pytest

from harness import wait_until

KEYS = [f"key{n}" for n in range(60)]


def config(servers, step):
    """The pool `main` is the one that start_daemon makes."""
    return {
        "pool main": {"gate_s": 1, "next": "grown", "step": step},
        "pool grown": {"servers": ", ".join(server.address for server in servers)},
    }


def moving_keys(daemon, keys=KEYS):
    """Those that have another server in the pool to come."""
    with daemon.conn() as conn:
        return [key for key in keys if moves(conn, key)]


def moves(conn, key):
    before = int(conn.stats()["plain_moving"])
    conn.get(key)
    return int(conn.stats()["plain_moving"]) > before


@pytest.fixture
def start(start_daemon, memcacheds):
    """A function that starts a proxy in a step of the way from the first two servers to three."""
    def start(step, **sections):
        return start_daemon(memcacheds[:2], config={**config(memcacheds[:3], step), **sections})
    return start


def asked(conn, line, body=None):
    """The whole answer to a request with one line or one value, without CAS numbers."""
    conn.send(line, b"\r\n", b"" if body is None else body.encode() + b"\r\n", b"mn\r\n")
    return [re.sub(rb" c\d+", b" c", line) for line in conn.until_mn()]


def requests(rng, key):
    value = rng.choice(["1", "22", "text", "", "4444" * 30])
    ttl = rng.choice([0, 0, 100, -1])
    size = len(value)
    return rng.choice([
        (f"get {key}",), (f"get {key}",), (f"gat 50 {key}",), (f"touch {key} 70",),
        (f"set {key} {rng.randrange(9)} {ttl} {size}", value),
        (f"set {key} 0 0 {size}", value),
        (f"set {key} 0 0 {size} noreply", value),
        (f"add {key} 3 0 {size}", value), (f"replace {key} 4 0 {size}", value),
        (f"append {key} 0 0 {size}", value), (f"prepend {key} 0 0 {size}", value),
        (f"incr {key} 7",), (f"decr {key} 3",), (f"delete {key}",), (f"delete {key} noreply",),
        (f"mg {key} v k c",), (f"mg {key} v f s q Oab",), (f"mg {key}",), (f"mg {key} t v T90",),
        (f"mg {key} k s N30 v",),
        (f"ms {key} {size} T0 c k", value), (f"ms {key} {size} ME F8", value),
        (f"ms {key} {size} MA q", value), (f"ms {key} {size} MR", value), (f"md {key} k Ox",),
        (f"md {key} q",), (f"ma {key} v D4",), (f"ma {key} N0 J9 v k",),
    ])


@pytest.mark.memcacheds(4)
@pytest.mark.parametrize("steps", [["learn"], ["move"], ["learn", "move"]], ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_one_client_sees_what_a_memcached_would_answer(start, memcacheds, steps, seed):
    rng = random.Random(seed)
    proxies = [start(step) for step in steps]
    keys = moving_keys(proxies[0])[:4] + KEYS[:1]
    conns = [proxy.conn() for proxy in proxies]
    told = {}
    with memcacheds[3].conn() as model:
        for _ in range(1500):
            key, conn = rng.choice(keys), rng.choice(conns)
            request = requests(rng, key)
            if " N30" in request[0] and len(steps) > 1:
                continue  # what a client has promised to fill is not carried
            got, expected = asked(conn, *request), asked(model, *request)
            told[key] = [*told.get(key, [])[-12:], (conns.index(conn), request, got)]
            assert got == expected, "\n".join(f"{t}"[:150] for t in (*told[key], expected))


class Registers:
    """Clients that write, change, delete and read a few keys through any of the proxies, and what
    each was answered when. A value is written once only."""

    def __init__(self, keys, proxies):
        self.keys, self.proxies = keys, proxies
        self.writes = {key: [] for key in keys}  # (begun, acknowledged or None, value or None)
        self.reads = {key: [] for key in keys}  # (begun, value)
        self.over = threading.Event()
        self.counted = Counter()
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(8)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def work(self, number):
        rng, conns = random.Random(number), {}
        while not self.over.is_set():
            proxy = rng.choice(self.proxies)
            try:
                if proxy not in conns:
                    conns[proxy] = proxy.conn(timeout_s=5)
                self.one(rng, conns[proxy], f"{number}-{self.counted[number]}-{rng.random()}")
                self.counted[number] += 1
            except (OSError, EOFError, RuntimeError):
                self.counted["failed"] += 1
                if proxy in conns:
                    conns.pop(proxy).close()
        for conn in conns.values():
            conn.close()

    def one(self, rng, conn, value):
        key, kind = rng.choice(self.keys), rng.choice(["get"] * 5 + ["set"] * 3 + ["other"] * 2)
        if kind == "get":
            keys = rng.choices(self.keys, k=rng.choice([1, 1, 3, 20]))
            begun = time.monotonic()
            for name, _, data in conn.values("get " + " ".join(keys)):
                self.reads[name.decode()].append((begun, data.decode()))
            return
        if kind == "set":
            self.write(key, value, lambda: conn.set(key, value) == b"STORED")
            return
        size = len(value)
        change = rng.choice(["delete", "add", "cas", "ms", "replace", "touch", "md"])
        if change == "cas":
            begun = time.monotonic()
            found = conn.values(f"gets {key}")
            if found:
                self.reads[key].append((begun, found[0][2].decode()))
                line = f"cas {key} 0 0 {size} {found[0][1][2]}"
                self.write(key, value, lambda: conn.cmd(line, value) == b"STORED")
        elif change == "touch":
            conn.cmd(f"touch {key} 1000")
        elif change in ("delete", "md"):
            self.write(key, None, lambda: conn.cmd(f"{change} {key}") in GONE)
        elif change == "ms":
            self.write(key, value, lambda: conn.cmd(f"ms {key} {size}", value) == b"HD")
        else:
            self.write(key, value, lambda: conn.cmd(f"{change} {key} 0 0 {size}", value) == b"STORED")

    def write(self, key, value, ask):
        """A write of which nothing is known may take effect at any time."""
        row = [time.monotonic(), None, value]
        self.writes[key].append(row)
        if ask():
            row[1] = time.monotonic()

    def stale(self):
        """Reads of what was overwritten, and acknowledged so, before they began."""
        found = []
        for key, reads in self.reads.items():
            told = {value: end for _, end, value in self.writes[key] if value is not None}
            done = sorted((begun, end) for begun, end, _ in self.writes[key] if end is not None)
            # The first acknowledgement of all that began no earlier.
            first = list(accumulate((end for _, end in reversed(done)), min))[::-1] + [math.inf]
            for begun, value in reads:
                end = math.inf if told[value] is None else told[value]
                if first[bisect.bisect(done, (end, math.inf))] < begun:
                    found.append((key, value))
        return found


GONE = (b"DELETED", b"NOT_FOUND", b"HD", b"NF")


def roll(daemon, sections):
    """The proxy dies, and comes back with another file."""
    daemon.kill()
    for name in ("pool main", "pool grown"):
        daemon.sections.pop(name, None)
    daemon.sections.update(sections)
    daemon.start()


def sweep(daemon, servers, keys):
    """Until the old servers hold none of them."""
    def is_over():
        with daemon.conn() as conn:
            for key in keys:
                conn.cmd(f"me {key}")
        held = 0
        for server in servers:
            with server.conn() as conn:
                held += len(conn.values("get " + " ".join(keys)))
        return held == 0
    wait_until("all have moved", is_over)


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("troubled", [False, True], ids=["calm", "troubled"])
def test_no_value_is_shown_that_was_overwritten(start_daemon, memcacheds, troubled):
    old = {"pool main": {"servers": [m.address for m in memcacheds[:2]], "gate_s": 1,
                         "timeout_ms": 300}}
    steps = [{**old, "pool grown": config(memcacheds, step)["pool grown"],
              "pool main": {**old["pool main"], **config(memcacheds, step)["pool main"]}}
             for step in ("learn", "move")]
    new = {"pool main": {**old["pool main"], "servers": [m.address for m in memcacheds]}}
    proxies = [start_daemon(config=old), start_daemon(config=steps[0])]
    moving = moving_keys(proxies[1])
    keys = moving[:10] + [key for key in KEYS if key not in moving][:2]

    def trouble():
        if troubled:
            server = random.choice(memcacheds)
            server.pause()
            time.sleep(0.4)
            server.resume()
            time.sleep(0.4)
            random.choice(memcacheds).restart()
            random.choice(proxies).kill()
            [proxy.start() for proxy in proxies if proxy.process.poll() is not None]
        time.sleep(1)

    with Registers(keys, proxies) as registers:
        trouble()
        roll(proxies[0], steps[0])
        roll(proxies[1], steps[1])
        trouble()
        roll(proxies[0], steps[1])
        trouble()
        sweep(proxies[0], memcacheds[:2], moving)
        roll(proxies[1], new)
        trouble()
    assert registers.stale() == []
    assert sum(len(reads) for reads in registers.reads.values()) > 1000
