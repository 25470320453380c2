# SPDX-License-Identifier: BSD-3-Clause
"""Do the items lie on the memcacheds where the proxies look for them? The names that memcacheds give
of their items say where these really are, and a proxy says where its pool's rule puts a key."""

import collections
import contextlib

from mclistd_convert import names as layout
from mclistd_convert.wire import ITEM_KEY, Answer, Connection, Refused, shown

KEYS_AT_ONCE_BYTES = 1500  # of a line, of which memcached and the proxy take 2,048
SAMPLE = 500               # names that other rules are tried with
SHOWN_MAX = 10
SAME_SERVERS = ", so look whether the pool names the servers in the clients' order and in their way"
DISTRIBUTIONS = ("ketama_weighted", "ketama", "modula")
HASHES = ("default", "one_at_a_time", "md5", "crc", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32",
          "jenkins", "murmur", "hsieh")


def lines_of(names):
    """Splits them into lists that fit a line each."""
    line, size = [], 0
    for name in names:
        if line and size + len(name) > KEYS_AT_ONCE_BYTES:
            yield line
            line, size = [], 0
        line.append(name)
        size += len(name) + 1
    if line:
        yield line


def where(connection, pool, rule, names):
    """{name: server}, as the proxy's rule has it; raises Answer where it has no such rule."""
    found = {}
    for line in lines_of(names):
        found.update(connection.stats(b" ".join([b"stats where", pool, rule, *line])))
    return found


class Places:
    """Of all items that the script has met: on which servers they are."""

    def __init__(self, stored, proxy, pool):
        self.stored, self.proxy, self.pool = stored, proxy, pool

    def names(self):
        return [
            name for name in sorted(self.stored.places)
            if ITEM_KEY.fullmatch(name) and not layout.NATIVE_SUBLIST.fullmatch(name)
        ]

    def pool_servers(self):
        servers = self.pool.get(b"servers", b"").split(b",")
        return [server.split()[0] for server in servers if server.strip()]

    def names_of_servers(self, names, places):
        """{address as the script has it: as the proxies have it}. They may know a memcached by another
        name: it is the server that the rule names most often for the items that it has, a different
        one for each."""
        servers = self.pool_servers()
        found = {a: a.encode() for a in self.stored.addresses if a.encode() in servers}
        votes = collections.Counter(
            (address, places[name])
            for name in names for address in self.stored.places[name] if address not in found
        )
        for (address, server), _ in votes.most_common():
            if address not in found and server not in found.values():
                found[address] = server
        return found

    def misplaced(self, connection, rule, names):
        """{name: addresses} of copies that the rule does not look for."""
        places = where(connection, self.pool[b"name"], rule, names)
        meant = self.names_of_servers(names, places)
        found = {}
        for name in names:
            wrong = {a for a in self.stored.places[name] if meant.get(a) != places[name]}
            if wrong:
                found[name] = wrong
        return found

    def strays_by(self, connection, rule, names):
        """Of the names, those that the rule looks for elsewhere."""
        found = self.misplaced(connection, rule, names)
        return [name for name in found if found[name] == self.stored.places[name]]

    def strays(self):
        """Names of items that the proxies do not find, and a few words about other rules."""
        if len(self.stored.addresses) < 2 or len(self.pool_servers()) < 2:
            return [], ""
        names = self.names()
        with contextlib.closing(Connection(self.proxy)) as connection:
            self.stored.elsewhere = self.misplaced(connection, b"-", names)
            found = self.strays_by(connection, b"-", names)
            return found, self.better_rule(connection, names) if found else ""

    def better_rule(self, connection, names):
        sample = names[:: max(len(names) // SAMPLE, 1)]
        best, fewest, equal = "", len(self.strays_by(connection, b"-", sample)), 0
        for distribution in DISTRIBUTIONS:
            for hash_name in HASHES:
                rule = f"{distribution}/{hash_name}".encode()
                try:
                    strays = len(self.strays_by(connection, rule, sample))
                except Answer:  # the proxy's libmemcached has no such hash
                    continue
                if strays < fewest:
                    best, fewest = f"distribution = {distribution}, hash = {hash_name}", strays
                    equal = 0
                else:
                    equal += strays == fewest
        if not best:
            return f"no other distribution or hash fits more of them{SAME_SERVERS}"
        others = f", as do {equal} other rules" if equal else ""
        same = SAME_SERVERS if fewest else ""
        return f"{best} fits {len(sample) - fewest} of {len(sample)} that were tried{others}{same}"


def places_of(options, inventory):
    pool = inventory.worlds[0].pool_of(inventory.section)
    return Places(options.stored, options.proxies[0], pool)


def find_copies(options, inventory):
    """Stored knows from then on which copies the proxies do not look for."""
    places_of(options, inventory).strays()


def check(options, inventory):
    """Raises Refused where lists would be read and written in the wrong place; with --leave-strays
    the lists that have such items are left alone."""
    strays, other = places_of(options, inventory).strays()
    strays = inventory.without_left_copies(strays)
    if not strays:
        return
    if not options.leave_strays:
        some = ", ".join(shown(name) for name in strays[:SHOWN_MAX])
        raise Refused(
            f"{len(strays)} items are on memcacheds where the proxies do not look for them, since "
            f"the pool's distribution, hash or servers are not those of the clients that wrote "
            f"them: {other}; nothing was changed (some of them: {some}). If they are left from "
            f"other servers of the past: --leave-strays"
        )
    for name in strays:
        inventory.leave_stray(name)
