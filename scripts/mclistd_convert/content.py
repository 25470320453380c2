# SPDX-License-Identifier: BSD-3-Clause
"""One list: reading it through a proxy, converting it, and comparing what it holds."""

import hashlib
import re
import time

from mclistd_convert.prefix import unescaped
from mclistd_convert.wire import LIST_KEY, Answer, Connection

WAITED = "earlier requests took too long"
PASSING = re.compile(f"busy|{WAITED}|timeout|down|lost|connect|later")
# In the error that a proxy answers about what it does not take for a list.
FOREIGN = re.compile(r"is not of dialect|holds no list")
TOO_LARGE = "max_answer_bytes"
BYTES = "ask for lgetb"  # items that clients by hand have written may hold the delimiter


def is_foreign(error):
    return isinstance(error, Answer) and FOREIGN.search(str(error)) is not None


def may_pass(error):
    """May it be well when it is tried again?"""
    if isinstance(error, Answer):
        return not is_foreign(error) and PASSING.search(str(error)) is not None
    return isinstance(error, OSError)


def digest_of(items):
    found = hashlib.sha256()
    for item in items:
        found.update(b"%d:" % len(item) + item)
    return found.hexdigest()[:32]


def is_within(some, all_of_them):
    """Are these all there, in that order?"""
    rest = iter(all_of_them)
    return all(item in rest for item in some)


class Content:
    """What a list held at one moment. in_parts: at several, since it is too large to be read at
    once; then a change in between was not seen. apart: its items cannot be joined."""

    def __init__(self, items, version=None, in_parts=False, apart=False):
        self.items, self.version, self.in_parts, self.apart = items, version, in_parts, apart

    def same(self, other):
        return self.version == other.version and self.items == other.items


class Outcome:  # kind: exact, changed, unseen (changed, and not compared), failed
    def __init__(self, kind, differing=0, reason=None, items=0):
        self.kind, self.differing, self.reason, self.items = kind, differing, reason, items


class Reader:
    """Reads lists. Without a delimiter there are no versions."""

    def __init__(self, section):
        text = section.text("delimiter", b",")
        self.is_ring = section.dialect == "ring"
        self.delimiter = None if text == b"none" else unescaped(text)

    def request(self, key):
        """The only ways in which a key gets into a line for a proxy: it was looked at before."""
        if not LIST_KEY.fullmatch(key):
            raise ValueError("not a list's key")
        return (b"lgetb " if self.delimiter is None else b"lgets ") + key

    def take(self, connection):
        if self.delimiter is None:
            return Content(connection.items())
        text, version = connection.joined()
        return Content(text.split(self.delimiter) if text else [], version)

    def read(self, connection, key):
        connection.send(self.request(key))
        try:
            return self.take(connection)
        except Answer as error:
            if BYTES in str(error):
                connection.send(b"lgetb " + key)
                return Content(connection.items(), apart=True)
            if TOO_LARGE not in str(error) or self.delimiter is None:
                raise
        return self.read_parts(connection, key)

    def read_parts(self, connection, key):
        """With lrange, in parts as large as they may be."""
        connection.send(b"llen " + key)
        step, items = max(int(connection.line()) // 2, 1), []
        while True:
            connection.send(b"lrange %s %d %d" % (key, len(items), len(items) + step - 1))
            try:
                text, _ = connection.joined()
            except Answer as error:
                if TOO_LARGE not in str(error) or step == 1:
                    raise
                step //= 2
                continue
            part = text.split(self.delimiter) if text else []
            items += part
            if len(part) < step:
                return Content(items, in_parts=True)

    def expected(self, items):
        """What a native list must hold that is converted from that: one answer, or two: a ring's
        list may have been native before."""
        if not self.is_ring:
            return [items]
        return [list(dict.fromkeys(items))[::-1], items]

    def fingerprint(self, content):
        """Of the native list that it becomes: how many items, and their digest."""
        items = self.expected(content.items)[0]
        return len(items), digest_of(items)


def changes(reader, connection, key, content):
    """Is the list seen to change? Raises what reading does."""
    for pause_s in (0, 0.02, 0.1, 0.5):
        time.sleep(pause_s)
        if not reader.read(connection, key).same(content):
            return True
    return False


def judge(reader, connection, key, before, after):
    expected = reader.expected(before.items)
    if after.items in expected:
        return Outcome("exact", items=len(after.items))
    best = min(expected, key=lambda items: len(set(items) ^ set(after.items)))
    differing = len(set(best) ^ set(after.items))
    if before.in_parts or after.in_parts:
        if changes(reader, connection, key, after):
            return Outcome("unseen", items=len(after.items))
    elif is_within(best, after.items):  # nothing is missing, something was added
        return Outcome("changed", differing, items=len(after.items))
    elif changes(reader, connection, key, after):
        return Outcome("changed", differing, items=len(after.items))
    return Outcome(
        "failed",
        differing,
        f"{differing} items differ (or their order), and no client was seen changing the list",
    )


def convert(reader, connection, key):
    """It is read in the same packet before and after, so that little can come in between."""
    request = reader.request(key)
    connection.send(request, b"lconvert " + key, request)
    found, errors = [None, None, None], {}
    for at, take in enumerate((reader.take, Connection.line, reader.take)):
        try:
            found[at] = take(connection)
        except Answer as error:
            errors[at] = error
    if 1 in errors:
        raise errors[1]
    if 0 in errors and (TOO_LARGE in str(errors[0]) or BYTES in str(errors[0])):
        return Outcome("unseen")  # it was not so a moment ago
    if 0 in errors:
        raise errors[0]
    if 2 in errors:  # it may have waited for the conversion, or have become too large
        found[2] = reader.read(connection, key)
    return judge(reader, connection, key, found[0], found[2])


def convert_alone(reader, connection, key):
    """The same for a list that lgets cannot answer."""
    before = reader.read(connection, key)
    connection.send(b"lconvert " + key)
    connection.line()
    return judge(reader, connection, key, before, reader.read(connection, key))


def compare(reader, key, connections):
    """Reads the list through all proxies. Returns what the first one says, and an Outcome."""
    connection, *others = connections
    first = reader.read(connection, key)
    for other in others:
        second = reader.read(other, key)
        if second.items == first.items:
            continue
        differing = len(set(first.items) ^ set(second.items))
        again = reader.read(connection, key)
        if again.same(first) and reader.read(other, key).same(second):
            reason = f"two proxies differ in {differing} items, or their order"
            return first, Outcome("failed", differing, reason)
        kind = "unseen" if first.in_parts else "changed"
        return first, Outcome(kind, differing, items=len(first.items))
    return first, Outcome("exact", items=len(first.items))
