# SPDX-License-Identifier: BSD-3-Clause
"""Connections to proxies and memcacheds. A key from elsewhere may hold any bytes: those that are
not safe in a line are never written into one."""

import base64
import ipaddress
import re
import socket
import time
import urllib.parse

TIMEOUT_S = 120
GREETING_TIMEOUT_S = 10  # for a connection, and for a memcached's first answer
DUMP_TRIES = 100
DUMP_WAIT_S = 0.1
AT_ONCE = 64           # requests in one packet
DATA_BYTES_MAX = 1 << 30  # of an item: memcached takes no larger item_size_max
DAYS_30_S = 30 * 86400  # memcached takes longer times for dates
LIST_KEY = re.compile(rb"[^\x00-\x20\x7f]{1,220}")
ITEM_KEY = re.compile(rb"[^\x00-\x20\x7f]{1,250}")
NUMBER = re.compile(rb"-?[0-9]{1,20}")
ADDRESS = re.compile(r"unix:.+|(?:\[[^]]+\]|[^:]+):([0-9]{1,5})")


class Refused(Exception):
    """It must not start, or not go on."""


class Answer(Exception):
    """An error that a proxy or a memcached answered."""


def shown(data):
    """Bytes for a person, on one line."""
    text = data.decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def number_of(text):
    """Of an answer. Raises Answer where it is none of 64 bits, or is missing."""
    if text is None or not NUMBER.fullmatch(text):
        raise Answer(f"the answer has no number where one belongs: {shown((text or b'')[:80])}")
    return int(text)


def word_at(words, at):
    """Of an answer that was split; None where it ends before."""
    return words[at] if at < len(words) else None


def numbers_of(words, flags):
    """What an answer to a meta command has behind these flags, as number_of."""
    found = {word[:1]: word[1:] for word in words}
    return [number_of(found.get(flag)) for flag in flags]


def address_fault(text):
    """What is wrong with it for a person, or None."""
    match = ADDRESS.fullmatch(text)
    if not match:
        return f"{text}: expected HOST:PORT, [IPv6]:PORT or unix:PATH"
    if match[1] and not 1 <= int(match[1][:6]) <= 65535:
        return f"{text}: a port is a number from 1 to 65535"
    return None


def without_number(fault):
    """An OSError that says "Connection refused" without "[Errno 111]"."""
    return type(fault)(fault.strerror) if fault.strerror else fault


def connect(host, port):
    """A socket, connected to the address that the proxies use: IPv4 first, then the numerically
    lowest. Another one may be another server. Only of the loopback interface, the other family is
    taken where nothing listens."""

    def address_of(entry):
        return ipaddress.ip_address(entry[4][0].split("%")[0])

    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found.sort(key=lambda entry: (entry[0] != socket.AF_INET, address_of(entry).packed))
    chosen = found[:1]
    if all(address_of(entry).is_loopback for entry in found):
        chosen += [entry for entry in found if entry[0] != chosen[0][0]][:1]
    for family, kind, protocol, _, where in chosen:
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(GREETING_TIMEOUT_S)
        try:
            connection.connect(where)
            return connection
        except OSError as fault:
            connection.close()
            if not isinstance(fault, ConnectionRefusedError) or where == chosen[-1][4]:
                raise
    raise OSError(f"{host} has no address")


def open_socket(address):
    """To HOST:PORT or unix:PATH. It waits GREETING_TIMEOUT_S, then and for its answers."""
    try:
        if address.startswith("unix:"):
            found = socket.socket(socket.AF_UNIX)
            found.settimeout(GREETING_TIMEOUT_S)
            found.connect(address[5:])
        else:
            host, _, port = address.rpartition(":")
            found = connect(host.strip("[]"), int(port))
    except UnicodeError:
        raise OSError("no host can have that name") from None
    except OSError as fault:
        raise without_number(fault) from None
    return found


class Connection:
    """To a proxy or a memcached; raises OSError."""

    def __init__(self, address):
        self.socket = open_socket(address)
        if self.socket.family != socket.AF_UNIX:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        try:
            self.greet()
        except (OSError, Answer):
            self.close()
            raise
        self.socket.settimeout(TIMEOUT_S)

    def greet(self):
        """What is asked before anything else. Of a proxy: nothing."""

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *lines):
        self.socket.sendall(b"".join(line + b"\r\n" for line in lines))

    def line(self):
        try:
            line = self.file.readline()
        except OSError as fault:
            raise without_number(fault) from None
        if not line.endswith(b"\n"):
            raise OSError("connection closed")
        line = line.rstrip(b"\r\n")
        if line.split(b" ")[0] in (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR"):
            raise Answer(shown(line))
        return line

    def data(self, size):
        """size: as the answer has it. Raises Answer where it says no size, or another one."""
        count = number_of(size)
        if not 0 <= count <= DATA_BYTES_MAX:
            raise Answer(f"the answer has a value of {count} bytes")
        data = self.file.read(count + 2)
        if len(data) != count + 2:
            raise OSError("connection closed")
        if not data.endswith(b"\r\n"):
            raise Answer("the answer is out of step: no line end behind a value")
        return data[:-2]

    def stats(self, what):
        """{name: value}, bytes."""
        self.send(what)
        found = {}
        while (line := self.line()) != b"END":
            name, _, value = line[5:].partition(b" ")
            found[name] = value
        return found

    def joined(self):
        """The answer to lgets or lrange: the list as one text, and its version."""
        text, version = b"", None
        while (line := self.line()) != b"END":
            words = line.split(b" ")
            text, version = self.data(word_at(words, 3)), words[4:]
        return text, version

    def items(self):
        """The answer to lgetb."""
        found = []
        while (line := self.line()) != b"END":
            found.append(self.data(word_at(line.split(b" "), 2)))
        return found


# --- memcached -------------------------------------------------------------------------------------


class Item:
    """As a memcached has it. ttl_s: what is left; -1: it does not expire. idle_s: since it was
    written or read, where that was asked for."""

    def __init__(self, value, flags, ttl_s, cas, idle_s=None):
        self.value, self.flags, self.ttl_s, self.cas = value, flags, ttl_s, cas
        self.idle_s = idle_s


# Of mg: what an Item is made of.
ITEM_FLAGS = (b"f", b"t", b"c")
ITEM_FLAGS_IDLE = (*ITEM_FLAGS, b"l")


def meta(verb, key, more, flags):
    """A meta command; a key that is not safe in a line goes as base64."""
    if ITEM_KEY.fullmatch(key):
        words = [verb, key, *more, *flags]
    else:
        words = [verb, base64.b64encode(key), *more, b"b", *flags]
    return b" ".join(words)


def version_fault(line):
    """What is wrong with a memcached that answers `version` so, or None. Before 1.6.10 an `ms` is no
    command, or an early one, and its value is read as one more."""
    if b"-mclistd-" in line:
        return "a proxy answers there, mclistd, and no memcached"
    match = re.match(rb"VERSION (\d+)\.(\d+)\.(\d+)", line)
    if match and tuple(map(int, match.groups())) < (1, 6, 10):
        return f"memcached 1.6.10 or newer is needed, it is {shown(line[8:])}"
    return None


class Server(Connection):
    """A memcached; raises Answer when it is another server, or too old."""

    def greet(self):
        self.send(b"version")
        if fault := version_fault(self.line()):
            raise Answer(fault)

    def ask(self, keys, flags, with_value=True, more=()):
        """By mg. flags: those that answer a number; more: others. Yields (key, None) for a miss, or
        (key, (value or None, number, ...))."""
        expected = b"VA" if with_value else b"HD"
        words = [*([b"v"] if with_value else []), *flags, *more]
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            self.send(*(meta(b"mg", key, [], words) for key in part))
            for key in part:
                line = self.line()
                found = line.split(b" ")
                if found[0] == b"EN":
                    yield key, None
                elif found[0] == expected:
                    value = self.data(word_at(found, 1)) if with_value else None
                    yield key, (value, *numbers_of(found[2 if with_value else 1 :], flags))
                else:
                    raise Answer(f"mg: {shown(line[:80])}")

    def items_of(self, keys, flags=ITEM_FLAGS):
        """Yields (key, Item or None)."""
        for key, found in self.ask(keys, flags):
            yield key, found and Item(*found)

    def store(self, key, item, only_missing):
        """True: it is stored. False: something was there."""
        times = b"T%d" % self.expiry_of(item.ttl_s)
        mode = [b"ME"] if only_missing else []
        line = meta(b"ms", key, [b"%d" % len(item.value)], [b"F%d" % item.flags, times, *mode])
        self.send(line, item.value)
        answer = self.line()
        if answer not in (b"HD", b"NS"):
            raise Answer(f"ms: {shown(answer[:80])}")
        return answer == b"HD"

    def expiry_of(self, ttl_s):
        if ttl_s < 0:
            return 0
        if ttl_s < DAYS_30_S:
            return max(ttl_s, 1)
        return number_of(self.stats(b"stats").get(b"time")) + ttl_s

    def delete(self, key, cas=None):
        """Whether it was there, and unchanged."""
        self.send(meta(b"md", key, [], [b"C%d" % cas] if cas else []))
        answer = self.line()
        if answer not in (b"HD", b"NF", b"EX"):
            raise Answer(f"md: {shown(answer[:80])}")
        return answer == b"HD"


def dump(address, way, wanted=None):
    """The names of all items of a memcached; None: this one cannot be asked in that way. b"hash"
    goes through the hash table, and names all items that are there while it lasts; b"all" goes
    through the LRU lists, and leaves out what is moved in them or used at that moment. With
    wanted(name, line), only those for which it is true; line is all that memcached says."""
    for _ in range(DUMP_TRIES):
        server = Server(address)
        try:
            names = set()
            server.send(b"lru_crawler metadump " + way)
            line = server.line()
            if line.startswith((b"BUSY", b"LOCKED")):  # the crawler does one thing at a time
                time.sleep(DUMP_WAIT_S)
                continue
            while line != b"END":
                if line.startswith(b"BADCLASS") and way == b"hash":
                    return None
                if not line.startswith(b"key="):
                    raise Answer(f"lru_crawler metadump: {shown(line[:80])}")
                name = urllib.parse.unquote_to_bytes(line[4:].split(b" ", 1)[0])
                if wanted is None or wanted(name, line):
                    names.add(name)
                line = server.line()
            return names
        except Answer:
            if way == b"hash":
                return None
            raise
        finally:
            server.close()
    raise Answer("lru_crawler metadump: busy")
