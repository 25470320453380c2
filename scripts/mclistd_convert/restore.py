# SPDX-License-Identifier: BSD-3-Clause
"""A backup is written back, straight to the memcacheds that the items came from.

A list is written only if nothing of it is there: neither its items nor a native list of its key.
With force it takes the place of what is there; sublists of the native list stay behind, for
scripts/sweep. The item without which there is no list is written last, and a native head goes after
that, so a restore that is killed may be started again."""

import collections
import sys
import time

from mclistd_convert import names as layout
from mclistd_convert.files import lists_in_backup, read_file, servers_in_backup
from mclistd_convert.stored import Stored
from mclistd_convert.wire import Answer, Item, Refused, shown
from mclistd_lists.head import Head
from mclistd_lists.problem import NotUnderstood


class Restore:
    def __init__(self, options):
        text = read_file(options.restore)
        self.lists = lists_in_backup(options.restore, text, options.prefix)
        addresses = [server for saved in self.lists for server, _, _ in saved.items]
        self.stored = Stored([*addresses, *(options.servers or [])])
        self.pool = servers_in_backup(text) or options.servers
        self.is_forced = options.force
        self.counts = collections.Counter()

    def check(self):
        """Memcacheds that get none of the items may have native lists of their keys."""
        self.stored.check()
        if not self.pool:
            print("the backup does not say which memcacheds the pool has: native lists are looked for "
                  f"on {', '.join(self.stored.addresses)} alone (--server names others)", file=sys.stderr)
        for address in dict.fromkeys(self.pool):
            if address in self.stored.addresses:
                continue
            try:
                Stored([address]).check()
                self.stored.addresses.append(address)
            except Refused as error:
                what = f"{error}: native lists there are not seen"
                if not self.is_forced:
                    raise Refused(f"{what} (--force goes on)") from None
                print(what, file=sys.stderr)

    def run(self):
        """Exit code."""
        self.check()
        for saved in self.lists:
            try:
                kind, reason = self.restore(saved)
            except (OSError, ValueError, Answer) as error:
                self.stored.close()
                kind, reason = "failed", str(error)
            self.counts[kind] += 1
            if reason:
                print(f"{kind}: {shown(saved.key)}: {reason}")
        c = self.counts
        print(
            f"{len(self.lists)} lists in the backup: {c['restored']} restored, {c['same']} are there "
            f"already, {c['expired']} have expired, {c['newer']} left alone since something newer is "
            f"there (--force), {c['failed']} failed"
        )
        return 1 if c["failed"] else 3 if c["newer"] else 0

    def restore(self, saved):
        passed_s = max(int(time.time()) - saved.time_s, 0)
        items = []
        for server, name, item in saved.items:
            ttl_s = item.ttl_s if item.ttl_s < 0 else item.ttl_s - passed_s
            if item.ttl_s < 0 or ttl_s > 0:
                items.append((server, name, Item(item.value, item.flags, ttl_s, 0)))
        if not items:
            return "expired", None
        reason = self.newer(saved)
        if reason == "same":
            return "same", None
        if reason and (not self.is_forced or self.has_transactions(saved)):
            return "newer", reason
        for server, name, item in items:
            if not self.stored.server(server).store(name, item, not self.is_forced):
                if not self.is_there(server, name, item):
                    return "newer", f"{shown(name)} was stored meanwhile"
        if self.is_forced:
            self.remove_newer(saved)
        return "restored", None

    def is_there(self, server, name, item):
        for _, found in self.stored.server(server).items_of([name]):
            return found is not None and (found.value, found.flags) == (item.value, item.flags)

    def newer(self, saved):
        """What speaks against it; "same": the list is there as it was; None: nothing. Some of its
        items as they were are what a restore has left that was killed."""
        head = saved.key + b"#"
        names = {name for _, name, _ in saved.items}
        found = self.stored.items([*names, *saved.absent, head, saved.key])
        if any(layout.HEAD.match(item.value) for _, item in found.get(head, [])):
            if self.has_transactions(saved):
                return ("a native list of that key is there, with a transaction that is not over: "
                        "lcompact it through a proxy first")
            return "a native list of that key is there"
        if any(layout.record_before(i.value) is not None for _, i in found.get(saved.key, [])):
            return "it is moving to the native layout"
        there = next((name for name in saved.absent if name in found), None)
        if there is not None:
            return f"{shown(there)} is there, and was not"
        same = 0
        for server, name, item in saved.items:
            for address, now in found.get(name, []):
                if address == server and (now.value, now.flags) != (item.value, item.flags):
                    return f"{shown(name)} has changed"
                same += address == server
        return "same" if same == len(saved.items) else None

    def has_transactions(self, saved):
        """Of the native list: its other lists would be left with half of them."""
        for _, item in self.stored.items([saved.key + b"#"]).get(saved.key + b"#", []):
            try:
                if Head(item.value, saved.key).open_transactions():
                    return True
            except NotUnderstood:
                pass
        return False

    def remove_newer(self, saved):
        """What a native list, a move or a later change has left."""
        head = saved.key + b"#"
        found = self.stored.items([*saved.absent, head, saved.key])
        names = {name for _, name, _ in saved.items}
        for name, copies in found.items():
            for address, item in copies:
                is_record = layout.record_before(item.value) is not None
                if (
                    name in saved.absent
                    or (name == head and layout.HEAD.match(item.value))
                    or (name == saved.key and name not in names and is_record)
                ):
                    self.stored.server(address).delete(name, item.cas)


def restore(options):
    return Restore(options).run()
