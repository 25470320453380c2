# SPDX-License-Identifier: BSD-3-Clause
"""Very many connections in one thread: clients that ask now and then, clients that send one byte
per second, clients that leave in the middle of a request, and clients that do not read."""

import errno
import heapq
import itertools
import random
import re
import selectors
import socket
import struct
import threading
import time

import verbs
from cluster import CLIENT_HARD_BYTES, CLIENT_OUTPUT_BYTES
from harness import HOST

MANY = 1000
DRIBBLERS, QUITTERS = 24, 6
READERS_PER_PROXY = 4
LARGE_KEYS, LARGE_BYTES = 100, 1 << 20  # the value, some bytes less, so that it fits one item
LARGE_VALUE_BYTES = LARGE_BYTES - 1000
HUGE_KEY = "h-uge"
HUGE_ITEMS, HUGE_ITEM_BYTES = 20_000, 100  # with the delimiter
HUGE_BYTES = HUGE_ITEMS * HUGE_ITEM_BYTES


class Member:
    """A connection, again and again. Subclasses say what it sends and what it makes of answers."""

    def __init__(self, crowd, proxy, seed):
        self.crowd, self.proxy = crowd, proxy
        self.rng = random.Random(f"member {seed}")
        self.socket = None
        self.process = 0
        self.connected_ns = 0
        self.rest = b""  # still to be sent
        self.received = b""
        self.waits_since_ns = None  # a request was sent as a whole, and is not answered

    def open(self):
        self.socket = socket.socket()
        self.prepare()
        self.socket.setblocking(False)
        self.connected_ns = time.monotonic_ns()
        self.process = self.crowd.history.new_process()
        self.rest = self.received = b""
        self.waits_since_ns = None
        code = self.socket.connect_ex((HOST, self.proxy.port))
        if code not in (0, errno.EINPROGRESS):
            self.reopen(0.1)
            return
        self.crowd.selector.register(self.socket, selectors.EVENT_READ, self)
        self.crowd.wake_in(self.pause_s(), self, self.connected_ns)

    def prepare(self):
        """Before it connects."""

    def close(self, reset=False):
        if self.socket is None:
            return
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            self.crowd.selector.unregister(self.socket)
        except KeyError:
            pass
        self.socket.close()
        self.socket = None

    def reopen(self, in_s):
        self.close()
        self.connected_ns = 0
        self.crowd.wake_in(in_s, self, 0)

    def lost(self, reason):
        """The proxy has closed it, or never took it."""
        if not self.proxy.was_killed(self.connected_ns):
            raise verbs.Fault(f"{type(self).__name__}: closed by proxy {self.proxy.number}, which "
                              f"was not killed: {reason}; last received {self.received[-200:]!r}")
        self.gave_up()
        self.reopen(self.rng.uniform(0.05, 0.3))

    def gave_up(self):
        """What was asked is not going to be answered."""

    def send(self):
        """Sends as much of the rest as goes."""
        try:
            sent = self.socket.send(self.rest)
        except BlockingIOError:
            sent = 0
        self.rest = self.rest[sent:]

    def on_readable(self):
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return
        if not data:
            raise EOFError("end of file")
        self.received += data
        self.on_data()

    def on_wake(self):
        """Its time has come."""

    def on_data(self):
        raise verbs.Fault(f"{type(self).__name__}: an answer to nothing: {self.received!r}")


class Asker(Member):
    """Two reads, every few seconds."""

    def pause_s(self):
        return self.rng.uniform(0.5, 6)

    def on_wake(self):
        if self.waits_since_ns is not None:
            self.crowd.patience.check(self.proxy, self.waits_since_ns, "one of the crowd")
            self.crowd.wake_in(1, self, self.connected_ns)
            return
        self.list = self.rng.choices(verbs.LISTS, verbs.WEIGHTS)[0]
        self.item = b"item-%d" % self.rng.randrange(self.list.universe)
        key = self.list.key.encode()
        self.rest = b"llen %s\r\nlhas %s %s\r\nmn\r\n" % (key, key, self.item)
        self.waits_since_ns = time.monotonic_ns()
        self.send()
        if self.rest:
            raise OSError("a short request does not fit the socket")
        self.crowd.wake_in(1, self, self.connected_ns)

    def on_data(self):
        if self.waits_since_ns is None:
            super().on_data()
        if not self.received.endswith(b"MN\r\n"):
            return
        now_ns = time.monotonic_ns()
        conn = Received(self.received)
        for form, words in (("llen", ()), ("lhas", (self.item,))):
            request = verbs.Request(form, form, (self.list,), words)
            outcomes = verbs.take_answer(conn, request)
            verbs.record(self.crowd.history, request, self.waits_since_ns, now_ns, self.process,
                         outcomes)
        if conn.buffer != b"MN\r\n":
            raise verbs.Fault(f"one of the crowd: more than was asked for: {self.received!r}")
        self.crowd.patience.note(self.proxy, self.waits_since_ns)
        self.crowd.answers += 1
        self.received = b""
        self.waits_since_ns = None


class Received:
    """An answer that has come as a whole, to be read like a connection."""

    def __init__(self, data):
        self.buffer = data

    def line(self):
        line, mark, self.buffer = self.buffer.partition(b"\r\n")
        if not mark:
            raise verbs.Fault(f"half an answer: {line!r}")
        return line

    def data(self, size):
        block, self.buffer = self.buffer[:size], self.buffer[size:]
        if self.line() != b"" or len(block) != size:
            raise verbs.Fault(f"a data block that is not {size} bytes long: {block!r}")
        return block


class Dribbler(Member):
    """A change, one byte per second or a little faster."""

    def __init__(self, crowd, proxy, seed):
        super().__init__(crowd, proxy, seed)
        self.step_s = self.rng.choice([1, 0.2, 0.05])

    def pause_s(self):
        return self.step_s

    def draw(self):
        self.list = self.rng.choices(verbs.LISTS, verbs.WEIGHTS)[0]
        self.item = b"item-%d" % self.rng.randrange(self.list.universe)
        self.rest = b"ladd %s %s\r\n" % (self.list.key.encode(), self.item)

    def on_wake(self):
        if self.waits_since_ns is not None:
            self.crowd.patience.check(self.proxy, self.waits_since_ns, "a client that is slow")
        elif not self.rest:
            self.draw()
        else:
            if len(self.rest) == 1:
                self.waits_since_ns = time.monotonic_ns()
            self.rest = self.rest[self.socket.send(self.rest[:1]) :]
        self.crowd.wake_in(self.step_s, self, self.connected_ns)

    def request(self):
        return verbs.Request("ladd", "ladd", (self.list,), (self.item,))

    def on_data(self):
        if self.waits_since_ns is None:
            super().on_data()
        if not self.received.endswith(b"\r\n"):
            return
        outcomes = verbs.take_answer(Received(self.received), self.request())
        verbs.record(self.crowd.history, self.request(), self.waits_since_ns, time.monotonic_ns(),
                     self.process, outcomes)
        self.crowd.dribbled += 1
        self.received = b""
        self.waits_since_ns = None

    def gave_up(self):
        if self.waits_since_ns is not None:
            verbs.record(self.crowd.history, self.request(), self.waits_since_ns, None,
                         self.process, None)


class Quitter(Member):
    """Sends a few requests and half of one more, and leaves. No other client has the items of the half
    one, so a history in which it was done is refused."""

    def pause_s(self):
        return self.rng.uniform(0, 0.6)

    def on_wake(self):
        if self.waits_since_ns is not None:
            self.close(reset=self.rng.random() < 0.5)
            self.crowd.quits += 1
            self.open()
            return
        whole = [verbs.draw_request(self.rng) for _ in range(self.rng.randrange(2))]
        last = self.rng.choices(verbs.LISTS, verbs.WEIGHTS)[0].key.encode()
        half = self.rng.choice([
            b"ladd %s never-a never-b\r\n" % last,
            b"lset %s never-c\r\n" % last,
            b"laddb %s 20\r\nnever-ddddddddddddd\r\n" % last,
            b"laddx %s never-e\r\n" % last,
        ])
        self.waits_since_ns = time.monotonic_ns()
        self.rest = b"".join(request.text() for request in whole)
        self.rest += half[: self.rng.randrange(1, len(half) - 1)]
        for request in whole:
            verbs.record(self.crowd.history, request, self.waits_since_ns, None, self.process, None)
        self.send()
        self.crowd.wake_in(self.pause_s(), self, self.connected_ns)

    def on_data(self):
        self.received = b""


class Reader(Member):
    """Asks for much and reads nothing until the end."""

    def prepare(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def pause_s(self):
        return 0.2

    def open(self):
        super().open()
        if self.socket is not None:
            self.crowd.selector.unregister(self.socket)

    def script(self):
        raise NotImplementedError

    def on_wake(self):
        if self.waits_since_ns is None:
            self.waits_since_ns = time.monotonic_ns()
            self.rest = self.script()
        if self.rest:
            self.send()
        if self.proxy.was_killed(self.connected_ns):
            self.reopen(0.2)
        else:
            self.crowd.wake_in(1, self, self.connected_ns)


class ValueReader(Reader):
    """100 MB; at the end it reads more than what waits in sockets."""

    AT_END_BYTES = 8 << 20
    # A value that could not be had is left out, and an error stands at the end.
    BEGINNING = re.compile(
        rb"VALUE large[0-9]+ 0 %d\r\n|SERVER_ERROR backend .*\r\n" % LARGE_VALUE_BYTES
    )

    def script(self):
        return b"get " + b" ".join(b"large%d" % n for n in range(LARGE_KEYS)) + b"\r\n"


class ListReader(Reader):
    """Ten times more than a client may leave unread, in one go."""

    TIMES = 10 * CLIENT_HARD_BYTES // HUGE_BYTES
    AT_END_BYTES = TIMES * HUGE_BYTES
    BEGINNING = re.compile(
        rb"VALUE h-uge 0 %d\r\n|SERVER_ERROR .*\r\n" % (HUGE_BYTES - 1)
    )

    def script(self):
        return b"lget %s\r\n" % HUGE_KEY.encode() * self.TIMES


class Crowd(threading.Thread):
    def __init__(self, cluster, history, patience, seed):
        super().__init__(name="crowd", daemon=True)
        self.history, self.patience = history, patience
        self.selector = selectors.DefaultSelector()
        self.agenda, self.numbers = [], itertools.count()
        self.ending = threading.Event()
        self.fault = None
        self.answers = self.dribbled = self.quits = 0
        kinds = [Asker] * MANY + [Dribbler] * DRIBBLERS + [Quitter] * QUITTERS
        pair = [ValueReader, ListReader]
        kinds += pair * (READERS_PER_PROXY * len(cluster.proxies) // len(pair))
        # In pairs of kinds, so that each proxy has as many readers of each kind as any other.
        self.members = [
            kind(self, cluster.proxies[n // 2 % len(cluster.proxies)], f"{seed} {n}")
            for n, kind in enumerate(kinds)
        ]

    def wake_in(self, in_s, member, connected_ns):
        """connected_ns: of the connection that it is for; 0 when there is none."""
        due = time.monotonic() + in_s
        heapq.heappush(self.agenda, (due, next(self.numbers), member, connected_ns))

    def run(self):
        try:
            for member in self.members:
                member.open()
            while not self.ending.is_set():
                self.turn()
        except BaseException as fault:  # told by the scenario
            self.fault = fault

    def turn(self):
        wait_s = max(self.agenda[0][0] - time.monotonic(), 0) if self.agenda else 0.1
        for key, _ in self.selector.select(min(wait_s, 0.1)):
            member = key.data
            if member.socket is key.fileobj:
                self.guarded(member, member.on_readable)
        while self.agenda and self.agenda[0][0] <= time.monotonic():
            _, _, member, connected_ns = heapq.heappop(self.agenda)
            if connected_ns != member.connected_ns:
                continue
            if member.socket is None:
                member.open()
            else:
                self.guarded(member, member.on_wake)

    def guarded(self, member, action):
        try:
            action()
        except (OSError, EOFError) as reason:
            member.lost(reason)

    def open_count(self):
        return sum(1 for member in self.members if member.socket is not None)

    def stop(self):
        """The readers read at last: what comes must be the beginning of the answer."""
        self.ending.set()
        self.join()
        readers = [member for member in self.members if isinstance(member, Reader)]
        try:
            for reader in readers:
                if not self.fault and reader.socket is not None:
                    self.read_beginning(reader)
        except (OSError, verbs.Fault) as fault:
            self.fault = fault
        for member in self.members:
            member.gave_up()
            member.close()

    def read_beginning(self, member):
        """A reader that was paused, not closed, gets what it has asked for."""
        if member.waits_since_ns is None or member.proxy.was_killed(member.connected_ns):
            return
        member.socket.settimeout(0.5)
        member.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        parts, size = [], 0
        while size < member.AT_END_BYTES:
            try:
                parts.append(member.socket.recv(1 << 20))
            except TimeoutError:
                if parts and parts[-1].endswith(b"\r\n"):
                    break  # an error has ended the answer
                self.patience.check(member.proxy, member.waits_since_ns, "a slow reader")
                continue
            except ConnectionResetError:
                parts.append(b"")
            if not parts[-1]:
                raise verbs.Fault(f"a slow reader was closed, having read {size} bytes")
            size += len(parts[-1])
        found = b"".join(parts)
        if not member.BEGINNING.match(found):
            raise verbs.Fault(f"a slow reader got {found[:200]!r}")
