# SPDX-License-Identifier: BSD-3-Clause
"""What the test_dialects_*.py files share. No tests here."""

import re
import socket
import threading

from harness import HOST, TIMEOUT_S, Conn, free_port, wait_until

ONE_ITEM = ("simple", "tombstone", "signed")
SEVERAL_ITEMS = ("paired", "flip", "marker", "sublists")
SETS = ONE_ITEM + SEVERAL_ITEMS  # a ring has places, not members
DIALECTS = SETS + ("ring",)
DELIMITED = ("simple", "tombstone", "paired")

# How the text of a value that is no list of the dialect ends.
ADVICE = (b", nothing done; ldrop topic-X removes it",
          b", nothing done; what stands before that byte can be read: mend the value by hand",
          b", nothing done; do slot and capacity say what clients write?")


def settings(dialect, **more):
    """The section of lists whose keys begin with topic-."""
    return {"lists topic-": {"dialect": dialect, **more}}


def blind(dialect, **more):
    """The same with changes that are appended, as clients by hand append them, in each dialect."""
    counted = {"changes": "blind"} if dialect in ("tombstone", "paired") else {}
    return settings(dialect, **counted, **more)


def lists_by_dialect(**more):
    """A section per dialect: its lists are called DIALECT-..."""
    return {f"lists {name}-": {"dialect": name, **more} for name in DIALECTS}


def wait_for_items(conn, key, items):
    wait_until(f"{key} has {items}", lambda: conn.lget(key) == items)


class Hand:
    """An application that keeps its lists itself, over a plain socket to memcached. Each dialect has
    its add and its delete, written as the manual does it."""

    def __init__(self, port):
        self.conn = Conn(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.conn.close()

    def store(self, verb, key, text):
        body = text if isinstance(text, bytes) else text.encode()
        return self.conn.cmd(f"{verb} {key} 0 0 {len(body)}", body) == b"STORED"

    def get(self, key):
        return self.conn.get(key)

    def gets(self, key):
        found = self.conn.values(f"gets {key}")
        return (found[0][2], found[0][1][2]) if found else (None, None)

    def cas(self, key, text, number):
        return self.conn.cmd(f"cas {key} 0 0 {len(text)} {number}", text) == b"STORED"

    def put_behind(self, key, text, when_missing=None):
        while not self.store("append", key, text):
            if self.store("add", key, text if when_missing is None else when_missing):
                return

    def add(self, dialect, key, item):
        getattr(self, "add_" + dialect)(key, item)

    def delete(self, dialect, key, item):
        getattr(self, "delete_" + dialect)(key, item)

    def add_simple(self, key, item):
        self.put_behind(key, f"{item},")

    def delete_simple(self, key, item):
        while True:
            text, number = self.gets(key)
            if text is None:
                return
            kept = [piece for piece in text.split(b",") if piece not in (b"", item.encode())]
            if self.cas(key, b"".join(piece + b"," for piece in kept), number):
                return

    def add_tombstone(self, key, item):
        self.put_behind(key, f"{item},", f"|{item},")

    def delete_tombstone(self, key, item):
        self.store("prepend", key, f"{item},")

    def add_signed(self, key, item):
        self.put_behind(key, f"+{item}")

    def delete_signed(self, key, item):
        self.put_behind(key, f"-{item}")

    def add_paired(self, key, item):
        self.put_behind(f"follow-{key}", f"{item},")

    def delete_paired(self, key, item):
        self.put_behind(f"unfollow-{key}", f"{item},")

    def active_log(self, key):
        active = self.get(f"{key}.active")
        if active is None:
            self.store("add", f"{key}.active", f"{key}.a")
            active = self.get(f"{key}.active")
        return {b"a": f"{key}.a", b"b": f"{key}.b"}.get(active, active.decode())

    def add_flip(self, key, item):
        self.put_behind(self.active_log(key), f"+{item}")

    def delete_flip(self, key, item):
        self.put_behind(self.active_log(key), f"-{item}")

    def open_log(self, key):
        """The log that is there and not closed, or the first one."""
        for name in (f"{key}.a", f"{key}.b"):
            text = self.get(name)
            if text is not None and not text.startswith(b"^"):
                return name
        return f"{key}.b" if self.get(f"{key}.a") else f"{key}.a"

    def add_marker(self, key, item):
        self.put_behind(self.open_log(key), f"+{item}")

    def delete_marker(self, key, item):
        self.put_behind(self.open_log(key), f"-{item}")

    def newest_sublist(self, key):
        self.store("add", key, "+0")
        numbers = folded(self.get(key))
        return f"{key}.{max(map(int, numbers))}"

    def add_sublists(self, key, item):
        self.put_behind(self.newest_sublist(key), f"+{item}")

    def delete_sublists(self, key, item):
        self.put_behind(self.newest_sublist(key), f"-{item}")

    def add_ring(self, key, item, capacity=100):
        self.store("add", f"{key}.seq", "0")
        number = int(self.conn.cmd(f"incr {key}.seq 1"))
        self.store("set", f"{key}.{number % capacity}", f"{number} {item}")

    def read(self, dialect, key):
        """The items as that application sees them."""
        return getattr(self, "read_" + dialect)(key)

    def read_simple(self, key):
        return unique((self.get(key) or b"").split(b","))

    def read_tombstone(self, key):
        before, bar, behind = (self.get(key) or b"").partition(b"|")
        return counted(behind, before) if bar else counted(before, b"")

    def read_signed(self, key):
        return folded(self.get(key))

    def read_paired(self, key):
        return counted(self.get(f"follow-{key}") or b"", self.get(f"unfollow-{key}") or b"")

    def read_flip(self, key):
        """Both logs, the active one last."""
        names = [f"{key}.a", f"{key}.b"]
        if self.active_log(key) == names[0]:
            names.reverse()
        return folded(b"".join(self.get(name) or b"" for name in names))

    def read_marker(self, key):
        texts = [self.get(name) or b"" for name in (f"{key}.a", f"{key}.b")]
        texts.sort(key=lambda text: not text.startswith(b"^"))
        return folded(b"".join(text.lstrip(b"^") for text in texts))

    def read_sublists(self, key):
        numbers = sorted(int(number) for number in folded(self.get(key)))
        return folded(b"".join(self.get(f"{key}.{number}") or b"" for number in numbers))

    def read_ring(self, key, capacity=100):
        last = int(self.get(f"{key}.seq") or 0)
        slots = [self.get(f"{key}.{n}") for n in range(capacity)]
        entries = [slot.partition(b" ") for slot in slots if slot is not None]
        found = {int(number): item for number, _, item in entries if last - int(number) < capacity}
        return [found[number] for number in sorted(found, reverse=True)]


def unique(pieces):
    return list(dict.fromkeys(piece for piece in pieces if piece))


def counted(adds, deletes):
    left = [piece for piece in deletes.split(b",") if piece]
    found = []
    for piece in adds.split(b","):
        if piece in left:
            left.remove(piece)
        elif piece:
            found.append(piece)
    return unique(found)


def folded(text):
    """Of a signed log: the later sign wins."""
    items = {}
    for sign, item in re.findall(rb"([+-])([^+-]+)", text or b""):
        if sign == b"-":
            items.pop(item, None)
        else:
            items.setdefault(item)
    return list(items)


class Relay:
    """Stands between the proxy and a memcached, takes down what goes by, and stops on order:

    relay.hold_after(3)         the next three changes pass; the fourth one, and all behind it, wait
    relay.held.wait()           until it has come
    relay.release()             all passes again
    """

    CHANGES = (b"ms", b"md", b"ma", b"set", b"add", b"cas", b"append", b"prepend", b"delete", b"incr")

    def __init__(self, server):
        self.server_port = server.port
        self.port = free_port()
        self.lock = threading.Lock()
        self.packets = []  # what each recv() brought
        self.lines = []
        self.allowed = None  # changes that may still pass; None: any number
        self.held = threading.Event()
        self.released = threading.Event()
        self.stopping = False
        self.sockets = []
        self.listener = socket.create_server((HOST, self.port), backlog=100)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    def forget(self):
        with self.lock:
            self.packets.clear()
            self.lines.clear()

    def hold_after(self, changes):
        with self.lock:
            self.allowed = changes
            self.held.clear()
            self.released.clear()

    def release(self):
        with self.lock:
            self.allowed = None
        self.released.set()

    def wait_until_held_or(self, done):
        """True: it holds; False: done() came true before that."""
        wait_until("a change is held, or all is done", lambda: self.held.is_set() or done())
        return self.held.is_set()

    def stop(self):
        """What is held is never sent."""
        if self.stopping:
            return
        self.stopping = True
        self.released.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in self.sockets:
            sock.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection((HOST, self.server_port), timeout=TIMEOUT_S)
            except OSError:
                return
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(None)
            self.sockets += [client, server]
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _answers(self, client, server):
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except OSError:
            pass
        client.close()

    def _requests(self, client, server):
        buffer = b""
        try:
            while data := client.recv(1 << 20):
                with self.lock:
                    self.packets.append(data)
                buffer = self._forward(buffer + data, server)
        except OSError:
            pass
        server.close()

    def _forward(self, buffer, server):
        """Returns what is no whole request yet."""
        out = b""
        while (size := request_size(buffer)) is not None:
            line = buffer.split(b"\r\n", 1)[0]
            if self._is_to_wait(line):
                server.sendall(out)
                out = b""
                self.held.set()
                self.released.wait()
                if self.stopping:
                    raise OSError("the relay is stopped")
            out += buffer[:size]
            buffer = buffer[size:]
        server.sendall(out)
        return buffer

    def _is_to_wait(self, line):
        with self.lock:
            self.lines.append(line)
            if self.allowed is None or line.split(b" ")[0] not in self.CHANGES:
                return False
            self.allowed -= 1
            return self.allowed < 0


def request_size(buffer):
    """Of the first request, with its data block; None: it is not complete."""
    end = buffer.find(b"\r\n")
    if end < 0:
        return None
    words = buffer[:end].split()
    size = end + 2
    if words and words[0] in (b"set", b"add", b"replace", b"append", b"prepend", b"cas"):
        size += int(words[4]) + 2
    elif words and words[0] == b"ms":
        size += int(words[2]) + 2
    return size if len(buffer) >= size else None
