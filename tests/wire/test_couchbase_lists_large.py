# SPDX-License-Identifier: BSD-3-Clause
"""Long lists on a pool of type couchbase, against a model; and beside lists in memcached."""

import random
import subprocess

import pytest

from couchbase_support import documents
from harness import ROOT, SLOW
from model import TINY, Model, converse, converse_at_random, random_transaction

DURABILITIES = pytest.mark.parametrize("durability", ["none", "majority"])


def stored(cluster, prefix=""):
    """The keys of all documents."""
    return sorted(key.decode() for vbucket in cluster.vbuckets for key in vbucket.documents
                  if vbucket.live(key) and key.startswith(prefix.encode()))


def sections(cluster, folder, durability="none", **lists):
    return {
        "proxy": {"allow_flush_all": "no"},
        "pool documents": documents(cluster, folder, durability=durability,
                                    timeout_ms=int(3000 * SLOW)),
        "lists": {"pool": "documents", **TINY, **lists},
    }


@DURABILITIES
@pytest.mark.parametrize("cache_bytes", ["64m", 0])
def test_random_requests_give_what_the_model_says(cluster, start_daemon, tmp_path, durability,
                                                  cache_bytes):
    config = sections(cluster, tmp_path, durability, cache_bytes=cache_bytes)
    keys = ["one", "two", "three"]
    with start_daemon(config=config).conn() as conn:
        converse_at_random(conn, durability, keys, rounds=8, requests=120, universe=200)
        stats = conn.stats()
        assert int(stats["list_flips"]) > 10 and int(stats["list_merges"]) > 0
        for key in keys:
            assert conn.cmd(f"ldrop {key}") == b"DELETED"
    assert stored(cluster) == []


def test_lists_of_both_kinds_of_pools(cluster, memcached, start_daemon, tmp_path):
    """A head in a memcached, and one in a cluster: copied, computed, changed in one step."""
    config = sections(cluster, tmp_path)
    config["pool cache"] = {"servers": [memcached.address]}
    config["lists c:"] = {"pool": "cache", "placement": "head"}
    rng, model, keys = random.Random(5), Model(), ["one", "c:two", "c:three", "four"]
    items = [f"item-{i}" for i in range(200)]
    with start_daemon(config=config).conn() as conn:
        conn.cmd("lset one " + " ".join(items))
        for target in ("c:one", "c:more", "two"):
            assert conn.cmd(f"lcopy one {target}") == b"200"
            assert conn.lget(target) == [item.encode() for item in items]
        assert conn.cmd("lcopy c:one back") == b"200"
        conn.cmd("ldel back item-7")
        assert conn.cmd("ldiffstore c:missing c:one back") == b"1"
        assert conn.lget("c:missing") == [b"item-7"]
        assert conn.cmd("linterlen c:missing one") == b"1"
        conn.cmd("ldrop one")
        for _ in range(5):
            converse(conn, [random_transaction(rng, model, keys) for _ in range(30)])
        for key in keys:
            assert conn.lget(key) == model.items(key)
    assert "back#" in stored(cluster) and not stored(cluster, "c:")


def test_the_second_in_which_a_list_ends(cluster, start_daemon, tmp_path):
    """It is kept through rewritings, and its sublists last longer. There are no clock items."""
    with start_daemon(config=sections(cluster, tmp_path)).conn() as conn:
        conn.cmd("lset l " + " ".join(f"item-{i}" for i in range(100)))
        conn.cmd("lcompact l")
        assert conn.cmd("ltouch l 1000") == b"TOUCHED"
        vbucket = next(v for v in cluster.vbuckets if b"l#" in v.documents)
        end_s = vbucket.documents[b"l#"].expires_s
        assert end_s > 0
        for i in range(10):
            conn.cmd(f"ladd l new-{i} " + " ".join(f"x{i}-{k}" for k in range(40)))
            conn.cmd("lcompact l")
            assert conn.cmd("ldelx l item-3") == (b"1" if i == 0 else b"0")
        assert vbucket.documents[b"l#"].expires_s == end_s
        assert 990 <= int(conn.cmd("lttl l")) <= 1000
        sublists = [key for key in stored(cluster) if key.startswith("l#") and key != "l#"]
        assert sublists
        for key in sublists:
            (found,) = [v.documents[key.encode()] for v in cluster.vbuckets if key.encode() in v.documents]
            assert found.expires_s > end_s
        assert not stored(cluster, "mclistd#")


def test_servers_that_do_not_tell_times_to_live(cluster, start_daemon, tmp_path):
    """They speak a part of the protocol only. Lists without times work; what needs them is refused by
    name, and nothing is done."""
    cluster.unknown = {0xA0}  # GET_META
    cluster.features -= {0x10, 0x11}
    with start_daemon(config=sections(cluster, tmp_path)).conn() as conn:
        converse_at_random(conn, 3, ["one", "two"], rounds=4, requests=120, universe=200)
        assert conn.cmd("lset l a b") == b"STORED"
        for request in ("ltouch l 100", "lput l 1 100\r\nc", "lput missing 1 100\r\nc"):
            answer = conn.cmd(request)
            assert b"it does not tell times to live (0x8" in answer and b"nothing done" in answer
        assert conn.lget("l") == [b"a", b"b"]
        assert conn.cmd("lget missing") == b"END"
        assert conn.cmd("ltouch l 0") == b"TOUCHED"
        assert conn.cmd("lttl l") == b"-1"


@pytest.mark.parametrize("on_missing", ["create", "refuse"])
def test_a_change_whose_decider_is_gone_without_times_to_live(cluster, start_daemon, tmp_path, on_missing):
    """The head that proves that it is gone is made without asking for times."""
    cluster.unknown = {0xA0}  # GET_META
    lists = {"on_missing": on_missing, "protect_lists": False}
    with start_daemon(config={**sections(cluster, tmp_path), "lists": lists}).conn() as conn:
        undecided = "^1\n+3:eve?43:nhmjd2vmc6qaa.1795229331 2 alice bob +3:bob"
        assert conn.set("bob#", undecided) == b"STORED"
        assert conn.lget("bob") == [b"eve"]
        assert conn.cmd("laddx bob zoe") == b"1"
        assert conn.cmd("lcreate alice") == b"STORED"


@pytest.mark.parametrize("command", [
    ["lists", "--proxy", "PROXY"],
    ["convert", "--proxy", "PROXY", "--verify-only", "old:"],
])
def test_scripts_that_read_memcacheds_refuse_the_pool_by_name(cluster, start_daemon, tmp_path, command):
    config = sections(cluster, tmp_path)
    config["lists old:"] = {"dialect": "simple"}
    daemon = start_daemon(config=config)
    name, *options = [word.replace("PROXY", f"127.0.0.1:{daemon.port}") for word in command]
    done = subprocess.run([ROOT / "scripts" / name, *options], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60 * SLOW, check=False)
    assert done.returncode == 2, done.stderr
    assert "pool documents is of type couchbase: this script reads memcacheds only" in done.stderr
