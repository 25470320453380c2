# SPDX-License-Identifier: BSD-3-Clause
"""Real memcacheds, the real daemon before them, and a raw connection to talk over.

    def test_add_then_get(conn):                  # one memcached, one daemon, one connection
        assert conn.cmd("ladd fruit apple pear") == b"STORED"
        assert conn.lget("fruit") == [b"apple", b"pear"]

    @pytest.mark.memcacheds(3)                    # how many servers
    @pytest.mark.config(proxy={"threads": 2}, lists={"on_missing": "refuse"})
    def test_something(daemon, memcacheds): ...   # daemon.conn(), memcacheds[0].stop()

Environment: MCLISTD the daemon, MCLISTD_RUNNER a command in front of it, MEMCACHED the memcached
program, MCLISTD_SLOW a factor for all timeouts, MCLISTD_TEST_TLS a file with a certificate for
127.0.0.1, which it has signed itself, and its key: daemons listen with it, and conn() encrypts.
"""

import functools
import itertools
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SLOW = float(os.environ.get("MCLISTD_SLOW", "1"))
TIMEOUT_S = 10 * SLOW
HOST = "127.0.0.1"
SANITIZER_REPORT = re.compile(r"Sanitizer|runtime error")
LISTENS = " listens on "  # in the line that a daemon writes once all its listeners are open


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


FAMILIES = [(socket.AF_INET, HOST), *([(socket.AF_INET6, "::1")] if has_ipv6() else [])]


def worker_ports():
    """Ports in turns, of which no other worker of this run of pytest gets any, nor this one again soon:
    a daemon of another test may still ask for a server that has ended, by the port it had. Below the
    range from which clients get theirs, so that none of their connections takes one before it is used."""
    lanes = 16
    lane = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % lanes
    ports = list(range(10000 + lane, 32000, lanes))
    begin = random.randrange(len(ports))
    return itertools.cycle(ports[begin:] + ports[:begin])


PORTS = worker_ports()


def free_port():
    """A port that no process listens on, by either family."""
    while True:
        port = next(PORTS)
        try:
            for family, host in FAMILIES:
                with socket.socket(family) as probe:
                    probe.bind((host, port))
        except OSError:
            continue
        return port


def wait_until(what, condition, timeout_s=TIMEOUT_S):
    """Returns the first result of condition() that counts as true. It is called less often the
    longer that takes: some conditions cost more than what they wait for."""
    begin = time.monotonic()
    while True:
        result = condition()
        if result:
            return result
        waited_s = time.monotonic() - begin
        assert waited_s < timeout_s, f"{what}: not within {timeout_s} s"
        time.sleep(min(max(0.005, waited_s / 20), 0.05))


def in_threads(count, work):
    """Runs work(0) to work(count - 1) at the same time; raises what the first of them raised."""
    faults = []

    def run(number):
        try:
            work(number)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def wait_for_exit(process, timeout_s=TIMEOUT_S):
    """Returns the exit code; a process that does not end is killed and the code is None."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def is_alive(pid):
    """A zombie is not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pause_process(pid):
    """SIGSTOP; its threads do not all stop at once."""
    os.kill(pid, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{pid}/task")
    wait_until(
        "it is stopped",
        lambda: all(") T " in (task / "stat").read_text() for task in tasks.iterdir()),
    )


@functools.lru_cache(maxsize=None)
def has_thread_sanitizer(program):
    path = shutil.which(program)
    return path is not None and b"__tsan_init" in pathlib.Path(path).read_bytes()


class Conn:
    """A socket, with a timeout on everything. Lines come back without their line end."""

    def __init__(self, port, host=HOST, timeout_s=TIMEOUT_S, tls=None):
        """tls: a context of Python's ssl, if the connection is to be encrypted."""
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, *parts):
        """Exactly these bytes: no line end is added."""
        self.socket.sendall(b"".join(as_bytes(part) for part in parts))

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(f"connection closed; unread: {self.buffer!r}")
        self.buffer += data

    def line(self):
        while b"\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\n", 1)
        assert line.endswith(b"\r"), f"a bare line feed ends {line!r}"
        return line[:-1]

    def lines(self, count):
        return [self.line() for _ in range(count)]

    def until_mn(self):
        """The lines in front of MN, the answer to an mn that was sent behind their requests."""
        return list(iter(self.line, b"MN"))

    def read_exact(self, size):
        while len(self.buffer) < size:
            self._more()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def data(self, size):
        """A data block and its line end."""
        block = self.read_exact(size + 2)
        assert block.endswith(b"\r\n"), f"no line end behind a data block: {block[-20:]!r}"
        return block[:-2]

    def cmd(self, text, body=None):
        """Sends a request line, and a data block if there is one; returns the one line of reply."""
        self.send(text, b"\r\n", b"" if body is None else as_bytes(body) + b"\r\n")
        return self.line()

    def is_silent(self, duration_s=0.1):
        """Nothing unread, and nothing comes for that long."""
        if self.buffer:
            return False
        timeout_s = self.socket.gettimeout()
        self.socket.settimeout(duration_s)
        try:
            self._more()
            return False
        except socket.timeout:
            return True
        finally:
            self.socket.settimeout(timeout_s)

    def is_closed(self):
        """The other side closes without another byte; waits for it."""
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def values(self, text):
        """For get, gets, gat, lget, lgets, lhas, lrange, lgetb: [(key, numbers, data)], where numbers
        are the fields behind the key. Whatever ends the answer in place of END is raised."""
        self.send(text, b"\r\n")
        return self.values_answer()

    def values_answer(self):
        """The answer to one that was sent before, as values() returns it."""
        found = []
        while True:
            line = self.line()
            if line == b"END":
                return found
            word, *fields = line.split(b" ")
            if word == b"VALUE":
                numbers = [int(field) for field in fields[1:]]
                found.append((fields[0], numbers, self.data(numbers[1])))
            elif word == b"ITEM":
                found.append((fields[0], [int(fields[1])], self.data(int(fields[1]))))
            else:
                raise RuntimeError(line.decode(errors="replace"))

    def set(self, key, value, flags=0, exptime=0):
        body = as_bytes(value)
        return self.cmd(f"set {key} {flags} {exptime} {len(body)}", body)

    def get(self, key):
        """The value, or None."""
        found = self.values(f"get {key}")
        assert len(found) <= 1
        return found[0][2] if found else None

    def lget(self, key, delimiter=b","):
        """The items in their order; [] for a list that is empty or missing."""
        found = self.values(f"lget {key}")
        assert len(found) <= 1
        return found[0][2].split(delimiter) if found and found[0][2] else []

    def lgetb(self, key):
        return [data for _, _, data in self.values(f"lgetb {key}")]

    def llen(self, key):
        return int(self.cmd(f"llen {key}"))

    def stats(self, text="stats"):
        """Name -> value, both str, of an answer of STAT lines: stats, stats settings, lstat KEY."""
        self.send(text, b"\r\n")
        found = {}
        while (line := self.line()) != b"END":
            word, name, value = (line.decode().split(" ", 2) + ["", ""])[:3]
            if word != "STAT":
                raise RuntimeError(line.decode(errors="replace"))
            found[name] = value
        return found


class UnixConn(Conn):
    """The same over a unix socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(str(path))
        self.buffer = b""


class Memcached:
    """A private memcached. It keeps its port when it is stopped and started again."""

    def __init__(self, *args, memory_mb=64, host=HOST, port=None):
        self.program = os.environ.get("MEMCACHED", "memcached")
        self.args = ["-U", "0", "-t", "2", "-m", str(memory_mb), *map(str, args)]
        if os.geteuid() == 0:
            self.args += ["-u", "nobody"]
        self.host = host
        self.port = port
        self.process = None
        self.start()

    @property
    def address(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def start(self):
        ports = [self.port] if self.port else [free_port() for _ in range(5)]
        for port in ports:
            self.port = port
            command = [self.program, "-l", self.host, "-p", str(port), *self.args]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            try:
                if wait_until(f"{self.program} answers", self._is_mine_or_gone) == "mine":
                    return self
            except AssertionError:
                self.stop()
                raise
        raise AssertionError(f"does not start: {shlex.join(command)}")

    def _is_mine_or_gone(self):
        """Asks for the process number: another program may have taken the port."""
        if self.process.poll() is not None:
            return "gone"
        try:
            with self.conn() as conn:
                return "mine" if conn.stats().get("pid") == str(self.process.pid) else None
        except (OSError, EOFError):
            return None

    def conn(self, **options):
        return Conn(self.port, host=self.host, **options)

    def pause(self):
        """It accepts and stays silent."""
        pause_process(self.process.pid)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        """All at once, as a crash; the content is gone."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def restart(self):
        self.stop()
        return self.start()


def write_ini(path, sections):
    """{"proxy": {"threads": 2}, "pool main": {"servers": [..]}} as an ini file; lists are joined by
    commas, bool becomes yes or no."""

    def text_of(value):
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, (list, tuple)):
            return ", ".join(map(str, value))
        return str(value)

    lines = []
    for section, settings in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {text_of(value)}" for key, value in settings.items()]
        lines.append("")
    pathlib.Path(path).write_text("\n".join(lines))
    return path


class Daemon:
    """mclistd with a generated configuration. config: {section: {key: value}}, laid over one
    listener on a free port, two threads, flush_all allowed and, if there are servers, a pool "main" of
    them; pools have no gate unless it is set."""

    def __init__(self, folder, servers=(), config=None, args=(), env=None, program=None):
        self.folder = pathlib.Path(folder)
        self.runner = [] if program else shlex.split(os.environ.get("MCLISTD_RUNNER", ""))
        self.program = program or os.environ.get("MCLISTD", str(ROOT / "build/mclistd"))
        self.args = list(map(str, args))
        self.env = {**os.environ, **(env or {})}
        self.env.setdefault("ASAN_OPTIONS", "exitcode=66:detect_leaks=1")
        self.env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        self.env.setdefault("TSAN_OPTIONS", "exitcode=66:halt_on_error=1:atexit_sleep_ms=50")
        self.port = free_port()
        listen = f"{HOST}:{self.port}"
        self.sections = {"proxy": {"listen": listen, "threads": 2, "allow_flush_all": True}}
        self.tls = None
        certificate = os.environ.get("MCLISTD_TEST_TLS")
        if certificate:
            self.sections["proxy"].update(tls_cert=certificate, tls_key=certificate)
            self.tls = ssl.create_default_context(cafile=certificate)
        if SLOW > 1:
            self.sections["proxy"]["deadline_ms"] = int(2000 * SLOW)
        if servers:
            addresses = [getattr(server, "address", server) for server in servers]
            self.sections["pool main"] = {"servers": addresses}
        for section, settings in (config or {}).items():
            self.sections.setdefault(section, {}).update(settings)
        # Most tests count what servers hold, and some want proxies that differ: test_gate.py.
        for section, settings in self.sections.items():
            if section.startswith("pool "):
                settings.setdefault("gate_s", 0)
        self.log_path = self.folder / f"mclistd-{self.port}.log"
        self.ini_path = self.folder / f"mclistd-{self.port}.ini"
        self.process = None
        self.must_stop = False  # it is to end well, and has not yet
        self.start()

    def path(self):
        return str(ROOT / self.program) if "/" in self.program else self.program

    def command(self):
        return [*self.runner, self.path(), "-c", str(self.ini_path), *self.args]

    def start(self):
        write_ini(self.ini_path, self.sections)
        starts = self.log().count(LISTENS)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env
            )
        try:
            wait_until("the daemon accepts", self._accepts)
            if any(section.startswith("listener ") for section in self.sections):
                # The first listener may accept before the daemon has opened the others.
                wait_until("the daemon listens", lambda: self.log().count(LISTENS) > starts)
        except AssertionError:
            self.kill()
            raise
        if has_thread_sanitizer(self.path()):
            # It loses a signal that comes at the moment when the main thread begins to wait.
            time.sleep(0.1)
        self.must_stop = True
        return self

    def _accepts(self):
        code = self.process.poll()
        assert code is None, f"the daemon ended at its start, exit code {code}:\n{self.log()}"
        try:
            self.conn().close()
            return True
        except OSError:
            return False

    def conn(self, **options):
        return Conn(self.port, **{"tls": self.tls, **options})

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_for_log(self, pattern, timeout_s=TIMEOUT_S):
        """Returns the match of the regular expression. A thread of its own writes the log, so what
        has happened may not be in it yet."""
        return wait_until(f"{pattern} in the log", lambda: re.search(pattern, self.log()),
                          timeout_s)

    def is_running(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def processor_s(self):
        """What it has taken of a processor so far."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        self.must_stop = False
        if self.is_running():
            self.process.kill()
            self.process.wait()

    def stop(self, exit_code=0):
        """Ends it with TERM; it must leave with that exit code and without a sanitizer's report."""
        self.must_stop = False
        if self.is_running():
            self.process.terminate()
        code = wait_for_exit(self.process, 3 * TIMEOUT_S)
        report = SANITIZER_REPORT.search(self.log())
        assert not report, f"a sanitizer's report:\n{self.log()[-20000:]}"
        assert code is not None, f"the daemon did not end on TERM:\n{self.log()[-5000:]}"
        assert code == exit_code, f"the daemon's exit code is {code}:\n{self.log()[-5000:]}"
