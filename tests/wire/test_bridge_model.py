# SPDX-License-Identifier: BSD-3-Clause
"""Random requests on bridged lists and plain keys, in pipelines: each answer is what a model of both
says, whether memcached's verbs or list verbs ask."""

import random
import re

import pytest

from harness import as_bytes

BRIDGES = {
    "lists b-": {"bridge": "yes"},
    "lists r-": {"bridge": "yes", "on_missing": "refuse"},
    "lists s-": {"bridge": "yes", "dialect": "simple", "compact_chance": 0},
    "lists g-": {"bridge": "yes", "dialect": "signed", "compact_chance": 0},
}
KEYS = ["b-1", "b-2", "r-1", "r-2", "s-1", "g-1"]
PLAIN = ["p-1", "p-2", "p-3"]
VERSION = b"{version}"
PUTS = 1


class Lists:
    """What bridged lists and plain keys hold. A list is None when it is missing."""

    def __init__(self):
        self.lists = dict.fromkeys(KEYS)
        self.plain = {}
        self.versions = {}  # key -> a version that an answer has told, while it holds

    def refuses(self, key):
        return key.startswith("r-")

    def is_there(self, key):
        """To be hit or replaced: an empty list is only where it is not the same as a missing one."""
        return self.lists[key] is not None if self.refuses(key) else bool(self.lists[key])

    def put(self, key, items):
        self.versions.pop(key, None)
        self.lists[key] = list(dict.fromkeys(items))

    def change(self, key, added=(), deleted=()):
        """False: there is no list that could be changed."""
        if self.lists[key] is None and self.refuses(key):
            return False
        kept = [item for item in self.lists[key] or () if item not in deleted]
        self.put(key, kept + list(added))
        return True

    def drop(self, key):
        there = self.lists[key] is not None or not self.refuses(key)
        self.versions.pop(key, None)
        self.lists[key] = None
        return there

    def value(self, key):
        """What a get shows, or None."""
        if key in self.lists:
            return ",".join(self.lists[key]) if self.is_there(key) else None
        return self.plain.get(key)


class Asker:
    """Makes requests, and the answers that they must get."""

    def __init__(self, rng, model, puts):
        self.rng, self.model, self.puts = rng, model, puts

    def items(self):
        return [f"i{n}" for n in self.rng.sample(range(12), self.rng.choice([0, 1, 1, 2, 3, 5]))]

    def text(self, items):
        text = ",".join(items)
        return self.rng.choice(["{}", "{}", ",{}", "{},", ",{},"]).format(text) if items else ""

    def store(self, verb, key, value, tail=""):
        noreply = self.rng.random() < 0.2
        flags = self.rng.choice([0, 16])
        line = f"{verb} {key} {flags} 0 {len(value)}{tail}{' noreply' if noreply else ''}"
        return f"{line}\r\n{value}\r\n", noreply

    def outcome(self, verb, key, items):
        """What the verb does to the list: STORED and the like."""
        model = self.model
        if verb == "append":
            return "STORED" if model.change(key, added=items) else "NOT_STORED"
        if verb == "prepend":
            return "STORED" if model.change(key, deleted=items) else "NOT_STORED"
        there = model.is_there(key)
        if (verb == "add" and there) or (verb == "replace" and not there):
            return "NOT_STORED"
        model.put(key, items)
        return "STORED"

    def classic_store(self):
        key, items = self.rng.choice(KEYS), self.items()
        verbs = ["append"] * 4 + ["prepend"] * 2 + ["set", "add"] + ["replace"] * self.puts
        verb = self.rng.choice(verbs)
        request, noreply = self.store(verb, key, self.text(items))
        answer = self.outcome(verb, key, items)
        return request, b"" if noreply else as_bytes(answer) + b"\r\n"

    def meta_store(self):
        key, items = self.rng.choice(KEYS), self.items()
        modes = {"A": "append", "P": "prepend", "S": "set", "E": "add"}
        modes.update({"R": "replace"} if self.puts else {})
        mode, verb = self.rng.choice(sorted(modes.items()))
        value, quiet = self.text(items), self.rng.choice(["", " q"])
        outcome = self.outcome(verb, key, items)
        answer = {"STORED": "HD", "NOT_STORED": "NS"}[outcome]
        shown = b"" if quiet and answer == "HD" else as_bytes(f"{answer} O7 k{key}\r\n")
        return f"ms {key} {len(value)} O7 M{mode}{quiet} k\r\n{value}\r\n", shown

    def cas(self):
        """By a version that was told and holds, or by another one."""
        key, items = self.rng.choice(KEYS), self.items()
        known = self.model.versions.get(key)
        version = known if known and self.rng.random() < 0.8 else 77
        request, noreply = self.store("cas", key, self.text(items), f" {version}")
        if self.model.lists[key] is None or (not self.model.refuses(key) and not self.model.lists[key]):
            answer = b"NOT_FOUND\r\n"
        elif version == known:
            self.model.put(key, items)
            answer = b"STORED\r\n"
        else:
            answer = b"EXISTS\r\n"
        return request, b"" if noreply else answer

    def delete(self):
        key = self.rng.choice(KEYS)
        there = self.model.value(key) is not None
        done = self.model.drop(key)
        verb = self.rng.choice(["delete", "md", "ldrop"])
        done = there if verb != "ldrop" else done
        if verb == "md":
            return f"md {key} k\r\n", as_bytes(f"{'HD' if done else 'NF'} k{key}\r\n")
        return f"{verb} {key}\r\n", b"DELETED\r\n" if done else b"NOT_FOUND\r\n"

    def get(self):
        keys = self.rng.choices(KEYS + PLAIN, k=self.rng.choice([1, 1, 2, 6]))
        verb = self.rng.choice(["get", "gets"])
        answer = b""
        for key in keys:
            value = self.model.value(key)
            if value is not None:
                version = b" " + VERSION if verb == "gets" else b""
                answer += b"VALUE %s 0 %d%s\r\n" % (as_bytes(key), len(value), version)
                answer += as_bytes(value) + b"\r\n"
        return f"{verb} {' '.join(keys)}\r\n", answer + b"END\r\n"

    def meta_get(self):
        key = self.rng.choice(KEYS)
        value, quiet = self.model.value(key), self.rng.choice(["", " q"])
        if value is None:
            answer = b"" if quiet else as_bytes(f"EN O1 k{key}\r\n")
        else:
            answer = as_bytes(f"VA {len(value)} O1 s{len(value)} f0 k{key}\r\n{value}\r\n")
        return f"mg {key} O1 s f v k{quiet}\r\n", answer

    def list_verb(self):
        key, items = self.rng.choice(KEYS), self.items() or ["i0"]
        verb = self.rng.choice(["ladd", "ldel", "lget", "llen"])
        model = self.model
        if verb == "ladd":
            answer = "STORED" if model.change(key, added=items) else "NOT_STORED"
        elif verb == "ldel":
            answer = "DELETED" if model.change(key, deleted=items) else "NOT_FOUND"
        elif verb == "llen":
            return f"llen {key}\r\n", b"%d\r\n" % len(model.lists[key] or ())
        else:
            value = model.value(key)
            found = "" if value is None else f"VALUE {key} 0 {len(value)}\r\n{value}\r\n"
            return f"lget {key}\r\n", as_bytes(found) + b"END\r\n"
        return f"{verb} {key} {' '.join(items)}\r\n", as_bytes(answer) + b"\r\n"

    def plain(self):
        key, value = self.rng.choice(PLAIN), self.rng.choice(["", "a", "a,b"])
        verb = self.rng.choice(["set", "add", "append", "delete"])
        there = key in self.model.plain
        if verb == "delete":
            self.model.plain.pop(key, None)
            return f"delete {key}\r\n", b"DELETED\r\n" if there else b"NOT_FOUND\r\n"
        done = verb == "set" or there == (verb == "append")
        if done:
            before = self.model.plain.get(key, "") if verb == "append" else ""
            self.model.plain[key] = before + value
        request = f"{verb} {key} 0 0 {len(value)}\r\n{value}\r\n"
        return request, b"STORED\r\n" if done else b"NOT_STORED\r\n"

    def wrong(self):
        """Refused as a whole: nothing is done, and the connection stays in step."""
        key = self.rng.choice(KEYS)
        line, answer = self.rng.choice(
            [
                (f"append {key} 80 0 3\r\na,b", "value has flags 80: "),
                (f"set {key} 0 0 4\r\na,,b", "value holds an empty item: "),
                (f"incr {key} 1", "incr is not for lists, "),
                (f"ms {key} 3 I\r\na,b", "ms of a list has no flag I "),
            ]
        )
        return f"{line}\r\n", b"CLIENT_ERROR " + as_bytes(answer) + b"*\r\n"

    def any(self):
        kinds = [self.classic_store] * 6 + [self.meta_store] * 3 + [self.delete, self.wrong]
        kinds += [self.get] * 5 + [self.meta_get] * 2 + [self.list_verb] * 4 + [self.plain] * 3
        kinds += [self.cas] * (3 * self.puts)
        return self.rng.choice(kinds)()


def expect(conn, model, request, answer):
    """answer: with VERSION for any number, and * for the rest of a line."""
    got = b""
    for wanted in re.findall(rb"[^\n]*\n", answer):
        line = conn.line() + b"\r\n"
        got += line
        pattern = re.escape(wanted).replace(re.escape(VERSION), rb"(\d+)")
        if wanted.startswith(b"CLIENT_ERROR"):
            pattern = pattern.replace(re.escape(b"*"), b".*")
        match = re.fullmatch(pattern, line)
        assert match, f"{request!r}: {got!r} in place of {answer!r}"
        if VERSION in wanted and wanted.startswith(b"VALUE "):
            model.told[wanted.split()[1].decode()] = int(match[1])


@pytest.mark.config(**BRIDGES)
@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("seed", range(6))
def test_bridged_lists_and_plain_keys(daemon, seed):
    """Two connections; each pipeline goes to one of them, and ends before the next one begins."""
    rng, model = random.Random(seed), Lists()
    with daemon.conn() as one, daemon.conn() as other:
        for _ in range(60):
            conn = rng.choice([one, other])
            asker = Asker(rng, model, PUTS)
            model.told = {}
            pairs = []
            for _ in range(rng.choice([1, 3, 20])):
                request, answer = asker.any()
                pairs.append((request, answer))
                if request.startswith("gets "):
                    break  # so that nothing changes what it tells
            conn.send(*[request for request, _ in pairs], "mn\r\n")
            for request, answer in pairs:
                expect(conn, model, request, answer)
            assert conn.line() == b"MN"
            model.versions.update(model.told)
