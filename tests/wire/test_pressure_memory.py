# SPDX-License-Identifier: BSD-3-Clause
"""Clients that ask for much and read nothing: the daemon's memory stays bounded, and all others
are served. The bounds are for the daemon as it is built for use, not for a sanitizer's build."""

import pathlib
import re
import socket
import time

import pytest

from harness import HOST, SLOW, Conn, wait_until

MIB = 1 << 20
CLIENTS = 40
RSS_MAX_MIB = 300


def memory_mib(daemon, field="VmRSS"):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status).group(1)) / 1024


def is_for_use(daemon):
    program = pathlib.Path(f"/proc/{daemon.process.pid}/exe").read_bytes()
    return not any(name in program for name in (b"__asan_init", b"__tsan_init", b"valgrind"))


def assert_memory_below(daemon, limit_mib):
    if is_for_use(daemon):
        assert memory_mib(daemon, "VmHWM") < limit_mib


def fill(servers, count, size):
    """Values of that size, on all servers, whichever one a proxy looks on."""
    for server in servers:
        with server.conn() as direct:
            for i in range(count):
                direct.send(f"set k{i} 0 0 {size} noreply\r\n", b"v" * size, "\r\n")
            assert direct.cmd("mn") == b"MN"


class SlowReader:
    """Sends its requests and reads nothing; a small window keeps the kernel from taking much."""

    def __init__(self, port, script):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(10)
        self.socket.connect((HOST, port))
        self.socket.setblocking(False)
        self.rest = script
        self.push()

    def push(self):
        try:
            while self.rest:
                self.rest = self.rest[self.socket.send(self.rest) :]
        except BlockingIOError:
            pass


def close_all(readers):
    for reader in readers:
        reader.socket.close()
    readers.clear()


@pytest.fixture
def start_readers():
    readers = []

    def start(daemon, script, count=CLIENTS):
        readers.extend(SlowReader(daemon.port, script) for _ in range(count))
        return readers

    yield start
    close_all(readers)


def settle(daemon, readers, check):
    """Until nothing moves any more but what check() does, which is called all the while."""
    last = 0
    calm = 0
    deadline = time.monotonic() + 30 * SLOW
    while calm < 5:
        for reader in readers:
            reader.push()
        for _ in range(10):
            check()
        with daemon.conn() as conn:
            stats = conn.stats()
        moved = int(stats["backend_bytes_read"]) + int(stats["bytes_read"])
        calm = calm + 1 if moved - last < 2000 else 0
        last = moved
        assert time.monotonic() < deadline, "it never comes to rest"
        time.sleep(0.02)


def other_client(daemon):
    conn = daemon.conn()
    # A server that was stopped a moment ago may still be in its pause.
    wait_until("it is stored", lambda: conn.set("other", "value") == b"STORED")

    def check():
        assert conn.get("other") == b"value"

    return check


LARGE = MIB - 1000
ALL_KEYS = b" ".join(b"k%d" % i for i in range(100))

SMALL_ANSWERS = {
    "20 gets of 1,000 values of 5 KB": (
        (b"get " + b" ".join(b"k%d" % i for i in range(1000)) + b"\r\n") * 20, 1000, 5000
    ),
    "200,000 gets of 500 bytes": (b"get k0\r\n" * 200_000, 1, 500),
    "1,000,000 answers of the proxy": (b"version\r\n" * 1_000_000, 1, 1),
}

# Also when the first answers make one believe that they are small.
LARGE_ANSWERS = {
    "one get of 100 values of 1 MB": b"get " + ALL_KEYS + b"\r\n",
    "100 gets of 1 MB": b"".join(b"get k%d\r\n" % i for i in range(100)),
    "100 mg of 1 MB": b"".join(b"mg k%d v\r\n" % i for i in range(100)),
    "300 small values, then 100 of 1 MB": b"get " + b"small " * 300 + ALL_KEYS + b"\r\n",
}

# That the servers' answers take their time is not what these tests are about.
NO_TIMEOUT = pytest.mark.config(
    proxy={"deadline_ms": 60000}, **{"pool main": {"timeout_ms": 60000}}
)


def check_memory(daemon, start_readers, name, script, limit_mib):
    check = other_client(daemon)
    with daemon.conn() as conn:
        assert conn.set("small", "s") == b"STORED"
    settle(daemon, start_readers(daemon, script), check)
    print(f"{name}: {memory_mib(daemon, 'VmHWM'):.0f} MiB at most")
    assert_memory_below(daemon, limit_mib)


@pytest.mark.slow
@NO_TIMEOUT
@pytest.mark.memcacheds(2, "-m", "1024")
@pytest.mark.parametrize("name", SMALL_ANSWERS)
def test_40_clients_that_never_read(daemon, memcacheds, start_readers, name):
    script, count, size = SMALL_ANSWERS[name]
    fill(memcacheds, count, size)
    check_memory(daemon, start_readers, name, script, RSS_MAX_MIB)


@pytest.mark.slow
@NO_TIMEOUT
@pytest.mark.memcacheds(2, "-m", "1024")
def test_40_clients_that_never_read_large_values(daemon, memcacheds, start_readers):
    """A fresh connection has but few values under way until the first one shows its size."""
    fill(memcacheds, 100, LARGE)
    for name in LARGE_ANSWERS:
        script = LARGE_ANSWERS[name]
        check_memory(daemon, start_readers, name, script, RSS_MAX_MIB)
        close_all(start_readers(daemon, b"", 0))


@pytest.mark.release
@pytest.mark.thorough
@NO_TIMEOUT
@pytest.mark.memcacheds(2, "-m", "1024")
@pytest.mark.config(proxy={"client_hard_bytes": "6m"}, lists={"max_answer_bytes": "4m"})
@pytest.mark.parametrize("name", LARGE_ANSWERS)
def test_client_hard_bytes_bounds_the_memory(daemon, memcacheds, start_readers, name):
    fill(memcacheds, 100, LARGE)
    script = LARGE_ANSWERS[name]
    check_memory(daemon, start_readers, name, script, RSS_MAX_MIB)


@pytest.mark.slow
@pytest.mark.memcacheds(2, "-m", "1024")
@pytest.mark.config(
    proxy={"deadline_ms": 60000}, **{"pool main": {"timeout_ms": 3000}}
)
def test_answers_that_wait_for_a_slow_server_are_bounded(daemon, memcacheds, start_readers):
    """The first key's server is silent: what others have answered has to be kept."""
    fill(memcacheds, 200, 100_000)
    with daemon.conn() as conn:
        # Which keys live where: the one that a server answers while the other one is stopped.
        memcacheds[0].pause()
        try:
            conn.send("".join(f"mg k{i}\r\n" for i in range(20)))
            lines = conn.lines(20)
        finally:
            memcacheds[0].resume()
    slow = [i for i, line in enumerate(lines) if line.startswith(b"SERVER_ERROR")]
    fast = [i for i, line in enumerate(lines) if line == b"HD"]
    assert slow and fast
    memcacheds[0].pause()
    script = (f"get k{slow[0]} " + f"k{fast[0]} " * 1000 + "\r\n").encode()
    readers = start_readers(daemon, script)
    time.sleep(1)
    for reader in readers:
        reader.push()
    assert_memory_below(daemon, RSS_MAX_MIB)
    memcacheds[0].resume()
    settle(daemon, readers, other_client(daemon))
    assert_memory_below(daemon, RSS_MAX_MIB)


@pytest.mark.release
def test_40_uploads_that_never_end(daemon, start_readers):
    script = b"set large 0 0 %d\r\n" % (MIB - 1000) + b"x" * (MIB - 100_000)
    settle(daemon, start_readers(daemon, script), other_client(daemon))
    assert_memory_below(daemon, 150)


@pytest.mark.release
def test_40_lines_that_never_end(daemon, start_readers):
    script = b"get " + b"k " * 30_000
    settle(daemon, start_readers(daemon, script), other_client(daemon))
    assert_memory_below(daemon, 100)


def test_idle_clients_cost_little(daemon):
    before = memory_mib(daemon)
    clients = [daemon.conn() for _ in range(900)]
    try:
        for client in clients:
            client.send("get some key\r\n")
        for client in clients:
            assert client.line() == b"END"
        if is_for_use(daemon):
            assert memory_mib(daemon) - before < 900 * 4 / 1024 + 10
    finally:
        for client in clients:
            client.close()


@pytest.mark.memcacheds(1, "-m", "256")
def test_a_slow_reader_gets_everything_in_the_end(daemon, memcacheds):
    fill(memcacheds, 20, MIB - 1000)
    with daemon.conn() as conn:
        conn.send("get " + " ".join(f"k{i}" for i in range(20)), "\r\nmn\r\n")
        time.sleep(0.3)
        for i in range(20):
            assert conn.line() == b"VALUE k%d 0 %d" % (i, MIB - 1000)
            # In small portions, with breaks.
            assert conn.read_exact(1000) == b"v" * 1000
            time.sleep(0.01)
            assert conn.data(MIB - 2000) == b"v" * (MIB - 2000)
        assert conn.lines(2) == [b"END", b"MN"]


@pytest.mark.config(
    proxy={"client_output_bytes": "64k", "max_value_bytes": "64k", "client_hard_bytes": "128k"},
    lists={"max_answer_bytes": "128k"},
)
def test_small_limits_close_nobody_who_has_no_chance_to_read(daemon, memcacheds):
    """Whatever lands in the output, a client that reads is never dropped for it."""
    fill(memcacheds, 50, 60_000)
    with daemon.conn() as conn:
        for _ in range(3):
            found = conn.values("get " + " ".join(f"k{i}" for i in range(50)))
            assert [len(data) for _, _, data in found] == [60_000] * 50
            conn.send("".join(f"mg k{i} v\r\n" for i in range(50)))
            for _ in range(50):
                assert conn.line() == b"VA 60000"
                conn.data(60_000)
        assert conn.stats()["clients_dropped_slow"] == "0"
        assert wait_until("paused", lambda: int(conn.stats()["client_pauses"]) > 0)


@NO_TIMEOUT
@pytest.mark.memcacheds(2, "-m", "256")
@pytest.mark.parametrize("changes", [False, True], ids=["reads", "reads, then a change"])
def test_values_dropped_for_a_slow_reader_are_asked_for_again(daemon, memcacheds, changes):
    """In order. Those that the same client changes behind them are kept: asked for again, they
    would be newer."""
    values = [b"%03d" % i + b"v" * LARGE for i in range(60)]
    keys = " ".join(f"k{i}" for i in range(60))
    with daemon.conn() as conn, daemon.conn() as other:
        assert other.set("small", "s") == b"STORED"
        for i, value in enumerate(values):
            assert other.set(f"k{i}", value) == b"STORED"
        behind = "set k59 0 0 3\r\nnew\r\nget k59\r\n" if changes else ""
        conn.send("get " + "small " * 300 + keys + "\r\n" + behind)
        if changes:
            time.sleep(1)
        else:
            wait_until("values are dropped", lambda: int(other.stats()["answers_dropped"]) > 0)
        for _ in range(300):
            assert conn.line() == b"VALUE small 0 1"
            conn.data(1)
        for i, value in enumerate(values):
            assert conn.line() == b"VALUE k%d 0 %d" % (i, len(value))
            assert conn.data(len(value)) == value
        assert conn.line() == b"END"
        if changes:
            assert conn.line() == b"STORED"
            assert conn.lines(3) == [b"VALUE k59 0 3", b"new", b"END"]


@pytest.mark.config(proxy={"client_output_bytes": "64k"})
def test_a_slow_reader_sees_no_older_value_behind_a_newer_one(daemon):
    """Of one key that it asks for again and again: an answer that was dropped and asked for once more
    came before older ones that were kept."""
    with daemon.conn() as conn, daemon.conn() as other:
        assert other.set("k", "1" * 6000) == b"STORED"
        conn.send("get k\r\n" * 3000)
        time.sleep(0.5)
        assert other.set("k", "2" * 6000) == b"STORED"
        seen = []
        for _ in range(3000):
            assert conn.line() == b"VALUE k 0 6000"
            seen.append(conn.data(6000)[:1])
            assert conn.line() == b"END"
        assert seen == sorted(seen) and set(seen) == {b"1", b"2"}
        assert conn.stats()["clients_dropped_slow"] == "0"


@NO_TIMEOUT
@pytest.mark.memcacheds(1, "-m", "256")
@pytest.mark.config(
    proxy={"client_output_bytes": "256k", "client_hard_bytes": "8m"}, lists={"max_answer_bytes": "4m"}
)
def test_lists_are_read_as_fast_as_their_reader_takes_them(daemon):
    """All kinds of list reads and changes between them, in order; no client is closed, and memory does
    not grow with what was asked for."""
    items = [b"%06d" % i + b"x" * 94 for i in range(20_000)]
    rounds = 40
    with daemon.conn() as conn, daemon.conn() as other:
        for key, content in (("small", items[:1]), ("large", items)):
            for i in range(0, len(content), 100):
                other.send(b"laddq " + key.encode() + b" ", b" ".join(content[i : i + 100]), "\r\n")
        assert other.llen("large") == len(items)
        script = "lget small\r\n" * 300
        for i in range(rounds):
            script += f"lget large\r\nladd large new-{i}\r\nlgetb small\r\nllen large\r\n"
        conn.send(script)
        time.sleep(1)
        assert other.cmd("llen small") == b"1"
        for _ in range(300):
            assert conn.values_answer() == [(b"small", [0, 100], items[0])]
        for i in range(rounds):
            [(_, _, found)] = conn.values_answer()
            assert found.split(b",") == items + [b"new-%d" % n for n in range(i)]
            assert conn.line() == b"STORED"
            assert conn.values_answer() == [(b"small", [100], items[0])]
            assert conn.line() == b"%d" % (len(items) + i + 1)
        assert other.stats()["clients_dropped_slow"] == "0"
    assert_memory_below(daemon, 60)


@pytest.mark.thorough
@NO_TIMEOUT
@pytest.mark.memcacheds(1, "-m", "256")
@pytest.mark.config(proxy={"threads": 1, "view_bytes": "2m"}, lists={"cache_bytes": 0})
def test_views_count_while_they_are_made(daemon, memcached):
    """One client asks for something short of very many lists at once."""
    lists, sublists, items = 150, 40, 250
    with memcached.conn() as direct, daemon.conn() as conn:
        for i in range(lists):
            name, total = f"{'a' * 10}{i:03}", 0
            name = name.translate(str.maketrans("0189", "hijk"))
            for n in range(sublists):
                entries = b"".join(b"+19:%03d-%03d-%011d" % (i, n, k) for k in range(items))
                value = b"^1 %010d\n" % items + entries
                total += len(value)
                assert direct.set(f"list-{i}#{name}.{n}", value) == b"STORED"
            head = f"^1 {name}.{sublists}:{total}:{items * sublists}\n"
            assert direct.set(f"list-{i}#", head) == b"STORED"
        conn.send("".join(f"lhas list-{i} nothing\r\n" for i in range(lists)))
        assert conn.lines(lists) == [b"END"] * lists
    print(f"{memory_mib(daemon, 'VmHWM'):.0f} MiB at most")
    assert_memory_below(daemon, 40)


@pytest.mark.memcacheds(2)
@pytest.mark.config(proxy={"threads": 1, "client_output_bytes": "64k"})
def test_a_read_under_way_sees_that_the_output_was_taken(daemon, memcacheds):
    """Its head comes after everything before it was read: then nothing else wakes it."""
    # Written directly: the worker must not know how long the lists are.
    value = b"^1\n" + b"".join(b"+99:%03d" % i + b"x" * 96 for i in range(400))
    for server in memcacheds:
        with server.conn() as direct:
            for i in range(16):
                assert direct.set(f"l{i}#", value) == b"STORED"
    with daemon.conn() as conn:
        memcacheds[1].pause()  # which keys live where
        conn.send("".join(f"mg l{i}#\r\n" for i in range(16)))
        lines = conn.lines(16)
        memcacheds[1].resume()
        fast = lines.index(b"HD")
        slow = next(i for i, line in enumerate(lines) if line != b"HD")
        wait_until("it is back", lambda: conn.cmd(f"mg l{slow}#") == b"HD")
        memcacheds[1].pause()
        conn.send(f"lget l{fast}\r\nlget l{slow}\r\n")
        assert len(conn.values_answer()[0][2]) == 400 * 100 - 1
        time.sleep(0.2)
        memcacheds[1].resume()
        assert len(conn.values_answer()[0][2]) == 400 * 100 - 1


@pytest.mark.slow
@pytest.mark.config(
    proxy={"client_output_bytes": "64k", "idle_timeout_s": 1}, lists={"max_answer_bytes": "16m"}
)
def test_who_takes_nothing_is_idle_though_reads_are_held_for_it(daemon, start_readers):
    items = " ".join(f"{i:05}" + "x" * 500 for i in range(14))
    with daemon.conn() as conn:
        for i in range(1200):
            conn.send(f"laddq large {items.replace('x' * 500, f'{i:04}' + 'x' * 496)}\r\n")
        assert conn.llen("large") == 14 * 1200
    start_readers(daemon, b"lget large\r\n" * 4, count=2)
    with daemon.conn() as conn:
        assert wait_until("kicked", lambda: int(conn.stats()["idle_kicks"]) >= 2)
