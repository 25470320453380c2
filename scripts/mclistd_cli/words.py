# SPDX-License-Identifier: BSD-3-Clause
"""A typed line becomes words, as in a shell, and bytes become text that can be typed again.

    ladd tags red 'hello world' "it's" $'two\\nlines \\xff'
"""

import re

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\", "'": "'", '"': '"'}
NAMES = {code: name for name, code in ESCAPES.items() if name not in "\"0"}
HEX = re.compile(r"[0-9a-fA-F]{1,2}")
BLANKS = " \t\r\n"
LINE_END = re.compile(r"\r\n|\r|\n")


class NotClosed(ValueError):
    """A quote that is opened and not closed."""


def to_bytes(text):
    return text.encode("utf-8", "surrogateescape")


def to_text(data):
    return data.decode("utf-8", "surrogateescape")


def is_clean(word):
    """Bytes that may stand in a request's line: no blanks, no control bytes."""
    return all(byte > 0x20 and byte != 0x7F for byte in word)


def _escape(line, at):
    """What stands behind a backslash in $'...': (bytes, the place behind it)."""
    letter = line[at : at + 1]
    found = HEX.match(line, at + 1) if letter == "x" else None
    if found:
        return bytes([int(found.group(), 16)]), found.end()
    if letter in ESCAPES:
        return to_bytes(ESCAPES[letter]), at + 1
    return b"\\" + to_bytes(letter), at + 1


def _quoted(line, at, quote):
    """The inside of a quote that begins before at: (bytes, the place behind the closing quote)."""
    data = bytearray()
    closing = "'" if quote == "$'" else quote
    while at < len(line):
        letter = line[at]
        at += 1
        if letter == closing:
            return bytes(data), at
        if letter == "\\" and quote == "$'":
            piece, at = _escape(line, at)
            data += piece
        elif letter == "\\" and quote == '"' and line[at : at + 1] in ('"', "\\"):
            data += to_bytes(line[at])
            at += 1
        else:
            data += to_bytes(letter)
    raise NotClosed(f"the quote {quote} is not closed")


def split(line):
    """The words of a line, as bytes. A quote may begin within a word. Raises NotClosed."""
    words, word, at = [], None, 0
    while at < len(line):
        letter = line[at]
        if letter in BLANKS:
            if word is not None:
                words.append(bytes(word))
            word = None
            at += 1
            continue
        if word is None:
            word = bytearray()  # a word may have megabytes
        quote = "$'" if line.startswith("$'", at) else letter if letter in "'\"" else None
        if quote:
            piece, at = _quoted(line, at + len(quote), quote)
            word += piece
        elif letter == "\\":
            word += to_bytes(line[at + 1 : at + 2] or "\\")
            at += 2
        else:
            word += to_bytes(letter)
            at += 1
    return words if word is None else [*words, bytes(word)]


def is_printable(text):
    """Can a terminal show it as it is? Bytes that are not UTF-8 are lone surrogates in it."""
    return all(letter.isprintable() or letter == " " for letter in text)


def _escaped(text):
    for letter in text:
        if letter in NAMES:
            yield "\\" + NAMES[letter]
        elif letter.isprintable() or letter == " ":
            yield letter
        else:
            yield "".join(f"\\x{byte:02x}" for byte in to_bytes(letter))


def dollar_quoted(text):
    return "$'" + "".join(_escaped(text)) + "'"


def shown(data):
    """One line of text for an item: as it is where that is clear, else in $'...'."""
    text = to_text(data)
    if is_printable(text) and text == text.strip() and text != "" and not text.startswith("$'"):
        return text
    return dollar_quoted(text)


def typed(data):
    """The same as a word that can be typed."""
    text = to_text(data)
    if re.fullmatch(r"[\w@%+=:,./#{}\[\]^~!?*<>|&;()-]+", text) and is_printable(text):
        return text
    if is_printable(text) and "'" not in text:
        return f"'{text}'"
    return dollar_quoted(text)
