# SPDX-License-Identifier: BSD-3-Clause
"""A daemon takes the place of another one: no client is refused, none loses an answer, and those that are
connected stay so. And sockets that the service manager has opened."""

import os
import socket
import subprocess
import threading
import time

import pytest

from harness import HOST, SLOW, TIMEOUT_S, free_port, wait_for_exit, wait_until
from test_ops_process import UnixConn
from test_reload import ask


class Place:
    """A daemon with a unix socket for clients and one for commands, which others take over."""

    def __init__(self, start_daemon, servers, folder, **proxy):
        self.admin, self.unix = folder / "admin.sock", folder / "clients.sock"
        self.daemon = start_daemon(servers, config={
            "proxy": proxy, "listener local": {"listen": f"unix:{self.unix}"},
            "admin": {"listen": [f"unix:{self.admin}", f"{HOST}:{free_port()}"]}})
        wait_until("the admin listener", self.admin.exists)

    def take_over(self, **proxy):
        """Starts another one; returns once the one before has ended well."""
        before = self.daemon.process
        self.daemon.sections["proxy"].update(proxy)
        self.daemon.args = ["--takeover", self.admin]
        self.daemon.start()
        assert wait_for_exit(before, 3 * TIMEOUT_S) == 0, self.daemon.log()[-3000:]
        self.daemon.wait_for_log(f"process {self.daemon.process.pid} takes this one's place")

    def conn(self):
        return self.daemon.conn()


@pytest.fixture
def place(start_daemon, memcached, tmp_path):
    return Place(start_daemon, [memcached], tmp_path)


def test_clients_stay_connected(place):
    with place.conn() as conn, UnixConn(place.unix) as other:
        assert conn.cmd("ladd fruit apple") == b"STORED"
        assert other.cmd("ladd fruit pear") == b"STORED"
        first = conn.stats()["pid"]
        place.take_over()
        assert conn.stats()["pid"] == other.stats()["pid"] != first
        assert conn.lget("fruit") == other.lget("fruit") == [b"apple", b"pear"]
        with place.conn() as new, UnixConn(place.unix) as another:
            assert new.stats()["pid"] == another.stats()["pid"] == conn.stats()["pid"]
    assert "handed over 2 clients" in place.daemon.log()
    place.daemon.stop()
    assert not place.admin.exists() and not place.unix.exists()


def test_a_part_of_a_request_goes_along(place):
    with place.conn() as conn, place.conn() as large:
        conn.send(b"get a\r\nset k 0 0 10\r\nabcde")
        assert conn.line() == b"END"
        large.send(b"set large 0 0 100000\r\n", b"x" * 50000)
        wait_until("it is read", lambda: int(conn_stats(place)["bytes_read"]) > 50000)
        before = place.daemon.process
        place.daemon.args = ["--takeover", place.admin]
        place.daemon.start()
        conn.send(b"fghij\r\nget k\r\n")
        assert conn.line() == b"STORED" and conn.values_answer() == [(b"k", [0, 10], b"abcdefghij")]
        # More than goes along: the daemon before finishes that, and hands the client over then.
        large.send(b"x" * 50000, b"\r\n")
        assert large.line() == b"STORED"
        assert wait_for_exit(before, 3 * TIMEOUT_S) == 0
        assert large.cmd("mn") == b"MN"


def conn_stats(place):
    with place.conn() as conn:
        return conn.stats()


@pytest.mark.parametrize("threads", [(2, 2, 2), (1, 4, 2), (3, 1, 3)])
def test_nobody_loses_an_answer(start_daemon, start_memcached, tmp_path, threads):
    place = Place(start_daemon, [start_memcached(), start_memcached()], tmp_path, threads=threads[0])
    over, faults, count = threading.Event(), [], 24

    def connect(i):
        return UnixConn(place.unix) if i % 3 == 0 else place.conn()

    def work(i):
        n = 0
        try:
            while not over.is_set() or n == 0:
                with connect(i) as conn:
                    for _ in range(20 if i % 2 else 10 ** 9):
                        batch = 1 + i % 4
                        for k in range(batch):
                            conn.send(f"ladd list{i} {n + k}\r\nset k{i} 0 0 1500\r\n".encode(),
                                      b"v" * 1500, b"\r\n")
                        for _ in range(batch):
                            assert conn.line() == b"STORED" and conn.line() == b"STORED"
                            n += 1
                        if over.is_set():
                            break
            with connect(i) as conn:
                assert conn.lget(f"list{i}") == [str(k).encode() for k in range(n)]
        except Exception as fault:  # pylint: disable=broad-except
            faults.append((i, n, repr(fault)))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for worker in workers:
        worker.start()
    for number in threads[1:] + threads[:1]:
        time.sleep(0.3)
        place.take_over(threads=number)
    over.set()
    for worker in workers:
        worker.join()
    assert not faults, (faults, place.daemon.log()[-3000:])


def test_who_has_logged_in_need_not_again(start_daemon, memcached, tmp_path):
    users = tmp_path / "users"
    users.write_text("ann:secret\n")
    place = Place(start_daemon, [memcached], tmp_path, auth_file=users)
    with place.conn() as conn, place.conn() as other:
        assert conn.cmd("set k 0 0 10", "ann secret") == b"STORED"
        assert other.cmd("mn") == b"CLIENT_ERROR unauthenticated"
        place.take_over()
        assert conn.cmd("mn") == b"MN"
        assert other.cmd("mn") == b"CLIENT_ERROR unauthenticated"


def successor(place, *args):
    """Another daemon that is to fail: (exit code, what it says)."""
    done = subprocess.run([place.daemon.path(), "-c", str(place.daemon.ini_path), *map(str, args)],
                          capture_output=True, timeout=30 * SLOW, check=False)
    return done.returncode, done.stderr.decode()


def test_one_that_cannot_start_leaves_all_as_it_was(place, tmp_path):
    with place.conn() as conn:
        text = place.daemon.ini_path.read_text()
        place.daemon.ini_path.write_text(text + "nonsense = 1\n")
        assert successor(place, "--takeover", place.admin)[0] == 78
        place.daemon.ini_path.write_text(text.replace(str(place.unix), f"{place.unix}2"))
        code, told = successor(place, "--takeover", place.admin)
        assert code == 78
        assert f"socket unix:{place.unix} is inherited, but no listen names it" in told
        place.daemon.ini_path.write_text(text)
        code, told = successor(place, "--takeover", tmp_path / "none.sock")
        assert code == 69 and "no connection: No such file" in told
        code, told = successor(place, "--takeover", place.unix)  # where clients connect
        assert code == 69 and "is that an admin listener of mclistd?" in told
        assert conn.cmd("mn") == b"MN"
        with place.conn() as new, UnixConn(place.unix) as another:
            assert new.cmd("mn") == another.cmd("mn") == b"MN"
    assert ask(place.admin, "help").startswith("OK\n")
    place.take_over()


def test_one_that_dies_in_the_middle_leaves_all_as_it_was(place):
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(place.admin))
            sock.sendall(b"takeover\n")
            assert socket.recv_fds(sock, 1000, 253)[1]
    with place.conn() as new, UnixConn(place.unix) as another:
        assert new.cmd("mn") == another.cmd("mn") == b"MN"
    assert ask(place.admin, "taken") == "ERROR expected behind takeover\n"
    place.daemon.stop()
    assert not place.unix.exists()


def test_one_that_comes_too_late(place):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(place.admin))
        sock.sendall(b"takeover\n")
        assert socket.recv_fds(sock, 1000, 253)[1]
        place.daemon.process.terminate()
        place.daemon.wait_for_log("SIGTERM: finishing")
        answer = b""
        try:
            sock.sendall(b"taken\n")
        except BrokenPipeError:
            pass  # it has ended already
        while piece := sock.recv(100):
            answer += piece
        assert answer in (b"\nERROR the proxy ends\n", b"\n")
    assert wait_for_exit(place.daemon.process, 3 * TIMEOUT_S) == 0


def test_an_embedded_memcached_stays_with_its_daemon(start_daemon, tmp_path):
    place = Place(start_daemon, [], tmp_path)
    code, told = successor(place, "--takeover", place.admin)
    assert code == 69 and "the embedded memcached would end with this process" in told


# --- sockets of the service manager ---


def test_sockets_of_the_service_manager(start_daemon, memcached, tmp_path):
    place = Place(start_daemon, [memcached], tmp_path)
    daemon = place.daemon
    daemon.stop()
    with socket.create_server((HOST, daemon.port)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(place.unix))
        unix.listen()
        # Clients may connect before there is a daemon.
        with place.conn() as early, UnixConn(place.unix) as other:
            early.send(b"mn\r\n")
            other.send(b"mn\r\n")

            def with_sockets():
                script = ('exec 3<&%d 4<&%d; LISTEN_FDS=2 LISTEN_PID=$$ exec "$0" "$@"'
                          % (tcp.fileno(), unix.fileno()))
                return ["bash", "-c", script, daemon.path(), "-c", str(daemon.ini_path)]

            for sock in (tcp, unix):
                os.set_inheritable(sock.fileno(), True)
            daemon.command = with_sockets
            start = subprocess.Popen
            subprocess.Popen = lambda *args, **kw: start(*args, close_fds=False, **kw)
            try:
                daemon.start()
            finally:
                subprocess.Popen = start
            assert early.line() == other.line() == b"MN"
        daemon.stop()
        assert place.unix.exists()  # it is the manager's
