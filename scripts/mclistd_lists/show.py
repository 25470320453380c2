# SPDX-License-Identifier: BSD-3-Clause
"""The lists as a table for a person, or as JSON lines for a program."""

import json
import urllib.parse

from mclistd_convert.wire import shown
from mclistd_lists.listing import OK

HEADINGS = ("ITEMS", "BYTES", "SUBLISTS", "IDLE", "TTL", "DIALECT", "STATE", "MARKS", "KEY")
LEFT = ("DIALECT", "STATE", "MARKS", "KEY")
UNITS = ((86400, "d"), (3600, "h"), (60, "m"))
# What comes first; what is not known comes last.
ORDERS = {
    "size": lambda entry: (-entry.bytes, entry.key),
    "age": lambda entry: (-entry.idle_s, entry.key),
    "items": lambda entry: (entry.items_least is None, -(entry.items_least or 0), entry.key),
    "key": lambda entry: (entry.key, entry.server),
}


def in_order(entries, order, top):
    entries = sorted(entries, key=ORDERS[order])
    return entries[:top] if top else entries


def duration(seconds):
    for unit_s, letter in UNITS:
        if seconds >= 2 * unit_s:
            return f"{seconds // unit_s}{letter}"
    return f"{seconds}s"


def count_of(entry):
    if entry.items_least is None:
        return "?"
    return ("" if entry.items_least == entry.items_most else ">=") + str(entry.items_least)


def marks_of(entry):
    marks = list(entry.marks)
    if entry.garbage:
        marks.append(f"garbage:{entry.garbage}")
    if entry.announcements_old:
        marks.append(f"old-announcements:{entry.announcements_old}")
    if entry.intents:
        marks.append(f"transactions:{len(entry.intents)}")
    return ",".join(marks) or "-"


def row_of(entry):
    return (
        count_of(entry), str(entry.bytes), str(entry.sublists), duration(entry.idle_s),
        "-" if entry.ttl_s is None else duration(entry.ttl_s), entry.dialect, entry.state,
        marks_of(entry), shown(entry.key),
    )


def print_table(entries):
    rows = [HEADINGS, *map(row_of, entries)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADINGS))]
    for row in rows:
        cells = [
            cell.ljust(width) if heading in LEFT else cell.rjust(width)
            for heading, cell, width in zip(HEADINGS, row, widths)
        ]
        print("  ".join(cells).rstrip())
    for entry in entries:
        if entry.state != OK:
            print(f"{entry.state}: {shown(entry.key)} on {entry.server}: {entry.note}")


def object_of(entry):
    is_exact = entry.items_least is not None and entry.items_least == entry.items_most
    return {
        "key": urllib.parse.quote_from_bytes(entry.key),
        "server": entry.server,
        "dialect": entry.dialect,
        "state": entry.state,
        "note": entry.note,
        "items": entry.items_least if is_exact else None,
        "items_at_least": entry.items_least,
        "items_at_most": entry.items_most,
        "counted": entry.is_counted,
        "bytes": entry.bytes,
        "sublists": entry.sublists,
        "missing_sublists": entry.missing,
        "idle_s": entry.idle_s,
        "ttl_s": entry.ttl_s,
        "marks": entry.marks,
        "garbage_names": entry.garbage,
        "garbage_sublists": entry.garbage_found,
        "announcements": entry.announcements,
        "announcements_old": entry.announcements_old,
        "transactions": len(entry.intents),
    }


def print_json(entries):
    for entry in entries:
        print(json.dumps(object_of(entry)))
