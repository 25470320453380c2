# SPDX-License-Identifier: BSD-3-Clause
"""What the runbook of docs/operations.md has a paragraph on: each failure is staged, and must be
named in the log, in stats, in the metrics and on the status page."""

import contextlib
import os
import pathlib
import re
import resource
import socket
import struct
import time

import pytest

from harness import HOST, SLOW, TIMEOUT_S, UnixConn, in_threads, wait_until
from test_admin import Admin
from test_backend_support import FAST
from test_names_support import FakeDns, name_config
from test_pressure_limit import small


def rows(daemon, server):
    """What `stats backends` says of the server: {name: value}."""
    prefix = f"backend:{server.address}:"
    with daemon.conn() as conn:
        found = conn.stats("stats backends")
    return {name[len(prefix):]: value for name, value in found.items() if name.startswith(prefix)}


def sample(admin, name, server, **labels):
    labels = {"pool": "main", "server": server.address, **labels}
    return admin.samples()[f"mclistd_pool_server_{name}", tuple(sorted(labels.items()))]


def count(daemon, pattern):
    return len(re.findall(pattern, daemon.log()))


@pytest.fixture
def start_admin(start_daemon):
    """A daemon with an admin listener and a pool `main` of these servers that are given up soon."""

    def start(servers, pool=None, **sections):
        return Admin(start_daemon, servers, **{"pool main": {**FAST, **(pool or {})}}, **sections)

    return start


# --- servers ---------------------------------------------------------------------------------------


def test_a_server_that_hangs(start_admin, start_memcached):
    """All four workers meet it: it is one line, and one when it is over."""
    servers = hung, _ = [start_memcached(), start_memcached()]
    admin = start_admin(servers, proxy={"threads": 4})
    daemon = admin.daemon
    hung.pause()

    def ask(number):
        with daemon.conn() as conn:
            for i in range(10):
                conn.cmd(f"delete k{number}-{i}")

    in_threads(8, ask)
    told = rf"backend {hung.address}: not answering since \d\d:\d\d:\d\d, \d+ requests? waiting: "
    daemon.wait_for_log(told)
    trouble = r"not answering since \d\d:\d\d:\d\d, \d+ requests? waiting"
    assert rows(daemon, hung)["state"] == "hanging"
    assert re.fullmatch(trouble, rows(daemon, hung)["trouble"])
    assert sample(admin, "up", hung) == 0
    wait_until("a second is over", lambda: sample(admin, "silent_seconds", hung) >= 1)
    assert re.search(f"<b>{hung.address}</b> {trouble}<", admin.text("/status"))
    hung.resume()

    def goes_on():
        in_threads(8, ask)
        return rows(daemon, hung)["trouble"] == "none"

    wait_until("it is over", goes_on)
    daemon.wait_for_log(rf"backend {hung.address}: answers requests again, after \d+\.\d s")
    assert sample(admin, "silent_seconds", hung) == 0
    if SLOW == 1:  # a slow daemon may find it mute once more
        assert count(daemon, told) == 1
        assert count(daemon, f"backend {hung.address}: answers requests again") == 1
    assert count(daemon, f"backend {hung.address}: connection lost") == 0


def test_a_dead_server(start_admin, start_memcached):
    """Each event is one line, whichever of four workers meets it."""
    servers = dead, alive = [start_memcached(), start_memcached()]
    admin = start_admin(servers, proxy={"threads": 4})
    daemon = admin.daemon
    wait_until("both are up", lambda: int(rows(daemon, dead)["connects"]) == 4)
    dead.stop()
    wait_until("all have lost it", lambda: int(rows(daemon, dead)["connect_failures"]) >= 4)
    assert rows(daemon, dead)["state"] in ("down", "connecting")
    assert sample(admin, "up", dead) == 0 and sample(admin, "up", alive) == 1
    assert re.search(rf"{dead.address}</td><td class=\"bad\">(down|connecting)", admin.text("/status"))
    dead.start()
    wait_until("all have it again", lambda: int(rows(daemon, dead)["connects"]) == 8)
    wait_until("it is said", lambda: count(daemon, f"backend {dead.address}: up, ") == 2)
    assert count(daemon, f"backend {dead.address}: (connection lost|cannot connect)") == 1
    assert count(daemon, f"backend {alive.address}: up, ") == 1


def trouble(admin, server, name):
    """Whether the metrics and the page have that trouble of the server."""
    on_page = re.search(f"<b>{server.address}</b> ([^<]*)<", admin.text("/status"))
    return (sample(admin, "trouble", server, trouble=name) == 1,
            on_page is not None and on_page.group(1))


LOOK = {"watch_interval_s": 1}


def fill(daemon, size, times):
    """Sets as many values of that size; returns how many were stored."""
    with daemon.conn() as conn:
        return [conn.set(f"big{i}", "x" * size) for i in range(times)].count(b"STORED")


def test_a_server_that_is_full(start_admin, start_memcached):
    full = start_memcached("-M", memory_mb=4)
    admin = start_admin([full])
    assert fill(admin.daemon, 100000, 100) < 100
    admin.daemon.wait_for_log(rf"backend {full.address}: full: it has refused \d+ requests? for want "
                              "of memory since the start; give it more")
    assert int(rows(admin.daemon, full)["refused_full"]) > 1
    assert rows(admin.daemon, full)["trouble"].startswith("full: it has refused ")
    assert sample(admin, "refused_full_total", full) > 1
    is_full, text = trouble(admin, full, "full")
    assert is_full and text.startswith("full: it has refused ")
    assert count(admin.daemon, ": full: ") == 1


def test_a_server_that_evicts(start_admin, start_memcached):
    small = start_memcached(memory_mb=4)
    admin = start_admin([small], LOOK)

    def evicts():
        fill(admin.daemon, 100000, 60)
        return re.search(r"evicts: \d+ items since the last look", admin.daemon.log())

    wait_until("it is said", evicts)
    assert int(rows(admin.daemon, small)["evictions"]) > 0

    def is_told():
        fill(admin.daemon, 100000, 60)
        is_evicting, text = trouble(admin, small, "evicts")
        return is_evicting and text and text.startswith("evicts: ")

    wait_until("it is shown", is_told)


def test_a_server_that_restarts(start_admin, memcached):
    admin = start_admin([memcached], LOOK)
    with admin.daemon.conn() as conn:
        for i in range(5):
            conn.set(f"k{i}", "x")
        wait_until("it was looked at", lambda: rows(admin.daemon, memcached)["items"] == "5")
        memcached.restart()
        admin.daemon.wait_for_log(
            rf"backend {memcached.address}: was restarted \d+ s ago: the 5 items that it had are gone")
    assert rows(admin.daemon, memcached)["restarts"] == "1"
    assert re.match(r"restarted at \d\d:\d\d:\d\d, what it held is gone",
                    rows(admin.daemon, memcached)["trouble"])
    assert sample(admin, "restarts_total", memcached) == 1
    assert trouble(admin, memcached, "restarted")[0]


def test_a_server_that_answers_garbage(start_admin, start_fake, memcached):
    def spoil(fake, sock):
        for _ in fake.requests(sock):
            sock.sendall(b"no memcached says this\r\n")

    fake = start_fake(spoil)
    admin = start_admin([fake, memcached])
    with admin.daemon.conn() as conn:
        wait_until("it has answered garbage", lambda: [conn.cmd(f"delete k{i}") for i in range(20)] and
                   rows(admin.daemon, fake)["garbled_misfit"] != "0")
    admin.daemon.wait_for_log(rf"backend {fake.address}: connection lost: it answers garbage: an answer "
                              'that does not fit its request; see "A server answers garbage"')
    assert rows(admin.daemon, fake)["trouble"].startswith("answers garbage: ")
    assert sample(admin, "garbled_total", fake, reason="misfit") > 0
    assert sample(admin, "garbled_total", memcached, reason="misfit") == 0
    is_garbage, text = trouble(admin, fake, "garbage")
    assert is_garbage and "answers garbage: " in text


def test_a_server_that_is_slow(start_admin, start_fake, memcached):
    def slowly(_, sock):
        """Each batch of requests is answered 50 ms after it has come."""
        unread = b""
        while data := sock.recv(65536):
            *lines, unread = (unread + data).split(b"\r\n")
            time.sleep(0.05)
            sock.sendall(b"".join(b"STAT pid 1\r\nEND\r\n" if line == b"stats" else b"NOT_FOUND\r\n"
                                  for line in lines))

    fake = start_fake(slowly)
    admin = start_admin([fake, memcached], {**LOOK, "timeout_ms": 10000}, proxy={"deadline_ms": 20000})

    def is_told():
        with admin.daemon.conn() as conn:
            conn.send(*(f"delete k{i}\r\n" for i in range(100)))
            conn.lines(100)
        return "us or longer" in rows(admin.daemon, fake)["trouble"]

    wait_until("it is told", is_told, 3 * TIMEOUT_S)
    told = admin.daemon.wait_for_log(
        rf"backend {fake.address}: slow: half of its answers take (\d+) us or longer, of the pool's "
        r"other servers (\d+) us")
    assert int(told.group(1)) > 4 * int(told.group(2))
    assert int(rows(admin.daemon, fake)["recent_p50_us"]) > 50000
    assert trouble(admin, fake, "slow")[0] and not trouble(admin, memcached, "slow")[0]


def test_dns_is_gone(start_daemon, memcached):
    dns = FakeDns()
    dns.fails = True
    try:
        name = f"mc.test:{memcached.port}"
        admin = Admin(start_daemon, [name], **name_config(dns))
        with admin.daemon.conn() as conn:
            wait_until("it is said", lambda: conn.cmd("mg k").endswith(b"name not resolved"))
        admin.daemon.wait_for_log("server name mc.test: not resolved: ")
        assert reason(admin, "ended", "name") > 0
        assert "the name of their server has no address (DNS)" in admin.text("/status")
    finally:
        dns.stop()


# --- the proxy -------------------------------------------------------------------------------------


def reason(admin, what, name):
    """How often, in stats and in the metrics, which must agree."""
    told = int(stats_of(admin, "stats reasons")[f"{what}:{name}"])
    assert admin.samples()[f"mclistd_{what}_total", (("reason", name),)] >= told
    return told


def stats_of(admin, group):
    with admin.daemon.conn() as conn:
        return conn.stats(group)


def test_no_descriptors_are_left(start_admin, memcached):
    admin = start_admin([memcached])
    pid = admin.daemon.process.pid
    with admin.daemon.conn() as conn:
        conn.cmd("mn")
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 3, before[1]))
        clients = [admin.daemon.conn() for _ in range(10)]
        admin.daemon.wait_for_log("cannot accept clients: Too many open files; trying again")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        for client in clients:
            client.close()
    assert reason(admin, "closed", "descriptors") > 0
    assert "clients could not be accepted: no file descriptors are left" in admin.text("/status")


def test_no_memory_is_left(start_admin, memcached):
    sections = small(16)
    admin = start_admin([memcached], **sections)
    with contextlib.ExitStack() as stack:

        def press():
            conn = stack.enter_context(admin.daemon.conn())
            with contextlib.suppress(OSError):
                conn.send(b"set k 0 0 1000000\r\n" + b"x" * 900_000)
            return "clients_dropped_memory" in admin.daemon.log() or re.search(
                r"client \S+ port \d+ closed: memory_limit_bytes \(\d+\) is reached", admin.daemon.log())

        wait_until("a client is closed", press)
        assert reason(admin, "closed", "memory") > 0
        assert "clients were closed: memory_limit_bytes was reached" in admin.text("/status")


def test_no_connections_are_left(start_admin, memcached):
    admin = start_admin([memcached], proxy={"max_connections": 2, "reserved_connections": 0})

    def answer(conn):
        with contextlib.suppress(OSError, EOFError):
            return conn.cmd("get k")
        return None

    with contextlib.ExitStack() as stack:
        wait_until("one is refused", lambda: answer(stack.enter_context(admin.daemon.conn())) ==
                   b"ERROR Too many open connections")
        admin.daemon.wait_for_log(r"a client is refused: max_connections \(2\) is reached")
        assert "clients were refused: max_connections is reached" in admin.text("/status")

    def is_in():
        with admin.daemon.conn() as conn:
            return answer(conn) == b"END"

    wait_until("there is room", is_in)
    wait_until("and still is", lambda: admin.samples()["mclistd_curr_connections", ()] == 0)
    assert reason(admin, "closed", "max_connections") > 0


def test_the_disk_of_the_log_is_full(start_admin, memcached):
    """The log itself cannot say so until there is room: stats, metrics and page do."""
    admin = start_admin([memcached])
    admin.daemon.stop()
    admin.daemon.sections["proxy"]["log_file"] = "/dev/full"
    admin.daemon.start()
    with admin.daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
    wait_until("lines are lost", lambda: reason(admin, "dropped", "log_line") > 0)
    assert "lines of the log were lost: a full disk" in admin.text("/status")


def test_a_hot_list(start_admin, memcached):
    patient = {"timeout_ms": int(1000 * SLOW)}
    admin = start_admin([memcached], patient, proxy={"hot_requests_s": 10})

    def is_told():
        with admin.daemon.conn() as conn:
            for n in range(20):
                conn.send(*("ladd hot item%d\r\n" % i for i in range(10)))
                assert set(conn.lines(10)) == {b"STORED"}
                conn.cmd(f"ladd list{n} item")
        time.sleep(0.3)  # often enough, and the processor is for others, too
        return admin.samples()["mclistd_hot_keys", ()] == 1

    wait_until("it is told", is_told, 60 * SLOW)
    admin.daemon.wait_for_log(r"warn  hot: key hot gets \d+% of all requests, \d+ a second")
    hot = stats_of(admin, "stats hot")
    assert float(hot["hot"].rstrip("%")) > 50
    page = admin.text("/status")
    assert '<td class="key">hot</td>' in page
    assert re.search(r"key <b>hot</b> is hot: \d+% of all requests, \d+ a second", page)
    wait_until("it is over", lambda: admin.samples()["mclistd_hot_keys", ()] == 0, 60 * SLOW)
    admin.daemon.wait_for_log("hot: key hot is no longer hot")
    assert count(admin.daemon, "hot: key ") == 2


def test_a_key_that_few_ask_for_is_not_hot(start_admin, memcached):
    """Though it gets all requests, which are fewer than hot_requests_s."""
    admin = start_admin([memcached], proxy={"hot_percent": 1, "hot_requests_s": 1000000})
    with admin.daemon.conn() as conn:
        for _ in range(20):
            conn.send("get only\r\n" * 100)
            conn.lines(100)
        wait_until("it was looked at", lambda: int(conn.stats()["uptime"]) > 11, 60 * SLOW)
        assert conn.stats()["hot_keys"] == "0"


# --- clients ---------------------------------------------------------------------------------------


def worst_client(daemon):
    """The first row of `stats clients`, as {name: value}; {} where there is none."""
    with daemon.conn() as conn:
        row = conn.stats("stats clients").get("0")
    if row is None:
        return {}
    numbers, _, name = row.partition(" client ")
    words = numbers.split()
    return {**dict(zip(words[::2], words[1::2])), "client": name}


def test_a_slow_client(start_admin, memcached):
    """It asks for much and reads nothing of it."""
    admin = start_admin([memcached], proxy={"client_output_bytes": "64k", "slow_ms": 100})
    with admin.daemon.conn() as slow:
        assert slow.set("large", "x" * 1000000) == b"STORED"
        slow.send("get large\r\n" * 30)
        wait_until("its answers lie there", lambda: worst_client(admin.daemon).get("unread_ms", "0") != "0")
        row = worst_client(admin.daemon)
        assert row["client"] == HOST and row["share"] == "100.0%" and row["connections"] == "1"
        assert int(row["unread_bytes"]) > 0 and row["closed"] == "0"
        assert re.search(rf'id="clients">.*<td class="key">{HOST}</td>', admin.text("/status"), re.S)
        # It never reads on, and is named all the same: when the proxy looks, every 10 seconds.
        admin.daemon.wait_for_log(rf"slow: client {HOST} leaves \d+ bytes of answers unread, for \d+ ms",
                                  3 * TIMEOUT_S)
        assert admin.samples()["mclistd_slow_clients", ()] == 1
        assert re.search(f"client <b>{HOST}</b> is slow: .* bytes of answers unread", admin.text("/status"))
        wait_until("that is long", lambda: int(worst_client(admin.daemon)["unread_ms"]) > 100)
        for _ in range(30):
            slow.values_answer()
        admin.daemon.wait_for_log(
            rf"slow: client {HOST} port \d+ left \d+ bytes of answers unread for \d+ ms")
        wait_until("all was taken", lambda: worst_client(admin.daemon)["unread_bytes"] == "0")
        assert worst_client(admin.daemon)["connections"] == "0"
        assert admin.samples()["mclistd_slow_clients", ()] == 0
    assert admin.samples()["mclistd_client_pauses_total", ()] > 0


def test_a_slow_client_that_resets_its_connection_has_a_name(start_admin, memcached):
    admin = start_admin([memcached], proxy={"slow_ms": 100})
    with admin.daemon.conn() as slow:
        assert slow.set("large", "x" * 1000000) == b"STORED"
        slow.send("get large\r\n" * 30)
        wait_until("that is long", lambda: int(worst_client(admin.daemon).get("unread_ms", "0")) > 200)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    admin.daemon.wait_for_log(rf"slow: client {HOST} left \d+ bytes of answers unread for \d+ ms")


def test_a_client_on_a_unix_socket_has_a_name(start_admin, memcached, tmp_path):
    path = tmp_path / "proxy.sock"
    admin = start_admin([memcached], proxy={"slow_ms": 100})
    daemon = admin.daemon
    daemon.stop()
    daemon.sections["proxy"]["listen"] = f"{HOST}:{daemon.port}, unix:{path}"
    daemon.start()
    wait_until("the daemon listens there, too", path.exists)
    with UnixConn(path) as conn:
        memcached.pause()
        conn.send("get k\r\n")
        time.sleep(0.2)
        memcached.resume()
        assert conn.socket.recv(100) == b"END\r\n"
    daemon.wait_for_log(f"slow: get k of client on a unix socket, process {os.getpid()} of user "
                        f"{os.getuid()} took")
