# SPDX-License-Identifier: BSD-3-Clause
"""The live view of scripts/cli."""

import subprocess
import sys
import termios

import pytest

from harness import ROOT, TIMEOUT_S, free_port
from test_cli_support import CLI, Terminal

pytestmark = pytest.mark.release

sys.path.insert(0, str(ROOT / "scripts"))

from mclistd_cli import top  # noqa: E402  (the path comes first)


def run(*arguments):
    done = subprocess.run([CLI, *arguments], capture_output=True, timeout=6 * TIMEOUT_S)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def on_terminal(tmp_path):
    started = []

    def start(*arguments, **size):
        env = {"XDG_STATE_HOME": str(tmp_path), "NO_COLOR": "1"}
        started.append(Terminal([CLI, *arguments], env, **size))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


class Fake:
    """What a proxy says to `stats` and its groups."""

    def __init__(self, requests=0, servers=1, time_s=0.0, trouble="none", key="fruit", buckets=None):
        self.groups = {
            b"": {"version": "1.6.0-mclistd-0.1.0", "uptime": "90061", "curr_connections": "7",
                  **{name: str(requests) for name in top.CLASSES}, "memory_bytes": "5242880"},
            b"latency buckets": {f"{name}:{limit}_us": str(count) for name in top.CLASSES
                                 for limit, count in (buckets or {}).items()},
            b"hot": {f"{key}{number}": "1.5%" for number in range(20)},
            b"clients": {str(number): "unread_ms 900 share 10.0% unread_bytes 1048576 connections 1 "
                                      f"closed 0 client 10.0.0.1 port {number}" for number in range(9)},
            b"backends": {f"backend:10.0.0.{number}:11211:{field}": value for number in range(servers)
                          for field, value in [("state", "up"), ("requests", str(requests * number)),
                                               ("trouble", trouble if number == 3 else "none")]},
        }
        self.time_s = time_s

    def stats(self, name=b""):
        return self.groups[name]

    def sample(self):
        sample = top.Sample(self)
        sample.time_s = self.time_s
        return sample


def frame(before, now, columns=80, rows=24):
    lines = top.Frame("here:11220", before.sample(), now.sample(), columns, rows).lines
    assert len(lines) < rows and max(len(text) for _, text in lines) <= columns
    return [text for _, text in lines]


def test_rates_are_those_between_two_samples():
    lines = frame(Fake(100), Fake(300, time_s=2.0))
    assert lines[0].startswith("mclistd 0.1.0 at here:11220, up 1 d 01:01:01, clients 7")
    assert lines[1].startswith("800 requests/s")
    assert "memory 5.0 MB" in lines[2]
    row = next(line for line in lines if line.startswith("list_tx")).split()
    assert row == "list_tx 100 - - -".split()
    assert frame(Fake(300), Fake(0, time_s=1.0))[1].startswith("0 requests/s")  # `stats reset`


@pytest.mark.parametrize("before, now, times", [
    ({}, {}, "- - -"),
    ({9: 5}, {9: 5}, "- - -"),
    ({9: 1000}, {9: 1001}, "9 9 9"),
    # What was slow before does not show any more.
    ({12345678: 1000}, {12345678: 1000, 9: 50, 99: 49, 999: 1}, "9 99 999"),
    ({9: 50}, {9: 51, 12345678: 1}, "9 12M 12M"),
    ({9: 1000}, {99: 1}, "99 99 99"),  # `stats reset`
])
def test_times_are_those_of_the_last_seconds(before, now, times):
    lines = frame(Fake(1, buckets=before), Fake(2, time_s=10.0, buckets=now))
    assert next(line for line in lines if line.startswith("class")).endswith("of the last 10 s")
    assert next(line for line in lines if line.startswith("list_tx")).split()[2:] == times.split()


@pytest.mark.parametrize("servers", [0, 1, 5, 300])
@pytest.mark.parametrize("columns, rows", [(80, 24), (200, 60), (40, 10), (10, 3)])
def test_it_fits(servers, columns, rows):
    lines = frame(Fake(1, servers), Fake(2, servers, 1.0), columns, rows)
    if (columns, rows) == (80, 24):
        text = "\n".join(lines)
        assert "fruit0" in text and "900 ms 1.0 MB 10.0.0.1 port 0" in text
        assert ("10.0.0.0:11211" in text or "... and 29" in text) == (servers > 0)


def test_a_server_in_trouble_stands_first():
    lines = frame(Fake(1, 300), Fake(2, 300, 1.0, trouble="slow: half of its answers take 9 s"))
    at = next(number for number, line in enumerate(lines) if line.startswith("server"))
    assert lines[at + 1].startswith("10.0.0.3:11211") and "slow: half" in lines[at + 1]
    assert lines[at + 2].startswith("10.0.0.299:11211")


def test_nothing_that_a_terminal_obeys_comes_through():
    text = "".join(frame(Fake(1), Fake(1, key="\x1b[31m\x9b")))
    assert "\x1b" not in text and "\x9b" not in text and "?[31m?0" in text


def test_once(daemon):
    with daemon.conn() as conn:
        assert conn.cmd("ladd fruit apple") == b"STORED"
    code, text, error = run(f"127.0.0.1:{daemon.port}", "top", "--once")
    assert (code, error) == (0, "")
    assert text.startswith("mclistd ") and "\nlist_write " in text and "\x1b" not in text


@pytest.mark.thorough
def test_what_it_does_not_do(daemon, memcached):
    assert run(f"127.0.0.1:{daemon.port}", "top") == (
        2, "", "the live view needs a terminal; top --once prints one frame\n")  # fmt: skip
    assert run(f"127.0.0.1:{daemon.port}", "top", "--nix") == (2, "", "usage: top [--once]\n")
    assert run(f"127.0.0.1:{memcached.port}", "top", "--once")[::2] == (
        2, f"127.0.0.1:{memcached.port} is no mclistd\n")  # fmt: skip
    assert run(f"127.0.0.1:{free_port()}", "top", "--once")[0] == 3


@pytest.mark.parametrize("keys", ["q", "\x03", "\x04"])
def test_on_a_terminal(daemon, on_terminal, keys):
    terminal = on_terminal(f"127.0.0.1:{daemon.port}", "top", columns=80, rows=24)
    before = termios.tcgetattr(terminal.master)
    for _ in range(2):
        terminal.wait_for("mclistd ")
        terminal.wait_for("q ends")
    terminal.type(keys)
    assert terminal.wait_for_end() == 0
    assert terminal.raw.endswith(top.HIDE.encode()) or b"\x1b[?1049l" in terminal.raw
    assert termios.tcgetattr(terminal.master)[3] & termios.ECHO == before[3] & termios.ECHO


def test_at_a_prompt_and_back(daemon, on_terminal):
    terminal = on_terminal(f"127.0.0.1:{daemon.port}")
    terminal.wait_for(f"{daemon.port}>")
    terminal.enter("top")
    terminal.wait_for("q ends")
    terminal.type("q")
    terminal.wait_for(f"{daemon.port}>")
    terminal.enter("ladd fruit apple")
    terminal.wait_for("STORED")
    terminal.enter("quit")
    assert terminal.wait_for_end() == 0


@pytest.mark.thorough
def test_a_proxy_that_is_gone_and_back(daemon, on_terminal):
    terminal = on_terminal(f"127.0.0.1:{daemon.port}", "top")
    terminal.wait_for("q ends")
    daemon.stop()
    terminal.wait_for("does not answer")
    daemon.start()
    terminal.wait_for("clients 1")
    terminal.type("q")
    assert terminal.wait_for_end() == 0
