# SPDX-License-Identifier: BSD-3-Clause
"""The comparisons of docs/collections.md: pages, capped lists, items that expire, queues, samples,
lists compared, tags; each beside what applications do with Redis."""

import dataclasses
import time

import rows
import special
from measure import settle, together
from rows import MEMBER, MEMBER_BYTES, Row, check_exact, member, must
from sides import cpu_s, resp_template, template_bytes

PAGE = 10  # items
VISITORS_MAX = 30
VISITS = {"lists visit:": {"max_items": VISITORS_MAX, "order": "recent"}}
ONLINE_S = 60


@dataclasses.dataclass(frozen=True)
class Sizes:
    pages: int = 1_000_000  # items of the list that is read page by page, a power of ten
    lists: int = rows.LISTS  # capped ones
    members: int = rows.MEMBERS  # of a long list
    large: int = 300_000  # of the lists that are compared
    small: int = 32_000
    queue: int = 50_000
    tagged: int = 10_000


LONG = Sizes(pages=10_000_000)
SMOKE = Sizes(10_000, 100, 2_000, 3_000, 320, 500, 100)


def sizes_of(args):
    return SMOKE if args.smoke else LONG if args.long else Sizes()


def said(side, ours, theirs):
    """The templates of a side, from (words, expected reply) of each."""
    if side.name == "redis":
        return [(resp_template(*words.split()), expect) for words, expect in theirs]
    return [(f"{words}\r\n", expect) for words, expect in ours]


def values(count, item_bytes=MEMBER_BYTES):
    joined = count * (item_bytes + 1) - 1
    return f"values 1 1 {joined} {joined}"


def array(count, item_bytes=MEMBER_BYTES):
    return f"array {count} {count} {item_bytes} {item_bytes}"


def row(name, title, connections, depth, prepare, ours, theirs, **rest):
    """ours, theirs: the requests of one operation."""
    return Row(
        name,
        title,
        "redis",
        connections,
        depth,
        prepare,
        lambda side: said(side, ours, theirs),
        is_together=True,
        steps=(len(ours), len(theirs)),
        **rest,
    )


def pair(arena, lists=None, memory_mb=1024):
    return arena.mclistd(arena.memcacheds(memory_mb=memory_mb), lists=lists), arena.redis()


# --- pages -------------------------------------------------------------------------------------

BIG_MEMBER_BYTES = 13


def big_member(number):
    return f"user-{number:08}"


def long_pages(size):
    def prepare(arena, _row):
        ours, redis = pair(arena, memory_mb=4096)
        ours.fill([("big", map(big_member, range(size)))])
        ours.compact("big")
        redis.fill_sorted("big", map(big_member, range(size)))
        with ours.conn() as own, redis.conn() as conn:
            must(ours.count("big") == size, "items are missing")
            must(conn.call("ZCARD", "big") == size, "members are missing")
            ((_, _, newest),) = own.values("lrevrange big 100 109")
            theirs = conn.call("ZREVRANGE", "big", "100", "109")
            must(newest.split(b",") == theirs, "the pages differ")
        return ours, redis

    return prepare


def page_rows(sizes):
    size = sizes.pages
    prepare = long_pages(size)
    # Positions 1000000 to 1999999 of 10,000,000: Redis takes no number that begins with zeros.
    places = size // 100
    position = f"1%0{len(str(places)) - 1}"
    first, last = f"{position}k0", f"{position}r9"
    page, members = values(PAGE, BIG_MEMBER_BYTES), array(PAGE, BIG_MEMBER_BYTES)
    of = f"of {PAGE} of {size:,} items"
    return [
        row(
            "page-newest",
            f"lrevrange: the newest page {of} (ZREVRANGE)",
            8,
            32,
            prepare,
            [("lrevrange big 0 9", page)],
            [("ZREVRANGE big 0 9", members)],
        ),
        row(
            "page-deep",
            f"lrevrange: a page {of}, at random (ZREVRANGE)",
            8,
            32,
            prepare,
            [(f"lrevrange big {first} {last}", page)],
            [(f"ZREVRANGE big {first} {last}", members)],
            options={"keys": places},
        ),
        row(
            "page-after",
            f"lafter: a page {of}, behind a random one (ZRANGEBYSCORE)",
            4,
            1,
            prepare,
            [(f"lafter big user-%08m {PAGE}", page)],
            [(f"ZRANGEBYSCORE big (%08m +inf LIMIT 0 {PAGE}", members)],
            options={"members": size - PAGE},
        ),
    ]


def page_beside_writes(sizes):
    """Pages while another connection adds items, as fast as it can."""

    def run(bench):
        size, lines, found = sizes.pages, [], {}
        with bench.arena() as arena:
            sides = long_pages(size)(arena, None)
            for side in sides:
                new = "user-%08n"
                write = said(side, [(f"ladd big {new}", "line STORED")],
                             [(f"ZADD big %08n {new}", "integer 1")])
                read = said(side, [("lrevrange big 0 9", values(PAGE, BIG_MEMBER_BYTES))],
                            [("ZREVRANGE big 0 9", array(PAGE, BIG_MEMBER_BYTES))])
                settle(sides)
                # It ends behind the pages.
                options = {"seconds": 3 * bench.args.seconds + 1, "warmup": 0, "first": size}
                writer = bench.load.start(side, write, 1, 8, **options)
                found[side.name] = bench.load.run(side, read, 4, 1)
                written = bench.load.finish(side, writer)
                latency = found[side.name]["latency_us"]
                lines.append((
                    side.name,
                    f"p50 {latency['p50'] / 1000:.2f} ms, p99 {latency['p99'] / 1000:.2f} ms, "
                    f"max {latency['max'] / 1000:.2f} ms; "
                    f"{written['ops_per_s']:,.0f} items a second were added",
                ))
        title = f"the newest page of {PAGE} of {size:,} items while items are added"
        ours = found["mclistd"]["latency_us"]["p50"]
        return special.facts("page-beside-writes", title, lines, "p50 below 5 ms", ours < 5000)

    return run


# --- capped lists ------------------------------------------------------------------------------


def no_visits(arena, _row):
    return pair(arena, VISITS)


def check_visitors(side):
    """Theirs may hold a visitor twice, and one that was not trimmed behind the last push."""
    if side.name == "mclistd":
        found = side.members("visit:0000")
        must(0 < len(found) <= VISITORS_MAX, f"{len(found)} visitors")
        must(len(set(found)) == len(found) == side.count("visit:0000"), "they are not different")


def visits(sizes):
    def prepare(arena, _row):
        ours, redis = pair(arena, VISITS)
        some = [member(i) for i in range(VISITORS_MAX)]
        ours.fill((f"visit:{i:04}", some) for i in range(sizes.lists))
        for i in range(sizes.lists):
            redis.fill_sorted(f"visit:{i:04}", some)
        return ours, redis

    return prepare


def capped_rows(sizes):
    lists = f"{sizes.lists:,} lists of the last {VISITORS_MAX}"
    return [
        row(
            "visit",
            f"a visit: ladd to {lists} (LPUSH + LTRIM)",
            8,
            32,
            no_visits,
            [(f"ladd visit:%04k {MEMBER}", "line STORED")],
            [
                (f"LPUSH visit:%04k {MEMBER}", "integer"),
                (f"LTRIM visit:%04k 0 {VISITORS_MAX - 1}", "line +OK"),
            ],
            options={"keys": sizes.lists, "members": 1000},
            after=check_visitors,
        ),
        row(
            "visitors",
            f"the visitors: lrevrange of {lists} (ZREVRANGE)",
            8,
            32,
            visits(sizes),
            [(f"lrevrange visit:%04k 0 {VISITORS_MAX - 1}", values(VISITORS_MAX))],
            [(f"ZREVRANGE visit:%04k 0 {VISITORS_MAX - 1}", array(VISITORS_MAX))],
            options={"keys": sizes.lists},
            after=check_visitors,
        ),
    ]


# --- items that expire -------------------------------------------------------------------------


def nobody_online(arena, _row):
    return pair(arena, {"lists": {}})


def empty_online(side):
    side.drop("online")


def check_online(side):
    with side.conn() as conn:
        if side.name == "redis":
            count = conn.call("ZCARD", "online")
        else:
            count = conn.llen("online")
            must(count == len(set(conn.lget("online"))), "the count is wrong")
    must(count > 0, f"{side.name}: all of them have left")


def expiring_rows(sizes):
    return [
        row(
            "online",
            f"who is online: laddt for {ONLINE_S} s, and llen (ZADD, ZREMRANGEBYSCORE, ZCARD)",
            8,
            30,
            nobody_online,
            [
                (f"laddt online {ONLINE_S} {MEMBER}", "line STORED"),
                ("llen online", f"number 1 {sizes.members}"),
            ],
            [
                (f"ZADD online %010n {MEMBER}", "integer 0 1"),
                ("ZREMRANGEBYSCORE online -inf 0", "integer 0"),
                ("ZCARD online", f"integer 1 {sizes.members}"),
            ],
            options={"members": sizes.members, "first": 1},
            before=empty_online,
            after=check_online,
        ),
    ]


# --- queues and samples ------------------------------------------------------------------------


def fill_queue(sizes, verb):
    def fill(side):
        side.drop("queue")
        jobs = [member(i) for i in range(sizes.queue)]
        side.fill([("queue", jobs)], **({"verb": verb} if side.name == "redis" else {}))
        side.compact("queue")

    return fill


def check_all_taken(side):
    with side.conn() as conn:
        left = conn.call("EXISTS", "queue") if side.name == "redis" else conn.llen("queue")
    must(left == 0, f"{side.name}: items are left in the queue")


def queue_row(sizes, name, title, count, pop, verb):
    """8 consumers take all there is; a pop that gets another number of items fails the row."""
    alone = ("bulk 11", f"{pop} queue")
    expect, words = alone if count == 1 else (array(count), f"{pop} queue {count}")
    return row(
        name,
        title,
        8,
        1,
        pair_alone,
        [(f"lpop queue {count}", values(count))],
        [(words, expect)],
        options={"count": sizes.queue // count},
        before=fill_queue(sizes, verb),
        after=check_all_taken,
    )


def pair_alone(arena, _row):
    return pair(arena)


def queue_rows(sizes):
    return [
        queue_row(sizes, "lpop", "lpop by 8 consumers (SPOP)", 1, "SPOP", "SADD"),
        queue_row(sizes, "lpop-order", "lpop by 8 consumers (LPOP)", 1, "LPOP", "RPUSH"),
        queue_row(sizes, "lpop-50", "lpop of 50 by 8 consumers (LPOP)", 50, "LPOP", "RPUSH"),
        row(
            "lrandom",
            f"lrandom: {PAGE} of {sizes.members:,} (SRANDMEMBER)",
            8,
            32,
            long_list(sizes),
            [(f"lrandom hot {PAGE}", values(PAGE))],
            [(f"SRANDMEMBER hot {PAGE}", array(PAGE))],
        ),
    ]


def long_list(sizes):
    def prepare(arena, _row):
        sides = pair(arena)
        members = [member(i) for i in range(sizes.members)]
        for side in sides:
            side.fill([("hot", members)])
            side.compact("hot")
            check_exact(side, "hot", members)
        return sides

    return prepare


# --- lists compared ----------------------------------------------------------------------------

APART = 18  # between the items of the shorter list, of which every other is in the longer one


def two_lists(sizes):
    def prepare(arena, _row):
        sides = pair(arena)
        for side in sides:
            side.fill([("large", map(member, range(sizes.large)))])
            side.fill([("small", (member(i * APART) for i in range(sizes.small)))])
            for key in ("large", "small"):
                side.compact(key)
        return sides

    return prepare


def algebra_rows(sizes):
    common = len(range(0, min(sizes.large, sizes.small * APART), APART))
    of = f"of {sizes.large:,} and {sizes.small:,} items, {common:,} of them in both"
    return [
        row(
            "linter",
            f"linter {of} (SINTER)",
            4,
            1,
            two_lists(sizes),
            [("linter small large", values(common))],
            [("SINTER small large", array(common))],
            cpu_target=1.0,
        ),
        row(
            "linterlen",
            f"linterlen {of} (SINTERCARD)",
            4,
            1,
            two_lists(sizes),
            [("linterlen small large", f"number {common}")],
            [("SINTERCARD 2 small large", f"integer {common}")],
            cpu_target=1.0,
        ),
    ]


# --- several lists in one step -----------------------------------------------------------------

SHORT = 100  # members of a list


def several(arena, _row):
    return pair(arena, {"lists": {}})


def transaction(side, *commands):
    """Lines of an ltx, or what MULTI and EXEC are around; one request either way. Each command is
    (verb, key, item)."""
    if side.name == "redis":
        parts = [resp_template(*words) for words in [("MULTI",), *commands, ("EXEC",)]]
        queued, answers = " +QUEUED" * len(commands), " :" * len(commands)
        return "".join(parts), f"lines +OK{queued} *{len(commands)}{answers}"
    block = "".join(f"{' '.join(command)}\r\n" for command in commands)
    return f"ltx {template_bytes(block)}\r\n{block}\r\n", "line STORED"


def follow(lists):
    """Each list has its own width in the key, so that all requests are of one length."""

    def requests(side):
        verb = "SADD" if side.name == "redis" else "ladd"
        return [transaction(side, (verb, f"following:{lists}", MEMBER),
                            (verb, f"followers:{lists}", MEMBER))]

    return requests


def check_follow(side):
    found = side.members("following:0001")
    must(len(set(found)) == len(found), f"{side.name}: an item twice")


def moved_pairs(sizes):
    """All members are in the first list of each pair."""

    def prepare(arena, _row):
        sides = several(arena, None)
        some = [member(i) for i in range(SHORT)]
        for side in sides:
            side.fill((f"from:{i:04}", some) for i in range(sizes.lists // 10))
        return sides

    return prepare


def check_moved(side):
    found = side.members("from:0001") + side.members("into:0001")
    must(sorted(found) == [member(i) for i in range(SHORT)], f"{side.name}: lost, or there twice")


def transaction_rows(sizes):
    rows_of = []
    for connections, depth in ((50, 1), (8, 32)):
        rows_of += [
            Row(
                f"ltx-{connections}x{depth}",
                f"ltx: an item to each of two of {2 * sizes.lists:,} lists (MULTI, 2 SADD, EXEC)",
                "redis",
                connections,
                depth,
                several,
                follow("%04k"),
                is_together=True,
                options={"keys": sizes.lists, "members": 1000},
                after=check_follow,
            ),
            Row(
                f"lmove-{connections}x{depth}",
                f"lmove between the two lists of {sizes.lists // 10:,} pairs (SMOVE), half of the "
                "items there",
                "redis",
                connections,
                depth,
                moved_pairs(sizes),
                lambda side: said(
                    side,
                    [("lmove from:%04k into:%04r " + MEMBER, "number 0 1"),
                     ("lmove into:%04k from:%04r " + MEMBER, "number 0 1")],
                    [("SMOVE from:%04k into:%04r " + MEMBER, "integer 0 1"),
                     ("SMOVE into:%04k from:%04r " + MEMBER, "integer 0 1")],
                ),
                is_together=True,
                options={"keys": sizes.lists // 10, "members": SHORT, "mix": "batch"},
                after=check_moved,
            ),
        ]
    return rows_of


# --- tags --------------------------------------------------------------------------------------


def fill_tag(side, keys):
    if side.name == "redis":
        side.fill([("tag", keys)])
        side.fill((key, ["x" * 32]) for key in keys)
    else:
        side.store((key.encode(), b"x" * 32) for key in keys)
        side.fill([("tag", keys)])


def purge(side, keys):
    with side.conn() as conn:
        if side.name == "redis":
            found = conn.call("SMEMBERS", "tag")
            must(conn.call("UNLINK", *found) == len(keys), "keys are missing")
            conn.call("DEL", "tag")
        else:
            must(conn.cmd("lpurge tag") == b"%d" % len(keys), "keys are missing")
            must(conn.llen("tag") == 0, "the tag still has keys")


def purge_row(sizes):
    """One purge at a time, by hand: UNLINK names the keys that SMEMBERS has answered."""

    def run(bench):
        keys = [f"key:{i:05}" for i in range(sizes.tagged)]
        shown = row("lpurge", f"lpurge of {len(keys):,} keys (SMEMBERS, UNLINK of them, DEL)",
                    1, 1, None, [None], [None])
        with bench.arena() as arena:
            sides = pair(arena)
            results = {side.name: [] for side in sides}
            for _ in range(bench.args.repetitions):
                for side in sides:
                    fill_tag(side, keys)
                    settle(sides)
                    results[side.name].append(purge_once(side, keys))
        return rows.result_of(shown, list(results.values()), together)

    return run


def purge_once(side, keys):
    """As the load generator measures; the client is this program, whose time is not counted."""
    before = {name: cpu_s(process.pid) for name, process in side.servers.items()}
    start_s = time.monotonic()
    purge(side, keys)
    took_s = time.monotonic() - start_s
    settle([side])
    used = {name: cpu_s(process.pid) - before[name] for name, process in side.servers.items()}
    took_us = took_s * 1e6
    return {
        "ops_per_s": 1 / took_s,
        "cpu_us": {name: seconds * 1e6 for name, seconds in used.items()},
        "latency_us": dict.fromkeys(("p50", "p99", "p99_9", "max"), took_us),
        "load_share": 0.0,
        "server_share": sum(used.values()) / took_s,
    }


def comparisons(sizes):
    return page_rows(sizes) + capped_rows(sizes) + expiring_rows(sizes) + queue_rows(sizes) + algebra_rows(sizes) + transaction_rows(sizes)


def others(sizes):
    """name -> function of a Bench, as special.ROWS."""
    return {"page-beside-writes": page_beside_writes(sizes), "lpurge": purge_row(sizes)}
