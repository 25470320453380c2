# SPDX-License-Identifier: BSD-3-Clause
"""What the log of a list says of transactions: the rules, as pure functions.

A head is None (missing) or (content, log). Entries of a log:

    ('+', item) ('-', item) ('!',)   changes by others than transactions
    ('?', name)                      the intent of a transaction: its changes of this list
    ('?', name, 'spent')             the same, its changes are in the content already
    ('&', name, 'c' | 'a' | 'd')     committed, aborted, done

A rule that is named in `broken` is left out: the search must find what goes wrong then.
"""

from dataclasses import dataclass, field

broken = set()


def keeps(rule):
    return rule not in broken


@dataclass(frozen=True)
class Transaction:
    """Several lists in one step; the first list is the primary, whose log is the record."""

    name: str
    lists: tuple
    changes: dict = field(hash=False)  # list -> entries
    conditions: dict = field(default_factory=dict, hash=False)  # list -> ((item, is in), ...)

    @property
    def primary(self):
        return self.lists[0]

    @property
    def others(self):
        return self.lists[1:]


class Rules:
    """The rules for the transactions of one world. strict_order: additions of different items
    conflict as well, so that lists agree as sequences too."""

    def __init__(self, transactions, strict_order=False):
        self.transactions = {t.name: t for t in transactions}
        self.strict_order = strict_order

    # --- conflicts ---

    def hurts(self, entry, name, number):
        """Does this change, behind the intent in list `number`, conflict with it?"""
        if entry[0] not in "+-!":
            return False
        t = self.transactions[name]
        mine = t.changes.get(number, ())
        if entry[0] == "!" or any(e[0] == "!" for e in mine):
            return True
        asked = t.conditions.get(number, ())
        if any(e[1] == entry[1] for e in mine) or any(item == entry[1] for item, _ in asked):
            return True
        adds = entry[0] == "+" and any(e[0] == "+" for e in mine)
        return self.strict_order and keeps("order") and adds

    def cross(self, name, other, number):
        """Do two transactions conflict in this list?"""
        a, b = self.transactions[name], self.transactions[other]
        return any(self.hurts(e, name, number) for e in b.changes.get(number, ())) or any(
            self.hurts(e, other, number) for e in a.changes.get(number, ())
        )

    # --- what a head says ---

    def state(self, name, number, head):
        """Of a transaction, by this head alone: None (no intent), 'open', 'c' or 'a'."""
        if head is None:
            return None
        log = head[1]
        at = find(name, log)
        if at is None:
            orphan = not keeps("an intent first") and ("&", name, "c") in log
            return "c" if orphan else None
        verdict = "open"
        is_primary = number == self.transactions[name].primary
        for entry in log[at + 1 :]:
            if entry[0] == "&" and entry[1] == name and entry[2] in "ca":
                verdict = entry[2]
                if keeps("the first decision wins"):
                    return verdict
            elif verdict == "open" and is_primary and len(log[at]) == 2 and keeps("void"):
                if self.hurts(entry, name, number):
                    return "a"
        return verdict

    def open(self, number, head, decided):
        """Names of the transactions that this head leaves open, in order."""
        if head is None:
            return ()
        names = (e[1] for e in head[1] if e[0] == "?")
        return tuple(n for n in names if n not in decided and self.state(n, number, head) == "open")

    def in_front(self, name, number, head, decided):
        """Those of them that stand in front of this transaction's intent, and conflict."""
        log = head[1]
        return tuple(
            other
            for other in self.open(number, head, decided)
            if find(other, log) < find(name, log) and self.cross(name, other, number)
        )

    def content(self, number, head, decided, end=None):
        """The items, in order, by the log up to that entry."""
        if head is None:
            return ()
        items, log = head
        for at, entry in enumerate(log[:end]):
            items = self._applied(items, entry, number, head, decided, at)
        return items

    def _applied(self, items, entry, number, head, decided, at):
        if entry[0] == "?" and len(entry) == 2:
            verdict = self.state(entry[1], number, head)
            verdict = decided.get(entry[1]) if verdict == "open" else verdict
            if verdict == "c" and (keeps("effect at the intent") or entry[1] in decided):
                return applied(items, self.transactions[entry[1]].changes.get(number, ()))
        elif entry[0] == "&" and entry[2] == "c" and not keeps("effect at the intent"):
            first = head[1].index(entry) == at and self.state(entry[1], number, head) == "c"
            if first and ("?", entry[1]) in head[1][:at]:
                return applied(items, self.transactions[entry[1]].changes.get(number, ()))
        elif entry[0] in "+-!":
            return applied(items, (entry,))
        return items

    def holds(self, name, number, head, decided):
        """Are the conditions on this list met, as of the intent?"""
        asked = self.transactions[name].conditions.get(number, ())
        items = self.content(number, head, decided, find(name, head[1]))
        return all((item in items) == wanted for item, wanted in asked)

    # --- compaction ---

    def folded(self, number, head):
        """The head with its log folded, as far as the first open intent. A primary keeps that a
        transaction was committed until it is done: its other lists may ask."""
        log = head[1]
        still_open = set(self.open(number, head, {}))
        end = next((i for i, e in enumerate(log) if e[0] == "?" and e[1] in still_open), len(log))
        if not keeps("fold up to the first open intent"):
            end = len(log)
        kept = ()
        for entry in log[:end]:
            if entry[0] == "?" and self.is_unfinished(entry[1], number, head):
                kept += (("?", entry[1], "spent"), ("&", entry[1], "c"))
        return (self.content(number, head, {}, end), kept + log[end:])

    def is_unfinished(self, name, number, head):
        """Is this the primary of a committed transaction that is not done?"""
        return (
            keeps("remember until done")
            and number == self.transactions[name].primary
            and self.state(name, number, head) == "c"
            and ("&", name, "d") not in head[1]
        )


def find(name, log):
    """Where the intent stands, or None."""
    return next((i for i, e in enumerate(log) if e[0] == "?" and e[1] == name), None)


def applied(items, entries):
    for entry in entries:
        if entry[0] == "!":
            items = ()
        elif entry[0] == "-":
            items = tuple(i for i in items if i != entry[1])
        elif entry[1] not in items:
            items += (entry[1],)
    return items
