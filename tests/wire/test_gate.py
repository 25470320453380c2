# SPDX-License-Identifier: BSD-3-Clause
"""Proxies that differ in the servers of a pool, or in how its lists are stored: what harm that does
without the gate, and that with it lists are refused before they are made twice."""

import http.client
import re
import signal
import time

import pytest

from couchbase_support import Cluster, sections
from harness import (HOST, SLOW, TIMEOUT_S, free_port, in_threads, pause_process, wait_for_exit, wait_until,
                     write_ini)

KEY = "mclistd#pool.main"
UNEQUAL = re.compile(rb"SERVER_ERROR proxies of pool main are unequal: others keep this list elsewhere "
                     rb"or in another way, nothing done")
NAMES = [f"list{n}" for n in range(60)]


@pytest.fixture
def start(start_daemon):
    """A function that starts a proxy before those servers, with settings of its pool and of [lists]."""
    def start(servers, lists=None, sections=None, **pool):
        config = {"pool main": {"gate_s": 1, **pool}, "lists": {"max_item_bytes": 1000, **(lists or {})},
                  **(sections or {})}
        daemon = start_daemon(servers, config=config)
        with daemon.conn() as conn:  # it hears its clients when it has asked
            conn.cmd("version")
        return daemon
    return start


def item(server, key=KEY):
    with server.conn() as conn:
        value = conn.get(key)
    return None if value is None else value.decode()


def cas_of(server, key=KEY):
    with server.conn() as conn:
        answer = conn.cmd(f"mg {key} c")
    return None if answer == b"EN" else answer


def change_of(server):
    found = re.search(r"^change = (\d+)$", item(server) or "", re.M)
    return found and int(found.group(1))


def answers(conn, names=NAMES, item="x"):
    """What ladd to each of the lists is answered: how many were stored, how many refused."""
    stored = refused = 0
    for name in names:
        answer = conn.cmd(f"ladd {name} {item}")
        stored += answer == b"STORED"
        refused += UNEQUAL.fullmatch(answer) is not None
    assert stored + refused == len(names), answer
    return stored, refused


def made_twice(servers, names=NAMES):
    """Lists whose head is on more than one server."""
    count = 0
    for name in names:
        count += sum(item(server, f"{name}#") is not None for server in servers) > 1
    return count


def unequal(conn):
    return int(conn.stats()["gate_unequal"])


@pytest.mark.memcacheds(3)
def test_without_the_gate_lists_are_made_twice(start, memcacheds):
    with start(memcacheds[:2], gate_s=0).conn() as one, start(memcacheds, gate_s=0).conn() as two:
        assert answers(one) == answers(two) == (len(NAMES), 0)
    assert made_twice(memcacheds) > 0
    assert all(item(server) is None for server in memcacheds)


@pytest.mark.memcacheds(3)
def test_lists_are_refused_before_they_are_made_twice(start, memcacheds):
    first = start(memcacheds[:2])
    with first.conn() as one:
        assert answers(one) == (len(NAMES), 0)
        second = start(memcacheds)
        with second.conn() as two:
            stored, refused = answers(two)
            # One server joined two: about a third of the lists.
            assert 0 < refused < len(NAMES) / 2 and stored > 0
            assert made_twice(memcacheds) == 0
            servers = [", ".join(sorted(s.address for s in some)) for some in (memcacheds, memcacheds[:2])]
            second.wait_for_log("UNEQUAL PROXIES: servers: this proxy: " + re.escape(servers[0])
                                + ", the pool: " + re.escape(servers[1]))
            stats = two.stats()
            assert (stats["gate_unequal"], int(stats["gate_refused"])) == ("1", refused)
            assert int(two.stats("stats reasons")["refused:unequal"]) == refused
            # Reads would miss what is there.
            refused_reads = sum(UNEQUAL.fullmatch(two.cmd(f"llen {n}")) is not None for n in NAMES)
            assert refused_reads == refused
        assert unequal(one) == 0
        assert answers(one, item="y") == (len(NAMES), 0)
    assert "UNEQUAL" not in first.log()
    assert made_twice(memcacheds) == 0
    assert item(memcacheds[2]) is None


def misses(server):
    with server.conn() as conn:
        return int(conn.stats()["get_misses"])


@pytest.mark.thorough
@pytest.mark.memcacheds(3)
def test_the_unequal_one_does_not_profit_when_all_items_are_gone(start, memcacheds):
    first = start(memcacheds[:2])
    with first.conn() as one, start(memcacheds).conn() as two:
        assert answers(one) == (len(NAMES), 0)
        stored, refused = answers(two)
        assert refused > 0
        pause_process(first.process.pid)
        for server in memcacheds[:2]:
            with server.conn() as conn:
                conn.cmd(f"delete {KEY}")
        before = misses(memcacheds[0]), misses(memcacheds[1])
        wait_until("it has asked", lambda: all(misses(memcacheds[i]) > before[i] for i in range(2)))
        assert answers(two) == (stored, refused)  # though nothing says so now
        first.process.send_signal(signal.SIGCONT)
        wait_until("the item is there", lambda: all(item(server) for server in memcacheds[:2]))
        assert answers(one) == (len(NAMES), 0) and answers(two) == (stored, refused)
        # When the others are gone for good, it is the right one.
        first.stop()
        wait_until("nothing is refused", lambda: answers(two) == (len(NAMES), 0), 3 * TIMEOUT_S)


@pytest.mark.memcacheds(3)
def test_warn_refuses_nothing(start, memcacheds):
    start(memcacheds[:2])
    wait_until("the item is there", lambda: item(memcacheds[0]))
    second = start(memcacheds, on_unequal="warn")
    with second.conn() as two:
        second.wait_for_log("UNEQUAL PROXIES: .*made twice")
        assert answers(two) == (len(NAMES), 0)
        assert unequal(two) == 1


DIFFERENT = {
    "hash": ({}, {"hash": "crc"}, "hash: this proxy: crc, the pool: default"),
    "distribution": ({}, {"distribution": "modula"},
                     "distribution: this proxy: modula, the pool: ketama_weighted"),
    "order": ({"distribution": "modula"}, {"distribution": "modula", "swap": True},
              "order of the servers: this proxy: "),
    "weights": ({}, {"weights": [1, 2]}, r"servers: this proxy: .* 2.*, the pool: "),
}


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("case", DIFFERENT)
def test_what_tells_places_apart(start, memcacheds, case):
    def begin(swap=False, weights=(1, 1), **pool):
        addresses = [f"{server.address} {weight}" if weight != 1 else server.address
                     for server, weight in zip(memcacheds, weights)]
        return start(addresses[::-1] if swap else addresses, **pool)

    mine, other, text = DIFFERENT[case]
    begin(**mine)
    wait_until("the item is there", lambda: item(memcacheds[0]) and item(memcacheds[1]))
    second = begin(**other)
    second.wait_for_log("UNEQUAL PROXIES: .*" + text)
    with second.conn() as two:
        assert answers(two)[1] > 0


@pytest.mark.memcacheds(2)
def test_order_does_not_matter_to_ketama(start, memcacheds):
    with start(memcacheds).conn() as one, start(memcacheds[::-1]).conn() as two:
        assert answers(one) == answers(two) == (len(NAMES), 0)
        assert unequal(one) == unequal(two) == 0


def test_a_single_server_may_have_two_names(start, memcached):
    first = start([f"127.0.0.1:{memcached.port}"])
    wait_until("the item is there", lambda: item(memcached))
    second = start([f"localhost:{memcached.port}"])
    with first.conn() as one, second.conn() as two:
        assert answers(one) == answers(two) == (len(NAMES), 0)
        assert unequal(one) == unequal(two) == 0


@pytest.mark.memcacheds(3)
def test_a_higher_change_wins(start, memcacheds):
    old = start(memcacheds[:2])
    with old.conn() as one:
        assert answers(one) == (len(NAMES), 0)
        new = start(memcacheds, change=1)
        assert [change_of(server) for server in memcacheds] == [1, 1, 1]
        new.wait_for_log("change = 1 of this proxy replaces what the pool had: servers: ")
        old.wait_for_log("UNEQUAL PROXIES: servers: ")
        stored, refused = answers(one, item="z")
        assert refused > 0 and stored > 0
        with new.conn() as two:
            assert unequal(two) == 0
            # Lists that move wait until the others have seen it; then they begin on their new servers.
            wait_until("none is refused", lambda: answers(two, item="z")[1] == 0)
    # The old file comes back next week.
    late = start(memcacheds[:2])
    late.wait_for_log("UNEQUAL PROXIES: ")
    with late.conn() as conn:
        assert answers(conn, item="late")[1] == refused


@pytest.mark.memcacheds(3)
def test_a_new_proxy_lets_the_others_see_it_first(start, memcacheds):
    with start(memcacheds[:2], gate_s=5).conn() as one:
        assert answers(one) == (len(NAMES), 0)
        with start(memcacheds, change=1, gate_s=3600).conn() as two:
            assert answers(two)[1] > 0  # for two hours
    assert made_twice(memcacheds) == 0


def test_a_change_without_effect_is_none(start, memcached):
    with start([memcached]).conn() as one, start([memcached], change=3).conn() as two:
        assert change_of(memcached) == 3
        assert answers(one) == answers(two) == (len(NAMES), 0)
        assert unequal(one) == unequal(two) == 0


@pytest.mark.thorough
@pytest.mark.memcacheds(3)
def test_servers_restart_in_turn(start, memcacheds):
    with start(memcacheds).conn() as one:
        late = start(memcacheds[:2])
        late.wait_for_log("UNEQUAL PROXIES")
        for server in memcacheds:
            server.restart()
            wait_until("the item is written anew", lambda: item(server))
        with late.conn() as two:
            assert unequal(two) == 1 and answers(two)[1] > 0
            assert unequal(one) == 0
        assert all("servers = " + ", ".join(sorted(s.address for s in memcacheds)) in item(server)
                   for server in memcacheds)


@pytest.mark.memcacheds(2)
def test_an_item_that_is_evicted_is_written_anew(start, memcacheds):
    start(memcacheds)
    with memcacheds[1].conn() as conn:
        before = item(memcacheds[1])
        assert conn.cmd(f"delete {KEY}") == b"DELETED"
        wait_until("it is back", lambda: item(memcacheds[1]) == before)


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("value", [b"my own", b"mclistd gate 2\nphase = move\nend\n", b"",
                                   b"mclistd gate 1\nserver = 0\n"])
def test_foreign_data_stays(start, memcacheds, value):
    with memcacheds[0].conn() as conn:
        assert conn.set(KEY, value) == b"STORED"
    first = start(memcacheds)
    first.wait_for_log(f"pool main: {re.escape(memcacheds[0].address)} holds .* under {KEY}")
    with first.conn() as one:
        assert answers(one) == (len(NAMES), 0) and unequal(one) == 0
    assert item(memcacheds[0]) == value.decode()
    # The other server is enough.
    second = start(memcacheds[1:])
    second.wait_for_log("UNEQUAL PROXIES")
    assert first.log().count("holds") == 1


@pytest.mark.memcacheds(2)
def test_a_server_that_is_down_at_the_start(start, memcacheds):
    memcacheds[1].stop()
    daemon = start(memcacheds)
    wait_until("the item is there", lambda: item(memcacheds[0]))
    memcacheds[1].start()
    wait_until("it is written when the server is back", lambda: item(memcacheds[1]))
    with daemon.conn() as conn:
        wait_until("all lists work", lambda: all(conn.cmd(f"ladd {n} a") == b"STORED" for n in NAMES))
        assert unequal(conn) == 0


@pytest.mark.memcacheds(2)
def test_a_server_that_hangs_at_the_start(start, memcacheds):
    first = start(memcacheds[:1])
    memcacheds[1].pause()
    second = start(memcacheds, timeout_ms=200)  # hears its clients all the same, and knows
    with first.conn() as one, second.conn() as two:
        assert unequal(two) == 1 and unequal(one) == 0
        assert UNEQUAL.fullmatch(next(filter(UNEQUAL.fullmatch, (two.cmd(f"llen {n}") for n in NAMES))))
    memcacheds[1].resume()


@pytest.mark.memcacheds(2, "-M")
def test_a_full_server(start, memcacheds):
    with memcacheds[0].conn() as conn:
        for size in (900000, 90000, 9000, 4000, 2000, 1000, 700, 500, 400, 300, 200):
            n = 0
            while (answer := conn.set(f"fill{size}-{n}", b"x" * size)) == b"STORED":
                n += 1
            assert answer.startswith(b"SERVER_ERROR "), answer
    daemon = start(memcacheds)
    daemon.wait_for_log(f"{re.escape(memcacheds[0].address)} does not keep {KEY}")
    with daemon.conn() as conn:
        assert unequal(conn) == 0
    start(memcacheds[:1] + [f"{HOST}:{free_port()}"] + memcacheds[1:]).wait_for_log("UNEQUAL PROXIES")


@pytest.mark.thorough
def test_it_renews_its_item(start, memcached):
    start([memcached])
    first = cas_of(memcached)
    assert first is not None
    wait_until("it is written again", lambda: cas_of(memcached) not in (first, None))


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
def test_what_no_living_proxy_agrees_with_goes(start, memcacheds):
    start(memcacheds[:1]).kill()
    daemon = start(memcacheds)
    with daemon.conn() as conn:
        daemon.wait_for_log("UNEQUAL PROXIES")
        wait_until("they agree", lambda: unequal(conn) == 0, timeout_s=60 * SLOW)
        assert answers(conn) == (len(NAMES), 0)
    daemon.wait_for_log("the proxies agree again")


# --- lists ---------------------------------------------------------------------------------------


def test_only_lists_that_differ_are_refused(start, memcached):
    same = {"lists same:": {"dialect": "signed"}}
    start([memcached], sections={**same, "lists other:": {"dialect": "simple"}})
    wait_until("the item is there", lambda: item(memcached))
    second = start([memcached], sections={**same, "lists other:": {"dialect": "signed"}})
    second.wait_for_log('UNEQUAL PROXIES: lists of prefix "other:": this proxy: .*dialect=signed.*, '
                        'the pool: .*dialect=simple')
    with second.conn() as conn:
        assert UNEQUAL.fullmatch(conn.cmd("ladd other:1 a"))
        assert UNEQUAL.fullmatch(conn.cmd("llen other:1"))
        assert conn.cmd("ladd same:1 a") == b"STORED"
        assert conn.cmd("ladd plain a") == b"STORED"
        assert conn.set("other:2", "plain") == b"STORED"


def test_a_prefix_of_one_file_matters_if_it_does_harm(start, memcached):
    with start([memcached], sections={"lists a:": {"max_items": 7},
                                      "lists b:": {"dialect": "signed"}}).conn() as one:
        with start([memcached]).conn() as two:
            assert two.cmd("ladd a:1 x") == b"STORED"
            assert UNEQUAL.fullmatch(two.cmd("ladd b:1 x"))
            assert one.cmd("ladd b:1 x") == b"STORED"


@pytest.mark.memcacheds(2)
def test_lists_in_another_pool(start, memcacheds):
    def begin(**lists):
        return start(memcacheds[:1], sections={"pool second": {"servers": [memcacheds[1].address]},
                                               "lists q:": {"ttl_s": 0, **lists}})
    with begin(pool="second").conn() as one, begin().conn() as two:
        assert one.cmd("ladd r:1 x") == two.cmd("ladd r:1 x") == b"STORED"
        assert one.cmd("ladd q:1 x") == b"STORED"
        assert UNEQUAL.fullmatch(two.cmd("ladd q:1 x"))


def test_several_lists_of_which_one_differs(start, memcached):
    start([memcached])
    wait_until("the item is there", lambda: item(memcached))
    with start([memcached], sections={"lists b:": {"on_missing": "refuse"}}).conn() as conn:
        assert conn.cmd("ladd a x") == b"STORED"
        for line in ("lmove a b:1 x", "lmove b:1 a x", "lcopy a b:1", "lcopy b:1 a", "lpopto b:1 a 1"):
            assert UNEQUAL.fullmatch(conn.cmd(line)), line
        assert UNEQUAL.fullmatch(conn.cmd("linter a b:1"))
        conn.send("lget a b:1 a\r\n")
        for _ in range(2):
            assert conn.line() == b"VALUE a 0 1" and conn.data(1) == b"x"
        assert UNEQUAL.fullmatch(conn.line())


def test_verbs_of_a_bridge_are_refused(start, memcached):
    start([memcached])
    bridged = {"lists b:": {"bridge": "yes", "on_missing": "refuse"}, "lists c:": {"bridge": "yes"}}
    with start([memcached], sections=bridged).conn() as conn:
        assert UNEQUAL.fullmatch(conn.cmd("append b:1 0 0 1", "x"))
        assert UNEQUAL.fullmatch(conn.set("b:1", "x"))
        assert UNEQUAL.fullmatch(conn.cmd("get b:1"))
        assert conn.set("c:1", "x") == b"STORED"
        assert conn.get("c:1") == b"x"


def test_a_migration_step_by_step(start, memcached):
    signed = {"lists m:": {"dialect": "signed"}}
    both = {"lists m:": {"dialect": "signed", "migrate": "native"}}
    with start([memcached], sections=signed).conn() as one, start([memcached], sections=both).conn() as two:
        assert one.cmd("ladd m:1 a") == two.cmd("ladd m:1 b") == b"STORED"
        assert unequal(one) == unequal(two) == 0


# --- pools that are passed through ---------------------------------------------------------------


def test_a_pool_of_plain_keys_is_not_asked(start_daemon, memcached):
    def asked(conn):
        return int(conn.stats()["get_misses"])
    daemon = start_daemon([memcached], config={"pool main": {"gate_s": 1}})
    with memcached.conn() as server, daemon.conn() as conn:
        before = asked(server)
        assert conn.set("k", "v") == b"STORED"
        assert conn.get("k") == b"v"
        assert (item(memcached), asked(server)) == (None, before + 1)  # by this test
        assert conn.cmd("ladd fruit apple") == b"STORED"  # from now on it is
        wait_until("the item is there", lambda: item(memcached))


@pytest.mark.memcacheds(2)
def test_two_pools_on_the_same_servers(start_daemon, memcacheds):
    addresses = [server.address for server in memcacheds]
    daemon = start_daemon(config={
        "pool one": {"servers": addresses, "gate_s": 1},
        "pool two": {"servers": addresses, "gate_s": 1, "distribution": "modula"},
        "lists": {"pool": "one"}, "lists t:": {"pool": "two"}})
    with daemon.conn() as conn:
        assert conn.cmd("ladd a x") == conn.cmd("ladd t:a x") == b"STORED"
        assert unequal(conn) == 0
    assert item(memcacheds[0], "mclistd#pool.one") != item(memcacheds[0], "mclistd#pool.two")


# --- other servers -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.5.22"])
def test_a_memcached_that_tells_no_times(version, start, start_old):
    old = start_old(version)
    with start([old]).conn() as one:
        first = wait_until("the item is there", lambda: cas_of(old.memcached))
        wait_until("it is renewed", lambda: cas_of(old.memcached) != first)
        wrong = start([old, f"{HOST}:{free_port()}"])
        wrong.wait_for_log("UNEQUAL PROXIES")
        assert answers(one) == (len(NAMES), 0)


def test_a_bucket_must_have_equal_layouts(start_daemon, tmp_path):
    def begin(dialect):
        return start_daemon(config={**sections(cluster, tmp_path, gate_s=1),
                                    "lists a:": {"dialect": dialect}})
    with Cluster(nodes=2) as cluster:
        first = begin("signed")
        with first.conn() as one:
            assert one.cmd("ladd a:1 x") == one.cmd("ladd b x") == b"STORED"
            second = begin("simple")
            with second.conn() as two:
                answer = two.cmd("ladd a:1 x")
                assert answer.startswith(b"SERVER_ERROR proxies of pool documents are unequal"), answer
                assert two.cmd("ladd b y") == b"STORED"
            second.wait_for_log('UNEQUAL PROXIES: lists of prefix "a:": this proxy: ')
            assert one.lget("a:1") == [b"x"] and unequal(one) == 0
            assert one.get("mclistd#pool.documents").startswith(b"mclistd gate 1\n")


@pytest.mark.memcacheds(3)
def test_two_that_start_at_the_same_moment(start_daemon, memcacheds):
    """Of two files exactly one is right, at once, and no list is made by both."""
    for _ in range(5):
        for server in memcacheds:
            server.restart()
        daemons = [None, None]

        def begin(n):
            daemons[n] = start_daemon(memcacheds[:2 + n], config={"pool main": {"gate_s": 3600},
                                                                  "lists": {"max_item_bytes": 1000}})

        in_threads(2, begin)
        with daemons[0].conn() as one, daemons[1].conn() as two:
            assert sorted((unequal(one), unequal(two))) == [0, 1]
            answers(one), answers(two)
        assert made_twice(memcacheds) == 0
        for daemon in daemons:
            daemon.stop()


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("winner", [0, 1])
def test_of_two_that_both_wrote_exactly_one_wins(start, memcacheds, winner):
    """As two leave it that start at the same moment: each has its item on a server of both."""
    files = [memcacheds[:2], memcacheds]
    texts = []
    for servers in files:
        start(servers).stop()
        texts.append({server: item(server) for server in servers})
        for server in servers:
            server.restart()
    first, second = sorted(memcacheds[:2], key=lambda server: server.address)
    for server, wrote in ((first, winner), (second, 1 - winner)):
        with server.conn() as conn:
            assert conn.set(KEY, texts[wrote][server].encode()) == b"STORED"
    # Nothing expires for hours: only what they decide now counts.
    daemons = [start(servers, gate_s=3600) for servers in files]
    conns = [daemon.conn() for daemon in daemons]
    assert [unequal(conn) for conn in conns] == [int(n != winner) for n in range(2)]
    assert all(answers(conn)[1] > 0 for conn in conns)  # the winner waits until the other has seen it
    daemons[winner].wait_for_log(f"{re.escape(first.address)} had the item of this proxy first")
    assert all(item(server) == texts[winner][server] for server in files[winner])
    for conn, daemon in zip(conns, daemons):
        conn.close()
        daemon.stop()
    # And with rounds that are short.
    for server in memcacheds:
        server.restart()
    for server, wrote in ((first, winner), (second, 1 - winner)):
        with server.conn() as conn:
            assert conn.set(KEY, texts[wrote][server].encode()) == b"STORED"
    daemons = [start(servers) for servers in files]
    with daemons[winner].conn() as right, daemons[1 - winner].conn() as wrong:
        wait_until("none is refused", lambda: answers(right) == (len(NAMES), 0))
        assert answers(wrong)[1] > 0 and unequal(wrong) == 1
        assert made_twice(memcacheds) == 0
    assert "UNEQUAL" not in daemons[winner].log()


@pytest.mark.memcacheds(3)
def test_of_two_that_were_unequal_one_takes_the_place_of_the_first(start, memcacheds):
    first = start(memcacheds[:2])
    with start(memcacheds).conn() as one, start(memcacheds[::2]).conn() as two:
        assert unequal(one) == unequal(two) == 1
        first.kill()
        wait_until("one is right", lambda: unequal(one) + unequal(two) == 1, timeout_s=60 * SLOW)
        assert [answers(conn)[1] > 0 for conn in (one, two)] == [unequal(one), unequal(two)]
        assert made_twice(memcacheds) == 0


def test_on_unequal_can_be_read_anew(start, memcached, tmp_path):
    path = tmp_path / "admin.sock"
    start([memcached], sections={"lists a:": {"dialect": "signed"}})
    second = start([memcached], sections={"admin": {"listen": f"unix:{path}"}})
    with second.conn() as conn:
        assert UNEQUAL.fullmatch(conn.cmd("ladd a:1 x"))
        second.sections["pool main"]["on_unequal"] = "warn"
        write_ini(second.ini_path, second.sections)
        second.signal(signal.SIGHUP)
        wait_until("it is not refused", lambda: conn.cmd("ladd a:1 x") == b"STORED")
        assert unequal(conn) == 1


def test_lists_go_on_behind_a_reload_that_refuses_nothing(start, memcached):
    """The gate is not asked any more whether the proxy has heard of it lately."""
    daemon = start([memcached])
    with daemon.conn() as conn:
        for on_unequal in ("warn", "refuse"):
            daemon.sections["pool main"]["on_unequal"] = on_unequal
            write_ini(daemon.ini_path, daemon.sections)
            daemon.signal(signal.SIGHUP)
            end_s = time.monotonic() + 3  # of which gate_s is one
            while time.monotonic() < end_s:
                assert conn.cmd("ladd l x") == b"STORED"
                time.sleep(0.1)


@pytest.mark.memcacheds(3)
def test_a_takeover_with_other_servers(start, memcacheds, tmp_path):
    path = tmp_path / "admin.sock"
    daemon = start(memcacheds[:2], sections={"admin": {"listen": f"unix:{path}"}})
    with daemon.conn() as conn:
        assert answers(conn) == (len(NAMES), 0)
        before = daemon.process
        daemon.sections["pool main"]["servers"] = [server.address for server in memcacheds]
        daemon.args = ["--takeover", path]
        daemon.start()
        assert wait_for_exit(before) == 0
        assert answers(conn)[1] > 0 and made_twice(memcacheds) == 0


# --- many ----------------------------------------------------------------------------------------


@pytest.mark.memcacheds(2)
@pytest.mark.thorough
def test_fifty_proxies(start, memcacheds):
    daemons = [start(memcacheds, sections={"proxy": {"threads": 1}}) for _ in range(49)]
    wrong = start(memcacheds[:1], sections={"proxy": {"threads": 1}})
    wrong.wait_for_log("UNEQUAL PROXIES")
    for daemon in daemons:
        with daemon.conn() as conn:
            assert unequal(conn) == 0
            assert answers(conn) == (len(NAMES), 0)
    with wrong.conn() as conn:
        assert answers(conn)[1] > 0


@pytest.mark.memcacheds(2)
def test_the_page_has_a_red_bar(start, memcacheds):
    start(memcacheds)
    wait_until("the item is there", lambda: item(memcacheds[0]))
    port = free_port()
    daemon = start(memcacheds[:1], sections={"admin": {"listen": f"{HOST}:{port}"}})
    daemon.wait_for_log("UNEQUAL PROXIES")

    def body(path):
        conn = http.client.HTTPConnection(HOST, port, timeout=10 * SLOW)
        try:
            conn.request("GET", path)
            response = conn.getresponse()
            return response.status, response.read().decode()
        finally:
            conn.close()

    status, page = body("/")
    assert status == 200 and "<b>pool main: unequal proxies</b>: servers: this proxy: " in page
    assert body("/ready")[0] == 200
    assert "mclistd_gate_unequal 1\n" in body("/metrics")[1]
