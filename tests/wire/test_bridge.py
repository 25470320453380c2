# SPDX-License-Identifier: BSD-3-Clause
"""bridge = yes: memcached's own verbs as list operations, verb by verb, with its very answers."""

import threading

import pytest

from harness import Conn, wait_until
from test_bridge_support import BRIDGES, LISTS, encoded, fill, store
from test_dialects_support import DIALECTS

pytestmark = pytest.mark.config(**BRIDGES)


@pytest.mark.parametrize("key", LISTS)
def test_append_adds_and_prepend_deletes(conn, key):
    fill(conn, key, "a")
    assert store(conn, "append", key, "b,c") == b"STORED"
    assert store(conn, "append", key, "a") == b"STORED"
    assert conn.get(key) == b"a,b,c"
    assert store(conn, "prepend", key, "b,nothing") == b"STORED"
    assert conn.get(key) == b"a,c"
    assert conn.lget(key) == [b"a", b"c"]
    conn.cmd(f"ladd {key} d")
    assert conn.get(key) == b"a,c,d"


def test_old_code_by_hand_finds_the_delimiter_behind_the_last_item(conn, memcached):
    """It puts its own behind what it has read, and takes out an item with its delimiter."""
    key, text = "h-x", b"user-1234,user-222,user-987,"
    assert conn.get(key) is None
    with Conn(memcached.port) as plain:
        assert plain.set(key, text) == b"STORED"
        assert conn.get(key) == text

        def change(with_what):
            (_, words, value), = conn.values(f"gets {key}")
            value = with_what(value)
            assert store(conn, "cas", key, value, tail=f" {words[2]}") == b"STORED"
            assert plain.get(key) == value
            assert conn.get(key) == (value or None)

        change(lambda value: value + b"user-5,")
        change(lambda value: value.replace(b"user-987,", b""))
        assert plain.get(key) == b"user-1234,user-222,user-5,"
        assert conn.cmd(f"mg {key} s") == b"HD s26"
        assert conn.lget(key) == [b"user-1234", b"user-222", b"user-5"]
        change(lambda value: b"")
        assert conn.lget(key) == []


def test_another_delimiter(conn):
    assert store(conn, "append", "g-x", "a,b|c") == b"STORED"
    assert conn.get("g-x") == b"a,b|c"
    assert conn.llen("g-x") == 2


@pytest.mark.parametrize("value", ("a,b", ",a,b", "a,b,", ",a,b,"))
def test_one_delimiter_at_either_end_is_tolerated(conn, value):
    for verb in ("set", "append"):
        assert store(conn, verb, "b-x", value) == b"STORED"
        assert conn.lget("b-x") == [b"a", b"b"]
    assert store(conn, "prepend", "b-x", value) == b"STORED"
    assert conn.get("b-x") is None


@pytest.mark.parametrize("value", ("a,,b", ",,a", "a,,", ",,,"))
def test_empty_items_are_refused(conn, value):
    fill(conn, "b-x", "old")
    for verb in "set add append prepend".split():
        assert store(conn, verb, "b-x", value) == (
            b"CLIENT_ERROR value holds an empty item: items are joined by one ','"
        )
    assert conn.cmd(f"ms b-x {len(value)} MA", value).startswith(b"CLIENT_ERROR value holds an empty")
    assert conn.get("b-x") == b"old"


def test_values_with_other_flags_are_refused(conn):
    """What clients give to numbers, objects and compressed values."""
    fill(conn, "b-x", "old")
    for verb in "set add append prepend".split():
        assert store(conn, verb, "b-x", "a", flags=80) == (
            b"CLIENT_ERROR value has flags 80: switch off serialisation and compression for lists "
            b"(bridge_flags_in)"
        )
        conn.send(f"{verb} b-x 80 0 3 noreply\r\na\nb\r\nmn\r\n")
        assert conn.line() == b"MN"
    assert conn.cmd("ms b-x 1 F1", "a").startswith(b"CLIENT_ERROR value has flags 1: ")
    assert conn.get("b-x") == b"old"
    assert store(conn, "set", "b-x", "a", flags=16) == b"STORED"
    assert store(conn, "append", "t-x", "a", flags=7) == b"STORED"
    assert store(conn, "append", "t-x", "a", flags=16).startswith(b"CLIENT_ERROR value has flags 16")
    assert conn.values("get t-x") == [(b"t-x", [5, 1], b"a")]


@pytest.mark.parametrize("key", LISTS)
def test_set_replaces(conn, key):
    assert store(conn, "set", key, "a,b,c") == b"STORED"
    assert store(conn, "set", key, "c,d,c,a") == b"STORED"
    assert conn.get(key) == b"c,d,a"


@pytest.mark.parametrize("key", ("b-x", "r-x", "s-x"))
def test_add_fills_a_missing_list(conn, key):
    assert store(conn, "add", key, "a,b") == b"STORED"
    assert store(conn, "add", key, "c") == b"NOT_STORED"
    assert conn.get(key) == b"a,b"
    assert conn.cmd(f"ldrop {key}") == b"DELETED"
    assert store(conn, "add", key, "c") == b"STORED"
    assert conn.get(key) == b"c"


def test_missing_and_empty_lists_that_are_created(conn):
    assert conn.get("b-x") is None
    assert store(conn, "append", "b-x", "") == b"STORED"
    assert store(conn, "prepend", "b-x", "a") == b"STORED"
    assert conn.get("b-x") is None
    assert store(conn, "set", "b-x", "") == b"STORED"
    assert conn.get("b-x") is None
    assert conn.cmd("delete b-x") == b"NOT_FOUND"
    assert store(conn, "append", "b-x", "a") == b"STORED"
    assert conn.get("b-x") == b"a"


@pytest.mark.parametrize("key", ("b-x", "s-x"))
def test_delete_says_whether_there_was_something(conn, key):
    """As memcached does: where an empty list is a missing one, to a get too."""
    assert conn.cmd(f"delete {key}") == b"NOT_FOUND"
    assert conn.cmd(f"md {key}") == b"NF"
    assert store(conn, "append", key, "a") == b"STORED"
    assert conn.cmd(f"delete {key}") == b"DELETED"
    assert conn.cmd(f"delete {key}") == b"NOT_FOUND"
    assert store(conn, "set", key, "a,b") == b"STORED"
    assert conn.cmd(f"md {key}") == b"HD"
    assert store(conn, "append", key, "a") == b"STORED"
    assert store(conn, "prepend", key, "a") == b"STORED"
    assert conn.get(key) is None
    assert conn.cmd(f"delete {key}") == b"NOT_FOUND"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_delete_of_a_list_that_may_move(dialect, start_daemon, memcached):
    config = {"lists m-": {"bridge": "yes", "dialect": dialect, "migrate": "native"}}
    with start_daemon([memcached], config=config).conn() as conn:
        for drop, gone, missing in (("delete", b"DELETED", b"NOT_FOUND"), ("md", b"HD", b"NF")):
            assert conn.cmd(f"{drop} m-x") == missing
            assert conn.cmd("ladd m-x a b") == b"STORED"
            assert conn.cmd(f"{drop} m-x") == gone
            assert conn.get("m-x") is None
            assert conn.cmd(f"{drop} m-x") == missing


@pytest.mark.config(**{"lists m-": {"bridge": "yes", "dialect": "simple", "migrate": "native"}})
def test_delete_of_a_list_that_has_not_moved(conn, memcached):
    with Conn(memcached.port) as plain:
        assert plain.set("m-x", b"a,b,") == b"STORED"
        assert conn.cmd("delete m-x") == b"DELETED"
        assert conn.cmd("delete m-x") == b"NOT_FOUND"
        assert plain.get("m-x") is None


@pytest.mark.parametrize("key", ("b-x", "s-x"))
def test_delete_in_one_packet_with_changes(conn, key):
    conn.send(f"delete {key}\r\nappend {key} 0 0 1\r\na\r\ndelete {key}\r\nget {key}\r\n"
              f"delete {key}\r\n")
    assert conn.lines(5) == [b"NOT_FOUND", b"STORED", b"DELETED", b"END", b"NOT_FOUND"]


@pytest.mark.parametrize("key", ("b-x", "s-x", "f-x"))
def test_a_delete_that_finds_nothing_deletes_nothing(start_memcached, start_relay, start_daemon, key):
    """Also not what another proxy adds between its look and a removal."""
    memcached = start_memcached()
    relay = start_relay(memcached)
    other, proxy = start_daemon([memcached], config=BRIDGES), start_daemon([relay], config=BRIDGES)
    with other.conn() as writer, proxy.conn() as conn:
        assert store(writer, "append", key, "a") == b"STORED"
        assert store(conn, "prepend", key, "a") == b"STORED"
        relay.hold_after(0)
        conn.send(f"delete {key}\r\n")
        answered = []
        threading.Thread(target=lambda: answered.append(conn.line()), daemon=True).start()
        relay.wait_until_held_or(lambda: answered)
        assert store(writer, "append", key, "b") == b"STORED"
        relay.release()
        wait_until("the delete is answered", lambda: answered)
        assert writer.get(key) == (b"b" if answered == [b"NOT_FOUND"] else None)


def test_missing_and_empty_lists_under_refuse(conn):
    for verb in ("append", "prepend"):
        assert store(conn, verb, "r-x", "a") == b"NOT_STORED"
        assert store(conn, verb, "r-x", "") == b"NOT_STORED"
    assert conn.cmd("delete r-x") == b"NOT_FOUND"
    assert conn.get("r-x") is None
    assert store(conn, "set", "r-x", "") == b"STORED"
    assert conn.get("r-x") == b""
    assert store(conn, "append", "r-x", "") == b"STORED"
    assert store(conn, "add", "r-x", "a") == b"NOT_STORED"
    assert store(conn, "append", "r-x", "a") == b"STORED"
    assert store(conn, "prepend", "r-x", "a") == b"STORED"
    assert conn.get("r-x") == b""
    assert conn.cmd("delete r-x") == b"DELETED"
    assert conn.cmd("delete r-x") == b"NOT_FOUND"


def test_get_of_lists_and_plain_keys(conn):
    """In the order of the question, one END."""
    fill(conn, "b-1", "a", "b")
    fill(conn, "s-2", "c")
    assert conn.set("plain", "value", flags=9) == b"STORED"
    found = conn.values("get plain b-1 none b-none s-2 b-1 plain")
    assert found == [
        (b"plain", [9, 5], b"value"),
        (b"b-1", [0, 3], b"a,b"),
        (b"s-2", [0, 1], b"c"),
        (b"b-1", [0, 3], b"a,b"),
        (b"plain", [9, 5], b"value"),
    ]
    found = conn.values("gets b-1 plain")
    assert [(key, numbers[:2]) for key, numbers, _ in found] == [(b"b-1", [0, 3]), (b"plain", [9, 5])]
    assert found[0][1][2] == conn.values("lgets b-1")[0][1][2]
    assert len(conn.values("get " + " ".join(["plain", "b-1"] * 300))) == 600


def test_a_get_goes_on_behind_a_list_that_cannot_be_read(conn, memcached):
    conn.set("plain", "value")
    with memcached.conn() as backend:
        backend.set("b-x#", "no head")
    conn.send("get b-x plain\r\nget plain\r\n")
    assert conn.lines(2) == [b"VALUE plain 0 5", b"value"]
    assert conn.line() == b"SERVER_ERROR b-x# holds no list that this version can read"
    assert conn.lines(3) == [b"VALUE plain 0 5", b"value", b"END"]


@pytest.mark.parametrize("key", ("b-x", "s-x", "f-x", "r-x"))
def test_pipelines_keep_their_order(conn, key):
    """A get behind a change of the same connection sees it."""
    conn.send(f"set {key} 0 0 1\r\na\r\nget {key}\r\nappend {key} 0 0 3 noreply\r\nb,c\r\n")
    conn.send(f"get {key}\r\nprepend {key} 0 0 1\r\na\r\nladd {key} d\r\nget {key}\r\n")
    conn.send(f"delete {key} noreply\r\nget {key}\r\nmn\r\n")
    assert conn.lines(1) == [b"STORED"]
    assert [data for _, _, data in conn.values_answer()] == [b"a"]
    assert [data for _, _, data in conn.values_answer()] == [b"a,b,c"]
    assert conn.lines(2) == [b"STORED", b"STORED"]
    assert [data for _, _, data in conn.values_answer()] == [b"b,c,d"]
    assert conn.values_answer() == []
    assert conn.line() == b"MN"


def test_what_is_not_for_lists(conn):
    fill(conn, "b-x", "1")
    for verb in ("incr", "decr"):
        assert conn.cmd(f"{verb} b-x 1") == (
            b"CLIENT_ERROR %s is not for lists, and this key is one (bridge)" % verb.encode()
        )
    conn.send("incr b-x 1 noreply\r\nmn\r\n")
    assert conn.line() == b"MN"
    assert conn.cmd("ma b-x") == b"CLIENT_ERROR ma is not for lists, and this key is one (bridge)"
    assert conn.get("b-x") == b"1"


def test_what_a_dialect_refuses_is_called_by_the_verb_of_the_client(conn):
    assert store(conn, "add", "f-x", "a").startswith(b"CLIENT_ERROR add: a list of several items")
    assert store(conn, "append", "o-x", "a,b") == b"STORED"
    assert conn.get("o-x") == b"b,a"
    assert store(conn, "prepend", "o-x", "a").startswith(b"CLIENT_ERROR prepend: ")
    assert store(conn, "append", "g-x", "a+b").startswith(b"CLIENT_ERROR item holds the byte \\x2b")


def test_limits(conn):
    fill(conn, "b-x", "old")
    assert store(conn, "append", "b-x", "x" * 1025) == b"CLIENT_ERROR item is longer than 1024 bytes (max_item_bytes)"
    large = "x" * (1024 * 1024 + 1)
    kept = (
        b"SERVER_ERROR object too large for cache: above max_value_bytes (1048576), the list is as "
        b"it was"
    )
    assert store(conn, "set", "b-x", large) == kept
    assert conn.cmd(f"ms b-x {len(large)}", large) == kept
    assert conn.cmd(f"ms {encoded('b-x')} {len(large)} b", large) == kept
    assert store(conn, "append", "b-x", large) == b"SERVER_ERROR object too large for cache"
    assert conn.get("b-x") == b"old"
    assert conn.cmd("get b-" + "y" * 220) == b"CLIENT_ERROR key too long, 220 bytes at most"
    assert conn.cmd(f"mg {encoded('b- x')} b v") == b"CLIENT_ERROR bad key: it holds a blank or control bytes"


def test_the_items_of_a_list_are_no_lists(conn, memcached):
    fill(conn, "b-x", "a")
    assert conn.get("b-x#").startswith(b"^1")
    assert store(conn, "set", "b-x#", "a").startswith(b"CLIENT_ERROR this key belongs to a list")
    assert conn.cmd("touch b-x# 100").startswith(b"CLIENT_ERROR this key belongs to a list")
    assert conn.set("plain", "a") == b"STORED"
    with memcached.conn() as backend:
        assert backend.get("b-x") is None
        assert backend.get("plain") == b"a"


def test_requests_are_counted_as_both(conn):
    before = conn.stats()
    fill(conn, "b-x", "a")
    conn.get("b-x")
    conn.get("b-none")
    store(conn, "append", "b-x", "b")
    store(conn, "append", "b-x", "c,,d")
    conn.cmd("mg b-x k")
    conn.cmd("delete b-x")
    after = conn.stats()
    rise = {name: int(after[name]) - int(before[name]) for name in after if after[name].isdigit()}
    wanted = {"cmd_get": 2, "get_hits": 2, "get_misses": 1, "cmd_set": 2, "cmd_meta": 1}
    wanted.update({"cmd_other": 1, "cmd_list_read": 3, "cmd_list_write": 3, "client_errors": 1})
    assert {name: rise[name] for name in wanted} == wanted


def test_a_list_in_a_pool_of_its_own(start_memcached, start_daemon):
    plain, other = start_memcached(), start_memcached()
    daemon = start_daemon(
        [plain],
        config={
            "pool lists": {"servers": other.address},
            "lists b-": {"bridge": "yes", "pool": "lists"},
        },
    )
    with daemon.conn() as conn, other.conn() as backend:
        assert store(conn, "append", "b-x", "a,b") == b"STORED"
        assert conn.get("b-x") == b"a,b"
        assert backend.get("b-x#") is not None


# --- meta commands ---


@pytest.mark.parametrize("key", LISTS)
def test_mg(conn, key):
    fill(conn, key, "a", "b")
    assert conn.cmd(f"mg {key} v") == b"VA 3"
    assert conn.line() == b"a,b"
    assert conn.cmd(f"mg {key} s k v f O12 t q P L") == b"VA 3 s3 k%s f0 O12 t-1" % key.encode()
    assert conn.line() == b"a,b"
    assert conn.cmd(f"mg {key}") == b"HD"
    assert conn.cmd(f"mg {key} s k") == b"HD s3 k" + key.encode()
    version = conn.values(f"gets {key}")[0][1][2]
    assert conn.cmd(f"mg {key} c") == b"HD c%d" % version
    assert conn.cmd(f"mg {key}none v k f c O1") == b"EN k%snone O1" % key.encode()
    conn.send(f"mg {key}none v q\r\nmg {key}none q\r\nmn\r\n")
    assert conn.line() == b"MN"
    code = encoded(key)
    assert conn.cmd(f"mg {code} b k v O1") == f"VA 3 k{code} b O1".encode()
    assert conn.line() == b"a,b"


def test_ms_in_each_mode(conn):
    assert conn.cmd("ms b-x 1 ME k O1", "a") == b"HD kb-x O1"
    assert conn.cmd("ms b-x 1 ME k O1", "z") == b"NS kb-x O1"
    assert conn.cmd("ms b-x 3 MA F16", "b,c") == b"HD"
    assert conn.cmd("ms b-x 1 MP", "a") == b"HD"
    assert conn.get("b-x") == b"b,c"
    assert conn.cmd(f"ms {encoded('b-x')} 3 b k", "x,y") == f"HD k{encoded('b-x')} b".encode()
    assert conn.get("b-x") == b"x,y"
    conn.send("ms b-x 1 MS q\r\na\r\nms b-x 1 ME q O7\r\nb\r\nmn\r\n")
    assert conn.lines(2) == [b"NS O7", b"MN"]
    assert conn.cmd("ms r-x 1 MA", "a") == b"NS"
    assert conn.cmd("ms r-x 1 MP O1", "a") == b"NS O1"


def test_md(conn):
    fill(conn, "r-x", "a")
    assert conn.cmd("md r-x O1 k") == b"HD O1 kr-x"
    assert conn.cmd("md r-x O1 k") == b"NF O1 kr-x"
    assert conn.cmd("md r-x q") == b"NF"
    fill(conn, "b-x", "a")
    conn.send("md b-x q\r\nmg b-x\r\n")
    assert conn.line() == b"EN"


def test_me(conn):
    fill(conn, "b-x", "a", "b")
    line = conn.cmd("me b-x")
    assert line.startswith(b"ME b-x exp=-1 cas=") and b" items=2 " in line
    assert conn.cmd(f"me {encoded('b-x')} b").startswith(b"ME " + encoded("b-x").encode())
    assert conn.cmd("me b-none") == b"EN"


@pytest.mark.parametrize("line", ("mg b-x v h", "mg b-x l", "mg b-x N30", "mg b-x v E1 R5", "md b-x I"))
def test_flags_that_make_no_sense_are_named(conn, line):
    fill(conn, "b-x", "a")
    bad = line.split()[-1 if "E1" not in line else -2][:1]
    expected = f"CLIENT_ERROR {line[:2]} of a list has no flag {bad} (bridge)".encode()
    assert conn.cmd(line) == expected
    assert conn.cmd("ms b-x 1 I", "z") == b"CLIENT_ERROR ms of a list has no flag I (bridge)"
    assert conn.cmd("ms b-x 1 MA C5", "z") == b"CLIENT_ERROR ms of a list has no flag C (bridge)"
    assert conn.get("b-x") == b"a"


@pytest.mark.config(**{"lists b-": {"bridge": "yes"}, "lists m-": {}, "lists n-": {}})
def test_the_start_says_where_no_bridge_is(daemon):
    daemon.wait_for_log(r"lists under m-, n- have no bridge: memcached's own verbs see plain items there")


ANYWHERE = {
    "lists *tags|": {"bridge": "yes"},
    "lists *gone|": {"bridge": "yes", "delimiter": "/"},
    "lists app:old": {},
}


@pytest.mark.config(**ANYWHERE)
def test_keys_behind_what_clients_put_before(conn, daemon):
    for key in ("tags|7", "app:1:tags|7", "x" * 100 + "tags|7"):
        assert store(conn, "append", key, "a,b") == b"STORED"
        assert conn.get(key) == b"a,b" and conn.lget(key) == [b"a", b"b"]
        assert conn.cmd(f"mg {key} s") == b"HD s3"
        assert conn.cmd(f"set {key}# 0 0 1", "x").startswith(b"CLIENT_ERROR this key belongs to a list")
    assert store(conn, "append", "app:gone|tags|7", "a,b") == b"STORED"
    assert conn.lget("app:gone|tags|7", b"/") == [b"a,b"]
    for key in ("tags7", "app:old:tags|7", "ags|7"):
        assert store(conn, "append", key, "a") == b"NOT_STORED"
        assert store(conn, "set", key, "a") == b"STORED"
    assert [key for key, *_ in conn.values("get app:1:tags|7 tags7 none app:gone|tags|7")] == [
        b"app:1:tags|7", b"tags7", b"app:gone|tags|7"]
    settings = conn.stats("stats settings")
    assert settings["lists:*tags|:bridge"] == "yes" and settings["lists:app:old:bridge"] == "no"
    daemon.wait_for_log(r"lists under app:old have no bridge")


# --- bridge = signed ---

SIGNED = {
    "lists b-": {"bridge": "signed"},
    "lists r-": {"bridge": "signed", "on_missing": "refuse"},
    "lists g-": {"bridge": "signed", "dialect": "signed", "delimiter": ","},
    "lists f-": {"bridge": "signed", "dialect": "flip"},
    "lists u-": {"bridge": "signed", "dialect": "sublists"},
}
signed = pytest.mark.config(**SIGNED)


@signed
@pytest.mark.parametrize("key", ("b-x", "g-x", "f-x", "u-x"))
def test_signed_append_adds_and_deletes(conn, key):
    assert store(conn, "append", key, "-none+a+b+c") == b"STORED"
    assert conn.get(key) == b"a,b,c"
    assert store(conn, "append", key, "+d-a") == b"STORED"
    assert conn.get(key) == b"b,c,d"
    assert store(conn, "append", key, "+x-x-b+b") == b"STORED"
    assert conn.get(key) == b"c,d,b"
    assert store(conn, "append", key, "") == b"STORED"
    assert store(conn, "set", key, "p,q") == b"STORED"
    assert conn.get(key) == b"p,q"
    many = "".join(f"+i{n}" for n in range(1000))
    assert store(conn, "append", key, "-p-q" + many) == b"STORED"
    assert conn.llen(key) == 1000


@signed
def test_signed_append_in_turns_with_reads(conn):
    """Changes and looks of one session in turns go another way through the engine."""
    for n in range(200):
        conn.send(f"append b-x 0 0 {len(f'+a{n}-a{n - 3}')}\r\n+a{n}-a{n - 3}\r\nlhas b-x a{n} a{n - 3}\r\n")
        conn.send("get b-x\r\n")
    for n in range(200):
        assert conn.line() == b"STORED"
        assert [data for _, _, data in conn.values_answer()] == [b"a%d" % n]
        expected = b",".join(b"a%d" % i for i in range(max(0, n - 2), n + 1))
        assert [data for _, _, data in conn.values_answer()] == [expected]


@signed
@pytest.mark.parametrize("value", ("a", "a+b", "+a+", "+a--b", "++a", "+"))
def test_signed_values_that_are_none(conn, value):
    assert store(conn, "append", "b-x", value) == (
        b"CLIENT_ERROR value holds no signed items, each with a sign in front: +add-delete (bridge "
        b"= signed)"
    )
    assert conn.get("b-x") is None


@signed
def test_signed_lists_take_no_prepend(conn):
    refusal = (
        b"CLIENT_ERROR %s is not for these lists: append -ITEM to delete (bridge = signed)"
    )
    assert store(conn, "prepend", "b-x", "a") == refusal % b"prepend"
    assert conn.cmd("ms b-x 1 MP", "a") == refusal % b"ms"
    assert store(conn, "append", "r-x", "+a-b") == b"NOT_STORED"
    assert store(conn, "append", "r-x", "-b") == b"NOT_STORED"
    assert store(conn, "append", "b-x", "+a,b").startswith(b"CLIENT_ERROR item holds the delimiter")
