# SPDX-License-Identifier: BSD-3-Clause
"""What lists should be: a model of their content, requests with the answers it expects, and a look
at what the backends really hold of a list.

    model = Model()
    converse(conn, [random_request(rng, model, "fruit") for _ in range(100)])
    assert leftovers(memcacheds, "fruit") == []

Load drives several proxies with several clients at once and checks what they see.
"""

import collections
import random
import re
import socket
import threading
import time
import urllib.parse

from harness import SLOW, as_bytes, wait_until

NAME = re.compile(rb"[a-z2-7]{13}")
FIELD = re.compile(rb"([-*]?)([a-z2-7]{13})\.(\d+)(?::(\d+):(\d+))?")
# What memcached adds to a value: item header, CAS, key end, line end, chunk headers.
ITEM_OVERHEAD_BYTES = 200
# Limits so small that flips and merges never stop.
TINY = {
    "log_limit_bytes": 256,
    "log_hard_limit_bytes": 1024,
    "sublist_limit_bytes": 512,
    "max_item_bytes": 200,
    "announcement_grace_s": 1,
}


class Model:
    """Lists by their keys, each in the order in which its items came in."""

    def __init__(self, recent=False):
        self.lists = {}
        self.recent = recent  # order = recent: what is added again goes to the end

    def items(self, key):
        return list(self.lists.get(key, ()))

    def add(self, key, items):
        """Returns how many of them were new."""
        known = self.lists.setdefault(key, {})
        before = len(known)
        for item in items:
            if self.recent:
                known.pop(item, None)
            known.setdefault(item)
        return len(known) - before

    def remove(self, key, items):
        """Returns how many of them were there."""
        known = self.lists.setdefault(key, {})
        return sum(1 for item in items if known.pop(item, True) is None)

    def replace(self, key, items):
        self.lists[key] = dict.fromkeys(items)

    def range(self, key, first, last):
        """Positions first to last, as Redis LRANGE counts them."""
        items = self.items(key)
        first = max(first + len(items), 0) if first < 0 else first
        last = last + len(items) if last < 0 else last
        return items[first : last + 1] if last >= 0 else []

    def pop(self, key, count):
        """Takes the oldest items off, or with a negative count the newest, newest first."""
        taken = self.items(key)[:count] if count > 0 else self.items(key)[:count - 1 : -1]
        self.remove(key, taken)
        return taken

    def move(self, source, target, items):
        """Takes those of the items that are there from one list to another; returns them."""
        known = self.lists.get(source, {})
        moved = [item for item in dict.fromkeys(items) if item in known]
        self.remove(source, moved)
        self.add(target, moved)
        return moved

    def transact(self, lines):
        """lines: (verb, key, items) of an ltx. False: a condition does not hold, nothing is done."""
        for verb, key, items in lines:
            held = [item in self.lists.get(key, {}) for item in items]
            if (verb == "lrequire" and not all(held)) or (verb == "lrefuse" and any(held)):
                return False
        changes = {"ladd": self.add, "ldel": self.remove, "lset": self.replace}
        for verb, key, items in lines:
            changes.get(verb, lambda *_: None)(key, items)
        return True

    def beside(self, key, item, count, step):
        """The next items behind it (step 1), or before it (-1), the nearest first."""
        items = self.items(key)[::step]
        return items[items.index(item) + 1 :][:count]

    def revrange(self, key, first, last):
        """The same, counted from the newest item, as Redis ZREVRANGE does."""
        return self.range(key, -1 - last, -1 - first)[::-1]


def value_answer(key, items, delimiter=b","):
    """The answer of lget and its like; just END for no items."""
    if not items:
        return b"END\r\n"
    data = delimiter.join(items)
    return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (as_bytes(key), len(data), data)


def item_answer(key, items):
    """The answer of lgetb."""
    line = b"ITEM " + as_bytes(key) + b" %d\r\n%s\r\n"
    return b"".join(line % (len(item), item) for item in items) + b"END\r\n"


def _random_read(rng, model, key, items):
    verb = rng.choice(["lget", "lgetb", "lhas", "llen", "lrange", "lrevrange", "lafter", "lbefore"])
    if verb in ("lafter", "lbefore"):
        count, step = rng.randint(1, 8), 1 if verb == "lafter" else -1
        rest = b"%s %d" % (items[0], count)
        if items[0] not in model.lists.get(key, {}):
            return verb, rest, b"NOT_FOUND\r\n"
        return verb, rest, value_answer(key, model.beside(key, items[0], count, step))
    if verb == "lget":
        return verb, b"", value_answer(key, model.items(key))
    if verb == "lgetb":
        return verb, b"", item_answer(key, model.items(key))
    if verb == "lhas":
        known = model.lists.get(key, {})
        return verb, b" ".join(items), value_answer(key, [i for i in items if i in known])
    if verb == "llen":
        return verb, b"", b"%d\r\n" % len(model.items(key))
    first, last = rng.randint(-30, 30), rng.randint(-30, 30)
    cut = model.range if verb == "lrange" else model.revrange
    return verb, b"%d %d" % (first, last), value_answer(key, cut(key, first, last))


def random_request(rng, model, key, universe=60, reads=0.3, lset=0.02):
    """A request line and the answer it must get; the model then holds what the list must hold.
    The items come from so small a universe that they are added, deleted and added again."""
    numbers = rng.sample(range(universe), rng.randint(1, 4))
    items = [b"item-%d" % number for number in numbers]
    dice = rng.random()
    if dice < reads:
        verb, rest, answer = _random_read(rng, model, key, items)
        return b" ".join([as_bytes(verb), as_bytes(key), rest]) + b"\r\n", answer
    rest = b" ".join(items)
    if dice < reads + lset:
        verb, answer = "lset", b"STORED\r\n"
        model.replace(key, items)
    elif dice < reads + lset + 0.03:
        verb, answer = "laddx", b"%d\r\n" % model.add(key, items)
    elif dice < reads + lset + 0.06:
        verb, answer = "ldelx", b"%d\r\n" % model.remove(key, items)
    elif dice < reads + lset + 0.09:
        count = rng.choice([1, 2, 5, -1, -2])
        verb, rest, answer = "lpop", b"%d" % count, value_answer(key, model.pop(key, count))
    elif rng.random() < 0.6:
        verb, answer = "ladd", b"STORED\r\n"
        model.add(key, items)
    else:
        verb, answer = "ldel", b"DELETED\r\n"
        model.remove(key, items)
    return b" ".join([as_bytes(verb), as_bytes(key), rest]) + b"\r\n", answer


def transaction_block(lines):
    """The block of an ltx: items with blanks go by laddb and its like."""
    block = b""
    for verb, key, items in lines:
        word = b"%s %s" % (as_bytes(verb), as_bytes(key))
        if any(re.search(rb"[ \r\n]", item) for item in items):
            bytes_word = as_bytes(verb) + b"b " + as_bytes(key)
            block += b"".join(b"%s %d\r\n%s\r\n" % (bytes_word, len(i), i) for i in items)
        else:
            block += b" ".join([word, *items]) + b"\r\n"
    return block


def transaction_request(lines):
    block = transaction_block(lines)
    return b"ltx %d\r\n%s\r\n" % (len(block), block)


def random_transaction(rng, model, keys, universe=60):
    """The same as random_request, of several lists in one step."""
    names = [b"item-%d" % number for number in range(universe)]
    source, target = rng.sample(keys, 2)
    ends = as_bytes(source) + b" " + as_bytes(target) + b" "
    dice = rng.random()
    if dice < 0.25:
        items = rng.sample(names, rng.randint(1, 6))
        items += items[: rng.randint(0, 1)]  # one is named twice
        moved = model.move(source, target, items)
        return b"lmove " + ends + b" ".join(items) + b"\r\n", b"%d\r\n" % len(moved)
    if dice < 0.5:
        count = rng.choice([1, 2, 5, -1, -2])
        moved = model.pop(source, count)
        model.add(target, moved)
        verb, answer = rng.choice([(b"lpopto ", value_answer), (b"lpoptob ", item_answer)])
        return verb + ends + b"%d\r\n" % count, answer(target, moved)
    lines = []
    for _ in range(rng.randint(1, 6)):
        verb = rng.choice(["ladd", "ladd", "ladd", "ldel", "ldel", "lset", "lrequire", "lrefuse"])
        items = rng.sample(names, rng.randint(verb != "lset", 3))
        key = rng.choice(keys)
        if verb.startswith("lre") and rng.random() < 0.8:  # most conditions hold
            held = [name for name in names if (name in model.lists.get(key, {})) == (verb == "lrequire")]
            items = rng.sample(held, min(2, len(held)))
        if items or verb == "lset":
            lines.append((verb, key, items))
    lines = lines or [("ladd", source, [names[0]])]
    return transaction_request(lines), b"STORED\r\n" if model.transact(lines) else b"NOT_STORED\r\n"


def converse(conn, pairs):
    """Sends all requests at once; the answers must be exactly the expected ones, in their order."""
    conn.send(*[request for request, _ in pairs])
    for number, (request, answer) in enumerate(pairs):
        expect_bytes(conn, answer, f"answer {number}, to {request!r}")


def expect_bytes(conn, answer, what="answer"):
    """The next bytes must be these."""
    try:
        got = conn.read_exact(len(answer))
    except (EOFError, socket.timeout):
        got = conn.buffer
    if got != answer:
        got += conn.buffer  # the rest of the line says why
    assert got == answer, f"{what}: {got[:2000]!r} in place of {answer[:2000]!r}"


class Head:
    """A list's head as it lies in its backend."""

    def __init__(self, value):
        header, self.log = value.split(b"\n", 1)
        version, *fields = header.split(b" ")
        assert version == b"^1", f"no head: {value[:100]!r}"
        self.runs, self.garbage = {}, {}
        self.marks = [field.decode() for field in fields if field[:1] in b"@?#%"]
        for field in fields:
            if field[:1] in b"@?#%":
                continue
            mark, name, count, *_ = FIELD.fullmatch(field).groups()
            kinds = {b"": self.runs, b"-": self.garbage}
            kinds[mark][name.decode()] = int(count)

    def run_keys(self, key):
        """The backend keys of all sublists of the runs, oldest run first."""
        return [f"{key}#{name}.{n}" for name, count in self.runs.items() for n in range(count)]


def dump(memcached):
    """Key -> bytes of the whole item, of all that a memcached holds: `all` would leave out what is just
    moved from one of its lists to another."""

    def ask():
        with memcached.conn() as conn:
            conn.send("lru_crawler metadump hash\r\n")
            found = {}
            for line in conn.socket.makefile("rb"):  # its lines end in a bare line feed
                if line.startswith((b"END", b"BUSY")):
                    break
                fields = dict(field.split(b"=", 1) for field in line.split())
                found[urllib.parse.unquote(fields[b"key"].decode())] = int(fields[b"size"])
            return [found] if line.startswith(b"END") else None

    return wait_until("lru_crawler metadump", ask)[0]


def holder(memcacheds, key):
    """The server that holds a list's head, or None."""
    for memcached in memcacheds:
        with memcached.conn() as conn:
            if conn.get(f"{key}#") is not None:
                return memcached
    return None


def head_of(memcacheds, key):
    """The list's head, or None."""
    for memcached in memcacheds:
        with memcached.conn() as conn:
            value = conn.get(f"{key}#")
        if value is not None:
            return Head(value)
    return None


def sublists(memcacheds, key):
    """The sublists that are stored: (server, backend key)."""
    found = []
    for memcached in memcacheds:
        head = f"{key}#"
        names = [name for name in dump(memcached) if name.startswith(head) and name != head]
        with memcached.conn() as conn:
            found += [(memcached, name) for name in names if conn.get(name)]
    return found


def leftovers(memcacheds, key):
    """Sublists that hold something and that the head does not name as part of its runs."""
    head = head_of(memcacheds, key)
    named = set(head.run_keys(key)) if head else set()
    return [name for _, name in sublists(memcacheds, key) if name not in named]


def compact(conn, key):
    """lcompact, again while it is busy; returns lstat afterwards."""
    wait_until(f"lcompact {key}", lambda: conn.cmd(f"lcompact {key}") == b"OK")
    return conn.stats(f"lstat {key}")


def converse_at_random(conn, seed, keys, rounds, requests, universe):
    """So many requests of one list a round, and some transactions; then one of the lists is compacted.
    All lists are as the model says."""
    rng, model = random.Random(seed), Model()
    for _ in range(rounds):
        pairs = [random_request(rng, model, rng.choice(keys), universe) for _ in range(requests)]
        pairs += [random_transaction(rng, model, keys, universe) for _ in range(10)]
        converse(conn, pairs)
        key = rng.choice(keys)
        compact(conn, key)
        assert conn.lget(key) == model.items(key)
    for key in keys:
        assert conn.lget(key) == model.items(key)


def assert_compact(conn, key, memcacheds):
    """After lcompact: one run or none; and nothing to be tidied up, here and in the backends, at the
    latest when the grace of a fold that was given up is over."""

    def tidy():
        stat = compact(conn, key)
        if stat:
            assert int(stat["runs"]) <= 1, stat
        return not stat or stat["garbage_names"] == stat["announcements"] == "0"

    wait_until(f"nothing is left of folds of {key}", tidy)
    assert leftovers(memcacheds, key) == []


def assert_sizes(memcacheds, limit_bytes):
    for memcached in memcacheds:
        most = limit_bytes + ITEM_OVERHEAD_BYTES
        large = {key: size for key, size in dump(memcached).items() if size > most}
        assert not large, f"items above {limit_bytes} bytes: {large}"


class Client(threading.Thread):
    """A client with items of its own, of which it knows whether they are in each list. What it does
    not know, because an answer did not come, it never touches or judges again ("unsure")."""

    def __init__(self, load, number):
        super().__init__(name=f"client {number}", daemon=True)
        self.load = load
        self.prefix = b"c%d-" % number
        self.rng = random.Random(load.seed * 1000 + number)
        self.model = Model()
        self.unsure = collections.defaultdict(set)
        self.last_generation = 0
        self.generation = 0  # of the items of the last lset that was acknowledged
        self.unsure_generations = set()
        self.done = collections.Counter()  # verbs acknowledged, and errors by their texts
        self.fault = None

    def run(self):
        try:
            while not self.load.over():
                self.talk()
        except BaseException as fault:  # told by Load.run
            self.fault = fault

    def talk(self):
        """One connection to one of the proxies, until it breaks or a while is over."""
        daemon = self.rng.choice(self.load.daemons)
        try:
            conn = daemon.conn(timeout_s=self.load.patience_s)
        except OSError:
            time.sleep(0.02)
            return
        with conn:
            for _ in range(self.rng.randint(10, 200)):
                if self.load.over() or not self.ask(conn):
                    return

    def ask(self, conn):
        """A pipeline of a few requests. False when the connection broke."""
        requests = [self.choose() for _ in range(self.rng.choice([1, 1, 2, 8]))]
        try:
            conn.send(*[b" ".join([verb, key, *items]) + b"\r\n" for verb, key, items in requests])
            while requests:
                self.take(conn, *requests[0])
                requests.pop(0)
        except (OSError, EOFError):
            for verb, key, items in requests:
                self.note_unsure(verb, key, items)
            self.done["connections lost"] += 1
            return False
        return True

    def choose(self):
        key = self.rng.choice(self.load.keys)
        verb = self.rng.choices(self.load.verbs, self.load.weights)[0]
        if verb == b"lset":
            key = b"whole"
            self.last_generation += 1
            generation = b"%s%d-" % (self.prefix, self.last_generation)
            return verb, key, [generation + b"%d" % n for n in range(5)]
        if verb == b"lget-whole":
            return b"lget", b"whole", []
        if verb in (b"lget", b"lgetb", b"lcompact", b"llen"):
            return verb, key, []
        known = [self.prefix + b"%d" % n for n in self.rng.sample(range(self.load.universe), 4)]
        items = [item for item in known if item not in self.unsure[key]]
        while len(items) < 2:  # nearly all are unsure by now: invent others
            items.append(self.prefix + b"x%d" % self.rng.getrandbits(60))
        return verb, key, items

    def note_unsure(self, verb, key, items):
        if verb == b"lset":
            self.unsure_generations.add(int(items[0].split(b"-")[1]))
        elif verb in (b"ladd", b"ldel", b"laddx", b"ldelx"):
            self.unsure[key].update(items)

    def take(self, conn, verb, key, items):
        """Takes the answer and holds it against what must be."""
        if verb in (b"lget", b"lgetb", b"lhas"):
            self.take_items(conn, verb, key, items)
            return
        line = conn.line()
        if line.startswith(b"SERVER_ERROR "):
            self.done[self.error(line)] += 1
            if b"nothing done" not in line:
                self.note_unsure(verb, key, items)
            return
        self.done[verb.decode()] += 1
        if verb == b"lset":
            assert line == b"STORED", line
            self.generation = int(items[0].split(b"-")[1])
        elif verb in (b"ladd", b"laddx"):
            count = self.model.add(key, items)
            self.expect(verb, key, items, line, b"STORED" if verb == b"ladd" else b"%d" % count)
        elif verb in (b"ldel", b"ldelx"):
            count = self.model.remove(key, items)
            self.expect(verb, key, items, line, b"DELETED" if verb == b"ldel" else b"%d" % count)
        elif verb == b"lcompact":
            assert line == b"OK", line
        else:
            int(line)

    def expect(self, verb, key, items, line, answer):
        if not self.unsure[key].intersection(items):
            assert line == answer, f"{verb} {key} {items}: {line} in place of {answer}"

    def error(self, line):
        """The text without the server and the like; a damaged list is a fault."""
        text = line.decode()
        assert "damaged" not in text and "holds no list" not in text, text
        return re.sub(r"[0-9.]+:\d+", "HOST", text)

    def take_items(self, conn, verb, key, asked):
        found = []
        while (line := conn.line()) != b"END":
            if line.startswith(b"SERVER_ERROR "):
                self.done[self.error(line)] += 1
                return
            data = conn.data(int(line.split(b" ")[3 if verb != b"lgetb" else 2]))
            found += [data] if verb == b"lgetb" else data.split(b",")
        self.done[verb.decode()] += 1
        if key == b"whole":
            self.judge_whole(found)
        elif verb == b"lhas":
            known = self.model.lists.get(key, {})
            self.judge(key, found, [item for item in asked if item in known])
        else:
            assert len(found) == len(set(found)), f"duplicates in {key}: {duplicates(found)}"
            self.judge(key, found, self.model.items(key))

    def judge(self, key, found, expected):
        """My own items must be those that I know to be there, in the order in which I added
        them."""
        unsure = self.unsure[key]
        mine = [item for item in found if item.startswith(self.prefix) and item not in unsure]
        expected = [item for item in expected if item not in unsure]
        assert mine == expected, (
            f"{self.name}, {key}: missing {set(expected) - set(mine)}, "
            f"back {set(mine) - set(expected)}, or the order: {mine} {expected}"
        )

    def judge_whole(self, found):
        """Exactly what one lset wrote, and none of mine that was overwritten."""
        if not found:
            assert self.generation == 0, "a replaced list is empty"
            return
        writer, generation, _ = found[0].split(b"-")
        assert found == [b"%s-%s-%d" % (writer, generation, n) for n in range(5)], found
        if writer + b"-" == self.prefix:
            known = int(generation) >= self.generation or int(generation) in self.unsure_generations
            assert known, f"{found} is back, the last was {self.generation}"


def duplicates(items):
    return [item for item, count in collections.Counter(items).items() if count > 1]


class Load:
    """Clients that add, delete, count, replace and read the same lists through several proxies."""

    def __init__(
        self,
        daemons,
        seconds,
        clients=6,
        keys=(b"one", b"two"),
        seed=1,
        universe=60,
        patience_s=5,
        at_least=(),
    ):
        """Goes on for up to ten times as long until at_least, a number for each verb, is done."""
        self.daemons, self.keys, self.seed, self.universe = daemons, list(keys), seed, universe
        self.seconds, self.patience_s = seconds, patience_s * SLOW
        mix = {"ladd": 35, "ldel": 25, "laddx": 5, "ldelx": 5, "lset": 4, "lget-whole": 4}
        mix.update({"lget": 6, "lgetb": 3, "lhas": 8, "llen": 4, "lcompact": 1})
        self.verbs, self.weights = [verb.encode() for verb in mix], list(mix.values())
        self.clients = [Client(self, number) for number in range(clients)]
        self.at_least = dict(at_least)
        self.deadline = None

    def has_done_enough(self):
        done = self.done()
        return all(done[verb] >= number for verb, number in self.at_least.items())

    def over(self):
        late_s = time.monotonic() - self.deadline
        if any(client.fault for client in self.clients) or late_s > 9 * self.seconds:
            return True
        return late_s >= 0 and self.has_done_enough()

    def run(self, disturb=lambda: time.sleep(0.05)):
        """Calls disturb() again and again while the clients are at work; raises the first fault."""
        self.deadline = time.monotonic() + self.seconds
        for client in self.clients:
            client.start()
        while not self.over():
            disturb()
        for client in self.clients:
            client.join(60 * SLOW)
            assert not client.is_alive(), f"{client.name} hangs"
        print(sorted(self.done().items()))
        for client in self.clients:
            if client.fault:
                raise client.fault
        return self.done()

    def done(self):
        return sum((client.done.copy() for client in self.clients), collections.Counter())

    def judge(self, conn):
        """When all is quiet: what the lists hold is what the clients know, and nothing else."""
        for key in map(bytes.decode, self.keys):
            found = conn.lget(key)
            assert duplicates(found) == []
            for client in self.clients:
                client.judge(key.encode(), found, client.model.items(key.encode()))
            owners = {client.prefix for client in self.clients}
            assert all(item.split(b"-")[0] + b"-" in owners for item in found)
            # A proxy that was paused may still carry out what it read: unsure items come and go.
            wait_until("llen counts what lget gives", lambda: conn.llen(key) == len(conn.lget(key)))
        self.clients[0].judge_whole(conn.lget("whole"))

    def judge_leftovers(self, conn, memcacheds):
        """Compacts; at the latest after the grace of dead proxies' announcements nothing is left
        that no head names."""

        def tidy():
            stats = [compact(conn, key.decode()) for key in self.keys + [b"whole"]]
            return all(
                not stat or stat["garbage_names"] == stat["announcements"] == "0" for stat in stats
            ) and not any(leftovers(memcacheds, key.decode()) for key in self.keys + [b"whole"])

        try:
            wait_until("nothing is left that no head names", tidy)
        except AssertionError:
            for key in self.keys + [b"whole"]:
                print(key, conn.stats(f"lstat {key.decode()}"), leftovers(memcacheds, key.decode()))
            raise
        self.judge(conn)
