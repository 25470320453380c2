# SPDX-License-Identifier: BSD-3-Clause
"""Work queues: producers add jobs, consumers take them by lpop. Each job goes to one consumer at
most, whatever dies; only those of an lpop that was not answered, or whose outcome was said to be
unknown, may be lost."""

import collections
import random
import threading
import time

import verbs
from clients import PatientConn
from cluster import SPREAD
from harness import wait_until

KEYS = ["queue", SPREAD + "queue"]
PRODUCERS, CONSUMERS = 2, 4


class Queue:
    """What is known of one. Locked by its users."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked, self.added = set(), set()  # jobs that were sent; of them, those acknowledged
        self.taken = collections.Counter()
        self.may_be_lost = 0  # of those that were taken off, so many at most reached no consumer


def take_jobs(conn):
    """The answer to an lpop: (jobs, "") or (None, the error)."""
    jobs = []
    while (line := conn.line()) != b"END":
        if not line.startswith(b"VALUE "):
            return None, line
        data = conn.data(int(line.split(b" ")[3]))
        jobs = data.split(b",") if data else []
    return jobs, b""


class Worker(threading.Thread):
    """Connects to one proxy after another. Subclasses say what they do there."""

    def __init__(self, number, queues, seed):
        super().__init__(name=f"{type(self).__name__} {number}", daemon=True)
        self.number, self.queues = number, queues
        self.rng = random.Random(f"{self.name} {seed}")
        self.fault, self.done = None, 0

    def run(self):
        try:
            while not self.queues.over():
                self.talk()
        except BaseException as fault:  # told by the scenario
            self.fault = fault

    def talk(self):
        proxy = self.rng.choice(self.queues.proxies)
        try:
            conn = PatientConn(proxy, self.queues.patience)
        except OSError:
            time.sleep(0.02)
            return
        conn.what = self.name
        try:
            with conn:
                for _ in range(self.rng.randint(5, 60)):
                    if self.queues.over():
                        return
                    key = self.rng.choice(KEYS)
                    conn.sent_ns = time.monotonic_ns()
                    self.work(conn, key, self.queues.known[key])
                    time.sleep(0.002)
        except (OSError, EOFError) as reason:
            if not proxy.was_killed(conn.connected_ns):
                raise verbs.Fault(f"{self.name}: closed by proxy {proxy.number}, which was not "
                                  f"killed: {reason}") from None


class Producer(Worker):
    def work(self, conn, key, queue):
        first = self.done
        self.done += self.rng.randint(1, 30)
        jobs = [b"job-%d-%d" % (self.number, n) for n in range(first, self.done)]
        with queue.lock:
            queue.asked.update(jobs)
        verb = self.rng.choice([b"ladd", b"laddx"])
        conn.send(b"%s %s %s\r\n" % (verb, key.encode(), b" ".join(jobs)))
        line = conn.line()
        if line == b"STORED" or line.isdigit():
            if line.isdigit() and int(line) != len(jobs):
                raise verbs.Fault(f"{key}: laddx of {len(jobs)} new jobs answers {line!r}")
            with queue.lock:
                queue.added.update(jobs)


class Consumer(Worker):
    def work(self, conn, key, queue):
        count = self.rng.choice([1, 1, 2, 8, -1, -3])
        is_known = False
        try:
            conn.send(f"lpop {key} {count}\r\n")
            jobs, error = take_jobs(conn)
            is_known = b"unknown" not in error
        finally:
            if not is_known:
                with queue.lock:
                    queue.may_be_lost += abs(count)
        if jobs is not None and len(jobs) > abs(count):
            raise verbs.Fault(f"{key}: lpop {count} answers {jobs}")
        with queue.lock:
            queue.taken.update(jobs or [])
        self.done += len(jobs or [])


class Queues:
    def __init__(self, cluster, patience, seed, over):
        self.proxies, self.patience, self.over = cluster.proxies, patience, over
        self.known = {key: Queue() for key in KEYS}
        self.workers = [Producer(n, self, seed) for n in range(PRODUCERS)]
        self.workers += [Consumer(n, self, seed) for n in range(CONSUMERS)]

    def judge(self, conn, may_lose):
        """All is quiet: what is left is taken. Returns what is wrong. may_lose(key): servers were
        emptied, so jobs may be gone, or the list damaged."""
        return [fault for key, queue in self.known.items()
                for fault in self.judge_one(conn, key, queue, may_lose)]

    def judge_one(self, conn, key, queue, may_lose):
        def drained():
            conn.send(f"lpop {key} 1000\r\n")
            jobs, error = take_jobs(conn)
            queue.taken.update(jobs or [])
            if b"unknown" in error:
                queue.may_be_lost += 1000
            return jobs == [] or (b"damaged" in error and may_lose)

        wait_until(f"{key} is empty", drained)
        twice = sorted(job for job, times in queue.taken.items() if times > 1)
        strange = sorted(queue.taken.keys() - queue.asked)
        lost = sorted(queue.added - queue.taken.keys())
        if twice:
            yield f"{key}: {len(twice)} jobs went to two consumers: {twice[:5]}"
        if strange:
            yield f"{key}: jobs that no producer added: {strange[:5]}"
        if len(lost) > queue.may_be_lost and not may_lose:
            yield (f"{key}: {len(lost)} jobs are lost, and {queue.may_be_lost} at most may be: "
                   f"{lost[:5]}")

    def summary(self):
        taken = sum(len(queue.taken) for queue in self.known.values())
        lost = sum(len(queue.added - queue.taken.keys()) for queue in self.known.values())
        return f"queues: {taken} jobs taken, {lost} lost by lpops without an answer"
