# SPDX-License-Identifier: BSD-3-Clause
"""lpop, lrandom, lafter, lbefore: queues with several workers behind several proxies, also while one
of them dies."""

import collections
import threading

import pytest

from harness import in_threads
from model import TINY, Model, item_answer, value_answer

CONSUMERS = 8


def names(count):
    return [b"job-%d" % n for n in range(count)]


def pop(conn, key, count=1):
    """The items, or None when the answer is not known."""
    conn.send(f"lpop {key} {count}\r\n")
    line = conn.line()
    if line == b"END":
        return []
    if not line.startswith(b"VALUE "):
        return None if b"unknown" in line else False
    items = conn.data(int(line.split()[3])).split(b",")
    assert conn.line() == b"END"
    return items


@pytest.mark.config(lists=TINY)
def test_both_ends(conn):
    model = Model()
    for at in range(0, 60, 20):
        items = [b"item-%d" % n for n in range(at, at + 20)]
        assert conn.cmd(b"ladd l " + b" ".join(items)) == b"STORED"
        model.add("l", items)
    for count in [1, 2, 7, -1, -3, 1, -10, 5]:
        conn.send(f"lpop l {count}\r\n")
        answer = value_answer("l", model.pop("l", count))
        assert conn.read_exact(len(answer)) == answer
    conn.send("lpopb l 2\r\n")
    answer = item_answer("l", model.pop("l", 2))
    assert conn.read_exact(len(answer)) == answer
    assert conn.llen("l") == len(model.items("l"))


@pytest.mark.config(lists=dict(TINY, delimiter="none"))
def test_a_list_without_a_delimiter(conn):
    for item in ["a,b", "c d"]:
        assert conn.cmd(f"laddb l {len(item)}\r\n{item}") == b"STORED"
    for verb in ["lpop", "lrandom"]:
        refused = f"CLIENT_ERROR this list has no delimiter: use {verb}b".encode()
        assert conn.cmd(f"{verb} l 1") == refused
    assert conn.cmd("lafter l x 1") == b"CLIENT_ERROR this list has no delimiter: use lgetb"
    conn.send("lpopb l 1\r\nlrandomb l 9\r\n")
    answer = item_answer("l", [b"a,b"]) + item_answer("l", [b"c d"])
    assert conn.read_exact(len(answer)) == answer


def test_what_is_refused(conn):
    assert conn.cmd("lpop l 0").startswith(b"CLIENT_ERROR COUNT must not be 0")
    for request in ["lrandom l 0", "lafter l x 0", "lbefore l x -1"]:
        assert conn.cmd(request) == b"CLIENT_ERROR COUNT must be 1 or more"
    assert conn.cmd("llen l") == b"0"


@pytest.mark.config(lists=TINY)
def test_more_than_the_log_takes_comes_by_and_by(conn):
    jobs = names(500)
    for at in range(0, 500, 20):
        conn.cmd(b"ladd q " + b" ".join(jobs[at : at + 20]))
    taken = []
    while items := pop(conn, "q", 10000):
        assert len(items) < 100
        taken += items
    assert taken == jobs


@pytest.mark.config(**{"lists one-": {"dialect": "simple"}, "lists many-": {"dialect": "flip"},
                       "lists ring-": {"dialect": "ring", "capacity": 8}})
def test_dialects(conn):
    for key in ["one-l", "many-l"]:
        assert conn.cmd(f"ladd {key} a b c d") == b"STORED"
    assert pop(conn, "one-l", 2) == [b"a", b"b"]
    assert pop(conn, "one-l", -9) == [b"d", b"c"]
    assert pop(conn, "one-l", 1) == []
    assert conn.cmd("lpop many-l 1").startswith(b"CLIENT_ERROR lpop: a list of several items")
    assert conn.cmd("lpop ring-l 1").startswith(b"CLIENT_ERROR lpop: a ring takes ladd alone")
    conn.send("lafter many-l b 9\r\nlbefore many-l b 9\r\nlafter many-l z 9\r\n")
    answer = value_answer("many-l", [b"c", b"d"]) + value_answer("many-l", [b"a"]) + b"NOT_FOUND\r\n"
    assert conn.read_exact(len(answer)) == answer
    assert conn.cmd("lafter ring-l b 9").startswith(b"CLIENT_ERROR lafter: a list of dialect ring")


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("dies", [False, True])
def test_each_job_goes_to_one_of_eight_workers(start_daemon, memcacheds, dies):
    """Two proxies, of which one is killed: what is gone then was in answers that did not come."""
    limits = dict(TINY, log_limit_bytes=1024, log_hard_limit_bytes=8192)
    daemons = [start_daemon(memcacheds, config={"lists": limits}) for _ in range(2)]
    jobs = names(3000)
    with daemons[0].conn() as conn:
        for at in range(0, len(jobs), 100):
            assert conn.cmd(b"ladd q " + b" ".join(jobs[at : at + 100])) == b"STORED"
    taken, lost = collections.Counter(), [0]
    lock, half = threading.Lock(), threading.Event()

    def consume(number):
        conn = daemons[number % 2].conn()
        try:
            while (items := pop(conn, "q", 1 + number % 3)) != []:
                with lock:
                    lost[0] += 3 if items is None else 0
                    taken.update(items or [])
                if len(taken) > len(jobs) // 2:
                    half.set()
        except (OSError, EOFError):
            assert dies and number % 2 == 1
            with lock:
                lost[0] += 3
            in_its_place(number)

    def in_its_place(number):
        with daemons[0].conn() as conn:
            while (items := pop(conn, "q", 2)) != []:
                with lock:
                    taken.update(items or [])

    def kill():
        half.wait(30)
        daemons[1].kill()

    killer = threading.Thread(target=kill)
    if dies:
        killer.start()
    in_threads(CONSUMERS, consume)
    if dies:
        killer.join()
    assert max(taken.values()) == 1
    assert set(taken) <= set(jobs)
    assert len(jobs) - len(taken) <= lost[0]
    with daemons[0].conn() as conn:
        assert conn.llen("q") == 0
