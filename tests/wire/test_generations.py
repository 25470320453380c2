# SPDX-License-Identifier: BSD-3-Clause
"""The newer generation of memcached: Debian 13's, which scripts/fetch-memcached-new prepares (it
says why where it cannot). The core of the other files' tests runs with it as the server.

The whole suite runs with it, too: MEMCACHED=build/memcached-new/memcached in the environment."""

import inspect

import pytest

import test_list_backends as backends
import test_list_errors as errors
import test_list_model as lists
import test_list_packets as packets
import test_list_verbs as verbs
import test_proxies
from client_support import debian_13
from couchbase_support import copy_of
from model import Load


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def new_memcached():
    """Its path; the tests are skipped where it cannot be had."""
    is_there, path = debian_13()
    if not is_there:
        pytest.skip(path)
    return path


@pytest.fixture(autouse=True)
def use_new_memcached(new_memcached, monkeypatch):
    monkeypatch.setenv("MEMCACHED", new_memcached)


proxies = test_proxies.proxies
layout = lists.layout


def test_it_is_another_version(memcached, conn):
    with memcached.conn() as backend:
        version = backend.cmd("version").split()[1].decode()
    assert version > "1.6.20"
    conn.cmd("ladd l a")
    assert conn.stats("stats backends")[f"backend:{memcached.address}:version"] == version


TAKEN_OVER = [
    verbs.test_the_first_session_of_the_readme,
    verbs.test_data_block_verbs_take_any_bytes,
    verbs.test_lrange_cuts_as_redis_does,
    verbs.test_lrevrange_is_lrange_from_the_other_end,
    verbs.test_laddx_and_ldelx_count,
    verbs.test_lgets_shows_whether_the_content_changed,
    verbs.test_ldrop_leaves_nothing_in_the_backend,
    verbs.test_lcompact_removes_an_empty_head,
    verbs.test_lstat_tells_what_the_head_holds,
    verbs.test_keys_of_the_greatest_length,
    errors.test_refuse_answers_of_each_verb_on_a_missing_list,
    errors.test_what_is_no_list_is_left_alone,
    packets.test_a_pipeline_through_many_flips,
    packets.test_the_conversation_in_every_pair_of_packets,
    lists.test_random_requests_give_what_the_model_says,
    lists.test_request_after_request,
    lists.test_ldrop_of_a_long_list_leaves_nothing_in_the_backends,
    lists.test_a_time_to_live_given_to_the_head_survives_flips,
    backends.test_a_restarted_server_has_lost_its_lists_as_a_whole,
    backends.test_flush_all_in_the_middle,
    backends.test_a_damaged_list_says_so_with_the_name_of_what_is_missing,
    backends.test_a_lost_sublist_that_is_cached_is_healed,
    backends.test_lists_are_refused_on_a_server_without_cas,
    backends.test_a_full_server_refuses_and_loses_nothing,
    backends.test_limits_above_the_servers_item_size_are_cut_to_it,
]

for each in TAKEN_OVER:
    globals()[each.__name__] = copy_of(each, inspect.getmodule(each))


@pytest.mark.memcacheds(2)
def test_many_clients_of_two_proxies(proxies, memcacheds):
    daemons = proxies(2)
    load = Load(daemons, seconds=2, seed=21)
    load.run()
    with daemons[0].conn() as conn:
        load.judge(conn)
        load.judge_leftovers(conn, memcacheds)


# --- pass-through ---


@pytest.mark.memcacheds(3)
def test_plain_commands(conn):
    assert conn.cmd("add n 0 0 2", "10") == b"STORED"
    assert conn.cmd("add n 0 0 2", "11") == b"NOT_STORED"
    assert conn.cmd("incr n 5") == b"15"
    assert conn.cmd("append n 0 0 1", "0") == b"STORED"
    assert conn.get("n") == b"150"
    [(_, (_, _, cas), _)] = conn.values("gets n")
    assert conn.cmd(f"cas n 0 0 1 {cas}", "x") == b"STORED"
    assert conn.cmd(f"cas n 0 0 1 {cas}", "y") == b"EXISTS"
    assert conn.cmd("touch n 100") == b"TOUCHED"
    assert conn.values("gat 100 n") == [(b"n", [0, 1], b"x")]
    assert conn.cmd("delete n") == b"DELETED"
    assert conn.get("n") is None


@pytest.mark.memcacheds(3)
def test_multi_gets_in_the_order_asked(conn):
    keys = [f"key-{n}" for n in range(200)]
    for key in keys:
        conn.set(key, key * 10, flags=7)
    asked = keys[::3] + ["nothing"] + keys[::-1]
    expected = [(k.encode(), [7, 10 * len(k)], k.encode() * 10) for k in asked if k != "nothing"]
    assert conn.values("get " + " ".join(asked)) == expected


META = (
    "ms k 5 T100 F3\r\nvalue\r\nmg k v f s k Oabc\r\nmg nothing v k O1\r\nmg a2V5 b k v\r\n"
    "ms key 1 q\r\nx\r\nmg a2V5 b k v\r\nmg nothing v q\r\nma n N0 J7 v\r\nma n D3\r\nmg n v t\r\n"
    "ms k 1 MA\r\n+\r\nms none 1 MA N60\r\n+\r\nmg none v s\r\nmd k I q\r\nmd k\r\nmg k v\r\nmn\r\n"
)


@pytest.mark.memcacheds(3)
def test_meta_commands_are_answered_as_by_memcached_itself(conn, start_memcached):
    def answers(conn):
        conn.send(META)
        found = [conn.line()]
        while found[-1] != b"MN":
            found.append(conn.line())
        return found

    with start_memcached().conn() as direct:
        assert answers(conn) == answers(direct)


def test_large_values(conn):
    value = bytes(range(256)) * 4090
    assert conn.set("large", value) == b"STORED"
    assert conn.get("large") == value
