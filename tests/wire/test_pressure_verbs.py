# SPDX-License-Identifier: BSD-3-Clause
"""Every list verb with the largest request that the proxy takes, from many clients at once: what
the daemon takes stays within what docs/operations.md says of memory_limit_bytes, and others are
served all the while."""

import itertools
import os
import signal
import string
import time

import pytest

from test_pressure_limit import assert_bounded, push_until_calm, serves_others, small
from test_pressure_memory import MIB, SlowReader, memory_mib
from test_scripts import list_words

CLIENTS = 24
LIMIT_MIB = 64
# What folds of such logs take besides: several lists of one block are folded at the same time.
FOLDS_MIB = 40
LOG_BYTES = 900_000
# Of one command's changes, and of what a transaction does to one list.
HALF, QUARTER = LOG_BYTES // 2, LOG_BYTES // 4
LINE = MIB - 300
BLOCK = MIB - 1000
KEYS = 64
LISTS = 16
LINES = 1000
# More are answered as well, and take as long as that many answers take.
NAMES = 10_000
# Items of a list. Each client reads it several times: more than all clients may take together.
HELD = 100_000

# A quiet verb differs from its loud one in the answer alone.
LOUD = [(word, takes) for word, takes in list_words() if not word.endswith("q")]

LETTERS = string.ascii_letters + string.digits
SHORT = ["".join(letters).encode() for letters in itertools.product(LETTERS, repeat=3)]


def items(line_bytes, entry_bytes=LINE):
    """Items of three bytes that no list holds, as many as fit a line and a log."""
    return SHORT[: min(line_bytes // 4, entry_bytes // 6)]


def line(head, most, entry_bytes=LINE * 2):
    return head + b" " + b" ".join(items(most, entry_bytes)) + b"\r\n"


def block(head, data, tail=b""):
    return b"%s %d%s\r\n%s\r\n" % (head, len(data), tail, data)


def item_lines(key):
    return b"".join(b"ITEM %s 3\r\n%s\r\n" % (key, item) for item in items(BLOCK // 5))


def changes(n, op):
    """A block with as many conditions, or changes, as the logs of so many lists take."""
    per_list = items(BLOCK // LISTS, QUARTER - 5000)
    return b"".join(
        b"%s t%d-%d %s\r\n" % (op, n if op == b"ladd" else 0, i, b" ".join(per_list))
        for i in range(LISTS)
    )


def many_lines(n):
    return b"".join(b"ladd t%d-%d %s\r\n" % (n, i % LISTS, SHORT[i]) for i in range(LINES))


def move(word, n):
    """The items are not in the list, or are; it has sublists."""
    here = b" ".join(b"item-%d" % i for i in range(n * 100, n * 100 + QUARTER // 20))
    return [
        line(b"%s held d%d" % (word, n), LINE, QUARTER - 1000),
        line(b"%s held d%d" % (word, n), LINE),
        b"%s held d%d %s\r\n" % (word, n, here),
    ]


def requests(word, takes, n):
    """What client n asks for: the largest that is taken, and longer ones."""
    keys = b" ".join(b"held" if i % 2 else b"also" for i in range(KEYS))
    many = b" ".join([b"held"] * NAMES)
    return {
        "ITEMS": lambda: [
            line(b"%s held" % word, LINE, HALF),
            line(b"%s own%d" % (word, n), LINE, HALF),
            line(b"%s own%d" % (word, n), LINE),
        ],
        "CONTENT": lambda: [line(b"%s own%d" % (word, n), LINE)],
        "KEY": lambda: [b"%s held\r\n" % word] * 2 + [b"%s own%d\r\n" % (word, n)],
        "KEYS": lambda: [b"%s %s\r\n" % (word, many)],
        "RANGE": lambda: [b"%s held 0 -1\r\n" % word] * 6,
        "COUNT": lambda: [b"%s held 1000000\r\n" % word, b"%s also -1000000\r\n" % word] * 2,
        "PAGE": lambda: [b"%s held item-%d 1000000\r\n" % (word, HELD // 2)] * 6,
        "EXPTIME": lambda: [b"%s held %d\r\n" % (word, 1000 + n)],
        "PAIR": lambda: [b"%s held own%d\r\n" % (word, n)] * 2,
        "LISTS": lambda: [b"%s %s\r\n" % (word, keys), b"%s held also\r\n" % word],
        "TARGET": lambda: [b"%s own%d %s\r\n" % (word, n, keys.rsplit(b" ", 1)[0])],
        "LEASE": lambda: [b"%s none%d 10\r\n" % (word, n)],
        "TIMED": lambda: [line(b"%s own%d 100" % (word, n), LINE, HALF // 3)],
        "TIMED_DATA": lambda: [block(b"%s own%d 100" % (word, n), b"i" * 1000)] * 100,
        "KEY_ITEM": lambda: [b"%s held item-1\r\n" % word],
        "BLOCK": lambda: [block(b"%s own%d" % (word, n), b",".join(items(BLOCK)))] * 2,
        "LINES": lambda: [block(b"%s own%d" % (word, n), item_lines(b"own%d" % n))] * 2,
        "DATA": lambda: [block(b"%s own%d" % (word, n), b"i" * 1000)] * 100,
        "CHANGES": lambda: [
            block(word, changes(n, b"ladd")),
            block(word, changes(n, b"lrefuse")),
            block(word, changes(n, b"ldel")),
            block(word, many_lines(n)),
        ],
        "MOVE": lambda: move(word, n),
        "MOVE_ENDS": lambda: [b"%s held d%d 1000000\r\n" % (word, n)] * 3,
    }[takes]()


def make_list(conn, key, first, count):
    for start in range(first, first + count, 25_000):
        block = b" ".join(b"item-%d" % i for i in range(start, start + 25_000))
        assert conn.cmd(b"ladd %s %s" % (key, block)) == b"STORED"
    assert conn.cmd(b"lcompact " + key) == b"OK"


def with_little_memory(test):
    pool = {"pool main": {"timeout_ms": 60000}}
    lists = {"log_hard_limit_bytes": LOG_BYTES, "log_limit_bytes": "64k"}
    test = pytest.mark.config(**small(LIMIT_MIB, deadline_ms=60000), **pool)(test)
    test = pytest.mark.config(lists=lists)(test)
    return pytest.mark.slow(pytest.mark.memcacheds(1, "-I", "8m", "-m", "512")(test))


@with_little_memory
@pytest.mark.parametrize("word, takes", LOUD)
def test_the_largest_of_each_verb_from_many_clients_is_bounded(daemon, word, takes):
    with daemon.conn() as conn:
        make_list(conn, b"held", 0, HELD)
        make_list(conn, b"also", HELD // 2, HELD)
    clients = []
    try:
        for n in range(CLIENTS):
            script = b"".join(requests(word.encode(), takes, n))
            clients.append(SlowReader(daemon.port, script))
        push_until_calm(clients, lambda: serves_others(daemon))
        with daemon.conn() as conn:
            stats = conn.stats()
        print(
            f"{word}: {memory_mib(daemon, 'VmHWM'):.0f} MiB at most, dropped "
            f"{stats['clients_dropped_memory']}, errors {stats['server_errors']}"
        )
        assert_bounded(daemon, LIMIT_MIB, FOLDS_MIB)
    finally:
        for client in clients:
            client.socket.close()
    serves_others(daemon)


@with_little_memory
@pytest.mark.parametrize("word, takes", [("lcreate", "CONTENT"), ("lput", "BLOCK")])
def test_calls_of_clients_that_were_closed_take_no_more(daemon, word, takes):
    """The daemon stands still until all requests are there: it closes clients whose calls have only
    begun to decode what they got."""
    serves_others(daemon)
    clients = []
    try:
        os.kill(daemon.process.pid, signal.SIGSTOP)
        for n in range(CLIENTS):
            clients.append(SlowReader(daemon.port, b"".join(requests(word.encode(), takes, n))))
        time.sleep(0.5)
        os.kill(daemon.process.pid, signal.SIGCONT)
        push_until_calm(clients, lambda: serves_others(daemon))
        assert_bounded(daemon, LIMIT_MIB, FOLDS_MIB)
    finally:
        for client in clients:
            client.socket.close()
