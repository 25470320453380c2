# SPDX-License-Identifier: BSD-3-Clause
"""protect_lists: plain verbs do not write to the items of lists."""

import base64

import pytest

REFUSED = b"CLIENT_ERROR this key belongs to a list: use list verbs (protect_lists)"
HEAD = "f#"
SUBLIST = "f#abcdefg234567.0"
CLOCK = "mclistd#clock.1"
B64 = {key: base64.b64encode(key.encode()).decode() for key in (HEAD, SUBLIST, CLOCK)}


def writes(key):
    yield from ((f"{verb} {key} 0 0 1", b"x") for verb in "set add replace append prepend".split())
    yield f"cas {key} 0 0 1 7", b"x"
    yield from ((line, None) for line in (f"delete {key}", f"incr {key} 1", f"decr {key} 1"))
    yield f"ms {key} 1", b"x"
    yield f"ms {B64[key]} 1 b q", b"x"
    for line in ("md {}", "md {} q", "ma {}", "ma {} N0 J5", "mg {} N60", "mg {} v N60"):
        yield line.format(key), None
        yield line.format(B64[key]) + " b", None


@pytest.mark.parametrize("key", (HEAD, SUBLIST, CLOCK))
def test_writes_are_refused_and_nothing_is_touched(conn, memcached, key):
    """One line of error each, and the connection stays in step."""
    with memcached.conn() as backend:
        backend.set(key, "as it was")
        lines = list(writes(key))
        for line, body in lines:
            assert conn.cmd(line, body) == REFUSED, line
            assert conn.cmd("mn") == b"MN"
        assert backend.get(key) == b"as it was"
        backend.cmd(f"delete {key}")
        for line, body in lines:
            assert conn.cmd(line, body) == REFUSED, line
        assert backend.get(key) is None
    assert conn.stats()["protected_writes"] == str(2 * len(lines))


def test_noreply_hides_the_refusal(conn, memcached):
    conn.send(f"set {HEAD} 0 0 13 noreply\r\nset victim 0 0\r\n")
    conn.send(f"delete {HEAD} noreply\r\nincr {SUBLIST} 1 noreply\r\nmn\r\n")
    assert conn.line() == b"MN"
    assert conn.get("victim") is None
    with memcached.conn() as backend:
        assert backend.get(HEAD) is None


def test_times_of_items_of_lists_are_not_changed(conn, memcached):
    conn.cmd("ladd f a")
    with memcached.conn() as backend:
        backend.set(SUBLIST, "x")
        backend.set(CLOCK, "x")
        for key in (HEAD, SUBLIST, CLOCK):
            for line in (f"touch {key} 1", f"gat 1 a {key}", f"gats 1 {key}",
                         f"mg {key} T1", f"mg {B64[key]} T1 b"):
                assert conn.cmd(line) == REFUSED, line
            assert backend.cmd(f"mg {key} t") == b"HD t-1"


def test_reading_is_allowed(conn, memcached):
    conn.cmd("ladd f a")
    assert conn.get(HEAD) == b"^1\n+1:a"
    assert conn.cmd(f"mg {HEAD} s") == b"HD s7"
    assert conn.cmd(f"mg {B64[HEAD]} s b") == b"HD s7"
    assert conn.cmd(f"mg {SUBLIST} v") == b"EN"
    assert conn.cmd(f"me {SUBLIST}") == b"EN"


@pytest.mark.parametrize("key", ("mclistd#clock.2", "mclistd#clock.", "page", "page:12", "a#b", "#", "#1", "a.0", "l#abcdefg234567.01",
                                 "l#abcdefg234567.x", "l#ABCDEFG234567.0", "#abcdefg234567.0"))
def test_other_keys_are_nobodys(conn, key):
    assert conn.set(key, "x") == b"STORED"
    assert conn.cmd(f"delete {key}") == b"DELETED"


@pytest.mark.config(**{"lists free-": {"protect_lists": "no"}, "lists old-": {"dialect": "simple"},
                       "lists moving-": {"dialect": "simple", "migrate": "native"}})
def test_only_where_lists_are_kept_so(conn):
    for key, answer in (("free-l#", b"STORED"), ("old-l#", b"STORED"), ("moving-l#", REFUSED),
                        ("l#", REFUSED), ("free#", REFUSED)):
        assert conn.set(key, "x") == answer, key
