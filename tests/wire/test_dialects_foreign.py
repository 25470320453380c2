# SPDX-License-Identifier: BSD-3-Clause
"""Values of another kind under the names of lists: JSON, numbers, serialised and compressed ones.
They are refused by all verbs but ldrop, untouched, counted and named."""

import zlib

import pytest

from harness import wait_until
from test_dialects_support import ADVICE, DELIMITED, DIALECTS, ONE_ITEM, SETS, Hand, blind, settings

KEY = "topic-X"

# The names that a list has, and what a client by hand may have stored there.
PARTS = {
    "simple": {KEY: b"a,b,"},
    "tombstone": {KEY: b"a,|a,b,"},
    "signed": {KEY: b"+a+b-a"},
    "paired": {f"follow-{KEY}": b"a,b,", f"unfollow-{KEY}": b"a,"},
    "flip": {f"{KEY}.a": b"+a+b-a", f"{KEY}.b": b"+c", f"{KEY}.active": b"topic-X.a"},
    "marker": {f"{KEY}.a": b"^+a", f"{KEY}.b": b"+b-a"},
    "sublists": {KEY: b"+0+1700000000", f"{KEY}.0": b"+a", f"{KEY}.1700000000": b"+b-a"},
    "ring": {f"{KEY}.seq": b"1", f"{KEY}.1": b"1 b"},
}
EACH_PART = [(dialect, name) for dialect in DIALECTS for name in PARTS[dialect]]

FOREIGN = {
    "number": (b"12345x", 0),
    "json": (b"[5,1,1,3]", 0),
    "object": (b'{"a":1,"b":[2,3],"c":"+d-e"}', 0),
    "php": (b'a:2:{i:0;s:1:"a";i:1;s:1:"b";}', 0),
    "word": (b"hello", 0),
    "zlib": (zlib.compress(b"a,b," * 100), 0),
    "old zlib flags": (b"\x10\0\0\0" + zlib.compress(b"a,b," * 100), 16),
    "flags": (None, 4),  # of the list's own format, but for the flags
    "long": (b"+" + b"x" * 2000 + b",", 0),
    "control": (b"1 +\x02a,", 0),
}


def kinds_of(dialect):
    """A word is a list of one item where delimiters stand between the items."""
    return [kind for kind in FOREIGN if dialect not in DELIMITED or kind not in ("number", "word")]


def verbs_of(dialect):
    reads = ["lget {}", "lgetb {}", "llen {}", "lhas {} a", "lrange {} 0 -1", "lstat {}", "lgets {}"]
    if dialect == "ring":
        return reads
    exact = ["laddx {} z", "ldelx {} b", "lcreate {} z"] if dialect in ONE_ITEM else []
    return reads + ["lcompact {}", "lset {} y z"] + exact


def stored(hand, dialect):
    return {name: hand.conn.values(f"gets {name}") for name in PARTS[dialect]}


def put(hand, dialect, name, kind):
    value, flags = FOREIGN[kind]
    for part, text in PARTS[dialect].items():
        assert hand.store("set", part, text)
    value = PARTS[dialect][name] if value is None else value
    assert hand.conn.set(name, value, flags=flags) == b"STORED"


@pytest.mark.parametrize("dialect,name", EACH_PART)
def test_every_verb_but_ldrop_refuses(memcached, start_daemon, dialect, name):
    """The proxy compacts at every chance, knows the list or not, and changes nothing."""
    never = {} if dialect == "ring" else {"compact_chance": 1}
    daemon = start_daemon([memcached], config=settings(dialect, **never))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for number, kind in enumerate(kinds_of(dialect)):
            put(hand, dialect, name, kind)
            before = stored(hand, dialect)
            for verb in verbs_of(dialect) * 2:
                line = conn.cmd(verb.format(KEY))
                assert line.startswith(b"SERVER_ERROR " + name.encode() + b" is not of dialect "
                                       + dialect.encode() + b": "), (kind, verb, line)
                assert line.endswith(ADVICE)
            assert stored(hand, dialect) == before, kind
            assert int(conn.stats()["list_foreign_parts"]) > number
            assert conn.cmd(f"ldrop {KEY}") == b"DELETED"
            if dialect != "sublists" or name != KEY:  # an index stays, with a number that is new
                wait_until("it is gone", lambda: hand.get(name) is None)
            assert conn.lget(KEY) == []
            assert conn.cmd(f"ladd {KEY} new") == b"STORED"
            assert conn.lget(KEY) == [b"new"]
            hand.conn.cmd("flush_all")
            assert conn.cmd("lcompact topic-Y") == b"OK"


@pytest.mark.parametrize("dialect,name", EACH_PART)
@pytest.mark.parametrize("verb", ["ladd", "ldel"])
def test_a_proxy_that_does_not_know_the_list_looks_before_it_appends(
    memcached, start_daemon, dialect, name, verb
):
    """Whatever the answer: every value that is not the list's is as it was."""
    if dialect == "ring" and verb == "ldel":
        pytest.skip("a ring has no ldel")
    config = settings(dialect, **({} if dialect == "ring" else {"compact_chance": 0}))
    daemon = start_daemon([memcached], config={**config, "proxy": {"threads": 1}})
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for n, kind in enumerate(kinds_of(dialect)):
            key = f"topic-{n}"
            parts = {part.replace(KEY, key): text for part, text in PARTS[dialect].items()}
            for part, text in parts.items():
                assert hand.store("set", part, text.replace(KEY.encode(), key.encode()))
            value, flags = FOREIGN[kind]
            own = hand.get(name.replace(KEY, key))
            mine = name.replace(KEY, key)
            assert hand.conn.set(mine, own if value is None else value, flags=flags) == b"STORED"
            before = hand.conn.values(f"gets {mine}")
            for _ in range(3):
                line = conn.cmd(f"{verb} {key} b c")
                assert line in (b"STORED", b"DELETED") or b" is not of dialect " in line, line
            assert hand.conn.values(f"gets {mine}") == before, (kind, line)


@pytest.mark.parametrize("dialect", SETS)
def test_appending_to_a_known_list_takes_one_request(memcached, start_daemon, dialect):
    """As it did before: the look is made once."""
    config = blind(dialect, compact_chance=0)
    daemon = start_daemon([memcached], config={**config, "proxy": {"threads": 1}})
    with daemon.conn() as conn:
        assert conn.cmd(f"ladd {KEY} a b c") == b"STORED"
        assert conn.lget(KEY) == [b"a", b"b", b"c"]
        before = int(conn.stats()["backend_requests"])
        for n in range(10):
            assert conn.cmd(f"ladd {KEY} d{n}") == b"STORED"
        requests = int(conn.stats()["backend_requests"]) - before
        assert requests == {"flip": 20, "sublists": 30}.get(dialect, 10)


def test_the_cases_that_were_reported(memcached, start_daemon):
    config = {"lists s-": {"dialect": "signed", "compact_chance": 1},
              "lists c-": {"dialect": "simple", "compact_chance": 1}}
    daemon = start_daemon([memcached], config=config)
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for key, value in (("s-number", "12345"), ("c-json", "[5,1,1,3]")):
            assert hand.store("set", key, value)
            for _ in range(300):
                assert conn.cmd(f"llen {key}").startswith(b"SERVER_ERROR " + key.encode())
            assert conn.cmd(f"ladd {key} x").startswith(b"SERVER_ERROR " + key.encode())
            assert hand.get(key) == value.encode()
        assert conn.cmd("lget s-number") == (
            b"SERVER_ERROR s-number is not of dialect signed: no sign at the beginning, nothing "
            b"done; ldrop s-number removes it"
        )


def test_a_number_with_a_minus_is_not_folded_away(memcached, start_daemon):
    """It could be a list of which an item was deleted that it did not have: it stays as it is."""
    daemon = start_daemon([memcached], config=settings("signed", compact_chance=1))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert hand.store("set", KEY, "-12345")
        for _ in range(3):
            assert conn.lget(KEY) == []
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert hand.get(KEY) == b"-12345"


@pytest.mark.parametrize("dialect", ["signed", "flip", "marker", "sublists", "ring"])
def test_items_by_hand_that_hold_the_delimiter(memcached, start_daemon, dialect):
    """All views agree: they count as one each, and lget, which could not tell them from two, says to
    ask for lgetb."""
    values = {
        "signed": {KEY: "+a,b+c"},
        "flip": {f"{KEY}.a": "+a,b+c", f"{KEY}.active": f"{KEY}.a"},
        "marker": {f"{KEY}.a": "+a,b+c"},
        "sublists": {KEY: "+0", f"{KEY}.0": "+a,b+c"},
        "ring": {f"{KEY}.seq": "2", f"{KEY}.1": "1 c", f"{KEY}.2": "2 a,b"},
    }[dialect]
    refused = (b"SERVER_ERROR an item of this list holds the delimiter: ask for lgetb, which keeps "
               b"them apart")
    daemon = start_daemon([memcached], config=settings(dialect))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for name, text in values.items():
            assert hand.store("set", name, text)
        assert conn.llen(KEY) == 2
        assert conn.lgetb(KEY) == [b"a,b", b"c"]
        assert conn.cmd(f"lget {KEY}") == refused
        assert conn.cmd(f"lrange {KEY} 0 0") == refused
        assert conn.cmd(f"lhas {KEY} a b") == refused
        assert conn.values(f"lhas {KEY} a") == []
        conn.send(f"lhasb {KEY} 3\r\na,b\r\n")
        assert [item for _, _, item in conn.values_answer()] == [b"a,b"]
        assert conn.cmd("mn") == b"MN"


def test_sublists_that_are_numbered_by_time(memcached, start_daemon):
    daemon = start_daemon([memcached], config=settings("sublists", compact_chance=0))
    first, second = 1700000000, 4294967295
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert hand.store("set", KEY, f"+{first}+{second}")
        assert hand.store("set", f"{KEY}.{first}", "+a+b")
        assert hand.store("set", f"{KEY}.{second}", "+c-a")
        assert conn.lget(KEY) == [b"b", b"c"]
        assert conn.cmd(f"ladd {KEY} d") == b"STORED"
        assert hand.get(f"{KEY}.{second}") == b"+c-a+d"
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.lget(KEY) == [b"b", b"c", b"d"]
        assert hand.get(KEY) == b"+%d+%d" % (first, second)


@pytest.mark.parametrize("index", ["+0+4294967296", "+0+1700000000123", "+0+007", "+0+x", "0"])
def test_an_index_that_cannot_be_read_is_not_cut(memcached, start_daemon, index):
    daemon = start_daemon([memcached], config=settings("sublists", compact_chance=1))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert hand.store("set", KEY, index)
        assert hand.store("set", f"{KEY}.0", "+a")
        for request in ("lget {}", "lcompact {}", "ladd {} b", "ldel {} a", "lset {} b"):
            assert conn.cmd(request.format(KEY)).startswith(
                b"SERVER_ERROR topic-X is not of dialect sublists: no "
            )
        assert hand.get(KEY) == index.encode()
        assert hand.get(f"{KEY}.0") == b"+a"


def test_a_list_does_not_begin_where_something_else_stands(memcached, start_daemon):
    """Its first sublist gets another number."""
    daemon = start_daemon([memcached], config=settings("sublists"))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert hand.store("set", f"{KEY}.0", "[5,1,1,3]")
        assert hand.store("set", f"{KEY}.1", "+somebody")
        assert conn.cmd(f"ladd {KEY} a") == b"STORED"
        assert conn.lget(KEY) == [b"a"]
        assert hand.get(KEY) == b"+2"
        assert hand.get(f"{KEY}.0") == b"[5,1,1,3]"
        for n in range(16):
            assert hand.store("set", f"topic-Y.{n}", "[5,1,1,3]")
        assert conn.cmd("ladd topic-Y a") == (
            b"SERVER_ERROR the names of the list's first 16 sublists are taken, nothing done"
        )
        assert hand.get("topic-Y") is None


NATIVE = b"it looks like a head or a sublist of a native list"


@pytest.mark.parametrize("dialect", ONE_ITEM)
def test_parts_of_other_lists_are_not_advised_to_be_dropped(memcached, start_daemon, dialect):
    """The key may be the name of a native list's head, or of a sublist: that list would lose it."""
    config = {"lists topic-": {"dialect": dialect}, "lists topic-n": {}}
    daemon = start_daemon([memcached], config=config)
    with daemon.conn() as conn:
        assert conn.cmd("ladd topic-n a b") == b"STORED"
    other = start_daemon([memcached], config=settings(dialect))
    with other.conn() as conn:
        line = conn.cmd("lget topic-n#")
        assert line.startswith(b"SERVER_ERROR topic-n# is not of dialect " + dialect.encode())
        assert line.endswith(b", nothing done; " + NATIVE)


def test_a_sublist_is_not_advised_to_be_dropped(memcached, start_daemon):
    daemon = start_daemon([memcached], config=settings("sublists"))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert conn.cmd(f"ladd {KEY} a b") == b"STORED"
        assert conn.cmd(f"lget {KEY}.0") == (
            b"SERVER_ERROR topic-X.0 is not of dialect sublists: no number of a sublist at byte 1, "
            b"nothing done; it may be a sublist of another list"
        )
        assert hand.store("set", KEY, b"\1mclistd moved 1 3 7\n^1\n+0")
        line = conn.cmd(f"lget {KEY}")
        assert line.endswith(b", nothing done; it is the record of a list that moves"), line


def test_a_ring_counts_a_counter_that_a_client_made_as_an_integer(memcached, start_daemon):
    """pylibmc and pymemcache give integers the flags 2; INCR keeps them."""
    daemon = start_daemon([memcached], config=settings("ring"))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert hand.conn.set(f"{KEY}.seq", "7", flags=2) == b"STORED"
        assert conn.cmd(f"ladd {KEY} a") == b"STORED"
        assert conn.lget(KEY) == [b"a"]
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert hand.conn.values(f"get {KEY}.seq") == [(f"{KEY}.seq".encode(), [2, 1], b"8")]
        assert hand.conn.set(f"{KEY}.seq", "7x", flags=2) == b"STORED"
        assert b" is not of dialect ring: no number" in conn.cmd(f"lget {KEY}")
        assert hand.conn.set(f"{KEY}.seq", "7", flags=4) == b"STORED"
        assert b" is not of dialect ring: flags 4" in conn.cmd(f"lget {KEY}")


def test_native_heads_and_sublists_have_no_flags(memcached, start_daemon):
    """The proxy writes none: an item with flags is another program's."""
    daemon = start_daemon([memcached], config={"lists": {}})
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert hand.conn.set("k#", "^1\n+1:a", flags=4) == b"STORED"
        assert conn.cmd("lget k") == b"SERVER_ERROR k# holds no list that this version can read"
        assert hand.conn.set("k#", "^1\n+1:a") == b"STORED"
        assert conn.lget("k") == [b"a"]
