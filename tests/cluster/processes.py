# SPDX-License-Identifier: BSD-3-Clause
"""A fake cluster whose nodes are processes, and what in a real one decides who has which vBucket.

    with Processes(folder, nodes=3, replicas=1) as cluster:
        cluster.kill(0)
        cluster.fail_over(0)       # the most advanced copies become active
        cluster.start(0)
        cluster.join(0)            # and a rebalance

Killed, a node has lost all it had: nothing is on a disk here. A paused node that was failed over goes
on as it was when it is resumed, until hear() tells it. Methods may be called by several threads;
changes of the map come one after the other, and end with Gone when a node of theirs goes."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Client

PROGRAM = pathlib.Path(__file__).resolve().parent / "member"
LOOK_S = 0.05
POLL_S = 0.002
PAUSE_S = 5  # until a node stands still, at most
ORDER_S = 60  # more than any pause


class Gone(Exception):
    """A node that was needed is to be failed over, or ended."""


class Handle:
    """One node's process."""

    def __init__(self, folder, sockets, index, vbuckets, views):
        """folder: for its log; sockets: the folder in which nodes find each other."""
        self.folder, self.sockets, self.index, self.vbuckets = folder, sockets, index, vbuckets
        self.ports = [0] * views
        self.process = self.connection = None
        self.lock = threading.Lock()
        self.condemned = False  # it gets no orders any more
        self.deaf_since = None  # (its vBuckets, when): failed over, and does not know that

    def start(self):
        words = [sys.executable, PROGRAM, self.sockets, self.index, self.vbuckets, *self.ports]
        with open(f"{self.folder}/node-{self.index}.log", "ab") as log:
            self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        self.ports = [int(port) for port in self.process.stdout.readline().split()]
        self._connect()
        self.condemned, self.deaf_since = False, None

    def order(self, *words):
        with self.lock:
            if self.condemned:
                raise Gone(f"node {self.index}")
            try:
                self.connection.send(words)
                deadline = time.monotonic() + ORDER_S
                while not self.connection.poll(LOOK_S):
                    if self.condemned or time.monotonic() > deadline:
                        self._begin_anew()
                        raise Gone(f"node {self.index}")
                return self.connection.recv()
            except (OSError, EOFError):
                raise Gone(f"node {self.index}") from None

    def _begin_anew(self):
        """The answer to an order that was given up must not be taken for that to a later one."""
        self.connection.close()
        self._connect()

    def _connect(self):
        self.connection = Client(f"{self.sockets}/node-{self.index}")
        self.connection.send("orders")

    def kill(self):
        self.condemned = True
        self.process.kill()
        self.process.wait()
        self.deaf_since = None


class Processes:
    def __init__(self, folder, nodes=3, vbuckets=64, replicas=1, views=1):
        """views: ports per node. places[view][node], unless set by the caller, are these ports."""
        self.vbuckets, self.replicas = vbuckets, replicas
        self.bucket, self.user, self.password = "lists", "user", "pencil"  # Cluster's
        self.lock = threading.RLock()
        self.sockets = tempfile.TemporaryDirectory(prefix="nodes-")  # names of sockets are short
        self.handles = [
            Handle(folder, self.sockets.name, i, vbuckets, views) for i in range(nodes)
        ]
        self.members = list(range(nodes))
        self.revision, self.forward = 0, None
        self.chains = [self.chain_of(vbucket) for vbucket in range(vbuckets)]
        self.terms = [1] * vbuckets
        self.sends = {i: {} for i in range(nodes)}  # {node: {other: vBuckets}}
        self.moved = 0  # vBuckets that have another active copy by a rebalance
        self.failovers = []  # (vBuckets that were lost with a node, when)
        self.stale = []  # see stale_times: those that are over
        self.lost = 0  # vBuckets of which there was no copy any more
        for handle in self.handles:
            handle.start()
        self.places = [[handle.ports[view] for handle in self.handles] for view in range(views)]
        for vbucket, chain in enumerate(self.chains):
            self._lead(vbucket, chain)
        self.publish()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for handle in self.handles:
            if handle.process is not None:
                handle.kill()
        self.sockets.cleanup()

    def order(self, node, *words):
        return self.handles[node].order(*words)

    # --- the map

    def chain_of(self, vbucket):
        """As a rebalance makes it."""
        nodes = [self.members[(vbucket + i) % len(self.members)] for i in range(len(self.members))]
        return (nodes + [-1] * self.replicas)[: self.replicas + 1]

    def publish(self):
        """Tells all that hear."""
        with self.lock:
            self.revision += 1
            for index, handle in enumerate(self.handles):
                if not handle.condemned:
                    self._tell_map(index)

    def _tell_map(self, index):
        owners = [chain[0] for chain in self.chains]
        self.order(index, "map", {
            "members": self.members, "owners": owners, "forward": self.forward,
            "revision": self.revision, "places": self.places})

    def _lead(self, vbucket, chain):
        """The first of the chain becomes active, or has another chain from now on."""
        self._send(chain[0], vbucket, chain[1:])
        self.order(chain[0], "lead", vbucket, self.terms[vbucket], chain)
        self.chains[vbucket] = chain

    def _send(self, node, vbucket, others):
        """All of that vBucket that this node sends to others."""
        sends = self.sends[node]
        for other in range(len(self.handles)):
            known = sends.setdefault(other, set())
            (known.add if other in others and other != node else known.discard)(vbucket)
        self.order(node, "send", sends)

    # --- nodes

    def pause(self, index):
        """Returns once it stands still: the signal alone may take a moment, in which it goes on."""
        process = self.handles[index].process
        process.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + PAUSE_S
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):  # killed in between
                if os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG):
                    break
            time.sleep(POLL_S)

    def resume(self, index):
        self.handles[index].process.send_signal(signal.SIGCONT)

    def kill(self, index):
        self._no_more_stale(index)
        self.handles[index].kill()

    def start(self, index):
        with self.lock:
            self.sends[index] = {}
            self.handles[index].start()

    def fail_over(self, index):
        """The others take over what they know of its vBuckets."""
        handle = self.handles[index]
        handle.condemned = True
        with self.lock:
            mine = {n for n, chain in enumerate(self.chains) if chain[0] == index}
            if handle.process.poll() is None:
                handle.deaf_since = mine, time.monotonic_ns()
            self.members.remove(index)
            self.forward = None
            for vbucket, chain in enumerate(self.chains):
                left = [node for node in chain if node not in (index, -1)]
                if vbucket in mine or self.order(chain[0], "progress", vbucket)[0] != "active":
                    left = self._choose(vbucket, left)
                self._lead(vbucket, (left + [-1] * self.replicas)[: self.replicas + 1])
            self.failovers.append((mine, time.monotonic_ns()))
            self.publish()

    def _choose(self, vbucket, left):
        """The most advanced copy leads. Before that, all hear of the new term, so that the old active
        copy gets no majority any more."""
        self.terms[vbucket] += 1
        progress = {
            node: self.order(node, "fence", vbucket, self.terms[vbucket]) for node in self.members
        }
        first = max(progress, key=progress.get)
        self.lost += progress[first] == (0, 0)
        return [first] + [node for node in left if node != first]

    def hear(self, index):
        """A node that was failed over learns of it."""
        with self.lock:
            self.handles[index].condemned = False
            self.sends[index] = {}
            self.order(index, "isolate", False)
            self.order(index, "send", {})
            self._tell_map(index)
            self._no_more_stale(index)

    def _no_more_stale(self, index):
        since = self.handles[index].deaf_since
        if since is not None:
            self.stale.append((*since, time.monotonic_ns()))
            self.handles[index].deaf_since = None

    def stale_times(self):
        """(vBuckets, from, to): a node took itself for their active one, and was not."""
        now = [(*since, time.monotonic_ns()) for since in
               [handle.deaf_since for handle in self.handles] if since is not None]
        return now + list(self.stale)

    # --- rebalance

    def join(self, index, pause_s=0):
        with self.lock:
            self.members = sorted([*self.members, index])
            self.publish()
            self.rebalance(pause_s)

    def rotate(self, pause_s=0):
        """A rebalance that moves all vBuckets."""
        with self.lock:
            self.members = [*self.members[1:], self.members[0]]
            self.rebalance(pause_s)

    def rebalance(self, pause_s=0):
        with self.lock:
            wanted = [self.chain_of(vbucket) for vbucket in range(self.vbuckets)]
            self.forward = [chain[0] for chain in wanted]
            try:
                self.publish()
                for vbucket, chain in enumerate(wanted):
                    if self.chains[vbucket] != chain:
                        self._move(vbucket, chain)
                        self.publish()
                        time.sleep(pause_s)
            finally:
                self.forward = None
            self.publish()

    def _move(self, vbucket, chain):
        if any(self.handles[node].condemned for node in self.members):
            raise Gone("a node")
        old, term = self.chains[vbucket], self.terms[vbucket]
        others = {node for node in old + chain if node not in (old[0], -1)}
        self._send(old[0], vbucket, others)
        for node in others:
            self._await(node, vbucket, lambda state, at, _: state == "replica" and at == term)
        if chain[0] != old[0]:
            number = self.order(old[0], "give_up", vbucket)
            self._await(chain[0], vbucket, lambda _, at, done: at == term and done >= number)
            self._send(old[0], vbucket, [])
            self.terms[vbucket] += 1
            self.moved += 1
        self._lead(vbucket, chain)
        for node in set(old) - set(chain) - {-1}:
            self.order(node, "forget", vbucket)

    def _await(self, node, vbucket, is_there):
        while not is_there(*self.order(node, "progress", vbucket)[:3]):
            if any(self.handles[other].condemned for other in self.members):
                raise Gone("a node")
            time.sleep(POLL_S)

    # --- what there is

    def documents(self):
        """All that is stored: {key: value}."""
        found = {}
        for node in self.members:
            found.update(self.order(node, "documents"))
        return found

    def is_whole(self):
        """All nodes are there, and nothing of an earlier active copy waits to be committed."""
        with self.lock:
            return all(
                self.order(node, "progress", vbucket)[3] == 0
                for vbucket, chain in enumerate(self.chains) for node in chain[:1]
            ) and len(self.members) == len(self.handles)
