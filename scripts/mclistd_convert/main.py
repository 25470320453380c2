# SPDX-License-Identifier: BSD-3-Clause
"""Options, order of work, exit code."""

import argparse
import os
import sys

from mclistd_convert import files, placement
from mclistd_convert.inventory import LIST, MISSING, NATIVE, Inventory
from mclistd_convert.prefix import prefix_of
from mclistd_convert.restore import restore
from mclistd_convert.run import Run, take_inventory
from mclistd_convert.settings import check_distinct, check_proxies, check_servers
from mclistd_convert.stored import Stored
from mclistd_convert.wire import LIST_KEY, Answer, Refused, address_fault, shown

ROUNDS_MAX = 20
DESCRIPTION = """\
Converts lists of a dialect to the native layout, while they are in use, through proxies whose
configuration has `migrate = native` beside the dialect. docs/replacing-hand-made-lists.md has the
whole procedure.

    scripts/convert topic- --proxy HOST:PORT --proxy HOST:PORT --server HOST:PORT --dry-run
    scripts/convert topic- --proxy HOST:PORT --proxy HOST:PORT --server HOST:PORT \\
        --inventory before.txt --backup backup.txt --state done.txt
    scripts/convert topic- --proxy HOST:PORT --proxy HOST:PORT --verify-only --keys before.txt
    scripts/convert topic- --restore backup.txt

Name ALL proxies that serve this prefix: one that does not know of the migration would go on with
the old items, and its writes would be lost. The lists to convert are those of the keys in --keys
FILE; without it, with --server, those that the script finds in the memcacheds, so name all
memcacheds of the pool; with neither, those of the keys on standard input, one per line. Without
--server the script reads from the memcacheds that the proxies name.

First it takes an inventory: it reads each item and its flags, asks for the list that the item may
be a part of, and reads each list through a proxy. It names other values and leaves them alone. Then
it reads each list before and after it is converted; both must hold the same items, in the same
order (a ring: oldest first, each once). Lists that clients change at that time cannot be compared
so: it counts them apart.

You may kill it and start it again: converting a list twice does no harm. With --state FILE the
second run passes over what the first one has done, and adds to --backup FILE.
"""
EXIT_CODES = """\
exit code:
  0  all is well
  1  lists failed (they are named); or a restore did
  2  it did not start, or stopped: a proxy is not configured for the conversion (any more), a
     memcached does not answer, or there are no lists
  3  the lists are converted, but there are values that are no lists, or parts of lists that are not
     there (they are named); a restore: something newer was left alone
"""
NO_KEYS = (
    "no keys on standard input; expected --server for each memcached of the pool, or --keys FILE"
)
NEXT_STEP = """\
When all lists of the prefix are converted: give [lists {prefix}] `dialect = native` in the
configuration of all proxies, take out `migrate` and the dialect's own keys, and restart the proxies
one after the other. Until all are restarted the others must keep `migrate = native`."""


def make_parser():
    parser = argparse.ArgumentParser(
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("prefix", metavar="PREFIX", help="as in [lists PREFIX], with \\xNN and a * in front as there; '' for [lists]")
    add("--proxy", action="append", dest="proxies", default=[], metavar="HOST:PORT",
        help="a proxy that serves the prefix; repeat it for each")
    add("--server", action="append", dest="servers", metavar="HOST:PORT|unix:PATH",
        help="a memcached of the pool; repeat it for each; without --keys the script looks for "
        "lists in them")
    add("--keys", metavar="FILE",
        help="the lists' keys, one per line, percent-encoded, or a state file, an inventory or a "
        "backup; -: standard input")
    add("--state", metavar="FILE", help="the lists that are done; made if it is not there, continued if it is")
    add("--inventory", metavar="FILE", help="write down what there is before anything is changed")
    add("--backup", metavar="FILE", help="save the items of each list before it is converted; "
        "made if it is not there, added to if it is")
    add("--parallel", type=int, default=4, metavar="N", help="connections (4)")
    add("--rate", type=float, default=0, metavar="N", help="lists converted per second, at most")
    add("--leave-strays", action="store_true",
        help="leave lists alone of which items are on memcacheds where the proxies do not look for "
        "them, and convert the others; else nothing is converted then")
    add("--allow-empty", action="store_true", help="do not fail when there are no lists")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="only take the inventory")
    mode.add_argument("--verify-only", action="store_true",
                      help="only compare what the proxies say of each list; with an inventory, a "
                      "state or a backup as --keys: and whether it is native and whole")
    mode.add_argument("--restore", metavar="FILE", help="write a backup back to the memcacheds")
    add("--force", action="store_true", help="--restore: also over what is newer")
    return parser


def parse_options():
    parser = make_parser()
    options = parser.parse_args()
    options.prefix = prefix_of(os.fsencode(options.prefix))
    for address in options.proxies + (options.servers or []):
        if fault := address_fault(address):
            parser.error(fault)
    if options.parallel < 1 or options.rate < 0:
        parser.error("expected --parallel above 0, and --rate not below 0")
    if not options.restore and not options.proxies:
        parser.error("expected --proxy")
    if options.force and not options.restore:
        parser.error("--force is for --restore")
    return options


class Keys:
    """Where the keys come from: a file, standard input, the state, or the memcacheds."""

    def __init__(self, options, section, worlds):
        self.contents, self.says_converted = {}, False
        self.named = None  # None: the memcacheds are asked
        if options.keys or not options.servers:
            if options.verify_only and options.state and not options.keys:
                options.keys = options.state
            if not options.keys and (sys.stdin is None or sys.stdin.isatty()):
                raise Refused(NO_KEYS)  # rather than wait for keys without a word
            file = files.KeyFile(options.keys or "-", options.prefix)
            self.named, self.contents = file.keys, file.contents
            self.says_converted = file.says_converted
            if not options.keys and not self.named and not options.allow_empty:
                raise Refused(NO_KEYS)
            for key in self.named:
                if not LIST_KEY.fullmatch(key):
                    raise Refused(f"{shown(key)}: not a list's key")
                if not worlds[0].belongs(key, section):
                    raise Refused(f"{shown(key)}: not a list of [lists {shown(options.prefix)}]")


def look(options, inventory, keys):
    """Takes the inventory, once more if lists are looked for. Returns what take_inventory does."""
    if keys.named is not None:
        return take_inventory(options, inventory, [], keys.named)
    batches = inventory.batches(options.stored.names())
    return take_inventory(options, inventory, batches)


def warn_incomplete(options):
    for address in sorted(options.stored.incomplete):
        print(
            f"memcached {address} does not know `lru_crawler metadump hash`: it may leave out items; "
            f"give the keys by --keys if they are known elsewhere",
            file=sys.stderr,
        )


def verify(options, inventory, keys):
    if len(options.proxies) < 2 and not keys.contents and not keys.says_converted:
        raise Refused(
            "one proxy alone has nothing to be compared with: name others, or give an inventory, "
            "a state or a backup as --keys"
        )
    named = keys.named
    if named is None:
        look(options, inventory, keys)
        named = sorted(inventory.kinds[LIST].keys() | inventory.kinds[NATIVE].keys())
    if not named and not options.allow_empty:
        raise Refused(f"no lists of {shown(options.prefix)} (--allow-empty)")
    options.stored.items(named)
    placement.find_copies(options, inventory)
    run = Run(options, inventory, files.State(None, options.prefix),
              files.Backup(None, inventory.section))
    run.expected, run.must_be_native = keys.contents, keys.says_converted
    run.run(named)
    run.summary()
    if run.refused:
        inventory.print_not_lists()
    differs = run.refused or (keys.contents and run.counts["changed"])
    return 1 if run.failures else 3 if differs else 0


def refuse_empty(options, inventory, state):
    if inventory.lists() or state.done or options.allow_empty:
        return
    inventory.print()
    inventory.print_not_lists()
    native = len(inventory.kinds[NATIVE])
    raise Refused(
        f"0 lists of [lists {shown(options.prefix)}] to convert"
        + (f"; {native} are native already" if native else "")
        + (f"; {len(inventory.kinds[MISSING])} keys have nothing" if inventory.kinds[MISSING] else "")
        + ": if that is expected, say --allow-empty"
    )


def dry_run(options, inventory, failures, state):
    refuse_empty(options, inventory, state)
    for key in inventory.lists():
        print(f"would convert {shown(key)}")
    inventory.print()
    inventory.print_not_lists()
    for key, reason in sorted(failures.items()):
        print(f"failed: {shown(key)}: {reason}")
    print(f"{len(inventory.lists())} lists of dialect {inventory.section.dialect}")
    return 1 if failures else 3 if inventory.not_lists() else 0


def convert(options, inventory, keys):
    state = files.State(None if options.dry_run else options.state, options.prefix)
    alone, failures = look(options, inventory, keys)
    warn_incomplete(options)
    inventory.look_again_at_parts()
    placement.check(options, inventory)
    if options.inventory:
        files.write_inventory(options.inventory, inventory)
    if options.dry_run:
        return dry_run(options, inventory, failures, state)
    refuse_empty(options, inventory, state)
    inventory.print()
    again = state.done & set(inventory.lists())  # a backup was restored since, for example
    if state.done:
        print(f"{len(state.done - again)} lists were converted before", file=sys.stderr)
    if again:
        print(f"{len(again)} others were, and are in the old layout again", file=sys.stderr)
    for key in sorted(inventory.kinds[NATIVE].keys() - inventory.kinds[LIST].keys() - state.done):
        state.add(key + b"\n")  # also what a run has moved that was killed before it noted it
    backup = files.Backup(options.backup, inventory.section)
    run = Run(options, inventory, state, backup)
    known = state.done - again
    try:
        for _ in range(ROUNDS_MAX):
            run.failures += [(key, failures[key]) for key in failures.keys() - known]
            known.update(failures)
            new = [key for key in inventory.lists() if key not in known]
            if not new:
                break
            known.update(new)
            run.alone = alone
            run.run(new)
            if keys.named is not None:
                break
            alone, failures = look(options, inventory, keys)
        inventory.look_again_at_parts()
    finally:
        run.summary()
        inventory.print_not_lists()
    if run.failures:
        return 1
    print(NEXT_STEP.format(prefix=shown(options.prefix)))
    return 3 if inventory.not_lists() else 0


def start(options):
    if options.restore:
        return restore(options)
    must_convert = not options.verify_only and not options.dry_run
    worlds = check_proxies(options.proxies, options.prefix, must_convert)
    check_distinct(options.proxies)
    section = worlds[0].sections[options.prefix]
    pool = worlds[0].servers_of(section)
    unknown, left = check_servers(options.servers or pool, pool)
    if unknown and left:
        print(
            f"--server {', '.join(unknown)}: the proxies know no memcached of that name, but have "
            f"{', '.join(left)}: lists on a memcached that is not named are not "
            "found",
            file=sys.stderr,
        )
    options.stored = Stored(options.servers or pool)
    options.stored.check()
    keys = Keys(options, section, worlds)
    inventory = Inventory(options.stored, worlds, section)
    if options.verify_only:
        return verify(options, inventory, keys)
    return convert(options, inventory, keys)


def main():
    try:
        return start(parse_options())
    except Refused as error:
        print(f"convert: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError, Answer) as error:
        print(f"convert: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("convert: interrupted; start it again to go on", file=sys.stderr)
        return 1
