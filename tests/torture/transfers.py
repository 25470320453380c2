# SPDX-License-Identifier: BSD-3-Clause
"""Several lists in one step under fire: 128 accounts in banks, people who follow each other, and what
clients know of lists that they alone change. Readers that ask for all lists of a bank at one instant
find each of its coins in exactly one account, whatever happens to proxies and links."""

import collections
import random
import subprocess
import sys
import threading
import time

import stored
import verbs
from clients import PatientConn
from cluster import TINY, Shape, config
from harness import ROOT, SLOW, wait_until
from scenario import Run, ask

sys.path.append(str(ROOT / "scripts"))

from mclistd_lists.head import Head  # noqa: E402  (the path comes first)
from mclistd_lists.intent import OPEN  # noqa: E402

CLIENTS = 14
BANKS = (64, 32, 16, 8, 8)  # accounts
QUIET_BANKS = 2  # of the first ones lpopto takes nothing: there clients have items of their own
COINS_PER_ACCOUNT = 3
PAIRS_MAX = 500
PEOPLE = 8
GRACE_S = TINY["announcement_grace_s"]
ERRORS = (b"SERVER_ERROR ",)


def config_of(number):
    return config(number)


def account(bank, number):
    # Prefixes of keys that the sections of the configuration do not have.
    return f"bank{bank}-{number}"


def accounts_of(bank):
    return [account(bank, number) for number in range(BANKS[bank])]


def coins_of(bank):
    return [f"coin-{bank}-{number}" for number in range(BANKS[bank] * COINS_PER_ACCOUNT)]


def following(person):
    return f"following-{person}"


def followers(person):
    return f"followers-{person}"


ACCOUNTS = [key for bank in range(len(BANKS)) for key in accounts_of(bank)]
QUIET = [key for bank in range(QUIET_BANKS) for key in accounts_of(bank)]
PERSONS = [name(person) for person in range(PEOPLE) for name in (following, followers)]


class Mover(threading.Thread):
    """Takes one request after the other, each to any proxy."""

    def __init__(self, number, run):
        super().__init__(name=f"mover {number}", daemon=True)
        self.number, self.run_of = number, run
        self.rng = random.Random(f"mover {run.seed} {number}")
        self.done = collections.Counter()
        self.fault = None
        self.conns, self.direct = {}, []
        self.asked_ns = 0
        self.mine, self.mine_at, self.serial = None, (), 0
        self.work = [
            (self.move, 10), (self.transfer, 14), (self.rotate, 6), (self.pop_to, 4),
            (self.follow, 10), (self.sum_bank, 12), (self.look_at_people, 8), (self.noise, 20),
            (self.move_mine, 8), (self.make_pair, 4),
        ]

    def run(self):
        try:
            while not self.run_of.over.is_set():
                (work,) = self.rng.choices(*zip(*self.work))
                work()
        except BaseException as fault:  # told by the scenario
            self.fault = fault
        finally:
            for conn in [*self.conns.values(), *self.direct]:
                conn.close()

    # --- asking ---

    def ask(self, what, text, take):
        """take(conn)'s result; None: no answer."""
        proxy = self.rng.choice(self.run_of.cluster.proxies)
        conn = self.conns.get(proxy.number)
        try:
            if conn is None:
                conn = self.conns[proxy.number] = PatientConn(proxy, self.run_of.patience)
            conn.what = what
            conn.sent_ns = self.asked_ns = time.monotonic_ns()
            conn.send(text)
            result = take(conn)
            self.run_of.patience.note(proxy, conn.sent_ns)
            return result
        except (OSError, EOFError) as reason:
            self.conns.pop(proxy.number, None)
            if conn is not None and not proxy.was_killed(conn.connected_ns):
                raise verbs.Fault(f"{what}: closed by proxy {proxy.number}: {reason}") from None
            if conn is None:
                time.sleep(0.02)
            return None

    def line(self, what, text):
        line = self.ask(what, text, lambda conn: conn.line())
        self.count(what, line)
        return line

    def count(self, what, line):
        if line is None:
            self.done[f"{what}: no answer"] += 1
        elif line.startswith(ERRORS):
            self.done[f"{what}: {verbs.error_text(line)}"] += 1
        elif line.startswith((b"CLIENT_ERROR", b"ERROR")):
            raise verbs.Fault(f"{what}: {line!r}")
        else:
            self.done[f"{what} ok"] += 1

    def tx(self, what, *lines):
        block = "".join(f"{line}\r\n" for line in lines)
        return self.line(what, f"ltx {len(block)}\r\n{block}\r\n")

    def lists(self, keys):
        """{key: items} of one instant; None: not known."""

        def take(conn):
            found = {}
            while (line := conn.line()) != b"END":
                if not line.startswith(b"VALUE "):
                    return line
                _, key, _, size = line.split(b" ")
                data = conn.data(int(size)).decode()
                found[key.decode()] = data.split(",") if data else []
            return found

        found = self.ask("lgetx", f"lgetx {' '.join(keys)}\r\n", take)
        if not isinstance(found, dict):
            self.count("lgetx", found)
            return None
        if self.run_of.may_be_old(keys, self.asked_ns):
            self.done["may be old"] += 1
            return None
        self.done["lgetx ok"] += 1
        return {key: found.get(key, []) for key in keys}

    # --- accounts ---

    def some(self, count, banks=range(len(BANKS))):
        """A bank, and accounts of it. Small banks are as busy as large ones."""
        bank = self.rng.choice(banks)
        return bank, self.rng.sample(accounts_of(bank), count)

    def coin_in(self, key, bank):
        """One that was there when it was read last; or any."""
        known = self.run_of.seen.get(key)
        return self.rng.choice(known or coins_of(bank))

    def move(self):
        bank, (source, target) = self.some(2)
        coins = {self.coin_in(source, bank) for _ in range(self.rng.randint(1, 3))}
        self.line("lmove", f"lmove {source} {target} {' '.join(coins)}\r\n")

    def transfer(self):
        bank, (source, target) = self.some(2)
        coin = self.coin_in(source, bank)
        answer = self.tx("transfer", f"lrequire {source} {coin}", f"ldel {source} {coin}",
                         f"ladd {target} {coin}")
        self.done["transferred"] += answer == b"STORED"

    def rotate(self):
        bank, keys = self.some(self.rng.randint(3, 6))
        lines = []
        for source, target in zip(keys, keys[1:] + keys[:1]):
            coin = self.coin_in(source, bank)
            if any(line.endswith(f" {coin}") for line in lines):
                return
            lines += [f"lrequire {source} {coin}", f"ldel {source} {coin}", f"ladd {target} {coin}"]
        answer = self.tx("rotate", *lines)
        self.done["rotated"] += answer == b"STORED"

    def pop_to(self):
        _, (source, target) = self.some(2, range(QUIET_BANKS, len(BANKS)))
        count = self.rng.choice([1, 2, -1])

        def take(conn):
            line = conn.line()
            if line.startswith(b"VALUE "):
                conn.data(int(line.split(b" ")[3]))
                line = conn.line()
            return line

        self.count("lpopto", self.ask("lpopto", f"lpopto {source} {target} {count}\r\n", take))

    def sum_bank(self):
        bank = self.rng.choices(range(len(BANKS)), [1, 1, 2, 3, 3])[0]
        found = self.lists(accounts_of(bank))
        if found is not None:
            judge_bank(bank, found)
            self.run_of.seen.update({
                key: [item for item in items if item.startswith("coin-")]
                for key, items in found.items()
            })

    # --- people ---

    def follow(self):
        one, other = self.rng.sample(range(PEOPLE), 2)
        verb = self.rng.choice(["ladd", "ldel"])
        self.tx("follow", f"{verb} {following(one)} {other}", f"{verb} {followers(other)} {one}")

    def look_at_people(self):
        keys = PERSONS
        if self.rng.random() < 0.7:
            pair = self.rng.sample(range(PEOPLE), 2)
            keys = [following(pair[0]), followers(pair[1])]
        found = self.lists(keys)
        if found is not None:
            judge_people(found)

    # --- other clients of the same lists ---

    def noise(self):
        key = self.rng.choice(ACCOUNTS + PERSONS)
        item = f"note-{self.rng.randrange(30)}"
        form = self.rng.choices(
            ["ladd", "ldel", "laddx", "ldelx", "llen", "lcompact", "lhas", "lget"],
            [12, 12, 3, 3, 2, 1, 2, 2])[0]
        if form in ("lhas", "lget"):
            text = f"{form} {key}" + f" {item}" * (form == "lhas")
            self.ask(form, text + "\r\n", self.take_block)
        else:
            self.line(form, f"{form} {key}" + f" {item}" * (form not in ("llen", "lcompact")) + "\r\n")

    @staticmethod
    def take_block(conn):
        while (line := conn.line()).startswith(b"VALUE "):
            conn.data(int(line.split(b" ")[3]))
        return line

    # --- what no other client changes ---

    def move_mine(self):
        """Both lists of it have the item, or neither; what was answered is there for every reader,
        and no list waits for the primary any more."""
        self.serial += 1
        item, (first, second) = f"mine-{self.number}-{self.serial}", self.rng.sample(QUIET, 2)
        lines = [f"ladd {first} {item}", f"ladd {second} {item}"]
        if self.mine and self.rng.random() < 0.9:
            lines += [f"ldel {key} {self.mine}" for key in self.mine_at]
        answer = self.tx("mine", *lines)
        if answer == b"STORED" and self.rng.random() < 0.4 and self.run_of.looks_at_heads:
            self.look_at_heads((first, second), item)
        found = self.lists([first, second])
        if found is not None:
            has = [item in found[key] for key in (first, second)]
            if has[0] != has[1] or (answer == b"STORED" and not has[0]):
                raise verbs.Fault(f"{item}: answered {answer!r}, in {first}, {second}: {has}\n"
                                  f"{self.heads_now((first, second))}")
        self.mine, self.mine_at = item, (first, second)

    # --- lists that begin with the transaction ---

    def make_pair(self):
        """A node that was failed over has never heard of the list that decides."""
        pairs = self.run_of.pairs
        if len(pairs) < PAIRS_MAX:
            self.serial += 1
            keys = [f"pair-{side}-{self.number}-{self.serial}" for side in "ab"]
            answer = self.tx("pair", *(f"ladd {key} x" for key in keys))
            pairs.append((keys, answer == b"STORED"))
        self.look_at_pair(*self.rng.choice(pairs[-CLIENTS:]))

    def look_at_pair(self, keys, is_answered):
        """Returns whether it was read."""
        found = self.lists(keys)
        if found is not None:
            has = [found[key] == ["x"] for key in keys]
            if has[0] != has[1] or (is_answered and not has[0]):
                raise verbs.Fault(f"{keys}: answered: {is_answered}, has {has}\n"
                                  f"{self.heads_now(keys)}")
        return found is not None

    def heads_now(self, keys):
        """As the servers hold them a moment later, for a person."""
        with self.run_of.cluster.places() as places:
            return "\n".join(f"{key}# {stored.fetch(places, f'{key}#')!r}" for key in keys)

    def look_at_heads(self, keys, item):
        """An answered transaction does not depend on its primary any more."""
        if not self.direct:
            self.direct += [memcached.conn() for memcached in self.run_of.cluster.memcacheds]
        for key in keys:
            for conn in self.direct:
                try:
                    value = conn.get(f"{key}#")
                except OSError:  # a server that is paused for long
                    self.direct = []
                    return
                for intent in Head(value, key.encode()).intents.values() if value else ():
                    if item.encode() in intent.items and intent.state == OPEN:
                        raise verbs.Fault(f"{item}: answered, and {key} waits for its primary "
                                          f"{intent.primary.decode()}: {value!r}")
        self.done["heads looked at"] += 1


class Sweeper(threading.Thread):
    """scripts/sweep beside all of it: what is older than a second it leaves to no proxy."""

    PAUSE_S = 1

    def __init__(self, run):
        super().__init__(name="sweeper", daemon=True)
        self.run_of, self.fault, self.finished = run, None, 0

    def run(self):
        servers = [memcached.address for memcached in self.run_of.cluster.memcacheds]
        command = [sys.executable, str(ROOT / "scripts/sweep"), "--delete", "--wait", "0",
                   "--grace", "0", *servers]
        try:
            while not self.run_of.over.wait(self.PAUSE_S):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise verbs.Fault(f"scripts/sweep: {done.stdout}{done.stderr}")
                self.finished += done.stdout.count("finished transaction ")
        except BaseException as fault:  # told by the scenario
            self.fault = fault


def judge_bank(bank, found):
    """found: {account: items} of one instant."""
    counts = collections.Counter(
        item for items in found.values() for item in items if item.startswith("coin-")
    )
    expected = collections.Counter(coins_of(bank))
    if counts != expected:
        raise verbs.Fault(
            f"bank {bank}: lost {sorted((expected - counts).elements())}, "
            f"too many {sorted((counts - expected).elements())}; {found}"
        )


def judge_people(found):
    for one in range(PEOPLE):
        for other in range(PEOPLE):
            if following(one) in found and followers(other) in found:
                has = str(other) in found[following(one)], str(one) in found[followers(other)]
                if has[0] != has[1]:
                    raise verbs.Fault(f"{one} follows {other}: {has[0]}, {other} is followed by "
                                      f"{one}: {has[1]}; {found}")


class Transfers(Run):
    shape = Shape(4, 3, config_of)
    looks_at_heads = True

    def may_be_old(self, _keys, _asked_ns):
        """Is an answer from then until now allowed to show what was before?"""
        return False

    def helpers(self):
        """Threads beside the clients."""
        self.sweeper = Sweeper(self)
        return [self.sweeper]

    def swept(self):
        return f"{self.sweeper.finished} finished by the sweep"

    def prepare(self):
        self.seen = {}  # {account: coins}, as any client saw it last
        self.pairs = []  # (keys, answered)
        with self.cluster.proxy_conn(0) as conn:
            for bank, count in enumerate(BANKS):
                coins = coins_of(bank)
                for number, key in enumerate(accounts_of(bank)):
                    ask(conn, f"lset {key} {' '.join(coins[number::count])}")
                    self.seen[key] = coins[number::count]

    def under_fire(self):
        self.clients = [Mover(number, self) for number in range(CLIENTS)]
        self.work_under_fire([*self.clients, *self.helpers()], CLIENTS, self.shape.servers)

    def afterwards(self):
        """All is quiet: the sums are right through every proxy, and no transaction stays open."""
        self.judge_content()
        wait_until("every transaction is over", self.are_over, (GRACE_S + 20) * SLOW)
        self.judge_content()
        self.judge_proxies(self.shape.servers)
        self.judge_work()

    def judge_content(self):
        reader = Mover(CLIENTS, self)
        before = None
        for proxy in self.cluster.proxies:
            reader.rng.choice = lambda _, proxy=proxy: proxy
            found = {}
            for keys in (*map(accounts_of, range(len(BANKS))), PERSONS):
                found.update(wait_until("lists are read", lambda keys=keys: reader.lists(keys)))
            for bank in range(len(BANKS)):
                judge_bank(bank, {key: found[key] for key in accounts_of(bank)})
            judge_people(found)
            for pair in self.pairs:
                wait_until("a pair is read", lambda pair=pair: reader.look_at_pair(*pair))
            if before is not None and found != before:
                raise verbs.Fault(f"proxy {proxy.number} has other content than the one before it")
            before = found
        for conn in reader.conns.values():
            conn.close()

    def are_over(self):
        """After each list was compacted once more."""
        keys = ACCOUNTS + PERSONS + [key for pair, _ in self.pairs for key in pair]
        with self.cluster.proxy_conn(0) as conn:
            for key in keys:
                conn.cmd(f"lcompact {key}")
        with self.cluster.places() as places:
            values = {key: stored.fetch(places, f"{key}#") for key in keys}
        return not any(
            Head(value, key.encode()).open_transactions()
            for key, value in values.items() if value is not None
        )

    def judge_work(self):
        done = sum((client.done for client in self.clients), collections.Counter())
        counts = [f"{count:8} {name}" for name, count in sorted(done.items())]
        (self.folder / "answers.txt").write_text("\n".join(counts) + "\n")
        wanted = ["lmove ok", "lpopto ok", "follow ok", "mine ok", "pair ok", "transfer ok",
                  "lgetx ok"]
        idle = [name for name in wanted if not done[name]]
        wanted += ["transferred", "rotated", "heads looked at", "may be old"]  # these are rare
        if idle:
            self.faults.append(f"never answered well: {', '.join(idle)}")
        fine = sum(count for name, count in done.items() if name.endswith(" ok"))
        links = self.cluster.relay.all_stats()
        self.summary = ", ".join([
            f"{fine} answered well", *(f"{done[name]} {name}" for name in wanted),
            self.swept(),
            f"{sum(stats['cuts'] for stats in links)} cuts",
            f"longest answer {self.patience.longest_s:.2f} s",
        ])

    def judge_history(self):
        """Each answer was judged when it came."""
