# SPDX-License-Identifier: BSD-3-Clause
"""scripts/lists --export and --import: lists come into another pool as they were."""

import fcntl
import io
import random
import re
import subprocess
import sys
import time
import urllib.parse

import pytest

from harness import ROOT, wait_until

pytestmark = pytest.mark.release

sys.path.insert(0, str(ROOT / "scripts"))

from mclistd_lists.backup_file import Export  # noqa: E402  (the path comes first)

BYTES = bytes(range(256))
LEAST = {"lists": {}}


def command(daemon, *args):
    return [sys.executable, str(ROOT / "scripts/lists"), f"--proxy=127.0.0.1:{daemon.port}", *map(str, args)]


def lists(daemon, *args, keys=None):
    more = [] if keys is None else ["--keys=-"]
    return subprocess.run(
        command(daemon, *args, *more),
        input=b"" if keys is None else b"\n".join(keys),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )


def put(conn, key, items, *more):
    block = b"".join(b"ITEM k %d\r\n%s\r\n" % (len(item), item) for item in items)
    words = "".join(f" {word}" for word in more)
    return conn.cmd(f"lputb {key} {len(block)}{words}", block)


def export(daemon, file, keys):
    done = lists(daemon, f"--export={file}", keys=keys)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def bring(daemon, file, *more, code=0):
    done = lists(daemon, f"--import={file}", *more)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def pair(start_memcached, start_daemon):
    """Two proxies before two pools."""

    def start(config=None, other=None):
        first = start_daemon([start_memcached()], config=config or LEAST)
        return first, start_daemon([start_memcached(), start_memcached()], config=other or config or LEAST)

    return start


def test_new_fills_only_what_is_missing(conn):
    assert put(conn, "k", [b"b", b"a"], 100, "new") == b"STORED"
    assert put(conn, "k", [b"x"], 0, "new") == b"NOT_STORED"
    assert put(conn, "k", [b"x"], "new") == b"NOT_STORED"
    assert conn.lgetb("k") == [b"b", b"a"]
    assert conn.cmd("lttl k") in (b"100", b"99", b"98")
    assert conn.cmd("lcopy k l new") == b"2"
    assert conn.cmd("ladd m y") == b"STORED"
    assert conn.cmd("lcopy m l 50 new") == b"NOT_STORED"
    assert conn.lgetb("l") == [b"b", b"a"]
    assert conn.cmd("lcopy m l 50") == b"1"
    assert conn.lgetb("l") == [b"y"]
    assert conn.cmd("lttl l") in (b"50", b"49", b"48")
    assert conn.cmd("ldrop l") == b"DELETED"
    assert conn.cmd("lcopy m l 50 new") == b"1"
    same = b"CLIENT_ERROR lcopy: SRC and DST are the same list: that does nothing but count, and takes neither EXPTIME nor new"
    assert conn.cmd("lcopy m m new") == same
    assert conn.cmd("lput k 1 0 5 new", b"a").startswith(b"CLIENT_ERROR usage")


@pytest.mark.parametrize("delimiter", [",", "none"])
def test_round_trip(pair, tmp_path, delimiter):
    config = {"lists": {"delimiter": delimiter}}
    first, second = pair(config)
    rng = random.Random(7)
    expected = {}
    with first.conn() as conn:
        for n in range(60):
            items = list(dict.fromkeys(
                bytes(rng.choice(BYTES) for _ in range(rng.randint(1, 40))).replace(b",", b";")
                for _ in range(rng.choice([1, 5, 300]))
            ))
            key = f"l{n}"
            expected[key] = items
            assert put(conn, key, items, *([1000] if n % 3 == 0 else [])) == b"STORED"
    found = tmp_path / "found.txt"
    done = lists(first, f"--export={found}")
    assert done.returncode == 0, done.stderr
    assert b"at least 60 lists exported" in done.stdout
    file = tmp_path / "lists.txt"
    keys = [key.encode() for key in expected] + [b"none%20here"[:4]]
    assert b"1 are not there" in export(first, file, keys)
    assert b"60 lists: 60 written" in bring(second, file)
    with second.conn() as conn:
        for n, (key, items) in enumerate(expected.items()):
            assert conn.lgetb(key) == items
            left = int(conn.cmd(f"lttl {key}"))
            assert left == -1 if n % 3 else 900 < left <= 1001
    assert not (tmp_path / "lists.txt.done").exists()
    assert b"60 were there already" in bring(second, file)


@pytest.mark.thorough
def test_what_is_there_stays_or_is_replaced(pair, tmp_path):
    first, second = pair()
    with first.conn() as conn, second.conn() as other:
        put(conn, "a", [b"1", b"2"])
        put(conn, "b", [b"3"])
        put(other, "a", [b"other"])
        file = tmp_path / "lists.txt"
        export(first, file, [b"a", b"b"])
        said = bring(second, file, code=1)
        assert b"failed: a: SERVER_ERROR" not in said
        assert b"failed: a: another list is there, of 1 items (--replace)" in said
        assert other.lget("a") == [b"other"] and other.lget("b") == [b"3"]
        assert b"1 written, 0 were there already, 1 by an earlier run" in bring(second, file, "--replace")
        assert other.lget("a") == [b"1", b"2"]


def test_empty_lists_are_lists(pair, tmp_path):
    first, second = pair({"lists": {"on_missing": "refuse"}})
    with first.conn() as conn, second.conn() as other:
        assert conn.cmd("lset empty") == b"STORED"
        assert put(conn, "full", [b"a"]) == b"STORED"
        file = tmp_path / "lists.txt"
        assert b"1 are not there" in export(first, file, [b"empty", b"full", b"missing"])
        bring(second, file)
        assert other.values("lget empty") == [(b"empty", [0, 0], b"")]
        assert other.lget("full") == [b"a"]
        assert other.values("lget missing") == []


@pytest.mark.thorough
@pytest.mark.parametrize("on_missing", ["create", "refuse"])
def test_large_and_timed_lists(pair, tmp_path, on_missing):
    small = {"proxy": {"max_value_bytes": "4k"}, "lists": {"on_missing": on_missing}}
    first, second = pair({"lists": {"on_missing": on_missing}}, small)
    large = [b"item %d" % n if n % 5 == 0 else b"item-%d" % n for n in range(20000)]
    with first.conn() as conn, second.conn() as other:
        put(conn, "large", large, 5000)
        conn.cmd("lset timed a")
        for item, seconds in ((b"x y", 1000), (b"b", 2000), (b"\r\n", 3000)):
            assert conn.cmd(f"laddtb timed {seconds} {len(item)}", item) == b"STORED"
        assert conn.cmd("ladd timed z") == b"STORED"
        file = tmp_path / "lists.txt"
        export(first, file, [b"large", b"timed"])
        assert b"2 written" in bring(second, file)
        assert other.lgetb("large") == large
        assert 4900 < int(other.cmd("lttl large")) <= 5001
        assert other.lgetb("timed") == [b"a", b"x y", b"b", b"\r\n", b"z"]
        for item, seconds in ((b"x y", 1000), (b"b", 2000), (b"\r\n", 3000)):
            assert seconds - 100 < int(other.cmd(f"lttlb timed {len(item)}", item)) <= seconds + 1
        assert other.cmd("lttl timed z") == b"-1"
        assert b"2 were there already" in bring(second, file)
        assert b"2 written" in bring(second, file, "--replace")
        assert other.cmd("ladd large more") == b"STORED"
        assert b"failed: large: another list is there" in bring(second, file, code=1)
        assert lists(second).stdout.count(b"import.") == 0


def test_a_log_that_takes_little_at_once(pair, tmp_path):
    """The scratch list is filled by lines that are as short as its prefix wants them."""
    small = {"log_limit_bytes": 256, "log_hard_limit_bytes": 512, "max_item_bytes": 100}
    first, second = pair(other={"lists": small})
    items = [b"item-%d" % n for n in range(2000)] + [b"x" * 100]
    with first.conn() as conn, second.conn() as other:
        put(conn, "timed", items)
        assert conn.cmd("laddt timed 1000 last") == b"STORED"
        file = tmp_path / "lists.txt"
        export(first, file, [b"timed"])
        assert b"1 written" in bring(second, file)
        assert other.lgetb("timed") == [*items, b"last"]
        assert 900 < int(other.cmd("lttl timed last")) <= 1002


def test_times_that_a_dialect_cannot_keep_are_named(pair, tmp_path):
    first, second = pair(other={"lists s-": {"dialect": "simple"}, "lists p-": {"dialect": "paired"}})
    with first.conn() as conn, second.conn() as other:
        assert conn.cmd("laddt s-timed 1000 a") == b"STORED"
        for key in ("s-ends", "p-ends"):
            put(conn, key, [b"b"], 1000)
        file = tmp_path / "lists.txt"
        export(first, file, [b"s-timed", b"s-ends", b"p-ends"])
        said = bring(second, file, "--replace", code=1)
        assert b"failed: s-timed: items have a time of their own" in said
        assert b"failed: p-ends: written, but without its time to live: CLIENT_ERROR ltouch: a list of" in said
        assert other.lget("p-ends") == [b"b"] and other.lget("s-timed") == []
        assert 900 < int(other.cmd("lttl s-ends")) <= 1002


def test_a_list_above_max_answer_bytes(pair, tmp_path):
    config = {"lists": {"max_answer_bytes": "4k"}}
    first, second = pair(config)
    items = [b"item-%d" % n for n in range(3000)]
    with first.conn() as conn, second.conn() as other:
        put(conn, "large", items)
        file = tmp_path / "lists.txt"
        export(first, file, [b"large"])
        assert b"1 written" in bring(second, file)
        assert other.llen("large") == 3000
        assert other.lget("large") if False else other.cmd("lcopy large copy") == b"3000"


@pytest.mark.thorough
def test_a_torn_file_is_refused(pair, tmp_path):
    first, second = pair()
    with first.conn() as conn:
        put(conn, "a", [b"1", b"2"])
        put(conn, "b", [b"3"])
    file = tmp_path / "lists.txt"
    export(first, file, [b"a", b"b"])
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        if size % 7 == 0 or size == len(whole) - 1:
            assert b"unfinished" in bring(second, file, code=2)
    broken = (
        whole.replace(b"\n3\n", b"\n4\n"),
        whole.replace(b"list a ", b"list c "),
        re.sub(rb"list (\w+ \d+ \d+) 0", rb"list \1 7", whole),
        whole + b"x",
        whole.replace(b"lists 1", b"lists 2"),
        b"m" * 10000,
        b"",
    )
    for text in broken:
        file.write_bytes(text)
        assert re.search(b"damaged|version|unfinished", bring(second, file, code=2)), text
    with second.conn() as conn:
        assert conn.lget("a") == [] and conn.lget("b") == []
    file.write_bytes(whole)
    kept = (whole, whole.replace(b"list a 2 8", b"list a 2 80000"), b"m" * 10000, b"mine\n")
    for text in kept:
        file.write_bytes(text)
        assert lists(first, f"--export={file}", keys=[b"a"]).returncode == 2
        assert file.read_bytes() == text


@pytest.mark.thorough
def test_killed_and_continued(pair, tmp_path):
    config = {"proxy": {"max_value_bytes": "2k"}, "lists": {}}
    first, second = pair(LEAST, config)
    expected = {f"l{n}": [b"%d.%d" % (n, i) for i in range(1 if n % 4 else 2000)] for n in range(40)}
    with first.conn() as conn:
        for key, items in expected.items():
            put(conn, key, items)
    file, keys = tmp_path / "lists.txt", tmp_path / "keys.txt"
    keys.write_text("".join(f"{key}\n" for key in expected))

    def kill_some(daemon, *args):
        for _ in range(6):
            size = lambda: (file.stat().st_size if file.exists() else 0) + (
                done.stat().st_size if done.exists() else 0)
            done = tmp_path / "lists.txt.done"
            before = size()
            script = subprocess.Popen(command(daemon, *args, "--lists-per-second=40"), stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
            wait_until("it works", lambda: size() > before + 50 or script.poll() is not None)
            time.sleep(random.random() / 20)
            script.kill()
            script.communicate()
            if daemon is second:
                with second.conn() as conn:
                    for key, items in expected.items():
                        assert conn.lgetb(key) in ([], items)

    kill_some(first, f"--export={file}", f"--keys={keys}")
    done = lists(first, f"--export={file}", f"--keys={keys}")
    assert done.returncode in (0, 2), done.stdout
    kill_some(second, f"--import={file}")
    bring(second, file)
    with second.conn() as conn:
        for key, items in expected.items():
            assert conn.lgetb(key) == items


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", ["simple", "tombstone", "signed", "paired", "flip", "marker", "sublists", "ring"])
def test_other_dialects_move(pair, tmp_path, dialect):
    """Into those of several items by --replace alone; into a ring nothing."""
    first, second = pair({"lists": {"dialect": dialect}}, LEAST)
    several = dialect in ("paired", "flip", "marker", "sublists")
    ring = dialect == "ring"
    with first.conn() as conn, second.conn() as other:
        assert conn.cmd("ladd a x y z") == b"STORED"
        file, back = tmp_path / "lists.txt", tmp_path / "back.txt"
        export(first, file, [b"a"])
        bring(second, file)
        assert other.lget("a") == conn.lget("a")
        assert other.cmd("ladd b 1 2") == b"STORED"
        export(second, back, [b"a", b"b"])
        said = bring(first, back, code=int(several or ring))
        if several:
            assert b"failed: b: CLIENT_ERROR" in said and b"--replace" in said
            assert b"0 written, 1 were there already" in said
            assert b"1 written, 0 were there already" in bring(first, back, "--replace")
        elif ring:
            assert b"failed: b: CLIENT_ERROR" in said and b"a ring takes ladd alone" in said
        else:
            assert b"1 written, 1 were there already" in said
        if not ring:
            assert conn.lget("a") == [b"x", b"y", b"z"] and conn.lget("b") == [b"1", b"2"]


FULL_DISK = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from mclistd_convert.wire import Refused
from mclistd_lists.backup import Done
from mclistd_lists.backup_file import Export  # noqa: E402  (the path comes first)
import io

def disk(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def must_stop(work, *args):
    try:
        work(*args)
    except Refused as error:
        assert "File too large" in str(error), error
    else:
        raise SystemExit("has not stopped")

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
large = io.BytesIO()
large.write(b"3000000\\n" + b"x" * 3000000 + b"\\n")
export = Export(sys.argv[2])
export.add_missing(b"first")
disk(2000000)
must_stop(export.add, b"large", 1, 0, large)
disk(resource.RLIM_INFINITY)
try:
    export.add_missing(b"second")
except Refused:
    pass
export = None

done = Done(sys.argv[3], "id", "proxy")
done.note(b"lists/a")
disk(len(open(done.path, "rb").read()) + 4)
must_stop(done.note, b"lists/cut")
disk(resource.RLIM_INFINITY)
done.note(b"lists/b")
"""


@pytest.mark.thorough
def test_a_full_disk_leaves_nothing_torn_inside(pair, tmp_path):
    """What stands behind half an entry would be lost with it, or be taken for another list's."""
    file, imported = tmp_path / "lists.txt", tmp_path / "imported.txt"
    subprocess.run([sys.executable, "-c", FULL_DISK, ROOT / "scripts", file, imported], check=True, timeout=60)
    lines = (tmp_path / "imported.txt.done").read_bytes().split(b"\n")
    assert lines[1:] == [b"lists/a", b"lists/b", b""]
    first, _ = pair()
    with first.conn() as conn:
        put(conn, "large", [b"1"])
    assert b"1 lists exported" in export(first, file, [b"first", b"large", b"second"])
    text = file.read_bytes()
    assert text.count(b"\nmissing first\n") == text.count(b"\nlist large ") == 1


@pytest.mark.thorough
def test_one_export_or_import_at_a_time(pair, tmp_path):
    first, second = pair()
    with first.conn() as conn:
        put(conn, "a", [b"1"])
    file = tmp_path / "lists.txt"
    export(first, file, [b"a"])
    with open(file, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert b"at work with it" in bring(second, file, code=2)
        done = lists(first, f"--export={file}", keys=[b"a"])
        assert done.returncode == 2 and b"at work with it" in done.stderr
    assert b"1 written" in bring(second, file)


@pytest.mark.thorough
def test_lists_that_failed_are_tried_again(pair, tmp_path):
    """A kill came between the names of those that failed and the end."""
    first, second = pair()
    with first.conn() as conn:
        put(conn, "a", [b"1"])
        put(conn, "b", [b"2"])
    file = tmp_path / "lists.txt"
    export(first, file, [b"a"])
    text = file.read_bytes()
    file.write_bytes(text[: text.rindex(b"end ")] + b"failed b SERVER_ERROR%20down\n")
    assert b"2 lists exported, 2 items (1 lists by an earlier run)" in export(first, file, [b"a", b"b"])
    assert b"2 lists: 2 written" in bring(second, file)


def test_a_list_of_which_all_items_are_over(pair, tmp_path):
    _, second = pair()
    file = tmp_path / "lists.txt"
    written = Export(str(file))
    for key, body in ((b"short", b"1 1000\na\n2 1000\nbb\n"), (b"stays", b"1\nc\n")):
        text = io.BytesIO()
        text.write(body)
        written.add(key, body.count(b"\n") // 2, 0, text)
    written.end()
    written.file.close()
    assert b"1 written, 0 were there already, 0 by an earlier run, 1 have expired" in bring(second, file)
    with second.conn() as conn:
        assert conn.lget("stays") == [b"c"] and conn.lget("short") == []
    assert not (tmp_path / "lists.txt.done").exists()


@pytest.mark.thorough
def test_hostile_keys_and_items(pair, tmp_path):
    first, second = pair()
    names = [b"%41", b"A", b"a%0a", b"\x80\xff", "ü".encode(), b"x" * 220, b"';", b"list", b"end", b"-", b"#", b"done%"]
    items = [b"done\n", b"\nend 1 1\n", b"list a 1 1 0 00\n", b"\r\nEND\r\n", b" ", b"\0", b"5 9\n", b"%"]
    with first.conn() as conn, second.conn() as other:
        for name in names:
            block = b"".join(b"ITEM k %d\r\n%s\r\n" % (len(item), item) for item in items)
            assert conn.cmd(b"lputb %s %d" % (name, len(block)), block) == b"STORED"
        file = tmp_path / "lists.txt"
        export(first, file, [urllib.parse.quote_from_bytes(name).encode() for name in names])
        text = file.read_bytes()
        at = text.index(b"\nlist " + urllib.parse.quote_from_bytes(b"-").encode())
        file.write_bytes(text[: at + 30])
        export(first, file, [urllib.parse.quote_from_bytes(name).encode() for name in names])
        assert b"12 written" in bring(second, file)
        for name in names:
            assert [data for _, _, data in other.values(b"lgetb " + name)] == items, name
