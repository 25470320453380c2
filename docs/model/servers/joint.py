# SPDX-License-Identifier: BSD-3-Clause
"""Changes of several lists in one step, while these lists move: the parties of the transactions
(parties.py there), whose requests find their list wherever it is, and change it by CAS.

List n of a transaction is on the places 2n (O) and 2n + 1 (N)."""

import moves
import parties
from judge import is_right
from moves import MOVE, TRIES, Proxy, find
from moving import Servers
from parties import All, Answer, Append
from places import that_counts

programs = {}  # (phase, proxy) -> the phase for proxies that follow lists


class GivesUp(Exception):
    """Too many conflicts: its outcome is unknown."""


def through(phase, proxy):
    """The phase of a transaction, as this proxy does it."""
    if (phase, proxy) not in programs:

        def program(rules, *arguments):
            try:
                following = yield from followed(rules, proxy, phase(rules, *arguments))
            except GivesUp:
                return None
            return following and (through(following[0], proxy), following[1])

        program.of = phase
        programs[phase, proxy] = program
    return programs[phase, proxy]


def followed(rules, proxy, generator):
    reply = None
    try:
        while True:
            request = generator.send(reply)
            if isinstance(request, Answer):
                reply = yield request
            elif isinstance(request, All):
                reply = []
                for chain in request:
                    for single in chain:
                        last = yield from asked(rules, proxy, single)
                    reply.append(last)
            else:
                reply = yield from asked(rules, proxy, request)
    except StopIteration as end:
        return end.value


def asked(rules, proxy, request):
    """Of the list, wherever it is."""
    if isinstance(request, Append):
        goal = ("put", (request.entries, request.creates))
    else:
        goal = ("get", None)
    if proxy.phase == moves.STAY:
        return (yield request._replace(number=2 * request.number))
    return (yield from on_list(rules, request.number, (find, (proxy, TRIES, goal))))


def on_list(rules, number, following):
    """The phases of moves.py for that list, up to what they answer."""
    while following is not None:
        generator, reply = following[0](rules, *following[1]), None
        try:
            while True:
                request = generator.send(reply)
                if isinstance(request, Answer):
                    if request.result == "busy":
                        raise GivesUp
                    return request.result
                reply = yield request._replace(number=2 * number + request.number)
        except StopIteration as end:
            following = end.value
    return None


def move(rules, proxy, number):
    try:
        yield from on_list(rules, number, (find, (proxy, TRIES, ("move", None))))
    except GivesUp:
        return


class Joint(Servers):
    silent = (move,)

    def __init__(self, rules, contents, programs, crashes=1, **options):
        rules.numbers_begin_again = False
        super().__init__(rules, contents, programs, crashes=crashes, **options)
        self.operations = [(program.of, arguments) for program, arguments in self.operations]

    def stored(self, contents):
        heads = ()
        for items in contents:
            heads += (None if items is None else (items, ()), None)
        return heads

    def is_right(self, state):
        rules = self.rules
        heads = [
            that_counts(old, new) for old, new in zip(state.heads[::2], state.heads[1::2])
        ]
        fate = {
            name: "c" if rules.state(name, t.primary, heads[t.primary]) == "c" else "a"
            for name, t in rules.transactions.items()
        }
        end = tuple(rules.content(n, head, fate) for n, head in enumerate(heads))
        key = (state.history, end)
        if key not in self.judged:
            self.judged[key] = is_right(rules, self.operations, state.history, self.start, end)
        return self.judged[key]
