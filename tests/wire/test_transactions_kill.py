# SPDX-License-Identifier: BSD-3-Clause
"""A proxy is killed behind each write of a transaction. Others find all of it or nothing, whatever
they do next, and nothing of it is left in the end."""

import pytest

from harness import wait_until
from model import transaction_block

LISTS = {"announcement_grace_s": 1}
REQUESTS = {
    "two": (
        "ltx",
        [("lrequire", "a", [b"a1"]), ("ldel", "a", [b"a1"]), ("ladd", "b", [b"new"])],
        {"a": [b"a2"], "b": [b"b1", b"b2", b"new"]},
    ),
    "three": (
        "ltx",
        [("ladd", "b", [b"new"]), ("lset", "c", [b"new"]), ("ldel", "a", [b"a1", b"a2"])],
        {"a": [], "b": [b"b1", b"b2", b"new"], "c": [b"new"]},
    ),
    "lmove": ("lmove b a b1 b2 b3", None, {"b": [], "a": [b"a1", b"a2", b"b1", b"b2"]}),
    "lpopto": ("lpopto a b 1", None, {"a": [b"a2"], "b": [b"b1", b"b2", b"a1"]}),
}
# An intent and a decision for each list, and the note that all is done.
WRITES = {name: 2 * len(after) + 1 for name, (_, _, after) in REQUESTS.items()}
CASES = [(name, passed) for name, writes in WRITES.items() for passed in range(writes)]


def run_and_kill(start_daemon, relay, line, lines, passed):
    """So many writes reach the memcached; the next one is held when the proxy dies."""
    proxy = start_daemon([relay], config={"lists": LISTS})
    relay.hold_after(passed)
    with proxy.conn() as conn:
        block = b"" if lines is None else transaction_block(lines)
        conn.send(line if lines is None else f"ltx {len(block)}\r\n", block, "\r\n")
        wait_until("a write is held", relay.held.is_set)
        proxy.kill()


def content(conn, keys):
    return {key: conn.lget(key) for key in keys}


def read_together(conn, keys):
    found = {key.decode(): data.split(b",") for key, _, data in conn.values("lgetx " + " ".join(keys))}
    return {key: found.get(key, []) for key in keys}


def write_blindly_first(conn, keys):
    for key in keys:
        assert conn.cmd(f"ladd {key} other") == b"STORED"
        assert conn.cmd(f"ldel {key} other") == b"DELETED"
    return content(conn, keys)


def write_exactly_first(conn, keys):
    for key in keys:
        assert conn.cmd(f"laddx {key} other") == b"1"
        assert conn.cmd(f"ldelx {key} other") == b"1"
    return content(conn, keys)


def compact_first(conn, keys):
    for key in keys:
        wait_until("it is compact", lambda: conn.cmd(f"lcompact {key}") == b"OK")
    return content(conn, keys)


def transact_first(conn, keys):
    for key in keys:
        assert conn.cmd(f"lmove {key} elsewhere nothing") == b"0"
    return content(conn, reversed(keys))


NEXT = [content, read_together, write_blindly_first, write_exactly_first, compact_first, transact_first]


def is_over(conn, key):
    """Nothing of a transaction is left in the list, once what is old was cleaned up."""
    conn.cmd(f"lcompact {key}")
    stat = conn.stats(f"lstat {key}")
    return all(int(value) == 0 for name, value in stat.items() if name.startswith("transaction"))


@pytest.mark.parametrize("late", [False, True], ids=["", "late"])
@pytest.mark.parametrize("name, passed", CASES)
def test_all_or_nothing(start_daemon, memcached, start_relay, name, passed, late):
    """late: the write that was held arrives when others have already looked."""
    line, lines, after = REQUESTS[name]
    after = dict(sorted(after.items()))
    other = start_daemon([memcached], config={"lists": LISTS})
    with other.conn() as conn:
        for number, look in enumerate(NEXT):
            for key in "abc":
                conn.cmd(f"lset {key} {key}1 {key}2")
            before = {key: [f"{key}1".encode(), f"{key}2".encode()] for key in after}
            relay = start_relay(memcached)
            run_and_kill(start_daemon, relay, line, lines, passed)
            committed = passed > len(after)
            found = look(conn, list(after))
            assert found == (after if committed else before), (number, look.__name__)
            if late:
                relay.release()
            else:
                relay.stop()
            again = content(conn, list(after))
            assert again == found
            for key in after:
                wait_until("nothing is left of it", lambda: is_over(conn, key))
            assert content(conn, list(after)) == found
