# SPDX-License-Identifier: BSD-3-Clause
"""Random requests of the binary protocol in random packets: the proxy's answers are those of a
memcached. A failing batch can be had again from the seed that is printed."""

import time

import pytest

from test_binary_support import NEVER, OPCODES, count, packet, store, take_answer, touch
from test_pass_support import cas_of, in_pieces, open_pair, seeded, talk

SEED = 20261126
DURATION_S = 4.0

KEYS = [f"key{i}".encode() for i in range(6)] + [b"k" * 250, b"\xe4\xf6\xfc", b"KEY#0.1x"]
# Which text clients cannot name.
ODD_KEYS = [b"a b", b" ", b"\r\n", b"get key0\r\n", b"\0", b"\tx" * 93]
# As in test_pass_random.py: memcached pads shorter ones, or not.
NUMBERS = [b"n1", b"n2", b"has blank"]
# No number. Of a value of blanks alone, memcached's incr reads what lies behind it.
WORD = b"word"
EXPTIMES = [0, 0, 100, 2147483647, NEVER]
SPECIAL = [b"", b"\r\n", b"END\r\n", b"\x80" * 24, b"x", b"\0", packet("noop")]
STORES = ["set", "set", "add", "replace"]
LAST_OPAQUE = 0x7FFFFFFF
# What closes the connection.
LAST = [
    packet("quit"), packet("quitq"), packet("quit", b"x"), packet("get"), packet("get", b"k" * 251),
    packet("get", b"k", b"x"), packet("version", b"x"), packet("set", b"k", b"", b"x"),
    packet("noop", value=b"x"), packet("delete", b"k", b"1234"), packet("incr", b"k", b"12"),
    packet("flush", b"x"), packet("flush", b"", b"12"), packet("append", b"k", b"1234", b"x"),
    packet("sasl_auth"), packet("stat", b"", b"1234"),
    store("set", b"", b"x"), packet("noop", magic=0x81), packet("noop", magic=0), b"version\r\n" * 4,
    packet("gat", b"k", b"12"), packet("touch", b"k"),
]  # fmt: skip


class Requests:
    """Those of one side: CAS numbers are not the same on both."""

    def __init__(self, rng, cas):
        self.rng = rng
        self.cas = cas

    def value(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(SPECIAL)
        if kind < 0.98:
            return rng.randbytes(rng.randrange(2000))
        # memcached takes no more than 1 MB with the item's header.
        return b"x" * rng.choice([100_000, 1_048_500 - 400, 1_048_577])

    def key(self):
        return self.rng.choice(KEYS + KEYS + ODD_KEYS)

    def cas_for(self, key):
        wanted = self.rng.random()
        return self.cas[key] if wanted < 0.1 else 12345678901234567 if wanted < 0.15 else 0

    def quiet(self, name, chance=0.3):
        return name + "q" if self.rng.random() < chance else name

    def storage(self):
        key = self.key()
        exptime, flags = self.rng.choice(EXPTIMES), self.rng.choice([0, 1, 65536, NEVER])
        return store(self.quiet(self.rng.choice(STORES)), key, self.value(), flags, exptime,
                     cas=self.cas_for(key), opaque=self.rng.getrandbits(32))  # fmt: skip

    def joining(self):
        key = self.key()
        return packet(self.quiet(self.rng.choice(["append", "prepend"])), key, b"", b"more",
                      cas=self.cas_for(key), opaque=7)  # fmt: skip

    def read(self):
        key = self.rng.choice(KEYS + ODD_KEYS + NUMBERS)
        if self.rng.random() < 0.7:
            return packet(self.rng.choice(["get", "getq", "getk", "getkq"]), key, opaque=8)
        name = self.rng.choice(["gat", "gatq", "gatk", "gatkq", "touch"])
        return touch(name, key, self.rng.choice(EXPTIMES), opaque=self.rng.getrandbits(32))

    def arithmetic(self):
        rng = self.rng
        key = rng.choice([*NUMBERS, *NUMBERS, WORD])
        start, exptime = rng.randrange(5_000_000_000, 6_000_000_000), rng.choice([0, 100, NEVER])
        name = self.quiet(rng.choice(["incr", "decr"]))
        cas = rng.choice([0, 0, 0, self.cas[key], 5])
        return count(name, key, rng.randrange(1000), start, exptime, cas=cas, opaque=9)

    def other(self):
        key = self.key()
        return self.rng.choice(
            [
                packet(self.quiet("delete"), key, cas=self.cas_for(key)),
                packet("noop", opaque=self.rng.getrandbits(32)),
                packet("verbosity"),
                packet("stat", b"sizes"),
                packet("stat", b"bogus", opaque=3),
                packet("sasl_list"),
                packet(0x3D),
                packet(0xFF, opaque=1),
            ]
        )

    def batch(self, count):
        kinds = [self.storage, self.joining, self.read, self.arithmetic, self.other]
        weights = [4, 1, 8, 2, 2]
        found = [self.rng.choices(kinds, weights)[0]() for _ in range(count)]
        return b"".join(found) + self.rng.choice([b"", b"", *LAST]) + packet("noop", opaque=LAST_OPAQUE)


def comparable(data):
    """CAS numbers as whether there is one; what is cut at the end is left out."""
    found = []
    while (taken := take_answer(data))[0] is not None:
        answer, data = taken
        found.append(answer._replace(cas=answer.cas != 0))
    return found


@pytest.fixture(scope="module", params=[1, 3], ids=["one server", "three servers"])
def pair(request, tmp_path_factory):
    with open_pair(tmp_path_factory.mktemp("pair"), request.param) as pair:
        yield pair


def ask(pair, port, seed):
    pair.wipe()
    keys = [*KEYS, *NUMBERS, *ODD_KEYS, WORD]
    setup = Requests(seeded("setup", seed), dict.fromkeys(keys, 0))
    talk(port, store("set", WORD, "word") + b"".join(setup.storage() for _ in range(12)))
    cas = {key: 0 if b" " in key or key in ODD_KEYS else int(cas_of(port, key)) for key in keys}
    rng = seeded("batch", seed)
    script = Requests(rng, cas).batch(rng.choice([5, 20, 100, 300]))
    return comparable(talk(port, in_pieces(script, rng, rng.choice([2, 6, 51, 501]))))


@pytest.mark.slow
def test_random_packets_are_answered_as_by_memcached(pair):
    end = time.monotonic() + DURATION_S
    number = 0
    while time.monotonic() < end:
        number += 1
        seed = f"{SEED}-{number}"
        direct, proxied = ask(pair, pair.direct.port, seed), ask(pair, pair.daemon.port, seed)
        for i, (theirs, ours) in enumerate(zip(direct, proxied)):
            assert ours == theirs, f"seed {seed}, answer {i}"
        # memcached closes with input unread, and then the kernel may throw away its last answers.
        is_whole = direct and direct[-1].opaque == LAST_OPAQUE
        assert len(proxied) == len(direct) or not is_whole and len(proxied) > len(direct), seed
    assert number > 10


def test_all_opcodes_of_memcached_are_tried():
    assert len(OPCODES) == 36
