# SPDX-License-Identifier: BSD-3-Clause
"""Lists on a pool of type couchbase whose nodes refuse, fail over, or lack something."""

import random

import pytest

from couchbase_support import Cluster, documents, keys_of, vbucket_of
from harness import SLOW, wait_until
from model import TINY


@pytest.fixture
def start(start_daemon, tmp_path):
    """A function that starts a daemon with lists before the cluster."""
    def start(cluster, pool=None, **lists):
        return start_daemon(config={
            "proxy": {"allow_flush_all": "no", "threads": 1},
            "pool documents": documents(cluster, tmp_path, **{"timeout_ms": int(3000 * SLOW), **(pool or {})}),
            "lists": {**TINY, **lists},
        })
    return start


def node_of(cluster, key):
    return cluster.owner(vbucket_of(key.encode(), len(cluster.owners)))


@pytest.mark.parametrize("status", [0x07, 0x82, 0x86, 0xA2, 0xA4])
def test_a_change_that_is_refused_for_now_is_seen_by_the_read_behind_it(cluster, start, status):
    with start(cluster).conn() as conn:
        conn.cmd("ladd l a")
        node = node_of(cluster, "l#")
        for i in range(20):
            node.change_refusals += [status] * (i % 3)
            conn.send(f"ladd l item-{i}\r\nlhas l item-{i}\r\nllen l\r\n")
            assert conn.line() == b"STORED"
            assert conn.line() == b"VALUE l 0 %d" % len(f"item-{i}")
            assert conn.lines(2) == [b"item-%d" % i, b"END"]
            assert conn.line() == b"%d" % (i + 2)


def test_a_failover_that_loses_changes_damages_no_list(cluster, start):
    """Of what is not durable, the replicas have some. Each list is as it was after one of its changes,
    and the worker that has seen more of it goes on from there."""
    cluster.replicas_lag, rng = True, random.Random(1)
    keys = [key[:-1] for index in range(3) for key in keys_of(cluster, index, 4, end="#")]
    added = {key: [] for key in keys}
    with start(cluster).conn() as conn:
        for turn in range(2):
            for number in range(60):
                for key in keys:
                    item = f"item-{turn}-{number}".encode()
                    assert conn.cmd(b"ladd %s %s" % (key.encode(), item)) == b"STORED"
                    added[key].append(item)
                for vbucket in rng.sample(cluster.vbuckets, 3):
                    with cluster.lock:
                        vbucket.replicate()
            assert all(conn.lget(key) == added[key] for key in keys)
            cluster.fail_over(cluster.members[-1])
            wait_until("the new map", lambda: conn.cmd("ldel none none") == b"DELETED")
            lost, fresh = 0, start(cluster).conn()  # that one has no sublist in its cache
            for key in keys:
                found = fresh.lget(key)
                assert found == added[key][:len(found)] == conn.lget(key), key
                lost += len(added[key]) - len(found)
                added[key] = found
            assert lost > 0
            cluster.add_node()
            cluster.rebalance()
        for key in keys:
            assert int(conn.cmd(f"laddx {key} last")) == 1
            conn.cmd(f"lcompact {key}")
            assert conn.lget(key) == [*added[key], b"last"]
        assert conn.stats()["list_damaged"] == "0"


def test_one_node_and_a_bucket_that_is_to_have_replicas(start):
    """As a new cluster is: plain items work, new lists do not, and both log and answer say why."""
    with Cluster(nodes=1) as cluster:
        daemon = start(cluster)
        with daemon.conn() as conn:
            assert conn.set("k", "x") == b"STORED"
            answer = conn.cmd("ladd fruit apple")
            assert conn.cmd("lget fruit") == b"END"
            assert answer.startswith(b"SERVER_ERROR backend 127.0.0.1:")
            assert (b"no durable change is possible with one node and a bucket that is to have "
                    b"replicas: set these to 0, or add a node (0xa1)") in answer
            daemon.wait_for_log("64 of 64 vBuckets have too few copies for durable changes, .*"
                                "the cluster has one node: set the replicas to 0 and rebalance")
            cluster.add_node()
            cluster.rebalance()
            wait_until("it works", lambda: conn.cmd("ladd fruit apple") == b"STORED")


def test_a_durable_change_that_is_not_confirmed(cluster, start):
    with start(cluster).conn() as conn:
        assert conn.cmd("ladd l a") == b"STORED"
        for request in ("laddx l b", "lput l 1\r\nc"):
            node_of(cluster, "l#").change_refusals = [0xA3]
            assert conn.cmd(request).endswith(b"was not confirmed (0xa3), outcome unknown")
        assert conn.lget("l") == [b"a"]


def test_nodes_without_durable_changes(cluster, start):
    """Couchbase before 6.5, and doubles of it: frames would end the connection."""
    cluster.features -= {0x10, 0x11}
    daemon = start(cluster)
    with daemon.conn() as conn:
        items = [b"item-%d" % i for i in range(100)]
        for item in items:
            assert conn.cmd(b"ladd l " + item) == b"STORED"
        assert conn.cmd("lmove l other item-5") == b"1"
        conn.cmd("lcompact l")
        assert conn.lget("l") == [item for item in items if item != b"item-5"]
    assert daemon.log().count("its nodes have no durable changes") == 1


def test_a_list_of_which_a_document_is_not_there(cluster, start):
    """As where a backup or another cluster has only a part of it: each look at it says so."""
    with start(cluster).conn() as conn:
        for i in range(200):
            assert conn.cmd(f"ladd l item-{i}") == b"STORED"
        assert conn.cmd("lcompact l") == b"OK"
        names = [key for vb in cluster.vbuckets for key in list(vb.documents) if key.startswith(b"l#") and key != b"l#"]
        assert names
    for vb in cluster.vbuckets:
        for name in names:
            vb.documents.pop(name, None)
    with start(cluster).conn() as conn:
        assert b"SERVER_ERROR list damaged: sublist l#" in conn.cmd("lget l")
        assert b"SERVER_ERROR list damaged: sublist l#" in conn.cmd("lstat l")
        assert conn.cmd("lset l new") == b"STORED"
        assert conn.lget("l") == [b"new"]
