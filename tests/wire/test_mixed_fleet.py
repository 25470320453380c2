# SPDX-License-Identifier: BSD-3-Clause
"""Proxies of earlier releases beside this one, on the same servers."""

import fcntl
import io
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

from harness import ROOT, in_threads

# The last commits whose daemons read format 1 only, formats 1 and 2 only, and formats 1 to 3 only.
READS_1 = "e4d301c2dc938ccbdfd619188245b99022a0c324"
READS_2 = "3e08de6402b2b0b11ac0c7b2265aba1bfab4cc2d"
READS_3 = "e8ac369b895b720f5131dc4cc9de47e4ac49e384"
# With logs this short each list is flipped and merged all the time.
SHORT = {"log_limit_bytes": 512, "log_hard_limit_bytes": 65536, "sublist_limit_bytes": 2048}
SHORT["max_item_bytes"] = 100
RUN = "aaaaaaaaaaaaa"
FOREIGN = b"SERVER_ERROR %s# holds no list that this version can read"


def git(*args):
    command = ["git", "-C", str(ROOT), *args]
    return subprocess.run(command, capture_output=True, check=True).stdout


def build(release, folder):
    """Unpacks the release there and builds its daemon, with little optimisation."""
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", release))) as archive:
        archive.extractall(folder)
    # Not the sanitizers and targets of the build that is being tested.
    settings = {"B", "CFLAGS", "SAN", "LTO", "WERROR", "ONLY", "DIRS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    env = {name: value for name, value in os.environ.items() if name not in settings}
    make = ["make", "-s", f"-j{len(os.sched_getaffinity(0))}", "CFLAGS=-O1", "LTO=", "all"]
    subprocess.run(make, cwd=folder, env=env, check=True)


def daemon_of(release):
    """The path of that release's daemon, built once and kept in build/."""
    if not shutil.which("git"):
        pytest.skip("there is no git, which has the earlier releases")
    try:
        git("cat-file", "-e", release + "^{commit}")
    except subprocess.CalledProcessError:
        pytest.skip(f"the history does not go back to release {release[:7]}")
    folder = pathlib.Path(ROOT) / "build" / f"release-{release[:7]}"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = folder / "build/mclistd"
        if not program.exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(release, folder)
    return str(program)


@pytest.fixture(scope="module")
def reads_1():
    return daemon_of(READS_1)


@pytest.fixture(scope="module")
def reads_2():
    return daemon_of(READS_2)


@pytest.fixture(scope="module")
def reads_3():
    return daemon_of(READS_3)


def fleet(start_daemon, servers, release, lists):
    """A proxy of that release, and one of this."""
    old = start_daemon(servers, config={"lists": lists}, program=release)
    new = start_daemon(servers, config={"lists": lists})
    return old, new


SUBLIST = b"^1 0000000002\n+1:a+1:b"
SUBLIST_TIMED = b"^1 0000000002\n+1:a@12:2147483647:b"
RUN_FIELD = f"{RUN}.1:{len(SUBLIST)}:2"

# What format 2 has added, and what format 3 has: head, and sublist of its run.
HEADS_OF_2 = {
    "times": (f"^1 @2147483647 {RUN_FIELD}\n+1:c".encode(), SUBLIST),
    "absent": (b"^1 ?0.0\n+1:c", None),
    "leased": (f"^1 ?77.2147483647 -{RUN}.1\n".encode(), None),
}
HEADS_OF_3 = {
    "timed": (b"^1\n+1:c@12:2147483647:d", None),
    "timed-on-runs": (f"^1 {RUN_FIELD}\n@12:2147483647:d".encode(), SUBLIST),
    "timed-runs": (f"^1 %2147483647.0 {RUN}.1:{len(SUBLIST_TIMED)}:2\n+1:c".encode(), SUBLIST_TIMED),
    "drops": (b"^1 #2.drop\n+1:a+1:b+1:c", None),
    "refuses": (b"^1 #3.refuse\n+1:a+1:b+1:c+1:d", None),
}


TX = "ttttttttttttt"


def intent(key, other, first, item):
    """An intent of a change of list key and another one, which stands first, or second."""
    keys = f"{other} {key}" if first else f"{key} {other}"
    text = f"{TX}.1795229331 2 {keys} +{len(item)}:{item}"
    return f"?{len(text)}:{text}".encode()


def decision(letter):
    return f"&{NAME_LEN}:{TX} {letter}".encode()


NAME_LEN = len(TX) + 2


def heads_of_4(key):
    """What format 4 has added, in the log of list key. Nothing is stored under the other key."""
    other, own = intent(key, "gone", True, "b"), intent(key, "gone", False, "b")
    return {
        "undecided": (b"^1\n+1:c" + other, None),
        "undecided-primary": (b"^1\n+1:c" + own, None),
        "committed": (b"^1\n" + other + b"+1:c" + decision("c"), None),
        "committed-on-runs": (f"^1 {RUN_FIELD}\n".encode() + intent(key, "gone", True, "d") + decision("c"), SUBLIST),
        "aborted": (b"^1\n+1:c" + other + decision("a"), None),
        "primary": (b"^1\n" + own + decision("c") + b"+1:c", None),
        "late-decision": (b"^1\n+1:c" + decision("c"), None),
    }


HEADS_OF_4 = {name: heads_of_4(name)[name] for name in heads_of_4("")}


def check_it_stops(direct, conn, heads):
    requests = ["lget KEY", "lgetb KEY", "llen KEY", "lhas KEY a", "lrange KEY 0 -1", "lstat KEY"]
    requests += ["lcompact KEY", "laddx KEY x", "ldelx KEY a", "lcreate KEY x", "ladd KEY x", "ldel KEY a"]
    requests += ["ldrop KEY"]
    for key, (head, sublist) in heads.items():
        if sublist is not None:
            assert direct.set(f"{key}#{RUN}.0", sublist) == b"STORED"
        assert direct.set(key + "#", head) == b"STORED"
        for request in requests:
            assert conn.cmd(request.replace("KEY", key)) == FOREIGN % key.encode(), request
        assert direct.get(key + "#") == head
        assert direct.get(f"{key}#{RUN}.0") == sublist


@pytest.mark.slow
def test_a_release_of_format_1_stops_at_heads_of_format_2(start_daemon, memcached, reads_1):
    """It folds nothing away, and answers nothing short."""
    old, _ = fleet(start_daemon, [memcached], reads_1, SHORT)
    with memcached.conn() as direct, old.conn() as conn:
        check_it_stops(direct, conn, HEADS_OF_2)


@pytest.mark.slow
@pytest.mark.parametrize("on_damaged", ["error", "miss"])
def test_a_release_of_format_2_stops_at_heads_of_format_3(start_daemon, memcached, reads_2, on_damaged):
    """Nor does it take them for damaged lists, which on_damaged = miss drops."""
    old = start_daemon([memcached], config={"lists": {**SHORT, "on_damaged": on_damaged}}, program=reads_2)
    with memcached.conn() as direct, old.conn() as conn:
        check_it_stops(direct, conn, HEADS_OF_3)
        assert int(conn.stats()["list_foreign"]) > 0
        assert conn.stats()["list_damaged"] == "0"


@pytest.mark.slow
@pytest.mark.parametrize("on_damaged", ["error", "miss"])
def test_a_release_of_format_3_stops_at_heads_of_format_4(start_daemon, memcached, reads_3, on_damaged):
    """It folds no intent away, nor a decision."""
    old = start_daemon([memcached], config={"lists": {**SHORT, "on_damaged": on_damaged}}, program=reads_3)
    with memcached.conn() as direct, old.conn() as conn:
        check_it_stops(direct, conn, HEADS_OF_4)
        assert int(conn.stats()["list_foreign"]) > 0
        assert conn.stats()["list_damaged"] == "0"


# Which of the items are left without a, where they are not b and c.
LEFT = {"timed": [b"c", b"d"], "timed-on-runs": [b"b", b"d"], "committed-on-runs": [b"b", b"d"]}
LEFT.update({name: [b"c"] for name in ("undecided", "undecided-primary", "aborted", "late-decision")})
# What the cap of a list leaves of one that has become too long.
CAPPED = {"drops": lambda items: items[-2:], "refuses": lambda items: items[:3]}
BLIND = [(READS_1, "times"), *((READS_2, name) for name in HEADS_OF_3), *((READS_3, name) for name in HEADS_OF_4)]


@pytest.mark.slow
@pytest.mark.parametrize("release, name", BLIND, ids=[name for _, name in BLIND])
def test_blind_changes_of_an_earlier_release_are_kept(start_daemon, memcached, release, name):
    """It knows the list from before, so it appends without a look, until it looks what to compact."""
    old, new = fleet(start_daemon, [memcached], daemon_of(release), SHORT)
    head, sublist = {**HEADS_OF_2, **HEADS_OF_3, **heads_of_4("k")}[name]
    with memcached.conn() as direct, old.conn() as conn, new.conn() as now:
        assert conn.cmd("ladd k c") == b"STORED"
        if sublist is not None:
            assert direct.set(f"k#{RUN}.0", sublist) == b"STORED"
        assert direct.set("k#", head) == b"STORED"
        assert conn.cmd("ldel k a") == b"DELETED"
        stored = 0
        while stored < 1000 and conn.cmd(f"ladd k item-{stored:03}") == b"STORED":
            stored += 1
        assert 20 < stored < 1000, "its log limit is reached"
        assert direct.get("k#").startswith(head), "it compacts nothing"
        assert conn.cmd("lget k") == FOREIGN % b"k"
        items = [*LEFT.get(name, [b"b", b"c"]), *(b"item-%03d" % number for number in range(stored))]
        items = CAPPED.get(name, lambda items: items)(items)
        assert now.lget("k") == items
        assert now.cmd("lcompact k") == b"OK"
        assert now.lget("k") == items


def exactly(conn, request):
    """The answer to an exact change. Where others were faster each time, nothing was done."""
    while (answer := conn.cmd(request)).startswith(b"SERVER_ERROR busy"):
        pass
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("release", [READS_1, READS_2, READS_3])
def test_both_work_on_the_same_lists(start_daemon, memcached, release):
    """With format = 1, the default, changes of both are in what both read, whoever has compacted."""
    old, new = fleet(start_daemon, [memcached], daemon_of(release), SHORT)

    def change(number):
        daemon = (old, new)[number % 2]
        with daemon.conn() as conn:
            for turn in range(150):
                assert conn.cmd(f"ladd all {number}-{turn}") == b"STORED"
                assert exactly(conn, f"laddx all exact-{number}-{turn}") == b"1"
                assert conn.cmd(f"ladd all gone-{number}-{turn}") == b"STORED"
                assert exactly(conn, f"ldelx all gone-{number}-{turn}") == b"1"
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
def test_the_way_back_to_format_1(start_daemon, memcached, reads_1):
    """Lists that a proxy with format = 2 has written are made readable again for the last release by
    one with format = 1: ltouch and lcompact take the time of the sublists off, ldrop ends a lease."""
    lists = {**SHORT, "on_missing": "refuse"}
    old, back = fleet(start_daemon, [memcached], reads_1, lists)
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


@pytest.mark.slow
def test_the_way_back_to_format_2(start_daemon, memcached, reads_2):
    """Items with a time that a proxy with format = 3 has written are deleted or made permanent by one
    with format = 2; lcompact takes what is left of them out of the storage."""
    old, back = fleet(start_daemon, [memcached], reads_2, {**SHORT, "format": 2})
    new = start_daemon([memcached], config={"lists": {**SHORT, "format": 3}})
    items = [b"item-%03d" % number for number in range(200)]
    with new.conn() as conn, memcached.conn() as direct:
        for item in items:
            assert conn.cmd(f"ladd k {item.decode()}") == b"STORED"
            assert conn.cmd(f"laddt k 1000 timed-{item.decode()}") == b"STORED"
        assert conn.cmd("lcompact k") == b"OK"
        assert b" %" in direct.get("k#").split(b"\n")[0]
        assert conn.cmd("laddt log 1000 a b") == b"STORED"
    with old.conn() as conn, back.conn() as now, memcached.conn() as direct:
        for key in ("k", "log"):
            assert conn.cmd(f"llen {key}") == FOREIGN % key.encode()
        assert now.cmd("laddt k 1000 x").startswith(b"CLIENT_ERROR laddt needs format = 3")
        kept, gone = items[:100], items[100:]
        for item in kept:
            assert now.cmd(f"ladd k timed-{item.decode()}") == b"STORED"
        for item in gone:
            assert now.cmd(f"ldel k timed-{item.decode()}") == b"DELETED"
        assert now.cmd("ladd log a b") == b"STORED"
        for key in ("k", "log"):
            assert now.cmd(f"lcompact {key}") == b"OK"
        assert b"%" not in direct.get("k#").split(b"\n")[0]
        wanted = [*items, *(b"timed-" + item for item in kept)]
        assert now.lget("k") == conn.lget("k") == wanted
        assert now.lget("log") == conn.lget("log") == [b"a", b"b"]
        assert conn.cmd("laddx k more") == b"1"
        assert now.lget("k") == [*wanted, b"more"]
        assert now.stats()["list_damaged"] == "0"


@pytest.mark.slow
def test_the_way_back_to_format_3(start_daemon, memcached, reads_3):
    """A proxy of this release settles what intents it meets, whatever its format says, and lcompact
    finishes the change of a primary: behind it the last release reads the lists again."""
    old, back = fleet(start_daemon, [memcached], reads_3, SHORT)
    with old.conn() as conn, back.conn() as now, memcached.conn() as direct:
        for key, (head, sublist) in HEADS_OF_4.items():
            if sublist is not None:
                assert direct.set(f"{key}#{RUN}.0", sublist) == b"STORED"
            assert direct.set(key + "#", head) == b"STORED"
            assert conn.cmd(f"llen {key}") == FOREIGN % key.encode()
            items = LEFT.get(key, [b"b", b"c"])
            items = [b"a", *items] if sublist is not None else items
            assert now.lget(key) == items
            assert now.cmd(f"lcompact {key}") == b"OK"
            assert b"?" not in direct.get(key + "#")
            assert conn.lget(key) == now.lget(key) == items
            assert conn.cmd(f"laddx {key} more") == b"1"
            assert now.lget(key) == [*items, b"more"]


@pytest.mark.slow
def test_the_way_back_from_caps(start_daemon, memcached, reads_2):
    """lcompact by a proxy without max_items takes the cap of a list away, with what it has dropped."""
    old, back = fleet(start_daemon, [memcached], reads_2, SHORT)
    new = start_daemon([memcached], config={"lists": {**SHORT, "format": 3, "max_items": 3}})
    with new.conn() as conn, memcached.conn() as direct:
        assert conn.cmd("ladd k a b c d") == b"STORED"
        assert conn.lget("k") == [b"b", b"c", b"d"]
        assert direct.get("k#").startswith(b"^1 #3.drop")
    with old.conn() as conn, back.conn() as now, memcached.conn() as direct:
        assert conn.cmd("llen k") == FOREIGN % b"k"
        assert now.lget("k") == [b"b", b"c", b"d"]
        assert now.cmd("lcompact k") == b"OK"
        assert b"#" not in direct.get("k#")
        assert now.lget("k") == conn.lget("k") == [b"b", b"c", b"d"]
        assert conn.cmd("laddx k e") == b"1"
        assert now.lget("k") == [b"b", b"c", b"d", b"e"]
