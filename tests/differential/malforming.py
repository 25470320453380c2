# SPDX-License-Identifier: BSD-3-Clause
"""Random requests that are not as they should be. They name keys of their own, so far from each
other that a changed byte makes no other connection's key of them."""

import re

import exceptions
import framing
from framing import Request
from generating import encoded

WORDS = [b"quince", b"medlar", b"damson", b"bilberry"]
COUNTERS = [b"alpha", b"oxbow", b"rhyme", b"tundra"]
SOON_S = 60
# Numbers that may be 2^63 and more without being too large altogether.
HUGE = re.compile(rb"[0-9]{19}")

ODD_WORDS = (
    b"noreply 0 1 -1 -0 +1 00 01 0x10 1e3 1.5 1x x ! v k q b S I O T N M C F MX Mxx Tx Cx Fx "
    b"T99999999999 F4294967296 C18446744073709551616 N-1 2147483647 2147483648 -2147483648 "
    b"4294967295 4294967296 99999999999 000000000001 18446744073709551615 18446744073709551616 "
    b"-18446744073709551615 9999999999999999999999 1048577 get set HTTP/1.1 / YQ YQ= YQ== "
    b"a2V5 ~ \x7f \xff \t a\tb \r"
).split(b" ") + [b"O" + b"o" * 31, b"O" + b"o" * 32]

LINES = """
get
gets
gat
gat 0
gats 0
gat KEY
gat x KEY
gat +5 KEY
gat 99999999999 KEY
gat  -1  KEY
set
set KEY
set KEY 0
set KEY 0 0
set KEY 0 0 -1
set KEY 0 0 +20
set KEY 0 0 20x
set KEY 0 0 2147483647
set KEY 0 0 99999999999
set KEY 0 0 20 whatever
set KEY 0 0 20 2 3
set KEY 0 0 20 noreply more
set KEY x 0 20
set KEY -1 0 20
set KEY +1 0 20
set KEY 4294967296 0 20
set KEY 0 x 20
set KEY 0 99999999999 20
set KEY 0 2147483648 20
set KEY 0 -2147483649 20
set KEY x 0 20 noreply
set LONG 0 0 20
set LONG 0 0 20 noreply
add KEY 0 0 20 noreply
append KEY x x 20
cas KEY 0 0 20
cas KEY 0 0 20 x
cas KEY 0 0 20 -1
cas KEY 0 0 20 1 2 3
cas KEY 0 0 20 noreply
cas KEY 0 0 20 18446744073709551616
delete
delete KEY 1
delete KEY 0 1
delete KEY x noreply
delete KEY noreply x
delete KEY b c d
delete LONG
delete LONG noreply
incr
incr COUNT
incr COUNT x
incr COUNT -1
incr COUNT +1
incr COUNT 18446744073709551616
incr COUNT 1 2
incr COUNT 1 2 3
incr COUNT x noreply
incr LONG 1
incr KEY 1
decr COUNT 1.5
touch
touch KEY
touch KEY x
touch KEY 1 2 3
touch KEY 100 x
touch KEY 99999999999
touch LONG 1
touch KEY x noreply
get LONG
get KEY LONG
gat 0 LONG
gat 0 KEY LONG
mg
mg LONG
mg LONG v
mg KEY v v
mg KEY !
mg KEY T
mg KEY Nx
mg YQ b v
mg YQ= b v
mg FEED b k N30 v
mg FEED b k v
ms FEED 20 b k
ma FEED b k N0
md FEED k q b
me FEED b
ms
ms KEY
ms KEY x
ms KEY -1
ms KEY 99999999999
ms KEY S20
ms KEY 20 v v
ms KEY 20 MX
ms KEY 20 Mxx
ms KEY 20 M
ms KEY 20 Me
ms KEY 20 Fx
ms KEY 20 F-1
ms KEY 20 F4294967296
ms KEY 20 Tx
ms KEY 20 T99999999999
ms KEY 20 Cx
ms KEY 20 !
ms YQ 20 b
ms LONG 20
ms LONG 20 q
md
md LONG
md KEY v v
md KEY !
md KEY Cx
md YQ b
ma
ma LONG
ma COUNT Dx
ma COUNT D-1
ma COUNT Jx
ma COUNT MX
ma COUNT Mi
ma COUNT Md
ma COUNT Nx
ma COUNT v v
me
me LONG
me YQ b
mn x
flush_all x
flush_all 0 0
flush_all 0 0 0
flush_all 10
flush_all 10 noreply
flush_all 0 x
verbosity
verbosity x
verbosity 1 2
verbosity noreply
version x
slabs reassign 1 2
lru mode flat
lru_crawler enable
watch fetchers
cache_memlimit 64
shutdown
refresh_certs
extstore
misbehave
bogus
GET KEY
Get KEY
\x80
""".strip().split("\n")


class Malformer:
    def __init__(self, rng, share):
        self.rng = rng
        self.share = share
        self.word = WORDS[share.number]
        self.counter = COUNTERS[share.number]
        self.long_key = b"-_.~"[share.number : share.number + 1] * (framing.KEY_BYTES_MAX + 1)
        self.odd_words = [*ODD_WORDS, self.long_key, self.long_key[1:]]

    def template(self):
        line = self.rng.choice(LINES).encode("latin-1")
        line = line.replace(b"KEY", self.word).replace(b"COUNT", self.counter)
        line = line.replace(b"FEED", encoded(self.word + b"\r\nHD"))
        return line.replace(b"LONG", self.long_key)

    def sound(self):
        """A well-formed line about the own keys, to be spoilt."""
        rng, word = self.rng, self.word
        return rng.choice(
            [
                b"get " + word,
                b"gets %s zero %s" % (word, word),
                b"gat 100 " + word,
                b"gats 0 %s zero" % word,
                b"set %s 5 0 20" % word,
                b"add %s 5 100 30 noreply" % word,
                b"append %s 5 0 40" % word,
                b"cas %s 5 0 20 1" % word,
                b"delete " + word,
                b"delete %s 0 noreply" % word,
                b"touch %s 100" % word,
                b"incr %s 1" % self.counter,
                b"decr %s 1 noreply" % self.counter,
                b"mg %s v k f s c t O1 q" % word,
                b"mg %s T100 N100 R30 v" % word,
                b"mg %s b v k" % encoded(word),
                b"ms %s 20 T100 F5 k O1 c" % word,
                b"ms %s 30 MA C1 q" % word,
                b"ms %s 40 b MS" % encoded(word),
                b"md %s q k O1 C1" % word,
                b"ma %s N0 J5000000000 D1 v t c" % self.counter,
                b"ma %s MI D2 q k O1" % self.counter,
                b"me " + word,
                b"mn",
            ]
        )

    def spoil(self, line):
        """One change to the line."""
        rng = self.rng
        words = line.split(b" ")
        at = rng.randrange(len(words))
        dice = rng.random()
        if dice < 0.12:
            words.insert(rng.randrange(len(words) + 1), rng.choice(self.odd_words))
        elif dice < 0.24:
            words[at] = rng.choice(self.odd_words)
        elif dice < 0.32:
            del words[at]
        elif dice < 0.4:
            words.insert(at, words[at])
        elif dice < 0.48:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif dice < 0.53:
            words.insert(at, b"")
        elif dice < 0.56:
            words[0] = words[0].upper()
        elif dice < 0.6:
            words[at:at] = [rng.choice([b"q", b"k", b"v"])] * rng.randrange(1, 25)
        elif dice < 0.63:
            words.insert(at, b" " * rng.choice([10, 90, 110, 2040, 3000]))
        elif dice < 0.65:
            words.append(b"y" * rng.choice([1000, 2100, 5000]))
        else:
            return self.spoil_byte(b" ".join(words))
        return b" ".join(words)

    def spoil_byte(self, line):
        rng = self.rng
        if not line:
            return line + b" "
        at = rng.randrange(len(line))
        byte = bytes([rng.choice([rng.randrange(256), 0, 9, 13, 32, 48, 43, 45, 127, 255])])
        if byte == b"\n":
            byte = b"\r"
        kept = rng.choice([at, at + 1])
        return rng.choice([line[:at] + byte + line[kept:], line[:at] + line[at + 1 :]])

    def usable(self, line):
        """Whether this module knows what to send behind the line, and both sides may be asked."""
        words = framing.words_of(line)
        length = framing.announced(line)
        if b"\n" in line or line.endswith(b"\r") or words[:1] == [b"stats"]:
            return False
        if words[:1] and words[0].startswith(b"l"):
            return False  # might be a list verb
        if words[:1] == [b"flush_all"] and set(line) & set(b"\t\v\f\r"):
            return False
        if not self.share.alone and not self.keeps_to_itself(line):
            return False
        if len(words) > 2 and not self.lasts(words):
            return False
        if words[:1] in ([b"incr"], [b"ma"]) and HUGE.search(line):
            return False
        flags = {flag[:1] for flag in words[2:]} if words[:1] == [b"ma"] else set()
        if {b"q", b"N"} <= flags:
            return False
        if words and b"\0" in line and words[0] in framing.PLAIN:
            return False
        if framing.SHORT_LINE_BYTES_MAX - 1 <= len(line) <= framing.SHORT_LINE_BYTES_MAX + 1:
            return False
        if words[:1] in ([b"gat"], [b"gats"]) and len(line) > 16000:
            return False
        probed = framing.PROBE_BYTES_MIN, framing.PROBE_BYTES_MAX
        return not isinstance(length, int) or probed[0] <= length <= probed[1]

    def keeps_to_itself(self, line):
        """Whether no other connection may have to do with the same keys."""
        if framing.words_of(line)[:1] == [b"flush_all"]:
            return False
        return all(len(key) > 3 and key not in ODD_WORDS for key in Request(line).key_words())

    def lasts(self, words):
        """Whether no time is given that ends soon, or that began before memcached did."""
        numbers = exceptions.numbers_of(words)
        times = [word for word, bits, signed in numbers if bits == 32 and signed]
        times = [int(word) for word in times if re.fullmatch(rb"[-+]?[0-9]+", word)]
        times = [(time_s + 2**31) % 2**32 - 2**31 for time_s in times]  # as memcached reads them
        negative = any(word.startswith(b"N-") for word in words)
        return not negative and not any(0 < time_s < SOON_S for time_s in times)

    def framed(self, line):
        """The line with what has to follow it."""
        request = Request(line, canonical=False, key=self.word)
        length = framing.announced(line)
        if isinstance(length, int):
            request.body = framing.probe(self.rng, length) + b"\r\n"
        elif self.rng.random() < 0.1:
            request.eol = b"\n"
        return request

    def bad_chunk(self):
        """Data that does not end where it was announced to end."""
        rng = self.rng
        size = rng.choice([0, 1, 16, 100, 4096, 70000])
        lines = b"\r\n" * (size // 2) + b"d" * (size % 2)
        data = rng.choice([b"d" * size, rng.randbytes(size), lines])
        line = rng.choice(
            [
                b"set %s 0 0 %d",
                b"append %s 0 0 %d",
                b"replace %s 0 0 %d noreply",
                b"ms %s %d",
                b"ms %s %d q",
                b"cas %s 0 0 %d 1",
            ]
        ) % (self.word, size)
        # A lone line feed ends it as well; memcached takes the byte behind it along.
        stray = b"xx" + framing.probe(rng, rng.randrange(20, 200)) + b"\r\n"
        tail = rng.choice([stray, stray, b"\rx" + stray[2:], b"\n\r\n"])
        return Request(line, body=data + tail, canonical=False, key=self.word)

    def too_large(self):
        rng = self.rng
        size = framing.VALUE_BYTES_MAX + rng.choice([1, 2, 1000, 30000])
        forms = [b"set %s 0 0 %d", b"append %s 0 0 %d noreply", b"ms %s %d", b"ms %s %d q"]
        line = rng.choice(forms) % (self.word, size)
        body = rng.randbytes(size) + b"\r\n"
        return Request(line, body=body, canonical=False, key=self.word)

    def one(self):
        rng = self.rng
        dice = rng.random()
        if dice < 0.08:
            return self.bad_chunk()
        if dice < 0.085:
            return self.too_large()
        if dice < 0.11:
            return self.framed(rng.choice([b"", b" ", b"   ", b"\t"]))
        while True:
            line = self.template() if rng.random() < 0.35 else self.sound()
            if rng.random() < 0.75:
                for _ in range(rng.choice([1, 1, 1, 2, 3])):
                    line = self.spoil(line)
            if self.usable(line):
                return self.framed(line)

    def ending(self):
        """A request with which the connection ends, or is ended because it is not whole."""
        rng, word = self.rng, self.word
        close = [b"quit", b"quit now", b"GET / HTTP/1.1", b"POST / HTTP/1.0", b"PUT /x"]
        close += [b"set %s" % word, b"set %s 0 0 z" % word, b"ms %s x" % word]
        close += [b"y" * 3000, b" " * 2500 + b"get x"]
        close += [b"mg " + b"y" * 2100, b"get" + b" long" * 210000]
        if rng.random() < 0.6:
            line = rng.choice(close)
            return Request(line, canonical=False, key=word)
        whole = rng.choice([b"get %s", b"set %s 0 0 20", b"mg %s v", b"delete %s"]) % word
        body = b""
        if whole.startswith(b"set"):
            body = framing.probe(rng, 20)[: rng.randrange(21)] + rng.choice([b"", b"\r"])
            if len(body) < 20:
                body = body.rstrip(b"\r")
            return Request(whole, body=body, canonical=False, cut=True, key=word)
        line = whole[: rng.randrange(1, len(whole) + 1)]
        return Request(line, eol=b"", canonical=False, cut=True, key=word)
