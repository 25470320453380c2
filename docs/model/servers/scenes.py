# SPDX-License-Identifier: BSD-3-Clause
"""The worlds that are searched, and the rules that are left out in them."""

import itertools
from collections import namedtuple

import joint
import moves
from moves import DONE, LEARN, MOVE, N, O, STAY, Proxy
from parties import read as lists_read
from parties import transact, write
from places import Copy, Head, Mark
from worlds import tx

World = namedtuple("World", "numbers_begin_again")
numbers = itertools.count(1)


def do(phase, kind, argument=None, knows=None, dead=False, n_down=False):
    proxy = Proxy(phase, next(numbers), knows, dead, n_down)
    return (moves.operation, (proxy, kind, argument))


def add(phase, item, **options):
    return do(phase, "change", ("+", item), **options)


def delete(phase, item, **options):
    return do(phase, "change", ("-", item), **options)


def read(phase, **options):
    return do(phase, "read", **options)


def drop(phase, **options):
    return do(phase, "drop", **options)


def exact(phase, item, **options):
    return do(phase, "exact", ("+", item), **options)


def silent(phase, kind, **options):
    return (moves.sweep, do(phase, kind, **options)[1])


def move():
    return silent(MOVE, "move")


def head(*items, fields="", made=0):
    return Head(fields, tuple(i if isinstance(i, tuple) else ("+", i) for i in items), made)


def lose(place):
    return (moves.lose, (place,))


CLEAN, UNMARK = (moves.clean, ()), (moves.unmark, ())
FORGET_MARK, EXPIRE = (moves.forget, (O,)), (moves.expire, ())

NOTHING = (None, None, None, None, None, None)
X = head("x")


def on_old(first=X, new=None):
    return (first, new, *NOTHING[2:])


def moved(first=X):
    return (Mark("t"), first, *NOTHING[2:])


HALF = (Mark("t"), Copy("t", X), *NOTHING[2:])          # a mover died behind its mark
STALE = Copy("s", head("z", made="older"))              # one died in front of it, long ago
WITH_RUN = (Head("", (("r", "a"),), 0), None, ("x",), None, None, None)

# name: (what the servers hold, a program for each party, options of Moving)
WORLDS = {
    # STAY and LEARN
    "stay and learn make": (
        NOTHING,
        [[add(STAY, "x")], [add(LEARN, "y")], [read(LEARN), read(STAY)]],
        {},
    ),
    "stay and learn change": (
        on_old(),
        [[add(STAY, "y", knows=O)], [delete(LEARN, "x")], [silent(LEARN, "fold")], [read(STAY)]],
        {},
    ),
    # LEARN and MOVE
    "a change and a move": (on_old(), [[add(LEARN, "y")], [move()], [read(LEARN), read(MOVE)]], {}),
    "a deletion and a move": (
        on_old(),
        [[delete(LEARN, "x", knows=O)], [move()], [read(MOVE)]],
        {"crashes": 2},
    ),
    "two movers and a change": (on_old(), [[move()], [move()], [delete(LEARN, "x")]], {}),
    "three movers": (on_old(), [[move()], [move()], [add(MOVE, "y")]], {"crashes": 2}),
    "writers move": (
        on_old(),
        [[add(MOVE, "y")], [delete(MOVE, "x")], [read(LEARN)]],
        {"crashes": 2},
    ),
    "N is down for one": (on_old(), [[add(MOVE, "y", n_down=True)], [move()], [read(LEARN)]], {}),
    "both make": (NOTHING, [[add(LEARN, "x")], [add(MOVE, "y")], [read(LEARN)]], {}),
    "both make, read by a mover": (
        NOTHING,
        [[add(LEARN, "x")], [add(MOVE, "y")], [read(MOVE)]],
        {},
    ),
    "two make, one deletes": (
        NOTHING, [[add(MOVE, "x")], [add(MOVE, "y")], [delete(LEARN, "x")]], {"crashes": 2}
    ),
    "fold, move, delete": (
        on_old(),
        [[silent(LEARN, "fold")], [move()], [delete(LEARN, "x"), add(LEARN, "x")], [read(LEARN)]],
        {},
    ),
    "exact in both": (on_old(), [[exact(LEARN, "y")], [exact(MOVE, "y")], [read(LEARN)]], {}),
    "dropped, made, moved": (on_old(), [[drop(LEARN)], [add(MOVE, "y")], [read(LEARN)]], {}),
    "dropped, a mover, made": (on_old(), [[drop(LEARN)], [move()], [add(MOVE, "y")]], {}),
    "a mover died": (HALF, [[add(LEARN, "y")], [delete(MOVE, "x")], [read(LEARN), read(MOVE)]], {}),
    "a stale copy": (
        on_old(new=STALE),
        [[add(LEARN, "y")], [move()], [read(MOVE), read(LEARN)]],
        {},
    ),
    "a stale copy, no list": (
        on_old(None, STALE), [[add(LEARN, "y")], [add(MOVE, "x")], [read(MOVE)]], {}
    ),
    "moved, then dropped": (
        moved(), [[drop(MOVE)], [add(LEARN, "y")], [add(MOVE, "w")], [read(LEARN)]], {}
    ),
    "no mark": (
        on_old(None, X), [[add(LEARN, "y")], [delete(MOVE, "x")], [read(LEARN), read(MOVE)]], {}
    ),
    "believed on O": (on_old(), [[add(LEARN, "y", knows=O)], [move()], [read(MOVE)]], {}),
    "believed on N": (
        on_old(),
        [[add(MOVE, "y", knows=N)], [delete(LEARN, "x")], [move()], [read(MOVE, knows=N)]],
        {},
    ),
    "believed on N, dropped there": (
        moved(),
        [[drop(MOVE), add(LEARN, "y")], [add(MOVE, "w", knows=N)], [read(LEARN, knows=N)]],
        {},
    ),
    # What servers lose
    "the mark is lost behind a move": (
        on_old(), [[move(), FORGET_MARK, read(LEARN), add(MOVE, "y"), read(LEARN)], [move()]], {}
    ),
    "the head on O is lost": (
        on_old(), [[lose(O)], [move()], [delete(LEARN, "x")], [read(MOVE)]], {"lossy": True}
    ),
    "what is on N is lost": (
        on_old(), [[lose(N)], [move()], [add(LEARN, "y")], [read(MOVE)]], {"lossy": True}
    ),
    "the head on N is lost": (
        moved(), [[lose(N)], [add(MOVE, "y")], [read(LEARN), read(MOVE)]], {"lossy": True}
    ),
    "O is lost, both make": (
        HALF,
        [[lose(O)], [add(LEARN, "y")], [add(MOVE, "z")]],
        {"lossy": True},
    ),
    "O is lost, writers": (
        on_old(), [[lose(O)], [delete(LEARN, "x"), read(LEARN)], [add(MOVE, "y")]], {"lossy": True}
    ),
    "a mark is lost, both make": (
        NOTHING,
        [[add(MOVE, "y"), lose(O), read(MOVE)], [add(LEARN, "x"), read(LEARN)]],
        {"lossy": True},
    ),
    "both are lost": (
        HALF,
        [[lose(O)], [lose(N)], [delete(MOVE, "x")], [read(LEARN)]],
        {"lossy": True},
    ),
    "O restarts": (
        on_old(new=Copy("s", head("z"))),
        [[lose(O)], [add(LEARN, "y"), read(LEARN)], [move(), read(MOVE)]],
        {"lossy": True, "numbers_begin_again": True},
    ),
    # O is gone for good
    "O is gone, a mover was under way": (
        HALF,
        [
            [lose(O), read(MOVE, dead=True), add(MOVE, "y", dead=True), read(MOVE, dead=True)],
            [move()],
        ],
        {"lossy": True},
    ),
    "O is gone, lists are made": (
        NOTHING, [[add(MOVE, "y", dead=True)], [add(MOVE, "x", dead=True)], [read(DONE)]], {}
    ),
    # MOVE and DONE
    "move and done make": (
        NOTHING,
        [[add(MOVE, "x")], [add(DONE, "y")], [read(MOVE), read(DONE)]],
        {},
    ),
    "move and done change": (
        moved(), [[add(MOVE, "y")], [delete(DONE, "x", knows=N)], [read(MOVE), drop(DONE)]], {}
    ),
    "move and done, marks go": (
        moved(),
        [[add(DONE, "y", knows=N), drop(DONE)], [exact(MOVE, "w")], [UNMARK], [read(MOVE)]],
        {},
    ),
    "swept, then done": (
        on_old(), [[move(), CLEAN, add(DONE, "y"), read(DONE)], [read(MOVE)]], {}
    ),
    "a stale copy, swept, then done": (
        on_old(None, STALE), [[CLEAN, add(DONE, "y"), read(DONE)], [read(MOVE)]], {"crashes": 0}
    ),
    "half moved, swept, then done": (
        HALF, [[CLEAN, UNMARK, add(DONE, "y"), read(DONE)], [read(MOVE)]], {"crashes": 0}
    ),
    # sublists
    "a sublist": (WITH_RUN, [[move()], [read(LEARN)], [read(MOVE)]], {"crashes": 2}),
    "a sublist, a merge on O": (WITH_RUN, [[move()], [silent(LEARN, "merge")], [read(LEARN)]], {}),
    "a sublist, two movers": (WITH_RUN, [[move()], [move()], [delete(LEARN, "x")]], {}),
    "a sublist, a merge on N": (
        WITH_RUN, [[move()], [silent(MOVE, "merge")], [read(MOVE)]], {"crashes": 2}
    ),
    # times to live, leases, caps
    "a list expires": (
        on_old(head("x", fields="t")), [[EXPIRE, read(LEARN)], [move()], [read(MOVE)]], {}
    ),
    "touched while it moves": (
        on_old(head("x")), [[do(LEARN, "touch"), EXPIRE, read(MOVE)], [move()]], {"crashes": 0}
    ),
    "a capped list": (
        on_old(head("x", fields="#")),
        [[add(LEARN, "y")], [move()], [add(MOVE, "z")], [read(LEARN)]],
        {},
    ),
    "a lease moves": (
        NOTHING,
        [
            [do(LEARN, "lease", "l"), do(LEARN, "fill", ("l", "x"))],
            [move()],
            [read(MOVE)],
            [drop(MOVE)],
        ],
        {},
    ),
    "a capped list moves": (
        on_old(head("x", fields="#")),
        [[add(LEARN, "y")], [move()], [add(MOVE, "z")]],
        {"crashes": 0},
    ),
    "a lease moves, filled": (
        NOTHING,
        [[do(LEARN, "lease", "l"), do(LEARN, "fill", ("l", "x"))], [move(), read(MOVE)]],
        {},
    ),
    "two leases": (
        NOTHING,
        [
            [do(LEARN, "lease", "l"), do(MOVE, "fill", ("l", "x"))],
            [do(MOVE, "lease", "m"), do(LEARN, "fill", ("m", "y"))],
            [drop(MOVE)],
        ],
        {"crashes": 0},
    ),
    "a lease and changes": (
        NOTHING,
        [[do(LEARN, "lease", "l"), do(LEARN, "fill", ("l", "x"))], [move()], [add(MOVE, "y")]],
        {},
    ),
    # two phases apart: what the gate is for
    "stay beside move": (on_old(), [[add(STAY, "y", knows=O)], [move()], [read(MOVE)]], {}),
    "learn beside done": (NOTHING, [[add(LEARN, "y")], [add(DONE, "x")], [read(DONE)]], {}),
    "done before the sweep": (on_old(), [[add(DONE, "y")], [read(MOVE)]], {}),
    "stay behind the end": (moved(), [[UNMARK, add(STAY, "y")], [read(DONE)]], {}),
}

# Rule that is left out: the world in which the search must find what goes wrong.
BROKEN = {
    "no appends while lists move": "believed on O",
    "the old head is marked": "a deletion and a move",
    "a copy counts by its mark": "a stale copy, no list",
    "O is looked at behind a copy": "two movers and a change",
    "a copy of this version is committed, not written over": "three movers",
    "a copy of another version is not committed": "a stale copy",
    "the bytes of a copy are compared": "O restarts",
    "the number of a copy is compared": "touched while it moves",
    "marked by CAS": "a deletion and a move",
    "the copy is written by ADD or CAS": "writers move",
    "confirmed by CAS": "a mover died",
    "a copy becomes a head first": "the mark is lost behind a move",
    "made behind a mark": "both make",
    "missing only behind a look at both": "believed on N",
    "sublists are copied": "a sublist",
    "a copy that does not count is taken away": "O is gone, a mover was under way",
    "the copy keeps the time": "touched while it moves",
    "the copy keeps the cap": "a capped list moves",
    "the copy keeps the lease": "a lease moves, filled",
}
# Phases that must not be at work together, or too early: a world each.
AGAINST = {
    "nobody in STAY beside MOVE": "stay beside move",
    "nobody in LEARN beside DONE": "learn beside done",
    "DONE only behind the sweep": "done before the sweep",
    "nobody in STAY behind the end": "stay behind the end",
}


# --- changes of several lists in one step ---

A, B = 0, 1


def party(phase, program, *arguments):
    """Of the transactions' parties, at a proxy in that phase."""
    return (joint.through(program, Proxy(phase, next(numbers), None, False, False)), arguments)


def mover(number):
    return (joint.move, (Proxy(MOVE, next(numbers), None, False, False), number))


def both(name, lists):
    return tx(name, lists, (("+", "x"), ("+", "x")))


FIRST_MOVES, SECOND_MOVES = [both("t", (A, B))], [both("t", (B, A))]
TAKE = [tx("t", (A, B), (("-", "x"), ("+", "x")), {A: (("x", True),)})]

# name: (transactions, first contents, a program for each party, options). List A moves.
JOINT_WORLDS = {
    "the primary moves": (
        FIRST_MOVES, ((), ()),
        [[party(LEARN, transact, "t")], [mover(A)], [party(LEARN, lists_read, B)]],
        {},
    ),
    "the other list moves": (
        SECOND_MOVES, ((), ()),
        [[party(LEARN, transact, "t")], [mover(A)], [party(LEARN, lists_read, A)]],
        {},
    ),
    "its proxy moves it": (
        FIRST_MOVES, ((), ()),
        [
            [party(MOVE, transact, "t")],
            [party(LEARN, lists_read, B)],
            [party(LEARN, write, A, (("-", "x"),))],
        ],
        {},
    ),
    "the other list moves, and a deleter": (
        SECOND_MOVES, ((), ()),
        [[party(LEARN, transact, "t")], [mover(A)], [party(LEARN, write, A, (("-", "x"),))]],
        {},
    ),
    "an item is taken from a list that moves": (
        TAKE, (("x",), ()),
        [[party(LEARN, transact, "t")], [mover(A)], [party(LEARN, lists_read, B)]],
        {},
    ),
    "a missing list of a transaction moves": (
        FIRST_MOVES, (None, ()),
        [[party(LEARN, transact, "t")], [mover(A), party(MOVE, lists_read, B)]],
        {},
    ),
    "both move": (
        FIRST_MOVES, ((), ()),
        [[party(LEARN, transact, "t")], [mover(A)], [mover(B)]],
        {"crashes": 0},
    ),
    "stay beside move, a transaction": (
        FIRST_MOVES, ((), ()),
        [[party(LEARN, transact, "t")], [mover(A)], [party(STAY, lists_read, B)]],
        {},
    ),
}
AGAINST["who settles knows where lists move"] = "stay beside move, a transaction"

# Worlds that take longer than some seconds.
DEEP = {
    "fold, move, delete",
    "believed on N",
    "a capped list",
    "a lease moves",
    "the primary moves",
    "the other list moves",
    "its proxy moves it",
    "an item is taken from a list that moves",
}
