# SPDX-License-Identifier: BSD-3-Clause
"""The file of an export. Keys are percent-encoded; items stand as they are, behind their length.

    mclistd lists 1 TIME ID                     made in that second; ID: of this export
    list KEY ITEMS BYTES UNTIL DIGEST           UNTIL: the second since 1970 in which the list
                                                expires, 0: never. DIGEST: of the line up to here,
                                                and of the BYTES that follow
    LENGTH [SECOND]                             for each item; with the second in which it leaves
    (the item)                                  the list
    done                                        behind the items of each list
    missing KEY                                 a list that was asked for, and is not there
    failed KEY REASON                           one that could not be read, and was left out
    end LISTS ITEMS                             without this line the export is unfinished
"""

import contextlib
import hashlib
import itertools
import os
import re
import secrets
import threading
import time
import urllib.parse

from mclistd_convert.files import lock
from mclistd_convert.wire import LIST_KEY, Refused, shown

HEAD = b"mclistd lists 1 "
PART_BYTES = 1 << 20
LINE_BYTES_MAX = 4096  # a key of 220 bytes takes 660
HEAD_BYTES_MAX = 100
END = re.compile(rb"\nend [0-9]+ [0-9]+\n\Z")

quote = urllib.parse.quote_from_bytes
unquote = urllib.parse.unquote_to_bytes


class Unfinished(Exception):
    """at: behind the last whole entry."""

    def __init__(self, at, number):
        super().__init__(at)
        self.at, self.number = at, number


def list_line(key, items, size, until):
    """Without its digest."""
    return f"list {quote(key)} {items} {size} {until}".encode()


def digest_of(line, parts):
    found = hashlib.sha256(line + b"\n")
    for part in parts:
        found.update(part)
    return found.hexdigest()[:32].encode()


class ItemDigest:
    """Of items in their order, wherever they were read."""

    def __init__(self):
        self.hash, self.count = hashlib.sha256(), 0

    def add(self, item):
        self.hash.update(b"%d:" % len(item) + item)
        self.count += 1

    def value(self):
        return self.count, self.hash.hexdigest()[:32]


class Saved:
    """A list in the file; at: where its items begin."""

    __slots__ = ("key", "items", "size", "until", "digest", "at")

    def __init__(self, words, at):
        self.key = unquote(words[0])
        self.items, self.size, self.until = int(words[1]), int(words[2]), int(words[3])
        self.digest, self.at = words[4], at
        if not LIST_KEY.fullmatch(self.key) or min(self.items, self.size, self.until) < 0:
            raise ValueError("no list")

    def contents(self, file):
        """Yields (item, the second in which it is over or 0)."""
        file.seek(self.at)
        for _ in range(self.items):
            length, _, second = file.readline(LINE_BYTES_MAX).partition(b" ")
            item = file.read(int(length) + 1)
            if item[-1:] != b"\n":
                raise ValueError("an item is cut off")
            yield item[:-1], int(second or 0)

    def check(self, file):
        """Is all of it what was written? Raises ValueError."""
        line = list_line(self.key, self.items, self.size, self.until)
        if digest_of(line, parts_of(file, self.at, self.size)) != self.digest:
            raise ValueError(f"{shown(self.key)} is not what was written")


def entries(path, file, check=False):
    """Yields (kind, value) of each whole entry: ("head", ID), ("list", Saved), ("missing", key),
    ("failed", (key, reason)), ("end", None). check: compares digests. Raises Unfinished where the
    file ends before its end, Refused where it holds something else."""
    line, number = file.readline(LINE_BYTES_MAX), 1
    words = line[:-1].split(b" ")
    if not line.startswith(HEAD) or not line.endswith(b"\n") or len(words) != 5:
        is_torn = not line.endswith(b"\n") and len(line) < HEAD_BYTES_MAX
        if is_torn and HEAD.startswith(line[: len(HEAD)]):
            raise Unfinished(0, number)
        raise Refused(f"{path}: not an export of lists of a version known here")
    yield "head", words[4].decode()
    size, at = os.fstat(file.fileno()).st_size, file.tell()
    lists = items = 0
    while True:
        line, number = file.readline(LINE_BYTES_MAX), number + 1
        if not line.endswith(b"\n"):
            if len(line) == LINE_BYTES_MAX:
                raise Refused(f"{path}: entry {number} is damaged: no such line")
            raise Unfinished(at, number)
        kind, *words = line[:-1].split(b" ")
        try:
            if kind == b"end" and words == [b"%d" % lists, b"%d" % items]:
                if file.read(1):
                    raise ValueError("something stands behind the end")
                yield "end", None
                return
            if kind == b"list" and len(words) == 5:
                saved = Saved(words, file.tell())
                if saved.at + saved.size + 5 > size:
                    raise Unfinished(at, number)
                if check:
                    saved.check(file)
                file.seek(saved.at + saved.size)
                if file.read(5) != b"done\n":
                    raise ValueError("its items do not end where they should")
                lists, items = lists + 1, items + saved.items
                yield "list", saved
            elif kind == b"missing" and len(words) == 1:
                yield "missing", unquote(words[0])
            elif kind == b"failed" and len(words) > 1:
                yield "failed", (unquote(words[0]), b" ".join(words[1:]).decode(errors="replace"))
            else:
                raise ValueError("no such line")
        except ValueError as error:
            raise Refused(f"{path}: entry {number} is damaged: {error}") from None
        at = file.tell()


def parts_of(file, at, size):
    file.seek(at)
    while size > 0 and (data := file.read(min(size, PART_BYTES))):
        size -= len(data)
        yield data


def has_end(file):
    file.seek(-min(HEAD_BYTES_MAX, file.seek(0, os.SEEK_END)), os.SEEK_END)
    return END.search(file.read()) is not None


class Export:
    """The file while it is written. Lists are added whole; what a kill has left behind the last
    whole entry is cut off, and so are lists that failed: they are tried again. For several
    threads."""

    def __init__(self, path):
        self.path, self.lock, self.done = path, threading.Lock(), set()
        self.lists = self.items = 0
        self.broken = None
        try:
            self.file = open(path, "r+b" if os.path.exists(path) else "x+b", buffering=0)
            lock(self.file, path)
            self.size = self.find_end()
            self.file.seek(self.size)
            self.file.truncate()
            if self.size == 0:
                self.write([HEAD + b"%d %s\n" % (time.time(), secrets.token_hex(8).encode())])
            os.fsync(self.file.fileno())
        except OSError as error:
            raise Refused(f"{path}: {error.strerror or error}") from None

    def find_end(self):
        if os.fstat(self.file.fileno()).st_size == 0:
            return 0
        with open(self.path, "rb") as file:
            end = 0
            try:
                for kind, value in entries(self.path, file, check=True):
                    if kind == "failed":
                        continue
                    if kind == "list":
                        self.done.add(value.key)
                        self.lists, self.items = self.lists + 1, self.items + value.items
                    elif kind == "missing":
                        self.done.add(value)
                    elif kind == "end":
                        raise Refused(f"{self.path}: is a whole export already; name another file")
                    end = file.tell()
            except Unfinished as where:
                if has_end(file):
                    raise Refused(f"{self.path}: entry {where.number} is damaged") from None
            return end

    def write(self, parts):
        """Whole, or not at all: then nothing more is written."""
        with self.lock:
            if self.broken:
                raise Refused(self.broken)
            try:
                for part in parts:
                    while part:
                        part = part[self.file.write(part) :]
                self.size = self.file.tell()
            except OSError as error:
                self.broken = f"{self.path}: {error.strerror or error}"
                with contextlib.suppress(OSError):
                    self.file.truncate(self.size)
                raise Refused(self.broken) from None

    def add(self, key, items, until, body):
        """body: a file of the items, at its end."""
        size = body.tell()
        line = list_line(key, items, size, until)
        head = line + b" " + digest_of(line, parts_of(body, 0, size)) + b"\n"
        self.write(itertools.chain([head], parts_of(body, 0, size), [b"done\n"]))
        with self.lock:
            self.lists, self.items = self.lists + 1, self.items + items

    def add_missing(self, key):
        self.write([f"missing {quote(key)}\n".encode()])

    def add_failed(self, key, reason):
        text = " ".join(reason.split()).encode(errors="replace")[:1000]
        self.write([f"failed {quote(key)} ".encode() + (text or b"unknown") + b"\n"])

    def sync(self):
        with self.lock:
            os.fsync(self.file.fileno())

    def end(self):
        self.write([f"end {self.lists} {self.items}\n".encode()])
        self.sync()
