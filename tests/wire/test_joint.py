# SPDX-License-Identifier: BSD-3-Clause
"""lgetx, linter, lunion, ldiff and their counts: several lists at one instant."""

import random

import pytest

from harness import SLOW

SHORT = {"log_limit_bytes": 512, "log_hard_limit_bytes": 4096, "sublist_limit_bytes": 1024}
SHORT["max_item_bytes"] = 100


def each(conn, line):
    """(key, items) of each VALUE block."""
    return [(key.decode(), data.split(b",") if data else []) for key, _, data in conn.values(line)]


def joined(conn, line):
    """The items of the one VALUE block, under the first key; [] where END stands alone."""
    found = each(conn, line)
    assert len(found) <= 1 and all(key == line.split()[1] for key, _ in found)
    return found[0][1] if found else []


def inter(lists):
    return [i for i in lists[0] if all(i in other for other in lists[1:])]


def union(lists):
    return list(dict.fromkeys(i for items in lists for i in items))


def diff(lists):
    return [i for i in lists[0] if not any(i in other for other in lists[1:])]


VERBS = {"linter": inter, "lunion": union, "ldiff": diff}


def check(conn, names, contents, rng=None):
    lists = [contents.get(name, []) for name in names]
    keys = " ".join(names)
    for verb, oracle in VERBS.items():
        expected = oracle(lists)
        assert joined(conn, f"{verb} {keys}") == expected, f"{verb} {keys}"
        assert conn.cmd(f"{verb}len {keys}") == b"%d" % len(expected)
        for target in ("made", names[-1]) if rng is not None and ":" not in names[-1] else ():
            assert conn.cmd(f"{verb}store {target} {keys}") == b"%d" % len(expected)
            assert conn.lget(target) == expected
            conn.send(f"lset {target} ", b" ".join(contents.get(target, [])), b"\r\n")
            assert conn.line() == b"STORED"
    expected = [(name, items) for name, items in zip(names, lists) if items]
    assert each(conn, f"lgetx {keys}") == expected


@pytest.mark.config(lists={"on_missing": "refuse"})
def test_where_missing_lists_are_refused_an_empty_result_is_an_empty_list(conn):
    assert conn.cmd("lset one a") == conn.cmd("lset two b") == b"STORED"
    for line in ("linter one two", "ldiff one one"):
        assert each(conn, line) == [("one", [])]
    assert each(conn, "linter one none") == []


def test_they_are_counted_as_reads_of_each_list(conn):
    for request, reads, writes in [
        ("lgetx a b", 2, 0),
        ("ldiff a b c", 3, 0),
        ("lunionlen a", 1, 0),
        ("linterstore made a b", 0, 1),
    ]:
        before = conn.stats()
        conn.send(request + "\r\n" + "version\r\n")
        while not conn.line().startswith(b"VERSION"):
            pass
        after = conn.stats()
        rise = [int(after[name]) - int(before[name]) for name in ("cmd_list_read", "cmd_list_write")]
        assert rise == [reads, writes], request


@pytest.mark.parametrize("view_bytes", ["64m", "0"])
@pytest.mark.memcacheds(2)
@pytest.mark.config(lists=SHORT)
def test_lists_of_all_sizes(start_daemon, memcacheds, view_bytes):
    """Logs alone, runs, many runs; with views and, where these have no memory, by passes."""
    config = {"lists": SHORT, "proxy": {"view_bytes": view_bytes}}
    config["lists simple:"] = {"dialect": "simple"}
    daemon = start_daemon(memcacheds, config=config)
    rng = random.Random(7)
    with daemon.conn() as conn:
        contents = {}
        for name, count in [("a", 5), ("b", 60), ("c", 700), ("d", 2000), ("simple:e", 300)]:
            contents[name] = []
            for _ in range(count):
                item = b"item-%d" % rng.randrange(2500)
                assert conn.cmd(f"ladd {name} {item.decode()}") == b"STORED"
                if item not in contents[name]:
                    contents[name].append(item)
            for item in contents[name][:: 9 if name != "a" else 2]:
                assert conn.cmd(f"ldel {name} {item.decode()}") == b"DELETED"
                contents[name].remove(item)
        for _ in range(60):
            names = [rng.choice([*contents, "none"]) for _ in range(rng.randrange(1, 5))]
            check(conn, names, contents, rng)


def test_a_thousand_lists_of_one_instant(conn):
    """Some are missing, one is named twice."""
    names = [f"k{i}" for i in range(1000)]
    for i, name in enumerate(names):
        if i % 100 != 99:
            conn.send(f"ladd {name} common only{i}\r\n".encode())
    for i in range(990):
        assert conn.line() == b"STORED"
    there = [name for i, name in enumerate(names) if i % 100 != 99]
    assert joined(conn, f"linter {' '.join(there)} k0") == [b"common"]
    union = joined(conn, f"lunion {' '.join(names)}")
    assert union == [b"common", *(b"only%d" % i for i in range(1000) if i % 100 != 99)]
    assert joined(conn, f"linter {' '.join(names)}") == []
    assert conn.cmd(f"lunionstore all {' '.join(names)}") == b"991"


@pytest.mark.config(proxy={"threads": 1})
def test_a_union_of_many_lists_takes_little_more_than_many_of_few(daemon, conn):
    """For each list those before it are asked, and nothing is looked up for that in a third loop,
    which made this sixty times as much."""
    names = [f"u-{n}" for n in range(1024)]
    conn.send("".join(f"ladd {name} item-{n}\r\n" for n, name in enumerate(names)))
    assert set(conn.lines(len(names))) == {b"STORED"}

    def processor_s(size):
        before_s = daemon.processor_s()
        for _ in range(20):
            for start in range(0, len(names), size):
                assert conn.cmd("lunionlen " + " ".join(names[start : start + size])) == b"%d" % size
        return daemon.processor_s() - before_s

    few_s = processor_s(64)
    assert processor_s(1024) < 15 * max(few_s, 0.01)


@pytest.mark.config(proxy={"max_read_lists": 8}, **{"lists none-": {"delimiter": "none"}})
def test_refusals_name_a_way_out(conn):
    conn.cmd("ladd a x y")
    conn.cmd("ladd none-b a,b x")
    for verb in VERBS:
        assert conn.cmd(f"{verb} none-b a") == (
            f"CLIENT_ERROR {verb}: the first list has no delimiter: name another one first, or use "
            f"{verb}store and ask for its DST by lgetb"
        ).encode()
        many = " ".join(f"k{i}" for i in range(9))
        assert conn.cmd(f"{verb} {many}") == (
            b"CLIENT_ERROR more than 8 lists (max_read_lists): "
            b"combine some of them by lunionstore or linterstore before"
        )
        assert conn.cmd(f"{verb}store target {many.removesuffix(' k8')}") == b"0"
    assert joined(conn, "linter a none-b") == [b"x"]
    assert conn.cmd("lunionstore none-c none-b a") == b"3"
    assert conn.lgetb("none-c") == [b"a,b", b"x", b"y"]


@pytest.mark.config(proxy={"threads": 1})
@pytest.mark.parametrize(
    "request_line, requests",
    [
        ("lgetx a b", 4),
        ("linter a b", 4),
        ("lunion a nix", 4),
        ("lunion a nix nix-too", 9),
        ("lunionlen nix nix-too", 7),
        ("linter a nix b", 3),
        ("linterstore made a b", 6),
    ],
)
def test_costs_in_requests_are_those_of_the_guide(conn, request_line, requests):
    for line in ("ladd a x y", "ladd b y z", "ladd made x", "lget a b made"):
        conn.send(line, "\r\nmn\r\n")
        conn.until_mn()
    before = int(conn.stats()["backend_requests"])
    conn.send(request_line, "\r\nmn\r\n")
    conn.until_mn()
    assert int(conn.stats()["backend_requests"]) - before == requests
