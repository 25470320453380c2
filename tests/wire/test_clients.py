# SPDX-License-Identifier: BSD-3-Clause
"""Stock clients through the proxy: pymemcache and pylibmc."""

import pytest

from harness import as_bytes

pytestmark = [pytest.mark.release, pytest.mark.memcacheds(2)]


@pytest.fixture
def pymemcache(daemon):
    missing = "python3-pymemcache is not installed"
    base = pytest.importorskip("pymemcache.client.base", reason=missing)
    address = ("127.0.0.1", daemon.port)
    client = base.Client(address, timeout=10, connect_timeout=10, default_noreply=False)
    yield client
    client.close()


@pytest.fixture(params=[False, True], ids=["ascii", "ascii-no-delay"])
def pylibmc(request, daemon):
    module = pytest.importorskip("pylibmc", reason="python3-pylibmc is not installed")
    client = module.Client([f"127.0.0.1:{daemon.port}"], binary=False)
    client.behaviors = {"tcp_nodelay": request.param, "cas": True}
    yield client
    client.disconnect_all()


VALUES = {f"key-{n}": f"value-{n}".encode() for n in range(100)}


# --- pymemcache ---


def test_pymemcache_stores_and_reads(pymemcache):
    assert pymemcache.set("k", b"value", expire=100)
    assert pymemcache.get("k") == b"value"
    assert pymemcache.get("nothing", "default") == "default"
    assert pymemcache.add("k", b"other") is False
    assert pymemcache.replace("k", b"other") is True
    assert pymemcache.replace("nothing", b"other") is False
    assert pymemcache.append("k", b"-end") and pymemcache.prepend("k", b"begin-")
    assert pymemcache.get("k") == b"begin-other-end"
    assert pymemcache.delete("k") is True
    assert pymemcache.delete("k") is False


def test_pymemcache_multi(pymemcache):
    assert pymemcache.set_many(VALUES) == []
    assert pymemcache.get_many([*VALUES, "nothing"]) == VALUES
    found = pymemcache.gets_many(["key-1", "key-2"])
    assert [value for value, _ in found.values()] == [b"value-1", b"value-2"]
    assert pymemcache.delete_many(list(VALUES)) is True
    assert pymemcache.get_many(list(VALUES)) == {}


def test_pymemcache_cas(pymemcache):
    pymemcache.set("k", b"one")
    value, cas = pymemcache.gets("k")
    assert value == b"one"
    assert pymemcache.cas("k", b"two", cas) is True
    assert pymemcache.cas("k", b"three", cas) is False
    assert pymemcache.cas("nothing", b"three", cas) is None
    assert pymemcache.get("k") == b"two"


def test_pymemcache_numbers_and_expiry(pymemcache):
    pymemcache.set("n", b"10")
    assert pymemcache.incr("n", 5) == 15
    assert pymemcache.decr("n", 20) == 0
    assert pymemcache.incr("nothing", 1) is None
    assert pymemcache.touch("n", 100) is True
    assert pymemcache.touch("nothing", 100) is False


def test_pymemcache_noreply(pymemcache):
    for n in range(100):
        assert pymemcache.set(f"k{n}", b"%d" % n, noreply=True)
    assert pymemcache.append("k1", b"+", noreply=True)
    assert pymemcache.delete("k2", noreply=True)
    found = pymemcache.get_many([f"k{n}" for n in range(100)])
    assert found == {f"k{n}": b"%d" % n + b"+" * (n == 1) for n in range(100) if n != 2}


def test_pymemcache_large_values(pymemcache):
    value = bytes(range(256)) * 4000
    assert pymemcache.set("large", value)
    assert pymemcache.get("large") == value


def test_pymemcache_asks_for_version_and_stats(pymemcache):
    assert pymemcache.version().startswith(b"1.6")
    assert int(pymemcache.stats()[b"pid"]) > 0
    assert pymemcache.flush_all() is True


def ask(client, command, end=b"\r\n"):
    """raw_command; older versions do not have it: what is below it, then, for one-line answers."""
    if hasattr(client, "raw_command"):
        return client.raw_command(command, end)
    return client._misc_cmd([command.encode() + b"\r\n"], command.split()[0], False)[0]


def test_pymemcache_sends_list_verbs(pymemcache):
    assert ask(pymemcache, "ladd topic-X user-1 user-2 user-3") == b"STORED"
    assert ask(pymemcache, "ldel topic-X user-2") == b"DELETED"
    assert ask(pymemcache, "laddx topic-X user-1 user-4") == b"1"
    assert ask(pymemcache, "llen topic-X") == b"3"
    assert ask(pymemcache, "laddb topic-X 3\r\na b") == b"STORED"
    assert ask(pymemcache, "lset topic-Y a b") == b"STORED"
    assert ask(pymemcache, "ldrop topic-X") == b"DELETED"
    assert ask(pymemcache, "llen topic-X") == b"0"


def test_pymemcache_parses_lget_as_get(pymemcache):
    """The reading of answers up to END, that is."""
    ask(pymemcache, "ladd topic-X user-1 user-2")
    ask(pymemcache, "ladd topic-Y user-3")
    keys = ["topic-X", "nolist", "topic-Y"]
    expected = {"topic-X": b"user-1,user-2", "topic-Y": b"user-3"}
    assert pymemcache._fetch_cmd(b"lget", keys, False) == expected
    found = pymemcache._fetch_cmd(b"lgets", keys, True)
    assert {key: value for key, (value, _) in found.items()} == expected


def test_pymemcache_raw_command_reads_a_list(pymemcache):
    if not hasattr(pymemcache, "raw_command"):
        pytest.skip("this pymemcache has no raw_command yet")
    ask(pymemcache, "ladd topic-X user-1 user-2")
    assert ask(pymemcache, "lget topic-X", b"END\r\n") == b"VALUE topic-X 0 13\r\nuser-1,user-2\r\n"
    assert ask(pymemcache, "lget nolist", b"END\r\n") == b""


# --- pylibmc, that is libmemcached ---


def test_pylibmc_stores_and_reads(pylibmc):
    assert pylibmc.set("k", "value", time=100)
    assert pylibmc.get("k") == "value"
    assert pylibmc.get("nothing") is None
    assert pylibmc.add("k", "other") is False
    assert pylibmc.replace("k", "other") is True
    assert pylibmc.append("k", "-end") and pylibmc.prepend("k", "begin-")
    assert pylibmc.get("k") == "begin-other-end"
    assert pylibmc.delete("k") is True
    assert pylibmc.delete("k") is False


def test_pylibmc_multi(pylibmc):
    assert pylibmc.set_multi(VALUES) == []
    assert pylibmc.get_multi([*VALUES, "nothing"]) == VALUES
    assert pylibmc.delete_multi(list(VALUES)) is True
    assert pylibmc.get_multi(list(VALUES)) == {}


def test_pylibmc_cas(pylibmc):
    pylibmc.set("k", "one")
    value, cas = pylibmc.gets("k")
    assert value == "one"
    assert pylibmc.cas("k", "two", cas) is True
    assert pylibmc.cas("k", "three", cas) is False
    assert pylibmc.get("k") == "two"


def test_pylibmc_numbers_and_expiry(pylibmc):
    pylibmc.set("n", 10)
    assert pylibmc.incr("n", 5) == 15
    assert pylibmc.decr("n", 20) == 0
    assert pylibmc.touch("n", 100) is True


def test_pylibmc_objects_and_large_values(pylibmc):
    thing = {"list": [1, 2.5, None], "text": "x" * 500000}
    assert pylibmc.set("object", thing)
    assert pylibmc.get("object") == thing


def test_pylibmc_stats(pylibmc):
    [(server, stats)] = pylibmc.get_stats()
    assert int(stats["pid"] if "pid" in stats else stats[b"pid"]) > 0


def test_pylibmc_finds_the_same_keys_as_through_the_proxy(daemon, memcacheds):
    """With libmemcached's own distribution towards the memcacheds themselves."""
    module = pytest.importorskip("pylibmc", reason="python3-pylibmc is not installed")
    direct = module.Client([memcached.address for memcached in memcacheds], binary=False)
    direct.behaviors = {"ketama_weighted": True}
    with daemon.conn() as conn:
        for key, value in VALUES.items():
            assert conn.set(key, value) == b"STORED"
    found = direct.get_multi(list(VALUES))
    assert {key: as_bytes(value) for key, value in found.items()} == VALUES
