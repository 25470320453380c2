# SPDX-License-Identifier: BSD-3-Clause
"""Options, order of work, exit code."""

import argparse
import collections
import os
import sys
import time

from mclistd_convert.prefix import prefix_of
from mclistd_convert.settings import ask, servers_in
from mclistd_convert.wire import Answer, Refused, address_fault
from mclistd_lists import backup, show, transactions
from mclistd_lists.crawl import Memcached, Pace
from mclistd_lists.listing import DAMAGED, FOREIGN, OK, Layouts, Listing, count_by_proxy

RATE = 5000  # keys per second
DESCRIPTION = """\
Shows the lists that a pool holds.

    scripts/lists --proxy HOST:PORT                          all pools of that proxy
    scripts/lists --proxy HOST:PORT HOST:PORT HOST:PORT      only these memcacheds
    scripts/lists --proxy HOST:PORT --sort items --count --top 20
    scripts/lists --proxy HOST:PORT --json > lists.jsonl
    scripts/lists --proxy HOST:PORT --transactions           those that are not over

The memcacheds' crawlers name the items; each head is then read, which memcached does not take for
use of it, with at most --rate keys per second. The proxy says which prefixes have which dialects.
Without --proxy all lists count as native ones. A crawler may leave out items while memcached's hash
table grows, and lists come and go meanwhile: there are at least as many lists as are shown.

  ITEMS     how many, if the head alone tells; >=N: at least so many; ?: not known, as of all
            lists of dialects; --count asks the proxy for what is not known
  BYTES     all that its items take in memcached: head, sublists, garbage, keys and memcached's own
            part
  SUBLISTS  sublists (or items of a dialect) that were found
  IDLE      since memcached has last seen it used, to a minute; TTL: what is left of its life
  STATE     damaged: sublists that the head names are missing; the script has looked for them twice.
            Whether sublists that are there hold what they should is not looked at.
            foreign: what stands in its place is no list that this release can read. Of a dialect's
            items only flags and keys are looked at; --count asks the proxy about the rest
            unknown: the last lines say why
  MARKS     absent, leased; capped:N.drop or N.refuse; timed: has items that end by themselves;
            garbage:N, names that are to be deleted; old-announcements:N, of folds that were given
            up; transactions:N, that are not over: the list does not know how they ended, or it is
            their primary, and not all of their lists know; intents: entries of transactions are in
            its log; moving: from a dialect to the native layout; twice: a head on two servers, of
            which the proxies use one

--transactions shows each transaction that is not over once, with all its lists:

  AGE       since it began, by the clock of its proxy
  STATE     waiting: not all of its lists have been asked yet. pending: all have, and it is not
            decided. committed: decided, and not noted everywhere. aborted: decided against it, and
            not noted everywhere; each reader of these lists does that. unknown: the last lines say
            why
  PRIMARY   the list that decides; LISTS: all of them
  LACKS     lists that have not been asked (waiting), or that have not noted the decision
"""
EXIT_CODES = """\
exit code:
  0  all is well
  1  a memcached did not answer, or not to the end: its lists are missing here; or the proxy failed
     while it counted
  2  it did not start: a proxy does not answer, or no memcached; wrong options
  3  there are damaged lists, values that are no lists, or lists of which that could not be told;
     with --transactions: there are transactions older than --grace, or unknown ones
"""


def make_parser():
    parser = argparse.ArgumentParser(
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("servers", nargs="*", metavar="HOST:PORT|unix:PATH",
        help="memcacheds; without them, all that the proxy names")
    add("--proxy", metavar="HOST:PORT", help="a proxy before them")
    add("--prefix", default="", metavar="PREFIX",
        help="only lists whose keys begin with it; *PART: whose keys hold PART; \\xNN is a byte")
    add("--sort", choices=sorted(show.ORDERS), default="size",
        help="the largest first (size), the longest unused (age), the longest (items), or by key")
    add("--top", type=int, default=0, metavar="N", help="only the first N")
    add("--count", action="store_true", help="ask the proxy (llen) for numbers of items that are not known")
    add("--json", action="store_true", help="one JSON object per list; keys are percent-encoded")
    add("--transactions", action="store_true",
        help="show the transactions that are not over, as a table or with --json")
    add("--rate", type=float, default=RATE, metavar="N",
        help=f"keys read per second, at most ({RATE}); 0: as fast as may be")
    add("--grace", type=int, default=0, metavar="SECONDS",
        help="from what age on announcements and transactions count as old; default: announcement_grace_s of the "
        "proxy, or 300")
    backup.add_options(parser)
    return parser


def parse_options():
    parser = make_parser()
    options = parser.parse_args()
    options.prefix = prefix_of(os.fsencode(options.prefix))
    for address in options.servers + ([options.proxy] if options.proxy else []):
        if fault := address_fault(address):
            parser.error(fault)
    if not options.proxy and not options.servers:
        parser.error("expected --proxy or memcacheds")
    if options.count and not options.proxy:
        parser.error("--count needs --proxy")
    if options.transactions and (options.count or backup.wanted(options)):
        parser.error("--transactions goes with neither --count nor --export, --import")
    if options.parallel < 1 or options.lists_per_second < 0:
        parser.error("expected --parallel above 0, and --lists-per-second not below 0")
    if (options.replace and not options.import_from) or (
        options.leave_out_failed and not options.export_to
    ):
        parser.error("--replace goes with --import, and --leave-out-failed with --export")
    if options.top < 0 or options.rate < 0 or options.grace < 0:
        parser.error("expected --top, --rate and --grace not below 0")
    return options


class Work:
    """The memcacheds and the proxy's settings, asked for once."""

    def __init__(self, options):
        self.options, self.has_failed = options, False
        self.settings = ask(options.proxy)[0] if options.proxy else None
        self.addresses = list(dict.fromkeys(options.servers or self.servers_of_pools()))
        self.knows_all = not options.servers
        self.pace = Pace(options.rate)

    def servers_of_pools(self):
        return [server for pool in self.settings.pools.values() for server in servers_in(pool)]

    def report(self, text):
        self.has_failed = True
        print(f"lists: {text}", file=sys.stderr)

    def crawl(self):
        layouts, found, incomplete = Layouts(self.settings), [], set()
        for address in self.addresses:
            server = Memcached(address, self.pace)
            try:
                server.crawl(layouts.is_wanted, incomplete)
            except (OSError, ValueError, KeyError, Answer) as error:
                self.report(f"memcached {address}: {error}: left out")
                continue
            found.append(server)
        if not found:
            raise Refused("no memcached answers" if self.addresses else "the proxy has no pool")
        for address in sorted(incomplete):
            print(f"lists: memcached {address} does not know `lru_crawler metadump hash`: it may "
                  "leave out items", file=sys.stderr)
        return found

    def listing(self):
        servers = self.crawl()
        some_failed = len(servers) < len(self.addresses)
        listing = Listing(self.options, self.settings, servers, some_failed, self.report)
        listing.run()
        return listing

    def grace_s(self, key):
        return Layouts(self.settings).grace_s(key, self.options.grace)

    def find_keys(self):
        """The keys of all lists that were found, each once, in order."""
        return sorted({entry.key for entry in self.listing().entries if entry.state != FOREIGN})


def summary(listing):
    states = collections.Counter(entry.state for entry in listing.entries)
    lists = [entry for entry in listing.entries if entry.state != FOREIGN]
    absent = sum("absent" in entry.marks for entry in lists)
    print(
        f"at least {len(lists)} lists, {sum(entry.bytes for entry in lists)} bytes; of them "
        f"{states[DAMAGED]} damaged, {absent} absent; {states[FOREIGN]} values that are no lists",
        file=sys.stderr,
    )
    if listing.orphans:
        print(f"{listing.orphans} sublists of no list, {listing.orphan_bytes} bytes: see scripts/sweep",
              file=sys.stderr)
    if listing.parts:
        print(f"{listing.parts} items that look like parts of lists of dialects that are not there",
              file=sys.stderr)


def show_transactions(options, work):
    """Returns the exit code."""
    listing = work.listing()
    is_whole = work.knows_all and not work.has_failed
    found = listing.transactions(is_whole)
    found = found[: options.top] if options.top else found
    now_s = int(time.time())
    if options.json:
        transactions.print_json(found, now_s)
    else:
        transactions.print_table(found, now_s, show.duration)
    old = [t for t in found if t.is_older(now_s, work.grace_s(t.primary))]
    states = collections.Counter(t.state for t in found)
    print(
        f"at least {len(found)} transactions that are not over, {len(old)} of them old"
        + "".join(f", {count} {state}" for state, count in sorted(states.items())),
        file=sys.stderr,
    )
    is_well = not old and transactions.UNKNOWN not in states
    return 1 if work.has_failed else 0 if is_well else 3


def run(options):
    work = Work(options)
    if options.transactions:
        return show_transactions(options, work)
    if backup.wanted(options):
        return backup.run(options, work.find_keys) or int(work.has_failed)
    listing = work.listing()
    if options.count:
        count_by_proxy(listing.entries, options.proxy, work.pace, work.report)
    shown = show.in_order(listing.entries, options.sort, options.top)
    (show.print_json if options.json else show.print_table)(shown)
    summary(listing)
    is_well = all(entry.state == OK for entry in listing.entries)
    return 1 if work.has_failed else 0 if is_well else 3


def main():
    try:
        return run(parse_options())
    except Refused as error:
        print(f"lists: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, Answer) as error:
        print(f"lists: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lists: interrupted", file=sys.stderr)
        return 1
