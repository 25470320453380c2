# SPDX-License-Identifier: BSD-3-Clause
"""What there is under a prefix: which items are lists of its dialect, and what the others are.

A name alone says little. memcached may leave out items when it names them, so the list that an item
may be a part of is asked for by name; and each item is read, for its flags and for what it begins
with. Whether a value is a list of the dialect is decided by the proxies, which refuse others."""

import collections
import re
import threading
import urllib.parse

from mclistd_convert import names as layout
from mclistd_convert.wire import LIST_KEY, shown

TEXT_FLAGS = (0, 16)        # 16 is what pylibmc and pymemcache give to text
COUNTER_FLAGS = (0, 2, 16)  # and 2 to integers; the proxies take a ring's counter with it
ADVICE = re.compile(r", nothing done; ldrop .* removes it$")
BATCH = 256
SHOWN_MAX = 100        # of each kind; a file has them all

# What an item, or a list, is found to be. Of those in NOT_LISTS nothing is touched.
LIST, NATIVE, PART, OTHER, MISSING = "list", "native", "part", "other", "missing"
ORPHAN, FLAGS, FORM, BAD_KEY, SHARED = "orphan", "flags", "form", "key", "shared"
STRAY = "stray"
NOT_LISTS = (FLAGS, FORM, BAD_KEY, SHARED, ORPHAN, STRAY)
TITLES = {
    LIST: "lists of the dialect",
    NATIVE: "native lists",
    PART: "items that are parts of lists",
    OTHER: "items that have nothing to do with lists",
    MISSING: "keys given under which there is nothing",
    FLAGS: "values with flags",
    FORM: "values that the dialect cannot have",
    BAD_KEY: "items whose keys no list can have",
    SHARED: "items that lists of two prefixes would have",
    ORPHAN: "parts of lists that are not there",
    STRAY: "items on memcacheds where the proxies do not look for them",
}


def has_flags(copies, allowed):
    return next((item.flags for _, item in copies if item.flags not in allowed), None)


class Inventory:
    """kinds: {kind: {key or name: note}}. contents: {key: (items, digest)} of lists."""

    def __init__(self, stored, worlds, section):
        self.stored, self.worlds, self.section = stored, worlds, section
        self.kinds = collections.defaultdict(dict)
        self.contents = {}
        self.gaps = {}  # {key: name of an item that is not there, though the index or counter has it}
        self.stray_lists = set()  # of which items are where the proxies do not look for them
        self.owners = set()  # that were looked at since a part of theirs was found
        self.lock = threading.Lock()

    def note(self, kind, name, note=""):
        with self.lock:
            if kind != LIST or name not in self.stray_lists:
                self.kinds[kind][name] = note

    def lists(self):
        return sorted(self.kinds[LIST])

    def refuse(self, key, reason):
        """The proxies say that it is no list. What they advise clients to do is not repeated."""
        reason = ADVICE.sub("", reason.removeprefix("SERVER_ERROR "))
        with self.lock:
            self.kinds[LIST].pop(key, None)
            self.kinds[FORM][key] = reason

    def leave_stray(self, name):
        """An item that the proxies do not find, and the list that it belongs to."""
        owners = {claim.owner for claim in layout.claims_on(name, self.worlds)} | {name}
        with self.lock:
            self.stray_lists |= owners
            for owner in owners:
                self.kinds[LIST].pop(owner, None)
            for kind in (NATIVE, PART, ORPHAN):
                self.kinds[kind].pop(name, None)
            self.kinds[STRAY][name] = ""

    def without_left_copies(self, strays):
        """The strays but for those that stand beside a native list: copies that a conversion has left,
        and no proxy reads."""
        kept = []
        for name in strays:
            owners = {claim.owner for claim in layout.claims_on(name, self.worlds)} | {name}
            native = [key for key in owners if self.stored.is_placed(key + b"#") and self.has_head(key)]
            if native:
                self.note(ORPHAN, name, f"of {shown(native[0])}, which is a native list")
                self.forget_list(name)
            else:
                kept.append(name)
        return kept

    def forget_list(self, name):
        with self.lock:
            self.kinds[LIST].pop(name, None)
            self.kinds[PART].pop(name, None)

    def not_lists(self):
        return sum(len(self.kinds[kind]) for kind in NOT_LISTS)

    # --- by names ---

    def batches(self, names):
        """What classify() takes, of all names that the memcacheds have."""
        belongs = self.worlds[0].belongs
        names = [name for name in names if not layout.CLOCK.fullmatch(name)]
        if layout.keeps_key(self.section.dialect):
            found = sorted(name for name in names if belongs(name, self.section))
        elif self.section.dialect == "native":
            found = sorted(n for n in names if n.endswith(b"#") and belongs(n, self.section))
        else:
            return self.batches_of_owners(names)
        return [found[at : at + BATCH] for at in range(0, len(found), BATCH)]

    def batches_of_owners(self, names):
        owners = collections.defaultdict(set)
        for name in names:
            claims = layout.claims_on(name, self.worlds)
            for claim in claims:
                if claim.section.prefix == self.section.prefix:
                    owners[claim.owner].add(name)
            head = layout.NATIVE_HEAD.fullmatch(name)
            if head and claims and self.worlds[0].belongs(name, self.section):
                owners[name[:-1]].add(name)  # whatever the templates say of its name
            if not claims and self.worlds[0].belongs(name, self.section):
                owners[name[:-1] if head else name].add(name)
        found = sorted(owners.items())
        return [found[at : at + BATCH // 8] for at in range(0, len(found), BATCH // 8)]

    def classify(self, batch):
        if layout.keeps_key(self.section.dialect):
            items = self.stored.items(batch)
            for name in batch:
                if name in items:
                    self.classify_own(name, items[name])
        elif self.section.dialect == "native":
            items = self.stored.items(batch)
            for name in batch:
                if name in items and self.is_native(name, items[name]):
                    self.note(NATIVE, name[:-1])
        else:
            items = self.stored.items([name for _, names in batch for name in names])
            for owner, names in batch:
                found = {n: items[n] for n in names if n in items}
                self.classify_owner(owner, found)

    # --- by keys ---

    def classify_keys(self, keys):
        """Of lists that were named."""
        dialect = self.section.dialect
        if layout.keeps_key(dialect) or dialect == "native":
            items = self.stored.items(keys if dialect != "native" else [k + b"#" for k in keys])
            for key in keys:
                if dialect != "native" and key in items:
                    self.classify_own(key, items[key])
                elif self.is_missing(key):
                    self.note(MISSING, key)
            return
        for key in keys:
            found = self.stored.items(self.stored.parts(self.section, key))
            if found:
                self.classify_owner(key, found)
            elif self.moves(key):
                self.note(LIST, key)
            elif self.is_missing(key):
                self.note(MISSING, key)

    def is_missing(self, key):
        """There is nothing of the dialect: then there may be a native list."""
        if self.has_head(key):
            self.note(NATIVE, key)
            return False
        return True

    # --- one item, one list ---

    def has_head(self, key):
        return self.stored.has_head(key)

    def moves(self, key):
        """Is its move to the native layout half done?"""
        copies = self.stored.items([key]).get(key, [])
        return any(layout.record_before(item.value) is not None for _, item in copies)

    def why_not_native(self, key, items):
        """What speaks against it that the list has been converted; None: nothing."""
        if self.moves(key):
            return "its move to the native layout is half done"
        if layout.has_own_key(self.section) and self.stored.is_placed(key):
            return "it is stored in the old layout"
        if self.has_head(key):
            return None
        if self.stored.items(self.stored.parts(self.section, key)):
            return "it is stored in the old layout"
        return "it is not a native list" if items > 0 else None

    @staticmethod
    def is_native(name, copies):
        """An item of a native list; a list of the dialect may have a key that looks like one."""
        values = [item.value for _, item in copies]
        if layout.NATIVE_HEAD.fullmatch(name):
            return all(layout.HEAD.match(value) for value in values)
        if layout.NATIVE_SUBLIST.fullmatch(name):
            return all(value == b"" or layout.SUBLIST.match(value) for value in values)
        return False

    def part_of(self, name, copies):
        """(PART or ORPHAN, list) if the name is one that a part of a list has; else (None, None).
        An index that names the sublist decides; without one it may be a list of its own, if the
        sublists are there that it names itself."""
        absent = None
        for claim in layout.claims_on(name, self.worlds):
            if claim.role != "sublist_name":
                return PART, claim.owner
            for _, index in self.stored.items([claim.owner]).get(claim.owner, []):
                if claim.number in (layout.numbers_in(claim.section, index.value) or ()):
                    self.classify_found(claim)
                    return PART, claim.owner
            absent = claim.owner
        if absent is None or self.names_its_own(name, copies):
            return None, None
        return ORPHAN, absent

    def classify_found(self, claim):
        """A list whose part was found; memcached may have left out its index."""
        with self.lock:
            is_new = claim.owner not in self.owners
            self.owners.add(claim.owner)
        if is_new and claim.section.prefix == self.section.prefix:
            for copies in self.stored.items([claim.owner]).values():
                self.classify_own(claim.owner, copies)

    def names_its_own(self, name, copies):
        if self.section.dialect != "sublists":
            return False
        parts = [
            layout.name_of(self.section, "sublist_name", name, number)
            for _, item in copies
            for number in layout.numbers_in(self.section, item.value) or ()
        ]
        return bool(self.stored.items(parts))

    def classify_own(self, name, copies):
        """The list is stored under its own key."""
        if self.is_native(name, copies):
            if name.endswith(b"#"):
                self.note(NATIVE, name[:-1])
            return
        if not LIST_KEY.fullmatch(name):
            self.note(BAD_KEY, name)
            return
        kind, owner = self.part_of(name, copies)
        if kind:
            self.note(kind, name, f"of {shown(owner)}")
            return
        found = {name: copies}
        if self.section.dialect == "sublists":
            parts = self.stored.parts(self.section, name)
            found.update(self.stored.items(parts))
            gone = [part for part in parts if part not in found]
            if gone:
                self.gaps[name] = gone[0]
        self.note_list(name, found)

    def note_list(self, key, found):
        ring = self.section.dialect == "ring"
        counter = layout.name_of(self.section, "seq_name", key) if ring else None
        for name, copies in sorted(found.items()):
            flags = has_flags(copies, COUNTER_FLAGS if name == counter else TEXT_FLAGS)
            if flags is not None:
                self.note(FLAGS, key, f"{shown(name)} has flags {flags}")
                return
        if ring:
            self.note_gap(key, found)
        self.note(LIST, key)

    def note_gap(self, key, found):
        """The names of items come before what the counter says: a slot may be newer."""
        gone = [name for name in layout.counted(self.section, key, found) if name not in found]
        gone = gone[:BATCH]
        there = self.stored.items(gone)
        gone = [name for name in gone if name not in there]
        if gone and not self.moves(key):
            self.gaps[key] = gone[0]

    def classify_owner(self, key, found):
        """The list is stored under other names, of which these were found."""
        found = {name: copies for name, copies in found.items() if not self.is_native(name, copies)}
        claims = {name: layout.claims_on(name, self.worlds) for name in found}
        own = {name for name in found if any(self.is_mine(c, key) for c in claims[name])}
        stays = layout.has_own_key(self.section) and key in found
        if self.has_head(key) and not self.moves(key) and not stays:
            self.note(NATIVE, key)
            for name in own:
                self.note(ORPHAN, name, f"of {shown(key)}, which is a native list")
            return
        for name in found.keys() - own:
            self.note(OTHER, name)
        if not own or self.are_others(own, claims, key):
            return
        if not LIST_KEY.fullmatch(key):
            self.note(BAD_KEY, key)
            return
        for name in sorted(own):
            for claim in claims[name]:
                if claim.section.prefix != self.section.prefix:
                    where = f"{shown(claim.owner)} of [lists {shown(claim.section.prefix)}]"
                    self.note(SHARED, key, f"{shown(name)} would be a part of {where}, too")
                    return
        if not any(self.is_primary(claims[name], key) for name in own) and not self.moves(key):
            for name in own:
                self.note(ORPHAN, name, f"of {shown(key)}")
            return
        beyond = self.beyond_capacity(key, {name: claims[name] for name in own})
        if beyond and not self.moves(key):
            reason = f"a slot beyond capacity = {layout.capacity_of(self.section)}"
            self.note(FORM, key, f"{shown(beyond)} is not of dialect ring: {reason}")
            return
        self.note_list(key, {name: found[name] for name in own})

    def beyond_capacity(self, key, claims):
        """A slot that the ring has and, as it is configured, cannot have: the proxies ask for the
        first two such slots alone. One whose name another list may have as well says nothing."""
        if self.section.dialect != "ring":
            return None
        capacity = layout.capacity_of(self.section)
        for name in sorted(claims):
            numbers = [claim.number for claim in claims[name] if claim.role == "slot_name"]
            if {claim.owner for claim in claims[name]} == {key} and max(numbers, default=0) >= capacity:
                return name
        return None

    def are_others(self, own, claims, key):
        """Slots that may be another list's as well, which has a counter, and this one has none."""
        if self.section.dialect != "ring" or any(self.is_primary(claims[n], key) for n in own):
            return False
        owners = {claim.owner for name in own for claim in claims[name]} - {key}
        counters = [layout.name_of(self.section, "seq_name", owner) for owner in owners]
        return bool(self.stored.items(counters))

    def is_primary(self, claims, key):
        """Does the item alone say that there is a list? Where nothing stands before the number of a
        slot, several lists may have it: only the counter does then."""
        roles = {claim.role for claim in claims if self.is_mine(claim, key)}
        if len({claim.owner for claim in claims}) > 1:
            roles.discard("slot_name")
        return bool(roles & set(layout.PRIMARY))

    def is_mine(self, claim, key):
        return claim.section.prefix == self.section.prefix and claim.owner == key

    def look_again_at_parts(self):
        """A sublist is made before the index names it, and deleted after that."""
        found = self.stored.items(list(self.kinds[ORPHAN]))
        for name in list(self.kinds[ORPHAN]):
            copies = found.get(name)
            if not copies:
                del self.kinds[ORPHAN][name]
            elif layout.keeps_key(self.section.dialect):
                kind, owner = self.part_of(name, copies)
                if kind == PART:
                    del self.kinds[ORPHAN][name]
                    self.note(PART, name, f"of {shown(owner)}")

    # --- shown and written ---

    def print(self):
        for kind, title in TITLES.items():
            if self.kinds[kind]:
                items = sum(self.contents.get(key, (0, ""))[0] for key in self.kinds[LIST])
                more = f", {items} items" if kind == LIST and self.contents else ""
                print(f"{len(self.kinds[kind])} {title}{more}")
        gaps = sorted((key, part) for key, part in self.gaps.items() if key in self.kinds[LIST])
        if gaps:
            what = ("have an index with the number of a sublist that is not there: it was emptied, or "
                    "evicted,")
            if self.section.dialect == "ring":
                what = ("lack their counter, or a slot that it has counted: it was never written, or "
                        "evicted,")
            print(f"{len(gaps)} of the lists {what} or is on a server that was not named (for "
                  f"instance {shown(gaps[0][1])})")
        empty = self.stored_without_items()
        if empty:
            print(f"{len(empty)} of the lists have no item, though something is stored for them (for "
                  f"instance {shown(empty[0])}): do the settings of the prefix say what clients write?")

    def stored_without_items(self):
        """Lists that the proxies have read, and found no item in. Their own settings may be wrong:
        with the signs of deletions and additions exchanged, each addition is a deletion."""
        lists = [key for key in self.lists() if self.contents.get(key, (1, ""))[0] == 0]
        counters = {layout.name_of(self.section, "seq_name", key) for key in lists
                    if self.section.dialect == "ring"}
        found = []
        for key in lists:
            items = self.stored.items(self.stored.parts(self.section, key))
            if any(item.value for name in items.keys() - counters for _, item in items[name]):
                found.append(key)
        return found

    def print_not_lists(self):
        for kind in NOT_LISTS:
            found = sorted(self.kinds[kind].items())
            for name, note in found[:SHOWN_MAX]:
                print(f"left alone: {shown(name)}: {TITLES[kind]}{': ' if note else ''}{note}")
            if len(found) > SHOWN_MAX:
                print(f"left alone: {len(found) - SHOWN_MAX} more {TITLES[kind]} (--inventory)")

    def lines(self):
        """Of the file: kind, name, and of lists how many items and their digest, else a note."""
        for kind in TITLES:
            for name, note in sorted(self.kinds[kind].items()):
                quoted = urllib.parse.quote_from_bytes(name)
                if kind == LIST and name in self.contents:
                    count, digest = self.contents[name]
                    yield f"{kind} {quoted} {count} {digest}"
                else:
                    yield f"{kind} {quoted} {note}".rstrip()
