# SPDX-License-Identifier: BSD-3-Clause
"""A memcached of an earlier release, as far as clients can tell: a real one, with another version and
without what came later. Debian has the current one only.

    old = OldMemcached(memcached, "1.5.22")
    old.version = "1.6.45"      from the next connection on it is a new one
    old.cut()                   ends all connections, in the middle of whatever they do
    old.hangs = True            it shakes hands, and answers nothing else
    old.meta                    the meta commands that it was sent

Before 1.6.0 there are no meta commands, before 1.5.3 no `gat` and `gats`, before 1.4.8 no `touch`.
From 1.6.0 to 1.6.9 `mn` is answered EN, and `ms` takes the size of its value as a flag (S): what
today's clients send is an error, and their value one more command."""

import re
import select
import socket
import threading

from harness import HOST, TIMEOUT_S, free_port

STORES = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")
READS = (b"get", b"gets", b"gat", b"gats")
HANDSHAKE = (b"version", b"stats")
# What the lines of an answer begin with, but its last one.
MORE = {b"stats": (b"STAT",), **{verb: (b"VALUE",) for verb in READS}}
META = (b"mg", b"ms", b"md", b"ma", b"mn", b"me")


def numbers(version):
    return [int(part) for part in version.split(".")]


class OldMemcached:
    def __init__(self, memcached, version):
        self.memcached = memcached
        self.version = version
        self.hangs = False
        self.port = free_port()
        self.lock = threading.Lock()
        self.meta = []
        self.lines = []  # all that it was sent, without the handshake and data blocks
        self.sockets = set()
        self.listener = socket.create_server((HOST, self.port), backlog=100)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()

    def cut(self):
        with self.lock:
            sockets, self.sockets = self.sockets, set()
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            server = socket.create_connection((HOST, self.memcached.port), timeout=TIMEOUT_S)
        except OSError:
            client.close()
            return
        with self.lock:
            self.sockets |= {client, server}
        with client, server:
            try:
                Connection(self, client, server).run()
            except (OSError, EOFError):
                pass
            with self.lock:
                self.sockets -= {client, server}


class Connection:
    """One client: its requests go on together, as they have come in."""

    def __init__(self, old, client, server):
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.old, self.client, self.server = old, client, server
        self.version = old.version  # that of the process which this client has met
        self.asked = b""
        self.answers = b""

    def run(self):
        while data := self._next():
            self.asked += data
            requests = list(self._requests())
            self.server.sendall(b"".join(request for _, request, local in requests if local is None))
            for verb, _, local in requests:
                if self.old.hangs and verb not in HANDSHAKE:
                    while self.client.recv(65536):
                        pass
                    return
                self.client.sendall(self._answer(verb) if local is None else local)

    def _next(self):
        """What the client sends; nothing once either side has ended."""
        ready, _, _ = select.select([self.client, self.server], [], [])
        return b"" if self.server in ready else self.client.recv(65536)

    def _requests(self):
        """Those that are all there: the verb, the bytes, and an answer that needs no memcached."""
        while found := re.match(rb"([^\n]*?)\r?\n", self.asked):
            words = found.group(1).split()
            verb, size = words[0] if words else b"", found.end()
            local = self._own_answer(verb)
            if verb in STORES:
                size += int(words[4]) + 2
            elif verb == b"ms" and local is None:
                size += int(words[2]) + 2
            if len(self.asked) < size:
                return
            self._note(verb, found.group(1))
            request, self.asked = self.asked[:size], self.asked[size:]
            yield verb, request, local

    def _note(self, verb, line):
        with self.old.lock:
            if verb in META:
                self.old.meta.append(line)
            if verb not in HANDSHAKE:
                self.old.lines.append(line)

    def _own_answer(self, verb):
        now = numbers(self.version)
        if verb == b"version":
            return f"VERSION {self.version}\r\n".encode()
        if verb in META and now < [1, 6, 10]:
            if now < [1, 6, 0]:
                return b"ERROR\r\n"
            return b"EN\r\n" if verb == b"mn" else b"CLIENT_ERROR bad command line format\r\n"
        if verb in (b"gat", b"gats") and now < [1, 5, 3] or verb == b"touch" and now < [1, 4, 8]:
            return b"ERROR\r\n"
        return None

    def _more(self):
        data = self.server.recv(65536)
        if not data:
            raise EOFError
        self.answers += data

    def _take(self, size):
        while len(self.answers) < size:
            self._more()
        taken, self.answers = self.answers[:size], self.answers[size:]
        return taken

    def _line(self):
        while b"\n" not in self.answers:
            self._more()
        return self._take(self.answers.index(b"\n") + 1)

    def _answer(self, verb):
        whole = b""
        while True:
            line = self._line()
            whole += line
            words = line.split()
            if words[0] in (b"VALUE", b"VA"):
                whole += self._take(int(words[3 if words[0] == b"VALUE" else 1]) + 2)
            if words[0] not in MORE.get(verb, ()) and not words[0].startswith(b"key="):
                return whole
