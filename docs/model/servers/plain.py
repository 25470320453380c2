# SPDX-License-Identifier: BSD-3-Clause
"""A plain key that moves from its old server, O, to its new one, N, while everybody reads and
writes it: what proxies ask for, one request after the other, and what must be so.

A plain key is a value that may be lost at any time, and of which an old value is never shown after
a newer one was acknowledged. The steps are those of lists (moves.py):

    STAY    knows the old list of servers only
    LEARN   changes the value on O, then takes away what N holds. Reads O, then N
    MOVE    takes away what O holds, writes on N, and takes away O's once more. Reads N, then O
    DONE    knows the new list of servers only

A *lease* on N is no value: it is put there by ADD, and a value that is copied takes its place by
CAS. Every change touches N behind O. So who has read O behind its lease, and still finds the lease,
has read what no acknowledged change has overwritten.
"""

from collections import namedtuple

from moves import DONE, LEARN, MOVE, N, O, STAY, Lose, Put
from moving import Servers
from parties import Answer, Cas, Get
from rules import keeps

# wrote: the operation whose value it is; 0: there at first. made: stands for the CAS number.
Value = namedtuple("Value", "wrote made")
Lease = namedtuple("Lease", "made")


def is_value(item, step):
    """Proxies that know one list of servers only take a lease for a value."""
    knows = step in (LEARN, MOVE) and keeps("a lease is no value")
    return isinstance(item, Value) or item is not None and not knows


def lose(rules, place):
    yield Lose(place)


# --- operations: each by a proxy in a step; number: its own ---


def get(rules, step, number):
    order = {STAY: (O,), LEARN: (O, N), MOVE: (N, O), DONE: (N,)}[step]
    for place in order:
        item = yield Get(place)
        if is_value(item, step):
            yield Answer(("saw", item.wrote if isinstance(item, Value) else "a lease"))
            return
    yield Answer("miss")


def write(rules, step, number):
    new = Value(number, number)
    if step in (STAY, DONE):
        yield Put(O if step == STAY else N, new)
    elif step == LEARN:
        yield Put(O, new)
        if keeps("LEARN takes away what N holds"):
            yield Put(N, None)
    else:
        if keeps("MOVE takes away what O holds first"):
            yield Put(O, None)
        yield Put(N, new)
        if keeps("MOVE takes away what O holds last"):
            yield Put(O, None)
    yield Answer("wrote")


def delete(rules, step, number):
    order = {STAY: (O,), LEARN: (O, N), MOVE: (O, N), DONE: (N,)}[step]
    for place in order if keeps("a delete goes to O first") else order[::-1]:
        yield Put(place, None)
    yield Answer("wrote")


def add(rules, step, number):
    new, lease = Value(number, number), Lease(number)
    if step in (STAY, DONE):
        yield Answer("wrote" if (yield Cas(O if step == STAY else N, None, new)) else "there")
        return
    if step == LEARN and not keeps("an add in LEARN holds a lease"):
        yield Answer("wrote" if (yield Cas(O, None, new)) else "there")
        return
    if step == MOVE:  # no lease, which a proxy in DONE would show
        if (yield Get(O)) is not None or not (yield Cas(N, None, new)):
            yield Answer("there")
        elif keeps("MOVE looks at O behind an add") and (yield Get(O)) is not None:
            yield Cas(N, new, None)
            yield Answer("there")
        else:
            yield Answer("wrote")
    elif not (yield Cas(N, None, lease)):
        yield Answer("there")
    else:
        stored = yield Cas(O, None, new)
        if (yield Cas(N, lease, None)) or not keeps("an add without its lease is taken back"):
            yield Answer("wrote" if stored else "there")
        else:
            if stored:
                yield Put(O, None)
            yield Answer("there")


def change(rules, step, number):
    """incr, append, cas and the like: what depends on the value that is there."""
    if step == LEARN:
        old = yield Get(O)
        if old is not None:
            done = yield Cas(O, old, Value(number, number))
            if done and keeps("LEARN takes away what N holds"):
                yield Put(N, None)
            yield Answer(("changed", old.wrote) if done else "no")
            return
    if step == MOVE and keeps("MOVE moves a value before it is changed"):
        if not (yield from moved(number)):
            yield Answer("no")
            return
    place = O if step == STAY else N
    old = yield Get(place)
    done = isinstance(old, Value) and (yield Cas(place, old, Value(number, number)))
    yield Answer(("changed", old.wrote) if done else "no")


def copied(number, old_goes):
    """Returns whether O holds nothing behind it."""
    if not keeps("copied behind a lease"):
        old = yield Get(O)
        if old is not None:
            yield Cas(N, None, old._replace(made=("copy", number)))
        return False
    if not keeps("O is read behind the lease"):
        old = yield Get(O)
    lease = Lease(number)
    if not (yield Cas(N, None, lease)):
        return False
    if keeps("O is read behind the lease"):
        old = yield Get(O)
    if old is None:
        yield Cas(N, lease, None)
        return True
    if not (yield Cas(N, lease, old._replace(made=("copy", number)))):
        return False
    return old_goes and (yield Cas(O, old, None))


def moved(number):
    """O holds nothing behind it, but what a proxy in LEARN writes there now."""
    if (yield Get(O)) is None or (yield from copied(number, True)):
        return True
    new = yield Get(N)
    if not isinstance(new, Value):
        return False
    old = yield Get(O)  # a value on both: N's counts
    return old is None or (yield Cas(O, old, None))


def copy(rules, step, number):
    """What a read in MOVE begins that has found the value on O."""
    yield from copied(number, False)


def sweep(rules, step, number):
    yield from moved(number)


class Plain(Servers):
    """One plain key. strict: without losses and deaths no two values are left."""

    silent = (copy, sweep, lose)

    def __init__(self, held, programs, crashes=1, strict=True, **options):
        self.held = held
        self.strict = strict and not crashes and not any(o[0] is lose for p in programs for o in p)
        super().__init__(None, (), programs, crashes=crashes, **options)

    def stored(self, contents):
        return self.held

    def is_right(self, state):
        return not self.is_stale(state) and not self.is_double(state)

    def is_wrong(self, state):
        return self.is_stale(state) or super().is_wrong(state)

    def is_double(self, state):
        old, new = state.heads
        values = isinstance(old, Value) and isinstance(new, Value)
        return self.strict and values and old.wrote != new.wrote

    def acknowledged(self, history, number):
        """Has the operation with that number changed the value, and was it told so?"""
        entry = history[self.at[number]]
        return entry is not None and (entry[1] == "wrote" or entry[1] and entry[1][0] == "changed")

    def is_stale(self, state):
        self.at = {operation[1][1]: at for at, operation in enumerate(self.operations)}
        history = state.history
        for entry in history:
            if entry is None or not isinstance(entry[1], tuple):
                continue
            seen = entry[1][1]
            if seen == "a lease":
                return True
            # Overwritten by an operation that began behind it and was acknowledged before this one.
            for number, at in self.at.items():
                if entry[0] >> at & 1 and number != seen and self.acknowledged(history, number):
                    if seen == 0 or history[at][0] >> self.at[seen] & 1:
                        return True
        return self.adds_twice(history)

    def adds_twice(self, history):
        """Where nothing is deleted or lost, one of all additions is done, and none where a value
        is."""
        kinds = {operation[0] for program in self.programs for operation in program}
        if not kinds <= {add, get, copy, sweep}:
            return False
        done = sum(
            operation[0] is add and entry is not None and entry[1] == "wrote"
            for operation, entry in zip(self.operations, history)
        )
        return done > (0 if self.held != (None, None) else 1)
