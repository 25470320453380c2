# SPDX-License-Identifier: BSD-3-Clause
"""Verbs that a listener does not take (allow_verbs, deny_verbs)."""

import signal

import pytest

from harness import Conn, UnixConn, free_port


@pytest.mark.config(proxy={"deny_verbs": "flush_all, lpurge, set, ms, verbosity"})
def test_denied_verbs_are_refused_by_their_name(conn):
    assert conn.cmd("flush_all") == b"CLIENT_ERROR flush_all is not allowed here (deny_verbs)"
    assert conn.cmd("lpurge a") == b"CLIENT_ERROR lpurge is not allowed here (deny_verbs)"
    assert conn.cmd("set a 0 0 3", "get") == b"CLIENT_ERROR set is not allowed here (deny_verbs)"
    assert conn.cmd("ms a 1", "x") == b"CLIENT_ERROR ms is not allowed here (deny_verbs)"
    assert conn.cmd("add a 0 0 1", "x") == b"STORED"
    assert conn.cmd("ladd l x") == b"STORED"
    assert conn.get("a") == b"x"


@pytest.mark.config(proxy={"deny_verbs": "flush_all, set, verbosity"})
def test_noreply_is_heeded(conn):
    conn.send("flush_all noreply\r\nverbosity 1 noreply\r\nset a 0 0 1 noreply\r\nx\r\nmn\r\n")
    assert conn.line() == b"MN"
    stats = conn.stats()
    assert (stats["client_errors"], stats["refused_verb"]) == ("3", "3")


@pytest.mark.config(proxy={"deny_verbs": "set", "max_value_bytes": "1k"})
def test_a_value_that_is_too_large_removes_nothing(conn):
    """As it would where set is allowed."""
    assert conn.cmd("add a 0 0 1", "x") == b"STORED"
    assert conn.cmd("set a 0 0 2000", "x" * 2000) == (
        b"CLIENT_ERROR set is not allowed here (deny_verbs)")
    assert conn.get("a") == b"x"


@pytest.mark.config(proxy={"allow_verbs": "get, lget, stats, ladd", "deny_verbs": "ladd"})
def test_all_but_the_allowed_ones(conn):
    assert conn.cmd("get a") == b"END"
    assert conn.cmd("lget a") == b"END"
    assert conn.cmd("version") == b"CLIENT_ERROR version is not allowed here (allow_verbs)"
    assert conn.cmd("ladd a b") == b"CLIENT_ERROR ladd is not allowed here (deny_verbs)"
    assert conn.cmd("quit") == b"CLIENT_ERROR quit is not allowed here (allow_verbs)"
    assert conn.cmd("bogus") == b"ERROR"


def test_another_listener_takes_others(memcached, start_daemon, tmp_path):
    daemon = start_daemon([memcached], config={
        "proxy": {"deny_verbs": "flush_all"},
        "listener local": {"listen": f"unix:{tmp_path}/socket", "deny_verbs": ""}})
    with UnixConn(tmp_path / "socket") as conn:
        conn.send("flush_all\r\n")
        assert conn.socket.recv(100) == b"OK\r\n"
    with daemon.conn() as conn:
        assert conn.cmd("flush_all").startswith(b"CLIENT_ERROR flush_all is not allowed")


def test_a_reload_changes_it_for_all(memcached, start_daemon):
    daemon = start_daemon([memcached])
    with daemon.conn() as conn:
        assert conn.cmd("flush_all") == b"OK"
        text = daemon.ini_path.read_text()
        daemon.ini_path.write_text(text.replace("[proxy]", "[proxy]\ndeny_verbs = flush_all"))
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_log("configuration read anew")
        assert conn.cmd("flush_all").startswith(b"CLIENT_ERROR flush_all is not allowed")


def test_addresses_of_other_machines_need_protection(memcached, start_daemon):
    with pytest.raises(AssertionError, match="exit code 78(.|\n)*expected auth_file, tls_cert and "
                                             "tls_key, or insecure = yes"):
        start_daemon([memcached], config={"proxy": {"listen": "0.0.0.0:1"}})
    port = free_port()
    start_daemon([memcached], config={"listener all": {"listen": f"0.0.0.0:{port}", "insecure": True}})
    with Conn(port) as conn:
        assert conn.cmd("mn") == b"MN"
