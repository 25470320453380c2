# SPDX-License-Identifier: BSD-3-Clause
"""What has not moved yet. The crawlers of the memcacheds name the items, and a proxy moves each list
(lmigrate), or says why it stays."""

import contextlib
import re
import time

from mclistd_convert.stored import GATE
from mclistd_convert.wire import ITEM_KEY, Answer, Connection, Refused, Server, dump, meta, shown
from mclistd_lists.crawl import Memcached, Pace
from mclistd_servers.pools import HEAD_KEY, SUBLIST_KEY

AT_ONCE = 64
MARK = re.compile(rb"\^> ")
COPY = re.compile(rb"\^1 >")
HEAD = re.compile(rb"\^1[ \n]")
SHOWN_MAX = 5
MARK_BYTES_MAX = 64
STAYS = "SERVER_ERROR the list stays on its old server: "


def crawl(address, wanted):
    """A Memcached with the items whose key `wanted` takes. Raises Refused."""
    found = Memcached(address, Pace(0))
    try:
        found.crawl(wanted, set())
    except (OSError, ValueError, KeyError, Answer) as error:
        raise Refused(f"memcached {address}: {error}") from None
    return found


def is_head(key):
    return HEAD_KEY.fullmatch(key) is not None


class Left:
    """What is still to be done: heads on old servers, copies that nobody has confirmed. stray: heads
    where neither rule looks for them."""

    def __init__(self, pools):
        self.heads, self.copies, self.stray, self.marks = [], [], [], 0
        for address in pools.servers():
            self._look(pools, address)

    def _look(self, pools, address):
        server = crawl(address, is_head)
        keys = sorted(server.records)
        moving = pools.moving(keys)
        old = pools.places(keys)
        wanted = [key for key in keys if key in moving or old[key] != address]
        for key, value in server.read(wanted):
            if value is None:
                continue
            text = value.value
            on_old = key in moving and moving[key][0] == address
            on_new = key in moving and moving[key][1] == address
            if MARK.match(text):
                self.marks += 1
            elif COPY.match(text) and (on_old or on_new):
                self.copies.append(key[:-1])
            elif HEAD.match(text) and on_old:
                self.heads.append(key[:-1])
            elif HEAD.match(text) and not on_new and old[key] != address:
                self.stray.append((key[:-1], address))
        server.server.close()

    def lists(self):
        return sorted(set(self.heads) | set(self.copies))


def plain_left(pools):
    """Plain keys that old servers hold and that move: the names alone, since there may be millions."""
    found = []
    for address in pools.old:
        names = []

        def take(name, _, names=names):
            if not (is_head(name) or SUBLIST_KEY.fullmatch(name) or name.startswith(GATE)):
                names.append(name)
            return False

        try:
            if dump(address, b"hash", take) is None:
                dump(address, b"all", take)
        except (OSError, Answer) as error:
            raise Refused(f"memcached {address}: {error}") from None
        names = [name for name in names if ITEM_KEY.fullmatch(name)]
        found += [key for key, (old, _) in pools.moving(names).items() if old == address]
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
                    tell(done)
                    self.pace.wait(len(part))
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
            self._look(address, remove)

    def _look(self, address, remove):
        found = crawl(address, is_head)
        server = Server(address)
        try:
            keys = sorted(found.records)
            places = self.pools.places(keys)
            small = [key for key, value in found.read(keys, False)
                     if value is not None and (value.size <= MARK_BYTES_MAX or places[key] != address)]
            for key, value in found.read(small):
                if value is not None and (MARK.match(value.value) or COPY.match(value.value)):
                    self._take(server, key, value, remove)
                elif value is not None:
                    self.strays += bool(HEAD.match(value.value)) and places[key] != address
        except (OSError, Answer) as error:
            raise Refused(f"memcached {address}: {error}") from None
        finally:
            found.server.close()
            server.close()

    def _take(self, server, key, value, remove):
        if time.monotonic() - self.checked > self.CHECK_S:
            self.check()
            self.checked = time.monotonic()
        answer = b"HD"
        if remove:
            server.send(meta(b"md", key, [], [b"C" + value.cas]))
            answer = server.line()
        if answer not in (b"HD", b"NF", b"EX"):
            raise Answer(f"md: {shown(answer)}")
        self.removed += answer == b"HD"


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
