# SPDX-License-Identifier: BSD-3-Clause
"""Reads of plain keys of which some are on a server that is down or silent: all others are answered,
and what stands for the missing ones is as `down_reads` says. List verbs always say it."""

import pytest

from harness import free_port, wait_until
from test_backend_support import FAST, never_answer
from test_multiget import answer_of

CONFIG = {"pool main": {**FAST, "timeout_ms": 500}, "proxy": {"threads": 1}}
KEYS = [f"key{i}" for i in range(2000)]
MISS = {**CONFIG, "pool main": {**CONFIG["pool main"], "down_reads": "miss"}}
EACH = pytest.mark.parametrize("config", [CONFIG, MISS], ids=["error", "miss"])


def store(daemon, servers):
    """Stores all keys; returns what each server has, by the server's place."""
    with daemon.conn() as conn:
        for key in KEYS:
            conn.send(f"set {key} 0 0 {len(key)}\r\n{key}\r\n")
        assert set(conn.lines(len(KEYS))) == {b"STORED"}
    found = []
    for server in servers:
        with server.conn() as direct:
            found.append([k.decode() for k, _, _ in direct.values("get " + " ".join(KEYS))])
    assert sum(map(len, found)) == len(KEYS) and min(map(len, found)) > 300
    return found


@EACH
@pytest.mark.parametrize("verb", ["get", "gets", "gat 0", "gats 0"])
def test_a_dead_server_takes_nothing_else_with_it(start_daemon, start_memcached, config, verb):
    servers = [start_memcached() for _ in range(3)]
    daemon = start_daemon(servers, config=config)
    dead = servers[0]
    gone = set(store(daemon, servers)[0])
    dead.stop()
    with daemon.conn() as conn:
        wait_until("it is seen", lambda: conn.stats("stats backends")[f"backend:{dead.address}:state"] == "down")
        found, end = answer_of(conn, f"{verb} " + " ".join(KEYS))
        assert found == [key for key in KEYS if key not in gone]
        stats = conn.stats()
        if config is MISS:
            assert end == b"END"
            assert stats["down_reads"] == str(len(gone)) and stats["server_errors"] == "0"
        else:
            assert end == f"SERVER_ERROR backend {dead.address} down".encode()
            assert stats["down_reads"] == "0" and stats["server_errors"] == "1"
        assert stats["get_misses"] == "0"


@EACH
def test_a_silent_server_is_asked_once_per_request(start_daemon, start_memcached, start_fake, config):
    """Not once per key, nor once per hundred of them: each time would cost a time-out."""
    real = start_memcached()
    limit = {**config, "proxy": {**config["proxy"], "max_pipeline": 50}}
    # Where keys go does not depend on who answers: found out with a server that does.
    port = free_port()
    second = start_memcached(port=port)
    helper = start_daemon([real, second], config=config)
    here = set(store(helper, [real, second])[0])
    helper.stop()
    second.stop()
    fake = start_fake(never_answer, port=port)
    daemon = start_daemon([real, fake], config=limit)
    with daemon.conn() as conn:
        found, end = answer_of(conn, "get " + " ".join(KEYS))
        assert found == [key for key in KEYS if key in here]
        assert end == b"END" if config is MISS else end.startswith(b"SERVER_ERROR backend ")
    assert 0 < fake.all_received().count(b"key") <= 50


@pytest.mark.parametrize("config", [MISS], ids=["miss"])
def test_which_verbs_may_miss(start_daemon, start_memcached, config):
    memcached = start_memcached()
    daemon = start_daemon([memcached], config=config)
    memcached.stop()
    down = f"SERVER_ERROR backend {memcached.address} down".encode()
    with daemon.conn() as conn:
        wait_until("it is seen", lambda: conn.cmd("delete key") == down)
        assert conn.cmd("get key") == b"END"
        assert conn.cmd("gat 0 key") == b"END"
        assert conn.cmd("mg key v") == b"EN"
        assert conn.cmd("mg key O7 v k") == b"EN O7 kkey"
        assert conn.cmd("mg a2V5 b v k") == b"EN ka2V5 b"
        assert conn.stats()["down_reads"] == "5"
        conn.send("mg key v q\r\nmn\r\n")
        assert conn.line() == b"MN"
        for text in ["lget key", "lgets key", "llen key", "lhas key a", "lstat key", "me key",
                     "ladd key a", "touch key 0", "incr key 1", "md key", "set key 0 0 1\r\nx"]:
            assert conn.cmd(text).startswith(down), text
