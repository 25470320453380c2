# SPDX-License-Identifier: BSD-3-Clause
"""Reading lists through a proxy: any bytes, of any size, each as it was at one instant."""

import tempfile
import time

from mclistd_convert.prefix import unescaped
from mclistd_convert.wire import Answer, number_of, word_at

BODY_IN_MEMORY = 1 << 20  # larger lists go through a file without a name
TRIES = 8                 # of a list that others change while it is read
AT_ONCE = 256             # questions for the time of an item in one packet
PAGE_ITEMS = 16384
TOO_LARGE = "max_answer_bytes"


def streamed(connection):
    """Yields the items of an answer to lgetb, one at a time."""
    while (line := connection.line()) != b"END":
        yield connection.data(word_at(line.split(b" "), 2))


def number_or_none(connection):
    """An answer to lttl: None where there is no list, or no such item."""
    line = connection.line()
    return None if line == b"NOT_FOUND" else number_of(line)


def stat_of(connection, key):
    return connection.stats(b"lstat " + key)


def second_of(left_s, now_s):
    """The second since 1970; 0: never."""
    return 0 if left_s < 0 else int(now_s) + left_s


class Content:
    """What a list held. body: its items, as in the file of an export. until: see there."""

    def __init__(self, key, folder):
        self.key, self.folder, self.until, self.items = key, folder, 0, 0
        self.body = None

    def begin(self):
        self.close()
        self.items = 0
        self.body = tempfile.SpooledTemporaryFile(max_size=BODY_IN_MEMORY, dir=self.folder)

    def add(self, item, second=0):
        time_text = b" %d" % second if second else b""
        self.body.write(b"%d%s\n%s\n" % (len(item), time_text, item))
        self.items += 1

    def close(self):
        if self.body:
            self.body.close()


def pages(connection, key, delimiter):
    """Yields all items by lrange, in pages that fit into an answer."""
    at, step = 0, PAGE_ITEMS
    while True:
        connection.send(b"lrange %s %d %d" % (key, at, at + step - 1))
        try:
            text, _ = connection.joined()
        except Answer as error:
            if TOO_LARGE not in str(error) or step == 1:
                raise
            step = max(step // 8, 1)
            continue
        part = text.split(delimiter) if text else []
        yield from part
        at += len(part)
        if len(part) < step:
            return


def with_times(connection, items):
    """Yields (item, the second in which it is over); passes over those that are over by now."""

    def ask(batch):
        lines = (b"lttlb %s %d\r\n%s" % (ask.key, len(item), item) for item in batch)
        connection.send(*lines)
        for item in batch:
            left_s = number_or_none(connection)
            if left_s is not None:
                yield item, second_of(left_s, time.time())

    ask.key, items = items
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == AT_ONCE:
            yield from ask(batch)
            batch = []
    yield from ask(batch)


class Busy(Answer):
    pass


class Reader:
    """settings: the proxy's. folder: for lists that are too large for memory."""

    def __init__(self, settings, folder):
        self.settings, self.folder = settings, folder

    def read(self, connection, key):
        """Content, or None: there is no such list. The caller closes it."""
        content = Content(key, self.folder)
        try:
            return content if self.take(connection, key, content) else None
        except BaseException:
            content.close()
            raise

    def take(self, connection, key, content):
        stat = None
        if self.is_native(key):
            stat = stat_of(connection, key)
        if stat and stat.get(b"timed", b"0") != b"0":
            return self.take_unchanged(connection, key, content, self.take_timed)
        connection.send(b"lgetb " + key, b"lttl " + key)
        content.begin()
        try:
            for item in streamed(connection):
                content.add(item)
        except Answer as error:
            connection.line()
            if TOO_LARGE not in str(error) or stat is None or self.delimiter(key) is None:
                raise
            return self.take_unchanged(connection, key, content, self.take_pages)
        left_s = number_or_none(connection)
        if left_s is None:
            if content.items:
                raise Busy("busy: the list was removed while it was read")
            return False
        content.until = second_of(left_s, time.time())
        if stat is not None and stat_of(connection, key).get(b"timed", b"0") != b"0":
            return self.take_unchanged(connection, key, content, self.take_timed)
        return True

    def take_unchanged(self, connection, key, content, take):
        """Several requests: no change of the head lay between them, and nothing was over."""
        for _ in range(TRIES):
            before = stat_of(connection, key)
            content.begin()
            take(connection, key, content)
            after = stat_of(connection, key)
            connection.send(b"lttl " + key)
            left_s = number_or_none(connection)
            same = before.get(b"head_cas") == after.get(b"head_cas")
            if same and not after and not content.items:
                return False
            if same and left_s is not None and number_of(after.get(b"items", b"0")) == content.items:
                content.until = second_of(left_s, time.time())
                return True
        raise Busy("busy: others change the list each time while it is read in several requests")

    def take_timed(self, connection, key, content):
        delimiter = self.delimiter(key)
        with tempfile.TemporaryFile(dir=self.folder) as spool:
            sizes = self.spool_items(connection, key, delimiter, spool)
            spool.seek(0)
            items = (spool.read(size) for size in sizes)
            for item, second in with_times(connection, (key, items)):
                content.add(item, second)

    def spool_items(self, connection, key, delimiter, spool):
        connection.send(b"lgetb " + key)
        sizes = []
        try:
            for item in streamed(connection):
                spool.write(item)
                sizes.append(len(item))
        except Answer as error:
            if TOO_LARGE not in str(error) or delimiter is None:
                raise
            for item in pages(connection, key, delimiter):
                spool.write(item)
                sizes.append(len(item))
        return sizes

    def take_pages(self, connection, key, content):
        for item in pages(connection, key, self.delimiter(key)):
            content.add(item)

    def is_native(self, key):
        section = self.settings.section_of(key)
        return section is None or section.dialect == "native"

    def delimiter(self, key):
        section = self.settings.section_of(key)
        text = section.text("delimiter", b",") if section else b","
        return None if text == b"none" else unescaped(text)
