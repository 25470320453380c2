# SPDX-License-Identifier: BSD-3-Clause
"""The comparisons: the same requests to mclistd and to a peer, in turns."""

import collections
import dataclasses
import functools
import random
import re
import typing

from measure import Failure, compare, front, settle, summary, together

KEYS = 10_000  # of plain items
MEMBERS = 200_000  # of a long list
MEMBER = "user-%06m"  # 11 bytes
MEMBER_BYTES = 11
LISTS = 10_000
LISTS_ZIPF = 80_000  # a few busy lists, and many that are seldom used
LIST_SHORT = 100  # members of a short list
STALE = "max_stale_ms = 10000, view_bytes = 256m"
STALE_SECTIONS = {"proxy": {"view_bytes": "256m"}, "lists": {"max_stale_ms": 10_000}}


@dataclasses.dataclass
class Row:
    name: str
    title: str
    peer: str
    connections: int
    depth: int
    prepare: typing.Callable  # (arena, row) -> (ours, peer), filled and looked at
    requests: typing.Callable  # (side) -> [(request, expected reply)]
    ops_target: float | None = None
    cpu_target: float | None = None
    is_together: bool = False  # CPU of proxy and servers behind it, not of the proxy alone
    is_apart: bool = False  # memcached has another core than the proxy
    before: typing.Callable | None = None  # (side): before each measurement
    after: typing.Callable | None = None  # (side): looks at what came of it
    options: dict = dataclasses.field(default_factory=dict)
    warmup_s: float | None = None
    steps: tuple = (1, 1)  # requests of ours, and of the peer's, that do one operation


def member(number):
    return f"user-{number:06}"


def must(condition, what):
    if not condition:
        raise Failure(what)


# --- plain items -------------------------------------------------------------------------------


def value_of(size):
    return bytes(ord("a") + i % 26 for i in range(size))


def plain(peer, value_bytes, keys=KEYS, servers=1, memory_mb=1024):
    """Both sides before the same memcacheds; each stores through its own door, since each has its
    own idea of which server a key belongs to."""

    def prepare(arena, _row):
        memcacheds = arena.memcacheds(servers, memory_mb)
        ours = arena.mclistd(memcacheds)
        other = (
            arena.nutcracker(memcacheds) if peer == "nutcracker" else arena.memcached(memcacheds[0])
        )
        value = value_of(value_bytes)
        for side in (ours, other):
            side.store((b"key:%04d" % i, value) for i in range(keys))
            key = b"key:%04d" % random.randrange(keys)
            must(side.fetch(key) == value, f"{side.name}: {key} is not what was stored")
        return ours, other

    return prepare


def get_row(name, title, peer, value_bytes, connections, depth, keys=KEYS, **rest):
    servers = rest.pop("servers", 1)
    per_request = rest.pop("per_request", 1)
    return Row(
        name,
        title,
        peer,
        connections,
        depth,
        plain(peer, value_bytes, keys, servers),
        lambda side: [side.get("key:%04k", value_bytes, per_request)],
        options={"keys": keys},
        **rest,
    )


def check_stored(side):
    must(side.fetch(b"key:%04d" % 7) == value_of(32), f"{side.name}: what was set cannot be got")


def set_row(name, title, connections, depth, **rest):
    return Row(
        name,
        title,
        "nutcracker",
        connections,
        depth,
        plain("nutcracker", 32),
        lambda side: [side.set("key:%04k", 32)],
        options={"keys": KEYS, "value_bytes": 32},
        after=check_stored,
        **rest,
    )


def many_keys_row(name, where, servers):
    return get_row(
        name,
        f"get of 100 keys of 32 bytes, {where}",
        "nutcracker",
        32,
        8,
        1,
        servers=servers,
        per_request=100,
        ops_target=1.5,
        cpu_target=0.5,
    )


GET_32, GET_1K = "get, 32 bytes", "get, 1 KB"

PLAIN = [
    get_row("get-32-50x1", GET_32, "nutcracker", 32, 50, 1, ops_target=1.7, cpu_target=0.55),
    get_row("get-32-8x32", GET_32, "nutcracker", 32, 8, 32, ops_target=1.8, cpu_target=0.45),
    get_row("get-1k-8x32", GET_1K, "nutcracker", 1024, 8, 32, ops_target=1.8, cpu_target=0.45),
    get_row("get-32-direct", GET_32, "memcached", 32, 8, 32, is_together=True, ops_target=1.5),
    get_row("get-1k-direct", GET_1K, "memcached", 1024, 8, 32, is_together=True, ops_target=1.5),
    set_row("set-32-50x1", "set, 32 bytes", 50, 1, ops_target=1.5, cpu_target=0.6),
    set_row("set-32-8x32", "set, 32 bytes", 8, 32, ops_target=1.5, cpu_target=0.55),
    many_keys_row("get-100-keys", "2 servers", 2),
    many_keys_row("get-100-keys-1", "1 server", 1),
    get_row(
        "get-900k",
        "get, 900 KB",
        "nutcracker",
        900 * 1024,
        4,
        1,
        keys=16,
        ops_target=1.2,
        cpu_target=0.8,
    ),
]


# --- lists -------------------------------------------------------------------------------------


def check_members(side, key="hot", valid=MEMBERS):
    """No item twice, none that no client added, and the count fits."""
    found = side.members(key)
    must(len(set(found)) == len(found), f"{side.name}: {key} holds an item twice")
    pattern = re.compile(r"user-(\d{6})")
    numbers = [pattern.fullmatch(item) for item in found]
    good = all(match and int(match[1]) < valid for match in numbers)
    must(good, f"{side.name}: {key} holds items that no client added")
    must(side.count(key) == len(found), f"{side.name}: the count of {key} is wrong")


def check_exact(side, key, members):
    must(sorted(side.members(key)) == members, f"{side.name}: {key} is not what was added")
    must(side.count(key) == len(members), f"{side.name}: the count of {key} is wrong")


def fill_long(side):
    """All members in one list, stored as it is when nothing has changed for a while, and read once:
    what is cached is cached."""
    members = [member(i) for i in range(MEMBERS)]
    side.drop("hot")
    side.fill([("hot", members)])
    side.compact("hot")
    check_exact(side, "hot", members)


def empty_list(side):
    side.drop("hot")


def pair(arena, sections=None):
    """sections: of ours, with their settings."""
    return arena.mclistd(arena.memcacheds(), lists=sections), arena.redis()


def nothing_there(arena, _row):
    ours, redis = pair(arena)
    for side in (ours, redis):
        side.fill([("probe", ["b", "a", "b"])])
        check_exact(side, "probe", ["a", "b"])
    return ours, redis


def long_list(arena, _row, sections=None):
    sides = pair(arena, sections)
    for side in sides:
        fill_long(side)
    return sides


def short_lists(count, sections=None):
    def prepare(arena, _row):
        sides = pair(arena, sections)
        members = [member(i) for i in range(LIST_SHORT)]
        for side in sides:
            side.fill((f"list:{i:04}", members) for i in range(count))
            check_exact(side, f"list:{random.randrange(count):04}", members)
        return sides

    return prepare


def list_row(name, title, connections, depth, prepare, requests, **rest):
    options = {"keys": LISTS, "members": MEMBERS, **rest.pop("options", {})}
    rest = {"is_together": True, "options": options, **rest}
    return Row(name, title, "redis", connections, depth, prepare, requests, **rest)


def adding(connections, depth, count=1, **targets):
    return list_row(
        f"ladd-{connections}x{depth}" if count == 1 else f"ladd-{count}-items",
        f"ladd {f'of {count} items ' if count > 1 else ''}to one list (SADD), "
        f"items drawn from {MEMBERS:,}",
        connections,
        depth,
        nothing_there,
        lambda side: [side.add("hot", *[MEMBER] * count)],
        before=empty_list,
        after=check_members,
        **targets,
    )


def removing(connections, depth, **targets):
    return list_row(
        f"ldel-{connections}x{depth}",
        f"ldel from one list of {MEMBERS:,} (SREM)",
        connections,
        depth,
        long_list,
        lambda side: [side.remove("hot", MEMBER)],
        before=fill_long,
        after=check_members,
        **targets,
    )


def adding_by_zipf(connections, depth):
    return list_row(
        "ladd-80000-lists" + f"-{connections}x{depth}" * (depth > 32),
        f"ladd to {LISTS_ZIPF:,} lists drawn by Zipf's law (SADD), items drawn from 1,000 each",
        connections,
        depth,
        nothing_there,
        lambda side: [side.add("list:%05z", MEMBER)],
        options={"keys": LISTS_ZIPF, "members": 1000},
        after=lambda side: check_members(side, "list:00000", 1000),
    )


def check_some_list(side):
    check_members(side, f"list:{random.randrange(LISTS):04}", 1000)


def asking_short_lists(is_stale=False, **targets):
    return list_row(
        "lhas-10000-lists" + "-stale" * is_stale,
        "lhas on 10,000 lists of 100 (SISMEMBER), " + (STALE if is_stale else "half of them there"),
        8,
        32,
        short_lists(LISTS, STALE_SECTIONS if is_stale else None),
        lambda side: [side.has("list:%04k", MEMBER)],
        options={"members": 2 * LIST_SHORT},
        **targets,
    )


def length_of_long_list(is_stale=False, **targets):
    return list_row(
        "llen-200000" + "-stale" * is_stale,
        f"llen of a list of {MEMBERS:,} (SCARD)" + f", {STALE}" * is_stale,
        8,
        32,
        functools.partial(long_list, sections=STALE_SECTIONS if is_stale else None),
        lambda side: [side.length("hot", MEMBERS)],
        **targets,
    )


def mixed(mix, title, **targets):
    return list_row(
        f"ladd-lhas-{mix}",
        f"half ladd, half lhas on one list (SADD, SISMEMBER), {title}",
        8,
        32,
        long_list,
        lambda side: [side.add("hot", MEMBER), side.has("hot", MEMBER)],
        options={"mix": mix},
        after=check_members,
        **targets,
    )


LIST = [
    adding(50, 1, ops_target=1.1),
    adding(8, 32, ops_target=1.2),
    adding(8, 32, count=100),
    list_row(
        "ladd-10000-lists",
        "ladd to 10,000 lists (SADD), items drawn from 1,000 each",
        8,
        32,
        nothing_there,
        lambda side: [side.add("list:%04k", MEMBER)],
        options={"members": 1000},
        after=check_some_list,
        ops_target=0.8,
        cpu_target=1.6,
    ),
    adding_by_zipf(8, 32),
    adding_by_zipf(4, 2000),
    removing(50, 1, ops_target=1.1),
    removing(8, 32, ops_target=1.2),
    list_row(
        "lhas-200000",
        f"lhas on one list of {MEMBERS:,} (SISMEMBER), half of them there",
        8,
        32,
        long_list,
        lambda side: [side.has("hot", MEMBER)],
        options={"members": 2 * MEMBERS},
        ops_target=1.2,
    ),
    asking_short_lists(ops_target=0.7, cpu_target=1.8),
    mixed("connection", "each connection does one of them", ops_target=1.0, cpu_target=1.0),
    mixed("batch", "in turns on each connection", ops_target=1.0, cpu_target=1.0),
    length_of_long_list(ops_target=1.2),
    asking_short_lists(is_stale=True, ops_target=3.0, cpu_target=0.4),
    length_of_long_list(is_stale=True, ops_target=3.0),
]


# --- whole lists -------------------------------------------------------------------------------


def reading(name, title, prepare, count=MEMBERS, **rest):
    def requests(side):
        if side.name == "redis" and name.endswith("lrange"):
            return [side.range("hot", count, MEMBER_BYTES)]
        return [side.items("hot", count, MEMBER_BYTES)]

    return list_row(name, title, 4, 1, prepare, requests, warmup_s=0.5, **rest)


def with_range(arena, _row):
    ours, redis = pair(arena)
    fill_long(ours)
    redis.fill([("hot", [member(i) for i in range(MEMBERS)])], verb="RPUSH")
    with redis.conn() as conn, ours.conn() as own:
        in_order = conn.call("LRANGE", "hot", "0", "-1")
        must(in_order == own.lget("hot"), "LRANGE and lget differ")
    return ours, redis


# Entries of 15 bytes; the log is folded from 16 KB on.
LOG_MEMBERS = 1000


def with_log(arena, _row):
    sides = long_list(arena, _row)
    for side in sides:
        side.fill([("hot", [member(MEMBERS + i) for i in range(LOG_MEMBERS)])])
        must(side.count("hot") == MEMBERS + LOG_MEMBERS, f"{side.name}: items are missing")
    with sides[0].conn() as conn:
        log_bytes = int(conn.stats("lstat hot")["log_bytes"])
        must(14_000 < log_bytes <= 16_384, f"the log has {log_bytes} bytes")
    return sides


LGET = f"lget of {MEMBERS:,} items"

WHOLE = [
    reading("lget-smembers", f"{LGET}, compacted (SMEMBERS)", long_list, cpu_target=0.05),
    reading("lget-lrange", f"{LGET}, compacted (LRANGE)", with_range, cpu_target=0.16),
    reading(
        "lget-full-log",
        f"lget of {MEMBERS + LOG_MEMBERS:,} items, {LOG_MEMBERS:,} of them in the log (SMEMBERS)",
        with_log,
        count=MEMBERS + LOG_MEMBERS,
        cpu_target=0.2,
    ),
    list_row(
        "lget-100",
        "lget of 100 items, 1,000 lists (SMEMBERS)",
        8,
        32,
        short_lists(1000),
        lambda side: [side.items("list:%04k", LIST_SHORT, MEMBER_BYTES)],
        options={"keys": 1000},
        ops_target=1.3,
        cpu_target=0.7,
    ),
]

# What is aimed for where memcached has another core than the proxy.
APART = {"ladd-8x32": 1.6, "ldel-8x32": 1.6, "ladd-10000-lists": 1.2, "ladd-80000-lists-4x2000": 1.0}


def apart(row):
    title = f"{row.title}, memcached on another core"
    own = {"ops_target": APART[row.name], "cpu_target": None, "is_apart": True}
    return dataclasses.replace(row, name=f"apart-{row.name}", title=title, **own)


ROWS = PLAIN + LIST + WHOLE + [apart(row) for row in LIST if row.name in APART]


# --- running them ------------------------------------------------------------------------------


def per_operation(result, steps):
    """A result that counts operations of so many requests each; latency stays that of a request."""
    cpu_us = {name: used * steps for name, used in result["cpu_us"].items()}
    return {**result, "ops_per_s": result["ops_per_s"] / steps, "cpu_us": cpu_us}


def verdict(row, ratio):
    """Whether the targets are met; None where there are none."""
    checks = []
    if row.ops_target is not None:
        checks.append(ratio["ops"]["median"] >= row.ops_target)
    if row.cpu_target is not None:
        checks.append(ratio["cpu"]["median"] <= row.cpu_target)
    return all(checks) if checks else None


def run_row(row, arena, load, repetitions):
    sides = row.prepare(arena, row)
    cpu = together if row.is_together else front
    options = dict(row.options)
    if row.warmup_s is not None:
        options["warmup"] = row.warmup_s
    results = collections.defaultdict(list)
    for _ in range(repetitions):
        for side, steps in zip(sides, row.steps):
            if row.before:
                row.before(side)
            settle(sides)
            result = load.run(side, row.requests(side), row.connections, row.depth, **options)
            results[side].append(per_operation(result, steps))
    if row.after:
        for side in sides:
            row.after(side)
    return result_of(row, [results[side] for side in sides], cpu)


def result_of(row, results, cpu):
    ours, peers = results
    ratio = compare(ours, peers, cpu)
    return {
        "name": row.name,
        "kind": "comparison",
        "title": row.title,
        "peer": row.peer,
        "connections": row.connections,
        "depth": row.depth,
        "cpu_of": "proxy and memcached" if row.is_together else "proxy",
        "ours": summary(ours, cpu),
        "theirs": summary(peers, cpu),
        "ratio": ratio,
        "ops_target": row.ops_target,
        "cpu_target": row.cpu_target,
        "met": verdict(row, ratio),
    }
