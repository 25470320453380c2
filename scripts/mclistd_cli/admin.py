# SPDX-License-Identifier: BSD-3-Clause
"""Commands of operators, which the proxy takes on a unix socket of its admin listener: a line, and an
answer of lines, the first of which is OK or ERROR and the reason."""

import re
import socket

from mclistd_cli.wire import CONNECT_TIMEOUT_S, READ_BYTES, Lost, reason

DEFAULT_FILE = "/etc/mclistd.ini"
LOCAL = ("127.0.0.1", "::1", "localhost")
STREAMS = (b"trace",)  # their lines come as things happen, so nobody knows when


class NotFound(Exception):
    """No socket for commands; the text says why."""


def unix_path(names):
    """The first unix socket among addresses as `listen` has them, or None."""
    paths = [name.strip()[5:] for name in names.split(",") if name.strip().startswith("unix:")]
    return paths[0] if paths else None


def path_of_file(name):
    """What `listen` says in the section [admin] of a configuration. Raises NotFound."""
    try:
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            lines = [re.sub(r"(^|\s)[;#].*", "", line).strip() for line in file]
    except OSError as error:
        raise NotFound(f"{name}: {error.strerror}") from None
    section = None
    for line in lines:
        if line.startswith("["):
            section = line
        key, _, value = line.partition("=")
        path = unix_path(value) if section == "[admin]" and key.strip() == "listen" else None
        if path:
            return path
    raise NotFound(f"{name}: `listen` in [admin] names no unix socket, where commands go")


class Admin:
    """path, config: what the user has named, or None: then the proxy itself is asked, over
    connection, and where no address was given and nothing answers, the usual file."""

    def __init__(self, connection, has_address, path=None, config=None):
        self.connection, self.has_address, self.path, self.config = connection, has_address, path, config

    def _path_of_proxy(self):
        address = self.connection.address
        if address.path is None and address.host not in LOCAL:
            raise NotFound(f"{address.name} is another machine: commands of operators go over a unix "
                           "socket, on the proxy's own one")
        settings = self.connection.stats(b"settings")
        names = settings.get("admin:listen")
        if names is None:
            raise NotFound(f"{address.name} is no mclistd")
        path = unix_path(names)
        if path:
            return path
        raise NotFound(f"{address.name}: `listen` in [admin] names no unix socket, where commands go")

    def _find(self):
        if self.path is not None:
            return self.path
        if self.config is not None:
            return path_of_file(self.config)
        try:
            return self._path_of_proxy()
        except Lost as fault:
            if self.has_address:
                raise NotFound(str(fault)) from None
            try:
                return path_of_file(DEFAULT_FILE)
            except NotFound as other:
                raise NotFound(f"{fault}; {other}") from None

    def ask(self, words):
        """Yields the lines of the answer. Raises NotFound, and Lost when it breaks off."""
        path = self._find()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(CONNECT_TIMEOUT_S)
            try:
                sock.connect(path)
                sock.sendall(b" ".join(words) + b"\n")
            except OSError as error:
                raise NotFound(f"{path}: {reason(error)}") from None
            sock.settimeout(None if words[0] in STREAMS else self.connection.timeout_s)
            yield from self._lines(sock)

    @staticmethod
    def _lines(sock):
        rest, count = b"", 0
        try:
            while piece := sock.recv(READ_BYTES):
                *lines, rest = (rest + piece).split(b"\n")
                count += len(lines)
                yield from lines
        except OSError as error:
            raise Lost(reason(error)) from None
        if rest or not count:
            raise Lost("the connection was closed before the end of the answer")
