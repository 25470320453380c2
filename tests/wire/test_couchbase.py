# SPDX-License-Identifier: BSD-3-Clause
"""A pool of type couchbase: what clients see of it while all is well, before the fake cluster."""

import re

import pytest

from couchbase_support import documents, sections, vbucket_of
from harness import wait_until


@pytest.fixture
def daemon(cluster, start_daemon, tmp_path):
    return start_daemon(config=sections(cluster, tmp_path, proxy={"max_value_bytes": "20m"}))


@pytest.fixture
def conn(daemon):
    with daemon.conn() as conn:
        yield conn


def test_classic_verbs(conn):
    assert conn.cmd("get a") == b"END"
    assert conn.set("a", "one", flags=7) == b"STORED"
    assert conn.values("get a") == [(b"a", [7, 3], b"one")]
    assert conn.cmd("add a 0 0 1", "x") == b"NOT_STORED"
    assert conn.cmd("add b 0 0 1", "x") == b"STORED"
    assert conn.cmd("replace c 0 0 1", "x") == b"NOT_STORED"
    assert conn.cmd("replace b 0 0 1", "y") == b"STORED"
    assert conn.cmd("append c 0 0 1", "x") == b"NOT_STORED"
    assert conn.cmd("append a 0 0 1", ">") == b"STORED"
    assert conn.cmd("prepend a 0 0 1", "<") == b"STORED"
    ((_, (flags, _, cas), value),) = conn.values("gets a")
    assert (flags, value) == (7, b"<one>")
    assert conn.cmd(f"cas a 1 0 3 {cas + 1}", "two") == b"EXISTS"
    assert conn.cmd("cas a 1 0 3 0", "two") == b"EXISTS"
    assert conn.cmd(f"cas a 1 0 3 {cas}", "two") == b"STORED"
    assert conn.cmd(f"cas missing 1 0 3 {cas}", "two") == b"NOT_FOUND"
    assert conn.cmd("touch a 100") == b"TOUCHED"
    assert conn.cmd("touch missing 100") == b"NOT_FOUND"
    assert conn.values("gat 50 a missing b") == [(b"a", [1, 3], b"two"), (b"b", [0, 1], b"y")]
    assert len(conn.values("gats 50 a")[0][1]) == 3
    assert conn.cmd("delete a") == b"DELETED"
    assert conn.cmd("delete a") == b"NOT_FOUND"


def test_a_time_above_31_bits_is_over_at_once(conn):
    """As memcached reads it, though a node would count on until 2106."""
    for exptime in (2147483648, 4294967295, -1):
        assert conn.cmd(f"set a 0 {exptime} 1\r\nx") == b"STORED"
        assert conn.get("a") is None
        assert conn.set("a", "x") == b"STORED"
        assert conn.cmd(f"touch a {exptime}") == b"TOUCHED"
        assert conn.get("a") is None


def test_numbers(conn):
    assert conn.cmd("incr n 1") == b"NOT_FOUND"
    conn.set("n", "5")
    assert conn.cmd("incr n 18446744073709551615") == b"4"
    assert conn.cmd("decr n 10") == b"0"
    conn.set("text", "five")
    text = b"CLIENT_ERROR cannot increment or decrement non-numeric value"
    assert conn.cmd("incr text 1") == text and conn.cmd("decr text 1") == text
    assert conn.cmd("ma new N0 J41 v") == b"VA 2"
    assert conn.line() == b"41"
    assert conn.cmd("ma new D2 MI v k O7 c").startswith(b"VA 2 knew O7 c")
    assert conn.line() == b"43"


def test_meta_commands(conn):
    assert conn.cmd("ms a 3 T100 F5 c k O1", "one").startswith(b"HD c")
    assert re.fullmatch(rb"VA 3 f5 ka O2 s3 t(9\d|100)", conn.cmd("mg a v f k O2 s t q"))
    assert conn.line() == b"one"
    assert conn.cmd("mg a") == b"HD"
    assert conn.cmd("mg missing k O1") == b"EN kmissing O1"
    conn.send("mg missing q\r\nmn\r\n")
    assert conn.line() == b"MN"
    assert conn.cmd("mg a T0 t") == b"HD t-1"
    cas = int(conn.cmd("mg a c").split(b"c")[1])
    assert conn.cmd("ms a 1 ME", "x") == b"NS"
    assert conn.cmd(f"ms a 1 MA C{cas + 1}", "x") == b"EX"
    assert conn.cmd(f"ms a 1 MA C{cas}", "x") == b"HD"
    assert conn.cmd("ms missing 1 MR k", "x") == b"NS kmissing"
    assert conn.cmd("ms missing 1 C5", "x") == b"NF"
    assert conn.cmd("md a C5 k") == b"EX ka"
    conn.send("md a q\r\nmd a q\r\nmn\r\n")
    assert conn.lines(2) == [b"NF", b"MN"]


def test_keys_in_base64(conn):
    key = bytes(range(1, 10))
    assert conn.cmd("ms AQIDBAUGBwgJ 1 b k", "x") == b"HD kAQIDBAUGBwgJ b"
    assert conn.cmd("mg AQIDBAUGBwgJ b v k") == b"VA 1 kAQIDBAUGBwgJ b"
    assert conn.line() == b"x"
    assert len(key) == 9


def test_what_there_is_not(conn):
    no = b": pool documents is of type couchbase"
    for flag in "hlNRE":
        word = flag + ("30" if flag in "NRE" else "")
        assert conn.cmd(f"mg a {word}") == b"CLIENT_ERROR flag %s of mg" % flag.encode() + no
    assert conn.cmd("ms a 1 I", "x") == b"CLIENT_ERROR flag I of ms" + no
    assert conn.cmd("ms a 1 MA N0", "x") == b"CLIENT_ERROR flag N of ms" + no
    assert conn.cmd("md a I") == b"CLIENT_ERROR flag I of md" + no
    assert conn.cmd("ma a T0") == b"CLIENT_ERROR flag T of ma" + no
    assert conn.cmd("me a") == b"CLIENT_ERROR me" + no
    assert conn.cmd("flush_all") == b"CLIENT_ERROR flush_all" + no
    # Behind others, such an answer waits for its turn.
    conn.send("get a\r\nflush_all\r\nme a\r\nget a b c d\r\n")
    refused = [b"CLIENT_ERROR flush_all" + no, b"CLIENT_ERROR me" + no]
    assert conn.lines(4) == [b"END", *refused, b"END"]
    assert conn.cmd("mn") == b"MN"


def test_noreply_and_pipelines_keep_their_order(conn):
    requests = [f"set k{i % 7} 0 0 {len(str(i))} noreply\r\n{i}\r\nget k{i % 7}\r\n" for i in range(500)]
    conn.send("".join(requests))
    for i in range(500):
        assert conn.values_answer() == [(b"k%d" % (i % 7), [0, len(str(i))], b"%d" % i)]


def test_many_keys_over_all_nodes(conn, cluster):
    keys = [f"key-{i}" for i in range(300)]
    for key in keys[::2]:
        conn.send(f"set {key} 3 0 {len(key)} noreply\r\n{key}\r\n")
    found = conn.values("get " + " ".join(keys))
    assert found == [(k.encode(), [3, len(k)], k.encode()) for k in keys[::2]]
    for node in cluster.nodes:
        for opcode, key, status in list(node.log):
            if key and opcode == 0:
                assert cluster.owner(vbucket_of(key, 64)) is node and status in (0, 1)


def test_large_values(conn):
    large = bytes(range(256)) * 20000
    assert conn.cmd(f"set large 0 0 {len(large)}", large) == b"STORED"
    assert conn.values("get large") == [(b"large", [0, len(large)], large)]
    assert conn.cmd(f"append large 0 0 {len(large)}", large) == b"STORED"
    assert conn.values("get large large")[1][2] == large + large
    beyond = 20 * 1024 * 1024
    assert conn.cmd(f"append large 0 0 {beyond}", b"x" * beyond) == (
        b"SERVER_ERROR object too large for cache")
    assert conn.cmd("mg large s") == b"HD s%d" % (2 * len(large))


def test_stats_show_the_nodes_of_the_map(conn, cluster):
    conn.set("a", "x")
    shown = wait_until("all are up", lambda: up_nodes(conn, cluster))
    assert len(shown) == 3
    numbers = conn.stats()
    assert int(numbers["cluster_maps"]) >= 1 and numbers["cluster_retries"] == "0"


def up_nodes(conn, cluster):
    found = conn.stats("stats backends")
    names = [f"backend:127.0.0.1:{node.port}" for node in cluster.nodes]
    return names if all(found.get(f"{name}:state") == "up" for name in names) else None


def test_lists_live_in_another_pool(cluster, memcached, start_daemon, tmp_path):
    config = {
        "proxy": {"allow_flush_all": "no", "pool": "documents"},
        "pool documents": documents(cluster, tmp_path),
        "lists": {"pool": "main"},
    }
    with start_daemon([memcached], config=config).conn() as conn:
        assert conn.cmd("ladd fruit apple pear") == b"STORED"
        assert conn.lget("fruit") == [b"apple", b"pear"]
        assert conn.set("apple", "red") == b"STORED"
        assert conn.get("apple") == b"red"
        assert memcached.conn().get("apple") is None
        assert conn.cmd("lpurge fruit") == b"2"
        assert conn.get("apple") is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN"])
def test_logins(cluster, start_daemon, tmp_path, mechanism):
    cluster.mechanisms = [mechanism]
    plain = mechanism == "PLAIN"
    daemon = start_daemon(config=sections(cluster, tmp_path, plain_login=plain))
    with daemon.conn() as conn:
        assert conn.set("a", "x") == b"STORED"


def test_durable_changes(cluster, start_daemon, tmp_path):
    cluster.replicas_lag = True
    with start_daemon(config=sections(cluster, tmp_path, durability="majority")).conn() as conn:
        for i in range(30):
            assert conn.set(f"k{i}", "kept") == b"STORED"
        assert conn.cmd("touch k1 100") == b"TOUCHED"
        cluster.nodes[1].silence()
        cluster.fail_over(1)
    with start_daemon(config=sections(cluster, tmp_path, seeds=[0], durability="majority")).conn() as conn:
        assert len(conn.values("get " + " ".join(f"k{i}" for i in range(30)))) == 30


@pytest.mark.thorough
def test_a_durable_change_has_seconds(cluster, start_daemon, tmp_path):
    """With the default settings. The node gives it up before the proxy gives the connection up."""
    cluster.durable_pause_ms = 2500
    with start_daemon(config=sections(cluster, tmp_path, durability="majority")).conn() as conn:
        assert conn.set("k", "kept") == b"STORED"
        assert conn.cmd("ladd fruit apple") == b"STORED"
        assert {node.durability_ms for node in cluster.nodes} <= {None, 5400}


@pytest.mark.thorough
def test_a_slow_login(cluster, start_daemon, tmp_path):
    """As with LDAP: with the default settings, and with less than it takes."""
    cluster.login_pause_s = 0.8
    config = sections(cluster, tmp_path, seeds=[0])
    del config["pool documents"]["connect_timeout_ms"]
    with start_daemon(config=config).conn() as conn:
        wait_until("the login", lambda: conn.set("a", "x") == b"STORED")
    config["pool documents"]["connect_timeout_ms"] = 300
    start_daemon(config=config).wait_for_log(
        r"not answering since .*: no answer to SASL_STEP within connect_timeout_ms \(300\)")
