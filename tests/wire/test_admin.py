# SPDX-License-Identifier: BSD-3-Clause
"""The admin listener over HTTP: metrics that others' parsers read, health, the configuration in force,
the status page; and what hostile or careless clients can do to it."""

import http.client
import os
import re
import shutil
import socket
import stat
import subprocess
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from harness import HOST, SLOW, free_port, wait_until
from test_config_cli import run

OPEN = {"Accept": "application/openmetrics-text; version=1.0.0, text/plain;q=0.5"}


class Admin:
    """A daemon with an admin listener."""

    def __init__(self, start_daemon, servers, admin=None, **sections):
        self.port = free_port()
        own = {"listen": f"{HOST}:{self.port}", **(admin or {})}
        self.daemon = start_daemon(servers, config={"admin": own, **sections})
        self.daemon.wait_for_log("metrics and status page: ")

    def get(self, path, headers=None, method="GET"):
        """(status, headers, body)"""
        conn = http.client.HTTPConnection(HOST, self.port, timeout=10 * SLOW)
        try:
            conn.request(method, path, headers=headers or {})
            response = conn.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            conn.close()

    def text(self, path):
        status, _, body = self.get(path)
        assert status == 200, body
        return body

    def status_of(self, path):
        return self.get(path)[0]

    def samples(self):
        return {(s.name, tuple(sorted(s.labels.items()))): s.value
                for family in families(self.text("/metrics")) for s in family.samples}

    def raw(self, request):
        """All that comes back to those bytes, to the end of the connection."""
        with socket.create_connection((HOST, self.port), timeout=10 * SLOW) as sock:
            sock.sendall(request)
            answer = b""
            while piece := sock.recv(65536):
                answer += piece
            return answer


@pytest.fixture
def admin(start_daemon, memcached):
    return Admin(start_daemon, [memcached])


def test_metrics_are_what_stats_says(admin, memcached):
    with admin.daemon.conn() as conn:
        for n in range(7):
            conn.cmd(f"ladd fruit item{n}")
            conn.get(f"k{n}")
        stats = conn.stats()
        samples = admin.samples()
    for name in ("cmd_get", "get_misses", "cmd_list_write", "list_appends"):
        assert samples[f"mclistd_{name}_total", ()] == int(stats[name]) > 0
    assert samples["mclistd_curr_connections", ()] == 1
    server = (("pool", "main"), ("server", memcached.address))
    assert samples["mclistd_pool_server_up", server] == 1
    assert samples["mclistd_pool_server_requests_total", server] >= 14
    # Each number of stats that means something there, and each has a help of its own.
    missing = {name for name, value in stats.items() if value.isdigit()
               and not {(f"mclistd_{name}{end}", ()) for end in ("", "_total")} & set(samples)}
    assert missing == {"pid", "time", "pointer_size", "uptime", "config_time", "total_connections",
                       "transaction_age"}
    assert all(family.documentation for family in families(admin.text("/metrics")))


def test_open_metrics(admin):
    status, headers, body = admin.get("/metrics", OPEN)
    assert status == 200
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    names = {family.name for family in open_families(body)}
    assert {"mclistd_cmd_get", "mclistd_curr_connections", "mclistd_pool_server_up"} <= names
    assert body.endswith("# EOF\n")


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is in Debian's prometheus")
def test_promtool_has_nothing_to_say(admin):
    told = subprocess.run(["promtool", "check", "metrics"], input=admin.text("/metrics"), text=True,
                          capture_output=True, check=False)
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


def test_ready_while_a_server_of_each_pool_works(start_daemon, memcached):
    admin = Admin(start_daemon, [memcached], **{"pool main": {"eject_failures": 1}})
    wait_until("it is ready", lambda: admin.status_of("/ready") == 200)
    memcached.stop()
    with admin.daemon.conn() as conn:
        conn.cmd("get k")
        wait_until("it is not ready", lambda: admin.status_of("/ready") == 503)
        assert admin.get("/ready")[2] == "not ready: pool main: none of 1 servers is up\n"
        assert admin.text("/live") == "live\n"
        memcached.start()
        wait_until("it is ready again", lambda: conn.cmd("mn") and admin.status_of("/ready") == 200)


def test_not_ready_while_it_drains(start_daemon, memcached):
    admin = Admin(start_daemon, [memcached], proxy={"drain_timeout_ms": 60000})
    with admin.daemon.conn() as conn:
        memcached.pause()
        conn.send("get k\r\n")
        admin.daemon.process.terminate()
        wait_until("it drains", lambda: admin.status_of("/ready") == 503)
        assert admin.get("/ready")[2] == "not ready: it ends\n"
        assert admin.text("/live") == "live\n"
        memcached.resume()
        admin.daemon.process.wait(30 * SLOW)


def test_config_is_a_file_and_says_where_it_is_from(admin, tmp_path):
    text = admin.text("/config")
    assert re.search(r"^threads = 2  # line \d+$", text, re.M)
    assert re.search(r"^max_connections = 10000$", text, re.M)
    again = tmp_path / "again.ini"
    again.write_text(text)
    code, _, errors = run("-t", "-c", again)
    assert code == 0, errors


def test_config_tells_no_password(start_daemon, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n")
    bucket = {"type": "couchbase", "servers": f"{HOST}:{free_port()}", "bucket": "b",
              "username": "u", "password_file": secret}
    admin = Admin(start_daemon, [], proxy={"allow_flush_all": False}, **{"pool main": bucket})
    for path in ("/config", "/metrics", "/status"):
        assert "hunter2" not in admin.text(path)
    assert f"password_file = {secret}" in admin.text("/config")


def test_page_shows_figures_that_move(admin):
    def requests():
        page = admin.text("/")
        return int(re.search(r"cmd_get <b>(\d+)</b>", page)[1]) if "cmd_get" in page else 0

    def plotted():
        mean = re.search(r'<span class="a">reads <b>([\d.]+)</b>', admin.text("/status"))[1]
        return float(mean) > 0

    assert requests() == 0
    with admin.daemon.conn() as conn:
        for n in range(50):
            conn.get(f"k{n}")
        assert requests() == 50
        wait_until("the plot has them", lambda: conn.get("k") is None and plotted())
    page = admin.text("/")
    assert "<script" not in page and "http-equiv=\"refresh\"" in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert '<td class="good">up</td>' in page
    assert "alarms" not in page.split("</style>")[1]


def test_page_says_what_is_wrong(admin, memcached):
    memcached.stop()
    with admin.daemon.conn() as conn:
        assert conn.cmd("get k").startswith(b"SERVER_ERROR")
    wait_until("the page says it", lambda: "requests were answered SERVER_ERROR" in admin.text("/"))
    assert '<td class="bad">down</td>' in admin.text("/")


def test_names_are_text_and_not_markup(start_daemon, tmp_path):
    path = tmp_path / "<script>alert(1)<"
    admin = Admin(start_daemon, [f"unix:{path}"])
    assert "<script" not in admin.text("/")
    assert "&lt;script&gt;alert(1)&lt;" in admin.text("/")
    assert any(labels and dict(labels).get("server", "").endswith("<script>alert(1)<")
               for _, labels in admin.samples())


def test_times_are_told_by_class(admin, memcached):
    with admin.daemon.conn() as conn:
        for n in range(40):
            conn.get(f"k{n}")
        conn.cmd("ladd fruit apple")
        times = conn.stats("stats latency")
        buckets = {name: int(count) for name, count in conn.stats("stats latency buckets").items()}
        reads = {name: count for name, count in buckets.items() if name.startswith("cmd_get:")}
        assert sum(reads.values()) == int(times["cmd_get:count"])
        assert list(reads)[-1] == f"cmd_get:{times['cmd_get:max_us']}_us"
        assert times["cmd_get:count"] == "40" and times["cmd_list_write:count"] == "1"
        assert 0 < int(times["cmd_get:p50_us"]) <= int(times["cmd_get:max_us"])
        server = f"backend:{memcached.address}"
        assert int(times[f"{server}:count"]) >= 41
        samples = admin.samples()
        bucket = "mclistd_request_seconds_bucket"
        assert samples[bucket, (("class", "cmd_get"), ("le", "+Inf"))] == 40
        labels = (("pool", "main"), ("server", memcached.address))
        assert samples["mclistd_pool_server_seconds_count", labels] >= 41
        buckets = [value for (name, labels), value in samples.items()
                   if name == bucket and ("class", "cmd_get") in labels]
        assert buckets == sorted(buckets) and len(buckets) > 8
        assert ">cmd_get</td><td>40</td>" in admin.text("/")
        assert conn.cmd("stats reset") == b"RESET"
        assert "cmd_list_write:count" not in conn.stats("stats latency")


def test_slow_requests_have_names(start_daemon, memcached):
    admin = Admin(start_daemon, [memcached], proxy={"slow_ms": 100})
    with admin.daemon.conn() as conn, admin.daemon.conn() as other:
        assert conn.cmd("mn") == b"MN"
        memcached.pause()
        conn.send("get <b>slow\r\n")
        time.sleep(0.2)
        memcached.resume()
        assert conn.line() == b"END"
        (slow,) = other.stats("stats slow").values()
        told = re.fullmatch(r"time \d+ us (\d+) waited_us 0 get <b>slow client 127.0.0.1 port \d+",
                            slow)
        assert told and int(told[1]) >= 100000
        assert other.stats()["slow_requests"] == "1"
    assert "get &lt;b&gt;slow</td>" in admin.text("/")
    admin.daemon.wait_for_log(r"slow: get <b>slow of client 127.0.0.1 port \d+ took \d+ ms, 0 of them")


def test_slow_requests_of_a_pipeline_all_count(start_daemon, memcached):
    daemon = start_daemon([memcached], config={"proxy": {"slow_ms": 100}})
    with daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"
        conn.get("quick")
        memcached.pause()
        conn.send("get one\r\nget two\r\nget three\r\nget four\r\n")
        time.sleep(0.2)
        memcached.resume()
        assert [conn.line() for _ in range(4)] == [b"END"] * 4
        assert conn.stats()["slow_requests"] == "4"
        assert len(conn.stats("stats slow")) == 4


def test_hot_keys_have_names(admin):
    with admin.daemon.conn() as conn:
        for _ in range(20):
            conn.send(*("get rare%d hot<i> hot<i> hot<i>\r\n" % n for n in range(100)))
            for _ in range(100):
                assert conn.line() == b"END"
        hot = conn.stats("stats hot")
    name, share = next(iter(hot.items()))
    assert name == "hot<i>" and 50 < float(share.rstrip("%")) < 90
    assert "<td class=\"key\">hot&lt;i&gt;</td>" in admin.text("/")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "reload"])
def test_nothing_can_be_changed(admin, method):
    status, headers, _ = admin.get("/metrics", method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_has_no_body(admin):
    status, headers, body = admin.get("/metrics", method="HEAD")
    assert (status, body) == (200, "") and int(headers["Content-Length"]) > 1000


@pytest.mark.parametrize("request_, answer", [
    (b"stats\r\n\r\n", b"HTTP/1.1 400 "),
    (b"\r\n\r\n", b"HTTP/1.1 400 "),
    (b"GET\r\n\r\n", b"HTTP/1.1 400 "),
    (b"GET /live\r\n\r\n", b"HTTP/1.1 400 "),
    (b"GET /live HTTP/2.0\r\n\r\n", b"HTTP/1.1 400 "),
    (b"\x00\xff" * 3000 + b"\r\n\r\n", b"HTTP/1.1 400 "),
    (b"GET /nowhere HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 "),
    (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 "),
    (b"GET /live?a=b HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 "),
    (b"GET /live HTTP/1.0\n\n", b"HTTP/1.1 200 "),
    (b"GET /live HTTP/1.1\r\nX: " + b"y" * 10000 + b"\r\n\r\n", b"HTTP/1.1 431 "),
], ids=lambda value: repr(value[:30]))
def test_odd_requests(admin, request_, answer):
    assert admin.raw(request_).startswith(answer)
    assert admin.text("/live") == "live\n"


def test_slow_and_idle_connections_end(start_daemon, memcached):
    admin = Admin(start_daemon, [memcached], admin={"timeout_ms": 300})
    with socket.create_connection((HOST, admin.port), timeout=10 * SLOW) as sock:
        sock.sendall(b"GET /li")
        assert sock.recv(100) == b""


def test_many_connections_keep_no_operator_out(start_daemon, memcached):
    admin = Admin(start_daemon, [memcached], admin={"max_connections": 4, "timeout_ms": 60000})
    idle = [socket.create_connection((HOST, admin.port)) for _ in range(300)]
    try:
        for _ in range(20):
            assert admin.text("/live") == "live\n"
        descriptors = len(os.listdir(f"/proc/{admin.daemon.process.pid}/fd"))
        assert descriptors < 100
        with admin.daemon.conn() as conn:
            assert conn.cmd("set k 0 0 1", "v") == b"STORED"
    finally:
        for sock in idle:
            sock.close()


def test_operators_get_in_where_clients_do_not(start_daemon, memcached):
    admin = Admin(start_daemon, [memcached],
                  proxy={"max_connections": 2, "reserved_connections": 0})
    # That of the start has to be gone, and may not even have been accepted yet.
    wait_until("it has come and gone", lambda: [
        admin.samples()[f"mclistd_{name}", ()]
        for name in ("connections_total", "curr_connections")] == [1, 0])
    with admin.daemon.conn() as one, admin.daemon.conn() as two:
        assert one.cmd("mn") == two.cmd("mn") == b"MN"
        with admin.daemon.conn() as three:
            assert three.cmd("get k") == b"ERROR Too many open connections"
        assert admin.samples()["mclistd_rejected_connections_total", ()] == 1
        assert "max_connections is reached" in admin.text("/")


def test_unix_socket_is_the_operators_own(start_daemon, memcached, tmp_path):
    path = tmp_path / "admin.sock"
    daemon = start_daemon([memcached], config={"admin": {"listen": f"unix:{path}"}})
    daemon.wait_for_log("metrics and status page: ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    daemon.wait_for_log(" up, memcached ")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(b"GET /ready HTTP/1.1\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
    daemon.stop()
    assert not path.exists()


@pytest.mark.parametrize("ini, told", [
    ("[proxy]\nlisten = 127.0.0.1:7\n[admin]\nlisten = 127.0.0.1:7\n",
     "[admin]: listen 127.0.0.1:7 is where clients connect; expected another one"),
    ("[admin]\nlisten = 127.0.0.1:7\n[pool p]\nservers = 127.0.0.1:7\n",
     "[admin]: listen 127.0.0.1:7 is a server of pool p; expected another one"),
    ("[admin]\n[admin]\n", ":2: a second [admin] (the first is in line 1); expected one"),
    ("[admin]\nmax_connections = 0\n", ":2: max_connections: '0' is out of range"),
    ("[admin]\nthreads = 1\n", ":2: threads: not a key of [admin]; expected in [proxy]"),
])
def test_wrong_settings(tmp_path, ini, told):
    path = tmp_path / "wrong.ini"
    path.write_text(ini)
    code, _, errors = run("-t", "-c", path)
    assert code == 78 and told in errors, errors
