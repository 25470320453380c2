# SPDX-License-Identifier: BSD-3-Clause
"""Who takes part: clients and proxies, each a program of requests to servers.

A program is a chain of phases. A phase is a generator: it yields requests and is sent their
replies, and returns the next phase with its arguments, or nothing at the end of the operation. What
it does not hand on is forgotten, which keeps the number of states small.

    head = yield Get(3)                       one request
    a, b = yield All((x,), (y, z))            chains of requests under way side by side
    yield Answer(result)                      the client has its answer

Each request is one step of its server. `decided` holds what is known of transactions, as sorted
pairs (name, 'c' or 'a').
"""

from collections import namedtuple

from rules import find, keeps

Get = namedtuple("Get", "number")
Append = namedtuple("Append", "number entries creates may_lose", defaults=(False, False))
Cas = namedtuple("Cas", "number old new")  # of a head as it was read; new None: removes it
Flip = namedtuple("Flip", "number old new")  # a CAS that may be repeated over a longer log
Lose = namedtuple("Lose", "number")  # no request: the server evicts the head
Answer = namedtuple("Answer", "result")
LOST = "lost"  # the reply to a request whose connection broke, or that was not waited for


class All(tuple):
    """Chains of requests; the reply is a list with the last reply of each chain."""

    def __new__(cls, *chains):
        return super().__new__(cls, tuple(tuple(chain) for chain in chains))


# --- what readers, writers of one list and compactors do ---


def write(rules, number, entries):
    yield Append(number, entries, creates=True)
    yield Answer("ok")


def settle(rules, number, names, decided, helps, back):
    """Finds out what became of transactions that list `number` leaves open: reads their primaries,
    aborts those that are undecided. `back`: the phase that goes on, with what is known."""
    name = names[0]
    primary = rules.transactions[name].primary
    verdict = rules.state(name, primary, (yield Get(primary)))
    if verdict == "open" and keeps("push the undecided"):
        yield Append(primary, (("&", name, "a"),))
        return settle, (number, names, decided, helps, back)
    verdict = "c" if verdict == "c" else "a"
    decided = tuple(sorted((*decided, (name, verdict))))
    if helps and primary != number:
        yield Append(number, (("&", name, verdict),))
    if names[1:]:
        return settle, (number, names[1:], decided, helps, back)
    phase, arguments = back
    return phase, (*arguments, decided)


def read(rules, number, met=None, decided=()):
    """met: the head in which it met what was open."""
    head = yield Get(number)
    if met is not None and not keeps("answer from a fresh head"):
        head = met[0]
    names = rules.open(number, head, dict(decided))
    if names:
        return settle, (number, names, decided, True, (read, (number, (head,))))
    yield Answer(rules.content(number, head, dict(decided)))


def exact(rules, number, entry, tries=1, decided=()):
    head = yield Get(number)
    names = rules.open(number, head, dict(decided))
    if names and keeps("exact changes settle"):
        return settle, (number, names, decided, True, (exact, (number, entry, tries)))
    if (entry[1] in rules.content(number, head, dict(decided))) == (entry[0] == "+"):
        yield Answer(0)
    elif (yield Cas(number, head, with_entries(head, (entry,)))):
        yield Answer(1)
    elif tries > 0:
        return exact, (number, entry, tries - 1)
    else:
        yield Answer("busy")


def flip(rules, number, settles, decided=()):
    head = yield Get(number)
    if head is None:
        return
    names = rules.open(number, head, dict(decided))
    if names and settles:
        return settle, (number, names, decided, True, (flip, (number, settles)))
    yield Flip(number, head, rules.folded(number, head))


def drop(rules, number):
    yield Append(number, (("!",),))
    return remove, (number,)


def remove(rules, number, decided=()):
    head = yield Get(number)
    if head is not None:
        careful = keeps("no removal of what is open or not done")
        names = rules.open(number, head, dict(decided))
        if names and careful:
            return settle, (number, names, decided, True, (remove, (number,)))
        kept = rules.folded(number, head)[1]
        if not rules.content(number, head, dict(decided)) and not (kept and careful):
            yield Cas(number, head, None)
    yield Answer("ok")


def clean_up(rules, number):
    """What a dead coordinator has left in its primary is finished."""
    head = yield Get(number)
    names = [e[1] for e in head[1] if e[0] == "?"] if head is not None else []
    names = [n for n in names if rules.is_unfinished(n, number, head)]
    if names:
        return finish_for, (names[0], rules.transactions[names[0]].others)


def finish_for(rules, name, todo):
    if not todo:
        yield Append(rules.transactions[name].primary, (("&", name, "d"),))
        return
    if rules.state(name, todo[0], (yield Get(todo[0]))) == "open" and keeps("done behind all"):
        yield Append(todo[0], (("&", name, "c"),))
    return finish_for, (name, todo[1:])


def evict(rules, number):
    yield Lose(number)
    yield Answer("ok")


# --- the coordinator ---


def intent(t, number, **options):
    return Append(number, (("?", t.name),), creates=True, **options)


def transact(rules, name):
    """Rule 1: the primary first."""
    t = rules.transactions[name]
    if not keeps("the primary first"):
        yield All(*((intent(t, number),) for number in t.lists))
        return validate, (name, ())
    if not keeps("conditions behind the intents"):
        for number in t.lists:
            items = rules.content(number, (yield Get(number)), {})
            if not all((i in items) == wanted for i, wanted in t.conditions.get(number, ())):
                yield Answer("fail")
                return
    yield intent(t, t.primary)
    return first, (name,)


def first(rules, name, decided=()):
    t = rules.transactions[name]
    head = yield Get(t.primary)
    if rules.state(name, t.primary, head) != "open":
        return abort, (name, "busy")
    names = waits_for(rules, name, t.primary, head, decided)
    if names:
        return settle, (t.primary, names, decided, False, (first, (name,)))
    if keeps("conditions behind the intents"):
        if not rules.holds(name, t.primary, head, dict(decided)):
            return abort, (name, "fail")
    return announce, (name, decided)


def announce(rules, name, decided):
    """Rule 2: the intents of all other lists. With three lists and more, each is read behind its
    intent: what stands in front is decided before any is validated."""
    t = rules.transactions[name]
    sent = [intent(t, number, may_lose=True) for number in t.others]
    looks = len(t.others) > 1 and keeps("two rounds of reads")
    if not looks or not keeps("validate behind all intents"):
        replies = yield All(*((request,) for request in sent))
        return abort_if_lost(name, replies, (validate, (name, decided)))
    replies = yield All(*((request, Get(request.number)) for request in sent))
    if LOST in replies:
        return abort, (name, "busy")
    names = set()
    for number, head in zip(t.others, replies):
        if rules.state(name, number, head) != "open":
            return abort, (name, "busy")
        names |= set(waits_for(rules, name, number, head, decided))
    if names:
        back = (validate, (name,))
        return settle, (t.primary, tuple(sorted(names)), decided, False, back)
    return validate, (name, decided)


def abort_if_lost(name, replies, then):
    return (abort, (name, "busy")) if LOST in replies else then


def validate(rules, name, decided):
    """Rule 3: all other lists are read again, once all intents are in."""
    t = rules.transactions[name]
    if not keeps("validate behind all intents"):
        return commit, (name,)
    heads = yield All(*((Get(number),) for number in t.others))
    names = set()
    for number, head in zip(t.others, heads):
        if rules.state(name, number, head) != "open":
            if keeps("the own intent is there"):
                return abort, (name, "busy")
            continue
        behind = head[1][find(name, head[1]) + 1 :]
        if keeps("no conflict behind") and any(rules.hurts(e, name, number) for e in behind):
            return abort, (name, "busy")
        front = waits_for(rules, name, number, head, decided)
        names |= set(front)
        if not front and keeps("conditions behind the intents"):
            if not rules.holds(name, number, head, dict(decided)):
                return abort, (name, "fail")
    if names:
        back = (validate, (name,)) if keeps("read again after waiting") else (ignore, (name,))
        return settle, (t.primary, tuple(sorted(names)), decided, False, back)
    return commit, (name,)


def ignore(rules, name, decided):
    return commit, (name,)
    yield


def waits_for(rules, name, number, head, decided):
    settles = keeps("settle what is in front")
    return rules.in_front(name, number, head, dict(decided)) if settles else ()


def commit(rules, name):
    """Rule 4. When the answer is lost, an abort behind it makes the outcome definite."""
    t = rules.transactions[name]
    reply = yield Append(t.primary, (("&", name, "c"),), may_lose=True)
    if reply == LOST:
        yield Append(t.primary, (("&", name, "a"),))
    return decide, (name,)


def decide(rules, name):
    t = rules.transactions[name]
    verdict = rules.state(name, t.primary, (yield Get(t.primary)))
    if not keeps("look at the decision"):
        verdict = "c"
    if verdict == "c":
        if not keeps("answer behind all"):
            yield Answer("ok")
        return publish, (name,)
    yield Answer("unknown" if verdict is None else "busy")


def publish(rules, name):
    """Rules 5 and 6: the decision goes to all lists, then the client is answered."""
    t = rules.transactions[name]
    verdict = {number: Append(number, (("&", name, "c"),)) for number in t.others}
    done = Append(t.primary, (("&", name, "d"),))
    if not keeps("done behind all"):
        yield done
    if not (keeps("answer behind all") and keeps("look whether the commit came first")):
        yield All(*((request,) for request in verdict.values()))
        if keeps("answer behind all"):
            yield Answer("ok")
    else:
        heads = yield All(*((request, Get(number)) for number, request in verdict.items()))
        said = [rules.state(name, number, head) for number, head in zip(t.others, heads)]
        known = "a" not in said
        if known and None in said:
            known = rules.state(name, t.primary, (yield Get(t.primary))) == "c"
        yield Answer("ok" if known else "unknown")
        if not known:
            return
    yield done


def abort(rules, name, result):
    yield Append(rules.transactions[name].primary, (("&", name, "a"),))
    yield Answer(result)


def with_entries(head, entries):
    items, log = head if head is not None else ((), ())
    return (items, log + entries)
