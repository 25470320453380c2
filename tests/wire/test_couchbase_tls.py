# SPDX-License-Identifier: BSD-3-Clause
"""Encrypted connections to the nodes of a Couchbase cluster."""

import pytest

from couchbase_support import Cluster, keys_of, sections
from harness import wait_until
from test_couchbase_changes import KEYS, up_nodes
from tls_support import make_certificate


@pytest.fixture
def certificate(tmp_path):
    return make_certificate(tmp_path / "node.pem")


@pytest.fixture
def cluster(certificate):
    with Cluster(nodes=3, certificate=certificate) as cluster:
        cluster.mechanisms = ["PLAIN"]  # which is no secret for those who can decrypt
        yield cluster


@pytest.fixture
def config(cluster, certificate, tmp_path):
    return sections(cluster, tmp_path, tls=True, tls_ca=certificate)


def test_documents_over_tls(cluster, config, start_daemon):
    daemon = start_daemon(config=config)
    with daemon.conn() as conn:
        wait_until("all nodes are up", lambda: up_nodes(conn) == 3)
        for key in KEYS:
            assert conn.set(key, key) == b"STORED"
        assert conn.values("get " + " ".join(KEYS)) == [
            (key.encode(), [0, len(key)], key.encode()) for key in KEYS]
    ports = [str(node.tls_port) for node in cluster.nodes]
    assert all(port in daemon.log() for port in ports)
    assert not any(f":{node.port}" in daemon.log() for node in cluster.nodes)


def test_large_values_in_a_pipeline(config, start_daemon):
    """Larger than the sockets' buffers, both ways at the same time."""
    config["proxy"]["max_value_bytes"] = "4m"
    config["pool documents"]["timeout_ms"] = 20000
    config["proxy"]["deadline_ms"] = 40000
    large = bytes(range(256)) * 12000
    with start_daemon(config=config).conn(timeout_s=60) as conn:
        for i in range(8):
            conn.send(f"set k{i} 0 0 {len(large)} noreply\r\n", large, "\r\n")
        for i in range(8):
            assert conn.get(f"k{i}") == large
        conn.send("get " + " ".join(f"k{i}" for i in range(8)) + "\r\n")
        assert all(value == large for _, _, value in conn.values_answer())


def test_a_cluster_that_changes(cluster, config, start_daemon):
    with start_daemon(config=config).conn() as conn:
        assert all(conn.set(key, "x") == b"STORED" for key in KEYS)
        cluster.add_node()
        cluster.rebalance()
        assert all(conn.get(key) == b"x" for key in KEYS)
        cluster.nodes[0].stop()
        cluster.fail_over(0)
        wait_until("the new map", lambda: all(conn.set(key, "y") == b"STORED" for key in KEYS))


def test_a_certificate_of_others(config, start_daemon, tmp_path):
    config["pool documents"]["tls_ca"] = make_certificate(tmp_path / "other.pem")
    daemon = start_daemon(config=config)
    daemon.wait_for_log("TLS: .*certificate")
    with daemon.conn() as conn:
        assert conn.set("a", "x").endswith(b"no node has answered yet, nothing done")


def test_a_certificate_for_another_name(start_daemon, tmp_path):
    certificate = make_certificate(tmp_path / "named.pem", "DNS:example.com")
    with Cluster(nodes=1, certificate=certificate) as cluster:
        config = sections(cluster, tmp_path, tls=True, tls_ca=certificate)
        start_daemon(config=config).wait_for_log("TLS: IP address mismatch")


def test_a_node_that_dies_says_no_goodbye(cluster, config, start_daemon):
    daemon = start_daemon(config=config)
    with daemon.conn() as conn:
        wait_until("all nodes are up", lambda: up_nodes(conn) == 3)
        cluster.nodes[0].stop()
        daemon.wait_for_log("(connection lost|cannot connect): closed by the server")


def test_a_port_without_tls(cluster, config, start_daemon):
    config["pool documents"]["servers"] = f"127.0.0.1:{cluster.nodes[0].port}"
    start_daemon(config=config).wait_for_log("TLS: |no answer to TLS")


def test_a_map_without_ports_for_tls(cluster, config, start_daemon):
    for node in cluster.nodes:
        node.tls_told = False
    daemon = start_daemon(config=config)
    daemon.wait_for_log("its cluster map has no port for TLS of 127.0.0.1")


def test_a_node_without_a_port_for_tls_costs_its_own_keys_only(cluster, config, start_daemon):
    cluster.nodes[1].tls_told = False
    with start_daemon(config=config).conn() as conn:
        assert conn.set(keys_of(cluster, 0, 1)[0], "x") == b"STORED"
        assert conn.set(keys_of(cluster, 1, 1)[0], "x") == (
            b"SERVER_ERROR pool documents: the cluster map has no port for TLS of 127.0.0.1, "
            b"nothing done")


# --- certificates in place of passwords ---


@pytest.fixture
def own(tmp_path):
    """The proxy's."""
    return make_certificate(tmp_path / "own.pem", subject="user")


def with_certificate(cluster, certificate, own, folder, **settings):
    config = sections(cluster, folder, tls=True, tls_ca=certificate, tls_cert=own, tls_key=own,
                      **settings)
    del config["pool documents"]["username"], config["pool documents"]["password_file"]
    return config


def test_a_certificate_tells_the_user(certificate, own, start_daemon, tmp_path):
    with Cluster(nodes=2, certificate=certificate, clients=own) as cluster:
        config = with_certificate(cluster, certificate, own, tmp_path)
        with start_daemon(config=config).conn() as conn:
            wait_until("all nodes are up", lambda: up_nodes(conn) == 2)
            assert all(conn.set(key, key) == b"STORED" for key in KEYS)
            assert conn.cmd("ladd fruit apple") == b"STORED"
            assert conn.lget("fruit") == [b"apple"]


def test_a_bucket_that_the_certificate_does_not_open(certificate, own, start_daemon, tmp_path):
    with Cluster(nodes=1, certificate=certificate, clients=own) as cluster:
        config = with_certificate(cluster, certificate, own, tmp_path, bucket="other")
        daemon = start_daemon(config=config)
        daemon.wait_for_log("the user of tls_cert has no access to bucket other")


@pytest.mark.parametrize("subject", ["user", "stranger"])
def test_a_certificate_that_the_nodes_do_not_take(certificate, own, start_daemon, tmp_path, subject):
    """Signed by another, or for a user that they do not know."""
    other = make_certificate(tmp_path / "other.pem", subject=subject)
    known = own if subject == "user" else other
    with Cluster(nodes=1, certificate=certificate, clients=known) as cluster:
        daemon = start_daemon(config=with_certificate(cluster, certificate, other, tmp_path))
        # Where the node has not read all that was sent, its alert may be lost on the way.
        daemon.wait_for_log("cannot connect: (TLS: .*|closed by the server|Connection reset)")
        with daemon.conn() as conn:
            assert conn.set("a", "x").endswith(b"no node has answered yet, nothing done")


def test_no_certificate_where_the_nodes_want_one(certificate, own, start_daemon, tmp_path):
    with Cluster(nodes=1, certificate=certificate, clients=own) as cluster:
        config = sections(cluster, tmp_path, tls=True, tls_ca=certificate)
        # Where the node has not read all that was sent, its alert may be lost on the way.
        start_daemon(config=config).wait_for_log(
            "cannot connect: (TLS: .*certificate required|Connection reset)")
