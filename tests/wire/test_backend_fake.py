# SPDX-License-Identifier: BSD-3-Clause
"""Servers that misbehave: each request is answered once, in order, by an error that names the
server; no other server is disturbed; a write that may have been done is never sent again."""

import re
import time

import pytest

from harness import wait_until
from test_backend_support import (
    FAST,
    HANDSHAKE,
    answer_always,
    answer_byte_by_byte,
    answer_correctly,
    answer_once_and_close,
    close_at_once,
    never_answer,
)

ONE_THREAD = {"threads": 1}
CONFIG = {"pool main": FAST, "proxy": ONE_THREAD}


def error_of(fake, line):
    """The text behind the name of the server; None when that is not what the line says."""
    found = re.fullmatch(rb"SERVER_ERROR backend %s(.*)" % re.escape(fake.address.encode()), line)
    return found and found.group(1).decode()


def test_a_server_that_answers_byte_by_byte(start_daemon, start_fake):
    patient = {"pool main": {**FAST, "timeout_ms": 10000}}
    daemon = start_daemon([start_fake(answer_byte_by_byte)], config=patient)
    with daemon.conn() as conn:
        assert conn.get("key") == b"value"
        conn.send("get a b\r\nset a 0 0 1\r\nx\r\nmg a v\r\ndelete a\r\n")
        answers = [b"VALUE a 0 5", b"value", b"VALUE b 0 5", b"value", b"END", b"STORED"]
        assert conn.lines(9) == answers + [b"VA 5", b"value", b"DELETED"]


GARBAGE = {
    "no line end": b"x" * 100_000,
    "an empty line": b"\r\n",
    "a line feed alone": b"STORED\n",
    "binary": bytes(range(256)) * 10 + b"\r\n",
    "a classic hit": b"VALUE key 0 5\r\nvalue\r\nEND\r\n",
    "a size that is no number": b"VA x\r\nvalue\r\n",
    "a size too small": b"VA 3 kkey1 f0\r\nvalue\r\n",
    "a size too large": b"VA 99999999999 f0\r\nvalue\r\n",
    "a negative size": b"VA -1 f0\r\nvalue\r\n",
    "two answers": b"STORED\r\nSTORED\r\n",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage(start_daemon, start_fake, start_memcached, name):
    """Every request is answered, and with nothing of what was meant for another one."""
    fake, real = start_fake(answer_always(GARBAGE[name])), start_memcached()
    daemon = start_daemon([fake, real], config=CONFIG)
    with daemon.conn() as conn, daemon.conn() as other:
        for i in range(30):
            conn.send(f"get key{i}\r\nmn\r\n")
            line = conn.line()
            if line.startswith(b"VALUE"):
                assert conn.line() != b"value"
                line = conn.line()
            assert line in (b"END", b"STORED") or error_of(fake, line) is not None, line
            assert conn.line() == b"MN"
            line = other.set(f"key{i}", "x")
            assert line == b"STORED" or error_of(fake, line) is not None, line
        assert other.cmd("mn") == b"MN"
    daemon.wait_for_log(f"backend {fake.address}: ")


HALVES = {
    "nothing": b"",
    "half a line": b"STOR",
    "a line without its end": b"STORED\r",
    "half a value": b"VA 5 f0\r\nval",
    "a value without its end": b"VA 5 f0\r\nvalue",
}


@pytest.mark.parametrize("name", HALVES)
def test_half_an_answer_and_the_end(start_daemon, start_fake, name):
    fake = start_fake(answer_once_and_close(HALVES[name]))
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        for _ in range(5):
            assert error_of(fake, conn.cmd("get key")) in (": connection lost", " down")
            text = error_of(fake, conn.cmd("set key 0 0 1", "x"))
            assert text in (": connection lost, outcome unknown", " down")
        assert conn.cmd("mn") == b"MN"


def test_a_server_that_goes_and_comes_back_all_the_time_fills_no_log(start_daemon, start_fake):
    fake = start_fake(answer_once_and_close(b"EN\r\n"))
    daemon = start_daemon([fake], config=CONFIG)
    began = time.time()
    with daemon.conn() as conn:
        wait_until("it was up often", lambda: conn.cmd("mg key") and
                   int(conn.stats()["backend_connects"]) > 100)
    assert daemon.log().count("connection lost") <= time.time() - began + 2
    assert daemon.log().count(": up, ") <= time.time() - began + 3


def test_a_server_that_closes_right_after_accepting(start_daemon, start_fake):
    fake = start_fake(close_at_once, handshake=None)
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        for _ in range(20):
            assert error_of(fake, conn.cmd("get key")) == " down"
            assert error_of(fake, conn.set("key", "x")) == " down"
        time.sleep(0.5)
        # Attempts are spaced out, not made for every request or without any pause.
        assert fake.connections < 40


def test_a_server_that_closes_right_after_the_handshake(start_daemon, start_fake):
    fake = start_fake(close_at_once)
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        for _ in range(20):
            for line in (conn.cmd("get key"), conn.set("key", "x")):
                assert error_of(fake, line).startswith((" down", ": connection lost"))
        time.sleep(0.5)
        assert fake.connections < 60


def test_a_server_that_never_answers_the_handshake(start_daemon, start_fake, start_memcached):
    fake, real = start_fake(never_answer, handshake=None), start_memcached()
    daemon = start_daemon([fake, real], config=CONFIG)
    with daemon.conn() as conn:
        answers = [conn.set(f"key{i}", "x") for i in range(40)]
        assert b"STORED" in answers
        assert {error_of(fake, line) for line in answers if line != b"STORED"} == {" down"}


def test_a_server_that_never_answers_requests(start_daemon, start_fake, start_memcached):
    fake, real = start_fake(never_answer), start_memcached()
    daemon = start_daemon([fake, real], config=CONFIG)
    with daemon.conn() as conn:
        answers = [conn.set(f"key{i}", "x") for i in range(20)]
        answers += [conn.cmd(f"mg key{i}") for i in range(20)]
        errors = {error_of(fake, line) for line in answers if line not in (b"STORED", b"HD")}
        ejected = " down: 3 requests in a row timed out; probing"
        assert errors <= {": timeout, outcome unknown", ": timeout", " down", ejected}
        assert ": timeout, outcome unknown" in errors


def test_a_server_that_has_no_connection_left_is_said_to_be_full(start_daemon, start_fake):
    fake = start_fake(answer_correctly, handshake=b"ERROR Too many open connections\r\n")
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        text = error_of(fake, conn.cmd("get key"))
        assert "too many open connections, raise its -c" in text
        assert "no memcached" not in text
    daemon.wait_for_log("raise its -c")


@pytest.mark.parametrize("answer", [b"ERROR\r\n", b"VERSION 1.2.8\r\nEND\r\n", b"220 mail ESMTP\r\n"])
def test_what_is_no_memcached_is_said_to_be_none(start_daemon, start_fake, answer):
    fake = start_fake(answer_correctly, handshake=answer)
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        text = error_of(fake, conn.cmd("get key"))
        assert "no memcached" in text or "memcached 1.4 or newer is needed" in text
    daemon.wait_for_log(" error ")


def test_a_proxy_is_no_server(start_daemon, daemon):
    """A server of its own pool, say, where it listens on 0.0.0.0: requests would go in a circle."""
    other = start_daemon([f"127.0.0.1:{daemon.port}"], config=CONFIG)
    with other.conn() as conn:
        for request in ("get key", "ladd key a"):
            assert b"a proxy answers there, mclistd, and no memcached" in conn.cmd(request)
    other.wait_for_log(" error ")


CHANGES = [
    "set key 0 0 1\r\nx",
    "append key 0 0 1\r\nx",
    "cas key 0 0 1 5\r\nx",
    "delete key",
    "incr key 1",
    "touch key 0",
    "ms key 1\r\nx",
    "md key",
    "ma key",
    "mg key v N100",
    "mg key T100",
]


@pytest.mark.parametrize("request_text", CHANGES)
def test_a_change_that_was_sent_is_never_sent_again(start_daemon, start_fake, request_text):
    fake = start_fake(answer_once_and_close(b""))
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        assert error_of(fake, conn.cmd(request_text)) == ": connection lost, outcome unknown"
        time.sleep(0.3)
        assert fake.all_received() == request_text.encode() + b"\r\n"
        assert conn.stats()["outcomes_unknown"] == "1"


def test_what_was_pipelined_behind_a_lost_change_is_answered_too(start_daemon, start_fake):
    """The first one is read and the connection ends: the others may or may not have been read."""
    fake = start_fake(answer_once_and_close(b""))
    daemon = start_daemon([fake], config=CONFIG)
    script = "".join(f"set key{i} 0 0 1000\r\n{'x' * 1000}\r\n" for i in range(100))
    with daemon.conn() as conn:
        conn.send(script, "mn\r\n")
        texts = {error_of(fake, line) for line in conn.lines(100)}
        assert texts <= {": connection lost, outcome unknown", " down"}
        assert conn.line() == b"MN"
        time.sleep(0.3)
    sent = fake.all_received()
    for i in range(100):
        assert sent.count(b"set key%d 0 0 1000\r\n" % i) <= 1


def test_an_unsent_change_goes_out_on_a_new_connection(start_daemon, start_fake):
    """The server closes an idle connection: what comes then is not lost."""

    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            sock.sendall(b"STORED\r\n")
            if line.startswith(b"set last"):
                return

    fake = start_fake(behave)
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        for i in range(5):
            assert conn.set(f"key{i}", "x") == b"STORED"
            assert conn.set("last", "x") == b"STORED"
            time.sleep(0.1)
    assert fake.connections >= 5
    assert all(fake.all_received().count(b"set key%d " % i) == 1 for i in range(5))


def test_a_server_that_stops_reading_in_the_middle_of_a_value(start_daemon, start_fake):
    def behave(fake, sock):
        sock.recv(10)
        while not fake.stopping:
            time.sleep(0.05)

    fake = start_fake(behave)
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        conn.send(*[f"set key 0 0 1000000\r\n{'x' * 1_000_000}\r\n" for _ in range(10)], "mn\r\n")
        texts = {error_of(fake, line) for line in conn.lines(10)}
        assert texts <= {
            ": timeout, outcome unknown", ": timeout, not sent", " down",
            ": connection lost, outcome unknown",
        }
        assert conn.line() == b"MN"


def test_answers_that_nobody_asked_for_end_the_connection(start_daemon, start_fake):
    """Else each later request would be given the answer of the one before."""

    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            number = line.split()[1][3:]
            flags = b" kkey" + number + b" f0" if b" k " in line else b""
            sock.sendall(b"VA %d%s\r\n%s\r\n" % (len(number), flags, number))
            if fake.connections < 4:
                sock.sendall(b"VA 5%s\r\nwrong\r\n" % flags)

    fake = start_fake(behave)
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        right = 0
        for i in range(60):
            conn.send(f"get key{i}\r\n")
            line = conn.line()
            if line.startswith(b"VALUE"):
                assert conn.line() == b"%d" % i
                assert conn.line() == b"END"
                right += 1
            else:
                assert error_of(fake, line) is not None
            time.sleep(0.01)
        assert right > 0
        assert wait_until("it is good", lambda: conn.cmd("mg key7 v") == b"VA 1")


def test_errors_of_the_server_pass_through(start_daemon, start_fake):
    answers = {
        b"set": b"SERVER_ERROR out of memory storing object\r\n",
        b"incr": b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        b"delete": b"ERROR\r\n",
        b"mg": b"SERVER_ERROR out of memory writing get response\r\n",
    }

    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            sock.sendall(answers[line.split()[0]])

    daemon = start_daemon([start_fake(behave)], config=CONFIG)
    with daemon.conn() as conn:
        assert conn.set("key", "x") + b"\r\n" == answers[b"set"]
        assert conn.cmd("incr key 1") + b"\r\n" == answers[b"incr"]
        assert conn.cmd("delete key") + b"\r\n" == answers[b"delete"]
        assert conn.cmd("get key") + b"\r\n" == answers[b"mg"]
        assert conn.cmd("get a b c") + b"\r\n" == answers[b"mg"]
        assert conn.cmd("mn") == b"MN"


def test_only_well_formed_requests_are_forwarded(start_daemon, start_fake):
    fake = start_fake(answer_correctly)
    daemon = start_daemon([fake], config=CONFIG)
    script = (
        b"get " + b"k" * 251 + b"\r\nset a 0 0 3\r\nabcdef\r\nbogus\r\nset a x 0 8\r\ndelete a\r\n"
        b"mg a v v\r\nget a\0b\r\nset a 0 0 1048577\r\n" + b"x" * 1048577 + b"\r\n"
        b"ms a 2 q\r\nxx\r\nset b 0 0 1 noreply\r\nx\r\n get  c  \nmn\r\n"
    )
    with daemon.conn() as conn:
        conn.send(script)
        conn.until_mn()
    # The value that is too large takes the old one away.
    expected = b"delete a\r\nms a 2\r\nxx\r\nset b 0 0 1\r\nx\r\nmg c k v f\r\n"
    assert fake.all_received() == expected


def test_the_handshake_asks_nothing_else(start_daemon, start_fake):
    """A handshake that is answered in pieces is as good as any."""

    def behave(fake, sock):
        sock.sendall(HANDSHAKE[20:])
        answer_correctly(fake, sock)

    daemon = start_daemon([start_fake(behave, handshake=HANDSHAKE[:20])], config=CONFIG)
    with daemon.conn() as conn:
        assert conn.get("key") == b"value"


def test_a_server_that_one_worker_ejected_is_not_shown_as_up(start_daemon, start_fake):
    """The other worker, which has asked it nothing, has a connection whose handshake was answered."""

    def hang(fake, sock):
        for _ in fake.requests(sock):
            pass

    fake = start_fake(hang)
    daemon = start_daemon([fake], config={"pool main": FAST, "proxy": {"threads": 2}})
    name = f"backend:{fake.address}"
    with daemon.conn() as conn:
        wait_until("both are connected", lambda: fake.connections >= 2)
        ejected = " down: 3 requests in a row timed out; probing"
        wait_until("it is ejected", lambda: error_of(fake, conn.set("key", "x")) == ejected)
        assert conn.stats("stats backends")[f"{name}:state"] == "hanging"


@pytest.mark.parametrize("answers_probes", [False, True])
def test_a_server_that_hangs_is_ejected(start_daemon, start_fake, start_memcached, answers_probes):
    """It shakes hands and answers nothing: few requests wait for it. Keys stay where they belong."""

    def hang(fake, sock):
        for line, _ in fake.requests(sock):
            if answers_probes and line == b"mn":
                sock.sendall(b"MN\r\n")

    fake, real = start_fake(hang), start_memcached()
    daemon = start_daemon([fake, real], config=CONFIG)
    ejected = " down: 3 requests in a row timed out; probing"
    with daemon.conn() as conn:
        answers = [(key, conn.set(key, "x")) for key in (f"key{i}" for i in range(60))]
        theirs = [key for key, line in answers if line != b"STORED"]
        wait_until("it is ejected", lambda: error_of(fake, conn.set(theirs[0], "x")) == ejected)
        stats = conn.stats("stats backends")
        # On trial it does not hang, as far as is known.
        assert stats[f"backend:{fake.address}:state"] in ("hanging", "ejected")
        assert int(stats[f"backend:{fake.address}:ejections"]) >= 1
        wait_until("it is logged", lambda: "3 requests in a row timed out" in daemon.log())
        fake.behave = answer_correctly
        wait_until("it is good", lambda: conn.cmd(f"delete {theirs[0]}") == b"DELETED")
        assert {conn.set(key, "x") for key, _ in answers} == {b"STORED"}
    with real.conn() as direct:
        assert all(direct.get(key) is None for key in theirs)
    again = f"backend {fake.address}: answers requests again"
    wait_until("that is logged", lambda: again in daemon.log())
    assert daemon.log().count("3 requests in a row timed out") == 1
