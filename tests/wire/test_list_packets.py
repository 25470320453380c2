# SPDX-License-Identifier: BSD-3-Clause
"""Requests cut into packets wherever it goes, and long pipelines of one client."""

import random
import socket

import pytest

from harness import in_threads
from model import Model, converse, expect_bytes, item_answer, random_request, value_answer

TINY = {
    "log_limit_bytes": 256,
    "log_hard_limit_bytes": 2048,
    "sublist_limit_bytes": 512,
    "max_item_bytes": 200,
}
ONE_THREAD = pytest.mark.config(proxy={"threads": 1})

CONVERSATION = [
    (b"lset l a bb\r\n", b"STORED\r\n"),
    (b"ladd l ccc\n", b"STORED\r\n"),
    (b"laddb l 4\r\nd\r\nd\r\n", b"STORED\r\n"),
    (b"lgetb l\r\n", item_answer("l", [b"a", b"bb", b"ccc", b"d\r\nd"])),
    (b"ldelb l 4 noreply\r\nd\r\nd\r\n", b""),
    (b"laddq l e e\r\n", b""),
    (b"ldelx l a z\r\n", b"1\r\n"),
    (b"lhasb l 3\r\nccc\r\n", value_answer("l", [b"ccc"])),
    (b"lrange l -1 -1\r\n", value_answer("l", [b"e"])),
    (b"lrevrange l 1 2\r\n", value_answer("l", [b"ccc", b"bb"])),
    (b"lfoo\r\n", b"ERROR\r\n"),
    (b"set p 0 0 2\r\nlx\r\n", b"STORED\r\n"),
    (b"get p p\r\n", b"VALUE p 0 2\r\nlx\r\nVALUE p 0 2\r\nlx\r\nEND\r\n"),
    (b"lget l nolist\r\n", value_answer("l", [b"bb", b"ccc", b"e"])),
]
REQUESTS = b"".join(request for request, _ in CONVERSATION)
ANSWERS = b"".join(answer for _, answer in CONVERSATION)


def send_packets(daemon, conn, packets):
    """The daemon takes each packet alone: its only thread has answered another client between."""
    with daemon.conn() as fence:
        for packet in packets:
            conn.send(packet)
            assert fence.cmd("version").startswith(b"VERSION ")


@ONE_THREAD
def test_the_conversation_in_every_pair_of_packets(daemon, conn):
    for cut in range(1, len(REQUESTS)):
        send_packets(daemon, conn, [REQUESTS[:cut], REQUESTS[cut:]])
        expect_bytes(conn, ANSWERS, f"cut behind byte {cut}")


@ONE_THREAD
def test_the_conversation_byte_by_byte(daemon, conn):
    send_packets(daemon, conn, [REQUESTS[at : at + 1] for at in range(len(REQUESTS))])
    expect_bytes(conn, ANSWERS)


@ONE_THREAD
def test_a_long_request_in_packets(daemon, conn):
    items = [b"item-%d" % n for n in range(4000)]
    request = b"ladd l " + b" ".join(items) + b"\r\n"
    send_packets(daemon, conn, [request[at : at + 1000] for at in range(0, len(request), 1000)])
    expect_bytes(conn, b"STORED\r\n")
    assert conn.lget("l") == items


def mixed_pairs(rng, model, count, keys=("one", "two", "three")):
    """Requests of all kinds, plain keys among them, with the answers to them in that order."""
    plain = {}
    pairs = []
    for n in range(count):
        if rng.random() < 0.8:
            pairs.append(random_request(rng, model, rng.choice(keys), lset=0.01))
            continue
        key = b"plain-%s-%d" % (keys[0].encode(), rng.randrange(5))
        if rng.random() < 0.5:
            plain[key] = b"%d" % n
            pairs.append((b"set %s 0 0 %d\r\n%d\r\n" % (key, len(plain[key]), n), b"STORED\r\n"))
        else:
            value = plain.get(key)
            found = b"" if value is None else b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value)
            pairs.append((b"get " + key + b"\r\n", found + b"END\r\n"))
    return pairs


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("seed", range(4))
def test_a_pipeline_of_1000_mixed_requests(conn, seed):
    converse(conn, mixed_pairs(random.Random(seed), Model(), 1000))


@pytest.mark.memcacheds(3)
@pytest.mark.config(lists=TINY)
@pytest.mark.parametrize("seed", range(4))
def test_a_pipeline_through_many_flips(conn, seed):
    converse(conn, mixed_pairs(random.Random(seed), Model(), 1000))
    assert int(conn.stats()["list_flips"]) > 10


@pytest.mark.memcacheds(3)
def test_pipelines_of_several_clients(daemon):
    """Each on lists of its own, all sharing connections to the servers."""

    def client(number):
        with daemon.conn() as conn:
            keys = [f"client-{number}-{n}" for n in range(2)]
            converse(conn, mixed_pairs(random.Random(number), Model(), 1000, keys))

    in_threads(6, client)


def test_a_later_read_sees_its_own_earlier_write(conn):
    pairs = []
    for n in range(300):
        item = b"item-%d" % n
        pairs.append((b"ladd l " + item + b"\r\n", b"STORED\r\n"))
        pairs.append((b"lrange l -1 -1\r\n", value_answer("l", [item])))
        pairs.append((b"llen l\r\n", b"%d\r\n" % (n + 1)))
    converse(conn, pairs)


def test_order_of_exact_blind_and_whole_list_verbs(conn):
    once = [
        (b"lcreate l a\r\n", b"STORED\r\n"),
        (b"laddx l a b\r\n", b"1\r\n"),
        (b"ladd l c\r\n", b"STORED\r\n"),
        (b"ldelx l c\r\n", b"1\r\n"),
        (b"lcompact l\r\n", b"OK\r\n"),
        (b"ldel l a\r\n", b"DELETED\r\n"),
        (b"lget l\r\n", value_answer("l", [b"b"])),
        (b"ldrop l\r\n", b"DELETED\r\n"),
        (b"llen l\r\n", b"0\r\n"),
    ]
    converse(conn, once * 50)


def test_requests_of_a_client_that_has_half_closed(daemon):
    with daemon.conn() as conn:
        conn.send("ladd l a b\r\nlget l\r\n")
        conn.socket.shutdown(socket.SHUT_WR)
        expect_bytes(conn, b"STORED\r\n" + value_answer("l", [b"a", b"b"]))
        assert conn.is_closed()
