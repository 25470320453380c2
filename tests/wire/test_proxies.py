# SPDX-License-Identifier: BSD-3-Clause
"""Two and three proxies on the same lists: they know nothing of each other; the lists are right."""

import itertools
import random
import threading
import time

import pytest

from harness import TIMEOUT_S
from model import Load, Model, assert_compact, converse, random_request

TINY = {
    "log_limit_bytes": 512,
    "log_hard_limit_bytes": 8192,
    "sublist_limit_bytes": 1024,
    "max_item_bytes": 200,
    "announcement_grace_s": 1,
}


@pytest.fixture
def proxies(start_daemon, memcacheds):
    """A function that starts so many proxies before the same servers."""
    return lambda count, **lists: [
        start_daemon(memcacheds, config={"lists": {**TINY, **lists}}) for _ in range(count)
    ]


def test_whoever_connects_while_a_proxy_starts_is_answered(proxies):
    [daemon] = proxies(1)
    answers = []

    def ask_at_once():
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                with daemon.conn() as conn:
                    answers.append(conn.cmd("version"))
                return
            except ConnectionRefusedError:
                pass
            except (OSError, EOFError) as fault:
                answers.append(fault)
                return

    for _ in range(30):
        daemon.kill()
        client = threading.Thread(target=ask_at_once)
        client.start()
        daemon.start()
        client.join()
    faults = [answer for answer in answers if not str(answer).startswith("b'VERSION ")]
    assert len(answers) == 30 and faults == []


def test_what_one_proxy_wrote_the_other_reads_at_once(proxies):
    rng, model = random.Random(1), Model()
    conns = [daemon.conn() for daemon in proxies(3)]
    for _ in range(2000):
        converse(rng.choice(conns), [random_request(rng, model, "l", universe=300)])
    for conn in conns:
        assert conn.lget("l") == model.items("l")
        conn.close()


def test_both_create_a_list_at_once(proxies):
    one, two = [daemon.conn() for daemon in proxies(2)]
    for n in range(200):
        one.send(f"ladd list-{n} a\r\n")
        two.send(f"ladd list-{n} b\r\n")
        assert one.line() == two.line() == b"STORED"
        assert sorted(one.lget(f"list-{n}")) == [b"a", b"b"]


def test_only_one_of_both_creates_with_lcreate(proxies):
    one, two = [daemon.conn() for daemon in proxies(2)]
    for n in range(200):
        one.send(f"lcreate list-{n} a\r\n")
        two.send(f"lcreate list-{n} b\r\n")
        answers = [one.line(), two.line()]
        assert sorted(answers) == [b"NOT_STORED", b"STORED"]
        assert two.lget(f"list-{n}") == [b"a" if answers[0] == b"STORED" else b"b"]


def test_each_item_is_counted_new_once(proxies):
    one, two = [daemon.conn() for daemon in proxies(2)]
    for n in range(300):
        one.send(f"laddx l item-{n}\r\n")
        two.send(f"laddx l item-{n}\r\n")
        assert sorted([one.line(), two.line()]) == [b"0", b"1"]
        one.send(f"ldelx l item-{n // 2}\r\n")
        two.send(f"ldelx l item-{n // 2}\r\n")
        assert sorted([one.line(), two.line()]) == ([b"0", b"1"] if n % 2 == 0 else [b"0", b"0"])


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("placement", ["head", "spread"])
@pytest.mark.parametrize("count", [2, 3])
def test_many_clients_of_several_proxies(proxies, memcacheds, count, placement):
    daemons = proxies(count, placement=placement)
    load = Load(daemons, seconds=3, seed=count)
    done = load.run()
    assert done["ladd"] > 100 and done["lset"] > 10
    assert done["connections lost"] == 0
    with daemons[0].conn() as conn:
        load.judge(conn)
        load.judge_leftovers(conn, memcacheds)
        assert int(conn.stats()["list_flips"]) > 0


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
def test_without_a_cache(proxies, memcacheds):
    daemons = proxies(2, cache_bytes=0)
    load = Load(daemons, seconds=2, seed=9)
    load.run()
    with daemons[1].conn() as conn:
        load.judge(conn)
        load.judge_leftovers(conn, memcacheds)


@pytest.mark.thorough
def test_many_lists(proxies, memcacheds):
    daemons = proxies(3)
    keys = [b"list-%d" % n for n in range(40)]
    load = Load(daemons, seconds=2, keys=keys, seed=11)
    load.run()
    with daemons[2].conn() as conn:
        load.judge(conn)
        for key in keys:
            assert_compact(conn, key.decode(), memcacheds)


@pytest.mark.thorough
def test_limits_of_production(start_daemon, memcacheds):
    """Flips are rare then, and logs long."""
    lists = {"log_limit_bytes": "4k", "announcement_grace_s": 1}
    daemons = [start_daemon(memcacheds, config={"lists": lists}) for _ in range(2)]
    load = Load(daemons, seconds=4, universe=400, seed=12)
    load.run()
    with daemons[0].conn() as conn:
        load.judge(conn)
        load.judge_leftovers(conn, memcacheds)


def test_changes_and_looks_in_turns_beside_another_writer(proxies):
    ours, theirs = proxies(2)
    over = threading.Event()

    def write():
        with theirs.conn() as conn:
            for n in itertools.count():
                if over.is_set():
                    return
                assert conn.cmd(f"ladd t other-{n % 300}") == b"STORED"

    writer = threading.Thread(target=write)
    with ours.conn() as conn:
        assert conn.cmd("ladd t first") == b"STORED"
        writer.start()
        for batch in range(150):
            item = b"item-%d" % (batch % 40)
            turn = b"ladd t %s\r\nlhas t %s\r\nldel t %s\r\nlhas t %s\r\n" % ((item,) * 4)
            conn.send(turn * 8)
            for _ in range(8):
                assert conn.line() == b"STORED"
                assert [data for *_, data in conn.values_answer()] == [item]
                assert conn.line() == b"DELETED"
                assert conn.values_answer() == []
        over.set()
        writer.join()
        conn.send((b"ladd t last\r\nlhas t last\r\n") * 8)
        for _ in range(8):
            assert conn.line() == b"STORED"
            assert [data for *_, data in conn.values_answer()] == [b"last"]
        assert int(conn.stats()["list_turns"]) > 0
    items = ["first", "last", *(f"other-{n}" for n in range(300))]
    with theirs.conn() as conn:
        assert set(conn.lget("t")) <= {item.encode() for item in items}
        assert conn.lget("t")[0] == b"first"
