# SPDX-License-Identifier: BSD-3-Clause
"""The search of the transactions (search.py there), of one list on two servers."""

import itertools

import moves
from judge import has_order
from moves import N, O, RUNS, Lose, Over, Put
from parties import Append, Cas, Get
from places import Copy, Head, Mark, appended, content, is_head, that_counts
from rules import applied
from search import Search


NAMES = ("O", "N", "O.a", "N.a", "O.b", "N.b")


def is_write(request):
    return isinstance(request, (Append, Cas, Put))


class Servers(Search):
    """Servers that know marks and copies from heads as little as memcached does; every party may
    die before any write, which arrives at any later time, or never."""

    def served(self, heads, request):
        item = heads[request.number]
        if isinstance(request, Get):
            return heads, item
        if isinstance(request, Append):
            if item is None and not request.creates:
                return heads, False
            new = appended(item or ((), ()), request.entries)
        elif isinstance(request, Put):
            new = request.new
        elif isinstance(request, Lose):
            new = None
        elif isinstance(request, Over):
            head = item.head if isinstance(item, Copy) else item
            new = None if isinstance(head, Head) and "t" in head.fields else item
        elif isinstance(request, Cas) and item == request.old:
            new = request.new
        else:
            return heads, False
        return (*heads[: request.number], new, *heads[request.number + 1 :]), True

    def crashes(self, state, party, place, begun):
        for _, request in self.waiting(place) if state.crashes else ():
            if is_write(request):
                places = (*state.places[:party], None, *state.places[party + 1 :])
                late = tuple(sorted((*state.late, request), key=repr))
                after = begun._replace(places=places, late=late, crashes=state.crashes - 1)
                yield after, (party, request, "is under way as it dies")

    def story(self, state, origin):
        lines = [f"in the end: {shown(state.heads)}"]
        while origin[state] is not None:
            previous, (party, request, what) = origin[state]
            line = f"{'late' if party is None else party}: {told(request)} {what}".rstrip()
            for number, (old, new) in enumerate(zip(previous.history, state.history)):
                if new is not None and new[1] is not None and (old is None or old[1] is None):
                    line += f", operation {number} answered {new[1]}"
            if state.heads != previous.heads:
                line += f"\n        {shown(state.heads)}"
            lines.append(line)
            state = previous
        return lines[::-1]


class Moving(Servers):
    """One list, alone. The judge: one order of all operations explains every answer, and what is
    stored at the end."""

    silent = (moves.sweep, moves.clean, moves.unmark, moves.forget)

    def __init__(self, world, heads, programs, lossy=False, crashes=1, **options):
        self.lossy, self.heads = lossy, heads
        super().__init__(world, (), programs, crashes=crashes, **options)
        self.start = self.truth(heads)
        self.cap = any(isinstance(h, Head) and "#" in h.fields for h in heads)

    def stored(self, contents):
        return self.heads

    def truth(self, heads):
        head = that_counts(heads[O], heads[N])
        side = O if is_head(heads[O]) else N
        return content(head, {name: heads[places[side]] for name, places in RUNS.items()})

    def is_wrong(self, state):
        if not self.lossy and is_head(state.heads[O]) and is_head(state.heads[N]):
            return True
        return super().is_wrong(state)

    def is_right(self, state):
        key = (state.history, self.truth(state.heads))
        if key not in self.judged:
            self.judged[key] = key[1] is not None and self.explains(*key)
        return self.judged[key]

    def explains(self, history, end):
        began = {number: entry for number, entry in enumerate(history) if entry is not None}
        before = {number: entry[0] for number, entry in began.items()}
        maybe = [n for n in began if began[n][1] is None]
        sure = [n for n in began if began[n][1] not in (None, "busy", "refused")]
        return any(
            has_order(
                sure + list(extra),
                before,
                lambda n, items: self.after(self.operations[n], began[n][1], items),
                self.start,
                lambda items: items == end,
            )
            for count in range(len(maybe) + 1)
            for extra in itertools.combinations(maybe, count)
        )

    def after(self, operation, result, items):
        """The content behind the operation, or None when it cannot have answered that."""
        program, arguments = operation
        if program in (moves.lose, moves.expire):
            return ()
        kind, argument = (*arguments[1:], None)[:2]
        if kind == "read":
            return items if items == result else None
        if kind == "drop":
            return ()
        if kind == "lease":
            new = (("?", argument),) if items == () else items
            return new if result in (None, "leased" if items == () else "no") else None
        if kind == "fill":
            token, item = argument
            met = ("?", token) in items
            if result not in (None, "ok" if met else "no"):
                return None
            return (item, *(i for i in items if i != ("?", token))) if met else items
        if kind not in ("change", "exact"):
            return items
        new = applied(items, (argument,))
        if kind == "exact" and result is not None and (set(new) != set(items)) != (result == 1):
            return None
        return new[-1:] if self.cap else new


def shown(heads):
    held = (f"{name}: {told(item)}" for name, item in zip(NAMES, heads) if item is not None)
    return "   ".join(held) or "nothing"


def told(thing):
    """Short, for people."""
    if isinstance(thing, (Get, Append, Cas, Put, Lose, Over)):
        what = thing.entries if isinstance(thing, Append) else getattr(thing, "new", "")
        return f"{type(thing).__name__.lower()} {NAMES[thing.number]} {told(what)}".rstrip()
    if isinstance(thing, Head):
        return "^1" + thing.fields + "".join("".join(map(str, entry)) for entry in thing.log)
    if isinstance(thing, Mark):
        return f"^>{thing.token}{thing.tail or ''}"
    if isinstance(thing, Copy):
        return f"copy {thing.token} of {told(thing.head)}"
    return str(thing)
