# SPDX-License-Identifier: BSD-3-Clause
"""Clients of memcached's binary protocol get all that text clients get. What memcached itself answers is
compared in test_binary_random.py."""

import os
import pathlib
import struct
import subprocess

import pytest

from couchbase_support import Cluster, sections
from harness import UnixConn, wait_until
from test_binary_support import (AUTH_ERROR, EXISTS, INTERNAL, INVALID, NEVER, NO_MEMORY, NOT_A_NUMBER,
                                 NOT_FOUND, NOT_STORED, SUCCESS, TEMPORARY, TOO_LARGE, UNKNOWN_COMMAND,
                                 Answer, Binary, answers, count, packet, store, touch)
from test_pass_support import byte_by_byte, talk
from test_takeover import Place
from tls_support import client_context, make_certificate

LISTS = pytest.mark.config(**{"lists followers:": {"bridge": True}})


@pytest.fixture
def binary(daemon):
    with Binary(daemon.port) as binary:
        yield binary


def status_of(answer):
    return answer.status, answer.value


# --- plain items ---


def test_a_text_client_sees_what_a_binary_one_stores(binary, conn):
    answer = binary.ask(store("set", "k", "value", flags=7, opaque=0xCAFE))
    ((_, (flags, _, cas), value),) = conn.values("gets k")
    assert (flags, value) == (7, b"value") and cas == answer.cas and answer.opaque == 0xCAFE
    assert conn.cmd("append k 0 0 1", "s") == b"STORED"
    found = binary.ask(packet("getk", "k"))
    assert (found.extras, found.key, found.value) == (struct.pack("!I", 7), b"k", b"values")
    assert found.cas == conn.values("gets k")[0][1][2] != cas
    assert status_of(binary.ask(store("set", "k", "x", cas=cas))) == (EXISTS, b"Data exists for key.")
    assert binary.ask(store("set", "k", "x", cas=found.cas)).status == SUCCESS
    stats = conn.stats()
    assert (stats["cmd_get"], stats["get_hits"], stats["cmd_set"]) == ("3", "3", "4")


def test_quiet_requests_say_only_what_is_not_usual(binary):
    said = binary.until_noop(
        store("setq", "k", "value"), packet("getq", "none"), packet("getkq", "k", opaque=5),
        packet("deleteq", "none", opaque=6), store("addq", "k", "x", opaque=7),
        count("incrq", "n", 1, 5, 0), touch("gatq", "none", 9), touch("gatkq", "k", 9, opaque=8),
        packet("appendq", "k", b"", "+"), packet("prependq", "none", b"", "+", opaque=9),
        store("replaceq", "k", "new"), packet("deleteq", "k"),
    )  # fmt: skip
    assert [(answer.opaque, answer.status) for answer in said] == [
        (5, SUCCESS), (6, NOT_FOUND), (7, EXISTS), (8, SUCCESS), (9, NOT_STORED)]


def test_many_quiet_reads_are_answered_in_their_order(binary):
    keys = [f"key{n}" for n in range(3000)]
    assert binary.until_noop(*(store("setq", key, key, n) for n, key in enumerate(keys))) == []
    found = binary.until_noop(*(packet("getkq", key + "x" * (n % 2), opaque=n)
                                for n, key in enumerate(keys)))
    assert [(a.opaque, a.key, a.value) for a in found] == [
        (n, key.encode(), key.encode()) for n, key in enumerate(keys) if n % 2 == 0]


def test_large_values_to_a_client_that_reads_late(binary):
    value = os.urandom(900_000)
    assert binary.ask(store("set", "k", value)).status == SUCCESS
    requests = [packet("get", "k", opaque=n) for n in range(60)]
    assert [(a.opaque, a.value == value) for a in binary.until_noop(*requests)] == [
        (n, True) for n in range(60)]


def test_numbers(binary, conn):
    assert status_of(binary.ask(count("incr", "n", 1))) == (NOT_FOUND, b"Not found")
    assert binary.ask(count("incr", "n", 1, 2**64 - 2, 0)).value == b"\xff" * 7 + b"\xfe"
    assert binary.ask(count("incr", "n", 3)).value == struct.pack("!Q", 1)
    assert binary.ask(count("decr", "n", 5)).value == struct.pack("!Q", 0)
    cas = binary.ask(store("set", "n", "10")).cas
    assert binary.ask(count("incr", "n", 1, cas=cas + 5)).status == EXISTS
    assert binary.ask(count("incr", "n", 1, cas=cas)).value == struct.pack("!Q", 11)
    assert binary.ask(store("set", "t", "text")).status == SUCCESS
    assert binary.ask(count("incr", "t", 1)).status == NOT_A_NUMBER
    assert conn.cmd("incr n 1") == b"12" and conn.get("t") == b"text"


def test_times_have_32_bits_without_a_sign(binary, conn):
    """4294967295 is a second of 2106 and not, as in the text protocol, -1."""
    for exptime, least in [(0, None), (100, 90), (2**31 - 1, 10**7), (NEVER, 10**7)]:
        assert binary.ask(store("set", "k", "v", exptime=exptime)).status == SUCCESS
        assert binary.ask(packet("get", "k")).value == b"v"
        left = int(conn.cmd("mg k t").split(b" t")[1])
        assert left == -1 if least is None else left >= least
    assert binary.ask(touch("touch", "k", 50)).status == SUCCESS
    assert int(conn.cmd("mg k t").split(b" t")[1]) in (49, 50)
    assert binary.ask(touch("gat", "k", 0)).value == b"v"
    assert conn.cmd("mg k t") == b"HD t-1"


@pytest.mark.config(proxy={"max_value_bytes": "1k"})
def test_a_value_that_is_too_large_takes_the_old_one_away(binary, conn):
    for key in ("k", "a b"):
        assert binary.ask(store("set", key, "old")).status == SUCCESS
        assert status_of(binary.ask(store("add", key, "x" * 1025))) == (TOO_LARGE, b"Too large.")
        assert binary.ask(packet("get", key)).value == b"old"
        assert binary.ask(store("setq", key, "x" * 1025)).status == TOO_LARGE
        assert binary.ask(packet("get", key)).status == NOT_FOUND
        assert binary.ask(store("set", key, "x" * 1024)).status == SUCCESS
    assert conn.stats()["refused_too_large"] == "2"


def test_keys_that_no_text_client_can_name(binary, conn):
    keys = [b"a b", b"\0", b"k\r\nget k", b" " * 186, b"x#\n.0"]
    for key in keys:
        assert binary.ask(store("set", key, key)).status == SUCCESS
    for key in keys:
        assert (binary.ask(packet("getk", key))).value == key
        assert binary.ask(touch("gatk", key, 60)).key == key
        assert binary.ask(packet("append", key, b"", "+")).status == SUCCESS
        assert binary.ask(packet("delete", key)).status == SUCCESS
        assert binary.ask(packet("getk", key)).key == key
    answer = binary.ask(store("set", b" " * 187, "x"))
    assert answer.status == INVALID and b"186 bytes at most" in answer.value
    assert conn.get("k") is None and conn.stats()["server_errors"] == "0"


def test_items_of_lists_are_protected(binary, conn):
    assert conn.cmd("ladd fruit apple") == b"STORED"
    for request in (store("set", "fruit#", "x"), packet("delete", "fruit#"), touch("gat", "fruit#", 1),
                    count("incr", "fruit#", 1), packet("appendq", "fruit#", b"", "x")):
        answer = binary.ask(request)
        assert answer.status == INVALID and b"use list verbs" in answer.value
    assert binary.ask(packet("get", "fruit#")).status == SUCCESS
    assert binary.ask(store("set", "of many#", "none")).status == SUCCESS
    assert conn.lget("fruit") == [b"apple"]


# --- what is the proxy's own ---


def test_statistics(binary, conn):
    stats = binary.stats()
    assert stats["pid"] == conn.stats()["pid"] and "cmd_get" in stats
    assert binary.stats(b"settings").keys() == conn.stats("stats settings").keys()
    assert binary.stats(b"items") == {} and binary.stats(b"sizes") == {"sizes_status": "disabled"}
    assert any(name.startswith("backend:") for name in binary.stats(b"backends"))
    for group in (b"bogus", b"noreply"):
        assert status_of(binary.ask(packet("stat", group))) == (NOT_FOUND, b"Not found")
    assert binary.ask(packet("stat", b"where x\r\ny")).status == INVALID
    binary.ask(packet("get", "k"))
    assert binary.ask(packet("stat", b"reset")) == Answer(0x10, SUCCESS, b"", b"", b"", 0, 0)
    assert binary.stats()["cmd_get"] == "0"


def test_version_noop_and_quit(binary, daemon):
    def is_the_same():
        text = talk(daemon.port, b"version\r\n")
        return b"VERSION " + binary.ask(packet("version")).value + b"\r\n" == text

    wait_until("the server has told its version", is_the_same)
    assert binary.ask(packet("noop", opaque=77)).opaque == 77
    assert binary.ask(packet("quit", opaque=78)).opaque == 78 and binary.is_closed()
    with Binary(daemon.port) as other:
        other.send(packet("quitq"), packet("noop"))
        assert other.is_closed()


@pytest.mark.config(proxy={"allow_flush_all": False})
def test_flush(binary):
    answer = binary.ask(packet("flushq"))
    assert answer.status == INVALID and b"flush_all" in answer.value


@pytest.mark.config(proxy={"allow_flush_all": True})
@pytest.mark.memcacheds(3)
def test_flush_where_it_is_allowed(binary, conn, memcacheds):
    for request in (packet("flush"), packet("flush", b"", struct.pack("!I", 0)), packet("flushq")):
        assert conn.set("k", "v") == b"STORED"
        assert [a.status for a in binary.until_noop(request)] == [SUCCESS] * (request[1] == 0x08)
        assert conn.get("k") is None
    assert binary.ask(packet("flush", b"", struct.pack("!I", 10))).status == INVALID
    memcacheds[1].stop()
    answer = binary.ask(packet("flushq"))
    assert answer.status in (TEMPORARY, INTERNAL) and b"backend" in answer.value


# --- what is no request ---


def test_opcodes_that_nobody_knows_leave_the_connection_in_step(binary):
    for opcode in (0x1B, 0x1F, 0x25, 0x3D, 0x89, 0xFF):
        answer = binary.ask(packet(opcode, "key", b"extras", "set x 0 0 1\r\ny\r\n", opaque=opcode))
        assert status_of(answer) == (UNKNOWN_COMMAND, b"Unknown command")
        assert binary.ask(packet("noop", opaque=1)).opaque == 1
    assert binary.ask(packet("get", "x")).status == NOT_FOUND


@pytest.mark.parametrize("request_", [
    packet("get", "k", key_len=10), packet("get", "k", extras_len=10), packet("set", "k", body_len=1),
    store("set", "k", "v", key_len=0xFFFF), packet("noop", key_len=0xFFFF, extras_len=0xFF),
], ids=str)  # fmt: skip
def test_lengths_that_lie_end_the_connection(binary, conn, request_):
    binary.send(packet("noop"), request_, b"\x80" * 30)
    assert binary.answer().status == SUCCESS
    assert binary.answer().status in (UNKNOWN_COMMAND, INVALID) and binary.is_closed()
    assert conn.get("k") is None


def test_a_body_that_does_not_come(daemon, conn):
    """Of 4 GB: neither waited for as a whole nor kept."""
    for request in (packet(0x3D, body_len=0xFFFFFFFF), store("set", "k", "", body_len=0xFFFFFFFF)):
        said = answers(talk(daemon.port, request + b"x" * 100_000 + packet("noop")))
        assert [a.status for a in said] in ([UNKNOWN_COMMAND], [TOO_LARGE])
    assert conn.get("k") is None


@pytest.mark.parametrize("text", [b"get k\r\n", b"\x81" + packet("noop")[1:], b"\n", b"\x16\x03\x01"])
def test_text_behind_a_packet_ends_the_connection(binary, text):
    binary.send(packet("noop"), text + b"x" * 24)
    assert binary.answer().status == SUCCESS and binary.is_closed()


def test_a_packet_behind_text_is_no_request(daemon):
    assert talk(daemon.port, b"mn\r\n" + packet("version") + b"\r\n") == b"MN\r\nERROR\r\n"


def test_packets_cut_anywhere(daemon):
    script = b"".join([store("set", "k", "value"), packet("getk", "k"), count("incr", "n", 1, 5, 0),
                       packet(0x3D, "key", b"x", "value"), touch("touch", "k", 100), packet("stat", "sizes"),
                       packet("quit")])
    whole = answers(talk(daemon.port, script))
    assert [a._replace(cas=0) for a in answers(talk(daemon.port, byte_by_byte(script)))][:2] == [
        a._replace(cas=0) for a in whole][:2]
    for cut in range(1, len(script), 7):
        said = answers(talk(daemon.port, [script[:cut], script[cut:]], pause_s=0.001))
        assert [a.status for a in said] == [a.status for a in whole]
    for end in range(1, len(script), 5):
        answers(talk(daemon.port, script[:end]))


@pytest.mark.config(proxy={"request_timeout_ms": 100})
def test_a_packet_that_does_not_arrive_is_not_waited_for(binary):
    assert binary.ask(packet("noop", opaque=5)).opaque == 5
    binary.send(store("set", "k", "value", opaque=6)[:30])
    answer = binary.answer()
    assert (answer.opaque, answer.opcode, answer.status) == (6, 1, INVALID)
    assert b"did not arrive" in answer.value and binary.is_closed()


# --- listeners ---


@pytest.mark.config(proxy={"deny_verbs": "set, flush_all, stats, delete"})
def test_denied_verbs(binary, conn):
    for request, verb in ((store("set", "k", "v"), "set"), (store("setq", "k", "v"), "set"),
                          (packet("flushq"), "flush_all"), (packet("stat", "noreply"), "stats"),
                          (packet("deleteq", "k"), "delete")):
        answer = binary.ask(request)
        assert status_of(answer) == (INVALID, f"{verb} is not allowed here (deny_verbs)".encode())
    assert binary.ask(store("add", "k", "v")).status == SUCCESS and conn.get("k") == b"v"


@pytest.fixture
def users(tmp_path):
    path = pathlib.Path(tmp_path) / "users"
    path.write_text("ann:secret\n", encoding="utf-8")
    return path


@pytest.fixture
def closed(users, memcached, start_daemon):
    return start_daemon([memcached], config={"proxy": {"auth_file": users}})


def login(name, password):
    return packet("sasl_auth", "PLAIN", b"", f"\0{name}\0{password}")


def test_logins(closed):
    with Binary(closed.port) as binary:
        assert binary.ask(packet("sasl_list")).value == b"PLAIN"
        assert binary.ask(packet("version")).status == SUCCESS
        for wrong in (login("ann", "secre"), login("bob", "secret"), packet("sasl_auth", "PLAIN"),
                      packet("sasl_auth", "CRAM-MD5", b"", "\0ann\0secret"),
                      packet("sasl_step", "PLAIN", b"", "\0ann\0secret")):
            assert status_of(binary.ask(wrong)) == (AUTH_ERROR, b"Auth failure.")
        assert binary.ask(packet("sasl_auth", "PLAIN", b"", "x" * 3000)).status == INVALID
        assert status_of(binary.ask(login("ann", "secret"))) == (SUCCESS, b"Authenticated")
        assert binary.ask(store("set", "k", "v")).status == SUCCESS
        assert int(binary.stats()["auth_errors"]) == 2
    for request in (packet("get", "k"), store("setq", "k", "v"), packet("noop"), packet("stat")):
        with Binary(closed.port) as binary:
            assert status_of(binary.ask(request)) == (AUTH_ERROR, b"Auth failure.")
            assert binary.is_closed()


def test_a_value_that_is_too_large_removes_nothing_before_a_login(closed, memcached):
    """The key alone was sent, and the item went."""
    with memcached.conn() as direct:
        assert direct.set("k", "v") == b"STORED"
        for name in ("set", "setq"):
            with Binary(closed.port) as binary:
                large = packet(name, "k", bytes(8), body_len=9 + 2 * 1024 * 1024)
                assert status_of(binary.ask(large)) == (AUTH_ERROR, b"Auth failure.")
                assert binary.is_closed()
        assert direct.get("k") == b"v"


def test_sasl_where_nobody_has_to_log_in(binary):
    for request in (packet("sasl_list"), login("ann", "secret"), packet("sasl_step", "PLAIN")):
        assert status_of(binary.ask(request)) == (UNKNOWN_COMMAND, b"Unknown command")
    assert binary.ask(packet("noop")).status == SUCCESS


def test_tls(memcached, start_daemon, tmp_path):
    own = make_certificate(tmp_path / "own.pem")
    daemon = start_daemon([memcached], config={"proxy": {"tls_cert": own, "tls_key": own},
                                               "listener plain": {"listen": f"unix:{tmp_path}/socket",
                                                                  "tls_cert": "", "tls_key": ""}})
    with Binary(daemon.port, tls=client_context(own)) as binary:
        assert binary.ask(store("set", "k", "v")).status == SUCCESS
        assert binary.ask(packet("get", "k")).value == b"v"


def test_clients_go_on_in_another_daemon(start_daemon, memcached, tmp_path):
    """Between two requests, and before the first one."""
    place = Place(start_daemon, [memcached], tmp_path)
    with Binary(place.daemon.port) as binary, Binary(place.daemon.port) as half, \
            Binary(place.daemon.port) as new, UnixConn(place.unix) as text:
        assert binary.ask(store("set", "k", "v")).status == SUCCESS
        first = binary.stats()["pid"]
        text.send(b"mn\r\n")
        assert text.line() == b"MN"
        request = store("set", "half", "x" * 1000)
        assert half.ask(packet("noop")).status == SUCCESS
        half.send(request[:500])
        wait_until("it is read", lambda: int(binary.stats()["bytes_read"]) > 500)
        place.take_over()
        assert binary.stats()["pid"] != first
        assert binary.ask(packet("get", "k")).value == b"v"
        half.send(request[500:])
        assert half.answer().status == SUCCESS
        assert new.ask(packet("get", "half")).value == b"x" * 1000
        text.send(packet("version"), b"\r\nmn\r\n")
        assert text.lines(2) == [b"ERROR", b"MN"]


def test_logins_stay_valid_in_another_daemon(start_daemon, memcached, tmp_path, users):
    place = Place(start_daemon, [memcached], tmp_path, auth_file=users)
    with Binary(place.daemon.port) as known, Binary(place.daemon.port) as unknown:
        assert known.ask(login("ann", "secret")).status == SUCCESS
        assert unknown.ask(packet("version")).status == SUCCESS
        place.take_over()
        assert known.ask(packet("get", "k")).status == NOT_FOUND
        assert unknown.ask(packet("get", "k")).status == AUTH_ERROR


# --- servers ---


def test_a_server_that_is_down(memcached, start_daemon):
    for down_reads in ("error", "miss"):
        daemon = start_daemon([memcached], config={"pool main": {"down_reads": down_reads}})
        with Binary(daemon.port) as binary:
            assert binary.ask(store("set", "k", "v")).status == SUCCESS
            memcached.stop()
            wait_until("it is seen", lambda: binary.ask(packet("get", "k")).status != SUCCESS)
            read = binary.ask(packet("getk", "k"))
            if down_reads == "miss":
                assert (read.status, read.key) == (NOT_FOUND, b"k")
                assert binary.until_noop(packet("getq", "k")) == []
            else:
                assert read.status == TEMPORARY and b"down" in read.value
                assert [a.status for a in binary.until_noop(packet("getq", "k"))] == [TEMPORARY]
            change = binary.ask(store("setq", "k", "v"))
            assert change.status == TEMPORARY and b"down" in change.value
        memcached.start()


def test_an_outcome_that_nobody_knows(start_daemon, slow_fake):
    """And which was slow."""
    daemon = start_daemon([slow_fake], config={"proxy": {"slow_ms": 1}, "pool main": {"timeout_ms": 300}})
    with Binary(daemon.port) as binary:
        answer = binary.ask(store("set", "k", "v"))
        assert answer.status == INTERNAL and b"outcome unknown" in answer.value
        answer = binary.ask(packet("get", "k"))
        assert answer.status == TEMPORARY and b"unknown" not in answer.value
        assert " set k client " in " ".join(binary.stats(b"slow").values())


@pytest.mark.parametrize("name", ["add", "replace", "append", "prepend"])
@pytest.mark.memcacheds(1, "-M", "-m", "4")
def test_a_full_memcached_that_does_not_evict_keeps_the_item(binary, conn, name):
    """It has refused what was to be stored. Asked by `ms`, it deletes the item that was there."""
    assert conn.set("k", "v") == b"STORED"
    at = 0
    for size in (500000, 50000, 5000, 2000, 1000, 500, 200, 100, 50, 10, 1):
        while conn.set(f"{at:09}", "x" * size) == b"STORED":
            at += 1
    request = (packet(name, "k", b"", "x") if name.endswith("pend") else
               store(name, "k", "x"))  # fmt: skip
    assert status_of(binary.ask(request)) == (NO_MEMORY, b"Out of memory")
    assert conn.get("k") == b"v"


@pytest.mark.parametrize("name", ["add", "replace", "append", "prepend"])
@pytest.mark.parametrize("condition", [False, True], ids=["", "with a number"])
def test_what_is_too_large_leaves_the_item_there(binary, conn, name, condition):
    """As with memcached, whose `ms` deletes it. A set does that there, too."""
    assert conn.set("k", "v") == b"STORED"
    extends = name.endswith("pend")
    if condition and extends:
        pytest.skip("no other command does that")
    cas = conn.values("gets k")[0][1][2] if condition else 0
    large = "x" * (1024 * 1024 - 10)
    request = packet(name, "k", b"", large) if extends else store(name, "k", large, cas=cas)
    assert binary.ask(request).status in (TOO_LARGE, EXISTS if name == "add" else NOT_STORED)
    assert conn.get("k") == b"v"


@pytest.mark.parametrize("version", ["1.4.15", "1.5.22", "1.6.9"])
def test_a_memcached_without_meta_commands(version, start_old, start_daemon):
    """Its changes tell no CAS number."""
    daemon = start_daemon([start_old(version)])
    with Binary(daemon.port) as binary:
        assert binary.ask(store("set", "k", "v", flags=3)) == Answer(1, SUCCESS, b"", b"", b"", 0, 0)
        found = binary.ask(packet("get", "k"))
        assert found.value == b"v" and found.cas > 0
        assert binary.ask(store("add", "k", "v")).status == EXISTS
        assert binary.ask(store("replace", "none", "v")).status == NOT_FOUND
        assert binary.ask(packet("append", "k", b"", "+")).status == SUCCESS
        assert binary.ask(store("set", "k", "x", cas=found.cas)).status == EXISTS
        cas = binary.ask(packet("get", "k")).cas
        assert binary.ask(store("set", "k", "10", cas=cas)).status == SUCCESS
        assert binary.ask(count("incr", "k", 1)).value == struct.pack("!Q", 11)
        assert binary.ask(count("incr", "none", 1)).status == NOT_FOUND
        assert binary.ask(touch("touch", "k", 60)).extras == bytes(4)
        for request in (count("incr", "none", 1, 1, 0), packet("get", "a b"), store("set", "a b", "x"),
                        packet("append", "k", b"", "x", cas=cas)):
            answer = binary.ask(request)
            assert answer.status == TEMPORARY and b"has no meta commands" in answer.value
        cas = binary.ask(packet("get", "k")).cas
        assert binary.ask(packet("delete", "k", cas=cas + 1)).status == EXISTS
        assert binary.ask(packet("delete", "k", cas=cas)).status == SUCCESS
        assert binary.ask(packet("delete", "k")).status == NOT_FOUND


def test_a_bucket(start_daemon, tmp_path):
    with Cluster(nodes=2) as cluster:
        daemon = start_daemon(config=sections(cluster, tmp_path))
        with Binary(daemon.port) as binary:
            stored = binary.ask(store("set", "k", "v", flags=3))
            found = binary.ask(packet("getk", "k"))
            assert (found.key, found.value, found.cas) == (b"k", b"v", stored.cas)
            assert binary.ask(store("add", "k", "v")).status == EXISTS
            assert binary.ask(store("set", "k", "v", cas=stored.cas + 1)).status == EXISTS
            assert binary.ask(packet("append", "k", b"", "+", cas=stored.cas)).status == SUCCESS
            assert binary.ask(count("incr", "n", 1, 5, 0)).value == struct.pack("!Q", 5)
            assert binary.ask(count("decr", "n", 1)).value == struct.pack("!Q", 4)
            assert binary.ask(count("decr", "none", 1)).status == NOT_FOUND
            assert binary.ask(count("decr", "k", 1)).status == NOT_A_NUMBER
            assert binary.ask(store("set", "a b\r\n", "odd")).status == SUCCESS
            assert binary.ask(touch("gat", "a b\r\n", 60)).value == b"odd"
            assert binary.ask(packet("delete", "k")).status == SUCCESS
            assert binary.ask(packet("delete", "k")).status == NOT_FOUND
            answer = binary.ask(packet("flush"))
            assert answer.status == INVALID and b"of type couchbase" in answer.value


# --- lists ---


@LISTS
def test_lists_by_a_bridge(binary, conn):
    key = "followers:7"
    assert binary.ask(packet("append", key, b"", "ann")).status == SUCCESS
    assert binary.until_noop(packet("appendq", key, b"", "bob,eve")) == []
    assert conn.lget(key) == [b"ann", b"bob", b"eve"]
    found = binary.ask(packet("getk", key, opaque=6))
    assert (found.key, found.value, found.opaque) == (key.encode(), b"ann,bob,eve", 6)
    assert binary.ask(packet("prepend", key, b"", "bob")).status == SUCCESS
    assert binary.ask(store("set", key, "x", cas=found.cas)).status == EXISTS
    found = binary.ask(touch("gat", key, 100))
    assert found.value == b"ann,eve" and 0 < int(conn.cmd(f"lttl {key}")) <= 100
    found = binary.ask(packet("get", key))
    assert binary.ask(store("set", key, "new,list", cas=found.cas)).status == SUCCESS
    assert conn.lget(key) == [b"new", b"list"]
    assert binary.ask(store("add", key, "x")).status == EXISTS
    assert binary.ask(store("replace", key, "a,b")).status == SUCCESS
    assert binary.ask(touch("touch", key, 200)).extras == bytes(4)
    assert binary.ask(packet("delete", key, cas=1)).status == EXISTS
    assert binary.ask(packet("delete", key)).status == SUCCESS
    assert binary.ask(packet("delete", key)).status == NOT_FOUND
    assert binary.ask(store("replace", key, "a")).status == NOT_FOUND
    assert status_of(binary.ask(packet("get", key))) == (NOT_FOUND, b"Not found")
    assert binary.ask(packet("getk", key)).key == key.encode()
    assert binary.until_noop(packet("getq", key), packet("getkq", key)) == []


@LISTS
def test_what_a_bridge_refuses(binary, conn):
    key = "followers:7"
    assert binary.ask(packet("append", key, b"", "ann")).status == SUCCESS
    for request, text in ((count("incr", key, 1), b"is not for lists"),
                          (store("setq", key, "x", flags=1), b"bridge_flags_in"),
                          (packet("appendq", key, b"", "a,,b"), b"empty item"),
                          (packet("append", key, b"", "x", cas=5), b"no flag C"),
                          (packet("getq", "followers:a b"), b""),
                          (packet("get", "followers:" + "x" * 230), b"")):
        answer = binary.ask(request)
        assert answer.status == INVALID and text in answer.value
    assert conn.lget(key) == [b"ann"]


@pytest.mark.config(proxy={"max_value_bytes": "1k"}, **{"lists followers:": {"bridge": True}})
def test_a_value_that_is_too_large_leaves_the_list(binary, conn):
    assert binary.ask(packet("append", "followers:7", b"", "ann")).status == SUCCESS
    answer = binary.ask(store("set", "followers:7", "x," * 1000))
    assert answer.status == TOO_LARGE and b"the list is as it was" in answer.value
    assert conn.lget("followers:7") == [b"ann"]


# --- stock programs ---


def test_tools_of_libmemcached(daemon, tmp_path):
    path = tmp_path / "file"
    path.write_text("text of a file", encoding="utf-8")
    server = f"--servers=127.0.0.1:{daemon.port}"
    for command, expected in ((["memccp", "--binary", server, path], ""),
                              (["memccat", "--binary", server, "file"], "text of a file\n"),
                              (["memcexist", "--binary", server, "file"], None),
                              (["memcrm", "--binary", server, "file"], "")):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0 and expected in (None, done.stdout), done
