# SPDX-License-Identifier: BSD-3-Clause
"""Clients that keep lists by hand place them by a rule of their own. Where the proxy's differs, it
says so before anything is written in a second place: at its start, by -t --probe, in convert."""

import re
import subprocess

import pytest

from harness import TIMEOUT_S
from test_convert_support import (
    DIALECTS,
    Lister,
    convert,
    names_stored,
    sections,
    stored,
)

ITEMS = ["apple", "pear", "plum"]
KEYS = [f"topic-{n}" for n in range(60)]
BY_HAND = "modula/default"  # as pylibmc and php-memcached have it without being asked


def where(conn, rule, names):
    """{name: server}"""
    found = {}
    for start in range(0, len(names), 40):
        conn.send(f"stats where main {rule} {' '.join(names[start : start + 40])}\r\n")
        while (line := conn.line()) != b"END":
            _, name, server = line.decode().split()
            found[name] = server
    return found


def store_by_hand(daemon, memcacheds, dialect, keys, rule=BY_HAND):
    values = {}
    for key in keys:
        values.update(stored(dialect, key, ITEMS))
    by_address = {memcached.address: memcached for memcached in memcacheds}
    with daemon.conn() as conn:
        places = where(conn, rule, list(values))
    for name, value in values.items():
        with by_address[places[name]].conn() as conn:
            assert conn.set(name, value) == b"STORED"


def everything(memcacheds):
    return [names_stored(memcached) for memcached in memcacheds]


def config(dialect, distribution="ketama_weighted", migrate="native", **pool):
    return {
        "pool main": {"distribution": distribution, **pool},
        **sections(dialect, migrate=migrate),
    }


@pytest.fixture
def three(start_memcached):
    return [start_memcached() for _ in range(3)]


def test_where_names_the_server_of_each_key(start_daemon, three):
    daemon = start_daemon(three, config=config("simple"))
    with daemon.conn() as conn:
        for key in KEYS[:10]:
            assert conn.set(key, "x") == b"STORED"
        places = where(conn, "-", KEYS[:10])
        assert places == where(conn, "ketama_weighted/default", KEYS[:10])
    for memcached in three:
        here = [key for key in KEYS[:10] if places[key] == memcached.address]
        assert [name for name in names_stored(memcached) if name in KEYS] == sorted(here)


@pytest.mark.parametrize(
    "words, answer",
    [
        ("", b"CLIENT_ERROR usage: stats where POOL -|DISTRIBUTION/HASH KEY..."),
        ("main", b"CLIENT_ERROR usage: stats where POOL -|DISTRIBUTION/HASH KEY..."),
        ("other - key", b"CLIENT_ERROR stats where: no pool of memcacheds has that name"),
        ("main modula key", b"CLIENT_ERROR stats where: expected -, or DISTRIBUTION/HASH as the "
                            b"configuration has them"),
        ("main modula/sha key", b"CLIENT_ERROR stats where: expected -, or DISTRIBUTION/HASH as "
                                b"the configuration has them"),
        ("main -", b"END"),
    ],
)
def test_where_refuses_other_words(daemon, words, answer):
    with daemon.conn() as conn:
        assert conn.cmd(f"stats where {words}") == answer
        assert conn.cmd("mn") == b"MN"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_start_names_the_rule_that_fits(start_daemon, three, dialect):
    right = start_daemon(three, config=config(dialect, "modula", migrate="no"))
    store_by_hand(right, three, dialect, KEYS)
    wrong = start_daemon(three, config=config(dialect, migrate="no"))
    wrong.wait_for_log(
        r"warn +pool main: of \d+ items of lists, \d+ lie where distribution = ketama_weighted, "
        r"hash = default looks for them, (\d+) where distribution = modula, hash = default does"
    )
    right.stop()
    again = start_daemon(three, config=config(dialect, "modula", migrate="no"))
    with again.conn() as conn:
        assert conn.llen(KEYS[0]) == len(ITEMS)
    again.stop()
    assert "items of lists" not in again.log()


def test_start_asks_no_server_where_that_is_switched_off(start_daemon, three):
    first = start_daemon(three, config=config("simple", "modula", migrate="no"))
    store_by_hand(first, three, "simple", KEYS)
    daemon = start_daemon(three, config=config("simple", migrate="no", placement_names=0))
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"
    daemon.stop()
    assert "items of lists" not in daemon.log()


def test_look_at_the_start_ends_with_the_daemon(start_daemon, start_memcached):
    hung = start_memcached()
    hung.pause()
    daemon = start_daemon(
        [hung, start_memcached()], config=config("simple", migrate="no")
    )
    daemon.stop()
    hung.resume()


def probe(daemon):
    return subprocess.run(
        [*daemon.command(), "-t", "--probe"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )


def test_probe_tells_without_a_daemon(start_daemon, three):
    right = start_daemon(three, config=config("signed", "modula", migrate="no"))
    store_by_hand(right, three, "signed", KEYS)
    wrong = start_daemon(three, config=config("signed", migrate="no"))
    good, bad = probe(right), probe(wrong)
    assert good.returncode == 0, good.stderr
    assert "of 60 items of lists, 60 lie where distribution = modula" in good.stderr
    assert bad.returncode == 78, bad.stderr
    assert "60 where distribution = modula, hash = default does" in bad.stderr


def test_servers_in_another_order_are_asked_about(start_daemon, three):
    """No rule fits then, and the best of them is not advised alone."""
    right = start_daemon(three, config=config("signed", "modula", migrate="no"))
    store_by_hand(right, three, "signed", KEYS)
    turned = [three[1], three[2], three[0]]
    wrong = start_daemon(turned, config=config("signed", "modula", migrate="no"))
    found = probe(wrong)
    assert found.returncode == 78, found.stderr
    assert "; no rule fits all, so set both as the clients have them, and name the servers in " \
           "the same order and in the same way" in found.stderr
    convertible = start_daemon(turned, config=config("signed", "modula"))
    done = convert([convertible], *[f"--server={memcached.address}" for memcached in three])
    assert done.returncode == 2, done.stdout + done.stderr
    assert "so look whether the pool names the servers in the clients' order" in done.stderr


def test_a_rule_is_not_advised_alone_where_others_fit_as_well(start_daemon, three):
    right = start_daemon(three, config=config("signed", "modula", migrate="no"))
    with right.conn() as conn:
        here, there = (where(conn, rule, KEYS) for rule in ("ketama_weighted/default", BY_HAND))
    store_by_hand(right, three, "signed", [next(key for key in KEYS if here[key] != there[key])])
    found = probe(start_daemon(three, config=config("signed", migrate="no")))
    assert found.returncode == 78, found.stderr
    assert re.search(r" does, as many where \d+ other rules do: .*; set both as the clients", found.stderr)
    done = convert([start_daemon(three, config=config("signed"))],
                   *[f"--server={memcached.address}" for memcached in three])
    assert re.search(r"fits 1 of 1 that were tried, as do \d+ other rules; nothing", done.stderr)


def test_probe_says_when_a_server_does_not_answer(start_daemon, start_memcached):
    memcacheds = [start_memcached(), start_memcached()]
    daemon = start_daemon(memcacheds, config=config("signed", migrate="no"))
    memcacheds[1].stop()
    found = probe(daemon)
    assert found.returncode == 69, found.stderr
    assert "; 1 of 2 servers could not be asked for the names of their items" in found.stderr


def test_probe_of_memcacheds_that_name_their_items_in_one_way_only(start_daemon, three):
    right = start_daemon(three, config=config("simple", "modula", migrate="no"))
    store_by_hand(right, three, "simple", KEYS)
    listers = [Lister(memcached, lambda name, n: False, knows_hash=False) for memcached in three]
    for lister in listers:
        lister.__enter__()
    try:
        wrong = start_daemon(
            [lister.address for lister in listers], config=config("simple", migrate="no")
        )
        assert "of 60 items of lists, " in probe(wrong).stderr
    finally:
        for lister in listers:
            lister.__exit__()


def test_probe_needs_t(daemon):
    done = subprocess.run(
        [*daemon.command(), "--probe"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 64
    assert "--probe: expected with -t" in done.stderr


@pytest.mark.release
@pytest.mark.parametrize("dialect, how", [*[(dialect, how) for how in ("", "--keys") for dialect in DIALECTS],
                                          ("simple", "--dry-run")])
def test_convert_refuses_before_it_writes(start_daemon, three, tmp_path, dialect, how):
    right = start_daemon(three, config=config(dialect, "modula"))
    store_by_hand(right, three, dialect, KEYS)
    wrong = start_daemon(three, config=config(dialect))
    before = everything(three)
    servers = [f"--server={memcached.address}" for memcached in three]
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in KEYS))
    words = {"": [], "--keys": ["--keys", tmp_path / "keys"], "--dry-run": ["--dry-run"]}[how]
    done = convert([wrong], *servers, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "distribution = modula, hash = default fits" in done.stderr
    assert "nothing was changed" in done.stderr
    assert everything(three) == before
    done = convert([right], *servers)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 hold exactly" in done.stdout


@pytest.mark.release
@pytest.mark.thorough
def test_convert_knows_memcacheds_by_other_names(start_daemon, three):
    right = start_daemon(three, config=config("simple", "modula"))
    store_by_hand(right, three, "simple", KEYS)
    wrong = start_daemon(three, config=config("simple"))
    servers = [f"--server=localhost:{memcached.port}" for memcached in three]
    done = convert([wrong], *servers)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "distribution = modula, hash = default fits" in done.stderr
    done = convert([right], *servers)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.release
def test_convert_leaves_strays_alone_when_it_is_told_to(start_daemon, three):
    daemon = start_daemon(three, config=config("simple"))
    store_by_hand(daemon, three, "simple", KEYS[:50], rule="-")
    store_by_hand(daemon, three, "simple", ["topic-stray"], rule="-")
    with daemon.conn() as conn:
        home = where(conn, "-", ["topic-stray"])["topic-stray"]
    owner = next(memcached for memcached in three if memcached.address == home)
    other = next(memcached for memcached in three if memcached.address != home)
    with owner.conn() as conn, other.conn() as elsewhere:
        assert conn.cmd("delete topic-stray") == b"DELETED"
        assert elsewhere.set("topic-stray", "a,b,") == b"STORED"
    servers = [f"--server={memcached.address}" for memcached in three]
    refused = convert([daemon], *servers)
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "1 items are on memcacheds where the proxies do not look" in refused.stderr
    assert "no other distribution or hash fits more of them" in refused.stderr
    done = convert([daemon], *servers, "--leave-strays")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "50 hold exactly" in done.stdout
    assert "left alone: topic-stray: items on memcacheds where" in done.stdout
    with other.conn() as elsewhere:
        assert elsewhere.get("topic-stray") == b"a,b,"


@pytest.mark.release
@pytest.mark.thorough
@pytest.mark.parametrize("dialect", ["simple", "tombstone", "signed", "sublists"])
def test_a_second_copy_on_another_memcached_fails_nothing(start_daemon, three, tmp_path, dialect):
    daemon = start_daemon(three, config=config(dialect))
    store_by_hand(daemon, three, dialect, KEYS[:10], rule="-")
    value = stored(dialect, KEYS[0], ITEMS)[KEYS[0]]
    for memcached in three:
        with memcached.conn() as conn:
            assert conn.set(KEYS[0], value) == b"STORED"
    servers = [f"--server={memcached.address}" for memcached in three]
    done = convert([daemon], *servers, "--inventory", tmp_path / "before")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 hold exactly" in done.stdout
    done = convert([daemon], *servers, "--verify-only", "--keys", tmp_path / "before")
    assert done.returncode == 0, done.stdout + done.stderr
    again = convert([daemon], *servers, "--allow-empty")
    assert again.returncode == 3, again.stdout + again.stderr
    assert f"left alone: {KEYS[0]}: parts of lists that are not there: of {KEYS[0]}, which is a " in (
        again.stdout
    )
