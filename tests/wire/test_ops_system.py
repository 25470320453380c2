# SPDX-License-Identifier: BSD-3-Clause
"""The daemon and its system: a log that is not read, few descriptors, other daemons that start at
the same time, users, permissions, signals of other programs."""

import contextlib
import fcntl
import grp
import os
import pathlib
import pwd
import resource
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from couchbase_support import Cluster, keys_of, sections
from harness import HOST, Daemon, free_port, wait_for_exit, wait_until, write_ini
from test_backend_support import correct_answer, run_to_the_end
from test_ops_process import EX_UNAVAILABLE, FULL, start_in_vain, start_unix

EX_NOUSER = 67
EX_OSERR = 71
PIPE_BYTES = 65536

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class DaemonWithPipe(Daemon):
    """Standard error is a pipe that no process reads."""

    def start(self):
        write_ini(self.ini_path, self.sections)
        self.reader, writer = os.pipe()
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, env=self.env
        )
        os.close(writer)
        wait_until("the daemon accepts", self._accepts)
        self.must_stop = True
        return self


@pytest.fixture
def piped(tmp_path, memcached):
    daemon = DaemonWithPipe(tmp_path, [memcached], config={"proxy": {"log_buffer_bytes": "4k"}})
    yield daemon
    daemon.kill()
    os.close(daemon.reader)


def fill_the_log(daemon):
    """More lines than the pipe and the buffer hold; each HUP is one."""
    for _ in range(3000):
        daemon.signal(signal.SIGHUP)
        with daemon.conn() as conn:
            if int(conn.stats()["log_lines_dropped"]) > 0:
                return
    raise AssertionError("no line of the log was dropped")


@pytest.mark.slow
def test_a_log_that_nobody_reads_stops_neither_clients_nor_term(piped):
    fill_the_log(piped)
    with piped.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        assert conn.cmd("ladd list item") == b"STORED"
    piped.signal(signal.SIGTERM)
    assert wait_for_exit(piped.process) == 0


@pytest.mark.slow
def test_signals_at_the_very_end_change_nothing(piped):
    """While the last lines of the log wait for their reader."""
    fill_the_log(piped)
    piped.signal(signal.SIGINT)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT) * 10:
        time.sleep(0.02)
        piped.signal(number)
    assert wait_for_exit(piped.process) == 0


@pytest.mark.slow
def test_dropped_lines_of_the_log_are_counted_in_it(piped):
    fill_the_log(piped)
    os.set_blocking(piped.reader, False)
    text = b""

    def told():
        nonlocal text
        try:
            text += os.read(piped.reader, PIPE_BYTES)
        except BlockingIOError:
            return False
        return b"lines of the log were dropped" in text

    wait_until("the log says so", told)


def test_a_named_pipe_without_a_reader_is_no_log_file(start_daemon, memcached, tmp_path):
    path = tmp_path / "log"
    os.mkfifo(path)
    code, log = start_in_vain(start_daemon, memcached, {"proxy": {"log_file": path}})
    assert code == os.EX_CANTCREAT
    assert f"log_file {path}" in log


# --- descriptors ---


class DaemonWithDescriptors(Daemon):
    count = 64

    def command(self):
        return ["/bin/sh", "-c", f'ulimit -n {self.count}; exec "$@"', "sh", *super().command()]


def test_clients_leave_descriptors_for_servers(tmp_path, memcached):
    daemon = DaemonWithDescriptors(tmp_path, [memcached])
    clients = []
    try:
        lowered = daemon.wait_for_log(r"max_connections is lowered from 10000 to (\d+)")
        places = int(lowered[1])
        for _ in range(100):
            clients.append(daemon.conn())
        alive = [client for client in clients if answers(client)]
        assert 5 < places < len(alive) < 60
        memcached.restart()
        # Each worker has to connect anew, with all the clients there are. Those of the reserve are
        # answered `mn`, but not this.
        answers_at_last = [
            wait_until("an answer", lambda client=client: stored_or_full(client)) for client in alive
        ]
        assert answers_at_last.count(b"STORED") == places
        assert 0 < answers_at_last.count(FULL) <= 4 + 2  # and one for each of two workers
        assert "cannot accept clients" not in daemon.log()
    finally:
        for client in clients:
            client.close()
        daemon.stop()


class DaemonWithMoreDescriptors(DaemonWithDescriptors):
    count = 128


def test_clients_leave_descriptors_for_nodes_that_the_file_does_not_name(tmp_path):
    with Cluster(nodes=24) as cluster, contextlib.ExitStack() as stack:
        config = sections(cluster, tmp_path, {"threads": 1}, seeds=[0], connections=2)
        daemon = DaemonWithMoreDescriptors(tmp_path, config=config)
        stack.callback(daemon.stop)
        clients = [stack.enter_context(daemon.conn()) for _ in range(100)]
        conn = next(client for client in clients if answers(client))
        for index in cluster.members:
            (key,) = keys_of(cluster, index, 1)
            wait_until("stored", lambda key=key: conn.set(key, "x") == b"STORED")
        assert "no file descriptor left" not in daemon.log()


def stored_or_full(client):
    answer = client.set("key", "x")
    return answer if answer in (b"STORED", FULL) else None


def answers(client):
    try:
        return client.cmd("mn") == b"MN"
    except (EOFError, OSError):
        return False


def test_descriptors_used_up_are_no_failure_of_the_server(start_daemon, memcached):
    """The reserve makes that rare; here the limit is lowered behind the daemon's back."""
    daemon = start_daemon([memcached], config={"proxy": {"threads": 1}})
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        failures = conn.stats()["backend_connect_failures"]
        pid = daemon.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        memcached.restart()
        wait_until("it says so", lambda: b"no file descriptor left" in conn.cmd("mg key"))
        assert conn.stats()["backend_connect_failures"] == failures
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        wait_until("it connects", lambda: conn.set("key", "x") == b"STORED")


def test_too_few_descriptors_for_the_servers_are_an_error(tmp_path, memcached):
    daemon = DaemonWithDescriptors(tmp_path, [memcached])
    daemon.stop()
    daemon.sections["pool main"]["connections"] = 64
    code, log = run_to_the_end(daemon)
    assert code == EX_OSERR
    assert "the limit of open files is 64" in log


def test_the_unit_has_descriptors_for_the_defaults():
    unit = (pathlib.Path(__file__).parents[2] / "conf/mclistd.service").read_text()
    limit = next(line for line in unit.splitlines() if line.startswith("LimitNOFILE="))
    assert int(limit.split("=")[1]) >= 10000 + 1000


def test_closed_standard_streams_do_not_become_sockets(tmp_path, memcached):
    """Lines of the log went to the event loop, or to a client."""

    class Closed(Daemon):
        def command(self):
            return ["/bin/sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", *super().command()]

    daemon = Closed(tmp_path, [memcached])
    try:
        for number in range(3):
            assert os.readlink(f"/proc/{daemon.process.pid}/fd/{number}") == "/dev/null"
        with daemon.conn() as conn:
            assert conn.set("key", "x") == b"STORED"
    finally:
        daemon.stop()


# --- two daemons ---


def start_both(commands):
    """Starts all at the same time; returns those that still run once the others have ended."""
    processes = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for command in commands
    ]

    def one_is_left():
        return sum(process.poll() is None for process in processes) <= 1

    try:
        wait_until("one has given up", one_is_left)
        return [process for process in processes if process.poll() is None]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_of_two_daemons_that_start_together_one_has_the_address(tmp_path, memcached, kind):
    daemon = Daemon(tmp_path, [memcached], config={"proxy": {"threads": 4}})
    daemon.stop()
    path = tmp_path / "socket"
    for _ in range(20):
        address = f"{HOST}:{free_port()}" if kind == "tcp" else f"unix:{path}"
        if kind == "unix" and not path.exists():
            with socket.socket(socket.AF_UNIX) as left:  # as a killed daemon leaves it
                left.bind(str(path))
        daemon.sections["proxy"]["listen"] = address
        write_ini(daemon.ini_path, daemon.sections)
        assert len(start_both([daemon.command(), daemon.command()])) == 1


# --- users and permissions ---


def test_a_folder_that_another_process_locks_does_not_stop_the_start(
    start_daemon, memcached, tmp_path
):
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    path = tmp_path / "a.sock"
    daemon = start_unix(start_daemon, memcached, path)
    os.close(lock)
    wait_until("that is logged", lambda: "without that lock" in daemon.log())


def mode_of(path):
    return path.stat().st_mode & 0o777


def test_the_mode_of_a_unix_socket(start_daemon, memcached, tmp_path):
    path = tmp_path / "socket"
    for mode in (0o600, 0o666, 0o770):
        config = {"proxy": {"listen": f"unix:{path}", "socket_mode": f"{mode:04o}"}}
        daemon = start_daemon([memcached])
        daemon.stop()
        daemon.sections["proxy"].update(config["proxy"])
        daemon.sections["proxy"]["listen"] = f"{HOST}:{daemon.port}, unix:{path}"
        daemon.start()
        wait_until("the socket is there", path.exists)
        wait_until("its mode is set", lambda mode=mode: mode_of(path) == mode)
        daemon.stop()


@as_root
def test_the_group_of_a_unix_socket(start_daemon, memcached, tmp_path):
    path = tmp_path / "socket"
    daemon = start_daemon([memcached], config={"proxy": {"socket_group": "daemon"}})
    daemon.stop()
    daemon.sections["proxy"]["listen"] = f"{HOST}:{daemon.port}, unix:{path}"
    daemon.start()
    wait_until("the socket is there", path.exists)
    wait_until("its group is set", lambda: grp.getgrgid(path.stat().st_gid).gr_name == "daemon")


def test_a_group_that_does_not_exist(start_daemon, memcached, tmp_path):
    config = {"proxy": {"listen": f"unix:{tmp_path}/socket", "socket_group": "no-such-group"}}
    code, log = start_in_vain(start_daemon, memcached, config)
    assert code == EX_UNAVAILABLE
    assert "socket_group" in log
    assert not (tmp_path / "socket").exists()


def ids(daemon):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return {int(lines["Uid"].split()[i]) for i in range(4)}, lines["Groups"].split()


@pytest.fixture
def open_folder():
    """A folder that every user can reach; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        yield folder


@as_root
@pytest.mark.parametrize("how", ["option", "file"])
def test_root_becomes_another_user(start_daemon, memcached, open_folder, how):
    log = open_folder / "log"
    config = {"proxy": {"log_file": log}}
    if how == "file":
        config["proxy"]["user"] = "nobody"
    daemon = start_daemon([memcached], config=config, args=["-u", "nobody"] if how == "option" else [])
    nobody = pwd.getpwnam("nobody")
    wait_until("it has changed", lambda: ids(daemon)[0] == {nobody.pw_uid})
    assert set(ids(daemon)[1]) <= {str(nobody.pw_gid)}
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
    assert "runs as root" not in log.read_text()
    daemon.signal(signal.SIGHUP)
    wait_until("reopened", lambda: "log opened anew" in log.read_text())


@as_root
def test_the_embedded_memcached_runs_as_the_same_user(start_daemon):
    daemon = start_daemon(config={"proxy": {"embedded_memory_mb": 64, "user": "nobody"}})
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        # It can be started again, and cleaned up, without root's rights.
        child = daemon.wait_for_log(r"\(process (\d+)\)")[1]
        os.kill(int(child), signal.SIGKILL)
        wait_until("it runs again", lambda: "runs again" in daemon.log())
        wait_until("it serves", lambda: conn.set("key", "x") == b"STORED")
    folder = pathlib.Path(daemon.log().split("at unix:", 1)[1].split(" ")[0]).parent
    assert folder.exists()
    daemon.stop()
    assert not folder.exists()


@as_root
def test_root_without_a_user_is_warned(daemon):
    daemon.wait_for_log("runs as root")


@as_root
def test_a_user_that_does_not_exist(start_daemon, memcached):
    code, log = start_in_vain(start_daemon, memcached, {"proxy": {"user": "no-such-user"}})
    assert code == EX_NOUSER
    assert "there is no user no-such-user" in log


# --- signals ---


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE])
def test_signals_without_a_meaning_do_not_end_it(daemon, conn, number):
    daemon.signal(number)
    if number != signal.SIGPIPE:
        wait_until("it says so", lambda: f"{number.name} means nothing here" in daemon.log())
    assert conn.set("key", "x") == b"STORED"


def test_term_closes_the_listening_sockets_at_once(start_daemon, start_fake, tmp_path):
    """While requests are finished, later clients are refused and may go to another proxy."""

    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            if b"slow" in line:
                continue
            sock.sendall(correct_answer(line))

    server = start_fake(behave)
    config = {"proxy": {"drain_timeout_ms": 60000}, "pool main": {"timeout_ms": 60000}}
    path = tmp_path / "socket"
    daemon = start_daemon([server], config=config)
    daemon.stop()
    daemon.sections["proxy"]["listen"] = f"{HOST}:{daemon.port}, unix:{path}"
    daemon.start()
    with daemon.conn() as conn:
        conn.send("get slow\r\n")
        wait_until("it is sent", lambda: b"slow" in server.all_received())
        daemon.signal(signal.SIGTERM)

        def refused():
            try:
                daemon.conn().close()
                return False
            except ConnectionRefusedError:
                return True

        wait_until("clients are refused", refused)
        wait_until("the unix socket is gone", lambda: not path.exists())
        assert daemon.is_running()
        daemon.signal(signal.SIGTERM)
        assert wait_for_exit(daemon.process) == 0
    daemon.stop()


FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


@pytest.mark.skipif(not FAKETIME.exists(), reason="needs the Debian package faketime")
@pytest.mark.skipif("build/asan" in os.environ.get("MCLISTD", ""), reason="ASan comes first")
@pytest.mark.skipif("build/tsan" in os.environ.get("MCLISTD", ""), reason="TSan comes first")
def test_uptime_does_not_follow_a_clock_that_is_set_back(start_daemon, memcached, tmp_path):
    clock = tmp_path / "clock"
    clock.write_text("+0")
    env = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    daemon = start_daemon([memcached], env=env)
    with daemon.conn() as conn:
        before = int(conn.stats()["time"])
        clock.write_text("-2h")
        wait_until("the clock is set back", lambda: int(conn.stats()["time"]) < before - 3600)
        assert int(conn.stats()["uptime"]) < 3600
