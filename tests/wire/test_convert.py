# SPDX-License-Identifier: BSD-3-Clause
"""scripts/convert and lconvert: lists of every dialect become native ones, with the same items.

MCLISTD_LARGE=200000 makes the large lists that large."""

import os
import re
import subprocess
import sys
import time

import pytest

from harness import ROOT, TIMEOUT_S, free_port, wait_until
from test_convert_support import (
    DIALECTS,
    ONE_ITEM,
    Fake,
    Lister,
    as_bytes,
    convert,
    dump,
    items_of,
    names_stored,
    old_names,
    sections,
    shown,
    store,
)

LARGE = int(os.environ.get("MCLISTD_LARGE", "20000"))
KEY = "topic-X"
EVERYWHERE = pytest.mark.parametrize("dialect", DIALECTS)


@EVERYWHERE
@pytest.mark.slow
def test_large_list_becomes_a_native_one(start_memcached, start_daemon, dialect):
    memcached = start_memcached("-I", "32m", memory_mb=256)
    more = {"capacity": LARGE} if dialect == "ring" else {}
    daemon = start_daemon([memcached], config=sections(dialect, **more))
    native = start_daemon([memcached], config=sections("native"))
    items = items_of(LARGE)
    store(memcached, dialect, KEY, items)
    with daemon.conn() as conn:
        assert conn.lget(KEY) == shown(dialect, items)
    start = time.monotonic()
    done = convert([daemon], keys=[KEY])
    print(f"{dialect}: {LARGE} items, {time.monotonic() - start:.2f} s: {done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 hold exactly" in done.stdout
    assert "dialect = native" in done.stdout
    with native.conn() as conn:
        assert conn.lget(KEY) == as_bytes(items)
    assert old_names(memcached) == []


@EVERYWHERE
def test_lconvert_says_how_many_items_there_are(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    store(memcached, dialect, KEY, ["apple", "pear", "plum"])
    with daemon.conn() as conn:
        assert conn.cmd(f"lconvert {KEY}") == b"3"
        assert conn.cmd(f"lconvert {KEY}") == b"3"
        assert conn.lget(KEY) == [b"apple", b"pear", b"plum"]
        assert conn.cmd("lconvert topic-missing") == b"0"
        assert conn.lget("topic-missing") == []
    assert old_names(memcached) == []
    assert names_stored(memcached) == [f"{KEY}#"]


@EVERYWHERE
def test_lconvert_needs_the_migration(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config=sections(dialect, migrate="no"))
    with daemon.conn() as conn:
        answer = conn.cmd(f"lconvert {KEY}")
        assert answer == b"CLIENT_ERROR lconvert: this prefix has no migrate = native"


@EVERYWHERE
def test_new_lists_are_native(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    with daemon.conn() as conn:
        assert conn.lget(KEY) == []
        assert conn.cmd(f"ladd {KEY} apple") == b"STORED"
        assert conn.cmd(f"ladd {KEY} pear") == b"STORED"
        assert conn.lget(KEY) == [b"apple", b"pear"]
    assert names_stored(memcached) == [f"{KEY}#"]


@pytest.mark.parametrize("dialect", [*ONE_ITEM, "sublists"])
def test_old_and_native_list_of_one_key(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    native = start_daemon([memcached], config=sections("native"))
    store(memcached, dialect, KEY, ["apple"])
    with native.conn() as conn:
        assert conn.cmd(f"ladd {KEY} pear") == b"STORED"
    with daemon.conn() as conn:
        error = b"SERVER_ERROR both a native list and an old one are stored: delete one of them"
        assert conn.cmd(f"lconvert {KEY}") == error
        assert conn.lget(KEY) == [b"apple"]
    done = convert([daemon], keys=[KEY])
    assert done.returncode == 1
    assert f"failed: {KEY}: {error.decode()}" in done.stdout


def test_lconvert_refuses_a_sublist_of_another_list(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("sublists"))
    store(memcached, "sublists", KEY, ["1", "2"])
    with daemon.conn() as conn:
        answer = conn.cmd(f"lconvert {KEY}.0")
        assert answer.startswith(b"SERVER_ERROR another list names this item as one of its sublists")
        assert conn.lget(KEY) == [b"1", b"2"]
        assert conn.cmd(f"lconvert {KEY}") == b"2"


@pytest.mark.parametrize("dialect", ONE_ITEM)
def test_expiry_is_kept(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    store(memcached, dialect, KEY, ["apple", "pear"], exptime=1000)
    with daemon.conn() as conn:
        assert conn.cmd(f"lconvert {KEY}") == b"2"
    with memcached.conn() as conn:
        word, ttl = conn.cmd(f"mg {KEY}# t").split()
        assert word == b"HD"
        assert 980 <= int(ttl[1:]) <= 1000


# --- the script ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["signed", "flip"])
def test_script_knows_prefixes_behind_what_clients_put_before(start_daemon, memcached, tmp_path,
                                                              dialect):
    anywhere = {"lists *topic-": {"dialect": dialect, "migrate": "native"},
                "lists *other-": {"dialect": dialect}, "lists app:old": {}}
    daemon = start_daemon([memcached], config=anywhere)
    keys = ["app:1:topic-1", "topic-2"]
    for key in (*keys, "app:other-1", "app:old:topic-1"):
        store(memcached, dialect, key, ["apple", "pear"])
    options = [f"--server={memcached.address}", "--state", str(tmp_path / "state")]
    done = convert([daemon], *options, prefix="*topic-")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 lists converted, 4 items" in done.stdout
    with daemon.conn() as conn:
        assert conn.lget("app:1:topic-1") == conn.lget("app:other-1") == [b"apple", b"pear"]
    assert not [name for name in old_names(memcached) if name in keys]
    assert "[lists *topic-]" in done.stdout
    done = convert([daemon], *options, prefix="*pic-")
    assert done.returncode == 2 and "has no [lists *pic-]" in done.stderr


@EVERYWHERE
def test_script_finds_the_lists(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    keys = [f"topic-{n}" for n in range(5)]
    for key in keys:
        store(memcached, dialect, key, ["apple", "pear"])
    store(memcached, dialect, "other-1", ["apple"])
    with daemon.conn() as conn:
        conn.cmd("ladd topic-native apple")
    server = f"--server={memcached.address}"
    done = convert([daemon], server, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert re.findall("would convert (.*)", done.stdout) == keys
    assert len(old_names(memcached)) > len(keys)
    done = convert([daemon], server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"5 of 5 lists converted, {10} items" in done.stdout
    assert [name for name in old_names(memcached) if "other-1" not in name] == []
    other = start_daemon([memcached], config=sections(dialect))
    done = convert([daemon], "--allow-empty", keys=[*keys, "topic-missing"])
    assert "5 native lists\n1 keys given under which there is nothing" in done.stdout
    done = convert([daemon, other], "--verify-only", keys=keys)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 lists read" in done.stdout


def test_script_looks_again_for_what_memcached_left_out(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("signed"))
    keys = [f"topic-{n}" for n in range(5)]
    for key in keys:
        store(memcached, "signed", key, ["apple", "pear"])
    with Lister(memcached, lambda name, number: name == "topic-2" and number < 2) as lister:
        done = convert([daemon], f"--server={lister.address}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 lists converted, 10 items" in done.stdout
    assert old_names(memcached) == []


def test_script_says_which_memcached_may_leave_out_items(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("signed"))
    store(memcached, "signed", KEY, ["apple"])
    with Lister(memcached, lambda name, number: False, knows_hash=False) as lister:
        done = convert([daemon], f"--server={lister.address}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"memcached {lister.address} does not know" in done.stderr
    assert "1 of 1 lists converted" in done.stdout


@pytest.mark.thorough
def test_script_takes_keys_percent_encoded(start_daemon, memcached, tmp_path):
    """As scripts/lists does, so that one file does for both. Bytes above 127 may stand as they are."""
    daemon = start_daemon([memcached], config=sections("simple"))
    keys = [b"topic-%41", b"topic-100%", b"topic-\x80\xff", "topic-ü".encode()]
    with memcached.conn() as conn:
        for key in keys:
            assert conn.cmd(b"set %s 0 0 6" % key, b"apple,") == b"STORED"
    file = tmp_path / "keys"
    file.write_bytes(b"topic-%2541\ntopic-100%25\r\n\ntopic-\x80\xff\ntopic-%C3%bc\n")
    done = convert([daemon], f"--keys={file}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 hold exactly" in done.stdout
    with daemon.conn() as conn:
        for key in keys:
            assert conn.cmd(b"llen " + key) == b"1"
            assert conn.cmd(b"lconvert " + key) == b"1"
    export = [sys.executable, ROOT / "scripts/lists", f"--proxy=127.0.0.1:{daemon.port}",
              f"--export={tmp_path / 'export'}", f"--keys={file}"]
    done = subprocess.run(export, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "export").read_text().count("\nlist ") == 4
    file.write_bytes(b"topic-%41\ntopic-100%\n")
    fault = f"{file}:2: topic-100%: expected keys percent-encoded, with %25 for each %\n"
    done = convert([daemon], f"--keys={file}")
    assert (done.returncode, done.stderr) == (2, f"convert: {fault}")
    done = subprocess.run([*export[:-2], f"--export={tmp_path / 'other'}", export[-1]],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"lists: {fault}")


@pytest.mark.parametrize("late", ["lgets 0", "lgets 1", "lgets 2", "lconvert 0"])
def test_script_asks_again_who_has_waited_too_long(memcached, late):
    """A large list takes longer than deadline_ms, and what waits for it is answered so."""

    def answer(line, number):
        verb = line.split()[0]
        if f"{verb} {number}" == late:
            return "SERVER_ERROR deadline over, nothing done: earlier requests took too long\r\n"
        if verb == "stats":
            pairs = [("dialect", "signed"), ("migrate", "native"), ("delimiter", ",")]
            return "".join(f"STAT lists:topic-:{k} {v}\r\n" for k, v in pairs) + "END\r\n"
        if verb == "lconvert":
            with memcached.conn() as conn:
                conn.cmd(f"delete {KEY}")
            return "2\r\n"
        return f"VALUE {KEY} 0 3 {number}\r\na,b\r\nEND\r\n"

    store(memcached, "signed", KEY, ["a", "b"])
    with Fake(answer) as proxy:
        done = convert([proxy], f"--server={memcached.address}", "--keys=-", keys=[KEY])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 hold exactly" in done.stdout


@pytest.mark.thorough
def test_script_refuses_a_proxy_that_does_not_migrate(start_daemon, memcached):
    good = start_daemon([memcached], config=sections("simple"))
    store(memcached, "simple", KEY, ["apple"])
    for config in (sections("simple", migrate="no"), sections("native"), sections("signed"), {}):
        bad = start_daemon([memcached], config=config)
        done = convert([good, bad], keys=[KEY])
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith(f"convert: 127.0.0.1:{bad.port}: ")
        assert done.stderr.count("\n") == 1
    assert names_stored(memcached) == [KEY]


def test_script_does_not_wait_for_keys_on_a_terminal(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("simple"))
    master, terminal = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, ROOT / "scripts/convert", "topic-", f"--proxy=127.0.0.1:{daemon.port}"],
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    finally:
        os.close(master)
        os.close(terminal)
    assert done.returncode == 2
    assert "expected --server for each memcached of the pool, or --keys FILE" in done.stderr


def test_script_names_the_ways_to_give_keys_when_it_has_none(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("simple"))
    store(memcached, "simple", KEY, ["apple"])
    done = convert([daemon], "--dry-run", keys=[])
    assert done.returncode == 2
    assert "expected --server for each memcached of the pool, or --keys FILE" in done.stderr


def test_script_refuses_a_proxy_that_is_not_there(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("simple"))
    done = convert([daemon], f"--proxy=127.0.0.1:{free_port()}", keys=[KEY])
    assert done.returncode == 2
    assert "refused" in done.stderr and done.stderr.count("\n") == 1


def test_script_refuses_keys_of_other_prefixes(start_daemon, memcached):
    config = {**sections("simple"), "lists topic-own-": {"dialect": "native"}}
    daemon = start_daemon([memcached], config=config)
    for key in ("other-1", "topic-own-1", "topic- 1"):
        done = convert([daemon], keys=[key])
        assert done.returncode == 2, done.stdout
        assert key in done.stderr


@pytest.mark.slow
def test_script_stops_when_a_proxy_goes(start_daemon, memcached):
    daemons = [start_daemon([memcached], config=sections("simple")) for _ in range(2)]
    keys = [f"topic-{n}" for n in range(500)]
    for key in keys:
        store(memcached, "simple", key, ["apple"])
    script = script_process(daemons, "--rate=20")
    script.stdin.write("".join(f"{key}\n" for key in keys))
    script.stdin.close()
    wait_until("some are converted", lambda: any("#" in name for name in dump(memcached, "all")))
    daemons[1].kill()
    assert script.wait(30) == 2
    assert f"127.0.0.1:{daemons[1].port}" in script.stderr.read()
    assert old_names(memcached)


def script_process(daemons, *args):
    proxies = [f"--proxy=127.0.0.1:{daemon.port}" for daemon in daemons]
    return subprocess.Popen(
        [sys.executable, str(ROOT / "scripts/convert"), "topic-", *proxies, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_script_goes_on_where_it_was_killed(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("signed"))
    keys = [f"topic-{n}" for n in range(200)]
    state = tmp_path / "done.txt"
    for key in keys:
        store(memcached, "signed", key, ["apple", "pear"])
    script = script_process([daemon], "--rate=100", f"--state={state}")
    script.stdin.write("".join(f"{key}\n" for key in keys))
    script.stdin.close()
    wait_until("some are done", lambda: state.exists() and state.read_text().count("\n") > 20)
    script.kill()
    script.wait()
    with open(state, "a", encoding="ascii") as file:
        file.write("topic-1")  # as if it was cut off
    left = len(old_names(memcached))  # some may have moved without being noted
    done = convert([daemon], f"--state={state}", keys=keys)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{left} of {left} lists converted" in done.stdout
    assert old_names(memcached) == []
    assert sorted(state.read_text().split()[4:]) == sorted(keys)
    done = convert([daemon], f"--state={state}", keys=keys)
    assert "0 of 0 lists converted" in done.stdout
    assert state.read_text().split("\n").count("topic-1") == 1  # not what was cut off
    state.write_text("something else\n")
    assert convert([daemon], f"--state={state}", keys=keys).returncode == 2
