# SPDX-License-Identifier: BSD-3-Clause
"""mclistd-cli servers: the words, what they do in which order, what they print."""

import getopt
import sys
import time

from mclistd_convert.settings import ask
from mclistd_convert.wire import Answer, Refused, address_fault, shown
from mclistd_servers.gate import LIFE_ROUNDS, Gate
from mclistd_servers.plan import Plan
from mclistd_servers.pools import Pools
from mclistd_servers.sweep import Left, Mover, Progress, Remains, plain_left

DONE, REFUSED, WRONG = 0, 1, 2
RATE = 2000
PAUSE_S = 5  # before lists that could not move are tried again
USAGE = """\
usage: mclistd-cli [ADDRESS] servers ACTION [POOL] [OPTION...]

Gives a pool other servers while everybody reads and writes; docs/servers.md has the order of steps.
The file of all proxies names the servers to come (next) first.

  plan    what would move, what room there is, what is in the way; changes nothing
  status  how far it has come
  move    all that is to be done between the two files; started again, it goes on
  step    takes the next step only: learn to move, move to done
  back    takes the step `move` back
  sweep   takes away what is left on the servers, once all proxies have the second file

      --rate N     lists that are moved per second, at most (2000); 0: as fast as may be
      --lists-only move: plain keys that no client uses meanwhile are missed afterwards
      --leave N    move: ends though up to N lists stay; they are missed then (0)
      --also LIST  addresses of other proxies, comma-separated, which are asked first whether they
                   have the file
      --old LIST   sweep: servers that are not in the pool any more, but still run
      --dry        sweep: only say what would be done
"""


class Wrong(Exception):
    """The command is no such one."""


class Options:
    def __init__(self, words):
        self.rate, self.leave, self.also, self.old, self.dry = RATE, 0, [], [], False
        self.lists_only = False
        try:
            found, self.words = getopt.gnu_getopt(words, "", ["rate=", "leave=", "also=", "old=", "dry", "lists-only"])
        except getopt.GetoptError as error:
            raise Wrong(str(error)) from None
        for name, value in found:
            if name in ("--rate", "--leave"):
                if not value.isdigit():
                    raise Wrong(f"{name} {value}: expected a number")
                setattr(self, name[2:], int(value))
            elif name in ("--dry", "--lists-only"):
                setattr(self, name[2:].replace("-", "_"), True)
            else:
                setattr(self, name[2:], [a.strip() for a in value.split(",") if a.strip()])
        for address in self.also + self.old:
            if fault := address_fault(address):
                raise Wrong(fault)
        if not 1 <= len(self.words) <= 2 or self.words[0] not in ACTIONS:
            raise Wrong("expected " + ", ".join(ACTIONS))
        self.pool = self.words[1].encode() if len(self.words) == 2 else None


class Change:
    def __init__(self, proxy, options, needs_next=True):
        self.options, self.proxy = options, proxy
        self.pools = Pools(proxy, options.pool, needs_next)
        self.gate = Gate(self.pools.name, self.pools.old, self.pools.gate_s)
        self.progress = Progress(sys.stdout)

    def say(self, text):
        self.progress.end()
        print(text, flush=True)

    def check_others(self):
        """Do other proxies that were named have the same file?"""
        for address in self.options.also:
            other = ask(address)[0].pools.get(self.pools.name, {})
            for key in (b"servers", b"next", b"dead", b"distribution", b"hash"):
                if other.get(key) != self.pools.pool.get(key):
                    raise Refused(f"{address}: {key.decode()} of pool {shown(self.pools.name)} is "
                                  f"{shown(other.get(key, b'nothing'))}: it does not have the file yet")

    # --- steps ---

    def take(self, step):
        turn = self.gate.take(step)
        self.say(f"step {step} (number {turn}) is on all {len(self.gate.addresses)} servers")
        return turn

    def hold(self, turn, what):
        def tell(left_s, why):
            self.progress(f"{what}: {left_s:.0f} s" + (f" ({why})" if why else ""))

        # Each proxy counts from when it has read the step, which is up to a round later.
        self.gate.hold(turn, LIFE_ROUNDS + 1, tell)
        self.progress.end()

    def move(self):
        self.check_others()
        if self.gate.now()[0] == "learn":
            self.take("move")
        if self.gate.now()[0] == "move":
            self.wait_and_sweep()
            if not self.options.lists_only:
                self.sweep_plain()
            self.take("done")
        # A proxy that has started a moment ago did not move lists yet, and may have made one on its
        # old server. In this step it does not.
        self.wait_and_sweep()
        return self.say_done()

    def wait_and_sweep(self):
        """Until nothing is left on the old servers."""
        self.hold(self.gate.now()[1], "waits until each proxy has read the step, or refuses lists")
        mover = Mover(self.proxy, self.options.rate)
        clean, begin = 0, time.monotonic()
        while clean < 2:  # what a proxy that died has sent may have come behind the first look
            left = Left(self.pools)
            keys = left.lists()
            is_clean = not keys or (len(keys) <= self.options.leave and mover.has_failed(keys))
            clean = clean + 1 if is_clean else 0
            self.say(f"lists left: {len(keys)}; moved, or made on their new servers: {left.marks}"
                     + (f"; where neither pool looks for them: {len(left.stray)}" if left.stray else ""))
            if keys and clean < 2:
                before = time.monotonic()
                mover.move(keys, lambda done: self.tell_moving(done, len(keys), before))
                self.progress.end()
                self.wait_for(mover)
        self.say(f"lists left on their old servers: {len(keys)}, after "
                 f"{time.monotonic() - begin:.0f} s")

    def sweep_plain(self):
        """Those that stay are of another pool that has the same servers."""
        mover, before = Mover(self.proxy, self.options.rate), None
        while True:
            keys = plain_left(self.pools)
            self.say(f"plain keys left: {len(keys)}")
            if not keys or (before is not None and len(keys) >= before):
                return
            before, begin = len(keys), time.monotonic()
            mover.move(keys, lambda done: self.tell_moving(done, len(keys), begin), b"me")
            self.progress.end()

    def wait_for(self, mover):
        for text in mover.failures():
            self.say("  " + text)
        if mover.failed:
            self.say(f"tries these again in {PAUSE_S} s; Ctrl-C ends this, and nothing is lost by it")
            time.sleep(PAUSE_S)

    def tell_moving(self, done, count, begin):
        rate = done / max(time.monotonic() - begin, 0.001)
        self.progress(f"moves: {done} of {count}, {rate:.0f}/s, {(count - done) / rate:.0f} s left")

    def say_done(self):
        pools = self.pools
        servers = shown(pools.next[b"servers"])
        self.say(f"All lists of pool {shown(pools.name)} are on their new servers. Now give the proxies, "
                 "one after the other, the file with")
        rules = "".join(
            f"    {key.decode()} = {shown(pools.next[key])}\n"
            for key in (b"distribution", b"hash") if pools.next.get(key) != pools.pool.get(key)
        )
        self.say(f"    [pool {shown(pools.name)}]\n    servers = {servers}\n{rules}"
                 f"and without `next` and without [pool {shown(pools.next_name)}]. When all have it: "
                 "mclistd-cli servers sweep")
        return DONE

    def step(self):
        self.check_others()
        step = self.gate.now()[0]
        if step == "learn":
            self.take("move")
            return DONE
        if step == "move":
            if left := Left(self.pools).lists():
                raise Refused(f"{len(left)} lists are still on their old servers, for instance "
                              f"{shown(left[0])}: `servers move` moves them")
            self.hold(self.gate.now()[1], "waits until no proxy is a step behind")
            if left := Left(self.pools).lists():
                raise Refused(f"{len(left)} lists are still on their old servers")
            self.take("done")
        self.wait_and_sweep()
        return self.say_done()

    def back(self):
        step = self.gate.now()[0]
        if step == "done":
            raise Refused("the step is done, and proxies may have the second file: to go back, make it "
                          "another change, from the new servers to the old ones")
        if step == "learn":
            self.say("the step is learn: no list moves. Take `next` out of the files, if no list has "
                     "moved; else lists that have moved stay reachable only with it")
            return DONE
        self.take("learn")
        self.say("lists that have moved stay on their new servers, and no further ones move")
        return DONE

    # --- what there is ---

    def status(self):
        pools = self.pools
        self.say(f"pool {shown(pools.name)}: {', '.join(pools.old)}; next {shown(pools.next_name)}: "
                 f"{', '.join(pools.new)}")
        found, fault = {}, None
        for address in self.gate.addresses:
            try:
                held = found[address] = self.gate.look_at(address)
                text = f"step {held.step}, number {held.turn}" if held.what == "moves" else held.what
                self.say(f"  {address}: {text}")
            except Refused as error:
                fault = str(error)
        if why := fault or self.gate.problem(found):
            self.say(why)
            return REFUSED
        left = Left(pools)
        self.say(f"lists left: {len(left.lists())}; moved or made behind a mark: {left.marks}")
        return DONE

    def plan(self):
        return DONE if Plan(self.pools).show(self.say) else REFUSED

    def wait_for_end(self, gate):
        """The last proxy with `next` has written the items of a few rounds ago."""
        end = time.monotonic() + (LIFE_ROUNDS + 1) * gate.gate_s
        while True:
            try:
                return self.check_end(gate)
            except Refused:
                left_s = end - time.monotonic()
                if left_s < 0:
                    raise
                self.progress(f"waits until no proxy has had `next` lately: {left_s:.0f} s")
                time.sleep(min(1, gate.gate_s / 2))

    @staticmethod
    def check_end(gate):
        """Raises Refused when a server says that lists move."""
        for address, held in gate.look().items():
            if held.what == "moves":
                raise Refused(f"{address} says that lists move: some proxy has `next` in its file")

    def sweep(self):
        addresses = list(dict.fromkeys(self.pools.old + self.options.old))
        gate = Gate(self.pools.name, addresses, self.pools.gate_s)
        if self.pools.next_name:
            raise Refused(f"{self.proxy} still has `next` in its file")
        self.wait_for_end(gate)
        remains = Remains(self.pools, addresses, not self.options.dry, lambda: self.check_end(gate))
        self.say(f"{'would remove' if self.options.dry else 'removed'} {remains.removed} marks and "
                 f"copies; left alone: {remains.strays} lists on servers that are not theirs")
        self.say("sublists that no list names any more: mclistd-sweep --delete " + " ".join(addresses))
        return DONE


ACTIONS = ("plan", "status", "move", "step", "back", "sweep")


def run(proxy, words):
    """proxy: HOST:PORT or unix:PATH. Returns the exit code."""
    try:
        options = Options(words)
        action = options.words[0]
        change = Change(proxy, options, action != "sweep")
        return getattr(change, action)()
    except Wrong as fault:
        print(f"mclistd-cli: servers: {fault}\n\n{USAGE}", end="", file=sys.stderr)
        return WRONG
    except (Refused, OSError, Answer) as fault:
        print(f"mclistd-cli: servers: {fault}", file=sys.stderr)
        return REFUSED
