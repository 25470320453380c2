# SPDX-License-Identifier: BSD-3-Clause
"""What the memcacheds hold: names, sizes and times, as their crawlers say; and reading of items at
a bounded rate, so that memcached does not take the reading for use."""

import time

from mclistd_convert.stored import names_on
from mclistd_convert.wire import AT_ONCE, Answer, Server, meta, number_of

PASSES_MAX = 3  # of a crawler, where new items come all the time
# What memcached adds to an item's key and value: a header with a CAS number, a zero, a line's end.
ITEM_BYTES_MIN = 48 + 8 + 1 + 2


class Record:
    """An item, as the crawler shows it. bytes: all that it takes in memcached. expires_s: by the
    clock of that memcached, -1: never. used_s: the second of its last use, to a minute."""

    __slots__ = ("bytes", "expires_s", "used_s")

    def __init__(self, line):
        fields = dict(field.split(b"=", 1) for field in line.split() if b"=" in field)
        self.bytes = number_of(fields.get(b"size", b"0"))
        self.expires_s = number_of(fields.get(b"exp", b"-1"))
        self.used_s = number_of(fields.get(b"la", b"0"))


class Value:
    """size: of the value; value: None unless it was asked for."""

    def __init__(self, value, size, flags, cas):
        self.value, self.size, self.flags, self.cas = value, size, flags, cas


class Pace:
    """So many keys per second, at most; 0: as fast as may be."""

    def __init__(self, rate):
        self.rate, self.begin, self.count = rate, time.monotonic(), 0

    def wait(self, count):
        if not self.rate:
            return
        self.count += count
        pause_s = self.begin + self.count / self.rate - time.monotonic()
        if pause_s > 0:
            time.sleep(pause_s)
        else:  # the time in which nothing was asked is not made up for
            self.begin, self.count = time.monotonic(), 0


class Memcached:
    """One of the pool. records: {name: Record} of what was wanted."""

    def __init__(self, address, pace):
        self.address, self.pace = address, pace
        self.server, self.records, self.now_s = None, {}, 0
        self.no_use = [b"u"]

    def crawl(self, wanted, incomplete):
        def take(name, line):
            is_wanted = wanted(name)
            if is_wanted:
                self.records[name] = Record(line)
            return is_wanted

        self.server = Server(self.address)
        self.now_s = number_of(self.server.stats(b"stats").get(b"time"))
        names_on(self.address, incomplete, take, PASSES_MAX)
        try:
            self.server.send(meta(b"mg", b"mclistd#no-item", [], [b"u"]))
            self.server.line()
        except Answer:
            self.no_use = []  # this release cannot be read without a trace

    def ttl_s(self, record):
        return None if record.expires_s < 0 else max(record.expires_s - self.now_s, 0)

    def idle_s(self, record):
        return max(self.now_s - record.used_s, 0)

    def read(self, keys, with_value=True):
        """Yields (key, Value or None)."""
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            asked = self.server.ask(part, (b"s", b"f", b"c"), with_value, self.no_use)
            for key, found in asked:
                yield key, found and Value(*found)
            self.pace.wait(len(part))
