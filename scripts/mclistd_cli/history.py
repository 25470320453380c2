# SPDX-License-Identifier: BSD-3-Clause
"""The lines that were typed, one per line, in a file of this user's alone. Several prompts may write
to it at the same time. A line that begins with a blank is not kept."""

import fcntl
import os
import pathlib
import stat

LINES_MAX = 2000
LINE_BYTES_MAX = 4096
KEYS_MAX = 500


def default_path():
    """None where there is no home."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):
        return pathlib.Path(state) / "mclistd" / "history"
    home = os.path.expanduser("~")
    return pathlib.Path(home) / ".local/state/mclistd/history" if os.path.isabs(home) else None


class History:
    """lines: the oldest first. A file that cannot be used is as good as none."""

    def __init__(self, path):
        self.path, self.lines = path, []
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with self._open() as file:
                    self._load(file)
        except OSError:
            self.path = None

    def _open(self):
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.fdopen(os.open(self.path, flags, 0o600), "r+b")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise OSError(f"{self.path} is no regular file")
        fcntl.flock(file, fcntl.LOCK_EX)
        os.fchmod(file.fileno(), 0o600)
        return file

    def _load(self, file):
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - LINES_MAX * LINE_BYTES_MAX)
        file.seek(start)
        lines = file.read().split(b"\n")[:-1]
        kept = [line for line in lines if line][-LINES_MAX:]
        if len(lines) > 2 * LINES_MAX or start > 0:  # trimmed only now and then
            file.truncate(0)
            file.write(b"".join(line + b"\n" for line in kept))
        self.lines = [line.decode("utf-8", "surrogateescape") for line in kept]

    def add(self, line):
        data = line.encode("utf-8", "surrogateescape")
        if line.startswith(" ") or line.strip() == "" or b"\n" in data:
            return
        if len(data) > LINE_BYTES_MAX or line in self.lines[-1:]:
            return
        self.lines = [*self.lines, line][-LINES_MAX:]
        try:
            if self.path is not None:
                with self._open() as file:
                    file.write(data + b"\n")
        except OSError:
            self.path = None

    def keys(self):
        """Second words of lines, the one used last first, each once."""
        found = {}
        for line in reversed(self.lines):
            words = line.split(None, 2)
            if len(words) > 1 and not words[0].startswith("\\") and words[0] != "help":
                found.setdefault(words[1])
            if len(found) >= KEYS_MAX:
                break
        return list(found)
