# SPDX-License-Identifier: BSD-3-Clause
"""The commands `drain` and `undrain`: an operator takes a server out of use and back into it."""

import subprocess

import pytest

from couchbase_support import Cluster, sections
from harness import HOST, free_port, wait_until
from test_admin import Admin
from test_backend_real import KEYS, owners
from test_backend_support import FAST
from test_cli_support import CLI
from test_reload import Reloaded, ask


def refused(server):
    return f"SERVER_ERROR backend {server.address} down: drained by an operator, not sent".encode()


def stats_of(conn, server):
    prefix = f"backend:{server.address}:"
    found = conn.stats("stats backends")
    return {name[len(prefix):]: value for name, value in found.items() if name.startswith(prefix)}


def connections(server):
    """How many the server has, but for that of the question."""
    with server.conn() as conn:
        return int(conn.stats()["curr_connections"]) - 1


def keys_by_server(found, memcacheds):
    """Of each server, those of KEYS that it has."""
    owner = owners(found.daemon, memcacheds)
    return [[key for key in KEYS if owner[key] is server] for server in memcacheds]


def lists_of(daemon, server):
    """Some lists whose head is on that server."""
    with daemon.conn() as conn:
        found = conn.stats("stats where main - " + " ".join(f"l{n}#" for n in range(40)))
    return [key.removesuffix("#") for key, name in found.items() if name == server.address][:5]


@pytest.fixture
def operated(start_daemon, memcacheds, tmp_path):
    def start(**sections):
        main = {**FAST, "timeout_ms": 2000, **sections.pop("main", {})}
        return Reloaded(start_daemon, memcacheds, tmp_path, **{"pool main": main, **sections})
    return start


@pytest.mark.memcacheds(2)
def test_a_server_is_stopped_and_comes_back_empty(operated, memcacheds):
    found = operated(proxy={"threads": 3})
    gone, other = memcacheds
    mine, theirs = keys_by_server(found, memcacheds)
    [name, *_] = lists_of(found.daemon, gone)
    address = gone.address
    assert found.ask(f"drain {address}") == f"OK\nserver={address} pool=main state=drained pending=0\n"
    found.daemon.wait_for_log(f"warn  backend {address}: drained by a command: it gets no more requests")
    with found.daemon.conn() as conn:
        assert conn.cmd(f"get {mine[0]}") == refused(gone)
        assert conn.set(mine[1], "x") == refused(gone)
        assert conn.cmd(f"ladd {name} a") == conn.cmd(f"lget {name}") == refused(gone)
        assert [conn.get(key) for key in theirs] == [key.encode() for key in theirs]
        seen = stats_of(conn, gone)
        assert seen["state"] == "drained" and seen["trouble"].startswith("drained by an operator since ")
        assert int(conn.stats("stats reasons")["ended:drained"]) == 4
        assert stats_of(conn, other)["trouble"] == "none"
    wait_until("it has no connections", lambda: connections(gone) == 0)
    # A command that is repeated, a reload and the server's restart change nothing.
    assert found.ask(f"drain {address}").startswith("OK\n") and found.ask("reload") == "OK\n"
    gone.restart()
    with found.daemon.conn() as conn:
        assert conn.cmd(f"get {mine[0]}") == refused(gone)
        wait_until("it has no connections", lambda: connections(gone) == 0)
        assert found.ask(f"undrain {address}").startswith(f"OK\nserver={address} pool=main state=")
        wait_until("it is used again", lambda: stats_of(conn, gone)["state"] == "up")
        assert conn.get(mine[0]) is None and conn.set(mine[1], "x") == b"STORED"
        assert conn.cmd(f"ladd {name} a") == b"STORED"
        assert stats_of(conn, gone)["trouble"] == "none"
    assert "connection lost" not in found.daemon.log()


@pytest.mark.memcacheds(2)
def test_what_is_under_way_is_answered(operated, memcacheds):
    found = operated(proxy={"threads": 1})
    gone = memcacheds[0]
    mine, _ = keys_by_server(found, memcacheds)
    gone.pause()
    with found.daemon.conn() as one, found.daemon.conn() as two:
        one.send(f"set {mine[0]} 0 0 1\r\nx\r\n")
        wait_until("it is sent", lambda: stats_of(two, gone)["pending"] == "1")
        assert "state=draining pending=1\n" in found.ask(f"drain {gone.address}")
        assert two.cmd(f"get {mine[1]}") == refused(gone)
        gone.resume()
        assert one.line() == b"STORED"
        wait_until("it is over", lambda: stats_of(two, gone)["state"] == "drained")
    wait_until("it has no connections", lambda: connections(gone) == 0)


@pytest.mark.memcacheds(2)
def test_a_drain_is_taken_back_before_it_is_over(operated, memcacheds):
    found = operated(proxy={"threads": 1})
    gone = memcacheds[0]
    mine, _ = keys_by_server(found, memcacheds)
    gone.pause()
    with found.daemon.conn() as one, found.daemon.conn() as two:
        one.send(f"get {mine[0]}\r\n")
        wait_until("it is sent", lambda: stats_of(two, gone)["pending"] == "1")
        assert "state=draining" in found.ask(f"drain {gone.address}")
        assert "state=up pending=1\n" in found.ask(f"undrain {gone.address}")
        two.send(f"get {mine[1]}\r\n")
        wait_until("it is sent", lambda: "pending=2" in found.ask(f"undrain {gone.address}"))
        gone.resume()
        assert one.line().startswith(b"VALUE") and two.line().startswith(b"VALUE")


@pytest.mark.memcacheds(2)
def test_a_server_that_hangs_is_drained_all_the_same(operated, memcacheds):
    found = operated(proxy={"threads": 1}, main={"timeout_ms": 200, "eject_failures": 1})
    gone = memcacheds[0]
    mine, _ = keys_by_server(found, memcacheds)
    gone.pause()
    try:
        with found.daemon.conn() as one, found.daemon.conn() as two:
            one.send(f"delete {mine[0]}\r\n")
            wait_until("it is sent", lambda: stats_of(two, gone)["pending"] == "1")
            found.ask(f"drain {gone.address}")
            assert b"outcome unknown" in one.line()
            wait_until("it is over", lambda: stats_of(two, gone)["state"] == "drained")
            assert two.cmd(f"get {mine[1]}") == refused(gone)
    finally:
        gone.resume()
    found.ask(f"undrain {gone.address}")
    with found.daemon.conn() as conn:
        wait_until("it is used again", lambda: stats_of(conn, gone)["state"] == "up")


@pytest.mark.memcacheds(2)
def test_one_that_is_down_stays_drained_when_it_is_back(operated, memcacheds):
    found = operated()
    gone = memcacheds[0]
    (key, *_), _ = keys_by_server(found, memcacheds)
    gone.stop()
    with found.daemon.conn() as conn:
        wait_until("it is down", lambda: conn.cmd(f"get {key}").endswith(b" down"))
        assert "state=drained" in found.ask(f"drain {gone.address}")
        gone.start()
        assert conn.cmd(f"get {key}") == refused(gone)
        wait_until("it has no connections", lambda: connections(gone) == 0)
        found.ask(f"undrain {gone.address}")
        wait_until("it is used again", lambda: conn.cmd(f"get {key}") == b"END")


@pytest.mark.memcacheds(2)
def test_reads_of_plain_keys_are_misses_where_the_pool_says_so(operated, memcacheds):
    found = operated(main={"down_reads": "miss"})
    (key, *_), _ = keys_by_server(found, memcacheds)
    found.ask(f"drain {memcacheds[0].address}")
    with found.daemon.conn() as conn:
        assert conn.get(key) is None
        assert conn.set(key, "x") == refused(memcacheds[0])


@pytest.mark.memcacheds(2)
def test_it_is_drained_in_all_pools(operated, memcacheds):
    found = operated(**{"pool other": {"servers": [memcacheds[0].address]}, "lists o:": {"pool": "other"}})
    address = memcacheds[0].address
    answer = found.ask(f"drain {address}")
    assert answer == "OK\n" + "".join(f"server={address} pool={pool} state=drained pending=0\n"
                                      for pool in ("main", "other"))
    with found.daemon.conn() as conn:
        assert conn.cmd("ladd o:1 a") == refused(memcacheds[0])


def test_metrics_and_page(start_daemon, memcached, tmp_path):
    path, port = tmp_path / "admin.sock", free_port()
    admin = Admin(start_daemon, [memcached], {"listen": f"unix:{path}, {HOST}:{port}"})
    admin.port = port
    ask(path, f"drain {memcached.address}")
    of_server = (("pool", "main"), ("server", memcached.address))
    samples = admin.samples()
    assert samples["mclistd_pool_server_up", of_server] == 0
    assert samples["mclistd_pool_server_trouble", (*of_server, ("trouble", "drained"))] == 1
    assert f"<b>{memcached.address}</b> drained by an operator since " in admin.text("/")
    assert admin.status_of("/ready") == 503


def test_what_is_refused(operated, memcached):
    found = operated()
    assert found.ask("drain") == "ERROR usage: drain SERVER, as `stats backends` has its name\n"
    assert found.ask("undrain a b") == "ERROR usage: undrain SERVER, as `stats backends` has its name\n"
    assert found.ask("drain nobody:1") == "ERROR no server has that name; `stats backends` shows them\n"


def test_a_cluster_does_that_itself(start_daemon, tmp_path):
    with Cluster(nodes=2) as cluster:
        found = Reloaded(start_daemon, None, tmp_path, **sections(cluster, tmp_path))
        with found.daemon.conn() as conn:
            name = next(name.split(":", 1)[1].removesuffix(":state")
                        for name in conn.stats("stats backends") if name.endswith(":state"))
        assert found.ask(f"drain {name}") == "ERROR it is a node of a Couchbase cluster: fail it over there\n"


def test_from_the_shell(operated, memcached):
    found = operated()

    def run(*words):
        done = subprocess.run([CLI, "--admin", found.socket, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert run("drain", memcached.address) == (
        0, f"server={memcached.address} pool=main state=drained pending=0\n", "")
    assert run("undrain", memcached.address)[0] == 0
    assert run("drain", "nobody")[0] == 1
