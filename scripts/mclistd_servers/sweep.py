# SPDX-License-Identifier: BSD-3-Clause
"""What has not moved yet. The crawlers of the memcacheds name the items, and a proxy moves each list
(lmigrate), or says why it stays."""

import contextlib
import re
import time

from mclistd_convert.names import NATIVE_HEAD, NATIVE_SUBLIST
from mclistd_convert.stored import names_on
from mclistd_convert.wire import ITEM_KEY, Answer, Connection, Refused, Server, shown
from mclistd_lists.crawl import Memcached, Pace

AT_ONCE = 64
MARK = re.compile(rb"\^> ")
COPY = re.compile(rb"\^1 >")
HEAD = re.compile(rb"\^1[ \n]")
SHOWN_MAX = 5
MARK_BYTES_MAX = 64
STAYS = "SERVER_ERROR the list stays on its old server: "


@contextlib.contextmanager
def asked(address):
    """What goes wrong while this memcached is asked becomes a Refused."""
    try:
        yield
    except (OSError, ValueError, KeyError, Answer) as error:
        raise Refused(f"memcached {address}: {error}") from None


@contextlib.contextmanager
def crawled(address, wanted):
    """A Memcached with the items whose key `wanted` takes, until the end of the block."""
    found = Memcached(address, Pace(0))
    with asked(address):
        try:
            found.crawl(wanted, set())
            yield found
        finally:
            if found.server is not None:
                found.server.close()


def is_head(key):
    """Of a list that a proxy can be asked about."""
    return ITEM_KEY.fullmatch(key) and NATIVE_HEAD.fullmatch(key)


def is_plain(key):
    return ITEM_KEY.fullmatch(key) and not (NATIVE_HEAD.fullmatch(key) or NATIVE_SUBLIST.fullmatch(key))


class Left:
    """What is still to be done: heads on old servers, copies that nobody has confirmed. stray: heads
    where neither rule looks for them."""

    def __init__(self, pools):
        self.heads, self.copies, self.stray, self.marks = [], [], [], 0
        for address in pools.servers():
            with crawled(address, is_head) as server:
                self._look(pools, server)

    def _look(self, pools, server):
        address, keys = server.address, sorted(server.records)
        old, new = pools.places(keys), pools.places(keys, True)
        wanted = [key for key in keys if old[key] != new[key] or old[key] != address]
        for key, value in server.read(wanted):
            if value is None:
                continue
            text, moves = value.value, old[key] != new[key]
            on_old, on_new = moves and old[key] == address, moves and new[key] == address
            if MARK.match(text):
                self.marks += 1
            elif COPY.match(text) and (on_old or on_new):
                self.copies.append(key[:-1])
            elif HEAD.match(text) and on_old:
                self.heads.append(key[:-1])
            elif HEAD.match(text) and not on_new and old[key] != address:
                self.stray.append((key[:-1], address))

    def lists(self):
        return sorted(set(self.heads) | set(self.copies))


def plain_left(pools):
    """Plain keys that old servers hold and that move: the names alone, since there may be millions."""
    found = []
    for address in pools.old:
        with asked(address):
            names = names_on(address, set(), lambda name, _: is_plain(name), passes_max=1)
        old, new = pools.places(names), pools.places(names, True)
        found += [name for name in names if old[name] == address != new[name]]
    return found


class Mover:
    """Has a proxy move lists. failed: what was answered of those that stay, with their keys."""

    def __init__(self, proxy, rate):
        self.proxy, self.pace = proxy, Pace(rate)
        self.failed = {}

    def move(self, keys, tell, verb=b"lmigrate"):
        """Calls tell(how many are done) now and then. Raises Refused when the proxy has gone."""
        done = 0
        self.failed = {}
        try:
            with contextlib.closing(Connection(self.proxy)) as connection:
                for start in range(0, len(keys), AT_ONCE):
                    part = keys[start : start + AT_ONCE]
                    connection.send(*(verb + b" " + key for key in part))
                    for key in part:
                        self._take(connection, key)
                    done += len(part)
                    self.pace.wait(len(part))  # the time that it takes is in what is told
                    tell(done)
        except OSError as error:
            raise Refused(f"{self.proxy}: {error}: start this again, it goes on where it was") from None

    def _take(self, connection, key):
        try:
            connection.line()
        except Answer as answer:
            self.failed.setdefault(str(answer).replace(STAYS, ""), []).append(key)

    def has_failed(self, keys):
        """Were all of them refused when they were to be moved last?"""
        return set(keys) <= {key for some in self.failed.values() for key in some}

    def failures(self):
        return [
            f"{len(keys)} stay: {answer} ({', '.join(shown(key) for key in keys[:SHOWN_MAX])})"
            for answer, keys in self.failed.items()
        ]


# --- behind the change -----------------------------------------------------------------------------


class Remains:
    """Marks and copies, of which no proxy knows anything any more. remove: else they are only counted.
    check() raises Refused when the next change has begun: its marks must stay."""

    CHECK_S = 1

    def __init__(self, pools, addresses, remove, check):
        self.pools, self.check, self.checked = pools, check, 0
        self.removed = self.strays = 0
        for address in addresses:
            with crawled(address, is_head) as found, contextlib.closing(Server(address)) as server:
                self._look(found, server, remove)

    def _look(self, found, server, remove):
        """server: another connection to it, since items are removed between two that are read."""
        address, keys = found.address, sorted(found.records)
        places = self.pools.places(keys)
        small = [key for key, value in found.read(keys, False)
                 if value is not None and (value.size <= MARK_BYTES_MAX or places[key] != address)]
        for key, value in found.read(small):
            if value is not None and (MARK.match(value.value) or COPY.match(value.value)):
                self._take(server, key, value, remove)
            elif value is not None:
                self.strays += bool(HEAD.match(value.value)) and places[key] != address

    def _take(self, server, key, value, remove):
        if time.monotonic() - self.checked > self.CHECK_S:
            self.check()
            self.checked = time.monotonic()
        self.removed += not remove or server.delete(key, value.cas)


class Progress:
    """Lines about what is under way: one that is written over and over on a terminal, else one every
    few seconds."""

    EVERY_S = 10

    def __init__(self, out):
        self.out, self.is_terminal, self.last, self.width = out, out.isatty(), 0, 0

    def __call__(self, text):
        now = time.monotonic()
        if now - self.last < (0.2 if self.is_terminal else self.EVERY_S):
            return
        self.last = now
        if self.is_terminal:
            self.out.write("\r" + text.ljust(self.width))
            self.width = len(text)
        else:
            self.out.write(text + "\n")
        self.out.flush()

    def end(self):
        if self.is_terminal and self.width:
            self.out.write("\r" + " " * self.width + "\r")
            self.width = 0
        self.last = 0
