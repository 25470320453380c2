# SPDX-License-Identifier: BSD-3-Clause
"""A request is answered by its deadline, whatever it waits for; one line says what is known, and
the connection stays in step. Servers' own timeouts are far longer here."""

import threading
import time

import pytest

from harness import SLOW, wait_until
from test_backend_support import HANDSHAKE

PATIENT = {"timeout_ms": 60000, "connect_timeout_ms": 60000}
deadline = pytest.mark.config(
    proxy={"threads": 1, "deadline_ms": 150, "long_timeout_ms": 300, "max_pipeline": 8},
    **{"pool main": PATIENT},
)
READ = b"SERVER_ERROR deadline over"
NOT_ITS_TURN = b"SERVER_ERROR deadline over, nothing done: earlier requests took too long"
LIST_READ = b"SERVER_ERROR deadline over: the list was not read in time"
UNKNOWN = b"SERVER_ERROR deadline over, outcome unknown"


@pytest.fixture
def paused(conn, memcached):
    """Connected, and then the server stops."""
    conn.cmd("set warm 0 0 1\r\nx")
    assert conn.cmd("ladd l a b") == b"STORED"
    memcached.pause()
    yield conn
    memcached.resume()


def test_a_change_that_was_not_sent_by_its_deadline_never_is(start_daemon, start_fake):
    """It waits for a connection whose handshake is not answered, and is not sent over it later."""
    may_answer = threading.Event()

    def answer_late(fake, sock):
        may_answer.wait(20)
        sock.sendall(HANDSHAKE)
        for line, _ in fake.requests(sock):
            sock.sendall(b"HD\r\n" if line.startswith(b"md") else b"STORED\r\n")

    proxy = {"threads": 1, "deadline_ms": 150}
    fake = start_fake(answer_late, handshake=b"")
    daemon = start_daemon([fake], config={"proxy": proxy, "pool main": PATIENT})
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"SERVER_ERROR deadline over, nothing done"
        assert conn.stats()["outcomes_unknown"] == "0"
        conn.send(b"set other 0 0 1\r\ny\r\n")
        may_answer.set()
        assert conn.line() in (b"STORED", b"SERVER_ERROR deadline over, nothing done")
        wait_until("it is connected", lambda: conn.cmd("md key") == b"HD")
    assert b"set key" not in fake.all_received()


@deadline
@pytest.mark.parametrize(
    "request_text, answer",
    [
        ("get warm", READ),
        ("gets warm", READ),
        ("mg warm v", READ),
        ("get " + " ".join(f"k{n}" for n in range(100)), READ),
        ("set warm 0 0 1\r\ny", UNKNOWN),
        ("delete warm", UNKNOWN),
        ("incr warm 1", UNKNOWN),
        ("ms warm 1 q\r\ny", UNKNOWN),
        ("mg warm v T100", UNKNOWN),
        ("mg warm N100", UNKNOWN),
        ("gat 100 warm", UNKNOWN),
        ("gat 100 warm other", UNKNOWN),
        pytest.param(f"set warm 0 0 2000000\r\n{'y' * 2000000}", UNKNOWN, id="set a large value"),
        ("lget l", LIST_READ),
        ("lget l l2 l3 l4 l5 l6 l7 l8 l9 l10 l11", LIST_READ),
        ("lhas l a", LIST_READ),
        ("llen l", LIST_READ),
        ("lstat l", LIST_READ),
        ("ladd l c", UNKNOWN),
        ("laddq l c", UNKNOWN),
        ("lset l c", UNKNOWN),
        ("ldrop l", UNKNOWN),
        ("laddx l c", b"SERVER_ERROR deadline over, nothing done"),
        ("lcreate l c", b"SERVER_ERROR deadline over, nothing done"),
        ("lcompact l", b"SERVER_ERROR deadline over: the list is not compact yet"),
    ],
)
def test_the_server_hangs(paused, memcached, request_text, answer):
    paused.send(f"{request_text}\r\nmn\r\n")
    assert paused.lines(2) == [answer, b"MN"]
    memcached.resume()
    wait_until("it answers again", lambda: paused.cmd("ladd other x") == b"STORED")
    assert paused.lget("other") == [b"x"]
    assert paused.get("never") is None


def test_of_several_keys_one_may_be_done(start_daemon, start_fake, memcached):
    """The first waits for a connection and is never sent; the second was answered long ago."""
    proxy = {"threads": 1, "deadline_ms": 300}
    silent = start_fake(lambda fake, sock: time.sleep(20), handshake=b"")
    daemon = start_daemon([silent, memcached], config={"proxy": proxy, "pool main": PATIENT})
    with daemon.conn() as conn, memcached.conn() as direct:
        keys = [f"k{n}" for n in range(40)]
        answered = [conn.cmd(f"get {key}") == b"END" for key in keys]
        here, there = keys[answered.index(True)], keys[answered.index(False)]
        assert direct.set(here, "x") == b"STORED"
        conn.send(f"gat 1000 {there} {here}\r\n")
        assert conn.lines(3) == [f"VALUE {here} 0 1".encode(), b"x", UNKNOWN]
        assert direct.cmd(f"mg {here} t") in (b"HD t1000", b"HD t999")


@deadline
def test_answers_in_order_and_once_each(paused, memcached):
    """What comes late, for requests that were answered, answers no other request."""
    paused.send("ladd l c\r\nladd l d\r\nget warm\r\nlget l\r\nset k 0 0 1\r\nx\r\nget a b\r\nversion\r\n")
    assert paused.lines(6) == [UNKNOWN, UNKNOWN, READ, NOT_ITS_TURN, UNKNOWN, READ]
    assert paused.line().startswith(b"VERSION ")
    memcached.resume()
    wait_until("what was sent has been done", lambda: paused.get("k") == b"x")
    assert paused.lget("l") == [b"a", b"b", b"c", b"d"]
    assert paused.get("warm") == b"x"


@deadline
def test_quiet_changes_say_it(paused, memcached):
    paused.send("laddq l c\r\nmn\r\n")
    assert paused.lines(2) == [UNKNOWN, b"MN"]
    paused.send("set k 0 0 1 noreply\r\nx\r\nladdq l c\r\nmn\r\n")
    assert paused.lines(2) == [NOT_ITS_TURN, b"MN"]


@deadline
def test_they_are_counted(paused):
    before = paused.stats()
    paused.send("get warm\r\nladd l c\r\n")
    paused.lines(2)
    after = paused.stats()
    assert int(after["deadlines_over"]) - int(before["deadlines_over"]) == 2
    assert int(after["outcomes_unknown"]) - int(before["outcomes_unknown"]) == 1
    assert int(after["server_errors"]) - int(before["server_errors"]) == 2


@deadline
@pytest.mark.config(**{"pool main": {"timeout_ms": 400}})
def test_a_plain_change_is_counted_once(paused):
    """Its exchange is given up behind the answer."""
    before = paused.stats()
    paused.send("set k 0 0 1\r\nx\r\ntouch warm 0\r\n")
    assert paused.lines(2) == [UNKNOWN, UNKNOWN]
    wait_until("the server is given up", lambda: int(paused.stats()["backend_timeouts"]) > 0)
    wait_until("nothing is pending", lambda: int(paused.stats()["backend_errors"]) >= 2)
    assert int(paused.stats()["outcomes_unknown"]) - int(before["outcomes_unknown"]) == 2


@deadline
@pytest.mark.memcacheds(2)
def test_values_that_are_there_are_shown(conn, memcacheds):
    """Of a get of several keys what came by the deadline stands in front of the line."""
    keys = [f"key-{n}" for n in range(20)]
    for key in keys:
        conn.cmd(f"set {key} 0 0 1\r\nx")
    with memcacheds[0].conn() as direct:
        here = [key for key in keys if direct.get(key) is not None]
    gone = [key for key in keys if key not in here]
    assert here and gone
    memcacheds[1].pause()
    try:
        conn.send(f"get {' '.join(here + gone)}\r\nmn\r\n")
        for key in here:
            assert conn.lines(2) == [f"VALUE {key} 0 1".encode(), b"x"]
        assert conn.lines(2) == [READ, b"MN"]
    finally:
        memcacheds[1].resume()
    wait_until("all is as before", lambda: conn.get(gone[0]) == b"x")


@deadline
def test_a_client_that_goes_away_leaves_nothing(paused, daemon, memcached):
    for _ in range(20):
        with daemon.conn() as other:
            other.send("get a b c\r\nladd l x\r\nlget l\r\nset k 0 0 1\r\nx\r\n")
    memcached.resume()
    wait_until("it answers again", lambda: paused.get("warm") == b"x")
    wait_until("they are gone", lambda: int(paused.stats()["curr_connections"]) == 1)


LARGE = 400_000


@pytest.mark.config(proxy={"threads": 1, "deadline_ms": 200, "client_output_bytes": "4k"})
def test_time_does_not_run_while_the_client_is_waited_for(conn):
    """More than the socket takes: the rest is asked for when the client reads again."""
    value = b"v" * LARGE
    for n in range(30):
        conn.send(b"set key-%d 0 0 %d\r\n%s\r\n" % (n, LARGE, value))
        assert conn.line() == b"STORED"
    for n in range(8):
        items = " ".join(f"{n}-{i:04d}-" + "x" * 500 for i in range(100))
        assert conn.cmd(f"ladd l{n} {items}") == b"STORED"
    keys = " ".join(f"key-{n}" for n in range(30))
    lists = " ".join(f"l{n}" for n in range(8))
    conn.send(f"get {keys}\r\nlget {lists}\r\nmn\r\n")
    # Until long after the deadline: whether it is hardly over or over for long changes nothing.
    time.sleep(1.0)
    for n in range(30):
        assert conn.line() == b"VALUE key-%d 0 %d" % (n, LARGE)
        assert conn.line() == value
    assert conn.line() == b"END"
    for n in range(8):
        assert conn.line().startswith(b"VALUE l%d 0 " % n)
        assert conn.line().startswith(b"%d-0000-" % n)
    assert conn.lines(2) == [b"END", b"MN"]


@pytest.mark.slow
@pytest.mark.config(proxy={"threads": 1, "deadline_ms": 60000})
def test_many_requests_of_many_lists_take_what_they_do_one_by_one(daemon):
    """The lists of a request are asked for a few at a time, all with the deadline of the request:
    where that stands among those of others is not searched for each of them, which took ten times as
    much."""
    conns = [daemon.conn(timeout_s=60 * SLOW) for _ in range(40)]

    def processor_s(groups):
        before_s = daemon.processor_s()
        for group in groups:
            for n in group:
                conns[n].send("llen " + " ".join(f"{n}-{i}" for i in range(8000)) + "\r\n")
            for n in group:
                assert set(conns[n].lines(8000)) == {b"0"}
        return daemon.processor_s() - before_s

    alone_s = processor_s([[n] for n in range(40)])
    assert processor_s([range(40)]) < 4 * alone_s
    for conn in conns:
        conn.close()
