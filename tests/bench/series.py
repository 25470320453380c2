# SPDX-License-Identifier: BSD-3-Clause
"""What is drawn: cost and memory against the size of a list and the number of lists, throughput
against the number of clients, latency."""

import statistics

import rows
from measure import front, settle, together
from rows import must
from sides import cpu_s, stored_bytes

MEMBER = "user-%08n"
MEMBER_BYTES = 13
ANSWER_ITEMS_MAX = 4_000_000  # max_answer_bytes is 64 MB


def sizes(bench):
    found = [1_000, 10_000, 100_000, 1_000_000]
    return [*found, 10_000_000] if bench.args.long else found


def series(name, title, x, y, curves, **data):
    """curves: label -> [(x, y)]."""
    found = {"name": name, "kind": "series", "title": title, "x": x, "y": y, "curves": curves}
    return {**found, **data}


def used_s(side):
    return sum(cpu_s(process.pid) for process in side.servers.values())


# --- ladd while the list grows -----------------------------------------------------------------


def grow_one(bench, side, key, steps):
    """CPU per add between one size and the next, with everything that the adds have caused."""
    found, before = [], 0
    for size in steps:
        settle([side])
        used = used_s(side)
        request = [side.add(key, MEMBER)]
        bench.load.run(side, request, 8, 32, count=size - before, first=before)
        settle([side])
        found.append((size, (used_s(side) - used) / (size - before) * 1e6))
        must(side.count(key) == size, f"{side.name}: items of {key} are missing")
        before = size
    return found


def grow(bench):
    """Short lists are cheap to measure and say little: several of them, and their median."""
    steps = sizes(bench)
    curves = {}
    with bench.arena() as arena:
        ours, redis = arena.mclistd(arena.memcacheds(memory_mb=4096)), arena.redis()
        for label, side in (("mclistd + memcached, ladd", ours), ("Redis, SADD", redis)):
            by_size = {size: [] for size in steps}
            for turn in range(bench.args.repetitions):
                some = steps if turn == 0 else steps[:3]
                for size, cpu_us in grow_one(bench, side, f"grow{turn}", some):
                    by_size[size].append(cpu_us)
            curves[label] = [(size, statistics.median(found)) for size, found in by_size.items()]
    # The first step begins with nothing; "from 1,000 on" are the others.
    grown = [cpu_us for _, cpu_us in curves["mclistd + memcached, ladd"][1:]]
    factor = max(grown) / grown[0]
    return series(
        "grow",
        f"CPU per ladd while a list grows to {steps[-1]:,} items, compaction included",
        "items in the list",
        "CPU time per add, µs",
        curves,
        target="grows at most 2x",
        found=f"From {steps[1]:,} items on: {factor:.2f} times the first",
        met=factor <= 2,
    )


# --- reading lists of several sizes ------------------------------------------------------------


def read_cost(bench, requests_of, depth, connections, per_item):
    curves = {"mclistd + memcached": [], "Redis": []}
    for size in sizes(bench):
        if per_item and size > ANSWER_ITEMS_MAX:
            continue
        with bench.arena() as arena:
            pair = arena.mclistd(arena.memcacheds(memory_mb=4096)), arena.redis()
            for (label, curve), side in zip(curves.items(), pair):
                side.fill([("list", (f"user-{i:08}" for i in range(size)))])
                side.compact("list")
                must(side.count("list") == size, f"{side.name}: items are missing")
                settle([side])
                requests = requests_of(side, size)
                options = {"seconds": min(bench.args.seconds, 1), "members": 2 * size}
                result = bench.load.run(side, requests, connections, depth, **options)
                cpu_us = together(result)
                curve.append((size, cpu_us * 1000 / size if per_item else cpu_us))
    return curves


def has_by_size(bench):
    curves = read_cost(
        bench, lambda side, _size: [side.has("list", "user-%08m")], 32, 8, per_item=False
    )
    return series(
        "lhas-by-size",
        "CPU per lhas (SISMEMBER), half of the items there, 8 connections x 32",
        "items in the list",
        "CPU time per request, µs",
        curves,
        is_log=True,
    )


def get_by_size(bench):
    curves = read_cost(
        bench,
        lambda side, size: [side.items("list", size, MEMBER_BYTES)],
        1,
        4,
        per_item=True,
    )
    return series(
        "lget-by-size",
        "CPU per item of lget (SMEMBERS), 4 connections",
        "items in the list",
        "CPU time per item, ns",
        curves,
        is_log=True,
    )


# --- how many clients --------------------------------------------------------------------------

CLIENTS = [1, 4, 16, 64, 128, 256, 512]
TURNS = 3


def by_clients(bench, sides, requests_of, options):
    curves = {label: [] for label in sides}
    options = {**options, "seconds": min(bench.args.seconds, 1) / 2}
    for count in CLIENTS:
        found = {label: [] for label in sides}
        for _ in range(TURNS):
            for label, side in sides.items():
                settle(sides.values())
                result = bench.load.run(side, requests_of(side), count, 1, **options)
                found[label].append(result["ops_per_s"])
        for label, rates in found.items():
            curves[label].append((count, statistics.median(rates)))
    return curves


def get_by_clients(bench):
    with bench.arena() as arena:
        ours, nutcracker = rows.plain("nutcracker", 32)(arena, None)
        direct = arena.memcached(arena.started[0])
        sides = {"mclistd": ours, "nutcracker": nutcracker, "memcached alone": direct}
        # Behind nutcracker and mclistd a key is in the same memcached, as there is only one.
        options = {"keys": rows.KEYS}
        curves = by_clients(bench, sides, lambda side: [side.get("key:%04k", 32)], options)
    title = "get of 32 bytes, one at a time per client"
    return series("get-by-clients", title, "clients", "requests per second", curves)


def add_by_clients(bench):
    with bench.arena() as arena:
        ours, redis = rows.nothing_there(arena, None)
        sides = {"mclistd, ladd": ours, "Redis, SADD": redis}
        options = {"members": rows.MEMBERS}
        curves = by_clients(bench, sides, lambda side: [side.add("hot", rows.MEMBER)], options)
        for side in sides.values():
            rows.check_members(side)
    title = "adding to one list, one at a time per client"
    return series("ladd-by-clients", title, "clients", "requests per second", curves)


# --- how many threads --------------------------------------------------------------------------

THREADS = [1, 2, 4]
THREAD_CLIENTS = 8
CPU_OF_TWO_MAX = 1.1  # times what a request costs with one thread


def cost_by_threads(bench, sides, requests):
    """Each thread gets as many connections as the one has alone. What -> threads -> CPU times of
    the proxy per request, µs."""
    found = {what: {threads: [] for threads in sides} for what in requests}
    for _ in range(bench.args.repetitions):
        for what, request_of in requests.items():
            for threads, side in sides.items():
                settle(sides.values())
                options = {"seconds": bench.args.seconds, "keys": rows.KEYS}
                options["members"] = rows.MEMBERS
                clients = threads * THREAD_CLIENTS
                result = bench.load.run(side, [request_of(side)], clients, 32, **options)
                found[what][threads].append(front(result))
    return found


def by_threads(bench):
    members = [rows.member(i) for i in range(rows.MEMBERS)]
    requests = {
        "get, 32 bytes": lambda side: side.get("key:%04k", 32),
        f"lhas on a list of {rows.MEMBERS:,}": lambda side: side.has("hot", rows.MEMBER),
        "ladd to one list": lambda side: side.add("one", rows.MEMBER),
        "ladd to 10,000 lists": lambda side: side.add("list:%04k", rows.MEMBER),
    }
    with bench.arena() as arena:
        memcacheds = arena.memcacheds()
        sides = {n: arena.mclistd(memcacheds, f"{n} threads", threads=n) for n in THREADS}
        first = sides[1]
        first.store((b"key:%04d" % i, rows.value_of(32)) for i in range(rows.KEYS))
        first.fill([("hot", members)])
        first.compact("hot")
        rows.check_exact(first, "hot", members)
        found = cost_by_threads(bench, sides, requests)
    curves = {
        what: [(threads, statistics.median(cpu_us)) for threads, cpu_us in by_number.items()]
        for what, by_number in found.items()
    }
    ratios = [curve[1][1] / curve[0][1] for curve in curves.values()]
    return series(
        "by-threads",
        f"CPU of the proxy, {THREAD_CLIENTS} connections x 32 for each of its threads",
        "threads",
        "CPU time of the proxy per request, µs",
        curves,
        target=f"two threads take at most {CPU_OF_TWO_MAX} times what one takes",
        found=f"The dearest takes {max(ratios):.2f} times",
        met=max(ratios) <= CPU_OF_TWO_MAX,
    )


# --- how many lists ----------------------------------------------------------------------------

LIST_COUNTS = [100, 1_000, 10_000, 100_000]


def by_lists(bench):
    """Lists of 100 items; what is added is in them already, so they keep their size."""
    curves = {name: [] for name in ("ladd", "SADD", "lhas", "SISMEMBER")}
    for count in LIST_COUNTS:
        with bench.arena() as arena:
            both = rows.pair(arena)
            members = [rows.member(i) for i in range(rows.LIST_SHORT)]
            for side in both:
                side.fill((f"list:{i:06}", members) for i in range(count))
            found = {name: [] for name in curves}
            options = {"seconds": min(bench.args.seconds, 1), "keys": count}
            options["members"] = rows.LIST_SHORT
            for _ in range(bench.args.repetitions):
                for side, names in zip(both, (("ladd", "lhas"), ("SADD", "SISMEMBER"))):
                    for name, request in zip(names, (side.add, side.has)):
                        settle(both)
                        some = [request("list:%06k", rows.MEMBER)]
                        result = bench.load.run(side, some, 8, 32, **options)
                        found[name].append(together(result))
        for name, cpu_us in found.items():
            curves[name].append((count, statistics.median(cpu_us)))
    title = "CPU of a change and of a membership in lists of 100 items, 8 connections x 32"
    return series("by-lists", title, "lists", "CPU time per request, µs", curves)


# --- memory ------------------------------------------------------------------------------------

LIST_SIZES = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
MEMORY_ITEMS = 1_000_000


def memory(bench, key, lists, items):
    """Bytes for each of so many items, added one by one to lists drawn at random: stored in
    memcached, of its pages, and in Redis."""
    with bench.arena() as arena:
        memcached = arena.memcacheds(memory_mb=4096)
        ours, redis = arena.mclistd(memcached), arena.redis()
        stored, pages = stored_bytes(memcached[0])
        used = redis.used_memory()
        for side in (ours, redis):
            request = [side.add(key, MEMBER)]
            bench.load.run(side, request, 8, 32, count=items, first=0, keys=lists)
        settle([ours, redis])
        stored_then, pages_then = stored_bytes(memcached[0])
        used_then = redis.used_memory()
    return (stored_then - stored) / items, (pages_then - pages) / items, (used_then - used) / items


def memory_by_size(bench):
    names = ("stored in memcached", "pages of memcached", "Redis")
    curves = {name: [] for name in names}
    items = MEMORY_ITEMS // (100 if bench.args.smoke else 1)
    for size in (size for size in LIST_SIZES if size <= items):
        lists = items // size
        for name, found in zip(names, memory(bench, "list:%06k", lists, items)):
            curves[name].append((size, found))
    title = f"memory of an item of {MEMBER_BYTES} bytes, {items:,} of them, added one by one"
    return series("memory-by-size", title, "items in a list", "bytes for each item", curves)


# --- latency -----------------------------------------------------------------------------------

QUANTILES = {"p50": 2, "p90": 10, "p99": 100, "p99_9": 1_000, "p99_99": 10_000}


def latency(bench):
    curves = {}
    for row, what in ((rows.adding(8, 32), ""), (rows.adding(8, 32, count=100), " of 100 items")):
        with bench.arena() as arena:
            result = rows.run_row(row, arena, bench.load, bench.args.repetitions)
        for side, verb in (("ours", "ladd"), ("theirs", "SADD")):
            found = result[side]["latency_us"]
            curves[verb + what] = [(one, found[name] / 1000) for name, one in QUANTILES.items()]
    return series(
        "latency",
        "latency of adding to one list, 8 connections x 32",
        "one in so many requests takes longer (2: the median, 100: p99)",
        "ms",
        curves,
        is_log=True,
    )


ROWS = {
    "latency": latency,
    "by-lists": by_lists,
    "memory-by-size": memory_by_size,
    "grow": grow,
    "lhas-by-size": has_by_size,
    "lget-by-size": get_by_size,
    "get-by-clients": get_by_clients,
    "ladd-by-clients": add_by_clients,
    "by-threads": by_threads,
}
