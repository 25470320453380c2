# SPDX-License-Identifier: BSD-3-Clause
"""What the memcacheds hold: names of items, and the items themselves, read by name from each of
them. Which of them owns a name is the proxies' business; what lies elsewhere is seen, too."""

import threading
import time

from mclistd_convert import names as layout
from mclistd_convert.wire import Answer, Refused, Server, dump

PASSES_MAX = 10
GATE = b"mclistd#pool."  # items by which proxies compare their files, no part of any list
PAUSES_S = (0, 0.01, 0.02, 0.05, 0.1, 0.2)  # before a list that changes is read once more


def versions(found):
    return {name: [(address, item.cas) for address, item in copies] for name, copies in found.items()}


def names_on(address, incomplete, wanted=None, passes_max=PASSES_MAX):
    """Asked until there is nothing new, and in both ways: while the hash table grows the one may
    stop early, and the other leaves out what is used at that moment. wanted: as dump() takes it.
    The address is added to incomplete when this memcached does not know the first way."""
    def counts(name, line):
        return not name.startswith(GATE) and (wanted is None or wanted(name, line))

    found, quiet = set(), 0
    for turn in range(passes_max):
        names = dump(address, b"all" if turn == 1 else b"hash", counts)
        if names is None:
            incomplete.add(address)
            names = dump(address, b"all", counts)
        quiet = quiet + 1 if names <= found else 0
        found |= names
        if turn > 0 and quiet > 0:
            break
    return found


class Stored:
    """All memcacheds of the pool. For several threads: each has connections of its own."""

    def __init__(self, addresses):
        self.addresses = list(dict.fromkeys(addresses))
        self.local = threading.local()
        self.incomplete = set()  # those that leave out items when they name them
        self.places = {}         # {name: {address}} of all items that were read
        self.elsewhere = {}      # {name: {address}} of copies that the proxies do not look for

    def server(self, address):
        servers = self.local.__dict__.setdefault("servers", {})
        if address not in servers:
            servers[address] = Server(address)
        return servers[address]

    def close(self):
        for server in self.local.__dict__.pop("servers", {}).values():
            server.close()

    def check(self):
        for address in self.addresses:
            try:
                self.server(address).stats(b"stats")
            except (OSError, ValueError, Answer) as error:
                raise Refused(f"memcached {address}: {error} (--server names them)") from None

    def names(self):
        """Of all items."""
        found = set()
        for address in self.addresses:
            try:
                found |= names_on(address, self.incomplete)
            except (OSError, ValueError, Answer) as error:
                raise Refused(f"memcached {address}: {error}") from None
        return found

    def items(self, keys):
        """{key: [(address, Item)]} of those that are there."""
        keys, found = list(dict.fromkeys(keys)), {}
        for address in self.addresses:
            for key, item in self.server(address).items_of(keys):
                if item is not None:
                    found.setdefault(key, []).append((address, item))
                    self.places.setdefault(key, set()).add(address)
        return found

    def is_placed(self, key):
        """Is there such an item where the proxies look for it, as far as that is known?"""
        copies = self.items([key]).get(key, [])
        return any(address not in self.elsewhere.get(key, ()) for address, _ in copies)

    def has_head(self, key):
        """Is there a native list of that key?"""
        copies = self.items([key + b"#"]).get(key + b"#", [])
        return any(layout.HEAD.match(item.value) for _, item in copies)

    def list_items(self, section, key):
        """(names, {name: [(address, Item)]}) of a list's items, and of its key, as they were at one
        moment: they are read until nothing has changed in between, since a folding moves what they
        hold from one to another. A ring's slots are independent of each other."""
        several = layout.ROLES.get(section.dialect) and section.dialect != "ring"
        for pause_s in PAUSES_S:
            time.sleep(pause_s)
            names = self.parts(section, key)
            found = self.items([*names, key])
            if not several or (
                self.parts(section, key) == names
                and versions(self.items([*names, key])) == versions(found)
            ):
                return names, found
        raise Answer("busy, not saved: others changed the list each time")

    def parts(self, section, key, numbers=()):
        """The names of the items of a list, whether they are there or not, those without which
        there is none last. numbers: of further sublists or slots."""
        numbers, found = set(numbers), []
        if section.dialect == "sublists":
            for _, index in self.items([key]).get(key, []):
                numbers |= layout.numbers_in(section, index.value) or set()
        if section.dialect == "ring":
            numbers |= set(range(layout.capacity_of(section)))
        for role in layout.ROLES.get(section.dialect, []):
            if role in layout.NUMBERED:
                found += [layout.name_of(section, role, key, n) for n in sorted(numbers)]
            else:
                found.append(layout.name_of(section, role, key))
        return found + [key] if layout.keeps_key(section.dialect) else found
