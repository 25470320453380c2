# SPDX-License-Identifier: BSD-3-Clause
"""How far a change of servers has come. It stands in the item that each server of the pool holds
(src/pool/gate_item.h): the step, and how many steps have been taken. All proxies read it every
gate_s and take the latest one, and write it where it is missing. So one step is one CAS of the item
on the first server by name; of several programs that take one at once, one does it. The
items of the others follow, by this program or by the proxies."""

import contextlib
import re
import time

from mclistd_convert.wire import Answer, Refused, Server, meta

LIFE_ROUNDS = 6  # of an item, in gate_s; and of what a proxy does that has slept
FIRST_ROUNDS = 3  # in which proxies write an item that is missing
LOOK_S = 0.5
NEXT = re.compile(rb"^next = ([0-9a-f]{16}) ([a-z]+) ([0-9]{1,20})$", re.M)
PLACE = re.compile(rb"^server = [0-9]+$", re.M)
FROM = {"move": ("learn",), "learn": ("move",), "done": ("move",)}
PLAIN_NAME = re.compile(rb"[!-~]{1,200}")


class Held:
    """What one server holds. what: NONE, FOREIGN, STAYS (it knows of no change), or MOVES."""

    def __init__(self, item):
        self.item, self.step, self.turn = item, None, 0
        self.text = b"" if item is None else item.value
        found = NEXT.search(self.text)
        if item is None:
            self.what = "none"
        elif not self.text.startswith(b"mclistd gate "):
            self.what = "foreign"
        elif found is None:
            self.what = "stays"
        else:
            self.what, self.step, self.turn = "moves", found[2].decode(), int(found[3])

    def change(self):
        """All but the step, and the place of the server."""
        return PLACE.sub(b"", NEXT.sub(rb"next = \1", self.text))


class Gate:
    """Of a pool: its name, its memcacheds, and how often its proxies read their items."""

    def __init__(self, pool, addresses, gate_s):
        if not PLAIN_NAME.fullmatch(pool):
            raise Refused("the name of the pool is not one that this program can look for")
        self.key, self.gate_s = b"mclistd#pool." + pool, gate_s
        self.addresses = sorted(addresses)

    def _server(self, address):
        try:
            return Server(address)
        except (OSError, Answer) as fault:
            raise Refused(f"{address}: {fault}: a step needs all servers of the pool, but one that the "
                          "file of all proxies says is dead (docs/servers.md)") from None

    def _read(self, server):
        return Held(next(iter(server.items_of([self.key])))[1])

    def look_at(self, address):
        """Held."""
        with contextlib.closing(self._server(address)) as server:
            try:
                return self._read(server)
            except (OSError, Answer) as fault:
                raise Refused(f"{address}: {fault}") from None

    def look(self):
        """{address: Held}."""
        return {address: self.look_at(address) for address in self.addresses}

    def problem(self, found):
        """Why no step can be taken, or None."""
        for address, held in found.items():
            if held.what == "foreign":
                return (f"{address} holds foreign data under {self.key.decode()}: delete that item, "
                        "and a proxy writes it anew")
            if held.what == "none":
                return f"{address} has no item {self.key.decode()}: no proxy with that pool is at work"
            if held.what == "stays":
                return (f"{address}: the proxies there know no next: give all of them the file that "
                        "names it")
        if len({held.change() for held in found.values()}) > 1:
            return "the servers hold items that differ: the proxies do not all have the same file"
        return None

    def now(self):
        """(step, turn, {address: Held}) where all servers say the same; waits for proxies to write
        what is missing. Raises Refused."""
        end = time.monotonic() + FIRST_ROUNDS * self.gate_s
        while True:
            found = self.look()
            why = self.problem(found)
            steps = {(held.turn, held.step) for held in found.values()}
            if why is None and len(steps) == 1:
                turn, step = steps.pop()
                return step, turn, found
            if time.monotonic() > end:
                raise Refused(why or "the servers do not agree how far the change has come")
            time.sleep(min(LOOK_S, self.gate_s / 2))

    def _write(self, server, held, step, turn):
        text = NEXT.sub(b"next = \\1 %s %d" % (step.encode(), turn), held.text)
        flags = [b"C%d" % held.item.cas, b"T%d" % (self.gate_s * LIFE_ROUNDS)]
        server.send(meta(b"ms", self.key, [b"%d" % len(text)], flags), text)
        answer = server.line()
        if answer not in (b"HD", b"EX", b"NF", b"NS"):
            raise Answer(f"ms: {answer.decode(errors='replace')}")
        return answer == b"HD"

    def _take_on(self, address, step, turn, is_first):
        """Writes the step there, unless a later one is there. is_first: another one must not be."""
        server = self._server(address)
        try:
            while True:
                held = self._read(server)
                if held.what == "moves" and (held.turn, held.step) == (turn, step):
                    return
                if held.what != "moves" or held.turn >= turn:
                    if is_first:
                        raise Refused(f"somebody else has taken a step: {address} says {held.step}")
                    return
                if self._write(server, held, step, turn):
                    return
        except (OSError, Answer) as fault:
            raise Refused(f"{address}: {fault}") from None
        finally:
            server.close()

    def take(self, step):
        """Takes that step at all proxies. Returns its number."""
        before, turn, _ = self.now()
        if before == step:
            return turn
        if before not in FROM[step]:
            raise Refused(f"the step is {before}: {step} comes behind {' or '.join(FROM[step])}")
        for address in self.addresses:
            self._take_on(address, step, turn + 1, address == self.addresses[0])
        return turn + 1

    def hold(self, turn, rounds, tell):
        """Waits until each server has said that step for so many gate_s without a break: then no
        proxy acts by another one. Calls tell(seconds left, what breaks it or None). Raises Refused
        when somebody else takes a step."""
        end, why = time.monotonic() + rounds * self.gate_s, None
        while (left_s := end - time.monotonic()) > 0:
            tell(left_s, why)
            time.sleep(min(1, self.gate_s / 2, left_s))
            try:
                found = self.look()
                why = self.problem(found)
            except Refused as fault:  # it may come back
                found, why = {}, str(fault)
            later = {held.step for held in found.values() if held.turn > turn}
            if later:
                raise Refused(f"somebody else has taken a step: {later.pop()}")
            if why is not None or any(held.turn != turn for held in found.values()):
                end = time.monotonic() + rounds * self.gate_s
