# SPDX-License-Identifier: BSD-3-Clause
"""bridge_delete = purge: memcached's own delete of a list deletes the plain items that it names, so
that every client has tags with append and delete."""

import random
import re
import threading
import time

import pytest

from harness import in_threads, wait_until
from test_binary_support import NOT_FOUND, SUCCESS, TEMPORARY, Binary, packet
from test_binary_support import store as binary_store

BLANK = "\\x20"
TAGS = {"bridge": "yes", "bridge_delete": "purge", "delimiter": BLANK}
ONE_ITEM = {**TAGS, "dialect": "simple"}
RESTARTS = 4
FAST = {"timeout_ms": 300, "connect_timeout_ms": 300, "retry_min_ms": 5, "retry_max_ms": 20}
NAMES = ["page,1", "user:7:side", "feed"]

purges = pytest.mark.config(**{"lists tags|": TAGS, "lists s|": ONE_ITEM})


def tag(conn, key, *names):
    value = " ".join(names)
    assert conn.cmd(f"append {key} 0 0 {len(value)}", value) == b"STORED"


def fill(conn, key, names):
    """An item of each name, and then all the names."""
    for at in range(0, len(names), 500):
        some = names[at : at + 500]
        conn.send("".join(f"set {name} 0 0 1\r\nx\r\n" for name in some))
        assert set(conn.lines(len(some))) == {b"STORED"}
        tag(conn, key, *some)


def stored(conn, names):
    found = []
    for at in range(0, len(names), 500):
        found += [key.decode() for key, *_ in conn.values("get " + " ".join(names[at : at + 500]))]
    return found


@purges
@pytest.mark.parametrize("key", ("tags|7", "s|7"))
@pytest.mark.parametrize("verb, done, missing", [("delete", b"DELETED", b"NOT_FOUND"),
                                                 ("md", b"HD", b"NF")])  # fmt: skip
def test_a_delete_purges(conn, key, verb, done, missing):
    assert conn.cmd(f"{verb} {key}") == missing
    assert conn.set("other", "stays") == b"STORED"
    for _ in range(2):
        fill(conn, key, NAMES)
        tag(conn, key, "never-stored")
        assert conn.cmd(f"{verb} {key}") == done
        assert stored(conn, NAMES) == [] and conn.get(key) is None
        assert conn.cmd(f"{verb} {key}") == missing
    assert conn.get("other") == b"stays"


@purges
def test_quiet_deletes(conn):
    fill(conn, "tags|7", NAMES)
    conn.send("delete tags|7 noreply\r\nget page,1\r\n")
    assert conn.line() == b"END"
    fill(conn, "tags|7", NAMES)
    conn.send("md tags|7 q O1\r\nmd tags|7 q O2\r\nmn\r\n")
    assert conn.until_mn() == [b"NF O2"]
    assert stored(conn, NAMES) == []


@purges
@pytest.mark.parametrize("key", ("tags|7", "s|7"))
def test_what_stands_before_it_in_a_packet_is_purged_and_what_stands_behind_is_not(conn, key):
    conn.send(f"set a 0 0 1\r\nx\r\nappend {key} 0 0 1\r\na\r\nset b 0 0 1\r\nx\r\n"
              f"append {key} 0 0 1\r\nb\r\ndelete {key}\r\nset a 0 0 1\r\ny\r\n"
              f"append {key} 0 0 1\r\na\r\nget a\r\nget b\r\nget {key}\r\n")  # fmt: skip
    assert conn.lines(7) == [b"STORED"] * 4 + [b"DELETED"] + [b"STORED"] * 2
    assert conn.values_answer() == [(b"a", [0, 1], b"y")]
    assert conn.values_answer() == []
    assert [data for _, _, data in conn.values_answer()] == [b"a"]


@purges
def test_an_item_and_its_tag_in_one_packet_of_a_meta_client(conn):
    ask = "ms tags|7 6 MA q\r\npage,1\r\nms page,1 1 T3600 q\r\nx\r\nms tags|7 6 MA q\r\npage,1\r\nmn\r\n"
    conn.send(ask + "md tags|7\r\n" + ask + "mg page,1 v\r\nmg tags|7 v\r\n")
    assert conn.until_mn() == []
    assert conn.line() == b"HD"
    assert conn.until_mn() == []
    assert conn.lines(4) == [b"VA 1", b"x", b"VA 6", b"page,1"]


@purges
def test_a_binary_client(daemon, conn):
    with Binary(daemon.port) as binary:
        assert binary.ask(packet("delete", "tags|7")).status == NOT_FOUND
        for name in NAMES:
            assert binary.ask(binary_store("set", name, "x")).status == SUCCESS
            assert binary.ask(packet("append", "tags|7", value=name)).status == SUCCESS
            assert binary.ask(packet("append", "tags|7", value=name)).status == SUCCESS
        assert binary.ask(packet("delete", "tags|7")).status == SUCCESS
        assert binary.ask(packet("get", NAMES[0])).status == NOT_FOUND
        assert binary.ask(packet("delete", "tags|7")).status == NOT_FOUND
        assert stored(conn, NAMES) == []
        tag(conn, "tags|7", "a", "b", "tags|8")
        answer = binary.ask(packet("delete", "tags|7"))
        assert answer.status == TEMPORARY
        assert answer.value.startswith(b"delete: 2 names purged, 1 stay in the list: "), answer


@purges
def test_names_that_are_no_plain_items_stay_and_are_said(conn):
    fill(conn, "tags|7", ["a"])
    tag(conn, "tags|7", "tags|8", "x" * 251)
    line = b"SERVER_ERROR %s: %d names purged, 2 stay in the list: tags|8: this key is a list " \
           b"(bridge): ldrop removes it"
    assert conn.cmd("delete tags|7") == line % (b"delete", 1)
    assert conn.cmd("md tags|7") == line % (b"md", 0)
    assert conn.get("tags|7") == b"tags|8 " + b"x" * 251
    assert conn.cmd("ldrop tags|7") == b"DELETED" and conn.cmd("delete tags|7") == b"NOT_FOUND"


@purges
def test_a_purge_has_no_version(conn):
    tag(conn, "tags|7", "a")
    text = b"CLIENT_ERROR md of this list has no flag C (bridge)"
    assert conn.cmd("md tags|7 C1") == text
    assert conn.get("tags|7") == b"a"


@purges
def test_what_else_removes_a_list_purges_nothing(conn):
    fill(conn, "tags|7", ["a"])
    assert conn.cmd("set tags|7 0 -1 0", "") == b"STORED"
    assert conn.get("tags|7") is None and conn.get("a") == b"x"


@pytest.mark.memcacheds(3)
@pytest.mark.config(**{"lists tags|": TAGS, "pool main": FAST})
def test_a_server_that_is_down(daemon, memcacheds):
    names = [f"user:7:{n}" for n in range(2000)]
    with daemon.conn() as conn:
        fill(conn, "tags|7", names)
        head = conn.stats("lstat tags|7")["head_server"]
        dead = next(server for server in memcacheds if server.address != head)
        with dead.conn() as direct:
            lost = stored(direct, names)
        dead.stop()
        line = conn.cmd("delete tags|7")
        match = re.fullmatch(rb"SERVER_ERROR delete: (\d+) names purged, (\d+) stay in the list: "
                             rb"user:7:\d+: backend (.*)", line)  # fmt: skip
        assert match, line
        assert (int(match[1]), int(match[2])) == (len(names) - len(lost), len(lost))
        assert dead.address.encode() in match[3]
        dead.start()
        wait_until("it is back", lambda: conn.cmd("delete tags|7") == b"DELETED")
        assert conn.get("tags|7") is None and stored(conn, names) == []


def with_lists_elsewhere(lists, **proxy):
    """Plain items and lists have servers of their own."""
    return {
        "proxy": proxy,
        "pool main": {"timeout_ms": 60000},
        "pool other": {"servers": lists.address, "timeout_ms": 60000},
        "lists tags|": {**TAGS, "pool": "other"},
    }


def test_it_waits_as_long_calls_do(start_daemon, memcacheds, start_memcached):
    lists = start_memcached()
    daemon = start_daemon(memcacheds, config=with_lists_elsewhere(lists, deadline_ms=100))
    patient = start_daemon(memcacheds, config=with_lists_elsewhere(lists))
    with daemon.conn() as conn, patient.conn() as other:
        fill(other, "tags|7", NAMES)
        memcacheds[0].pause()
        conn.send("delete tags|7\r\n")
        assert conn.is_silent(0.4)
        memcacheds[0].resume()
        assert conn.line() == b"DELETED"
        assert stored(other, NAMES) == []


def test_the_deadline(start_daemon, memcacheds, start_memcached):
    config = with_lists_elsewhere(start_memcached(), long_timeout_ms=300)
    daemon = start_daemon(memcacheds, config=config)
    with daemon.conn() as conn:
        fill(conn, "tags|7", NAMES)
        memcacheds[0].pause()
        text = b"SERVER_ERROR delete: deadline over: 0 names purged, the others stay in the list"
        assert conn.cmd("delete tags|7") == text
        assert conn.get("tags|7").split() == [name.encode() for name in NAMES]
        memcacheds[0].resume()
        wait_until("it goes on", lambda: conn.cmd("delete tags|7") == b"DELETED")
        assert stored(conn, NAMES) == []


def test_a_list_of_which_nothing_is_known(start_daemon, start_memcached):
    """Its server does not answer: neither DELETED nor NOT_FOUND."""
    memcached = start_memcached()
    config = {"proxy": {"long_timeout_ms": 300}, "lists tags|": TAGS,
              "pool main": {"timeout_ms": 60000}}  # fmt: skip
    daemon = start_daemon([memcached], config=config)
    with daemon.conn() as conn:
        fill(conn, "tags|7", NAMES)
        memcached.pause()
        assert conn.cmd("delete tags|7").startswith(b"SERVER_ERROR delete: deadline over: 0 names")
        memcached.resume()


@pytest.mark.parametrize("section, text", [
    ({"bridge_delete": "purge"}, "bridge = no does not use it; expected with bridge = yes"),
    ({**TAGS, "on_missing": "refuse"}, "expected on_missing = create"),
    ({**TAGS, "dialect": "flip"}, "bridge_delete"),
])  # fmt: skip
def test_what_does_not_go_with_it(start_daemon, memcached, section, text):
    with pytest.raises(AssertionError, match=re.escape(text)):
        start_daemon([memcached], config={"lists tags|": section})


@pytest.mark.slow
@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("key", ("tags|7", "s|7"))
def test_no_item_is_without_a_name(start_daemon, memcacheds, key):
    """Three writers and an invalidator. The server of the tag's list is restarted, so that the list
    is lost with its names: items of before may be left without a name, and none of behind."""
    config = {"lists tags|": TAGS, "lists s|": ONE_ITEM, "pool main": FAST}
    daemons = [start_daemon(memcacheds, config=config) for _ in range(2)]
    with daemons[0].conn() as conn:
        tag(conn, key, "first")
    its_server = next(server for server in memcacheds if has_list(server, key))
    over = threading.Event()
    age = [0]  # how often the server was restarted; None: it is now
    saved, deletes = [], []

    def writer(number):
        rng = random.Random(number)
        with daemons[number % 2].conn() as conn:
            while not over.is_set():
                before = age[0]
                name = f"user:7:{before}:{rng.randrange(100)}"
                done = conn.set(name, "x") == b"STORED"
                done = done and conn.cmd(f"append {key} 0 0 {len(name)}", name) == b"STORED"
                if done and age[0] == before:
                    saved.append(name)
                time.sleep(0.001)  # leaves the processor to the restarts

    def invalidator(_):
        with daemons[0].conn() as conn:
            while not over.is_set():
                line = conn.cmd(f"delete {key}")
                assert line in (b"DELETED", b"NOT_FOUND") or line.startswith(b"SERVER_ERROR"), line
                deletes.append(line)
                time.sleep(0.002)

    def restarter(_):
        for number in range(RESTARTS):
            time.sleep(0.3)
            age[0] = None
            its_server.stop()
            its_server.start()
            age[0] = number + 1
        time.sleep(1)

    def work(number):
        try:
            (writer, writer, writer, invalidator, restarter)[number](number)
        finally:
            over.set()

    in_threads(5, work)
    last = sorted({name for name in saved if name.startswith(f"user:7:{RESTARTS}:")})
    assert deletes.count(b"DELETED") > 2 and len(last) > 10
    with daemons[1].conn() as conn:
        named = (conn.get(key) or b"").decode().split()
        assert set(stored(conn, last)) <= set(named)
        wait_until("all is purged", lambda: conn.cmd(f"delete {key}") in (b"DELETED", b"NOT_FOUND"))
        assert stored(conn, last) == []


def has_list(server, key):
    with server.conn() as direct:
        return direct.get(key) is not None or direct.get(key + "#") is not None
