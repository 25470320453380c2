# SPDX-License-Identifier: BSD-3-Clause
"""Adds the items that it is told, as hex, with the helper of docs/clients/python.md."""

import sys

from lists import Lists

lists = Lists("127.0.0.1", int(sys.stdin.readline()))
for line in sys.stdin:
    key, item = map(bytes.fromhex, line.rstrip("\n").split(" "))
    try:
        print("stored" if lists.add(key, item) else "not")
    except (RuntimeError, ValueError):
        print("refused")
for item in lists.items(b"hostile"):
    print(item.hex())
