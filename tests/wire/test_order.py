# SPDX-License-Identifier: BSD-3-Clause
"""order = recent: an item that is added again goes to the end of its list."""

import random

import pytest

from model import TINY, Model, assert_compact, converse, random_request

RECENT = {"order": "recent"}


def put(conn, verb, key, data):
    return conn.cmd(f"{verb} {key} {len(data)}", data)


@pytest.mark.config(lists=RECENT)
def test_an_item_that_is_added_again_moves_to_the_end(conn):
    assert conn.cmd("ladd k a b c") == b"STORED"
    assert conn.cmd("ladd k a") == b"STORED"
    assert conn.lget("k") == [b"b", b"c", b"a"]
    assert put(conn, "laddb", "k", b"b") == b"STORED"
    assert conn.lget("k") == [b"c", b"a", b"b"]
    conn.send("laddq k c\r\n")
    assert conn.lget("k") == [b"a", b"b", b"c"]
    assert conn.cmd("ldel k b b") == b"DELETED"
    assert conn.lget("k") == [b"a", b"c"]
    assert conn.cmd("lcompact k") == b"OK"
    assert conn.cmd("ladd k a") == b"STORED"
    assert conn.lget("k") == [b"c", b"a"]


@pytest.mark.config(lists=RECENT)
def test_laddx_counts_what_is_new_and_moves_all(conn):
    assert conn.cmd("laddx k a b") == b"2"
    assert conn.cmd("laddx k a c") == b"1"
    assert conn.lget("k") == [b"b", b"a", b"c"]
    assert conn.cmd("laddx k b b") == b"0"
    assert conn.lget("k") == [b"a", b"c", b"b"]


@pytest.mark.config(lists=RECENT)
def test_of_an_item_named_twice_the_last_place_counts(conn):
    assert conn.cmd("lset k a b a c") == b"STORED"
    assert conn.lget("k") == [b"b", b"a", b"c"]
    assert put(conn, "lput", "k", b"x,y,z,x") == b"STORED"
    assert conn.lget("k") == [b"y", b"z", b"x"]
    long = ",".join(f"a-long-name-of-an-item-{n}" for n in range(1000)) + ",a-long-name-of-an-item-0"
    assert put(conn, "lput", "k", long.encode()) == b"STORED"
    assert conn.lget("k") == long.encode().split(b",")[1:]
    assert conn.cmd("lcreate new a b a") == b"STORED"
    assert conn.lget("new") == [b"b", b"a"]
    assert conn.cmd("lcopy new other") == b"2"
    assert conn.lget("other") == [b"b", b"a"]


@pytest.mark.config(**{"lists r-": RECENT})
def test_only_where_the_prefix_says_so(conn):
    for key, items in (("r-k", [b"b", b"a"]), ("k", [b"a", b"b"])):
        assert conn.cmd(f"ladd {key} a b") == b"STORED"
        assert conn.cmd(f"ladd {key} a") == b"STORED"
        assert conn.lget(key) == items


@pytest.mark.config(**{"lists b-": {**RECENT, "bridge": "signed"}})
def test_appends_of_a_bridge_move_as_well(conn):
    assert conn.cmd("append b-k 0 0 6", b"+a+b+c") == b"STORED"
    assert conn.cmd("append b-k 0 0 4", b"-b+a") == b"STORED"
    assert conn.lget("b-k") == [b"c", b"a"]


@pytest.mark.config(lists=RECENT)
def test_changes_and_looks_in_turns(conn):
    assert conn.cmd("ladd k a b c") == b"STORED"
    conn.lget("k")
    pairs = []
    for _ in range(50):
        for item in (b"a", b"b", b"c"):
            pairs.append((b"ladd k %s\r\n" % item, b"STORED\r\n"))
            pairs.append((b"lhas k %s\r\n" % item, b"VALUE k 0 1\r\n%s\r\nEND\r\n" % item))
    converse(conn, pairs + [(b"ladd k a\r\n", b"STORED\r\n")])
    assert conn.lget("k") == [b"b", b"c", b"a"]


@pytest.mark.config(lists={**TINY, **RECENT})
@pytest.mark.parametrize("seed", [1, 2])
def test_random_requests_give_what_the_model_says(conn, memcacheds, seed):
    rng, model = random.Random(seed), Model(recent=True)
    for _ in range(10):
        converse(conn, [random_request(rng, model, "k", universe=200) for _ in range(200)])
        assert conn.lget("k") == model.items("k")
    assert_compact(conn, "k", memcacheds)
    assert conn.lget("k") == model.items("k")
