# SPDX-License-Identifier: BSD-3-Clause
"""The same random requests to a daemon before a memcached and to one whose pool is of type couchbase:
the answers are the same but for what docs/couchbase.md says. The documents are once the fake's, and once
a real memcached's by its binary protocol."""

import random
import re

import pytest

from couchbase_support import Cluster, RelayCluster, sections

VALUES = ["", "1", "99", "text", "two words", "x" * 5000]
FLAGS = {
    "mg": ["v", "f", "s", "k", "c", "O12", "q", "T1000", "T0", "u"],
    "ms": ["k", "c", "O1", "q", "F5", "T1000", "T-1", "ME", "MA", "MP", "MR", "MS", "C"],
    "md": ["k", "O3", "q", "C"],
    "ma": ["v", "k", "O4", "q", "c", "N0", "N1000", "J5", "D7", "MI", "MD", "M+", "M-"],
}
NUMBER = re.compile(rb" (c\d+|t[1-9]\d*)(?= |$)")


class Side:
    """A connection, and the CAS numbers that were seen on it."""

    def __init__(self, conn):
        self.conn = conn
        self.cas = {}

    def ask(self, request):
        """The answer as lines and blocks, up to a fence."""
        text = request.text(self.cas.get(request.key))
        self.conn.send(text, b"mn\r\n")
        found = []
        while (line := self.conn.line()) != b"MN":
            found.append(line)
            fields = line.split()
            if fields[0] == b"VALUE" or fields[0] == b"VA":
                found.append(self.conn.data(int(fields[3 if fields[0] == b"VALUE" else 1])))
        self.note_cas(request, found)
        return [comparable(request, line) for line in found]

    def note_cas(self, request, found):
        if request.touches:
            self.cas.pop(request.key, None)  # another number there, the same one here
        for line in found:
            if request.verb == "gets" and line.startswith(b"VALUE"):
                self.cas[request.key] = int(line.split()[4])


def comparable(request, line):
    if request.verb in ("gets", "gats") and line.startswith(b"VALUE"):
        return b" ".join(line.split()[:4])
    return NUMBER.sub(lambda found: b" " + found[1][:1] + (b"0" if found[1] == b"c0" else b"#"), line)


class Request:
    def __init__(self, rng):
        self.verb = rng.choice("get gets gat gats set set add replace append prepend cas delete incr "
                               "decr touch mg mg ms ms md ma".split())
        counts = self.verb in ("incr", "decr", "ma")
        # Of numbers that get shorter memcached keeps the length: so they are not looked at.
        self.is_number = counts or (self.verb in ("set", "delete", "touch") and rng.random() < 0.3)
        self.key = f"{'number' if self.is_number else 'item'}{rng.randrange(3)}"
        self.value = str(rng.randrange(10**6)) if self.is_number else rng.choice(VALUES)
        self.exptime = rng.choice([0, 0, 1000, -1])
        self.flags = rng.choice([0, 5])
        self.wrong = rng.randrange(4) == 0
        self.noreply = rng.choice(["", "", " noreply"])
        self.delta = rng.choice([0, 1, 77, 18446744073709551615])
        wanted = FLAGS.get(self.verb, [])
        self.words = self._distinct(rng.sample(wanted, rng.randrange(min(5, len(wanted) + 1))))
        if self.is_number and "c" in self.words and self.verb == "mg":
            self.words.remove("c")
        self.touches = self.verb in ("touch", "gat", "gats") or "T1000" in self.words or "T0" in self.words

    @staticmethod
    def _distinct(words):
        return list({word[0]: word for word in words}.values())

    def text(self, cas):
        number = (cas or 7) + (1 if self.wrong else 0)
        k, v = self.key, self.value
        if self.verb in ("get", "gets"):
            return f"{self.verb} {k}\r\n"
        if self.verb in ("gat", "gats"):
            return f"{self.verb} {self.exptime} {k}\r\n"
        if self.verb in ("set", "add", "replace", "append", "prepend"):
            return f"{self.verb} {k} {self.flags} {self.exptime} {len(v)}{self.noreply}\r\n{v}\r\n"
        if self.verb == "cas":
            return f"cas {k} {self.flags} {self.exptime} {len(v)} {number}{self.noreply}\r\n{v}\r\n"
        if self.verb == "delete":
            return f"delete {k}{self.noreply}\r\n"
        if self.verb == "touch":
            return f"touch {k} {self.exptime}{self.noreply}\r\n"
        if self.verb in ("incr", "decr"):
            return f"{self.verb} {k} {self.delta}{self.noreply}\r\n"
        words = " ".join(f"C{number}" if word == "C" else word for word in self.words)
        if self.verb == "ms":
            return f"ms {k} {len(v)} {words}\r\n{v}\r\n"
        return f"{self.verb} {k} {words}\r\n"


def compare(reference, daemon, seed, count):
    rng = random.Random(seed)
    with reference.conn() as real, daemon.conn() as proxied:
        here, there = Side(real), Side(proxied)
        history = []
        for _ in range(count):
            request = Request(rng)
            history.append(request.text(None)[:100])
            theirs, ours = here.ask(request), there.ask(request)
            assert ours == theirs, "\n".join([f"seed {seed}", *history[-12:]])


@pytest.mark.parametrize("seed", range(4))
def test_the_fakes_documents(memcached, start_daemon, tmp_path, seed):
    with Cluster(nodes=3) as cluster:
        compare(start_daemon([memcached]), start_daemon(config=sections(cluster, tmp_path)), seed, 1500)


@pytest.mark.parametrize("seed", range(4))
def test_documents_of_memcached(memcached, start_memcached, start_daemon, tmp_path, seed):
    other = start_memcached()
    with RelayCluster(other.host, other.port) as cluster:
        compare(start_daemon([memcached]), start_daemon(config=sections(cluster, tmp_path)), seed, 1500)
