# SPDX-License-Identifier: BSD-3-Clause
"""How proxies hear of the next step of a change of servers: no two that are more than one step
apart are ever at work together, whoever sleeps, whatever server restarts.

Each server holds an item (step, birth): which step the change has come to, and a number that is
drawn anew by who writes an item that a server has lost, and stays otherwise. A proxy

    works on a server only if it has read its item, asked for at most FRESH ticks ago
    works by the highest step that it has read anywhere
    writes an item that is missing only by a reading of another server that is as fresh
    writes an item anew that is behind what it knows

The tool writes the next step to every server, and waits for PAUSE ticks: if then each server has
that step, with the birth that it had when the pause began, no proxy is behind any more. Else it
waits again. A tick is gate_s, by each party's own clock: all that counts is that these run equally
fast.

Any proxy may fall asleep at any time, with answers under way. Servers may restart.
"""

from collections import deque, namedtuple

from rules import keeps
from search import TooLarge, Violation

SERVERS, PROXIES, FRESH, STEPS, RESTARTS = 2, 2, 1, 3, 1
PAUSE = FRESH + 1

# step: highest that it has read. ages: since it asked each server for what it has read; FRESH + 1:
# too long ago. question: None, or (server, age, answer on its way: the step of the item, or 0).
Knows = namedtuple("Knows", "step ages question")
# items: per server None or (step, whether it was born before the pause began).
# tool: (step, ticks of the pause).
State = namedtuple("State", "items proxies tool restarts")


def first():
    proxy = Knows(1, (0,) * SERVERS, None)
    return State(((1, True),) * SERVERS, (proxy,) * PROXIES, (1, 0), RESTARTS)


def put(values, at, value):
    return (*values[:at], value, *values[at + 1 :])


def works(proxy):
    """The step by which it may be at work, or None."""
    return proxy.step if any(age <= FRESH for age in proxy.ages) else None


def known(state, p, **what):
    return state._replace(proxies=put(state.proxies, p, state.proxies[p]._replace(**what)))


def asks(state):
    """A server may answer as late as the age of the question allows for, which counts from here."""
    for p, proxy in enumerate(state.proxies):
        for s, item in enumerate(state.items) if proxy.question is None else ():
            question = (s, 0, 0 if item is None else item[0])
            yield f"proxy {p} asks {s}", known(state, p, question=question)


def hears(state):
    for p, proxy in enumerate(state.proxies):
        if proxy.question is not None:
            s, age, said = proxy.question
            heard = heard_nothing if said == 0 else heard_step
            yield f"proxy {p} hears {s}", heard(known(state, p, question=None), p, s, age, said)


def heard_step(state, p, s, age, said):
    proxy, item = state.proxies[p], state.items[s]
    step = max(proxy.step, said)
    age = age if keeps("a reading is as old as its question") else 0
    state = known(state, p, step=step, ages=put(proxy.ages, s, min(age, proxy.ages[s])))
    if said < step and item is not None and item[0] == said:  # a CAS of what it has read
        state = state._replace(items=put(state.items, s, (step, item[1])))
    return state


def heard_nothing(state, p, s, age, said):
    proxy = state.proxies[p]
    fresh = any(a <= FRESH for other, a in enumerate(proxy.ages) if other != s)
    if not fresh and keeps("who renews has read another server lately"):
        return state
    if state.items[s] is None:  # an ADD
        born = not keeps("an item that was lost is born anew")
        state = state._replace(items=put(state.items, s, (proxy.step, born)))
    return state


def older(age):
    return min(age + 1, FRESH + 1)


def ticks(state):
    proxies = ()
    for proxy in state.proxies:
        question = proxy.question
        question = question and (question[0], older(question[1]), question[2])
        proxies += (Knows(proxy.step, tuple(older(age) for age in proxy.ages), question),)
    step, pause = state.tool
    yield "a tick", state._replace(proxies=proxies, tool=(step, min(pause + 1, PAUSE)))


def restart(state):
    for s in range(SERVERS) if state.restarts else ():
        items = put(state.items, s, None)
        yield f"server {s} restarts", state._replace(items=items, restarts=state.restarts - 1)


def tool_acts(state):
    """It goes on to the next step, or writes where that is missing, or waits again."""
    step, pause = state.tool
    behind = [s for s, item in enumerate(state.items) if item is None or item[0] < step]
    if behind:
        items = put(state.items, behind[0], (step, False))
        yield f"the tool writes {behind[0]}", state._replace(items=items)
    elif not all(born for _, born in state.items) and keeps("the tool looks for births"):
        items = tuple((item[0], True) for item in state.items)
        yield "the tool waits again", state._replace(items=items, tool=(step, 0))
    elif (pause >= PAUSE or not keeps("the tool waits")) and step < STEPS:
        yield "the tool steps", state._replace(tool=(step + 1, 0))


def wrong(state):
    """Two at work, more than one step apart."""
    steps = [works(proxy) for proxy in state.proxies]
    steps = [step for step in steps if step is not None]
    return bool(steps) and max(*steps, state.tool[0]) - min(steps) > 1


def search(restarts=RESTARTS, states_max=6_000_000):
    start = first()._replace(restarts=restarts)
    origin = {start: None}
    queue = deque(origin)
    while queue:
        state = queue.popleft()
        if wrong(state):
            story = []
            while origin[state] is not None:
                state, what = origin[state]
                story.append(what)
            raise Violation(story[::-1])
        for kind in (asks, hears, ticks, restart, tool_acts):
            for what, following in kind(state):
                # Proxies are alike.
                following = following._replace(proxies=tuple(sorted(following.proxies, key=repr)))
                if following not in origin:
                    origin[following] = (state, what)
                    queue.append(following)
        if len(origin) > states_max:
            raise TooLarge(f"more than {states_max} states")
    return len(origin)


RULES = (
    "a reading is as old as its question",
    "an item that was lost is born anew",
    "who renews has read another server lately",
    "the tool waits",
    "the tool looks for births",
)
