# SPDX-License-Identifier: BSD-3-Clause
"""Clusters that are named as Couchbase's own clients name them: couchbase://, couchbases://, and SRV
records."""

import pytest

from couchbase_support import Cluster, sections
from harness import wait_until
from test_couchbase_changes import KEYS
from test_names_support import TYPE_SRV, FakeDns
from tls_support import make_certificate

HOST = "db.example.com"
NODES = [f"node-{i}.example.com" for i in range(3)]


@pytest.fixture
def dns():
    dns = FakeDns({name: ["127.0.0.1"] for name in [*NODES, HOST]})
    yield dns
    dns.stop()


def config(dns, cluster, folder, servers, **settings):
    proxy = {"resolver": dns.address, "resolve_timeout_ms": 400, "resolve_interval_s": 1}
    settings = {"timeout_ms": 5000, **settings}
    found = sections(cluster, folder, proxy={"deadline_ms": 10000, **proxy}, **settings)
    found["pool documents"]["servers"] = servers
    return found


def check(conn):
    assert all(conn.set(key, key) == b"STORED" for key in KEYS)
    assert all(conn.get(key) == key.encode() for key in KEYS)


def test_the_nodes_are_those_of_the_srv_records(dns, cluster, start_daemon, tmp_path):
    dns.services["_couchbase._tcp." + HOST] = [
        (0, 0, node.port, name) for node, name in zip(cluster.nodes, NODES)]
    daemon = start_daemon(config=config(dns, cluster, tmp_path, f"couchbase://{HOST}"))
    with daemon.conn() as conn:
        check(conn)
    daemon.wait_for_log(f"_couchbase._tcp.{HOST}: 3 SRV records")
    daemon.wait_for_log(r"backend node-\d.example.com:\d+: up")
    assert dns.asked(HOST) == 0


def test_other_records_when_those_nodes_have_gone(dns, cluster, start_daemon, tmp_path):
    """As after a move of the whole cluster, of which no node says a word."""
    service = "_couchbase._tcp." + HOST
    dns.services[service] = [(0, 0, cluster.nodes[0].port, NODES[0])]
    with Cluster(nodes=1) as other:
        settings = config(dns, cluster, tmp_path, f"couchbase://{HOST}")
        with start_daemon(config=settings).conn() as conn:
            check(conn)
            dns.services[service] = [(0, 0, other.nodes[0].port, NODES[1])]
            for node in cluster.nodes:
                node.stop()
            wait_until("the other cluster", lambda: conn.set("new", "x") == b"STORED")
        assert any(key == b"new" for _, key, _ in other.nodes[0].log)


def test_a_name_without_records_is_a_node_itself(dns, start_daemon, tmp_path):
    """The default port is not a test's to take: the log says where the proxy has tried."""
    with Cluster(nodes=1) as cluster:
        daemon = start_daemon(config=config(dns, cluster, tmp_path, f"couchbase://{HOST}"))
        daemon.wait_for_log(f"no SRV records: {HOST} is asked itself")
        daemon.wait_for_log(f"backend {HOST}:11210: ")


@pytest.mark.thorough
def test_dns_that_does_not_answer(dns, cluster, start_daemon, tmp_path):
    service = "_couchbase._tcp." + HOST
    dns.silent_types = (TYPE_SRV,)
    daemon = start_daemon(config=config(dns, cluster, tmp_path, f"couchbase://{HOST}"))
    daemon.wait_for_log("its SRV records are not known: no answer")
    daemon.wait_for_log(f"backend {HOST}:11210: ")
    dns.services[service] = [(0, 0, cluster.nodes[0].port, NODES[0])]
    dns.silent_types = ()
    with daemon.conn() as conn:
        wait_until("the records", lambda: conn.set("a", "x") == b"STORED")


def test_a_port_means_that_server(dns, cluster, start_daemon, tmp_path):
    servers = f"couchbase://{HOST}:{cluster.nodes[1].port}"
    with start_daemon(config=config(dns, cluster, tmp_path, servers)).conn() as conn:
        check(conn)
    assert not any(kind == TYPE_SRV for _, kind in dns.questions)


def test_several_names_are_several_servers(dns, cluster, start_daemon, tmp_path):
    servers = f"couchbase://{HOST}, couchbase://{NODES[0]}:{cluster.nodes[0].port}"
    with start_daemon(config=config(dns, cluster, tmp_path, servers)).conn() as conn:
        check(conn)
    assert not any(kind == TYPE_SRV for _, kind in dns.questions)


def test_with_tls(dns, start_daemon, tmp_path):
    names = ",".join(f"DNS:{name}" for name in NODES) + ",IP:127.0.0.1"
    certificate = make_certificate(tmp_path / "node.pem", names)
    with Cluster(nodes=3, certificate=certificate) as cluster:
        dns.services["_couchbases._tcp." + HOST] = [
            (0, 0, node.tls_port, name) for node, name in zip(cluster.nodes, NODES)]
        settings = config(dns, cluster, tmp_path, f"couchbases://{HOST}", tls_ca=certificate)
        daemon = start_daemon(config=settings)
        with daemon.conn() as conn:
            check(conn)
        daemon.wait_for_log(r"backend node-\d.example.com:\d+: up")
