# SPDX-License-Identifier: BSD-3-Clause
"""Which lists there are, and what is known of each. A list is looked for by the names of its items;
a head is read, sublists are not. What the names and the head do not tell stays unknown, or is asked
of a proxy (--count)."""

import collections
import contextlib
import time

from mclistd_convert import names as layout
from mclistd_convert.content import is_foreign
from mclistd_convert.prefix import begin_of
from mclistd_convert.wire import AT_ONCE, LIST_KEY, Answer, Connection, number_of, shown
from mclistd_lists.crawl import ITEM_BYTES_MIN
from mclistd_lists.head import SUBLIST_HEADER_BYTES, Head
from mclistd_lists.problem import NotUnderstood
from mclistd_lists.transactions import Looker, Transaction, in_order

GRACE_S = 300          # announcement_grace_s, where no proxy says it
MISSING_READ_MAX = 1000  # sublists of one list that the crawler did not show and that are read for
LOOKS_MAX = 5          # at a list that changes all the time
TEXT_FLAGS = (0, 16)   # 16 is what pylibmc and pymemcache give to text
RING_FLAGS = (*TEXT_FLAGS, 2)
SUBLIST_BYTES_MIN = SUBLIST_HEADER_BYTES + 3  # a shorter one is foreign

OK, DAMAGED, FOREIGN, UNKNOWN = "ok", "damaged", "foreign", "unknown"


class Entry:
    """A list, or what stands in a list's place. items: (least, most); None: not known. bytes: of
    all of its items that were found, as memcached counts them. ttl_s: None: it does not expire."""

    def __init__(self, key, server, dialect, record):
        self.key, self.server, self.dialect = key, server.address, dialect
        self.items_least = self.items_most = None
        self.is_counted = False
        self.bytes, self.sublists = record.bytes, 0
        self.idle_s, self.ttl_s = server.idle_s(record), server.ttl_s(record)
        self.state, self.marks, self.note = OK, [], ""
        self.missing = self.garbage = self.garbage_found = 0
        self.announcements = self.announcements_old = 0
        self.intents = []  # of transactions that are not over

    def say(self, state, note):
        self.state, self.note = state, note


class Layouts:
    """Whose item a name is, by the settings of a proxy; without them all lists are native."""

    def __init__(self, settings):
        self.settings = settings

    def section_of(self, key):
        return self.settings.section_of(key) if self.settings else None

    def dialect_of(self, key):
        section = self.section_of(key)
        return section.dialect if section else "native"

    def may_be_native(self, key):
        section = self.section_of(key)
        return section is None or section.dialect == "native" or section.migrates

    def is_spread(self, key):
        """May sublists be on other servers than the head? Unless a proxy says no."""
        section = self.section_of(key)
        return self.settings is None or (
            section is not None and section.text("placement", b"head") == b"spread"
        )

    def grace_s(self, key, given_s):
        section = self.section_of(key)
        text = section.text("announcement_grace_s") if section else b""
        return given_s or (int(text) if text.isdigit() else GRACE_S)

    def native_owner(self, name):
        """(key, run) of a sublist, (key, None) of a head, or None."""
        match = layout.NATIVE_SUBLIST.fullmatch(name) or layout.NATIVE_HEAD.fullmatch(name)
        if not match or not self.may_be_native(match[1]):
            return None
        return match[1], match[2] if match.lastindex > 1 else None

    def claims(self, name):
        return layout.claims_on(name, [self.settings]) if self.settings else []

    def is_own(self, name):
        """Would a list of that key be stored there?"""
        return layout.keeps_key(self.dialect_of(name))

    def is_wanted(self, name):
        if layout.CLOCK.fullmatch(name):
            return False
        return bool(self.native_owner(name) or self.is_own(name) or self.claims(name))


class Listing:
    """options: grace, prefix. servers: Memcacheds that were crawled; some_failed: others
    could not be. report(text) says what went wrong; the rest goes on."""

    def __init__(self, options, settings, servers, some_failed, report):
        self.options, self.servers, self.report = options, servers, report
        self.some_failed = some_failed
        self.layouts = Layouts(settings)
        self.entries, self.orphans, self.orphan_bytes, self.parts = [], 0, 0, 0
        self.sublists = {}  # {server: {key: {run: [(number, bytes, whether it can be one)]}}}
        self.owned = {}     # {server: {key: [names]}}, of dialects

    def belongs(self, key):
        return begin_of(self.options.prefix, key) is not None

    def run(self):
        heads = {server: self.sort_names(server) for server in self.servers}
        for server, keys in heads.items():
            self.guarded(server, self.look_at_heads, keys)
            self.guarded(server, self.look_at_dialects)
        self.count_orphans(heads)
        copies = collections.Counter(entry.key for entry in self.entries if entry.state != FOREIGN)
        for entry in self.entries:
            if copies[entry.key] > 1:
                entry.marks.append("twice")
        return self.entries

    def guarded(self, server, work, *args):
        try:
            work(server, *args)
        except (OSError, ValueError, KeyError, Answer) as error:
            self.report(f"memcached {server.address}: {error}: what it has is not shown, or in part")

    # --- by names ---

    def sort_names(self, server):
        """Returns the keys of native heads."""
        heads, owners = [], self.owned.setdefault(server, collections.defaultdict(list))
        sublists = self.sublists[server] = collections.defaultdict(
            lambda: collections.defaultdict(list)
        )
        for name, record in server.records.items():
            native = self.layouts.native_owner(name)
            if native and native[1]:
                number = int(name.rpartition(b".")[2])
                can_be = record.bytes >= ITEM_BYTES_MIN + len(name) + SUBLIST_BYTES_MIN
                sublists[native[0]][native[1]].append((number, record.bytes, can_be))
            elif native:
                heads.append(native[0])
            else:
                owners[self.owner_of(server, name)].append(name)
        return sorted(filter(self.belongs, heads))

    def owner_of(self, server, name):
        """Of several lists that may have an item, the one whose first item is there."""
        claims = self.layouts.claims(name)
        for claim in claims:
            roles = layout.ROLES[claim.section.dialect]
            first = (
                claim.owner
                if layout.keeps_key(claim.section.dialect)
                else layout.name_of(claim.section, roles[-1], claim.owner)
            )
            if any(first in other.records for other in self.servers):
                return claim.owner
        if self.layouts.is_own(name) or not claims:
            return name
        return claims[0].owner

    # --- native lists ---

    def look_at_heads(self, server, heads):
        suspects = []
        for name, value in server.read([key + b"#" for key in heads]):
            if value is None:
                continue  # it has gone meanwhile
            entry = Entry(name[:-1], server, "native", server.records[name])
            self.entries.append(entry)
            head = self.take_head(entry, value)
            if head and self.absent_names(server, entry.key, head)[1]:
                suspects.append(entry)
        for entry in suspects:
            self.look_for_missing(server, entry)

    def take_head(self, entry, value):
        """Fills in the entry; returns the Head, or None."""
        try:
            head = Head(value.value, entry.key)
        except NotUnderstood as error:
            entry.say(FOREIGN, str(error))
            return None
        now_s = int(time.time())
        entry.items_least, entry.items_most = head.count(now_s)
        entry.garbage = len(head.garbage)
        entry.announcements = len(head.announcements)
        grace_s = self.layouts.grace_s(entry.key, self.options.grace)
        entry.announcements_old = sum(
            abs(now_s - created_s) > grace_s for _, created_s in head.announcements.values()
        )
        entry.marks = list(self.marks_of(head, now_s))
        entry.intents = head.open_transactions()
        dead = {name for name, _ in head.garbage}
        for run, parts in self.parts_of(entry.key).items():
            entry.bytes += sum(size for _, size, _ in parts)
            entry.sublists += len(parts)
            entry.garbage_found += len(parts) if run in dead else 0
        return head

    @staticmethod
    def marks_of(head, now_s):
        if head.is_absent():
            yield "absent"
        if head.is_leased(now_s):
            yield "leased"
        if head.cap:
            yield f"capped:{head.cap[0]}.{'refuse' if head.cap[1] else 'drop'}"
        if head.is_timed():
            yield "timed"
        if head.intents:
            yield "intents"

    def parts_of(self, key, server=None):
        """{run: sublists} that were found, on one server or on all."""
        found = collections.defaultdict(list)
        for one in [server] if server else self.servers:
            for run, parts in self.sublists[one].get(key, {}).items():
                found[run] += parts
        return found

    def homes(self, server, key):
        """Where the list's sublists may be."""
        return self.servers if self.layouts.is_spread(key) else [server]

    def absent_names(self, server, key, head):
        """The sublists of the head's runs that the crawlers did not show: some of them, and how
        many in all."""
        found = collections.defaultdict(set)
        for home in self.homes(server, key):
            for run, parts in self.parts_of(key, home).items():
                found[run] |= {number for number, _, can_be in parts if can_be}
        names, count = [], 0
        for run in head.content_runs():
            has = {number for number in found[run.name] if number < run.count}
            count += run.count - len(has)
            for number in range(run.count if len(has) < run.count else 0):
                if len(names) >= MISSING_READ_MAX:
                    break
                if number not in has:
                    names.append(b"%s#%s.%d" % (key, run.name, number))
        return names, count

    def look_for_missing(self, server, entry):
        """Is the list damaged? Sublists that the crawler has not shown are read; the head must be
        the same before and after that."""
        if self.has_failed_homes(entry.key):
            entry.say(UNKNOWN, "a server that may have its sublists does not answer")
            return
        name = entry.key + b"#"
        for _ in range(LOOKS_MAX):
            ((_, before),) = server.read([name])
            head = self.head_or_none(before, entry.key)
            if head is None:  # it has gone
                self.entries.remove(entry)
                return
            names, count = self.absent_names(server, entry.key, head)
            lost = self.not_there(self.homes(server, entry.key), names)
            if not lost and count > len(names):
                entry.say(UNKNOWN, f"{count} sublists were not shown; {len(names)} of them are there")
            if not lost:
                return
            ((_, after),) = server.read([name], with_value=False)
            if after and after.cas == before.cas:
                entry.missing = len(lost)
                least = "" if count == len(names) else "at least "
                entry.say(DAMAGED, f"{least}{len(lost)} sublists are missing")
                return
        entry.say(UNKNOWN, "it changed each time that it was looked at")

    def has_failed_homes(self, key):
        return self.some_failed and self.layouts.is_spread(key)

    @staticmethod
    def head_or_none(value, key):
        try:
            return Head(value.value, key) if value else None
        except NotUnderstood:
            return None

    @staticmethod
    def not_there(homes, names):
        left = names
        for home in homes:
            there = {
                name
                for name, value in home.read(left, with_value=False)
                if value and value.size >= SUBLIST_BYTES_MIN
            }
            left = [name for name in left if name not in there]
        return left

    def count_orphans(self, heads):
        """Sublists of lists that have no head: what scripts/sweep looks for."""
        keys = {key for found in heads.values() for key in found}
        for server in self.servers:
            for key, runs in self.sublists[server].items():
                if key in keys or not self.belongs(key):
                    continue
                for parts in runs.values():
                    self.orphans += len(parts)
                    self.orphan_bytes += sum(size for _, size, _ in parts)

    # --- transactions ---

    def transactions(self, is_whole):
        """Those of the lists that were found, and that are not over, the oldest first. is_whole:
        these are all servers."""
        named = {}
        for entry in self.entries:
            for intent in entry.intents:
                named.setdefault(intent.name, Transaction(intent))
        return in_order(Looker(self.read_heads, is_whole).look(in_order(named.values())))

    def read_heads(self, keys):
        found = collections.defaultdict(list)
        for server in self.servers:
            for name, value in server.read([key + b"#" for key in keys]):
                if value is not None:
                    found[name[:-1]].append((server, value.value))
        return found

    # --- dialects ---

    def look_at_dialects(self, server):
        lists = []
        for owner, names in sorted(self.owned[server].items()):
            section = self.layouts.section_of(owner)
            if not self.belongs(owner) or section is None or section.dialect == "native":
                continue
            if self.is_first_place(server, section, owner):
                lists.append((owner, section))
            elif not self.is_there(section, owner):
                self.parts += len(names)
        for owner, section in lists:
            self.take_dialect(server, owner, section)

    def firsts(self, section, owner):
        """The items of which there must be one."""
        if layout.keeps_key(section.dialect):
            return [owner]
        roles = [role for role in layout.ROLES[section.dialect] if role in layout.PRIMARY]
        return [layout.name_of(section, role, owner) for role in roles if role != "slot_name"]

    def is_there(self, section, owner):
        return any(
            name in server.records for name in self.firsts(section, owner) for server in self.servers
        )

    def is_first_place(self, server, section, owner):
        """A list of several items is shown once, with the server that has the first of them."""
        for name in self.firsts(section, owner):
            for other in self.servers:
                if name in other.records:
                    return other is server
        return False

    def take_dialect(self, server, owner, section):
        records = [(home, name) for home in self.servers for name in self.owned[home].get(owner, ())]
        records.sort(key=lambda record: record[0] is not server)
        entry = Entry(owner, server, section.dialect, records[0][0].records[records[0][1]])
        entry.bytes = sum(home.records[name].bytes for home, name in records)
        entry.idle_s = min(home.idle_s(home.records[name]) for home, name in records)
        entry.sublists = len(records) if section.dialect in layout.ROLES else 0
        self.entries.append(entry)
        if not LIST_KEY.fullmatch(owner):
            entry.say(FOREIGN, "a key that no list can have")
            return
        for home, name in records:
            ((_, value),) = home.read([name], with_value=section.migrates and name == owner)
            if value:
                self.judge_part(entry, section, name, value)

    @staticmethod
    def judge_part(entry, section, name, value):
        """A record of a move holds the native head, as long as that has no item of its own."""
        good = RING_FLAGS if section.dialect == "ring" else TEXT_FLAGS
        if value.flags not in good:
            entry.say(FOREIGN, f"{shown(name)} has flags {value.flags}")
        elif value.value and layout.record_before(value.value) is not None:
            entry.marks.append("moving")


# --- asked of a proxy --------------------------------------------------------------------------


def count_by_proxy(entries, address, pace, report):
    """llen of each list whose number of items is not known yet."""
    entries = [
        entry for entry in entries
        if entry.state != FOREIGN and LIST_KEY.fullmatch(entry.key)
        and (entry.items_least is None or entry.items_least != entry.items_most)
    ]
    try:
        with contextlib.closing(Connection(address)) as connection:
            for start in range(0, len(entries), AT_ONCE):
                part = entries[start : start + AT_ONCE]
                connection.send(*(b"llen " + entry.key for entry in part))
                for entry in part:
                    take_count(entry, connection)
                pace.wait(len(part))
    except (OSError, ValueError) as error:
        report(f"proxy {address}: {error}: not all lists are counted")


def take_count(entry, connection):
    try:
        entry.items_least = entry.items_most = number_of(connection.line())
        entry.is_counted = True
    except Answer as error:
        if is_foreign(error):
            entry.say(FOREIGN, str(error))
        elif entry.state == OK:
            entry.say(UNKNOWN, str(error))
