# SPDX-License-Identifier: BSD-3-Clause
"""A daemon takes the place of another one: no client is refused, none loses an answer, and those that are
connected stay so. And sockets that the service manager has opened."""

import os
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from harness import (HOST, ROOT, SLOW, TIMEOUT_S, Conn, UnixConn, free_port, pause_process, wait_for_exit,
                     wait_until, write_ini)
from test_reload import ask


class Place:
    """A daemon with a unix socket for clients and one for commands, which others take over."""

    def __init__(self, start_daemon, servers, folder, **proxy):
        self.admin, self.unix = folder / "admin.sock", folder / "clients.sock"
        self.daemon = start_daemon(servers, config={
            "proxy": proxy, "listener local": {"listen": f"unix:{self.unix}"},
            "admin": {"listen": [f"unix:{self.admin}", f"{HOST}:{free_port()}"]}})
        self.daemon.wait_for_log("metrics and status page: ")

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


def test_clients_of_a_listener_that_is_gone_are_closed(start_daemon, memcached, tmp_path):
    """They were taken for those of [proxy], and needed no login there."""
    users = tmp_path / "users"
    users.write_text("ann:secret\n")
    place = Place(start_daemon, [memcached], tmp_path)
    place.daemon.sections["listener local"]["auth_file"] = users
    place.daemon.stop()
    place.daemon.start()
    with UnixConn(place.unix) as known, UnixConn(place.unix) as stranger, place.conn() as other:
        assert known.cmd("set k 0 0 10", "ann secret") == b"STORED"
        assert stranger.cmd("mn") == b"CLIENT_ERROR unauthenticated"
        assert other.cmd("mn") == b"MN"
        place.daemon.sections["listener world"] = place.daemon.sections.pop("listener local")
        place.take_over()
        assert known.is_closed() and stranger.is_closed()
        assert other.cmd("mn") == b"MN"
    with UnixConn(place.unix) as new:
        assert new.cmd("mn") == b"CLIENT_ERROR unauthenticated"


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
            while piece := sock.recv(100):
                answer += piece
        except (BrokenPipeError, ConnectionResetError):
            answer = answer or b"\n"  # it has ended already
        assert answer in (b"\nERROR the proxy ends\n", b"\n")
    assert wait_for_exit(place.daemon.process, 3 * TIMEOUT_S) == 0


def test_an_embedded_memcached_stays_with_its_daemon(start_daemon, tmp_path):
    place = Place(start_daemon, [], tmp_path)
    code, told = successor(place, "--takeover", place.admin)
    assert code == 69 and "the embedded memcached would end with this process" in told


# --- the other daemon is this test ---


class Older:
    """What a daemon takes over: one listening socket on its port, and clients of it."""

    def __init__(self, folder):
        self.listening = socket.create_server((HOST, free_port()), backlog=50)
        self.port = self.listening.getsockname()[1]
        self.before = socket.create_server((HOST, free_port()))  # where its clients have connected
        self.admin = folder / "older.sock"
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.admin))
        self.server.listen()
        self.server.settimeout(TIMEOUT_S)
        self.peer = None

    def hand_over(self):
        """Its socket; returns when the newer one has started."""
        self.peer = self.server.accept()[0]
        self.peer.settimeout(TIMEOUT_S)
        assert self.peer.recv(100) == b"takeover\n"
        socket.send_fds(self.peer, [b"o"], [self.listening.fileno()])
        self.peer.sendall(b"\n")
        assert self.peer.recv(100) == b"taken\n"

    def client(self, text="open  0\n"):
        """A connection to it, its other end handed over."""
        conn = Conn(self.before.getsockname()[1])
        with self.before.accept()[0] as other:
            socket.send_fds(self.peer, [text.encode()], [other.fileno()])
        return conn

    def close(self):
        for sock in (self.listening, self.before, self.server, self.peer):
            if sock:
                sock.close()


@pytest.fixture
def older(tmp_path):
    older = Older(tmp_path)
    yield older
    older.close()


@pytest.fixture
def newer(older, memcached, tmp_path):
    """A function that starts a process with that configuration which takes over from older."""
    started = []

    def start(sections=None, **proxy):
        ini = write_ini(tmp_path / "newer.ini", {
            "proxy": {"listen": f"{HOST}:{older.port}", "threads": 2, **proxy},
            "pool main": {"servers": memcached.address, "gate_s": 0}, **(sections or {})})
        with open(tmp_path / "newer.log", "ab") as log:
            started.append(subprocess.Popen(
                [os.environ.get("MCLISTD", str(ROOT / "build/mclistd")), "-c", str(ini), "--takeover",
                 str(older.admin)], stdout=log, stderr=log))
        older.hand_over()
        return started[-1]
    yield start
    if older.peer:
        older.peer.close()
    for process in started:
        if process.poll() is None:
            process.terminate()
            assert wait_for_exit(process, 3 * TIMEOUT_S) == 0, (tmp_path / "newer.log").read_text()[-3000:]


def test_no_client_is_accepted_by_one_that_is_not_to_serve(older, newer):
    process = newer()
    with Conn(older.port) as conn:
        conn.send(b"mn\r\n")
        assert conn.is_silent(0.2)
        older.peer.sendall(b"ERROR another one was faster\n")
        assert wait_for_exit(process) == 69
        with older.listening.accept()[0] as other:  # it is the older one's still
            assert other.recv(100) == b"mn\r\n"


def test_a_client_without_a_descriptor_takes_no_other_along(older, newer, tmp_path):
    newer()
    older.peer.sendall(b"OK\n")
    with older.client() as conn:
        assert conn.cmd("mn") == b"MN"
        older.peer.sendall(b"open  4\nmn\r\n")  # its socket did not fit
        time.sleep(0.05)
        with older.client("open  4\nmn\r\n") as other:
            assert other.line() == b"MN" and conn.cmd("mn") == b"MN"
    assert "there is no descriptor" in (tmp_path / "newer.log").read_text()


def test_more_clients_than_places(older, newer):
    newer(max_connections=4, reserved_connections=2)
    older.peer.sendall(b"OK\n")
    conns = []
    for _ in range(4):
        conns.append(older.client())
        assert conns[-1].cmd("set k 0 0 1", "v") == b"STORED"
    for _ in range(6):  # these only ask for stats; the oldest ones make room
        conns.append(older.client())
        assert conns[-1].cmd("mn") == b"MN"
    assert conns[-1].cmd("set k 0 0 1", "v") == b"ERROR Too many open connections"
    for conn in conns:
        conn.close()
    with Conn(older.port) as conn:
        wait_until("all are gone", lambda: conn.stats()["curr_connections"] == "1")
        assert conn.cmd("set k 0 0 1", "w") == b"STORED"  # and their places are free


def test_verbs_that_are_denied_stay_so(older, newer):
    newer(deny_verbs="flush_all", allow_flush_all=True)
    older.peer.sendall(b"OK\n")
    with older.client() as conn:
        assert conn.cmd("flush_all") == b"CLIENT_ERROR flush_all is not allowed here (deny_verbs)"


def take(admin):
    """As a newer daemon, which has got the sockets."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(TIMEOUT_S)
    sock.connect(str(admin))
    sock.sendall(b"takeover\n")
    text, fds, _, _ = socket.recv_fds(sock, 1000, 253)
    while not text.endswith(b"\n"):
        text += sock.recv(1)
    return sock, fds


def close_all(descriptors):
    for fd in descriptors:
        os.close(fd)


def test_one_that_has_given_up_takes_no_place(place):
    sock, fds = take(place.admin)
    pause_process(place.daemon.process.pid)
    sock.sendall(b"taken\n")
    sock.close()
    close_all(fds)
    place.daemon.process.send_signal(signal.SIGCONT)
    place.daemon.wait_for_log("does not take this one's place")
    with place.conn() as conn:
        assert conn.cmd("ladd fruit apple") == b"STORED"
    place.take_over()


def test_of_two_at_once_one_takes_the_place(place):
    both = [take(place.admin) for _ in range(2)]
    with place.conn() as conn:
        conn.send(b"set large 0 0 100000\r\n", b"x" * 50000)
        wait_until("it is read", lambda: int(conn_stats(place)["bytes_read"]) > 50000)
        pause_process(place.daemon.process.pid)
        for sock, _ in both:
            sock.sendall(b"taken\n")
        place.daemon.process.send_signal(signal.SIGCONT)
        answers = [sock.recv(100) for sock, _ in both]
        assert b"OK\n" in answers and answers[0] != answers[1]
        conn.send(b"x" * 50000, b"\r\n")  # it is not ended by the other's coming
        assert conn.line() == b"STORED"
    for sock, fds in both:
        sock.close()
        close_all(fds)
    assert wait_for_exit(place.daemon.process, 3 * TIMEOUT_S) == 0


def test_one_that_is_slow_gets_all_clients(start_daemon, memcached, tmp_path):
    place = Place(start_daemon, [memcached], tmp_path, drain_timeout_ms=60000)
    count = 700  # more than a socket takes at once
    sock, fds = take(place.admin)
    conns = [place.conn() for _ in range(count)]
    wait_until("all are there", lambda: int(conn_stats(place)["curr_connections"]) > count)
    sock.sendall(b"taken\n")
    assert sock.recv(3) == b"OK\n"
    time.sleep(0.5)
    got = 0
    while got < count:
        text, moved, _, _ = socket.recv_fds(sock, 1000, 253)
        assert text == b"open-new  0\n"
        got += len(moved)
        close_all(moved)
    close_all(fds)
    sock.close()
    for conn in conns:
        conn.close()
    assert wait_for_exit(place.daemon.process, 3 * TIMEOUT_S) == 0


def expect_client(sock, text):
    got, moved, _, _ = socket.recv_fds(sock, 1000, 253)
    assert got == text and len(moved) == 1
    return moved


def test_the_next_one_comes_while_clients_still_come(older, newer, tmp_path):
    admin = tmp_path / "admin.sock"
    process = newer({"admin": {"listen": f"unix:{admin}"}})
    older.peer.sendall(b"OK\n")
    with older.client() as first:
        assert first.cmd("mn") == b"MN"
        sock, fds = take(admin)
        with sock:
            sock.sendall(b"taken\n")
            assert sock.recv(3) == b"OK\n"
            fds += expect_client(sock, b"open  0\n")
            with older.client("open  4\nget "):
                fds += expect_client(sock, b"open  4\nget ")
            older.peer.close()
            assert wait_for_exit(process, 3 * TIMEOUT_S) == 0
            close_all(fds)
# --- the service manager ---


def test_the_service_manager_hears_of_the_newer_one(start_daemon, memcached, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{tmp_path}/notify")
        manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        manager.settimeout(TIMEOUT_S)

        def heard():
            """(process, text)"""
            text, control, _, _ = manager.recvmsg(1000, 100)
            return struct.unpack("iii", control[0][2])[0], text.decode()

        admin = tmp_path / "admin.sock"
        daemon = start_daemon([memcached], config={"admin": {"listen": f"unix:{admin}"}},
                              env={"NOTIFY_SOCKET": f"{tmp_path}/notify", "WATCHDOG_USEC": "200000"})
        before = daemon.process
        assert heard() == (before.pid, "READY=1")
        assert [heard() for _ in range(3)] == [(before.pid, "WATCHDOG=1")] * 3
        del daemon.env["NOTIFY_SOCKET"], daemon.env["WATCHDOG_USEC"]
        daemon.args = ["--takeover", admin]
        daemon.start()
        own = daemon.process.pid
        texts = [heard()]
        while texts[-1] != (own, "WATCHDOG=1"):
            texts.append(heard())
        assert (before.pid, f"MAINPID={own}") in texts and (own, "READY=1") in texts
        assert (before.pid, "STOPPING=1") not in texts
        assert wait_for_exit(before, 3 * TIMEOUT_S) == 0
        daemon.stop()
        while texts[-1] != (own, "STOPPING=1"):
            texts.append(heard())


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
