# SPDX-License-Identifier: BSD-3-Clause
"""What the two servers of a list hold while it moves from one to the other: the rules, as pure
functions.

O is its server by the old list of servers, N by the new one. Each holds nothing (None), or

    Head(fields, log, made)   a list. fields: 't' it expires, '#' capped at one item. made: stands
                              for the CAS number
    Mark(token, tail)         on O: the list is on N. tail: what somebody has appended to the mark
    Copy(token, head)         on N: a list that does not count yet

    O         N                        the list is
    a Head    nothing, a Copy          the Head on O
    a Mark    the Copy of its token    that Copy: whoever meets it makes it a Head first
    a Mark    a Head                   the Head on N
    a Mark    nothing, another Copy    missing
    nothing   a Head                   the Head on N
    nothing   nothing, a Copy          missing

Entries of a log: ('+', item) ('-', item) ('!',), ('r', name) a sublist, ('?', token) a lease: the
list is absent until the client with that token fills it.
"""

from collections import namedtuple

from rules import applied

Head = namedtuple("Head", "fields log made")
Mark = namedtuple("Mark", "token tail", defaults=((),))
Copy = namedtuple("Copy", "token head")
EMPTY = ""  # the token of a mark that was written where no list was: no copy has it


def is_head(item):
    """Heads of worlds with transactions are plain tuples (rules.py of the transactions)."""
    return item is not None and not isinstance(item, (Mark, Copy))


def appended(item, entries):
    """What memcached makes of an APPEND: it does not know one from the other."""
    if isinstance(item, Mark):
        return item._replace(tail=item.tail + entries)
    if isinstance(item, Copy):
        return item._replace(head=appended(item.head, entries))
    if isinstance(item, Head):
        return item._replace(log=item.log + entries)
    return (item[0], item[1] + entries)


def that_counts(old, new):
    """The head that the list is, or None."""
    if is_head(old):
        return old
    if is_head(new):
        return new
    if isinstance(old, Mark) and isinstance(new, Copy) and old.token == new.token:
        return new.head
    return None


def content(head, runs):
    """The items in order; None where a sublist is missing. runs: name -> items or None."""
    items = ()
    for entry in head.log if head is not None else ():
        if entry[0] == "r":
            if runs.get(entry[1]) is None:
                return None
            items = applied(items, tuple(("+", item) for item in runs[entry[1]]))
        elif entry[0] == "?":
            items += (entry,)
        else:
            items = applied(items, (entry,))
            items = items[-1:] if "#" in head.fields else items
    return items


def named(head):
    return tuple(entry[1] for entry in head[1] if entry[0] == "r")
