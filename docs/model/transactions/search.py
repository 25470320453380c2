# SPDX-License-Identifier: BSD-3-Clause
"""All that can happen in a world: every order of steps, crashes of coordinators, requests that
arrive late or never."""

import functools
from collections import deque, namedtuple
from itertools import combinations

import judge
import parties
from parties import All, Answer, Append, Cas, Flip, Get, LOST, Lose

# Where a party stands: which operation of its program, the phase and its arguments, what the phase
# was sent so far, and the replies to what it has under way, for each chain.
Place = namedtuple("Place", "at phase arguments replies partial")
State = namedtuple("State", "heads places late history crashes losses")


class Violation(Exception):
    """The steps that lead to it."""


class TooLarge(Exception):
    """More states than the limit."""


class Search:
    silent = (parties.flip, parties.clean_up)  # nobody waits for their answers

    def __init__(self, rules, contents, programs, crashes=1, losses=0, states_max=3_000_000):
        self.rules = rules
        self.programs = programs
        self.states_max = states_max
        self.resumed, self.judged = {}, {}
        # A party comes to the same places again and again, beside all that the others do.
        self.waiting = functools.cache(self.waiting)
        self.replied = functools.cache(self.replied)
        self.operations = [o for p in programs for o in p if o[0] not in self.silent]
        self.numbers = []
        count = 0
        for program in programs:
            row = []
            for operation in program:
                row.append(None if operation[0] in self.silent else count)
                count += operation[0] not in self.silent
            self.numbers.append(row)
        self.start = tuple(c or () for c in contents)
        heads = self.stored(contents)
        places = tuple(self.begin(program, 0) for program in programs)
        history = (None,) * len(self.operations)
        self.first = State(heads, places, (), history, crashes, losses)

    def stored(self, contents):
        """What the servers hold at first."""
        return tuple(None if c is None else (c, ()) for c in contents)

    # --- programs ---

    def begin(self, program, at):
        if at == len(program):
            return None
        phase, arguments = program[at]
        return self.settled(Place(at, phase, arguments, (), ()))[0]

    def resume(self, phase, arguments, replies):
        """Runs the phase up to where it waits after these replies. Returns (what it answered since
        the last of them, what it waits for, the next phase)."""
        key = (phase, arguments, replies)
        if key not in self.resumed:
            self.resumed[key] = self.run_phase(*key)
        return self.resumed[key]

    def run_phase(self, phase, arguments, replies):
        generator = phase(self.rules, *arguments)
        answers, fed = (), 0
        try:
            request = next(generator)
            while True:
                if isinstance(request, Answer):
                    answers += (request.result,)
                    request = next(generator)
                elif fed < len(replies):
                    answers = ()
                    request = generator.send(replies[fed])
                    fed += 1
                else:
                    return answers, request, None
        except StopIteration as end:
            return answers, None, end.value

    def settled(self, place):
        """Through phases that wait for nothing. Returns the place, or None at the end of the
        operation, and the answers on the way."""
        given = ()
        while True:
            answers, request, following = self.resume(place.phase, place.arguments, place.replies)
            given += answers
            if request is not None:
                chains = request if isinstance(request, All) else ((request,),)
                return place._replace(partial=((),) * len(chains)), given
            if following is None:
                return None, given
            place = Place(place.at, *following, (), ())

    def waiting(self, place):
        """The requests that the party has under way: (chain, request) of each."""
        _, request, _ = self.resume(place.phase, place.arguments, place.replies)
        chains = request if isinstance(request, All) else ((request,),)
        return tuple(
            (number, chain[len(replies)])
            for number, (chain, replies) in enumerate(zip(chains, place.partial))
            if len(replies) < len(chain) and LOST not in replies
        )

    def replied(self, place, number, reply):
        """The party has this reply on a chain."""
        _, request, _ = self.resume(place.phase, place.arguments, place.replies)
        partial = list(place.partial)
        partial[number] += (reply,)
        place = place._replace(partial=tuple(partial))
        if self.waiting(place):
            return place, ()
        last = tuple(replies[-1] for replies in partial)
        value = last if isinstance(request, All) else last[0]
        return self.settled(place._replace(replies=(*place.replies, value)))

    # --- steps ---

    def served(self, heads, request):
        """One step of a server: the heads behind it, and the reply."""
        number = request.number
        head = heads[number]
        if isinstance(request, Get):
            return heads, head
        if isinstance(request, Append):
            if head is None and not request.creates:
                return heads, False
            new, reply = parties.with_entries(head, request.entries), True
        elif isinstance(request, Lose):
            new, reply = None, True
        elif isinstance(request, Cas):
            new, reply = (request.new, True) if head == request.old else (head, False)
        else:
            assert isinstance(request, Flip)
            old = request.old
            fits = head is not None and head[0] == old[0] and head[1][: len(old[1])] == old[1]
            grown = head[1][len(old[1]) :] if fits else ()
            new, reply = ((request.new[0], request.new[1] + grown), True) if fits else (head, False)
        return (*heads[:number], new, *heads[number + 1 :]), reply

    def steps(self, state):
        """All states that may follow, each with what happens."""
        for party, place in enumerate(state.places):
            if place is None:
                continue
            begun = self.begun(state, party, place)
            for number, request in self.waiting(place):
                heads, reply = self.served(state.heads, request)
                yield self.moved(begun, party, place, number, reply, heads), (party, request, "")
                if state.losses and getattr(request, "may_lose", False):
                    lost = self.moved(begun, party, place, number, LOST, state.heads)
                    late = tuple(sorted((*state.late, request)))
                    yield lost._replace(late=late, losses=state.losses - 1), (party, request, "lost")
            yield from self.crashes(state, party, place, begun)
        for at, request in enumerate(state.late):
            heads, _ = self.served(state.heads, request)
            late = state.late[:at] + state.late[at + 1 :]
            yield state._replace(heads=heads, late=late), (None, request, "late")

    def crashes(self, state, party, place, begun):
        coordinates = self.programs[party][place.at][0] is parties.transact
        if not state.crashes or not coordinates:
            return
        fresh = state.history[self.numbers[party][place.at]] is None
        wire = [r for _, r in self.waiting(place) if isinstance(r, Append) and len(r.entries) == 1]
        for count in range(1 if fresh else 0, len(wire) + 1):
            for sent in combinations(wire, count):
                places = (*state.places[:party], None, *state.places[party + 1 :])
                late = tuple(sorted(state.late + sent))
                after = begun._replace(places=places, late=late, crashes=state.crashes - 1)
                yield after, (party, sent, "crashes")

    def begun(self, state, party, place):
        """The operation counts from its first request on."""
        number = self.numbers[party][place.at]
        if number is None or state.history[number] is not None:
            return state
        answered = (i for i, h in enumerate(state.history) if h is not None and h[1] is not None)
        entry = (sum(1 << i for i in answered), None)
        return state._replace(history=replaced(state.history, number, entry))

    def moved(self, state, party, place, chain, reply, heads):
        following, answers = self.replied(place, chain, reply)
        number = self.numbers[party][place.at]
        history = state.history
        if answers and number is not None:
            history = replaced(history, number, (history[number][0], answers[0]))
        if following is None:
            following = self.begin(self.programs[party], place.at + 1)
        places = replaced(state.places, party, following)
        return State(heads, places, state.late, history, state.crashes, state.losses)

    # --- the search ---

    def is_right(self, state):
        rules = self.rules
        fate = {
            name: "c" if rules.state(name, t.primary, state.heads[t.primary]) == "c" else "a"
            for name, t in rules.transactions.items()
        }
        end = tuple(rules.content(n, head, fate) for n, head in enumerate(state.heads))
        key = (state.history, end)
        if key not in self.judged:
            self.judged[key] = judge.is_right(
                rules, self.operations, state.history, self.start, end
            )
        return self.judged[key]

    def run(self):
        """Returns the number of states; raises Violation with a shortest story."""
        seen = {self.first}
        queue = deque(seen)
        while queue:
            state = queue.popleft()
            if self.is_wrong(state):
                raise Violation(self.story(*self.found_again()))
            for following, _ in self.steps(state):
                count = len(seen)
                seen.add(following)
                if len(seen) > count:
                    queue.append(following)
            if len(seen) > self.states_max:
                raise TooLarge(f"more than {self.states_max} states")
        return len(seen)

    def is_wrong(self, state):
        return not any(state.places) and not self.is_right(state)

    def found_again(self):
        """The same search once more, now with where each state came from: that takes too much
        memory to be kept always."""
        origin = {self.first: None}
        queue = deque(origin)
        while True:
            state = queue.popleft()
            if self.is_wrong(state):
                return state, origin
            for following, step in self.steps(state):
                if following not in origin:
                    origin[following] = (state, step)
                    queue.append(following)

    def story(self, state, origin):
        lines = []
        for number, head in enumerate(state.heads):
            lines.append(f"in the end list {'ABCD'[number]}: {told(head)}")
        while origin[state] is not None:
            previous, (party, request, what) = origin[state]
            who = "late" if party is None else f"party {party}"
            lines.append(f"{who}: {told(request)} {what if party is not None else ''}".rstrip())
            for number, (old, new) in enumerate(zip(previous.history, state.history)):
                if new is not None and new[1] is not None and (old is None or old[1] is None):
                    lines[-1] += f", operation {number} answered {told(new[1])}"
            state = previous
        return lines[::-1]


def replaced(values, at, value):
    return (*values[:at], value, *values[at + 1 :])


def told(thing):
    """Short, for people."""
    if isinstance(thing, (Get, Append, Cas, Flip, Lose)):
        name = "ABCD"[thing.number]
        entries = told(thing.entries) if isinstance(thing, Append) else ""
        return f"{type(thing).__name__.lower()} {name} {entries}".rstrip()
    if isinstance(thing, tuple):
        if thing and isinstance(thing[0], str) and thing[0] in "?&+-!":
            return "".join(thing)
        return " ".join(told(part) for part in thing) or "nothing"
    return str(thing)
