# SPDX-License-Identifier: BSD-3-Clause
"""The pool whose servers change, and the one that names the servers to come, as a proxy has them."""

import contextlib

from mclistd_convert.placement import where
from mclistd_convert.settings import ask, servers_in
from mclistd_convert.wire import Answer, Connection, Refused, number_of, shown


def word_of(pool, key):
    """A setting, b"": it is empty, or of a later release."""
    word = pool.get(key, b"")
    return b"" if word == b"NULL" else word


def next_of(pool):
    """The name of the pool with its servers to come, b"": it has none."""
    return word_of(pool, b"next")


class Pools:
    """name: of the pool, or None: the only one with next. old, new: servers of both, but for `dead`,
    which is gone for good; "": none is."""

    def __init__(self, proxy, name=None, needs_next=True):
        self.proxy = proxy
        self.settings, _ = ask(proxy)
        self.pool = self._find(name, needs_next)
        self.name = self.pool[b"name"]
        self.dead = word_of(self.pool, b"dead").decode()
        self.old = [address for address in servers_in(self.pool) if address != self.dead]
        self.gate_s = number_of(self.pool.get(b"gate_s", b"0"))
        self.next_name = next_of(self.pool)
        self.next = self.settings.pools.get(self.next_name)
        self.new = servers_in(self.next) if self.next else []
        for pool in (self.pool, self.next or {}):
            if pool.get(b"tls") == b"yes":
                raise Refused(f"pool {shown(pool[b'name'])} has tls = yes, which this program cannot speak")

    def _find(self, name, needs_next):
        pools = self.settings.pools
        if name is not None:
            if name not in pools:
                raise Refused(f"{self.proxy} has no pool {shown(name)}; it has "
                              + ", ".join(sorted(map(shown, pools))))
            found = [pools[name]]
        else:
            found = [pool for pool in pools.values() if next_of(pool)]
            if not found and not needs_next and len(pools) == 1:
                found = list(pools.values())
        if len(found) != 1:
            raise Refused("which pool? It has " + ", ".join(sorted(map(shown, pools)))
                          if found or not needs_next else
                          f"{self.proxy}: no pool has a next: the file comes first (docs/servers.md)")
        if needs_next and not next_of(found[0]):
            raise Refused(f"{self.proxy}: pool {shown(found[0][b'name'])} has no next: the file comes "
                          "first (docs/servers.md)")
        return found[0]

    def servers(self):
        """Of both pools."""
        return list(dict.fromkeys(self.old + self.new))

    def places(self, keys, is_new=False):
        """{key: server}, by the pool's rule or that of its next."""
        try:
            with contextlib.closing(Connection(self.proxy)) as connection:
                return {
                    key: server.decode()
                    for key, server in where(
                        connection, self.next_name if is_new else self.name, b"-", keys).items()
                }
        except (OSError, Answer) as error:
            raise Refused(f"{self.proxy}: {error}") from None
