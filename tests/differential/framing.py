# SPDX-License-Identifier: BSD-3-Clause
"""Requests as they are sent, and how much data belongs to a line: written anew from the protocol,
not from the daemon's parser. Nothing here sends anything."""

import base64
import dataclasses
import re

STORAGE = {b"set": 4, b"add": 4, b"replace": 4, b"append": 4, b"prepend": 4, b"cas": 5}
MANY_KEYS = {b"get", b"gets", b"gat", b"gats"}
META = {b"mg", b"ms", b"md", b"ma", b"me"}
KEYED = {*STORAGE, *MANY_KEYS, *META, b"delete", b"incr", b"decr", b"touch"}
PLAIN = {b"mn", b"version", b"verbosity", b"flush_all", b"quit", b"stats"}

KEY_BYTES_MAX = 250
BASE64_KEY_BYTES_MAX = 186
SHORT_LINE_BYTES_MAX = 2048
LINE_BYTES_MAX = 1 << 20
VALUE_BYTES_MAX = 1 << 20

NO_KEY = b"nokey"
MISS = b"EN\r\n"
PROBE = re.compile(rb"NF Op[0-9a-f]{8}\r\n")
PROBE_BYTES_MIN = 16
PROBE_BYTES_MAX = 2000


@dataclasses.dataclass
class Request:
    """One request of a stream. What cas_place(KEY) gives stands for KEY's CAS number on either
    side."""

    line: bytes
    eol: bytes = b"\r\n"
    body: bytes = b""  # all that follows the line end
    # Well-formed: answered by a memcached as the one behind the proxy answers it.
    canonical: bool = True
    cut: bool = False  # not whole: the client ends sending in its middle
    key: bytes = b""

    def text(self, cas_of):
        """The bytes to send, where cas_of(key) fills in CAS numbers."""
        return fill(self.line, cas_of) + self.eol + self.body

    def words(self):
        return words_of(self.line)

    def key_words(self):
        """The words that stand where keys belong."""
        words = self.words()
        if words[:1] in ([b"get"], [b"gets"]):
            return words[1:]
        return words[2:] if words[:1] in ([b"gat"], [b"gats"]) else words[1:2]


CAS_PLACE = re.compile(rb"{cas:([0-9a-f]*)}")


def cas_place(key):
    """A word without blanks, whatever the key holds."""
    return b"{cas:%s}" % key.hex().encode()


def cas_keys(line):
    """The keys whose CAS numbers the line needs."""
    return [bytes.fromhex(digits.decode()) for digits in CAS_PLACE.findall(line)]


def fill(line, cas_of):
    if b"{cas:" not in line:
        return line
    return CAS_PLACE.sub(lambda found: cas_of(bytes.fromhex(found.group(1).decode())), line)


def words_of(line):
    """The words of a line without its line end."""
    if line.endswith(b"\r"):
        line = line[:-1]
    return [word for word in line.split(b" ") if word]


def readable_length(word):
    """The length of a data block, None when it is not readable as one."""
    if re.fullmatch(rb"\+?[0-9]{1,10}", word) and int(word) <= 2**31 - 3:
        return int(word)
    return None


def announced(line):
    """How much data a line announces: None for no storage command, or one that is too short for
    data to be meant; "unknown"; or the number of bytes without the line end behind them."""
    words = words_of(line)
    if len(words) < 2 or (words[0] not in STORAGE and words[0] != b"ms"):
        return None
    place = 2 if words[0] == b"ms" else 4
    length = readable_length(words[place]) if len(words) > place else None
    return "unknown" if length is None else length


def hides_refusals(line):
    """A classic storage line of the right number of words that ends in noreply."""
    words = words_of(line)
    least = STORAGE.get(words[0])
    if least is None or not least + 1 <= len(words) <= least + 2:
        return False
    return words[-1] == b"noreply"


def probe(rng, size):
    """A command of so many bytes that changes nothing and whose answer cannot be mistaken: data
    that shows when it is run."""
    key = NO_KEY + b"y" * min(size - 14 - len(NO_KEY), KEY_BYTES_MAX - len(NO_KEY))
    if size - 14 < len(NO_KEY):
        key = b"z" * (size - 14)
    line = b"md %s Op%08x" % (key, rng.getrandbits(32))
    return line + b" " * (size - len(line))


BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def decoded(word):
    """What a base64 word stands for, or None."""
    return base64.b64decode(word) if word and BASE64.fullmatch(word) else None


def meta_flags(words):
    """The flags of a meta request."""
    return words[3 if words[0] == b"ms" else 2 :]


def says_base64(words):
    """Whether a meta request's key is meant to be in base64."""
    flags = meta_flags(words)
    return any(f[:1] == b"b" for f in flags) if words[0] != b"me" else flags[:1] == [b"b"]


def can_be_named(key):
    """Whether by_name can ask for it."""
    if len(key) <= BASE64_KEY_BYTES_MAX:
        return len(key) > 0
    return len(key) <= KEY_BYTES_MAX and not set(key) & set(b"\0\n\r ")


def by_name(verb, key, flags=b""):
    """A meta request for a key of any bytes."""
    if len(key) > BASE64_KEY_BYTES_MAX:
        return b"%s %s%s\r\n" % (verb, key, flags)
    return b"%s %s b%s\r\n" % (verb, base64.b64encode(key), flags)
