# SPDX-License-Identifier: BSD-3-Clause
"""The configuration is read anew while clients are served: what may change takes hold at once, what may
not is named and changes nothing; and the commands of the admin listener's unix socket."""

import os
import random
import re
import signal
import socket
import threading
import time

import pytest

from harness import HOST, SLOW, TIMEOUT_S, free_port, wait_for_exit, wait_until, write_ini
from test_admin import Admin
from tls_support import make_certificate


def ask(path, line):
    """The answer to a command."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(30 * SLOW)
        sock.connect(str(path))
        sock.sendall(line.encode() + b"\n")
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    return answer.decode()


class Reloaded:
    """A daemon with a socket for commands, whose file is written anew."""

    def __init__(self, start_daemon, servers, folder, **sections):
        self.socket = folder / "admin.sock"
        sections.setdefault("admin", {})["listen"] = f"unix:{self.socket}"
        self.daemon = start_daemon(servers, config=sections)
        wait_until("the admin listener", self.listens)

    def listens(self):
        """The path is there a moment before the socket listens."""
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(str(self.socket)) == 0

    def ask(self, line):
        return ask(self.socket, line)

    def write(self, **sections):
        """The file as it was at the start, and these settings."""
        merged = {name: dict(settings) for name, settings in self.daemon.sections.items()}
        for section, settings in sections.items():
            merged.setdefault(section.replace("_", " "), {}).update(settings)
        write_ini(self.daemon.ini_path, merged)

    def reload(self, **sections):
        self.write(**sections)
        return self.ask("reload")

    def settings(self):
        with self.daemon.conn() as conn:
            return conn.stats("stats settings")


@pytest.fixture
def reloaded(start_daemon, memcached, tmp_path):
    return Reloaded(start_daemon, [memcached], tmp_path)


def test_settings_take_hold_at_once(reloaded):
    with reloaded.daemon.conn() as conn:
        assert conn.cmd("ladd fruit " + "x" * 30) == b"STORED"
        assert reloaded.reload(proxy={"max_line_bytes": "2k", "deadline_ms": 3000},
                               lists={"max_item_bytes": 20}) == "OK\n"
        assert conn.cmd("ladd fruit " + "x" * 30).startswith(b"CLIENT_ERROR")
        assert conn.cmd("ladd fruit " + "x" * 20) == b"STORED"
        stats = conn.stats()
        assert (stats["config_reloads"], stats["config_is_old"]) == ("1", "0")
        assert conn.cmd("get " + "k" * 3000).startswith(b"CLIENT_ERROR")
    if SLOW == 1:  # else it was another one before
        reloaded.daemon.wait_for_log("deadline_ms: 2000 -> 3000")


def test_idle_clients_of_before_are_closed(reloaded):
    with reloaded.daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"
        assert reloaded.reload(proxy={"idle_timeout_s": 1}) == "OK\n"
        wait_until("it is closed", conn.is_closed)
    with reloaded.daemon.conn() as conn:
        assert reloaded.reload() == "OK\n"  # and off again
        time.sleep(2.2)
        assert conn.cmd("mn") == b"MN"


def test_a_request_that_arrives_is_timed_anew(reloaded):
    with reloaded.daemon.conn() as conn:
        conn.send(b"set k 0 0 10\r\nab")
        assert reloaded.reload(proxy={"request_timeout_ms": 300}) == "OK\n"
        wait_until("it is closed", conn.is_closed)
    with reloaded.daemon.conn() as conn:
        conn.send(b"set k 0 0 10\r\nab")
        assert reloaded.reload(proxy={"request_timeout_ms": 0}) == "OK\n"
        time.sleep(0.6)
        conn.send(b"cdefghij\r\n")
        assert conn.line() == b"STORED"


def test_slow_requests_are_those_that_are_slow_now(start_daemon, slow_fake, tmp_path):
    reloaded = Reloaded(start_daemon, [slow_fake], tmp_path, proxy={"slow_ms": 0})
    assert reloaded.reload(proxy={"slow_ms": 1, "log_level": "debug"}) == "OK\n"
    with reloaded.daemon.conn() as conn:
        conn.cmd("get k")
    reloaded.daemon.wait_for_log("slow")


def test_what_needs_a_restart_is_named_and_nothing_changes(reloaded):
    before = reloaded.settings()
    answer = reloaded.reload(proxy={"threads": 5, "slow_ms": 77}, pool_main={"hash": "crc"},
                             lists_x={"ttl_s": 5})
    assert answer == ("ERROR cannot change without a restart: [proxy] threads (2 -> 5); "
                      "[pool main] hash (default -> crc); [lists x] is new\n")
    assert reloaded.settings() == before
    with reloaded.daemon.conn() as conn:
        stats = conn.stats()
    assert (stats["config_reloads"], stats["config_reload_failures"],
            stats["config_is_old"]) == ("0", "1", "1")
    reloaded.daemon.wait_for_log("error reload refused, the configuration stays as it was: cannot")


def test_a_file_that_is_wrong_changes_nothing(start_daemon, memcached, tmp_path):
    admin = Admin(start_daemon, [memcached], proxy={"slow_ms": 123})
    daemon = admin.daemon
    daemon.ini_path.write_text(daemon.ini_path.read_text().replace("slow_ms = 123", "slow_ms = <b>"))
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log(r"reload refused, .*: slow_ms: '<b>' is not a number")
    assert "slow_ms = 123" in admin.text("/config")
    assert admin.samples()["mclistd_config_is_old", ()] == 1
    page = admin.text("/")
    assert "The configuration is not that of its file" in page and "&#39;&lt;b&gt;&#39;" in page
    daemon.ini_path.unlink()
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log("reload refused, .* cannot be opened: No such file")
    write_ini(daemon.ini_path, daemon.sections)
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log("configuration read anew: 0 settings changed")
    assert admin.samples()["mclistd_config_is_old", ()] == 0
    assert "The configuration is not that of its file" not in admin.text("/")


@pytest.mark.parametrize("which", ["auth_file", "tls_cert", "tls_key", "tls_client_ca", "file"])
def test_a_pipe_is_not_waited_for(start_daemon, memcached, tmp_path, which):
    """Nobody writes to it, so opening it would wait for ever, and with it whoever asks the admin listener."""
    files = {name: tmp_path / name for name in ("auth_file", "tls_cert", "tls_key", "tls_client_ca")}
    both = make_certificate(tmp_path / "both.pem").read_text()
    for name, path in files.items():
        path.write_text("ann:one\n" if name == "auth_file" else both)
    found = Reloaded(start_daemon, [memcached], tmp_path,
                     **{"listener more": {"listen": f"{HOST}:{free_port()}", **files}})
    assert found.ask("reload") == "OK\n"
    path = files.get(which, found.daemon.ini_path)
    path.unlink()
    os.mkfifo(path)
    assert found.ask("reload").endswith(f"{path}{':' if which == 'file' else ''} cannot be opened: "
                                        "it is no regular file\n")
    path.unlink()


def test_the_embedded_memcached_stays(start_daemon, tmp_path):
    reloaded = Reloaded(start_daemon, [], tmp_path)
    with reloaded.daemon.conn() as conn:
        assert conn.cmd("ladd fruit apple") == b"STORED"
        assert reloaded.reload(proxy={"slow_ms": 5}) == "OK\n"
        assert "max_value_bytes (1048576 -> 2097152)" in reloaded.reload(
            proxy={"max_value_bytes": "2m"})
        assert "the configuration has got a pool" in reloaded.reload(
            pool_other={"servers": "127.0.0.1:1"})
        assert conn.lget("fruit") == [b"apple"]


def test_without_a_file_hup_is_for_the_log(start_daemon, memcached):
    daemon = start_daemon([memcached])
    daemon.stop()
    daemon.command = lambda: [daemon.path(), "-s", memcached.address, "-p", str(daemon.port)]
    daemon.start()
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_log("log opened anew")
    with daemon.conn() as conn:
        assert conn.stats()["config_reloads"] == "0"


def test_reloads_under_load(start_daemon, start_memcached, tmp_path):
    """Files that are whole, broken, or change what may not: no request fails, each answer is right, and
    what is in force is always one of the whole files."""
    reloaded = Reloaded(start_daemon, [start_memcached(), start_memcached()], tmp_path)
    rng, over, faults = random.Random(7), threading.Event(), []

    def work(name):
        n = 0
        try:
            with reloaded.daemon.conn() as conn:
                while not over.is_set() or n < 10:
                    assert conn.set(name, str(n)) == b"STORED"
                    assert conn.cmd(f"ladd list-{name} {n % 50}") in (b"STORED", b"EXISTS")
                    assert conn.get(name) == str(n).encode()
                    assert conn.lget(f"list-{name}")[-1:] == [str(min(n, 49)).encode()]
                    n += 1
        except Exception as fault:  # pylint: disable=broad-except
            faults.append((name, n, repr(fault)))

    workers = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(6)]
    for worker in workers:
        worker.start()
    last, count = None, int(200 / SLOW)
    for turn in range(count):
        kind = rng.choice(("whole", "whole", "broken", "fixed"))
        level = 100 + turn
        settings = {"slow_ms": level, "max_pipeline": rng.randint(1, 300),
                    "client_output_bytes": rng.randint(4096, 1 << 20),
                    "idle_timeout_s": rng.choice((0, 100)), "deadline_ms": rng.randint(5000, 9000),
                    "request_timeout_ms": rng.choice((0, 20000)),
                    "memory_limit_bytes": rng.choice(("256m", "512m"))}
        lists = {"max_item_bytes": 100, "log_limit_bytes": rng.randint(256, 4000), "cache_bytes": "256m",
                 "sublist_limit_bytes": rng.randint(4096, 100000),
                 "touch_interval_s": rng.randint(0, 60)}
        if kind == "fixed":
            settings["threads"] = 3
        if kind == "broken":
            lists["log_limit_bytes"] = -1
        answer = reloaded.reload(proxy=settings, pool_main={"timeout_ms": rng.randint(3000, 4000)},
                                 lists=lists)
        assert answer.startswith("OK\n" if kind == "whole" else "ERROR "), answer
        last = level if kind == "whole" else last
        assert not faults, faults
    assert reloaded.settings()["proxy:slow_ms"] == str(last)
    over.set()
    for worker in workers:
        worker.join()
    assert not faults, faults


# --- commands ---


def test_commands_are_told(reloaded):
    answer = reloaded.ask("help")
    assert answer.startswith("OK\n") and "reload" in answer and "kill" in answer
    for line in ("", " ", "RELOAD", "reloads", "GET /", "x" * 5000):
        assert reloaded.ask(line) == "ERROR no such command; help shows them\n"


@pytest.mark.parametrize("line", ["reload now", "clients all", "log debug info", "kill 1 2"])
def test_no_word_of_a_command_is_passed_over(reloaded, line):
    with reloaded.daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"
        assert reloaded.ask(line).startswith(f"ERROR usage: {line.split()[0]}")
        assert conn.stats()["config_reloads"] == "0"


def test_blanks_around_words_do_not_matter(reloaded, memcached):
    for line in (f" drain  {memcached.address} ", f"undrain {memcached.address}  ", " log  info ", "where  k "):
        assert reloaded.ask(line).startswith("OK\n")


def test_log_level_until_the_next_reload(reloaded):
    assert reloaded.ask("log debug") == "OK\n"
    reloaded.daemon.wait_for_log("log level debug, by a command")
    assert reloaded.ask("log all").startswith("ERROR usage: log ")
    assert reloaded.ask("log error") == "OK\n"
    assert reloaded.reload() == "OK\n"
    reloaded.daemon.wait_for_log("configuration read anew")


def test_clients_are_told_and_closed(reloaded):
    with reloaded.daemon.conn() as one, reloaded.daemon.conn() as other:
        assert one.cmd("mn") == other.cmd("mn") == b"MN"
        rows = reloaded.ask("clients").splitlines()
        assert rows[0] == "OK" and len(rows) == 3
        peers = {re.search(r"peer=(.*)", row)[1]: re.search(r"id=(\d+)", row)[1] for row in rows[1:]}
        own = "%s port %d" % one.socket.getsockname()
        assert reloaded.ask(f"kill {peers[own]}") == "OK\n"
        wait_until("it is closed", one.is_closed)
        assert other.cmd("mn") == b"MN"
        assert reloaded.ask(f"kill {peers[own]}") == "ERROR no client has that ID; `clients` shows them\n"
        assert reloaded.ask("kill one").startswith("ERROR usage: kill ID")


def test_tcp_takes_no_commands(start_daemon, memcached):
    admin = Admin(start_daemon, [memcached])
    assert admin.raw(b"reload\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert admin.raw(b"POST /reload HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405 ")
    assert admin.status_of("/reload") == 404
    with admin.daemon.conn() as conn:
        assert conn.stats()["config_reloads"] == "0"


def test_no_reload_while_it_ends(start_daemon, slow_fake, tmp_path):
    reloaded = Reloaded(start_daemon, [slow_fake], tmp_path)
    with reloaded.daemon.conn() as conn:
        conn.send(b"get k\r\n")
        wait_until("it is sent", lambda: b" k" in slow_fake.all_received())
        reloaded.daemon.signal(signal.SIGTERM)
        reloaded.daemon.wait_for_log("SIGTERM: finishing")
        assert reloaded.ask("reload") == "ERROR the proxy ends\n"
        reloaded.daemon.signal(signal.SIGHUP)
        assert wait_for_exit(reloaded.daemon.process, 3 * TIMEOUT_S) == 0


def test_who_may_log_in_is_read_anew(reloaded, tmp_path):
    users = tmp_path / "users"
    users.write_text("ann:one\n")

    def log_in(password):
        return conn.cmd("set k 0 0 7", f"ann {password}")

    with reloaded.daemon.conn() as early, reloaded.daemon.conn() as waits:
        assert early.cmd("mn") == waits.cmd("mn") == b"MN"
        assert reloaded.reload(proxy={"auth_file": users}) == "OK\n"
        with reloaded.daemon.conn() as conn:
            assert conn.cmd("mn") == b"CLIENT_ERROR unauthenticated"
            users.write_text("ann:two\n")
            reloaded.daemon.signal(signal.SIGHUP)
            wait_until("it is read", lambda: early.stats()["config_reloads"] == "2")
            assert log_in("one") == b"CLIENT_ERROR authentication failure"
            assert log_in("two") == b"STORED"
            assert conn.cmd("mn") == b"MN"
        with reloaded.daemon.conn() as conn:
            assert conn.cmd("mn") == b"CLIENT_ERROR unauthenticated"
            assert reloaded.reload() == "OK\n"  # it needs to log in no more
            assert conn.cmd("mn") == b"MN"
