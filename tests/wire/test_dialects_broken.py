# SPDX-License-Identifier: BSD-3-Clause
"""Lists of all dialects under what should not happen: bytes with a meaning, garbage under their keys,
names that are too long, items that are full, servers that are gone."""

import random

import pytest

from harness import Conn, wait_until
from test_dialects_support import (
    ADVICE, DELIMITED, DIALECTS, ONE_ITEM, SETS, Hand, lists_by_dialect, settings,
)

KEY = "topic-X"
ALL = pytest.mark.parametrize("dialect", DIALECTS)
ALL_SETS = pytest.mark.parametrize("dialect", SETS)
NEVER = {"compact_chance": 0}


def never(dialect):
    return {} if dialect == "ring" else NEVER


# --- what is refused ---


MEANINGS = {
    "simple": b",", "tombstone": b",|", "signed": b"+-,", "paired": b",", "flip": b"+-,",
    "marker": b"+-^,", "sublists": b"+-,", "ring": b",",
}


@ALL
def test_items_with_a_byte_that_has_a_meaning(memcached, start_daemon, dialect):
    """Nothing is stored, and the connection stays in step. Control bytes, but tabs and line ends, are
    for telling lists from packed and compressed values."""
    daemon = start_daemon([memcached], config=settings(dialect))
    verbs = ["ladd"] if dialect == "ring" else ["ladd", "ldel", "lset"]
    verbs += ["laddx", "ldelx", "lcreate"] if dialect in ONE_ITEM else []
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for byte in MEANINGS[dialect] + b"\x01\x0b\x1f\x7f":
            for item in ("%c", "%cx", "x%c", "a%cb"):
                text = item % byte
                for verb in verbs:
                    line = conn.cmd(f"{verb} {KEY} good {text}")
                    assert line.startswith(b"CLIENT_ERROR item holds the "), (verb, text, line)
                for verb in ("laddb", "ldelb") if dialect != "ring" else ("laddb",):
                    line = conn.cmd(f"{verb} {KEY} {len(text)}", text)
                    assert line.startswith(b"CLIENT_ERROR item holds the ")
        assert conn.cmd(f"laddb {KEY} 1", b"\0") == (
            b"CLIENT_ERROR item holds the byte \\x00, and lists of dialect %s hold text"
            % dialect.encode()
        )
        assert conn.cmd("mn") == b"MN"
        assert hand.conn.stats()["total_items"] == "0"


@ALL
def test_bytes_that_have_a_meaning_elsewhere_are_taken(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=settings(dialect))
    free = [byte for byte in b",|+-^@:#. \t\r\n\x80\xff" if byte not in MEANINGS[dialect]]
    items = [b"x%cy" % byte for byte in free] + [b"%c" % byte for byte in free]
    with daemon.conn() as conn:
        for item in items:
            assert conn.cmd(f"laddb {KEY} {len(item)}", item) == b"STORED"
        assert conn.lgetb(KEY) == (items[::-1] if dialect == "ring" else items)
        for item in items:
            found = conn.send(f"lhasb {KEY} {len(item)}\r\n", item, "\r\n") or conn.values_answer()
            assert found[0][2] == item
        if dialect != "ring":
            for item in items:
                assert conn.cmd(f"ldelb {KEY} {len(item)}", item) == b"DELETED"
            assert conn.lgetb(KEY) == []


@pytest.mark.parametrize("dialect", [d for d in SETS if d not in ONE_ITEM])
@pytest.mark.parametrize("verb", ["laddx", "ldelx", "lcreate"])
def test_exact_verbs_where_nothing_can_be_decided(memcached, start_daemon, dialect, verb):
    daemon = start_daemon([memcached], config=settings(dialect))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert conn.cmd(f"{verb} {KEY} x") == (
            b"CLIENT_ERROR %s: a list of several items has no place where it could be decided; "
            b"use ladd or ldel" % verb.encode()
        )
        assert conn.cmd("mn") == b"MN"
        assert hand.conn.stats()["total_items"] == "0"


@ALL
def test_empty_items_and_too_long_ones(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=settings(dialect, max_item_bytes=100, **never(dialect)))
    with daemon.conn() as conn:
        assert conn.cmd(f"laddb {KEY} 0", "") == b"CLIENT_ERROR empty item"
        assert conn.cmd(f"ladd {KEY} " + "x" * 101) == b"CLIENT_ERROR item is longer than 100 bytes (max_item_bytes)"
        assert conn.cmd(f"ladd {KEY} " + "x" * 100) == b"STORED"
        assert conn.lget(KEY) == [b"x" * 100]


LONGEST = {"simple": 220, "paired": 220, "flip": 220, "sublists": 220, "ring": 220}


@ALL
def test_long_keys(memcached, start_daemon, dialect):
    """The longest key works in all its parts; a longer one is refused by every verb."""
    daemon = start_daemon([memcached], config=settings(dialect))
    with daemon.conn() as conn:
        key = "topic-" + "k" * 214
        assert conn.cmd(f"ladd {key} a b") == b"STORED"
        assert sorted(conn.lget(key)) == [b"a", b"b"]
        if dialect != "ring":
            assert conn.cmd(f"ldel {key} a") == b"DELETED"
            assert conn.lget(key) == [b"b"]
            assert conn.cmd(f"lset {key} c") == b"STORED"
            assert conn.lget(key) == [b"c"]
        assert conn.cmd(f"lcompact {key}") == b"OK"
        assert conn.cmd(f"ldrop {key}") == b"DELETED"
        for verb in ("ladd", "lget", "llen", "ldrop", "lcompact"):
            line = conn.cmd(f"{verb} {key}k" + (" x" if verb == "ladd" else ""))
            assert line == b"CLIENT_ERROR key too long, 220 bytes at most", verb


def test_keys_whose_items_would_have_names_that_are_too_long(memcached, start_daemon):
    name = "n" * 100 + "%s"
    config = {
        "lists p-": {"dialect": "paired", "add_name": name, "delete_name": "d%s"},
        "lists r-": {"dialect": "ring", "slot_name": name},
        "lists s-": {"dialect": "sublists", "sublist_name": name},
    }
    daemon = start_daemon([memcached], config=config)
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for prefix, room in (("p-", 150), ("r-", 140), ("s-", 140)):
            key = prefix + "k" * (room - 2)
            for verb in ("ladd {} x", "lget {}", "llen {}", "lhas {} x", "lrange {} 0 1", "ldrop {}",
                         "lcompact {}", "lstat {}", "lgetb {}", "laddb {} 1\r\nx"):
                line = conn.cmd(verb.format(key + "k"))
                assert line.startswith(
                    b"CLIENT_ERROR key must have 1 to %d bytes" % room
                ), (verb, line)
            assert hand.conn.stats()["curr_items"] == "0"
            assert conn.cmd(f"ladd {key} x") == b"STORED"
            assert conn.lget(key) == [b"x"]
            assert conn.cmd(f"ldrop {key}") == b"DELETED"
            hand.conn.cmd("flush_all")
            # In one request with others: these are answered, up to it.
            conn.send(f"lget {key} {key}k {key}\r\n")
            assert conn.line().startswith(b"CLIENT_ERROR")
            assert conn.cmd("mn") == b"MN"


# --- garbage ---


def part_names(dialect):
    numbered = [f"{KEY}.{n}" for n in (0, 1, 2, 7)]
    return {
        "paired": [f"follow-{KEY}", f"unfollow-{KEY}"],
        "flip": [f"{KEY}.a", f"{KEY}.b", f"{KEY}.active"],
        "marker": [f"{KEY}.a", f"{KEY}.b"],
        "sublists": [KEY, *numbered],
        "ring": [f"{KEY}.seq", *numbered],
    }.get(dialect, [KEY])


def garbage(rng):
    alphabet = rng.choice([bytes(range(256)), b"+-0123456789", b",|a", b"+-^@:0f", b"0 x9", b"^"])
    return bytes(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 2, 5, 40, 2000])))


def check_refused(hand, conn, dialect):
    """Nothing changes what is stored but ldrop; the list can be used after that."""
    verbs = ["lget {}", "llen {}", "lhas {} a", "lrange {} 0 -1", "lstat {}"]
    if dialect != "ring":
        verbs += ["lcompact {}", "lset {} a b"]
    before = {name: hand.conn.values(f"gets {name}") for name in part_names(dialect)}
    for verb in verbs:
        line = conn.cmd(verb.format(KEY))
        assert b" is not of dialect " + dialect.encode() + b": " in line, (verb, line)
        assert line.endswith(ADVICE)
    assert {name: hand.conn.values(f"gets {name}") for name in part_names(dialect)} == before
    assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
    assert conn.lget(KEY) == []


@ALL
@pytest.mark.parametrize("seed", range(3))
def test_garbage_under_the_keys_of_a_list(memcached, start_daemon, dialect, seed):
    """Every request has an answer. A value of another format is refused and not touched; of the rest
    what was added is there, and lcompact changes no content."""
    rng = random.Random(seed)
    capacity = {"capacity": 8} if dialect == "ring" else NEVER
    first, second = [
        start_daemon([memcached], config=settings(dialect, **capacity)) for _ in range(2)
    ]
    refused = 0
    with Hand(memcached.port) as hand, first.conn() as conn, second.conn() as other:
        for n in range(60):
            hand.conn.cmd("flush_all")
            for name in part_names(dialect):
                if rng.random() < 0.8:
                    assert hand.store("set", name, garbage(rng))
            try:
                content = conn.lgetb(KEY)
            except RuntimeError:
                refused += 1
                check_refused(hand, conn, dialect)
                content = []
            assert other.lgetb(KEY) == content
            assert conn.llen(KEY) == len(content)
            if dialect == "ring":
                assert conn.cmd(f"ladd {KEY} Item") == b"STORED"
                assert conn.cmd(f"lcompact {KEY}") == b"OK"
                assert conn.lgetb(KEY) == other.lgetb(KEY) == [b"Item", *content][:8]
                continue
            assert len(content) == len(set(content))
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
            assert conn.lgetb(KEY) == other.lgetb(KEY) == content
            for item in ("Item", "Other"):
                if dialect in ("tombstone", "paired"):
                    break  # what was deleted before it was added does not come in
                assert conn.cmd(f"ladd {KEY} {item}") == b"STORED"
                assert item.encode() in other.lgetb(KEY)
                assert other.cmd(f"ldel {KEY} {item}") == b"DELETED"
                assert item.encode() not in conn.lgetb(KEY)
            assert conn.cmd(f"lset {KEY} one two") == b"STORED"
            assert conn.lgetb(KEY) == other.lgetb(KEY) == [b"one", b"two"]
            assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
            assert other.lgetb(KEY) == []
        assert refused > (5 if dialect in DELIMITED else 20)  # a word is a list there
        assert int(conn.stats()["list_foreign_parts"]) >= refused


def test_an_index_of_very_many_sublists(memcached, start_daemon):
    """As garbage may look like: it is answered, and others are served meanwhile."""
    config = {**settings("sublists", **NEVER), "proxy": {"deadline_ms": 60000}}
    daemon = start_daemon([memcached], config=config)
    with Hand(memcached.port) as hand, Conn(daemon.port, timeout_s=60) as conn, daemon.conn() as other:
        hand.store("set", KEY, "".join(f"+{n}" for n in range(120000)))
        hand.store("set", f"{KEY}.0", "+a")
        for items in ([b"a"], [b"a", b"b"]):
            conn.send(f"lget {KEY}\r\n")
            assert other.cmd("mn") == b"MN"
            assert conn.values_answer() == [(KEY.encode(), [0, len(b",".join(items))], b",".join(items))]
            assert conn.cmd(f"ladd {KEY} b") == b"STORED"


def test_numbers_with_large_gaps(memcached, start_daemon):
    """What lies between them is not asked for."""
    daemon = start_daemon([memcached], config=settings("sublists", **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", KEY, "+0+7+900000000")
        hand.store("set", f"{KEY}.0", "+a")
        hand.store("set", f"{KEY}.7", "+b")
        hand.store("set", f"{KEY}.900000000", "+c")
        for n in range(3):
            assert conn.lget(KEY) == [b"a", b"b", b"c", *[b"new%d" % i for i in range(n)]]
            assert conn.cmd(f"ladd {KEY} new{n}") == b"STORED"
        assert hand.get(f"{KEY}.900000000") == b"+c+new0+new1+new2"


def test_numbers_of_sublists_at_their_end(memcached, start_daemon):
    """The next sublist would have a number that no reader can take."""
    daemon = start_daemon(
        [memcached],
        config=settings("sublists", sublist_limit_bytes=512, max_item_bytes=100, **NEVER),
    )
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for number in (999_999_999, 4_294_967_294, 4_294_967_295):
            hand.store("set", KEY, f"+{number}")
            hand.store("set", f"{KEY}.{number}", "+first")
            items = [b"first"]
            for n in range(100):
                assert conn.cmd(f"ladd {KEY} item{n}{number}") == b"STORED"
                items.append(b"item%d%d" % (n, number))
            assert conn.lget(KEY) == items
            for n in range(3):
                assert conn.cmd(f"lset {KEY} set{n}") == b"STORED"
                assert conn.lget(KEY) == [b"set%d" % n]
                assert conn.cmd(f"ladd {KEY} more") == b"STORED"
                assert conn.lget(KEY) == [b"set%d" % n, b"more"]
            conn.cmd(f"ldrop {KEY}")


# --- full ---


@pytest.mark.parametrize("item_bytes", ["4k", pytest.param("1m", marks=pytest.mark.slow)])
@ALL_SETS
def test_a_list_at_the_servers_item_size_limit(start_memcached, start_daemon, dialect, item_bytes):
    """It grows until it is refused, then everything that was acknowledged is there."""
    memcached = start_memcached("-I", item_bytes, "-o", "slab_chunk_max=1024")
    length, count, log_bytes = (90, 80, 2048) if item_bytes == "4k" else (6000, 250, 16384)
    sizes = {"max_item_bytes": length + 100, "log_limit_bytes": log_bytes}
    daemon = start_daemon([memcached], config=settings(dialect, **sizes, **NEVER))
    with daemon.conn() as conn:
        items, refused = [], 0
        for n in range(count):
            item = b"%d" % n + b"x" * (length - 10)
            line = conn.cmd(b"ladd " + KEY.encode() + b" " + item)
            if line == b"STORED":
                items.append(item)
            else:
                assert line.startswith(b"SERVER_ERROR backend has no room for this list"), line
                refused += 1
            if refused == 3:
                break
        assert (refused > 0) == (dialect != "sublists")
        assert conn.lget(KEY) == items
        # Room is made by deleting.
        for item in items[: len(items) // 2]:
            line = conn.cmd(b"ldel " + KEY.encode() + b" " + item)
            if line == b"DELETED":
                items.remove(item)
            else:
                assert line.startswith(b"SERVER_ERROR"), line
        assert conn.lget(KEY) == items
        if dialect in ("simple", "tombstone", "signed", "sublists", "flip", "marker"):
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
            assert conn.lget(KEY) == items
            assert conn.cmd(f"ladd {KEY} again") == b"STORED"
            assert conn.lget(KEY) == [*items, b"again"]


@ALL_SETS
def test_more_at_once_than_the_server_takes(start_memcached, start_daemon, dialect):
    """Before anything is known of its limit. What is refused was not done, and leaves no empty
    sublists behind."""
    memcached = start_memcached("-I", "4k", "-o", "slab_chunk_max=1024")
    config = settings(dialect, log_limit_bytes=2048, max_item_bytes=200, **NEVER)
    daemon = start_daemon([memcached], config={**config, "proxy": {"threads": 1}})
    no_room = b"SERVER_ERROR backend has no room for "
    with daemon.conn() as conn:
        items = [b"%04d" % n + b"x" * 90 for n in range(200)]
        conn.send(*[b"ladd " + KEY.encode() + b" " + item + b"\r\n" for item in items])
        stored = []
        for item, line in zip(items, conn.lines(200)):
            assert line == b"STORED" or line.startswith(no_room), line
            stored += [item] if line == b"STORED" else []
        assert conn.lget(KEY) == stored
        if dialect == "sublists":
            assert int(conn.stats(f"lstat {KEY}").get("sublists", 0)) <= 2 + len(stored) // 30
        assert conn.cmd(f"ladd {KEY} small").startswith((b"STORED", no_room))


def test_a_list_that_is_too_large_to_be_read_can_be_dropped(memcached, start_daemon):
    sizes = {"log_hard_limit_bytes": 2048, "sublist_limit_bytes": 4096, "max_item_bytes": 500}
    config = settings("sublists", fold_memory_bytes=150000, log_limit_bytes=1024, **sizes, **NEVER)
    daemon = start_daemon([memcached], config=config)
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", KEY, "+0+1+2")
        for n in range(3):
            hand.store("set", f"{KEY}.{n}", "".join(f"+{n}x{i}" for i in range(4000)))
        for request in ("llen", "lcompact"):
            assert conn.cmd(f"{request} {KEY}") == (
                b"SERVER_ERROR list needs more than fold_memory_bytes to be read"
            )
        assert conn.cmd(f"ladd {KEY} more") == b"STORED"
        assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
        assert conn.lget(KEY) == []
        assert hand.get(f"{KEY}.0") is None
        assert conn.cmd(f"ladd {KEY} new") == b"STORED"
        assert conn.lget(KEY) == [b"new"]


@pytest.mark.release
@ALL_SETS
def test_lists_of_50000_items(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=settings(dialect))
    items = [b"item%d" % n for n in range(50000)]
    with daemon.conn() as conn:
        for at in range(0, 50000, 2500):
            conn.send("ladd ", KEY, " ", b" ".join(items[at : at + 2500]), "\r\n")
        assert set(conn.lines(20)) == {b"STORED"}
        assert conn.llen(KEY) == 50000
        assert conn.lget(KEY) == items
        for n in range(0, 50000, 5000):
            conn.send(f"ldel {KEY} item{n}\r\n")
        assert set(conn.lines(10)) == {b"DELETED"}
        kept = [item for n, item in enumerate(items) if n % 5000]
        assert conn.lget(KEY) == kept
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.lget(KEY) == kept
        assert conn.values(f"lrange {KEY} -1 -1")[0][2] == b"item49999"


# --- servers ---


@ALL
def test_a_server_that_is_down(memcached, start_daemon, dialect):
    config = {**settings(dialect), "pool main": {"timeout_ms": 300, "retry_min_ms": 20, "retry_max_ms": 50}}
    daemon = start_daemon([memcached], config=config)
    with daemon.conn() as conn:
        assert conn.cmd(f"ladd {KEY} a") == b"STORED"
        memcached.stop()
        verbs = ["ladd {} x", "lcompact {}", "ldrop {}", "llen {}", "lget {}", "lhas {} a", "lstat {}"]
        verbs += [] if dialect == "ring" else ["ldel {} a", "lset {} a b"]
        for _ in range(2):
            for verb in verbs:
                line = conn.cmd(verb.format(KEY))
                nothing_to_do = dialect == "ring" and verb.startswith("lcompact")
                assert line.startswith(b"SERVER_ERROR") or nothing_to_do, (verb, line)
        memcached.start()
        wait_until("it is back", lambda: conn.cmd(f"ladd {KEY} b") == b"STORED")
        wait_until("it can be read", lambda: conn.cmd(f"llen {KEY}") in (b"1", b"2"))


@pytest.mark.parametrize("dialect", ["paired", "flip", "marker", "sublists", "ring"])
def test_one_of_several_servers_is_down(start_memcached, start_daemon, dialect):
    """What cannot be read as a whole is not read at all."""
    servers = [start_memcached() for _ in range(3)]
    config = {**settings(dialect), "pool main": {"timeout_ms": 300, "retry_min_ms": 20, "retry_max_ms": 50}}
    daemon = start_daemon(servers, config=config)
    with daemon.conn() as conn:
        keys = [f"topic-{n}" for n in range(20)]
        for key in keys:
            assert conn.cmd(f"ladd {key} a b c") == b"STORED"
        servers[1].stop()
        whole = b"c,b,a" if dialect == "ring" else b"a,b,c"
        for key in keys:
            conn.send(f"lget {key}\r\n")
            try:
                assert conn.values_answer()[0][2] == whole
            except RuntimeError as error:
                assert str(error).startswith("SERVER_ERROR")
        assert conn.cmd("mn") == b"MN"


def test_requests_of_all_kinds_while_a_server_goes_and_comes(start_memcached, start_daemon):
    servers = [start_memcached() for _ in range(2)]
    pool = {"timeout_ms": 200, "retry_min_ms": 10, "retry_max_ms": 20}
    daemon = start_daemon(servers, config={**lists_by_dialect(), "pool main": pool})
    with daemon.conn() as conn:
        for round_number in range(6):
            for dialect in DIALECTS:
                conn.send(f"ladd {dialect}-k a b\r\nllen {dialect}-k\r\nlcompact {dialect}-k\r\n")
            if round_number % 2:
                servers[1].restart()
            else:
                servers[1].stop()
            assert len(conn.lines(3 * len(DIALECTS))) == 3 * len(DIALECTS)
        assert conn.cmd("mn") == b"MN"
