# SPDX-License-Identifier: BSD-3-Clause
"""The two sides: memcacheds that are asked directly, one of each generation, and daemons before
memcacheds of their own."""

import contextlib
import dataclasses
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "wire"))
from harness import HOST, ROOT, SLOW, TIMEOUT_S, Daemon, Memcached  # noqa: E402

from framing import NO_KEY, PROBE  # noqa: E402
from generating import BRIDGE  # noqa: E402

OLD, NEW = "old", "new"
READ_BYTES = 1 << 18


class Stuck(Exception):
    """A side that should have answered did not."""


def fence_pair(number):
    """A request that changes nothing, and its answer, which stands nowhere else."""
    word = b"Of%08x" % number
    return b"md %s %s\r\n" % (NO_KEY, word), b"NF %s\r\n" % word


def begin_with_text(sock, name):
    """The first byte of a connection names its protocol: it must be a text verb's, whatever the case
    begins with."""
    sock.sendall(b"mn\r\n")
    if sock.recv(4) != b"MN\r\n":
        raise Stuck(f"{name} does not answer mn")


class Link:
    """A connection over which one thing is asked after the other."""

    def __init__(self, address):
        self.address = address  # (host, port) or a path
        self.socket = None
        self.fences = 0

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def _connect(self):
        kind = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        self.socket = socket.socket(kind)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(self.address)
        if kind == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin_with_text(self.socket, self.address)

    def ask(self, data, cut=False):
        """What is answered to the data, and whether the connection was closed behind it. cut: it is
        ended by us, and closed then."""
        if self.socket is None:
            self._connect()
        self.fences += 1
        request, fence = (b"", None) if cut else fence_pair(self.fences)
        answer = bytearray()
        try:
            self.socket.sendall(data + request)
            if cut:
                self.socket.shutdown(socket.SHUT_WR)
            while fence is None or not answer.endswith(fence):
                more = self.socket.recv(READ_BYTES)
                if not more:
                    self.close()
                    return bytes(answer), True
                answer += more
        except (ConnectionResetError, BrokenPipeError):
            self.close()
            return bytes(answer), True
        except socket.timeout:
            self.close()
            said = bytes(answer[-200:])
            raise Stuck(f"it does not answer {data[-200:]!r}; it said {said!r}") from None
        return bytes(answer[: -len(fence)]), False


@contextlib.contextmanager
def memcached_program(program):
    """The harness takes the program from the environment."""
    before = os.environ.get("MEMCACHED")
    os.environ["MEMCACHED"] = program
    try:
        yield
    finally:
        if before is None:
            del os.environ["MEMCACHED"]
        else:
            os.environ["MEMCACHED"] = before


def start_memcached(program):
    # An answer is sent, and its item let go, before the next request is looked at; and no thread of
    # its own holds items: see "shrinking numbers" in the table of exceptions.
    with memcached_program(program):
        return Memcached("-t", "1", "-o", "no_lru_maintainer,no_lru_crawler", memory_mb=512)


def find_programs():
    """{generation: memcached's path}, and a note on what is missing, or None."""
    programs = {OLD: "memcached"}
    script = ROOT / "scripts/fetch-memcached-new"
    try:
        done = subprocess.run([script], capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return programs, f"{script.name} takes too long"
    if done.returncode != 0:
        return programs, done.stderr.strip()
    programs[NEW] = done.stdout.strip()
    return programs, None


@dataclasses.dataclass
class Layout:
    """How a daemon is set up. No servers: it starts a memcached of its own."""

    name: str
    generation: str
    servers: int
    proxy: dict


# Little room: answers are held back, put off and asked for again.
TIGHT = {"threads": 1, "max_pipeline": 3, "client_output_bytes": 4096}
LAYOUTS = [
    Layout("own memcached", OLD, 0, {}),
    Layout("one server, little room", OLD, 1, TIGHT),
    Layout("three servers", OLD, 3, {"threads": 2}),
    Layout("newer memcached", NEW, 1, {"threads": 2}),
    Layout("two newer memcacheds, little room", NEW, 2, TIGHT),
]


class Front:
    """A running layout."""

    def __init__(self, layout, program, folder):
        self.layout = layout
        self.servers = [start_memcached(program) for _ in range(layout.servers)]
        config = {"proxy": dict(layout.proxy), "lists bridged-": BRIDGE}
        if self.servers:
            config["pool main"] = {"timeout_ms": 60000}
        else:
            config["proxy"]["embedded_memcached"] = program
        self.daemon = Daemon(folder, self.servers, config=config)
        self._link()

    def _link(self):
        addresses = [(HOST, server.port) for server in self.servers]
        if not addresses:
            addresses = re.findall(r"at unix:(\S+) \(process", self.daemon.log())[-1:]
        self.links = [Link(address) for address in addresses]

    def ensure_running(self):
        if not self.daemon.is_running():
            self.daemon.start()
            if not self.servers:
                self._link()

    def ask_all(self, data):
        """The answers of all its servers."""
        return [link.ask(data)[0] for link in self.links]

    def stop(self):
        for link in self.links:
            link.close()
        try:
            self.daemon.stop()
        finally:
            self.daemon.kill()
            for server in self.servers:
                server.stop()


class Sides:
    """All that runs; layouts are started when they are first needed."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="mclistd-differential-")
        self.programs, self.missing = find_programs()
        self.references = {}
        self.servers = []
        self.fronts = {}
        self.odd_keys = set()  # keys of malformed requests, since the stores were last emptied

    def __enter__(self):
        for generation, program in self.programs.items():
            server = start_memcached(program)
            self.servers.append(server)
            self.references[generation] = Link((HOST, server.port))
        return self

    def __exit__(self, kind, *_):
        try:
            for front in self.fronts.values():
                front.stop()
        finally:
            for server in self.servers:
                server.stop()
            self.folder.cleanup()

    def has(self, layout):
        return layout.generation in self.programs

    def front(self, layout):
        front = self.fronts.get(layout.name)
        if front is None:
            program = self.programs[layout.generation]
            front = self.fronts[layout.name] = Front(layout, program, self.folder.name)
        front.ensure_running()
        return front

    def ask_references(self, data, cut=False):
        """{generation: (answer without what data that was run as a command answered, closed)}"""
        found = {}
        for generation, link in self.references.items():
            answer, closed = link.ask(data[generation], cut)
            found[generation] = PROBE.sub(b"", answer), closed
        return found


class Talk:
    """Connections to the daemon that are served at the same time, each with its pieces to send."""

    def __init__(self, port, timeout_s=TIMEOUT_S):
        self.port = port
        self.timeout_s = timeout_s
        self.sockets = {}

    def close(self):
        for sock in self.sockets.values():
            sock.close()
        self.sockets = {}

    def _socket(self, number):
        if number not in self.sockets:
            sock = socket.create_connection((HOST, self.port), timeout=self.timeout_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begin_with_text(sock, f"the proxy at {self.port}")
            sock.setblocking(False)
            self.sockets[number] = sock
        return self.sockets[number]

    def run(self, turns):
        """turns: {connection: Turn}. Fills their answers."""
        poller = select.poll()
        by_fd = {}
        for number, turn in turns.items():
            turn.socket = self._socket(number)
            by_fd[turn.socket.fileno()] = turn
            poller.register(turn.socket, select.POLLIN)
        quiet_since = time.monotonic()
        while any(not turn.over for turn in turns.values()):
            now = time.monotonic()
            if now - quiet_since > self.timeout_s:
                break
            wait_s = self._wait_s(turns.values(), poller, now)
            for fd, events in poller.poll(wait_s * 1000):
                quiet_since = now
                by_fd[fd].step(events)
                if by_fd[fd].over:
                    poller.unregister(fd)
        for number, turn in turns.items():
            if turn.closed or not turn.over:
                self.sockets.pop(number).close()

    def _wait_s(self, turns, poller, now):
        wait_s = 0.2
        for turn in turns:
            if turn.over:
                continue
            ready = bool(turn.pieces) and turn.not_before <= now
            poller.modify(turn.socket, select.POLLIN | (select.POLLOUT if ready else 0))
            if turn.pieces and not ready:
                wait_s = min(wait_s, turn.not_before - now)
        return wait_s


class Turn:
    """What one connection sends in one phase: pieces [(bytes, pause behind it in seconds)]."""

    def __init__(self, pieces, fence, cut, last):
        self.pieces = pieces[::-1]
        self.fence = fence  # the answer that ends it
        self.cut = cut  # it is the client who ends sending
        self.last = last  # to be sent when the fence has come: the connection closes then
        self.not_before = 0.0
        self.answer = bytearray()
        self.closed = False
        self.over = False
        self.socket = None

    def step(self, events):
        try:
            if events & select.POLLOUT and self.pieces:
                self._send()
            if events & ~select.POLLOUT:
                self._receive()
        except BlockingIOError:
            pass
        except (ConnectionResetError, BrokenPipeError):
            self.pieces = []
            with contextlib.suppress(OSError):
                while data := self.socket.recv(READ_BYTES):
                    self.answer += data
            self.closed = self.over = True

    def _send(self):
        data, pause_s = self.pieces[-1]
        sent = self.socket.send(data)
        if sent < len(data):
            self.pieces[-1] = data[sent:], pause_s
            return
        self.pieces.pop()
        if pause_s:
            self.not_before = time.monotonic() + pause_s
        if not self.pieces and self.cut:
            self.socket.shutdown(socket.SHUT_WR)

    def _receive(self):
        data = self.socket.recv(READ_BYTES)
        self.answer += data
        if not data:
            self.closed = self.over = True
        elif not self.cut and not self.pieces and self.answer.endswith(self.fence):
            if self.last:
                self.pieces, self.last = [(self.last, 0.0)], b""
            else:
                self.over = True


__all__ = ["LAYOUTS", "SLOW", "Link", "Sides", "Stuck", "Talk", "Turn", "fence_pair"]
