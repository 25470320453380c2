# SPDX-License-Identifier: BSD-3-Clause
"""get and gets of many keys: those of one server travel together, and the client notices nothing."""

import random
import re

import pytest

from harness import wait_until
from test_backend_support import correct_answer

# No time-out decides anything here: the fake server's threads wait for a processor that is busy.
PATIENT = {"connect_timeout_ms": 10000, "timeout_ms": 10000, "retry_min_ms": 20, "retry_max_ms": 100}
CONFIG = {"pool main": PATIENT, "proxy": {"threads": 1, "deadline_ms": 20000}}


def answer_gets_with(answer):
    """answer(keys) is what comes back for a get or gets; everything else is answered correctly."""

    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            verb, *keys = line.split()
            sock.sendall(answer(keys) if verb in (b"get", b"gets") else correct_answer(line))

    return behave


def value_of(key, data=b"value"):
    return b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(data), data)


def warm_up(conn, key="a"):
    """A fresh connection asks for few items at first; from the first answers on for more."""
    for _ in range(300):
        conn.get(key)


def answer_of(conn, text):
    """The keys found and the line that ends the answer; the connection must be in step then."""
    conn.send(text, "\r\nmn\r\n")
    keys = []
    while (line := conn.line()).startswith(b"VALUE "):
        fields = line.split()
        keys.append(fields[1].decode())
        conn.data(int(fields[3]))
    assert conn.line() == b"MN"
    return keys, line


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("connections", [1, 3])
def test_order_duplicates_and_misses(start_daemon, memcacheds, connections):
    daemon = start_daemon(memcacheds, config={"pool main": {"connections": connections}})
    rng = random.Random(connections)
    sizes = [0, 1, 32, 1000, 1024, 1025, 4000, 4096, 5000, 20_000]
    traps = [b"END\r\n", b"\r\nEND\r\n", b"VALUE k1 0 1\r\nx\r\n", b"SERVER_ERROR x\r\n"]
    stored = {}
    with daemon.conn() as conn:
        for i in range(0, 200, 2):
            value = rng.choice(traps) if i % 7 == 0 else rng.randbytes(rng.choice(sizes))
            stored[f"k{i}"] = (rng.randrange(1 << 32), value)
            assert conn.set(f"k{i}", value, flags=stored[f"k{i}"][0]) == b"STORED"
        cas = {}
        for key in stored:
            cas[key] = int(re.search(rb" c(\d+)", conn.cmd(f"mg {key} c") + b" ").group(1))
        for count in [1, 2, 3, 10, 100, 500, 3000]:
            keys = [f"k{rng.randrange(200)}" for _ in range(count)]
            found = [key for key in keys if key in stored]
            got = conn.values("get " + " ".join(keys))
            assert [key.decode() for key, _, _ in got] == found
            assert [(numbers[0], data) for _, numbers, data in got] == [stored[k] for k in found]
            assert [len(numbers) for _, numbers, _ in got] == [2] * len(found)
            got = conn.values("gets " + " ".join(keys))
            assert [(k.decode(), n[0], n[2], d) for k, n, d in got] == [
                (key, stored[key][0], cas[key], stored[key][1]) for key in found
            ]
        assert conn.values("get " + " ".join(f"none{i}" for i in range(100))) == []
        names = ("get_hits", "get_misses", "cmd_get", "cmd_meta")
        hits, misses, gets, metas = (int(conn.stats()[name]) for name in names)
        assert hits + misses == gets + metas


def test_keys_of_one_server_travel_together(start_daemon, start_fake):
    fakes = [start_fake(answer_gets_with(lambda keys: b"".join(map(value_of, keys)) + b"END\r\n"))]
    fakes.append(start_fake(fakes[0].behave))
    daemon = start_daemon(fakes, config=CONFIG)
    keys = [f"key{i}" for i in range(100)]
    with daemon.conn() as conn:
        warm_up(conn)
        before = [len(fake.all_received()) for fake in fakes]
        assert answer_of(conn, "get " + " ".join(keys)) == (keys, b"END")
    asked = [fake.all_received()[n:].decode() for fake, n in zip(fakes, before)]
    lines = [text.splitlines() for text in asked]
    assert [len(some) for some in lines] == [1, 1]
    assert all(some[0].startswith("get ") for some in lines)
    words = [some[0].split()[1:] for some in lines]
    assert sorted(words[0] + words[1]) == sorted(keys)
    assert all(some == [key for key in keys if key in some] for some in words)


def test_lines_to_servers_have_a_limit(start_daemon, start_fake):
    fake = start_fake(answer_gets_with(lambda keys: b"".join(map(value_of, keys)) + b"END\r\n"))
    daemon = start_daemon([fake], config=CONFIG)
    keys = [f"{i:04}" + "k" * random.Random(i).randrange(247 if i < 500 else 50) for i in range(1000)]
    with daemon.conn() as conn:
        warm_up(conn)
        before = len(fake.all_received())
        assert answer_of(conn, "get " + " ".join(keys)) == (keys, b"END")
    lines = fake.all_received()[before:].split(b"\r\n")[:-1]
    assert max(map(len, lines)) <= 2048
    assert len(lines) < 500 and b"get " in b"".join(lines)
    asked = []
    for line in lines:
        verb, *words = line.decode().split()
        asked += words[:1] if verb == "mg" else words
    assert asked == keys


KEYS = list("abcdefghijklmnop")
ERROR = b"SERVER_ERROR out of memory writing get response"
LOST = "connection lost"
ODD = "unexpected answer"
# What a server says to "get a b c ...", which keys the client sees, and how its answer ends.
ANSWERS = {
    "an error": (ERROR + b"\r\n", "", ERROR),
    "an error in the middle": (value_of(b"b") + ERROR + b"\r\n", "b", ERROR),
    "ERROR": (value_of(b"b") + b"ERROR\r\n", "b", b"ERROR"),
    "all": (b"".join(value_of(key.encode()) for key in KEYS) + b"END\r\n", "".join(KEYS), b"END"),
    "some": (value_of(b"b") + value_of(b"e") + b"END\r\n", "be", b"END"),
    "none": (b"END\r\n", "", b"END"),
    "a key that no request asked for": (value_of(b"b") + value_of(b"x") + b"END\r\n", "b", LOST),
    "part of a key": (value_of(b"b") + value_of(b"cc") + b"END\r\n", "b", LOST),
    "a key twice": (value_of(b"b") * 2 + b"END\r\n", "b", LOST),
    "the wrong order": (value_of(b"c") + value_of(b"b") + b"END\r\n", "c", LOST),
    "a meta answer": (value_of(b"b") + b"VA 5 f0\r\nvalue\r\n", "b", LOST),
    "another answer": (value_of(b"b") + b"STORED\r\n", "b", ODD),
    "a meta miss": (b"EN\r\n", "", ODD),
    "garbage": (value_of(b"b") + b"VALUE c 0 x\r\n\r\n", "b", LOST),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_whatever_a_server_says(start_daemon, start_fake, name):
    """A key is never taken for a miss when its server has not said so."""
    said, seen, end = ANSWERS[name]
    fake = start_fake(answer_gets_with(lambda keys: said))
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        warm_up(conn)
        keys, line = answer_of(conn, "get " + " ".join(KEYS))
        assert keys == list(seen)
        if isinstance(end, bytes):
            assert line == end
        else:
            assert line == f"SERVER_ERROR backend {fake.address}: {end}".encode()
        assert wait_until("it goes on", lambda: conn.cmd("mg a v") == b"VA 5")
        assert conn.data(5) == b"value"


@pytest.mark.parametrize("said", [b"", b"VALUE b 0 5\r\nval", value_of(b"b"), value_of(b"b") + b"EN"])
def test_a_server_that_is_lost_in_the_middle(start_daemon, start_fake, start_memcached, said):
    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            if line.startswith(b"get "):
                sock.sendall(said.replace(b" b ", b" %s " % line.split()[2]))
                return
            sock.sendall(correct_answer(line))

    fake, real = start_fake(behave), start_memcached()
    daemon = start_daemon([fake, real], config=CONFIG)
    keys = [f"key{i}" for i in range(120)]
    with daemon.conn() as conn:
        for key in keys:
            assert conn.set(key, "value") == b"STORED"
        with real.conn() as direct:
            here = [key.decode() for key, _, _ in direct.values("get " + " ".join(keys))]
        there = [key for key in keys if key not in here]
        assert len(here) >= 12 and len(there) >= 12
        warm_up(conn, here[0])
        found, end = answer_of(conn, "get " + " ".join(keys))
        assert end == f"SERVER_ERROR backend {fake.address}: connection lost".encode()
        came = [there[1]] if said.startswith(value_of(b"b")) else []
        assert found == [key for key in keys if key in here or key in came]
        assert answer_of(conn, "get " + " ".join(here)) == (here, b"END")


def test_few_keys_are_asked_for_one_by_one(start_daemon, start_fake):
    """Their answers can travel in one packet."""
    fake = start_fake(answer_gets_with(lambda keys: b"".join(map(value_of, keys)) + b"END\r\n"))
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        warm_up(conn)
        before = len(fake.all_received())
        assert answer_of(conn, "get " + " ".join(KEYS[:11])) == (KEYS[:11], b"END")
        assert fake.all_received()[before:] == b"".join(b"mg %s k v f\r\n" % k.encode() for k in KEYS[:11])
        before = len(fake.all_received())
        assert answer_of(conn, "get " + " ".join(KEYS[:12])) == (KEYS[:12], b"END")
        assert fake.all_received()[before:] == b"get " + " ".join(KEYS[:12]).encode() + b"\r\n"


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("connections", [1, 2])
def test_in_order_with_the_changes_of_the_same_client(start_daemon, memcacheds, connections):
    config = {"pool main": {"connections": connections}, "proxy": {"max_pipeline": 50}}
    daemon = start_daemon(memcacheds, config=config)
    rng = random.Random(7)
    keys = [f"k{i}" for i in range(30)]
    state, script, expected = {}, "", []
    for i in range(1000):
        key = rng.choice(keys)
        action = rng.randrange(4)
        if action == 0:
            state[key] = b"%d" % i
            script += f"set {key} 0 0 {len(state[key])}\r\n{i}\r\n"
            expected.append([b"STORED"])
        elif action == 1:
            script += f"delete {key}\r\n"
            expected.append([b"DELETED" if state.pop(key, None) else b"NOT_FOUND"])
        else:
            asked = [rng.choice(keys) for _ in range(rng.choice([1, 2, 40, 100]))]
            script += f"get {' '.join(asked)}\r\n"
            lines = []
            for found in asked:
                if found in state:
                    lines += [b"VALUE %s 0 %d" % (found.encode(), len(state[found])), state[found]]
            expected.append([*lines, b"END"])
    with daemon.conn() as conn:
        conn.send(script)
        for lines in expected:
            assert conn.lines(len(lines)) == lines


@pytest.mark.memcacheds(2, "-m", "256")
def test_clients_that_share_connections_do_not_see_each_other(daemon):
    """Of all sizes, some of them left unread for a while."""
    sets = [[f"c{c}-{i}" for i in range(60)] for c in range(10)]
    with daemon.conn() as conn:
        for c, keys in enumerate(sets):
            for i, key in enumerate(keys):
                assert conn.set(key, key.encode() * (1 + (i % 7) ** (c % 6))) == b"STORED"
    conns = [daemon.conn() for _ in sets]
    try:
        for _ in range(5):
            for conn, keys in zip(conns, sets):
                conn.send(f"get {' '.join(keys)}\r\n" * 3)
        for conn in conns[:3]:
            conn.close()
        for c, (conn, keys) in list(enumerate(zip(conns, sets)))[3:]:
            for _ in range(15):
                found = conn.values_answer()
                assert [key.decode() for key, _, _ in found] == keys
                for i, (key, _, data) in enumerate(found):
                    assert data == key * (1 + (i % 7) ** (c % 6))
    finally:
        for conn in conns:
            conn.close()
