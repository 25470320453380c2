# SPDX-License-Identifier: BSD-3-Clause
"""A program on a pseudo terminal."""

import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import termios
import time

from harness import ROOT, TIMEOUT_S

CLI = ROOT / "scripts/cli"
ESCAPE = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\^_=>()][0-9A-Z]?)")
POSITION_ASKED = b"\x1b[6n"


def servers(proxy, *words, code=0):
    """What `mclistd-cli servers` prints."""
    done = subprocess.run([CLI, f"127.0.0.1:{proxy.port}", "servers", *words], capture_output=True,
                          text=True, timeout=12 * TIMEOUT_S)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


class Terminal:
    """type() sends keys; wait_for() what the screen must show next, without escape sequences."""

    def __init__(self, command, env, columns=100, rows=40):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, close_fds=True,
            env={**os.environ, "TERM": "xterm-256color", **env},
            preexec_fn=self._take_terminal,
        )  # fmt: skip
        os.close(slave)
        self.raw, self.seen = b"", 0

    @staticmethod
    def _take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def type(self, text):
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def enter(self, text):
        self.type(text + "\r")

    def read(self, wait_s):
        """Takes what there is; False at the end."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        if POSITION_ASKED in data:  # as a terminal answers
            self.type(b"\x1b[1;1R")
        self.raw += data
        return data != b""

    @property
    def text(self):
        return ESCAPE.sub(b"", self.raw).decode(errors="replace").replace("\r", "")

    def wait_for(self, wanted):
        """Returns what came up to it, the escape sequences taken out."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            text = self.text[self.seen :]
            found = text.find(wanted)
            if found >= 0:
                self.seen += found + len(wanted)
                return text[:found]
            assert time.monotonic() < deadline, f"{wanted!r} does not come: {text!r}"
            if not self.read(0.1):
                text = self.text[self.seen :]
                assert wanted in text, f"ended without {wanted!r}: {text!r}"

    def wait_for_end(self):
        """The exit code; minus the signal."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.05)
        while self.read(0.05) and select.select([self.master], [], [], 0)[0]:
            pass
        return self.process.returncode

    def hang_up(self):
        os.close(self.master)
        self.master = None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.master is not None:
            os.close(self.master)


def without_toolkit(env, folder, **more):
    """The environment of a prompt that has no prompt_toolkit: its terminal shows line after line."""
    hidden = pathlib.Path(folder) / "hidden/prompt_toolkit"
    hidden.mkdir(parents=True, exist_ok=True)
    (hidden / "__init__.py").write_text("raise ImportError\n")
    return {**env, "PYTHONPATH": str(hidden.parent), **more}


def prompt_sessions(name):
    """The sessions of a document that begin with the prompt."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"^```\n((?:\$ \S*mclistd[^\n]*\n)?mclistd> .*?)^```$", text,
                      re.MULTILINE | re.DOTALL)


def check_prompt_session(terminal, session):
    """Types what stands behind each prompt, and holds the answers against what stands there. A line
    `...` stands for any lines."""
    for part in session.split("mclistd> ")[1:]:
        terminal.wait_for("mclistd> ")
        typed, _, wanted = part.partition("\n")
        terminal.enter(typed)
        terminal.wait_for(f"{typed}\n")
        for piece in wanted.split("...\n"):
            terminal.wait_for(piece)
    terminal.enter("quit")
    assert terminal.wait_for_end() == 0


def children_of(pid):
    """All processes below it, as they are now: {pid: command}."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().split(" (", 1)[1].rsplit(") ", 1)
            parents[int(path.parent.name)] = (int(rest.split()[1]), name)
        except (OSError, IndexError):
            continue
    found, new = {}, {pid}
    while new:
        new = {child for child, (parent, _) in parents.items() if parent in new and child not in found}
        found.update({child: parents[child][1] for child in new})
    return found


