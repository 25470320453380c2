# SPDX-License-Identifier: BSD-3-Clause
"""What is going to happen, drawn from a seed before it happens."""

import dataclasses
import random

from cluster import GRACE_S, USUAL

LINK_KINDS = ("cut", "delay", "pieces", "hold", "swallow", "refuse", "reset")

# What happens to the nodes of a Couchbase cluster: bucket.py.
FAIL_OVERS = ("fail-over", "fail-over-moving", "fail-over-paused", "fail-over-cut-off")
NODE_KINDS = (*FAIL_OVERS, "rebalance", "cut-off", "storm", "lag")


@dataclasses.dataclass(frozen=True)
class Event:
    at_s: float
    kind: str
    target: int  # a proxy, a server or a link
    direction: str = "-"
    amount: int = 0
    for_s: float = 0.0
    servers: int = USUAL.servers

    def __str__(self):
        if self.kind in LINK_KINDS:
            target = f"proxy {self.target // self.servers} - server {self.target % self.servers}"
        else:
            is_server = "server" in self.kind or self.kind in NODE_KINDS
            target = f"{'server' if is_server else 'proxy'} {self.target}"
        words = [f"{self.at_s:7.2f} s  {self.kind:<14} {target}"]
        words += [f"{self.direction} {self.amount}"] if self.direction != "-" else []
        words += [f"for {self.for_s:.2f} s"] if self.for_s else []
        return "  ".join(words)


def draw_event(rng, at_s, kind, shape):
    if kind == "kill":
        return Event(at_s, kind, rng.randrange(shape.proxies), for_s=rng.uniform(0, 0.3))
    if kind == "pause-proxy":
        # Mostly for longer than others wait before they sweep up behind it.
        for_s = rng.choice([rng.uniform(0.1, GRACE_S), GRACE_S + rng.uniform(0.5, 2)])
        return Event(at_s, kind, rng.randrange(shape.proxies), for_s=for_s)
    if kind == "pause-server":
        return Event(at_s, kind, rng.randrange(shape.servers), for_s=rng.uniform(0.1, 2))
    if kind == "restart-server":
        return Event(at_s, kind, rng.randrange(shape.servers), for_s=rng.uniform(0, 0.5))
    if kind in NODE_KINDS:
        return Event(at_s, kind, rng.randrange(shape.servers), for_s=rng.uniform(0.1, 1.5))
    link = rng.randrange(shape.links())
    direction = rng.choice(["up", "down"])
    if kind == "reset":
        return Event(at_s, kind, link)
    if kind == "cut":
        return Event(at_s, kind, link, direction, rng.choice([1, 3, 20]), rng.uniform(0.5, 1.5))
    if kind == "refuse":
        return Event(at_s, kind, link, "both", 1, rng.uniform(0.1, 1))
    if kind == "delay":
        return Event(at_s, kind, link, direction, rng.randint(1, 60), rng.uniform(0.5, 2))
    if kind == "pieces":
        return Event(at_s, kind, link, direction, rng.randint(1, 9), rng.uniform(0.5, 2))
    return Event(at_s, kind, link, direction, 1, rng.uniform(0.2, 1.5))  # hold, swallow


def draw_plan(seed, weights, gap_s, seconds, shape=USUAL):
    """Events about gap_s apart, of the kinds with these weights. Every kind comes at least once if
    there is time for it; the last second is calm, but for what lasts longer."""
    rng = random.Random(f"plan {seed}")
    kinds = list(weights)
    first = rng.sample(kinds, len(kinds))
    plan, at_s = [], rng.uniform(0.2, 0.5)
    while at_s < seconds - 1 and kinds:
        kind = first.pop() if first else rng.choices(kinds, list(weights.values()))[0]
        event = draw_event(rng, at_s, kind, shape)
        plan.append(dataclasses.replace(event, servers=shape.servers))
        at_s += rng.uniform(0.2, 1.8) * gap_s
    return plan
