# SPDX-License-Identifier: BSD-3-Clause
"""Malformed and oversized requests. The proxy answers what memcached answers; where it does not, a
row of DEVIATIONS says why. Either way the next request is answered as if nothing had been, or the
connection is closed; nothing is changed, and it does not matter in which packets all that came."""

import pytest

from harness import Conn
from test_pass_support import assert_same, byte_by_byte, in_pieces, open_pair, seeded

LONG_KEY = b"k" * 251
LONG_WORD = b"x" * 2100
OPAQUE = b"o" * 31
LARGE = b"v" * (1 << 20)

SETUP = b"set a 1 0 3\r\naaa\r\nset n 0 0 1\r\n5\r\n"
BEHIND = b"mn\r\nget a n\r\n"
UNCHANGED = b"MN\r\nVALUE a 1 3\r\naaa\r\nVALUE n 0 1\r\n5\r\nEND\r\n"

ERROR = b"ERROR\r\n"
BAD_FORMAT = b"CLIENT_ERROR bad command line format\r\n"
BAD_CHUNK = b"CLIENT_ERROR bad data chunk\r\n"
LINE_LONG = b"CLIENT_ERROR line too long: above 2048 bytes\r\n"
TOO_LARGE = b"SERVER_ERROR object too large for cache\r\n"

HTTP_REPLY = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 55\r\n"
    b"Connection: close\r\n\r\nThis port speaks the protocols of memcached, not HTTP.\n"
)

# Both answer the same.
SAME = [
    b"bogus",
    b"",
    b"   ",
    b"GET a",
    b"Get a",
    b"get",
    b"gets",
    b"get ",
    b"gat",
    b"gats",
    b"gat x a",
    b"get " + LONG_KEY,
    b"get a " + LONG_KEY,
    b"get " + LONG_KEY + b" a",
    b"gets " + LONG_KEY,
    b"gat 0 " + LONG_KEY,
    b"gat 0 a " + LONG_KEY,
    b"get a\rb",
    b"set",
    b"set a 0 0 3\r\nabc\n",
    b"append a 0 0 1048577\r\n" + LARGE + b"v",
    b"cas a 0 0 1048577 1\r\n" + LARGE + b"v",
    b"delete",
    b"delete a 1",
    b"delete a 0 1",
    b"delete a x noreply",
    b"delete a b c d",
    b"delete " + LONG_KEY,
    b"delete " + LONG_KEY + b" noreply",
    b"delete a noreply x",
    b"incr",
    b"incr n",
    b"incr n x",
    b"incr n -1",
    b"incr n 18446744073709551616",
    b"incr n 1 2 3",
    b"incr a 1",
    b"incr " + LONG_KEY + b" 1",
    b"incr n x noreply",
    b"decr n 1.5",
    b"touch",
    b"touch a",
    b"touch a x",
    b"touch a 1 2 3",
    b"touch " + LONG_KEY + b" 1",
    b"touch a x noreply",
    b"mg",
    b"mg a a",
    b"mg a v v",
    b"mg a !",
    b"mg " + LONG_KEY,
    b"mg a Nx",
    b"mg a T",
    b"mg a Tx",
    b"mg a O" + OPAQUE,
    b"mg a O" + OPAQUE + b"o",
    b"mg a M",
    b"mg a b",
    b"mg YQ b",
    b"mg YQ= b",
    b"ms",
    b"ms a 1 v v\r\nx",
    b"ms a 1 MX\r\nx",
    b"ms a 1 Mxx\r\nx",
    b"ms a 1 Fx\r\nx",
    b"ms a 1 Tx\r\nx",
    b"ms a 1 Cx\r\nx",
    b"ms a 1 !\r\nx",
    b"ms YQ 1 b\r\nx",
    b"ms a 1 O" + OPAQUE + b"o\r\nx",
    b"md",
    b"md " + LONG_KEY,
    b"md a v v",
    b"md a Tx",
    b"md a Cx",
    b"md a !",
    b"md YQ b",
    b"md a O" + OPAQUE + b"o",
    b"ma",
    b"ma " + LONG_KEY,
    b"ma n Dx",
    b"ma n Jx",
    b"ma n MX",
    b"ma n Nx",
    b"ma n v v",
    b"ma YQ b",
    b"me",
    b"me " + LONG_KEY,
    b"me YQ b",
    b"flush_all x",
    b"flush_all 0 0 0",
    b"verbosity",
    b" " * 1900 + b"get a",
    b"get" + b" " * 3000 + b"a",
    b"get" + b" a" * 2000,
    b"gat 0" + b" a" * 2000,
    b"set a 0 0 1048577\r\n" + LARGE + b"v",
    b"set a 0 0 1048577 noreply\r\n" + LARGE + b"v",
    b"ms a 1048577\r\n" + LARGE + b"v",
    b"ms a 1048577 MA q\r\n" + LARGE + b"v",
]

SWALLOWS = "the data of a refused request is never run as commands; the newest memcached does the same"
CLOSES = "a data block of unknown length follows, which must not be run as commands: closed"
KEEPS = "some memcacheds run the command first and refuse it afterwards"
HTTP = "memcached closes without a word; here it is said what is wrong"
NEWER = "newer memcacheds refuse it, older ones take it; what one version refuses is not forwarded"
NUL = "memcacheds differ in whether a NUL ends the line: such a line is never forwarded"
LENGTH = "closed over 2,048 bytes of line, whole or not: the packets it came in must not matter"
LOCAL = "nothing depends on it here"

# (reason, request, answer, whether the connection is closed then)
DEVIATIONS = [
    (NEWER, b"gat 0", ERROR, False),
    (NEWER, b"gats 0", ERROR, False),
    (NEWER, b"gat a", ERROR, False),
    (CLOSES, b"set a", ERROR, True),
    (CLOSES, b"set a 0", ERROR, True),
    (CLOSES, b"set a 0 0", ERROR, True),
    (CLOSES, b"set a 0 0 -1", BAD_FORMAT, True),
    (CLOSES, b"set a 0 0 abc", BAD_FORMAT, True),
    (CLOSES, b"set a 0 0 1x", BAD_FORMAT, True),
    (CLOSES, b"set a 0 0 2147483647", BAD_FORMAT, True),
    (CLOSES, b"set a 0 0 99999999999", BAD_FORMAT, True),
    (CLOSES, b"set a 0 0 1\rx", BAD_FORMAT, True),
    (CLOSES, b"ms a", BAD_FORMAT, True),
    (CLOSES, b"ms a x", BAD_FORMAT, True),
    (CLOSES, b"ms a -1", BAD_FORMAT, True),
    (CLOSES, b"ms a 99999999999", BAD_FORMAT, True),
    (CLOSES, b"ms a S1\r\nx", BAD_FORMAT, True),
    (SWALLOWS, b"set a 0 0 1 2 3\r\nx", ERROR, False),
    (SWALLOWS, b"set a 0 0 1 noreply more\r\nx", ERROR, False),
    (SWALLOWS, b"set a x 0 1\r\nx", BAD_FORMAT, False),
    (SWALLOWS, b"set a -1 0 1\r\nx", BAD_FORMAT, False),
    (SWALLOWS, b"set a 0 x 1\r\nx", BAD_FORMAT, False),
    (SWALLOWS, b"set a x 0 1 noreply\r\nx", b"", False),
    (SWALLOWS, b"set a x 0 13\r\nset a 0 0 1\r\n", BAD_FORMAT, False),
    (SWALLOWS, b"set " + LONG_KEY + b" 0 0 1\r\nx", BAD_FORMAT, False),
    (SWALLOWS, b"set " + LONG_KEY + b" 0 0 1 noreply\r\nx", b"", False),
    (SWALLOWS, b"set a 0 0 3\r\nabcdef", BAD_CHUNK, False),
    (SWALLOWS, b"set a 0 0 3\r\nab", BAD_CHUNK, False),
    (SWALLOWS, b"set a 0 0 3 noreply\r\nabcdef", b"", False),
    (SWALLOWS, b"cas a 0 0 1\r\nx", ERROR, False),
    (SWALLOWS, b"cas a 0 0 1 x\r\nx", BAD_FORMAT, False),
    (SWALLOWS, b"cas a 0 0 1 -1\r\nx", BAD_FORMAT, False),
    (SWALLOWS, b"cas a 0 0 1 1 2 3\r\nx", ERROR, False),
    (SWALLOWS, b"cas a 0 0 1 noreply\r\nx", b"", False),
    (SWALLOWS, b"ms " + LONG_KEY + b" 1\r\nx", BAD_FORMAT, False),
    (SWALLOWS, b"ms a 3\r\nabcdef", BAD_CHUNK, False),
    (SWALLOWS, b"ms a 3 q\r\nabcdef", BAD_CHUNK, False),
    (KEEPS, b"ma n O" + OPAQUE + b"o", b"CLIENT_ERROR opaque token too long\r\n", False),
    (NUL, b"get a\0b", BAD_FORMAT, False),
    (NUL, b"mg a\0b v", BAD_FORMAT, False),
    (NUL, b"delete a\0", BAD_FORMAT, False),
    (NUL, b"set a\0b 0 0 1\r\nx", BAD_FORMAT, False),
    (LENGTH, LONG_WORD, LINE_LONG, True),
    (LENGTH, b"set " + LONG_WORD, LINE_LONG, True),
    (LENGTH, b"delete " + LONG_WORD, LINE_LONG, True),
    (LENGTH, b"touch a " + LONG_WORD, LINE_LONG, True),
    (LENGTH, b"mg " + LONG_WORD, LINE_LONG, True),
    (LENGTH, b" " * 3000 + b"get a", LINE_LONG, True),
    (HTTP, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", HTTP_REPLY, True),
    (HTTP, b"POST / HTTP/1.0\r\n\r\nset a 0 0 1\r\nx", HTTP_REPLY, True),
    (LOCAL, b"verbosity x", b"OK\r\n", False),
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with open_pair(tmp_path_factory.mktemp("pair"), 3) as pair:
        yield pair


def name_of(request):
    text = request.replace(LARGE, b"LARGE").replace(LONG_KEY, b"LONGKEY").replace(OPAQUE, b"OPAQUE")
    text = text.replace(LONG_WORD, b"LONGWORD").replace(b" a" * 50, b".").replace(b" " * 50, b".")
    return repr(text)[2:-1]


def check_in_pieces(pair, script, expected, name):
    rng = seeded(name)
    small = len(script) < 4000

    def check(how, cut, **options):
        pair.wipe()
        assert_same(pair.ask_proxy(script, SETUP, cut=cut, **options), expected, how)

    check("in one packet", None)
    for _ in range(3 if small else 1):
        check("in random pieces", lambda data: in_pieces(data, rng), pause_s=0.0005)
    if small:
        check("byte by byte", byte_by_byte)


@pytest.mark.parametrize("request_line", SAME, ids=name_of)
def test_refused_as_memcached_does(pair, request_line):
    script = request_line + b"\r\n" + BEHIND
    pair.wipe()
    direct = pair.ask_direct(script, SETUP)
    gone = UNCHANGED.replace(b"VALUE a 1 3\r\naaa\r\n", b"")
    assert direct.endswith((UNCHANGED, gone)) or direct == b""
    check_in_pieces(pair, script, direct, name_of(request_line))


@pytest.mark.parametrize(
    "reason, request_line, answer, closed", DEVIATIONS, ids=[name_of(row[1]) for row in DEVIATIONS]
)
def test_refused_in_the_proxys_own_way(pair, reason, request_line, answer, closed):
    script = request_line + b"\r\n" + BEHIND
    expected = answer + (b"" if closed else UNCHANGED)
    pair.wipe()
    assert pair.ask_direct(script, SETUP) != expected, f"memcached does the same; why then: {reason}"
    check_in_pieces(pair, script, expected, name_of(request_line))


def test_one_bad_request_costs_no_other_clients_answers(pair):
    """A key that is too long drops answers that memcached had not sent yet: on a connection that
    clients share, those of others."""
    with Conn(pair.daemon.port) as good, Conn(pair.daemon.port) as bad:
        good.set("shared", "x" * 1000)
        for _ in range(50):
            good.send(b"get shared\r\n" * 20)
            bad.send(b"get a " + LONG_KEY + b"\r\ngat 0 " + LONG_KEY + b"\r\nset a 0 0 1\r\nyyy\r\n")
            for _ in range(20):
                assert good.line() == b"VALUE shared 0 1000"
                good.data(1000)
                assert good.line() == b"END"
            assert bad.lines(3) == [BAD_FORMAT[:-2], BAD_FORMAT[:-2], BAD_CHUNK[:-2]]


@pytest.mark.parametrize("verb", ["get", "gets", "gat 0", "lget", "ladd l", "lhas l"])
def test_a_line_longer_than_max_line_bytes_is_refused_and_closed(pair, verb):
    script = verb.encode() + b" key" * 300_000 + b"\r\n" + BEHIND
    for cut in (None, lambda data: in_pieces(data, seeded(verb))):
        assert pair.ask_proxy(script, cut=cut) == b"CLIENT_ERROR line too long: above max_line_bytes\r\n"


@pytest.mark.parametrize("data", [b"x" * 4000, b"x" * 100 + b"\n" * 3000])
def test_much_stray_data_behind_a_data_block(pair, data):
    """Thrown away up to its line end when that comes soon, else there is no way back: closed."""
    script = b"set a 0 0 3\r\nabc" + data + b"\r\n" + BEHIND
    for cut in (None, lambda text: in_pieces(text, seeded("stray"))):
        pair.wipe()
        answer = pair.ask_proxy(script, SETUP, cut=cut)
        assert answer.startswith(BAD_CHUNK)
        assert answer == BAD_CHUNK or answer.endswith(UNCHANGED)
