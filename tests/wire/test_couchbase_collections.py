# SPDX-License-Identifier: BSD-3-Clause
"""A pool of type couchbase whose items are in a collection."""

import pytest

from couchbase_support import Cluster, documents, sections
from harness import wait_until
from node import COLLECTIONS
from test_couchbase import up_nodes

SHOP = {"scope": "shop", "collection": "carts"}
MISSING = b"bucket lists has no collection shop.carts (0x88), nothing done"


@pytest.fixture
def cluster(cluster):
    cluster.make_collection("shop.carts")
    return cluster


@pytest.fixture
def daemon(cluster, start_daemon, tmp_path):
    return start_daemon(config=sections(cluster, tmp_path, **SHOP))


@pytest.fixture
def conn(daemon):
    with daemon.conn() as conn:
        yield conn


def test_two_pools_in_two_collections_of_a_bucket(cluster, start_daemon, tmp_path):
    config = {
        "proxy": {"allow_flush_all": "no", "pool": "plain"},
        "pool plain": documents(cluster, tmp_path),
        "pool carts": documents(cluster, tmp_path, **SHOP),
        "lists": {"pool": "carts"},
    }
    with start_daemon(config=config).conn() as conn:
        assert conn.set("apple", "red") == b"STORED"
        assert conn.cmd("ladd fruit apple pear") == b"STORED"
        assert conn.lget("fruit") == [b"apple", b"pear"]
        assert conn.cmd("get fruit#") == b"END"  # the head is in the other collection
        assert conn.cmd("lpurge fruit") == b"2"
        assert conn.get("apple") is None
    places = {key if isinstance(key, bytes) else key[0]
              for vbucket in cluster.vbuckets for key in vbucket.documents}
    assert places == {b"apple", 8}


def test_many_keys_and_large_lists(conn, cluster):
    for i in range(100):
        assert conn.set(f"k{i}", f"{i}") == b"STORED"
    found = conn.values("get " + " ".join(f"k{i}" for i in range(100)))
    assert found == [(b"k%d" % i, [0, len(str(i))], b"%d" % i) for i in range(100)]
    items = [b"item-%05d" % i for i in range(20000)]
    for i in range(0, len(items), 500):
        assert conn.cmd(b"ladd big " + b" ".join(items[i:i + 500])) == b"STORED"
    assert conn.cmd("lcompact big") == b"OK"
    assert conn.lget("big") == items


def test_the_longest_keys(conn):
    assert conn.set("k" * 246, "x") == b"STORED"
    assert conn.get("k" * 246) == b"x"
    assert conn.set("k" * 247, "x") == (
        b"SERVER_ERROR pool documents: key too long, 246 bytes at most in a collection, nothing done")
    key = "l" * 220
    assert conn.cmd(f"ladd {key} a b") == b"STORED"
    assert conn.cmd(f"lcompact {key}") == b"OK"
    assert conn.lget(key) == [b"a", b"b"]


def test_it_is_dropped_and_made_again(daemon, conn, cluster):
    assert conn.cmd("ladd fruit apple") == b"STORED"
    cluster.drop_collection("shop.carts")
    cluster.make_collection("shop.carts")
    assert conn.cmd("laddx fruit pear") == b"1"
    assert conn.lget("fruit") == [b"pear"]
    daemon.wait_for_log("collection shop.carts was made anew")


def test_it_is_dropped(daemon, conn, cluster):
    assert conn.cmd("ladd fruit apple") == b"STORED"
    cluster.drop_collection("shop.carts")
    for request in ("get fruit", "lget fruit", "ladd fruit x", "delete fruit"):
        assert conn.cmd(request).endswith(MISSING), request
    daemon.wait_for_log("bucket lists has no collection shop.carts, or user user has no access to it")
    cluster.make_collection("shop.carts")
    wait_until("it is found", lambda: conn.cmd("ladd fruit x") == b"STORED")


def test_there_is_no_such_scope(start_daemon, tmp_path):
    with Cluster(nodes=2) as cluster:
        daemon = start_daemon(config=sections(cluster, tmp_path, **SHOP))
        with daemon.conn() as conn:
            wait_until("the answer", lambda: conn.cmd("get a").endswith(
                b"bucket lists has no scope shop (0x8c), nothing done"))
        daemon.wait_for_log("pool documents: bucket lists has no scope shop")


def test_servers_that_have_no_collections(start_daemon, tmp_path):
    with Cluster(nodes=2) as cluster:
        cluster.features.discard(COLLECTIONS)
        daemon = start_daemon(config=sections(cluster, tmp_path, **SHOP))
        daemon.wait_for_log("it has no collections, Couchbase 7.0 or newer is needed for them")
        with start_daemon(config=sections(cluster, tmp_path)).conn() as conn:
            assert conn.set("a", "x") == b"STORED"


def test_the_log_and_the_stats(daemon, conn, cluster):
    wait_until("all are up", lambda: up_nodes(conn, cluster))
    assert int(conn.stats()["cluster_collections"]) >= 1
    assert conn.stats("stats settings")["pool:documents:collection"].startswith("carts")
    daemon.wait_for_log("up, Couchbase 7.6.0-fake, bucket lists, collection shop.carts")
