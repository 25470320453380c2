# SPDX-License-Identifier: BSD-3-Clause
"""The worlds that are searched, and the rules that are broken in them."""

from parties import clean_up, drop, evict, exact, flip, read, transact, write
from rules import Transaction

A, B, C = 0, 1, 2
ADD_X, DEL_X, ADD_Y, DEL_Y, CLEAR = ("+", "x"), ("-", "x"), ("+", "y"), ("-", "y"), ("!",)


def tx(name, lists, changes, conditions=None):
    """changes: for each list, in the same order, an entry or several."""
    several = {n: c if not c or isinstance(c[0], tuple) else (c,) for n, c in zip(lists, changes)}
    return Transaction(name, lists, several, conditions or {})


def r(*numbers):
    return [(read, (number,)) for number in numbers]


def w(number, *entries):
    return (write, (number, entries))


T, U = [(transact, ("t",))], [(transact, ("u",))]
TO_TWO = [tx("t", (A, B), (ADD_X, ADD_X))]
TO_THREE = [tx("t", (A, B, C), (ADD_X, ADD_X, ADD_X))]
IN_A, NOT_IN_B, IN_B = {A: (("x", True),)}, {B: (("x", False),)}, {B: (("x", True),)}
MOVE = [tx("t", (A, B), (DEL_X, ADD_X), IN_A)]
CROSSWISE = [tx("t", (A, B), (ADD_X, ADD_X)), tx("u", (B, A), (DEL_X, DEL_X))]
READS_CROSSWISE = [
    tx("t", (A, B), (DEL_X, ADD_X), IN_A),
    tx("u", (B, A), (ADD_Y, ADD_Y), {**NOT_IN_B, **IN_A}),
]
CHAIN = [tx("t", (B, C), (ADD_X, ADD_X)), tx("u", (A, B), (ADD_Y, (DEL_X, ADD_Y)))]
HELD_UP = [tx("t", (B, A), (ADD_X, ADD_X)), tx("u", (A, B, C), ((), DEL_X, ADD_Y))]
THREE_CROSSWISE = [
    tx("t", (A, B, C), (ADD_X,) * 3),
    tx("u", (C, B, A), (DEL_X,) * 3),
]
EMPTY, EMPTY3, X = ((), ()), ((), (), ()), ("x",)

# name: (transactions, first contents, a program for each party, options of Search)
WORLDS = {
    "a deleter and a reader": (TO_TWO, EMPTY, [T, [w(A, DEL_X)], r(A, B)], {}),
    "a deleter of both lists": (
        TO_TWO, EMPTY, [T, [w(A, DEL_X), w(B, DEL_X)], r(A, B)], {"losses": 1}
    ),
    "a deleter the other way round": (
        TO_TWO, EMPTY, [T, [w(B, DEL_X), w(A, DEL_X)], r(B, A)], {"losses": 1}
    ),
    "clears": (TO_TWO, (("y",), ("y",)), [T, [w(A, CLEAR, ADD_Y)], [w(B, CLEAR)], r(A, B)], {}),
    "missing lists": (TO_TWO, (None, None), [T, [w(A, ADD_Y), w(B, DEL_X)], r(A, B)], {"losses": 1}),
    "exact changes": (
        TO_TWO, EMPTY, [T, [(exact, (A, ADD_X)), (exact, (B, DEL_X))], r(B, A)], {}
    ),
    "two transactions, the same primary": (
        [tx("t", (A, B), (ADD_X, ADD_X)), tx("u", (A, B), (DEL_X, DEL_X))], EMPTY, [T, U, r(A, B)], {}
    ),
    "two transactions, crosswise": (CROSSWISE, EMPTY, [T, U, [w(B, ADD_X)]], {}),
    "two transactions, crosswise, a reader": (CROSSWISE, EMPTY, [T, U, r(A, B)], {}),
    "a chain of two, a writer": (
        [tx("t", (A, B), (ADD_X, ADD_X)), tx("u", (B, C), (DEL_X, DEL_X))],
        (X, X, X), [T, U, [w(C, ADD_X), w(A, DEL_X)]], {},
    ),
    "a chain, the later primary first": (CHAIN, EMPTY3, [T, U, [w(B, DEL_Y), w(C, DEL_X)]], {}),
    "a shared list in the middle": (
        [tx("t", (A, C), (ADD_X, ADD_X)), tx("u", (A, B), (DEL_X, ADD_X))],
        EMPTY3, [T, U, [w(B, DEL_X), w(C, DEL_X)]], {},
    ),
    "a shared list at the end": (
        [tx("t", (C, A), (ADD_X, ADD_X)), tx("u", (B, A), (ADD_X, DEL_X))],
        EMPTY3, [T, U, [w(B, DEL_X), w(C, DEL_X)]], {},
    ),
    "one asks for what the other changes": (
        READS_CROSSWISE, (X, ()), [T, U, r(A, B)], {}
    ),
    "three lists wait for two": (HELD_UP, EMPTY3, [T, U, [w(C, DEL_Y), w(A, DEL_X)]], {}),
    "three lists, crosswise": (THREE_CROSSWISE, EMPTY3, [T, U], {}),
    "three lists and a condition": (
        [TO_THREE[0], tx("u", (B, C), (DEL_X, ADD_Y), IN_B)], EMPTY3, [T, U, r(C)], {}
    ),
    "a move and a deleter": (MOVE, (X, ()), [T, [w(A, DEL_X)], r(B, A)], {"losses": 1}),
    "a move and a deleter of both": (MOVE, (X, ()), [T, [w(A, DEL_X), w(B, DEL_X)], r(A, B)], {}),
    "two moves of one item": (
        [MOVE[0], tx("u", (A, C), (DEL_X, ADD_X), IN_A)], (X, (), ()), [T, U, r(C, B)], {}
    ),
    "a move, if it is not there": (
        [tx("t", (A, B), (DEL_X, ADD_X), {**IN_A, **NOT_IN_B})],
        (X, ()), [T, [(exact, (B, ADD_X)), w(A, DEL_X)], r(A)], {},
    ),
    "flips": (
        TO_TWO, (("y",), ()), [T, [(flip, (A, False)), (flip, (B, True))], r(A, B), [w(A, DEL_X)]], {}
    ),
    "two flips of the primary": (
        TO_TWO, ((), ("y",)), [T, [(flip, (A, True)), (flip, (A, False))], r(B, A), [w(B, DEL_X)]], {}
    ),
    "flip and clean-up": (
        TO_TWO, EMPTY,
        [T, [(clean_up, (A,)), (flip, (A, False))], r(A, B), [w(B, DEL_X)]], {},
    ),
    "clean-up beside flips": (
        TO_TWO, EMPTY,
        [T, [(clean_up, (A,)), (flip, (A, True))], [(flip, (A, False)), (flip, (B, True))], r(A, B)],
        {"losses": 1},
    ),
    "late intents and commits": (
        TO_TWO, EMPTY, [T, [(flip, (A, True))], r(B, A, B)], {"losses": 1}
    ),
    "late ones and flips of both": (
        TO_TWO, EMPTY,
        [T, [(flip, (B, True)), (flip, (A, False))], r(A, B, A), [w(A, DEL_X)]], {},
    ),
    "the primary is dropped": (
        TO_TWO, EMPTY, [T, [(drop, (A,)), w(A, ADD_Y)], r(B, A)], {"losses": 1}
    ),
    "the other list is dropped": (
        TO_TWO, EMPTY, [T, [(drop, (B,)), w(B, ADD_Y)], r(A, B)], {"losses": 1}
    ),
    "both are dropped": (TO_TWO, EMPTY, [T, [(drop, (A,))], [(drop, (B,))], r(A, B)], {}),
    "the primary is lost": (TO_TWO, EMPTY, [T, [(evict, (A,)), *r(B)], r(B)], {}),
    "the primary is lost, flips": (
        TO_TWO, EMPTY, [T, [(evict, (A,))], [*r(B), (flip, (B, False))], r(B)], {}
    ),
    "the other list is lost": (
        TO_TWO, EMPTY, [T, [(evict, (B,)), w(B, ADD_Y)], r(A, B)], {}
    ),
    "three lists, a writer of two": (TO_THREE, EMPTY3, [T, [w(B, ADD_Y), w(C, DEL_X)], r(B)], {}),
    "three lists, a deleter of two": (
        TO_THREE, EMPTY3, [T, [w(B, DEL_X), w(C, DEL_X)], r(C, B)], {}
    ),
    "three lists, one is lost": (
        TO_THREE, EMPTY3, [T, [(evict, (B,)), w(C, DEL_X)], r(B, C)], {}
    ),
    "strict order": (
        TO_TWO, EMPTY, [T, [w(B, ADD_Y), w(A, DEL_X)], r(B, A)], {"strict_order": True}
    ),
    "strict order the other way round": (
        TO_TWO, EMPTY, [T, [w(A, ADD_Y), w(B, DEL_X)], r(A, B)], {"strict_order": True}
    ),
}

# Rule that is left out: the world in which the search must find what goes wrong.
BROKEN = {
    "void": "a deleter and a reader",
    "the first decision wins": "a deleter and a reader",
    "the primary first": "a deleter and a reader",
    "look at the decision": "a deleter and a reader",
    "no conflict behind": "three lists, a writer of two",
    "validate behind all intents": "three lists, a deleter of two",
    "the own intent is there": "three lists, one is lost",
    "conditions behind the intents": "a move and a deleter",
    "settle what is in front": "two transactions, crosswise",
    "read again after waiting": "a chain, the later primary first",
    "two rounds of reads": "three lists wait for two",
    "an intent first": "late intents and commits",
    "push the undecided": "a deleter of both lists",
    "answer from a fresh head": "three lists, a writer of two",
    "exact changes settle": "exact changes",
    "fold up to the first open intent": "flips",
    "remember until done": "late intents and commits",
    "done behind all": "late intents and commits",
    "no removal of what is open or not done": "the primary is dropped",
    "effect at the intent": "a deleter of both lists",
    "answer behind all": "the primary is lost",
    "look whether the commit came first": "the primary is lost",
    "order": "strict order the other way round",
}

# Worlds that take longer than some seconds.
DEEP = {
    "missing lists",
    "two transactions, the same primary",
    "two transactions, crosswise, a reader",
    "one asks for what the other changes",
    "three lists wait for two",
    "three lists and a condition",
    "flips",
    "clean-up beside flips",
    "late ones and flips of both",
    "the other list is dropped",
    "both are dropped",
}
