# SPDX-License-Identifier: BSD-3-Clause
"""Bridged lists: the prefixes of the tests, and how their values are sent."""

import base64

from harness import as_bytes

BRIDGES = {
    "lists b-": {"bridge": "yes"},
    "lists r-": {"bridge": "yes", "on_missing": "refuse"},
    "lists s-": {"bridge": "yes", "dialect": "simple"},
    "lists g-": {"bridge": "yes", "dialect": "signed", "delimiter": "|"},
    "lists f-": {"bridge": "yes", "dialect": "flip"},
    "lists o-": {"bridge": "yes", "dialect": "ring"},
    "lists h-": {"bridge": "yes", "dialect": "simple", "bridge_last_delimiter": "yes"},
    "lists t-": {"bridge": "yes", "bridge_flags_in": "0, 7", "bridge_flags_out": 5},
}
LISTS = ("b-x", "r-x", "s-x", "f-x")  # whose delimiter is a comma


def store(conn, verb, key, value, flags=0, exptime=0, tail=""):
    return conn.cmd(f"{verb} {key} {flags} {exptime} {len(as_bytes(value))}{tail}", value)


def fill(conn, key, *items):
    assert conn.cmd(f"lset {key} {' '.join(items)}") == b"STORED"


def encoded(key):
    return base64.b64encode(key.encode()).decode()


def ttl(conn, key):
    return int(conn.cmd(f"lttl {key}"))
