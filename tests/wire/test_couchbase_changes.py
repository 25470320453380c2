# SPDX-License-Identifier: BSD-3-Clause
"""A pool of type couchbase while its cluster changes: rebalance, failover, nodes that refuse, hang,
come and go."""

import threading
import time

import pytest

from couchbase_support import keys_of, sections, vbucket_of
from harness import TIMEOUT_S, wait_until
from test_names_support import FakeDns, name_config


@pytest.fixture
def daemon(cluster, start_daemon, tmp_path):
    return start_daemon(config=sections(cluster, tmp_path, proxy={"threads": 1}))


@pytest.fixture
def conn(daemon):
    with daemon.conn() as conn:
        wait_until("all nodes are up", lambda: up_nodes(conn) == 3)
        yield conn


def up_nodes(conn):
    states = [v for k, v in conn.stats("stats backends").items() if k.endswith(":state")]
    return states.count("up")


class Writer(threading.Thread):
    """Appends numbers to its keys, one after the other, and remembers what it was answered."""

    def __init__(self, daemon, keys):
        super().__init__(daemon=True)
        self.conn = daemon.conn(timeout_s=3 * TIMEOUT_S)
        self.keys = keys
        self.stored = {key: [] for key in keys}
        self.unknown = {key: set() for key in keys}
        self.errors = []
        self.ends = threading.Event()
        self.rounds = 0
        self.fault = None

    def run(self):
        try:
            while not self.ends.is_set():
                self._round()
        except BaseException as fault:
            self.fault = fault

    def _round(self):
        self.rounds += 1
        word = f"{self.rounds},"
        for key in self.keys:
            self.conn.send(f"append {key} 0 0 {len(word)}\r\n{word}\r\n")
        for key in self.keys:
            line = self.conn.line()
            if line == b"STORED":
                self.stored[key].append(self.rounds)
                continue
            assert line.startswith(b"SERVER_ERROR"), line
            self.errors.append(line)
            if b"unknown" in line:
                self.unknown[key].add(self.rounds)

    def await_rounds(self, count):
        target = self.rounds + count
        wait_until("rounds", lambda: self.rounds >= target or self.fault, 3 * TIMEOUT_S)

    def finish(self):
        """Everything that was stored is there, once and in order; nothing else but what is unknown."""
        self.ends.set()
        self.join()
        if self.fault:
            raise self.fault
        for key in self.keys:
            found = [int(word) for word in self.conn.get(key).split(b",")[:-1]]
            assert found == sorted(set(found)), key
            assert set(self.stored[key]) <= set(found), key
            assert set(found) - set(self.stored[key]) <= self.unknown[key], key


@pytest.fixture
def start_writer(daemon, conn):
    started = []

    def start(keys):
        for key in keys:
            assert conn.set(key, "") == b"STORED"
        started.append(Writer(daemon, keys))
        started[-1].start()
        return started[-1]

    yield start
    for writer in started:
        writer.ends.set()


KEYS = [f"k{i}" for i in range(40)]


@pytest.mark.parametrize("map_in_refusals", [True, False])
@pytest.mark.parametrize("forward", [True, False])
def test_a_rebalance_loses_and_repeats_nothing(cluster, start_writer, map_in_refusals, forward):
    cluster.map_in_refusals = map_in_refusals
    cluster.tells_forward = forward
    writer = start_writer(KEYS)
    for _ in range(2):
        writer.await_rounds(3)
        cluster.add_node()
        cluster.rebalance(pause_s=0.002)
    writer.await_rounds(3)
    writer.finish()
    assert writer.errors == []


def test_a_node_that_leaves_is_let_go(cluster, conn, daemon):
    cluster.members.remove(2)
    cluster.rebalance()
    for key in KEYS:
        assert conn.set(key, "x") == b"STORED"
    gone = f"backend:127.0.0.1:{cluster.nodes[2].port}:state"
    wait_until("it is gone", lambda: gone not in conn.stats("stats backends"))
    daemon.wait_for_log("has left")
    assert all(conn.get(key) == b"x" for key in KEYS)


def test_all_nodes_are_replaced(cluster, conn):
    """None of those that the file names is in the cluster any more."""
    for key in KEYS:
        conn.set(key, "x")
    new = [cluster.add_node() for _ in range(2)]
    cluster.members[:] = new
    cluster.rebalance()
    assert all(conn.get(key) == b"x" for key in KEYS)
    for index in range(3):
        cluster.nodes[index].stop()
    assert all(conn.get(key) == b"x" for key in KEYS)


def test_a_failover_costs_the_dead_nodes_keys_only(cluster, conn):
    dead, alive = keys_of(cluster, 2, 5), keys_of(cluster, 0, 5) + keys_of(cluster, 1, 5)
    for key in dead + alive:
        assert conn.set(key, "old") == b"STORED"
    cluster.nodes[2].silence()
    for key in alive:
        assert conn.set(key, "new") == b"STORED"
    assert conn.set(dead[0], "lost").endswith(b"timeout, outcome unknown")
    assert conn.cmd(f"get {dead[1]}").startswith(b"SERVER_ERROR backend ")
    cluster.fail_over(2)
    assert conn.set(alive[0], "newer") == b"STORED"
    wait_until("the new map", lambda: conn.set(dead[2], "new") == b"STORED")
    for key in dead[1:]:
        assert conn.set(key, "newest") == b"STORED"
        assert conn.get(key) == b"newest"
    cluster.nodes[2].wake()
    assert conn.get(dead[0]) in (b"old", b"lost")


def test_a_failover_under_load(cluster, start_writer):
    writer = start_writer(KEYS)
    writer.await_rounds(5)
    cluster.nodes[1].silence()
    time.sleep(0.05)
    cluster.fail_over(1)
    writer.await_rounds(5)
    writer.finish()


def test_a_node_that_is_stopped_and_started(cluster, conn):
    keys = keys_of(cluster, 1, 5)
    conn.set(keys[0], "x")
    cluster.nodes[1].stop()
    assert b"backend 127.0.0.1" in conn.cmd(f"get {keys[0]}")
    cluster.nodes[1].start()
    wait_until("it is back", lambda: conn.cmd(f"set {keys[0]} 0 0 1", "y") == b"STORED")
    assert conn.get(keys[0]) == b"y"


@pytest.mark.thorough
def test_vbuckets_without_a_node_fail_at_once(cluster, conn, daemon):
    """A pipeline of requests for them is answered, whatever the time that one may have."""
    lost, kept = keys_of(cluster, 2, 200), keys_of(cluster, 0, 5)
    for key in (lost[0], kept[0]):
        assert conn.set(key, "x") == b"STORED"
    cluster.lose(2)
    wait_until("the map", lambda: conn.stats()["cluster_vbuckets_without_node"] == "21")
    assert conn.stats()["cluster_vbuckets"] == "64"
    conn.send("".join(f"get {key}\r\n" for key in lost) + f"mn\r\n")
    for key in lost:
        text = f"no node has vBucket {vbucket_of(key.encode(), 64)}, which this key is in"
        assert conn.line().decode() == f"SERVER_ERROR pool documents: {text}, nothing done"
    assert conn.line() == b"MN"
    assert {conn.cmd(f"ladd {key} x").split(b" vBucket")[0] for key in lost} == {
        b"STORED", b"SERVER_ERROR pool documents: no node has"}
    assert all(conn.set(key, "x") == b"STORED" for key in kept)
    cluster.rebalance()
    wait_until("all have one", lambda: conn.stats()["cluster_vbuckets_without_node"] == "0")
    assert all(conn.set(key, "x") == b"STORED" for key in lost)
    daemon.wait_for_log("each vBucket has a node again")
    log = daemon.log()
    assert log.count("21 of 64 vBuckets have no node") == 1 and log.count("have no node") == 1


@pytest.mark.parametrize(
    "status", [0x07, 0x08, 0x09, 0x0C, 0x0D, 0x1F, 0x20, 0x25, 0x82, 0x85, 0x86, 0xA2, 0xA4])
def test_what_passes_is_not_seen(cluster, conn, status):
    (key,) = keys_of(cluster, 0, 1)
    cluster.nodes[0].refusals += [status] * 3
    assert conn.set(key, "x") == b"STORED"
    cluster.nodes[0].refusals += [status] * 2
    assert conn.get(key) == b"x"
    assert conn.stats()["cluster_retries"] == "5"


@pytest.mark.parametrize("status, text", [
    (0x86, b"temporary failure (0x86), nothing done"),
    (0x07, b"another node has this key (0x7), nothing done"),
])
def test_what_does_not_pass_ends_with_the_timeout(cluster, conn, status, text):
    (key,) = keys_of(cluster, 0, 1)
    cluster.nodes[0].refusals += [status] * 1000
    assert conn.set(key, "x") == b"SERVER_ERROR pool documents: " + text
    cluster.nodes[0].refusals.clear()
    assert conn.get(key) is None


@pytest.mark.parametrize("status, text", [
    (0x04, b"invalid arguments (0x4)"),
    (0x24, b"the user has no access (0x24)"),
    (0x26, b"the node does not have the encryption key (0x26)"),
    (0x30, b"rate limit of data sent (0x30)"),
    (0x34, b"the scope is as large as it may be: it takes no more data (0x34)"),
    (0x35, b"the bucket is as large as it may be: it takes no more data (0x35)"),
    (0x38, b"too little room on a node's disk: the bucket takes no more data (0x38)"),
    (0x80, b"the server does not know a frame of this request (0x80)"),
    (0x81, b"the server does not know this request (0x81)"),
    (0xA1, b"too few nodes for a durable change: add some, or lower the bucket's replicas (0xa1)"),
    (0xA3, b"the durable write was not confirmed (0xa3), outcome unknown"),
    (0x84, b"internal error (0x84), outcome unknown"),
    (0x06, b"the value is not a number (0x6)"),
    (0x77, b"unknown status (0x77), outcome unknown"),
])
def test_what_is_final_is_answered(cluster, conn, status, text):
    (key,) = keys_of(cluster, 0, 1)
    cluster.nodes[0].refusals.append(status)
    port = cluster.nodes[0].port
    assert conn.set(key, "x") == b"SERVER_ERROR backend 127.0.0.1:%d: " % port + text
    wait_until("it goes on", lambda: conn.set(key, "y") == b"STORED")


@pytest.mark.parametrize("request_text", ["get {}", "gat 0 {}", "mg {} v", "append {} 0 0 1\r\n1", "delete {}", "touch {} 0"])
def test_a_node_that_misses_a_number_in_what_does_not_count_is_answered(cluster, conn, request_text):
    """Such a get would have no answer at all."""
    (key,) = keys_of(cluster, 0, 1)
    assert conn.set(key, "1") == b"STORED"
    cluster.nodes[0].refusals.append(0x06)
    assert conn.cmd(request_text.format(key)).endswith(b": the value is not a number (0x6)")
    assert conn.get(key) == b"1"
    cluster.nodes[0].refusals.append(0x06)
    assert conn.cmd(f"incr {key} 1") == (
        b"CLIENT_ERROR cannot increment or decrement non-numeric value")


def test_a_request_that_waits_is_not_overtaken(cluster, conn):
    (key,) = keys_of(cluster, 0, 1)
    cluster.nodes[0].refusals += [0x86] * 4
    conn.send("".join(f"set {key} 0 0 1\r\n{i}\r\nget {key}\r\n" for i in range(9)))
    last = None
    for i in range(9):
        answer = conn.line()
        last = b"%d" % i if answer == b"STORED" else last
        assert answer == b"STORED" or b"temporary failure (0x86), nothing done" in answer
        line = conn.line()
        if line.startswith(b"VALUE"):
            assert conn.data(1) == last
            line = conn.line()
        assert line == b"END" or b"temporary failure" in line
    assert last == b"8" and conn.get(key) == b"8"


def test_requests_wait_for_the_first_map(cluster, start_daemon, tmp_path):
    for node in cluster.nodes:
        node.silence()
    daemon = start_daemon(config=sections(cluster, tmp_path, connect_timeout_ms=10000,
                                          timeout_ms=10000, proxy={"deadline_ms": 20000}))
    with daemon.conn() as conn:
        conn.send("set a 0 0 1\r\nx\r\nget a\r\n")
        assert conn.is_silent()
        for node in cluster.nodes:
            node.wake()
        assert conn.line() == b"STORED"
        assert conn.values_answer() == [(b"a", [0, 1], b"x")]


def test_no_node_answers(cluster, start_daemon, tmp_path):
    for node in cluster.nodes:
        node.stop()
    with start_daemon(config=sections(cluster, tmp_path)).conn() as conn:
        no = b"SERVER_ERROR pool documents: no node has answered yet, nothing done"
        assert conn.set("a", "x") == no
        assert conn.cmd("get a") == no


def test_the_port_for_http_is_no_data_port(start_daemon, tmp_path, cluster):
    """Such a server waits for the end of a line, and says nothing."""
    config = sections(cluster, tmp_path, connect_timeout_ms=200)
    config["pool documents"]["servers"] = "127.0.0.1:8091"
    daemon = start_daemon(config=config)
    daemon.wait_for_log("cannot connect: .*; 8091 is Couchbase's port for HTTP: name the data port")


def test_a_wrong_password(cluster, start_daemon, tmp_path):
    config = sections(cluster, tmp_path)
    (tmp_path / "password").write_text("wrong")
    daemon = start_daemon(config=config)
    daemon.wait_for_log("it refuses user user: wrong user or password")
    with daemon.conn() as conn:
        assert conn.set("a", "x").endswith(b"no node has answered yet, nothing done")


def test_a_node_that_does_not_know_the_password(cluster, start_daemon, tmp_path):
    cluster.lies = True
    daemon = start_daemon(config=sections(cluster, tmp_path))
    daemon.wait_for_log("does not know the password itself")


def test_any_node_tells_of_the_others(cluster, start_daemon, tmp_path):
    cluster.nodes[0].stop()
    daemon = start_daemon(config=sections(cluster, tmp_path, seeds=[0, 2]))
    with daemon.conn() as conn:
        for key in keys_of(cluster, 1, 3) + keys_of(cluster, 2, 3):
            assert conn.set(key, "x") == b"STORED"
        cluster.fail_over(0)
        wait_until("the new map", lambda: all(conn.set(key, "x") == b"STORED" for key in KEYS))


def test_addresses_of_another_network(cluster, start_daemon, tmp_path):
    cluster.own_host = "192.0.2.1"  # which nobody has
    with start_daemon(config=sections(cluster, tmp_path, network="external")).conn() as conn:
        assert all(conn.set(key, "x") == b"STORED" for key in KEYS)


def test_the_network_is_that_of_the_node_that_was_reached(cluster, start_daemon, tmp_path):
    cluster.own_host = "192.0.2.1"
    daemon = start_daemon(config=sections(cluster, tmp_path))
    with daemon.conn() as conn:
        assert all(conn.set(key, "x") == b"STORED" for key in KEYS)
        cluster.add_node()
        cluster.rebalance()
        assert all(conn.set(key, "y") == b"STORED" for key in KEYS)
    daemon.wait_for_log("the nodes' addresses are those of the network external, as 127.0.0.1:")
    assert daemon.log().count("network external") == 1


def test_a_node_without_an_external_address_costs_its_own_keys_only(cluster, start_daemon, tmp_path):
    cluster.own_host = "192.0.2.1"
    cluster.without_external = {2}
    daemon = start_daemon(config=sections(cluster, tmp_path, seeds=[0], network="external"))
    no = b"the cluster map has no address of the network external for 192.0.2.1, nothing done"
    with daemon.conn() as conn:
        for key in keys_of(cluster, 0, 3) + keys_of(cluster, 1, 3):
            assert conn.set(key, "x") == b"STORED"
        for key in keys_of(cluster, 2, 3):
            assert conn.set(key, "x") == b"SERVER_ERROR pool documents: " + no
        daemon.wait_for_log("21 of 64 vBuckets have no node")
        daemon.wait_for_log("has no address of the network external for 192.0.2.1: requests for that")
        cluster.without_external = set()
        cluster.plan(cluster.owners)
        wait_until("the map", lambda: all(conn.set(key, "x") == b"STORED" for key in KEYS))


def test_names_that_the_file_does_not_have(cluster, start_daemon, tmp_path):
    cluster.own_host = "localhost"
    with start_daemon(config=sections(cluster, tmp_path, network="default")).conn() as conn:
        assert all(conn.set(key, "x") == b"STORED" for key in KEYS)


def test_a_name_of_several_nodes(cluster, start_daemon, tmp_path):
    """Any of them knows the others, so nothing is wrong with it, or with another address later."""
    dns = FakeDns()
    dns.names["nodes.test"] = ["127.0.0.1", "127.0.0.2"]
    config = sections(cluster, tmp_path, seeds=[0], proxy=name_config(dns)["proxy"])
    config["pool documents"]["servers"] = [f"nodes.test:{cluster.nodes[0].port}"]
    try:
        daemon = start_daemon(config=config)
        with daemon.conn() as conn:
            assert all(conn.set(key, "x") == b"STORED" for key in KEYS)
        dns.names["nodes.test"] = ["127.0.0.3"]
        daemon.wait_for_log("its address was 127.0.0.1 and is 127.0.0.3 now")
        assert "another server" not in daemon.log()
        assert "addresses of one family" not in daemon.log()
    finally:
        dns.stop()


@pytest.mark.thorough
def test_a_map_that_cannot_be_read(cluster, conn, daemon):
    kept = set(keys_of(cluster, 0, 50))
    cluster.spoils_map = True
    cluster.add_node()
    cluster.rebalance()
    daemon.wait_for_log("its cluster map is no JSON object")
    kept &= set(keys_of(cluster, 0, 50))
    assert kept
    assert all(conn.set(key, "x") == b"STORED" for key in kept)
    cluster.spoils_map = False
    cluster.plan(cluster.owners)
    wait_until("the map", lambda: all(conn.set(key, "x") == b"STORED" for key in KEYS))


def test_a_silent_node_does_not_hold_the_end_up(cluster, conn, daemon):
    (key,) = keys_of(cluster, 2, 1)
    cluster.nodes[2].silence()
    conn.send(f"set {key} 0 0 1\r\nx\r\n")
    time.sleep(0.05)
    daemon.stop()
    assert b"unknown" in conn.line()


def test_the_deadline_holds_while_requests_are_sent_again(cluster, start_daemon, tmp_path):
    config = sections(cluster, tmp_path, timeout_ms=30000, proxy={"deadline_ms": 300, "threads": 1})
    with start_daemon(config=config).conn() as conn:
        wait_until("all nodes are up", lambda: up_nodes(conn) == 3)
        (key,) = keys_of(cluster, 0, 1)
        cluster.nodes[0].refusals += [0x86] * 1000
        assert conn.set(key, "x").startswith(b"SERVER_ERROR deadline over, ")
        cluster.nodes[0].refusals.clear()
        wait_until("it goes on", lambda: conn.set(key, "y") == b"STORED")
