# SPDX-License-Identifier: BSD-3-Clause
"""A bucket beside a pool of memcacheds: what the proxy itself takes for the same requests. Behind
the bucket is a program as fast as memcached (tests/cluster/documents.c), which says nothing about a
real cluster's nodes."""

from rows import KEYS, LIST_SHORT, MEMBER, MEMBER_BYTES, Row, check_exact, check_members
from rows import check_stored, member, value_of

LISTS = 1000
VALUE_BYTES = 32
CPU_TARGET = 1.25
SHAPES = ((50, 1), (8, 32))


def both(arena):
    settings = {"lists": {}}
    return arena.bucket(settings), arena.mclistd(arena.memcacheds(), lists=settings)


def plain(arena, _row):
    sides = both(arena)
    for side in sides:
        side.store((b"key:%04d" % i, value_of(VALUE_BYTES)) for i in range(KEYS))
        check_stored(side)
    return sides


def lists(arena, _row):
    sides = both(arena)
    members = [member(i) for i in range(LIST_SHORT)]
    for side in sides:
        side.fill((f"list:{i:04}", members) for i in range(LISTS))
        check_exact(side, "list:0007", members)
    return sides


def check_list(side):
    check_members(side, "list:0007", 2 * LIST_SHORT)


def rows_of(name, title, prepare, requests, **rest):
    return [
        Row(
            f"bucket-{name}-{connections}x{depth}",
            title,
            "pool",
            connections,
            depth,
            prepare,
            requests,
            cpu_target=CPU_TARGET,
            **rest,
        )
        for connections, depth in SHAPES
    ]


def plain_rows(name, request, **rest):
    options = {"keys": KEYS, "value_bytes": VALUE_BYTES}
    title = f"{name}, {VALUE_BYTES} bytes"
    return rows_of(name, title, plain, lambda side: [request(side)], options=options, **rest)


def list_rows(name, title, request, **rest):
    options = {"keys": LISTS, "members": 2 * LIST_SHORT}
    return rows_of(name, title, lists, lambda side: [request(side)], options=options, **rest)


def changing_rows(name, verb_and_lists, request):
    title = f"{verb_and_lists}, items drawn from {2 * LIST_SHORT}"
    return list_rows(name, title, request, after=check_list)


ROWS = [
    *plain_rows("get", lambda side: side.get("key:%04k", VALUE_BYTES)),
    *plain_rows("set", lambda side: side.set("key:%04k", VALUE_BYTES), after=check_stored),
    *changing_rows(
        "ladd", f"ladd to {LISTS:,} lists", lambda side: side.add("list:%04k", MEMBER)
    ),
    *changing_rows("ladd-hot", "ladd to one list", lambda side: side.add("list:0007", MEMBER)),
    *changing_rows(
        "laddx",
        f"laddx to {LISTS:,} lists",
        lambda side: (f"laddx list:%04k {MEMBER}\r\n", "number 0 1"),
    ),
    *list_rows(
        "lhas",
        f"lhas on {LISTS:,} lists of {LIST_SHORT}, half of them there",
        lambda side: side.has("list:%04k", MEMBER),
    ),
    *list_rows(
        "lget",
        f"lget of {LIST_SHORT} items, {LISTS:,} lists",
        lambda side: side.items("list:%04k", LIST_SHORT, MEMBER_BYTES),
    ),
]
