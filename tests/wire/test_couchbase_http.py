# SPDX-License-Identifier: BSD-3-Clause
"""Maps over HTTP, for servers that do not tell them over the data port."""

import pytest

from couchbase_support import Cluster, keys_of, sections
from harness import wait_until

import node as n  # noqa: E402 isort:skip
from http_maps import MapServer  # noqa: E402 isort:skip


@pytest.fixture
def cluster():
    with Cluster(nodes=2) as cluster:
        cluster.unknown = {n.GET_CONFIG}
        cluster.map_in_refusals = False
        yield cluster


@pytest.fixture
def maps(cluster):
    with MapServer(cluster) as maps:
        yield maps


def config(cluster, folder, *ports, **settings):
    settings = {"proxy": {"deadline_ms": 30000}, "timeout_ms": 20000, **settings}
    settings = sections(cluster, folder, plain_login="yes", **settings)
    settings["pool documents"]["servers"] = [f"http://127.0.0.1:{port}" for port in ports]
    return settings


def check_documents(conn, cluster):
    for index in cluster.members:
        for key in keys_of(cluster, index, 3):
            assert conn.set(key, "one") == b"STORED"
            assert conn.values(f"get {key}") == [(key.encode(), [0, 3], b"one")]


@pytest.mark.parametrize("path", ["bs", "bucketsStreaming"])
@pytest.mark.parametrize("one_map", [False, True])
def test_maps_that_http_tells(cluster, maps, start_daemon, tmp_path, path, one_map):
    maps.paths, maps.one_map = {path}, one_map
    with start_daemon(config=config(cluster, tmp_path, maps.port)).conn() as conn:
        check_documents(conn, cluster)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_cluster_that_changes(cluster, maps, start_daemon, tmp_path, goes_on):
    """Also before a server that tells of no change by itself."""
    maps.goes_on = goes_on
    settings = config(cluster, tmp_path, maps.port, timeout_ms=1000)
    with start_daemon(config=settings).conn() as conn:
        wait_until("a map", lambda: conn.set("a", "one") == b"STORED")
        check_documents(conn, cluster)
        cluster.add_node()
        cluster.rebalance()
        check_documents(conn, cluster)
        cluster.nodes[0].silence()
        cluster.fail_over(0)
        (key,) = keys_of(cluster, 1, 1)
        wait_until("the others have it", lambda: conn.set(key, "two") == b"STORED")


def test_the_next_server_is_asked(cluster, maps, start_daemon, tmp_path):
    with MapServer(cluster) as other:
        other.refuses = True
        daemon = start_daemon(config=config(cluster, tmp_path, 1, other.port, maps.port))
        with daemon.conn() as conn:
            wait_until("a map", lambda: conn.set("a", "one") == b"STORED")
        assert f"http://127.0.0.1:{other.port}: no map: it answers 404" in daemon.log()
        assert {path.split("/")[3] for path in other.log} == {"bs", "bucketsStreaming"}


def test_the_next_server_is_asked_while_requests_fail(cluster, maps, start_daemon, tmp_path):
    """The one that has told the map hangs, as the node that fails: each request that fails has the
    map asked for, but a question that is under way is not begun anew by that."""
    with MapServer(cluster) as other:
        settings = config(cluster, tmp_path, maps.port, other.port, timeout_ms=100, connect_timeout_ms=1500)
        with start_daemon(config=settings).conn() as conn:
            wait_until("a map", lambda: conn.set("a", "one") == b"STORED")
            (key,) = keys_of(cluster, 0, 1)
            maps.hangs = True
            cluster.nodes[0].silence()
            cluster.fail_over(0)
            wait_until("the other one has it", lambda: conn.set(key, "two") == b"STORED")


def test_servers_that_fail_in_turns_are_told_once(cluster, maps, start_daemon, tmp_path):
    """Each by a reason of its own, once per worker."""
    maps.refuses = True
    settings = config(cluster, tmp_path, 1, maps.port, retry_min_ms=1, retry_max_ms=2)
    daemon = start_daemon(config=settings)
    wait_until("many attempts", lambda: len(maps.log) > 60)
    assert 2 <= daemon.log().count("no map: it ") <= 4


def test_what_is_no_map(cluster, maps, start_daemon, tmp_path):
    maps.garbage = b"{}"
    daemon = start_daemon(config=config(cluster, tmp_path, maps.port, timeout_ms=1000))
    with daemon.conn() as conn:
        assert b"no node has answered yet" in conn.set("a", "one")
        assert "its cluster map has no vBuckets" in daemon.log()
        maps.garbage = b"x" * 2000000
        wait_until("too long", lambda: conn.set("a", "one") and "no map: it is too long" in daemon.log())
        maps.garbage = b""
        wait_until("a map", lambda: conn.set("a", "one") == b"STORED")


def test_a_wrong_password(cluster, maps, start_daemon, tmp_path):
    settings = config(cluster, tmp_path, maps.port)
    (tmp_path / "password").write_text("wrong\n")
    daemon = start_daemon(config=settings)
    wait_until("it says so", lambda: "no map: it answers 401" in daemon.log())


def test_what_a_server_says_stands_in_one_line(cluster, maps, start_daemon, tmp_path):
    maps.refuses, maps.reason = True, "\x1b[2J no \\ map"
    daemon = start_daemon(config=config(cluster, tmp_path, maps.port))
    wait_until("it says so", lambda: "no map: it answers 404 \\x1b[2J no \\ map" in daemon.log())


def test_a_data_port_without_a_map(cluster, start_daemon, tmp_path):
    daemon = start_daemon(config=sections(cluster, tmp_path))
    wait_until("it says so", lambda: "name a server of a bucket of type Couchbase or Ephemeral as "
               "http://HOST:8091" in daemon.log())
