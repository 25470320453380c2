# SPDX-License-Identifier: BSD-3-Clause
"""Lists in two logs (flip, marker): proxies killed at each step of a fold, states that applications
by hand leave behind, and writers that stand still in between."""

import threading

import pytest

from test_dialects_support import Hand, settings

LOGS = pytest.mark.parametrize("dialect", ["flip", "marker"])
NEVER = {"compact_chance": 0}
KEY = "topic-X"


def hash_of(text):
    """FNV-1a of the first 64 bytes and of the last 64."""
    value = 14695981039346656037
    for byte in text[:64] + text[-64:]:
        value = (value ^ byte) * 1099511628211 % (1 << 64)
    return value


def note(text):
    """What a log says that has taken this text from the other one."""
    text = "@%d:%016x" % (len(text), hash_of(text.encode()))
    return f"+{text}-{text}"


def old_note(text):
    """As earlier releases wrote it."""
    return "-" + note(text).split("-")[1]


def logs_of(hand, key=KEY):
    """The logs that hold something."""
    return [name for name in (f"{key}.a", f"{key}.b") if hand.get(name)]


def put(hand, items, key=KEY):
    for name, text in items.items():
        assert hand.store("set", f"{key}.{name}", text)


# --- killed ---


def fill(hand, dialect):
    hand.store("set", f"{KEY}.a", "+one+two+gone+three-gone+two+four-one+one")
    if dialect == "flip":
        hand.store("set", f"{KEY}.active", f"{KEY}.a")


CONTENT = [b"two", b"three", b"four", b"one"]


def killed_after(start_daemon, start_relay, memcached, dialect, changes, request, late=""):
    """A proxy that is killed after so many changes on the way through that request. False: the
    request ended before that."""
    relay = start_relay(memcached)
    daemon = start_daemon([relay], config=settings(dialect, **NEVER))
    answers = []
    with daemon.conn() as conn:
        assert conn.lget(KEY) == CONTENT
        relay.hold_after(changes)
        conn.send(request, "\r\n")

        def read():
            try:
                answers.append(conn.line())
            except OSError:
                pass
            except EOFError:
                pass

        thread = threading.Thread(target=read)
        thread.start()
        held = relay.wait_until_held_or(lambda: bool(answers))
        if held and late:
            with Hand(memcached.port) as hand:
                hand.put_behind(hand_active(hand, dialect), late)
        daemon.kill()
        relay.stop()
        thread.join()
    return held


def hand_active(hand, dialect):
    return hand.active_log(KEY) if dialect == "flip" else hand.open_log(KEY)


@LOGS
@pytest.mark.parametrize("late", ["", "+late"])
def test_killed_at_each_step_of_a_fold(memcached, start_daemon, start_relay, dialect, late):
    """Nothing is lost, nothing is there twice, and the next proxy finishes the job."""
    second = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, second.conn() as conn:
        for changes in range(20):
            hand.conn.cmd("flush_all")
            fill(hand, dialect)
            held = killed_after(
                start_daemon, start_relay, memcached, dialect, changes, f"lcompact {KEY}", late
            )
            expected = CONTENT + ([b"late"] if held and late else [])
            assert conn.lget(KEY) == expected, changes
            assert conn.lgetb(KEY) == expected
            # It goes on as if nothing had happened,
            assert conn.cmd(f"ladd {KEY} five") == b"STORED"
            assert conn.cmd(f"ldel {KEY} two") == b"DELETED"
            expected = [item for item in expected if item != b"two"] + [b"five"]
            assert conn.lget(KEY) == expected, changes
            # and finishes the job.
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
            assert conn.lget(KEY) == expected
            assert len(logs_of(hand)) == 1
            assert hand.read(dialect, KEY) == expected
            if not held:
                break
        assert 3 <= changes < 19, "the fold has an end, and some steps"


@LOGS
def test_killed_at_each_step_of_lset(memcached, start_daemon, start_relay, dialect):
    """The list is the old or the new one, and stays what it is."""
    second = start_daemon([memcached], config=settings(dialect, **NEVER))
    seen = []
    with Hand(memcached.port) as hand, second.conn() as conn:
        for changes in range(20):
            hand.conn.cmd("flush_all")
            fill(hand, dialect)
            held = killed_after(
                start_daemon, start_relay, memcached, dialect, changes, f"lset {KEY} new newer"
            )
            seen.append(conn.lget(KEY))
            assert conn.cmd(f"lcompact {KEY}") == b"OK"
            assert conn.lget(KEY) in (CONTENT, [b"new", b"newer"])
            assert len(logs_of(hand)) == 1
            if not held:
                break
        assert seen[0] == CONTENT and seen[-1] == [b"new", b"newer"]
        assert all(found in (CONTENT, [b"new", b"newer"]) for found in seen)


# --- by hand ---


STATES = [
    ("flip", {"a": "+x+y"}, "x,y"),
    ("flip", {"b": "+x+y"}, "x,y"),
    ("flip", {"a": "+x", "b": "+y"}, "y,x"),
    ("flip", {"a": "+x", "b": "+y-x", "active": "topic-X.b"}, "y"),
    ("flip", {"a": "+x", "active": "topic-X.b"}, "x"),
    ("flip", {"active": "topic-X.b"}, ""),
    ("flip", {"a": "", "b": "+y", "active": "topic-X.a"}, "y"),
    ("marker", {"a": "+x", "b": "+y"}, "y,x"),
    ("marker", {"a": "^+x", "b": "^+y"}, "y,x"),
    ("marker", {"a": "^+x", "b": "+y-x"}, "y"),
    ("marker", {"a": "^^^+x"}, "x"),
    ("marker", {"b": "^+x"}, "x"),
    ("marker", {"b": "+x"}, "x"),
    ("marker", {"a": "^", "b": "+x"}, "x"),
    ("marker", {"a": "^", "b": "^"}, ""),
    ("marker", {"a": "", "b": "+x"}, "x"),
    ("marker", {"a": "^"}, ""),
]


@pytest.mark.parametrize("dialect,items,expected", STATES)
def test_states_left_by_hand(memcached, start_daemon, dialect, items, expected):
    first, second = [start_daemon([memcached], config=settings(dialect, **NEVER)) for _ in range(2)]
    expected = expected.encode().split(b",") if expected else []
    with Hand(memcached.port) as hand, first.conn() as conn, second.conn() as other:
        for change, more in (("ladd {} new", [b"new"]), ("ldel {} new", []), ("lcompact {}", [])):
            key = f"{KEY}-{change[:4]}"
            put(hand, {name: text.replace(KEY, key) for name, text in items.items()}, key)
            assert conn.cmd(change.format(key)) in (b"STORED", b"DELETED", b"OK")
            continue_by_hand(hand, conn, other, dialect, key, [*expected, *more])


def continue_by_hand(hand, conn, other, dialect, key, expected):
    for reader in (conn, other):
        assert reader.lget(key) == expected
    for _ in range(2):
        assert conn.cmd(f"lcompact {key}") == b"OK"
        assert conn.lget(key) == expected
        assert len(logs_of(hand, key)) <= 1
    assert hand.read(dialect, key) == expected
    hand.add(dialect, key, "more")
    assert other.lget(key) == conn.lget(key) == [*expected, b"more"]
    assert other.cmd(f"ldel {key} more") == b"DELETED"
    assert conn.lget(key) == expected


def test_two_open_logs_by_hand_lose_nothing_while_they_are_folded(
    memcached, start_daemon, start_relay
):
    """At each step a client adds to the log that it takes to be the open one."""
    second = start_daemon([memcached], config=settings("marker", **NEVER))
    with Hand(memcached.port) as hand, second.conn() as other:
        for changes in range(12):
            hand.conn.cmd("flush_all")
            relay = start_relay(memcached)
            daemon = start_daemon([relay], config=settings("marker", **NEVER))
            with daemon.conn() as conn:
                put(hand, {"a": "+x", "b": "+y"})
                relay.hold_after(changes)
                conn.send(f"lcompact {KEY}\r\n")
                if not relay.held.wait(1):
                    break
                for name in ("a", "b"):
                    if hand.get(f"{KEY}.{name}") is not None:
                        hand.store("append", f"{KEY}.{name}", f"+late-{name}".replace("-", "_"))
                assert other.cmd(f"ladd {KEY} proxy") == b"STORED"
                found = set(other.lget(KEY))
                assert {b"x", b"y", b"proxy", b"late_a"} <= found
                relay.release()
                assert conn.line() == b"OK"
                assert set(conn.lget(KEY)) >= found
                assert sorted(conn.lget(KEY)) == sorted(other.lget(KEY))
                assert len(logs_of(hand)) == 1
            daemon.stop()
        assert 2 <= changes < 11


@pytest.mark.parametrize("grown", ["", "+z"])
@pytest.mark.parametrize("note", [note, old_note])
@LOGS
def test_what_a_slow_writer_adds_to_a_copy_in_the_making_is_not_lost(
    memcached, start_daemon, dialect, note, grown
):
    """It read which log is active, and then stood still while the logs changed places twice."""
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, {"a": "+y" + note("+y") + "+w", "b": "+y" + grown})
        if dialect == "flip":
            put(hand, {"active": f"{KEY}.b"})
        expected = [b"y", b"z", b"w"] if grown else [b"y", b"w"]
        assert conn.lget(KEY) == expected
        assert conn.cmd(f"lcompact {KEY}") == b"OK"
        assert conn.lget(KEY) == expected
        assert len(logs_of(hand)) == 1


@pytest.mark.parametrize("note", [note, old_note])
@LOGS
def test_a_copy_in_the_making_does_not_count(memcached, start_daemon, dialect, note):
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        put(hand, {"a": "+other" + note("+y"), "b": "+y"})
        if dialect == "flip":
            put(hand, {"active": f"{KEY}.b"})
        assert conn.lget(KEY) == [b"y"]


@LOGS
def test_notes_are_no_items(memcached, start_daemon, dialect):
    daemon = start_daemon([memcached], config=settings(dialect, **NEVER))
    with daemon.conn() as conn:
        for verb in ("ladd", "ldel", "lset"):
            answer = conn.cmd(f"{verb} {KEY} good @12:0123456789abcdef")
            assert answer == (
                b"CLIENT_ERROR item looks like a note of a log (@BYTES:HASH)"
            )
        assert conn.lget(KEY) == []
        assert conn.cmd(f"ladd {KEY} @12:0123456789abcde @x:0123456789abcdef @") == b"STORED"
        assert len(conn.lget(KEY)) == 3
