# SPDX-License-Identifier: BSD-3-Clause
"""Transactions that are not over: what becomes of them is told by the heads of all their lists. They
go on meanwhile, so the order of reading matters: the primary, then the other lists. An intent is in
the primary before it is in any other list; so a primary that does not have it, and is read after
another list was seen to have it, has forgotten it for good. What is decided stays decided: a list
that lacks the decision lacks it when it is read, behind the primary. And one that tells a decision
which the primary did not have yet shows that the primary has to be read again."""

import json
import urllib.parse

from mclistd_convert.wire import shown
from mclistd_lists.head import Head
from mclistd_lists.intent import ABORTED, COMMITTED, OPEN
from mclistd_lists.problem import NotUnderstood

WAITING, PENDING, UNKNOWN = "waiting", "pending", "unknown"
MEANWHILE = "it was decided while its lists were read"
LOOKS_MAX = 8  # at one that is decided meanwhile
AT_ONCE = 500  # transactions whose lists are read together
HEADINGS = ("NAME", "AGE", "STATE", "PRIMARY", "LISTS", "LACKS")


class Transaction:
    """state: waiting (an intent is missing in a list), pending (all lists have it, undecided),
    committed (decided, not done everywhere), aborted (decided against it, and not noted
    everywhere), unknown (note says why). lacks: keys of lists that lack their intent (waiting) or
    the decision. servers: {key: where its head is}."""

    def __init__(self, intent):
        self.name, self.created_s, self.keys = intent.name, intent.created_s, intent.keys
        self.state, self.lacks, self.note = UNKNOWN, [], ""
        self.is_done, self.servers, self.is_missing_in_primary = False, {}, False

    @property
    def primary(self):
        return self.keys[0]

    def others(self):
        return self.keys[1:]

    def is_older(self, now_s, grace_s):
        """Clocks differ: one that seems to come from the future is as strange as an old one."""
        return abs(now_s - self.created_s) > grace_s


class Heads:
    """Of what was read together. A head may hold a thousand transactions: it is taken apart once."""

    def __init__(self, found, is_whole):
        self.found, self.is_whole = found, is_whole
        self.known = {}

    def head(self, transaction, key):
        """A Head; None where there is none. Raises NotUnderstood."""
        copies = self.found.get(key, [])
        if len(copies) > 1:
            raise NotUnderstood(f"{shown(key)} has heads on several servers")
        if not copies and not self.is_whole:
            raise NotUnderstood(f"the head of {shown(key)} is on none of these servers")
        if not copies:
            return None
        transaction.servers[key] = copies[0][0]
        if key not in self.known:
            try:
                self.known[key] = Head(copies[0][1], key)
            except NotUnderstood as error:
                self.known[key] = NotUnderstood(f"{shown(key)}: {error}")
        if isinstance(self.known[key], NotUnderstood):
            raise self.known[key]
        return self.known[key]


class Looker:
    """read(keys) returns {key: [(server, value of the head)]} of what is there. is_whole: these are
    all servers, so a head that is not there is nowhere."""

    def __init__(self, read, is_whole):
        self.read, self.is_whole = read, is_whole

    def look(self, transactions):
        """Fills in the state of each. Returns those that are not over."""
        for part in in_parts(transactions):
            self.look_once(part)
            for transaction in part:
                for _ in range(LOOKS_MAX - 1):
                    if transaction.note != MEANWHILE:
                        break
                    self.look_once([transaction])
        return [t for t in transactions if t.state is not None]

    def look_once(self, part):
        primaries = Heads(self.read(sorted({t.primary for t in part})), self.is_whole)
        others = Heads(self.read(sorted({key for t in part for key in t.others()})), self.is_whole)
        for transaction in part:
            self.judge(transaction, others, primaries)

    def judge(self, transaction, others, primaries):
        """state None: it is over, or its primary has noted that all lists know the outcome."""
        t = transaction
        t.state, t.lacks, t.note, t.servers = UNKNOWN, [], "", {}
        try:
            heads = {key: others.head(t, key) for key in t.others()}
            primary = primaries.head(t, t.primary)
        except NotUnderstood as error:
            t.note = str(error)
            return
        states = {key: state_in(head, t.name) for key, head in heads.items()}
        decided = state_in(primary, t.name)
        t.is_missing_in_primary = decided is None
        t.is_done = decided == COMMITTED and primary.intents[t.name].is_done
        still_open = [key for key, state in states.items() if state == OPEN]
        if decided == OPEN:
            if any(state in (COMMITTED, ABORTED) for state in states.values()):
                t.note = MEANWHILE
                return
            t.lacks = [key for key, state in states.items() if state is None]
            t.state = WAITING if t.lacks else PENDING
        elif decided == COMMITTED:
            t.lacks = still_open
            t.state = None if t.is_done else COMMITTED
        else:
            t.lacks = still_open
            t.state = ABORTED if still_open else None


def state_in(head, name):
    """None: it is not in that list (any more)."""
    intent = head.intents.get(name) if head else None
    return intent.state if intent else None


def in_parts(transactions):
    """Those of the same lists together, so that each head is read once."""
    by_lists = sorted(transactions, key=lambda t: t.keys)
    return [by_lists[start : start + AT_ONCE] for start in range(0, len(by_lists), AT_ONCE)]


def in_order(transactions):
    return sorted(transactions, key=lambda t: (t.created_s, t.name))


# --- shown -----------------------------------------------------------------------------------------


def object_of(t, now_s):
    quote = urllib.parse.quote_from_bytes
    return {
        "name": t.name.decode(),
        "age_s": now_s - t.created_s,
        "created_s": t.created_s,
        "state": t.state,
        "note": t.note,
        "primary": quote(t.primary),
        "lists": [quote(key) for key in t.keys],
        "lacks": [quote(key) for key in t.lacks],
        "lacks_done": t.state == COMMITTED and not t.lacks,
    }


def print_json(transactions, now_s):
    for t in transactions:
        print(json.dumps(object_of(t, now_s)))


def lacks_of(t):
    if t.state == COMMITTED and not t.lacks:
        return "the note that it is done"
    return " ".join(map(shown, t.lacks)) or "-"


def print_table(transactions, now_s, duration):
    rows = [HEADINGS] + [
        (t.name.decode(), duration(max(now_s - t.created_s, 0)), t.state, shown(t.primary),
         " ".join(map(shown, t.keys)), lacks_of(t))
        for t in transactions
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADINGS))]
    for row in rows:
        cells = [
            cell.rjust(width) if heading == "AGE" else cell.ljust(width)
            for heading, cell, width in zip(HEADINGS, row, widths)
        ]
        print("  ".join(cells).rstrip())
    for t in transactions:
        if t.state == UNKNOWN:
            print(f"{UNKNOWN}: {t.name.decode()}: {t.note}")
