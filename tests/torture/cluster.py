# SPDX-License-Identifier: BSD-3-Clause
"""Proxies before memcacheds, with a relay on every way between them, and what can be done to all of
these."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import threading
import time
import typing

import stored
from harness import HOST, SLOW, Conn, Daemon, Memcached, pause_process, wait_until

PROXIES, SERVERS = 3, 2
TIMEOUT_MS = 500
# A call may wait for timeout_ms before it is started, for its own requests to the server after
# that, and for the calls of the same client before it. The rest is for a machine that has other
# things to do.
ANSWER_S = 4 * TIMEOUT_MS / 1000 + 6 * SLOW
GRACE_S = 1
CLIENT_HARD_BYTES = 8 << 20
CLIENT_OUTPUT_BYTES = 256 << 10
FOLD_MEMORY_BYTES = 16 << 20
CACHE_BYTES = 4 << 20
THREADS = 2

# Small, so that every list is folded, flipped and merged all the time.
TINY = {
    "log_limit_bytes": 512,
    "log_hard_limit_bytes": 8192,
    "sublist_limit_bytes": 1024,
    "max_item_bytes": 200,
    "announcement_grace_s": GRACE_S,
    "max_answer_bytes": CLIENT_HARD_BYTES // 2,
    "fold_memory_bytes": FOLD_MEMORY_BYTES,
    "touch_interval_s": 1,
}
REFUSE, SPREAD, HUGE, CREATE = "r-", "s-", "h-", "c-"  # prefixes of keys
BRIDGED = (REFUSE, CREATE)
# The daemon's own defaults: a list of megabytes would take long with tiny sublists.
LARGE = {
    "log_limit_bytes": "16k",
    "log_hard_limit_bytes": "128k",
    "sublist_limit_bytes": "128k",
    "cache_bytes": CACHE_BYTES,
}


def config(number):
    """Of one proxy. They differ where they may."""
    return {
        "proxy": {
            "threads": THREADS,
            "client_output_bytes": CLIENT_OUTPUT_BYTES,
            "client_hard_bytes": CLIENT_HARD_BYTES,
        },
        "pool main": {
            # Each proxy has a relay of its own before each server, so the servers' names differ:
            # only this one places keys by the servers' order.
            "distribution": "modula",
            "timeout_ms": TIMEOUT_MS,
            "connect_timeout_ms": TIMEOUT_MS,
            "retry_min_ms": 20,
            "retry_max_ms": 200,
        },
        "lists": {**TINY, "cache_bytes": [CACHE_BYTES, 16 << 10, 0][number % 3]},
        f"lists {REFUSE}": {"on_missing": "refuse", "bridge": "yes"},
        f"lists {CREATE}": {"bridge": "yes"},
        f"lists {SPREAD}": {"placement": "spread"},
        f"lists {HUGE}": LARGE,
    }


@dataclasses.dataclass(frozen=True)
class Shape:
    """config(number): of one proxy."""

    proxies: int = PROXIES
    servers: int = SERVERS
    config: typing.Callable = config

    def links(self):
        return self.proxies * self.servers


USUAL = Shape()


class Relay:
    """relay.c: link number = proxy * servers + server."""

    def __init__(self, program, seed, server_ports):
        """server_ports: for each proxy, those that its links lead to."""
        proxies, servers = len(server_ports), len(server_ports[0])
        links = [str(port) for ports in server_ports for port in ports]
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [program, str(seed), *links], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        ports = list(map(int, self.process.stdout.readline().split()))
        assert len(ports) == len(links), "the relay does not start"
        self.ports = [ports[n * servers : (n + 1) * servers] for n in range(proxies)]

    def order(self, text):
        """Returns the lines before the "ok"."""
        with self.lock:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
            lines = []
            while (line := self.process.stdout.readline()) not in ("ok\n", "bad\n", ""):
                lines.append(line)
            assert line == "ok\n", f"the relay on {text!r}: {line!r}"
        return lines

    def stats(self, link):
        names = "connections open cuts bytes_up bytes_down held_bytes".split()
        return dict(zip(names, map(int, self.order(f"{link} stats")[0].split())))

    def all_stats(self):
        return [self.stats(link) for link in range(sum(map(len, self.ports)))]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def start_daemon(folder, servers, sections):
    """Anew when another program has taken its port before it did."""
    for tries_left in (2, 1, 0):
        try:
            return Daemon(folder, servers, sections)
        except AssertionError as fault:
            if not tries_left or f"exit code {os.EX_UNAVAILABLE}" not in str(fault):
                raise


class Proxy:
    """A daemon, and when it was not there to answer."""

    def __init__(self, folder, number, ports, sections):
        (folder / f"proxy-{number}").mkdir()
        servers = [f"{HOST}:{port}" for port in ports]
        self.number = number
        self.daemon = start_daemon(folder / f"proxy-{number}", servers, sections)
        self.port = self.daemon.port
        self.lock = threading.Lock()  # starting, stopping, pausing
        self.kills = []  # [from, to or None]: killed, and not running again
        self.away = []  # [from, to or None]: paused, or killed and not running again

    def _leave(self):
        self.away.append([time.monotonic_ns(), None])

    def _come_back(self):
        self.away[-1][1] = time.monotonic_ns()

    def kill(self, for_s):
        with self.lock:
            self._leave()
            self.kills.append(self.away[-1])
            self.daemon.kill()
            time.sleep(for_s)
            self.daemon.start()
            self._come_back()

    @contextlib.contextmanager
    def paused(self):
        with self.lock:
            self._leave()
            pause_process(self.daemon.process.pid)
            try:
                yield
            finally:
                self.daemon.signal(signal.SIGCONT)
                self._come_back()

    def away_s(self, since_ns):
        """For how long it was away since then."""
        now = time.monotonic_ns()
        spans = [(max(start, since_ns), end or now) for start, end in list(self.away)]
        return sum(max(end - start, 0) for start, end in spans) / 1e9

    def was_killed(self, since_ns):
        """A connection from then may have been closed by a kill."""
        return any(end is None or end >= since_ns for _, end in list(self.kills))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))


class Group:
    """`proxies` before `memcacheds`."""

    @contextlib.contextmanager
    def places(self):
        """Where everything is stored."""
        found = [stored.Server(memcached) for memcached in self.memcacheds]
        try:
            yield found
        finally:
            for place in found:
                place.close()

    def stop(self):
        """The proxies must end well; returns what is wrong."""
        faults = []
        for proxy in self.proxies:
            try:
                proxy.daemon.stop()
            except AssertionError as fault:
                faults.append(f"proxy {proxy.number}: {fault}")
        self.kill()
        return faults

    def kill(self):
        for proxy in self.proxies:
            proxy.daemon.kill()
        for memcached in self.memcacheds:
            memcached.stop()


class Cluster(Group):
    """Everything that runs. Restarts of servers are noted in `restarts`: (server, from, to)."""

    def __init__(self, folder, build, seed, shape=USUAL):
        self.shape = shape
        self.memcacheds, self.relay, self.proxies = [], None, []
        self.restarts = []
        self.server_locks = [threading.Lock() for _ in range(shape.servers)]
        try:
            for _ in range(shape.servers):
                self.memcacheds.append(Memcached("-c", "4096", memory_mb=512))
            ports = [[memcached.port for memcached in self.memcacheds]] * shape.proxies
            self.relay = Relay(str(pathlib.Path(build) / "relay"), seed, ports)
            for number in range(shape.proxies):
                sections = shape.config(number)
                self.proxies.append(Proxy(folder, number, self.relay.ports[number], sections))
        except BaseException:
            self.kill()
            raise

    def restart_server(self, server, for_s):
        """Killed, and started again, empty."""
        with self.server_locks[server]:
            stopped_ns = time.monotonic_ns()
            self.memcacheds[server].stop()
            time.sleep(for_s)
            self.memcacheds[server].start()
            self.restarts.append((server, stopped_ns, time.monotonic_ns()))

    def pause_server(self, server, for_s):
        with self.server_locks[server]:
            self.memcacheds[server].pause()
            time.sleep(for_s)
            self.memcacheds[server].resume()

    def carry_out(self, event):
        """Does it, for as long as it is to last, and takes it back."""
        if event.kind == "kill":
            self.proxies[event.target].kill(event.for_s)
        elif event.kind == "pause-proxy":
            with self.proxies[event.target].paused():
                time.sleep(event.for_s)
        elif event.kind == "pause-server":
            self.pause_server(event.target, event.for_s)
        elif event.kind == "restart-server":
            self.restart_server(event.target, event.for_s)
        elif event.kind == "reset":
            self.relay.order(f"{event.target} reset")
        else:
            order = f"{event.target} {event.kind} {event.direction}"
            self.relay.order(f"{order} {event.amount}")
            time.sleep(event.for_s)
            self.relay.order(f"{order} 0")

    def clear_links(self):
        """No more harm; returns when everything that was on its way has arrived."""
        for link in range(self.shape.links()):
            self.relay.order(f"{link} clear")
        wait_until(
            "nothing is held by the relay",
            lambda: sum(stats["held_bytes"] for stats in self.relay.all_stats()) == 0,
        )

    def heal(self):
        self.clear_links()
        for memcached in self.memcacheds:
            with memcached.conn() as conn:
                assert conn.cmd("mn") == b"MN"
        self.await_servers()

    def await_servers(self):
        for proxy in self.proxies:
            wait_until("all servers are up again", lambda proxy=proxy: self._all_up(proxy))

    def _all_up(self, proxy):
        """Every worker has to connect anew: ask as often as it takes."""
        with proxy.daemon.conn() as conn:
            answers = [conn.cmd(f"mg up{n} v") for n in range(20)]
            return all(answer == b"EN" for answer in answers)

    def proxy_conn(self, number):
        return Conn(self.proxies[number].port, timeout_s=ANSWER_S)

    def kill(self):
        super().kill()
        if self.relay:
            self.relay.stop()
