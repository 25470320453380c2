# SPDX-License-Identifier: BSD-3-Clause
"""Proxies before a bucket of a fake Couchbase cluster whose nodes are processes, with a relay on every
way between them, and what can be done to all of these."""

import collections
import contextlib
import dataclasses
import pathlib
import random
import sys
import threading
import time

from cluster import Cluster, Proxy, Relay, Shape
from harness import HOST, ROOT, wait_until
from plan import FAIL_OVERS

sys.path.append(str(ROOT / "tests/cluster"))

from node import vbucket_of  # noqa: E402  (the path comes first)
from processes import Gone, Processes  # noqa: E402

NODES, VBUCKETS = 3, 32
MOVE_PAUSE_S = 0.01  # between two vBuckets of a rebalance
STORM = (0x85, 0x86, 0x82, 0x09)  # busy, temporary failure, out of memory, locked
STORM_RATE = 0.3
LAG_S = 0.15
TURN_S = 1  # an event that has not had its turn then, since others were at work, is left out


@dataclasses.dataclass(frozen=True)
class BucketShape(Shape):
    durability: str = "majority"


class Snapshot:
    """A place: see stored.py."""

    def __init__(self, documents):
        self.documents = {key.decode(): value for key, value in documents.items()}
        self.get = self.documents.get

    def names(self):
        return list(self.documents)


class Bucket(Cluster):
    def __init__(self, folder, build, seed, shape):
        self.shape = shape
        self.memcacheds, self.relay, self.proxies, self.restarts = [], None, [], []
        self.nodes = None
        self.turn = threading.Lock()  # of what takes a node out of the cluster
        self.node_locks = [threading.Lock() for _ in range(NODES)]
        self.done = collections.Counter()
        rng = random.Random(f"bucket {seed}")
        try:
            self.nodes = Processes(folder, NODES, VBUCKETS, replicas=rng.choice([1, 2]),
                                   views=shape.proxies)
            self.relay = Relay(str(pathlib.Path(build) / "relay"), seed, self.nodes.places)
            self.nodes.places = self.relay.ports
            self.nodes.publish()
            password = folder / "password"
            password.write_text(self.nodes.password + "\n")
            for number in range(shape.proxies):
                self.proxies.append(self._proxy(folder, number, password))
        except BaseException:
            self.kill()
            raise

    def _proxy(self, folder, number, password):
        sections = self.shape.config(number)
        sections["pool main"] = {
            **sections["pool main"],
            "type": "couchbase",
            "bucket": self.nodes.bucket,
            "username": self.nodes.user,
            "password_file": password,
            "durability": self.shape.durability,
            "servers": [f"{HOST}:{port}" for port in self.relay.ports[number]],
        }
        # What it does not have there: an order of servers, and items that are forgotten.
        del sections["pool main"]["distribution"]
        del sections["lists"]["touch_interval_s"]
        sections["proxy"]["allow_flush_all"] = "no"
        return Proxy(folder, number, [], sections)

    # --- events

    def carry_out(self, event):
        action = getattr(self, f"do_{event.kind.replace('-', '_')}", None)
        if action is None:
            super().carry_out(event)
        elif event.kind not in (*FAIL_OVERS, "rebalance"):
            action(event.target, event.for_s)
            self.done[event.kind] += 1
        elif self.turn.acquire(timeout=TURN_S):
            try:
                action(event.target, event.for_s)
                self.done[event.kind] += 1
            finally:
                self.turn.release()

    def pause_server(self, server, for_s):
        with self.node_locks[server]:
            self.nodes.pause(server)
            time.sleep(for_s)
            self.nodes.resume(server)

    def do_storm(self, node, for_s):
        """It refuses much of what it is asked."""
        self._with(node, for_s, ("storm", STORM, STORM_RATE), ("storm", (), 0.0))

    def do_lag(self, node, for_s):
        """Its changes come late to the others."""
        self._with(node, for_s, ("lag", LAG_S), ("lag", 0.001))

    def do_cut_off(self, node, for_s):
        """No other node hears of it, and clients do."""
        self._with(node, for_s, ("isolate", True), ("isolate", False))

    def _with(self, node, for_s, begin, end):
        with contextlib.suppress(Gone):
            self.nodes.order(node, *begin)
            time.sleep(for_s)
            self.nodes.order(node, *end)

    def do_rebalance(self, _, _for_s):
        self.nodes.rotate(MOVE_PAUSE_S)

    def do_fail_over(self, node, for_s):
        self.nodes.kill(node)
        self._replace(node, for_s)

    def do_fail_over_moving(self, node, for_s):
        """In the middle of a rebalance."""
        thread = threading.Thread(target=self._rotate_or_not)
        thread.start()
        time.sleep(for_s)
        self.nodes.kill(node)
        self.nodes.fail_over(node)
        thread.join()
        self.nodes.start(node)
        self.nodes.join(node, MOVE_PAUSE_S)

    def _rotate_or_not(self):
        with contextlib.suppress(Gone):
            self.nodes.rotate(MOVE_PAUSE_S)

    def _replace(self, node, for_s):
        time.sleep(for_s / 2)
        self.nodes.fail_over(node)
        time.sleep(for_s / 2)
        self.nodes.start(node)
        self.nodes.join(node, MOVE_PAUSE_S)

    def do_fail_over_paused(self, node, for_s):
        """It does what it was asked meanwhile when it is back, and takes itself for active until it
        hears the map."""
        self.nodes.pause(node)
        time.sleep(for_s / 2)
        self.nodes.fail_over(node)
        time.sleep(for_s / 2)
        self.nodes.resume(node)
        self._tell_late(node, for_s)

    def do_fail_over_cut_off(self, node, for_s):
        """The same, but it goes on answering its clients."""
        self.nodes.order(node, "isolate", True)
        time.sleep(for_s / 2)
        self.nodes.fail_over(node)
        self._tell_late(node, for_s)

    def _tell_late(self, node, for_s):
        time.sleep(for_s)
        self.nodes.hear(node)
        self.nodes.join(node, MOVE_PAUSE_S)

    # --- the end

    def heal(self):
        """No more harm, and every copy is where it belongs."""
        self.clear_links()
        for node in range(NODES):
            self.nodes.resume(node)
            for order in (("isolate", False), ("storm", (), 0.0), ("lag", 0.001)):
                self.nodes.order(node, *order)
        self.nodes.rebalance()
        wait_until("all copies are whole", self.nodes.is_whole)
        self.await_servers()

    def kill(self):
        super().kill()
        if self.nodes is not None:
            self.nodes.stop()

    # --- what there is

    @contextlib.contextmanager
    def places(self):
        """All nodes are one."""
        yield [Snapshot(self.nodes.documents())]

    def vbucket_of(self, key):
        return vbucket_of(key.encode(), VBUCKETS)

    def may_be_old(self, key, invoked_ns, completed_ns):
        """Could a node have answered a read of the key that took itself for active, and was not?"""
        vbucket = self.vbucket_of(key)
        return any(
            vbucket in vbuckets and invoked_ns <= until and completed_ns >= since
            for vbuckets, since, until in self.nodes.stale_times()
        )

    def was_failed_over(self, key, since_ns):
        """Has its vBucket lost its active node since then, or later?"""
        vbucket = self.vbucket_of(key)
        return any(vbucket in vbuckets and (at >= since_ns) for vbuckets, at in self.nodes.failovers) or any(
            vbucket in vbuckets and until >= since_ns for vbuckets, _, until in self.nodes.stale
        )

    def summary(self):
        events = [f"{count} {kind}" for kind, count in sorted(self.done.items())]
        return ", ".join([*events, f"{self.nodes.moved} vBuckets moved"])
