# SPDX-License-Identifier: BSD-3-Clause
"""Encrypted connections to memcacheds, real ones of Debian with -Z."""

import pathlib
import signal
import tempfile

import pytest

from harness import wait_until
from test_config_cli import run
from tls_support import TlsMemcached, make_certificate

DOWN = b"SERVER_ERROR backend"


@pytest.fixture
def folder():
    """Where a memcached can read that has become another user."""
    with tempfile.TemporaryDirectory() as path:
        pathlib.Path(path).chmod(0o755)
        yield pathlib.Path(path)


@pytest.fixture
def certificate(folder):
    return make_certificate(folder / "server.pem")


def pool(**settings):
    return {"pool main": {"tls": True, **settings}}


def test_plain_keys_and_lists(certificate, start_tls, start_daemon):
    servers = [start_tls(certificate) for _ in range(2)]
    daemon = start_daemon(servers, config=pool(tls_ca=certificate))
    with daemon.conn() as conn:
        for i in range(20):
            assert conn.set(f"k{i}", f"v{i}") == b"STORED"
            assert conn.cmd(f"ladd l{i} a b") == b"STORED"
        assert len(conn.values("get " + " ".join(f"k{i}" for i in range(20)))) == 20
        assert all(conn.lget(f"l{i}") == [b"a", b"b"] for i in range(20))
    with servers[0].conn() as conn:
        assert int(conn.stats()["curr_items"]) > 5


def test_large_values_in_a_pipeline(certificate, start_tls, start_daemon):
    """Larger than the sockets' buffers, both ways at the same time."""
    server = start_tls(certificate, "-I", "4m", "-m", "256")
    large = bytes(range(256)) * 12000
    config = pool(tls_ca=certificate, timeout_ms=20000)
    config["proxy"] = {"max_value_bytes": "4m", "deadline_ms": 40000}
    with start_daemon([server], config=config).conn(timeout_s=60) as conn:
        for i in range(8):
            conn.send(f"set k{i} 0 0 {len(large)} noreply\r\n", large, "\r\n")
        conn.send("get " + " ".join(f"k{i}" for i in range(8)) + "\r\n")
        assert all(value == large for _, _, value in conn.values_answer())


def test_a_server_that_comes_back(certificate, start_tls, start_daemon):
    server = start_tls(certificate)
    daemon = start_daemon([server], config=pool(tls_ca=certificate, retry_max_ms=100))
    with daemon.conn() as conn:
        assert conn.set("a", "x") == b"STORED"
        server.stop()
        # One line of two workers: the other may just have begun to connect.
        daemon.wait_for_log("connection lost|cannot connect")
        server.start()
        wait_until("it is up again", lambda: conn.set("a", "x") == b"STORED")


def test_a_certificate_that_is_signed(folder, start_tls, start_daemon):
    """By another one, for a name; tls_name says which."""
    authority = make_certificate(folder / "ca.pem", "DNS:ca", "ca")
    signed = make_certificate(folder / "signed.pem", "DNS:cache", signer=authority)
    server = NamedMemcached(signed, authority)
    try:
        daemon = start_daemon([server], config=pool(tls_ca=authority, tls_name="cache"))
        with daemon.conn() as conn:
            assert conn.set("a", "x") == b"STORED"
        daemon = start_daemon([server], config=pool(tls_ca=authority))
        daemon.wait_for_log("TLS: IP address mismatch")
        with daemon.conn() as conn:
            assert conn.set("a", "x").startswith(DOWN)
    finally:
        server.stop()


class NamedMemcached(TlsMemcached):
    """Its certificate is for no address."""

    def __init__(self, certificate, authority):
        self.authority = authority
        super().__init__(certificate)

    def start(self):
        self.context.load_verify_locations(self.authority)
        self.context.check_hostname = False
        return super().start()


def test_a_certificate_of_others(folder, certificate, start_tls, start_daemon):
    other = make_certificate(folder / "other.pem")
    daemon = start_daemon([start_tls(certificate)], config=pool(tls_ca=other))
    daemon.wait_for_log("TLS: .*certificate")
    with daemon.conn() as conn:
        assert conn.set("a", "x").startswith(DOWN)


def test_a_certificate_of_the_proxy(folder, certificate, start_tls, start_daemon):
    own = make_certificate(folder / "own.pem", "DNS:proxy", "proxy")
    server = start_tls(certificate, ca=own, client=own)
    good = pool(tls_ca=certificate, tls_cert=own, tls_key=own)
    with start_daemon([server], config=good).conn() as conn:
        assert conn.set("a", "x") == b"STORED"
    daemon = start_daemon([server], config=pool(tls_ca=certificate))
    with daemon.conn() as conn:
        assert conn.set("a", "x").startswith(DOWN)


def test_a_server_without_tls(certificate, memcached, start_daemon):
    daemon = start_daemon([memcached], config=pool(tls_ca=certificate, connect_timeout_ms=300))
    daemon.wait_for_log("TLS: |no answer to TLS")


def test_tls_that_is_not_asked_for(certificate, start_tls, start_daemon):
    daemon = start_daemon([start_tls(certificate)])
    with daemon.conn() as conn:
        assert conn.set("a", "x").startswith(DOWN)


@pytest.mark.parametrize("settings, error", [
    ("tls_ca = /x", "4: [pool p]: tls_ca: tls = no does not use it; expected with tls = yes"),
    ("tls_name = x", "4: [pool p]: tls_name: tls = no does not use it; expected with tls = yes"),
    ("tls = yes\ntls_cert = /x", "5: [pool p]: tls_cert: without tls_key; expected both"),
    ("tls = yes\nservers = unix:/x",
     "5: [pool p]: unix:/x is a unix socket; expected host:port with tls = yes"),
    ("tls = yes\ntls_ca = /none", " [pool p]: tls_ca: /none cannot be opened: No such file or directory"),
    ("tls = yes\ntls_ca = CERT\ntls_cert = /none\ntls_key = /none",
     " [pool p]: tls_cert: /none cannot be opened: No such file or directory"),
    ("tls = yes\ntls_ca = CERT\ntls_cert = CERT\ntls_key = OTHER",
     " [pool p]: tls_key: OTHER holds no key of tls_cert that can be read without a passphrase"),
])
def test_bad_settings(folder, certificate, settings, error):
    other = make_certificate(folder / "other.pem")
    names = {"CERT": str(certificate), "OTHER": str(other)}
    for name, path in names.items():
        settings, error = settings.replace(name, path), error.replace(name, path)
    path = folder / "ini"
    path.write_text(f"[proxy]\n[pool p]\nservers = 127.0.0.1:1\n{settings}\n")
    code, _, errors = run("-t", "-c", path)
    assert code == 78
    assert errors.endswith(f":{error}\n")


def test_certificates_are_read_anew(folder, certificate, start_tls, start_daemon):
    """HUP: new connections take the new ones; a bad one leaves all as it was."""
    ca = folder / "ca.pem"
    ca.write_text(certificate.read_text())
    server = start_tls(certificate)
    daemon = start_daemon([server], config=pool(tls_ca=ca, retry_max_ms=100))
    with daemon.conn() as conn:
        assert conn.set("a", "x") == b"STORED"
        ca.write_text("none")
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_log(r"reload refused.*\[pool main\]: tls_ca: .* holds no certificates")
        assert conn.set("a", "x") == b"STORED"
        ca.write_text(make_certificate(folder / "other.pem").read_text())
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_log("configuration read anew")
        assert conn.set("a", "x") == b"STORED"
        server.restart()
        daemon.wait_for_log("TLS: .*certificate")
        assert conn.set("a", "x").startswith(DOWN)
        ca.write_text(certificate.read_text())
        daemon.signal(signal.SIGHUP)
        wait_until("it is up again", lambda: conn.set("a", "x") == b"STORED")
