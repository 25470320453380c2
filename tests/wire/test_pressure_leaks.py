# SPDX-License-Identifier: BSD-3-Clause
"""Many connections and many requests leave nothing behind. A daemon with the address sanitizer
reports at its end what was lost; any other must not have grown. MCLISTD_LONG=1 makes it a day's
worth: 100,000 connections and 1,000,000 requests."""

import os
import socket
import struct
import threading

import pytest

from harness import SLOW, wait_until
from test_pass_support import seeded, talk
from test_pressure_memory import is_for_use, memory_mib

LONG = os.environ.get("MCLISTD_LONG", "") not in ("", "0")
CONNECTS = 100_000 if LONG else 5_000
REQUESTS = 1_000_000 if LONG else 100_000
SOCKETS = 4
PER_CALL = 2_000


def requests(rng, count):
    """That many, and how many bytes of them are sent before a client leaves for good."""
    found = []
    for _ in range(count):
        key = b"key%d" % rng.randrange(1000)
        lists = b"list%d" % rng.randrange(20)
        size = rng.choice([0, 10, 100, 1000, 5000])
        found.append(
            rng.choice(
                [
                    b"set %s 0 0 %d\r\n%s\r\n" % (key, size, b"v" * size),
                    b"set %s 0 0 %d noreply\r\n%s\r\n" % (key, size, b"v" * size),
                    b"get %s\r\n" % key,
                    b"get %s a b c %s d\r\n" % (key, key),
                    b"gats 0 %s\r\n" % key,
                    b"mg %s v f c k q\r\n" % key,
                    b"ms %s %d q\r\n%s\r\n" % (key, size, b"v" * size),
                    b"delete %s\r\n" % key,
                    b"incr %s 1\r\n" % key,
                    b"ladd %s item%d\r\n" % (lists, rng.randrange(500)),
                    b"ldel %s item%d\r\n" % (lists, rng.randrange(500)),
                    b"lhas %s item1 item2\r\n" % lists,
                    b"llen %s\r\n" % lists,
                    b"lget %s\r\n" % lists,
                    b"set %s x 0 3\r\nabc\r\n" % key,
                    b"bogus\r\n",
                    b"get %s\r\n" % (b"k" * 251),
                    b"stats\r\n" if rng.random() < 0.05 else b"mn\r\n",
                ]
            )
        )
    return b"".join(found)


def send_requests(port, number, rounds, faults):
    rng = seeded(f"leaks {number}")
    script = requests(rng, PER_CALL - 1) + b"version\r\n"
    for _ in range(rounds):
        answer = talk(port, script, timeout_s=60 * SLOW)
        if b"\r\nVERSION " not in answer[-100:]:
            faults.append(answer[-300:])
            return
        faults.extend(line for line in answer.split(b"\r\n") if line.startswith(b"SERVER_ERROR"))


def connect(port, number, count, faults):
    """Most ask something; some leave in the middle of it, some with a reset."""
    rng = seeded(f"connects {number}")
    for i in range(count):
        with socket.create_connection(("127.0.0.1", port), timeout=30 * SLOW) as sock:
            way = i % 5
            if way < 3:
                sock.sendall(b"get key1 key2\r\nllen list1\r\nmn\r\n")
                answer = b""
                while not answer.endswith(b"MN\r\n"):
                    data = sock.recv(65536)
                    if not data:
                        faults.append(answer)
                        return
                    answer += data
            elif way == 3:
                script = requests(rng, 5)
                sock.sendall(script[: rng.randrange(len(script))])
            if i % 7 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def in_threads(work, port, total):
    faults = []
    threads = [
        threading.Thread(target=work, args=(port, n, total // SOCKETS, faults), daemon=True)
        for n in range(SOCKETS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(1500 if LONG else 100 * SLOW)
    assert not any(thread.is_alive() for thread in threads)
    return faults


@pytest.mark.slow
@pytest.mark.memcacheds(2)
@pytest.mark.config(
    lists={"log_limit_bytes": "2k", "log_hard_limit_bytes": "8k", "max_item_bytes": "100"},
    **{"pool main": {"timeout_ms": 20000}},
)
def test_many_connections_and_requests_leave_nothing_behind(daemon, memcacheds):
    def one_half():
        faults = in_threads(send_requests, daemon.port, REQUESTS // PER_CALL // 2)
        faults += in_threads(connect, daemon.port, CONNECTS // 2)
        wait_until("all are gone", only_one_client)
        return faults

    def only_one_client():
        with daemon.conn() as conn:
            return conn.stats()["curr_connections"] == "1"

    assert one_half() == []
    before = memory_mib(daemon)
    for server in memcacheds:
        server.restart()
    assert all(fault.startswith(b"SERVER_ERROR backend") for fault in one_half())
    if is_for_use(daemon):
        assert memory_mib(daemon) < before + 10
    with daemon.conn() as conn:
        assert int(conn.stats()["total_connections"]) >= CONNECTS
