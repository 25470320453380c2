# SPDX-License-Identifier: BSD-3-Clause
"""The pool whose servers change, and the one that names the servers to come, as a proxy has them."""

import contextlib
import re

from mclistd_convert.placement import where
from mclistd_convert.settings import ask, servers_in
from mclistd_convert.wire import Answer, Connection, Refused, shown

HEAD_KEY = re.compile(rb"[^\x00-\x20\x7f]{1,220}#")
SUBLIST_KEY = re.compile(rb"([^\x00-\x20\x7f]{1,220}#)[a-z2-7]{13}\.[0-9]{1,7}")


def number(pool, key):
    return int(pool.get(key, b"0"))


class Pools:
    """name: of the pool, or None: the only one with next. old, new: servers of both."""

    def __init__(self, proxy, name=None, needs_next=True):
        self.proxy = proxy
        self.settings, _ = ask(proxy)
        self.pool = self._find(name, needs_next)
        self.name = self.pool[b"name"]
        self.old = servers_in(self.pool)
        self.gate_s = number(self.pool, b"gate_s")
        self.next_name = self.pool.get(b"next", b"")
        self.next_name = b"" if self.next_name == b"NULL" else self.next_name
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
            found = [pool for pool in pools.values() if pool.get(b"next", b"NULL") not in (b"", b"NULL")]
            if not found and not needs_next and len(pools) == 1:
                found = list(pools.values())
        if len(found) != 1:
            raise Refused("which pool? It has " + ", ".join(sorted(map(shown, pools)))
                          if found or not needs_next else
                          f"{self.proxy}: no pool has a next: the file comes first (docs/servers.md)")
        if needs_next and found[0].get(b"next", b"NULL") in (b"", b"NULL"):
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

    def moving(self, keys):
        """{key: (old server, new server)} of those that go elsewhere."""
        old, new = self.places(keys), self.places(keys, True)
        return {key: (old[key], new[key]) for key in keys if old[key] != new[key]}
