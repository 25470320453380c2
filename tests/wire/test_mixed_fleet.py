# SPDX-License-Identifier: BSD-3-Clause
"""Proxies of the last release beside this one, on the same servers."""

import fcntl
import io
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

from harness import ROOT, in_threads

# The last commit whose daemons read format 1 only.
LAST_RELEASE = "e4d301c2dc938ccbdfd619188245b99022a0c324"
# With logs this short each list is flipped and merged all the time.
SHORT = {"log_limit_bytes": 512, "log_hard_limit_bytes": 65536, "sublist_limit_bytes": 2048}
SHORT["max_item_bytes"] = 100
RUN = "aaaaaaaaaaaaa"
FOREIGN = b"SERVER_ERROR %s# holds no list that this version can read"


def git(*args):
    command = ["git", "-C", str(ROOT), *args]
    return subprocess.run(command, capture_output=True, check=True).stdout


def build(folder):
    """Unpacks the release there and builds its daemon, with little optimisation."""
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", LAST_RELEASE))) as archive:
        archive.extractall(folder)
    # Not the sanitizers and targets of the build that is being tested.
    settings = {"B", "CFLAGS", "SAN", "LTO", "WERROR", "ONLY", "DIRS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    env = {name: value for name, value in os.environ.items() if name not in settings}
    make = ["make", "-s", f"-j{len(os.sched_getaffinity(0))}", "CFLAGS=-O1", "LTO=", "all"]
    subprocess.run(make, cwd=folder, env=env, check=True)


@pytest.fixture(scope="module")
def last_release():
    """The path of the last release's daemon, built once and kept in build/."""
    if not shutil.which("git"):
        pytest.skip("there is no git, which has the last release")
    try:
        git("cat-file", "-e", LAST_RELEASE + "^{commit}")
    except subprocess.CalledProcessError:
        pytest.skip(f"the history does not go back to the last release, {LAST_RELEASE[:7]}")
    folder = pathlib.Path(ROOT) / "build" / f"release-{LAST_RELEASE[:7]}"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = folder / "build/mclistd"
        if not program.exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
    return str(program)


def fleet(start_daemon, servers, last_release, lists):
    """Connections to a proxy of the last release and to one of this."""
    old = start_daemon(servers, config={"lists": lists}, program=last_release)
    new = start_daemon(servers, config={"lists": lists})
    return old, new


def heads():
    sublist = b"^1 0000000002\n+1:a+1:b"
    run = f"{RUN}.1:{len(sublist)}:2"
    return {
        "times": f"^1 @2147483647 {run}\n+1:c".encode(),
        "absent": b"^1 ?0.0\n+1:c",
        "leased": f"^1 ?77.2147483647 -{RUN}.1\n".encode(),
    }, sublist


@pytest.mark.slow
def test_the_last_release_stops_at_new_heads(start_daemon, memcached, last_release):
    """It folds nothing away, and answers nothing short."""
    old, _ = fleet(start_daemon, [memcached], last_release, SHORT)
    new_heads, sublist = heads()
    with memcached.conn() as direct, old.conn() as conn:
        for key, head in new_heads.items():
            assert direct.set(f"{key}#{RUN}.0", sublist) == b"STORED"
            assert direct.set(key + "#", head) == b"STORED"
            error = FOREIGN % key.encode()
            requests = ["lget KEY", "lgetb KEY", "llen KEY", "lhas KEY a", "lrange KEY 0 -1", "lstat KEY"]
            requests += ["lcompact KEY", "laddx KEY x", "ldelx KEY a", "lcreate KEY x", "ladd KEY x", "ldel KEY a"]
            requests += ["ldrop KEY"]
            for request in requests:
                assert conn.cmd(request.replace("KEY", key)) == error, request
            assert direct.get(key + "#") == head
            assert direct.get(f"{key}#{RUN}.0") == sublist


@pytest.mark.slow
def test_blind_changes_of_the_last_release_are_kept_in_new_heads(start_daemon, memcached, last_release):
    """It knows the list from before, so it appends without a look, until it looks what to compact."""
    old, new = fleet(start_daemon, [memcached], last_release, SHORT)
    sublist = b"^1 0000000002\n+1:a+1:b"
    with memcached.conn() as direct, old.conn() as conn, new.conn() as now:
        assert conn.cmd("ladd k c") == b"STORED"
        head = f"^1 @2147483647 {RUN}.1:{len(sublist)}:2\n+1:c".encode()
        assert direct.set(f"k#{RUN}.0", sublist) == b"STORED"
        assert direct.set("k#", head) == b"STORED"
        assert conn.cmd("ldel k a") == b"DELETED"
        stored = 0
        while conn.cmd(f"ladd k item-{stored:03}") == b"STORED":
            stored += 1
        assert 20 < stored < 1000, "its log limit is reached"
        assert direct.get("k#").startswith(head), "it compacts nothing"
        assert conn.cmd("lget k") == FOREIGN % b"k"
        items = [b"b", b"c", *(b"item-%03d" % number for number in range(stored))]
        assert now.lget("k") == items
        assert now.cmd("lcompact k") == b"OK"
        assert now.lget("k") == items


@pytest.mark.slow
def test_both_work_on_the_same_lists(start_daemon, memcached, last_release):
    """With format = 1, the default, changes of both are in what both read, whoever has compacted."""
    old, new = fleet(start_daemon, [memcached], last_release, SHORT)

    def change(number):
        daemon = (old, new)[number % 2]
        with daemon.conn() as conn:
            for turn in range(150):
                assert conn.cmd(f"ladd all {number}-{turn}") == b"STORED"
                assert conn.cmd(f"laddx all exact-{number}-{turn}") == b"1"
                assert conn.cmd(f"ladd all gone-{number}-{turn}") == b"STORED"
                assert conn.cmd(f"ldelx all gone-{number}-{turn}") == b"1"
                if turn % 50 == 0:
                    assert len(conn.lget("all")) >= 2 * turn

    in_threads(6, change)
    names = ("%d-%d", "exact-%d-%d")
    want = sorted((name % (number, turn)).encode() for name in names for number in range(6) for turn in range(150))
    with old.conn() as conn, new.conn() as now:
        assert sorted(conn.lget("all")) == want
        assert now.lget("all") == conn.lget("all")
        assert now.cmd("lcompact all") == b"OK"
        assert sorted(conn.lget("all")) == want
        for daemon in (conn, now):
            stats = daemon.stats()
            assert int(stats["list_flips"]) > 0
            assert stats["list_damaged"] == "0"


@pytest.mark.slow
def test_the_way_back_to_format_1(start_daemon, memcached, last_release):
    """Lists that a proxy with format = 2 has written are made readable again for the last release by
    one with format = 1: ltouch and lcompact take the time of the sublists off, ldrop ends a lease."""
    lists = {**SHORT, "on_missing": "refuse"}
    old, back = fleet(start_daemon, [memcached], last_release, lists)
    new = start_daemon([memcached], config={"lists": {**lists, "format": 2}})
    items = [b"item-%03d" % number for number in range(200)]
    with new.conn() as conn, memcached.conn() as direct:
        assert conn.cmd("lcreate k") == b"STORED"
        assert conn.cmd("ltouch k 1000") == b"TOUCHED"
        for item in items:
            assert conn.cmd(f"ladd k {item.decode()}") == b"STORED"
        assert conn.cmd("lcompact k") == b"OK"
        assert direct.get("k#").startswith(b"^1 @")
        assert int(conn.cmd("llease leased 100")) > 0
        assert direct.get("leased#").startswith(b"^1 ?")
    with old.conn() as conn, back.conn() as now, memcached.conn() as direct:
        for key in ("k", "leased"):
            assert conn.cmd(f"llen {key}") == FOREIGN % key.encode()
        assert int(conn.stats()["list_foreign"]) >= 2
        assert now.lget("k") == items
        assert now.cmd("ltouch k 0") == b"TOUCHED"
        assert now.cmd("lcompact k") == b"OK"
        assert now.cmd("ltouch k 1000") == b"TOUCHED"
        assert b"@" not in direct.get("k#").split(b"\n")[0]
        assert conn.lget("k") == items
        assert conn.cmd("laddx k more") == b"1"
        assert now.lget("k") == [*items, b"more"]
        assert 0 < int(now.cmd("lttl k")) <= 1000
        assert now.cmd("ldrop leased") == b"NOT_FOUND"
        assert direct.get("leased#") is None
        assert conn.cmd("lcreate leased x") == b"STORED"
        assert conn.lget("leased") == [b"x"]
