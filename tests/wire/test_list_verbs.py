# SPDX-License-Identifier: BSD-3-Clause
"""What each list verb does and answers."""

import pytest

from model import expect_bytes


def test_the_first_session_of_the_readme(conn):
    assert conn.cmd("ladd topic-X user-1234 user-222 user-987") == b"STORED"
    assert conn.cmd("ldel topic-X user-222") == b"DELETED"
    conn.send("lget topic-X\r\n")
    assert conn.lines(3) == [b"VALUE topic-X 0 18", b"user-1234,user-987", b"END"]


def test_a_bare_line_feed_ends_a_request(conn):
    conn.send("ladd l a b\nlget l\n")
    expect_bytes(conn, b"STORED\r\nVALUE l 0 3\r\na,b\r\nEND\r\n")


def test_blanks_are_tolerated(conn):
    conn.send("ladd  l   a  b \r\nlget  l  \r\nlrange  l 0  1 \r\n")
    expect_bytes(conn, b"STORED\r\n" + 2 * b"VALUE l 0 3\r\na,b\r\nEND\r\n")


def test_ladd_leaves_an_item_in_its_place(conn):
    conn.cmd("ladd l a b c")
    assert conn.cmd("ladd l b d a d") == b"STORED"
    assert conn.lget("l") == [b"a", b"b", b"c", b"d"]


def test_an_item_added_again_after_its_deletion_is_the_newest(conn):
    conn.cmd("ladd l a b c")
    conn.cmd("ldel l a")
    conn.cmd("ladd l a")
    assert conn.lget("l") == [b"b", b"c", b"a"]


def test_ldel_of_what_is_not_there_is_deleted(conn):
    assert conn.cmd("ldel l a") == b"DELETED"
    conn.cmd("ladd l a b")
    assert conn.cmd("ldel l z a") == b"DELETED"
    assert conn.lget("l") == [b"b"]


def test_laddx_and_ldelx_count(conn):
    assert conn.cmd("laddx l a b c") == b"3"
    assert conn.cmd("laddx l b d d c") == b"1"
    assert conn.cmd("laddx l a") == b"0"
    assert conn.cmd("ldelx l a a x") == b"1"
    assert conn.cmd("ldelx l a") == b"0"
    assert conn.cmd("ldelx nolist a") == b"0"
    assert conn.lget("l") == [b"b", b"c", b"d"]


def test_lget_of_several_lists(conn):
    conn.cmd("ladd one a b")
    conn.cmd("ladd two c")
    found = conn.values("lget two nolist one two")
    assert found == [(b"two", [0, 1], b"c"), (b"one", [0, 3], b"a,b"), (b"two", [0, 1], b"c")]


def test_an_empty_list_is_a_missing_one(conn):
    conn.cmd("ladd l a")
    conn.cmd("ldel l a")
    for verb in ("lget l", "lgets l", "lgetb l", "lhas l a", "lrange l 0 -1", "lrevrange l 0 -1"):
        assert conn.cmd(verb) == b"END"
    assert conn.llen("l") == 0
    assert conn.cmd("lcreate l b") == b"STORED"
    assert conn.lget("l") == [b"b"]


def test_lgets_shows_whether_the_content_changed(conn):
    def version():
        [(key, numbers, data)] = conn.values("lgets l")
        assert (key, numbers[:2]) == (b"l", [0, len(data)])
        return numbers[2]

    conn.cmd("ladd l a b")
    first = version()
    assert version() == first
    conn.cmd("ldel l a")
    second = version()
    assert second != first
    conn.cmd("ladd l a")
    assert version() not in (first, second)


def test_lgetb_gives_item_by_item(conn):
    conn.cmd("ladd one a bb")
    conn.cmd("ladd two c")
    conn.send("lgetb one nolist two\r\n")
    expect_bytes(conn, b"ITEM one 1\r\na\r\nITEM one 2\r\nbb\r\nITEM two 1\r\nc\r\nEND\r\n")


def test_lhas_keeps_the_order_asked(conn):
    conn.cmd("ladd l a b c d")
    assert conn.values("lhas l d x b") == [(b"l", [0, 3], b"d,b")]
    assert conn.values("lhas l x") == []
    assert conn.values("lhas nolist a") == []


def test_lhas_repeats_what_is_asked_twice(conn):
    conn.cmd("ladd l a b")
    assert conn.values("lhas l b b") == [(b"l", [0, 3], b"b,b")]


RANGES = {
    "0 -1": b"abcdef",
    "0 0": b"a",
    "1 3": b"bcd",
    "-2 -1": b"ef",
    "-1 -1": b"f",
    "-100 1": b"ab",
    "4 100": b"ef",
    "-100 100": b"abcdef",
    "0 -6": b"a",
    "5 5": b"f",
    "-3 4": b"de",
    "0 9223372036854775807": b"abcdef",
    "-9223372036854775808 9223372036854775807": b"abcdef",
    "-9223372036854775808 0": b"a",
    "3 2": b"",
    "6 10": b"",
    "-1 0": b"",
    "0 -7": b"",
    "-100 -50": b"",
    "9223372036854775807 9223372036854775807": b"",
    "0 -9223372036854775808": b"",
}


def test_lrange_cuts_as_redis_does(conn):
    conn.cmd("ladd l a b c d e f")
    for text, letters in RANGES.items():
        data = b",".join(bytes([letter]) for letter in letters)
        expected = [(b"l", [0, len(data)], data)] if data else []
        assert conn.values(f"lrange l {text}") == expected, text
        assert conn.values(f"lrange nolist {text}") == []


def test_lrevrange_is_lrange_from_the_other_end(conn):
    conn.cmd("ladd l a b c d e f")
    mirrored = bytes.maketrans(b"abcdef", b"fedcba")
    for text, letters in RANGES.items():
        data = b",".join(bytes([letter]) for letter in letters.translate(mirrored))
        expected = [(b"l", [0, len(data)], data)] if data else []
        assert conn.values(f"lrevrange l {text}") == expected, text
        assert conn.values(f"lrevrange nolist {text}") == []


def test_lrevrange_begins_with_what_was_added_last(conn):
    conn.cmd("ladd l a b c d")
    assert conn.cmd("lcompact l") == b"OK"
    conn.cmd("ladd l e b a")  # b and a are in the list and stay where they are
    conn.cmd("ldel l c")
    assert conn.values("lrevrange l 0 1")[0][2] == b"e,d"
    conn.cmd("ladd l c")
    assert conn.values("lrevrange l 0 -1")[0][2] == b"c,e,d,b,a"
    assert conn.cmd("lcompact l") == b"OK"
    assert conn.values("lrevrange l 0 -1")[0][2] == b"c,e,d,b,a"
    assert conn.values("lrevrange l -2 -1")[0][2] == b"b,a"


def test_lset_replaces_the_whole_content(conn):
    conn.cmd("ladd l a b c")
    assert conn.cmd("lset l c x x a") == b"STORED"
    assert conn.lget("l") == [b"c", b"x", b"a"]
    assert conn.cmd("lset l") == b"STORED"
    assert conn.lget("l") == []
    assert conn.cmd("lset new a") == b"STORED"
    assert conn.lget("new") == [b"a"]


def test_lcreate_only_where_no_list_is(conn):
    assert conn.cmd("lcreate l a b") == b"STORED"
    assert conn.cmd("lcreate l c") == b"NOT_STORED"
    assert conn.cmd("lcreate l") == b"NOT_STORED"
    assert conn.lget("l") == [b"a", b"b"]


def test_ldrop_leaves_nothing_in_the_backend(conn, memcached):
    conn.cmd("ladd l a b c")
    assert conn.cmd("ldrop l") == b"DELETED"
    assert conn.cmd("ldrop l") == b"DELETED"
    assert conn.lget("l") == []
    with memcached.conn() as backend:
        assert backend.get("l#") is None


def test_lcompact_of_a_list_and_of_none(conn):
    assert conn.cmd("lcompact nolist") == b"OK"
    conn.cmd("ladd l a b c")
    conn.cmd("ldel l b")
    assert conn.cmd("lcompact l") == b"OK"
    assert conn.stats("lstat l")["log_entries"] == "2"
    assert conn.lget("l") == [b"a", b"c"]


def test_lcompact_removes_an_empty_head(conn, memcached):
    conn.cmd("ladd l a")
    conn.cmd("ldel l a")
    assert conn.cmd("lcompact l") == b"OK"
    with memcached.conn() as backend:
        assert backend.get("l#") is None


def test_lstat_tells_what_the_head_holds(conn, memcached):
    conn.cmd("ladd l a b c")
    conn.cmd("ldel l b")
    stat = conn.stats("lstat l")
    with memcached.conn() as backend:
        [(_, (_, _, cas), head)] = backend.values("gets l#")
    assert head == b"^1\n+1:a+1:b+1:c-1:b"
    assert stat["items"] == "2"
    assert (stat["log_bytes"], stat["log_entries"]) == ("16", "4")
    assert stat["head_cas"] == str(cas)
    assert stat["head_server"] == memcached.address
    assert stat["runs"] == stat["sublists"] == stat["sublist_bytes"] == stat["garbage_names"] == "0"
    assert stat["cached"] == "0"


def test_lstat_of_no_list_is_empty(conn):
    assert conn.stats("lstat nolist") == {}


ANY_BYTES = [b"with blank", b"line\r\nend", b"\0\0", b"\xff\xfe", b"\r\n", b" ", b"END\r\n"]


def test_data_block_verbs_take_any_bytes(conn):
    for item in ANY_BYTES:
        assert conn.cmd(f"laddb l {len(item)}", item) == b"STORED"
    assert conn.lgetb("l") == ANY_BYTES
    for item in ANY_BYTES[::2]:
        assert conn.cmd(f"ldelb l {len(item)}", item) == b"DELETED"
    assert conn.lgetb("l") == ANY_BYTES[1::2]
    for at, item in enumerate(ANY_BYTES):
        conn.send(f"lhasb l {len(item)}\r\n", item, "\r\n")
        found = b"VALUE l 0 %d\r\n%s\r\n" % (len(item), item) if at % 2 else b""
        expect_bytes(conn, found + b"END\r\n")


def test_data_block_verbs_with_noreply(conn):
    conn.send("laddb l 1 noreply\r\na\r\nladdb l 1 noreply\r\nb\r\n")
    conn.send("ldelb l 1 noreply\r\na\r\nllen l\r\n")
    assert conn.line() == b"1"
    assert conn.is_silent()


def test_noreply_is_an_item_for_inline_verbs(conn):
    assert conn.cmd("ladd l a noreply") == b"STORED"
    assert conn.lget("l") == [b"a", b"noreply"]


def test_quiet_verbs_are_silent_on_success(conn):
    conn.send("laddq l a b\r\nldelq l a\r\nlsetq m x y\r\nladdq m z\r\n")
    assert conn.lget("l") == [b"b"]
    assert conn.lget("m") == [b"x", b"y", b"z"]
    assert conn.is_silent()


def test_many_items_in_one_command(conn):
    items = [b"item-%d" % n for n in range(3000)]
    assert conn.cmd(b"ladd l " + b" ".join(items)) == b"STORED"
    assert conn.lget("l") == items
    assert conn.cmd(b"ldelx l " + b" ".join(items[::2])) == b"1500"
    assert conn.lget("l") == items[1::2]


def test_items_of_the_greatest_length(conn):
    items = [b"%03d" % n + b"x" * 1021 for n in range(100)]
    for item in items:
        assert conn.cmd(b"ladd l " + item) == b"STORED"
    assert conn.lget("l") == items


def test_keys_of_the_greatest_length(conn, memcached):
    key = "k" * 220
    for n in range(400):
        items = [f"item-{m}" for m in range(n * 25, n * 25 + 25)]
        conn.send(f"laddq {key} {' '.join(items)}\r\n")
    assert conn.llen(key) == 10000
    assert conn.cmd(f"lcompact {key}") == b"OK"
    assert conn.stats(f"lstat {key}")["runs"] == "1"
    assert conn.lget(key) == [b"item-%d" % n for n in range(10000)]


@pytest.mark.config(lists={"delimiter": "\\x20"})
def test_another_delimiter(conn):
    conn.cmd("ladd l a,b c;d")
    assert conn.values("lget l") == [(b"l", [0, 7], b"a,b c;d")]


@pytest.mark.config(**{"lists p-": {"delimiter": "|"}, "lists p-q-": {"delimiter": "none"}})
def test_the_longest_prefix_counts(conn):
    for key in ("x", "p-x", "p-q-x"):
        conn.cmd(f"ladd {key} a b")
    assert conn.values("lget x") == [(b"x", [0, 3], b"a,b")]
    assert conn.values("lget p-x") == [(b"p-x", [0, 3], b"a|b")]
    assert conn.cmd("lget p-q-x").startswith(b"CLIENT_ERROR")
    assert conn.lgetb("p-q-x") == [b"a", b"b"]


def test_a_list_and_a_plain_key_of_the_same_name_are_strangers(conn):
    conn.cmd("ladd x a")
    conn.set("x", "plain")
    assert conn.get("x") == b"plain"
    assert conn.lget("x") == [b"a"]
    assert conn.cmd("delete x") == b"DELETED"
    assert conn.lget("x") == [b"a"]
