# SPDX-License-Identifier: BSD-3-Clause
"""Measurements other than one request repeated: reads after another proxy's flip, memory, several
proxies on one list, latency beside a merge."""

import contextlib
import itertools
import re
import resource
import socket
import time

import rows
import series
from harness import HOST
from measure import settle, spread, together
from rows import MEMBERS, member, must
from sides import SETUP_TIMEOUT_S, rss_bytes, stored_bytes

HARD_LIMIT_BYTES = 128 * 1024  # log_hard_limit_bytes, as it is by default


def facts(name, title, lines, target=None, met=None, **data):
    return {
        "name": name,
        "kind": "facts",
        "title": title,
        "lines": lines,
        "target": target,
        "met": met,
        **data,
    }


# --- a read that finds a new run ---------------------------------------------------------------

FLIP_ADDS = 100  # per command
FLIP_COMMANDS_MAX = 40


def flip_by(other, key, first):
    """Adds new members through the other proxy until it has made a run of the log. Returns the
    number of the next new member."""
    with other.conn() as conn:
        before = int(conn.stats()["list_flips"])
        for _ in range(FLIP_COMMANDS_MAX):
            some = [member(first + i) for i in range(FLIP_ADDS)]
            assert conn.cmd(f"ladd {key} {' '.join(some)}") == b"STORED"
            first += FLIP_ADDS
            settle([other])
            if int(conn.stats()["list_flips"]) > before:
                return first
    raise rows.Failure(f"no flip after {FLIP_COMMANDS_MAX * FLIP_ADDS} adds")


def lget_after_flip(bench):
    row = rows.list_row(
        "lget-after-flip",
        f"lget of {MEMBERS:,} items, the first after another proxy's flip (SMEMBERS)",
        1,
        1,
        None,
        None,
        cpu_target=0.2,
    )
    ours_results, peer_results = [], []
    with bench.arena() as arena:
        memcacheds = arena.memcacheds()
        ours, other, redis = arena.mclistd(memcacheds), arena.mclistd(memcacheds), arena.redis()
        for side in (ours, redis):
            rows.fill_long(side)
        count = MEMBERS
        for _ in range(2 * bench.args.repetitions):
            first, count = count, flip_by(other, "hot", count)
            redis.fill([("hot", [member(i) for i in range(first, count)])])
            for side, results in ((ours, ours_results), (redis, peer_results)):
                request = [side.items("hot", count, rows.MEMBER_BYTES)]
                settle([ours, other, redis])
                results.append(bench.load.run(side, request, 1, 1, count=1))
        members = [member(i) for i in range(count)]
        for side in (ours, redis):
            rows.check_exact(side, "hot", members)
    return rows.result_of(row, [ours_results, peer_results], together)


# --- memory ------------------------------------------------------------------------------------


def bytes_per_member(bench):
    members = [member(i) for i in range(MEMBERS)]
    with bench.arena() as arena:
        memcacheds = arena.memcacheds()
        ours, redis = arena.mclistd(memcacheds), arena.redis()
        before, pages_before = stored_bytes(memcacheds[0])
        redis_before = redis.used_memory()
        for side in (ours, redis):
            side.fill([("hot", members)])
            side.compact("hot")
            rows.check_exact(side, "hot", members)
        settle([ours, redis])
        after, pages_after = stored_bytes(memcacheds[0])
        set_bytes = (redis.used_memory() - redis_before) / MEMBERS
        redis.drop("hot")
        redis_before = redis.used_memory()
        redis.fill([("hot", members)], verb="RPUSH")
        list_bytes = (redis.used_memory() - redis_before) / MEMBERS
    own = (after - before) / MEMBERS
    pages = (pages_after - pages_before) / MEMBERS
    ratio = own / set_bytes
    lines = [
        ("items of 11 bytes in memcached, compacted", f"{own:.1f} bytes each"),
        ("pages memcached has taken meanwhile, which merges use again", f"{pages:.1f} bytes each"),
        ("Redis, set", f"{set_bytes:.1f} bytes each"),
        ("Redis, list", f"{list_bytes:.1f} bytes each"),
        ("ours to Redis' set", f"{ratio:.2f}"),
    ]
    title = f"memory per member of a list of {MEMBERS:,}"
    return facts(
        "bytes-per-member", title, lines, "<= 0.35 of a set", ratio <= 0.35, ratio=ratio
    )


def memory_of_lists(bench):
    """As clients fill lists: one item at a time, many lists at once."""
    smoke = 100 if bench.args.smoke else 1
    lines, met = [], True
    for what, key, lists, items, pages_max in (
        ("20,000 lists of 100 at random", "list:%05k", 20_000, 2_000_000, 33),
        ("one list of 5,000,000", "hot", 1, 5_000_000, 20),
        ("1,000,000 edges over 80,000 lists by Zipf's law", "list:%05z", 80_000, 1_000_000, 33),
        ("5,000,000 edges over 400,000 lists by it", "list:%06z", 400_000, 5_000_000, 33),
    ):
        stored, pages, redis = series.memory(bench, key, lists, items // smoke)
        lines.append((what, f"{stored:.1f} stored, {pages:.1f} of pages; Redis {redis:.1f}"))
        met = met and pages <= pages_max and pages <= 0.7 * redis
    title = f"bytes for each item of {series.MEMBER_BYTES} bytes, added one by one"
    target = "pages <= 33, of the one list <= 20, and <= 0.7 of Redis"
    return facts("memory", title, lines, target, met)


IDLE_CONNECTIONS = 10_000


def open_idle(side, count):
    """Connections that have asked once and are silent now."""
    request = side.get("key", 32)[0].encode()
    opened = []
    for _ in range(count):
        one = socket.create_connection((HOST, side.port), timeout=SETUP_TIMEOUT_S)
        opened.append(one)
        one.sendall(request)
        must(one.recv(100), f"{side.name}: closed")
    return opened


def idle(bench):
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500
    count = min(IDLE_CONNECTIONS, room)
    lines = []
    with bench.arena() as arena:
        memcacheds = arena.memcacheds()
        sides = [arena.mclistd(memcacheds), arena.nutcracker(memcacheds), arena.redis()]
        for side in sides:
            pid = next(iter(side.servers.values())).pid
            settle([side])
            before = rss_bytes(pid)
            opened = open_idle(side, count)
            settle([side])
            after = rss_bytes(pid)
            for one in opened:
                one.close()
            settle([side])
            each = (after - before) / count
            parts = f"{before / 1e6:.1f} MB before, {after / 1e6:.1f} MB with them"
            what = f"{side.name}, {count:,} idle connections"
            lines.append((what, f"{each:,.0f} bytes each ({parts})"))
    lines += cached_lists(bench)
    return facts("idle", "memory of connections and of cached lists, without the kernel's", lines)


CACHED_LISTS = 1000
CACHED_ITEMS = 2000


def cached_lists(bench):
    """Filled by one proxy, read by another, so that only reading shows in its memory."""
    members = [member(i) for i in range(CACHED_ITEMS)]
    keys = [f"list:{i:04}" for i in range(CACHED_LISTS)]
    with bench.arena() as arena:
        memcacheds = arena.memcacheds()
        writer, reader = arena.mclistd(memcacheds), arena.mclistd(memcacheds)
        writer.fill((key, members) for key in keys)
        for key in keys:
            writer.compact(key)
        pid = reader.servers["mclistd"].pid
        before = rss_bytes(pid)
        with reader.conn() as conn:
            for key in keys:
                must(len(conn.lget(key)) == CACHED_ITEMS, f"{key}: items are missing")
            stats = conn.stats()
        settle([reader])
        after = rss_bytes(pid)
    must(int(stats["cache_sublists"]) >= CACHED_LISTS, "not all of them are cached")
    cached = int(stats["cache_bytes"]) / CACHED_LISTS
    what = f"mclistd, {CACHED_LISTS:,} lists of {CACHED_ITEMS:,} items of 11 bytes read"
    grown = (after - before) / CACHED_LISTS
    return [
        (what + ", in its cache", f"{cached:,.0f} bytes per list"),
        (what + ", its memory has grown by", f"{grown:,.0f} bytes per list"),
    ]


# --- four proxies, one list --------------------------------------------------------------------


def head_bytes(conn, key):
    conn.send(f"mg {key}# s\r\n")
    line = conn.line()
    found = re.fullmatch(rb"HD s(\d+)", line)
    return int(found[1]) if found else 0


def watch_head(memcached, key, processes):
    """The largest head seen while the processes run."""
    largest = 0
    with memcached.conn() as conn:
        while any(process.poll() is None for process in processes):
            largest = max(largest, head_bytes(conn, key))
            time.sleep(0.02)
    return largest


def four_proxies(bench):
    seconds = 40 * bench.args.seconds
    counters = ("list_flips", "list_conflicts", "list_giveups", "list_log_full", "list_holdbacks")
    with bench.arena() as arena:
        memcacheds = arena.memcacheds(memory_mb=2048)
        proxies = [arena.mclistd(memcacheds, f"mclistd {i}", timeout_ms=1000) for i in range(4)]
        running = []
        for proxy in proxies:
            request = [proxy.add("hot", rows.MEMBER)]
            options = {"seconds": seconds, "warmup": 0, "members": 1_000_000}
            running.append(bench.load.start(proxy, request, 8, 32, **options))
        largest = watch_head(memcacheds[0], "hot", running)
        results = [bench.load.finish(p, process) for p, process in zip(proxies, running)]
        settle(proxies)
        counted = dict.fromkeys(counters, 0)
        for proxy in proxies:
            with proxy.conn() as conn:
                stats = conn.stats()
            counted = {name: counted[name] + int(stats[name]) for name in counters}
        contents = {tuple(proxy.members("hot")) for proxy in proxies}
        must(len(contents) == 1, "the proxies read different lists")
        rows.check_members(proxies[0], valid=1_000_000)
    rates = sorted(result["ops_per_s"] for result in results)
    slowest_us = max(result["latency_us"]["max"] for result in results)
    met = (
        counted["list_flips"] > 0
        and counted["list_log_full"] == 0
        and largest < HARD_LIMIT_BYTES
        and rates[0] > 0.5 * rates[-1]
    )
    lines = [
        ("ladd per second, slowest and fastest proxy", f"{rates[0]:,.0f} and {rates[-1]:,.0f}"),
        ("longest wait of a client", f"{slowest_us / 1000:.0f} ms"),
        (f"largest head seen, of {HARD_LIMIT_BYTES:,} bytes", f"{largest:,} bytes"),
        ("flips", f"{counted['list_flips']:,}, {counted['list_flips'] / seconds:.0f} a second"),
        ("conflicts", f"{counted['list_conflicts']:,}"),
        ("flips and merges given up", f"{counted['list_giveups']:,}"),
        ("appends held back", f"{counted['list_holdbacks']:,}"),
        ("changes refused", f"{counted['list_log_full']:,}"),
    ]
    title = f"four proxies write one list for {seconds:.0f} s, 8 connections x 32 each"
    title += ", items drawn from 1,000,000"
    target = "flips go through, the log stays below its limit, the slowest has half of the fastest"
    return facts("four-proxies", title, lines, target, met)


# --- others beside a merge ---------------------------------------------------------------------


def compact_until_ended(side, key, process, first):
    """Makes the list worth a merge and merges it, again and again. Returns how long each took."""
    durations = []
    with side.conn() as conn:
        for number in itertools.count(first):
            if process.poll() is not None:
                return durations
            assert conn.cmd(f"ladd {key} user-{number:08}") == b"STORED"
            start = time.monotonic()
            assert conn.cmd(f"lcompact {key}") == b"OK"
            durations.append(time.monotonic() - start)
    return durations


def merge(bench):
    size = 10_000_000 if bench.args.long else 1_000_000
    connections = 50
    with bench.arena() as arena:
        memcacheds = arena.memcacheds(memory_mb=4096)
        ours = arena.mclistd(memcacheds)
        ours.store((b"key:%04d" % i, rows.value_of(32)) for i in range(rows.KEYS))
        ours.fill([("big", (f"user-{i:08}" for i in range(size)))])
        ours.compact("big")
        must(ours.count("big") == size, "items are missing")
        requests = [ours.get("key:%04k", 32), ours.add("other:%04k", rows.MEMBER)]
        options = {"keys": rows.KEYS, "members": 1000, "mix": "connection"}
        settle([ours])
        alone = bench.load.run(ours, requests, connections, 1, **options)
        settle([ours])
        options["seconds"] = (10 if bench.args.long else 3) * bench.args.seconds
        process = bench.load.start(ours, requests, connections, 1, **options)
        with contextlib.closing(process.stdout):
            durations = compact_until_ended(ours, "big", process, size)
            beside = bench.load.finish(ours, process)
        must(ours.count("big") == size + len(durations), "items are missing after the merges")

    def latency(result):
        found = result["latency_us"]
        return ", ".join(
            f"{name} {found[key] / 1000:.2f} ms"
            for name, key in (("p50", "p50"), ("p99", "p99"), ("p99.9", "p99_9"), ("max", "max"))
        )

    took = spread(durations)
    lines = [
        ("without merges", f"{latency(alone)}; {alone['ops_per_s']:,.0f} ops/s"),
        ("beside merges", f"{latency(beside)}; {beside['ops_per_s']:,.0f} ops/s"),
        (
            "merges of the whole list in that time",
            f"{len(durations)}, {took['median']:.2f} s each "
            f"({took['min']:.2f} to {took['max']:.2f})",
        ),
    ]
    title = f"get and ladd of others, {connections} connections, while a list of {size:,} is merged"
    return facts("merge", title, lines, alone=alone, beside=beside)


ROWS = {
    "lget-after-flip": lget_after_flip,
    "bytes-per-member": bytes_per_member,
    "memory": memory_of_lists,
    "idle": idle,
    "four-proxies": four_proxies,
    "merge": merge,
}
