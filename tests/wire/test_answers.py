# SPDX-License-Identifier: BSD-3-Clause
"""What a server says is read before it is used: an answer that does not fit its request ends the
connection to that server, never the daemon, and never is it another client's."""

import re

import pytest

from harness import in_threads, wait_until
from test_backend_support import answer_always, correct_answer
from test_multiget import CONFIG

NO_NUMBERS = [
    b"VA 1 kk f123456789012345678901\r\nx\r\n",
    b"VA 1 kk f4294967296\r\nx\r\n",
    b"VA 1 kk fred\r\nx\r\n",
    b"VA 1 kk f\r\nx\r\n",
    b"VA 1 kk f-1\r\nx\r\n",
    b"VA 1 kk f0 c18446744073709551616\r\nx\r\n",
    b"VA 1 kk f0 c" + b"9" * 3000 + b"\r\nx\r\n",
    b"VA 1 kk f0 cold\r\nx\r\n",
]
NOT_ITS_KEY = [
    b"VA 1 f0 c1\r\nx\r\n",
    b"VA 1 k f0 c1\r\nx\r\n",
    b"VA 1 kkey f0 c1\r\nx\r\n",
    b"VA 1 ka f0 c1\r\nx\r\n",
    b"VA 1 kaw== b f0 c1 ka\r\nx\r\n",
    b"EN kother\r\n",
]


@pytest.mark.parametrize("answer", NO_NUMBERS + NOT_ITS_KEY)
@pytest.mark.parametrize("request_line", ["gets k", "gats 100 k"])
def test_a_token_that_does_not_fit_ends_the_connection(start_daemon, start_fake, answer, request_line):
    fake = start_fake(answer_always(answer))
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        line = conn.cmd(request_line)
        assert re.fullmatch(rb"SERVER_ERROR backend \S+ unexpected answer(, outcome unknown)?", line)
        assert conn.cmd("mn") == b"MN"
    assert daemon.is_running()


# What a request cannot be answered by.
ODD = [
    ("set k 0 0 1\r\nx", b"DELETED\r\n"),
    ("set k 0 0 1\r\nx", b"VA 1\r\nx\r\n"),
    ("set k 0 0 1\r\nx", b"7\r\n"),
    ("cas k 0 0 1 5\r\nx", b"OK\r\n"),
    ("delete k", b"STORED\r\n"),
    ("incr k 1", b"7x\r\n"),
    ("touch k 1", b"STORED\r\n"),
    ("mg k v", b"VA 1 kk\r\nx\r\n"),
    ("mg k v k O5", b"VA 1 kk O6\r\nx\r\n"),
    ("mg k v k O5", b"VA 1 ka O5\r\nx\r\n"),
    ("mg k v k O5", b"VA 1\r\nx\r\n"),
    ("mg k f", b"HD fred\r\n"),
    ("ms k 1\r\nx", b"VA 1\r\nx\r\n"),
    ("md k", b"EN\r\n"),
    ("ma k", b"STORED\r\n"),
    ("flush_all", b"STORED\r\n"),
]


@pytest.mark.parametrize("request_text, answer", ODD)
def test_an_answer_to_another_verb_ends_the_connection(start_daemon, start_fake, request_text, answer):
    fake = start_fake(answer_always(answer))
    daemon = start_daemon([fake], config=CONFIG)
    with daemon.conn() as conn:
        assert b": unexpected answer" in conn.cmd(request_text)
        assert conn.cmd("mn") == b"MN"
    daemon.wait_for_log("an answer that does not fit its request")


def test_an_item_that_was_stored_by_a_base64_key_is_read(conn):
    assert conn.cmd("ms Zm9v 5 b", "hello") == b"HD"
    assert conn.values("gets foo")[0][2] == b"hello"
    assert conn.cmd("mg foo k v").startswith(b"VA 5 kZm9v b")
    assert conn.data(5) == b"hello"
    assert conn.cmd("mg Zm9v b k s").startswith(b"HD kZm9v")
    assert conn.cmd("mg foo k O7") == b"HD kZm9v b O7"


@pytest.mark.parametrize("one_in", [7, 50])
def test_a_line_too_many_moves_no_value_to_another_client(start_daemon, start_fake, one_in):
    """The server says a line more than it was asked for, now and then: all that follows on the
    connection is shifted by one."""

    def behave(fake, sock):
        for number, (line, _) in enumerate(fake.requests(sock)):
            verb, key, *words = line.split()
            answer = correct_answer(line).replace(b"value", key.ljust(5)[:5])
            if verb in (b"get", b"gets"):
                keys = [key, *words]
                values = [b"VALUE %s 0 5\r\n%s\r\n" % (k, k.ljust(5)[:5]) for k in keys]
                answer = b"".join(values) + b"END\r\n"
            sock.sendall((b"STORED\r\n" if number % one_in == one_in - 1 else b"") + answer)

    daemon = start_daemon([start_fake(behave)], config=CONFIG)
    served = []

    def client(number):
        right = 0
        with daemon.conn() as conn:
            for i in range(60):
                keys = [f"{number}{chr(97 + (i + j) % 26)}" for j in range(1 + i % 20)]
                conn.send("get " + " ".join(keys) + "\r\n")
                while (line := conn.line()).startswith(b"VALUE "):
                    assert conn.data(5).split()[0] == line.split()[1]
                    right += 1
                assert line == b"END" or line.startswith(b"SERVER_ERROR backend"), line
        served.append(right)

    in_threads(5, client)
    assert sum(served) > 0
    assert wait_until("it goes on", lambda: daemon.is_running())
