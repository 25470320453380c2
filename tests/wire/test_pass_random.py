# SPDX-License-Identifier: BSD-3-Clause
"""Random requests in random packets: the proxy's answers are those of a memcached. A failing batch
can be had again from the seed that is printed."""

import time

import pytest

from test_pass_support import assert_same, in_pieces, open_pair, seeded

SEED = 20240611
DURATION_S = 4.0

KEYS = [f"key{i}".encode() for i in range(8)] + [b"k" * 250, b"x", b"\xe4\xf6\xfc"]
# Kept so long that no change makes them shorter: memcached pads such a number or stores it anew,
# depending on whether an answer with the old one still waits to be sent.
NUMBERS = [b"n1", b"n2", b"n3"]
BASE64 = [b"a2V5MA==", b"a2V5MQ==", b"aGFzIGJsYW5r"]
# No key that is too long for get: memcached forgets answers that it has not sent yet.
ERRORS = [b"bogus", b"", b"get", b"mg key0 v v", b"incr n1 x", b"touch key1"]
# Of no item on either side.
NO_CAS = b"C12345678901234567"
EXPTIMES = [b"0", b"0", b"100", b"-1", b"2147483647"]
SPECIAL = [b"", b"\r\n", b"END\r\n", b"VALUE key0 0 1\r\nx\r\nEND\r\n", b"x", b"\0", b"MN\r\n"]


class Requests:
    def __init__(self, rng):
        self.rng = rng

    def number(self):
        return b"%d" % self.rng.randrange(5_000_000_000, 6_000_000_000)

    def value(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(SPECIAL)
        if kind < 0.97:
            return rng.randbytes(rng.randrange(2000))
        return rng.randbytes(rng.randrange(100_000))

    def flag(self, text, chance=0.3):
        return text if self.rng.random() < chance else b""

    def storage(self):
        rng = self.rng
        verb = rng.choice([b"set", b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas"])
        key = rng.choice(KEYS)
        value = self.value()
        cas = b" {cas:%s}" % key if verb == b"cas" else b""
        flags = rng.choice([0, 1, 65536, 4294967295])
        head = b"%s %s %d %s %d%s%s" % (
            verb, key, flags, rng.choice(EXPTIMES), len(value), cas, self.flag(b" noreply")
        )
        return head + b"\r\n" + value

    def read(self):
        rng = self.rng
        verb = rng.choice([b"get", b"get", b"gets", b"gat 0", b"gats 100"])
        keys = [rng.choice(KEYS + NUMBERS) for _ in range(rng.choice([1, 1, 1, 2, 5, 30]))]
        return verb + b" " + b" ".join(keys)

    def arithmetic(self):
        rng = self.rng
        key = rng.choice(NUMBERS)
        if rng.random() < 0.4:
            number = self.number()
            return b"set %s 0 0 %d\r\n%s" % (key, len(number), number)
        verb = rng.choice([b"incr", b"decr"])
        return b"%s %s %d%s" % (verb, key, rng.randrange(1000), self.flag(b" noreply"))

    def other(self):
        rng = self.rng
        key = rng.choice(KEYS)
        return rng.choice(
            [
                b"delete %s%s" % (key, self.flag(b" noreply")),
                b"touch %s %s%s" % (key, rng.choice(EXPTIMES), self.flag(b" noreply")),
                b"mn",
                b"verbosity 0",
                rng.choice(ERRORS),
            ]
        )

    def meta(self):
        rng = self.rng
        verb = rng.choice([b"mg", b"mg", b"mg", b"ms", b"ms", b"md", b"ma"])
        encoded = rng.random() < 0.2
        key = rng.choice(BASE64) if encoded else rng.choice(NUMBERS if verb == b"ma" else KEYS)
        if verb == b"ma" and encoded:
            key, encoded = b"n1", False
        allowed = {
            b"mg": [b"v", b"k", b"f", b"s", b"t", b"c", b"q", b"O9", b"u", b"N100", b"T100"],
            b"ms": [b"k", b"c", b"q", b"O9", b"F5", b"T100", b"MA", b"ME", b"MP", b"MR", NO_CAS],
            # No I: see test_a_get_leaves_the_recache_token_of_a_stale_item.
            b"md": [b"k", b"q", b"O9", NO_CAS],
            b"ma": [b"v", b"k", b"t", b"c", b"q", b"O9", b"D7", b"MD", NO_CAS],
        }[verb]
        flags = rng.sample(allowed, rng.randrange(min(6, len(allowed))))
        flags = [f for i, f in enumerate(flags) if f[:1] not in {g[:1] for g in flags[:i]}]
        if encoded:
            flags.append(b"b")
        words = [verb, key]
        body = b""
        if verb == b"ms":
            value = self.value()
            words.append(b"%d" % len(value))
            body = b"\r\n" + value
        return b" ".join(words + flags) + body

    def batch(self, count):
        kinds = [self.storage, self.read, self.arithmetic, self.other, self.meta]
        found = []
        for _ in range(count):
            one = self.rng.choices(kinds, [5, 5, 2, 1, 6])[0]()
            # A line feed alone, where no data block could be cut by it.
            bare = b"\r\n" not in one and b"\n" not in one and self.rng.random() < 0.1
            found.append(one + (b"\n" if bare else b"\r\n"))
        return b"".join(found)


@pytest.fixture(scope="module", params=[1, 3], ids=["one server", "three servers"])
def pair(request, tmp_path_factory):
    with open_pair(tmp_path_factory.mktemp("pair"), request.param) as pair:
        yield pair


@pytest.mark.slow
def test_random_requests_are_answered_as_by_memcached(pair):
    end = time.monotonic() + DURATION_S
    number = 0
    while time.monotonic() < end:
        number += 1
        rng = seeded("batch", f"{SEED}-{number}")
        script = Requests(rng).batch(rng.choice([5, 20, 100, 400])) + b"mn\r\n"
        setup = b"".join(Requests(rng).storage() + b"\r\n" for _ in range(8))
        setup = setup.replace(b"cas ", b"set ").replace(b"{cas:", b"x{")
        pair.wipe()
        direct = pair.ask_direct(script, setup)
        pair.wipe()
        most = rng.choice([1, 5, 50, 500])
        proxied = pair.ask_proxy(script, setup, cut=lambda text: in_pieces(text, rng, most + 1))
        assert_same(proxied, direct, f"batch {SEED}-{number}")
    assert number > 10
