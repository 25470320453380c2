# SPDX-License-Identifier: BSD-3-Clause
"""What can be typed. The list verbs, their usage and their help come from docs/verbs.md, which the
tests hold against the proxy's own table; a copy of it is installed beside this file. Below stand
the verbs of memcached as they are typed here, and a shorter line for list verbs whose first
sentence there is about bytes."""

import difflib
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENTS = [HERE / "verbs.md", HERE.parent.parent / "docs/verbs.md"]
BULLET = re.compile(r"- (`l[a-z]+ [^`]*`(?:, `l[a-z]+ [^`]*`)*)[,:]? (.*)", re.DOTALL)
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")

# The proxy makes FLAGS, BYTES and the block of the value: they are not typed.
PLAIN = """\
get KEY...: the values of plain items
gets KEY...: the same, with the CAS number of each
gat EXPTIME KEY...: the same as get, and gives the items a new time to live
gats EXPTIME KEY...: the same as gets, and gives the items a new time to live
set KEY VALUE [EXPTIME]: stores a plain item; EXPTIME in seconds, 0 for never
add KEY VALUE [EXPTIME]: stores it if the key has none
replace KEY VALUE [EXPTIME]: stores it if the key has one
append KEY VALUE: puts VALUE behind the one that is there
prepend KEY VALUE: puts VALUE before the one that is there
cas KEY VALUE UNIQUE [EXPTIME]: stores it if the CAS number is still UNIQUE (see gets)
delete KEY: removes a plain item
incr KEY DELTA: adds to a number
decr KEY DELTA: takes from a number, down to 0
touch KEY EXPTIME: gives a plain item a new time to live
mg KEY FLAG...: meta get: v the value, t its time to live, c the CAS number, f the flags, and others
ms KEY VALUE FLAG...: meta set
md KEY FLAG...: meta delete
ma KEY FLAG...: meta arithmetic
me KEY: what the server knows about an item
mn: answers MN when everything before it is answered
version: the version of the proxy
verbosity LEVEL: no effect
stats [NAME]: counters of the proxy; NAME is settings, backends, where or reset
flush_all: removes all items of all servers, lists included
quit: ends the prompt
slabs ...: not through a proxy
lru ...: not through a proxy
lru_crawler ...: not through a proxy
watch ...: not through a proxy
cache_memlimit ...: not through a proxy
shutdown: not through a proxy
refresh_certs: not through a proxy
extstore ...: not through a proxy
misbehave: not through a proxy
"""

OPERATORS = """\
reload: reads the proxy's configuration anew
log LEVEL: logs error, warn, info or debug, until the next reload
clients: the clients of the proxy, one in a line: who, since when, what they leave unread
kill ID: closes the client of that id, as `clients` shows it
drain SERVER: takes a server out of use: what it was asked is answered, all else is refused
undrain SERVER: uses it again
where KEY: which servers have the items of a key, the plain one and those of a list
trace KEY [N]: the next N requests that name the key, 20 by default, and what they cause
servers ACTION [WORD...]: gives a pool other servers while all is in use: plan, status, move, step, back, sweep
top [--once]: a live view: requests, times, servers, hottest keys, slow clients; q ends it
"""

SHORT = """\
ladd: adds items at the end; those that are there stay where they are
ldel: takes items off
lset: replaces the whole list in one step
laddt: adds items at the end, for SECONDS from now on
laddb: adds one item of any bytes
laddtb: adds one item of any bytes, for SECONDS from now on
ldelb: takes one item of any bytes off
laddq: ladd without an answer on success
ldelq: ldel without an answer on success
lsetq: lset without an answer on success
laddx: ladd that answers how many items are new
ldelx: ldel that answers how many items were there
lpop: takes COUNT items off the list, the oldest ones; with a minus in front the newest
lpopb: the same, one by one, of any bytes
ltx: changes several lists in one step, as in ltx ladd a x ; ldel b x; with lrequire, lrefuse
lmove: moves items from one list to another in one step
lpopto: moves the COUNT oldest items of SRC to DST; with a minus in front the newest
lpoptob: the same, one by one, of any bytes
lcreate: makes the list, unless it has items already
lget: all items, in the order in which they were added
ltouch: gives the list a new time to live, in seconds; 0 for never
lttl: in how many seconds the list, or this item of it, expires; -1 for never
llease: asks for the right to fill a missing list for some seconds; a number, the token for lput
lput: replaces the whole list, of any size, by items with the delimiter between them
lcopy: replaces DST by what SRC holds at one instant; answers how many items
lpurge: deletes the plain items that the list names, and takes these names off; answers how many
lputb: replaces the whole list, of any size, by items of any bytes
lgets: the same, with a version number
lgetb: all items, one by one, of any bytes
lhas: which of these items are in the list?
lttlb: in how many seconds does this item of any bytes leave the list?
lhasb: is this item of any bytes in the list?
llen: how many items
lrange: the items at positions FROM to TO; 0 is the first, -1 the last
lrevrange: the same from the other end; 0 is the newest
lgetx: all items of several lists, as they were at one instant
linter: the items that all lists have, in the order of the first one
lunion: the items that any of the lists has
ldiff: the items of the first list that no other one has
linterlen: how many items all lists have
lunionlen: how many items the lists have together
ldifflen: how many items of the first list no other one has
linterstore: replaces DST by the items that all other lists have; answers how many
lunionstore: replaces DST by the items that any of the other lists has; answers how many
ldiffstore: replaces DST by the items of the first list that no other one has; answers how many
lafter: the next COUNT items behind ITEM
lbefore: the COUNT items before ITEM, the nearest first
lrandom: COUNT different items at random
lrandomb: the same, one by one, of any bytes
ldrop: removes the list
lcompact: rewrites the list as one run, as proxies do by themselves
lstat: how the list is stored
lconvert: moves a list to the native layout
lmigrate: moves a list to its server of the pool to come, and says whether it is there
"""

REDIS = {
    "sadd": "ladd", "rpush": "ladd", "srem": "ldel",
    "lrem": "ldel", "zrem": "ldel", "smembers": "lget", "sismember": "lhas", "smismember": "lhas",
    "scard": "llen", "zcard": "llen", "zrange": "lrange", "zrevrange": "lrevrange",
    "zscore": "lhas", "del": "ldrop", "unlink": "ldrop", "expire": "ltouch", "persist": "ltouch",
    "exists": "llen", "lindex": "lrange", "sscan": "lafter", "zscan": "lafter", "info": "stats",
    "multi": "ltx", "exec": "ltx", "smove": "lmove", "rpoplpush": "lpopto",
    "spop": "lpop", "zpopmin": "lpop", "zpopmax": "lpop", "srandmember": "lrandom",
    "sinter": "linter", "sunion": "lunion", "sdiff": "ldiff", "sintercard": "linterlen",
    "sinterstore": "linterstore", "sunionstore": "lunionstore", "sdiffstore": "ldiffstore",
    "ttl": "lttl", "copy": "lcopy", "ping": "version", "flushall": "flush_all", "flushdb": "flush_all", "mget": "get",
}  # fmt: skip
# Of those that mean a plain item as well: its verb.
REDIS_PLAIN = {"ldrop": "delete", "ltouch": "touch"}
NO_EQUAL = {
    "lpush": "a list grows at its end only; ladd adds there, lrevrange shows the newest first",
    "linsert": "a list grows at its end only; lput replaces all of it",
    "zadd": "there are no scores; ladd adds at the end",
    "ltrim": "a list keeps its last items by itself where max_items says how many",
    "blpop": "no verb waits; lpop takes what is there",
    "brpop": "no verb waits; lpop takes what is there",
}
NO_KEYS = "memcached cannot list its keys; keep their names in a list"


class Verb:
    """usage: what follows the verb, as it is typed here. wire: the same as it is sent. text: all
    help there is; short: one line."""

    def __init__(self, name, wire, text, is_list, short=None):
        self.name, self.wire, self.text, self.is_list = name, wire.split(), text, is_list
        self.short = short or re.split(r"(?<=[a-z0-9)])\. ", text, maxsplit=1)[0].rstrip(".")
        self.usage = wire.split()
        self.has_block = is_list and "BYTES" in self.usage
        self.has_lines = name == "lputb"  # its block holds all items, which are typed as such
        self.has_changes = name == "ltx"  # its block holds a line for each change, typed as such
        if self.has_lines:
            self.has_block, self.usage = False, ["KEY", "[ITEM...]"]
        if self.has_changes:
            self.has_block, self.usage = False, ["CHANGE", "[; CHANGE]..."]
        if self.has_block:
            place = self.usage.index("BYTES")
            self.usage[place] = "VALUE" if "EXPTIME" in wire else "ITEM"
            self.usage = [word for word in self.usage if word != "[noreply]"]
        elif not is_list:
            self.has_block = "VALUE" in self.usage

    @property
    def line(self):
        return " ".join([self.name, *self.usage])

    @property
    def tells_keys(self):
        """Does the answer name each of several keys? That of linter is one list, named by the first."""
        return self.usage == ["KEY..."] and self.name not in ("linter", "lunion", "ldiff")

    @property
    def is_refused(self):
        """By a proxy, since it is about one server."""
        return self.short == "not through a proxy"

    @property
    def takes_items(self):
        return self.is_list and self.usage[-1:] in (["ITEM..."], ["[ITEM...]"])


def _document():
    for path in DOCUMENTS:
        if path.exists():
            return path.read_text(encoding="utf-8")
    return ""


def _plain_text(text):
    """Markdown without its marks, in one line."""
    return " ".join(LINK.sub(r"\1", text).replace("`", "").replace("**", "").split())


def list_verbs(document):
    """The bullets of the section `List verbs`: {name: Verb}."""
    section = re.search(r"^## List verbs\n(.*?)^## ", document, re.MULTILINE | re.DOTALL)
    found, short = {}, dict(line.split(": ", 1) for line in SHORT.splitlines())
    for part in re.split(r"\n(?=- )|\n\n", section.group(1) if section else ""):
        bullet = BULLET.fullmatch(part.strip())
        if bullet:
            for usage in re.findall(r"`([^`]*)`", bullet.group(1)):
                name, _, rest = usage.partition(" ")
                if name not in found:
                    found[name] = Verb(name, rest, _plain_text(bullet.group(2)), True, short.get(name))
    return found


def verbs_of(table):
    """A line for each: NAME WORDS: help."""
    found = {}
    for line in table.splitlines():
        usage, _, text = line.partition(": ")
        name, _, rest = usage.partition(" ")
        found[name] = Verb(name, rest, text, False)
    return found


class Table:
    def __init__(self):
        self.verbs = {**list_verbs(_document()), **verbs_of(PLAIN)}
        self.operators = verbs_of(OPERATORS)  # not for the port of clients: admin.py
        self.all = {**self.verbs, **self.operators}

    def find(self, name):
        return self.all.get(name)

    def names(self):
        return list(self.verbs)

    def block_form(self, verb):
        """The verb that takes one such item of any bytes: laddb for ladd; or None."""
        other = self.verbs.get(verb.name + "b")
        wire = [*verb.wire[:-1], "BYTES"]
        return other if other and other.wire[: len(wire)] == wire else None

    def suggestion(self, word):
        """A line about a word that is no verb, or None."""
        lower = word.lower()
        if lower in ("keys", "scan"):
            return NO_KEYS
        if lower in self.all:
            return f"verbs are lower-case: {lower}"
        if lower in NO_EQUAL:
            return f"{word.upper()} of Redis has no equal: {NO_EQUAL[lower]}"
        if lower in REDIS:
            verb = self.verbs[REDIS[lower]]
            plain = self.verbs.get(REDIS_PLAIN.get(verb.name))
            also = f"; of a plain item: {plain.line}" if plain else ""
            return f"what Redis calls {word.upper()} is here: {verb.line}{also}"
        near = difflib.get_close_matches(lower, self.verbs, n=1, cutoff=0.6)
        # Theirs are words of every day, as names of hosts are.
        near = difflib.get_close_matches(lower, self.operators, n=1, cutoff=0.75) or near
        return f"did you mean {near[0]}?" if near else None
