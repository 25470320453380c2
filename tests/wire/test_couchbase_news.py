# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that say by themselves that they have a newer map, and other things that they were not asked
for."""

import threading
import time

import pytest

import test_couchbase_changes
from couchbase_support import sections
from harness import wait_until
from node import GET_CONFIG, NEWEST
from test_couchbase_changes import KEYS, up_nodes

conn = test_couchbase_changes.conn
daemon = test_couchbase_changes.daemon
start_writer = test_couchbase_changes.start_writer


@pytest.fixture
def cluster(cluster):
    cluster.features = set(NEWEST)
    return cluster


def connects(conn):
    return int(conn.stats()["backend_connects"])


def test_a_newer_map_is_asked_for(conn, cluster):
    assert all(conn.set(key, "x") == b"STORED" for key in KEYS)
    cluster.add_node()
    cluster.rebalance()
    wait_until("the new node", lambda: up_nodes(conn) == 4)
    assert int(conn.stats()["cluster_news"]) > 0
    assert all(conn.get(key) == b"x" for key in KEYS)


def test_a_rebalance_that_is_told_loses_and_repeats_nothing(cluster, start_writer):
    writer = start_writer(KEYS)
    writer.await_rounds(3)
    cluster.add_node()
    cluster.rebalance(pause_s=0.002)
    writer.await_rounds(3)
    writer.finish()
    assert not writer.errors


@pytest.mark.thorough
def test_a_map_that_is_known_is_not_sent_again(conn, cluster):
    """The proxy asks every 2.5 s: it is answered without a map."""
    asked = lambda: sum(opcode == GET_CONFIG for node in cluster.nodes for opcode, _, _ in node.log)
    maps, before = conn.stats()["cluster_maps"], asked()
    read = int(conn.stats()["backend_bytes_read"])
    wait_until("a question", lambda: asked() >= before + 2, 20)
    assert conn.stats()["cluster_maps"] == maps
    assert int(conn.stats()["backend_bytes_read"]) - read < 1000


def test_answers_stay_in_step_with_news_between_them(conn, cluster):
    ends = threading.Event()

    def chatter():
        number = 0
        while not ends.is_set():
            number += 1
            for node in cluster.nodes:
                node.tell_news(opcode=number % 3, value=b"x" * (number % 500), cut=number % 40)

    before = connects(conn)
    talks = threading.Thread(target=chatter)
    talks.start()
    try:
        for i in range(30):
            conn.send("".join(f"set {key} 0 0 {len(str(i))}\r\n{i}\r\nget {key}\r\n" for key in KEYS))
            for key in KEYS:
                assert conn.line() == b"STORED"
                assert conn.values_answer() == [(key.encode(), [0, len(str(i))], b"%d" % i)]
    finally:
        ends.set()
        talks.join()
    assert connects(conn) == before


@pytest.mark.thorough
def test_a_connection_that_was_told_news_is_not_dead(conn, cluster):
    """A silent connection is looked at before it is used: news may be all that has come."""
    assert all(conn.set(key, "x") == b"STORED" for key in KEYS)
    before = connects(conn)
    for _ in range(3):
        time.sleep(1.1)  # after which the proxy looks
        for node in cluster.nodes:
            node.tell_news()
        assert all(conn.get(key) == b"x" for key in KEYS)
    assert connects(conn) == before


def test_news_before_the_login(cluster, start_daemon, tmp_path):
    cluster.chats = True
    with start_daemon(config=sections(cluster, tmp_path)).conn() as conn:
        assert all(conn.set(key, "x") == b"STORED" for key in KEYS)
