# SPDX-License-Identifier: BSD-3-Clause
"""Stock clients beside the proxy: docs/clients.md says which distribution of keys is theirs, and
which flags they give to text, and which answer each list verb has."""

import re

import pytest

from client_support import CLIENTS, NEWER, rows_of
from harness import ROOT, wait_until

pytestmark = pytest.mark.release

KEYS = [f"user:{number}" for number in range(60)]

# What the table calls a setting -> what the agent does; the default stands for itself.
SETTINGS = {
    "OPT_DISTRIBUTION = DISTRIBUTION_CONSISTENT": "consistent",
    "OPT_LIBKETAMA_COMPATIBLE": "compatible",
    "behaviors ketama": "ketama",
    "behaviors ketama_weighted": "ketama_weighted",
    "MEMCACHED_BEHAVIOR_KETAMA": "ketama",
    "MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED": "ketama_weighted",
    "ketama_points = 150": "ketama",
    "KetamaConnectionFactory, LIBMEMCACHED": "ketama",
    "CRC_HASH": "CRC_HASH",
}


# --- where keys go ---


def keys_rows():
    return [pytest.param(*row, id="-".join(row[:2])) for row in rows_of("Where keys go")]


def test_the_table_of_keys_has_every_client():
    assert {row.values[0] for row in keys_rows()} == set(CLIENTS) - NEWER


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("client, setting, distribution, hash_name", keys_rows())
def test_client_and_proxy_look_for_a_key_on_the_same_server(
    start_agent, start_daemon, memcacheds, client, setting, distribution, hash_name
):
    """The client asks the memcacheds directly. Where the table says "none", the defaults differ."""
    servers = [memcached.address for memcached in memcacheds]
    if "LIBMEMCACHED" in setting:  # it looks up the names of addresses, and takes these
        servers = [server.replace("127.0.0.1", "localhost") for server in servers]
    agent = start_agent(client, SETTINGS.get(setting, setting), servers)
    fits = distribution != "none"
    pool = {"distribution": distribution, "hash": hash_name} if fits else {}
    daemon = start_daemon(servers, config={"pool main": pool})
    with daemon.conn() as conn:
        direct = [("set", f"direct-{key}", "text") for key in KEYS]
        assert agent.ask_all(direct) == ["yes"] * len(KEYS)
        assert all_found([conn.get(f"direct-{key}") for key in KEYS]) == fits
        for key in KEYS:
            assert conn.set(f"proxy-{key}", "text") == b"STORED"
    found = agent.ask_all([("get", f"proxy-{key}") for key in KEYS])
    assert all_found([None if answer == "miss" else answer for answer in found]) == fits


def all_found(values):
    found = sum(value is not None for value in values)
    assert found > 0  # that it is not the server that is missing
    return found == len(values)


@pytest.mark.memcacheds(2)
@pytest.mark.config(**{"pool main": {"distribution": "modula", "hash": "crc"}})
def test_python_memcache_takes_zero_for_one(start_agent, daemon, memcacheds):
    """Keys whose CRC gives 0, one of 32,768: it looks for them on another server."""
    agent = start_agent("python3-memcache", "default", [server.address for server in memcacheds])
    with daemon.conn() as conn:
        assert conn.set("user:28063", "text") == b"STORED"
        assert conn.set("user:28064", "text") == b"STORED"
    assert agent.ask("get", "user:28063") == "miss"
    assert agent.ask("get", "user:28064") == "is text"


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("client", ["PHP Memcached", "pymemcache", "Node memcached"])
def test_several_proxies_are_servers_to_a_client(start_agent, start_daemon, memcacheds, client):
    """Whichever it takes for a key, each finds every key."""
    daemons = [start_daemon(memcacheds), start_daemon(memcacheds)]
    proxies = [f"127.0.0.1:{daemon.port}" for daemon in daemons]
    agent = start_agent(client, "default", proxies)
    assert agent.ask_all([("set", key, "text") for key in KEYS]) == ["yes"] * len(KEYS)
    for daemon in daemons:
        assert 0 < int(daemon_stats(daemon)["cmd_set"]) < len(KEYS)
        with daemon.conn() as conn:
            assert [conn.get(key) for key in KEYS] == [b"text"] * len(KEYS)


def daemon_stats(daemon):
    with daemon.conn() as conn:
        return conn.stats()


# --- flags ---

LONG = "user-1," * 6000  # what clients compress, if they do


def flags_rows():
    return [pytest.param(*row, id=row[0]) for row in rows_of("Flags")]


def test_the_table_of_flags_has_every_client():
    assert {row.values[0] for row in flags_rows()} == set(CLIENTS) - NEWER


@pytest.mark.parametrize("client, short, long, remedy", flags_rows())
def test_flags_of_text_with_default_settings(
    start_agent, daemon, memcached, client, short, long, remedy
):
    agent = start_agent(client, "default", [f"127.0.0.1:{daemon.port}"])
    assert agent.ask_all([("set", "short", "a,b,"), ("set", "long", LONG)]) == ["yes"] * 2
    with memcached.conn() as conn:
        found = {key: numbers[0] for key, numbers, _ in conn.values("get short long")}
        assert found == {b"short": int(short), b"long": int(long)}
        assert (conn.get("long") == LONG.encode()) == (remedy == "")


def test_the_remedy_against_php_s_compression(start_agent, daemon, memcached):
    agent = start_agent("PHP Memcached", "text", [f"127.0.0.1:{daemon.port}"])
    assert agent.ask("set", "long", LONG) == "yes"
    assert agent.ask("append", "long", "end") == "yes"
    with memcached.conn() as conn:
        assert conn.values("get long")[0][1:] == ([0, len(LONG) + 3], f"{LONG}end".encode())


def test_php_refuses_to_append_while_it_compresses(start_agent, daemon):
    agent = start_agent("PHP Memcached", "default", [f"127.0.0.1:{daemon.port}"])
    assert agent.ask("append", "key", "end").startswith("error Memcached::append(): cannot append")


# --- what a user sees ---


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("setting, survives", [("default", False), ("patient", True)])
def test_node_memcached_after_a_server_error(start_agent, daemon, memcacheds, setting, survives):
    """It takes the error of one server behind the proxy for the end of the proxy."""
    agent = start_agent("Node memcached", setting, [f"127.0.0.1:{daemon.port}"])
    with daemon.conn() as conn:
        for key in KEYS:
            conn.set(key, "text")
        memcacheds[0].stop()
        down, up = None, None
        for key in KEYS:
            try:
                conn.get(key)
                up = key
            except RuntimeError:
                down = key
    assert agent.ask("get", up) == "is text"
    assert agent.ask("get", down) != "is text"
    if survives:  # after the millisecond of `retry`
        wait_until("it asks again", lambda: agent.ask("get", up) == "is text")
    else:
        assert agent.ask("get", up).endswith("not available")


# --- answers to list verbs ---


def test_every_list_verb_has_its_shape_in_the_table():
    """src/proto/list_verbs.h says how each verb is answered."""
    shape_of = {
        "STORED": "a word", "COMMITTED": "a word", "DELETED": "a word", "OK": "a word",
        "TOUCHED": "a word",
        "STORED_QUIET": "silence", "DELETED_QUIET": "silence",
        "ADDED": "a number", "REMOVED": "a number", "NUMBER": "a number",
        "SECONDS": "a number", "LEASE": "a number",
        "VALUE": "VALUE blocks", "VERSIONED": "VALUE blocks", "SOME": "VALUE blocks",
        "EACH": "VALUE blocks", "MOVED": "VALUE blocks",
        "PAGE": "VALUE blocks",
        "LINES": "ITEM blocks", "STAT": "STAT lines",
    }  # fmt: skip
    source = (ROOT / "src/proto/list_verbs.h").read_text("utf-8")
    expected = {}
    for word, answer in re.findall(r"WORD\([A-Z]+, (\w+), [A-Z_]+, ([A-Z_]+)\)", source):
        assert answer in shape_of, f"{word}: which shape in docs/clients.md has {answer}?"
        expected.setdefault(shape_of[answer], set()).add(word)
    table = {row[0]: set(row[2].split()) for row in rows_of("Shapes of answers")}
    assert table == expected
