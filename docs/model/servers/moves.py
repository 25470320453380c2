# SPDX-License-Identifier: BSD-3-Clause
"""What proxies ask the servers for while a list moves: each operation a chain of phases, as those
of the transactions (parties.py there).

A proxy is in one of four states; neighbours may be at work together for as long as they like:

    STAY    knows the old list of servers only
    LEARN   works on O, follows marks, makes lists on O
    MOVE    moves a list before it changes it, makes lists on N behind a mark on O
    DONE    knows the new list of servers only

In LEARN and MOVE nothing is appended to a list that moves: every change is a CAS. So a mark
swallows nothing that is answered as done, and nobody has to look behind a change for that.
"""

from collections import namedtuple

from parties import Answer, Append, Cas, Get, with_entries
from places import EMPTY, Copy, Head, Mark, content, is_head, named
from rules import keeps

STAY, LEARN, MOVE, DONE = range(4)
O, N = 0, 1
RUNS = {"a": (2, 3), "b": (4, 5)}  # where a sublist is: on O, on N

# number: tells operations apart. knows: where it takes the list to be. dead: O is gone for good.
Proxy = namedtuple("Proxy", "phase number knows dead n_down")
TRIES = 4


def lose(rules, place):
    """No request: the server evicts it. Nobody is told; the list may be empty now."""
    yield Lose(place)


def forget(rules, place):
    """The same where the list must not suffer."""
    yield Lose(place)


class Lose(namedtuple("Lose", "number")):
    """The item goes."""


class Put(namedtuple("Put", "number new")):
    """A SET: what faults do."""


# --- where the list is ---


def find(rules, proxy, tries, goal):
    if tries == 0:
        yield Answer("busy")
        return None
    if proxy.phase == STAY:
        item = yield Get(O)
        if isinstance(item, Mark):
            yield Answer("refused")
            return None
        return arrived(proxy, tries, goal, O, item, (item, None))
    if proxy.phase == DONE or proxy.dead or proxy.knows == N:
        item = yield Get(N)
        if is_head(item):
            return arrived(proxy, tries, goal, N, item, None)
        if proxy.phase == DONE and item is not None:
            yield Answer("refused")
            return None
        if proxy.phase == DONE or not keeps("missing only behind a look at both"):
            return arrived(proxy, tries, goal, N, None, (None, item))
        if proxy.dead:
            return judged, (proxy, tries, goal, None, item)
    old = yield Get(O)
    if is_head(old):
        return arrived(proxy, tries, goal, O, old, None)
    if proxy.n_down:
        yield Answer("busy")
        return None
    return look, (proxy, tries, goal, old)


def look(rules, proxy, tries, goal, old):
    """O has no head: it is on N, or nowhere. A copy is judged by O as it is behind the copy."""
    new = yield Get(N)
    if is_head(new):
        return arrived(proxy, tries, goal, N, new, None)
    if new is None:
        return arrived(proxy, tries, goal, None, None, (old, None))
    if keeps("O is looked at behind a copy") and (yield Get(O)) != old:
        return find, (proxy, tries - 1, goal)
    return judged, (proxy, tries, goal, old, new)


def judged(rules, proxy, tries, goal, old, new):
    """No head on either. Whether a copy counts is up to O; if it does not, its mover may not know
    that yet, and would make a head of it: it is taken away before the list is called missing."""
    if new is None:
        return arrived(proxy, tries, goal, None, None, (old, None))
    counts = isinstance(old, Mark) and old.token == new.token
    if counts or not keeps("a copy counts by its mark") and old is None:
        if not keeps("a copy becomes a head first"):
            return arrived(proxy, tries, goal, N, new.head, None)
        return confirm, (proxy, tries, goal, new)
    if keeps("a copy that does not count is taken away"):
        yield Cas(N, new, None)
        return find, (proxy, tries - 1, goal)
    return arrived(proxy, tries, goal, None, None, (old, new))


def confirm(rules, proxy, tries, goal, copy):
    if keeps("confirmed by CAS"):
        good = yield Cas(N, copy, copy.head)
    else:
        good = yield Put(N, copy.head)
    if good:
        for name in named(copy.head):  # sublists are not read on O any more
            run = yield Get(RUNS[name][O])
            if run is not None:
                yield Cas(RUNS[name][O], run, None)
        return arrived(proxy, tries, goal, N, copy.head, None)
    return find, (proxy, tries - 1, goal)


def arrived(proxy, tries, goal, side, head, around):
    """The phase that goes on. around: what O and N hold where no list is."""
    if head is None:
        return make, (proxy, tries, goal, around)
    writes = goal[0] not in ("read", "get", "fold", "merge")
    if side == O and proxy.phase == MOVE and writes and not proxy.n_down:
        return move, (proxy, tries, goal, head)
    return act, (proxy, tries, goal, side, head)


# --- moving it ---


def move(rules, proxy, tries, goal, head):
    for name in named(head) if keeps("sublists are copied") else ():
        run = yield Get(RUNS[name][O])
        if run is None:
            return find, (proxy, tries - 1, goal)
        yield Cas(RUNS[name][N], None, run)
    return write_copy, (proxy, tries, goal, head, (yield Get(N)))


def is_of(copy, head):
    """Is this somebody's copy of what O holds now? The copy names the CAS number of its head: a
    time to live is not among a head's bytes."""
    if not isinstance(copy, Copy):
        return False
    if not keeps("a copy of another version is not committed"):
        return True
    if not isinstance(head, Head):
        return copy.head == head
    same_number = copy.head.made == head.made
    same_bytes = written(copy.head) == written(head)
    return (same_number or not keeps("the number of a copy is compared")) and (
        same_bytes or not keeps("the bytes of a copy are compared")
    )


def written(head):
    return head.fields.replace("t", ""), head.log


def write_copy(rules, proxy, tries, goal, head, new):
    """On N, and then the mark on O: that is the instant of the move."""
    if is_of(new, head) and keeps("a copy of this version is committed, not written over"):
        return commit, (proxy, tries, goal, head, new)
    if new is not None and keeps("O is looked at behind a copy") and (yield Get(O)) != head:
        return find, (proxy, tries - 1, goal)
    copy = Copy((proxy.number, tries), head)
    if isinstance(head, Head):
        copy = copy._replace(head=copied(head))
    if keeps("the copy is written by ADD or CAS"):
        good = yield Cas(N, new, copy)
    else:
        good = yield Put(N, copy)
    if good:
        return commit, (proxy, tries, goal, head, copy)
    return find, (proxy, tries - 1, goal)


def copied(head):
    """The head as it is copied: as it is, byte by byte."""
    fields, log = head.fields, head.log
    fields = fields if keeps("the copy keeps the time") else fields.replace("t", "")
    fields = fields if keeps("the copy keeps the cap") else fields.replace("#", "")
    if not keeps("the copy keeps the lease"):
        log = tuple(entry for entry in log if entry[0] != "?")
    return Head(fields, log, head.made)


def commit(rules, proxy, tries, goal, head, copy):
    mark = Mark(copy.token)
    if not keeps("the old head is marked"):
        mark = None
    if keeps("marked by CAS"):
        good = yield Cas(O, head, mark)
    else:
        good = yield Put(O, mark)
    return (confirm, (proxy, tries, goal, copy)) if good else (find, (proxy, tries - 1, goal))


# --- a list that is missing ---


def make(rules, proxy, tries, goal, around):
    kind, argument = goal
    made = 0 if rules.numbers_begin_again else (proxy.number, tries)
    if kind in ("change", "exact") and argument[0] == "+":
        head, result = Head("", (argument,), made), 1 if kind == "exact" else "ok"
    elif kind == "lease":
        head, result = Head("", (("?", argument),), made), "leased"
    elif kind == "put" and argument[1]:
        head, result = with_entries(None, argument[0]), True
    else:
        nothing = {"read": (), "exact": 0, "fill": "no", "get": None, "put": False}
        yield Answer(nothing.get(kind, "ok"))
        return None
    if (yield from stored(proxy, head, *around)):
        yield Answer(result)
        return None
    return find, (proxy, tries - 1, goal)


def stored(proxy, head, old, new):
    if proxy.phase == STAY or proxy.phase == LEARN and old is None and not proxy.dead:
        return (yield Cas(O, None, head))
    if proxy.phase == MOVE and old is None and not proxy.dead and keeps("made behind a mark"):
        if not (yield Cas(O, None, Mark(EMPTY))):
            return False
    return (yield Cas(N, new, head))


# --- what operations do to a list that is there ---


def act(rules, proxy, tries, goal, side, head):
    kind, argument = goal
    if kind == "read":
        return read_runs, (proxy, tries, goal, side, head)
    if kind == "merge":
        return merge_runs, (proxy, tries, goal, side, head)
    if kind == "move":
        return None
    if kind == "get":
        yield Answer(head)
        return None
    if kind == "put":
        if (yield Cas(side, head, with_entries(head, argument[0]))):
            yield Answer(True)
            return None
        return find, (proxy, tries - 1, goal)
    if kind == "change" and appends(proxy):
        good = yield Append(side, (argument,))
        result = "ok"
    else:
        new, result = changed(kind, argument, head, (proxy.number, tries))
        good = new == head or (yield Cas(side, head, new))
    if good:
        yield Answer(result)
        return None
    return find, (proxy, tries - 1, goal)


def changed(kind, argument, head, made):
    """The head behind the change, and the answer."""
    items = content(head, {name: () for name in named(head)})
    leased = any(item[0] == "?" for item in items)
    log, result = head.log, "ok"
    if kind == "change":
        log += (argument,)
    elif kind == "exact":
        result = int((argument[1] in items) != (argument[0] == "+"))
        log += (argument,) if result else ()
    elif kind == "drop":
        return None, "ok"
    elif kind == "fold":
        log = tuple(item if item[0] == "?" else ("+", item) for item in items)
    elif kind == "touch":
        return Head(head.fields + "t", log, made), "ok"
    elif kind == "lease":
        result = "no"
    elif kind == "fill":
        token, item = argument
        result = "ok" if ("?", token) in items else "no"
        if result == "ok":
            rest = tuple(entry for entry in log if entry != ("?", token))
            log = (("+", item), *rest)
    assert not (leased and kind == "exact")
    return (head if log == head.log else Head(head.fields, log, made)), result


def read_runs(rules, proxy, tries, goal, side, head):
    runs = {}
    for name in named(head):
        runs[name] = yield Get(RUNS[name][side])
        if runs[name] is None:
            return is_damaged, (proxy, tries, goal, side, head)
    yield Answer(content(head, runs))


def is_damaged(rules, proxy, tries, goal, side, head):
    """A sublist is missing: has the list moved, or been merged?"""
    if (yield Get(side)) == head:
        yield Answer("damaged")
        return None
    return find, (proxy, tries - 1, goal)


def merge_runs(rules, proxy, tries, goal, side, head):
    name = named(head)[0] if named(head) else None
    run = (yield Get(RUNS[name][side])) if name is not None else None
    if run is None:
        return None
    yield Cas(RUNS["b"][side], None, content(head, {name: run}))
    if (yield Cas(side, head, Head(head.fields, (("r", "b"),), (proxy.number, tries)))):
        yield Cas(RUNS[name][side], run, None)


# --- the operations ---


def appends(proxy):
    return proxy.phase in (STAY, DONE) or not keeps("no appends while lists move")


def operation(rules, proxy, kind, argument=None):
    """A worker that knows where the list is appends without a look, where appending is right."""
    if kind == "change" and appends(proxy) and proxy.knows is not None:
        if (yield Append(proxy.knows, (argument,))):
            yield Answer("ok")
            return None
    return find, (proxy, TRIES, (kind, argument))


def sweep(rules, proxy, kind, argument=None):
    """The same as an operation that nobody waits for."""
    return operation(rules, proxy, kind, argument)


def clean(rules):
    """The sweep before DONE, with all proxies in MOVE: copies that were left on N."""
    old = yield Get(O)
    new = yield Get(N)
    if isinstance(new, Copy) and (yield Get(O)) == old:
        counts = isinstance(old, Mark) and old.token == new.token
        yield Cas(N, new, new.head if counts else None)


def unmark(rules):
    """The sweep behind the change: marks."""
    old = yield Get(O)
    if isinstance(old, Mark):
        yield Cas(O, old, None)


def expire(rules):
    """The second in which a list with a time ends has come, by the clocks of both servers."""
    yield Over(O)
    yield Over(N)
    yield Answer("over")


class Over(namedtuple("Over", "number")):
    """What has a time goes."""
