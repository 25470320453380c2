# SPDX-License-Identifier: BSD-3-Clause
"""Several lists at one instant, and stores, while a proxy is killed and paused again and again."""

import signal
import threading

import pytest

from harness import in_threads, pause_process

SHORT = {"log_limit_bytes": 512, "log_hard_limit_bytes": 8192, "sublist_limit_bytes": 1024}
SHORT.update({"max_item_bytes": 100, "announcement_grace_s": 1})
STEPS = 800
ITEMS = 40


def harm(daemon, over):
    """By turns, for as long as the others work."""
    while not over.wait(0.3):
        daemon.kill()
        daemon.start()
        if over.wait(0.3):
            return
        pause_process(daemon.process.pid)
        over.wait(0.5)
        daemon.signal(signal.SIGCONT)


def lists_of(conn, line):
    """By their keys; None where the answer is an error."""
    try:
        return {key.decode(): data.split(b",") if data else [] for key, _, data in conn.values(line)}
    except RuntimeError:
        return None


def relate(conn, over):
    """One writer, by the proxy that lives: what is in `part` is in `whole` at each instant."""
    for step in range(3 * STEPS):
        items = " ".join(f"item-{(step * 7 + n) % ITEMS}" for n in range(8))
        if step % 2 == 0:
            assert conn.cmd(f"ladd whole {items}") == b"STORED"
            assert conn.cmd(f"ladd s-part {items}") == b"STORED"
        else:
            assert conn.cmd(f"ldel s-part {items}") == b"DELETED"
            assert conn.cmd(f"ldel whole {items}") == b"DELETED"
    over.set()


def compare(conn):
    """Answers what is wrong."""
    found = lists_of(conn, "lgetx whole s-part")
    if found is not None and not set(found.get("s-part", [])) <= set(found.get("whole", [])):
        return f"of two instants: {found}"
    for line in ["ldifflen s-part whole", "ldiffstore rest s-part whole"]:
        number = conn.cmd(line)
        if number.isdigit() and number != b"0":
            return f"{line}: {number}"
    return None


def keep_comparing(daemon, over, wrong, may_die):
    while not over.is_set():
        try:
            with daemon.conn() as conn:
                while not over.is_set():
                    fault = compare(conn)
                    if fault:
                        wrong.append(fault)
                        over.set()
        except (OSError, EOFError):
            assert may_die


@pytest.mark.memcacheds(2)
def test_two_lists_that_one_writer_keeps_related(start_daemon, memcacheds):
    config = {"lists": SHORT, "lists s-": {"placement": "spread"}}
    lives, dies = [start_daemon(memcacheds, config=config) for _ in range(2)]
    over, wrong = threading.Event(), []
    harming = threading.Thread(target=harm, args=(dies, over))
    harming.start()

    def work(number):
        try:
            if number == 0:
                with lives.conn() as conn:
                    relate(conn, over)
            else:
                keep_comparing([lives, dies][number % 2], over, wrong, number % 2 == 1)
        finally:
            if number == 0:
                over.set()

    try:
        in_threads(4, work)
    finally:
        over.set()
        harming.join()
    assert wrong == []


@pytest.mark.memcacheds(2)
def test_a_store_onto_its_source_loses_no_addition(start_daemon, memcacheds):
    """An item is added to `other`, then to `list`: no linterstore of both, by whichever proxy, may
    take it off, also one whose proxy dies in the middle."""
    lives, dies = [start_daemon(memcacheds, config={"lists": SHORT}) for _ in range(2)]
    over, added = threading.Event(), []
    harming = threading.Thread(target=harm, args=(dies, over))
    harming.start()

    def add():
        with lives.conn() as conn:
            for n in range(4 * STEPS):
                for key in ["other", "list"]:
                    assert conn.cmd(f"ladd {key} item-{n}") == b"STORED"
                added.append(b"item-%d" % n)

    def store(daemon):
        while not over.is_set():
            try:
                with daemon.conn() as conn:
                    while not over.is_set():
                        conn.cmd("linterstore list list other")
            except (OSError, EOFError):
                assert daemon is dies

    def work(number):
        if number > 0:
            store([lives, dies][number % 2])
            return
        try:
            add()
        finally:
            over.set()

    try:
        in_threads(3, work)
    finally:
        over.set()
        harming.join()
    with lives.conn() as conn:
        assert set(conn.lget("list")) == set(added)
