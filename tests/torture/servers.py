# SPDX-License-Identifier: BSD-3-Clause
"""A pool gets other servers under fire, by `mclistd-cli servers` and as docs/servers.md says: one
joins, one takes the place of another, one leaves, again and again. Meanwhile proxies, and the command
itself, are killed, and proxies sleep for longer than they may. Clients do all list verbs, whose
histories are checked; others move coins from account to account, whose sums never change; and
thousands of lists that hardly anybody uses are there in the end, each with what it must have. At last
a server is lost for good, before or while lists move, and the others take its place: what was
acknowledged on them, and since, is there, and each list of the lost one is whole or was lost whole."""

import collections
import contextlib
import random
import re
import subprocess
import sys
import threading
import time

import transfers
import verbs
import watch
from clients import Client, PatientConn
from cluster import GRACE_S, SPREAD, TIMEOUT_MS, TINY, Group, Proxy, Shape
from harness import ROOT, SLOW, Memcached, wait_until
from scenario import Run, ask, describe

CLI = ROOT / "scripts/cli"
PROXIES, SERVERS = 4, 2
LISTERS, MOVERS, PLAIN = 8, 6, 3
GATE_S = 1
OTHERS = 2000
CHANGES = ("add", "replace", "remove")
TRIES = 200  # of a command that is killed again and again
KEYS = [item.key for item in verbs.LISTS]


def config(servers, following=None, **more):
    """Of any proxy: before some memcacheds, of which others are the next. more: of the pool."""
    def names(some):
        return [server.address for server in some]

    sections = {
        "proxy": {"threads": 2, "client_hard_bytes": 8 << 20},
        "pool main": {
            "servers": names(servers), "gate_s": GATE_S, "timeout_ms": TIMEOUT_MS,
            "connect_timeout_ms": TIMEOUT_MS, "retry_min_ms": 20, "retry_max_ms": 200, **more,
        },
        "lists": {**TINY, "pool": "main"},
        "lists r-": {"on_missing": "refuse", "bridge": "yes"},
        "lists c-": {"bridge": "yes"},
    }
    if following is not None:
        sections["pool main"]["next"] = "grown"
        sections["pool grown"] = {"servers": names(following), "gate_s": 0}
    return sections


class ChangingProxy(Proxy):
    """One that gets another file."""

    def change(self, sections, gently):
        with self.lock:
            self._leave()
            self.kills.append(self.away[-1])
            if gently:
                self.daemon.stop()
            else:
                self.daemon.kill()
            kept = self.daemon.sections["proxy"]
            self.daemon.sections = {**sections, "proxy": {**sections["proxy"], "listen": kept["listen"]}}
            self.daemon.start()
            self._come_back()


class Fleet(Group):
    """Proxies before the memcacheds of their pool; `others` are in none."""

    def __init__(self, folder):
        self.memcacheds = [self.new_server() for _ in range(SERVERS)]
        self.others = []
        ports = [server.port for server in self.memcacheds]
        self.proxies = [
            ChangingProxy(folder, number, ports, config(self.memcacheds))
            for number in range(PROXIES)
        ]

    @staticmethod
    def new_server():
        return Memcached("-c", "4096", memory_mb=512)

    def proxy_conn(self, number):
        return self.proxies[number].daemon.conn(timeout_s=20 * SLOW)

    def kill(self):
        super().kill()
        for server in self.others:
            server.stop()


class Over(threading.Event):
    """Clients look before each request whether the scenario is over. A change of servers takes a minute
    or so, whatever may be under fire: in a short run they rest there, and do as much as elsewhere."""

    SHORT_S, REST_S = 20, 0.02

    def __init__(self, seconds):
        super().__init__()
        self.rest_s = self.REST_S if seconds < self.SHORT_S else 0

    def is_set(self):
        return self.wait(self.rest_s) if self.rest_s else super().is_set()


class Harm(threading.Thread):
    """Kills proxies, and has them sleep."""

    def __init__(self, run):
        super().__init__(name="harm", daemon=True)
        self.run_of, self.rng, self.fault = run, random.Random(f"harm {run.seed}"), None
        self.kills = self.sleeps = 0

    def run(self):
        try:
            while not self.run_of.calm.wait(self.rng.uniform(0.5, 3)):
                proxy = self.rng.choice(self.run_of.cluster.proxies)
                if self.rng.random() < 0.6:
                    proxy.kill(self.rng.uniform(0, 0.3))
                    self.kills += 1
                else:
                    with proxy.paused():
                        time.sleep(self.rng.choice([0.3, 1, 2.5, 4]) * GATE_S)
                    self.sleeps += 1
        except BaseException as fault:  # told by the scenario
            self.fault = fault


class Others(threading.Thread):
    """Lists of which each is used once in a while, by this thread alone."""

    def __init__(self, run, before=None, at_risk=()):
        """before: the one that these lists were known to. at_risk: those that may be lost since."""
        super().__init__(name="others", daemon=True)
        self.run_of, self.rng, self.fault = run, random.Random(f"others {run.seed}"), None
        self.known = {f"other-{n}": {f"first-{n}"} for n in range(OTHERS)}
        self.unknown = collections.defaultdict(set)
        self.changes = self.serial = 0
        if before is not None:
            self.known, self.unknown = before.known, before.unknown
            self.changes, self.serial = before.changes, before.serial
        self.lost = {name: self.known[name] for name in at_risk}
        self.known.update({name: set() for name in at_risk})

    def make(self, conn):
        names = list(self.known)
        for start in range(0, OTHERS, 100):
            part = names[start : start + 100]
            conn.send("".join(f"ladd {name} {next(iter(self.known[name]))}\r\n" for name in part))
            assert conn.lines(len(part)) == [b"STORED"] * len(part)

    def run(self):
        try:
            while not self.run_of.over.is_set():
                self.serial += 1
                self._add(self.rng.choice(list(self.known)), f"item-{self.serial}")
                time.sleep(0.01)
        except BaseException as fault:  # told by the scenario
            self.fault = fault

    def _add(self, name, item):
        proxy = self.rng.choice(self.run_of.cluster.proxies)
        self.unknown[name].add(item)
        try:
            with PatientConn(proxy, self.run_of.patience) as conn:
                conn.what, conn.sent_ns = f"ladd {name}", time.monotonic_ns()
                answer = conn.cmd(f"ladd {name} {item}")
        except (OSError, EOFError):
            return
        if answer == b"STORED":
            self.known[name].add(item)
            self.changes += 1
        elif b"unknown" in answer or b"deadline" in answer:
            return
        elif not answer.startswith(b"SERVER_ERROR"):
            raise verbs.Fault(f"ladd {name}: {answer!r}")
        self.unknown[name].discard(item)

    def judge(self, conn):
        """On a machine that stands still for two gate_s, lists are refused for a moment."""
        def read(name):
            try:
                return [conn.lget(name)]
            except RuntimeError:
                return None

        faults = []
        for name, known in self.known.items():
            [items] = wait_until(f"{name} is read", lambda name=name: read(name))
            items = [item.decode() for item in items]
            if set(items) & self.lost.get(name, set()):
                known = known | self.lost[name]
            if len(items) != len(set(items)):
                faults.append(f"{name} has an item twice: {items}")
            if not known <= set(items) <= known | self.unknown[name]:
                faults.append(f"{name} lacks {known - set(items)}, has too many "
                              f"{set(items) - known - self.unknown[name]}")
        return faults


class Plain(threading.Thread):
    """Plain keys that this thread alone changes, and all threads read: a number that grows. It may be
    gone, but never less than what was acknowledged, or seen, before it was asked for. What may still
    come, of changes whose outcome is not known, counts for nothing."""

    KEYS = 40

    def __init__(self, number, run, floors, unknown):
        super().__init__(name=f"plain {number}", daemon=True)
        self.run_of, self.rng, self.fault = run, random.Random(f"plain {number} {run.seed}"), None
        self.mine = [f"plain-{number}-{n}" for n in range(self.KEYS)]
        self.floors, self.unknown, self.serial = floors, unknown, 0
        floors.update(dict.fromkeys(self.mine, 0))
        self.hits = self.misses = self.changes = 0

    def run(self):
        try:
            while not self.run_of.over.is_set():
                self._talk()
        except BaseException as fault:  # told by the scenario
            self.fault = fault

    def _talk(self):
        proxy = self.rng.choice(self.run_of.cluster.proxies)
        try:
            with PatientConn(proxy, self.run_of.patience) as conn:
                for _ in range(self.rng.randint(1, 60)):
                    if self.run_of.over.is_set():
                        return
                    conn.sent_ns = time.monotonic_ns()
                    (self._change if self.rng.random() < 0.4 else self._read)(conn)
        except (OSError, EOFError):
            time.sleep(0.02)

    def _change(self, conn):
        key = conn.what = self.rng.choice(self.mine)
        self.serial += 1
        number, deletes = self.serial, self.rng.random() < 0.2
        self.unknown.add((key, number))
        line = f"delete {key}" if deletes else f"set {key} 0 0 {len(str(number))}\r\n{number}"
        answer = conn.cmd(line)
        if answer in (b"STORED", b"DELETED", b"NOT_FOUND"):
            self.floors[key] = max(self.floors[key], number)
            self.changes += 1
        elif b"nothing done" not in answer and b"not sent" not in answer:
            return
        self.unknown.discard((key, number))

    def _read(self, conn):
        key = conn.what = self.rng.choice(list(self.floors))
        floor = self.floors[key]
        conn.send(f"get {key}\r\n")
        line, value = conn.line(), None
        if line.startswith(b"VALUE "):
            value = int(conn.data(int(line.split(b" ")[3])))
            line = conn.line()
        if line != b"END":
            return
        self.hits, self.misses = self.hits + (value is not None), self.misses + (value is None)
        if value is None or (key, value) in self.unknown:
            return
        if value < floor:
            raise verbs.Fault(f"{key} is {value}, and {floor} was acknowledged or seen before")
        self.floors[key] = max(self.floors[key], value)


class ServersRun(Run):
    shape = Shape(PROXIES, SERVERS, None)
    looks_at_heads = False

    def __init__(self, *args):
        super().__init__(*args)
        self.plan = []
        self.calm, self.over = threading.Event(), Over(self.seconds)
        self.changes, self.commands, self.killed = [], 0, 0

    def cluster_kind(self, folder, _build, _seed, _shape):
        return Fleet(folder)

    def may_be_old(self, _keys, _asked_ns):
        return False

    # --- before ---

    def prepare(self):
        self.rng = random.Random(f"servers {self.seed}")
        self.seen, self.pairs = {}, []
        self.others = Others(self)
        with self.cluster.proxy_conn(0) as conn:
            for item in verbs.LISTS:
                self.begin_list(conn, item)
            for bank, count in enumerate(transfers.BANKS):
                coins = transfers.coins_of(bank)
                for number, key in enumerate(transfers.accounts_of(bank)):
                    ask(conn, f"lset {key} {' '.join(coins[number::count])}")
                    self.seen[key] = coins[number::count]
            self.others.make(conn)

    # --- meanwhile ---

    def under_fire(self):
        deadline = time.monotonic() + self.seconds
        self.clients = [
            Client(n, self.cluster, self.history, self.patience, self.seed, self.over.is_set)
            for n in range(LISTERS)
        ]
        self.movers = [transfers.Mover(number, self) for number in range(MOVERS)]
        self.harm = Harm(self)
        floors, unknown = {}, set()
        self.plain = [Plain(number, self, floors, unknown) for number in range(PLAIN)]
        users = [*self.clients, *self.movers, *self.plain, self.others]
        for worker in [*users, self.harm]:
            worker.start()
        try:
            number = 0
            while number == 0 or (time.monotonic() < deadline and not any(w.fault for w in users)):
                self.change_servers(CHANGES[number % len(CHANGES)])
                number += 1
        finally:
            self.end(users)

    def end(self, users):
        """Ends those that harm, then those that use the lists; keeps what went wrong."""
        self.calm.set()
        self.harm.join(60 * SLOW)
        self.over.set()
        for worker in users:
            worker.join(60 * SLOW)
            if worker.is_alive():
                self.faults.append(f"{worker.name} hangs")
        self.faults += [f"{w.name}: {describe(w.fault)}" for w in [*users, self.harm] if w.fault]

    def servers_after(self, change):
        pool = list(self.cluster.memcacheds)
        if change != "remove":
            self.cluster.others.append(self.cluster.new_server())
        if change == "add":
            return pool + [self.cluster.others[-1]]
        leaver = self.rng.choice(pool)
        at = pool.index(leaver)
        return pool[:at] + ([self.cluster.others[-1]] if change == "replace" else []) + pool[at + 1 :]

    def roll(self, sections):
        """All proxies get another file, one after the other."""
        for proxy in self.rng.sample(self.cluster.proxies, PROXIES):
            proxy.change(sections, self.rng.random() < 0.5)
            time.sleep(self.rng.uniform(0, 0.5))

    def change_servers(self, change):
        old = self.cluster.memcacheds
        new = self.servers_after(change)
        self.roll(config(old, new))
        if self.rng.random() < 0.3:  # somebody is in two minds
            self.command("step", is_killed=False)
            self.command("back", is_killed=False)
        self.command("move")
        self.roll(config(new))
        self.cluster.memcacheds = new
        self.cluster.others = [s for s in old + self.cluster.others if s not in new]
        self.command("sweep")
        for server in self.cluster.others:
            server.stop()
        self.cluster.others = []
        self.changes.append(change)

    def command(self, action, is_killed=True):
        """Given again until it has ended well: it may be killed, and so may its proxy."""
        for _ in range(TRIES):
            proxy = self.rng.choice(self.cluster.proxies)
            kill_after_s = self.rng.uniform(0.2, 40 * GATE_S) if is_killed else 120 * SLOW
            command = [sys.executable, str(CLI), f"127.0.0.1:{proxy.port}", "servers", action]
            command += ["main"] if action == "sweep" else []
            self.commands += 1
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True) as process:
                try:
                    text = process.communicate(timeout=kill_after_s)[0]
                except subprocess.TimeoutExpired:
                    process.kill()
                    text = "(killed)\n" + process.communicate()[0]
                    self.killed += 1
            with (self.folder / "commands.txt").open("a") as log:
                log.write(f"--- {action} by proxy {proxy.number}: {process.returncode}\n{text}")
            if process.returncode == 0:
                return
            if "Traceback" in text:
                raise verbs.Fault(f"servers {action}: {text}")
            time.sleep(0.5)
        raise verbs.Fault(f"servers {action} never ended well: {text}")

    # --- afterwards ---

    def afterwards(self):
        wait_until("nothing is refused", self.is_calm, 60 * SLOW)
        self.judge_lists("in the end")
        reader = transfers.Mover(MOVERS, self)
        for bank in range(len(transfers.BANKS)):
            keys = transfers.accounts_of(bank)
            found = wait_until("lists are read", lambda keys=keys: reader.lists(keys))
            transfers.judge_bank(bank, found)
        transfers.judge_people(wait_until("people are read", lambda: reader.lists(transfers.PERSONS)))
        for pair in self.pairs:
            wait_until("a pair is read", lambda pair=pair: reader.look_at_pair(*pair))
        for conn in reader.conns.values():
            conn.close()
        self.lose_a_server()
        for number in range(PROXIES):
            with self.cluster.proxy_conn(number) as conn:
                self.faults += self.others.judge(conn)
        with self.cluster.proxy_conn(0) as conn:
            lost = self.others.lost
            self.lost = sum(not set(map(bytes.decode, conn.lget(name))) & lost[name] for name in lost)
        for proxy in self.cluster.proxies:
            log = proxy.daemon.log()
            self.faults += [f"proxy {proxy.number}: {line}" for line in log.splitlines()
                            if watch.CRASH.search(line)]
        self.judge_work()

    def lose_a_server(self):
        """As docs/servers.md says, while lists that hardly anybody uses, and plain keys, are changed."""
        old, moves = self.cluster.memcacheds, self.rng.random() < 0.5
        dead = self.rng.choice(old)
        self.cluster.others = [self.cluster.new_server()]
        new = [server for server in old if server is not dead] + self.cluster.others
        at_risk = self.lists_of(dead)
        self.calm, self.over = threading.Event(), Over(self.seconds)
        floors, unknown = {}, set()
        users = [Plain(PLAIN + number, self, floors, unknown) for number in range(PLAIN)]
        self.harm = Harm(self)
        for worker in [*users, self.harm]:
            worker.start()
        try:
            if moves:
                self.roll(config(old, new))
                self.command("step", is_killed=False)
                time.sleep(self.rng.uniform(6, 12) * GATE_S)
                self.use(self.rng.sample(at_risk, len(at_risk) // 2))
            dead.stop()
            self.others = Others(self, self.others, at_risk)
            users.append(self.others)
            self.others.start()
            self.roll(config(old, new, dead=dead.address, change=1, step="move" if moves else "learn"))
            self.command("move")
            dead.start()
            self.roll(config(new, change=1))
            self.cluster.memcacheds, self.cluster.others = new, [dead]
            self.command("sweep")
        finally:
            self.end(users)
        wait_until("nothing is refused", self.is_calm, 60 * SLOW)

    def use(self, names):
        """Those may move now, and some do."""
        for start in range(0, len(names), 20):
            with contextlib.suppress(OSError, EOFError), self.cluster.proxy_conn(0) as conn:
                for name in names[start : start + 20]:
                    conn.cmd(f"llen {name}")

    def lists_of(self, server):
        """Names of those of the others that are on it."""
        names, found = list(self.others.known), []
        with self.cluster.proxy_conn(0) as conn:
            for start in range(0, OTHERS, 50):
                keys = " ".join(f"{name}#" for name in names[start : start + 50])
                places = conn.stats(f"stats where main - {keys}")
                found += [key[:-1] for key, place in places.items() if place == server.address]
        return found

    def is_calm(self):
        for number in range(PROXIES):
            with self.cluster.proxy_conn(number) as conn:
                if any(conn.cmd(f"llen {key}").startswith(b"SERVER") for key in KEYS):
                    return False
        return True

    def judge_work(self):
        done = sum((w.done for w in [*self.clients, *self.movers]), collections.Counter())
        errors = sum((client.errors for client in self.clients), collections.Counter())
        counts = [f"{count:8} {name}" for name, count in sorted((done + errors).items())]
        (self.folder / "answers.txt").write_text("\n".join(counts) + "\n")
        idle = [name for name in ("lget ok", "ladd ok", "lmove ok", "transfer ok", "lgetx ok")
                if not done[name]]
        if idle:
            self.faults.append(f"never answered well: {', '.join(idle)}")
        refused = sum(n for text, n in errors.items() if re.search("unequal|not heard lately", text))
        self.summary = ", ".join([
            f"servers changed: {' '.join(self.changes)}",
            f"{self.commands} commands, {self.killed} of them killed",
            f"{self.harm.kills} proxies killed, {self.harm.sleeps} sent to sleep",
            f"{self.history.count()} operations, {self.history.unknown()} unknown, "
            f"{sum(errors.values())} errors, {refused} refused by the gate",
            f"{done['transferred']} transferred, {done['lgetx ok']} sums or pairs read",
            f"plain keys: {sum(p.changes for p in self.plain)} changes, "
            f"{sum(p.hits for p in self.plain)} hits, {sum(p.misses for p in self.plain)} misses",
            f"{self.others.changes} changes of {OTHERS} other lists",
            f"a server lost for good: of {len(self.others.lost)} lists {self.lost} were",
            f"longest answer {self.patience.longest_s:.2f} s",
        ])
