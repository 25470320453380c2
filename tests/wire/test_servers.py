# SPDX-License-Identifier: BSD-3-Clause
"""mclistd-cli servers: a pool gets other servers by one word, while clients change its lists."""

import threading

import pytest

from harness import in_threads
from test_cli_support import servers

NAMES = [f"list{n}" for n in range(60)]


@pytest.fixture
def start(start_daemon):
    """A function that starts a proxy before some servers, which has others for next."""
    def start(old, new=None, **more):
        config = {"pool main": {"gate_s": 1, **more}, "lists": {"pool": "main", "max_item_bytes": 500}}
        if new is not None:
            config["pool main"]["next"] = "grown"
            config["pool grown"] = {"servers": ", ".join(server.address for server in new)}
        daemon = start_daemon(old, config=config)
        with daemon.conn() as conn:
            conn.cmd("version")
        return daemon
    return start


class Adders:
    """Clients that add to all lists through several proxies until they are told to end."""

    def __init__(self, names):
        self.names, self.proxies, self.ends = names, [], threading.Event()
        self.added = {name: set() for name in names}
        self.faults = []

    def run(self, proxies, what):
        """Runs what() meanwhile."""
        self.ends.clear()
        threads = [threading.Thread(target=self._add, args=(proxy, f"{id(what)}-{n}"))
                   for n, proxy in enumerate(proxies)]
        for thread in threads:
            thread.start()
        try:
            return what()
        finally:
            self.ends.set()
            for thread in threads:
                thread.join()
            assert not self.faults

    def _add(self, proxy, mine):
        count = 0
        with proxy.conn() as conn:
            while not self.ends.is_set():
                name, item = self.names[count % len(self.names)], f"{mine}-{count}"
                answer = conn.cmd(f"ladd {name} {item}")
                if answer != b"STORED":
                    self.faults.append(answer)
                    return
                self.added[name].add(item.encode())
                count += 1

    def check(self, proxy):
        with proxy.conn() as conn:
            for name in self.names:
                items = conn.lget(name)
                assert len(items) == len(set(items))
                assert set(items) == self.added[name]


def heads(server, names):
    with server.conn() as conn:
        return {name for name in names if (conn.get(f"{name}#") or b"").startswith(b"^1 ")}


@pytest.mark.memcacheds(3)
def test_a_pool_grows_by_one_word_while_clients_add(start, memcacheds):
    old, new = memcacheds[:2], memcacheds
    adders = Adders(NAMES)
    first = start(old)
    adders.run([first], lambda: in_threads(1, lambda _: None))
    proxies = [start(old, new) for _ in range(2)]
    first.stop()
    text = servers(proxies[0], "plan")
    assert "lists: " in text and f"{new[2].address}: " in text
    text = adders.run(proxies, lambda: servers(
        proxies[0], "move", "--also", f"127.0.0.1:{proxies[1].port}"))
    assert "All lists of pool main are on their new servers" in text
    assert servers(proxies[0], "move") != "" and "step done" in servers(proxies[0], "status")
    adders.check(proxies[1])
    assert "the step is done" in servers(proxies[0], "back", code=1)
    last = [start(new) for _ in range(2)]
    adders.run(proxies + last, lambda: in_threads(1, lambda _: None))
    for proxy in proxies:
        proxy.stop()
    adders.check(last[0])
    assert heads(new[2], NAMES)
    for name in heads(new[2], NAMES):  # no list is in two places
        assert all(name not in heads(server, NAMES) for server in old)
