# SPDX-License-Identifier: BSD-3-Clause
"""Busy clients: they do all list verbs, record what they did, and insist on an answer in time."""

import collections
import random
import socket
import threading
import time

import verbs
from cluster import ANSWER_S
from harness import Conn

LOOK_S = 0.5


class Patience:
    """How long may answers take? The time when a proxy was away, or when this program itself did
    not get on, does not count."""

    def __init__(self, stalls):
        self.stalls = stalls
        self.longest_s = 0.0

    def waited_s(self, proxy, since_ns):
        elapsed_s = (time.monotonic_ns() - since_ns) / 1e9
        return elapsed_s - proxy.away_s(since_ns) - self.stalls.lost_s(since_ns)

    def check(self, proxy, since_ns, what):
        waited_s = self.waited_s(proxy, since_ns)
        if waited_s > ANSWER_S:
            raise verbs.Fault(f"{what}: proxy {proxy.number} gives no answer for {waited_s:.1f} s")

    def note(self, proxy, since_ns):
        self.longest_s = max(self.longest_s, self.waited_s(proxy, since_ns))


class PatientConn(Conn):
    """Waits for an answer as long as one may take."""

    def __init__(self, proxy, patience):
        self.connected_ns = time.monotonic_ns()
        super().__init__(proxy.port, timeout_s=LOOK_S)
        self.proxy, self.patience = proxy, patience
        self.sent_ns = 0
        self.what = ""

    def _more(self):
        while True:
            try:
                super()._more()
                return
            except socket.timeout:
                self.patience.check(self.proxy, self.sent_ns, self.what)


class Client(threading.Thread):
    def __init__(self, number, cluster, history, patience, seed, over):
        super().__init__(name=f"client {number}", daemon=True)
        self.cluster, self.history, self.patience, self.over = cluster, history, patience, over
        self.rng = random.Random(f"client {seed} {number}")
        self.done = collections.Counter()  # "form outcome"
        self.errors = collections.Counter()  # by their texts
        self.damaged = set()  # keys of lists that were said to be
        self.fault = None

    def run(self):
        try:
            while not self.over():
                self.talk()
        except BaseException as fault:  # told by the scenario
            self.fault = fault

    def talk(self):
        """One connection to one of the proxies, until it breaks or a while is over."""
        proxy = self.rng.choice(self.cluster.proxies)
        try:
            conn = PatientConn(proxy, self.patience)
        except OSError:
            time.sleep(0.02)
            return
        process = self.history.new_process()
        with conn:
            for _ in range(self.rng.randint(5, 100)):
                if self.over() or not self.ask(conn, process):
                    return

    def ask(self, conn, process):
        """A pipeline of a few requests. False when the connection is no more."""
        requests = [
            verbs.draw_request(self.rng) for _ in range(self.rng.choices([1, 2, 6], [12, 3, 1])[0])
        ]
        leave_at = self.rng.randrange(len(requests)) if self.rng.random() < 0.003 else None
        conn.what = " + ".join(f"{r.form} {r.lists[0].key}" for r in requests)
        invoked_ns = conn.sent_ns = time.monotonic_ns()
        answered = 0
        try:
            conn.send(*[request.text() for request in requests])
            for request in requests:
                if answered == leave_at:
                    break
                outcomes = verbs.take_answer(conn, request)
                self.patience.note(conn.proxy, invoked_ns)
                verbs.record(self.history, request, invoked_ns, time.monotonic_ns(), process,
                             outcomes)
                self.count(request, outcomes)
                answered += 1
        except (OSError, EOFError) as reason:
            if not conn.proxy.was_killed(conn.connected_ns):
                raise verbs.Fault(f"closed by proxy {conn.proxy.number}, which was not killed: "
                                  f"{reason}; asked: {conn.what}") from None
        finally:
            for request in requests[answered:]:
                verbs.record(self.history, request, invoked_ns, None, process, None)
        return answered == len(requests)

    def count(self, request, outcomes):
        for item, outcome in zip(request.lists, outcomes):
            self.done[f"{request.form} {outcome.word}"] += 1
            self.errors[outcome.error] += bool(outcome.error)
            if outcome.word == "damaged":
                self.damaged.add(item.key)
