# SPDX-License-Identifier: BSD-3-Clause
"""The private proxy of --try. A keeper, which is a process of its own, starts it and waits: when
the prompt ends, however it ends, the pipe between them closes, and the keeper ends the proxy and
removes the folder of its socket. When the keeper itself is killed, the kernel ends the proxy."""

import ctypes
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

START_TIMEOUT_S = 20
END_TIMEOUT_S = 10
SOCKET_PATH_MAX = 100
SET_PARENT_DEATH_SIGNAL = 1
READY = b"ready"


class NotStarted(Exception):
    pass


def find_daemon(named):
    """The program to start. Raises NotStarted."""
    here = pathlib.Path(sys.argv[0]).absolute().parent
    tree = pathlib.Path(__file__).resolve().parent.parent.parent
    beside = [here / "mclistd", tree.parent / "bin/mclistd", tree / "build/mclistd"]
    found = named or next((str(path) for path in beside if path.is_file()), None)
    found = found or shutil.which("mclistd")
    if found is None:
        raise NotStarted("mclistd is not found; expected it beside mclistd-cli or in PATH")
    return found


def make_folder():
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    for place in [run, tempfile.gettempdir(), "/tmp"]:
        if place and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
            folder = tempfile.mkdtemp(prefix="mclistd-try-", dir=place)
            if len(folder) < SOCKET_PATH_MAX - 10:
                return pathlib.Path(folder)
            os.rmdir(folder)
    raise NotStarted("no folder for the proxy's socket: set XDG_RUNTIME_DIR or TMPDIR")


def ends_with_parent():
    """In the daemon, before it runs."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


class Keeper:
    """The other process. pipe: closes when the prompt ends."""

    def __init__(self, command, folder, pipe, answer):
        self.command, self.folder, self.pipe, self.answer = command, folder, pipe, answer
        self.socket = folder / "proxy.socket"

    def run(self):
        os.setsid()  # no Ctrl-C, no end of the terminal
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        daemon = None
        try:
            with open(self.folder / "log", "wb") as log:
                daemon = subprocess.Popen(
                    self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    preexec_fn=ends_with_parent, restore_signals=True,
                )  # fmt: skip
            os.write(self.answer, self._wait_for(daemon))
            os.close(self.answer)
            while daemon.poll() is None and not self._prompt_has_ended():
                pass
        except OSError as error:
            os.write(self.answer, f"{self.command[0]}: {error.strerror or error}".encode())
        finally:
            self._end(daemon)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _prompt_has_ended(self, wait_s=1.0):
        return bool(select.select([self.pipe], [], [], wait_s)[0])

    def _wait_for(self, daemon):
        deadline = time.monotonic() + START_TIMEOUT_S
        while daemon.poll() is None and time.monotonic() < deadline:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self.socket))
                    return READY
                except OSError:
                    if self._prompt_has_ended(0.01):
                        break
        text = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        faults = [line for line in text if " info " not in line and " warn " not in line]
        return "\n".join(faults[-5:] or ["it does not start in time"]).encode()

    def _end(self, daemon):
        if daemon is None:
            return
        for number in [signal.SIGINT] * END_TIMEOUT_S + [signal.SIGKILL]:  # SIGINT: at once
            if daemon.poll() is None:
                daemon.send_signal(number)
            try:
                daemon.wait(1)
                return
            except subprocess.TimeoutExpired:
                pass


class Private:
    """address: the socket's path. A daemon that listens elsewhere as well is told so by options."""

    def __init__(self, daemon, options, listen):
        folder = make_folder()
        self.path = str(folder / "proxy.socket")
        command = [daemon, *options, "-l", ",".join([f"unix:{self.path}", *listen])]
        inside, self.pipe = os.pipe()
        answer, outside = os.pipe()
        sys.stdout.flush()
        self.keeper = os.fork()
        if self.keeper == 0:
            os.close(self.pipe)
            os.close(answer)
            try:
                Keeper(command, folder, inside, outside).run()
            finally:
                os._exit(0)
        os.close(inside)
        os.close(outside)
        with os.fdopen(answer, "rb") as file:
            text = file.read()
        if text != READY:
            self.end()
            raise NotStarted(re.sub(r"^mclistd: ", "", text.decode(errors="replace")))

    def has_ended(self):
        """Without having been asked to."""
        if self.keeper and os.waitpid(self.keeper, os.WNOHANG)[0] != 0:
            os.close(self.pipe)
            self.keeper = 0
        return self.keeper == 0

    def end(self):
        """Everything is gone when it returns."""
        if self.keeper:
            os.close(self.pipe)
            os.waitpid(self.keeper, 0)
        self.keeper = 0
