# SPDX-License-Identifier: BSD-3-Clause
"""Real servers that die, hang, come back: every request is answered, by name of the server; other
servers are not disturbed; keys stay where they belong."""

import re
import threading
import time

import pytest

from harness import SLOW, wait_until
from test_backend_support import FAST
from test_pass_support import talk

DOWN = rb"SERVER_ERROR backend %s( down|: connection lost(, outcome unknown)?)"
SILENT = rb"SERVER_ERROR backend %s( down|: timeout(, outcome unknown)?)"

pytestmark = pytest.mark.config(**{"pool main": FAST})

KEYS = [f"key{i}" for i in range(60)]


def owners(daemon, memcacheds):
    """Key -> the server it is on, for KEYS, which are stored by this."""
    with daemon.conn() as conn:
        for key in KEYS:
            assert conn.set(key, key) == b"STORED"
    found = {}
    for server in memcacheds:
        with server.conn() as direct:
            for key, _, _ in direct.values("get " + " ".join(KEYS)):
                found[key.decode()] = server
    assert len(found) == len(KEYS)
    return found


def names(server, line, how=DOWN):
    return re.fullmatch(how % re.escape(server.address.encode()), line)


REQUESTS = [
    "get {0}",
    "gets {0}",
    "gat 0 {0}",
    "mg {0} v",
    "mg {0} v q",
    "md {0} q",
    "ma {0}",
    "ms {0} 1\r\nx",
    "set {0} 0 0 1\r\nx",
    "append {0} 0 0 1\r\nx",
    "cas {0} 0 0 1 1\r\nx",
    "delete {0}",
    "incr {0} 1",
    "touch {0} 0",
]


@pytest.mark.memcacheds(3)
def test_a_killed_server(daemon, memcacheds):
    """Each request is answered, the others' keys are, and none is ever looked for elsewhere."""
    owner = owners(daemon, memcacheds)
    dead = memcacheds[1]
    dead.stop()
    with daemon.conn() as conn:
        for key in KEYS:
            for request in REQUESTS:
                line = None
                if owner[key] is dead:
                    line = conn.cmd(request.format(key))
                    assert names(dead, line), (request, line)
            if owner[key] is not dead:
                assert conn.get(key) == key.encode()
                assert conn.cmd(f"mg {key} v") == b"VA %d" % len(key)
                assert conn.line() == key.encode()
        assert conn.cmd("mn") == b"MN"
        # The keys of the dead server are not on the others.
        for server in (memcacheds[0], memcacheds[2]):
            with server.conn() as direct:
                found = direct.values("get " + " ".join(KEYS))
                assert {key.decode() for key, _, _ in found} == {
                    key for key in KEYS if owner[key] is server
                }
        dead.restart()
        for key in KEYS:
            if owner[key] is dead:
                wait_until("it is stored", lambda k=key: conn.set(k, "again") == b"STORED")
        with dead.conn() as direct:
            found = direct.values("get " + " ".join(KEYS))
            assert {key.decode() for key, _, _ in found} == {
                key for key in KEYS if owner[key] is dead
            }


@pytest.mark.memcacheds(3)
def test_a_multi_get_over_a_killed_server_ends_in_an_error(daemon, memcacheds):
    """Never in END: a key that could not be asked for must not look like a miss."""
    owner = owners(daemon, memcacheds)
    dead = memcacheds[0]
    dead.stop()
    with daemon.conn() as conn:
        for _ in range(3):
            conn.send("get " + " ".join(KEYS) + "\r\nmn\r\n")
            seen = []
            while (line := conn.line()).startswith(b"VALUE "):
                seen.append(line.split()[1].decode())
                conn.line()
            assert names(dead, line), line
            assert conn.line() == b"MN"
            assert all(owner[key] is not dead for key in seen)
            assert seen == [key for key in KEYS if key in seen]


@pytest.mark.slow
@pytest.mark.memcacheds(2)
@pytest.mark.config(proxy={"threads": 1})
@pytest.mark.parametrize("pause_s", [0, 0.3, 2.5], ids=["at once", "soon", "after a while"])
def test_the_first_request_after_a_restart_works(daemon, memcacheds, pause_s):
    """A connection that died while it was idle is noticed before anything is sent on it."""
    owner = owners(daemon, memcacheds)
    server = memcacheds[0]
    key = next(key for key in KEYS if owner[key] is server)
    for _ in range(3):
        server.stop()
        time.sleep(pause_s / 3)
        server.start()
        # After an attempt that was refused, requests are for a moment (20 ms).
        time.sleep(0.05)
        with daemon.conn() as conn:
            assert conn.set(key, "new") == b"STORED"
            assert conn.get(key) == b"new"
            other = next(key for key in KEYS if owner[key] is not server)
            assert conn.get(other) == other.encode()


@pytest.mark.slow
@pytest.mark.memcacheds(1)
@pytest.mark.config(proxy={"threads": 1}, **{"pool main": {"retry_max_ms": 2000}})
def test_the_first_request_after_a_long_time_down_works(daemon, memcached):
    """Requests were refused meanwhile, and the pause between attempts has grown: a request still
    finds the server as soon as it is back."""
    memcached.stop()
    end = time.monotonic() + 3
    with daemon.conn() as conn:
        while time.monotonic() < end:
            assert conn.set("key", "x") == b"SERVER_ERROR backend %s down" % memcached.address.encode()
            time.sleep(0.05)
        memcached.start()
        time.sleep(0.1)
        assert conn.set("key", "x") == b"STORED"
        assert conn.get("key") == b"x"


@pytest.mark.memcacheds(2)
def test_a_server_that_is_down_from_the_start(start_daemon, start_memcached):
    alive, dead = start_memcached(), start_memcached()
    dead.stop()
    daemon = start_daemon([alive, dead], config={"pool main": FAST})
    with daemon.conn() as conn:
        answers = [conn.set(key, "x") for key in KEYS]
        good = [line for line in answers if line == b"STORED"]
        assert 0 < len(good) < len(KEYS)
        assert all(names(dead, line) for line in answers if line != b"STORED")
        dead.start()
        wait_until("all are stored", lambda: {conn.set(key, "x") for key in KEYS} == {b"STORED"})
    daemon.wait_for_log(f"backend {dead.address}")


@pytest.mark.memcacheds(2)
def test_a_stopped_server(daemon, memcacheds):
    """SIGSTOP: it takes what is sent and is silent. Answers come all the same, for its keys an
    error; after SIGCONT it works again."""
    owner = owners(daemon, memcacheds)
    silent = memcacheds[0]
    its = [key for key in KEYS if owner[key] is silent]
    others = [key for key in KEYS if owner[key] is not silent]
    with daemon.conn() as conn, daemon.conn() as other:
        silent.pause()
        try:
            for key in its[:3]:
                assert names(silent, conn.cmd(f"get {key}"), SILENT)
                assert names(silent, conn.set(key, "x"), SILENT)
            # Only its own requests wait for it.
            conn.send(f"get {its[0]}\r\n")
            for key in others * 5:
                assert other.get(key) == key.encode()
            assert conn.line().startswith(b"SERVER_ERROR backend ")
        finally:
            silent.resume()
        wait_until("it works again", lambda: conn.set(its[0], "again") == b"STORED")
        assert conn.get(its[0]) == b"again"


@pytest.mark.memcacheds(2)
def test_answers_leave_in_order_when_a_server_is_silent(daemon, memcacheds):
    owner = owners(daemon, memcacheds)
    silent = memcacheds[0]
    its = [key for key in KEYS if owner[key] is silent][:3]
    others = [key for key in KEYS if owner[key] is not silent][:3]
    silent.pause()
    try:
        with daemon.conn() as conn:
            for slow, fast in zip(its, others):
                conn.send(f"get {slow}\r\nget {fast}\r\nmn\r\n")
            for slow, fast in zip(its, others):
                assert conn.line().startswith(b"SERVER_ERROR backend %s" % silent.address.encode())
                assert conn.line() == b"VALUE %s 0 %d" % (fast.encode(), len(fast))
                assert conn.lines(3) == [fast.encode(), b"END", b"MN"]
    finally:
        silent.resume()


@pytest.mark.memcacheds(2)
def test_deep_pipelines_into_a_stopped_server(daemon, memcacheds):
    """More than the kernel's buffers take: answered within the timeout, too."""
    owner = owners(daemon, memcacheds)
    silent = memcacheds[0]
    key = next(key for key in KEYS if owner[key] is silent)
    script = b"set %s 0 0 100000\r\n%s\r\n" % (key.encode(), b"v" * 100_000) * 100
    silent.pause()
    try:
        answer = talk(daemon.port, script, timeout_s=60 * SLOW)
    finally:
        silent.resume()
    lines = answer.split(b"\r\n")[:-1]
    assert len(lines) == 100
    assert all(b"SERVER_ERROR backend %s" % silent.address.encode() in line for line in lines)
    with daemon.conn() as conn:
        wait_until("it works again", lambda: conn.set(key, "again") == b"STORED")


@pytest.mark.slow
@pytest.mark.memcacheds(3)
def test_traffic_while_servers_come_and_go(daemon, memcacheds):
    """Every answer is a right value, a miss or an error that names a server that was touched."""
    faults = []
    stop = threading.Event()
    steady = memcacheds[2]

    def work(number):
        with daemon.conn() as conn:
            round_number = 0
            while not stop.is_set():
                round_number += 1
                key = f"own{number}:{round_number % 50}"
                conn.send(f"set {key} 0 0 {len(key)}\r\n{key}\r\nget {key}\r\n")
                line = conn.line()
                if line != b"STORED" and not line.startswith(b"SERVER_ERROR backend "):
                    faults.append(line)
                if steady.address.encode() in line:
                    faults.append(line)
                line = conn.line()
                if line.startswith(b"VALUE"):
                    if conn.line() != key.encode() or conn.line() != b"END":
                        faults.append((key, line))
                elif line != b"END" and not line.startswith(b"SERVER_ERROR backend "):
                    faults.append(line)
                time.sleep(0.001)  # leaves the processor to what comes and goes

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for i in range(4):
        server = memcacheds[i % 2]
        server.restart()
        time.sleep(0.1)
        server.pause()
        time.sleep(0.4)
        server.resume()
    stop.set()
    for thread in threads:
        thread.join(20 * SLOW)
    assert not any(thread.is_alive() for thread in threads)
    assert faults == []
    daemon.wait_for_log("backend")


@pytest.mark.memcacheds(2)
def test_stats_backends_tells_who_is_down(daemon, memcacheds):
    owner = owners(daemon, memcacheds)
    dead = memcacheds[0]
    key = next(key for key in KEYS if owner[key] is dead)

    def stat(conn, server, name):
        return conn.stats("stats backends")[f"backend:{server.address}:{name}"]

    with daemon.conn() as conn:
        assert {stat(conn, server, "state") for server in memcacheds} == {"up"}
        dead.stop()
        conn.cmd(f"get {key}")
        wait_until("it is down", lambda: stat(conn, dead, "state") != "up")
        for _ in range(3):
            conn.cmd(f"get {key}")
            time.sleep(0.05)
        assert int(stat(conn, dead, "errors")) >= 3
        assert int(stat(conn, dead, "connect_failures")) >= 1
        assert stat(conn, memcacheds[1], "errors") == "0"
        assert stat(conn, memcacheds[1], "state") == "up"
        dead.start()
        wait_until("it is up", lambda: conn.cmd(f"get {key}") == b"END" and
                   stat(conn, dead, "state") == "up")


@pytest.mark.memcacheds(1, "-C")
@pytest.mark.config(proxy={"threads": 1})
def test_a_server_without_cas_serves_plain_keys(daemon, conn):
    assert conn.set("key", "x") == b"STORED"
    assert conn.get("key") == b"x"
    assert conn.cmd("ladd list item").startswith(b"SERVER_ERROR backend ")
    daemon.wait_for_log("without CAS")


@pytest.mark.config(**{"pool main": {**FAST, "max_pending": 10}})
@pytest.mark.config(proxy={"threads": 1})
def test_a_full_queue_refuses_at_once(daemon, memcached):
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        memcached.pause()
        try:
            conn.send("get key\r\n" * 30)
            lines = conn.lines(30)
        finally:
            memcached.resume()
        assert all(line.startswith(b"SERVER_ERROR backend ") for line in lines)
        assert len(set(lines)) > 1
        wait_until("it works again", lambda: conn.set("key", "x") == b"STORED")


@pytest.mark.parametrize("args, says", [((), 1), (("-R", 200), 0)])
def test_a_server_that_takes_few_requests_at_a_time_is_named_once(start_memcached, start_daemon, args, says):
    server = start_memcached(*args)
    daemon = start_daemon([server])
    with daemon.conn() as conn:
        assert conn.set("k", "v") == b"STORED"
        server.restart()
        wait_until("the server is used again", lambda: conn.set("k", "v") == b"STORED")
    named = "takes 20 requests of a connection at a time"
    wait_until("it is named", lambda: daemon.log().count(named) >= says)
    daemon.stop()
    assert daemon.log().count(named) == says
