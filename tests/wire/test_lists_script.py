# SPDX-License-Identifier: BSD-3-Clause
"""scripts/lists: which lists a pool holds, and what is known of them."""

import json
import random
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

from harness import ROOT, TIMEOUT_S, Conn, free_port, wait_until
from model import dump, head_of
from test_convert_support import Lister, store
from test_dialects_support import DIALECTS

pytestmark = pytest.mark.release

TINY = {
    "max_item_bytes": 64,
    "log_limit_bytes": 256,
    "log_hard_limit_bytes": 4096,
    "sublist_limit_bytes": 512,
}
RUN = "aaaaaaaaaaaaa"


def lists(*args):
    command = [sys.executable, str(ROOT / "scripts/lists"), *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=20 * TIMEOUT_S, check=False
    )


def found(*args, code=0):
    """{key: object}, of --json."""
    done = lists("--json", *args)
    assert done.returncode == code, done.stdout + done.stderr
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    entries = {urllib.parse.unquote_to_bytes(entry["key"]): entry for entry in objects}
    assert len(entries) == len(objects)
    return entries


def proxy(daemon):
    return f"--proxy=127.0.0.1:{daemon.port}"


def put(memcached, values):
    with Conn(memcached.port) as direct:
        for name, value in values.items():
            assert direct.set(name, value) == b"STORED"


def fill(conn, key, count):
    for first in range(0, count, 100):
        words = " ".join(f"item-{n}" for n in range(first, min(first + 100, count)))
        assert conn.cmd(f"ladd {key} {words}") == b"STORED"


@pytest.mark.config(lists=TINY, **{"lists c-": {**TINY, "max_items": 3},
                                   "lists r-": {**TINY, "max_items": 2, "cap": "refuse"},
                                   "lists m-": {**TINY, "on_missing": "refuse"}})
def test_native_lists_of_all_kinds(daemon, conn, memcached):
    assert conn.cmd("ladd short a b c") == b"STORED"
    assert conn.cmd("ldel short b") == b"DELETED"
    fill(conn, "long", 1000)
    assert conn.cmd("lcompact long") == b"OK"
    assert conn.cmd("ladd c-list 1 2 3 4 5") == b"STORED"
    assert conn.cmd("ladd r-list 1 2") == b"STORED"
    assert conn.cmd("ladd r-list 3") == b"NOT_STORED"
    assert conn.cmd("laddt timed 1000 a b") == b"STORED"
    assert conn.cmd("ltouch short 1000") == b"TOUCHED"
    assert conn.cmd("llease m-list 100").isdigit()
    assert conn.cmd("lset r-empty a") == b"STORED"
    put(memcached, {"plain#": "hello"})
    entries = found(proxy(daemon), code=3)
    assert {key: entry["items"] for key, entry in entries.items()} == {
        b"short": 2, b"long": 1000, b"c-list": 3, b"r-list": 2, b"timed": 2, b"m-list": 0,
        b"r-empty": 1, b"plain": None,
    }
    assert {key: entry["marks"] for key, entry in entries.items() if entry["marks"]} == {
        b"c-list": ["capped:3.drop"], b"r-list": ["capped:2.refuse"], b"r-empty": ["capped:2.refuse"],
        b"timed": ["timed"], b"m-list": ["absent", "leased"],
    }
    assert entries[b"plain"]["state"] == "foreign"
    assert {entry["state"] for key, entry in entries.items() if key != b"plain"} == {"ok"}
    assert entries[b"short"]["ttl_s"] in range(900, 1001)
    assert entries[b"long"]["ttl_s"] is None
    head = head_of([memcached], "long")
    assert entries[b"long"]["sublists"] == len(head.run_keys("long"))

    def bytes_of_long():  # one dump leaves out what is in use at that moment
        return sum(size for name, size in dump(memcached).items() if name.startswith("long#"))

    wait_until("the dump has it all", lambda: bytes_of_long() == entries[b"long"]["bytes"])
    assert entries[b"long"]["server"] == memcached.address


@pytest.mark.thorough
@pytest.mark.config(lists=TINY)
def test_what_the_head_does_not_tell_is_asked(daemon, conn):
    fill(conn, "long", 1000)
    assert conn.cmd("lcompact long") == b"OK"
    assert conn.cmd("ladd long item-3 new") == b"STORED"
    entry = found(proxy(daemon))[b"long"]
    assert entry["items"] is None
    assert 900 <= entry["items_at_least"] <= 1001 <= entry["items_at_most"] <= 1002
    assert ">=1000 " in lists(proxy(daemon)).stdout
    entry = found(proxy(daemon), "--count")[b"long"]
    assert (entry["items"], entry["counted"]) == (1001, True)


RANDOM = {
    "lists plain-": TINY,
    "lists recent-": {**TINY, "order": "recent"},
    "lists drop-": {**TINY, "max_items": 7},
    "lists refuse-": {**TINY, "max_items": 7, "cap": "refuse", "order": "recent"},
}


def random_change(key, dice):
    items = " ".join(f"item-{dice.randrange(40)}" for _ in range(dice.choice([1, 1, 2, 8])))
    choice = dice.random()
    if choice < 0.02:
        return f"{dice.choice(['ldrop', 'lcompact'])} {key}"
    if choice < 0.1 and "plain" in key:
        return f"laddt {key} {dice.choice([1, 1000])} {items}"
    verb = "lset" if choice < 0.12 else "ldel" if choice < 0.4 else "ladd"
    return f"{verb} {key} {items}"


@pytest.mark.thorough
@pytest.mark.config(**RANDOM)
def test_numbers_of_items_beside_llen(daemon, conn):
    """Also of heads with runs: what is said is never more than what is there, nor less."""
    dice = random.Random(1)
    keys = [f"{section.split()[1]}{number}" for section in RANDOM for number in range(8)]
    exact = 0
    for _ in range(3):
        for _ in range(800):
            conn.cmd(random_change(dice.choice(keys), dice))
        time.sleep(1.1)  # some items end
        entries = found(proxy(daemon))
        for key, entry in entries.items():
            count = conn.llen(key.decode())
            assert entry["items_at_least"] <= count <= entry["items_at_most"], (key, entry, count)
            exact += entry["items"] is not None
        assert all(conn.llen(key) == 0 for key in keys if key.encode() not in entries)
    assert exact > 3 * len(keys) / 2


@pytest.mark.config(lists=TINY)
def test_damaged_lists(daemon, conn, memcached):
    fill(conn, "long", 1000)
    fill(conn, "empty", 1000)
    assert conn.cmd("lcompact long") == conn.cmd("lcompact empty") == b"OK"
    with memcached.conn() as direct:
        names = head_of([memcached], "long").run_keys("long")
        for name in names[2:4]:
            assert direct.cmd(f"delete {name}") == b"DELETED"
        assert direct.set(head_of([memcached], "empty").run_keys("empty")[-1], "") == b"STORED"
    entries = found(proxy(daemon), code=3)
    assert {key: entry["missing_sublists"] for key, entry in entries.items()} == {b"long": 2, b"empty": 1}
    assert {entry["state"] for entry in entries.values()} == {"damaged"}
    done = lists(memcached.address)
    assert done.returncode == 3
    assert f"damaged: long on {memcached.address}: 2 sublists are missing\n" in done.stdout
    assert "2 damaged" in done.stderr
    with memcached.conn() as direct:  # runs that the log makes void are not missed
        assert direct.cmd("append long# 0 0 3", "!0:") == b"STORED"
    assert found(proxy(daemon), code=3)[b"long"]["state"] == "ok"


@pytest.mark.config(lists=TINY)
def test_a_crawler_that_leaves_sublists_out(conn, memcached):
    fill(conn, "long", 1000)
    assert conn.cmd("lcompact long") == b"OK"
    with Lister(memcached, lambda name, number: name.endswith(".3")) as lister:
        entry = found(lister.address)[b"long"]
    assert (entry["state"], entry["missing_sublists"], entry["items"]) == ("ok", 0, 1000)


@pytest.mark.thorough
@pytest.mark.config(lists={**TINY, "announcement_grace_s": 100})
def test_lists_that_change_meanwhile_are_not_damaged(daemon, memcached):
    stop = threading.Event()

    def write():
        with daemon.conn() as conn:
            for number in range(10**6):
                if stop.is_set():
                    return
                conn.cmd(f"ladd hot-{number % 5} " + " ".join(f"item-{number}-{n}" for n in range(50)))
                conn.cmd(f"lcompact hot-{number % 5}")
                if number % 50 == 0:
                    conn.cmd(f"ldrop hot-{number // 50 % 5}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            done = lists(proxy(daemon), "--json", "--rate", 0)
            states = {json.loads(line)["state"] for line in done.stdout.splitlines()}
            assert done.returncode in (0, 3) and states <= {"ok", "unknown"}, done.stdout + done.stderr
    finally:
        stop.set()
        writer.join()


def test_heads_that_other_programs_could_have_written(memcached):
    now = int(time.time())
    put(memcached, {
        "garbage#": f"^1 -{RUN}.2 -bbbbbbbbbbbbb.3\n+1:a",
        f"garbage#{RUN}.1": "^1 0000000001\n+1:a",
        "old#": f"^1\n+1:a~26:{RUN}.3.1000000000~26:bbbbbbbbbbbbb.3.{now}",
        "withdrawn#": f"^1\n~26:{RUN}.3.1000000000~26:{RUN}.0.1000000000",
        "void#": "^1 ?123.9999999999\n!0:+1:a",
        "drop#": "^1 #2.drop\n+1:a+1:b=1:a+1:c-1:a",
        "refuse#": "^1 #2.refuse\n+1:a+1:b+1:c-1:c",
        "newer#": "^2\n+1:a",
        "field#": "^1 &7\n+1:a",
        "cut#": "^1\n+9:a",
        "huge#": f"^1 {RUN}.9999999:999999900:1\n",
        "over#": f"^1 %{now - 5}.0 {RUN}.1:22:1\n+1:a",
        f"over#{RUN}.0": "^1 0000000001\n=5:apple",
        f"lost#{RUN}.0": "^1 0000000001\n+5:apple",
    })
    done = lists("--json", memcached.address)
    assert done.returncode == 3
    assert "1 sublists of no list" in done.stderr
    entries = {entry["key"]: entry for entry in map(json.loads, done.stdout.splitlines())}
    assert (entries["garbage"]["garbage_names"], entries["garbage"]["garbage_sublists"]) == (2, 1)
    assert (entries["old"]["announcements"], entries["old"]["announcements_old"]) == (2, 1)
    assert entries["withdrawn"]["announcements"] == 0
    assert (entries["void"]["items"], entries["void"]["marks"]) == (1, [])
    assert (entries["drop"]["items"], entries["refuse"]["items"]) == (1, 2)
    assert {key for key, entry in entries.items() if entry["state"] == "foreign"} == {
        "newer", "field", "cut"}
    assert entries["newer"]["note"] == "a head of a newer version"
    assert entries["huge"]["state"] == "damaged"
    assert entries["huge"]["note"] == "at least 1000 sublists are missing"
    assert (entries["over"]["items"], entries["over"]["items_at_least"],
            entries["over"]["items_at_most"]) == (None, 1, 2)
    assert found("--grace", 2**31, memcached.address, code=3)[b"old"]["announcements_old"] == 0
    assert "old-announcements:1" in lists(memcached.address).stdout


def test_odd_heads_are_read_as_the_proxy_reads_them(conn, memcached):
    """Of heads that only a client by hand can have written: the script takes for lists what the proxy does."""
    heads = [
        "^1\n!3:abc+1:a", "^1\n@12:1000000000:", "^1\n@13:1000000000:a", "^1\n@2:a:",
        "^1 #01.drop\n+1:a", "^1 #0.drop\n+1:a", "^1 #10000.refuse\n", "^1 #10001.refuse\n",
        f"^1 ?{2**64 - 1}.1\n", f"^1 ?{2**64}.1\n", "^1 ?0.0\n", "^1 ?0.1\n", "^1 ?1.0\n",
    ]  # fmt: skip
    for created in (2**63 - 1, 2**63):
        announcement = f"{RUN}.3.{created}"
        heads.append(f"^1\n~{len(announcement)}:{announcement}")
        text = f"{RUN}.{created} 1 h{len(heads)} +1:a"
        heads.append(f"^1\n?{len(text)}:{text}")
    put(memcached, {f"h{n}#": head for n, head in enumerate(heads)})
    done = lists("--json", memcached.address)
    entries = {entry["key"]: entry["state"] for entry in map(json.loads, done.stdout.splitlines())}
    for n, head in enumerate(heads):
        refused = conn.cmd(f"llen h{n}").startswith(b"SERVER_ERROR")
        assert (entries[f"h{n}"] == "foreign") == refused, (head, entries[f"h{n}"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects(dialect, memcacheds, start_daemon):
    memcached = memcacheds[0]
    daemon = start_daemon(memcacheds, config={"lists topic-": {"dialect": dialect, "migrate": "native"}})
    store(memcached, dialect, "topic-1", ["a", "b", "c"])
    store(memcached, dialect, "topic-2", ["a", "b"], exptime=500)
    with daemon.conn() as conn:
        assert conn.cmd("ladd native a b") == b"STORED"
        assert conn.cmd("ladd topic-moved a b") == b"STORED"
        assert conn.cmd("lconvert topic-moved") == b"2"
    entries = found(proxy(daemon))
    assert {key: entry["dialect"] for key, entry in entries.items()} == {
        b"topic-1": dialect, b"topic-2": dialect, b"topic-moved": "native", b"native": "native"}
    assert entries[b"topic-1"]["items"] is None
    assert entries[b"topic-1"]["ttl_s"] is None
    assert entries[b"topic-2"]["ttl_s"] in range(400, 501)
    assert found(proxy(daemon), "--prefix", "topic-").keys() == entries.keys() - {b"native"}
    assert found(proxy(daemon), "--prefix", "*pic-").keys() == entries.keys() - {b"native"}
    assert found(proxy(daemon), "--prefix", "pic-").keys() == set()
    counted = found(proxy(daemon), "--count")
    assert [counted[key]["items"] for key in sorted(counted)] == [2, 3, 2, 2]


@pytest.mark.config(**{"lists topic-": {"dialect": "signed"}})
def test_foreign_values_of_a_dialect(daemon, memcached):
    store(memcached, "signed", "topic-1", ["a"])
    with memcached.conn() as direct:
        assert direct.set("topic-flags", "+a", flags=4) == b"STORED"
        assert direct.set("topic-json", '{"a": 1}') == b"STORED"
    entries = found(proxy(daemon), code=3)
    assert {key: entry["state"] for key, entry in entries.items()} == {
        b"topic-1": "ok", b"topic-flags": "foreign", b"topic-json": "ok"}
    entries = found(proxy(daemon), "--count", code=3)
    assert entries[b"topic-json"]["state"] == "foreign"
    assert entries[b"topic-1"]["items"] == 1


def test_keys_of_odd_bytes(daemon, memcached):
    with daemon.conn() as conn:
        for key in (b"\xff\xfe%41", "schön".encode(), b"a/b"):
            assert conn.cmd(b"ladd " + key + b" item") == b"STORED"
    assert found(proxy(daemon), "--count").keys() == {b"\xff\xfe%41", "schön".encode(), b"a/b"}
    shown = lists(proxy(daemon), "--sort", "key").stdout
    assert "schön" in shown and r"\xff\xfe%41" in shown


@pytest.mark.thorough
def test_order_and_number(daemon, conn):
    for number, key in enumerate(["c", "b", "a"], 1):
        assert conn.cmd(f"ladd {key} " + " ".join(map(str, range(number * 3)))) == b"STORED"
    for order, keys in [("size", "abc"), ("items", "abc"), ("key", "abc"), ("age", "abc")]:
        rows = lists(proxy(daemon), "--sort", order).stdout.splitlines()[1:]
        if order != "age":
            assert [row.split()[-1] for row in rows] == list(keys)
        assert sorted(row.split()[-1] for row in rows) == sorted(keys)
    assert list(found(proxy(daemon), "--sort", "items", "--top", 2)) == [b"a", b"b"]


@pytest.mark.memcacheds(3)
@pytest.mark.config(lists={**TINY, "placement": "spread"})
def test_spread_lists(daemon, conn, memcacheds):
    fill(conn, "long", 1000)
    assert conn.cmd("lcompact long") == b"OK"
    assert found(proxy(daemon))[b"long"]["sublists"] == len(head_of(memcacheds, "long").run_keys("long"))
    assert len(found(*(server.address for server in memcacheds))) == 1


@pytest.mark.memcacheds(2)
def test_a_server_that_is_down(daemon, conn, memcacheds):
    alive, dead = memcacheds
    for number in range(20):
        assert conn.cmd(f"ladd list-{number} a") == b"STORED"
    dead.stop()
    done = lists(proxy(daemon), "--json")
    assert done.returncode == 1
    assert f"memcached {dead.address}: " in done.stderr and ": left out" in done.stderr
    servers = {json.loads(line)["server"] for line in done.stdout.splitlines()}
    assert servers == {alive.address}
    done = lists(dead.address)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no memcached answers" in done.stderr


def test_what_it_reads_does_not_count_as_use(conn, daemon, memcached):
    assert conn.cmd("ladd list a") == b"STORED"
    with memcached.conn() as direct:
        found(proxy(daemon))
        assert direct.cmd("mg list# h") == b"HD h0"


@pytest.mark.thorough
def test_options_that_are_refused():
    for args, text in [
        ((), "expected --proxy or memcacheds"),
        (("localhost",), "localhost: expected HOST:PORT"),
        (("localhost:99999",), "localhost:99999: a port is a number from 1 to 65535"),
        (("localhost:1", "--count"), "--count needs --proxy"),
        (("localhost:1", "--parallel", "0"), "expected --parallel above 0"),
        (("localhost:1", "--replace"), "--replace goes with --import"),
        (("localhost:1", "--leave-out-failed"), "--leave-out-failed with --export"),
        (("localhost:1", "--top", "-1"), "--top, --rate and --grace"),
    ]:
        done = lists(*args)
        assert (done.returncode, done.stdout) == (2, "")
        assert text in done.stderr
    done = lists(f"--proxy=127.0.0.1:{free_port()}")
    assert done.returncode == 2 and done.stderr.endswith(": Connection refused\n")
    assert "Errno" not in done.stderr


def test_a_memcached_is_no_proxy(memcached):
    done = lists(f"--proxy={memcached.address}")
    assert done.returncode == 2
    assert done.stderr == f"lists: {memcached.address}: a memcached answers there; expected a proxy, mclistd\n"


def test_a_proxy_is_no_memcached(daemon):
    done = lists(f"127.0.0.1:{daemon.port}")
    assert done.returncode == 2
    assert f"127.0.0.1:{daemon.port}: a proxy answers there, mclistd, and no memcached" in done.stderr
