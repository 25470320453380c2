# SPDX-License-Identifier: BSD-3-Clause
"""What the proxies are set to, from their `stats settings`."""

import contextlib

from mclistd_convert.prefix import best_of, part_of, prefix_of, unescaped
from mclistd_convert.wire import Answer, Connection, Refused, number_of, shown

# What must be the same in all proxies for them to mean the same lists.
SHARED = [
    word.encode()
    for word in (
        "dialect migrate delimiter sublist_text deleted_delimiter add_sign delete_sign closed_mark "
        "add_name delete_name a_name b_name active_name sublist_name seq_name slot_name capacity slot "
        "counter_wraps placement on_missing"
    ).split()
]
SAME_TRIES = 5


class Section:
    """[lists PREFIX] of a proxy."""

    def __init__(self, prefix):
        self.prefix, self.values = prefix, {}

    @property
    def dialect(self):
        return self.values.get(b"dialect", b"native").decode()

    @property
    def migrates(self):
        return self.values.get(b"migrate") == b"native"

    def text(self, key, default=b""):
        return self.values.get(key.encode(), default)

    def bytes(self, key, default=b""):
        return unescaped(self.text(key, default))

    def shared(self):
        return {key: self.values[key] for key in SHARED if key in self.values}


def servers_in(pool):
    """The memcacheds of a pool. Couchbase's nodes cannot be asked which items they have."""
    if pool.get(b"type", b"memcached") != b"memcached":
        name, kind = pool.get(b"name", b""), pool[b"type"].decode()
        raise Refused(
            f"pool {shown(name)} is of type {kind}: this script reads memcacheds only; expected a "
            "pool of type memcached"
        )
    servers = pool.get(b"servers", b"").split(b",")
    return [server.split()[0].decode() for server in servers if server.strip()]


class Settings:
    """Of one proxy. sections: {prefix: Section}; b"": all other lists."""

    def __init__(self, found):
        self.sections, self.pools, self.default_pool = {}, {}, b""
        for name, value in found.items():
            kind, _, rest = name.partition(b":")
            section, _, key = rest.rpartition(b":")
            if kind == b"lists":
                prefix = prefix_of(section)
                self.sections.setdefault(prefix, Section(prefix)).values[key] = value
            elif kind == b"pool":
                self.pools.setdefault(section, {b"name": section})[key] = value
            elif name == b"proxy:pool" and value != b"NULL":
                self.default_pool = value

    def section_of(self, key):
        """The one that holds for the key, or None."""
        return self.sections.get(best_of(self.sections, key))

    def belongs(self, key, section):
        found = self.section_of(key)
        return found is not None and found.prefix == section.prefix

    def pool_of(self, section):
        name = section.text("pool")
        name = self.default_pool if name in (b"", b"NULL") else name
        return self.pools.get(name) or next(iter(self.pools.values()), {})

    def servers_of(self, section):
        return servers_in(self.pool_of(section))

    def places_of(self, section):
        """What decides on which server an item is."""
        pool = self.pool_of(section)
        servers = sorted(server.strip() for server in pool.get(b"servers", b"").split(b","))
        return servers, pool.get(b"distribution"), pool.get(b"hash")


def ask(address):
    """(Settings, stats) of a proxy."""
    try:
        with contextlib.closing(Connection(address)) as connection:
            settings = connection.stats(b"stats settings")
            if not any(b":" in name for name in settings):  # as in proxy:listen
                raise Refused(f"{address}: a memcached answers there; expected a proxy, mclistd")
            return Settings(settings), connection.stats(b"stats")
    except (OSError, ValueError, Answer) as error:
        raise Refused(f"{address}: {error}") from None


def check_section(address, settings, prefix, must_convert):
    section = settings.sections.get(prefix)
    if section is None:
        raise Refused(f"{address}: has no [lists {shown(prefix)}]")
    if must_convert and (section.dialect == "native" or not section.migrates):
        raise Refused(
            f"{address}: [lists {shown(prefix)}] has dialect = {section.dialect}, migrate = "
            f"{shown(section.text('migrate'))}; expected another dialect with migrate = native"
        )
    return section


def check_same_lists(address, settings, first, prefix):
    """The prefix, and others that take lists from it, must mean the same everywhere."""
    part, anywhere = part_of(prefix)
    for name in sorted(settings.sections.keys() | first.sections.keys()):
        other, other_anywhere = part_of(name)
        may_take = anywhere or other_anywhere or other.startswith(part)
        if name != prefix and not (other and may_take):
            continue
        own, others = settings.sections.get(name), first.sections.get(name)
        if own is None or others is None:
            raise Refused(f"{address}: not all proxies have [lists {shown(name)}]")
        own, others = own.shared(), others.shared()
        for key in sorted(own.keys() | others.keys()):
            if own.get(key) != others.get(key):
                raise Refused(
                    f"{address}: [lists {shown(name)}] has {key.decode()} = "
                    f"{shown(own.get(key, b'nothing'))}, "
                    f"others have {shown(others.get(key, b'nothing'))}"
                )


def check_proxies(addresses, prefix, must_convert=True, first=None):
    """Returns the settings of all proxies, the first one's in front. Raises Refused."""
    found = []
    for address in addresses:
        settings, _ = ask(address)
        check_section(address, settings, prefix, must_convert)
        first = first or settings
        check_same_lists(address, settings, first, prefix)
        found.append(settings)
        places = [s.places_of(s.sections[prefix]) for s in (settings, found[0])]
        if places[0] != places[1]:
            raise Refused(
                f"{address}: the pool of [lists {shown(prefix)}] has other servers, or another "
                f"distribution or hash, than the others'"
            )
    return found


def check_servers(given, pool):
    """--server must name all memcacheds of the pool: lists on others would not be found. Whether
    other names mean the same memcacheds cannot be seen from here; returns those as (given, pool's).
    """
    given, pool = list(dict.fromkeys(given)), list(dict.fromkeys(pool))
    if len(given) < len(pool):
        raise Refused(
            f"--server names {len(given)} of the {len(pool)} memcacheds of the pool; expected all: "
            + ", ".join(pool)
        )
    return [s for s in given if s not in pool], [s for s in pool if s not in given]


# --- one proxy under two names ---------------------------------------------------------------------


def start_of(stats):
    return stats.get(b"pid"), number_of(stats.get(b"time", b"0")) - number_of(stats.get(b"uptime", b"0"))


def are_same(one, other):
    """Do both addresses lead to the same process? Its number and the second of its start say no, or
    perhaps: containers begin with the same number. Then connections to one are counted by the other.
    """
    (_, first), (_, second) = ask(one), ask(other)
    (pid, start_s), (other_pid, other_start_s) = start_of(first), start_of(second)
    if pid != other_pid or abs(start_s - other_start_s) > 2:
        return False
    for _ in range(SAME_TRIES):
        with contextlib.closing(Connection(other)) as watching:
            before = number_of(watching.stats(b"stats").get(b"total_connections", b"0"))
            for _ in range(3):
                with contextlib.closing(Connection(one)) as extra:
                    extra.stats(b"stats")
            if number_of(watching.stats(b"stats").get(b"total_connections", b"0")) < before + 3:
                return False
    return True


def check_distinct(addresses):
    """One proxy that is named twice would be compared with itself."""
    for i, one in enumerate(addresses):
        for other in addresses[:i]:
            if one == other:
                raise Refused(f"{one}: named twice")
            if are_same(one, other):
                raise Refused(f"{one}: is the same proxy as {other}")
