# SPDX-License-Identifier: BSD-3-Clause
"""What a change of servers would move, and whether it would fit."""

import collections
import contextlib

from mclistd_convert.names import NATIVE_HEAD, NATIVE_SUBLIST
from mclistd_convert.wire import ITEM_KEY, Server, number_of, shown
from mclistd_servers.sweep import COPY, HEAD, MARK, asked, crawled

SAMPLE = 20000  # plain keys of which it is asked where they go
PROBES = 4096  # keys that say which share of all has a server


class Share:
    def __init__(self):
        self.all, self.all_bytes, self.moving, self.moving_bytes = 0, 0, 0, 0

    def take(self, size, moves, count=1):
        self.all, self.all_bytes = self.all + count, self.all_bytes + count * size
        if moves:
            self.moving, self.moving_bytes = self.moving + count, self.moving_bytes + count * size

    def text(self, what):
        percent = 100 * self.moving / self.all if self.all else 0
        return (f"{what}: {self.moving} of {self.all} move ({percent:.0f} %), "
                f"{size_text(self.moving_bytes)} of {size_text(self.all_bytes)}")


def size_text(count):
    for unit in ("bytes", "KB", "MB"):
        if count < 10000:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.0f} GB"


class Plan:
    """to: {new server: bytes that come to it}."""

    def __init__(self, pools):
        self.pools = pools
        self.lists, self.plain = Share(), Share()
        self.to = collections.Counter()
        self.strays, self.in_the_way, self.old_values = [], [], []
        for address in pools.servers():
            with crawled(address, ITEM_KEY.fullmatch) as server:
                self._look(server)

    def _look(self, server):
        records = server.records
        sizes, plain = collections.Counter(), []
        for key, record in records.items():
            sublist = NATIVE_SUBLIST.fullmatch(key)
            if sublist:
                sizes[sublist[1] + b"#"] += record.bytes
            elif NATIVE_HEAD.fullmatch(key):
                sizes[key] += record.bytes
            else:
                plain.append(key)
        heads = [key for key in sizes if key in records]
        self._take_heads(server, heads, sizes)
        self._take_plain(server.address, plain, records)

    def _take_heads(self, server, heads, sizes):
        address = server.address
        old, new = self.pools.places(heads), self.pools.places(heads, True)
        for key, value in server.read(heads):
            text = b"" if value is None else value.value
            if MARK.match(text) or COPY.match(text):
                if new[key] == address:
                    self.in_the_way.append((key[:-1], address))
            elif HEAD.match(text) and old[key] == self.pools.dead and new[key] == address:
                self.lists.take(sizes[key], False)  # made anew
            elif HEAD.match(text) and old[key] != address:
                (self.in_the_way if new[key] == address else self.strays).append((key[:-1], address))
            elif HEAD.match(text):
                moves = old[key] != new[key]
                self.lists.take(sizes[key], moves)
                if moves:
                    self.to[new[key]] += sizes[key]

    def _take_plain(self, address, keys, records):
        step = max(len(keys) // SAMPLE, 1)
        some = keys[::step]
        old = self.pools.places(some)
        new = self.pools.places(some, True)
        mine = [key for key in some if old[key] == address]
        self.old_values += [
            (key, address) for key in some if new[key] == address and old[key] != address
        ]
        for key in mine:
            moves = old[key] != new[key]
            self.plain.take(records[key].bytes, moves, step)
            self.to[new[key]] += records[key].bytes * step if moves else 0

    def share_of_dead(self):
        places = self.pools.places([b"mclistd-probe-%d" % number for number in range(PROBES)])
        return 100 * sum(place == self.pools.dead for place in places.values()) / PROBES

    def room(self):
        """Yields (server, text, whether it is too little)."""
        for address in self.pools.new:
            with asked(address), contextlib.closing(Server(address)) as server:
                stats, settings = server.stats(b"stats"), server.stats(b"stats settings")
            free = number_of(stats.get(b"limit_maxbytes")) - number_of(stats.get(b"bytes"))
            comes = self.to[address]
            refuses = settings.get(b"evictions") == b"off"
            text = f"{address}: {size_text(comes)} come, {size_text(free)} are free"
            if comes > free:
                text += ("; it would refuse them (-M)" if refuses else "; it would evict others")
            yield text, comes > free

    def show(self, say):
        """Returns whether nothing stands in the way."""
        pools = self.pools
        say(f"pool {shown(pools.name)}: {', '.join(pools.old)}")
        say(f"  to {shown(pools.next_name)}: {', '.join(pools.new)}")
        if pools.dead:
            say(f"{pools.dead} is dead: what it held is lost, or missed behind the change, which is "
                f"{self.share_of_dead():.0f} % of the lists and plain keys")
        say(self.lists.text("lists"))
        say(self.plain.text("plain keys"))
        is_well = True
        for text, is_little in self.room():
            say(text)
            is_well = is_well and not is_little
        for found, what in (
            (self.strays, "lists lie where neither pool looks for them, and are left alone"),
            (self.old_values, "plain keys are already where they would move, of an earlier change or "
                              "of another pool: docs/servers.md, Plain keys"),
            (self.in_the_way, "items of an earlier change are where lists would go: "
                              "`mclistd-cli servers sweep` before any proxy has the new file"),
        ):
            if found:
                say(f"{len(found)} {what} (for instance {shown(found[0][0])} on {found[0][1]})")
        return is_well and not self.in_the_way
