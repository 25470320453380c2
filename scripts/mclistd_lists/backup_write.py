# SPDX-License-Identifier: BSD-3-Clause
"""Writing lists through a proxy: readers see all of a list's new content, or none of it.

A list that fits one block is one lputb. Another one, and one whose items have a time of their own,
is filled into a scratch list, compared there, and copied by one lcopy."""

import hashlib
import time

from mclistd_convert.prefix import begin_of
from mclistd_convert.wire import Answer, shown
from mclistd_lists.backup_file import ItemDigest
from mclistd_lists.backup_read import pages, streamed, TOO_LARGE

SCRATCH_S = 86400        # what a kill leaves behind goes by itself
PACKET_BYTES = 32 << 10  # sent before the answers are read
LINE_ITEMS_BYTES = 8 << 10  # of one ladd, in the log; less where the proxy takes less
TOO_MANY = "too many items in one command"
ENTRY_BYTES = 4  # what the log adds to a short item
NOT_INLINE = frozenset(b" \t\r\n\v\f\0")
FIRST_BYTES = 64 << 10
TRIES = 4
EXPTIME_MAX_S = 2147483647
NO_PLACE = "no place where it could be decided"  # whether a list of a dialect is missing


class Other(Answer):
    """What is there is not what the file has."""


def words_of(*words):
    return b" ".join(word for word in words if word)


class Writer:
    """settings: the proxy's; scratch: what the names of this import's scratch lists begin with."""

    def __init__(self, settings, max_value_bytes, scratch, replaces, reader):
        self.settings, self.max_value_bytes = settings, max_value_bytes
        self.scratch, self.replaces, self.reader = scratch, replaces, reader
        self.line_bytes = LINE_ITEMS_BYTES

    def write(self, connection, file, saved):
        """Returns "written", "there already", or "over": all its items are. Raises Answer with the
        reason otherwise."""
        timed = any(second for _, second in saved.contents(file))
        unable = None
        if not timed and self.block_bytes(saved) <= self.max_value_bytes:
            try:
                answer = self.put(connection, file, saved)
            except Answer as error:
                if NO_PLACE not in str(error):
                    raise
                answer, unable = "refused", f"{error} (--replace asks for no such decision)"
        else:
            if not self.reader.is_native(saved.key):
                raise Answer(
                    "items have a time of their own, and those of dialects have none" if timed else
                    f"its {self.block_bytes(saved)} bytes need a max_value_bytes of the proxy that "
                    "is as large: lists of dialects are written in one block"
                )
            answer = self.copy(connection, file, saved)
        if answer == "over":
            return answer
        if answer == "refused":
            found = self.digest_there(connection, saved.key)
            if found in self.expected(file, saved, timed):
                return "there already"
            if unable:
                raise Other(unable)
            if found[0] == 0:
                raise Other("does not fit: max_items and cap = refuse of the proxy")
            raise Other(f"another list is there, of {found[0]} items (--replace)")
        found = self.digest_there(connection, saved.key)
        if found not in self.expected(file, saved, timed):
            raise Other(
                f"written, but {found[0]} items are there, and {saved.items} were expected, or in "
                "another order: clients change it, or the proxy has max_items or another order"
            )
        return "written"

    # --- what is expected, and what is there ---

    def expected(self, file, saved, timed):
        """The digests that are right: of items with a time, those that are over may be gone."""
        if not timed:
            return [self.digest_of(file, saved, 0)]
        now_s = time.time()
        return [self.digest_of(file, saved, int(now_s) + more) for more in range(-2, 4)]

    def digest_of(self, file, saved, now_s):
        found = ItemDigest()
        for item, second in saved.contents(file):
            if second == 0 or second > now_s:
                found.add(item)
        return found.value()

    def digest_there(self, connection, key):
        found = ItemDigest()
        connection.send(b"lgetb " + key)
        try:
            for item in streamed(connection):
                found.add(item)
            return found.value()
        except Answer as error:
            delimiter = self.reader.delimiter(key)
            if TOO_LARGE not in str(error) or delimiter is None:
                raise
        found = ItemDigest()
        for item in pages(connection, key, delimiter):
            found.add(item)
        return found.value()

    # --- in one block ---

    def block_bytes(self, saved):
        return saved.size + saved.items * (len(b"ITEM k \r\n") + 10)

    def exptime(self, saved):
        """None: lists of dialects take none in this step."""
        if not self.reader.is_native(saved.key):
            return b""
        return b"%d" % min(saved.until, EXPTIME_MAX_S)

    def put(self, connection, file, saved):
        block = b"".join(
            b"ITEM k %d\r\n%s\r\n" % (len(item), item) for item, _ in saved.contents(file)
        )
        new = b"" if self.replaces else b"new"
        size = b"%d" % len(block)
        connection.send(words_of(b"lputb", saved.key, size, self.exptime(saved), new), block)
        answer = connection.line()
        if answer == b"NOT_STORED":
            return "refused"
        if answer != b"STORED":
            raise Answer(shown(answer))
        if not self.reader.is_native(saved.key) and saved.until:
            connection.send(b"ltouch %s %d" % (saved.key, min(saved.until, EXPTIME_MAX_S)))
            try:
                connection.line()
            except Answer as error:
                raise Other(f"written, but without its time to live: {error}") from None
        return "stored"

    # --- by a scratch list ---

    def scratch_of(self, key):
        """Under the same section, so that the same rules hold for it."""
        section = self.settings.section_of(key)
        begin = begin_of(section.prefix, key) if section else b""
        name = hashlib.sha256(key).hexdigest()[:16].encode()
        return begin + b"import." + self.scratch + b"." + name

    def copy(self, connection, file, saved):
        scratch = self.scratch_of(saved.key)
        for attempt in range(TRIES):
            line_bytes = self.line_bytes
            try:
                self.drop(connection, scratch)
                self.fill(connection, scratch, file, saved, line_bytes)
                found = self.digest_there(connection, scratch)
                if found in self.expected(file, saved, True):
                    break
                error = Answer(f"{found[0]} of {saved.items} items reached the scratch list")
            except Answer as fault:
                error = fault
                if TOO_MANY in str(error):
                    self.line_bytes = min(self.line_bytes, line_bytes // 4)
            if attempt + 1 == TRIES:
                self.drop(connection, scratch)
                raise error
        new = b"" if self.replaces else b"new"
        connection.send(words_of(b"lcopy", scratch, saved.key, self.exptime(saved), new))
        try:
            answer = connection.line()
        finally:
            self.drop(connection, scratch)
        if answer == b"NOT_STORED":
            return "refused"
        if answer == b"NOT_FOUND":
            return "over"
        return "stored"

    def drop(self, connection, key):
        connection.send(b"ldrop " + key)
        connection.line()

    def fill(self, connection, scratch, file, saved, line_bytes):
        connection.send(b"lputb %s 0 %d" % (scratch, SCRATCH_S), b"")
        if connection.line() != b"STORED":
            raise Answer("the scratch list could not be made")
        packet, count, size, has_time = [], 0, 0, False

        def flush():
            connection.send(*packet)
            answers = [self.answer(connection) for _ in range(count)]
            wrong = next((a for a in answers if a != b"STORED"), None)
            if wrong is not None:
                raise Answer(f"the scratch list: {shown(wrong)}")

        for lines in self.additions(scratch, saved.contents(file), line_bytes):
            packet += lines
            count, size = count + 1, size + sum(map(len, lines))
            if size >= PACKET_BYTES or not has_time:
                flush()
                packet, count, size = [], 0, 0
            if not has_time:  # a list that has no items has no time, either
                connection.send(b"ltouch %s %d" % (scratch, SCRATCH_S))
                has_time = connection.line() == b"TOUCHED"
        flush()

    def answer(self, connection):
        try:
            return connection.line()
        except Answer as error:
            return str(error).encode()

    def additions(self, scratch, contents, line_bytes):
        """Yields the lines of one request each, in the order of the items."""
        words, size = [], 0
        for item, second in contents:
            plain = second == 0 and NOT_INLINE.isdisjoint(item)
            if words and (not plain or size + len(item) > line_bytes):
                yield [words_of(b"ladd", scratch, *words)]
                words, size = [], 0
            if plain:
                words.append(item)
                size += len(item) + ENTRY_BYTES
            elif second == 0:
                yield [b"laddb %s %d" % (scratch, len(item)), item]
            elif (left_s := second - int(time.time())) > 0:
                yield [b"laddtb %s %d %d" % (scratch, left_s, len(item)), item]
        if words:
            yield [words_of(b"ladd", scratch, *words)]
