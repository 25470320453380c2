# SPDX-License-Identifier: BSD-3-Clause
"""Which items a list is made of, and whose item a name is."""

import re

# The templates of a dialect, in the order in which a backup is written back: without the last one
# there is no list.
ROLES = {
    "paired": ["delete_name", "add_name"],
    "flip": ["active_name", "b_name", "a_name"],
    "marker": ["b_name", "a_name"],
    "sublists": ["sublist_name"],
    "ring": ["slot_name", "seq_name"],
}
DEFAULTS = {
    "add_name": b"follow-%s", "delete_name": b"unfollow-%s", "a_name": b"%s.a", "b_name": b"%s.b",
    "active_name": b"%s.active", "sublist_name": b"%s.", "seq_name": b"%s.seq", "slot_name": b"%s.",
}
NUMBERED = ("sublist_name", "slot_name")
# What there must be one of.
PRIMARY = ("add_name", "a_name", "b_name", "seq_name", "slot_name")
NATIVE_HEAD = re.compile(rb"(.{1,220})#", re.DOTALL)
NATIVE_SUBLIST = re.compile(rb"(.{1,220})#([a-z2-7]{13})\.(?:0|[1-9][0-9]{0,6})", re.DOTALL)
# By these items proxies read a server's clock: they belong to no list.
CLOCK = re.compile(rb"mclistd#clock\.[01]")
NUMBER = re.compile(rb"0|[1-9][0-9]{0,9}")
DIGITS_MAX = 10
COUNT = re.compile(rb"[0-9]{1,20}")
RECORD = re.compile(rb"\x01mclistd moved 1 ([0-9]+) [0-9]+\n")
HEAD = re.compile(rb"\^[0-9]+(?: [^ \n]+)*\n")
SUBLIST = re.compile(rb"\^[0-9]+ [0-9]{10}\n")


def keeps_key(dialect):
    """Is something of the list stored under its own key?"""
    return dialect in ("simple", "tombstone", "signed", "sublists")


def has_own_key(section):
    """The same, also where a setting says so: the additions of pairs."""
    pairs = section.dialect == "paired" and template(section, "add_name") == (b"", b"")
    return pairs or keeps_key(section.dialect)


def template(section, role):
    """What stands before and behind the list's key."""
    before, _, after = section.bytes(role, DEFAULTS[role]).partition(b"%s")
    return before, after


def name_of(section, role, key, number=None):
    before, after = template(section, role)
    return before + key + after + (b"" if number is None else b"%d" % number)


class Claim:
    """An item of that name is, or would be, one of that list's."""

    def __init__(self, section, owner, role, number):
        self.section, self.owner, self.role, self.number = section, owner, role, number


def owners_of(section, role, name):
    """Yields (owner, number): one, or several where nothing stands before the number."""
    before, after = template(section, role)
    if not name.startswith(before):
        return
    lengths = [0]
    if role in NUMBERED:
        lengths = [n for n in range(1, DIGITS_MAX + 1) if NUMBER.fullmatch(name[-n:])]
    for digits in lengths:
        rest = name[len(before) : len(name) - digits]
        if rest.endswith(after) and len(rest) > len(after):
            number = int(name[-digits:]) if digits else None
            yield rest[: len(rest) - len(after)], number


def claims_on(name, worlds):
    """All lists, of all prefixes of all proxies, that name their items like that: not lists of
    dialects of one item, whose name is their own, and not native ones."""
    found = []
    for settings in worlds:
        for section in settings.sections.values():
            for role in ROLES.get(section.dialect, []):
                for owner, number in owners_of(section, role, name):
                    if settings.belongs(owner, section):
                        found.append(Claim(section, owner, role, number))
    return found


def record_before(value):
    """What stood in the place of a record of a move; None: it is no record."""
    match = RECORD.match(value)
    return value[match.end() + int(match[1]) :] if match else None


def numbers_in(section, index):
    """The sublists that an index lists; None: it is no index."""
    before = record_before(index)
    index = index if before is None else before
    if section.text("sublist_text") == b"delimited":
        delimiter = section.bytes("delimiter", b",")
        if not re.fullmatch(rb"(?:[0-9]{0,10}" + re.escape(delimiter) + rb")*[0-9]{0,10}", index):
            return None
        return {int(number) for number in index.split(delimiter) if number}
    plus, minus = section.bytes("add_sign", b"+"), section.bytes("delete_sign", b"-")
    signs = re.escape(plus) + rb"|" + re.escape(minus)
    if not re.fullmatch(rb"(?:(?:" + signs + rb")[0-9]{1,10})*", index):
        return None
    found = set()
    for sign, number in re.findall(rb"(" + signs + rb")([0-9]+)", index):
        (found.add if sign == plus else found.discard)(int(number))
    return found


def capacity_of(section):
    return int(section.text("capacity", b"100"))


def counted(section, key, found):
    """The names of the items that a ring must have, by those that were found: its counter, and the
    slots that this has counted. A counter that clients set back has counted all slots if there is
    one behind it. found: {name: [(address, Item)]}."""
    counter, capacity = name_of(section, "seq_name", key), capacity_of(section)
    if counter not in found:
        return [counter]
    values = [item.value.rstrip(b" ") for _, item in found[counter]]
    last = max((int(value) for value in values if COUNT.fullmatch(value)), default=0)
    names = [name_of(section, "slot_name", key, n) for n in range(capacity)]
    if section.text("counter_wraps") == b"yes" and last < capacity and not found.keys().isdisjoint(
        [names[0], *names[last + 1 :]]
    ):
        last = capacity
    return [names[n % capacity] for n in range(max(1, last - capacity + 1), last + 1)]
