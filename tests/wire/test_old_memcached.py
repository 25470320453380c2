# SPDX-License-Identifier: BSD-3-Clause
"""memcacheds before 1.6.10: plain verbs pass through, meta commands are refused by name."""

import subprocess

import pytest

from harness import ROOT, TIMEOUT_S, wait_until

VERSIONS = pytest.mark.parametrize("version", ["1.4.15", "1.5.22", "1.6.9"])
NO_META = "SERVER_ERROR backend %s: memcached before 1.6.10 has no meta commands"


@VERSIONS
def test_plain_verbs_pass_through(version, start_old, start_daemon):
    old = start_old(version)
    daemon = start_daemon([old])
    with daemon.conn() as conn:
        assert conn.set("key", "value", flags=7) == b"STORED"
        assert conn.values("get key") == [(b"key", [7, 5], b"value")]
        (_, (flags, size, cas), value) = conn.values("gets key")[0]
        assert (flags, size, value) == (7, 5, b"value") and cas > 0
        assert conn.get("missing") is None
        assert conn.cmd("cas key 1 0 1 999999\r\nx") == b"EXISTS"
        assert conn.cmd(f"cas key 1 0 1 {cas}\r\nx") == b"STORED"
        assert conn.cmd("append key 0 0 1\r\ny") == b"STORED"
        assert conn.cmd("prepend key 0 0 1\r\nw") == b"STORED"
        assert conn.cmd("add key 0 0 1\r\ny") == b"NOT_STORED"
        assert conn.cmd("replace missing 0 0 1\r\ny") == b"NOT_STORED"
        assert conn.get("key") == b"wxy"
        assert conn.set("number", "7") == b"STORED"
        assert conn.cmd("incr number 5") == b"12"
        assert conn.cmd("decr number 2") == b"10"
        assert conn.cmd("touch key 100") == b"TOUCHED"
        if version == "1.4.15":
            assert conn.cmd("gat 100 key") == b"ERROR"
        else:
            assert conn.values("gat 100 key") == [(b"key", [1, 3], b"wxy")]
            assert conn.values("gats 100 key missing")[0][2] == b"wxy"
        keys = [f"key{n}" for n in range(100)]
        for key in keys[::2]:
            assert conn.set(key, key) == b"STORED"
        found = conn.values("get " + " ".join(keys))
        assert [key.decode() for key, _, _ in found] == keys[::2]
        assert [value for _, _, value in conn.values("get key0 key1 key2")] == [b"key0", b"key2"]
        assert conn.set("key", b"x" * 2000000).startswith(b"SERVER_ERROR object too large")
        assert conn.get("key") is None
        conn.send("set key 0 0 1 noreply\r\na\r\ndelete key0 noreply\r\n")
        assert conn.get("key") == b"a" and conn.get("key0") is None
        assert conn.cmd("flush_all") == b"OK"
        assert conn.get("key") is None
    assert old.meta == []
    daemon.wait_for_log(f"up, memcached {version}, .*, no meta commands")


@VERSIONS
@pytest.mark.parametrize("down_reads", ["error", "miss"])
def test_meta_commands_are_refused_by_name_and_not_sent(version, down_reads, start_old, start_daemon):
    old = start_old(version)
    config = {"pool main": {"down_reads": down_reads}}
    with start_daemon([old], config=config).conn() as conn:
        refused = (NO_META % old.address).encode()
        for request in ("mg key v", "mg key v q", "mg a2V5 b v", "ms key 5\r\nvalue", "md key", "ma key",
                        "me key", "ms key 5 q\r\nvalue"):
            assert conn.cmd(request) == refused, request
        assert conn.cmd("mn") == b"MN"  # the proxy's own
        assert conn.get("key") is None
        assert int(conn.stats()["backend_errors"]) == 0
    assert old.meta == []
    assert old.lines == [b"get key"]


def test_a_pool_of_old_and_new_servers(start_old, start_memcached, start_daemon):
    old, new = start_old("1.5.22"), start_memcached()
    with start_daemon([old, new]).conn() as conn:
        keys = [f"key{n}" for n in range(60)]
        for key in keys:
            assert conn.set(key, key) == b"STORED"
            assert conn.get(key) == key.encode()
        assert len(conn.values("gets " + " ".join(keys))) == 60
        answers = {conn.cmd(f"mg {key}") for key in keys}
        assert answers == {b"HD", (NO_META % old.address).encode()}
    assert old.meta == []


@pytest.mark.parametrize("versions", [("1.5.22", "1.6.45"), ("1.6.45", "1.5.22")])
def test_a_server_that_is_another_one_after_a_restart(versions, start_old, start_daemon):
    old = start_old(versions[0])
    with start_daemon([old], config={"proxy": {"threads": 1}}).conn() as conn:
        for version in versions * 3:
            assert conn.set("key", version) == b"STORED"
            assert conn.get("key") == version.encode()
            is_new = version == "1.6.45"
            assert conn.cmd("mg key") == (b"HD" if is_new else (NO_META % old.address).encode())
            old.version = versions[versions.index(version) - 1]
            old.cut()
    assert all(line in (b"mg key", b"mg key k v f") for line in old.meta)


@VERSIONS
def test_a_server_that_hung_is_used_again(version, start_old, start_daemon):
    """The probe is `mn`, which these versions do not know, or answer otherwise."""
    old = start_old(version)
    config = {"pool main": {"timeout_ms": 100, "eject_failures": 2, "retry_min_ms": 20, "retry_max_ms": 50}}
    daemon = start_daemon([old], config={"proxy": {"threads": 1}, **config})
    with daemon.conn() as conn:
        assert conn.set("key", "value") == b"STORED"
        old.hangs = True
        wait_until("it is ejected", lambda: b"timed out; probing" in conn.cmd("touch key 0"))
        old.hangs = False
        wait_until("it is used again", lambda: conn.cmd("touch key 0") == b"TOUCHED")
        assert conn.get("key") == b"value"
    daemon.wait_for_log("answers requests again")


@VERSIONS
@pytest.mark.parametrize("command", [
    ["lists", "--proxy", "PROXY"],
    ["convert", "--proxy", "PROXY", "--server", "OLD", "--verify-only", "kept:"],
    ["sweep", "OLD"],
])
def test_scripts_refuse_old_servers_by_name(version, command, start_old, start_daemon):
    """They ask by meta commands; the value behind an `ms` would be read as a command there."""
    old = start_old(version)
    daemon = start_daemon([old], config={"lists kept:": {"dialect": "simple"}})
    with daemon.conn() as conn:
        assert conn.cmd("ladd l a") == conn.cmd("ladd kept:l a") == b"STORED"
    places = {"PROXY": f"127.0.0.1:{daemon.port}", "OLD": old.address}
    name, *options = [places.get(word, word) for word in command]
    done = subprocess.run([ROOT / "scripts" / name, *options], capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    assert done.returncode != 0
    assert f"memcached 1.6.10 or newer is needed, it is {version}" in done.stderr
    assert "Traceback" not in done.stderr
    assert old.meta == []
