# SPDX-License-Identifier: BSD-3-Clause
"""Transactions that are held up at each step, by a server that does not answer, or dies: what others
see and do meanwhile, and what the client is told."""

import pytest

from harness import in_threads
from test_transactions import ltx

CONFIG = {"proxy": {"deadline_ms": 700, "threads": 1}, "lists": {}}
# What the proxy sends for a transaction of two lists: an intent to each, a commit to each, done.
CHANGES = 5
COMMIT = 2


def seen(conn):
    """Whether both lists have what the transaction adds; they must agree."""
    alice, bob = (conn.lget(key) for key in ("alice", "bob"))
    assert (b"bob" in alice) == (b"alice" in bob), (alice, bob)
    return b"bob" in alice


def make_lists(conn):
    assert conn.cmd("ladd alice carol") == b"STORED"
    assert conn.cmd("ladd bob dave") == b"STORED"


def start_transaction(daemon, answers):
    """On a connection that stays open; the answer comes to answers, if any comes."""

    def ask():
        try:
            with daemon.conn() as conn:
                answers.append(ltx(conn, "ladd alice bob", "ladd bob alice"))
        except (OSError, EOFError):
            answers.append(b"")

    return ask


def assert_as_told(answer, is_done):
    if answer == b"STORED":
        assert is_done
    elif b"unknown" not in answer:
        assert b"nothing done" in answer, answer
        assert not is_done


@pytest.fixture
def scene(start_daemon, memcacheds, start_relay):
    """The relay in front of the memcached, a proxy behind it, and one beside it."""
    relay = start_relay(memcacheds[0])
    behind = start_daemon([relay], config=CONFIG)
    beside = start_daemon(memcacheds, config=CONFIG)
    with beside.conn() as conn, behind.conn() as warm:
        make_lists(conn)
        assert not seen(warm)
    return relay, behind, beside


@pytest.mark.parametrize("step", range(CHANGES))
def test_others_meet_a_transaction_that_is_held_up(scene, step):
    relay, behind, beside = scene
    answers, found = [], []

    def others():
        relay.held.wait()
        with beside.conn() as conn:
            found.append(seen(conn))
            assert conn.cmd("ladd alice erin") == b"STORED"
            assert conn.cmd("ldelx bob dave") == b"1"
            assert seen(conn) == found[0]
        relay.release()

    relay.hold_after(step)
    in_threads(2, lambda n: [start_transaction(behind, answers), others][n]())
    assert answers == [b"STORED"]
    assert found == [step > COMMIT]
    with beside.conn() as conn:
        assert seen(conn)
        assert conn.lget("alice")[-1] in (b"erin", b"bob")


@pytest.mark.parametrize("step", range(CHANGES))
def test_the_server_does_not_answer(scene, step):
    relay, behind, beside = scene
    answers = []
    relay.hold_after(step)
    start_transaction(behind, answers)()
    assert answers[0] == b"STORED" if step == CHANGES - 1 else answers[0].startswith(b"SERVER_ERROR")
    with beside.conn() as conn:
        is_done = seen(conn)
        assert_as_told(answers[0], is_done)
        relay.release()
        assert_as_told(answers[0], seen(conn))


def key_on(conn, server, name):
    """A key whose list lives on that server."""
    for n in range(100):
        key = f"{name}{n}"
        assert conn.cmd(f"ladd {key} first") == b"STORED"
        with server.conn() as direct:
            if direct.get(f"{key}#") is not None:
                return key
    raise AssertionError("no key there")


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("dead", [0, 1], ids=["the primary's", "the other one's"])
@pytest.mark.parametrize("step", range(3))
def test_a_server_dies(start_daemon, memcacheds, start_relay, step, dead):
    """The relay is before the server that dies; what the other list holds fits what was told."""
    relay = start_relay(memcacheds[dead])
    servers = [relay if n == dead else memcacheds[n] for n in range(2)]
    daemon = start_daemon(servers, config=CONFIG)
    answers = []
    with daemon.conn() as conn:
        primary, other = (key_on(conn, memcacheds[n], name) for n, name in enumerate("ab"))

        def ask():
            answers.append(ltx(conn, f"ladd {primary} x", f"ladd {other} x"))

        def kill():
            if relay.wait_until_held_or(lambda: bool(answers)):
                memcacheds[dead].stop()
                relay.release()

        relay.hold_after(step)
        in_threads(2, lambda n: [ask, kill][n]())
        memcacheds[dead].restart()
        left = other if dead == 0 else primary
        if b"unknown" not in answers[0]:
            assert (b"x" in conn.lget(left)) == (answers[0] == b"STORED"), answers


def test_calls_of_one_client_keep_their_order(start_daemon, memcacheds):
    """All in one packet, on lists that no worker knows yet."""
    block = b"lrequire a x\r\nldel a x\r\nladd b x\r\n"
    transaction = b"ltx %d\r\n%s\r\n" % (len(block), block)
    with start_daemon(memcacheds, config=CONFIG).conn() as conn:
        conn.send(
            b"ladd a x y\r\n", transaction, b"lget a b\r\nldel b x\r\n", transaction,
            b"ladd a x\r\n", transaction, b"lmove b a x\r\nllen a b\r\nlpopto a b 1\r\nlget b\r\n"
        )
        expected = [b"STORED", b"STORED"]
        expected += [b"VALUE a 0 1", b"y", b"VALUE b 0 1", b"x", b"END", b"DELETED"]
        expected += [b"NOT_STORED", b"STORED", b"STORED", b"1", b"2", b"0"]
        expected += [b"VALUE b 0 1", b"y", b"END", b"VALUE b 0 1", b"y", b"END"]
        assert conn.lines(len(expected)) == expected
