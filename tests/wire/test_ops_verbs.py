# SPDX-License-Identifier: BSD-3-Clause
"""What the proxy answers itself: version, verbosity, quit, mn, flush_all, refused verbs, stats."""

import re
import signal

import pytest

from harness import wait_until, write_ini
from test_pass_support import talk


def test_version_is_one_that_libmemcached_takes(conn):
    assert re.fullmatch(rb"VERSION 1\.\d+\.\d+-mclistd-\d+\.\d+\.\d+", conn.cmd("version"))


def test_version_is_the_lowest_of_the_servers(start_daemon, start_old, memcached):
    """A client that asks for it learns which requests all of them take."""
    daemon = start_daemon([memcached, start_old("1.5.22")])
    with daemon.conn() as conn:
        wait_until("both have told it", lambda: conn.cmd("version").startswith(b"VERSION 1.5.22-mclistd-"))
        own = conn.stats()["version"].rsplit("-", 1)[1]
        assert conn.cmd("version").decode().endswith("-" + own)


@pytest.mark.parametrize("setting", ["pool", "failover"])
def test_version_is_the_lowest_of_all_pools_that_answer(start_daemon, start_old, memcached, setting):
    config = {"pool other": {"servers": start_old("1.5.22").address}, "route a:": {setting: "other"}}
    daemon = start_daemon([memcached], config=config)
    with daemon.conn() as conn:
        wait_until("both have told it", lambda: conn.cmd("version").startswith(b"VERSION 1.5.22-mclistd-"))


def test_mg_counts_as_a_get_that_finds_something_or_not(conn):
    assert conn.set("a", "x") == b"STORED"
    assert conn.cmd("mg a") == b"HD" and conn.cmd("mg none v") == b"EN"
    conn.send("mg a v q\r\nmg none q\r\nmg a v v\r\n")
    assert conn.lines(2) == [b"VA 1", b"x"] and conn.line().startswith(b"CLIENT_ERROR")
    stats = conn.stats()
    assert (stats["get_hits"], stats["get_misses"], stats["cmd_get"]) == ("2", "2", "0")


def test_verbosity(conn):
    assert conn.cmd("verbosity 1") == b"OK"
    assert conn.cmd("verbosity") == b"ERROR"
    conn.send("verbosity 1 noreply\r\nverbosity noreply\r\n")
    assert conn.cmd("mn") == b"MN"


def test_quit(daemon):
    with daemon.conn() as conn:
        conn.send("get a\r\nquit\r\nget b\r\n")
        assert conn.line() == b"END"
        assert conn.is_closed()


@pytest.mark.parametrize("line", ["GET / HTTP/1.1", "POST /x HTTP/1.0", "OPTIONS * HTTP/1.1", "PUT /a"])
def test_http_is_hung_up_on(daemon, line):
    answer = talk(daemon.port, line.encode() + b"\r\nset a 0 0 1\r\nx\r\n", half_close=False)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert f"Content-Length: {len(body)}".encode() in head and b"not HTTP" in body
    with daemon.conn() as conn:
        assert conn.get("a") is None


@pytest.mark.parametrize(
    "line",
    [
        "slabs reassign 1 2",
        "lru tune",
        "lru_crawler metadump all",
        "watch fetchers",
        "cache_memlimit 100",
        "shutdown",
        "shutdown graceful",
        "misbehave",
        "refresh_certs",
        "extstore free_memchunks 1",
    ],
)
def test_verbs_that_make_no_sense_through_a_proxy(daemon, conn, line):
    verb = line.split()[0].encode()
    refusal = b" is not available through a proxy: ask each memcached itself"
    assert conn.cmd(line) == b"CLIENT_ERROR " + verb + refusal
    assert conn.cmd("mn") == b"MN"
    assert daemon.is_running()


# --- flush_all ---


def fill(conn):
    for i in range(30):
        assert conn.set(f"key{i}", "x") == b"STORED"


def left(conn):
    return len(conn.values("get " + " ".join(f"key{i}" for i in range(30))))


@pytest.mark.memcacheds(3)
@pytest.mark.parametrize("line", ["flush_all", "flush_all 0", "flush_all noreply", "flush_all 0 noreply"])
def test_flush_all_reaches_all_servers(conn, line):
    fill(conn)
    if "noreply" in line:
        conn.send(line, "\r\n")
    else:
        assert conn.cmd(line) == b"OK"
    assert left(conn) == 0
    assert conn.set("key0", "y") == b"STORED"
    assert left(conn) == 1


@pytest.mark.memcacheds(2)
def test_flush_all_in_a_pipeline_keeps_its_place(conn):
    conn.send("set a 0 0 1\r\nx\r\nflush_all\r\nset b 0 0 1\r\ny\r\nget a b\r\nmn\r\n")
    assert conn.lines(7) == [b"STORED", b"OK", b"STORED", b"VALUE b 0 1", b"y", b"END", b"MN"]


@pytest.mark.parametrize("setting", [
    pytest.param("no", marks=pytest.mark.config(proxy={"allow_flush_all": "no"})),
    pytest.param("embedded", marks=pytest.mark.config(proxy={"allow_flush_all": "embedded"})),
])
def test_flush_all_forbidden(daemon, conn, setting):
    told = "flush_all is refused: with allow_flush_all = yes"
    if setting == "no":
        assert told not in daemon.log()
    else:
        daemon.wait_for_log(told)
    fill(conn)
    refusal = (b"CLIENT_ERROR flush_all is off, since it would delete all lists as well: "
               b"set allow_flush_all = yes in [proxy], or keep_lists")
    assert conn.cmd("flush_all") == refusal
    assert conn.cmd("flush_all 0") == refusal
    conn.send("flush_all noreply\r\n")
    assert conn.cmd("mn") == b"MN"
    assert left(conn) == 30


@pytest.mark.parametrize("reloaded", [False, True])
def test_flush_all_keeps_lists_that_have_servers_of_their_own(start_daemon, start_memcached, reloaded):
    plain, second, third, lists = [start_memcached() for _ in range(4)]
    config = {
        "proxy": {"pool": "main", "allow_flush_all": "no" if reloaded else "keep_lists"},
        "pool main": {"servers": [plain.address, second.address]},
        "pool behind": {"servers": third.address}, "pool lists": {"servers": lists.address},
        "lists": {"pool": "lists"}, "lists tags|": {"bridge": "yes"}, "route": {"failover": "behind"},
    }  # fmt: skip
    daemon = start_daemon(config=config)
    with daemon.conn() as conn, third.conn() as direct:
        if reloaded:
            assert conn.cmd("flush_all").startswith(b"CLIENT_ERROR flush_all is off")
            daemon.sections["proxy"]["allow_flush_all"] = "keep_lists"
            write_ini(daemon.ini_path, daemon.sections)
            daemon.signal(signal.SIGHUP)
            daemon.wait_for_log("allow_flush_all")
        fill(conn)
        assert direct.set("old", "x") == b"STORED"
        assert conn.cmd("ladd list a") == b"STORED"
        conn.send("append tags|7 0 0 1\r\nb\r\nflush_all\r\nset key1 0 0 1\r\nx\r\n")
        assert conn.lines(3) == [b"STORED", b"OK", b"STORED"]
        assert left(conn) == 1 and direct.get("old") is None
        assert conn.lget("list") == [b"a"] and conn.get("tags|7") == b"b"
        third.stop()
        assert conn.cmd("flush_all").startswith(b"SERVER_ERROR backend %s" % third.address.encode())
        assert left(conn) == 0 and conn.lget("list") == [b"a"]


def test_flush_all_with_a_delay_is_refused(conn):
    fill(conn)
    assert conn.cmd("flush_all 1").startswith(b"CLIENT_ERROR flush_all with a delay is refused")
    conn.send("flush_all 1 noreply\r\n")
    assert conn.cmd("mn") == b"MN"
    assert left(conn) == 30


@pytest.mark.memcacheds(2)
def test_flush_all_with_a_server_down_says_so_and_flushes_the_others(conn, memcacheds):
    fill(conn)
    memcacheds[0].stop()
    line = conn.cmd("flush_all")
    assert line.startswith(b"SERVER_ERROR backend %s" % memcacheds[0].address.encode())
    with memcacheds[1].conn() as direct:
        assert left(direct) == 0
    assert conn.cmd("mn") == b"MN"


@pytest.mark.memcacheds(2, "-F")
def test_flush_all_that_the_servers_forbid(conn):
    fill(conn)
    assert conn.cmd("flush_all").startswith(b"CLIENT_ERROR")
    assert left(conn) == 30


# --- stats ---


def counters(conn, *names):
    stats = conn.stats()
    return [int(stats[name]) for name in names]


def test_stats_count(daemon, conn):
    conn.set("a", "x")
    conn.values("get a b c")
    conn.cmd("mg a")
    conn.cmd("incr a 1")
    conn.cmd("bogus")
    conn.cmd("gat x a")
    with daemon.conn():
        # The second connection may not be accepted yet.
        wait_until("two clients", lambda: counters(conn, "curr_connections") == [2])
    names = ("cmd_set", "cmd_get", "get_hits", "get_misses", "cmd_meta", "cmd_other", "client_errors")
    assert counters(conn, *names) == [1, 3, 2, 2, 1, 1, 3]
    total, read, written = counters(conn, "total_connections", "bytes_read", "bytes_written")
    assert total >= 2 and read > 50 and written > 50
    assert counters(conn, "backend_requests")[0] >= 6


def test_stats_of_the_process(daemon, conn):
    stats = conn.stats()
    assert stats["pid"] == str(daemon.process.pid) or daemon.command()[0] != daemon.program
    assert int(stats["uptime"]) >= 0
    assert stats["threads"] == "2"
    assert stats["max_connections"] == "10000"
    assert stats["pointer_size"] == "64"
    assert re.fullmatch(r"1\.\d+\.\d+-mclistd-.*", stats["version"])
    for name in ("rusage_user", "rusage_system"):
        assert re.fullmatch(r"\d+\.\d{6}", stats[name])


@pytest.mark.config(proxy={"threads": 4})
def test_stats_are_the_sum_of_all_workers(daemon):
    for i in range(40):
        with daemon.conn() as conn:
            conn.set(f"key{i}", "x")
    with daemon.conn() as conn:
        assert counters(conn, "cmd_set") == [40]


def test_stats_reset(conn):
    conn.set("a", "x")
    # The look whether the daemon is there may not have ended yet.
    wait_until("no other client", lambda: counters(conn, "curr_connections") == [1])
    assert counters(conn, "cmd_set", "curr_connections") == [1, 1]
    assert conn.cmd("stats reset") == b"RESET"
    assert counters(conn, "cmd_set", "curr_connections") == [0, 1]
    conn.set("a", "x")
    assert counters(conn, "cmd_set") == [1]


GROUPS = "items slabs sizes conns cachedump extstore proxy proxyfuncs proxybe"


@pytest.mark.parametrize("group", GROUPS.split())
def test_stats_of_what_only_a_memcached_has_end(conn, group):
    """Exporters and memcached-tool ask for them, and would wait for an END."""
    for line in (f"stats {group}", f"stats {group} 1 0"):
        conn.stats(line)
        assert conn.cmd("mn") == b"MN"


@pytest.mark.memcacheds(2)
def test_stats_backends(conn, memcacheds):
    for i in range(20):
        conn.set(f"key{i}", "x")
    stats = conn.stats("stats backends")
    for server in memcacheds:
        prefix = f"backend:{server.address}:"
        assert stats[prefix + "state"] == "up"
        assert re.match(r"1\.6\.", stats[prefix + "version"])
        assert stats[prefix + "errors"] == stats[prefix + "pending"] == "0"
    assert sum(int(stats[f"backend:{server.address}:requests"]) for server in memcacheds) == 20


@pytest.mark.config(proxy={"idle_timeout_s": 77}, **{"lists topic-": {"on_missing": "refuse"}})
def test_stats_settings(conn, memcached):
    stats = conn.stats("stats settings")
    assert stats["proxy:idle_timeout_s"] == "77"
    assert stats["proxy:threads"] == "2"
    assert memcached.address in stats["pool:main:servers"]
    assert stats["lists:on_missing"] == "create"
    assert stats["lists:topic-:on_missing"] == "refuse"


@pytest.mark.parametrize("group", ["vbucket", "nonsense", "Backends"])
def test_stats_of_groups_that_are_not_there(conn, group):
    assert conn.cmd(f"stats {group}") == b"ERROR"
    assert conn.cmd("mn") == b"MN"


def test_stats_in_a_pipeline_keep_their_place(conn):
    conn.send("set a 0 0 1\r\nx\r\nstats\r\nget a\r\nstats backends\r\nmn\r\n")
    lines = [conn.line()]
    while lines[-1] != b"MN":
        lines.append(conn.line())
    others = [line for line in lines if not line.startswith(b"STAT ")]
    assert others == [b"STORED", b"END", b"VALUE a 0 1", b"x", b"END", b"END", b"MN"]


def test_stats_settings_cut_nothing_off(start_daemon):
    servers = [f"unix:/tmp/no-such-memcached-{n}" for n in range(100)]
    prefix = "\\xc3\\xa9" * 100
    config = {f"lists {prefix}": {"delimiter": "|"}}
    daemon = start_daemon(servers, config=config)
    with daemon.conn() as conn:
        settings = conn.stats("stats settings")
    assert settings["pool:main:servers"] == ", ".join(servers)
    assert settings[f"lists:{prefix}:delimiter"] == "|"
