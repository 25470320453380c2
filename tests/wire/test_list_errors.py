# SPDX-License-Identifier: BSD-3-Clause
"""Requests for lists that are refused: each text, and that nothing was done and the connection is
in step afterwards. What happens when servers fail is in test_list_backends.py."""

import pytest

from model import expect_bytes

USAGES = {
    "ladd": "ladd KEY ITEM...",
    "ldel": "ldel KEY ITEM...",
    "laddq": "laddq KEY ITEM...",
    "ldelq": "ldelq KEY ITEM...",
    "laddx": "laddx KEY ITEM...",
    "ldelx": "ldelx KEY ITEM...",
    "lset": "lset KEY [ITEM...]",
    "lsetq": "lsetq KEY [ITEM...]",
    "lcreate": "lcreate KEY [ITEM...]",
    "lcopy": "lcopy SRC DST [EXPTIME] [new]",
    "lgetx": "lgetx KEY...",
    "linterstore": "linterstore DST KEY...",
    "lunionstore": "lunionstore DST KEY...",
    "ldiffstore": "ldiffstore DST KEY...",
    "linter": "linter KEY...",
    "lunion": "lunion KEY...",
    "ldiff": "ldiff KEY...",
    "linterlen": "linterlen KEY...",
    "lunionlen": "lunionlen KEY...",
    "ldifflen": "ldifflen KEY...",
    "lput": "lput KEY BYTES [EXPTIME [TOKEN]] [new]",
    "lputb": "lputb KEY BYTES [EXPTIME [TOKEN]] [new]",
    "lhas": "lhas KEY ITEM...",
    "lget": "lget KEY...",
    "lgets": "lgets KEY...",
    "lgetb": "lgetb KEY...",
    "llen": "llen KEY...",
    "lrange": "lrange KEY FROM TO",
    "lrevrange": "lrevrange KEY FROM TO",
    "ldrop": "ldrop KEY",
    "lcompact": "lcompact KEY",
    "lstat": "lstat KEY",
    "laddb": "laddb KEY BYTES [noreply]",
    "ldelb": "ldelb KEY BYTES [noreply]",
    "lhasb": "lhasb KEY BYTES [noreply]",
    "lttlb": "lttlb KEY BYTES [noreply]",
}
NEED_ITEMS = "ladd ldel laddq ldelq laddx ldelx lhas".split()
KEY_ONLY = "ldrop lcompact lstat".split()
INLINE = NEED_ITEMS + ["lset", "lsetq", "lcreate"]
CHANGES = [verb for verb in INLINE if verb != "lhas"]


def refused(conn, request, text, body=None):
    """One line says so, and the next request is understood."""
    assert conn.cmd(request, body) == text.encode(), request
    assert conn.cmd("llen untouched") == b"0"


def test_each_verb_tells_its_usage(conn):
    for verb, usage in USAGES.items():
        refused(conn, verb, f"CLIENT_ERROR usage: {usage}")
        refused(conn, verb + "  ", f"CLIENT_ERROR usage: {usage}")


def test_items_are_missing_or_too_many_words(conn):
    for verb in NEED_ITEMS:
        refused(conn, f"{verb} untouched", f"CLIENT_ERROR usage: {USAGES[verb]}")
    for verb in KEY_ONLY:
        refused(conn, f"{verb} untouched word", f"CLIENT_ERROR usage: {USAGES[verb]}")


@pytest.mark.parametrize("verb", ["lrange", "lrevrange"])
def test_ranges_want_two_numbers(conn, verb):
    wrong = ["", " 0", " 0 1 2", " a b", " 0 1x", " 0 --1", " 0 9223372036854775808", " 1.5 2"]
    for words in wrong:
        refused(conn, f"{verb} untouched{words}", f"CLIENT_ERROR usage: {verb} KEY FROM TO")


def test_unknown_and_capital_verbs(conn):
    for verb in ("lfoo", "LADD", "l", "laddz", "lget2"):
        refused(conn, f"{verb} untouched a", "ERROR")


def test_key_too_long(conn):
    key = "k" * 221
    text = "CLIENT_ERROR key too long, 220 bytes at most"
    for verb in INLINE:
        refused(conn, f"{verb} {key} a", text)
    for verb in KEY_ONLY + ["lget", "lgets", "lgetb", "lget untouched", "lgets untouched"]:
        refused(conn, f"{verb} {key}", text)
    refused(conn, f"lrange {key} 0 1", text)
    for verb in ("laddb", "ldelb", "lhasb"):
        refused(conn, f"{verb} {key} 1", text, "a")
    assert conn.cmd("ladd " + "k" * 220 + " a") == b"STORED"


def test_key_with_control_bytes(conn):
    for key in (b"a\tb", b"a\0b", b"\x7f", b"\x01"):
        refused(conn, b"ladd " + key + b" a", "CLIENT_ERROR bad key: it holds a blank or control bytes")
        refused(conn, b"lget untouched " + key, "CLIENT_ERROR bad key: it holds a blank or control bytes")


def test_item_too_long(conn):
    text = "CLIENT_ERROR item is longer than 1024 bytes (max_item_bytes)"
    for verb in INLINE:
        refused(conn, f"{verb} untouched ok {'x' * 1025}", text)
    for verb in ("laddb", "ldelb", "lhasb"):
        refused(conn, f"{verb} untouched 1025", text, "x" * 1025)


@pytest.mark.config(lists={"max_item_bytes": 3})
def test_item_too_long_for_the_configuration(conn):
    refused(conn, "ladd untouched abc abcd", "CLIENT_ERROR item is longer than 3 bytes (max_item_bytes)")
    assert conn.cmd("ladd l abc") == b"STORED"


def test_item_holds_the_delimiter(conn):
    text = "CLIENT_ERROR item holds the delimiter ',': the setting delimiter can be another character, or none"
    for verb in CHANGES:
        refused(conn, f"{verb} untouched ok a,b", text)
    refused(conn, "laddb untouched 1", text, ",")
    refused(conn, "ldelb untouched 1", text, ",")


@pytest.mark.config(lists={"delimiter": "\\xfc"})
def test_item_holds_a_delimiter_that_is_not_printed_as_it_is(conn):
    conn.send(b"ladd l a\xfcb\r\n")
    assert conn.line().startswith(rb"CLIENT_ERROR item holds the delimiter '\xfc': ")


def test_asking_for_an_item_with_the_delimiter_finds_none(conn):
    conn.cmd("ladd l a b")
    assert conn.values("lhas l a,b a") == [(b"l", [0, 1], b"a")]


@pytest.mark.config(lists={"log_limit_bytes": 256, "log_hard_limit_bytes": 512})
@pytest.mark.config(lists={"max_item_bytes": 200})
def test_too_many_items_in_one_command(conn):
    items = " ".join(f"{n:0100}" for n in range(3))
    for verb in CHANGES:
        if verb in ("lset", "lsetq", "lcreate"):
            continue  # whole contents: of any length
        text = "CLIENT_ERROR too many items in one command: they take 315 bytes, and half of "
        text += "log_hard_limit_bytes is 256: use several commands, or lput for a whole list"
        refused(conn, f"{verb} untouched {items}", text)
    assert conn.cmd(f"lhas untouched {items}") == b"END"


def test_data_block_of_a_bad_length(conn):
    refused(conn, "laddb untouched 0", "CLIENT_ERROR empty item", "")
    assert conn.cmd("laddb untouched 2", "abc") == (
        b"CLIENT_ERROR bad data chunk: no \\r\\n behind BYTES bytes"
    )
    with_rest = conn.cmd("llen untouched")
    assert with_rest == b"0"


def test_data_block_larger_than_any_value(conn):
    text = "SERVER_ERROR object too large for cache"
    refused(conn, f"laddb untouched {1024 * 1024 + 1}", text, "x" * (1024 * 1024 + 1))


@pytest.mark.parametrize("head", ["laddb l", "laddb l x", "laddb l -1", "laddb l 4294967296"])
def test_data_block_of_unknown_length_ends_the_connection(daemon, head):
    """Where the data ends cannot be known, and it must not be run as commands."""
    with daemon.conn() as conn:
        conn.send(head, "\r\nladd untouched a\r\n")
        assert conn.line().startswith(b"CLIENT_ERROR ")
        assert conn.is_closed()
    with daemon.conn() as conn:
        assert conn.llen("untouched") == 0


def test_data_block_verbs_take_no_other_word(conn):
    refused(conn, "laddb untouched 1 word", "CLIENT_ERROR usage: laddb KEY BYTES [noreply]", "a")


def test_noreply_hides_errors_of_data_blocks(conn):
    conn.send("laddb untouched 1 noreply\r\n,\r\nladdb untouched 0 noreply\r\n\r\n")
    assert conn.llen("untouched") == 0


@pytest.mark.config(lists={"max_item_bytes": 100, "max_answer_bytes": 1024})
def test_answers_above_the_limit_name_lrange(conn):
    for n in range(30):
        conn.cmd(f"ladd l {n:0100}")
    text = "SERVER_ERROR answer is larger than max_answer_bytes (1024): ask for parts with lrange"
    for verb in ("lget", "lgets", "lgetb"):
        refused(conn, f"{verb} l", text)
    refused(conn, "lrange l 0 -1", text)
    refused(conn, "lrevrange l 0 -1", text)
    assert conn.llen("l") == 30
    assert conn.values("lrevrange l 0 1") == [(b"l", [0, 201], b"%0100d,%0100d" % (29, 28))]
    assert conn.values("lrange l -2 -1") == [(b"l", [0, 201], b"%0100d,%0100d" % (28, 29))]


@pytest.mark.config(lists={"delimiter": "none"})
def test_without_a_delimiter_every_item_is_taken_and_lgetb_reads(conn):
    assert conn.cmd("ladd l a,b c;d |") == b"STORED"
    assert conn.cmd("laddb l 3", "x y") == b"STORED"
    assert conn.lgetb("l") == [b"a,b", b"c;d", b"|", b"x y"]
    text = "CLIENT_ERROR this list has no delimiter: use lgetb"
    assert conn.values("lhas l c;d") == [(b"l", [0, 3], b"c;d")]
    for request in ("lget l", "lgets l", "lrange l 0 -1", "lrevrange l 0 -1", "lget nolist"):
        refused(conn, request, text)
    refused(conn, "lhas l c;d c", "CLIENT_ERROR this list has no delimiter: use lhasb, item by item")
    assert conn.llen("l") == 4


@pytest.mark.config(lists={}, **{"lists none-": {"delimiter": "none"}})
def test_one_key_of_several_refused_stands_in_place_of_end(conn):
    conn.cmd("ladd a x")
    conn.cmd("ladd b y")
    conn.send("lget a none-l b\r\nllen a\r\n")
    lines = conn.lines(3)
    assert lines[:2] == [b"VALUE a 0 1", b"x"]
    if lines[2].startswith(b"VALUE b"):
        lines[2:] = conn.lines(2)[1:]
    assert lines[2] == b"CLIENT_ERROR this list has no delimiter: use lgetb"
    assert conn.line() == b"1"


def test_what_is_no_list_is_left_alone(conn, memcached):
    """Another program's value under the head's name is never changed, however it looks."""
    with memcached.conn() as backend:
        for value in (b"garbage", b"", b"^2x\n", b"^1", b"^1 run\n", b"^1\n+1:a?1:b", b"^1\n+9:a"):
            backend.set("l#", value)
            reads = ("lget l", "llen l", "lhas l a", "lstat l", "lrange l 0 -1")
            blind = ("ladd l a", "ldel l a", "lset l a", "laddq l a", "ldrop l")
            for verb in reads + blind + ("laddx l a", "lcreate l a", "lcompact l"):
                text = b"SERVER_ERROR l# holds no list that this version can read"
                assert conn.cmd(verb) == text, value
            assert backend.get("l#") == value


def test_a_list_of_a_later_release_is_called_that(conn, memcached, daemon):
    text = b"l# is of format 20: a later release wrote it"
    with memcached.conn() as backend:
        for value in (b"^20\n", b"^20 <whatever>\n+1:a"):
            backend.set("l#", value)
            for verb in ("lget l", "laddx l a", "lcreate l a", "lcompact l", "ldrop l", "lcopy l m"):
                assert conn.cmd(verb) == b"SERVER_ERROR " + text
            assert backend.get("l#") == value
        daemon.wait_for_log(text.decode())


def test_ldrop_of_what_is_no_list_says_so(conn, memcached, daemon):
    """Also in the log: an operator looks there for a proxy that an upgrade has left out."""
    with memcached.conn() as backend:
        backend.set("l#", b"garbage")
        assert conn.cmd("ldrop l") == b"SERVER_ERROR l# holds no list that this version can read"
        daemon.wait_for_log("l# holds no list that this version can read")
        assert backend.get("l#") == b"garbage"


REFUSE_ANSWERS = {
    "ladd l a": b"NOT_STORED",
    "laddq l a": b"NOT_STORED",
    "laddx l a": b"NOT_STORED",
    "ldel l a": b"NOT_FOUND",
    "ldelq l a": b"NOT_FOUND",
    "ldelx l a": b"NOT_FOUND",
    "lget l": b"END",
    "lgets l": b"END",
    "lgetb l": b"END",
    "lhas l a": b"END",
    "lrange l 0 -1": b"END",
    "lstat l": b"END",
    "llen l": b"0",
    "ldrop l": b"NOT_FOUND",
    "lcompact l": b"NOT_FOUND",
}
refuse = pytest.mark.config(lists={"on_missing": "refuse"})


@refuse
def test_refuse_answers_of_each_verb_on_a_missing_list(conn, memcached):
    for request, answer in REFUSE_ANSWERS.items():
        assert conn.cmd(request) == answer, request
        with memcached.conn() as backend:
            assert backend.get("l#") is None, request
    for verb, answer in (("laddb", b"NOT_STORED"), ("ldelb", b"NOT_FOUND"), ("lhasb", b"END")):
        assert conn.cmd(f"{verb} l 1", "a") == answer


@refuse
@pytest.mark.parametrize("create", ["lset", "lcreate"])
def test_refuse_lets_lset_and_lcreate_make_an_empty_list(conn, create):
    assert conn.cmd(f"{create} l") == b"STORED"
    conn.send("lget l\r\nlgetb l\r\nllen l\r\nlrange l 0 -1\r\nlcreate l a\r\n")
    expect_bytes(conn, b"VALUE l 0 0\r\n\r\nEND\r\nEND\r\n0\r\nEND\r\nNOT_STORED\r\n")
    assert conn.cmd("ladd l a b") == b"STORED"
    assert conn.lget("l") == [b"a", b"b"]


@refuse
def test_refuse_keeps_a_list_that_became_empty(conn):
    conn.cmd("lset l a b")
    assert conn.cmd("ldelx l a b") == b"2"
    assert conn.cmd("lcompact l") == b"OK"
    conn.send("lget l\r\n")
    expect_bytes(conn, b"VALUE l 0 0\r\n\r\nEND\r\n")
    assert conn.cmd("ladd l c") == b"STORED"


@refuse
def test_refuse_ldrop_removes(conn, memcached):
    conn.cmd("lset l a b")
    assert conn.cmd("ldrop l") == b"DELETED"
    assert conn.cmd("ldrop l") == b"NOT_FOUND"
    assert conn.cmd("ladd l a") == b"NOT_STORED"
    with memcached.conn() as backend:
        assert backend.get("l#") is None


@refuse
def test_refuse_follows_the_order_of_a_pipeline(conn):
    conn.send("ladd l x\r\nldel l x\r\nlset l a\r\nladd l b\r\nllen l\r\n")
    conn.send("ldrop l\r\nladd l c\r\nllen l\r\n")
    assert conn.lines(5) == [b"NOT_STORED", b"NOT_FOUND", b"STORED", b"STORED", b"2"]
    assert conn.lines(3) == [b"DELETED", b"NOT_STORED", b"0"]
