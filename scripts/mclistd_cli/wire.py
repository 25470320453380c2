# SPDX-License-Identifier: BSD-3-Clause
"""A connection to the proxy, or to a memcached. Behind each request goes an `mn`, which is answered
when everything before it is: so an answer has an end, whatever the request was and however many
lines it draws, and a quiet request has one as well."""

import re
import select
import socket

from mclistd_cli.words import to_bytes
from mclistd_convert.prefix import best_of, prefix_of, unescaped

PORT = 11220
CONNECT_TIMEOUT_S = 5
LINE_BYTES_MAX = 1 << 20
BLOCK_BYTES_MAX = 1 << 28  # four times what the proxy's largest setting of an answer is by default
READ_BYTES = 1 << 16
NUMBER_DIGITS_MAX = 20  # of 64 bits
BARRIER = b"mn\r\n"
HEAD = re.compile(rb"(VALUE) (\S+) (\d+) (\d+)(?: (\d+))?|(ITEM) (\S+) (\d+)|(VA) (\d+)( .*)?")


class Lost(Exception):
    """The connection is gone; the text says what is known."""


class BadAddress(ValueError):
    pass


class Address:
    """HOST, HOST:PORT, [IPv6]:PORT, PORT, unix:PATH or a path."""

    def __init__(self, text):
        self.path = None
        if text.startswith("unix:"):
            self.path = text[5:]
        elif "/" in text:
            self.path = text
        if self.path is not None:
            self.name = f"unix:{self.path}"
            return
        found = re.fullmatch(r"\[([^]]+)\](?::([0-9]+))?|([^:]*)(?::([0-9]+))?|(.*:.*:.*)", text)
        if not found:
            raise BadAddress(f"{text!r} is no address; expected HOST, HOST:PORT or a socket's path")
        self.host = found[1] or found[3] or found[5] or "127.0.0.1"
        port = found[2] or found[4]
        if re.fullmatch("[0-9]+", self.host) and port is None:
            self.host, port = "127.0.0.1", self.host
        self.port = int(port[:6]) if port else PORT
        if not 0 < self.port < 65536:
            raise BadAddress(f"{text!r}: a port is a number from 1 to 65535")
        self.name = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def connect(self):
        """Returns a socket. Raises OSError."""
        if self.path is None:
            try:
                found = socket.create_connection((self.host, self.port), timeout=CONNECT_TIMEOUT_S)
            except UnicodeError:
                raise OSError("no host can have that name") from None
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found
        found = socket.socket(socket.AF_UNIX)
        try:
            found.settimeout(CONNECT_TIMEOUT_S)
            found.connect(self.path)
        except OSError:
            found.close()
            raise
        return found


def number_of(text):
    """0 where it is none of 64 bits."""
    is_number = text.isdigit() and text.isascii() and len(text) <= NUMBER_DIGITS_MAX
    return int(text) if is_number else 0


class Answer:
    """One part of an answer. kind: value, item, meta, stat, end or line."""

    def __init__(self, kind, line, key=None, data=None, number=None):
        self.kind, self.line, self.key, self.data, self.number = kind, line, key, data, number

    @property
    def is_error(self):
        return self.kind == "line" and self.line.split(b" ")[0].endswith(b"ERROR")


def reason(error):
    if isinstance(error, socket.timeout):
        return "no answer in time"
    return error.strerror or str(error)


class Connection:
    """Connects when it is asked something, and again when the connection was lost meanwhile."""

    def __init__(self, address, timeout_s=None, trace=None):
        self.address, self.timeout_s, self.trace = address, timeout_s, trace
        self.socket, self.buffer, self.version = None, bytearray(), None
        self.delimiters = None  # {prefix of keys: bytes or None}, when they have been asked for

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket, self.delimiters = None, None

    def _lose(self, text):
        self.close()
        raise Lost(text)

    def connect(self):
        """Raises Lost."""
        if self.socket is not None:
            return
        self.buffer = bytearray()
        trace, self.trace = self.trace, None
        try:
            self.socket = self.address.connect()
            self.socket.settimeout(CONNECT_TIMEOUT_S)
            for answer in self._talk(b"version\r\n"):
                self._take_version(answer.line)
            self.socket.settimeout(self.timeout_s)
        except OSError as error:
            self._lose(f"{self.address.name} does not answer: {reason(error)}")
        except Lost as fault:
            raise Lost(f"{self.address.name}: {fault}") from None
        finally:
            self.trace = trace

    def _take_version(self, line):
        if not line.startswith(b"VERSION "):
            self._lose(f"neither mclistd nor a memcached of version 1.6, it answers {line[:80]!r}")
        self.version = line[8:].decode(errors="replace")

    @property
    def is_proxy(self):
        return self.version is not None and "mclistd" in self.version

    def is_gone(self):
        """Has the other side closed the connection while nothing was asked? Then it is closed
        here, too."""
        if self.socket is None:
            return True
        readable, _, _ = select.select([self.socket], [], [], 0)
        if readable:  # nothing was asked: the end, or a line about it
            self.close()
        return bool(readable)

    def ask(self, request, barrier=True):
        """Yields the parts of the answer. Raises Lost; then the request may have been done."""
        self.connect()
        yield from self._talk(request, barrier)

    def _talk(self, request, barrier=True):
        if self.trace:
            self.trace(True, request)
        try:
            self.socket.sendall(request + (BARRIER if barrier else b""))
            while True:
                answer = self._answer()
                if answer.line == b"MN" and barrier:
                    return
                yield answer
                if not barrier:
                    return
        except OSError as error:
            self._lose(reason(error))

    def _answer(self):
        line = self._line()
        if self.trace and line != b"MN":
            self.trace(False, line + b"\r\n")
        head = HEAD.fullmatch(line)
        if not head:
            kind = "end" if line == b"END" else "stat" if line.startswith(b"STAT ") else "line"
            return Answer(kind, line)
        if any(len(head[i] or b"") > NUMBER_DIGITS_MAX for i in (4, 5, 8, 10)):
            self._lose("a number of the answer is no number of 64 bits")
        if head[1]:
            number = None if head[5] is None else int(head[5])
            return Answer("value", line, head[2], self._block(int(head[4])), number)
        if head[6]:
            return Answer("item", line, head[7], self._block(int(head[8])))
        return Answer("meta", line, None, self._block(int(head[10])))

    def _more(self):
        data = self.socket.recv(READ_BYTES)
        if not data:
            self._lose("the connection was closed before the answer")
        self.buffer += data

    def _line(self):
        searched = 0
        while (end := self.buffer.find(b"\n", searched)) < 0:
            searched = len(self.buffer)
            if searched > LINE_BYTES_MAX:
                self._lose(f"a line of the answer is longer than {LINE_BYTES_MAX} bytes")
            self._more()
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line[:-1] if line.endswith(b"\r") else line

    def _block(self, size):
        if size > BLOCK_BYTES_MAX:
            self._lose(f"a value of the answer is longer than {BLOCK_BYTES_MAX} bytes")
        while len(self.buffer) < size + 2:
            self._more()
        data = bytes(self.buffer[:size])
        if self.buffer[size : size + 2] != b"\r\n":
            self._lose("the answer is out of step: no line end behind a value")
        del self.buffer[: size + 2]
        if self.trace:
            self.trace(False, data + b"\r\n")
        return data

    # --- what the prompt itself asks ---

    def _ask_untraced(self, line):
        trace, self.trace = self.trace, None
        try:
            return list(self.ask(line + b"\r\n"))
        finally:
            self.trace = trace

    def stats(self, name=b""):
        """{name: value}; empty where the answer is an error. Raises Lost."""
        found = {}
        for answer in self._ask_untraced(b"stats " + name if name else b"stats"):
            if answer.kind == "stat":
                words = answer.line.decode(errors="surrogateescape").split(" ", 2)
                found[words[1]] = words[2] if len(words) > 2 else ""
        return found

    def number(self, request):
        """The number that is answered; 0 where it is none. Raises Lost."""
        lines = [answer.line for answer in self._ask_untraced(request)]
        return number_of(lines[0]) if lines else 0

    def delimiter_of(self, key):
        """What stands between the items of that list in an answer; None for nothing."""
        if self.delimiters is None:
            self.delimiters = {b"": b","}
            for name, value in self.stats(b"settings").items():
                found = re.fullmatch(r"lists:(?:(.*):)?delimiter", name)
                if found:
                    byte = None if value == "none" else unescaped(to_bytes(value))
                    self.delimiters[prefix_of(to_bytes(found[1] or ""))] = byte
        return self.delimiters[best_of(self.delimiters, key)]
