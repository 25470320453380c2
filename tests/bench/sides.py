# SPDX-License-Identifier: BSD-3-Clause
"""The programs that are compared: how they are started, and what they are told.

A side has a port, a protocol, and `servers`: name -> process, all those that work for it. Ours is
the proxy before memcached; nutcracker, when it is the peer, stands before the same memcached."""

import contextlib
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "wire"))
from couchbase_support import RelayCluster, documents  # noqa: E402
from harness import HOST, Conn, Daemon, Memcached, free_port, wait_until  # noqa: E402

SETUP_TIMEOUT_S = 120


def cpu_s(pid):
    """User and system time of all threads of a process, in nanosecond steps: the clock behind utime
    and stime of /proc/PID/stat. The number is the kernel's for "CPU clock of process PID"."""
    return time.clock_gettime(((~pid) << 3) | 2)


def stored_bytes(memcached):
    """Of its items with their overhead, and of the pages it has taken for them."""
    with memcached.conn() as conn:
        items = int(conn.stats()["bytes"])
        pages = int(conn.stats("stats slabs")["total_malloced"])
    return items, pages


def rss_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1]) * 1024


class Cores:
    """Servers share one core, the load generator has another: both sides of a comparison get the
    same, and the load takes nothing away from what it measures. With a single core nothing is
    pinned. apart: where what a proxy has behind it is kept apart from the proxy; on two cores it
    shares that of the load."""

    def __init__(self):
        found = sorted(os.sched_getaffinity(0))
        self.all = set(found)
        self.servers = {found[0]}
        self.load = {found[1]} if len(found) > 1 else self.servers
        self.apart = {found[2]} if len(found) > 2 else self.load
        self.is_pinned = len(found) > 1

    def start_on(self, cores, start):
        """Calls start(); what it starts runs on these cores, and stays there."""
        os.sched_setaffinity(0, cores)
        try:
            return start()
        finally:
            os.sched_setaffinity(0, self.all)

    def text(self):
        if not self.is_pinned:
            return "one core for everything"
        return f"servers all on core {min(self.servers)}, load on core {min(self.load)}"


class RespConn(Conn):
    """A Conn that speaks to Redis."""

    def call(self, *words):
        """Returns an int, bytes, None or a list of these; an error reply is raised."""
        self.send(resp(*words))
        return self.reply()

    def reply(self):
        line = self.line()
        mark, rest = line[:1], line[1:]
        if mark == b"+":
            return rest
        if mark == b":":
            return int(rest)
        if mark == b"$":
            return None if rest == b"-1" else self.data(int(rest))
        if mark == b"*":
            return [self.reply() for _ in range(int(rest))]
        raise RuntimeError(line.decode(errors="replace"))


def resp(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def template_bytes(word):
    """The length of what a template's word becomes; all its numbers have a width."""
    filled = re.sub(r"%(\d+)[kmnrsz]", lambda match: "0" * int(match[1]), word)
    assert "%" not in filled, f"a number without width, or of no known kind: {word}"
    return len(filled)


def resp_template(*words):
    """A request to Redis as the load generator's template."""
    parts = [f"${template_bytes(word)}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n" + "".join(parts)


def pipelined(conn, requests, read_reply, window=8):
    """Sends all requests and reads all replies, with `window` of them under way: few enough that
    large ladds do not wait for each other's compactions for long."""
    waiting = 0
    for request in requests:
        if waiting == window:
            read_reply()
            waiting -= 1
        conn.send(request)
        waiting += 1
    for _ in range(waiting):
        read_reply()


def chunks(items, size):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class Classic:
    """What a side is told in memcached's protocol; list verbs only work through mclistd."""

    def __init__(self, name, port, servers):
        self.name = name
        self.port = port
        self.servers = servers

    def conn(self):
        return Conn(self.port, timeout_s=SETUP_TIMEOUT_S)

    # --- templates: (request, expected reply) -----------------------------------------------

    @staticmethod
    def get(key, value_bytes, keys=1):
        expect = f"values {keys} {keys} {value_bytes} {value_bytes}"
        return "get" + f" {key}" * keys + "\r\n", expect

    @staticmethod
    def set(key, value_bytes):
        return f"set {key} 0 0 {value_bytes}\r\n%v\r\n", "line STORED"

    @staticmethod
    def add(key, *members):
        return f"ladd {key} {' '.join(members)}\r\n", "line STORED"

    @staticmethod
    def remove(key, member):
        return f"ldel {key} {member}\r\n", "line DELETED"

    @staticmethod
    def has(key, member):
        return f"lhas {key} {member}\r\n", "values 0 1"

    @staticmethod
    def length(key, count):
        return f"llen {key}\r\n", f"number {count}"

    @staticmethod
    def items(key, count, item_bytes):
        bytes_ = count * (item_bytes + 1) - 1
        return f"lget {key}\r\n", f"values 1 1 {bytes_} {bytes_}"

    # --- setup and looking afterwards -------------------------------------------------------

    def store(self, pairs):
        with self.conn() as conn:

            def stored():
                line = conn.line()
                assert line == b"STORED", line

            requests = (b"set %s 0 0 %d\r\n%s\r\n" % (k, len(v), v) for k, v in pairs)
            pipelined(conn, requests, stored)

    def fetch(self, key):
        with self.conn() as conn:
            return conn.get(key.decode())

    def fill(self, lists, per_command=500):
        """lists: (key, iterable of members), all str."""
        with self.conn() as conn:

            def stored():
                line = conn.line()
                assert line == b"STORED", line

            requests = (
                f"ladd {key} {' '.join(some)}\r\n"
                for key, members in lists
                for some in chunks(members, per_command)
            )
            pipelined(conn, requests, stored)

    def drop(self, key):
        with self.conn() as conn:
            assert conn.cmd(f"ldrop {key}") == b"DELETED"

    def compact(self, key):
        with self.conn() as conn:
            assert conn.cmd(f"lcompact {key}") == b"OK"

    def members(self, key):
        with self.conn() as conn:
            return [item.decode() for item in conn.lget(key)]

    def count(self, key):
        with self.conn() as conn:
            return conn.llen(key)


class Redis:
    """The same things, said to Redis."""

    def __init__(self, name, port, servers):
        self.name = name
        self.port = port
        self.servers = servers

    def conn(self):
        return RespConn(self.port, timeout_s=SETUP_TIMEOUT_S)

    @staticmethod
    def get(key, value_bytes, keys=1):
        assert keys == 1
        return resp_template("GET", key), f"bulk {value_bytes}"

    @staticmethod
    def add(key, *members):
        return resp_template("SADD", key, *members), f"integer 0 {len(members)}"

    @staticmethod
    def remove(key, member):
        return resp_template("SREM", key, member), "integer 0 1"

    @staticmethod
    def has(key, member):
        return resp_template("SISMEMBER", key, member), "integer 0 1"

    @staticmethod
    def length(key, count):
        return resp_template("SCARD", key), f"integer {count}"

    @staticmethod
    def items(key, count, item_bytes):
        return resp_template("SMEMBERS", key), f"array {count} {count} {item_bytes} {item_bytes}"

    @staticmethod
    def range(key, count, item_bytes):
        """Redis' lists keep an order, as ours do, but take an item twice."""
        words = resp_template("LRANGE", key, "0", "-1")
        return words, f"array {count} {count} {item_bytes} {item_bytes}"

    def fill(self, lists, per_command=500, verb="SADD"):
        with self.conn() as conn:

            def added():
                assert isinstance(conn.reply(), int)

            requests = (
                resp(verb, key, *some)
                for key, members in lists
                for some in chunks(members, per_command)
            )
            pipelined(conn, requests, added)

    def fill_sorted(self, key, members, per_command=500):
        """A sorted set: each member's score is its place."""
        with self.conn() as conn:

            def added():
                assert isinstance(conn.reply(), int)

            places = ((word for pair in some for word in pair)
                      for some in chunks(enumerate(members), per_command))
            pipelined(conn, (resp("ZADD", key, *words) for words in places), added)

    def drop(self, key):
        with self.conn() as conn:
            conn.call("DEL", key)

    def compact(self, key):
        """There is nothing like it."""

    def members(self, key):
        with self.conn() as conn:
            return [item.decode() for item in conn.call("SMEMBERS", key)]

    def count(self, key):
        with self.conn() as conn:
            return conn.call("SCARD", key)

    def used_memory(self):
        with self.conn() as conn:
            return int(re.search(rb"^used_memory:(\d+)", conn.call("INFO", "memory"), re.M)[1])


class Arena:
    """Starts programs, ends all of them. Each row of the comparison has an arena of its own, so
    nothing is left of the row before."""

    def __init__(self, folder, cores, is_apart=False):
        self.folder = pathlib.Path(folder)
        self.cores = cores
        self.memcached_cores = cores.apart if is_apart else cores.servers
        self.started = []
        self.ending = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        with self.ending:
            self._end(failure)

    def _end(self, failure):
        try:
            if failure is None:
                self._check_memory()
        finally:
            for server in reversed(self.started):
                server.process.kill()
                server.process.wait()

    def _check_memory(self):
        """A memcached that has thrown something out was too small for what it was to show."""
        for server in self.started:
            if isinstance(server, Memcached):
                with server.conn() as conn:
                    evictions = conn.stats()["evictions"]
                assert evictions == "0", f"memcached has evicted {evictions} items"

    def _start(self, make, cores=None):
        server = self.cores.start_on(cores or self.cores.servers, make)
        self.started.append(server)
        return server

    def memcacheds(self, count=1, memory_mb=1024):
        def start():
            return Memcached("-t", "1", "-c", "12000", memory_mb=memory_mb)

        return [self._start(start, self.memcached_cores) for _ in range(count)]

    def mclistd(self, memcacheds, name="mclistd", timeout_ms=10_000, threads=1, lists=None):
        """By default with patience, for machines that are busy with something else. lists: sections
        of lists with their settings, and more of [proxy]."""
        config = {
            **(lists or {}),
            "proxy": {
                "threads": threads,
                "max_connections": 15000,
                **(lists or {}).get("proxy", {}),
            },
            "pool main": {"timeout_ms": timeout_ms},
        }
        daemon = self._start(lambda: Daemon(self.folder, memcacheds, config))
        servers = {"mclistd": daemon.process}
        servers.update({f"memcached{i}": m.process for i, m in enumerate(memcacheds)})
        return Classic(name, daemon.port, servers)

    def bucket(self, lists=None, timeout_ms=10_000):
        """The proxy before a bucket, whose documents a program of ours keeps."""
        store = self._start(Documents)
        cluster = self.cores.start_on(
            self.cores.servers, lambda: RelayCluster(HOST, store.port, has_frames=True)
        )
        self.ending.enter_context(cluster)
        config = {
            "proxy": {"threads": 1, "max_connections": 15000, "allow_flush_all": "no"},
            "pool documents": documents(cluster, self.folder, timeout_ms=timeout_ms),
            **(lists or {}),
        }
        daemon = self._start(lambda: Daemon(self.folder, config=config))
        return Classic("bucket", daemon.port, {"mclistd": daemon.process, "documents": store.process})

    def memcached(self, memcached):
        """Without a proxy before it."""
        return Classic("memcached", memcached.port, {"memcached": memcached.process})

    def nutcracker(self, memcacheds):
        program = self._start(lambda: Nutcracker(self.folder, memcacheds))
        servers = {"nutcracker": program.process}
        servers.update({f"memcached{i}": m.process for i, m in enumerate(memcacheds)})
        return Classic("nutcracker", program.port, servers)

    def redis(self):
        program = self._start(lambda: RedisServer(self.folder))
        return Redis("redis", program.port, {"redis": program.process})


def wait_for_port(process, port):
    def accepts():
        assert process.poll() is None, f"{process.args[0]} ended at its start"
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            return True
        except OSError:
            return False

    wait_until(f"{process.args[0]} accepts", accepts)


class Nutcracker:
    def __init__(self, folder, memcacheds):
        self.port = free_port()
        path = folder / f"nutcracker-{self.port}.yml"
        # With several servers keys are hashed as mclistd does it, by libmemcached's ketama.
        hash_name = "md5" if len(memcacheds) > 1 else "fnv1a_64"
        lines = ["bench:", f"  listen: {HOST}:{self.port}", f"  hash: {hash_name}"]
        lines += ["  distribution: ketama", "  preconnect: true", "  auto_eject_hosts: false"]
        lines += ["  servers:"] + [f"    - {m.address}:1" for m in memcacheds]
        path.write_text("\n".join(lines) + "\n")
        command = ["nutcracker", "-c", str(path), "-o", str(path.with_suffix(".log"))]
        # Its statistics page wants a port as well.
        command += ["-a", HOST, "-s", str(free_port())]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        wait_for_port(self.process, self.port)


class RedisServer:
    """Without persistence; everything else as it is."""

    def __init__(self, folder):
        self.port = free_port()
        command = ["redis-server", "--port", str(self.port), "--bind", HOST, "--save", ""]
        command += ["--appendonly", "no", "--maxclients", "12000", "--dir", str(folder)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        wait_for_port(self.process, self.port)


class Documents:
    """tests/cluster/documents.c, beside the daemon."""

    def __init__(self):
        self.port = free_port()
        program = pathlib.Path(os.environ["MCLISTD"]).with_name("documents")
        self.process = subprocess.Popen([program, str(self.port)], stdin=subprocess.DEVNULL)
        wait_for_port(self.process, self.port)


def raise_file_limit():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class Machine:
    """How much of the machine others have used since this was made, of all cores, 0 to 1. Time that
    a hypervisor gave to another machine counts as theirs."""

    def __init__(self):
        self.start_s = time.monotonic()
        self.busy_s = self._busy_s()
        self.own_s = self._own_s()

    @staticmethod
    def _busy_s():
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
        ticks = user + nice + system + irq + softirq + steal
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _own_s():
        both = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(used.ru_utime + used.ru_stime for used in both)

    def share_of_others(self):
        """Right once all programs that were started have ended."""
        wall_s = (time.monotonic() - self.start_s) * os.cpu_count()
        others_s = self._busy_s() - self.busy_s - (self._own_s() - self.own_s)
        return max(0.0, others_s / wall_s)


def version_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+(\.\d+)?(\S*)?", done.stdout + done.stderr)
    return found[0].rstrip(",") if found else "unknown"
