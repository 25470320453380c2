# SPDX-License-Identifier: BSD-3-Clause
"""How often a list's servers are asked: all parts of a list in one round trip (a ring's slots behind
its counter), in one packet per server, and changes that need no more than their promises ask for."""

import pytest

from test_dialects_support import ONE_ITEM, Hand, blind, lists_by_dialect, settings

ONE_THREAD = {"proxy": {"threads": 1}}
READS = ["lget topic-X", "lgets topic-X", "lgetb topic-X", "lrange topic-X 0 3", "lstat topic-X"]


def part_names(dialect, entries=3):
    """Of a ring, the counter and the slots that it has reached, the newest first."""
    return {
        "paired": ["follow-topic-X", "unfollow-topic-X"],
        "flip": ["topic-X.a", "topic-X.b", "topic-X.active"],
        "marker": ["topic-X.a", "topic-X.b"],
        "ring": ["topic-X.seq", *[f"topic-X.{n}" for n in range(entries, -1, -1)]],
    }.get(dialect, ["topic-X"])


def asked_names(dialect):
    """What a look asks for: a pair's additions twice, before its deletions and after them."""
    names = part_names(dialect)
    return names + names[:1] if dialect == "paired" else names


def packets_of_look(dialect):
    """A ring's counter says which slots are needed: these are asked for behind its answer."""
    return 2 if dialect == "ring" else 1


def words(relay):
    """Verb and key of each request."""
    return [" ".join(line.decode().split(" ")[:2]) for line in relay.lines]


def read_whole(conn, request):
    conn.send(request, "\r\n")
    while conn.line() != b"END":
        pass


@pytest.fixture
def relay(memcached, start_relay):
    return start_relay(memcached)


@pytest.mark.parametrize("dialect", [*ONE_ITEM, "paired", "flip", "marker", "ring"])
def test_a_look_is_one_packet(start_daemon, relay, dialect):
    daemon = start_daemon([relay], config={**settings(dialect), **ONE_THREAD})
    with daemon.conn() as conn:
        conn.cmd("ladd topic-X one two three")
        conn.lget("topic-X")
        for request in READS:
            relay.forget()
            read_whole(conn, request)
            assert words(relay) == [f"mg {name}" for name in asked_names(dialect)], request
            assert len(relay.packets) == packets_of_look(dialect), request
        for request, answer in [("llen topic-X", b"3"), ("lhas topic-X nobody", b"END")]:
            relay.forget()
            assert conn.cmd(request) == answer
            assert words(relay) == [f"mg {name}" for name in asked_names(dialect)]
            assert len(relay.packets) == packets_of_look(dialect)


@pytest.mark.parametrize("dialect", ["paired", "flip", "marker", "ring", "sublists"])
def test_a_look_is_one_packet_per_server(start_memcached, start_relay, start_daemon, dialect):
    relays = [start_relay(start_memcached()) for _ in range(3)]
    still = {} if dialect == "ring" else {"compact_chance": 0}
    # Without it the proxy asks each server for the names of its items, at some moment after its start.
    no_names = {"pool main": {"placement_names": 0}}
    daemon = start_daemon(relays, config={**settings(dialect, **still), **ONE_THREAD, **no_names})
    with daemon.conn() as conn:
        if dialect == "sublists":
            names = ["topic-X", *[f"topic-X.{n}" for n in range(12)]]
            conn.set("topic-X", "".join(f"+{n}" for n in range(12)))
            for n in range(12):
                conn.set(f"topic-X.{n}", f"+item{n}")
        else:
            items = [f"item{n}" for n in range(60 if dialect == "ring" else 3)]
            names = part_names(dialect, len(items))
            assert conn.cmd("ladd topic-X " + " ".join(items)) == b"STORED"
        conn.lget("topic-X")
        for relay in relays:
            relay.forget()
        conn.lget("topic-X")
        packets = [packet for relay in relays for packet in relay.packets]
        with_values = [packet for packet in packets if b" v " in packet]
        asked = sorted(line.split()[1].decode() for packet in with_values
                       for line in packet.splitlines() if b" v " in line)
        assert asked == sorted(names)
        if dialect == "ring":
            (counter,) = [packet for packet in with_values if b" topic-X.seq " in b" " + packet]
            assert counter.count(b"\n") == 1
            with_values.remove(counter)
            packets.remove(counter)
        assert all(sum(packet in relay.packets for packet in with_values) <= 1 for relay in relays)
        # Whether anything has changed meanwhile, and no values: where the order of answers counts. Of
        # two logs, the active one is asked about behind the others.
        checks = len(packets) - len(with_values)
        in_turn = dialect in ("flip", "marker")
        assert checks <= (0 if dialect == "ring" else len(with_values) + in_turn)


def test_sublists_take_longer_the_first_time(memcached, start_daemon, relay):
    # Numbers without a sublist are something to fold: a read may begin that, in one case of many.
    config = {**settings("sublists", compact_chance=0), **ONE_THREAD}
    daemon = start_daemon([relay], config=config)
    numbers = [0, 1, 2, 5, 6]
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        hand.store("set", "topic-X", "".join(f"+{n}" for n in numbers))
        for n in numbers:
            hand.store("set", f"topic-X.{n}", f"+item{n}")
        conn.get("nothing")  # the connection stands
        items = [b"item%d" % n for n in numbers]
        relay.forget()
        assert conn.lget("topic-X") == items
        asked = [packet.split(b" ")[0:2] for packet in relay.packets]
        assert asked[:2] == [[b"mg", b"topic-X"], [b"mg", b"topic-X.0"]]
        assert len(relay.packets) == 3 and b" v " not in relay.packets[2]
        relay.forget()
        assert conn.lget("topic-X") == items
        # Those between the first and the last are asked for, whether they are there or not.
        assert words(relay) == [*[f"mg topic-X.{n}" for n in range(7)], "mg topic-X"]
        assert len(relay.packets) == 1


def test_sublists_that_came_since_are_found(memcached, start_daemon, relay):
    daemon = start_daemon([relay], config=settings("sublists", compact_chance=0))
    with Hand(memcached.port) as hand, daemon.conn() as conn:
        assert conn.cmd("ladd topic-X one") == b"STORED"
        assert conn.lget("topic-X") == [b"one"]
        hand.store("set", "topic-X.1", "+two-one")
        hand.store("append", "topic-X", "+1")
        assert conn.lget("topic-X") == [b"two"]
        assert conn.cmd("ladd topic-X three") == b"STORED"
        assert hand.get("topic-X.1") == b"+two-one+three"


PAIR_LOOK = ["mg follow-topic-X", "mg unfollow-topic-X", "mg follow-topic-X"]

CHANGES = [
    ("simple", "ladd topic-X x", ["append topic-X"]),
    ("simple", "ldel topic-X one", ["mg topic-X", "cas topic-X"]),
    ("simple", "ldel topic-X nobody", ["mg topic-X"]),
    ("tombstone", "ladd topic-X x", ["append topic-X"]),
    ("tombstone", "ldel topic-X x", ["prepend topic-X"]),
    ("signed", "ladd topic-X x", ["append topic-X"]),
    ("signed", "ldel topic-X x", ["append topic-X"]),
    ("paired", "ladd topic-X x", ["append follow-topic-X"]),
    ("paired", "ldel topic-X x", ["append unfollow-topic-X"]),
    ("flip", "ladd topic-X x", ["mg topic-X.active", "append topic-X.a"]),
    ("flip", "ldel topic-X x", ["mg topic-X.active", "append topic-X.a"]),
    ("marker", "ladd topic-X x", ["append topic-X.a"]),
    ("marker", "ldel topic-X x", ["append topic-X.a"]),
    ("sublists", "ladd topic-X x", ["append topic-X.0", "mg topic-X.0", "mg topic-X"]),
    ("ring", "ladd topic-X x y", ["incr topic-X.seq", "set topic-X.4", "set topic-X.5"]),
]


# Unless changes are blind.
EXACT_CHANGES = [
    ("tombstone", "ladd topic-X x", ["mg topic-X", "cas topic-X"]),
    ("tombstone", "ldel topic-X x", ["mg topic-X"]),
    ("paired", "ladd topic-X x", [*PAIR_LOOK, "cas follow-topic-X"]),
    ("paired", "ldel topic-X x", PAIR_LOOK),
    ("paired", "ladd topic-X one", PAIR_LOOK),
]


@pytest.mark.parametrize("dialect,request_text,expected", EXACT_CHANGES)
def test_what_an_exact_change_of_a_known_list_costs(
    start_daemon, relay, dialect, request_text, expected
):
    daemon = start_daemon([relay], config={**settings(dialect), **ONE_THREAD})
    with daemon.conn() as conn:
        conn.cmd("ladd topic-X one two three")
        conn.lget("topic-X")
        relay.forget()
        assert conn.cmd(request_text) in (b"STORED", b"DELETED")
        assert words(relay) == expected


@pytest.mark.parametrize("dialect,request_text,expected", CHANGES)
def test_what_a_change_of_a_known_list_costs(
    start_daemon, relay, dialect, request_text, expected
):
    chance = {} if dialect == "ring" else {"compact_chance": 0}
    daemon = start_daemon([relay], config={**blind(dialect, **chance), **ONE_THREAD})
    with daemon.conn() as conn:
        conn.cmd("ladd topic-X one two three")
        if dialect == "paired":
            conn.cmd("ldel topic-X three")
        conn.lget("topic-X")
        relay.forget()
        assert conn.cmd(request_text) in (b"STORED", b"DELETED")
        assert words(relay) == expected


@pytest.mark.parametrize("dialect", [*ONE_ITEM, "paired", "marker"])
def test_changes_of_many_clients_travel_together(start_daemon, relay, dialect):
    daemon = start_daemon([relay], config={**settings(dialect, compact_chance=0), **ONE_THREAD})
    with daemon.conn() as conn:
        conn.cmd("ladd topic-X first")
        conn.lget("topic-X")
        relay.forget()
        conn.send("".join(f"ladd topic-X item{n}\r\n" for n in range(500)))
        assert set(conn.lines(500)) == {b"STORED"}
        assert len(relay.lines) <= 50
        assert conn.lget("topic-X") == [b"first", *[b"item%d" % n for n in range(500)]]


def test_reads_of_many_keys_go_out_together(start_daemon, relay):
    daemon = start_daemon([relay], config={**lists_by_dialect(), **ONE_THREAD})
    keys = [f"{dialect}-{n}" for n in range(20) for dialect in ("simple", "paired", "marker")]
    with daemon.conn() as conn:
        for key in keys:
            conn.cmd(f"ladd {key} x")
            conn.lget(key)
        relay.forget()
        assert len(conn.values("lget " + " ".join(keys))) == len(keys)
        assert len(relay.lines) == 20 * (1 + 3 + 2)
        assert len(relay.packets) == 1


@pytest.mark.parametrize("dialect", ["paired", "flip", "marker", "ring", "sublists"])
def test_lstat_names_the_server_of_the_first_item(start_memcached, start_daemon, dialect):
    servers = [start_memcached() for _ in range(2)]
    daemon = start_daemon(servers, config={**settings(dialect), **ONE_THREAD})
    with daemon.conn() as conn:
        for n in range(8):
            key = f"topic-{n}"
            conn.cmd(f"ladd {key} one two three")
            first = part_names(dialect)[0].replace("topic-X", key)
            for _ in range(3):
                named = conn.stats(f"lstat {key}")["head_server"]
                for server in servers:
                    with server.conn() as direct:
                        assert (direct.cmd(f"mg {first}") == b"HD") <= (named == server.address)
