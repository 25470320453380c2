# SPDX-License-Identifier: BSD-3-Clause
"""How proxies hear of the next step of a change of servers: no two that are more than one step
apart are ever at work together, whoever sleeps, whatever server restarts.

Each server holds an item: which step the change has come to. A proxy

    works on a server only if it has read its item, asked for at most FRESH ticks ago
    works by the highest step that it has read anywhere
    writes an item that is missing only by a reading of another server that is as fresh
    writes an item anew that is behind what it knows

The tool writes the next step to every server, and looks at all of them in each of PAUSE ticks. If
each had that step every time, no proxy is behind any more. Else it writes it, and waits again. A
server may lose its item between two looks, and a proxy that is behind may write it: it does so by a
reading of before the pause, and what it has written is gone before it can be read for longer than a
tick. So the pause is twice FRESH, and more. A tick is gate_s, by each party's own clock: all that
counts is that these run equally fast.

Any proxy may fall asleep at any time, with answers under way. Servers may restart.
"""

from collections import deque, namedtuple

from rules import keeps
from search import TooLarge, Violation

SERVERS, PROXIES, FRESH, STEPS, RESTARTS = 2, 2, 1, 3, 1
PAUSE = 2 * FRESH + 2

# step: highest that it has read. ages: since it asked each server for what it has read; FRESH + 1:
# too long ago. question: None, or (server, age, answer on its way: the step of the item, or 0).
Knows = namedtuple("Knows", "step ages question")
# items: per server None or the step. tool: (step, ticks of the pause).
State = namedtuple("State", "items proxies tool restarts")


def first():
    proxy = Knows(1, (0,) * SERVERS, None)
    return State((1,) * SERVERS, (proxy,) * PROXIES, (1, 0), RESTARTS)


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
            question = (s, 0, item or 0)
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
    if said < step and item == said:  # a CAS of what it has read
        state = state._replace(items=put(state.items, s, step))
    return state


def heard_nothing(state, p, s, age, said):
    proxy = state.proxies[p]
    fresh = any(a <= FRESH for other, a in enumerate(proxy.ages) if other != s)
    if not fresh and keeps("who renews has read another server lately"):
        return state
    if state.items[s] is None:  # an ADD
        state = state._replace(items=put(state.items, s, proxy.step))
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
    pause = min(pause + 1, PAUSE)
    if behind(state) and keeps("the tool looks in every tick"):
        pause = 0
    yield "a tick", state._replace(proxies=proxies, tool=(step, pause))


def behind(state):
    """Servers where the step is missing."""
    return [s for s, item in enumerate(state.items) if item is None or item < state.tool[0]]


def restart(state):
    for s in range(SERVERS) if state.restarts else ():
        items = put(state.items, s, None)
        yield f"server {s} restarts", state._replace(items=items, restarts=state.restarts - 1)


def tool_acts(state):
    """It goes on to the next step, or writes where that is missing, and waits anew."""
    step, pause = state.tool
    if behind(state):
        s = behind(state)[0]
        pause = 0 if keeps("the tool looks in every tick") else pause
        yield f"the tool writes {s}", state._replace(items=put(state.items, s, step), tool=(step, pause))
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
    "who renews has read another server lately",
    "the tool waits",
    "the tool looks in every tick",
)
