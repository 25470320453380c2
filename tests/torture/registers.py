# SPDX-License-Identifier: BSD-3-Clause
"""Plain keys under fire. Words are set, added, appended, deleted and read: the checker of histories
takes them for lists whose items are never the same twice. Of the others each state has a number:
counters are counted up, chains are changed by cas, each value naming the one before it, logs are
appended to. Their numbers never go back, and no acknowledged change is missing."""

import collections
import random
import threading
import time

import verbs
from clients import PatientConn

WORKERS = 8
WORDS = [f"words-{n}" for n in range(8)]
COUNTERS = [f"counter-{n}" for n in range(6)]
CHAINS = [f"chain-{n}" for n in range(6)]
LOGS = [f"log-{n}" for n in range(12)]
NEVER = 1 << 62
FIRST = "0-0"
# form: (weight, verb of the history)
WORD_FORMS = {"get": (6, "lget"), "append": (6, "ladd"), "set": (2, "lset"), "add": (1, "lcreate"),
              "delete": (1, "ldrop")}
WELL = {b"STORED": "ok", b"DELETED": "ok", b"NOT_STORED": "not_stored", b"NOT_FOUND": "missing"}


class Seen:
    """Of one key. events: (invoked, completed, what)."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reads, self.changes, self.unknown, self.refused = [], [], [], []
        self.before = {}  # of chains: each value's predecessor


class Worker(threading.Thread):
    def __init__(self, number, registers, seed):
        super().__init__(name=f"registers {number}", daemon=True)
        self.number, self.registers = number, registers
        self.rng = random.Random(f"{self.name} {seed}")
        self.fault, self.serial = None, 0
        self.done = collections.Counter()

    def run(self):
        try:
            while not self.registers.over():
                self.talk()
        except BaseException as fault:  # told by the scenario
            self.fault = fault

    def talk(self):
        proxy = self.rng.choice(self.registers.cluster.proxies)
        try:
            conn = PatientConn(proxy, self.registers.patience)
        except OSError:
            time.sleep(0.02)
            return
        try:
            with conn:
                self.process = self.registers.history.new_process()
                for _ in range(self.rng.randint(20, 200)):
                    if self.registers.over():
                        return
                    work, keys = self.rng.choice(self.registers.work)
                    work(self, conn, self.rng.choice(keys))
        except (OSError, EOFError) as reason:
            if not proxy.was_killed(conn.connected_ns):
                raise verbs.Fault(f"{self.name}: closed by proxy {proxy.number}, which was not "
                                  f"killed: {reason}") from None

    def token(self):
        self.serial += 1
        return f"{self.number + 1}-{self.serial}"

    # --- asking

    def ask(self, conn, text, take, on_end):
        """on_end(invoked, completed, result); completed None: no answer."""
        conn.what = text.partition("\r")[0]
        invoked = conn.sent_ns = time.monotonic_ns()
        answered = False
        try:
            conn.send(text)
            result = take(conn)
            answered = True
        finally:
            if not answered:
                on_end(invoked, None, (None, "unknown"))
        self.registers.patience.note(conn.proxy, invoked)
        on_end(invoked, time.monotonic_ns(), result)

    def take_line(self, conn):
        """(line, outcome)"""
        line = conn.line()
        if line in WELL or line == b"EXISTS" or line.isdigit():
            outcome = WELL.get(line, "ok")
        elif line.startswith(b"SERVER_ERROR "):
            outcome = "unknown" if b"outcome unknown" in line else "error"
            self.done[verbs.error_text(line)] += 1
        else:
            raise verbs.Fault(f"{conn.what}: {line!r}")
        return line, outcome

    def take_value(self, conn):
        """(value or None, outcome); with gets, (value, CAS)."""
        found, line = None, conn.line()
        if line.startswith(b"VALUE "):
            _, _, _, size, *unique = line.split(b" ")
            found, line = conn.data(int(size)).decode(), conn.line()
            found = (found, unique[0].decode()) if unique else found
        if line == b"END":
            return found, "missing" if found is None else "ok"
        if not line.startswith(b"SERVER_ERROR "):
            raise verbs.Fault(f"{conn.what}: {line!r}")
        self.done[verbs.error_text(line)] += 1
        return None, "error"

    def note(self, seen, what):
        """Of a change."""

        def on_end(invoked, completed, result):
            line, outcome = result
            with seen.lock:
                if outcome == "ok" and line != b"EXISTS":
                    seen.changes.append((invoked, completed, what or int(line)))
                    self.done["changes"] += 1
                elif outcome == "unknown":
                    seen.unknown.append((invoked, NEVER, what))
                else:
                    seen.refused.append((invoked, completed, what))

        return on_end

    def note_read(self, seen):
        def on_end(invoked, completed, result):
            if result[1] == "ok":
                seen.reads.append((invoked, completed, result[0]))
                self.done["reads"] += 1

        return on_end

    # --- what they do

    def words(self, conn, key):
        forms = list(WORD_FORMS)
        form = self.rng.choices(forms, [WORD_FORMS[name][0] for name in forms])[0]
        verb = WORD_FORMS[form][1]
        if form in ("get", "delete"):
            text, items = f"{form} {key}\r\n", []
        else:
            items = [self.token() for _ in range(self.rng.randint(1, 3))]
            body = "".join(f"{item}," for item in items)
            text = f"{form} {key} 0 0 {len(body)}\r\n{body}\r\n"

        def on_end(invoked, completed, result):
            found, outcome = result
            if form == "get" and outcome == "unknown":
                return
            answer = found.split(",")[:-1] if form == "get" and found else []
            self.registers.history.add(
                True, invoked, completed, self.process, verb, key, [item.encode() for item in items],
                outcome, [item.encode() for item in answer])
            self.done["words"] += 1

        self.ask(conn, text, self.take_value if form == "get" else self.take_line, on_end)

    def counters(self, conn, key):
        seen = self.registers.seen[key]
        if self.rng.random() < 0.3:
            self.ask(conn, f"get {key}\r\n", self.take_value, self.note_read(seen))
        else:
            self.ask(conn, f"incr {key} 1\r\n", self.take_line, self.note(seen, None))

    def chains(self, conn, key):
        seen, found = self.registers.seen[key], []

        def on_read(invoked, completed, result):
            if result[1] == "ok":
                found.append(result[0])
                self.note_read(seen)(invoked, completed, (result[0][0], "ok"))

        self.ask(conn, f"gets {key}\r\n", self.take_value, on_read)
        if found:
            (value, unique), new = found[0], self.token()
            seen.before[new] = value
            self.ask(conn, f"cas {key} 0 0 {len(new)} {unique}\r\n{new}\r\n", self.take_line,
                     self.note(seen, new))

    def logs(self, conn, key):
        seen = self.registers.seen[key]
        if self.rng.random() < 0.2:
            self.ask(conn, f"get {key}\r\n", self.take_value, self.note_read(seen))
        else:
            new = self.token()
            self.ask(conn, f"append {key} 0 0 {len(new) + 1}\r\n{new},\r\n", self.take_line,
                     self.note(seen, new))


class Registers:
    """durable: nothing acknowledged may be lost; else logs only are kept, and may lose what was
    acknowledged before a failover."""

    def __init__(self, cluster, history, patience, seed, over, durable):
        self.cluster, self.history, self.patience, self.over = cluster, history, patience, over
        self.durable = durable
        self.seen = {key: Seen() for key in COUNTERS + CHAINS + LOGS}
        self.work = [(Worker.logs, LOGS)]
        if durable:
            self.work += [(Worker.words, WORDS), (Worker.words, WORDS),
                          (Worker.counters, COUNTERS), (Worker.chains, CHAINS)]
        self.workers = [Worker(n, self, seed) for n in range(WORKERS)]
        self.lost = 0

    def prepare(self, store):
        """store(key, value): what must succeed."""
        for key in COUNTERS:
            store(key, "0")
        for key in CHAINS:
            store(key, FIRST)
        for key in LOGS:
            store(key, "")

    # --- afterwards

    def judge(self, read):
        """read(key): the value. Yields what is wrong."""
        for key in LOGS:
            yield from self.judge_log(key, self.seen[key], read(key).split(",")[:-1])
        if self.durable:
            for key in COUNTERS:
                yield from self.judge_counter(key, self.seen[key], int(read(key)))
            for key in CHAINS:
                yield from self.judge_chain(key, self.seen[key], read(key))

    def fresh_reads(self, key, seen):
        return [read for read in seen.reads if not self.cluster.may_be_old(key, *read[:2])]

    def judge_content(self, key, seen, at):
        """at: {what: its number} of all that is there."""
        for invoked, _, what in seen.refused:
            if what in at:
                yield f"{key}: {what} was refused, and is there; asked at {invoked}"
        for invoked, _, what in seen.changes:
            if what not in at:
                self.lost += 1
                if self.durable or not self.cluster.was_failed_over(key, invoked):
                    yield f"{key}: {what} was acknowledged, and is lost; asked at {invoked}"

    def judge_log(self, key, seen, found):
        at = {what: number for number, what in enumerate(found, 1)}
        known = {what for _, _, what in seen.changes + seen.unknown}
        if len(at) < len(found):
            yield f"{key}: something is there twice"
        if at.keys() - known:
            yield f"{key}: not appended by any client: {sorted(at.keys() - known)[:5]}"
        yield from self.judge_content(key, seen, at)
        if not self.durable:
            return
        events = [(i, c, at[w], True) for i, c, w in seen.changes + seen.unknown if w in at]
        for invoked, completed, value in self.fresh_reads(key, seen):
            items = value.split(",")[:-1]
            if items != found[: len(items)]:
                yield f"{key}: a read at {invoked} is not how it began"
            events.append((invoked, completed, len(items), False))
        yield from judge_order(key, events)

    def judge_counter(self, key, seen, last):
        numbers = [number for _, _, number in seen.changes]
        most = len(numbers) + len(seen.unknown)
        if len(set(numbers)) < len(numbers):
            yield f"{key}: a number was given twice"
        if not max(numbers, default=0) <= last or not len(numbers) <= last <= most:
            yield (f"{key}: {last} at the end; {len(numbers)} acknowledged, {most} with those of "
                   f"unknown outcome, the greatest {max(numbers, default=0)}")
        events = [(*change, True) for change in seen.changes]
        events += [(i, c, int(value), False) for i, c, value in self.fresh_reads(key, seen)]
        yield from judge_order(key, events)

    def judge_chain(self, key, seen, last):
        path = [last]
        while path[-1] in seen.before:
            path.append(seen.before[path[-1]])
        if path[-1] != FIRST:
            yield f"{key}: it does not begin where it began: {path[-1]}"
        at = {value: number for number, value in enumerate(reversed(path))}
        yield from self.judge_content(key, seen, at)
        events = [(i, c, at[w], True) for i, c, w in seen.changes + seen.unknown if w in at]
        for invoked, completed, value in self.fresh_reads(key, seen):
            if value not in at:
                yield f"{key}: a read at {invoked} found {value}, which never was there"
            else:
                events.append((invoked, completed, at[value], False))
        yield from judge_order(key, events)

    def summary(self):
        done = sum((worker.done for worker in self.workers), collections.Counter())
        unknown = sum(len(seen.unknown) for seen in self.seen.values())
        return (f"plain keys: {done['words']} requests of words, {done['changes']} other changes, "
                f"{done['reads']} reads, {unknown} unknown, {self.lost} acknowledged and lost")


def judge_order(key, events):
    """events: (invoked, completed, number, is it a change). The number never goes back in time, and
    each change has a number of its own."""
    done = sorted(events, key=lambda event: event[1])
    known, place = -1, 0
    for invoked, completed, number, is_change in sorted(events):
        while done[place][1] < invoked:
            known = max(known, done[place][2])
            place += 1
        if number < known + is_change:
            yield (f"{key}: {'a change' if is_change else 'a read'} from {invoked} to {completed} has "
                   f"number {number}, and {known} was seen before")
