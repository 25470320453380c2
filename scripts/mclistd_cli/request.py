# SPDX-License-Identifier: BSD-3-Clause
"""Typed words become the requests that are sent. Whatever a word holds, it never becomes a command
of its own: a word with blanks or control bytes goes in a block, whose length is sent first, or is
refused."""

from mclistd_cli.words import is_clean, shown, to_text

NO_BLANKS = "holds a blank or a control byte, which would begin another word or command"


class Refused(ValueError):
    """Nothing was sent. hint: what to do, or None."""

    def __init__(self, text, hint=None):
        super().__init__(text)
        self.hint = hint


class Plan:
    """requests: one after the other, each with its block. verb: None for an unknown one. note: what
    the user should know about them, or None."""

    def __init__(self, name, verb, requests, note=None):
        self.name, self.verb, self.requests, self.note = name, verb, requests, note


def line(*words):
    return b" ".join(words) + b"\r\n"


def block(data, *words):
    """A line in which None stands for the number of bytes, and the bytes."""
    return line(*(b"%d" % len(data) if word is None else word for word in words)) + data + b"\r\n"


def check_clean(words):
    for word in words:
        if word == b"":
            raise Refused("an empty word cannot be sent here")
        if not is_clean(word):
            raise Refused(f"{shown(word)} {NO_BLANKS}")


def usage_error(verb, hint=None):
    return Refused(f"usage: {verb.line}", hint or verb.short)


def bounds(usage):
    """How many words a usage takes: (at least, at most or None for any number)."""
    needed = sum(1 for word in usage if not word.startswith("["))
    return needed, None if usage and usage[-1].rstrip("]").endswith("...") else len(usage)


def check_count(verb, words):
    least, most = bounds(verb.usage)
    if len(words) < least:
        raise usage_error(verb)
    if most is not None and len(words) > most:
        hint = "the lengths are counted for you" if verb.has_block else verb.short
        raise usage_error(verb, f"{hint}; quote a word that has blanks: 'hello world'")


def with_lines(verb, words, note=None):
    """All items in one block, as lgetb answers them."""
    check_count(verb, words)
    key, *items = words
    check_clean([key])
    if b"" in items:
        raise Refused("an item has one byte at least")
    data = b"".join(b"ITEM %s %d\r\n%s\r\n" % (key, len(item), item) for item in items)
    return Plan(verb.name, verb, [block(data, verb.name.encode(), key, None)], note)


def changes(words):
    """The lines of an ltx: words, which a lone ; ends. One that names an item with blanks goes as
    several, an item of any bytes each."""
    lines, change = [], []
    for word in [*words, b";"]:
        if word != b";":
            change.append(word)
            continue
        check_clean(change[:2])
        if b"" in change[2:]:
            raise Refused("an item has one byte at least")
        if all(map(is_clean, change)):
            lines.append(line(*change) if change else b"")
        elif change[0] == b"lset":
            lines.append(line(*change[:2]))
            lines += [block(item, b"laddb", change[1], None) for item in change[2:]]
        else:
            lines += [block(item, change[0] + b"b", change[1], None) for item in change[2:]]
        change = []
    return lines


def with_changes(verb, words):
    check_count(verb, words)
    lines = changes(words)
    if b"" in lines:
        raise usage_error(verb, "a change stands on either side of a ;")
    return Plan(verb.name, verb, [block(b"".join(lines), verb.name.encode(), None)])


def with_items(table, verb, name, words):
    first = len(verb.usage) - 1
    check_clean(words[:first])
    items = words[first:]
    if b"" in items:
        raise Refused("an item has one byte at least")
    if all(map(is_clean, items)):
        return Plan(to_text(name), verb, [line(name, *words)])
    whole = table.find("lputb")
    if verb.name == "lset" and whole is not None:
        return with_lines(whole, words, "sent as lputb: an item has blanks")
    other = table.block_form(verb)
    if other is None:
        odd = next(item for item in items if not is_clean(item))
        raise Refused(f"{shown(odd)} {NO_BLANKS}", f"{verb.name} takes no such items")
    requests = [block(item, other.name.encode(), *words[:first], None) for item in items]
    note = None
    if len(items) > 1:
        note = f"sent as {len(items)} {other.name}, one after the other: an item has blanks"
    return Plan(to_text(name), verb, requests, note)


def with_block(verb, name, words):
    """A list verb whose usage has BYTES: the word in its place goes in a block."""
    check_count(verb, words)
    place = verb.wire.index("BYTES")
    data, rest = words[place], [*words[:place], None, *words[place + 1 :]]
    check_clean(word for word in rest if word is not None)
    if data == b"" and verb.usage[place] == "ITEM":
        raise Refused("an item has one byte at least")
    note = None
    if data.isdigit() and verb.usage[place] == "ITEM":
        note = f"{to_text(data)} is the item itself here: its length is counted for you"
    return Plan(to_text(name), verb, [block(data, name, *rest)], note)


def store(verb, name, words):
    """set KEY VALUE [EXPTIME] and its like, cas KEY VALUE UNIQUE [EXPTIME], ms KEY VALUE FLAG..."""
    check_count(verb, words)
    key, data, *rest = words
    check_clean([key, *rest])
    if verb.name == "ms":
        return Plan(to_text(name), verb, [block(data, name, key, None, *rest)])
    unique = [rest.pop(0)] if verb.name == "cas" else []
    exptime = rest[0] if rest else b"0"
    return Plan(to_text(name), verb, [block(data, name, key, b"0", exptime, None, *unique)])


def plan(table, words):
    """What to send for a line of words, of which there is one at least. Raises Refused."""
    name, *rest = words
    check_clean([name])
    verb = table.find(to_text(name))
    if verb is None or (not verb.is_list and not verb.has_block):
        check_clean(rest)
        return Plan(to_text(name), verb, [line(name, *rest)])
    if not verb.is_list:
        return store(verb, name, rest)
    if verb.has_block:
        return with_block(verb, name, rest)
    if verb.has_lines:
        return with_lines(verb, rest)
    if verb.has_changes:
        return with_changes(verb, rest)
    if verb.takes_items:
        return with_items(table, verb, name, rest)
    check_clean(rest)
    return Plan(to_text(name), verb, [line(name, *rest)])
