# SPDX-License-Identifier: BSD-3-Clause
"""Calls scripts/clients/python as the lines of its input say; README.md has their words."""

import sys

from mclistd import Error, Lists, Lost, Refused


def argument(word):
    kind, rest = word[0], word[1:]
    if kind == "l":
        return [bytes.fromhex(item) for item in rest.split(",")] if rest else []
    return {"s": bytes.fromhex, "i": int, "n": lambda _: None, "t": lambda _: True}[kind](rest)


def shown(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Refused):
        return "refused:" + str(value).encode().hex()
    if isinstance(value, Exception):
        return "lost" if isinstance(value, Lost) else "moved" if isinstance(value, Error) else "bad"
    if isinstance(value, tuple):
        return "@".join(map(shown, value))
    if isinstance(value, list):
        return "[" + " ".join(map(shown, value)) + "]"
    if isinstance(value, dict):
        return "{" + " ".join(f"{shown(key)}={shown(value[key])}" for key in value) + "}"
    if isinstance(value, int):
        return f"i{value}"
    return "s" + (value if isinstance(value, bytes) else value.encode()).hex()


def call(face, name, args):
    if name == "pages":
        return list(face.pages(*args))
    if name == "ltx":
        args = [[change[0].decode(), *change[1:]] for change in args]
    return getattr(face, name)(*args)


lists, pipe = None, None
for line in sys.stdin:
    name, *args = line.split()
    args = list(map(argument, args))
    try:
        value = None
        if name == "open":
            lists = Lists(f"127.0.0.1:{args[0]}", timeout=args[1] / 1000, delimiter=args[2], encoding=None,
                          login=args[3].decode() if args[3:] else None)
        elif name == "pipeline":
            pipe = lists.pipeline()
        elif name == "run":
            value, pipe = pipe.run(), None
        else:
            value = call(pipe or lists, name, args)
    except (Error, ValueError) as error:
        value = error
    print(shown(value), flush=True)
