# SPDX-License-Identifier: BSD-3-Clause
"""The worlds of a plain key that are searched, and the rules that are left out in them."""

import itertools

import plain
from moves import DONE, LEARN, MOVE, N, O, STAY
from plain import Plain, Value

numbers = itertools.count(1)


def do(kind, step):
    return (kind, (step, next(numbers)))


def get(step):
    return do(plain.get, step)


def write(step):
    return do(plain.write, step)


def delete(step):
    return do(plain.delete, step)


def add(step):
    return do(plain.add, step)


def change(step):
    return do(plain.change, step)


def copy():
    return do(plain.copy, MOVE)


def sweep():
    return do(plain.sweep, MOVE)


def lose(place):
    return (plain.lose, (place,))


FIRST = Value(0, 0)
ON_O, ON_N, NONE = (FIRST, None), (None, FIRST), (None, None)

# name: (what O and N hold, a program for each party, options)
WORLDS = {
    "plain: stay and learn": (
        ON_O, [[write(STAY), get(LEARN)], [write(LEARN), get(STAY)], [delete(LEARN)]], {}),
    "plain: written by both, read by both": (
        ON_O, [[write(LEARN), get(MOVE)], [write(MOVE), get(LEARN)], [get(LEARN), get(MOVE)]], {}),
    "plain: written by both, nobody dies": (
        ON_O, [[write(LEARN)], [write(MOVE)], [copy()], [get(MOVE)]], {"crashes": 0}),
    "plain: deleted, copied": (
        ON_O, [[delete(LEARN), get(MOVE)], [copy()], [copy()], [get(LEARN)]], {}),
    "plain: deleted in move, copied": (
        ON_O, [[delete(MOVE), get(MOVE), get(LEARN)], [copy(), copy()]], {}),
    "plain: written in learn, copied": (
        ON_O, [[write(LEARN), get(MOVE)], [copy()], [get(LEARN), get(MOVE)]], {}),
    "plain: written in move, copied, lost": (
        ON_O, [[write(MOVE), get(MOVE), get(LEARN)], [copy()], [lose(N)]], {}),
    "plain: swept while written": (
        ON_O, [[write(LEARN), get(LEARN)], [sweep()], [write(MOVE), get(MOVE)]], {}),
    "plain: swept while written, nobody dies": (
        ON_O, [[write(LEARN)], [sweep()], [sweep()], [write(MOVE)]], {"crashes": 0}),
    "plain: changed while moved": (
        ON_O, [[change(LEARN), get(MOVE)], [copy()], [change(MOVE), get(LEARN)]], {}),
    "plain: changed on N": (
        ON_N, [[change(LEARN), get(MOVE)], [change(MOVE), get(LEARN)], [delete(LEARN)]], {}),
    "plain: changed, copied before": (
        ON_O, [[copy(), change(MOVE), get(MOVE)], [lose(N)], [copy(), get(LEARN)]], {}),
    "plain: a value on both": (
        (FIRST, Value(1000, 1000)), [[change(MOVE), get(MOVE)], [delete(MOVE)], [sweep()]],
        {"strict": False}),
    "plain: added in both": (NONE, [[add(LEARN), get(MOVE)], [add(MOVE), get(LEARN)]], {}),
    "plain: added in stay and learn": (NONE, [[add(STAY)], [add(LEARN)], [add(LEARN)]], {}),
    "plain: added in move and done": (
        NONE, [[add(MOVE)], [add(DONE), get(DONE)], [add(MOVE), get(DONE)]], {}),
    "plain: added while moved": (ON_O, [[add(LEARN)], [add(MOVE)], [copy()], [get(MOVE)]], {}),
    "plain: added and written": (
        NONE, [[add(LEARN), get(MOVE)], [write(MOVE), get(LEARN)], [delete(MOVE)]], {}),
    "plain: added and written, nobody dies": (
        NONE, [[add(LEARN)], [write(MOVE)], [add(MOVE)]], {"crashes": 0}),
    "plain: move and done behind the sweep": (
        ON_N, [[write(DONE), get(MOVE)], [write(MOVE), get(DONE)], [delete(DONE), sweep()]], {}),
    "plain: changed in move and done": (
        ON_N, [[change(DONE), get(MOVE)], [change(MOVE), get(DONE)], [add(MOVE), get(DONE)]], {}),
    # What the program must not be led into: see AGAINST.
    "plain: stay beside move": (ON_O, [[write(STAY), get(MOVE)], [write(MOVE)]], {}),
    "plain: done before the sweep": (ON_O, [[delete(DONE), get(MOVE)]], {}),
    "plain: N holds what is left of old": (
        (None, FIRST), [[write(STAY), delete(STAY), get(LEARN)]], {}),
}

# rule: the world in which it is left out.
BROKEN = {
    "LEARN takes away what N holds": "plain: written in learn, copied",
    "MOVE takes away what O holds first": "plain: written in move, copied, lost",
    "MOVE takes away what O holds last": "plain: written by both, nobody dies",
    "a delete goes to O first": "plain: deleted in move, copied",
    "an add in LEARN holds a lease": "plain: added in both",
    "MOVE looks at O behind an add": "plain: added in both",
    "an add without its lease is taken back": "plain: added and written, nobody dies",
    "MOVE moves a value before it is changed": "plain: changed, copied before",
    "copied behind a lease": "plain: deleted in move, copied",
    "O is read behind the lease": "plain: written in learn, copied",
    "a lease is no value": "plain: deleted in move, copied",
}

# What an operator must not do: the world in which it is done.
AGAINST = {
    "plain: nobody in STAY beside MOVE": "plain: stay beside move",
    "plain: DONE only behind the sweep": "plain: done before the sweep",
    "plain: N holds nothing of old before LEARN": "plain: N holds what is left of old",
}


def search(name):
    held, programs, options = WORLDS[name]
    return Plain(held, programs, **options).run()
