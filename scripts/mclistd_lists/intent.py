# SPDX-License-Identifier: BSD-3-Clause
"""Entries of transactions in the log of a head: intents (`?`) and decisions (`&`). What they mean:
docs/list-format.md. The first decision behind an intent counts; in the primary an entry that
conflicts, and stands between the intent and the first decision, counts as an abort."""

import re

from mclistd_lists.problem import expect

KEYS_MAX = 16
CREATED_MAX_S = 2**63 - 1
KEY = rb"[^\x00-\x20\x7f]{1,220}"
DECISION = re.compile(rb"([a-z2-7]{13}) ([cad])")
CHANGE = re.compile(rb"([-+=!.])([0-9]{1,7}):")

OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class Decision:
    def __init__(self, data):
        match = DECISION.fullmatch(data)
        expect(match, "a decision that cannot be")
        self.name, self.word = match[1], match[2]


def entry(name, word):
    """The bytes of a decision, to be appended to a head."""
    data = name + b" " + word
    return b"&%d:%s" % (len(data), data)


class Intent:
    """A transaction, as one of its lists tells it. keys: of all its lists, the primary first.
    changes: (op, item) of this list. conditions: items that were asked for. is_done: all lists know
    the outcome. Its effects may have been folded away already: then it has no changes."""

    def __init__(self, data, key):
        words = data.split(b" ", 2)
        match = re.fullmatch(rb"([a-z2-7]{13})\.([0-9]{1,20})", words[0])
        expect(len(words) == 3 and match and int(match[2]) <= CREATED_MAX_S, "an intent that cannot be")
        expect(re.fullmatch(rb"[1-9][0-9]?", words[1]), "an intent that cannot be")
        count = int(words[1])
        expect(count <= KEYS_MAX, "an intent that cannot be")
        *keys, changes = words[2].split(b" ", count)
        expect(len(keys) == count and all(re.fullmatch(KEY, key) for key in keys),
               "an intent that cannot be")
        expect(key in keys, "an intent of other lists")
        expect(len(set(keys)) == count, "an intent that cannot be")
        self.name, self.created_s, self.keys = match[1], int(match[2]), keys
        self.primary = keys[0]
        self.is_primary = key == self.primary
        self.state, self.is_done = OPEN, False
        self.changes, self.conditions = [], set()
        self.take_changes(changes)
        self.items = {item for _, item in self.changes} | self.conditions
        self.clears = any(op == b"!" for op, _ in self.changes)

    def take_changes(self, data):
        at = 0
        while at < len(data):
            change = CHANGE.match(data, at)
            expect(change, "an intent that cannot be")
            at = change.end() + int(change[2])
            expect(at <= len(data), "an intent that is cut short")
            item = data[change.end() : at]
            expect(not item or change[1] != b"!", "an intent that cannot be")
            if change[1] == b".":
                self.conditions.add(item)
            else:
                self.changes.append((change[1], item))

    def take_decision(self, word):
        if word == b"d":
            self.is_done = self.state == COMMITTED
        elif self.state == OPEN:
            self.state = COMMITTED if word == b"c" else ABORTED

    def take_crossing(self, op, item, is_capped):
        """A plain entry stands behind it in its primary, and it is undecided."""
        if is_capped or op == b"!" or self.clears or item in self.items:
            self.state = ABORTED

    def is_unfinished(self):
        if self.state == OPEN:
            return True
        return self.state == COMMITTED and self.is_primary and not self.is_done
