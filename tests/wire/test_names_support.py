# SPDX-License-Identifier: BSD-3-Clause
"""A DNS server for the names of memcacheds. No tests here."""

import ipaddress
import socket
import struct
import threading

from harness import HOST

TYPE_A, TYPE_AAAA, TYPE_SRV = 1, 28, 33
OK, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3


class FakeDns:
    """Answers what `names` says: name -> addresses in the order of the answer. Other names do not
    exist. `services`: name -> (priority, weight, port, target) of SRV records. All of it may be
    changed at any time."""

    def __init__(self, names=None, services=None):
        self.names, self.services = dict(names or {}), dict(services or {})
        self.silent = False
        self.silent_types = ()  # TYPE_A, TYPE_AAAA
        self.fails = False
        self.delay_s = 0
        self.batch = 1  # answers wait until so many different names were asked for
        self.waiting = []
        self.questions = []  # (name, type)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HOST, 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    def stop(self):
        self.silent = True
        # A datagram that is no question ends the thread.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (HOST, self.port))
        self.thread.join(5)
        self.socket.close()

    def asked(self, name):
        return sum(1 for asked, _ in self.questions if asked == name)

    def _serve(self):
        while True:
            question, sender = self.socket.recvfrom(2000)
            if not question:
                return
            # A name is case-insensitive, but comes back as it was asked.
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1 : at + 1 + question[at]].decode().lower())
                at += 1 + question[at]
            name, end = ".".join(labels), at + 5
            kind = struct.unpack("!H", question[at + 1 : at + 3])[0]
            self.questions.append((name, kind))
            if self.silent or kind in self.silent_types:
                continue
            self.waiting.append((self._answer(question, end, name, kind), sender))
            if len({asked for asked, _ in self.questions}) < self.batch:
                continue
            for answer in self.waiting:
                if self.delay_s:
                    threading.Timer(self.delay_s, self._send, answer).start()
                else:
                    self._send(*answer)
            self.waiting = []

    def _send(self, answer, sender):
        try:
            self.socket.sendto(answer, sender)
        except OSError:
            pass

    def _answer(self, question, end, name, kind):
        if kind == TYPE_SRV:
            found = [struct.pack("!HHH", *record[:3]) + self._name(record[3])
                     for record in self.services.get(name, [])]
            return self._packet(question, end, kind, found, name in self.services)
        addresses = [ipaddress.ip_address(text) for text in self.names.get(name, [])]
        version = {TYPE_A: 4, TYPE_AAAA: 6}.get(kind)
        found = [a.packed for a in addresses if a.version == version]
        return self._packet(question, end, kind, found, name in self.names)

    @staticmethod
    def _name(text):
        return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"

    def _packet(self, question, end, kind, found, is_known):
        code = OK if is_known else NO_SUCH_NAME
        if self.fails:
            found, code = [], SERVER_FAILURE
        head = question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(found), 0, 0)
        records = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed for packed in found
        )
        return head + question[12:end] + records


def name_config(dns, threads=1, **pool):
    """For Daemon: names are looked up there, every second. One thread, so that the state in `stats
    backends` is that of the connection which a test uses."""
    settings = {"connect_timeout_ms": 300, "timeout_ms": 500, "retry_min_ms": 20, "retry_max_ms": 100}
    return {
        "proxy": {
            "resolver": dns.address, "resolve_timeout_ms": 400, "resolve_interval_s": 1,
            "threads": threads,
        },
        "pool main": {**settings, **pool},
    }
