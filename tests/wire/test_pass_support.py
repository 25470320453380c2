# SPDX-License-Identifier: BSD-3-Clause
"""What the test_pass*.py files share: the same bytes are said to the proxy and to a memcached of
the same kind; what both answer is compared, numbers that differ by nature aside. No tests here."""

import contextlib
import random
import re
import select
import socket
import time

from harness import HOST, TIMEOUT_S, Daemon, Memcached, as_bytes

PLACE_OF_CAS = re.compile(rb"\{cas:([^}]+)\}")


def lines(text):
    """An indented block of lines as requests; bytes are taken as they are."""
    if isinstance(text, bytes):
        return text
    found = [line.strip(" ") for line in text.strip("\n").split("\n")]
    return b"".join(as_bytes(line) + b"\r\n" for line in found if line)


def in_pieces(data, rng, most=20):
    """The data in up to `most` pieces of random sizes."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, most)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)]) if a < b]


def byte_by_byte(data):
    return [data[i : i + 1] for i in range(len(data))]


def talk(port, pieces, pause_s=0.0, timeout_s=TIMEOUT_S, half_close=True):
    """Sends the pieces, each in a packet of its own, ends sending, and returns all that comes back
    until the other side closes. With half_close=False the other side is to close by itself."""
    pieces = [pieces] if isinstance(pieces, bytes) else list(pieces)
    deadline = time.monotonic() + timeout_s
    answer = bytearray()
    with socket.create_connection((HOST, port), timeout=timeout_s) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        ended = False
        while True:
            if not pieces and not ended:
                ended = True
                with contextlib.suppress(OSError):
                    if half_close:
                        sock.shutdown(socket.SHUT_WR)
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"not closed within {timeout_s} s; so far: {bytes(answer[-300:])!r}"
            readable, writable, _ = select.select([sock], [sock] if pieces else [], [], left_s)
            try:
                if writable:
                    sent = sock.send(pieces[0])
                    pieces[0] = pieces[0][sent:]
                    if not pieces[0]:
                        pieces.pop(0)
                        if pause_s and pieces:
                            time.sleep(pause_s)
                if readable:
                    data = sock.recv(1 << 18)
                    if not data:
                        return bytes(answer)
                    answer += data
            except (BrokenPipeError, ConnectionResetError):
                # It has closed while we were sending: what it said before is still to be read.
                pieces = []
                with contextlib.suppress(OSError):
                    while data := sock.recv(1 << 18):
                        answer += data
                return bytes(answer)


DIFFERS_BY_NATURE = [
    (re.compile(rb"^(VALUE \S+ \d+ \d+) \d+\r$", re.M), rb"\1 CAS\r"),
    (re.compile(rb"^((?:VA|HD)\b[^\r\n]*) c\d+", re.M), rb"\1 cCAS"),
    # Seconds: the two are not asked at the same moment.
    (re.compile(rb"^((?:VA|HD)\b[^\r\n]*) t\d+", re.M), rb"\1 tSECONDS"),
    (re.compile(rb"^((?:VA|HD)\b[^\r\n]*) l\d+", re.M), rb"\1 lSECONDS"),
    (re.compile(rb"^(ME [^\r\n]*)\bla=\d+", re.M), rb"\1la=SECONDS"),
    (re.compile(rb"^(ME [^\r\n]*)\bexp=\d+", re.M), rb"\1exp=SECONDS"),
    (re.compile(rb"^(ME [^\r\n]*)\bcas=\d+", re.M), rb"\1cas=CAS"),
    (re.compile(rb"^VERSION [^\r\n]*\r$", re.M), rb"VERSION\r"),
]


def comparable(answer):
    for pattern, text in DIFFERS_BY_NATURE:
        answer = pattern.sub(text, answer)
    return answer


def cas_of(port, key):
    """The CAS number of a key there, 0 when it is missing."""
    answer = talk(port, b"gets " + key + b"\r\n")
    found = re.match(rb"VALUE \S+ \d+ \d+ (\d+)\r\n", answer)
    return found.group(1) if found else b"0"


class Pair:
    """A daemon before its servers, and a memcached without a proxy."""

    def __init__(self, daemon, servers, direct):
        self.daemon = daemon
        self.servers = servers
        self.direct = direct

    def wipe(self):
        for server in [*self.servers, self.direct]:
            assert talk(server.port, b"flush_all\r\n") == b"OK\r\n"

    def ask(self, port, script, setup=b"", cut=None, **options):
        """`{cas:KEY}` in the script becomes what CAS number the key has after the setup."""
        if setup:
            talk(port, setup)
        script = PLACE_OF_CAS.sub(lambda found: cas_of(port, found.group(1)), script)
        return comparable(talk(port, cut(script) if cut else script, **options))

    def ask_direct(self, script, setup=b"", **options):
        return self.ask(self.direct.port, script, setup, **options)

    def ask_proxy(self, script, setup=b"", **options):
        return self.ask(self.daemon.port, script, setup, **options)


@contextlib.contextmanager
def open_pair(folder, server_count, config=None, memcached_args=()):
    """For fixtures that live as long as a file of tests."""
    started = []
    daemon = None
    try:
        for _ in range(server_count + 1):
            started.append(Memcached(*memcached_args))
        *servers, direct = started
        daemon = Daemon(folder, servers, config=config)
        yield Pair(daemon, servers, direct)
        daemon.stop()
        daemon = None
    finally:
        if daemon is not None:
            daemon.kill()
        for server in started:
            server.stop()


def assert_same(proxied, direct, how):
    if proxied == direct:
        return
    same = next((i for i, (a, b) in enumerate(zip(proxied, direct)) if a != b), None)
    at = min(len(proxied), len(direct)) if same is None else same
    around = slice(max(0, at - 200), at + 200)
    raise AssertionError(
        f"{how}: the proxy's answer ({len(proxied)} bytes) differs from memcached's "
        f"({len(direct)} bytes) at byte {at}; around it:\n"
        f"proxy  {proxied[around]!r}\ndirect {direct[around]!r}"
    )


def seeded(name, seed=None):
    """A generator of random numbers that can be had again: the seed is printed with failures."""
    seed = f"{name}-1" if seed is None else seed
    print(f"seed {seed!r}")
    return random.Random(seed)
