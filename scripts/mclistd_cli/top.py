# SPDX-License-Identifier: BSD-3-Clause
"""A live view of a proxy, from what `stats` and its groups say: a frame each second. Rates are those
of the time between two samples, times those of the requests of the last seconds."""

import collections
import os
import select
import shutil
import signal
import sys
import termios
import time
import tty

from mclistd_cli.show import BOLD, DIM, DONE, RED, YELLOW
from mclistd_cli.wire import Lost, number_of
from mclistd_cli.words import to_bytes

INTERVAL_S = 1.0
TIMES_S = 10  # what the times of requests are of
PARTS = (0.5, 0.99, 1)
ENDS = (b"q", b"Q", b"\x03", b"\x04")
CLASSES = ("cmd_get", "cmd_set", "cmd_meta", "cmd_other",
           "cmd_list_read", "cmd_list_write", "cmd_list_exact", "cmd_list_tx")  # fmt: skip
SHOW, HIDE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, LINE_END, REST = "\x1b[H", "\x1b[K\r\n", "\x1b[J"


class Sample:
    def __init__(self, connection):
        self.time_s = time.monotonic()
        self.stats = connection.stats()
        self.buckets = {}  # class: {no longer than so many microseconds: requests}
        for name, count in connection.stats(b"latency buckets").items():
            kind, _, limit = name.removesuffix("_us").partition(":")
            if limit.isdigit():  # an older proxy says something else
                self.buckets.setdefault(kind, {})[number_of(limit)] = number_of(count)
        self.hot = list(connection.stats(b"hot").items())
        self.clients = [row.split(" ") for row in connection.stats(b"clients").values()]
        self.servers = {}
        for name, value in connection.stats(b"backends").items():
            server, _, field = name.removeprefix("backend:").rpartition(":")
            self.servers.setdefault(server, {})[field] = value


def number(fields, name):
    return number_of(fields.get(name, "0"))


def short(count):
    """In six columns."""
    for unit in ("", "k", "M", "G", "T"):
        if count < 10000 or unit == "T":
            return f"{count:.0f}{unit}"
        count /= 1000
    return None


def quantiles(before, now):
    """Of the requests between two samples, as texts: times that each of PARTS of them did not exceed."""
    if any(count > now.get(limit, 0) for limit, count in before.items()):
        before = {}  # `stats reset`
    more = [(limit, count - before.get(limit, 0)) for limit, count in sorted(now.items())]
    total = sum(count for _, count in more)
    times, seen = ["-"] * len(PARTS), 0
    for limit, count in more:
        for at, part in enumerate(PARTS):
            if count and seen < part * total <= seen + count:
                times[at] = short(limit)
        seen += count
    return times


def size(count):
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1024 or unit == "TB":
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return None


def span(seconds):
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} d {clock}" if days else clock


class Frame:
    """The lines of one frame: [(colour or None, text)]. before, now: samples of the same proxy; times
    are those of the requests since the sample first, which is before by default."""

    def __init__(self, name, before, now, columns, rows, first=None):
        self.first = first or before
        self.before, self.now, self.columns, self.rows = before, now, columns, rows
        self.seconds = max(now.time_s - before.time_s, 0.001)
        self.lines, self.has_gaps = [], rows > 30
        self._head(name)
        self._classes()
        # The servers get what is left, but for some lines of keys and clients, and the last one.
        self._servers(max(2, rows - len(self.lines) - 6 - self.has_gaps))
        self._keys_and_clients(max(0, rows - len(self.lines) - 2))
        self.lines = self.lines[: rows - 1]

    def add(self, text, colour=None):
        text = "".join(char if char.isprintable() else "?" for char in text)
        self.lines.append((colour, text[: self.columns]))

    def title(self, text):
        if self.has_gaps:
            self.add("")
        self.add(text, DIM)

    def rate(self, names, before=None, now=None):
        """Of counters, per second. After a `stats reset` it is 0."""
        before = self.before.stats if before is None else before
        now = self.now.stats if now is None else now
        more = sum(number(now, name) - number(before, name) for name in names)
        return max(0, more) / self.seconds

    def _head(self, name):
        stats = self.now.stats
        version = stats.get("version", "").rpartition("-")[2]
        self.add(f"mclistd {version} at {name}, up {span(number(stats, 'uptime'))}, "
                 f"clients {number(stats, 'curr_connections')}, threads {number(stats, 'threads')}", BOLD)
        faults = [("client", "client_errors"), ("server", "server_errors"), ("timeouts", "backend_timeouts")]
        rates = [(text, self.rate([counter])) for text, counter in faults]
        self.add(f"{short(self.rate(CLASSES))} requests/s   errors/s: "
                 + ", ".join(f"{text} {short(rate)}" for text, rate in rates),
                 YELLOW if any(rate for _, rate in rates) else None)
        self.add("memory {} of {}   cache {} of {}   in {}/s   out {}/s".format(
            *(size(number(stats, key)) for key in
              ("memory_bytes", "memory_limit_bytes", "cache_bytes", "cache_limit_bytes")),
            size(self.rate(["bytes_read"])), size(self.rate(["bytes_written"]))))

    def _classes(self):
        seconds = round(max(self.now.time_s - self.first.time_s, 1))
        self.title(f"{'class':<16}{'req/s':>8}{'p50 us':>10}{'p99 us':>10}{'max us':>10}"
                   f"  of the last {seconds} s")
        for name in CLASSES:
            if number(self.now.stats, name):
                times = quantiles(self.first.buckets.get(name, {}), self.now.buckets.get(name, {}))
                self.add(f"{name.removeprefix('cmd_'):<16}{short(self.rate([name])):>8}"
                         + "".join(f"{text:>10}" for text in times))

    def _servers(self, room):
        """Those in trouble first, then the busiest."""
        rows = []
        for name, fields in self.now.servers.items():
            before = self.before.servers.get(name, fields)
            trouble = fields.get("trouble", "none")
            rate = self.rate(["requests"], before, fields)
            bad = trouble != "none" or fields.get("state") != "up"
            rows.append((not bad, -rate, name, fields, trouble, self.rate(["errors"], before, fields)))
        rows.sort(key=lambda row: row[:3])
        shown = rows if len(rows) <= room - 1 else rows[: room - 2]
        self.title(f"{'server':<26}{'state':<11}{'req/s':>7}{'err/s':>7}{'wait':>6}{'p99 us':>8}  trouble")
        for is_good, rate, name, fields, trouble, errors in shown:
            self.add(f"{name[-25:]:<26}{fields.get('state', ''):<11}{short(-rate):>7}{short(errors):>7}"
                     f"{short(number(fields, 'pending')):>6}{short(number(fields, 'recent_p99_us')):>8}"
                     f"  {'' if trouble == 'none' else trouble}", None if is_good else RED)
        if len(shown) < len(rows):
            self.add(f"... and {len(rows) - len(shown)} more", DIM)

    def _keys_and_clients(self, room):
        half = self.columns // 2
        self.title(f"{'hottest keys':<{half}}clients that leave answers unread")
        keys = [f"{share:>6} {key}"[: half - 1] for key, share in self.now.hot]
        clients = []
        for words in self.now.clients:
            fields = dict(zip(words[::2], words[1::2]))
            name = " ".join(words[words.index("client") + 1 :]) if "client" in words else ""
            clients.append(f"{number(fields, 'unread_ms')} ms {size(number(fields, 'unread_bytes'))} {name}")
        for at in range(min(room - self.has_gaps, max(len(keys), len(clients)))):
            key = keys[at] if at < len(keys) else ""
            self.add(f"{key:<{half}}{clients[at] if at < len(clients) else ''}")


def once(connection):
    """The lines of one frame of two samples. Raises Lost."""
    before = Sample(connection)
    time.sleep(INTERVAL_S)
    columns, _ = shutil.get_terminal_size((80, 24))
    frame = Frame(connection.address.name, before, Sample(connection), max(columns, 80), 1000)
    return [text.rstrip() for _, text in frame.lines]


class Screen:
    """The other screen of the terminal, with its keys as they are typed; the terminal is as it was
    when it ends, also by a signal."""

    def __init__(self, paint):
        self.paint = paint

    def __enter__(self):
        self.input = sys.stdin.fileno()
        self.mode = termios.tcgetattr(self.input)
        self.handlers = {number: signal.signal(number, self._on_signal)
                         for number in (signal.SIGTERM, signal.SIGHUP)}
        tty.setcbreak(self.input)
        self._put(SHOW)
        return self

    @staticmethod
    def _on_signal(number, _):
        raise SystemExit(128 + number)

    def __exit__(self, *_):
        self._put(HIDE)
        termios.tcsetattr(self.input, termios.TCSADRAIN, self.mode)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    @staticmethod
    def _put(text):
        sys.stdout.buffer.write(to_bytes(text))
        sys.stdout.buffer.flush()

    def draw(self, lines):
        painted = [self.paint(colour, text) if colour else text for colour, text in lines]
        self._put(HOME + LINE_END.join([*painted, self.paint(DIM, "q ends")]) + "\x1b[K" + REST)

    def wants_end(self, wait_s):
        """Waits so long for a key that ends the view."""
        until = time.monotonic() + wait_s
        while select.select([self.input], [], [], max(0, until - time.monotonic()))[0]:
            key = os.read(self.input, 1)
            if key in ENDS or key == b"":
                return True
        return False


def live(connection, paint):
    """Until the user ends it. A proxy that is gone is asked again each second."""
    samples = collections.deque()
    with Screen(paint) as screen:
        while True:
            columns, rows = shutil.get_terminal_size((80, 24))
            try:
                now = Sample(connection)
                while samples and now.time_s - samples[0].time_s > TIMES_S + INTERVAL_S / 2:
                    samples.popleft()
                samples.append(now)
                before = samples[-2] if len(samples) > 1 else now
                frame = Frame(connection.address.name, before, now, columns, rows, samples[0])
                screen.draw(frame.lines)
            except Lost as fault:
                screen.draw([(RED, str(fault)[:columns])])
                samples.clear()
            try:
                if screen.wants_end(INTERVAL_S if samples else 2 * INTERVAL_S):
                    return DONE
            except KeyboardInterrupt:
                return DONE
