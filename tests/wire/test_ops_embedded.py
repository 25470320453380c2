# SPDX-License-Identifier: BSD-3-Clause
"""Without a pool the daemon starts a memcached of its own, watches it, and takes it along when it
ends itself."""

import os
import pathlib
import re
import shutil
import signal

import pytest

from harness import is_alive, pause_process, wait_for_exit, wait_until
from test_backend_support import run_to_the_end

EX_UNAVAILABLE = 69
MEMCACHED = os.environ.get("MEMCACHED", "memcached")


def child_of(daemon):
    """Number of the last memcached that was started, and the path of its socket."""
    path = wait_until("it is logged", lambda: re.search(r"at unix:(\S+) \(process", daemon.log()))
    starts = re.findall(r"memcached.*\(process (\d+)\)", daemon.log())
    return int(starts[-1]), pathlib.Path(path.group(1))


@pytest.fixture
def start_alone(start_daemon):
    """A function that starts a daemon without a pool."""

    def start(**proxy):
        settings = {"embedded_memory_mb": 64, "embedded_memcached": MEMCACHED, **proxy}
        return start_daemon(config={"proxy": settings})

    return start


@pytest.fixture
def alone(start_alone):
    return start_alone()


def test_it_starts_and_serves(alone):
    pid, path = child_of(alone)
    assert is_alive(pid)
    assert path.is_socket()
    alone.wait_for_log("no pool is configured: .* are lost when this daemon ends")
    # No other user can look into it.
    assert path.parent.stat().st_mode & 0o077 == 0
    with alone.conn() as conn:
        assert conn.set("key", "x" * 1000) == b"STORED"
        assert conn.get("key") == b"x" * 1000
        assert conn.cmd("ladd list item") == b"STORED"
        assert conn.lget("list") == [b"item"]
        assert any(name.startswith("backend:unix:") for name in conn.stats("stats backends"))


def test_flush_all_is_allowed_unless_forbidden(start_alone):
    for setting, answer in (("embedded", b"OK"), ("yes", b"OK"), ("no", b"CLIENT_ERROR")):
        with start_alone(allow_flush_all=setting).conn() as conn:
            assert conn.set("key", "x") == b"STORED"
            assert conn.cmd("flush_all").startswith(answer)
            assert conn.get("key") == (b"x" if setting == "no" else None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_the_daemon(alone, number):
    pid, path = child_of(alone)
    alone.signal(number)
    assert wait_for_exit(alone.process) == 0
    assert not is_alive(pid)
    assert not path.parent.exists()


def test_it_ends_with_a_killed_daemon(alone):
    pid, _ = child_of(alone)
    alone.kill()
    wait_until("memcached is gone", lambda: not is_alive(pid))


def test_a_daemon_started_after_a_killed_one_serves(alone):
    alone.kill()
    alone.start()
    with alone.conn() as conn:
        assert conn.get("key") is None
        assert conn.set("key", "x") == b"STORED"


def test_it_is_started_again_when_it_is_killed(alone):
    with alone.conn() as conn:
        for _ in range(2):
            pid, path = child_of(alone)
            assert conn.set("key", "x") == b"STORED"
            os.kill(pid, signal.SIGKILL)
            wait_until("it is gone", lambda pid=pid: not is_alive(pid))
            # Every request is answered meanwhile.
            seen = set()

            def stored():
                line = conn.set("key", "x")
                seen.add(line)
                return line == b"STORED"

            wait_until("it works again", stored)
            assert all(
                line == b"STORED" or line.startswith(b"SERVER_ERROR backend unix:") for line in seen
            )
            assert child_of(alone) != (pid, path)
            assert child_of(alone)[1] == path
    alone.wait_for_log(r"warn .*memcached ended \(signal 9\).* are gone")
    alone.wait_for_log("runs again")


def test_it_is_started_again_when_its_directory_is_gone(alone):
    with alone.conn() as conn:
        pid, path = child_of(alone)
        shutil.rmtree(path.parent)
        os.kill(pid, signal.SIGKILL)
        wait_until("it works again", lambda: conn.set("key", "x") == b"STORED")
        assert path.is_socket()
        assert path.parent.stat().st_mode & 0o777 == 0o700
    alone.stop()
    assert not path.parent.exists()


def test_errors_name_it_while_it_is_stopped(start_daemon):
    daemon = start_daemon(
        config={"proxy": {"embedded_memory_mb": 64, "embedded_memcached": MEMCACHED, "threads": 1}}
    )
    pid, path = child_of(daemon)
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        pause_process(pid)
        try:
            assert conn.cmd("get key").startswith(f"SERVER_ERROR backend unix:{path}".encode())
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until("it works again", lambda: conn.set("key", "y") == b"STORED")
        assert conn.get("key") == b"y"


def test_values_larger_than_a_megabyte(start_alone):
    daemon = start_alone(max_value_bytes="2m")
    with daemon.conn() as conn:
        value = b"x" * (2 * 1024 * 1024 - 1024)
        assert conn.set("key", value) == b"STORED"
        assert conn.get("key") == value


def test_two_daemons_have_one_each(start_alone):
    first, second = start_alone(), start_alone()
    with first.conn() as one, second.conn() as two:
        assert one.set("key", "x") == b"STORED"
        assert two.get("key") is None
    assert child_of(first) != child_of(second)


def start_in_vain(start_daemon, start_memcached, program, env=None):
    daemon = start_daemon([start_memcached()], env=env)
    daemon.stop()
    del daemon.sections["pool main"]
    daemon.sections["proxy"]["embedded_memcached"] = program
    code, text = run_to_the_end(daemon)
    return code, text.splitlines()


@pytest.mark.parametrize("program", ["/nonexistent", "no-such-memcached", "/etc/passwd", "/etc"])
def test_no_memcached(start_daemon, start_memcached, program):
    code, lines = start_in_vain(start_daemon, start_memcached, program)
    assert code == EX_UNAVAILABLE
    assert len(lines) == 1
    assert f"{program} not found: install the Debian package memcached or configure a pool" in lines[0]


def test_no_memcached_in_the_path(start_daemon, start_memcached, tmp_path):
    (tmp_path / "empty").mkdir()
    env = {"PATH": str(tmp_path / "empty")}
    if os.environ.get("MCLISTD_RUNNER"):
        pytest.skip("the runner itself is looked for in PATH")
    code, lines = start_in_vain(start_daemon, start_memcached, "memcached", env)
    assert code == EX_UNAVAILABLE
    assert len(lines) == 1
    assert "memcached not found: install the Debian package memcached" in lines[0]


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 3\n", "#!/nonexistent\n"])
def test_a_memcached_that_does_not_run(start_daemon, start_memcached, tmp_path, script):
    program = tmp_path / "memcached"
    program.write_text(script)
    program.chmod(0o755)
    code, lines = start_in_vain(start_daemon, start_memcached, str(program))
    assert code == EX_UNAVAILABLE
    assert str(program) in lines[-1]
