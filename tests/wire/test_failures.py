# SPDX-License-Identifier: BSD-3-Clause
"""What the runbook of docs/operations.md has a paragraph on: each failure is staged, and must be
named in the log, in stats, in the metrics and on the status page."""

import re

import pytest

from harness import SLOW, in_threads, wait_until
from test_admin import Admin
from test_backend_support import FAST


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
