# SPDX-License-Identifier: BSD-3-Clause
"""The files that are read and written. Names in them are percent-encoded, values base64, so a file
is lines of ASCII whatever the keys are (the state has the keys as they are).

State:      "lists of PREFIX converted:", then a key per line
Inventory:  "mclistd inventory 1 PREFIX DIALECT TIME", then a line per list or item:
                list KEY ITEMS DIGEST     of the native list that it becomes
                KIND NAME NOTE            all else; see inventory.py
                end LINES
Backup:     "mclistd backup 1 PREFIX DIALECT TIME", then
                servers SERVER...         all of the pool, of each run anew
            and per list:
                list KEY TIME LINES       read at that time; so many lines follow
                item SERVER NAME FLAGS TTL CRC32 VALUE     TTL -1: it does not expire
                absent NAME               a part that the list may have, and has not
"""

import base64
import contextlib
import fcntl
import os
import re
import sys
import threading
import time
import urllib.parse
import zlib

from mclistd_convert.names import record_before
from mclistd_convert.wire import Item, Refused, shown

quote = urllib.parse.quote_from_bytes
unquote = urllib.parse.unquote_to_bytes
BARE_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def read_file(path):
    try:
        with open(path, "rb") if path else sys.stdin.buffer as file:
            return file.read()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None


def keys_of_lines(path, text):
    """A key per line, percent-encoded, each once, in their order."""
    lines = [line.rstrip(b"\r") for line in text.split(b"\n")]
    for number, line in enumerate(lines, 1):
        if BARE_PERCENT.search(line):
            raise Refused(f"{path}:{number}: {shown(line)}: expected keys percent-encoded, with %25 for each %")
    return list(dict.fromkeys(unquote(line) for line in lines if line))


class KeyFile:
    """Keys from a file: one per line, or a state, an inventory or a backup of the prefix.
    contents: {key: (items, digest)}, from an inventory."""

    def __init__(self, path, prefix):
        self.path, self.keys, self.contents, self.says_converted = path, [], {}, False
        text = read_file(None if path == "-" else path)
        first, _, rest = text.partition(b"\n")
        if first.startswith(b"mclistd backup "):
            self.keys = [saved.key for saved in lists_in_backup(path, text, prefix)]
            self.says_converted = True
        elif first.startswith(b"mclistd inventory "):
            self.take_inventory(text, prefix)
            self.says_converted = True
        elif first.startswith(b"lists of ") and first.endswith(b" converted:"):
            if first != state_head(prefix):
                raise Refused(f"{path}: not a state file of {shown(prefix)}")
            self.keys = rest.split(b"\n")[:-1]
            self.says_converted = True
        else:
            self.keys = keys_of_lines(path, text)
        self.keys = list(dict.fromkeys(key for key in self.keys if key))

    def take_inventory(self, text, prefix):
        check_head(self.path, text, "inventory", prefix)
        lines = text.split(b"\n")[1:-1]
        if not lines or lines[-1] != b"end %d" % (len(lines) - 1):
            raise Refused(f"{self.path}: is cut off")
        for line in lines[:-1]:
            kind, name, *more = line.decode().split(" ")
            if kind == "list":
                key = unquote(name)
                self.keys.append(key)
                if len(more) == 2:
                    self.contents[key] = int(more[0]), more[1]


def head_of(kind, prefix, dialect):
    return f"mclistd {kind} 1 {quote(prefix)} {dialect} {int(time.time())}\n".encode()


def check_head(path, text, kind, prefix):
    words = text.split(b"\n", 1)[0].decode(errors="replace").split(" ")
    if len(words) != 6 or words[:3] != ["mclistd", kind, "1"]:
        raise Refused(f"{path}: not the {kind} of a version known here")
    if unquote(words[3]) != prefix:
        raise Refused(f"{path}: is of {shown(unquote(words[3]))}, not of {shown(prefix)}")


def write_inventory(path, inventory):
    """All of it or nothing: under another name first. One that is there was taken before anything
    was changed, and is worth more."""
    if os.path.exists(path):
        raise Refused(
            f"{path}: is there already, and an inventory is not written over; "
            "name another file, or leave out --inventory"
        )
    lines = list(inventory.lines())
    text = "".join(f"{line}\n" for line in lines) + f"end {len(lines)}\n"
    try:
        with open(f"{path}.new", "wb") as file:
            file.write(head_of("inventory", inventory.section.prefix, inventory.section.dialect))
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None


def lock(file, path):
    """Until the file is closed, or the program ends. Two that write one file would cut off each
    other's entries, and two imports of one file write scratch lists of the same names."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(f"{path}: another run is at work with it") from None
    except OSError:
        pass  # this file system knows no locks


class Log:
    """A file that is appended to, by a program that may be killed at any moment: what it finds
    behind the last whole entry is cut off."""

    def __init__(self, path, head, whole):
        """whole(path, text) says how much of what is there counts, or raises Refused."""
        self.path, self.file, self.dirty, self.lock = path, None, False, threading.Lock()
        if not path:
            return
        try:
            self.file = open(path, "a+b", buffering=0)
            lock(self.file, path)
            self.file.seek(0)
            text = self.file.read()
        except OSError as error:
            raise Refused(f"{path}: {error.strerror}") from None
        self.size = whole(path, text) if text else 0
        if self.size < len(text):
            self.file.truncate(self.size)
        if not text:
            self.add(head)
        self.sync(always=True)

    def add(self, data):
        """All of it, or the run ends: half an entry must not stand in front of others."""
        with self.lock:
            if not self.file:
                return
            rest = data
            try:
                while rest:
                    rest = rest[self.file.write(rest) :]
            except OSError as error:
                with contextlib.suppress(OSError):
                    self.file.truncate(self.size)
                raise Refused(f"{self.path}: {error.strerror}") from None
            self.size += len(data)
            self.dirty = True

    def sync(self, always=False):
        if self.file and (self.dirty or always):
            self.dirty = False
            os.fsync(self.file.fileno())


# --- state -----------------------------------------------------------------------------------------


def state_head(prefix):
    return b"lists of " + prefix + b" converted:"


class State(Log):
    """Which lists are done."""

    def __init__(self, path, prefix):
        self.done, self.prefix = set(), prefix
        super().__init__(path, state_head(prefix) + b"\n", self.take)

    def take(self, path, text):
        lines = text.split(b"\n")
        if lines[0] != state_head(self.prefix) or len(lines) < 2:
            raise Refused(f"{path}: not a state file of {shown(self.prefix)}")
        self.done = set(lines[1:-1])
        return len(text) - len(lines[-1])  # cut off by a crash: it may look like another list's key


# --- backup ----------------------------------------------------------------------------------------

SERVERS = b"servers "


class Saved:
    """A list in a backup. items: [(server, name, Item)]; absent: names."""

    def __init__(self, key, time_s, lines):
        self.key, self.time_s, self.lines = key, time_s, lines
        self.items, self.absent, self.end = [], [], 0

    def take(self, line):
        kind, *words = line.decode().split(" ")
        if kind == "absent":
            self.absent.append(unquote(words[0]))
            return
        server, name, flags, ttl, crc, value = words
        data = base64.b64decode(value, validate=True)
        if kind != "item" or int(crc, 16) != zlib.crc32(data):
            raise ValueError("damaged")
        self.items.append((unquote(server).decode(), unquote(name), Item(data, int(flags), int(ttl), 0)))


def parse_backup(path, text, prefix):
    """Yields the Saved that are whole; the last one may be cut off."""
    check_head(path, text, "backup", prefix)
    at, end = text.index(b"\n") + 1, text.rfind(b"\n") + 1
    number, saved = 1, None
    while at < end:
        stop = text.index(b"\n", at)
        line, at, number = text[at:stop], stop + 1, number + 1
        if saved is None and line.startswith(SERVERS):
            continue
        try:
            if saved is None:
                kind, key, time_s, lines = line.decode().split(" ")
                if kind != "list":
                    raise ValueError("no list")
                saved = Saved(unquote(key), int(time_s), int(lines))
            else:
                saved.take(line)
                saved.lines -= 1
        except ValueError as error:
            raise Refused(f"{path}:{number}: {error}") from None
        if saved.lines == 0:
            saved.end = at
            yield saved
            saved = None


def lists_in_backup(path, text, prefix):
    """Of each list what was saved last: a run that was killed may have saved some without
    converting them, and they have changed since."""
    return list({saved.key: saved for saved in parse_backup(path, text, prefix)}.values())


def servers_in_backup(text):
    """Of the pool, also those that had no item of a list: they may have native lists."""
    lines = [line for line in text.split(b"\n")[:-1] if line.startswith(SERVERS)]
    return [unquote(word).decode() for line in lines for word in line.split(b" ")[1:]]


class Backup(Log):
    """Lists are added before they are converted, each time that this is tried: clients may have
    changed them since."""

    def __init__(self, path, section):
        self.section, self.has_servers = section, False
        super().__init__(path, head_of("backup", section.prefix, section.dialect), self.take)

    def take(self, path, text):
        end = text.find(b"\n") + 1
        for saved in parse_backup(path, text, self.section.prefix):
            end = saved.end
        return end

    def save(self, stored, key):
        """All items of the list. Several threads may do so, of different lists."""
        if not self.file:
            return
        names, found = stored.list_items(self.section, key)
        now = int(time.time())
        if any(record_before(item.value) is not None for _, item in found.get(key, [])):
            return  # some of its items are gone already
        if not any(name in found for name in names) or stored.has_head(key):
            return  # it has moved, and what is there now came later
        lines = []
        for name in names:
            for server, item in found.get(name, []):
                value = base64.b64encode(item.value).decode()
                crc = f"{zlib.crc32(item.value):08x}"
                where = f"{quote(server.encode())} {quote(name)}"
                lines.append(f"item {where} {item.flags} {item.ttl_s} {crc} {value}")
            if name not in found:
                lines.append(f"absent {quote(name)}")
        head = [f"list {quote(key)} {now} {len(lines)}"]
        if not self.has_servers:
            head.insert(0, " ".join(["servers", *(quote(a.encode()) for a in stored.addresses)]))
        self.add("".join(f"{line}\n" for line in [*head, *lines]).encode())
        self.has_servers = True
