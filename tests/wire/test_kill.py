# SPDX-License-Identifier: BSD-3-Clause
"""Proxies that are killed and paused in the middle of flips and merges: nothing acknowledged is
lost, nothing deleted is back, and what they leave behind is tidied up.

MCLISTD_LONG=1 in the environment: a minute each, with twenty clients."""

import os
import random
import signal
import time

import pytest

from model import Load, sublists

LONG = os.environ.get("MCLISTD_LONG") == "1"
SECONDS = 60 if LONG else 8
CLIENTS = 20 if LONG else 8
GRACE_S = 1
TINY = {
    "log_limit_bytes": 512,
    "log_hard_limit_bytes": 8192,
    "sublist_limit_bytes": 1024,
    "max_item_bytes": 200,
    "announcement_grace_s": GRACE_S,
}

pytestmark = pytest.mark.slow


class Trouble:
    """What is done to the proxies while the clients are at work."""

    def __init__(self, daemons, seed=1):
        self.daemons, self.rng = daemons, random.Random(seed)
        self.kills = self.pauses = 0

    def kill(self):
        daemon = self.rng.choice(self.daemons)
        time.sleep(self.rng.uniform(0.05, 0.4))
        daemon.kill()
        time.sleep(self.rng.uniform(0, 0.2))
        daemon.start()
        self.kills += 1

    def pause(self):
        """For longer than others wait before they sweep up behind it."""
        daemon = self.rng.choice(self.daemons)
        time.sleep(self.rng.uniform(0.05, 0.3))
        daemon.signal(signal.SIGSTOP)
        time.sleep(GRACE_S + self.rng.uniform(1.1, 2))
        daemon.signal(signal.SIGCONT)
        self.pauses += 1

    def any(self):
        self.rng.choices([self.kill, self.pause], [3, 1])[0]()


def start_proxies(start_daemon, memcacheds, count, **lists):
    return [start_daemon(memcacheds, config={"lists": {**TINY, **lists}}) for _ in range(count)]


def finish(load, daemons, memcacheds):
    for daemon in daemons:
        with daemon.conn() as conn:
            load.judge(conn)
    with daemons[0].conn() as conn:
        load.judge_leftovers(conn, memcacheds)
    assert load.done()["ladd"] > 100


@pytest.mark.parametrize("placement, seed", [("head", 1), ("spread", 2)])
@pytest.mark.memcacheds(2)
def test_proxies_are_killed_in_the_middle_of_flips(start_daemon, memcacheds, placement, seed):
    daemons = start_proxies(start_daemon, memcacheds, 2, placement=placement)
    trouble = Trouble(daemons, seed)
    load = Load(daemons, SECONDS, CLIENTS, seed=seed)
    load.run(trouble.kill)
    assert trouble.kills > 2
    finish(load, daemons, memcacheds)


@pytest.mark.parametrize("seed", [3])
@pytest.mark.memcacheds(2)
def test_proxies_are_paused_for_longer_than_the_grace(start_daemon, memcacheds, seed):
    daemons = start_proxies(start_daemon, memcacheds, 2)
    trouble = Trouble(daemons, seed)
    load = Load(daemons, SECONDS, CLIENTS, seed=seed, patience_s=1)
    load.run(trouble.pause)
    assert trouble.pauses > 1
    finish(load, daemons, memcacheds)


@pytest.mark.memcacheds(2)
def test_three_proxies_are_killed_and_paused(start_daemon, memcacheds):
    daemons = start_proxies(start_daemon, memcacheds, 3)
    trouble = Trouble(daemons, 4)
    load = Load(daemons, SECONDS, CLIENTS, seed=4, patience_s=1)
    load.run(trouble.any)
    finish(load, daemons, memcacheds)


def test_the_only_proxy_is_killed_while_it_merges(start_daemon, memcacheds):
    """No other proxy is there to tidy up: it finds its own predecessor's announcements."""
    daemons = start_proxies(start_daemon, memcacheds, 1)
    trouble = Trouble(daemons, 5)
    load = Load(daemons, SECONDS // 2, CLIENTS, keys=[b"one"], universe=300, seed=5)
    load.run(trouble.kill)
    finish(load, daemons, memcacheds)


def test_ldrop_sweeps_what_a_killed_proxy_left(start_daemon, memcacheds):
    daemons = start_proxies(start_daemon, memcacheds, 1, announcement_grace_s=3600)
    trouble = Trouble(daemons, 6)
    load = Load(daemons, 3, 4, keys=[b"one"], universe=300, seed=6)
    load.run(trouble.kill)
    with daemons[0].conn() as conn:
        for key in ("one", "whole"):
            assert conn.cmd(f"ldrop {key}") == b"DELETED"
            assert conn.lget(key) == []
            assert conn.cmd(f"lcompact {key}") == b"OK"
            assert sublists(memcacheds, key) == []
