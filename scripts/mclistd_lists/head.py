# SPDX-License-Identifier: BSD-3-Clause
"""What the head of a native list says: docs/list-format.md. A head that is not of that form, or of
a newer one, is not understood: nothing is guessed."""

import re

from mclistd_lists.intent import COMMITTED, CREATED_MAX_S, OPEN, Decision, Intent
from mclistd_lists.problem import NotUnderstood, expect

NAME = rb"([a-z2-7]{13})"
RANGE = NAME + rb"\.([0-9]{1,7})"
RUN = re.compile(RANGE + rb":([0-9]{1,20}):([0-9]{1,20})")
GARBAGE = re.compile(rb"-" + RANGE)
UNTIL = re.compile(rb"@([0-9]{1,10})")
TIMES = re.compile(rb"%([1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})")
ABSENT = re.compile(rb"\?([0-9]{1,20})\.([0-9]{1,10})")
CAP = re.compile(rb"#([0-9]{1,20})\.(drop|refuse)")
ENTRY = re.compile(rb"([-+=@!~?&])([0-9]{1,7}):")
TIMED = re.compile(rb"([1-9][0-9]{0,9}):(.*)", re.DOTALL)
ANNOUNCEMENT = re.compile(RANGE + rb"\.([0-9]{1,20})")

SUBLIST_HEADER_BYTES = 14
SUBLIST_BYTES_MAX = 1048576
ENTRY_BYTES_LEAST = 3
CAP_MAX = 10000
TOKEN_MAX = 2**64 - 1
SECOND_MAX = 2**32 - 1  # of items
UNTIL_MIN_S, UNTIL_MAX_S = 2592001, 2147483647  # of sublists: the times that memcached knows


class Run:
    """items: entries that add an item."""

    def __init__(self, name, count, size, items):
        self.name, self.count, self.bytes, self.items = name, count, size, items
        content = size - count * SUBLIST_HEADER_BYTES
        expect(
            0 < count
            and count * (SUBLIST_HEADER_BYTES + ENTRY_BYTES_LEAST) <= size <= count * SUBLIST_BYTES_MAX
            and items <= content // ENTRY_BYTES_LEAST,
            "a run that cannot be",
        )
        # What else it holds takes an item out.
        self.deletions_most = (content - ENTRY_BYTES_LEAST * items) // ENTRY_BYTES_LEAST


class Head:
    """Of the list `key`. runs: from the oldest to the newest. garbage: [(name, count)].
    announcements: {name: (count, created)} of those that were not withdrawn. absent: (token, until)
    or None. cap: (most, refuses) or None. times: (earliest, latest) or None. until_s: of the
    sublists, or None. cleared: the log makes the runs void. intents: {name: Intent}, of
    transactions. entries: (op, item, second), in which the effects of a committed transaction stand
    where its intent stood; an undecided one stands there as (b"?", Intent, None)."""

    def __init__(self, value, key):
        self.key = key
        self.runs, self.garbage = [], []
        self.announcements, self.withdrawn = {}, set()
        self.absent = self.cap = self.times = self.until_s = None
        self.intents, self.entries = {}, []
        self.crossable = {}  # intents of which this is the primary, as long as they are undecided
        header, newline, log = value.partition(b"\n")
        version, *fields = header.split(b" ")
        expect(newline and re.fullmatch(rb"\^[0-9]+", version), "no head of a list")
        expect(version == b"^1", "a head of a newer version")
        for field in fields:
            self.take_field(field)
        bare = not self.runs
        expect(bare or not (self.absent or self.cap), "a header that cannot be")
        expect(not (self.absent and self.cap), "a header that cannot be")
        self.take_log(log)
        self.put_effects()
        self.cleared = any(op == b"!" for op, _, _ in self.entries)

    def once(self, name, value):
        expect(getattr(self, name) is None, "a header that cannot be")
        setattr(self, name, value)

    def take_field(self, field):
        if match := RUN.fullmatch(field):
            self.runs.append(Run(match[1], *map(int, match.groups()[1:])))
        elif match := GARBAGE.fullmatch(field):
            self.garbage.append((match[1], int(match[2])))
        elif match := UNTIL.fullmatch(field):
            expect(UNTIL_MIN_S <= int(match[1]) <= UNTIL_MAX_S, "a time that cannot be")
            self.once("until_s", int(match[1]))
        elif match := TIMES.fullmatch(field):
            earliest, latest = int(match[1]), int(match[2])
            expect(earliest <= SECOND_MAX and latest <= SECOND_MAX, "a time that cannot be")
            expect(latest == 0 or latest >= earliest, "a time that cannot be")
            self.once("times", (earliest, latest))
        elif match := ABSENT.fullmatch(field):
            token, until = int(match[1]), int(match[2])
            expect((token == 0) == (until == 0) and token <= TOKEN_MAX, "a lease that cannot be")
            self.once("absent", (token, until))
        elif match := CAP.fullmatch(field):
            expect(1 <= int(match[1]) <= CAP_MAX, "a cap that cannot be")
            self.once("cap", (int(match[1]), match[2] == b"refuse"))
        else:
            raise NotUnderstood("a field that this release does not know")

    def take_log(self, log):
        at = 0
        while at < len(log):
            entry = ENTRY.match(log, at)
            expect(entry, "an entry that this release does not know")
            at = entry.end() + int(entry[2])
            expect(at <= len(log), "an entry that is cut short")
            self.take_entry(entry[1], log[entry.end() : at])

    def take_entry(self, op, data):
        if op == b"~":
            match = ANNOUNCEMENT.fullmatch(data)
            expect(match and int(match[3]) <= CREATED_MAX_S, "an announcement that cannot be")
            self.announcements[match[1]] = (int(match[2]), int(match[3]))
            if int(match[2]) == 0:
                del self.announcements[match[1]]
                self.withdrawn.add(match[1])
        elif op == b"?":
            intent = Intent(data, self.key)
            expect(intent.name not in self.intents, "an intent that is there twice")
            self.intents[intent.name] = intent
            self.entries.append((op, intent, None))
            if intent.is_primary:
                self.crossable[intent.name] = intent
        elif op == b"&":
            decision = Decision(data)
            if decision.name in self.intents:
                self.intents[decision.name].take_decision(decision.word)
                self.forget_decided([decision.name])
        elif op == b"!":
            self.take_plain(op, b"", None)
        elif op == b"@":
            match = TIMED.fullmatch(data)
            expect(match and int(match[1]) <= SECOND_MAX, "an item's time that cannot be")
            self.take_plain(op, match[2], int(match[1]))
        else:
            self.take_plain(op, data, None)

    def forget_decided(self, names):
        for name in names:
            if self.intents[name].state != OPEN:
                self.crossable.pop(name, None)

    def take_plain(self, op, item, until_s):
        for intent in self.crossable.values():
            intent.take_crossing(op, item, self.cap is not None)
        self.forget_decided(list(self.crossable))
        self.entries.append((op, item, until_s))

    def put_effects(self):
        logged, self.entries = self.entries, []
        for entry in logged:
            if entry[0] != b"?" or entry[1].state == OPEN:
                self.entries.append(entry)
            elif entry[1].state == COMMITTED:
                self.entries += [(op, item, None) for op, item in entry[1].changes]

    def open_transactions(self):
        """The Intents of those that are not over as far as this list is concerned: undecided, or
        in their primary committed and not done in all lists."""
        return [intent for intent in self.intents.values() if intent.is_unfinished()]

    def names(self):
        """Of runs, garbage and announcements. A withdrawn announcement counts, too: the next
        compaction of that list takes it off."""
        found = {run.name for run in self.runs} | self.announcements.keys() | self.withdrawn
        return found | {name for name, _ in self.garbage}

    def is_absent(self):
        """Does it read as missing? A `!` in the log makes the mark void."""
        return self.absent is not None and not self.cleared

    def is_leased(self, now_s):
        return self.is_absent() and self.absent[1] > now_s

    def is_timed(self):
        """Are there items that end by themselves?"""
        in_runs = self.times is not None and not self.cleared
        return in_runs or any(op == b"@" for op, _, _ in self.entries)

    def content_runs(self):
        return [] if self.cleared or self.is_absent() else self.runs

    def outcome(self):
        """{item: (is it in, until when or None)} of the log alone, without a cap; and whether the
        runs may be void. Is it in: None where an undecided transaction decides about it."""
        found, void = {}, False
        for op, item, until_s in self.entries:
            if op == b"?":
                after = dict(found)
                for change, changed in item.changes:
                    if change == b"!":
                        void = True
                        after = dict.fromkeys(after, (False, None))
                    else:
                        after[changed] = (change != b"-", None)
                for name, state in after.items():
                    if found.get(name) != state:
                        found[name] = (None, None)
            elif op == b"!":
                found.clear()
            else:
                found[item] = (op != b"-", until_s)
        return found, void

    def capped(self):
        """The items of a capped list: its log is replayed entry by entry, without transactions that
        are undecided."""
        most, refuses = self.cap
        found = {}
        for op, item, _ in self.entries:
            if op == b"!":
                found.clear()
            elif op == b"-":
                found.pop(item, None)
            elif op in (b"+", b"="):
                if item not in found and len(found) >= most:
                    if refuses:
                        continue
                    del found[next(iter(found))]
                if op == b"=":
                    found.pop(item, None)
                found[item] = True
        return found

    def count(self, now_s):
        """(least, most): how many items the list has; the same number twice where the head alone
        tells."""
        if self.is_absent():
            return 0, 0
        if self.cap:
            if any(op == b"?" for op, _, _ in self.entries):
                return 0, self.cap[0]
            return (len(self.capped()),) * 2
        found, void = self.outcome()
        states = found.values()
        added = sum(bool(is_in) and (until_s is None or until_s > now_s) for is_in, until_s in states)
        open_most = added + sum(is_in is None for is_in, _ in states)
        runs = self.content_runs()
        if not runs:
            return added, open_most
        most = sum(run.items for run in runs) + open_most
        if void or (self.times and now_s >= self.times[0]):
            return added, most  # any of the items of the runs may be over
        if len(runs) == 1 and not states:
            return most, most
        least, deletions = added, len(states) - added
        for run in reversed(runs):
            least = max(least, run.items - deletions)
            deletions += run.deletions_most
        return least, most
