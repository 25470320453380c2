# SPDX-License-Identifier: BSD-3-Clause
"""List requests: how they are drawn, sent and recorded, and how their answers are read.

A Request knows the operation that it is for the history: `laddb` and `laddq` are `ladd` there, and
so is `append` on a list with a bridge. One request may be several operations (lget of several
lists)."""

import dataclasses
import re
import typing

from cluster import BRIDGED, REFUSE, SPREAD


class Fault(Exception):
    """The daemon did what it must not do."""


@dataclasses.dataclass(frozen=True)
class List:
    key: str
    universe: int  # how many different items there are for it
    weight: int
    lasting: bool = False  # seldom emptied, so that it has runs

    @property
    def has_bridge(self):
        return self.key.startswith(BRIDGED)

    @property
    def refuse(self):
        return self.key.startswith(REFUSE)


# A few are hot, a few are long, every other lasts.
LISTS = (
    [List("c-hot", 40, 4), List("c-long", 200, 4, True)]
    + [List("r-hot", 40, 4), List("s-long", 200, 4, True)]
    + [List(f"c-{n}", 50, 2, n % 2 == 0) for n in range(10)]
    + [List(f"{REFUSE}{n}", 50, 2, n % 2 == 0) for n in range(10)]
    + [List(f"{SPREAD}{n}", 80, 2, n % 2 == 0) for n in range(8)]
)
WEIGHTS = [item.weight for item in LISTS]
BINARY_PART = 5  # every so many items hold bytes that only the binary verbs take


def item_name(number):
    """Every third looks like what lists are stored as."""
    if number % BINARY_PART == 0:
        return b"b\r\n%d +2:\x00=%%" % number
    if number % 3 == 0:
        return b"-%d:+1:a~!0:" % number
    return b"item-%d" % number


@dataclasses.dataclass(frozen=True)
class Request:
    form: str  # the verb that is sent
    verb: str  # the verb in the history; "" for requests that are not recorded
    lists: tuple
    words: tuple = ()  # items, or the positions of lrange and lrevrange
    body: bytes | None = None

    def text(self):
        parts = [self.form, *(item.key for item in self.lists)]
        line = b" ".join([*(part.encode() for part in parts), *self.words])
        if self.form in STORES:
            line = b"%s %s 0 0 %d\r\n%s" % (*(part.encode() for part in parts), len(self.body), self.body)
        elif self.body is not None:
            line = b" ".join([*(part.encode() for part in parts), b"%d" % len(self.body)])
            line += b"\r\n" + self.body
        return line + (b"\r\nmn\r\n" if self.form.endswith("q") else b"\r\n")

    def changes(self):
        return self.verb in ("ladd", "ldel", "lset", "laddx", "ldelx", "lcreate", "ldrop")


# form: (verb in the history, weight, items at most; 0: none)
FORMS = {
    "ladd": ("ladd", 24, 5),
    "laddb": ("ladd", 5, 1),
    "laddq": ("ladd", 4, 3),
    "ldel": ("ldel", 16, 5),
    "ldelb": ("ldel", 4, 1),
    "ldelq": ("ldel", 3, 3),
    "lset": ("lset", 2, 30),
    "lsetq": ("lset", 1, 5),
    "laddx": ("laddx", 6, 3),
    "ldelx": ("ldelx", 6, 3),
    "lcreate": ("lcreate", 3, 10),
    "lget": ("lget", 10, 0),
    "lgets": ("lget", 1, 0),
    "lgetb": ("lget", 3, 0),
    "lhas": ("lhas", 8, 4),
    "lhasb": ("lhas", 2, 1),
    "llen": ("llen", 6, 0),
    "lrange": ("lrange", 4, 0),
    "lrevrange": ("lrange", 1, 0),
    "ldrop": ("ldrop", 2, 0),
    "lcompact": ("lcompact", 1, 0),
    "lstat": ("", 1, 0),
}
FORM_WEIGHTS = [weight for _, weight, _ in FORMS.values()]


# What a client without list verbs sends in their place.
BRIDGES = {"ladd": "append", "ldel": "prepend", "lset": "set", "lcreate": "add", "lget": "get"}
BRIDGES.update({"lgets": "gets", "ldrop": "delete"})
STORES = ("append", "prepend", "set", "add")
GETS = ("lget", "lgets", "get", "gets")
BRIDGED_PART = 0.3  # of the requests on lists that have a bridge


def draw_request(rng):
    request = draw_list_request(rng)
    form = BRIDGES.get(request.form)
    bridged = all(item.has_bridge for item in request.lists) and rng.random() < BRIDGED_PART
    if form is None or not bridged:
        return request
    body = b",".join(request.words) if form in STORES else None
    return dataclasses.replace(request, form=form, body=body)


def draw_list_request(rng):
    form = rng.choices(list(FORMS), FORM_WEIGHTS)[0]
    verb, _, most = FORMS[form]
    lists = tuple(rng.choices(LISTS, WEIGHTS))
    if verb in ("lset", "ldrop") and lists[0].lasting and rng.random() < 0.9:
        form, verb, most = "ladd", "ladd", 5
    universe = lists[0].universe
    if form in ("lget", "lgetb") and rng.random() < 0.2:
        lists = tuple(rng.sample(LISTS, 3))
    if verb == "lrange":
        return Request(form, verb, lists, tuple(b"%d" % rng.randint(-20, 20) for _ in range(2)))
    if form in ("laddb", "ldelb", "lhasb"):
        item = item_name(rng.randrange(universe))
        return Request(form, verb, lists, (item,), item)
    names = map(item_name, rng.sample(range(universe), min(rng.randint(1, most or 1), universe)))
    items = tuple(name for name in names if b"\r" not in name) if most else ()
    if most and not items:
        items = (b"item-1",)
    return Request(form, verb, lists, items)


class Outcome(typing.NamedTuple):
    word: str  # as in the history
    answer: tuple = ()
    error: str = ""  # the text that was answered, without what differs from time to time


OUTCOME_WORDS = {b"NOT_STORED": "not_stored", b"NOT_FOUND": "missing"}


def error_text(line):
    """Without what differs from time to time."""
    return re.sub(r"[0-9.]+:\d+|\S+#\S+", "...", line.decode(errors="replace"))


def error_outcome(line, request):
    """Of a request that was answered by an error line."""
    if not line.startswith(b"SERVER_ERROR ") or b"holds no list" in line:
        raise Fault(f"{request.form} {request.lists[0].key}: {line!r}")
    text = error_text(line)
    if b"list damaged" in line:
        word = "damaged"
    elif b"outcome unknown" in line and request.changes():
        word = "unknown"
    else:
        word = "error"
    return Outcome(word, error=text)


def take_line_answer(conn, request):
    line = conn.line()
    if request.verb in ("laddx", "ldelx", "llen"):
        if line.isdigit():
            return Outcome("ok", (line,))
    elif request.form == "prepend":
        if line in (b"STORED", b"NOT_STORED"):
            return Outcome("ok" if line == b"STORED" else "missing")
    elif line == {"ldel": b"DELETED", "ldrop": b"DELETED", "lcompact": b"OK"}.get(
        request.verb, b"STORED"
    ):
        return Outcome("ok")
    if line in OUTCOME_WORDS:
        return Outcome(OUTCOME_WORDS[line])
    return error_outcome(line, request)


def take_quiet_answer(conn, request):
    outcome = Outcome("ok")
    while (line := conn.line()) != b"MN":
        if line in OUTCOME_WORDS:
            outcome = Outcome(OUTCOME_WORDS[line])
        else:
            outcome = error_outcome(line, request)
    return outcome


def take_block(conn, request):
    """The parts of an answer that ends in END: ({key: items}, error line or None)."""
    found = {}
    while (line := conn.line()) != b"END":
        fields = line.split(b" ")
        if fields[0] == b"VALUE":
            data = conn.data(int(fields[3]))
            items = [data] if request.form == "lhasb" else data.split(b",") if data else []
            found[fields[1].decode()] = items
        elif fields[0] == b"ITEM":
            found.setdefault(fields[1].decode(), []).append(conn.data(int(fields[2])))
        elif fields[0] == b"STAT":
            found.setdefault("", []).append(line)
        else:
            return found, line
    return found, None


def take_answer(conn, request):
    """Reads the whole answer; one Outcome per list of the request."""
    if request.form.endswith("q"):
        return [take_quiet_answer(conn, request)]
    if request.verb and request.verb not in ("lget", "lhas", "lrange"):
        return [take_line_answer(conn, request)]
    found, error = take_block(conn, request)
    outcomes = []
    for item in request.lists:
        if item.key in found and not error:
            outcomes.append(Outcome("ok", tuple(found[item.key])))
        elif error:
            outcome = error_outcome(error, request)
            others = outcome.word == "damaged" and b" %s#" % item.key.encode() not in error
            outcomes.append(outcome._replace(word="error") if others else outcome)
        else:
            outcomes.append(Outcome("missing" if request.form in GETS else "none"))
    return outcomes


def record(history, request, invoked_ns, completed_ns, process, outcomes):
    """outcomes: of take_answer, or None when there was no answer."""
    if not request.verb:
        return
    for number, item in enumerate(request.lists):
        if outcomes is None:
            if request.changes():
                history.add(item.refuse, invoked_ns, None, process, request.verb, item.key,
                            request.words, "unknown")
            continue
        outcome = outcomes[number]
        verb, words, word = request.verb, request.words, outcome.word
        answer = outcome.answer
        if request.form == "lrevrange":
            # As the lrange that counts from the other end.
            words = tuple(b"%d" % (-1 - int(position)) for position in reversed(words))
            answer = answer[::-1]
        history.add(item.refuse, invoked_ns, completed_ns, process, verb, item.key, words, word,
                    answer)
        if outcome.error:
            history.add_text(invoked_ns, process, verb, item.key, outcome.error)
