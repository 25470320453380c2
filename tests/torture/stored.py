# SPDX-License-Identifier: BSD-3-Clause
"""What servers hold of lists, read without a proxy and without any of its code. A place is where items
are: it has get(key), names() and close()."""

import collections
import time

from model import Head, dump

SUBLIST_HEADER_BYTES = len(b"^1 0000000000\n")


class Damaged(Exception):
    """A sublist that the head names is not stored."""


def entries(data):
    """(op, item) of a log or a sublist."""
    at = 0
    while at < len(data):
        colon = data.index(b":", at)
        size = int(data[at + 1 : colon])
        item = data[colon + 1 : colon + 1 + size]
        assert len(item) == size, f"an entry is cut short: {data[at:]!r}"
        yield data[at : at + 1], item
        at = colon + 1 + size


def replay(content, data):
    """Applies entries to a dict whose keys are the items in their order."""
    for op, item in entries(data):
        if op == b"+":
            content.setdefault(item)
        elif op == b"-":
            content.pop(item, None)
        elif op == b"=":
            content.pop(item, None)
            content[item] = None
        elif op == b"@":
            second, _, item = item.partition(b":")
            content.pop(item, None)
            if int(second) > time.time():
                content[item] = None
        elif op == b"!":
            content.clear()
        else:
            assert op == b"~", f"an unknown entry: {op + item!r}"


class Server:
    """The place that is a memcached."""

    def __init__(self, memcached):
        self.memcached, self.conn = memcached, memcached.conn()
        self.get, self.close = self.conn.get, self.conn.close

    def names(self):
        return dump(self.memcached)


def fetch(places, key):
    """The value, from whichever server has it; None."""
    values = [value for value in (place.get(key) for place in places) if value is not None]
    assert len(values) <= 1, f"{key} is stored on several servers"
    return values[0] if values else None


def decode(places, key):
    """A list's items as they are stored; None when it has no head. The list must be at rest."""
    value = fetch(places, f"{key}#")
    if value is None:
        return None
    head = Head(value)
    content = {}
    for name in head.run_keys(key):
        sublist = fetch(places, name)
        if not sublist:
            raise Damaged(name)
        header, body = sublist[:SUBLIST_HEADER_BYTES], sublist[SUBLIST_HEADER_BYTES:]
        found = list(entries(body))
        assert header == b"^1 %010d\n" % len(found), f"{name}: {header!r}, {len(found)} entries"
        replay(content, body)
    replay(content, head.log)
    return list(content)


def strays(places, keys):
    """Sublists that no head names as part of its runs, by list."""
    found = collections.defaultdict(list)
    named = set()
    for key in keys:
        value = fetch(places, f"{key}#")
        named.update(Head(value).run_keys(key) if value is not None else ())
    for place in places:
        for name in place.names():
            key, mark, rest = name.partition("#")
            if mark and rest and key in keys and name not in named and place.get(name) is not None:
                found[key].append(name)
    return dict(found)
