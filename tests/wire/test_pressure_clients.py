# SPDX-License-Identifier: BSD-3-Clause
"""Clients that are slow, leave early or end only their sending: no other client notices."""

import contextlib
import socket
import struct
import time

import pytest

from harness import HOST, Conn, wait_until
from test_pass_support import in_pieces, seeded, talk

MIB = 1 << 20


def reset(conn):
    """Closes so that the other side sees a reset."""
    conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def only_connections(daemon, count):
    """The daemon has let go of all clients but those."""

    def check():
        with daemon.conn() as conn:
            return conn.stats()["curr_connections"] == str(count + 1)

    return wait_until("others are gone", check)


@pytest.mark.memcacheds(3)
def test_a_half_closed_client_gets_everything(daemon):
    value = b"v" * 100_000
    script = b"".join(b"set k%d 0 0 %d\r\n%s\r\n" % (i, len(value), value) for i in range(50))
    script += b"get " + b" ".join(b"k%d" % i for i in range(50)) + b"\r\n"
    script += b"".join(b"mg k%d v\r\n" % i for i in range(50)) + b"lget nothing\r\nversion\r\n"
    answer = talk(daemon.port, script)
    expected = b"STORED\r\n" * 50
    expected += b"".join(b"VALUE k%d 0 100000\r\n%s\r\n" % (i, value) for i in range(50))
    expected += b"END\r\n" + (b"VA 100000\r\n" + value + b"\r\n") * 50 + b"END\r\nVERSION "
    assert answer.startswith(expected)
    only_connections(daemon, 0)


def test_a_half_closed_client_with_half_a_request(daemon):
    assert talk(daemon.port, b"get a\r\nset a 0 0 5\r\nabc") == b"END\r\n"
    assert talk(daemon.port, b"get a\r\nget b") == b"END\r\n"
    assert talk(daemon.port, b"") == b""
    only_connections(daemon, 0)


@pytest.mark.slow
def test_a_client_that_sends_a_byte_now_and_then(daemon):
    script = b"set slow 0 0 5\r\nvalue\r\nget slow\r\nlget nothing\r\n"
    with daemon.conn() as slow, daemon.conn() as other:
        assert other.set("key", "0") == b"STORED"
        for i in range(len(script)):
            slow.send(script[i : i + 1])
            until = time.monotonic() + 0.05
            while time.monotonic() < until:
                other.send("incr key 1\r\nget key missing\r\n" * 10)
                for _ in range(10):
                    assert other.line().isdigit()
                    assert other.line().startswith(b"VALUE key 0 ")
                    assert other.line().isdigit()
                    assert other.line() == b"END"
        assert slow.lines(5) == [b"STORED", b"VALUE slow 0 5", b"value", b"END", b"END"]


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("leave", [Conn.close, reset])
def test_clients_that_leave_in_the_middle_of_a_pipelined_get(daemon, leave):
    with daemon.conn() as other:
        for i in range(20):
            assert other.set(f"k{i}", "v" * 50_000) == b"STORED"
        script = "get " + " ".join(f"k{i}" for i in range(20)) + "\r\n"
        for round_number in range(40):
            leaver = daemon.conn()
            leaver.send(script * 20)
            if round_number % 2:
                leaver.line()
            leave(leaver)
            assert len(other.get(f"k{round_number % 20}")) == 50_000
        only_connections(daemon, 1)
        assert len(other.values(script.strip())) == 20


@pytest.mark.parametrize("leave", [Conn.close, reset])
def test_clients_that_leave_in_the_middle_of_a_value(daemon, memcached, leave):
    """Nothing of it reaches the server, whose connection goes on serving others."""
    with daemon.conn() as other, memcached.conn() as direct:
        assert other.set("key", "old") == b"STORED"
        for part in (0, 1, 100_000, 500_000):
            for head in ("set key 0 0 500000", "ms key 500000", "append key 0 0 500000"):
                leaver = daemon.conn()
                leaver.send(head, "\r\n", b"x" * part)
                leave(leaver)
                assert other.get("key") == b"old"
        only_connections(daemon, 1)
        assert direct.get("key") == b"old"


def test_a_client_that_leaves_behind_whole_requests_has_them_done(daemon, memcached):
    with memcached.conn() as direct:
        for i in range(50):
            with daemon.conn() as leaver:
                leaver.send("set counter 0 0 3 noreply\r\n%03d\r\n" % i)
            wait_until("it is stored", lambda i=i: direct.get("counter") == b"%03d" % i)


def test_quit_behind_requests(daemon):
    script = b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\nget a\r\n"
    expected = b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"
    assert talk(daemon.port, script, half_close=False) == expected
    assert talk(daemon.port, b"quit\r\n", half_close=False) == b""


def test_quit_with_much_behind_it_loses_no_answers(daemon):
    """Closing while unread input waits must not make the kernel throw answers away."""
    with daemon.conn() as conn:
        assert conn.set("big", "v" * 500_000) == b"STORED"
    for behind in (b"", b"get big\r\n" * 1000, b"x" * 300_000):
        answer = talk(daemon.port, b"get big\r\nquit\r\n" + behind, half_close=False)
        assert answer == b"VALUE big 0 500000\r\n" + b"v" * 500_000 + b"\r\nEND\r\n"


def go_on_sending(conn, seconds):
    """Returns whether the other side took it all that time."""
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            conn.send(b"x" * 1000)
            time.sleep(0.01)
    except OSError:
        return False
    return True


def read_to_end(conn):
    found = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while data := conn.socket.recv(1 << 18):
            found += data
    return bytes(found)


@pytest.mark.parametrize(
    "request_, end",
    [(b"get big\r\nquit\r\n", b"END\r\n"), (b"get big\r\nget " + b"k" * 3_000_000, b"_bytes\r\n")],
    ids=["quit", "refused"],
)
def test_a_client_that_is_closed_while_it_sends_gets_its_answers(daemon, request_, end):
    """They are larger than what the kernels hold of them while the client does not read."""
    with daemon.conn() as conn:
        assert conn.set("big", "v" * 1_000_000) == b"STORED"
    with daemon.conn() as conn:
        conn.send(request_)
        go_on_sending(conn, 0.5)
        answer = read_to_end(conn)
        assert len(answer) > 1_000_000 and answer.endswith(end)
    only_connections(daemon, 0)


@pytest.mark.config(proxy={"linger_ms": 300})
def test_a_client_that_never_ends_its_sending_is_closed(daemon):
    with daemon.conn() as conn:
        conn.send("quit\r\n")
        assert not go_on_sending(conn, 10)
    only_connections(daemon, 0)


@pytest.mark.config(proxy={"linger_ms": 60000, "threads": 1, "max_connections": 4})
def test_clients_that_are_being_closed_make_room(daemon):
    with contextlib.ExitStack() as stack:
        leavers = []
        for _ in range(8):
            leavers.append(stack.enter_context(daemon.conn()))
            assert leavers[-1].cmd("mn") == b"MN"
            leavers[-1].send("quit\r\n")
            assert read_to_end(leavers[-1]) == b""
        assert stack.enter_context(daemon.conn()).stats()["rejected_connections"] == "0"
        assert not go_on_sending(leavers[0], 10)
        assert go_on_sending(leavers[-1], 0.1)


@pytest.mark.config(proxy={"linger_ms": 60000})
def test_the_daemon_ends_beside_a_client_that_was_closed_and_sends(daemon):
    with daemon.conn() as conn:
        conn.send("quit\r\n")
        assert go_on_sending(conn, 0.5)
        daemon.stop()


def test_many_clients_come_and_go(daemon):
    rng = seeded("come and go")
    with daemon.conn() as other:
        assert other.set("key", "value" * 1000) == b"STORED"
        for _ in range(300):
            leaver = socket.create_connection((HOST, daemon.port), timeout=10)
            for piece in in_pieces(b"get key\r\nset k 0 0 3\r\nabc\r\n" * 5, rng, 4)[: rng.randrange(5)]:
                leaver.sendall(piece)
            if rng.random() < 0.3:
                leaver.settimeout(0.005)
                with contextlib.suppress(socket.timeout):
                    leaver.recv(1000)
            if rng.random() < 0.5:
                leaver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            leaver.close()
        only_connections(daemon, 1)
        assert other.get("key") == b"value" * 1000
        assert other.cmd("mn") == b"MN"
