# SPDX-License-Identifier: BSD-3-Clause
"""tombstone and paired: changes that are not blind do what verbs.md says, whatever clients by hand
have left: against a model, and beside such clients."""

import random

import pytest

from harness import in_threads
from test_dialects_support import Hand, blind, settings

KEY = "topic-X"
NEVER = {"compact_chance": 0}
COUNTED = ["tombstone", "paired"]


@pytest.mark.parametrize("dialect", COUNTED)
def test_a_deletion_deletes_and_an_addition_adds(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for _ in range(2):
            assert conn.cmd(f"ladd {KEY} a b") == b"STORED"
        assert conn.cmd(f"ldel {KEY} a") == b"DELETED"
        assert conn.lget(KEY) == [b"b"]
        assert conn.cmd(f"ldel {KEY} absent") == b"DELETED"
        assert conn.cmd(f"ladd {KEY} absent") == b"STORED"
        assert conn.lget(KEY) == [b"b", b"absent"]
        assert hand.read(dialect, KEY) == conn.lget(KEY)


@pytest.mark.parametrize("dialect", COUNTED)
def test_blind_changes_are_counted(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=blind(dialect, **NEVER))
    with daemon.conn() as conn:
        for _ in range(2):
            assert conn.cmd(f"ladd {KEY} a b") == b"STORED"
        assert conn.cmd(f"ldel {KEY} a") == b"DELETED"
        assert conn.cmd(f"ldel {KEY} absent") == b"DELETED"
        assert conn.cmd(f"ladd {KEY} absent") == b"STORED"
        assert conn.lget(KEY) == [b"b", b"a"]  # the first place of a is void


@pytest.mark.parametrize("dialect", COUNTED)
def test_what_a_client_by_hand_has_left(memcached, start_daemon, dialect):
    """Items added twice, deletions of items that are not there."""
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for item in ("a", "b", "a", "a"):
            hand.add(dialect, KEY, item)
        for item in ("c", "c", "b"):
            hand.delete(dialect, KEY, item)
        assert conn.lget(KEY) == [b"a"]
        assert conn.cmd(f"ladd {KEY} b c") == b"STORED"
        assert conn.lget(KEY) == [b"a", b"b", b"c"]
        assert conn.cmd(f"ldel {KEY} a") == b"DELETED"
        assert conn.lget(KEY) == [b"b", b"c"]
        assert hand.read(dialect, KEY) == [b"b", b"c"]


@pytest.mark.parametrize("dialect", COUNTED)
def test_against_a_model(memcached, start_daemon, dialect):
    """Through two proxies in turns; a client by hand deletes what is there and adds what is not."""
    config = settings(dialect, compact_chance=3, max_item_bytes=100)
    daemons = [start_daemon([memcached], config=config) for _ in range(2)]
    rng = random.Random(7)
    model = []
    with Hand(memcached.port) as hand, daemons[0].conn() as one, daemons[1].conn() as two:
        for _ in range(1500):
            conn = rng.choice([one, two])
            items = [b"i%d" % rng.randrange(8) for _ in range(rng.randint(1, 3))]
            text = b" ".join(items).decode()
            act = rng.randrange(5)
            if act < 2:
                assert conn.cmd(f"ladd {KEY} {text}") == b"STORED"
                model += [item for item in dict.fromkeys(items) if item not in model]
            elif act < 4:
                assert conn.cmd(f"ldel {KEY} {text}") == b"DELETED"
                model = [item for item in model if item not in items]
            elif items[0] in model:
                hand.delete(dialect, KEY, items[0].decode())
                model.remove(items[0])
            else:
                hand.add(dialect, KEY, items[0].decode())
                model.append(items[0])
            assert conn.lget(KEY) == model
            assert conn.llen(KEY) == len(model)


@pytest.mark.parametrize("dialect", COUNTED)
def test_many_clients_at_once(memcached, start_daemon, dialect):
    """Each has items of its own, adds each several times and deletes half of them once."""
    daemons = [start_daemon([memcached], config=settings(dialect)) for _ in range(2)]

    def change(number):
        with daemons[number % 2].conn() as conn:
            for n in range(10):
                for verb in ("ladd", "ladd", *(["ldel"] if n % 2 else [])):
                    while conn.cmd(f"{verb} {KEY} c{number}n{n}").startswith(b"SERVER_ERROR busy"):
                        pass

    in_threads(6, change)
    with daemons[0].conn() as conn:
        assert set(conn.lget(KEY)) == {b"c%dn%d" % (c, n) for c in range(6) for n in range(0, 10, 2)}
