# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of lists when their servers die, hang, forget, throw out or are full."""

import random
import time

import pytest

from harness import wait_until
from model import (
    TINY,
    Model,
    assert_compact,
    compact,
    converse,
    dump,
    head_of,
    holder,
    random_request,
    sublists,
)

tiny = pytest.mark.config(lists=TINY)
uncached = pytest.mark.config(lists={**TINY, "cache_bytes": 0})

READS = ["lget l", "lgets l", "lgetb l", "llen l", "lhas l nothing", "lrange l 0 -1", "lstat l"]
CHANGES = ["ladd l a", "ldel l a", "lset l a", "laddx l a", "ldelx l a", "lcreate l a"]
CHANGES += ["ldrop l", "lcompact l"]


def fill(conn, key, count):
    """Returns the items. They are in several sublists when limits are tiny."""
    items = [b"item-%d" % n for n in range(count)]
    for at in range(0, count, 5):
        assert conn.cmd(b"ladd %s " % key.encode() + b" ".join(items[at : at + 5])) == b"STORED"
    return items


# --- a server dies, and comes back ---


def restart(memcached):
    """With a pause: right after a failed attempt to connect the server still counts as down."""
    memcached.restart()
    time.sleep(0.1)


def test_each_verb_names_the_server_that_is_down(conn, memcached):
    conn.cmd("ladd l a")
    memcached.stop()
    for request in READS + CHANGES:
        answer = conn.cmd(request)
        assert answer.startswith(b"SERVER_ERROR ") and memcached.address.encode() in answer, request
    conn.send("laddq l a\r\nladdb l 1\r\na\r\n")
    for answer in conn.lines(2):
        assert answer.startswith(b"SERVER_ERROR ") and memcached.address.encode() in answer


def test_the_first_request_after_a_restart_works(conn, memcached):
    conn.cmd("ladd l a b")
    restart(memcached)
    assert conn.cmd("ladd l c") == b"STORED"
    assert conn.lget("l") == [b"c"]


@tiny
def test_a_restarted_server_has_lost_its_lists_as_a_whole(conn, memcacheds, memcached):
    """Though the proxy has their sublists in its cache."""
    fill(conn, "l", 200)
    assert conn.llen("l") == 200
    restart(memcached)
    for request in READS[:-2]:
        assert conn.cmd(request) in (b"END", b"0"), request
    items = fill(conn, "l", 100)
    assert conn.lget("l") == items
    assert_compact(conn, "l", memcacheds)


@pytest.mark.config(**{"pool main": {"retry_min_ms": 10, "retry_max_ms": 50}})
def test_a_server_that_was_down_is_used_again(conn, memcached):
    memcached.stop()
    assert conn.cmd("ladd l a").startswith(b"SERVER_ERROR ")
    memcached.start()
    wait_until("the server is used again", lambda: conn.cmd("ladd l b") == b"STORED")
    assert conn.lget("l") == [b"b"]


@pytest.mark.memcacheds(3)
def test_the_other_servers_are_not_disturbed(conn, memcacheds):
    keys = [f"list-{n}" for n in range(30)]
    for key in keys:
        assert conn.cmd(f"ladd {key} a b") == b"STORED"
    memcacheds[0].stop()
    lost = [key for key in keys if holder(memcacheds[1:], key) is None]
    assert 0 < len(lost) < 30
    for key in keys:
        conn.send(f"lget {key}\r\nladd {key} c\r\n")
    for key in keys:
        if key in lost:
            assert all(memcacheds[0].address.encode() in line for line in conn.lines(2))
        else:
            assert conn.lines(4) == [f"VALUE {key} 0 3".encode(), b"a,b", b"END", b"STORED"]


@pytest.mark.memcacheds(3)
def test_a_list_of_a_dead_server_is_never_left_out_silently(conn, memcacheds):
    keys = []
    with memcacheds[0].conn() as first:
        while len(keys) < 12 or not any(first.get(f"{key}#") for key in keys):
            keys.append(f"list-{len(keys)}")
            conn.cmd(f"ladd {keys[-1]} a")
    memcacheds[0].stop()
    conn.send(f"lget {' '.join(keys)}\r\nversion\r\n")
    while (line := conn.line()).startswith((b"VALUE ", b"a")):
        pass
    assert line.startswith(b"SERVER_ERROR ") and memcacheds[0].address.encode() in line
    assert conn.line().startswith(b"VERSION ")


@pytest.mark.config(**{"pool main": {"timeout_ms": 300}})
def test_a_change_that_a_hanging_server_did_not_answer_is_unknown(daemon, conn, memcached):
    conn.cmd("ladd l a b")
    memcached.pause()
    try:
        answers = [conn.cmd("ldel l a"), conn.cmd("lget l"), conn.cmd("laddx l x")]
    finally:
        memcached.resume()
    for answer in answers:
        assert answer.startswith(b"SERVER_ERROR ") and memcached.address.encode() in answer
    assert b"outcome unknown" in answers[0]
    wait_until("the server is used again", lambda: conn.cmd("ladd l c") == b"STORED")
    assert conn.lget("l") in ([b"a", b"b", b"c"], [b"b", b"c"])


# --- a server forgets ---


@tiny
@pytest.mark.parametrize("directly", [False, True])
def test_flush_all_in_the_middle(conn, memcacheds, memcached, directly):
    rng, model = random.Random(7), Model()
    for _ in range(10):
        pairs = [random_request(rng, model, "l", universe=300) for _ in range(rng.randint(1, 200))]
        converse(conn, pairs)
        if directly:
            with memcached.conn() as backend:
                assert backend.cmd("flush_all") == b"OK"
        else:
            assert conn.cmd("flush_all") == b"OK"
        model = Model()
        assert conn.lget("l") == []
    converse(conn, [random_request(rng, model, "l", universe=300) for _ in range(200)])
    assert conn.lget("l") == model.items("l")


@tiny
@pytest.mark.config(lists={"on_missing": "refuse"})
def test_a_list_that_was_evicted_is_not_made_of_its_newest_item(conn, memcached):
    conn.cmd("lset l a b c")
    assert conn.cmd("ladd l d") == b"STORED"
    with memcached.conn() as backend:
        assert backend.cmd("delete l#") == b"DELETED"
    assert conn.cmd("ladd l e") == b"NOT_STORED"
    assert conn.lget("l") == []


# --- sublists are thrown out ---


def lose_sublist(memcacheds, key, how="delete"):
    """Takes a list's first sublist away from its server; returns its name."""
    name = head_of(memcacheds, key).run_keys(key)[0]
    for memcached in memcacheds:
        with memcached.conn() as backend:
            if backend.get(name) is not None:
                if how == "delete":
                    assert backend.cmd(f"delete {name}") == b"DELETED"
                else:
                    assert backend.set(name, how) == b"STORED"
    return name


@uncached
@pytest.mark.parametrize("how", ["delete", "", "garbage"])
def test_a_damaged_list_says_so_with_the_name_of_what_is_missing(conn, memcacheds, how):
    fill(conn, "l", 100)
    compact(conn, "l")
    name = lose_sublist(memcacheds, "l", how)
    damaged = f"SERVER_ERROR list damaged: sublist {name} missing".encode()
    requests = ["llen l", *READS, "lrange l -1 -1", "lrange l 100 -1", "lrange l 100 200"]
    for request in [*requests, "laddx l new", "ldelx l item-1", "lcreate l a"]:
        assert conn.cmd(request) == damaged, request
    conn.send("lget l nolist\r\n")
    assert conn.line() == damaged
    assert conn.cmd("ladd l new") == b"STORED"
    assert conn.cmd("ldel l item-1") == b"DELETED"
    assert int(conn.stats()["list_damaged"]) >= 7


@pytest.mark.config(proxy={"view_bytes": 0}, lists={**TINY, "cache_bytes": 0})
def test_llen_alone_counts_what_is_lost_until_a_read_has_met_it(conn, memcacheds):
    fill(conn, "l", 100)
    compact(conn, "l")
    assert conn.cmd("lstat l").startswith(b"STAT items 100")
    while conn.line() != b"END":
        pass
    name = lose_sublist(memcacheds, "l")
    damaged = f"SERVER_ERROR list damaged: sublist {name} missing".encode()
    assert conn.llen("l") == 100
    for request in ["lrange l 0 -1", "lstat l", "llen l"]:
        assert conn.cmd(request) == damaged, request
    assert conn.cmd("lset l a") == b"STORED"
    assert conn.llen("l") == 1


@uncached
def test_lcompact_of_a_damaged_list_says_so(conn, memcacheds):
    fill(conn, "l", 100)
    compact(conn, "l")
    name = lose_sublist(memcacheds, "l")
    fill(conn, "l", 100)
    assert conn.cmd("lcompact l") == f"SERVER_ERROR list damaged: sublist {name} missing".encode()


@uncached
@pytest.mark.parametrize("verb, answer", [("ldrop l", b"DELETED"), ("lset l a", b"STORED")])
def test_a_damaged_list_can_be_replaced_or_dropped(conn, memcacheds, verb, answer):
    fill(conn, "l", 100)
    compact(conn, "l")
    lose_sublist(memcacheds, "l")
    assert conn.cmd(verb) == answer
    assert conn.lget("l") == ([] if verb == "ldrop l" else [b"a"])
    compact(conn, "l")
    assert sublists(memcacheds, "l") == []


@pytest.mark.config(lists={**TINY, "cache_bytes": 0, "on_damaged": "miss"})
@pytest.mark.parametrize("request_line", ["lget l", "lgetb l", "lhas l nothing", "lrange l 0 1", "llen l", "lstat l"])
def test_on_damaged_miss_makes_it_a_miss(conn, memcacheds, request_line):
    fill(conn, "l", 100)
    compact(conn, "l")
    lose_sublist(memcacheds, "l")
    if request_line == "lstat l":
        # Nothing, or the emptied head, which is about to be removed.
        assert conn.stats(request_line).get("items", "0") == "0"
    else:
        assert conn.cmd(request_line) in (b"END", b"0")
    wait_until("the list is dropped", lambda: sublists(memcacheds, "l") == [])
    items = fill(conn, "l", 100)
    assert conn.lget("l") == items
    assert_compact(conn, "l", memcacheds)


@pytest.mark.config(lists={**TINY, "cache_bytes": 0, "on_damaged": "miss"})
@pytest.mark.parametrize("request_line, then", [
    ("laddx l new", b"1"), ("ldelx l item-1", b"0"), ("lpop l 1", b"END"), ("lcreate l a", b"STORED"),
    ("lcopy l m", b"NOT_FOUND"),
])
def test_on_damaged_miss_fails_a_change_once(conn, memcacheds, request_line, then):
    """It has to know the content, and has nothing to answer."""
    fill(conn, "l", 100)
    compact(conn, "l")
    name = lose_sublist(memcacheds, "l")
    assert conn.cmd(request_line) == f"SERVER_ERROR list damaged: sublist {name} missing".encode()
    wait_until("the list is dropped", lambda: sublists(memcacheds, "l") == [])
    assert conn.cmd(request_line) == then


@pytest.mark.config(lists={"on_damaged": "miss"})
def test_a_young_announcement_is_swept_once_with_a_damaged_list(conn, memcached):
    """Another proxy has announced a run a moment ago: its names are deleted, and that is that."""
    head = b"^1 aaaaaaaaaaaaa.1:18:1\n~26:bbbbbbbbbbbbb.1.%d" % time.time()
    with memcached.conn() as server:
        server.set("l#", head)
        assert conn.lget("l") == []
        wait_until("the list is removed", lambda: server.get("l#") is None)
        assert int(server.stats()["cas_hits"]) < 10


@pytest.mark.config(lists={**TINY, "cache_bytes": 0, "on_damaged": "miss"})
def test_what_is_added_after_the_miss_stays(conn, memcacheds):
    """Though the damaged list is still being tidied up then."""
    for n in range(50):
        fill(conn, f"l{n}", 100)
        compact(conn, f"l{n}")
        lose_sublist(memcacheds, f"l{n}")
        assert conn.lget(f"l{n}") == []
        for m in range(12):
            assert conn.cmd(f"ladd l{n} {m}") == b"STORED"
        added = [b"%d" % m for m in range(12)]
        assert conn.lget(f"l{n}") == added
        compact(conn, f"l{n}")
        assert conn.lget(f"l{n}") == added


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("placement", ["head", "spread"])
def test_a_lost_sublist_that_is_cached_is_healed(start_daemon, memcacheds, placement):
    lists = {**TINY, "placement": placement}
    daemon = start_daemon(memcacheds, config={"lists": {**lists, "touch_interval_s": 1}})
    with daemon.conn() as conn:
        items = fill(conn, "l", 200)
        compact(conn, "l")
        assert conn.lget("l") == items
        lost = lose_sublist(memcacheds, "l")

        def healed():
            assert conn.lget("l") == items
            return int(conn.stats()["list_heals"]) > 0

        wait_until("the sublist is healed", healed)
        assert lost not in head_of(memcacheds, "l").run_keys("l")
        assert_compact(conn, "l", memcacheds)
    other = start_daemon(memcacheds, config={"lists": lists})
    with other.conn() as conn:
        assert conn.lget("l") == items


# --- servers that cannot hold lists ---


@pytest.mark.memcacheds(1, "-C")
def test_lists_are_refused_on_a_server_without_cas(conn, memcached):
    for request in CHANGES:
        answer = conn.cmd(request)
        assert answer.startswith(b"SERVER_ERROR ") and b"CAS" in answer, (request, answer)
        assert memcached.address.encode() in answer
    assert dump(memcached) == {}
    assert conn.set("plain", "value") == b"STORED"
    assert conn.get("plain") == b"value"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_full_server_refuses_and_loses_nothing(start_memcached, start_daemon, seed):
    memcached = start_memcached("-M", memory_mb=3)
    lists = {"log_limit_bytes": "2k", "log_hard_limit_bytes": "16k", "sublist_limit_bytes": "8k"}
    daemon = start_daemon([memcached], config={"lists": lists})
    rng, model, refused = random.Random(seed), Model(), 0
    with daemon.conn() as conn:
        for n in range(20000):
            key = f"list-{rng.randrange(40)}"
            items = [b"item-%d-%s" % (n * 8 + m, b"x" * rng.randrange(100)) for m in range(8)]
            answer = conn.cmd(b"ladd %s " % key.encode() + b" ".join(items))
            if answer == b"STORED":
                model.add(key, items)
                continue
            assert answer.startswith(b"SERVER_ERROR ") and b"nothing done" in answer, answer
            refused += 1
            if refused == 300:
                break
        assert refused == 300
        for key in model.lists:
            assert conn.lget(key) == model.items(key)
        for key in model.lists:
            assert conn.cmd(f"ldrop {key}") == b"DELETED"
            assert conn.lget(key) == []


@pytest.mark.memcacheds(1, "-I", "512k")
@pytest.mark.config(lists={"log_limit_bytes": 440000, "log_hard_limit_bytes": 900000})
@pytest.mark.config(lists={"sublist_limit_bytes": 900000})
def test_limits_above_the_servers_item_size_are_cut_to_it(conn, memcacheds, memcached):
    items = [b"item-%d" % n for n in range(200000)]
    for at in range(0, len(items), 1000):
        assert conn.cmd(b"ladd l " + b" ".join(items[at : at + 1000])) == b"STORED"
    assert_compact(conn, "l", memcacheds)
    assert conn.lget("l") == items
    assert len(sublists(memcacheds, "l")) > 3
    assert max(dump(memcached).values()) <= 512 * 1024
