# SPDX-License-Identifier: BSD-3-Clause
"""[route PREFIX]: which pool plain keys go to, and which one they fall back to."""

import base64

import pytest

from couchbase_support import Cluster, documents
from harness import wait_until
from test_backend_support import FAST, answer_always, never_answer
from test_binary_support import Binary, packet, store
from test_multiget import answer_of
from test_reload import Reloaded
from test_where import where

B64 = base64.b64encode(b"u:key").decode()


def pools(*servers, **routes):
    """Pools a, b, c, ... of one server each, of which a has the keys of no route."""
    names = {f"pool {name}": {**FAST, "servers": server.address} for name, server in zip("abcd", servers)}
    return {"proxy": {"pool": "a", "threads": 1}, **names,
            **{f"route {prefix}".strip(): route for prefix, route in routes.items()}}  # fmt: skip


def routed(start_daemon, *servers, **routes):
    return start_daemon(config=pools(*servers, **routes))


@pytest.fixture
def two(start_memcached):
    return [start_memcached() for _ in range(2)]


def holds(server, key):
    with server.conn() as conn:
        return conn.get(key)


def stop(server, daemon, pool):
    """Stops the server, and waits until the daemon knows."""
    server.stop()
    with daemon.conn() as conn:
        state = f"backend:{server.address}@{pool}:state"
        wait_until("it is seen", lambda: conn.stats("stats backends")[state] == "down")


def test_the_longest_prefix_chooses_the_pool(start_daemon, start_memcached):
    a, b, c = [start_memcached() for _ in range(3)]
    daemon = routed(start_daemon, a, b, c, **{"u:": {"pool": "b"}, "u:x:": {"pool": "c"}, "u:a:": {}})
    with daemon.conn() as conn:
        for key, server in (("plain", a), ("u:1", b), ("u:x:1", c), ("u:a:1", a), ("u", a), ("u:x", b)):
            conn.set(key, "v")
            assert [holds(s, key) for s in (a, b, c)] == [b"v" if s is server else None for s in (a, b, c)]
        assert conn.cmd("append u:1 0 0 1", "w") == b"STORED"
        assert conn.cmd("touch u:1 100") == b"TOUCHED"
        assert conn.cmd("ms u:n 1 T0", "5") == b"HD" and conn.cmd("incr u:n 2") == b"7"
        assert conn.cmd("ma u:n v") == b"VA 1" and conn.line() == b"8"
        assert holds(b, "u:1") == b"vw" and holds(b, "u:n") == b"8"
        assert conn.cmd(f"ms {B64} 1 b", "z") == b"HD" and holds(b, "u:key") == b"z"
        assert conn.values("gat 0 plain u:1 u:x:1") == [
            (b"plain", [0, 1], b"v"), (b"u:1", [0, 2], b"vw"), (b"u:x:1", [0, 1], b"v")]
        assert conn.cmd("delete u:1") == b"DELETED" and holds(b, "u:1") is None
        assert conn.cmd("flush_all") == b"OK"
        assert [holds(s, k) for s, k in ((a, "plain"), (b, "u:n"), (c, "u:x:1"))] == [None] * 3


def test_a_get_of_many_keys_over_several_routes(start_daemon, start_memcached):
    servers = [start_memcached() for _ in range(4)]
    daemon = routed(start_daemon, *servers, **{"b": {"pool": "b"}, "c": {"pool": "c"}, "d": {"pool": "d"}})
    keys = [f"{'abcd'[i * 7 % 4]}{i}" for i in range(200)]
    with daemon.conn() as conn:
        for key in keys[:100]:
            conn.set(key, key * 50)
        for verb in ("get", "gets"):
            found = conn.values(f"{verb} " + " ".join(keys))
            assert [(key.decode(), value.decode()) for key, _, value in found] == [(k, k * 50) for k in keys[:100]]
        conn.send("get " + " ".join(keys) + "\r\n", "set b0 0 0 3\r\nnew\r\nget b0 a0\r\n" * 20)
        assert len(conn.values_answer()) == 100
        for _ in range(20):
            assert conn.line() == b"STORED"
            assert [value for _, _, value in conn.values_answer()] == [b"new", b"a0" * 50]
        stats = conn.stats("stats routes")
        assert stats["route:b:pool"] == "b" and stats["route:*:pool"] == "a"
        assert int(stats["route:b:requests"]) == 150 + 25 + 40
        assert stats["route:c:requests"] == stats["route:d:requests"] == "175"


def test_pools_of_both_kinds(start_daemon, start_memcached, tmp_path):
    """A get over both, and each verb of each kind; what a bucket cannot do is refused for its keys."""
    memcached = start_memcached()
    with Cluster(nodes=2) as cluster:
        daemon = start_daemon(config={
            "proxy": {"allow_flush_all": "no", "pool": "a"}, "pool a": {"servers": memcached.address},
            "pool documents": documents(cluster, tmp_path), "route d:": {"pool": "documents"}})
        with daemon.conn() as conn:
            keys = [f"{'d:' if i % 3 else ''}k{i}" for i in range(60)]
            conn.send("".join(f"set {key} 0 0 {len(key)}\r\n{key}\r\n" for key in keys))
            assert set(conn.lines(60)) == {b"STORED"}
            found = conn.values("get " + " ".join(keys) + " d:none none")
            assert [key.decode() for key, _, _ in found] == keys
            assert holds(memcached, "d:k1") is None and holds(memcached, "k0") == b"k0"
            assert conn.cmd("me k0").startswith(b"ME ")
            assert conn.cmd("me d:k1") == b"CLIENT_ERROR me: pool documents is of type couchbase"
            assert conn.cmd("set d:n 0 0 1", "4") == b"STORED" and conn.cmd("incr d:n 3") == b"7"
            assert conn.cmd("mg d:n v") == b"VA 1" and conn.line() == b"7"


# --- failover ---


def test_reads_fail_over_when_the_server_is_down(start_daemon, two):
    a, b = two
    daemon = routed(start_daemon, a, b, **{"": {"failover": "b"}})
    with daemon.conn() as conn, b.conn() as other:
        conn.set("k", "first")
        other.set("k", "second")
        assert conn.get("k") == b"first"
        stop(a, daemon, "a")
        assert conn.get("k") == b"second"
        assert conn.cmd("mg k v") == b"VA 6" and conn.line() == b"second"
        assert conn.cmd("mg none v k") == b"EN knone"
        conn.send("mg none v q\r\nmg k q\r\nmn\r\n")
        assert conn.lines(2) == [b"HD", b"MN"]
        assert conn.values("gets k none k")[0][2] == b"second"
        # What may not be done twice, or depends on what is there, is not sent elsewhere.
        down = f"SERVER_ERROR backend {a.address} down".encode()
        for line, body in (("set k 0 0 1", "x"), ("add n 0 0 1", "x"), ("append k 0 0 1", "x"), ("incr k 1", None),
                           ("touch k 5", None), ("gat 5 k", None), ("mg k T5", None), ("mg n N5 v", None),
                           ("ms k 1", "x"), ("me k", None)):  # fmt: skip
            assert conn.cmd(line, body) == down, line
        assert holds(b, "k") == b"second" and holds(b, "n") is None
        stats = conn.stats("stats routes")
        assert stats["route:*:failover"] == "b" and int(stats["route:*:failover_reads"]) == 8
        assert conn.stats()["failover_reads"] == "8"
        assert conn.stats("stats reasons")["retried:failover_read"] == "8"
        a.start()
        wait_until("it is back", lambda: conn.get("k") is None)


def test_many_keys_fail_over_one_by_one(start_daemon, start_memcached):
    """Of a pool of three one server is gone: its keys alone come from the other pool."""
    servers, other = [start_memcached() for _ in range(3)], start_memcached()
    addresses = [server.address for server in servers]
    daemon = start_daemon(config={
        "proxy": {"pool": "a"}, "pool a": {**FAST, "servers": addresses},
        "pool b": {"servers": other.address}, "route": {"failover": "b"}})
    keys = [f"key{i}" for i in range(1000)]
    with daemon.conn() as conn, other.conn() as direct:
        for key in keys:
            conn.send(f"set {key} 0 0 1\r\na\r\n")
            direct.send(f"set {key} 0 0 1\r\nb\r\n")
        assert set(conn.lines(1000)) == set(direct.lines(1000)) == {b"STORED"}
        with servers[0].conn() as dead:
            gone = {key for key, _, _ in dead.values("get " + " ".join(keys))}
        stop(servers[0], daemon, "a")
        for verb in ("get", "gets"):
            found = conn.values(f"{verb} " + " ".join(keys))
            assert [key.decode() for key, _, _ in found] == keys
            assert {key for key, _, value in found if value == b"b"} == gone


@pytest.mark.parametrize("behave", [never_answer, answer_always(b"nonsense\r\n")], ids=["silent", "garbage"])
def test_reads_of_a_server_that_is_not_dead_but_useless(start_daemon, start_fake, start_memcached, behave):
    fake, other = start_fake(behave), start_memcached()
    daemon = routed(start_daemon, fake, other, **{"": {"failover": "b", "failover_ttl_s": 10}})
    with daemon.conn() as conn, other.conn() as direct:
        for i in range(100):
            direct.set(f"k{i}", f"{i}")
        found, end = answer_of(conn, "get " + " ".join(f"k{i}" for i in range(100)))
        assert len(found) == 100 and end == b"END"
        assert conn.cmd("mg k7 v") == b"VA 1" and conn.line() == b"7"


def test_a_cas_number_of_the_failover_pool_is_no_other_items(start_daemon, two):
    """Both servers count from 1: the number of the item there is that of another value here."""
    a, b = two
    daemon = routed(start_daemon, a, b, **{"": {"failover": "b", "failover_ttl_s": 60}})
    stop(a, daemon, "a")
    large = "o" * 5000
    with daemon.conn() as conn, Binary(daemon.port) as binary:
        numbers = [binary.ask(store("set", b"k", b"old")).cas]
        numbers += [binary.ask(packet("get", b"k")).cas]
        conn.send("gets k\r\n")
        numbers += [int(conn.line().split()[4])] + ([] if conn.lines(2) else [])
        conn.send("gets k n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12 n13\r\n")
        numbers += [int(conn.line().split()[4])] + ([] if conn.lines(2) else [])
        numbers += [int(conn.cmd("mg k k c O7").removeprefix(b"HD kk c").removesuffix(b" O7"))]
        assert conn.cmd(f"ms m {len(large)} O7 c", large).startswith(b"HD O7 c")
        answer = conn.cmd("mg m v c s")
        assert answer.startswith(b"VA 5000 c") and answer.endswith(b" s5000") and conn.line() == large.encode()
        assert conn.cmd("mg m s") == b"HD s5000" and conn.cmd("mg none c") == b"EN"
        with b.conn() as direct:
            there = int(direct.cmd("mg k c").removeprefix(b"HD c"))
        assert there < 10 and set(numbers) == {numbers[0]} and 10 < numbers[0] < 1 << 63
        a.start()
        state = f"backend:{a.address}@a:state"
        wait_until("it is back", lambda: conn.stats("stats backends")[state] == "up")
        with a.conn() as direct:
            direct.set("k", "new")
            while int(direct.cmd("mg k c").removeprefix(b"HD c")) < there:
                direct.set("k", "new")
        assert conn.cmd(f"cas k 0 0 4 {numbers[0]}", "mine") == b"EXISTS"
        assert conn.cmd(f"ms k 4 C{numbers[0]}", "mine") == b"EX"
        assert conn.cmd(f"cas k 0 0 4 {there}", "mine") == b"STORED"


def test_a_set_whose_outcome_is_unknown_is_not_repeated(start_daemon, start_fake, start_memcached):
    fake, other = start_fake(never_answer), start_memcached()
    daemon = routed(start_daemon, fake, other, **{"": {"failover": "b", "failover_ttl_s": 10}})
    with daemon.conn() as conn:
        assert conn.cmd("set k 0 0 1", "x").endswith(b"timeout, outcome unknown")
        assert holds(other, "k") is None
        stats = conn.stats()
        assert (stats["outcomes_unknown"], stats["failover_sets"]) == ("1", "0")


@pytest.mark.parametrize("exptime, ttl_s", [(0, 60), (30, 30), (1000, 60), (-1, None)])
def test_sets_go_there_for_a_time(start_daemon, two, exptime, ttl_s):
    a, b = two
    daemon = routed(start_daemon, a, b, **{"": {"failover": "b", "failover_ttl_s": 60}})
    stop(a, daemon, "a")
    with daemon.conn() as conn, b.conn() as direct:
        lines = [f"set k 5 {exptime} 3", f"ms {B64} 3 b F5 T{exptime} q", f"ms m 3 T{exptime} MS O9 k"]
        assert conn.cmd(lines[0], "abc") == b"STORED"
        conn.send(f"{lines[1]}\r\nabc\r\n")
        assert conn.cmd(lines[2], "abc") == b"HD O9 km"
        conn.send(f"set n 0 {exptime} 3 noreply\r\nabc\r\n")
        assert conn.cmd("mn") == b"MN"
        for key in ("k", "u:key", "m", "n"):
            answer = direct.cmd(f"mg {key} t")
            if ttl_s is None:
                assert answer == b"EN"
            else:
                assert ttl_s - 5 <= int(answer.split(b" t")[1]) <= ttl_s
        assert ttl_s is None or conn.values("get k") == [(b"k", [5, 3], b"abc")]
        # With conditions they are no plain sets.
        assert conn.cmd("ms k 1 C1", "x").startswith(b"SERVER_ERROR")
        assert conn.cmd("ms k 1 I", "x").startswith(b"SERVER_ERROR")
        assert conn.cmd("ms k 1 MA", "x").startswith(b"SERVER_ERROR")
        assert conn.stats("stats routes")["route:*:failover_sets"] == "4"


def test_a_delete_is_no_success_where_the_old_value_stays(start_daemon, two):
    a, b = two
    daemon = routed(start_daemon, a, b, **{"": {"failover": "b", "failover_ttl_s": 60}})
    stop(a, daemon, "a")
    text = (b"SERVER_ERROR not deleted, since the server is down: deleted in the failover pool alone")
    with daemon.conn() as conn:
        for line in ("delete k", "md k", "md k q"):
            conn.set("k", "v")
            assert conn.cmd(line) == text
            assert holds(b, "k") is None
        conn.set("k", "v")
        conn.send("delete k noreply\r\nmn\r\n")
        assert conn.line() == b"MN" and conn.get("k") is None
        conn.set("k", "v")
        assert conn.cmd("md k C7") == f"SERVER_ERROR backend {a.address} down".encode()
        assert conn.stats()["failover_deletes"] == "4"
        stop(b, daemon, "b")
        down = f"SERVER_ERROR backend {b.address} down".encode()
        assert conn.cmd("delete k") == conn.cmd("set k 0 0 1", "x") == conn.cmd("get k") == down
        assert conn.cmd("get " + " ".join(f"k{i}" for i in range(100))) == down


def test_misses_where_both_are_down(start_daemon, two):
    a, b = two
    sections = pools(a, b, **{"": {"failover": "b"}})
    sections["pool a"]["down_reads"] = "miss"
    daemon = start_daemon(config=sections)
    stop(a, daemon, "a")
    stop(b, daemon, "b")
    with daemon.conn() as conn:
        assert answer_of(conn, "get " + " ".join(f"k{i}" for i in range(100))) == ([], b"END")
        assert conn.cmd("mg k v k") == b"EN kk"


def test_buckets_fail_over_to_buckets(start_daemon, tmp_path):
    with Cluster(nodes=1) as first, Cluster(nodes=1) as second:
        (tmp_path / "1").mkdir()
        (tmp_path / "2").mkdir()
        daemon = start_daemon(config={
            "proxy": {"allow_flush_all": "no"}, "pool a": {**documents(first, tmp_path / "1"), **FAST},
            "pool b": documents(second, tmp_path / "2"),
            "route": {"failover": "b", "failover_ttl_s": 50}})
        with daemon.conn() as conn:
            assert conn.cmd("set k 0 0 1", "x") == b"STORED"
            first.stop()
            wait_until("it is known", lambda: conn.cmd("set k 7 0 1", "y") == b"STORED")
            assert conn.values("get k k") == [(b"k", [7, 1], b"y")] * 2
            assert conn.cmd("mg k t f v").startswith(b"VA 1 t") and conn.line() == b"y"
            assert conn.cmd("ms m 1 k", "z") == b"HD km"
            assert conn.cmd("delete k").startswith(b"SERVER_ERROR not deleted")
            assert conn.get("k") is None
            assert conn.cmd("incr k 1").startswith(b"SERVER_ERROR")


# --- lists, operators ---


def test_lists_do_not_follow_routes_and_are_protected_where_these_lead(start_daemon, start_memcached):
    a, b, c = [start_memcached() for _ in range(3)]
    sections = pools(a, b, c, **{"l": {"pool": "b", "failover": "c"}})
    sections["lists l"] = {"pool": "c"}
    daemon = start_daemon(config=sections)
    with daemon.conn() as conn:
        assert conn.cmd("ladd l1 x y") == b"STORED" and conn.cmd("ladd k x") == b"STORED"
        assert holds(c, "l1#") and not holds(b, "l1#") and holds(a, "k#")
        refused = b"CLIENT_ERROR this key belongs to a list: use list verbs (protect_lists)"
        assert conn.cmd("set l1# 0 0 1", "x") == refused  # might fail over to it
        assert conn.cmd("set k# 0 0 1", "x") == refused
        # Plain items that a list names are deleted where their routes lead.
        conn.set("lx", "1")
        conn.set("x", "1")
        assert conn.cmd("ladd tag lx x") == b"STORED"
        assert conn.cmd("lpurge tag") == b"2"
        assert holds(b, "lx") is None and holds(a, "x") is None


def test_where_tells_the_route(start_daemon, start_memcached, tmp_path):
    a, b = start_memcached(), start_memcached()
    operated = Reloaded(start_daemon, [], tmp_path, **pools(a, b, **{"u:": {"failover": "b"}}))
    lines = operated.ask("where u:1").splitlines()
    assert lines[1] == "route=u: failover=b shadow=none shadowed=no"
    assert operated.ask("where v").splitlines()[1] == "route=* failover=none shadow=none shadowed=no"
    _, items = where(operated, "u:1")
    assert items["plain"]["server"] == a.address and items["failover"]["server"] == b.address


def test_a_reload_changes_routes_but_not_where_keys_live(start_daemon, start_memcached, tmp_path):
    a, b = start_memcached(), start_memcached()
    operated = Reloaded(start_daemon, [], tmp_path, **pools(a, b, **{"u:": {"pool": "a"}}))
    with operated.daemon.conn() as conn:
        stop(a, operated.daemon, "a")
        down = f"SERVER_ERROR backend {a.address} down".encode()
        assert conn.cmd("get u:1") == down
        assert operated.reload(route_u={}) != "OK\n"  # [route u] is new
        assert operated.reload(**{"route u:": {"failover": "b", "failover_ttl_s": 9}}) == "OK\n"
        assert conn.cmd("set u:1 0 0 1", "x") == b"STORED" and conn.get("u:1") == b"x"
        assert "[route u:] pool (a -> b)" in operated.reload(**{"route u:": {"pool": "b"}})
        assert conn.get("u:1") == b"x"
        assert operated.reload(**{"route u:": {"failover": "nowhere"}}).startswith("ERROR")
        assert operated.reload(**{"route u:": {"failover": ""}}) == "OK\n"
        assert conn.cmd("get u:1") == down


def test_large_values_pass_over_routes(start_daemon, two):
    a, b = two
    daemon = routed(start_daemon, a, b, **{"u:": {"pool": "b", "failover": "a", "failover_ttl_s": 60}})
    large = "x" * 1000000
    with daemon.conn() as conn:
        for server in (b, None):
            assert conn.cmd(f"set u:k 0 0 {len(large)}", large) == b"STORED"
            assert [value.decode() for _, _, value in conn.values("get u:k u:k")] == [large] * 2
            if server:
                too_large = conn.cmd("set u:k 0 0 1100000", "y" * 1100000)
                assert too_large == b"SERVER_ERROR object too large for cache"
                assert holds(b, "u:k") is None
                stop(server, daemon, "b")


# --- shadow ---


def counts(conn, prefix="*"):
    stats = conn.stats("stats routes")
    names = ("requests", "dropped", "skipped", "failed")
    return {name: int(stats[f"route:{prefix}:shadow_{name}"]) for name in names}


def settled(conn):
    """What was sent to the shadow pool, once all of it is answered."""
    def is_done():
        stats = conn.stats("stats backends")
        return all(value == "0" for name, value in stats.items() if name.endswith(":pending"))
    wait_until("nothing is under way", is_done)


def test_a_share_of_the_keys_is_shadowed_always(start_daemon, two):
    a, b = two
    daemon = routed(start_daemon, a, b, **{"": {"shadow": "b:30%"}})
    keys = [f"key{i}" for i in range(1000)]
    with daemon.conn() as conn, b.conn() as shadow:
        conn.send("".join(f"set {key} 0 0 1\r\nx\r\n" for key in keys))
        assert set(conn.lines(1000)) == {b"STORED"}
        settled(conn)
        taken = {key.decode() for key, _, _ in shadow.values("get " + " ".join(keys))}
        assert 240 < len(taken) < 360 and counts(conn)["requests"] == len(taken)
        conn.values("get " + " ".join(keys))
        conn.send("".join(f"delete {key} noreply\r\n" for key in keys) + "mn\r\n")
        assert conn.line() == b"MN"
        settled(conn)
        assert shadow.values("get " + " ".join(keys)) == []
        assert counts(conn) == {"requests": 3 * len(taken), "dropped": 0, "skipped": 0, "failed": 0}
    # In another proxy, with two workers, the same keys; with a larger share, these and others.
    other = routed(start_daemon, a, b, **{"": {"shadow": "b:60.5%"}})
    with other.conn() as conn, b.conn() as shadow:
        conn.send("".join(f"set {key} 0 0 1\r\nx\r\n" for key in keys))
        assert set(conn.lines(1000)) == {b"STORED"}
        settled(conn)
        more = {key.decode() for key, _, _ in shadow.values("get " + " ".join(keys))}
        assert taken < more and 540 < len(more) < 670


def test_each_verb_goes_there_and_its_answer_is_dropped(start_daemon, two):
    a, b = two
    daemon = routed(start_daemon, a, b, **{"u:": {"shadow": "b:100%"}})
    with daemon.conn() as conn:
        conn.set("u:k", "1", flags=3)
        conn.set("v:k", "1")
        assert conn.cmd("append u:k 0 0 1", "2") == b"STORED"
        assert conn.cmd("incr u:k 1") == b"13"
        assert conn.cmd("touch u:k 100") == b"TOUCHED"
        conn.send(f"ms {B64} 3 b k O123 q\r\nabc\r\nmg {B64} b k O77 v c\r\nmn\r\n")
        assert conn.line().startswith(b"VA 3 k" + B64.encode()) and conn.lines(2) == [b"abc", b"MN"]
        assert conn.cmd("gat 50 u:k").startswith(b"VALUE") and conn.lines(2) == [b"13", b"END"]
        settled(conn)
        with b.conn() as shadow:
            assert shadow.values("get u:k u:key v:k") == [(b"u:k", [3, 2], b"13"), (b"u:key", [0, 3], b"abc")]
            assert int(shadow.cmd("mg u:k t").split(b" t")[1]) <= 50
        # The number of a CAS is that of another item.
        assert conn.cmd("cas u:k 0 0 1 1", "x") == b"EXISTS"
        assert conn.cmd("ms u:k 1 C1", "x") == b"EX"
        assert conn.cmd("me u:k").startswith(b"ME u:k")
        settled(conn)
        assert counts(conn, "u:") == {"requests": 7, "dropped": 0, "skipped": 3, "failed": 0}
        assert conn.cmd("set u:k 0 0 1100000", "y" * 1100000).startswith(b"SERVER_ERROR object too large")
        settled(conn)
        assert holds(b, "u:k") is None and conn.stats()["outcomes_unknown"] == "0"


@pytest.mark.parametrize("behave", [never_answer, answer_always(b"nonsense\r\n"), None],
                         ids=["silent", "garbage", "dead"])
def test_a_shadow_that_is_ill_costs_nothing(start_daemon, start_fake, start_memcached, behave):
    """Answers come from the first pool alone, in order; what is under way is bounded."""
    a = start_memcached()
    b = start_fake(behave) if behave else start_memcached()
    sections = pools(a, b, **{"": {"shadow": "b:100%", "shadow_bytes": "256k"}})
    sections["pool b"].update(timeout_ms=5000, eject_failures=0)
    daemon = start_daemon(config=sections)
    if behave is None:
        b.stop()
    with daemon.conn() as conn:
        value = "x" * 10000
        for i in range(100):
            conn.send(f"set k{i} 0 0 {len(value)}\r\n{value}\r\n", f"get k{i}\r\n")
            assert conn.line() == b"STORED"
            assert conn.values_answer() == [(b"k%d" % i, [0, len(value)], value.encode())]
        found = conn.values("get " + " ".join(f"k{i}" for i in range(100)))
        assert len(found) == 100
        stats = conn.stats()
        assert stats["server_errors"] == stats["outcomes_unknown"] == "0"
        seen = counts(conn)
        assert seen["requests"] + seen["dropped"] == 300
        if behave is never_answer:
            assert 100 < seen["dropped"] and seen["requests"] < 256 * 1024 / 600
            assert int(conn.stats("stats reasons")["dropped:shadow_bytes"]) == seen["dropped"]
        else:
            wait_until("all have failed", lambda: counts(conn)["failed"] == counts(conn)["requests"])


def test_a_warm_second_pool(start_daemon, two):
    """What a shadow of all keys is for, beside a failover to the same pool."""
    a, b = two
    daemon = routed(start_daemon, a, b, **{"": {"shadow": "b:100%", "failover": "b", "failover_ttl_s": 30}})
    with daemon.conn() as conn:
        for i in range(50):
            conn.set(f"k{i}", f"{i}")
        assert conn.cmd("delete k7") == b"DELETED"
        settled(conn)
        stop(a, daemon, "a")
        found = conn.values("get " + " ".join(f"k{i}" for i in range(50)))
        assert [value for _, _, value in found] == [b"%d" % i for i in range(50) if i != 7]


def test_a_bucket_is_shadowed_by_a_bucket(start_daemon, tmp_path):
    with Cluster(nodes=2) as first, Cluster(nodes=1) as second:
        (tmp_path / "1").mkdir()
        (tmp_path / "2").mkdir()
        daemon = start_daemon(config={
            "proxy": {"allow_flush_all": "no"}, "pool a": documents(first, tmp_path / "1"),
            "pool b": documents(second, tmp_path / "2"), "route": {"shadow": "b:100%"},
            "route direct:": {"pool": "b", "shadow": ""}})
        with daemon.conn() as conn:
            for i in range(20):
                value = f"{i}" * 5000
                assert conn.cmd(f"set k{i} 0 0 {len(value)}", value) == b"STORED"
            assert conn.cmd(f"ms {B64} 3 b", "abc") == b"HD" and conn.cmd("delete k3") == b"DELETED"
            settled(conn)
            assert counts(conn) == {"requests": 22, "dropped": 0, "skipped": 0, "failed": 0}
            second.stop()
            assert conn.cmd("set k1 0 0 1", "x") == b"STORED" and conn.get("k1") == b"x"
            assert conn.cmd("set direct:k 0 0 1", "x").startswith(b"SERVER_ERROR")


def test_a_reload_begins_and_ends_a_shadow(start_daemon, start_memcached, tmp_path):
    a, b = start_memcached(), start_memcached()
    operated = Reloaded(start_daemon, [], tmp_path, **pools(a, b, **{"": {}}))
    with operated.daemon.conn() as conn:
        for shadow, stored in (("b:100%", b"x"), ("", None), ("b:100%", b"x")):
            assert operated.reload(route={"shadow": shadow}) == "OK\n"
            conn.set("k", "x")
            assert holds(a, "k") == b"x"
            settled(conn)
            assert holds(b, "k") == stored
            with b.conn() as direct:
                direct.cmd("flush_all")
        assert "shadow=b:100% shadowed=yes" in operated.ask("where k")
        _, items = where(operated, "k")
        assert items["shadow"]["server"] == b.address


def test_a_drained_server_is_not_asked(start_daemon, start_memcached, tmp_path):
    a, b = start_memcached(), start_memcached()
    operated = Reloaded(
        start_daemon, [], tmp_path, **pools(a, b, **{"": {"failover": "b", "failover_ttl_s": 9}}))
    with operated.daemon.conn() as conn:
        conn.set("k", "old")
        assert operated.ask(f"drain {a.address}").startswith("OK")
        assert conn.get("k") is None
        conn.set("k", "new")
        assert conn.get("k") == b"new" and holds(a, "k") == b"old"


def test_clients_of_the_binary_protocol(start_daemon, two):
    a, b = two
    daemon = routed(start_daemon, a, b, **{
        "u:": {"failover": "b", "failover_ttl_s": 20, "shadow": "b:100%"}, "v:": {"pool": "b"}})
    with Binary(daemon.port, daemon.tls) as client, daemon.conn() as conn:
        for key in (b"u:k", b"v:k"):
            assert client.ask(store("set", key, b"x")).status == 0
        settled(conn)
        assert holds(a, "u:k") == holds(b, "u:k") == holds(b, "v:k") == b"x" and holds(a, "v:k") is None
        stop(a, daemon, "a")
        assert client.ask(packet("get", b"u:k")).value == b"x"
        assert client.ask(store("set", b"u:k", b"y")).status == 0
        assert client.ask(packet("get", b"u:k")).value == b"y"
        assert client.ask(packet("delete", b"u:k", cas=7)).status != 0
        settled(conn)
        assert holds(b, "u:k") == b"y"
        assert client.ask(packet("delete", b"u:k")).status != 0
        assert holds(b, "u:k") is None
