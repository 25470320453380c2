# SPDX-License-Identifier: BSD-3-Clause
"""ltx, lmove and lpopto: what each answers and does, against a model."""

import random

import pytest

from harness import in_threads, wait_until
from model import (
    TINY,
    Model,
    assert_compact,
    converse,
    expect_bytes,
    item_answer,
    random_request,
    random_transaction,
    transaction_request,
    value_answer,
)
from test_list_packets import ONE_THREAD, send_packets

pytestmark = pytest.mark.config(lists={})
KEYS = ["one", "two", "three"]


def ltx(conn, *lines):
    """Each line as it is typed."""
    block = "".join(line + "\r\n" for line in lines)
    return conn.cmd(f"ltx {len(block.encode())}", block)


@pytest.mark.memcacheds(3)
def test_all_lines_are_done(conn):
    assert ltx(conn, "ladd a x y", "ladd b z", "ldel a x", "lset c", "ladd c n m") == b"STORED"
    assert [conn.lget(key) for key in "abc"] == [[b"y"], [b"z"], [b"n", b"m"]]
    assert ltx(conn, "lset b p q", "ldel c n", "ldel d nothing") == b"STORED"
    assert [conn.lget(key) for key in "abcd"] == [[b"y"], [b"p", b"q"], [b"m"], []]


def test_one_list_is_enough(conn):
    assert ltx(conn, "lrefuse a x", "ladd a x y") == b"STORED"
    assert ltx(conn, "lrefuse a x", "ladd a z") == b"NOT_STORED"
    assert ltx(conn, "ldel a x", "ladd a x") == b"STORED"
    assert conn.lget("a") == [b"y", b"x"]


def test_conditions_are_judged_before_all_changes(conn):
    conn.cmd("ladd a x")
    assert ltx(conn, "ldel a x", "lrequire a x", "ladd b x", "lrefuse b x") == b"STORED"
    assert ltx(conn, "ladd a x", "lrequire a x") == b"NOT_STORED"
    assert ltx(conn, "lrequire b x y", "ladd a x") == b"NOT_STORED"
    assert ltx(conn, "lrefuse b y x", "ladd a x") == b"NOT_STORED"
    assert (conn.lget("a"), conn.lget("b")) == ([], [b"x"])


def test_conditions_alone(conn):
    conn.cmd("ladd a x")
    assert ltx(conn, "lrequire a x", "lrefuse b x") == b"STORED"
    assert ltx(conn, "lrequire a x", "lrequire b x") == b"NOT_STORED"


def test_items_of_any_bytes(conn):
    lines = [("ladd", "a", [b"two words", b"line\r\nladd b evil\r\n"]), ("ladd", "b", [b"x"])]
    converse(conn, [(transaction_request(lines), b"STORED\r\n")])
    assert conn.lgetb("a") == [b"two words", b"line\r\nladd b evil\r\n"]
    assert conn.lget("b") == [b"x"]
    lines = [("lrequire", "a", [b"two words"]), ("ldel", "a", [b"two words"]), ("ladd", "b", [b"two words"])]
    pairs = [(transaction_request(lines), b"STORED\r\n"), (transaction_request(lines), b"NOT_STORED\r\n")]
    pairs.append((b"lpoptob a b 1\r\n", item_answer("b", [b"line\r\nladd b evil\r\n"])))
    converse(conn, pairs)
    assert conn.lgetb("b") == [b"x", b"two words", b"line\r\nladd b evil\r\n"]


def test_noreply_is_silent(conn):
    block = "ladd a x\r\n"
    refused = "lrequire a nothing\r\n"
    conn.send(f"ltx {len(block)} noreply\r\n{block}\r\nltx {len(refused)} noreply\r\n{refused}\r\n")
    conn.send("llen a\r\n")
    assert conn.line() == b"1"


def test_moved_items_keep_their_order(conn):
    conn.cmd("ladd a p q r s")
    conn.cmd("ladd b r t")
    assert conn.cmd("lmove a b s nothing r p p") == b"3"
    assert (conn.lget("a"), conn.lget("b")) == ([b"q"], [b"r", b"t", b"s", b"p"])
    assert conn.cmd("lmove a b nothing") == b"0"
    assert conn.cmd("lmove missing b q") == b"0"
    converse(conn, [(b"lpopto b c -2\r\n", value_answer("c", [b"p", b"s"]))])
    converse(conn, [(b"lpopto b c 5\r\n", value_answer("c", [b"r", b"t"])), (b"lpopto b c 5\r\n", b"END\r\n")])
    assert (conn.lget("b"), conn.lget("c")) == ([], [b"p", b"s", b"r", b"t"])
    assert int(conn.stats()["cmd_list_tx"]) == 6


@pytest.mark.config(**{"lists other:": {"delimiter": "|"}})
def test_the_answer_of_lpopto_is_joined_as_that_of_its_target(conn):
    conn.cmd("ladd a p q")
    conn.send("lpopto a other:b 2\r\n")
    expect_bytes(conn, b"VALUE other:b 0 3\r\np|q\r\nEND\r\n")
    assert conn.cmd("ladd other:b r,s") == b"STORED"
    text = b"CLIENT_ERROR lpopto: an item holds the delimiter of the list that it would be in, nothing done"
    assert conn.cmd("lpopto other:b a 5") == text
    assert conn.llen("other:b") == 3


def test_conditions_leave_no_heads(daemon, conn, memcached):
    """Of lists that are missing, whether they hold or not, and however many clients ask; nor do
    changes that add nothing to a list."""

    def ask(thread):
        with daemon.conn() as mine:
            for n in range(50):
                assert ltx(mine, f"lrefuse blocked-{n} x", "ladd a x") == b"STORED"
                assert ltx(mine, f"lrequire wanted-{n} x", "ladd a y") == b"NOT_STORED"
                assert ltx(mine, f"ldel less-{n} x", "ladd a x") == b"STORED"
                assert ltx(mine, "ladd a x", f"lset none-{n}") == b"STORED"

    in_threads(4, ask)
    kinds = ("blocked", "wanted", "less", "none")
    with memcached.conn() as direct:
        for key in (f"{kind}-{n}#" for kind in kinds for n in range(50)):
            wait_until("the head has gone", lambda key=key: direct.get(key) is None)
    assert conn.lget("a") == [b"x"]
    assert int(conn.stats()["list_removes"]) > 0


@pytest.mark.config(lists={"on_missing": "refuse"})
def test_missing_lists_are_not_made(conn):
    assert ltx(conn, "ladd a x", "ladd b x") == b"NOT_FOUND"
    conn.cmd("lset a x")
    assert ltx(conn, "ladd a y", "ldel b x") == b"NOT_FOUND"
    assert conn.cmd("lmove a b x") == b"NOT_FOUND"
    assert conn.cmd("lmove b a x") == b"NOT_FOUND"
    assert conn.cmd("lmove a b nothing") == b"0"  # DST is not looked at
    assert ltx(conn, "ladd a y", "lrefuse b x") == b"NOT_FOUND"
    for verb in ("lpopto", "lpoptob"):
        assert conn.cmd(f"{verb} a b 1") == b"NOT_FOUND"
        assert conn.cmd(f"{verb} b a 1") == b"NOT_FOUND"
    assert conn.lget("a") == [b"x"]
    conn.cmd("lset b")
    assert ltx(conn, "ladd a y", "ladd b x", "lrefuse b x") == b"STORED"
    assert conn.cmd("lmove a b x y") == b"2"
    assert (conn.lget("a"), conn.lget("b")) == ([], [b"x", b"y"])


CONVERSATION = [
    (transaction_request([("ladd", "a", [b"x", b"yy"]), ("ladd", "b", [b"y\r\nx"])]), b"STORED\r\n"),
    (transaction_request([("lrequire", "a", [b"z"]), ("lset", "b", [])]), b"NOT_STORED\r\n"),
    (b"lmove a b x z\r\n", b"1\r\n"),
    (b"lpoptob b a 1\r\n", item_answer("a", [b"y\r\nx"])),
    (b"ltx 6\r\nlget a\r\n", b"CLIENT_ERROR ltx: line 1: no line end behind it: each line of the block "
     b"has one, and BYTES counts them\r\n"),
    (b"lpopto b a -1\r\n", value_answer("a", [b"x"])),
    (transaction_request([("lset", "a", []), ("ldel", "b", [b"x"])]), b"STORED\r\n"),
    (b"llen a b\r\n", b"0\r\n0\r\n"),
]  # fmt: skip
REQUESTS = b"".join(request for request, _ in CONVERSATION)
ANSWERS = b"".join(answer for _, answer in CONVERSATION)


@ONE_THREAD
def test_the_conversation_in_every_pair_of_packets(daemon, conn):
    for cut in range(1, len(REQUESTS)):
        send_packets(daemon, conn, [REQUESTS[:cut], REQUESTS[cut:]])
        expect_bytes(conn, ANSWERS, f"cut behind byte {cut}")
    send_packets(daemon, conn, [REQUESTS[at : at + 1] for at in range(len(REQUESTS))])
    expect_bytes(conn, ANSWERS)


def mixed_pairs(rng, model, keys, count):
    return [
        random_transaction(rng, model, keys)
        if rng.random() < 0.4
        else random_request(rng, model, rng.choice(keys), lset=0.01)
        for _ in range(count)
    ]


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("lists", [{}, TINY, {"placement": "spread"}, {**TINY, "placement": "spread"}])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_pipelines(start_daemon, memcacheds, lists, seed):
    daemon = start_daemon(memcacheds, config={"lists": {**lists}})
    rng, model = random.Random(seed), Model()
    with daemon.conn() as conn:
        for _ in range(8):
            converse(conn, mixed_pairs(rng, model, KEYS, 60))
        for key in KEYS:
            assert conn.lget(key) == model.items(key)
            assert_compact(conn, key, memcacheds)
            assert conn.lget(key) == model.items(key)


@pytest.mark.config(lists={"order": "recent"})
def test_random_pipelines_of_recent_items(conn):
    rng, model = random.Random(3), Model(recent=True)
    for _ in range(6):
        converse(conn, mixed_pairs(rng, model, KEYS, 60))


@pytest.mark.memcacheds(2)
def test_lists_in_different_pools(start_daemon, memcacheds):
    first, second = memcacheds
    config = {
        "pool far": {"servers": f"127.0.0.1:{second.port}"},
        "lists far:": {"pool": "far"},
        "lists": {},
    }
    daemon = start_daemon([first], config=config)
    rng, model = random.Random(4), Model()
    with daemon.conn() as conn:
        for _ in range(4):
            converse(conn, mixed_pairs(rng, model, ["near", "far:a", "far:b"], 60))


@pytest.mark.memcacheds(3)
def test_items_wander_and_none_is_lost_or_doubled(daemon):
    """Several clients move items around between lists; each item is always in exactly one."""
    items = [b"item-%d" % n for n in range(40)]
    with daemon.conn() as conn:
        conn.send(b"ladd one ", b" ".join(items), b"\r\n")
        assert conn.line() == b"STORED"

    def mover(number):
        rng = random.Random(number)
        with daemon.conn() as conn:
            for _ in range(60):
                source, target = rng.sample(KEYS, 2)
                request = rng.choice([
                    f"lmove {source} {target} item-{rng.randrange(40)} item-{rng.randrange(40)}",
                    f"lpoptob {source} {target} {rng.choice([1, 2, -1])}",
                ])  # fmt: skip
                conn.send(request, "\r\n")
                line = conn.line()
                while line.startswith(b"ITEM"):
                    conn.data(int(line.split()[2]))
                    line = conn.line()
                assert line in (b"END", b"0", b"1", b"2") or line.startswith(b"SERVER_ERROR busy"), line

    def reader(_):
        with daemon.conn() as conn:
            seen = 0
            while seen < 20:
                try:
                    found = b",".join(data for _, _, data in conn.values("lgetx one two three"))
                except RuntimeError as error:  # the movers were faster
                    assert "SERVER_ERROR busy" in str(error)
                    continue
                assert sorted(found.split(b",")) == sorted(items)
                seen += 1

    in_threads(6, lambda number: (reader if number < 2 else mover)(number))
