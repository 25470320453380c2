# SPDX-License-Identifier: BSD-3-Clause
"""One scenario: a fresh cluster, clients, a plan that is carried out, and everything that must hold
during it and afterwards."""

import collections
import dataclasses
import subprocess
import threading
import time
import traceback

import crowd
import queues
import stored
import verbs
import watch
from clients import Client, Patience
from cluster import PROXIES, SERVERS, SPREAD, USUAL, Cluster
from harness import ROOT, SLOW, wait_until
from history import History
from plan import draw_plan

BUSY = 20
KEYS = [item.key for item in verbs.LISTS]


@dataclasses.dataclass(frozen=True)
class Scenario:
    what: str
    weights: dict  # kinds of events
    gap_s: float  # between events, about
    share: float  # of the time
    with_crowd: bool = False


LINK_WEIGHTS = {
    "cut": 5, "delay": 2, "pieces": 2, "hold": 2, "swallow": 2, "refuse": 1, "reset": 1
}
NODE_WEIGHTS = {
    "pause-server": 2, "storm": 2, "lag": 2, "cut-off": 2, "rebalance": 2, "fail-over": 2,
    "fail-over-moving": 2, "fail-over-paused": 2, "fail-over-cut-off": 2,
}
BUCKET_WEIGHTS = {**LINK_WEIGHTS, **NODE_WEIGHTS, "kill": 4, "pause-proxy": 2}
SCENARIOS = {
    "kills": Scenario("proxies are killed", {"kill": 1}, 0.5, 1),
    "pauses": Scenario(
        "proxies and servers are paused", {"pause-proxy": 2, "pause-server": 1}, 0.8, 1.2
    ),
    "links": Scenario("links are harmed", LINK_WEIGHTS, 0.15, 1.2),
    "crowd": Scenario("a thousand clients, some of them bad", {"reset": 1}, 2, 1, True),
    "restarts": Scenario("servers lose everything", {"restart-server": 1}, 1.5, 0.8),
    "together": Scenario(
        "all of it at once, but restarts of servers",
        {**LINK_WEIGHTS, "kill": 3, "pause-proxy": 3, "pause-server": 1}, 0.3, 1.5, True,
    ),
    "transfers": Scenario(
        "several lists in one step, while all but the servers' memory is harmed",
        {**LINK_WEIGHTS, "kill": 6, "pause-proxy": 4, "pause-server": 2}, 0.3, 1.2,
    ),
    "servers": Scenario(
        "the pool's servers change, while proxies and the command that does it are killed", {}, 1, 1.2,
    ),
    "bucket": Scenario(
        "lists in a Couchbase bucket with durability, while all of the cluster is harmed",
        BUCKET_WEIGHTS, 0.3, 1.5,
    ),
    "bucket-plain": Scenario("the same with plain keys", BUCKET_WEIGHTS, 0.3, 1),
    "bucket-transfers": Scenario("several lists in one step there", BUCKET_WEIGHTS, 0.3, 1),
    "bucket-loose": Scenario(
        "plain keys in one without durability", BUCKET_WEIGHTS, 0.3, 0.5,
    ),
}


class Run:
    """One scenario with one seed. go() fills `faults` with what is wrong, `undecided` with what the
    checker gave up, and `summary` with what was done."""

    shape = USUAL
    cluster_kind = Cluster

    def __init__(self, name, seed, seconds, build, folder):
        self.scenario = SCENARIOS[name]
        self.seed, self.seconds, self.build, self.folder = seed, seconds, build, folder
        self.plan = draw_plan(
            f"{name} {seed}", self.scenario.weights, self.scenario.gap_s, seconds, self.shape
        )
        self.history = History()
        self.stalls = watch.Stalls()
        self.patience = Patience(self.stalls)
        self.faults, self.undecided = [], []
        self.summary = ""
        self.over = threading.Event()
        self.keys = KEYS + queues.KEYS + ([crowd.HUGE_KEY] if self.scenario.with_crowd else [])
        self.cluster = self.crowd = self.queues = None
        self.clients = []

    def go(self):
        self.stalls.start()
        try:
            self.cluster = self.cluster_kind(self.folder, self.build, self.seed, self.shape)
            self.prepare()
            self.under_fire()
            try:
                self.afterwards()
                self.faults += self.cluster.stop()
            finally:
                self.judge_history()
        except Exception as fault:  # whatever it is, the seed and the plan are told with it
            self.faults.append(describe(fault))
        finally:
            self.over.set()
            if self.cluster:
                self.cluster.kill()
            self.stalls.stop()

    def prepare(self):
        """Finds out which server has each list, and stores what slow readers ask for."""
        with self.cluster.proxy_conn(0) as conn, self.cluster.places() as places:
            self.home = {}
            for item in verbs.LISTS:
                self.begin_list(conn, item)
                held = [n for n in range(SERVERS) if places[n].get(f"{item.key}#") is not None]
                assert len(held) == 1
                self.home[item.key] = held[0]
            if self.scenario.with_crowd:
                self.store_large(conn)

    def begin_list(self, conn, item):
        ask(conn, f"lset {item.key} first")
        now_ns = time.monotonic_ns()
        self.history.add(item.refuse, now_ns, now_ns, 0, "lset", item.key, [b"first"], "ok")

    def store_large(self, conn):
        value = b"v" * crowd.LARGE_VALUE_BYTES
        for number in range(crowd.LARGE_KEYS):
            ask(conn, f"set large{number} 0 0 {len(value)}", value)
        per_request = 500
        for start in range(0, crowd.HUGE_ITEMS, per_request):
            numbers = range(start, start + per_request)
            items = (f"{number:0{crowd.HUGE_ITEM_BYTES - 1}d}" for number in numbers)
            verb = "ladd" if start else "lset"
            ask(conn, f"{verb} {crowd.HUGE_KEY} {' '.join(items)}")

    def under_fire(self):
        self.watch = watch.Watch(self.cluster.proxies)
        self.watch.start()
        deadline = time.monotonic() + self.seconds
        self.clients = [
            Client(n, self.cluster, self.history, self.patience, self.seed, self.over.is_set)
            for n in range(BUSY)
        ]
        if self.scenario.with_crowd:
            self.crowd = crowd.Crowd(self.cluster, self.history, self.patience, self.seed)
        self.queues = queues.Queues(self.cluster, self.patience, self.seed, self.over.is_set)
        busy = self.clients + self.queues.workers
        workers = busy + ([self.crowd] if self.crowd else [])
        for worker in workers:
            worker.start()
        self.carry_out(deadline, workers)
        self.cluster.heal()
        self.open_at_end = self.crowd.open_count() if self.crowd else 0
        if self.crowd:
            self.wait_for_crowd()
        self.over.set()
        if self.crowd:
            self.crowd.stop()
        self.await_end(busy)
        self.faults += [f"{w.name}: {describe(w.fault)}" for w in workers if w.fault]
        self.watch.stop()
        damaged = set().union(*(client.damaged for client in self.clients))
        self.faults += [f"{key} was damaged" for key in damaged if not self.may_be_damaged(key)]
        self.note_restarts()
        crowd_clients = len(self.crowd.members) if self.crowd else 0
        readers = crowd.READERS_PER_PROXY if self.crowd else 0
        # All the busy ones may happen to be at the same proxy.
        self.faults += self.watch.judge_memory(crowd_clients / PROXIES + len(busy), readers)

    def work_under_fire(self, workers, clients, servers):
        """What under_fire is without a crowd. clients: how many of the workers are some."""
        self.watch = watch.Watch(self.cluster.proxies, servers)
        self.watch.start()
        deadline = time.monotonic() + self.seconds
        for worker in workers:
            worker.start()
        self.carry_out(deadline, workers)
        self.cluster.heal()
        self.over.set()
        self.await_end(workers)
        self.faults += [f"{w.name}: {describe(w.fault)}" for w in workers if w.fault]
        self.watch.stop()
        self.faults += self.watch.judge_memory(clients, 0)

    def await_end(self, workers):
        for worker in workers:
            worker.join(60 * SLOW)
            if worker.is_alive():
                self.faults.append(f"{worker.name} hangs")

    def note_restarts(self):
        for server, stopped_ns, ready_ns in self.cluster.restarts:
            lists = [(item.key, item.refuse) for item in verbs.LISTS
                     if self.home[item.key] == server]
            self.history.add_restart(lists, stopped_ns, ready_ns)

    def carry_out(self, deadline, workers):
        """Each event in a thread of its own, since most last for a while."""
        start = time.monotonic()
        threads = []
        for event in self.plan:
            self.wait_for(start + event.at_s, workers)
            threads.append(threading.Thread(target=self.one_event, args=(event,), daemon=True))
            threads[-1].start()
        self.wait_for(deadline, workers)
        for thread in threads:
            thread.join()

    def one_event(self, event):
        try:
            self.cluster.carry_out(event)
        except (AssertionError, OSError) as fault:
            self.faults.append(f"{event}: {fault}")

    def wait_for(self, at, workers):
        while time.monotonic() < at and not any(worker.fault for worker in workers):
            time.sleep(min(0.05, max(at - time.monotonic(), 0)))

    def afterwards(self):
        """All is quiet: every list is the same through every proxy, and as it is stored."""
        with self.cluster.proxy_conn(0) as conn:
            self.faults += self.queues.judge(conn, "restart-server" in self.scenario.weights)
        self.judge_all_lists()
        self.judge_proxies(SERVERS)
        self.judge_work()

    def judge_proxies(self, servers):
        self.faults += self.watch.judge_descriptors()
        for proxy in self.cluster.proxies:
            links = [self.cluster.relay.stats(proxy.number * servers + n) for n in range(servers)]
            self.faults += watch.judge_log(proxy, links, self.seconds)

    def judge_all_lists(self):
        self.judge_lists("before lcompact")
        self.compact_all()
        self.judge_lists("after lcompact")
        self.judge_leftovers()

    def may_be_damaged(self, key):
        """Where a server was restarted, a list's head may live on while its sublists are gone."""
        return "restart-server" in self.scenario.weights and key.startswith(SPREAD)

    def read(self, conn, item):
        """Reads a list and puts that into the history. Its outcome."""
        request = verbs.Request("lget" if item.refuse else "lgetb", "lget", (item,))
        invoked_ns = time.monotonic_ns()
        conn.send(request.text())
        outcomes = verbs.take_answer(conn, request)
        process = self.history.new_process()
        verbs.record(self.history, request, invoked_ns, time.monotonic_ns(), process, outcomes)
        return outcomes[0]

    def judge_lists(self, when):
        conns = [self.cluster.proxy_conn(number) for number in range(PROXIES)]
        for item in verbs.LISTS:
            if item.refuse:  # its items hold no delimiter; lgetb cannot tell missing from empty
                assert b"," not in b"".join(map(verbs.item_name, range(item.universe)))
            wait_until(
                f"{item.key} is the same everywhere, {when}",
                lambda item=item: self.is_same(item, conns),
            )
        for conn in conns:
            conn.close()

    def is_same(self, item, conns):
        """A proxy that still compacts may move what is read here, and a busy machine may let a
        read time out: then once more."""
        found = [self.read(conn, item) for conn in conns]
        good = ["ok", "none", "missing"] + ["damaged"] * self.may_be_damaged(item.key)
        if not all(outcome.word in good for outcome in found):
            return False
        try:
            with self.cluster.places() as places:
                inside = stored.decode(places, item.key) or []
        except stored.Damaged:
            inside = None
        known = [list(outcome.answer) for outcome in found if outcome.word != "damaged"]
        if inside is None:
            # A proxy that has the lost sublist in its cache still knows.
            return self.may_be_damaged(item.key) and all(items == known[0] for items in known)
        return len(known) == len(found) and all(items == inside for items in known)

    def compact_all(self):
        """lcompact through one proxy after the other, until nothing waits to be tidied up."""
        conns = [self.cluster.proxy_conn(number) for number in range(PROXIES)]

        def is_tidy(conn, key):
            line = conn.cmd(f"lcompact {key}")
            if line not in (b"OK", b"NOT_FOUND"):
                return b"damaged" in line and self.may_be_damaged(key)
            try:
                stat = conn.stats(f"lstat {key}")
            except RuntimeError as error:
                return "damaged" in str(error) and self.may_be_damaged(key)
            return not stat or stat["garbage_names"] == stat["announcements"] == "0"

        def tidy():
            return all(
                is_tidy(conns[number % PROXIES], key) for number, key in enumerate(self.keys)
            )

        wait_until("all lists are compact", tidy)
        for conn in conns:
            conn.close()

    def judge_leftovers(self):
        """What no head names is documented only where a server with heads was restarted, or a proxy
        wrote for longer than its grace time, or into a list that was dropped or missing, and was
        killed or did not learn what became of that. Then scripts/sweep finds it; in a bucket nothing does
        (docs/couchbase.md)."""

        def strays():
            with self.cluster.places() as places:
                return stored.strays(places, self.keys)

        if self.plan:
            if not self.cluster.memcacheds:
                return
            command = [str(ROOT / "scripts/sweep"), "--delete", "--spread", "--wait", "0.5", "--grace", "0"]
            command += [memcached.address for memcached in self.cluster.memcacheds]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"scripts/sweep: {done.stdout}{done.stderr}"
        try:
            wait_until("all that is stored is named", lambda: not strays())
        except AssertionError as fault:
            raise AssertionError(f"{fault}: {strays()}") from None
        with self.cluster.proxy_conn(0) as conn:
            for key in self.keys:
                ask(conn, f"ldrop {key}")
                ask(conn, f"lcompact {key}")
        assert not strays(), f"left of dropped lists: {strays()}"

    def crowd_got_on(self):
        return self.crowd.answers and self.crowd.dribbled and self.crowd.quits

    def wait_for_crowd(self):
        """Its slow members may need longer on a machine that is busy with something else."""
        deadline = time.monotonic() + 10 * SLOW
        while not self.crowd_got_on() and time.monotonic() < deadline:
            time.sleep(0.05)

    def judge_work(self):
        """The clients did get on: every verb was answered well at least once."""
        done = sum((client.done for client in self.clients), collections.Counter())
        errors = sum((client.errors for client in self.clients), collections.Counter())
        idle = [form for form in verbs.FORMS if not any(
            done[f"{form} {word}"] for word in ("ok", "none", "missing", "not_stored"))]
        if idle:
            self.faults.append(f"never answered well: {', '.join(idle)}")
        if not all(worker.done for worker in self.queues.workers):
            self.faults.append("a producer or consumer got nowhere")
        if self.crowd and not self.crowd_got_on():
            self.faults.append("the crowd got nowhere")
        counts = [f"{count:8} {name}" for name, count in sorted((done + errors).items())]
        (self.folder / "answers.txt").write_text("\n".join(counts) + "\n")
        self.summary = self.summarize(done)

    def summarize(self, done):
        links = self.cluster.relay.all_stats()
        errors = sum(n for name, n in done.items() if name.endswith((" error", " damaged")))
        parts = [
            f"{self.history.count()} operations",
            f"{self.history.unknown()} unknown",
            f"{errors} errors",
            f"{sum(stats['cuts'] for stats in links)} cuts",
            f"{sum(stats['connections'] for stats in links)} connections to servers",
            f"longest answer {self.patience.longest_s:.2f} s",
            f"memory {max(self.watch.most) / watch.MIB:.0f} MiB",
            self.queues.summary(),
        ]
        if self.crowd:
            parts += [
                f"crowd: {self.open_at_end} open",
                f"{self.crowd.answers} answers",
                f"{self.crowd.dribbled} dribbled",
                f"{self.crowd.quits} left",
            ]
        return ", ".join(parts)

    def judge_history(self):
        program = str(self.build / "check-history")
        limit_s = (60 + self.history.count() / 1000) * SLOW
        faults, self.undecided, verdicts = self.history.check(program, self.folder, limit_s)
        self.faults += faults
        self.summary = "; ".join([self.summary, *verdicts])


def ask(conn, line, body=None):
    """What must be answered well in the end. A busy machine may need another try."""
    done = (b"STORED", b"DELETED", b"OK", b"NOT_FOUND")
    wait_until(f"{line[:50]!r} is answered well", lambda: conn.cmd(line, body) in done)


def describe(fault):
    if isinstance(fault, (AssertionError, verbs.Fault)) and str(fault):
        return str(fault)
    return "".join(traceback.format_exception(fault))
