# SPDX-License-Identifier: BSD-3-Clause
"""The daemon as a process: signals, log file, limits on clients, sockets it listens on."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import stat
import time

import pytest

from harness import HOST, SLOW, TIMEOUT_S, UnixConn, wait_for_exit, wait_until
from test_backend_support import run_to_the_end

EX_UNAVAILABLE = 69


def end(daemon, number):
    """Sends the signal and returns the exit code."""
    daemon.signal(number)
    code = wait_for_exit(daemon.process, 3 * TIMEOUT_S)
    daemon.stop(code)  # for its look at the log
    return code


# --- signals ---


def test_term_without_clients(daemon):
    assert end(daemon, signal.SIGTERM) == 0
    assert "SIGTERM" in daemon.log() and "ended" in daemon.log()


@pytest.mark.slow
def test_term_answers_what_was_asked(start_daemon, slow_fake):
    daemon = start_daemon([slow_fake], config={"pool main": {"timeout_ms": 10000}})
    with daemon.conn() as conn, daemon.conn() as idle:
        conn.send("get a\r\nset b 0 0 1\r\nx\r\nmg c v\r\n")
        wait_until("it is sent", lambda: b"mg c" in slow_fake.all_received())
        daemon.signal(signal.SIGTERM)
        expected = [b"VALUE a 0 5", b"value", b"END", b"STORED", b"VA 5", b"value"]
        assert conn.lines(6) == expected
        assert conn.is_closed()
        assert idle.is_closed()
    assert wait_for_exit(daemon.process) == 0
    daemon.stop()


def test_term_accepts_no_more(start_daemon, slow_fake):
    daemon = start_daemon([slow_fake], config={"pool main": {"timeout_ms": 10000}})
    with daemon.conn() as conn:
        conn.send("get a\r\n")
        wait_until("it is sent", lambda: b"mg a" in slow_fake.all_received())
        daemon.signal(signal.SIGTERM)

        def refused():
            try:
                with daemon.conn() as late:
                    late.send("mn\r\n")
                    return late.is_closed()
            except OSError:
                return True

        wait_until("new clients are refused", refused)
        assert conn.lines(3) == [b"VALUE a 0 5", b"value", b"END"]
    assert wait_for_exit(daemon.process) == 0
    daemon.stop()


@pytest.mark.parametrize("second", [None, signal.SIGTERM, signal.SIGINT])
def test_term_does_not_wait_for_ever(start_daemon, start_memcached, second):
    """For a client that does not read: drain_timeout_ms, or until a second signal."""
    drain_timeout_ms = 300 if second is None else 60000
    server = start_memcached()
    daemon = start_daemon([server], config={"proxy": {"drain_timeout_ms": drain_timeout_ms}})
    with daemon.conn() as conn:
        conn.set("big", "x" * 1_000_000)
        conn.send("get big\r\n" * 100)
        time.sleep(0.2)
        daemon.signal(signal.SIGTERM)
        if second is not None:
            wait_until("it drains", lambda: "SIGTERM" in daemon.log())
            time.sleep(0.1)
            assert daemon.is_running()
            daemon.signal(second)
        assert wait_for_exit(daemon.process, 3 * TIMEOUT_S) == 0
    daemon.stop()


def test_int_ends_at_once(start_daemon, slow_fake):
    daemon = start_daemon([slow_fake], config={"proxy": {"drain_timeout_ms": 60000}})
    with daemon.conn() as conn:
        conn.send("get a\r\n" * 100)
        wait_until("it is sent", lambda: b"mg a" in slow_fake.all_received())
        assert end(daemon, signal.SIGINT) == 0
        assert conn.is_closed()
    assert "SIGINT" in daemon.log()


def test_hup_opens_the_log_anew(start_daemon, start_memcached, tmp_path):
    path = tmp_path / "mclistd-own.log"
    daemon = start_daemon([start_memcached()], config={"proxy": {"log_file": path}})
    with daemon.conn() as conn:
        wait_until("it logs", lambda: "listens on" in path.read_text())
        moved = tmp_path / "moved.log"
        path.rename(moved)
        daemon.signal(signal.SIGHUP)
        wait_until("a new log", path.exists)
        wait_until("a line in it", lambda: "log opened anew" in path.read_text())
        assert conn.cmd("mn") == b"MN"
        size = moved.stat().st_size
        daemon.stop()
        assert "ended" in path.read_text()
        assert moved.stat().st_size == size


def test_hup_without_a_way_to_the_log_goes_on(start_daemon, start_memcached, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "log"
    daemon = start_daemon([start_memcached()], config={"proxy": {"log_file": path}})
    moved = tmp_path / "moved"
    folder.rename(moved)
    daemon.signal(signal.SIGHUP)
    wait_until("it says so", lambda: "cannot be opened anew" in (moved / "log").read_text())
    # The old file may be removed, so standard error says it, too.
    daemon.wait_for_log("mclistd: log file .* cannot be opened anew: No such file or directory; the old one")
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"


def test_a_flood_of_signals(daemon, conn):
    for _ in range(200):
        daemon.signal(signal.SIGHUP)
        assert conn.set("key", "x") == b"STORED"


def test_log_lines_have_time_and_level(daemon, conn):
    conn.set("key", "x")
    daemon.wait_for_log(" up, memcached .*\n")
    for line in daemon.log().splitlines():
        when, level, _ = line.split(None, 2)
        assert time.strptime(when[:19], "%Y-%m-%dT%H:%M:%S")
        assert level in ("error", "warn", "info", "debug")


# --- clients ---


def connected(daemon):
    with daemon.conn() as conn:
        return int(conn.stats()["curr_connections"])


@pytest.mark.config(proxy={"max_connections": 10, "reserved_connections": 0})
def test_max_connections(daemon):
    clients = []
    try:
        wait_until("no client", lambda: connected(daemon) == 1)
        for _ in range(10):
            clients.append(daemon.conn())
            assert clients[-1].cmd("mn") == b"MN"
        for _ in range(5):
            with daemon.conn() as late:
                assert late.line() == b"ERROR Too many open connections"
                assert late.is_closed()
        assert clients[0].stats()["rejected_connections"] == "5"
        clients.pop().close()

        def accepted():
            with daemon.conn() as conn:
                conn.send("mn\r\n")
                return conn.line() == b"MN"

        wait_until("one is let in again", accepted)
        assert all(client.cmd("mn") == b"MN" for client in clients)
    finally:
        for client in clients:
            client.close()


FULL = b"ERROR Too many open connections"


@pytest.mark.config(proxy={"max_connections": 10, "reserved_connections": 2, "threads": 1})
def test_at_max_connections_the_operator_is_still_answered(daemon):
    wait_until("no client", lambda: connected(daemon) == 1)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(daemon.conn()) for _ in range(10)]
        assert all(client.cmd("get key") == b"END" for client in clients)
        with daemon.conn() as operator:
            assert operator.stats()["curr_connections"] == "11"
            assert operator.cmd("version").startswith(b"VERSION ")
            assert operator.stats("stats backends")
            assert operator.cmd("get key") == FULL
            assert operator.is_closed()
        # Clients that say nothing do not keep the operator out.
        for _ in range(5):
            stack.enter_context(daemon.conn())
        with daemon.conn() as operator:
            stats = operator.stats()
            assert int(stats["curr_connections"]) <= 12
            # That one, and those whose places the last ones took.
            assert int(stats["rejected_connections"]) >= 4
        # One that waits in the reserve becomes a client when there is a place.
        waiting = stack.enter_context(daemon.conn())
        assert waiting.cmd("mn") == b"MN"
        clients.pop().close()
        wait_until("there is a place", lambda: int(waiting.stats()["curr_connections"]) <= 11)
        waiting.send("mn\r\nset key 0 0 1\r\nx\r\n")
        assert waiting.lines(2) == [b"MN", b"STORED"]
        assert all(client.cmd("mn") == b"MN" for client in clients)
    # Beside a sidecar all clients are on this machine.
    daemon.wait_for_log(r"a client is refused: max_connections \(10\) is reached")


@pytest.mark.config(proxy={"max_connections": 2, "reserved_connections": 2, "threads": 1})
def test_the_reserve_lets_no_client_in_that_is_none_of_the_operators(daemon):
    wait_until("no client", lambda: connected(daemon) == 1)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            assert stack.enter_context(daemon.conn()).cmd("get key") == b"END"
        for _ in range(8):  # each is told so, and its socket lingers
            assert stack.enter_context(daemon.conn()).cmd("get key") == FULL
        for _ in range(4):
            with daemon.conn() as operator:
                assert operator.stats()["max_connections"] == "2"


@pytest.mark.config(proxy={"max_connections": 4, "reserved_connections": 2, "threads": 4})
def test_each_worker_answers_the_operator(daemon):
    wait_until("no client", lambda: connected(daemon) == 1)
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            assert stack.enter_context(daemon.conn()).cmd("mn") == b"MN"
        for _ in range(20):
            stack.enter_context(daemon.conn())
        for _ in range(30):
            with daemon.conn() as operator:
                assert operator.stats()["max_connections"] == "4"


@pytest.mark.config(proxy={"max_connections": 2, "reserved_connections": 0})
def test_a_client_that_is_refused_is_in_the_log(daemon):
    wait_until("no client", lambda: connected(daemon) == 1)
    with contextlib.ExitStack() as stack:

        def is_in():
            conn = stack.enter_context(daemon.conn())
            conn.send("mn\r\n")
            return conn.line() == b"MN"

        wait_until("there is a place", is_in)
        wait_until("there is another", is_in)
        for _ in range(20):
            with daemon.conn() as late:
                assert late.line() == FULL
    daemon.wait_for_log(r"a client is refused: max_connections \(2\) is reached")
    assert daemon.log().count("a client is refused") <= 4


@pytest.mark.slow
@pytest.mark.config(proxy={"idle_timeout_s": 1})
def test_idle_timeout(daemon):
    with daemon.conn() as silent, daemon.conn() as busy, daemon.conn() as half:
        half.send("set key 0 0 5\r\nab")
        end_s = time.monotonic() + 2.5 * max(1, SLOW / 2)
        while time.monotonic() < end_s:
            assert busy.cmd("mn") == b"MN"
            time.sleep(0.05)
        assert silent.is_closed()
        assert half.is_closed()
        assert busy.stats()["idle_kicks"] == "2"
        assert busy.get("key") is None


@pytest.mark.slow
@pytest.mark.config(
    proxy={"idle_timeout_s": 1, "deadline_ms": 60000}, **{"pool main": {"timeout_ms": 60000}}
)
def test_idle_timeout_spares_those_who_wait_for_an_answer(daemon, memcached):
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        memcached.pause()
        conn.send("get key\r\n")
        time.sleep(2.5)
        memcached.resume()
        assert conn.lines(3) == [b"VALUE key 0 1", b"x", b"END"]


# --- sockets ---


def test_a_unix_socket(start_daemon, start_memcached, tmp_path):
    path = tmp_path / "mclistd.socket"
    daemon = start_daemon([start_memcached()], config={"proxy": {"threads": 4}})
    daemon.stop()
    daemon.sections["proxy"]["listen"] = f"{HOST}:{daemon.port}, unix:{path}"
    daemon.start()
    wait_until("the socket is there", path.exists)
    with UnixConn(path) as conn, daemon.conn() as other:
        assert conn.set("key", "x") == b"STORED"
        assert other.get("key") == b"x"
        clients = [UnixConn(path) for _ in range(50)]
        for client in clients:
            assert client.get("key") == b"x"
            client.close()
    daemon.stop()
    assert not path.exists()


def test_a_unix_socket_that_a_killed_daemon_left(start_daemon, start_memcached, tmp_path):
    path = tmp_path / "mclistd.socket"
    server = start_memcached()
    first = start_unix(start_daemon, server, path)
    first.kill()
    assert stat.S_ISSOCK(path.stat().st_mode)
    start_unix(start_daemon, server, path)
    with UnixConn(path) as conn:
        assert conn.cmd("mn") == b"MN"
    # A third one does not take it from the second.
    code, log = start_in_vain(start_daemon, server, {"proxy": {"listen": f"unix:{path}"}})
    assert code == EX_UNAVAILABLE
    assert f"cannot listen on unix:{path}: Address already in use" in log
    with UnixConn(path) as conn:
        assert conn.cmd("mn") == b"MN"


def start_unix(start_daemon, server, path):
    daemon = start_daemon([server])
    daemon.stop()
    daemon.sections["proxy"]["listen"] = f"{HOST}:{daemon.port}, unix:{path}"
    daemon.start()
    # The port comes first and may answer before the socket is there.
    wait_until("the unix socket accepts", lambda: accepts(path))
    return daemon


def accepts(path):
    try:
        UnixConn(path).close()
        return True
    except OSError:
        return False


def start_in_vain(start_daemon, server, config):
    """A daemon that cannot start: exit code and what it said."""
    daemon = start_daemon([server])
    daemon.stop()
    for section, settings in config.items():
        daemon.sections[section].update(settings)
    return run_to_the_end(daemon)


def test_a_file_in_the_place_of_a_unix_socket_is_left_alone(start_daemon, start_memcached, tmp_path):
    path = tmp_path / "precious"
    path.write_text("data")
    code, log = start_in_vain(start_daemon, start_memcached(), {"proxy": {"listen": f"unix:{path}"}})
    assert code == EX_UNAVAILABLE
    assert f"cannot listen on unix:{path}" in log
    assert path.read_text() == "data"


@pytest.mark.parametrize("threads", [1, 4])
def test_a_port_in_use(daemon, start_daemon, memcached, threads):
    config = {"proxy": {"listen": f"{HOST}:{daemon.port}", "threads": threads}}
    code, log = start_in_vain(start_daemon, memcached, config)
    assert code == EX_UNAVAILABLE
    assert f"cannot listen on {HOST}:{daemon.port}: Address already in use" in log
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"


def test_a_host_to_listen_on_that_does_not_exist(start_daemon, start_memcached):
    config = {"proxy": {"listen": "no-such-host.invalid:11211", "insecure": True}}
    code, log = start_in_vain(start_daemon, start_memcached(), config)
    assert code == EX_UNAVAILABLE
    assert "no-such-host.invalid" in log


def test_a_log_file_that_cannot_be_made(start_daemon, start_memcached, tmp_path):
    config = {"proxy": {"log_file": tmp_path / "missing" / "log"}}
    code, log = start_in_vain(start_daemon, start_memcached(), config)
    assert code == os.EX_CANTCREAT
    assert "log_file" in log and "No such file or directory" in log


def test_a_restart_takes_the_port_at_once(daemon, memcached):
    """Also while connections of the old one linger."""
    for _ in range(3):
        clients = [daemon.conn() for _ in range(5)]
        for client in clients:
            assert client.set("key", "x") == b"STORED"
        daemon.stop()
        daemon.start()
        for client in clients:
            client.close()


@pytest.mark.memcacheds(1)
def test_descriptors_running_out(memcached, start_daemon):
    """Accepting pauses, those who are in are served, and afterwards all goes on."""
    daemon = start_daemon([memcached])
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        used = len(list(pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used + 10, before[1]))
        clients = [daemon.conn() for _ in range(40)]
        wait_until("it says so", lambda: "cannot accept clients" in daemon.log())
        for _ in range(20):
            assert conn.get("key") == b"x"
            time.sleep(0.01)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
        for client in clients:
            assert client.get("key") == b"x"
            client.close()


def test_each_line_of_a_json_log_is_an_object(start_daemon, memcached):
    daemon = start_daemon([memcached], config={"proxy": {"log_format": "json"}})
    with daemon.conn() as conn:
        conn.cmd("set k 0 0 1", "v")
    daemon.stop()
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert {tuple(line) for line in lines} == {("time", "level", "pid", "text")}
    assert lines[-1]["text"] == "ended" and lines[-1]["pid"] == daemon.process.pid


@pytest.mark.parametrize("is_abstract", [False, True], ids=["file", "abstract"])
def test_service_manager_is_told(start_daemon, memcached, tmp_path, is_abstract):
    name = f"@{tmp_path}/notify" if is_abstract else f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1))
        manager.settimeout(TIMEOUT_S)
        daemon = start_daemon([memcached], env={"NOTIFY_SOCKET": name})
        assert manager.recv(1000) == b"READY=1"
        daemon.stop()
        assert manager.recv(1000) == b"STOPPING=1"


def test_a_service_manager_that_is_gone_harms_nothing(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], env={"NOTIFY_SOCKET": f"{tmp_path}/nowhere"})
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"
    daemon.wait_for_log("the service manager cannot be told: No such file or directory")
