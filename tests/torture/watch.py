# SPDX-License-Identifier: BSD-3-Clause
"""What the proxies take: memory, descriptors, log; and whether this machine kept up."""

import pathlib
import re
import threading
import time

from cluster import (
    CACHE_BYTES, CLIENT_HARD_BYTES, FOLD_MEMORY_BYTES, SERVERS, THREADS
)
from harness import SANITIZER_REPORT

TICK_S = 0.05
MIB = 1 << 20
CRASH = re.compile(r"check failed|Sanitizer|runtime error|terminate|Assertion")
# Per connection of a client: structures, and a block of input while a request is incomplete.
CONNECTION_BYTES = 20 << 10
# Memory that is free but was not given back: between blocks that are in use, per thread.
UNUSED_SHARE = 1.5
# Logged at most once a second each: a damaged list, a list whose calls waited, a client that left
# too much unread, a server that evicts.
LINES_PER_S = 4
LINES_PER_START = 20


class Stalls(threading.Thread):
    """Notes when this program did not get on: then no answer counts as late."""

    def __init__(self):
        super().__init__(name="stalls", daemon=True)
        self.spans = []
        self.ending = threading.Event()

    def run(self):
        while not self.ending.is_set():
            before = time.monotonic_ns()
            time.sleep(TICK_S)
            after = time.monotonic_ns()
            if (after - before) / 1e9 > 4 * TICK_S:
                self.spans.append((before, after))

    def lost_s(self, since_ns):
        return sum(max(end - max(start, since_ns), 0) for start, end in list(self.spans)) / 1e9

    def stop(self):
        self.ending.set()
        self.join()


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


def is_for_use(pid):
    """A sanitizer's build takes what memory it likes."""
    program = pathlib.Path(f"/proc/{pid}/exe").read_bytes()
    return not any(name in program for name in (b"__asan_init", b"__tsan_init"))


class Watch(threading.Thread):
    """The largest memory of each proxy, also of those that are killed."""

    def __init__(self, proxies, servers=SERVERS):
        super().__init__(name="watch", daemon=True)
        self.proxies, self.servers = proxies, servers
        self.at_start = [resident_bytes(proxy.daemon.process.pid) for proxy in proxies]
        self.most = list(self.at_start)
        self.for_use = is_for_use(proxies[0].daemon.process.pid)
        self.descriptors = [proxy.descriptors() for proxy in proxies]
        self.ending = threading.Event()

    def run(self):
        while not self.ending.wait(0.1):
            for number, proxy in enumerate(self.proxies):
                try:
                    size = resident_bytes(proxy.daemon.process.pid)
                except (OSError, AttributeError):  # it is just being killed
                    continue
                self.most[number] = max(self.most[number], size)

    def stop(self):
        self.ending.set()
        self.join()

    def memory_bound(self, clients, readers):
        """Bytes that one proxy may take beyond those that it began with."""
        # Two caches: that of the huge list is one of its own.
        limits = 2 * CACHE_BYTES + readers * CLIENT_HARD_BYTES + THREADS * FOLD_MEMORY_BYTES
        return (limits + clients * CONNECTION_BYTES) * UNUSED_SHARE

    def judge_memory(self, clients, readers):
        """Returns what is wrong. clients, readers: per proxy."""
        if not self.for_use:
            return []
        bound = self.memory_bound(clients, readers)
        return [
            f"proxy {number} took {most / MIB:.0f} MiB, {start / MIB:.0f} MiB of them at its "
            f"start; the bound is {bound / MIB:.0f} MiB more"
            for number, (most, start) in enumerate(zip(self.most, self.at_start))
            if most - start > bound
        ]

    def judge_descriptors(self):
        """When all clients are gone: what there was at the start, and a connection per worker and
        server."""
        faults = []
        for proxy, before in zip(self.proxies, self.descriptors):
            deadline = time.monotonic() + 5
            most = before + THREADS * self.servers
            while (now := proxy.descriptors()) > most and time.monotonic() < deadline:
                time.sleep(0.02)
            if now > most:
                faults.append(f"proxy {proxy.number} has {now} descriptors, {before} at its start")
        return faults


def judge_log(proxy, links, seconds):
    """No report of a crash, and no more lines than there is reason for: two per connection to a
    server, some per start and second. links: the relay's numbers of its links to servers."""
    log = proxy.daemon.log()
    faults = [f"proxy {proxy.number}: {line}" for line in log.splitlines() if CRASH.search(line)]
    if SANITIZER_REPORT.search(log):
        faults.append(f"proxy {proxy.number}: a sanitizer's report: {proxy.daemon.log_path}")
    connections = sum(stats["connections"] for stats in links)
    most = 2 * connections + LINES_PER_S * (seconds + 1) + LINES_PER_START * (len(proxy.kills) + 1)
    lines = log.count("\n")
    if lines > most:
        faults.append(f"proxy {proxy.number} logged {lines} lines; {most:.0f} would have done")
    return faults
