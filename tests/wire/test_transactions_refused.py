# SPDX-License-Identifier: BSD-3-Clause
"""ltx, lmove and lpopto that are refused: each text, that nothing was done, and that the connection
is in step afterwards, whatever the data block holds."""

import pytest

from test_list_packets import ONE_THREAD, send_packets

pytestmark = pytest.mark.config(lists={})
WORDS = "it begins with none of ladd, laddb, ldel, ldelb, lset, lrequire, lrequireb, lrefuse, lrefuseb"


def ltx(conn, *lines, end="\r\n", more=""):
    block = "".join(line + end for line in lines)
    return conn.cmd(f"ltx {len(block.encode())}{more}", block)


def refused(conn, answer, text):
    """One line says so, nothing was done, and the next request is understood."""
    assert answer == text.encode()
    conn.send("llen untouched\r\nget untouched\r\n")
    assert conn.lines(2) == [b"0", b"END"]


def faulty(conn, number, text, *lines, end="\r\n"):
    refused(conn, ltx(conn, *lines, end=end), f"CLIENT_ERROR ltx: line {number}: {text}")


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_line_that_is_refused_is_named(conn, end):
    good = "ladd untouched a"
    for line, text in [
        ("lad untouched a", WORDS),
        ("LADD untouched a", WORDS),
        ("lget untouched", WORDS),
        ("laddx untouched a", WORDS),
        ("set untouched 0 0 1", WORDS),
        ("", "the line is empty"),
        ("   ", "the line is empty"),
        ("ladd", "no key"),
        ("lset  ", "no key"),
        ("ladd untouched", "no item: only lset goes without"),
        ("ldel untouched ", "no item: only lset goes without"),
        ("lrequire untouched", "no item: only lset goes without"),
        ("ladd un\ttouched a", "bad key: it holds a blank or control bytes"),
        ("ladd " + "k" * 221 + " a", "key too long, 220 bytes at most"),
        ("ladd untouched " + "x" * 1025, "item is longer than 1024 bytes (max_item_bytes)"),
        ("laddb untouched", "KEY and BYTES go here, and the item stands in a line of its own"),
        ("ldelb untouched 1000", "the item is longer than the rest of the block"),
        ("lrequireb untouched 1\nab", "no line end behind BYTES bytes"),
        ("lrefuseb untouched 0\n", "item is empty"),
        ("lsetb untouched 1\na", WORDS),
        (
            "lrequire untouched a,b",
            "item holds the delimiter ',': the setting delimiter can be another character, or none",
        ),
    ]:
        faulty(conn, 1, text, line, good, end=end)
        faulty(conn, 3, text, good, "ldel other b", line, end=end)


def test_a_last_line_without_a_line_end(conn):
    text = "no line end behind it: each line of the block has one, and BYTES counts them"
    for block in ("ladd untouched a", "ladd untouched a\r", "ladd other a\r\nldel untouched b"):
        number = 1 + block.count("\n")
        answer = conn.cmd(f"ltx {len(block)}", block)
        refused(conn, answer, f"CLIENT_ERROR ltx: line {number}: {text}")


def test_an_empty_block(conn):
    text = "CLIENT_ERROR ltx: the data block is empty: it has a line for each change"
    refused(conn, conn.cmd("ltx 0", ""), text)


def test_too_many_lists(conn):
    lines = [f"ladd untouched{n} a" for n in range(16)]
    text = "more than 16 lists: use several transactions"
    faulty(conn, 18, text, *lines, "ldel untouched3 b", "ladd untouched a")


def test_too_many_lines(conn):
    text = "more than 1024 lines (max_transaction_lines): name several items in one, or use several transactions"
    faulty(conn, 1025, text, *["ladd untouched a"] * 1030)


@pytest.mark.config(lists={"log_limit_bytes": 512, "log_hard_limit_bytes": 2048})
@pytest.mark.config(lists={"max_item_bytes": 200})
def test_too_many_items_for_a_list(conn):
    text = "what the block does to this list takes more than a quarter of log_hard_limit_bytes, "
    text += "512 bytes: raise it, or use several transactions"
    items = " ".join(f"{n:0100}" for n in range(4))
    faulty(conn, 3, text, f"ladd other {items}", f"ladd untouched {items}", f"ladd other {items}")


@pytest.mark.config(proxy={"max_value_bytes": "1k"})
def test_a_block_above_the_limit(conn):
    text = "CLIENT_ERROR ltx: the data block is longer than max_value_bytes: raise it, or use "
    text += "several transactions"
    block = "ladd untouched a\r\n" * 100
    refused(conn, conn.cmd(f"ltx {len(block)}", block), text)
    conn.send(f"ltx {len(block)} noreply\r\n{block}\r\n")
    refused(conn, conn.cmd("version")[:8], "VERSION ")


def test_other_words_on_the_line(conn):
    text = "CLIENT_ERROR usage: ltx BYTES [noreply]"
    block = "ladd untouched a\r\n"
    refused(conn, conn.cmd("ltx"), text)
    refused(conn, conn.cmd(f"ltx {len(block)} now", block), text)
    refused(conn, conn.cmd(f"ltx {len(block)} noreply 1", block), text)


@pytest.mark.parametrize("head", ["ltx x", "ltx -1", "ltx 4294967296", "ltx noreply 18"])
def test_a_block_of_unknown_length_ends_the_connection(daemon, head):
    with daemon.conn() as conn:
        conn.send(head, "\r\nladd untouched a\r\n")
        assert conn.line() == b"CLIENT_ERROR usage: ltx BYTES [noreply]"
        assert conn.is_closed()
    with daemon.conn() as conn:
        assert conn.llen("untouched") == 0


def test_a_block_that_is_longer_than_it_says(conn):
    conn.send("ltx 10\r\nladd untouched a\r\n")
    assert conn.line() == b"CLIENT_ERROR bad data chunk: no \\r\\n behind BYTES bytes"
    refused(conn, conn.cmd("mn"), "MN")


def test_noreply_hides_what_is_wrong(conn):
    before = int(conn.stats()["client_errors"])
    conn.send("ltx 7 noreply\r\nladd \r\n\r\n", "ltx 0 noreply\r\n\r\n")
    refused(conn, conn.cmd("mn"), "MN")
    assert int(conn.stats()["client_errors"]) == before + 2


BAD = "ladd untouched a\r\nquit\r\nladd untouched b\r\n"
BAD_ANSWER = f"CLIENT_ERROR ltx: line 2: {WORDS}".encode()


@ONE_THREAD
def test_a_refused_block_in_every_pair_of_packets(daemon, conn):
    request = f"ltx {len(BAD)}\r\n{BAD}\r\nmn\r\n".encode()
    for cut in range(1, len(request)):
        send_packets(daemon, conn, [request[:cut], request[cut:]])
        assert conn.lines(2) == [BAD_ANSWER, b"MN"], cut
    send_packets(daemon, conn, [request[at : at + 1] for at in range(len(request))])
    assert conn.lines(2) == [BAD_ANSWER, b"MN"]
    assert conn.llen("untouched") == 0


def test_refused_ones_in_a_pipeline(conn):
    """Each answer has its place; what a block holds never runs as a command."""
    request = f"ltx {len(BAD)}\r\n{BAD}\r\n"
    conn.send("ladd l a\r\n", request, "ladd l b\r\n", request, "llen l\r\nllen untouched\r\n")
    assert conn.lines(6) == [b"STORED", BAD_ANSWER, b"STORED", BAD_ANSWER, b"2", b"0"]


@pytest.mark.config(**{"lists simple:": {"dialect": "simple"}})
@pytest.mark.config(**{"lists moved:": {"dialect": "signed", "migrate": "native"}})
def test_lists_of_dialects_are_refused(conn):
    text = "works on lists of dialect native only: others cannot hold what a transaction writes"
    for key in ("simple:l", "moved:l"):
        answer = ltx(conn, "ladd untouched a", f"ladd {key} a")
        refused(conn, answer, f"CLIENT_ERROR ltx: line 2: a transaction {text}")
        refused(conn, conn.cmd(f"lmove untouched {key} a"), f"CLIENT_ERROR lmove {text}")
        refused(conn, conn.cmd(f"lpopto {key} untouched 1"), f"CLIENT_ERROR lpopto {text}")
        refused(conn, conn.cmd(f"lpoptob untouched {key} 1"), f"CLIENT_ERROR lpopto {text}")


def test_moving_within_one_list(conn):
    text = "SRC and DST are the same list"
    refused(conn, conn.cmd("lmove untouched untouched a"), f"CLIENT_ERROR lmove: {text}")
    refused(conn, conn.cmd("lpopto untouched untouched 1"), f"CLIENT_ERROR lpopto: {text}")


def test_moving_no_items(conn):
    text = "CLIENT_ERROR lpopto: COUNT must not be 0: a positive one takes the oldest items, a "
    refused(conn, conn.cmd("lpopto untouched other 0"), text + "negative one the newest")


@pytest.mark.config(**{"lists none:": {"delimiter": "none", "max_item_bytes": 5}})
def test_items_that_one_of_the_lists_cannot_hold(conn):
    delimiter = "CLIENT_ERROR item holds the delimiter ',': the setting delimiter can be another "
    delimiter += "character, or none"
    refused(conn, conn.cmd("lmove none:l untouched a,b"), delimiter)
    refused(conn, conn.cmd("lmove untouched none:l a,b"), delimiter)
    text = "CLIENT_ERROR item is longer than 5 bytes (max_item_bytes)"
    refused(conn, conn.cmd("lmove untouched none:l abcdef"), text)


@pytest.mark.config(**{"lists none:": {"delimiter": "none"}})
def test_an_answer_that_needs_a_delimiter(conn):
    text = "CLIENT_ERROR lpopto: DST has no delimiter: use lpoptob"
    refused(conn, conn.cmd("lpopto untouched none:l 1"), text)
