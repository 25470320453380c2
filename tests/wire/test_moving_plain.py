# SPDX-License-Identifier: BSD-3-Clause
"""Plain keys move to other servers while clients use them: each client sees what one memcached
would answer, and no value is shown that was overwritten."""

import bisect
import math
import random
import re
import struct
import threading
import time
from collections import Counter
from itertools import accumulate

import pytest

from harness import wait_until
from test_binary_support import NEVER, NOT_FOUND, Binary, count, packet, store, touch
from test_cli_support import servers

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
    """The whole answer to a request with one line or one value, without CAS numbers and seconds."""
    conn.send(line, b"\r\n", b"" if body is None else body.encode() + b"\r\n", b"mn\r\n")
    return [re.sub(rb" ([ct])\d+", rb" \1", line) for line in conn.until_mn()]


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


VERBS = ["get", "set", "add", "replace", "append", "prepend", "delete", "incr", "touch", "gat"]


def packets(rng, key):
    name, value = rng.choice(VERBS), rng.choice(["1", "22", "text" * 40])
    if name in ("set", "add", "replace"):
        return store(name, key, value, flags=7, exptime=rng.choice([0, 90]))
    if name == "incr":
        return count(name, key, 3, 5, rng.choice([0, NEVER]))
    if name in ("touch", "gat"):
        return touch(name, key, 50)
    return packet(name, key, value=value if "pend" in name else b"")


@pytest.mark.memcacheds(4)
@pytest.mark.parametrize("seed", range(2))
def test_a_binary_client_sees_what_a_memcached_would_answer(start, memcacheds, seed):
    rng = random.Random(seed)
    proxies = [start(step) for step in ("learn", "move")]
    keys = moving_keys(proxies[0])[:3]
    conns = [Binary(proxy.port) for proxy in proxies]
    model = Binary(memcacheds[3].port)
    for _ in range(1000):
        request, conn = packets(rng, rng.choice(keys)), rng.choice(conns)
        got, expected = conn.ask(request), model.ask(request)
        assert got._replace(cas=0) == expected._replace(cas=0), request


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("step", ["learn", "move"])
def test_keys_with_blanks_move_by_being_missed(start, start_daemon, memcacheds, step):
    first = start_daemon(memcacheds[:2])
    keys = [b"a key %d" % n for n in range(40)]
    with Binary(first.port) as conn:
        for key in keys:
            assert conn.ask(store("set", key, b"5")).status == 0
    with Binary(start(step).port) as conn:
        for key in keys:
            assert conn.ask(packet("get", key)).value == b"5"
            assert conn.ask(count("incr", key, 1, 9, 0)).status == 0
            assert struct.unpack("!Q", conn.ask(count("incr", key, 1, 9, 0)).value)[0] in (7, 10)
            assert conn.ask(packet("delete", key)).status == 0
            assert conn.ask(packet("get", key)).status == NOT_FOUND


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("step", ["learn", "move"])
def test_requests_of_a_client_take_effect_in_their_order(start, step):
    daemon = start(step)
    with daemon.conn() as conn:
        for key in moving_keys(daemon)[:5]:
            for n in range(20):
                conn.send(f"set {key} 0 0 1 noreply\r\n{n % 10}\r\nget {key} other {key}\r\n"
                          f"incr {key} 1\r\ndelete {key} noreply\r\nmg {key} v\r\nmn\r\n")
                value, one = b"%d" % (n % 10), b"VALUE %b 0 1" % key.encode()
                assert conn.until_mn() == [one, value, one, value, b"END", b"%d" % (n % 10 + 1), b"EN"]


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("step", ["learn", "move"])
def test_a_value_that_is_too_large_takes_the_old_one_away(start, step):
    daemon = start(step, proxy={"max_value_bytes": 2048})
    key = moving_keys(daemon)[0]
    with daemon.conn() as conn:
        assert conn.set(key, "old") == b"STORED"
        assert conn.set(key, "x" * 5000) == b"SERVER_ERROR object too large for cache"
        assert conn.get(key) is None


def one_moving(start_daemon, old, new, step, **proxy):
    """All keys move from one server to another."""
    return start_daemon([old], config={
        "proxy": {"threads": 1, **proxy},
        "pool main": {"gate_s": 1, "next": "grown", "step": step},
        "pool grown": {"servers": new.address, "timeout_ms": 20000},
    })


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("step", ["learn", "move"])
def test_what_was_done_on_one_server_alone_is_unknown(start_daemon, memcacheds, step):
    """The old value has gone, and the new server is not there: that is not "nothing done"."""
    old, new = memcacheds
    daemon = one_moving(start_daemon, old, new, step)
    with daemon.conn() as conn, old.conn() as direct:
        assert conn.set("k", "v") == b"STORED"
        new.stop()
        wait_until("it is known to be down", lambda: b" down" in conn.cmd("add k 0 0 1\r\nx"))
        for line in ["delete k", "md k", *(["set k 0 0 1\r\nx"] if step == "move" else [])]:
            assert direct.set("k", "v") == b"STORED"
            assert conn.cmd(line).endswith(b"outcome unknown"), line
            assert direct.get("k") is None


def answers_about_k(answers):
    """A server that gives these answers, one after the other, to what is asked of `k`: None ends the
    connection. It has nothing else."""
    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            words = line.split()
            if len(words) > 1 and words[1] == b"k":
                answer = answers.pop(0)
                if answer is None:
                    return
                sock.sendall(answer)
            else:
                sock.sendall({b"mn": b"MN\r\n", b"mg": b"EN\r\n"}.get(words[0], b"STORED\r\n"))
    return behave


@pytest.mark.parametrize(
    "step, old, new",
    [
        # The lease, what is added, the lease, which is not let go, what was added.
        ("learn", [b"STORED\r\n", None], [b"HD c1\r\n", None]),
        # Another client's value is there behind what was added, which is not taken back.
        ("move", [b"EN\r\n", b"VA 5 kk f0\r\nother\r\n"], [b"HD c1\r\n", None]),
    ],
    ids=["learn", "move"],
)
def test_an_add_that_cannot_be_taken_back_is_unknown(start_daemon, start_fake, step, old, new):
    daemon = one_moving(start_daemon, start_fake(answers_about_k(old)),
                        start_fake(answers_about_k(new)), step)
    with daemon.conn() as conn:
        answer = conn.cmd("add k 0 0 1\r\nx")
        assert answer.startswith(b"SERVER_ERROR") and answer.endswith(b"outcome unknown")
    assert not old and not new


def test_a_proxy_ends_in_the_middle_of_an_add(start_daemon, start_fake, memcached):
    """It asked a pool that was gone already."""
    asked = threading.Event()

    def hold(fake, sock):
        for line, _ in fake.requests(sock):
            if line.startswith(b"cas k "):
                asked.set()
                time.sleep(20)
            sock.sendall(b"HD c1\r\n" if line.startswith(b"ms ") else b"EN\r\n")

    daemon = one_moving(start_daemon, memcached, start_fake(hold), "learn", drain_timeout_ms=300)
    with daemon.conn() as conn:
        conn.send(b"add k 0 0 1\r\nx\r\n")
        assert asked.wait(10)
        daemon.process.terminate()
        assert daemon.process.wait(20) == 0


@pytest.mark.memcacheds(3)
def test_me_moves_a_value_as_it_is(start, start_daemon, memcacheds):
    with start_daemon(memcacheds[:2]).conn() as conn:
        for key in KEYS:
            assert conn.set(key, key * 10, flags=77, exptime=1000) == b"STORED"
    daemon = start("move")
    moving = moving_keys(daemon)
    with daemon.conn() as conn, memcacheds[2].conn() as new:
        for key in moving:
            assert conn.cmd(f"me {key}").startswith(b"ME ")
            assert conn.cmd(f"me no-{key}") == b"EN"
            new.send(f"mg {key} v f t\r\n")
            _, size, flags, left = new.line().split()
            assert (new.data(int(size)), flags) == (key.encode() * 10, b"f77")
            assert 900 < int(left[1:]) <= 1000
        for server in memcacheds[:2]:
            with server.conn() as old:
                assert old.values("get " + " ".join(moving)) == []
        assert len(conn.values("get " + " ".join(KEYS))) == len(KEYS)
        assert int(conn.stats()["plain_moves"]) == len(moving)


@pytest.mark.memcacheds(3)
def test_no_key_is_missed_when_a_pool_grows_by_one_word(start_daemon, memcacheds):
    old, new = ({"pool main": {"gate_s": 1, "servers": [m.address for m in part]}}
                for part in (memcacheds[:2], memcacheds))
    names = [f"name{n}" for n in range(400)]
    with start_daemon(config=old).conn() as conn:
        for name in names:
            assert conn.set(name, name) == b"STORED"
    daemon = start_daemon(memcacheds[:2], config={
        "pool main": {"gate_s": 1, "next": "grown"}, "pool grown": {"servers": new["pool main"]["servers"]}})
    assert "plain keys left: 0" in servers(daemon, "move")
    with start_daemon(config=new).conn() as conn, daemon.conn() as before:
        for asked_one in (conn, before):
            assert [asked_one.get(name) for name in names] == [name.encode() for name in names]
        assert conn.set(names[0], "new") == b"STORED" and before.get(names[0]) == b"new"


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
                time.sleep(0.001)  # eight at once would keep the processors from the proxies
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
        time.sleep(1 if troubled else 0.3)

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
