# SPDX-License-Identifier: BSD-3-Clause
"""max_items: lists that hold so many items at most."""

import random

import pytest

from harness import wait_until
from model import Model, converse, head_of, random_request

FIVE = {"max_items": 5, "max_item_bytes": 100}
REFUSE = {**FIVE, "cap": "refuse"}
THREE = {**FIVE, "max_items": 3}


def put(conn, verb, key, data, *more):
    return conn.cmd(f"{verb} {key} {len(data)}" + "".join(f" {word}" for word in more), data)


def items(*numbers):
    return [b"%d" % number for number in numbers]


@pytest.mark.config(lists=FIVE)
def test_the_oldest_item_goes(conn, memcached):
    assert conn.cmd("ladd k 1 2 3 4 5 6") == b"STORED"
    assert conn.lget("k") == items(2, 3, 4, 5, 6)
    assert head_of([memcached], "k").marks == ["#5.drop"]
    assert conn.cmd("ladd k 2 7") == b"STORED"
    assert conn.lget("k") == items(3, 4, 5, 6, 7)
    assert conn.cmd("ldel k 7 6 5") == b"DELETED"
    assert conn.lget("k") == items(3, 4)  # what was dropped does not come back
    assert conn.cmd("laddx k 4 8 8 9") == b"2"
    assert conn.cmd("laddx k 1 2 3") == b"2"  # 3 was there, until 2 came
    assert conn.lget("k") == items(8, 9, 1, 2, 3)
    conn.send("lhas k 4 9 2\r\n")
    assert conn.read_exact(23) == b"VALUE k 0 3\r\n9,2\r\nEND\r\n"
    assert conn.cmd("lcompact k") == b"OK"
    assert conn.lget("k") == items(8, 9, 1, 2, 3)
    assert conn.llen("k") == 5


@pytest.mark.config(lists=FIVE)
def test_of_a_whole_content_the_last_items_stay(conn):
    many = b",".join(items(*range(1, 9)))
    assert conn.cmd("lset k 1 2 3 4 5 6 7 8") == b"STORED"
    assert conn.lget("k") == items(4, 5, 6, 7, 8)
    assert put(conn, "lput", "k2", many) == b"STORED"
    assert conn.lget("k2") == items(4, 5, 6, 7, 8)
    assert put(conn, "lput", "k3", many, 1000) == b"STORED"
    assert conn.lget("k3") == items(4, 5, 6, 7, 8)
    assert conn.cmd("lcreate new 1 2 3 4 5 6 7 8") == b"STORED"
    assert conn.lget("new") == items(4, 5, 6, 7, 8)


@pytest.mark.config(
    **{"lists k": THREE, "lists r": {**THREE, "order": "recent"}}
)
def test_an_item_that_a_whole_content_names_twice_has_its_first_place(conn):
    """Or its last one, where additions move items to the end."""
    for key, last in (("k", b"bcd"), ("r", b"cda")):
        last = [last[i : i + 1] for i in range(3)]
        block = f"lset {key}-tx a b c d a\r\n"
        assert put(conn, "lput", f"{key}-put", b"a,b,c,d,a") == b"STORED"
        assert put(conn, "lput", f"{key}-ends", b"a,b,c,d,a", 1000) == b"STORED"
        assert conn.cmd(f"lset {key}-set a b c d a") == b"STORED"
        assert conn.cmd(f"lcreate {key}-new a b c d a") == b"STORED"
        assert conn.cmd(f"ltx {len(block)}", block) == b"STORED"
        for name in ("put", "ends", "set", "new", "tx"):
            assert conn.lget(f"{key}-{name}") == last, name


@pytest.mark.config(**{"lists c-": FIVE, "lists r-": REFUSE})
def test_lcopy_of_a_longer_list(conn):
    for first in range(0, 20000, 100):
        assert conn.cmd("ladd long " + " ".join(map(str, range(first, first + 100)))) == b"STORED"
    assert conn.cmd("lcopy long c-k") == b"5"
    assert conn.lget("c-k") == items(*range(19995, 20000))
    assert conn.cmd("lcopy long r-k") == b"NOT_STORED"
    assert conn.lget("r-k") == []


@pytest.mark.config(**{"lists c-": FIVE, "lists r-": REFUSE})
def test_stores_of_what_several_lists_amount_to(conn, memcached):
    assert conn.cmd("ladd a 1 2 3 4 5 6 7") == b"STORED"
    assert conn.cmd("ladd b 3 4 5 6 7 8 9") == b"STORED"
    assert conn.cmd("lunionstore c-u a b") == b"5"
    assert conn.lget("c-u") == items(5, 6, 7, 8, 9)
    assert head_of([memcached], "c-u").marks == ["#5.drop"]
    assert conn.cmd("linterstore c-i a b") == b"5"
    assert conn.lget("c-i") == items(3, 4, 5, 6, 7)
    assert conn.cmd("ldiffstore c-u a b") == b"2"  # a list that is there is replaced
    assert conn.lget("c-u") == items(1, 2)
    assert conn.cmd("lunionstore c-u c-u a") == b"5"  # one that is read as well
    assert conn.lget("c-u") == items(3, 4, 5, 6, 7)
    assert conn.cmd("linterstore r-i a b") == b"5"
    assert head_of([memcached], "r-i").marks == ["#5.refuse"]
    assert conn.cmd("lunionstore r-i a b") == b"NOT_STORED"
    assert conn.cmd("lunionstore r-u a b") == b"NOT_STORED"
    assert conn.lget("r-i") == items(3, 4, 5, 6, 7)
    assert conn.lget("r-u") == []
    assert conn.cmd("ldiffstore r-i r-i a") == b"0"
    assert conn.cmd("lunionstore r-i b r-i") == b"NOT_STORED"
    assert conn.lget("r-i") == []


@pytest.mark.parametrize("cap", ["drop_oldest", "refuse"])
@pytest.mark.config(lists={"max_items": 31}, **{"lists refuse:": {"cap": "refuse"}})
def test_a_list_as_long_as_settings_allow_takes_every_change(conn, cap):
    """As many of the longest items as the bound of log_hard_limit_bytes lets max_items be."""
    key = f"{cap}:k"

    def longest(*numbers):
        return [b"%04d" % n + b"x" * 1020 for n in numbers]

    whole = longest(*range(31))
    assert put(conn, "lput", key, b",".join(whole)) == b"STORED"
    for n in range(31, 200):
        if cap == "refuse":
            assert put(conn, "laddb", key, longest(n)[0]) == b"NOT_STORED"
            assert put(conn, "ldelb", key, longest(n - 31)[0]) == b"DELETED"
        assert put(conn, "laddb", key, longest(n)[0]) == b"STORED"
    assert conn.lget(key) == longest(*range(169, 200))
    assert conn.cmd(b"ldelx %s " % key.encode() + longest(199)[0]) == b"1"
    assert conn.cmd(b"laddx %s " % key.encode() + longest(1)[0]) == b"1"
    assert conn.lget(key) == longest(*range(169, 199), 1)
    assert put(conn, "lput", key, b",".join(whole)) == b"STORED"
    assert conn.lget(key) == whole
    assert conn.cmd(f"lcopy {key} {cap}:copy") == b"31"
    assert conn.lget(f"{cap}:copy") == whole
    assert conn.cmd(f"lcompact {key}") == b"OK"
    assert conn.lget(key) == whole


@pytest.mark.config(lists=REFUSE)
def test_refuse_takes_all_items_of_a_command_or_none(conn, memcached):
    assert conn.cmd("ladd k 1 2 3 4 5 6") == b"NOT_STORED"
    assert conn.cmd("ladd k 1 2 3 4") == b"STORED"
    assert head_of([memcached], "k").marks == ["#5.refuse"]
    assert conn.cmd("ladd k 5 6") == b"NOT_STORED"
    assert conn.cmd("laddx k 5 6") == b"NOT_STORED"
    assert conn.cmd("ladd k 1 5 2") == b"STORED"
    assert conn.cmd("laddx k 1 5") == b"0"
    assert put(conn, "laddb", "k", b"6") == b"NOT_STORED"
    assert conn.lget("k") == items(1, 2, 3, 4, 5)
    assert conn.cmd("ldel k 1") == b"DELETED"
    assert conn.cmd("laddx k 6") == b"1"
    assert conn.cmd("lset k 1 2 3 4 5 6") == b"NOT_STORED"
    assert put(conn, "lput", "k", b"1,2,3,4,5,6") == b"NOT_STORED"
    assert conn.cmd("lcreate new 1 2 3 4 5 6") == b"NOT_STORED"
    assert conn.lget("k") == items(2, 3, 4, 5, 6)


@pytest.mark.config(lists=FIVE)
def test_items_of_a_capped_list_have_no_time_of_their_own(conn):
    answer = conn.cmd("laddt k 60 a")
    assert answer.startswith(b"CLIENT_ERROR laddt: the list has max_items")
    assert conn.cmd("ladd k a") == b"STORED"


def await_cap(memcached, key, *marks):
    wait_until(f"the cap {marks}", lambda: head_of([memcached], key).marks == list(marks))


def test_proxies_whose_files_disagree(start_daemon, memcached):
    """Each sets its cap behind its first change; what an older cap has dropped does not come back."""
    plain = start_daemon([memcached], config={"lists": {}})
    five = start_daemon([memcached], config={"lists": FIVE})
    three = start_daemon([memcached], config={"lists": {**FIVE, "max_items": 3}})
    with plain.conn() as a, five.conn() as b, three.conn() as c:
        for first in range(0, 20000, 100):
            numbers = " ".join(map(str, range(first, first + 100)))
            assert a.cmd("ladd k " + numbers) == b"STORED"
        assert a.cmd("lcompact k") == b"OK"  # or its merges might undo the cap three times
        assert a.llen("k") == b.llen("k") == 20000  # who reads only changes nothing
        assert b.cmd("ladd k x") == b"STORED"
        await_cap(memcached, "k", "#5.drop")
        assert b.lget("k") == a.lget("k") == items(*range(19996, 20000)) + [b"x"]
        assert c.cmd("ladd k y") == b"STORED"
        await_cap(memcached, "k", "#3.drop")
        assert b.lget("k") == [b"19999", b"x", b"y"]
        assert b.cmd("ladd k z") == b"STORED"  # it has set its cap lately
        assert head_of([memcached], "k").marks == ["#3.drop"]
        assert a.lget("k") == [b"x", b"y", b"z"]
        assert a.cmd("ladd k 1 2 3 4 5 6") == b"STORED"
        await_cap(memcached, "k")
        assert a.cmd("ladd k 1 2 3 4 5 6") == b"STORED"
        assert b.llen("k") == 6
        assert b.cmd("lcompact k") == b"OK"  # also lately
        assert b.lget("k") == items(5, 6, 1, 2, 3)


def test_a_longer_list_is_not_cut_by_a_cap_that_refuses(start_daemon, memcached):
    """It gets no longer, and the cap comes down with it."""
    plain = start_daemon([memcached], config={"lists": {}})
    five = start_daemon([memcached], config={"lists": REFUSE})
    with plain.conn() as a, five.conn() as b:
        assert a.cmd("ladd k 1 2 3 4 5 6 7") == b"STORED"
        assert b.cmd("lcompact k") == b"OK"
        assert head_of([memcached], "k").marks == ["#7.refuse"]
        assert b.cmd("ladd k 8") == b"NOT_STORED"
        assert b.cmd("ladd k 7") == b"STORED"
        assert b.cmd("ldelx k 1 2 3") == b"3"
        assert b.cmd("ladd k 8") == b"STORED"
        assert b.cmd("lcompact k") == b"OK"
        assert head_of([memcached], "k").marks == ["#5.refuse"]
        assert b.cmd("ladd k 9") == b"NOT_STORED"
        assert a.lget("k") == items(4, 5, 6, 7, 8)


def test_a_list_gets_its_cap_behind_items_that_expire(start_daemon, memcached):
    plain = start_daemon([memcached], config={"lists": {}})
    five = start_daemon([memcached], config={"lists": FIVE})
    with plain.conn() as a, five.conn() as b:
        assert a.cmd("laddt k 1000 t") == b"STORED"
        assert b.cmd("ladd k 1 2 3 4 5 6") == b"STORED"
        assert b.cmd("lcompact k") == b"OK"
        assert a.lget("k") == [b"t"] + items(1, 2, 3, 4, 5, 6)
        assert head_of([memcached], "k").marks == []
        assert b.cmd("ldel k t") == b"DELETED"
        assert b.cmd("lcompact k") == b"OK"
        assert a.lget("k") == items(2, 3, 4, 5, 6)


class Capped(Model):
    """A model whose lists drop their oldest items."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def add(self, key, items):
        known = self.lists.setdefault(key, {})
        new = len(set(items) - set(known))
        for item in items:
            if item not in known and len(known) == self.most:
                known.pop(next(iter(known)))
            known.setdefault(item)
        return new

    def replace(self, key, items):
        super().replace(key, list(dict.fromkeys(items))[-self.most :])


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.config(lists={**FIVE, "max_items": 30, "log_limit_bytes": 512})
def test_random_requests_give_what_the_model_says(conn, seed):
    rng, model = random.Random(seed), Capped(30)
    for _ in range(10):
        converse(conn, [random_request(rng, model, "k", universe=60) for _ in range(200)])
        assert conn.lget("k") == model.items("k")
    assert int(conn.stats()["list_folds"]) > 10
    assert int(conn.stats()["list_flips"]) == 0


@pytest.mark.thorough
@pytest.mark.memcacheds(1, "-I", "2k", "-o", "slab_chunk_max=1024")
@pytest.mark.config(proxy={"deadline_ms": 300}, lists={"max_items": 31})
def test_an_item_size_that_is_too_small_for_the_items_is_named(daemon, conn):
    """No compaction helps there, and "try again" would mislead."""
    daemon.wait_for_log(r"its item_size_max \(-I\) cuts log_hard_limit_bytes .* want 263168: start it")
    answers = [conn.cmd(f"ladd l {n}" + "x" * 50) for n in range(31)]
    assert answers[0] == b"STORED"
    assert answers[-1] == (b"SERVER_ERROR list log full, nothing done: max_items is too much for "
                           b"log_hard_limit_bytes, or for the server's -I")
    stored = [n for n, answer in enumerate(answers) if answer == b"STORED"]
    assert conn.lget("l") == [b"%d" % n + b"x" * 50 for n in stored]
    daemon.stop()
    assert daemon.log().count("item_size_max (-I) cuts") == 1
