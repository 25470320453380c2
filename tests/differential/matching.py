# SPDX-License-Identifier: BSD-3-Clause
"""Compares what came from the proxy with what memcached answered: byte for byte, but for CAS
numbers and seconds, which must correspond."""

import re
import time

SECONDS_APART_MAX = 2  # and as many as the case takes

DATA_LINE = re.compile(rb"VALUE ([^ \n]+) \d+ (\d+)(?: (\d+))?\r\n|VA (\d+)(?: [^\n]+)?\r\n")
# Neither a key nor an opaque begins with one of these letters: k and O stand before them.
NUMBER_FLAG = re.compile(rb"(?<= )([ctl])(-?\d+)(?=[ \r])")
META_LINE = re.compile(rb"(?:HD|NS|EX|NF|EN) [^\n]*\r\n")
DEBUG_LINE = re.compile(rb"ME [^\n]* exp=(-?\d+) la=(-?\d+) cas=(\d+) [^\n]*\r\n")


class Answer:
    """Literal bytes with numbers between them: parts[0] numbers[0] parts[1] ... parts[-1], where a
    number is (kind, key, value)."""

    def __init__(self, text, key):
        self.text = text
        self.parts = []
        self.numbers = []
        self.start = 0
        pos = 0
        while pos < len(text):
            pos = self._line(pos, key)
        self.parts.append(text[self.start :])

    def _number(self, kind, key, span):
        self.parts.append(self.text[self.start : span[0]])
        self.numbers.append((kind, key, int(self.text[span[0] : span[1]])))
        self.start = span[1]

    def _flags(self, key, span):
        for found in NUMBER_FLAG.finditer(self.text, *span):
            kind = "cas" if found.group(1) == b"c" else "seconds"
            self._number(kind, key, found.span(2))

    def _line(self, pos, key):
        """Takes the numbers out of the line at pos; returns where the next one begins."""
        found = DATA_LINE.match(self.text, pos)
        if found and found.group(2):
            if found.group(3):
                self._number("cas", found.group(1), found.span(3))
            return found.end() + int(found.group(2)) + 2
        if found:
            self._flags(key, found.span())
            return found.end() + int(found.group(4)) + 2
        found = META_LINE.match(self.text, pos)
        if found:
            self._flags(key, found.span())
            return found.end()
        found = DEBUG_LINE.match(self.text, pos)
        if found:
            self._number("seconds", key, found.span(1))
            self._number("seconds", key, found.span(2))
            self._number("cas", key, found.span(3))
            return found.end()
        end = self.text.find(b"\n", pos)
        return len(self.text) if end < 0 else end + 1

    def is_like(self, other):
        """Whether the two differ in numbers at most."""
        return self.parts == other.parts

    def match(self, stream, pos):
        """(where the answer ends in the stream, the numbers found there) or None."""
        found = []
        for index, part in enumerate(self.parts):
            if not stream.startswith(part, pos):
                return None
            pos += len(part)
            if index < len(self.numbers):
                number = re.compile(rb"-?\d+").match(stream, pos)
                if not number:
                    return None
                found.append(int(number.group()))
                pos = number.end()
        return pos, found


class Numbers:
    """Which CAS number of the proxy's servers stands for which of memcached's, key by key."""

    def __init__(self):
        self.there = {}
        self.back = {}
        self.began = time.monotonic()

    def cas(self, key, ours, theirs):
        """Whether the two may be the same item's."""
        if ours == 0 or theirs == 0:
            return ours == theirs
        there = self.there.setdefault((key, ours), theirs)
        back = self.back.setdefault((key, theirs), ours)
        return there == theirs and back == ours

    def agree(self, numbers, found):
        """What does not fit, as a text, or None."""
        apart_max = SECONDS_APART_MAX + time.monotonic() - self.began
        for (kind, key, ours), theirs in zip(numbers, found):
            if kind == "cas" and not self.cas(key, ours, theirs):
                return f"CAS number {theirs} of {key!r} does not go with memcached's {ours}"
            if kind == "seconds" and ours != theirs:
                if -1 in (ours, theirs) or abs(ours - theirs) > apart_max:
                    return f"{theirs} seconds for {key!r}, memcached has {ours}"
        return None


class Pattern:
    """An answer of the proxy's own, given as a regular expression."""

    numbers = ()

    def __init__(self, expression):
        self.text = expression
        self.expression = re.compile(expression)

    def match(self, stream, pos):
        found = self.expression.match(stream, pos)
        return (found.end(), []) if found else None


def follow(stream, closed, steps, ending):
    """Is the stream made of one candidate of each step, in this order? steps: per request a list of
    (Answer or Pattern, whether the connection closes behind it). ending: what the last request is
    answered, unless the connection was closed; None: nothing may follow.

    Returns (None, pairs), the pairs being (expected numbers, found numbers); or (step, position):
    none of that step's candidates fits there; len(steps) for what comes behind the last."""
    reached = [(0, ())]
    for index, candidates in enumerate(steps):
        following = []
        for pos, pairs in reached:
            for answer, closes in candidates:
                found = answer.match(stream, pos)
                if found is None:
                    continue
                now = (*pairs, (answer.numbers, found[1])) if found[1] else pairs
                if closes:
                    if closed and found[0] == len(stream):
                        return None, now
                elif all(found[0] != known[0] for known in following):
                    following.append((found[0], now))
        if not following:
            return index, reached[0][0]
        reached = following
    for pos, pairs in reached:
        if ending is None and closed and pos == len(stream):
            return None, pairs
        if ending is not None and not closed and stream[pos:] == ending:
            return None, pairs
    return len(steps), reached[0][0]
