# SPDX-License-Identifier: BSD-3-Clause
"""scripts/convert leaves alone what is no list of the prefix, and finds all that are."""

import pytest

from harness import HOST
from test_convert_support import (
    Lister,
    as_bytes,
    convert,
    items_of,
    names_stored,
    old_names,
    sections,
    store,
    stored,
)

pytestmark = pytest.mark.release

KEY = "topic-X"
MOVING = {"migrate": "native"}


def server(memcached):
    return f"--server={memcached.address}"


def put(memcached, **values):
    """Items by name; a value, or (value, flags)."""
    with memcached.conn() as conn:
        for name, value in values.items():
            value, flags = value if isinstance(value, tuple) else (value, 0)
            assert conn.set(name, value, flags) == b"STORED"


def values_of(memcached, names):
    with memcached.conn() as conn:
        return {name: conn.get(name) for name in names}


# --- parts ---


def test_a_sublist_is_no_list_while_memcached_leaves_out_the_index(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("sublists"))
    keys = [f"topic-{n}" for n in range(4)]
    items = items_of(6000)
    for key in keys:
        store(memcached, "sublists", key, items)
    with Lister(memcached, lambda name, _: name in keys) as lister:
        done = convert([daemon], server(lister))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 lists converted, 24000 items" in done.stdout
    assert old_names(memcached) == []
    with daemon.conn() as conn:
        for key in keys:
            assert conn.lget(key) == as_bytes(items)


def test_a_sublist_without_its_index_is_named_and_kept(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("sublists"))
    store(memcached, "sublists", KEY, ["apple"])
    lone = {
        "topic-lost.0": "+apple+pear",  # the index is gone
        "topic-lost.1": "+17+18",       # would be an index, but names nothing that is there
        f"{KEY}.7": "+plum",            # the index does not name it (any more)
    }
    put(memcached, **lone)
    for source in ([server(memcached)], ["--keys=-", server(memcached)]):
        done = convert([daemon], *source, keys=[KEY, *lone])
        for name, value in values_of(memcached, lone).items():
            assert value == lone[name].encode()
            assert f"left alone: {name}: parts of lists that are not there" in done.stdout
        assert done.returncode == 3 or "0 lists" in done.stderr
    with daemon.conn() as conn:
        assert conn.lget(KEY) == [b"apple"]


def test_a_sublist_that_is_gone_is_named(start_daemon, memcached):
    """The list reads as if it had never been: once it is converted, nothing tells of that."""
    daemon = start_daemon([memcached], config=sections("sublists"))
    store(memcached, "sublists", "topic-whole", ["apple"])
    put(memcached, **{"topic-part": "+0+1", "topic-part.1": "+plum"})
    told = ("1 of the lists have an index with the number of a sublist that is not there: it was "
            "emptied, or evicted, or is on a server that was not named (for instance topic-part.0)")
    for more in (["--dry-run"], []):
        assert told in convert([daemon], server(memcached), *more).stdout
    assert told not in convert([daemon], server(memcached), "--allow-empty").stdout


def test_a_list_whose_key_looks_like_a_sublist(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("sublists"))
    store(memcached, "sublists", "topic-3.14", ["apple", "pear"])
    store(memcached, "sublists", "topic-3", ["plum"])
    done = convert([daemon], server(memcached))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 lists converted" in done.stdout
    with daemon.conn() as conn:
        assert conn.lget("topic-3.14") == [b"apple", b"pear"]
        assert conn.lget("topic-3") == [b"plum"]


@pytest.mark.thorough
def test_parts_without_a_list(start_daemon, memcached):
    config = {**sections("paired")}
    config["lists flip-"] = {"dialect": "flip", **MOVING}
    config["lists ring-"] = {"dialect": "ring", **MOVING}
    daemon = start_daemon([memcached], config=config)
    parts = {"unfollow-topic-X": "apple,", "flip-X.active": "flip-X.a", "ring-X.7": "7 ann"}
    put(memcached, **parts)
    with daemon.conn() as conn:
        assert conn.cmd("ladd ring-X bob") == b"STORED"  # native, so the slot is left over
    put(memcached, **{"ring-X.7": "7 ann"})
    for prefix in ("topic-", "flip-", "ring-"):
        done = convert([daemon], server(memcached), "--allow-empty", prefix=prefix)
        assert done.returncode == 3, done.stdout + done.stderr
        assert "parts of lists that are not there: of " in done.stdout
    assert values_of(memcached, parts) == {n: v.encode() for n, v in parts.items()}


@pytest.mark.parametrize("changes", ["exact", "blind"])
def test_pairs_whose_additions_have_the_lists_own_key(start_daemon, memcached, changes):
    """The record of the move takes their place, and what is read of them is in it."""
    config = {"lists follow-": {"dialect": "paired", "add_name": "%s", "delete_name": "un%s",
                                "changes": changes, **MOVING}}
    daemon = start_daemon([memcached], config=config)
    long = [f"user-{n}" for n in range(20000)]
    put(memcached, **{"follow-a": "ann,bob,ann,eve,", "unfollow-a": "bob,ann,",
                      "follow-b": ",".join(long) + ",", "unfollow-c": "left,"})
    with daemon.conn() as conn:
        assert conn.lget("follow-a") == [b"ann", b"eve"]
        assert conn.cmd("ladd follow-a dan") == b"STORED"
        assert conn.cmd("ldel follow-a eve") == b"DELETED"
        assert conn.cmd("ladd follow-c new") == b"STORED"  # native, as lists are that begin here
    done = convert([daemon], server(memcached), prefix="follow-")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 lists converted" in done.stdout
    done = convert([daemon], server(memcached), "--dry-run", "--allow-empty", prefix="follow-")
    assert "3 native" in done.stdout, done.stdout
    with daemon.conn() as conn:
        assert conn.lget("follow-a") == [b"ann", b"dan"]
        assert conn.lget("follow-b") == [item.encode() for item in long]
        assert conn.lget("follow-c") == [b"new"]
        assert conn.cmd("ladd follow-a eve") == b"STORED"
        assert conn.lget("follow-a") == [b"ann", b"dan", b"eve"]
    gone = ("follow-a", "follow-b", "follow-c", "unfollow-a", "unfollow-b", "unfollow-c")
    assert values_of(memcached, gone) == dict.fromkeys(gone)


def test_items_of_another_prefix_are_no_lists(start_daemon, memcached):
    """Both stand in one file, and the names of the one begin as the keys of the other."""
    config = {
        "lists user-": {"dialect": "paired", **MOVING},
        "lists follow-": {"dialect": "simple", **MOVING},
    }
    daemon = start_daemon([memcached], config=config)
    pair = {"follow-user-1": "ann,bob,", "unfollow-user-1": "bob,"}
    put(memcached, **pair, **{"follow-me": "eve,"})
    done = convert([daemon], server(memcached), prefix="follow-")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 lists converted" in done.stdout
    assert "1 items that are parts of lists" in convert(
        [daemon], server(memcached), "--dry-run", "--allow-empty", prefix="follow-"
    ).stdout
    assert values_of(memcached, pair) == {n: v.encode() for n, v in pair.items()}
    done = convert([daemon], server(memcached), prefix="user-")
    assert "1 of 1 lists converted" in done.stdout
    with daemon.conn() as conn:
        assert conn.lget("user-1") == [b"ann"]
        assert conn.lget("follow-me") == [b"eve"]


# --- what is no list ---


@pytest.mark.parametrize("dialect", ["simple", "tombstone", "signed", "sublists", "paired", "ring"])
def test_values_with_flags_are_named_and_kept(start_daemon, memcached, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    store(memcached, dialect, "topic-good", ["apple", "pear"])
    foreign = stored(dialect, "topic-php", ["apple", "pear"])
    name = min(foreign)
    put(memcached, **{n: (v, 4 if n == name else 0) for n, v in foreign.items()})
    with memcached.conn() as conn:
        for text, value in stored(dialect, "topic-pylibmc", ["plum"]).items():
            assert conn.set(text, value, 16) == b"STORED"
    done = convert([daemon], server(memcached))
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"left alone: topic-php: values with flags: {name} has flags 4" in done.stdout
    assert "2 of 2 lists converted, 3 items" in done.stdout
    assert values_of(memcached, foreign) == {n: v.encode() for n, v in foreign.items()}


def test_a_key_with_a_line_end_in_it_runs_nothing(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("simple"))
    store(memcached, "simple", KEY, ["apple"])
    put(memcached, victim="kept")
    key = "dG9waWMtDQpzZXQgdmljdGltIDAgMCAxDQp4DQo="  # topic-\r\nset victim 0 0 1\r\nx\r\n
    with memcached.conn() as conn:
        assert conn.cmd(f"ms {key} 2 b", "a,") == b"HD"
    done = convert([daemon], server(memcached))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "left alone: topic-\\x0d\\x0aset victim 0 0 1" in done.stdout
    assert "1 of 1 lists converted" in done.stdout
    with memcached.conn() as conn:
        assert conn.get("victim") == b"kept"
        assert conn.cmd(f"mg {key} b s").startswith(b"HD s2")


# --- lists that were not found ---


def test_lists_whose_keys_look_native(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("simple"))
    keys = ["topic-X#", "topic-X#abcdefghijklm.0"]
    for key in keys:
        store(memcached, "simple", key, ["apple", "pear"])
    with daemon.conn() as conn:
        assert conn.cmd("ladd topic-native plum") == b"STORED"
    done = convert([daemon], server(memcached))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 lists converted" in done.stdout
    with daemon.conn() as conn:
        for key in keys:
            assert conn.lget(key) == [b"apple", b"pear"]
        assert conn.lget("topic-native") == [b"plum"]
    assert sorted(names_stored(memcached)) == sorted([f"{key}#" for key in keys] + ["topic-native#"])


@pytest.mark.parametrize("typed", ["th\xe9me-", "th\\xc3\\xa9me-"])
def test_a_prefix_with_bytes_above_127(start_daemon, memcached, typed):
    config = {"lists th\xe9me-": {"dialect": "sublists", **MOVING}}
    daemon = start_daemon([memcached], config=config)
    index, part = "th\xe9me-X".encode(), "th\xe9me-X.0".encode()
    with memcached.conn() as conn:
        for name, value in ((index, b"+0"), (part, b"+apple+pear")):
            assert conn.cmd(b"set %s 0 0 %d" % (name, len(value)), value) == b"STORED"
    done = convert([daemon], server(memcached), prefix=typed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 lists converted, 2 items" in done.stdout
    assert names_stored(memcached) == ["th\xe9me-X#"]


def test_a_ring_without_its_counter(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("ring"))
    store(memcached, "ring", KEY, ["apple", "pear"])
    with memcached.conn() as conn:
        assert conn.cmd(f"delete {KEY}.seq") == b"DELETED"
    done = convert([daemon], server(memcached))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 lists converted, 2 items" in done.stdout
    with daemon.conn() as conn:
        assert conn.lget(KEY) == [b"apple", b"pear"]


def test_slots_whose_names_several_rings_could_have(start_daemon, memcached):
    """The slot X12 is the 12th of X, or the second of X1."""
    daemon = start_daemon([memcached], config=sections("ring", slot_name="%s"))
    entries = {f"topic-X{n}": f"{n} user.{n}" for n in range(1, 31)}
    put(memcached, **entries, **{"topic-X.seq": "30"})
    done = convert([daemon], server(memcached))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 lists converted, 30 items" in done.stdout
    assert names_stored(memcached) == ["topic-X#"]
    put(memcached, **{"topic-Y12": "12 ann"})  # whose is it?
    done = convert([daemon], server(memcached), "--allow-empty")
    assert done.returncode == 3, done.stdout + done.stderr
    assert values_of(memcached, ["topic-Y12"]) == {"topic-Y12": b"12 ann"}


def test_proxies_with_other_servers_are_refused(start_memcached, start_daemon):
    memcacheds = [start_memcached(), start_memcached()]
    daemons = [start_daemon(memcacheds[:n], config=sections("simple")) for n in (1, 2)]
    store(memcacheds[0], "simple", KEY, ["apple"])
    done = convert(daemons, keys=[KEY])
    assert done.returncode == 2
    assert "has other servers" in done.stderr


def test_the_lists_of_no_prefix_in_a_pool_of_their_own(start_memcached, start_daemon):
    plain, own = start_memcached(), start_memcached()
    config = {
        "pool lists": {"servers": own.address, "gate_s": 5},
        "lists": {"dialect": "simple", "pool": "lists", **MOVING},
        "lists other-": {"dialect": "native", "migrate": "no"},
    }
    daemon = start_daemon([plain], config=config)
    for memcached in (plain, own):
        store(memcached, "simple", "fruit", ["apple"])
        store(memcached, "simple", "other-X", ["apple"])
    done = convert([daemon], keys=["fruit"], prefix="")
    assert done.returncode == 0, done.stdout + done.stderr
    store(own, "simple", "colours", ["red"])
    done = convert([daemon], server(own), prefix="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 lists converted, 1 items" in done.stdout
    with own.conn() as conn:
        assert conn.get("mclistd#pool.lists").startswith(b"mclistd gate ")  # and no list
    assert old_names(own) == ["other-X"]
    assert old_names(plain) == ["fruit", "other-X"]


# --- gates ---


@pytest.mark.thorough
def test_all_memcacheds_of_the_pool_have_to_be_named(start_memcached, start_daemon):
    memcacheds = [start_memcached() for _ in range(3)]
    daemon = start_daemon(memcacheds[:2], config=sections("simple"))
    with daemon.conn() as conn:
        for n in range(20):
            assert conn.set(f"topic-{n}", "apple,") == b"STORED"
    one = server(memcacheds[0])
    for args in ([one], [one, one], [one, "--keys=-"]):
        done = convert([daemon], *args, keys=["topic-0"])
        assert done.returncode == 2, done.stdout
        assert "--server names 1 of the 2 memcacheds of the pool; expected all: " in done.stderr
        assert memcacheds[1].address in done.stderr
    done = convert([daemon], one, server(memcacheds[2]), "--dry-run")
    assert f"no memcached of that name, but have {memcacheds[1].address}" in done.stderr
    done = convert([daemon], *map(server, memcacheds[:2]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 of 20 lists converted" in done.stdout
    assert "of that name" not in done.stderr


@pytest.mark.thorough
def test_no_lists_is_a_failure(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("simple"))
    for args in ([server(memcached)], [server(memcached), "--dry-run"], ["--keys=-"]):
        done = convert([daemon], *args, keys=[])
        assert done.returncode == 2, done.stdout
        assert "convert: 0 lists of [lists topic-] to convert" in done.stderr
        done = convert([daemon], *args, "--allow-empty", keys=[])
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
def test_one_proxy_is_not_compared_with_itself(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("simple"))
    store(memcached, "simple", KEY, ["apple"])
    for name in (f"{HOST}:{daemon.port}", f"localhost:{daemon.port}"):
        done = convert([daemon], f"--proxy={name}", keys=[KEY])
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith(f"convert: {name}: ")
    done = convert([daemon], "--verify-only", keys=[KEY])
    assert done.returncode == 2
    assert "nothing to be compared with" in done.stderr
    assert names_stored(memcached) == [KEY]


@pytest.mark.thorough
def test_the_state_is_taken_for_keys(start_daemon, memcached, tmp_path):
    config = {"proxy": {"threads": 1}, **sections("simple")}
    daemons = [start_daemon([memcached], config=config) for _ in range(2)]
    keys = ["topic-1", "topic-2"]
    for key in keys:
        store(memcached, "simple", key, ["apple"])
    state = tmp_path / "done.txt"
    assert convert(daemons, f"--state={state}", keys=keys).returncode == 0
    for args in ([f"--keys={state}"], [f"--state={state}"]):
        done = convert(daemons, "--verify-only", *args)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 of 2 lists read, 2 items" in done.stdout
    with memcached.conn() as conn:
        conn.cmd("delete topic-2#")
    store(memcached, "simple", "topic-2", ["pear"])  # a client goes on with the old one
    done = convert(daemons, "--verify-only", f"--keys={state}")
    assert done.returncode == 1, done.stdout
    assert "failed: topic-2: it is stored in the old layout" in done.stdout
    done = convert(daemons, f"--state={state}", keys=keys)
    assert done.returncode == 1, done.stdout  # these proxies remember that it was native
    assert "failed: topic-2: it is stored in the old layout; restart the proxies" in done.stdout
    for daemon in daemons:
        daemon.stop()
    daemons = [start_daemon([memcached], config=config) for _ in range(2)]
    done = convert(daemons, f"--state={state}", keys=keys)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 lists were converted before" in done.stderr
    assert "1 others were, and are in the old layout again" in done.stderr
    assert old_names(memcached) == []


@pytest.mark.parametrize("dialect", ["simple", "sublists", "ring"])
def test_a_list_above_the_largest_answer(start_daemon, memcached, dialect):
    more = {"capacity": 1000} if dialect == "ring" else {}
    config = sections(dialect, max_answer_bytes=2048, **more)
    daemons = [start_daemon([memcached], config=config) for _ in range(2)]
    for key, count in ((KEY, 1000), ("topic-small", 10)):
        store(memcached, dialect, key, items_of(count))
    done = convert(daemons, server(memcached))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 lists converted" in done.stdout
    assert "2 hold exactly" in done.stdout
    done = convert(daemons, "--verify-only", keys=[KEY, "topic-small"])
    assert "2 hold exactly" in done.stdout, done.stdout + done.stderr
