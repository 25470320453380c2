# SPDX-License-Identifier: BSD-3-Clause
"""The PREFIX of [lists PREFIX], and which one a key has: as src/config/prefix.h has it.

A prefix is its bytes; behind a * it is one that may stand anywhere in a key. Of a prefix that begins
with a * itself that byte stays escaped."""

import re

ESCAPED = re.compile(rb"\\x([0-9a-fA-F]{2})")
STAR = b"\\x2a"


def unescaped(text):
    """Bytes that the configuration has as \\xNN."""
    return ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), text)


def prefix_of(text):
    """The prefix that a file or `stats settings` has as text."""
    found = unescaped(text)
    return STAR + found[1:] if found.startswith(b"*") and not text.startswith(b"*") else found


def part_of(prefix):
    """(Its bytes, whether they may stand anywhere)."""
    return (prefix[1:], True) if prefix.startswith(b"*") else (prefix.replace(STAR, b"*", 1), False)


def begin_of(prefix, key):
    """What of the key the prefix takes, with all that stands before it; None: it does not fit."""
    part, anywhere = part_of(prefix)
    at = key.find(part) if anywhere else 0
    return key[: at + len(part)] if at >= 0 and key.startswith(part, at) else None


def best_of(prefixes, key):
    """The prefix that holds for the key, or None."""

    def rank(prefix):
        part, anywhere = part_of(prefix)
        begin = begin_of(prefix, key)
        if part and not anywhere:
            return 2, 0, len(part)
        return (1, len(part) - len(begin), len(part)) if anywhere else (0, 0, 0)

    return max((p for p in prefixes if begin_of(p, key) is not None), key=rank, default=None)
