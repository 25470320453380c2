# SPDX-License-Identifier: BSD-3-Clause
"""A bucket of a Couchbase cluster under fire: bucket.py has the cluster and what happens to it,
registers.py what is done with plain keys. With durability nothing that was acknowledged is lost. A node
that was failed over and does not know it may answer reads with what was: answers to reads from such
times are left out of the histories, and counted."""

import collections
import time

import queues
import registers
import verbs
from bucket import NODES, Bucket, BucketShape
from clients import Client
from cluster import PROXIES
from harness import wait_until
from scenario import KEYS, Run
from transfers import Transfers, config_of

READS = ("lget", "lhas", "llen", "lrange", "lcompact")
NOTHING_DONE = ("missing", "not_stored", "none", "error", "damaged")
CLIENTS = 12


class BucketRun(Run):
    shape = BucketShape(PROXIES, NODES)
    cluster_kind = Bucket

    def under_fire(self):
        workers = self.busy()
        self.work_under_fire(workers, len(workers), NODES)
        if self.cluster.nodes.lost:
            self.faults.append("the fake cluster itself has lost vBuckets")

    def afterwards(self):
        self.judge_content()
        self.judge_proxies(NODES)
        self.judge_work()

    def write_answers(self, counters):
        done = sum(counters, collections.Counter())
        texts = [f"{count:8} {name}" for name, count in sorted(done.items())]
        (self.folder / "answers.txt").write_text("\n".join(texts) + "\n")

    def summarize(self, *parts):
        links = self.cluster.relay.all_stats()
        self.summary = ", ".join([
            f"{self.cluster.nodes.replicas} replicas",
            *parts,
            self.cluster.summary(),
            f"{sum(len(proxy.kills) for proxy in self.cluster.proxies)} proxies killed",
            f"{sum(stats['cuts'] for stats in links)} cuts",
            f"longest answer {self.patience.longest_s:.2f} s",
        ])

    def is_doubtful(self, invoked_ns, completed_ns, verb, key, outcome, answer):
        nothing_done = verb in READS or outcome in NOTHING_DONE or answer == ["0"]
        return nothing_done and self.cluster.may_be_old(self.stored_as(key), invoked_ns, completed_ns)

    def judge_history(self):
        times = [f"vBuckets {sorted(vbuckets)} failed over at {at}"
                 for vbuckets, at in self.cluster.nodes.failovers]
        times += [f"vBuckets {sorted(vbuckets)} may be old from {since} to {until}"
                  for vbuckets, since, until in self.cluster.nodes.stale]
        (self.folder / "nodes.txt").write_text("\n".join(times) + "\n")
        left_out = self.history.leave_out(self.is_doubtful)
        super().judge_history()
        self.summary += f"; {left_out} reads left out that may be old"


class PlainBucket(BucketRun):
    def prepare(self):
        durable = self.shape.durability != "none"
        self.registers = registers.Registers(
            self.cluster, self.history, self.patience, self.seed, self.over.is_set, durable)
        with self.cluster.proxy_conn(0) as conn:
            self.registers.prepare(lambda key, value: wait_until(
                f"{key} is stored", lambda: conn.set(key, value) == b"STORED"))

    def busy(self):
        return list(self.registers.workers)

    @staticmethod
    def stored_as(key):
        return key

    def judge_content(self):
        conns = [self.cluster.proxy_conn(number) for number in range(PROXIES)]

        def read(key):
            def found():
                values = [conn.get(key) for conn in conns]
                return values[0] is not None and values.count(values[0]) == PROXIES and values

            return wait_until(f"{key} is the same everywhere", found)[0].decode()

        self.faults += self.registers.judge(read)
        for conn in conns:
            conn.close()

    def judge_work(self):
        done = [worker.done for worker in self.registers.workers]
        if not all(counts["changes"] and counts["reads"] for counts in done):
            self.faults.append("a client of plain keys got nowhere")
        self.write_answers(done)
        self.summarize(self.registers.summary())


class LooseBucket(PlainBucket):
    """What was acknowledged is lost only where its node was failed over."""

    shape = BucketShape(PROXIES, NODES, durability="none")


class ListBucket(BucketRun):
    def prepare(self):
        with self.cluster.proxy_conn(0) as conn:
            for item in verbs.LISTS:
                self.begin_list(conn, item)

    def busy(self):
        self.clients = [
            Client(n, self.cluster, self.history, self.patience, self.seed, self.over.is_set)
            for n in range(CLIENTS)
        ]
        self.queues = queues.Queues(self.cluster, self.patience, self.seed, self.over.is_set)
        return self.clients + self.queues.workers

    @staticmethod
    def stored_as(key):
        return f"{key}#"

    def judge_content(self):
        with self.cluster.proxy_conn(0) as conn:
            self.faults += self.queues.judge(conn, False)
        self.keys = KEYS + queues.KEYS
        self.judge_all_lists()

    def judge_history(self):
        super().judge_history()
        damaged = [line for lines in self.history.lines.values() for line in lines
                   if line.endswith(" = damaged")]
        if damaged:
            self.faults.append(f"{len(damaged)} answers of damage, the first: {damaged[0]}")

    def judge_work(self):
        done = [client.done for client in self.clients]
        self.write_answers([*done, *(client.errors for client in self.clients)])
        if not all(worker.done for worker in self.queues.workers):
            self.faults.append("a producer or consumer got nowhere")
        errors = sum(
            n for name, n in sum(done, collections.Counter()).items() if name.endswith(" error"))
        self.summarize(f"{self.history.count()} operations", f"{self.history.unknown()} unknown",
                       f"{errors} errors", self.queues.summary())


class TransferBucket(Transfers):
    """Several lists in one step."""

    shape = BucketShape(PROXIES, NODES, config_of)
    cluster_kind = Bucket
    looks_at_heads = False

    def may_be_old(self, keys, asked_ns):
        now_ns = time.monotonic_ns()
        return any(self.cluster.may_be_old(f"{key}#", asked_ns, now_ns) for key in keys)

    def helpers(self):
        """scripts/sweep knows memcacheds only."""
        return []

    def swept(self):
        return self.cluster.summary()
