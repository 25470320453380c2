# SPDX-License-Identifier: BSD-3-Clause
"""Large values, very long requests, deep pipelines, many clients on one connection to a server."""

import threading

import pytest

from harness import Conn
from test_pass_support import talk

MIB = 1 << 20
# Key, item header and CAS count, too, against memcached's -I.
LARGEST = MIB - 512


def pattern(size, start=0):
    """Bytes in which any shift or loss shows."""
    unit = b"".join(b"%07d\n" % (start + i) for i in range(4096))
    return (unit * (size // len(unit) + 1))[:size]


@pytest.mark.memcacheds(3)
def test_values_of_a_megabyte_come_back(conn):
    keys = [f"large{i}" for i in range(12)]
    for i, key in enumerate(keys):
        assert conn.set(key, pattern(LARGEST, i)) == b"STORED"
    found = conn.values("get " + " ".join(keys))
    assert [key.decode() for key, _, _ in found] == keys
    for i, (_, _, data) in enumerate(found):
        assert data == pattern(LARGEST, i)
    assert conn.cmd("mn") == b"MN"


@pytest.mark.memcacheds(1, "-I", "2m")
@pytest.mark.config(proxy={"max_value_bytes": "2m"})
def test_values_of_two_megabytes_before_servers_that_take_them(conn, memcached):
    value = pattern(2 * MIB - 512)
    assert conn.set("large", value) == b"STORED"
    assert conn.get("large") == value
    assert conn.cmd("append large 0 0 3", "abc") == b"STORED"
    with memcached.conn() as direct:
        assert direct.get("large") == value + b"abc"
    # Above the limit of both.
    assert conn.set("large", pattern(2 * MIB + 1)) == b"SERVER_ERROR object too large for cache"
    assert conn.cmd("mn") == b"MN"


@pytest.mark.memcacheds(1, "-I", "2m")
def test_a_value_above_max_value_bytes_is_read_but_not_written(conn, memcached):
    value = pattern(MIB + 5000)
    with memcached.conn() as direct:
        assert direct.set("large", value) == b"STORED"
    assert conn.set("other", value) == b"SERVER_ERROR object too large for cache"
    assert conn.get("large") == value
    assert conn.cmd("mn") == b"MN"


def too_large(conn, line, length=2 * MIB):
    conn.send(line.replace("LENGTH", str(length)), "\r\n", pattern(length), b"\r\n")


REMOVING = ("set old 0 0 LENGTH", "ms old LENGTH", "ms old LENGTH MA", "ms old LENGTH ME",
            "ms old LENGTH MR q", "ms old LENGTH MP O1 k", "ms b2xk LENGTH b")
KEEPING = ("add old 0 0 LENGTH", "replace old 0 0 LENGTH", "append old 0 0 LENGTH",
           "prepend old 0 0 LENGTH", "cas old 0 0 LENGTH 1", "set old x 0 LENGTH")


@pytest.mark.parametrize("line", REMOVING + KEEPING)
@pytest.mark.memcacheds(3)
def test_a_value_that_is_too_large_takes_the_old_one_away(conn, memcacheds, line):
    """As memcached has it for set and ms, so that no client reads an old value."""
    with memcacheds[0].conn() as direct:
        assert direct.set("old", "value") == b"STORED"
        too_large(direct, line)
        assert b"_ERROR " in direct.line()
        if line not in KEEPING[-1:]:  # memcached runs the data of a line that it refuses
            assert (direct.get("old") is None) == (line in REMOVING)
    assert conn.set("old", "value") == b"STORED"
    conn.send("get old\r\n")
    too_large(conn, line)
    conn.send("get old\r\n")
    assert conn.line() == b"VALUE old 0 5"
    assert conn.lines(2) == [b"value", b"END"]
    if line in KEEPING[-1:]:
        assert conn.line() == b"CLIENT_ERROR bad command line format"
    else:
        assert conn.line() == b"SERVER_ERROR object too large for cache"
    assert conn.line() == (b"END" if line in REMOVING else b"VALUE old 0 5")


def test_a_too_large_value_without_an_answer(conn):
    conn.set("old", "value")
    too_large(conn, "set old 0 0 LENGTH noreply")
    conn.send("get old\r\nmn\r\n")
    assert conn.lines(2) == [b"END", b"MN"]


def test_a_too_large_value_while_the_server_is_away(conn, memcached):
    """The old value may still be there, so that is what is said."""
    conn.set("old", "value")
    memcached.stop()
    too_large(conn, "set old 0 0 LENGTH")
    assert conn.line().startswith(b"SERVER_ERROR backend ")
    assert conn.cmd("mn") == b"MN"


@pytest.mark.memcacheds(1, "-I", "512k")
def test_a_value_that_only_the_server_finds_too_large(conn):
    """The answer is the server's own, and the connection to it stays in step."""
    assert conn.set("small", "x") == b"STORED"
    for _ in range(3):
        answer = conn.set("large", pattern(MIB - 1000))
        assert answer == b"SERVER_ERROR object too large for cache"
        assert conn.get("small") == b"x"


@pytest.mark.memcacheds(3)
def test_a_get_of_20000_keys(conn):
    keys = [f"key:{i}" for i in range(20000)]
    stored = [key for i, key in enumerate(keys) if i % 3 != 0]
    conn.send("".join(f"set {key} 5 0 {len(key)} noreply\r\n{key}\r\n" for key in stored), "mn\r\n")
    assert conn.line() == b"MN"
    found = conn.values("get " + " ".join(keys))
    assert [(key, data) for key, _, data in found] == [(key.encode(),) * 2 for key in stored]
    found = conn.values("gats 0 " + " ".join(reversed(keys)))
    assert [key.decode() for key, _, _ in found] == stored[::-1]


@pytest.mark.memcacheds(3)
def test_a_pipeline_of_10000_requests(daemon, conn):
    conn.set("number", "0")
    conn.set("text", "some text")
    script = b"".join(
        b"incr number 1\r\nget text missing\r\nset k%d 0 0 2\r\nxx\r\nmg k%d v\r\n" % (i, i)
        for i in range(2500)
    )
    expected = b"".join(
        b"%d\r\nVALUE text 0 9\r\nsome text\r\nEND\r\nSTORED\r\nVA 2\r\nxx\r\n" % (i + 1)
        for i in range(2500)
    )
    assert talk(daemon.port, script) == expected


@pytest.mark.config(proxy={"threads": 1}, **{"pool main": {"connections": 1}})
def test_200_clients_share_one_connection(daemon, memcached):
    """Each gets its own answers, and in its own order."""
    clients = [daemon.conn() for _ in range(200)]
    try:
        for round_number in range(5):
            for i, client in enumerate(clients):
                value = f"{round_number}:{i}" * (1 + i % 50)
                client.send(f"set own{i} {i} 0 {len(value)}\r\n{value}\r\nget own{i} nothing\r\n")
                client.send(f"mg own{i} v f\r\nincr own{i} 1\r\n" * 2)
            for i, client in enumerate(clients):
                value = (f"{round_number}:{i}" * (1 + i % 50)).encode()
                assert client.line() == b"STORED"
                assert client.line() == b"VALUE own%d %d %d" % (i, i, len(value))
                assert client.data(len(value)) == value
                assert client.line() == b"END"
                for _ in range(2):
                    assert client.line() == b"VA %d f%d" % (len(value), i)
                    assert client.data(len(value)) == value
                    assert client.line().startswith(b"CLIENT_ERROR")
        with memcached.conn() as direct:
            # Ours, and the one that asks.
            assert int(direct.stats()["curr_connections"]) <= 4
    finally:
        for client in clients:
            client.close()


@pytest.mark.memcacheds(2)
@pytest.mark.config(**{"pool main": {"connections": 3}})
def test_changes_of_one_key_keep_their_order(daemon):
    """Whatever connections a pool has: one key always goes over the same one."""
    faults = []

    def work(number):
        with daemon.conn() as conn:
            script = "".join(
                f"set key{number} 0 0 {len(str(i))} noreply\r\n{i}\r\nget key{number}\r\n"
                for i in range(2000)
            )
            sender = threading.Thread(target=conn.send, args=(script,), daemon=True)
            sender.start()
            for i in range(2000):
                conn.line()
                value = conn.line()
                if value != str(i).encode() or conn.line() != b"END":
                    faults.append((number, i, value))
                    return
            sender.join()

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert not faults
