# SPDX-License-Identifier: BSD-3-Clause
"""A case: what is sent on which connection in which phase and in which packets; and its run against
both sides."""

import dataclasses
import random
import re

import exceptions
import framing
import generating
from framing import Request
from generating import Generator, Share
from malforming import COUNTERS, WORDS, Malformer
from matching import Answer, Numbers, Pattern, follow
from sides import LAYOUTS, Stuck, Talk, Turn, fence_pair

REFUSED = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")
CAS_IN_DEBUG = re.compile(rb" cas=(\d+) ")
REPAIR_WORDS_MAX = 12
SHOWN_BYTES_MAX = 160


@dataclasses.dataclass
class Packets:
    """Where a phase's bytes of a connection are cut: at random, or where `cuts` says:
    {(phase, connection): [(position, pause in seconds)]}."""

    seed: int
    most: int = 0  # pieces; 0: one byte each
    pauses: float = 0.0
    cuts: dict = None

    def positions(self, phase, connection, size):
        if self.cuts is not None:
            return [cut for cut in self.cuts.get((phase, connection), []) if cut[0] < size]
        rng = random.Random(f"{self.seed} {phase} {connection}")
        if self.most == 0 and size < 3000:
            found = range(1, size)
        else:
            found = {rng.randrange(1, size) for _ in range(rng.randrange(max(self.most, 10)))}
        return [(at, self._pause(rng)) for at in sorted(found)]

    def _pause(self, rng):
        return rng.choice([0.0001, 0.0005, 0.002]) if rng.random() < self.pauses else 0.0

    def split(self, phase, connection, data):
        cuts = self.positions(phase, connection, len(data)) if len(data) > 1 else []
        starts = [0, *(at for at, _ in cuts)]
        ends = [*(at for at, _ in cuts), len(data)]
        pauses = [*(pause for _, pause in cuts), 0.0]
        return [(data[a:b], pause) for a, b, pause in zip(starts, ends, pauses) if a < b]


@dataclasses.dataclass
class Case:
    seed: int
    layout: object
    phases: list  # of {connection: [Request]}
    packets: Packets


def make_case(seed, layout=None):
    rng = random.Random(f"mclistd {seed}")
    layout = layout or LAYOUTS[seed % len(LAYOUTS)]
    connections = rng.choice([1, 1, 1, 2, 3, 4])
    malformed = rng.choice([0.0, 0.0, 0.1, 0.3, 0.7])
    size = rng.choice([3, 10, 30, 30, 100, 300])
    phases = []
    for phase in range(rng.choice([1, 2, 3, 5])):
        chunks = {}
        for number in range(connections):
            share = Share(rng, number, phase, connections)
            generator = Generator(rng, share, shrinks=layout.servers > 0)
            malformer = Malformer(rng, share)
            chunks[number] = [
                malformer.one() if rng.random() < malformed else generator.one()
                for _ in range(rng.randrange(1, size + 1))
            ]
            if rng.random() < 0.1:
                chunks[number].append(malformer.ending())
        phases.append(chunks)
    most = rng.choice([1, 1, 3, 10, 50, 0])
    return Case(seed, layout, phases, Packets(seed, most, rng.choice([0.0, 0.0, 0.05, 0.3])))


@dataclasses.dataclass
class Step:
    """A request as it was sent, and what may be answered."""

    request: Request
    text: bytes
    candidates: list  # (Answer or Pattern, closes)


@dataclasses.dataclass
class Failure:
    what: str
    phase: int = 0
    connection: int = 0
    step: int = 0
    position: int = 0  # in the proxy's answer
    steps: dict = None  # the phase's: {connection: [Step]}
    turns: dict = None


class Run:
    """One run of a case, from empty stores on."""

    def __init__(self, sides, case, timeout_s):
        self.sides = sides
        self.case = case
        self.front = sides.front(case.layout)
        self.reference = sides.references[case.layout.generation]
        self.talk = Talk(self.front.daemon.port, timeout_s)
        self.numbers = Numbers()
        self.fences = 0

    def run(self):
        """None, or the Failure."""
        try:
            self._wipe()
            for phase in range(len(self.case.phases)):
                failure = self._phase(phase)
                if failure:
                    return failure
            return self._compare_stores()
        except Stuck as stuck:
            return Failure(f"a memcached: {stuck}")
        finally:
            self.talk.close()

    def _keys(self):
        """All that may be stored, by now."""
        odd = self.sides.odd_keys
        keys = {*generating.KEYS, *WORDS, *COUNTERS, *odd, *map(framing.decoded, odd)} - {None}
        return [key for key in sorted(keys) if framing.can_be_named(key)]

    def _wipe(self):
        """By key as well: see "flag E beside flush_all" in the table of exceptions."""
        script = b"".join(framing.by_name(b"md", key, b" q") for key in self._keys())
        script += b"flush_all\r\n"
        for link in [*self.sides.references.values(), *self.front.links]:
            link.ask(script)
        self.sides.odd_keys = set()

    # --- CAS numbers ---

    def _cas_on(self, links):
        """A function of a key: its CAS number, asked in a way that leaves no trace."""
        known = {}

        def cas_of(key):
            if key not in known:
                known[key] = b"1"
                for link in links:
                    found = CAS_IN_DEBUG.search(link.ask(framing.by_name(b"me", key))[0])
                    if found:
                        known[key] = found.group(1)
            return known[key]

        return cas_of

    # --- a phase ---

    def _phase(self, phase):
        chunks = self.case.phases[phase]
        lines = [request.line for chunk in chunks.values() for request in chunk]
        keys = {key for line in lines for key in framing.cas_keys(line)}
        ours = {g: self._cas_on([link]) for g, link in self.sides.references.items()}
        theirs = self._cas_on(self.front.links)
        for cas_of in [*ours.values(), theirs]:
            for key in keys:
                cas_of(key)
        steps = {n: self._ask_memcached(chunk, ours, theirs) for n, chunk in chunks.items()}
        turns = {number: self._turn(phase, number, chunk) for number, chunk in steps.items()}
        self.talk.run(turns)
        for number, turn in turns.items():
            failure = self._judge(steps[number], turn)
            if failure:
                failure.phase, failure.connection = phase, number
                failure.steps, failure.turns = steps, turns
                return failure
        return None

    def _fence(self):
        self.fences += 1
        return fence_pair(self.fences)

    def _turn(self, phase, number, steps):
        """What the steps send. A fence is behind them, or in front of a step that closes: more than
        that must not be sent then, since the kernel drops answers that are still on their way."""
        closing = None
        cut = bool(steps) and steps[-1].request.cut
        if steps and any(closes for _, closes in steps[-1].candidates):
            closing = steps[-1]
        quits = closing is not None and closing.request.words()[:1] == [b"quit"]
        request, fence = self._fence()
        last = b""
        if closing and not quits:
            steps.insert(-1, Step(Request(request[:-2]), request, [(Answer(fence, b""), False)]))
            last = closing.text + self._fence()[0]
        data = b"".join(step.text for step in (steps[:-1] if last else steps))
        pieces = self.case.packets.split(phase, number, data)
        if not cut and not closing:
            pieces.append((request, 0.0))
        return Turn(pieces, fence, cut, last)

    def _ask_memcached(self, chunk, ours, theirs):
        """The chunk's steps: up to the request at which the connection ends."""
        steps = []
        for request in chunk:
            step = Step(request, request.text(theirs), [])
            steps.append(step)
            if not request.canonical:
                self.sides.odd_keys.update(request.key_words())
            own = exceptions.own_answer(request)
            if own is not None:
                step.candidates = [(Pattern(own.answer), own.closes)]
                if own.may_hide:
                    step.candidates.append((Pattern(b""), own.closes))
            else:
                step.candidates, differ = self._candidates(request, ours)
                if differ:
                    steps += self._repair(request)
            if request.cut or any(closes for _, closes in step.candidates):
                break
        return steps

    def _candidates(self, request, ours):
        """What may be answered; and whether the generations may have done different things."""
        data = {generation: request.text(cas_of) for generation, cas_of in ours.items()}
        found = self.sides.ask_references(data, request.cut)
        if request.key in generating.BRIDGED:
            found = {g: (exceptions.key_as_sent(request, answer), closed)
                     for g, (answer, closed) in found.items()}
        if request.cut:
            # The end is the client's, not the memcached's.
            found = {generation: (answer, False) for generation, (answer, _) in found.items()}
        key = request.key if request.canonical else b" ".join(request.key_words()[:1])
        answers = {g: (Answer(text, key), closes) for g, (text, closes) in found.items()}
        first = answers.pop(self.case.layout.generation)
        candidates = [first]
        differ = False
        for other in answers.values():
            refused = other[0].text.startswith(REFUSED)
            if not request.canonical or refused:
                candidates.append(other)
            both = refused and first[0].text.startswith(REFUSED)
            differ = not request.canonical and not both and not other[0].is_like(first[0])
        return candidates, differ

    def _repair(self, request):
        """Steps that make the stores equal again: what the request may have changed is deleted."""
        words = request.words()
        if words[:1] == [b"flush_all"]:
            lines = [b"flush_all noreply"]
        else:
            keys = request.key_words()[:REPAIR_WORDS_MAX]
            keys = [word for word in keys if len(word) <= framing.KEY_BYTES_MAX]
            keys += [key for key in map(framing.decoded, keys) if key and b" " not in key]
            lines = [b"delete %s noreply" % key for key in keys if not set(key) & set(b"\0\n\r")]
        steps = []
        for line in lines:
            text = line + b"\r\n"
            self.sides.ask_references({g: text for g in self.sides.references})
            steps.append(Step(Request(line), text, [(Answer(b"", b""), False)]))
        return steps

    def _judge(self, steps, turn):
        answer = bytes(turn.answer)
        ending = None if turn.cut else turn.fence
        candidates = [step.candidates for step in steps]
        wrong, pairs = follow(answer, turn.closed, candidates, ending)
        if wrong is None:
            for numbers, found in pairs:
                text = self.numbers.agree(numbers, found)
                if text:
                    return Failure(text)
            return None
        text = "the answer differs"
        if not turn.over:
            text = "no answer in time"
        elif wrong == len(steps):
            text = "the end differs: closed or open, or more than was asked for"
        return Failure(text, step=wrong, position=pairs)

    # --- what is stored in the end ---

    def _compare_stores(self):
        for key in self._keys():
            line = framing.by_name(b"mg", key, b" v f s t c")
            expected = self.reference.ask(line)[0]
            held = [text for text in self.front.ask_all(line) if text != framing.MISS]
            if len(held) > 1:
                return Failure(f"{key!r} is on several servers")
            there = held[0] if held else framing.MISS
            answer = Answer(expected, key)
            found = answer.match(there, 0)
            wrong = None
            if found is None or found[0] != len(there):
                wrong = "another answer"
            else:
                wrong = self.numbers.agree(answer.numbers, found[1])
            if wrong:
                what = f"stored for {key!r} in the end: {wrong}"
                both = f"memcached has {short(expected)}, the proxy's server {short(there)}"
                return Failure(f"{what}: {both}")
        return None


def short(data):
    """For people."""
    if len(data) <= SHOWN_BYTES_MAX:
        return repr(bytes(data))
    half = SHOWN_BYTES_MAX // 2
    return f"{bytes(data[:half])!r} ... {len(data)} bytes ... {bytes(data[-half:])!r}"
