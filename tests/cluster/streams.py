# SPDX-License-Identifier: BSD-3-Clause
"""How changes travel from node to node: one connection from each node to each other one, over which
go whole copies of vBuckets, then their changes, and back up to which change each has come."""

import collections
import threading
import time
from multiprocessing.connection import Client

RETRY_S = 0.02


class Stream:
    """From this node to another one, for as long as this one lives."""

    def __init__(self, member, to, address):
        self.member, self.to, self.address = member, to, address
        self.lock = member.lock  # a condition
        self.queue = collections.deque()
        self.wanted = set()  # the vBuckets of which the other node keeps a copy
        self.connected = False
        threading.Thread(target=self._run, daemon=True).start()

    def want(self, vbuckets):
        """Of these vBuckets the other node gets a copy from now on. Locked by the caller."""
        for vbucket in sorted(vbuckets - self.wanted):
            self._send_whole(vbucket)
        self.wanted = set(vbuckets)

    def renew(self, vbucket):
        """The vBucket's term is another one. Locked by the caller."""
        if vbucket in self.wanted:
            self._send_whole(vbucket)

    def _send_whole(self, vbucket):
        if self.connected:
            self.member.vbuckets[vbucket].acked.pop(self.to, None)
            self._put("whole", vbucket, self.member.vbuckets[vbucket].whole())

    def tell(self, vbucket, entry):
        """Locked by the caller."""
        if self.connected and vbucket in self.wanted:
            self._put("entry", vbucket, entry)

    def _put(self, *message):
        self.queue.append(message)
        self.lock.notify_all()

    def _run(self):
        while True:
            try:
                with Client(self.address) as connection:
                    connection.send("stream")
                    self._connected(connection)
            except (OSError, EOFError):
                pass
            with self.lock:
                self.connected = False
                self.queue.clear()
            time.sleep(RETRY_S)

    def _connected(self, connection):
        with self.lock:
            self.connected = True
            for vbucket in sorted(self.wanted):
                self._send_whole(vbucket)
        while True:
            with self.lock:
                while not self.queue:
                    self.lock.wait()
            time.sleep(self.member.lag_s)
            self.member.reachable.wait()
            with self.lock:
                batch = list(self.queue)
                self.queue.clear()
            connection.send(batch)
            done = connection.recv()
            with self.lock:
                self._take_acks(done)

    def _take_acks(self, done):
        for vbucket, (term, number) in done.items():
            copy = self.member.vbuckets[vbucket]
            if copy.term == term and copy.state == "active":
                copy.acked[self.to] = max(copy.acked.get(self.to, 0), number)
                copy.settle()
        self.lock.notify_all()


def receive(member, connection):
    """The other end."""
    while True:
        batch = connection.recv()
        member.reachable.wait()
        done = {}
        with member.lock:
            for kind, vbucket, what in batch:
                copy = member.vbuckets[vbucket]
                if copy.take_whole(*what) if kind == "whole" else copy.take(what):
                    done[vbucket] = copy.term, copy.number
        connection.send(done)
