# SPDX-License-Identifier: BSD-3-Clause
"""Rings as applications keep them by hand: who and when in each slot, without the entry's number, and
a counter that counts on or is set back."""

import time

import pytest

from harness import wait_until
from test_dialects_support import Hand, settings

KEY = "topic-X"
FIRST_S = 1700000000


class Visits(Hand):
    """The application: it counts, and writes the slot. wraps: it sets the counter back by itself."""

    def __init__(self, port, capacity, wraps):
        super().__init__(port)
        self.capacity, self.wraps = capacity, wraps

    def visit(self, user, time_s, key=KEY):
        self.store("add", f"{key}.seq", "0")
        number = int(self.conn.cmd(f"incr {key}.seq 1"))
        if self.wraps and number >= self.capacity:
            number %= self.capacity
            self.store("set", f"{key}.seq", str(number))
        self.store("set", f"{key}.{number % self.capacity}", f"{user} {time_s}")

    def last(self, count, key=KEY):
        """The newest entries, by one request."""
        newest = int(self.get(f"{key}.seq") or 0)
        names = [f"{key}.{(newest - i) % self.capacity}" for i in range(count)]
        found = {value[0]: value[2] for value in self.conn.values("get " + " ".join(names))}
        return [found[name.encode()] for name in names if name.encode() in found]


def visitors(capacity, wraps=False, **more):
    return settings("ring", capacity=capacity, slot="%v %t", counter_wraps=wraps, **more)


def entries(*numbers):
    """The visits of these numbers: the users are numbers, too."""
    return [b"%d %d" % (1000 + n, FIRST_S + n) for n in numbers]


def gets(memcached):
    with memcached.conn() as conn:
        return int(conn.stats()["cmd_get"])


BOTH = pytest.mark.parametrize("wraps", [False, True])


@BOTH
@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 11])
def test_entries_by_hand_are_read(memcached, start_daemon, wraps, count):
    daemon = start_daemon([memcached], config=visitors(4, wraps))
    with Visits(memcached.port, 4, wraps) as hand, daemon.conn() as conn:
        for n in range(1, count + 1):
            hand.visit(1000 + n, FIRST_S + n)
        expected = entries(*range(count, max(0, count - 4), -1))
        assert conn.lget(KEY) == expected == hand.last(4)
        assert conn.values(f"lrange {KEY} 0 1")[0][2] == b",".join(expected[:2])
        assert conn.llen(KEY) == len(expected)
        assert conn.values(f"lhas {KEY} {1000 + count} 999")[0][2] == b"%d" % (1000 + count)
        assert conn.values(f"lrange {KEY} -1 -1")[0][2] == expected[-1]


@BOTH
def test_entries_of_the_proxy_are_read_by_hand(memcached, start_daemon, wraps):
    daemons = [start_daemon([memcached], config=visitors(4, wraps)) for _ in range(2)]
    with Visits(memcached.port, 4, wraps) as hand, daemons[0].conn() as one, \
            daemons[1].conn() as other:
        for n in range(1, 30):
            before_s = int(time.time())
            if n % 3 == 0:
                hand.visit(1000 + n, before_s)
            else:
                assert (one if n % 3 == 1 else other).cmd(f"ladd {KEY} {1000 + n}") == b"STORED"
            found = hand.last(4)
            assert [int(entry.split()[0]) for entry in found] == \
                list(range(1000 + n, max(1000, 1000 + n - 4), -1))
            assert all(abs(int(entry.split()[1]) - before_s) < 60 for entry in found)
            assert one.lget(KEY) == other.lget(KEY) == found
            assert not wraps or int(hand.get(f"{KEY}.seq")) < 4
        assert one.cmd(f"ladd {KEY} a b c d e f") == b"STORED"
        assert [entry.split()[0] for entry in hand.last(4)] == [b"f", b"e", b"d", b"c"]


def test_a_time_that_comes_with_the_item_is_kept(memcached, start_daemon):
    daemon = start_daemon([memcached], config=visitors(4))
    with Visits(memcached.port, 4, False) as hand, daemon.conn() as conn:
        conn.send(f"laddb {KEY} 15\r\n1299 1700000299\r\n")
        assert conn.line() == b"STORED"
        assert hand.get(f"{KEY}.1") == b"1299 1700000299"
        assert conn.lget(KEY) == [b"1299 1700000299"]


@BOTH
def test_the_last_ten_cost_eleven_gets(memcached, start_daemon, wraps):
    daemon = start_daemon([memcached], config=visitors(256, wraps))
    with Visits(memcached.port, 256, wraps) as hand, daemon.conn() as conn:
        for n in range(1, 301):
            hand.visit(1000 + n, FIRST_S + n)
        before = gets(memcached)
        assert conn.values(f"lrange {KEY} 0 9")[0][2] == \
            b",".join(entries(*range(300, 290, -1)))
        assert gets(memcached) - before == 11
        before = gets(memcached)
        assert conn.values(f"lrevrange {KEY} 0 0")[0][2] == entries(300)[0]
        assert gets(memcached) - before == 2
        # Where one was not written, the next one is read in its place.
        hand.conn.cmd(f"delete {KEY}.{298 % 256}")
        before = gets(memcached)
        assert conn.values(f"lrange {KEY} 0 9")[0][2] == \
            b",".join(entries(300, 299, *range(297, 289, -1)))
        assert gets(memcached) - before == 21
        assert conn.lget(KEY) == entries(300, 299, *range(297, 44, -1))


def test_a_ring_that_has_just_begun_is_not_read_as_a_whole(memcached, start_daemon):
    daemon = start_daemon([memcached], config=visitors(256))
    with Visits(memcached.port, 256, False) as hand, daemon.conn() as conn:
        for n in range(1, 4):
            hand.visit(1000 + n, FIRST_S + n)
        for request in (f"lrange {KEY} 0 9", f"lget {KEY}"):
            before = gets(memcached)
            assert conn.values(request)[0][2] == b",".join(entries(3, 2, 1))
            assert gets(memcached) - before <= 5


def test_numbers_in_slots_are_read_in_the_same_way(memcached, start_daemon):
    daemon = start_daemon([memcached], config=settings("ring", capacity=256))
    with daemon.conn() as conn:
        assert conn.cmd(f"ladd {KEY} " + " ".join(f"i{n}" for n in range(300))) == b"STORED"
        before = gets(memcached)
        assert conn.values(f"lrange {KEY} 0 9")[0][2] == \
            b",".join(b"i%d" % n for n in range(299, 289, -1))
        assert gets(memcached) - before == 11


@pytest.mark.parametrize("slot,shown,stored", [
    ("%v", b"ann", "ann"),
    ("%t %v", b"1700000001 ann b", "1700000001 ann b"),
    ("%n|%t|%v", b"1700000001|ann|b", "{}|1700000001|ann|b"),
    ("%v, at %n", b"ann", "ann, at {}"),
    ("%n: %v (%t", b"ann (1700000001", "{}: ann (1700000001"),
])
def test_other_templates(memcached, start_daemon, slot, shown, stored):
    more = {"delimiter": "none"} if "," in slot else {}
    daemon = start_daemon([memcached], config=settings("ring", slot=slot, **more))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", f"{KEY}.seq", "1")
        hand.store("set", f"{KEY}.1", stored.format(1))
        assert conn.lgetb(KEY) == [shown]
        conn.send(f"laddb {KEY} {len(shown)}\r\n", shown, b"\r\n")
        assert conn.line() == b"STORED"
        assert hand.get(f"{KEY}.2").decode() == stored.format(2)
        assert conn.lgetb(KEY) == [shown, shown]


@pytest.mark.parametrize("slot,text", [
    ("%n %v", "1299 1700000299"),   # of another slot
    ("%n %v", "ann 1700000299"),    # no number
    ("%v %t", "17 ann"),            # no time
    ("%t %v", "17 ann"),
    ("%v %t", "ann 1700000299123"),  # milliseconds
    ("%n %v %t", "17 ann"),
])
def test_a_template_that_is_not_that_of_the_slots(memcached, start_daemon, slot, text):
    """All verbs say so, and nothing is written."""
    daemon = start_daemon([memcached], config=settings("ring", slot=slot, capacity=256))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", f"{KEY}.seq", "17")
        hand.store("set", f"{KEY}.17", text)
        for verb in ("ladd {} bob", "lget {}", "lrange {} 0 9", "lhas {} bob", "ladd {} bob"):
            answer = conn.cmd(verb.format(KEY))
            assert answer.startswith(b"SERVER_ERROR topic-X.17 is not of dialect ring: "), verb
            assert answer.endswith(b"; do slot and capacity say what clients write?")
        assert (hand.get(f"{KEY}.seq"), hand.get(f"{KEY}.17")) == (b"17", text.encode())
        assert hand.conn.stats()["curr_items"] == "2"


@BOTH
def test_a_counter_that_is_gone(memcached, start_daemon, wraps):
    """The next one goes on behind the entry with the latest time."""
    daemon = start_daemon([memcached], config=visitors(4, wraps))
    with Visits(memcached.port, 4, wraps) as hand, daemon.conn() as conn:
        for n in range(1, 7):
            hand.visit(1000 + n, FIRST_S + n)
        hand.conn.cmd(f"delete {KEY}.seq")
        assert conn.lget(KEY) == entries(6, 5, 4, 3)
        assert conn.cmd(f"ladd {KEY} ann") == b"STORED"
        assert conn.lget(KEY)[0].startswith(b"ann ") and conn.lget(KEY)[1:] == entries(6, 5, 4)
        assert hand.last(4) == conn.lget(KEY)


def test_a_counter_that_begins_again_by_hand(memcached, start_daemon):
    """What it does not count is not shown, and not in the way."""
    daemon = start_daemon([memcached], config=visitors(8))
    with Visits(memcached.port, 8, False) as hand, daemon.conn() as conn:
        for n in range(1, 13):
            hand.visit(1000 + n, FIRST_S + n)
        hand.conn.cmd(f"delete {KEY}.seq")
        for n in range(13, 15):
            hand.visit(1000 + n, FIRST_S + n)
        assert conn.lget(KEY)[:2] == entries(14, 13)


def test_entries_move_to_a_capped_list_with_their_times(memcached, start_daemon):
    config = visitors(8, migrate="native", max_items=8, order="recent")
    daemon = start_daemon([memcached], config=config)
    with Visits(memcached.port, 8, False) as hand, daemon.conn() as conn:
        for n in range(1, 13):
            hand.visit(1000 + n % 3, FIRST_S + n)
        shown = conn.lget(KEY)
        assert len(shown) == 8 and len(set(shown)) == 8
        assert conn.cmd(f"lconvert {KEY}") == b"8"
        assert conn.lget(KEY) == shown[::-1]
        wait_until("only the native list is there",
                   lambda: hand.conn.stats()["curr_items"] == "1")
        # From now on the client gives the time.
        conn.send(f"laddb {KEY} 15\r\n1001 1700000099\r\n")
        assert conn.line() == b"STORED"
        # The cap is set by the compaction that this asks for.
        visits = [*shown[-2::-1], b"1001 1700000099"]
        wait_until("the list has its cap", lambda: conn.lget(KEY) == visits)
