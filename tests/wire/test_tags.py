# SPDX-License-Identifier: BSD-3-Clause
"""Tags that carry a generation, as docs/collections.md has it: what is read behind the answer to an
lpurge is not older than the change before it, though memcacheds are restarted and lose the lists."""

import random
import threading
import time

import pytest

from harness import in_threads

USERS = 4
PAGES = 6
FAST = {"timeout_ms": 1000, "connect_timeout_ms": 500, "retry_min_ms": 5, "retry_max_ms": 20}


class Application:
    """One client of the recipe. database: {user: version}."""

    def __init__(self, conn, database, rng):
        self.conn, self.database, self.rng = conn, database, rng

    def first(self, tag):
        """The generation of the tag; None: there is none, or it cannot be read now."""
        self.conn.send(f"lrange {tag} 0 0\r\n")
        return self.first_of_answer()

    def first_of_answer(self):
        line = self.conn.line()
        if not line.startswith(b"VALUE"):
            return None
        item = self.conn.data(int(line.split()[3]))
        assert self.conn.line() == b"END"
        return item

    def generation(self, tag):
        for _ in range(5):
            found = self.first(tag)
            if found is None:
                self.conn.cmd(f"lcreate {tag} gen:{self.rng.getrandbits(64):016x}")
            elif found.startswith(b"gen:"):
                return found
            else:
                self.conn.cmd(f"lpurge {tag}")
        return None

    def read(self, user, page):
        """The version that the page shows, from the cache; None: a miss."""
        self.conn.send(f"get {page}\r\nlrange tag:{user} 0 0\r\n")
        line, value = self.conn.line(), None
        if line.startswith(b"VALUE"):
            value = self.conn.data(int(line.split()[3]))
            assert self.conn.line() == b"END"
        generation = self.first_of_answer()
        if value is None or generation is None or not generation.startswith(b"gen:"):
            return None
        made_under, version = value.split(b" ")
        return int(version) if made_under == generation else None

    def fill(self, user, page):
        generation = self.generation(f"tag:{user}")
        if generation is None or self.conn.cmd(f"ladd tag:{user} {page}") != b"STORED":
            return
        self.store(user, page, generation)

    def store(self, user, page, generation):
        version = self.database[user]
        if self.rng.random() < 0.2:
            time.sleep(self.rng.random() * 0.02)  # between the database and the cache
        self.conn.set(page, b"%s %d" % (generation, version))

    def purge(self, user):
        """Until it answers a number."""
        while not self.conn.cmd(f"lpurge tag:{user}").isdigit():
            time.sleep(0.005)


class StockApplication(Application):
    """The same with memcached's own verbs alone: the generation is a plain item beside the list."""

    def items(self, keys):
        """What is there of them, and can be read now."""
        try:
            return {key.decode(): data for key, _, data in self.conn.values(f"get {keys}")}
        except RuntimeError:
            return {}

    def generation(self, user):
        for _ in range(5):
            found = self.items(f"gen:{user}")
            if found:
                return found[f"gen:{user}"]
            value = b"%016x" % self.rng.getrandbits(64)
            self.conn.cmd(f"add gen:{user} 0 0 16", value)
        return None

    def read(self, user, page):
        found = self.items(f"{page} gen:{user}")
        made_under, version = found.get(page, b"- 0").split(b" ")
        return int(version) if made_under == found.get(f"gen:{user}") else None

    def fill(self, user, page):
        generation = self.generation(user)
        tag = f"append tag:{user} 0 0 {len(page)}"
        if generation is None or self.conn.cmd(tag, page) != b"STORED":
            return
        self.store(user, page, generation)

    def purge(self, user):
        for key in (f"gen:{user}", f"tag:{user}"):
            while self.conn.cmd(f"delete {key}") not in (b"DELETED", b"NOT_FOUND"):
                time.sleep(0.005)


BRIDGE = {"bridge": "yes", "bridge_delete": "purge", "delimiter": "\\x20"}


@pytest.mark.slow
@pytest.mark.parametrize("kind, tags", [(Application, {}), (StockApplication, BRIDGE)])
def test_nothing_stale_is_read_behind_a_purge_though_lists_are_lost(start_memcached, start_daemon,
                                                                    kind, tags):
    memcacheds = [start_memcached() for _ in range(3)]
    config = {"pool main": FAST, "lists tag:": tags}
    daemons = [start_daemon(memcacheds, config=config) for _ in range(2)]
    database = {user: 0 for user in range(USERS)}
    purged = {user: 0 for user in range(USERS)}  # versions whose purge was answered
    hits, misses, stale, restarts = [], [], [], []
    over = threading.Event()

    def client(number):
        rng = random.Random(number)
        with daemons[number % 2].conn() as conn:
            application = kind(conn, database, rng)
            while not over.is_set():
                user = rng.randrange(USERS)
                page = f"user{user}:page{rng.randrange(PAGES)}"
                oldest = purged[user]
                version = application.read(user, page)
                if version is None:
                    misses.append(page)
                    application.fill(user, page)
                else:
                    hits.append(page)
                    if version < oldest:
                        stale.append((page, version, oldest))
                time.sleep(0.001)  # leaves the processor to the restarts

    def invalidator(number):
        rng = random.Random(1000 + number)
        with daemons[number % 2].conn() as conn:
            application = kind(conn, database, rng)
            while not over.is_set():
                user = rng.randrange(number, USERS, 2)  # each has users of its own
                database[user] += 1
                application.purge(user)
                purged[user] = database[user]
                time.sleep(rng.random() * 0.02)

    def restarter():
        rng = random.Random(7)
        for _ in range(12):
            time.sleep(0.1 + rng.random() * 0.1)
            memcached = rng.choice(memcacheds)
            memcached.stop()
            memcached.start()
            restarts.append(memcached.address)
        over.set()

    def work(number):
        try:
            if number < 6:
                client(number)
            elif number < 8:
                invalidator(number - 6)
            else:
                restarter()
        finally:
            over.set()

    in_threads(9, work)
    print(f"{len(hits)} hits, {len(misses)} misses, {purged} purges, {len(restarts)} restarts")
    assert stale == []
    assert len(restarts) == 12
    assert len(hits) > len(restarts) * 10
    assert min(purged.values()) > 0


@pytest.mark.slow
@pytest.mark.config(**{"lists tag:": {"ttl_s": 6, "ttl_renew": "change"}})
def test_a_list_of_tags_that_ends_outlives_the_pages(conn):
    """ttl_s is twice the time of a page: what was named late is purged behind the list's first end."""
    assert conn.cmd("ladd tag:1 first") == b"STORED"
    time.sleep(4)
    assert conn.set("page", "x", exptime=3) == b"STORED"
    assert conn.cmd("ladd tag:1 page") == b"STORED"
    time.sleep(2.5)
    assert conn.cmd("lpurge tag:1") == b"2"
    assert conn.get("page") is None
