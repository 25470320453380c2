# SPDX-License-Identifier: BSD-3-Clause
"""All lists, in parallel: what fails for the moment is tried again, later each time."""

import collections
import sys
import threading
import time

from mclistd_convert import content
from mclistd_convert.inventory import ADVICE
from mclistd_convert.settings import check_proxies
from mclistd_convert.wire import Answer, Connection, shown

CHECK_EVERY_S = 5      # the proxies are asked again
LINE_EVERY_S = 10      # without a terminal
BUSY_TRIES = 8
BUSY_WAIT_S = 0.2      # before the second try; doubles


class Pool:
    """Threads that take tasks until none is left. handle(connections, number, task) does one;
    failed(task, error) takes those that fail for good."""

    def __init__(self, options, handle, failed, rate=0):
        self.options, self.handle, self.failed, self.rate = options, handle, failed, rate
        self.waiting = collections.deque()
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.working = 0
        self.broken = None
        self.next_start = time.monotonic()

    def take(self):
        """(task, try), "wait", or None: there is nothing left."""
        with self.lock:
            now = time.monotonic()
            if self.stop.is_set() or (not self.waiting and not self.working):
                return None
            if self.rate and now < self.next_start:
                return "wait"
            for _ in range(len(self.waiting)):
                task, tries, not_before = self.waiting.popleft()
                if not_before <= now:
                    self.working += 1
                    if self.rate:
                        self.next_start = max(self.next_start, now - 1) + 1 / self.rate
                    return task, tries
                self.waiting.append((task, tries, not_before))
            return "wait"

    def again(self, task, tries):
        with self.lock:
            wait_s = BUSY_WAIT_S * 2 ** (tries - 1)
            self.waiting.append((task, tries + 1, time.monotonic() + wait_s))

    def do(self, connections, number, task, tries):
        try:
            self.handle(connections, number, task)
        except (OSError, ValueError, Answer) as error:
            if not isinstance(error, Answer):
                connections.close()
            if content.may_pass(error) and tries < BUSY_TRIES:
                self.again(task, tries)
            else:
                self.failed(task, error)

    def work(self, number):
        connections = Connections(self.options)
        try:
            while (taken := self.take()) is not None:
                if taken == "wait":
                    time.sleep(0.005)
                    continue
                try:
                    self.do(connections, number, *taken)
                finally:
                    with self.lock:
                        self.working -= 1
        except BaseException as error:  # a fault of this program: not to be taken for success
            self.broken = error
            self.stop.set()
        finally:
            connections.close()

    def run(self, tasks, watch=lambda: None):
        """watch() is called now and then; what it raises ends the run."""
        self.waiting.extend((task, 1, 0.0) for task in tasks)
        numbers = range(self.options.parallel)
        threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in numbers]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0].join(0.1)
                watch()
                for thread in threads:
                    thread.join(0.02)
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        if self.broken:
            raise self.broken


class Connections:
    """Of one thread, to the proxies and the memcacheds: opened when needed, again after a loss."""

    def __init__(self, options):
        self.options, self.proxies = options, {}

    def proxy(self, number):
        address = self.options.proxies[number % len(self.options.proxies)]
        if address not in self.proxies:
            self.proxies[address] = Connection(address)
        return self.proxies[address]

    def close(self):
        for connection in self.proxies.values():
            connection.close()
        self.proxies.clear()
        self.options.stored.close()


class Progress:
    def __init__(self, what, total):
        self.what, self.total, self.done = what, total, 0
        self.began = self.last_line = time.monotonic()

    def text(self):
        passed_s = time.monotonic() - self.began
        rate = self.done / passed_s if passed_s > 0 else 0
        left = f"{(self.total - self.done) / rate:.0f} s left" if rate > 0 else ""
        return f"{self.what}: {self.done:,}/{self.total:,}, {rate:,.1f}/s, {left}"

    def show(self):
        if sys.stderr.isatty():
            width = 30
            full = width * self.done // self.total if self.total else width
            sys.stderr.write(f"\r\x1b[K[{'#' * full}{'.' * (width - full)}] {self.text()}")
            sys.stderr.flush()
        elif time.monotonic() - self.last_line >= LINE_EVERY_S:
            self.last_line = time.monotonic()
            print(self.text(), file=sys.stderr)

    def end(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def take_inventory(options, inventory, batches, keys=None):
    """Classifies them, and reads all lists once. keys: those that were named; else batches."""
    failures = {}
    if keys is not None:
        batches = [keys[at : at + 64] for at in range(0, len(keys), 64)]
        classify = inventory.classify_keys
    else:
        classify = inventory.classify
    errors = []
    progress = Progress("looked at", len(batches))

    def look(_, __, batch):
        classify(batch)
        progress.done += 1

    Pool(options, look, lambda _, error: errors.append(error)).run(batches, progress.show)
    progress.end()
    if errors:
        raise errors[0]
    reader = content.Reader(inventory.section)
    alone = set()
    lists = [key for key in inventory.lists() if key not in inventory.contents]
    progress = Progress("read", len(lists))

    def read(connections, number, key):
        found = reader.read(connections.proxy(number), key)
        if found.in_parts or found.apart:
            alone.add(key)
        inventory.contents[key] = reader.fingerprint(found)
        progress.done += 1

    def failed(key, error):
        progress.done += 1
        if content.is_foreign(error):
            inventory.refuse(key, str(error))
        else:
            failures[key] = str(error)

    Pool(options, read, failed).run(lists, progress.show)
    progress.end()
    return alone, failures


class Run:
    """Converts lists, or verifies them."""

    def __init__(self, options, inventory, state, backup):
        self.options, self.inventory = options, inventory
        self.state, self.backup = state, backup
        self.reader = content.Reader(inventory.section)
        self.all = self.lists = self.items = self.differing = 0
        self.counts = collections.Counter()
        self.failures, self.refused, self.alone = [], [], set()
        self.expected = {}  # {key: (items, digest)}, of an inventory from before
        self.lock = threading.Lock()
        self.began = time.monotonic()

    def done(self, key, outcome):
        if outcome.kind != "failed" and not self.options.verify_only:
            self.state.add(key + b"\n")
        with self.lock:
            self.progress.done += 1
            self.lists += 1
            self.items += outcome.items
            self.counts[outcome.kind] += 1
            if outcome.kind == "changed":
                self.differing += outcome.differing
            if outcome.kind == "failed":
                self.failures.append((key, outcome.reason))

    def failed(self, key, error):
        # A value in the place of a list that was there before stands in its way.
        if content.is_foreign(error) and not self.must_be_native:
            self.inventory.refuse(key, str(error))
            with self.lock:
                self.refused.append(key)
                self.progress.done += 1
        else:
            reason = ADVICE.sub("", str(error)) if content.is_foreign(error) else str(error)
            self.done(key, content.Outcome("failed", reason=reason))

    def convert(self, connections, number, key):
        self.backup.save(self.options.stored, key)
        how = content.convert_alone if key in self.alone else content.convert
        outcome = how(self.reader, connections.proxy(number), key)
        if outcome.kind != "failed":
            # A proxy that has met the list in the native layout does not look for the old one.
            reason = self.inventory.why_not_native(key, 0)
            if reason:
                reason += "; restart the proxies and try again"
                outcome = content.Outcome("failed", reason=reason)
        self.done(key, outcome)

    def verify(self, connections, number, key):
        proxies = [connections.proxy(number + i) for i in range(len(self.options.proxies))]
        found, outcome = content.compare(self.reader, key, proxies)
        before = self.expected.get(key)
        if outcome.kind == "exact" and before:
            now = len(found.items), content.digest_of(found.items)
            if now[0] == 0 < before[0]:
                outcome.kind, outcome.reason = "failed", f"it held {before[0]} items and is not there"
            elif now != before and self.reader.fingerprint(found) != before:
                outcome.kind = "changed"
                outcome.differing = abs(now[0] - before[0])
        if self.must_be_native:
            reason = self.inventory.why_not_native(key, len(found.items))
            if reason:
                outcome = content.Outcome("failed", reason=reason)
        self.done(key, outcome)

    must_be_native = False

    def watch(self):
        """The proxies are looked at now and then. Raises Refused."""
        self.state.sync()
        self.backup.sync()
        self.progress.show()
        if time.monotonic() - self.last_check >= CHECK_EVERY_S and not self.options.verify_only:
            first = self.inventory.worlds[0]
            check_proxies(self.options.proxies, self.options.prefix, first=first)
            self.last_check = time.monotonic()

    def run(self, keys):
        self.all += len(keys)
        self.last_check = time.monotonic()
        verify_only = self.options.verify_only
        self.progress = Progress("verified" if verify_only else "converted", len(keys))
        handle = self.verify if verify_only else self.convert
        try:
            Pool(self.options, handle, self.failed, self.options.rate).run(keys, self.watch)
        finally:
            self.state.sync()
            self.backup.sync()
            self.progress.end()

    def summary(self):
        word = "read" if self.options.verify_only else "converted"
        what = "what they held before"
        if self.options.verify_only:
            what = "the same through all proxies" if not self.expected else "what the inventory says"
        c = self.counts
        passed_s = time.monotonic() - self.began
        print(
            f"{self.lists - c['failed']} of {self.all} lists {word}, {self.items} items, "
            f"in {passed_s:.1f} s: {c['exact']} hold exactly {what}; "
            f"{c['changed']} were changed meanwhile, {self.differing} items differing; "
            f"{c['unseen']} large ones were changed meanwhile and not compared; "
            f"{c['failed']} failed"
        )
        for key, reason in sorted(self.failures):
            print(f"failed: {shown(key)}: {reason}")
