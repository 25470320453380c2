# SPDX-License-Identifier: BSD-3-Clause
"""A pool of type couchbase before servers that speak a part of Couchbase's protocol only, or in
their own way: old ones, small ones, those that other projects test with."""

import pytest

from couchbase_support import Cluster, keys_of, sections
from harness import SLOW, wait_until

import node as n  # noqa: E402 isort:skip

# Logins take their time here: the first requests wait for them.
PATIENT = {"proxy": {"deadline_ms": 30000}, "timeout_ms": 20000}


@pytest.fixture
def cluster():
    with Cluster(nodes=2) as cluster:
        yield cluster


def check_documents(daemon, cluster):
    with daemon.conn() as conn:
        for index in range(len(cluster.nodes)):
            (key,) = keys_of(cluster, index, 1)
            assert conn.set(key, "one") == b"STORED"
            assert conn.cmd(f"append {key} 0 0 1", "!") == b"STORED"
            assert conn.values(f"get {key}") == [(key.encode(), [0, 4], b"one!")]


@pytest.mark.parametrize("unknown", [{n.VERSION, n.GET_ERROR_MAP}, {n.HELLO}, {n.SELECT_BUCKET}])
def test_requests_that_a_node_does_not_know(cluster, start_daemon, tmp_path, unknown):
    cluster.unknown = unknown
    cluster.login_selects = n.SELECT_BUCKET in unknown
    check_documents(start_daemon(config=sections(cluster, tmp_path, **PATIENT)), cluster)


def test_one_login_at_a_time(cluster, start_daemon, tmp_path):
    """The node keeps the state of one SCRAM only: of two at the same time both would fail."""
    cluster.one_login = True
    cluster.answer_pause_s = 0.01
    settings = sections(cluster, tmp_path, proxy={"threads": 4, **PATIENT["proxy"]}, connections=2,
                        connect_timeout_ms=int(20000 * SLOW), timeout_ms=20000)
    daemon = start_daemon(config=settings)
    check_documents(daemon, cluster)
    with daemon.conn() as conn:
        wait_until("all are connected", lambda: conn.stats()["backend_connects"] == "16")
        assert conn.stats()["backend_connect_failures"] == "0"
    assert "does not know the password" not in daemon.log()


def test_several_proxies_that_log_in(cluster, start_daemon, tmp_path):
    """The same, of processes that do not know of each other."""
    cluster.one_login = True
    cluster.answer_pause_s = 0.01
    settings = sections(cluster, tmp_path, connections=2,
                        connect_timeout_ms=int(20000 * SLOW), **PATIENT)
    daemons = [start_daemon(config=settings) for _ in range(3)]
    for daemon in daemons:
        with daemon.conn() as conn:
            wait_until("all are connected", lambda: conn.stats()["backend_connects"] == "8", 40 * SLOW)
        check_documents(daemon, cluster)


@pytest.mark.thorough
def test_a_slow_login(cluster, start_daemon, tmp_path):
    """connect_timeout_ms is for each of its steps."""
    cluster.answer_pause_s = 0.3
    settings = sections(cluster, tmp_path, connect_timeout_ms=int(700 * SLOW), **PATIENT)
    check_documents(start_daemon(config=settings), cluster)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA1", "PLAIN"])
def test_an_empty_password(start_daemon, tmp_path, mechanism):
    """PLAIN would not show it."""
    with Cluster(nodes=2, password="") as cluster:
        cluster.mechanisms = [mechanism]
        settings = sections(cluster, tmp_path, **PATIENT)
        del settings["pool documents"]["password_file"]
        check_documents(start_daemon(config=settings), cluster)


def test_times_to_live_in_one_version_only(cluster, start_daemon, tmp_path):
    cluster.strict_meta = True
    with start_daemon(config=sections(cluster, tmp_path, **PATIENT)).conn() as conn:
        assert conn.cmd("ms a 3 T1000", "one") == b"HD"
        assert conn.cmd("mg a t") in (b"HD t1000", b"HD t999")


def test_times_to_live_that_are_not_told(cluster, start_daemon, tmp_path):
    cluster.unknown = {n.GET_META}
    with start_daemon(config=sections(cluster, tmp_path, **PATIENT)).conn() as conn:
        assert conn.set("a", "one") == b"STORED"
        answer = conn.cmd("mg a t v")
        assert answer.endswith(b": it does not tell times to live (0x81)"), answer
        assert answer.startswith(b"SERVER_ERROR backend 127.0.0.1:")
        assert conn.cmd("mg a t") == answer
        assert conn.values("get a") == [(b"a", [0, 3], b"one")]
