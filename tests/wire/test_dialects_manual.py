# SPDX-License-Identifier: BSD-3-Clause
"""The examples of the Membase and Couchbase manuals, byte by byte: written by plain sockets and read
through the proxy, and the other way round."""

import collections
import re

import pytest

from harness import write_ini
from test_dialects_support import DELIMITED, Hand, blind, settings



def never_compacted(dialect, **more):
    return blind(dialect, **({} if dialect == "ring" else {"compact_chance": 0}), **more)


def strict(dialect):
    """Nothing but what the manual has: the texts are compared."""
    return {"compatible": "strict"} if dialect in DELIMITED else {}


def put(hand, items):
    for name, text in items.items():
        assert hand.store("set", name, text)


def stored(hand, names):
    return {name: (hand.get(name) or b"").decode() for name in names}


READS = [
    ("simple", {"topic-X": "user-1234,user-222,user-987,"}, "user-1234,user-222,user-987"),
    (
        "simple",
        {"topic-X": "user-1234,user-222,user-1234,user-987,user-222,"},
        "user-1234,user-222,user-987",
    ),
    ("tombstone", {"topic-X": "user-222,|user-1234,user-222,user-987,"}, "user-1234,user-987"),
    (
        "tombstone",
        {"topic-X": "user-222,|user-1234,user-222,user-987,user-222,"},
        "user-1234,user-987,user-222",
    ),
    ("tombstone", {"topic-X": "user-222,user-222,|user-1234,user-222,user-987,user-222,"},
     "user-1234,user-987"),
    ("tombstone", {"topic-X": "user-1234,user-222,"}, "user-1234,user-222"),
    # The last item has no delimiter.
    ("simple", {"topic-X": "user-1234,user-222"}, "user-1234,user-222"),
    ("simple", {"topic-X": "user-1234"}, "user-1234"),
    ("simple", {"topic-X": "user-1234,,user-222,user-987,"}, "user-1234,user-222,user-987"),
    ("tombstone", {"topic-X": "user-222,|user-1234,user-222,user-987,user-222"},
     "user-1234,user-987,user-222"),
    ("tombstone", {"topic-X": "user-222|user-1234,user-222,user-987"}, "user-1234,user-987"),
    (
        "paired",
        {"follow-topic-X": "user-1234,user-222,user-987", "unfollow-topic-X": "user-222"},
        "user-1234,user-987",
    ),
    ("signed", {"topic-X": "+1234+222+987-222"}, "1234,987"),
    ("signed", {"topic-X": "+1234+222+987-222+222"}, "1234,987,222"),
    (
        "paired",
        {"follow-topic-X": "user-1234,user-222,user-987,", "unfollow-topic-X": "user-222,"},
        "user-1234,user-987",
    ),
    (
        "paired",
        {"follow-topic-X": "user-1234,user-222,user-987,user-222,", "unfollow-topic-X": "user-222,"},
        "user-1234,user-987,user-222",
    ),
    ("paired", {"follow-topic-X": "user-1234,"}, "user-1234"),
    ("flip", {"topic-X.a": "+1234+222+987-222", "topic-X.active": "topic-X.a"}, "1234,987"),
    ("flip", {"topic-X.b": "+1234+222+987-222", "topic-X.active": "topic-X.b"}, "1234,987"),
    (
        "flip",
        {"topic-X.a": "+1234+222", "topic-X.b": "+987-222", "topic-X.active": "topic-X.b"},
        "1234,987",
    ),
    ("flip", {"topic-X.a": "+1234+222", "topic-X.b": "+987-222", "topic-X.active": "b"},
     "1234,987"),
    ("marker", {"topic-X.a": "^+1234", "topic-X.b": "+987"}, "1234,987"),
    ("marker", {"topic-X.a": "+987", "topic-X.b": "^+1234"}, "1234,987"),
    ("marker", {"topic-X.a": "^+1234"}, "1234"),
    ("marker", {"topic-X.a": "+1234+222+987-222"}, "1234,987"),
    (
        "sublists",
        {"topic-X": "+0+1", "topic-X.0": "+1234+222", "topic-X.1": "+987-222"},
        "1234,987",
    ),
    (
        "sublists",
        {"topic-X": "+0+1-0", "topic-X.0": "+gone", "topic-X.1": "+987"},
        "987",
    ),
    (
        "ring",
        {"topic-X.seq": "3", "topic-X.1": "1 alice", "topic-X.2": "2 bob", "topic-X.3": "3 alice"},
        "alice,bob,alice",
    ),
]


@pytest.mark.parametrize(
    "dialect,items,expected", READS, ids=[f"{d}-{n}" for n, (d, _, _) in enumerate(READS)]
)
def test_written_by_hand_and_read_through_the_proxy(
    memcached, start_daemon, dialect, items, expected
):
    daemon = start_daemon([memcached], config=never_compacted(dialect))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, items)
        expected = expected.encode().split(b",")
        assert conn.lget("topic-X") == expected
        assert conn.lgetb("topic-X") == expected
        assert conn.llen("topic-X") == len(expected)
        assert conn.values("lrange topic-X 0 0")[0][2] == expected[0]
        assert conn.values("lrange topic-X -1 -1")[0][2] == expected[-1]
        newest_first = expected if dialect == "ring" else expected[::-1]
        assert conn.values("lrevrange topic-X 0 -1")[0][2] == b",".join(newest_first)
        assert conn.values("lrevrange topic-X 0 0")[0][2] == newest_first[0]
        assert conn.values(f"lhas topic-X {expected[0].decode()} nobody")[0][2] == expected[0]
        assert conn.values("lhas topic-X nobody") == []
        # Reading changes nothing.
        assert stored(hand, items) == items
        # What the application by hand sees is the same.
        if dialect not in ("flip", "marker"):
            assert hand.read(dialect, "topic-X") == expected


WRITES = [
    (
        "simple",
        [("ladd topic-X user-1234 user-222", b"STORED"), ("ladd topic-X user-987", b"STORED")],
        {"topic-X": "user-1234,user-222,user-987,"},
    ),
    (
        "simple",
        [("ladd topic-X user-1234 user-222 user-987", b"STORED"),
         ("ldel topic-X user-222", b"DELETED")],
        {"topic-X": "user-1234,user-987,"},
    ),
    ("simple", [("ladd topic-X a", b"STORED"), ("ldel topic-X a", b"DELETED")], {"topic-X": ""}),
    (
        "tombstone",
        [("ladd topic-X user-1234 user-222 user-987", b"STORED"),
         ("ldel topic-X user-222", b"DELETED")],
        {"topic-X": "user-222,|user-1234,user-222,user-987,"},
    ),
    ("tombstone", [("ldel topic-X user-222", b"DELETED")], {"topic-X": ""}),
    (
        "signed",
        [("ladd topic-X 1234 222", b"STORED"), ("ladd topic-X 987", b"STORED"),
         ("ldel topic-X 222", b"DELETED")],
        {"topic-X": "+1234+222+987-222"},
    ),
    (
        "paired",
        [("ladd topic-X user-1234 user-222 user-987", b"STORED"),
         ("ldel topic-X user-222", b"DELETED")],
        {
            "follow-topic-X": "user-1234,user-222,user-987,", "unfollow-topic-X": "user-222,",
            "topic-X": "",
        },
    ),
    (
        "flip",
        [("ladd topic-X 1234 222 987", b"STORED"), ("ldel topic-X 222", b"DELETED")],
        {"topic-X.a": "+1234+222+987-222", "topic-X.b": "", "topic-X.active": "topic-X.a"},
    ),
    (
        "marker",
        [("ladd topic-X 1234 222 987", b"STORED"), ("ldel topic-X 222", b"DELETED")],
        {"topic-X.a": "+1234+222+987-222", "topic-X.b": "", "topic-X.active": ""},
    ),
    (
        "sublists",
        [("ladd topic-X 1234 222 987", b"STORED"), ("ldel topic-X 222", b"DELETED")],
        {"topic-X": "+0", "topic-X.0": "+1234+222+987-222", "topic-X.1": ""},
    ),
    (
        "ring",
        [("ladd topic-X alice", b"STORED"), ("ladd topic-X bob carol", b"STORED")],
        {
            "topic-X.seq": "3", "topic-X.1": "1 alice", "topic-X.2": "2 bob",
            "topic-X.3": "3 carol", "topic-X": "", "topic-X.0": "",
        },
    ),
]


@pytest.mark.parametrize(
    "dialect,commands,expected", WRITES, ids=[f"{d}-{n}" for n, (d, _, _) in enumerate(WRITES)]
)
def test_written_through_the_proxy_and_read_by_hand(
    memcached, start_daemon, dialect, commands, expected
):
    daemon = start_daemon([memcached], config=never_compacted(dialect, **strict(dialect)))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        for command, answer in commands:
            assert conn.cmd(command) == answer
        assert stored(hand, expected) == expected
        assert hand.read(dialect, "topic-X") == conn.lget("topic-X")


CONTINUED = [
    ("simple", {"topic-X": "user-1234,user-222,user-987,"}, "ladd topic-X user-5",
     {"topic-X": "user-1234,user-222,user-987,user-5,"}),
    ("simple", {"topic-X": "user-1234,user-222,user-222,user-987,"}, "ldel topic-X user-222",
     {"topic-X": "user-1234,user-987,"}),
    ("tombstone", {"topic-X": "user-222,|user-1234,user-222,user-987,"}, "ladd topic-X user-222",
     {"topic-X": "user-222,|user-1234,user-222,user-987,user-222,"}),
    ("tombstone", {"topic-X": "|user-1234,user-222,user-987,"}, "ldel topic-X user-222",
     {"topic-X": "user-222,|user-1234,user-222,user-987,"}),
    ("tombstone", {"topic-X": "user-222,|user-1234,user-222,user-987,"}, "lcompact topic-X",
     {"topic-X": "|user-1234,user-987,"}),
    # The last item has no delimiter.
    ("simple", {"topic-X": "user-1234,user-222"}, "ladd topic-X user-5",
     {"topic-X": "user-1234,user-222,user-5,"}),
    ("simple", {"topic-X": "user-1234,user-222"}, "ldel topic-X user-1234",
     {"topic-X": "user-222,"}),
    ("simple", {"topic-X": "user-1234,,user-222"}, "lcompact topic-X",
     {"topic-X": "user-1234,user-222,"}),
    ("tombstone", {"topic-X": "user-222,|user-1234,user-222,user-987,user-222"},
     "ladd topic-X user-5",
     {"topic-X": "user-222,|user-1234,user-222,user-987,user-222,user-5,"}),
    ("tombstone", {"topic-X": "user-222|user-1234,user-222,user-987"}, "lcompact topic-X",
     {"topic-X": "|user-1234,user-987,"}),
    ("paired", {"follow-topic-X": "user-1,user-2", "unfollow-topic-X": "user-2"},
     "ladd topic-X user-3",
     {"follow-topic-X": "user-1,user-2,user-3,", "unfollow-topic-X": "user-2"}),
    ("signed", {"topic-X": "+1234+222+987"}, "ldel topic-X 222", {"topic-X": "+1234+222+987-222"}),
    ("signed", {"topic-X": "+1234+222+987-222"}, "lcompact topic-X", {"topic-X": "+1234+987"}),
    ("paired", {"follow-topic-X": "user-1,user-2,"}, "ldel topic-X user-2",
     {"follow-topic-X": "user-1,user-2,", "unfollow-topic-X": "user-2,"}),
    ("flip", {"topic-X.b": "+1234", "topic-X.active": "topic-X.b"}, "ladd topic-X 987",
     {"topic-X.a": "", "topic-X.b": "+1234+987", "topic-X.active": "topic-X.b"}),
    ("marker", {"topic-X.a": "^+1234", "topic-X.b": "+222"}, "ladd topic-X 987",
     {"topic-X.a": "^+1234", "topic-X.b": "+222+987"}),
    ("marker", {"topic-X.a": "+222", "topic-X.b": "^+1234"}, "ldel topic-X 1234",
     {"topic-X.a": "+222-1234", "topic-X.b": "^+1234"}),
    ("sublists", {"topic-X": "+0+1", "topic-X.0": "+1234", "topic-X.1": "+222"},
     "ldel topic-X 1234",
     {"topic-X": "+0+1", "topic-X.0": "+1234", "topic-X.1": "+222-1234"}),
    ("ring", {"topic-X.seq": "99", "topic-X.99": "99 alice"}, "ladd topic-X bob",
     {"topic-X.seq": "100", "topic-X.99": "99 alice", "topic-X.0": "100 bob"}),
]


@pytest.mark.parametrize(
    "dialect,items,command,expected", CONTINUED,
    ids=[f"{d}-{n}" for n, (d, _, _, _) in enumerate(CONTINUED)],
)
def test_what_was_begun_by_hand_is_continued_in_place(
    memcached, start_daemon, dialect, items, command, expected
):
    daemon = start_daemon([memcached], config=blind(dialect, **strict(dialect)))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, items)
        assert conn.cmd(command) in (b"STORED", b"DELETED", b"OK")
        assert stored(hand, expected) == expected


def signs_of(text):
    """What a client adds up that counts signs, as the manual says."""
    counts = collections.Counter()
    for sign, item in re.findall(rb"([+-])([^+-]*)", text):
        counts[item] += 1 if sign == b"+" else -1
    return {item: count for item, count in counts.items() if count != 0}


@pytest.mark.parametrize(
    "dialect,items",
    [
        ("flip", {"topic-X.a": "+1234+222+987-222", "topic-X.b": "", "topic-X.active": "topic-X.a"}),
        ("flip", {"topic-X.a": "", "topic-X.b": "+1234+222+987-222", "topic-X.active": "b"}),
        ("marker", {"topic-X.a": "+222+987-222", "topic-X.b": "^+1234"}),
    ],
)
def test_a_client_that_counts_signs_sees_the_items_after_a_folding(
    memcached, start_daemon, dialect, items
):
    daemon = start_daemon([memcached], config=never_compacted(dialect))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, items)
        for _ in range(3):
            assert conn.cmd("ladd topic-X 5") == conn.cmd("ladd topic-X 6") == b"STORED"
            assert conn.cmd("ldel topic-X 6") == b"DELETED"
            assert conn.cmd("lcompact topic-X") == b"OK"
            texts = [hand.get(name) or b"" for name in ("topic-X.a", "topic-X.b")]
            assert signs_of(b"".join(texts)) == {b"1234": 1, b"987": 1, b"5": 1}
            assert b"".join(texts).count(b"+") - b"".join(texts).count(b"-") == 3
            assert hand.read(dialect, "topic-X") == [b"1234", b"987", b"5"]


def test_the_log_that_was_active_is_emptied_and_takes_appends(memcached, start_daemon):
    """Old clients still append to it; the manual says that it will be empty."""
    daemon = start_daemon([memcached], config=never_compacted("flip"))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, {"topic-X.a": "+1234+222+987-222", "topic-X.active": "topic-X.a"})
        assert conn.cmd("lcompact topic-X") == b"OK"
        assert hand.get("topic-X.active") == b"topic-X.b"
        assert hand.get("topic-X.a") == b""
        assert hand.store("append", "topic-X.a", "+55-987")
        assert conn.lget("topic-X") == [b"1234", b"55"]
        assert conn.cmd("ladd topic-X 987") == b"STORED"
        assert conn.lget("topic-X") == [b"1234", b"55", b"987"]
        assert conn.cmd("lcompact topic-X") == b"OK"
        assert conn.lget("topic-X") == [b"1234", b"55", b"987"]
        assert conn.cmd("ldrop topic-X") == b"DELETED"
        assert stored(hand, ["topic-X.a", "topic-X.b"]) == {"topic-X.a": "", "topic-X.b": ""}


def test_a_pointer_in_short_form_stays_in_it(memcached, start_daemon):
    daemon = start_daemon([memcached], config=never_compacted("flip"))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, {"topic-X.a": "+987", "topic-X.b": "+1234+222", "topic-X.active": "b"})
        assert conn.lget("topic-X") == [b"987", b"1234", b"222"]
        assert conn.cmd("ladd topic-X 5") == b"STORED"
        assert hand.get("topic-X.b") == b"+1234+222+5"
        for active in (b"b", b"a", b"b"):
            assert hand.get("topic-X.active") == active
            assert conn.cmd("ladd topic-X 5") == b"STORED"
            assert conn.cmd("lcompact topic-X") == b"OK"
            while hand.get("topic-X.active") == active:
                assert conn.cmd("ladd topic-X 5") == b"STORED"
                assert conn.cmd("lcompact topic-X") == b"OK"
            assert conn.lget("topic-X") == [b"987", b"1234", b"222", b"5"]


@pytest.mark.parametrize("how", ["append", "set"])
@pytest.mark.parametrize("dialect", ["simple", "tombstone", "paired"])
def test_an_item_without_its_delimiter_is_not_glued_to_the_next(
    memcached, start_daemon, dialect, how
):
    """The proxy has seen the list before, and a client by hand writes to it after that."""
    daemon = start_daemon([memcached], config=never_compacted(dialect))
    name = "follow-topic-X" if dialect == "paired" else "topic-X"
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert conn.cmd("ladd topic-X user-1234") == b"STORED"
        assert conn.cmd("ladd topic-X user-7") == b"STORED"
        assert hand.store(how, name, "user-222" if how == "append" else "user-1234,user-7,user-222")
        for n in range(5):
            assert conn.cmd(f"ladd topic-X user-{5 + n % 2}") == b"STORED"
            assert hand.store("append", name, f",user-3{n}")
        expected = [b"user-1234", b"user-7", b"user-222", b"user-5", b"user-30", b"user-6"]
        expected += [b"user-31", b"user-32", b"user-33", b"user-34"]
        assert conn.lget("topic-X") == hand.read(dialect, "topic-X") == expected
        assert conn.cmd("lcompact topic-X") == b"OK"
        assert conn.lget("topic-X") == hand.read(dialect, "topic-X") == expected
        assert b",," not in hand.get(name)


def test_each_example_works_with_four_lines_of_configuration(memcached, start_daemon):
    """Not a line more than these, and the defaults of the rest."""
    for dialect, items, expected in {read[0]: read for read in READS}.values():
        daemon = start_daemon([memcached])
        daemon.stop()
        daemon.sections = {
            "proxy": {"listen": f"127.0.0.1:{daemon.port}"},
            "pool main": {"servers": memcached.address},
            "lists topic-": {"dialect": dialect},
        }
        write_ini(daemon.ini_path, daemon.sections)
        with memcached.conn() as direct:  # the gate has the dialect of the one before
            assert direct.cmd("flush_all") == b"OK"
        daemon.start()
        with Hand(memcached.port) as hand, daemon.conn() as conn:
            put(hand, items)
            assert conn.lget("topic-X") == expected.encode().split(b",")
        daemon.stop()


def test_signs_delimiters_marks_and_names_of_ones_own(memcached, start_daemon):
    config = {
        "lists s-": {"dialect": "simple", "delimiter": "/"},
        "lists t-": {"dialect": "tombstone", "delimiter": ":", "deleted_delimiter": "/"},
        "lists g-": {"dialect": "signed", "add_sign": "*", "delete_sign": "!"},
        "lists p-": {"dialect": "paired", "add_name": "%s:in", "delete_name": "%s:out"},
        "lists f-": {"dialect": "flip", "a_name": "one:%s", "b_name": "two:%s", "active_name": "%s"},
        "lists m-": {"dialect": "marker", "closed_mark": "~", "a_name": "%s/1", "b_name": "%s/2"},
        "lists l-": {"dialect": "sublists", "sublist_name": "%s/part"},
        "lists r-": {"dialect": "ring", "seq_name": "count:%s", "slot_name": "slot:%s:",
                     "capacity": 2},
    }
    config["lists t-"]["changes"] = config["lists p-"]["changes"] = "blind"
    for name in config.keys() - {"lists r-"}:
        config[name]["compact_chance"] = 0
        config[name] |= strict(config[name]["dialect"])
    daemon = start_daemon([memcached], config=config)
    items = {
        "s-": "a/b,c/", "t-": "a:/a:b|c:", "g-": "*a*b-c!a", "p-:in": "a,b-c,", "p-:out": "a,",
        "one:f-": "+a+b", "f-": "one:f-", "m-/1": "~+a", "m-/2": "+b", "l-": "+0",
        "l-/part0": "+a+b", "count:r-": "3", "slot:r-:0": "2 a", "slot:r-:1": "3 b",
    }
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, items)
        assert conn.values("lget s-")[0][2] == b"a/b,c"
        assert conn.values("lget t-")[0][2] == b"b|c"
        assert conn.lget("g-") == [b"b-c"]
        assert conn.lget("p-") == [b"b-c"]
        for key in ("f-", "m-", "l-"):
            assert conn.lget(key) == [b"a", b"b"]
        assert conn.lget("r-") == [b"b", b"a"]
        for key in ("s-", "t-", "g-", "p-", "f-", "m-", "l-", "r-"):
            assert conn.cmd(f"ladd {key} new") == b"STORED"
        after = {
            "s-": "a/b,c/new/", "t-": "a:/a:b|c:new:", "g-": "*a*b-c!a*new", "p-:in": "a,b-c,new,",
            "one:f-": "+a+b+new", "f-": "one:f-", "m-/1": "~+a", "m-/2": "+b+new",
            "l-/part0": "+a+b+new", "count:r-": "4", "slot:r-:0": "4 new",
        }
        assert stored(hand, after) == after
