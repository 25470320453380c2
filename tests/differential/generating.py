# SPDX-License-Identifier: BSD-3-Clause
"""Random well-formed requests. A phase gives each connection keys of its own, so that what happens
on the others at the same moment makes no difference; in the next phase they are others'."""

import base64

from framing import Request, cas_place

PLAIN = [b"k%d" % n for n in range(8)]
PLAIN += [b"k" * 250, b"x", b"\xe4\xf6\xfc", b"tab\there", b"cr\rhere", b"\x01\x7f"]
WIDE = [b"w0", b"w1", b"w2"]  # always numbers of ten digits
NARROW = [b"n0", b"n1", b"n2"]
STALE = [b"s0", b"s1", b"s2"]  # never read by classic verbs
MISSING = [b"z%d" % n for n in range(10)]
# Lists of a bridge, which answer as plain items do as long as each holds one item or none.
BRIDGED = [b"bridged-%d" % n for n in range(6)]
BRIDGE = {"bridge": "yes", "on_missing": "refuse"}
ITEMS = [b"", b"a", b"item-1", b"x" * 1000, b"\0\xff", b"1", b"two words", b"END"]
OWN = [b"own", b"never"]  # of a connection that has no other key of a kind
BINARY = [b"with blank", bytes(set(range(32)) - {10}), b"cr\rinside", b"\0\xff", b"b" * 186]
KEYS = PLAIN + WIDE + NARROW + STALE + BINARY + [b"%s%d" % (w, n) for w in OWN for n in range(4)]

EXPTIMES = [b"0"] * 6 + [b"100", b"1000", b"-1", b"2147483647", b"2592000", b"2592001", b"+300",
            b"4294967295", b"2147483648", b"4294967296", b"-2147483649", b"-4294967296",
            b"4294967396", b"9223372036854775807"]
FLAGS = [0, 0, 0, 1, 65536, 4294967295]
SPECIAL = [
    b"",
    b"\r\n",
    b"\n",
    b"END\r\n",
    b"VALUE k0 0 1\r\nx\r\nEND\r\n",
    b"x",
    b"\0",
    b"MN\r\n",
    b"EN\r\nHD\r\n",
    b"VA 2 f0\r\n",
    b"get k0\r\n",
    b"\r\nset k0 0 0 1\r\nx\r\n",
    b"1234",
]
# Sizes at which something else begins, for the proxy or for memcached.
EDGES = [2046, 2048, 4095, 4096, 4097, 8192, 16383, 16384, 32768, 65535, 65536, 131072, 262144]
LARGE = [524288, 1000000, 1048000, 1048400, 1048500, 1048576]


# Some of a list's times to live are told apart from plain items': over at once is for set alone.
BRIDGED_EXPTIMES = dict.fromkeys(b"set add replace append prepend".split(), [b"0", b"0", b"100"])
BRIDGED_EXPTIMES[b"set"] = [b"0", b"0", b"100", b"-1"]


def encoded(key):
    return base64.b64encode(key)


class Share:
    """The keys of one connection in one phase."""

    def __init__(self, rng, number, phase, connections):
        def mine(keys):
            return [k for n, k in enumerate(keys) if (n + phase) % connections == number]

        self.plain, self.wide, self.narrow = mine(PLAIN), mine(WIDE), mine(NARROW)
        self.stale, self.binary = mine(STALE), mine(BINARY)
        # flush_all, which is sent where there is one connection, does not wait for list verbs.
        self.bridged = mine(BRIDGED) if connections > 1 else []
        # See "shrinking numbers" in the table of exceptions.
        self.counted = [key for key in self.narrow if rng.random() < 0.5]
        self.counted += [key for key in self.plain if rng.random() < 0.1]
        self.readable = [k for k in self.plain + self.narrow if k not in self.counted] + self.wide
        self.readable += MISSING[:3]
        self.number = number
        self.alone = connections == 1


class Generator:
    def __init__(self, rng, share, shrinks):
        self.rng = rng
        self.share = share
        self.shrinks = shrinks  # whether numbers may become shorter

    def chance(self, probability, text, otherwise=b""):
        return text if self.rng.random() < probability else otherwise

    def value(self):
        rng = self.rng
        dice = rng.random()
        if dice < 0.35:
            return rng.choice(SPECIAL)
        if dice < 0.6:
            return rng.randbytes(rng.randrange(60))
        if dice < 0.9:
            return rng.randbytes(rng.randrange(2000))
        size = rng.choice(EDGES) + rng.randrange(-3, 4)
        if dice > 0.995:
            size = rng.choice(LARGE) + rng.randrange(-80, 1)
        return rng.randbytes(size)

    def wide(self):
        return b"%d" % self.rng.randrange(5_000_000_000, 6_000_000_000)

    def narrow(self):
        return b"%d" % self.rng.choice([0, 1, 9, 10, 99, 100, 1000, 99999, 2**32])

    def key(self, *groups, otherwise=b"own"):
        """One of the connection's keys."""
        keys = [key for group in groups for key in group]
        if keys and self.rng.random() < 0.95:
            return self.rng.choice(keys)
        return b"%s%d" % (otherwise, self.share.number)

    def target(self):
        """A key to store something at, and what."""
        share, dice = self.share, self.rng.random()
        if share.wide and dice < 0.12:
            return self.rng.choice(share.wide), self.wide()
        if share.narrow and dice < 0.25:
            return self.rng.choice(share.narrow), self.narrow()
        keys = share.plain + share.stale
        if not keys:
            return b"own%d" % share.number, b"v"
        key, value = self.rng.choice(keys), self.value()
        # See "blank values" in the table of exceptions.
        if key in share.plain and value.isspace():
            value += b"."
        return key, value

    def cas_text(self, key):
        return self.rng.choice([cas_place(key)] * 4 + [b"12345678901234567", b"1"])

    # --- classic ---

    def storage(self):
        rng = self.rng
        verb = rng.choice(b"set set set add replace append prepend cas".split())
        key, value = self.target()
        if verb in (b"append", b"prepend") and key in WIDE:
            verb = b"replace"
        words = [verb, key, b"%d" % rng.choice(FLAGS), rng.choice(EXPTIMES), b"%d" % len(value)]
        if verb == b"cas":
            words.append(self.cas_text(key))
        line = b" ".join(words) + self.chance(0.2, b" noreply")
        return Request(line, body=value + b"\r\n", key=key)

    def read(self):
        rng = self.rng
        keys = self.share.readable
        count = rng.choice([1, 1, 1, 1, 2, 5, 30, 100])
        if rng.random() < 0.01:
            count, keys = 3000, MISSING * 10 + keys[:3]
        verb = rng.choice([b"get", b"get", b"gets", b"gat", b"gats"])
        if verb in (b"gat", b"gats"):
            count = min(count, 60)
            verb += b" " + rng.choice([b"0", b"0", b"100", b"1000", b"-1", b"2592001"])
        blanks = self.chance(0.02, b"  ", b" ")
        line = verb + b" " + blanks.join(rng.choice(keys) for _ in range(count))
        return Request(line, key=keys[0])

    def arithmetic(self):
        rng, share = self.rng, self.share
        if share.wide and rng.random() < 0.5:
            key, delta = rng.choice(share.wide), rng.randrange(1000)
        else:
            key = self.key(share.counted, otherwise=b"never")
            delta = rng.choice([0, 1, 5, 99, 1000, 2**32])
        verb = rng.choice([b"incr", b"decr"] if self.shrinks or key in WIDE else [b"incr"])
        if verb == b"decr" and key not in WIDE and rng.random() < 0.2:
            delta = 2**64 - 1
        return Request(b"%s %s %d%s" % (verb, key, delta, self.chance(0.2, b" noreply")), key=key)

    def other(self):
        rng, share = self.rng, self.share
        key = self.key(share.plain, share.narrow, share.wide, share.stale)
        noreply = self.chance(0.2, b" noreply")
        dice = rng.random()
        if dice < 0.35:
            return Request(b"delete " + key + self.chance(0.2, b" 0") + noreply, key=key)
        if dice < 0.7:
            return Request(b"touch %s %s%s" % (key, rng.choice(EXPTIMES), noreply), key=key)
        if dice < 0.85:
            return Request(rng.choice([b"mn", b"mn", b"mn and more", b"version"]))
        if dice < 0.9 and share.alone:
            return Request(b"flush_all" + rng.choice([b"", b" 0", b" -1"]) + noreply)
        return Request(rng.choice([b"verbosity 0", b"verbosity 1", b"verbosity 0 noreply"]))

    # --- meta ---

    def meta(self):
        verb = self.rng.choice([b"mg"] * 4 + [b"ms"] * 4 + [b"md", b"md", b"ma", b"ma", b"me"])
        return {
            b"mg": self.meta_get,
            b"ms": self.meta_set,
            b"md": self.meta_delete,
            b"ma": self.meta_arithmetic,
            b"me": self.meta_debug,
        }[verb]()

    def flags(self, allowed):
        """Some of the flags, in any order, each letter at most once."""
        rng = self.rng
        chosen = rng.sample(allowed, rng.randrange(min(len(allowed), rng.choice([2, 4, 7, 12]))))
        return [f for n, f in enumerate(chosen) if f[:1] not in {g[:1] for g in chosen[:n]}]

    def spelled(self, key, flags):
        """The key as it is written, in base64 when it must be or sometimes so; adds the flag b. An
        item remembers it, but not through every incr, hence never for numbers."""
        if key in WIDE:
            return key
        if key not in BINARY and (len(key) > 180 or self.rng.random() < 0.85):
            return key
        flags.insert(self.rng.randrange(len(flags) + 1), b"b")
        return encoded(key)

    def opaque(self):
        rng = self.rng
        return b"O" + rng.choice([b"", b"1", b"abc", b"q", b"x" * 30, b"x" * 31, b"noreply"])

    def own_cas(self):
        """A CAS number that the client chooses, beyond all that memcached gives; none where
        flush_all may be sent."""
        return [] if self.share.alone else [b"E%d" % self.rng.randrange(10**12, 10**13)]

    def meta_get(self):
        share, rng = self.share, self.rng
        key = self.key(share.readable, share.stale, share.binary)
        allowed = [b"k", b"f", b"s", b"t", b"c", b"q", b"u", b"h", b"l", self.opaque()]
        allowed += [b"T%d" % rng.choice([0, 100, 1000]), b"R%d" % rng.choice([0, 30, 500])]
        allowed += [b"v"] * 4
        if rng.random() < 0.15:
            allowed += [b"N100", *self.own_cas()]
        flags = self.flags(allowed)
        if key in WIDE + NARROW + MISSING:
            flags = [f for f in flags if f[:1] not in b"NRhl"]
        return Request(b" ".join([b"mg", self.spelled(key, flags), *flags]), key=key)

    def meta_set(self):
        share, rng = self.share, self.rng
        key, value = self.target()
        if share.binary and rng.random() < 0.15:
            key, value = rng.choice(share.binary), self.value()
        modes = [b"S", b"E", b"R"]
        if key not in WIDE:
            modes += [b"A", b"P"]
        allowed = [b"k", b"c", b"b", b"q", b"s", self.opaque(), b"F%d" % rng.choice(FLAGS)]
        allowed += [b"T%d" % rng.choice([0, 100, 1000, -1]), b"M" + rng.choice(modes)]
        allowed += [b"C" + self.cas_text(key)]
        if rng.random() < 0.2:
            allowed += [b"I", *self.own_cas()]
        if rng.random() < 0.1 and key not in WIDE:
            allowed += [b"N60"]
        flags = [f for f in self.flags(allowed) if f != b"b" and (f != b"I" or key in STALE)]
        line = b" ".join([b"ms", self.spelled(key, flags), b"%d" % len(value), *flags])
        return Request(line, body=value + b"\r\n", key=key)

    def meta_delete(self):
        share, rng = self.share, self.rng
        key = self.key(share.plain, share.narrow, share.wide, share.stale, share.binary)
        if share.stale and rng.random() < 0.3:
            key = rng.choice(share.stale)
        allowed = [b"k", b"q", self.opaque(), b"C" + self.cas_text(key)]
        if rng.random() < 0.2:
            allowed += self.own_cas()
        if rng.random() < 0.1 and key in share.plain + share.binary:
            allowed += [b"x"]
        if key in STALE:
            allowed += [b"I", b"I", b"I", b"T100"]
        flags = self.flags(allowed)
        return Request(b" ".join([b"md", self.spelled(key, flags), *flags]), key=key)

    def meta_arithmetic(self):
        share, rng = self.share, self.rng
        wide = share.wide and rng.random() < 0.5
        if wide:
            key = rng.choice(share.wide)
        else:
            key = self.key(share.counted, otherwise=b"never")
        allowed = [b"v", b"v", b"k", b"t", b"c", b"q", self.opaque()]
        allowed += [b"T%d" % rng.choice([0, 100, 1000]), b"C" + self.cas_text(key)]
        modes = b"I + D -" if self.shrinks or wide else b"I +"
        allowed += [b"M" + rng.choice(modes.split())]
        allowed += [b"D%d" % (rng.randrange(1000) if wide else rng.choice([0, 9, 100, 2**32]))]
        if rng.random() < 0.15:
            allowed += self.own_cas()
        flags = [f for f in self.flags(allowed) if f[:1] != b"T" or not wide]
        # See "quiet ma with N" in the table of exceptions.
        if rng.random() < 0.2 and b"q" not in flags:
            initial = self.wide() if wide else self.narrow()
            flags += [b"N%d" % rng.choice([0, 100]), b"J" + initial]
        return Request(b" ".join([b"ma", self.spelled(key, flags), *flags]), key=key)

    def meta_debug(self):
        share = self.share
        key = self.key([key for key in share.readable if key in PLAIN], share.stale)
        return Request(b"me " + key, key=key)

    # --- lists of a bridge ---

    def bridged(self):
        """No CAS numbers: those of a list are not its server's, and change with its time to live."""
        kinds = [self.bridged_storage, self.bridged_read, self.bridged_other, self.bridged_meta]
        return self.rng.choices(kinds, [4, 4, 2, 4])[0](self.rng.choice(self.share.bridged))

    def bridged_storage(self, key):
        rng = self.rng
        verb = rng.choice(b"set set add replace append prepend".split())
        value = b"" if verb in (b"append", b"prepend") else rng.choice(ITEMS)
        words = [verb, key, b"0", rng.choice(BRIDGED_EXPTIMES[verb])]
        line = b" ".join([*words, b"%d" % len(value)]) + self.chance(0.2, b" noreply")
        return Request(line, body=value + b"\r\n", key=key)

    def bridged_read(self, key):
        rng = self.rng
        keys = [key, *self.share.bridged, *self.share.readable]
        verb = rng.choice([b"get", b"get", b"gat 0", b"gat 100", b"gat -1"])
        line = b" ".join([verb, key, *rng.choices(keys, k=rng.choice([0, 1, 5, 40]))])
        return Request(line, key=key)

    def bridged_other(self, key):
        noreply = self.chance(0.2, b" noreply")
        time = self.rng.choice([b"0", b"100", b"-1"])
        line = self.rng.choice([b"delete " + key, b"touch %s %s" % (key, time)])
        return Request(line + noreply, key=key)

    def bridged_meta(self, key):
        rng = self.rng
        verb = rng.choice([b"mg", b"mg", b"ms", b"ms", b"md"])
        value, size, allowed = None, [], [b"k", b"q", self.opaque()]
        if verb == b"mg":
            allowed += [b"v", b"v", b"s", b"t", b"P", b"L", b"T%d" % rng.choice([0, 100])]
        elif verb == b"ms":
            value = rng.choice(ITEMS)
            mode, size = rng.choice(b"SSER"), [b"%d" % len(value)]
            allowed += [b"M%c" % mode]
            allowed += [b"T%d" % rng.choice([0, 100])]
        flags = self.flags(allowed)
        # memcached shows the old time where t stands before T, and a list the new one.
        flags.sort(key=lambda flag: flag[:1] == b"t")
        line = b" ".join([verb, self.spelled(key, flags), *size, *flags])
        return Request(line, body=b"" if value is None else value + b"\r\n", key=key)

    def one(self):
        kinds = [self.storage, self.read, self.arithmetic, self.other, self.meta]
        weights = [6, 5, 2, 2, 7]
        if self.share.bridged:
            kinds, weights = [*kinds, self.bridged], [*weights, 4]
        request = self.rng.choices(kinds, weights)[0]()
        if self.rng.random() < 0.08 and not request.line.endswith(b"\r"):
            request.eol = b"\n"
        return request
