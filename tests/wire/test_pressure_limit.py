# SPDX-License-Identifier: BSD-3-Clause
"""What all clients together may take: memory_limit_bytes, client_input_bytes, max_pending_bytes; and
how long a request may take to arrive. Whatever some ask for, others are served. The bounds of memory
are for the daemon as it is built for use, not for a sanitizer's build."""

import resource
import threading
import time

import pytest

from harness import SLOW, in_threads, wait_until
from test_binary_support import NO_MEMORY, SUCCESS, Binary, store
from test_pressure_memory import MIB, SlowReader, assert_memory_below, fill, is_for_use, memory_mib

# What a daemon with small caches takes without clients, and what the allocator leaves unused.
BASE_MIB = 30
# Closed clients' requests may stay until servers have answered: a quarter. An eighth more until the
# worker that holds most has heard of it.
OVER = 1 + 1 / 4 + 1 / 8
# Gaps between pieces of memory in use.
GAPS = 1.2
TOO_LARGE = b"SERVER_ERROR out of memory: memory_limit_bytes is reached, nothing done"


def small(limit_mib, **proxy):
    return {
        "proxy": {
            "memory_limit_bytes": f"{limit_mib}m",
            "client_hard_bytes": f"{min(limit_mib, 64)}m",
            "view_bytes": "1m",
            **proxy,
        },
        "lists": {"cache_bytes": "1m", "max_answer_bytes": "8m"},
    }


def assert_bounded(daemon, limit_mib, besides_mib=0):
    assert_memory_below(daemon, BASE_MIB + (limit_mib * OVER + besides_mib) * GAPS)


@pytest.fixture
def start_clients():
    clients = []

    def start(daemon, script, count):
        for _ in range(count):
            clients.append(SlowReader(daemon.port, script))
        return clients

    yield start
    for client in clients:
        client.socket.close()


def serves_others(daemon):
    """A client that comes now stores and reads something small."""
    with daemon.conn() as conn:
        assert wait_until("it is stored", lambda: conn.set("other", "value") == b"STORED")
        assert conn.get("other") == b"value"
        assert conn.cmd("ladd others one") == b"STORED"
        assert b"one" in conn.lget("others")
        assert conn.cmd("lput others 3", "one") == b"STORED"
        block = "lrequire others one\r\nladd more one\r\n"
        assert conn.cmd(f"ltx {len(block)}", block) == b"STORED"
        return conn.stats()


def push_until_calm(clients, statistics):
    """Sends all that the daemon takes; a client that it has closed is left alone. statistics: reads
    those of the daemon."""
    last, calm = -1, 0
    deadline = time.monotonic() + 30 * SLOW
    while calm < 3:
        for client in clients:
            try:
                client.push()
            except OSError:
                client.rest = b""
        moved = int(statistics()["bytes_read"])
        calm = calm + 1 if moved - last < 4000 else 0
        last = moved
        assert time.monotonic() < deadline, "it never comes to rest"
        time.sleep(0.02)


# --- memory_limit_bytes ---------------------------------------------------------------------------

UNFINISHED = {
    "lines": b"lhas some " + b"a " * 520_000,
    "lines of keys": b"get " + b"k " * 520_000,
    "values": b"set k 0 0 %d\r\n" % (MIB - 1000) + b"x" * (MIB - 2000),
    "items": b"ladd k " + b"i" * 1000 + b" " + b"x" * 900_000,
}


@pytest.mark.slow
@pytest.mark.config(**small(64))
@pytest.mark.parametrize("name", UNFINISHED)
def test_clients_with_a_part_of_a_request_are_bounded_together(daemon, start_clients, name):
    """And what they had is given back to the system when they leave."""
    serves_others(daemon)
    before = memory_mib(daemon)
    clients = start_clients(daemon, UNFINISHED[name], 200)
    push_until_calm(clients, lambda: serves_others(daemon))
    stats = serves_others(daemon)
    assert int(stats["clients_dropped_memory"]) > 50
    assert int(stats["memory_bytes"]) < 66 * MIB
    assert stats["memory_limit_bytes"] == str(64 * MIB)
    daemon.wait_for_log(r"memory_limit_bytes \(67108864\) is reached")
    print(f"{name}: {memory_mib(daemon, 'VmHWM'):.0f} MiB at most")
    assert_bounded(daemon, 64)
    for client in clients:
        client.socket.close()
    if is_for_use(daemon):
        wait_until("memory is given back", lambda: memory_mib(daemon) < before + 20)


@pytest.mark.thorough
@pytest.mark.config(**small(64))
def test_the_client_that_holds_most_is_told_and_closed(daemon, start_clients):
    with daemon.conn() as largest, daemon.conn() as modest:
        modest.send(b"set modest 0 0 100000\r\n" + b"m" * 50_000)
        largest.send(b"set largest 0 0 %d\r\n" % (MIB - 1000) + b"x" * (MIB - 2000))
        clients = start_clients(daemon, b"set k 0 0 %d\r\n" % (MIB - 2000) + b"x" * 900_000, 100)
        push_until_calm(clients, lambda: serves_others(daemon))
        # Any of them may have been the one; those that hold less were not.
        assert int(serves_others(daemon)["clients_dropped_memory"]) > 0
        modest.send(b"m" * 50_000 + b"\r\n")
        assert modest.line() == b"STORED"
    with daemon.conn() as conn:
        assert conn.get("modest") == b"m" * 100_000
    told = 0
    for client in clients:
        client.socket.setblocking(True)
        client.socket.settimeout(0.05)
        try:
            told += client.socket.recv(200).startswith(
                b"SERVER_ERROR out of memory: memory_limit_bytes is reached, connection closed\r\n"
            )
        except OSError:
            pass
    assert told > 0


@pytest.mark.memcacheds(1, "-I", "8m")
@pytest.mark.config(**small(16, max_value_bytes="4m"))
def test_a_client_that_is_closed_while_it_sends_is_told(daemon):
    """It can send all of its request, and finds the line behind it."""
    value = b"x" * (4 * MIB - 1000)
    answers = []

    def store(n):
        with daemon.conn(timeout_s=30 * SLOW) as conn:
            conn.send(b"set k%d 0 0 %d\r\n" % (n, len(value)), value, b"\r\n")
            answers.append(conn.line())

    in_threads(24, store)
    assert len(answers) == 24
    told = b"SERVER_ERROR out of memory: memory_limit_bytes is reached, connection closed"
    assert told in answers
    assert set(answers) <= {b"STORED", told}


@pytest.mark.memcacheds(1, "-I", "8m")
@pytest.mark.config(**small(16, max_value_bytes="4m"))
def test_a_client_of_the_binary_protocol_is_told_in_a_packet(daemon):
    value = b"x" * (4 * MIB - 1000)
    answers = []

    def store_it(n):
        with Binary(daemon.port) as binary:
            answer = binary.ask(store("set", f"k{n}", value, opaque=n))
            answers.append((answer.status, answer.value, answer.opaque == n))

    in_threads(24, store_it)
    told = b"out of memory: memory_limit_bytes is reached, connection closed"
    assert (NO_MEMORY, told, True) in answers
    assert set(answers) <= {(SUCCESS, b"", True), (NO_MEMORY, told, True)}


@pytest.mark.memcacheds(1, "-I", "8m")
@pytest.mark.config(**small(16, max_value_bytes="4m"))
def test_a_list_that_is_too_large_for_memory_ends_its_request_alone(daemon):
    items = [b"%07d" % n for n in range(200_000)]
    with daemon.conn() as conn:
        for count, answer in ((100_000, b"STORED"), (200_000, TOO_LARGE), (1000, b"STORED")):
            block = b",".join(items[:count])
            assert conn.cmd(f"lput k {len(block)}", block) == answer
        assert conn.llen("k") == 1000
        assert conn.stats()["clients_dropped_memory"] == "0"


@pytest.mark.slow
@pytest.mark.memcacheds(2, "-m", "256")
@pytest.mark.config(**small(64), **{"pool main": {"timeout_ms": 60000}})
def test_unread_answers_of_many_clients_are_bounded_together(daemon, memcacheds, start_clients):
    fill(memcacheds, 100, MIB - 1000)
    script = b"get " + b" ".join(b"k%d" % i for i in range(100)) + b"\r\n"
    clients = start_clients(daemon, script, 150)
    push_until_calm(clients, lambda: serves_others(daemon))
    print(f"{memory_mib(daemon, 'VmHWM'):.0f} MiB at most")
    assert_bounded(daemon, 64)


@pytest.mark.slow
@pytest.mark.memcacheds(1, "-m", "256", "-I", "2m")
@pytest.mark.config(**small(64), **{"pool main": {"timeout_ms": 60000, "max_pending_bytes": "8m"}})
def test_values_for_a_server_that_hangs_are_bounded(daemon, memcached, start_clients):
    """What does not fit the queue is refused, in its turn; the rest is stored when it goes on."""
    serves_others(daemon)
    value = b"x" * 900_000
    memcached.pause()
    try:
        script = b"".join(b"set k%d 0 0 900000\r\n" % i + value + b"\r\n" for i in range(20))
        clients = start_clients(daemon, script, 40)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            for client in clients:
                try:
                    client.push()
                except OSError:
                    client.rest = b""
        assert_bounded(daemon, 64)
    finally:
        memcached.resume()
    stats = serves_others(daemon)
    assert int(stats["backend_errors"]) > 0
    assert_bounded(daemon, 64)


ITEM = b"i" * 1000
KEYS = b" ".join(b"key-%d" % i for i in range(60_000))
FLOODS = {
    "sets without answer": b"set k 0 0 500000 noreply\r\n" + b"x" * 500_000 + b"\r\n",
    "small sets without answer": b"set k 0 0 1 noreply\r\n1\r\n" * 1000,
    "blocks of items": b"laddb some 1000 noreply\r\n" + ITEM + b"\r\n",
    "items, a line full": b"laddq some " + b" ".join([ITEM] * 60) + b"\r\n",
    "items, exactly": b"laddx some " + b" ".join([ITEM] * 60) + b"\r\n",
    "whole lists": b"lset some " + b" ".join([ITEM] * 60) + b"\r\n",
    "lists of many short items": b"lhas some " + b"a " * 500_000 + b"\r\n",
    "many keys": b"get " + KEYS + b"\r\n",
    "many lists": b"lget " + KEYS + b"\r\n",
    "statistics": b"get k\r\n" + b"stats\r\nstats settings\r\n" * 1000,
}


@pytest.mark.slow
@pytest.mark.config(**small(64), **{"pool main": {"timeout_ms": 60000}})
@pytest.mark.parametrize("name", FLOODS)
def test_floods_before_a_server_that_hangs_are_bounded(daemon, memcached, start_clients, name):
    serves_others(daemon)
    memcached.pause()
    try:
        clients = start_clients(daemon, FLOODS[name] * max(1, 3_000_000 // len(FLOODS[name])), 80)
        with daemon.conn() as conn:
            push_until_calm(clients, conn.stats)
            print(f"{name}: {memory_mib(daemon, 'VmHWM'):.0f} MiB at most, {conn.stats()}")
        assert_bounded(daemon, 64)
    finally:
        memcached.resume()
        for client in clients:
            client.socket.close()
    serves_others(daemon)
    assert_bounded(daemon, 64)


@pytest.mark.config(**small(16, threads=1), **{"pool main": {"timeout_ms": 60000}})
def test_near_the_limit_clients_have_one_request_at_a_time(daemon, memcached, start_clients):
    with daemon.conn() as conn:
        start_clients(daemon, b"set k 0 0 1000000\r\n" + b"x" * 900_000, 13)
        wait_until("it is near", lambda: int(conn.stats()["memory_bytes"]) > 12 * MIB)
        for round in range(3):
            conn.send("".join(f"set k{i} 0 0 1\r\n{i % 10}\r\n" for i in range(1000)))
            assert conn.lines(1000) == [b"STORED"] * 1000
            found = conn.values("get " + " ".join(f"k{i}" for i in range(1000)))
            assert [value for _, _, value in found] == [b"%d" % (i % 10) for i in range(1000)]
        stats = conn.stats()
    assert int(stats["client_pauses"]) > 0
    assert int(stats["memory_pressure"]) > 0
    assert stats["clients_dropped_memory"] == "0"


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNFINISHED)
def test_where_the_system_gives_little_the_limit_acts_first(memcached, start_daemon, kind):
    """With threads, code and arenas, 700 MB of addresses are enough for a limit of 128 MB."""
    daemon = start_daemon([memcached], config=small(128))
    if not is_for_use(daemon):
        pytest.skip("sanitizers take addresses themselves")
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (700 * MIB, 700 * MIB))
    clients = []
    try:
        for _ in range(3):
            clients += [SlowReader(daemon.port, UNFINISHED[kind]) for _ in range(150)]
            push_until_calm(clients, lambda: serves_others(daemon))
        assert daemon.is_running()
        assert int(serves_others(daemon)["clients_dropped_memory"]) > 0
    finally:
        for client in clients:
            client.socket.close()


def test_without_memory_it_ends_with_a_line_that_says_so(memcached, start_daemon):
    daemon = start_daemon([memcached])
    if not is_for_use(daemon):
        pytest.skip("sanitizers take addresses themselves")
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (200 * MIB, 200 * MIB))
    clients = []
    try:
        while daemon.is_running() and len(clients) < 500:
            try:
                clients.append(SlowReader(daemon.port, UNFINISHED["values"]))
            except OSError:
                break
        wait_until("it ends", lambda: not daemon.is_running())
    finally:
        for client in clients:
            client.socket.close()
    daemon.must_stop = False
    assert daemon.process.returncode == 71
    assert "out of memory, ending" in daemon.log()


# --- one client's requests ------------------------------------------------------------------------

LONG_LINES = {
    "lhas": (b"lhas some " + b"a " * 520_000 + b"\r\n", b"END"),
    "lset": (
        b"lset some " + b"a " * 520_000 + b"\r\n",
        b"STORED",
    ),
    "set": (b"set k 0 0 1000000\r\n" + b"x" * 1_000_000 + b"\r\n", b"STORED"),
}


@pytest.mark.slow
@pytest.mark.config(proxy={"threads": 1}, **{"pool main": {"timeout_ms": 60000}})
@pytest.mark.parametrize("name", LONG_LINES)
def test_long_lines_in_a_pipeline_count_by_their_size(daemon, memcached, name):
    """The one whose answer is waited for, and what client_input_bytes (4 MB) allows beside it."""
    line, answer = LONG_LINES[name]
    count = 30
    with daemon.conn(timeout_s=60 * SLOW) as conn:
        assert conn.cmd("ladd some thing") == b"STORED"
        memcached.pause()
        sender = threading.Thread(target=lambda: [conn.send(line) for _ in range(count)])
        sender.start()
        time.sleep(1)
        memcached.resume()
        assert conn.lines(count) == [answer] * count
        sender.join()
    print(f"{name}: {memory_mib(daemon, 'VmHWM'):.0f} MiB at most")
    # A line, its items, and what the engine makes of them; two of them, as none is cut in half.
    assert_memory_below(daemon, 50)


@pytest.mark.config(proxy={"client_input_bytes": "4k", "threads": 1})
def test_a_request_larger_than_client_input_bytes_goes_alone(daemon):
    """Keys of one request never wait for their own request to be over."""
    with daemon.conn() as conn:
        for i in range(1000):
            assert conn.set(f"key-{i}", str(i)) == b"STORED"
        value = b"v" * 100_000
        keys = " ".join(f"key-{i}" for i in range(1000))
        for _ in range(3):
            conn.send(f"get {keys}\r\n")
            conn.send(b"set large 0 0 100000\r\n", value, b"\r\nget large\r\n")
            conn.send(f"lhas some {keys}\r\nget {keys}\r\n")
            assert len(conn.values_answer()) == 1000
            assert conn.line() == b"STORED"
            assert conn.values_answer()[0][2] == value
            assert conn.values_answer() == []
            assert len(conn.values_answer()) == 1000


@pytest.mark.config(**{"pool main": {"max_pending_bytes": "64k", "timeout_ms": 60000}})
def test_requests_beyond_max_pending_bytes_are_refused(daemon, memcached):
    value = b"x" * 500_000
    conns = [daemon.conn() for _ in range(8)]
    assert conns[0].set("k", "1") == b"STORED"
    memcached.pause()
    try:
        # The kernel takes some megabytes before anything waits.
        for conn in conns:
            conn.send(*[b"set large 0 0 500000\r\n" + value + b"\r\n"] * 6)
        with daemon.conn() as other:
            wait_until("some are refused", lambda: int(other.stats()["backend_errors"]) > 0)
    finally:
        memcached.resume()
    lines = [line for conn in conns for line in conn.lines(6)]
    full = f"SERVER_ERROR backend {memcached.address}: queue full".encode()
    assert set(lines) == {b"STORED", full}
    assert conns[0].get("large") == value
    for conn in conns:
        conn.close()


# --- request_timeout_ms ---------------------------------------------------------------------------

SLOWLY = {
    "a line": b"get some",
    "a long line": b"get " + b"k " * 10_000,
    "a value": b"set k 0 0 1000\r\nvalue",
    "a large value": b"set k 0 0 500000\r\n" + b"x" * 100_000,
    "a list's item": b"laddb k 100\r\nitem",
}
TOO_SLOW = b"CLIENT_ERROR the request did not arrive within request_timeout_ms"


@pytest.mark.thorough
@pytest.mark.config(proxy={"request_timeout_ms": 300})
@pytest.mark.parametrize("name", SLOWLY)
def test_a_request_that_arrives_too_slowly_is_refused_and_its_client_closed(daemon, name):
    with daemon.conn() as idle, daemon.conn() as conn, daemon.conn() as other:
        assert idle.set("before", "1") == b"STORED"
        conn.send(b"mn\r\n" + SLOWLY[name])
        assert conn.line() == b"MN"
        with pytest.raises(OSError):
            # One byte at a time, which no idle_timeout_s would mind.
            deadline = time.monotonic() + 10 * SLOW
            while time.monotonic() < deadline:
                conn.socket.sendall(b"x")
                time.sleep(0.02)
        stats = other.stats()
        assert stats["request_timeouts"] == "1"
        daemon.wait_for_log(r"did not arrive within request_timeout_ms \(300\)")
        # Who has nothing on the way is not concerned.
        assert idle.get("before") == b"1"


@pytest.mark.config(proxy={"request_timeout_ms": 300})
def test_a_slow_request_is_answered_with_one_line_behind_the_others(daemon):
    with daemon.conn() as conn:
        conn.send(b"set k 0 0 1\r\n1\r\nget k\r\nget so")
        assert conn.line() == b"STORED"
        assert conn.values_answer()[0][2] == b"1"
        assert conn.line() == TOO_SLOW
        assert conn.is_closed()
    with daemon.conn() as conn:
        # Refused already, and its data is not worth waiting for.
        conn.send(b"set k 0 0 2000000\r\n" + b"x" * 1000)
        assert conn.line() == b"SERVER_ERROR object too large for cache"
        assert conn.is_closed()


@pytest.mark.config(proxy={"request_timeout_ms": 400})
def test_each_request_has_its_own_time(daemon):
    """A client that is never without a part of a request is not closed for that."""
    with daemon.conn() as conn:
        conn.send("get ")
        for i in range(20):
            time.sleep(0.05)
            conn.send(f"k{i}\r\nget ")
            assert conn.line() == b"END"
    with daemon.conn() as conn:
        assert conn.stats()["request_timeouts"] == "0"


@pytest.mark.config(
    proxy={"request_timeout_ms": 300, "max_pipeline": 1}, **{"pool main": {"timeout_ms": 60000}}
)
def test_time_in_which_the_proxy_does_not_read_does_not_count(daemon, memcached):
    with daemon.conn() as conn, daemon.conn() as other:
        assert conn.set("k", "1") == b"STORED"
        memcached.pause()
        conn.send("get k\r\nget k\r\nge")
        time.sleep(1)
        memcached.resume()
        assert conn.values_answer()[0][2] == b"1"
        conn.send("t k\r\n")
        assert conn.values_answer()[0][2] == b"1"
        assert conn.values_answer()[0][2] == b"1"
        assert other.stats()["request_timeouts"] == "0"


@pytest.mark.config(proxy={"request_timeout_ms": 0})
def test_any_time_is_enough_when_there_is_no_limit(daemon):
    with daemon.conn() as conn:
        conn.send("get k")
        time.sleep(0.5)
        conn.send("\r\n")
        assert conn.values_answer() == []


@pytest.mark.release
@pytest.mark.memcacheds(1, "-I", "8m")
@pytest.mark.config(**small(64, threads=1, max_value_bytes="8m"))
@pytest.mark.parametrize("request_", ["lunion a b", "linter b a", "lgetx a b", "lunionstore c%d a b"])
def test_comparisons_of_many_clients_are_bounded_together(daemon, start_clients, request_):
    """What they hold counts as that of their clients: calls end, and no client is closed."""
    with daemon.conn(timeout_s=60 * SLOW) as conn:
        for key, first, count in (("a", 0, 300_000), ("b", 150_000, 300_005)):
            block = ",".join(f"item-{n}" for n in range(first, first + count)).encode()
            assert conn.cmd(f"lput {key} {len(block)}", block) == b"STORED"
        for n in range(40):
            # Several answers of one client are under way together, several stores are not.
            script = f"{request_ % n}\r\n" if "%" in request_ else f"{request_}\r\n" * 3
            start_clients(daemon, script.encode(), 1)
        for _ in range(300):
            assert conn.cmd("mn") == b"MN"
            time.sleep(0.01)
        assert conn.stats()["clients_dropped_memory"] == "0"
        assert_bounded(daemon, 64)


@pytest.mark.slow
@pytest.mark.memcacheds(1, "-I", "8m")
@pytest.mark.config(
    **small(64, max_value_bytes="8m", deadline_ms=60000), **{"pool main": {"timeout_ms": 60000}}
)
@pytest.mark.parametrize("request_", ["linter a b", "lunion a b", "ldifflen a b"])
def test_comparisons_of_large_lists_wait_for_each_other(daemon, request_):
    """One takes half of the memory: several at once would only end each other."""
    with daemon.conn() as conn:
        for key, first in (("a", 0), ("b", 100_000)):
            block = ",".join(f"item-{n}" for n in range(first, first + 200_000)).encode()
            assert conn.cmd(f"lput {key} {len(block)}", block) == b"STORED"
    conns = [daemon.conn(timeout_s=60 * SLOW) for _ in range(8)]
    for conn in conns:
        conn.send(f"{request_}\r\n")
    served = 0
    for conn in conns:
        line = conn.line()
        if line.startswith(b"VALUE"):
            conn.data(int(line.split()[3]))
            assert conn.line() == b"END"
        served += not line.startswith(b"SERVER_ERROR")
        assert conn.cmd("mn") == b"MN"
        conn.close()
    assert served >= 4
    assert_bounded(daemon, 64)


@pytest.mark.slow
@pytest.mark.config(
    **small(64, deadline_ms=60000),
    **{"pool main": {"timeout_ms": 60000}, "lists signed-": {"dialect": "signed"}},
)
@pytest.mark.parametrize("verb", ["lgetx", "lunion", "lunionstore made"])
@pytest.mark.parametrize("key", ["one", "none", "signed"])
def test_reads_of_many_small_lists_wait_for_each_other(daemon, verb, key):
    """Looks at a thousand lists take some megabytes, whatever these hold: clients that all ask at once
    wait for each other, and none is closed."""
    names = " ".join(f"{key}-{n}" for n in range(1000))
    with daemon.conn() as conn:
        if key != "none":
            conn.send("".join(f"ladd {key}-{n} item\r\n" for n in range(1000)))
            assert set(conn.lines(1000)) == {b"STORED"}
    conns = [daemon.conn(timeout_s=60 * SLOW) for _ in range(40)]
    for conn in conns:
        conn.send(f"{verb} {names}\r\nmn\r\n")
    served = sum(not conn.until_mn()[-1].startswith(b"SERVER_ERROR") for conn in conns)
    for conn in conns:
        conn.close()
    with daemon.conn() as conn:
        assert conn.stats()["clients_dropped_memory"] == "0"
    assert served == len(conns)
    assert_bounded(daemon, 64)


# --- innocent clients -----------------------------------------------------------------------------

HOSTILE = {
    "calls": (16, b"lhas others one two three\r\n" * 3000),
    "large items": (64, b"get big\r\n" * 100),
    "parts": (16, b"get " + b"k " * 7000),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_clients_with_one_small_request_are_not_closed(start_daemon, memcached, kind):
    """Whatever others hold, one whose memory is one block of input is not what there is to free."""
    limit_mib, script = HOSTILE[kind]
    patient = {"pool main": {"timeout_ms": 60000}}
    daemon = start_daemon([memcached], config={**small(limit_mib, deadline_ms=60000), **patient})
    with daemon.conn() as conn:
        assert conn.cmd("ladd others one") == b"STORED"
        assert conn.set("big", b"x" * 50_000) == b"STORED"
    good = [daemon.conn(timeout_s=60 * SLOW) for _ in range(10)]
    hostile = []
    try:
        for n in range(1200):
            hostile.append(SlowReader(daemon.port, script))
            if n % 50 == 0:
                assert [conn.cmd("mn") for conn in good] == [b"MN"] * 10

        def push():
            for client in hostile:
                try:
                    client.push()
                except OSError:
                    client.rest = b""
            assert [conn.cmd("mn") for conn in good] == [b"MN"] * 10
            assert [conn.get("k") for conn in good] == [None] * 10
            # Where the engine holds most, it is calls that end, and no clients.
            stats = good[0].stats()
            return int(stats["clients_dropped_memory"]) + int(stats["list_ended_for_memory"]) > 0

        for _ in range(10):
            push()
        wait_until("memory is short", push)
        assert_bounded(daemon, limit_mib)
    finally:
        for client in hostile:
            client.socket.close()
        for conn in good:
            conn.close()
