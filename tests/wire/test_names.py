# SPDX-License-Identifier: BSD-3-Clause
"""Names of servers: one address each, the same for all proxies; looked up without holding up
any client, and again when that may matter."""

import importlib
import socket

import pytest

from harness import HOST, ROOT, SLOW, free_port, has_ipv6, wait_until
from test_names_support import TYPE_A, TYPE_AAAA, FakeDns, name_config

SECOND = "127.0.0.2"


@pytest.fixture
def dns():
    server = FakeDns()
    yield server
    server.stop()


@pytest.fixture
def pair(start_memcached):
    """Two memcacheds with the same port at different addresses."""
    first = start_memcached()
    return first, start_memcached(host=SECOND, port=first.port)


def state(daemon, server):
    with daemon.conn() as conn:
        return conn.stats("stats backends")[f"backend:{server}:state"]


def logged(daemon, text):
    """The log is written by a thread of its own."""
    return wait_until(f"the log says {text!r}", lambda: text in daemon.log())


def is_up(daemon, server):
    return wait_until(f"{server} is up", lambda: state(daemon, server) == "up")


@pytest.mark.parametrize("order", [[HOST, SECOND], [SECOND, HOST]])
def test_a_pause_does_not_split_a_list(start_daemon, dns, pair, order):
    """Two proxies; the address that both use is silent for longer than it takes to connect."""
    dns.names["mc.test"] = order
    name = f"mc.test:{pair[0].port}"
    one, other = [start_daemon([name], config=name_config(dns)) for _ in range(2)]
    with one.conn() as a, other.conn() as b:
        assert a.cmd("ladd fruit before") == b"STORED"
        pair[0].pause()
        answers = [conn.cmd(f"ladd fruit x{i}") for i in range(4) for conn in (a, b)]
        pair[0].resume()
        assert all(line.startswith(b"SERVER_ERROR backend " + name.encode()) for line in answers)
        is_up(one, name), is_up(other, name)
        assert a.cmd("ladd fruit from-a") == b"STORED"
        assert b.cmd("ladd fruit from-b") == b"STORED"
        assert a.lget("fruit") == b.lget("fruit")
        assert a.lget("fruit")[-2:] == [b"from-a", b"from-b"]
    with pair[1].conn() as direct:
        assert direct.get("fruit#") is None
    for daemon in (one, other):
        logged(daemon, f"server name mc.test: address {HOST}")
        daemon.wait_for_log("has 2 addresses of one family")
        assert daemon.log().count("has 2 addresses of one family") == 1


def test_a_dead_address_is_not_replaced_by_another(start_daemon, dns, pair):
    dns.names["mc.test"] = [SECOND, HOST]
    name = f"mc.test:{pair[0].port}"
    daemon = start_daemon([name], config=name_config(dns))
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        pair[0].stop()
        for _ in range(3):
            assert conn.cmd("get key").startswith(b"SERVER_ERROR backend " + name.encode())
        pair[0].start()
        is_up(daemon, name)
        assert conn.get("key") is None
    with pair[1].conn() as direct:
        assert direct.get("key") is None


def test_an_address_is_kept_while_it_is_an_answer(start_daemon, dns, pair):
    dns.names["mc.test"] = [SECOND]
    name = f"mc.test:{pair[0].port}"
    daemon = start_daemon([name], config=name_config(dns))
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        dns.names["mc.test"] = [HOST, SECOND]
        asked = dns.asked("mc.test")
        wait_until("it is looked up again", lambda: dns.asked("mc.test") > asked + 1)
        pair[1].restart()
        is_up(daemon, name)
        assert conn.set("key", "y") == b"STORED"
        assert conn.stats("stats backends")[f"backend:{name}:address"] == pair[1].address
    with pair[1].conn() as direct:
        assert direct.get("key") == b"y"


def test_a_changed_address_is_another_server(start_daemon, dns, pair):
    """Connections to the old one end although it is alive; CAS numbers of it are not used."""
    dns.names["mc.test"] = [HOST]
    name = f"mc.test:{pair[0].port}"
    with pair[0].conn() as direct:
        alone = direct.stats()["curr_connections"]
    daemon = start_daemon([name], config=name_config(dns, threads=2))
    with daemon.conn() as conn:
        assert conn.cmd("ladd fruit old") == b"STORED"
        dns.names["mc.test"] = [SECOND]
        wait_until("it has moved", lambda: conn.lget("fruit") == [])
        assert conn.cmd("ladd fruit new") == b"STORED"
        assert conn.lget("fruit") == [b"new"]
        assert conn.stats("stats backends")[f"backend:{name}:address"] == pair[1].address
    with pair[0].conn() as direct:
        assert b"new" not in direct.get("fruit#")
        wait_until("both workers are gone", lambda: direct.stats()["curr_connections"] == alone)
    logged(daemon, f"its address was {HOST} and is {SECOND} now")


@pytest.mark.thorough
@pytest.mark.parametrize("blocked", ["0.0.0.0", "::", "255.255.255.255", "224.0.0.1"])
def test_a_blocked_name_is_not_this_machine(start_daemon, dns, pair, blocked):
    """Connecting to 0.0.0.0 would reach whatever listens here."""
    dns.names["mc.test"] = [SECOND]
    name = f"mc.test:{pair[0].port}"
    daemon = start_daemon([name], config=name_config(dns))
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        dns.names["mc.test"] = [blocked]
        logged(daemon, f"{SECOND} stays in use")
        dns.names["mc.test"] = [blocked, SECOND]
        logged(daemon, f"resolved again, address {SECOND}")
        assert conn.get("key") == b"x"


@pytest.mark.thorough
def test_a_failing_look_up_changes_nothing(start_daemon, dns, memcached):
    dns.names["mc.test"] = [HOST]
    name = f"mc.test:{memcached.port}"
    daemon = start_daemon([name], config=name_config(dns))
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        dns.fails = True
        wait_until("that is seen", lambda: f"{HOST} stays in use" in daemon.log())
        dns.names.clear()
        dns.fails = False
        asked = dns.asked("mc.test")
        wait_until("it does not exist", lambda: dns.asked("mc.test") > asked + 1)
        assert conn.get("key") == b"x"
        memcached.restart()
        is_up(daemon, name)
        assert conn.get("key") is None


@pytest.mark.parametrize("trouble", ["silent", "unknown", "failing"])
def test_a_name_that_is_not_resolved_is_a_server_that_is_down(
    start_daemon, dns, start_memcached, trouble
):
    """The proxy starts at once, the other server is not disturbed, and it comes up later."""
    known, unknown = start_memcached(), start_memcached()
    dns.silent, dns.fails = trouble == "silent", trouble == "failing"
    name = f"mc.test:{unknown.port}"
    daemon = start_daemon([known, name], config=name_config(dns))
    text = f"SERVER_ERROR backend {name} down: name not resolved".encode()
    with daemon.conn() as conn:
        answers = {conn.set(f"key{i}", "x") for i in range(40)}
        assert answers == {b"STORED", text}
        assert state(daemon, name) in ("down", "connecting")
        dns.names["mc.test"] = [HOST]
        dns.silent = dns.fails = False
        is_up(daemon, name)
        assert {conn.set(f"key{i}", "x") for i in range(40)} == {b"STORED"}
    logged(daemon, "server name mc.test: not resolved")


def test_a_late_answer_of_dns_is_waited_for(start_daemon, dns, memcached):
    dns.names["mc.test"] = [HOST]
    dns.delay_s = 0.3
    config = name_config(dns, timeout_ms=int(5000 * SLOW))
    config["proxy"]["resolve_timeout_ms"] = int(4000 * SLOW)
    daemon = start_daemon([f"mc.test:{memcached.port}"], config=config)
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"


def test_the_end_does_not_wait_for_dns(start_daemon, dns, memcached):
    dns.silent = True
    config = name_config(dns)
    config["proxy"]["resolve_timeout_ms"] = 600000
    daemon = start_daemon([memcached, "mc.test:11211", "other.test:11211"], config=config)
    wait_until("it is being looked up", lambda: dns.asked("mc.test") and dns.asked("other.test"))
    daemon.stop()
    assert "not resolved" not in daemon.log()


def test_names_are_looked_up_side_by_side(start_daemon, dns, memcached):
    """As many as a pool may have, at a server that answers when it was asked for all of them."""
    names = [f"mc{i}.test" for i in range(100)]
    dns.names.update({name: [HOST] for name in names})
    dns.batch = len(names)
    config = name_config(dns, timeout_ms=int(9000 * SLOW))
    config["proxy"]["resolve_timeout_ms"] = int(8000 * SLOW)
    daemon = start_daemon([f"{name}:{memcached.port}" for name in names], config=config)
    with daemon.conn() as conn:
        assert {conn.set(f"key{i}", "x") for i in range(300)} == {b"STORED"}


@pytest.mark.parametrize("host", [HOST, pytest.param("::1", marks=pytest.mark.skipif(
    not has_ipv6(), reason="no IPv6 here"))])
@pytest.mark.parametrize("name", ["localhost", "LocalHost", "mc.localhost"])
def test_localhost_just_works(start_daemon, start_memcached, dns, host, name):
    """Whichever family memcached listens on; without any DNS."""
    memcached = start_memcached(host=host)
    daemon = start_daemon([f"{name}:{memcached.port}"], config=name_config(dns))
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        memcached.restart()
        is_up(daemon, f"{name}:{memcached.port}")
        assert conn.set("key", "y") == b"STORED"
    with memcached.conn() as direct:
        assert direct.get("key") == b"y"
    assert dns.questions == []


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_a_silent_localhost_is_not_left_for_the_other_family(start_daemon, start_memcached, dns):
    first = start_memcached()
    second = start_memcached(host="::1", port=first.port)
    name = f"localhost:{first.port}"
    daemon = start_daemon([name], config=name_config(dns))
    with daemon.conn() as conn:
        assert conn.set("key", "x") == b"STORED"
        first.pause()
        assert {conn.set("key", "y")[:12] for _ in range(4)} == {b"SERVER_ERROR"}
        first.resume()
        is_up(daemon, name)
    with second.conn() as direct:
        assert direct.get("key") is None


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_ipv4_goes_before_ipv6(start_daemon, start_memcached, dns):
    port = free_port()
    start_memcached(host="::1", port=port)
    dns.names["mc.test"] = ["::1"]
    dns.names["both.test"] = ["::1", SECOND]
    daemon = start_daemon([f"mc.test:{port}", f"both.test:{port}"], config=name_config(dns))
    is_up(daemon, f"mc.test:{port}")
    with daemon.conn() as conn:
        assert conn.stats("stats backends")[f"backend:mc.test:{port}:address"] == f"[::1]:{port}"
    logged(daemon, f"server name both.test: address {SECOND}")


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_half_an_answer_decides_nothing(start_daemon, start_memcached, dns):
    """As long as it is not known whether there are IPv4 addresses, the others are not used."""
    memcached = start_memcached()
    start_memcached(host="::1", port=memcached.port)
    dns.names["mc.test"] = ["::1", HOST]
    dns.silent_types = (TYPE_A,)
    name = f"mc.test:{memcached.port}"
    daemon = start_daemon([name], config=name_config(dns))
    text = f"SERVER_ERROR backend {name} down: name not resolved".encode()
    with daemon.conn() as conn:
        for _ in range(3):
            assert conn.set("key", "x") == text
        dns.silent_types = (TYPE_AAAA,)
        is_up(daemon, name)
        assert conn.set("key", "x") == b"STORED"
    with memcached.conn() as direct:
        assert direct.get("key") == b"x"


@pytest.mark.parametrize("order", [[9, 10], [10, 9]])
def test_scripts_choose_as_proxies_do(monkeypatch, start_memcached, order):
    """scripts/sweep and scripts/convert; numerically, 9 goes before 10."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    wire = importlib.import_module("mclistd_convert.wire")
    low = start_memcached(host="127.0.0.9")
    high = start_memcached(host="127.0.0.10", port=low.port)
    real = socket.getaddrinfo

    def answer(_host, port, **options):
        return [real(f"127.0.0.{n}", port, **options)[0] for n in order]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with wire.connect("mc.test", low.port) as connection:
        assert connection.getpeername() == (low.host, low.port)
    low.stop()
    with pytest.raises(ConnectionRefusedError):
        wire.connect("mc.test", high.port)


@pytest.mark.parametrize("host", [HOST, pytest.param("::1", marks=pytest.mark.skipif(
    not has_ipv6(), reason="no IPv6 here"))])
def test_scripts_find_localhost(monkeypatch, start_memcached, host):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    wire = importlib.import_module("mclistd_convert.wire")
    memcached = start_memcached(host=host)

    def both(_host, port, **_options):
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (HOST, port)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with wire.connect("localhost", memcached.port) as connection:
        assert connection.getpeername()[:2] == (host, memcached.port)


def test_servers_are_contacted_at_the_start(start_daemon, start_memcached):
    """Before any request."""
    up, down = start_memcached(), start_memcached()
    down.stop()
    daemon = start_daemon([up, down])
    is_up(daemon, up.address)
    wait_until("the other is seen to be down", lambda: state(daemon, down.address) == "down")
    logged(daemon, f"backend {up.address}: up, memcached")
    logged(daemon, f"backend {down.address}: cannot connect")
