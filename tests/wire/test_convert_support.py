# SPDX-License-Identifier: BSD-3-Clause
"""What the test_convert*.py files share. No tests here."""

import collections
import itertools
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.parse

from harness import ROOT, TIMEOUT_S
from test_dialects_support import DIALECTS, ONE_ITEM

CAPACITY = 100        # of a ring, at least
SUBLIST_ITEMS = 5000  # in each sublist that is stored for a test


def sections(dialect, migrate="native", **more):
    """Of lists whose keys begin with topic-."""
    if dialect == "native":
        return {"lists topic-": {"dialect": "native"}}
    settings = {"dialect": dialect, "migrate": migrate, **more}
    if dialect != "ring":
        settings.setdefault("compact_chance", 0)
    return {"lists topic-": settings}


def stored(dialect, key, items):
    """{name: value} of what an application has stored of such a list."""
    delimited = ",".join(items) + ","
    signed = "+" + "+".join(items)
    if dialect == "simple":
        return {key: delimited}
    if dialect == "tombstone":
        return {key: f"gone,|gone,{delimited}"}
    if dialect == "signed":
        return {key: f"+gone{signed}-gone"}
    if dialect == "paired":
        return {f"follow-{key}": f"gone,{delimited}", f"unfollow-{key}": "gone,"}
    if dialect == "flip":
        return {f"{key}.active": f"{key}.b", f"{key}.b": f"+gone{signed}-gone"}
    if dialect == "marker":
        return {f"{key}.a": f"+gone{signed}-gone"}
    if dialect == "sublists":
        starts = range(0, len(items), SUBLIST_ITEMS)
        found = {key: "".join(f"+{n}" for n in range(len(starts)))}
        for number, start in enumerate(starts):
            found[f"{key}.{number}"] = "+" + "+".join(items[start : start + SUBLIST_ITEMS])
        return found
    found = {f"{key}.seq": str(len(items))}
    for number, item in enumerate(items, 1):
        found[f"{key}.{number % max(CAPACITY, len(items))}"] = f"{number} {item}"
    return found


def store(memcached, dialect, key, items, exptime=0):
    lines = []
    for name, value in stored(dialect, key, items).items():
        lines.append(f"set {name} 0 {exptime} {len(value)} noreply\r\n{value}\r\n")
    with memcached.conn() as conn:
        conn.send("".join(lines), "version\r\n")
        assert conn.line().startswith(b"VERSION")


def dump(memcached, way):
    with memcached.conn() as conn:
        conn.send(f"lru_crawler metadump {way}\r\n")
        with conn.socket.makefile("rb") as file:
            while not (line := file.readline()).startswith(b"END"):
                if line.startswith((b"BUSY", b"LOCKED")):  # the crawler does one thing at a time
                    time.sleep(0.02)
                    conn.send(f"lru_crawler metadump {way}\r\n")
                    continue
                assert line.startswith(b"key="), line
                yield urllib.parse.unquote(line.decode().split()[0][4:])


def names_stored(memcached):
    """Of all items. A dump through the LRU lists leaves out what is in use, or moved to another of
    them, at that moment, and one through the hash table what comes while that grows: both ways,
    until nothing new comes."""
    names, quiet = set(), 0
    while quiet < 2:
        found = {*dump(memcached, "hash"), *dump(memcached, "all")}
        quiet = quiet + 1 if found <= names else 0
        names |= found
        time.sleep(0.02)
    return sorted(names)


def old_names(memcached):
    """Names of items that no native list has."""
    return [name for name in names_stored(memcached) if "#" not in name]


class Server:
    """Serves each connection with a handler, in a thread, while it is entered."""

    def __init__(self, handler):
        class Threads(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.server = Threads(("127.0.0.1", 0), handler)
        self.port = self.server.server_address[1]
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()


class Fake(Server):
    """Answers each line of each client with answer(line, n), n from 0 for the first of such lines."""

    def __init__(self, answer):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                for line in self.rfile:
                    text = line.decode().strip()
                    self.wfile.write(answer(text, next(numbers[text])).encode())

        numbers = collections.defaultdict(itertools.count)
        super().__init__(Handler)


class Lister(Server):
    """A way to a memcached that leaves out items when it names them: those of which
    hides(name, n) says so, n from 0 for the first time. way: only when it is asked so.
    knows_hash: or it is an old one that has no such way."""

    def __init__(self, memcached, hides, way=b"", knows_hash=True):
        numbers = itertools.count()

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with memcached.conn() as conn:
                    reader = threading.Thread(target=self.pass_back, args=(conn.socket,))
                    reader.start()
                    for line in self.rfile:
                        if line == b"lru_crawler metadump hash\r\n" and not knows_hash:
                            self.wfile.write(b"BADCLASS invalid class id\r\n")
                        elif line.startswith(b"lru_crawler metadump"):
                            self.dump(line, next(numbers), way in line)
                        else:
                            conn.socket.sendall(line)
                    conn.socket.shutdown(socket.SHUT_RDWR)
                    reader.join()

            def pass_back(self, upstream):
                try:
                    while data := upstream.recv(65536):
                        self.wfile.write(data)
                except OSError:
                    pass

            def dump(self, line, number, hiding):
                with memcached.conn() as conn:
                    conn.send(line)
                    with conn.socket.makefile("rb") as file:
                        for answer in file:
                            words = urllib.parse.unquote(answer.decode()).split()
                            name = words[0][4:]
                            if words[0] == "END" or not (hiding and hides(name, number)):
                                self.wfile.write(answer)
                            if words[0] == "END":
                                return

        super().__init__(Handler)


def items_of(count):
    return [f"user.{n}" for n in range(count)]


def as_bytes(items):
    return [item.encode() for item in items]


def shown(dialect, items):
    """As a list of the dialect shows what was added in this order."""
    return as_bytes(items)[::-1] if dialect == "ring" else as_bytes(items)


def convert(daemons, *args, keys=None, prefix="topic-", timeout_s=20 * TIMEOUT_S):
    proxies = [f"--proxy=127.0.0.1:{daemon.port}" for daemon in daemons]
    command = [sys.executable, str(ROOT / "scripts/convert"), prefix, *proxies, *map(str, args)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        input=None if keys is None else "".join(f"{key}\n" for key in keys),
    )


__all__ = ["DIALECTS", "ONE_ITEM"]
