# SPDX-License-Identifier: BSD-3-Clause
"""The command `where`: what it says is held against where the items are."""

import re

import pytest

from couchbase_support import Cluster, keys_of, vbucket_of
from couchbase_support import sections as couchbase_sections
from harness import free_port, wait_until
from test_convert_support import names_stored
from test_reload import Reloaded

DIALECTS = ["native", "simple", "tombstone", "signed", "paired", "flip", "marker", "sublists", "ring"]


def where(operated, key):
    """The line of the section, and {what: {name: value}}."""
    first, *lines = operated.ask(f"where {key}").splitlines()
    assert first == "OK"
    found = [dict(re.findall(r"(\w+)=(\[.*?\]|\S+)", line)) for line in lines]
    return next(line for line in found if "section" in line), {
        line["what"]: line for line in found if "what" in line}  # fmt: skip


@pytest.fixture
def three(start_memcached):
    return [start_memcached() for _ in range(3)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_items_are_where_it_says(start_daemon, three, tmp_path, dialect):
    operated = Reloaded(start_daemon, three, tmp_path, **{"lists l:": {"dialect": dialect}})
    stored = {memcached.address: memcached for memcached in three}
    with operated.daemon.conn() as conn:
        for key in [f"l:{number}" for number in range(5)]:
            assert conn.cmd(f"ladd {key} apple pear") == b"STORED"
            assert conn.cmd(f"set plain-{key} 0 0 1", b"x") == b"STORED"
    names = {address: set(names_stored(memcached)) for address, memcached in stored.items()}
    count = sum(name.startswith(("l:", "follow-", "unfollow-")) for found in names.values() for name in found)
    told = set()
    for key in [f"l:{number}" for number in range(5)]:
        section, items = where(operated, key)
        assert section == {"section": "[lists l:]", "dialect": dialect}
        del items["plain"]
        for line in items.values():
            if line["server"] == "each":
                told |= {(address, name) for address, found in names.items() for name in found
                         if re.fullmatch(re.escape(line["item"]).replace("NUMBER", r"\d+"), name)}
            elif line["item"] in names[line["server"]]:
                told.add((line["server"], line["item"]))
                assert line["state"] == "up" and line["pool"] == "main"
        plain = where(operated, f"plain-{key}")[1]["plain"]
        assert plain["item"] in names[plain["server"]]
    assert count >= 5 and len(told) == count


def test_sublists_lie_beside_their_head_or_each_for_itself(start_daemon, three, tmp_path):
    operated = Reloaded(start_daemon, three, tmp_path, **{"lists s:": {"placement": "spread"}})
    _, items = where(operated, "x")
    assert items["sublist"] == {**items["head"], "what": "sublist", "item": "x#NAME.NUMBER"}
    assert where(operated, "s:x")[1]["sublist"]["server"] == "each"


def test_lists_of_another_pool_and_those_that_move(start_daemon, start_memcached, tmp_path):
    one, other = start_memcached(), start_memcached()
    operated = Reloaded(start_daemon, [one], tmp_path, **{
        "proxy": {"pool": "main"}, "pool other": {"servers": other.address},
        "lists m:": {"dialect": "sublists", "migrate": "native", "pool": "other"}})  # fmt: skip
    section, items = where(operated, "m:x")
    assert section == {"section": "[lists m:]", "dialect": "sublists", "migrate": "native"}
    assert items["plain"]["pool"] == "main" and items["plain"]["server"] == one.address
    assert {what: line["pool"] for what, line in items.items() if what != "plain"} == dict.fromkeys(
        ["index", "sublist", "head"], "other")


def test_a_server_that_is_down_is_said_to_be(start_daemon, tmp_path):
    address = f"127.0.0.1:{free_port()}"
    operated = Reloaded(start_daemon, [address], tmp_path)
    wait_until("it is down", lambda: where(operated, "x")[1]["head"]["state"] == "down")
    assert where(operated, "x")[1]["head"]["server"] == address


@pytest.mark.parametrize("line", ["where", "where ", "where a b", "where " + "x" * 251])
def test_what_is_no_key(start_daemon, memcached, tmp_path, line):
    operated = Reloaded(start_daemon, [memcached], tmp_path)
    assert operated.ask(line).startswith("ERROR usage: where KEY")


def test_hostile_and_long_keys(start_daemon, memcached, tmp_path):
    operated = Reloaded(start_daemon, [memcached], tmp_path,
                        **{"lists p:": {"dialect": "paired"}})
    answer = operated.ask("where a\x1b[31m\\\"%s%n")
    assert "\x1b" not in answer and answer.count("\n") == 5
    for key in ("x" * 250, "x" * 221, "p:" + "x" * 248, "p:" + "x" * 240):
        assert "what=none: the key is too long for a list" in operated.ask(f"where {key}")
    for key in ("x" * 220, "p:" + "x" * 200):
        assert "what=none" not in operated.ask(f"where {key}")


def test_nodes_of_a_cluster(start_daemon, tmp_path):
    with Cluster(nodes=3) as cluster:
        operated = Reloaded(start_daemon, None, tmp_path, **couchbase_sections(cluster, tmp_path))
        wait_until("there is a map", lambda: "unknown" not in operated.ask("where x"))
        for index, node in enumerate(cluster.nodes):
            first, = keys_of(cluster, index, 1)
            wait_until("it is up", lambda key=first: where(operated, key)[1]["plain"]["state"] == "up")
            for key in keys_of(cluster, index, 3):
                line = where(operated, key)[1]["plain"]
                assert line["server"] == f"127.0.0.1:{node.port}"
                assert int(line["vbucket"]) == vbucket_of(key.encode(), len(cluster.owners))
        _, items = where(operated, "x")
        assert int(items["head"]["vbucket"]) == vbucket_of(b"x#", len(cluster.owners))
        assert items["sublist"]["server"] == "each"


def test_a_cluster_without_a_map(start_daemon, tmp_path):
    with Cluster(nodes=1) as cluster:
        settings = couchbase_sections(cluster, tmp_path, seeds=[])
        settings["pool documents"]["servers"] = f"127.0.0.1:{free_port()}"
        operated = Reloaded(start_daemon, None, tmp_path, **settings)
        assert where(operated, "x")[1]["plain"] == {
            "what": "plain", "server": "unknown", "pool": "documents", "item": "x"}  # fmt: skip
