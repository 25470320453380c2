# SPDX-License-Identifier: BSD-3-Clause
"""memcached's binary protocol for the test_binary*.py files. No tests here."""

import contextlib
import socket
import struct
from typing import NamedTuple

from harness import HOST, TIMEOUT_S, as_bytes

HEADER = struct.Struct("!BBHBBHIIQ")
NEVER = 0xFFFFFFFF

OPCODES = {
    "get": 0x00, "set": 0x01, "add": 0x02, "replace": 0x03, "delete": 0x04, "incr": 0x05,
    "decr": 0x06, "quit": 0x07, "flush": 0x08, "getq": 0x09, "noop": 0x0A, "version": 0x0B,
    "getk": 0x0C, "getkq": 0x0D, "append": 0x0E, "prepend": 0x0F, "stat": 0x10, "setq": 0x11,
    "addq": 0x12, "replaceq": 0x13, "deleteq": 0x14, "incrq": 0x15, "decrq": 0x16, "quitq": 0x17,
    "flushq": 0x18, "appendq": 0x19, "prependq": 0x1A, "verbosity": 0x1B, "touch": 0x1C,
    "gat": 0x1D, "gatq": 0x1E, "sasl_list": 0x20, "sasl_auth": 0x21, "sasl_step": 0x22,
    "gatk": 0x23, "gatkq": 0x24,
}  # fmt: skip

SUCCESS, NOT_FOUND, EXISTS, TOO_LARGE, INVALID, NOT_STORED, NOT_A_NUMBER = range(7)
AUTH_ERROR, UNKNOWN_COMMAND, NO_MEMORY, INTERNAL, BUSY, TEMPORARY = (
    0x20, 0x81, 0x82, 0x84, 0x85, 0x86)  # fmt: skip


def packet(name, key=b"", extras=b"", value=b"", opaque=0, cas=0, **lies):
    """A request; lies: magic, key_len, extras_len, body_len in place of the truth."""
    key, value = as_bytes(key), as_bytes(value)
    opcode = OPCODES.get(name, name)
    header = HEADER.pack(
        lies.get("magic", 0x80), opcode, lies.get("key_len", len(key)),
        lies.get("extras_len", len(extras)), 0, 0,
        lies.get("body_len", len(key) + len(extras) + len(value)), opaque, cas,
    )  # fmt: skip
    return header + extras + key + value


def store(name, key, value, flags=0, exptime=0, **options):
    return packet(name, key, struct.pack("!II", flags, exptime), value, **options)


def count(name, key, delta, initial=0, exptime=NEVER, **options):
    return packet(name, key, struct.pack("!QQI", delta, initial, exptime), **options)


def touch(name, key, exptime, **options):
    return packet(name, key, struct.pack("!I", exptime), **options)


class Answer(NamedTuple):
    opcode: int
    status: int
    extras: bytes
    key: bytes
    value: bytes
    opaque: int
    cas: int


def take_answer(data):
    """The answer at the front of data, and the rest; None when it is not whole."""
    if len(data) < HEADER.size:
        return None, data
    magic, opcode, key_len, extras_len, datatype, status, body_len, opaque, cas = HEADER.unpack(
        data[: HEADER.size]
    )
    assert (magic, datatype) == (0x81, 0), data[:100]
    if len(data) < HEADER.size + body_len:
        return None, data
    body, rest = data[HEADER.size : HEADER.size + body_len], data[HEADER.size + body_len :]
    key_end = extras_len + key_len
    answer = Answer(
        opcode, status, body[:extras_len], body[extras_len:key_end], body[key_end:], opaque, cas
    )
    return answer, rest


def answers(data):
    """All of them; there is nothing behind."""
    found = []
    while data:
        answer, data = take_answer(data)
        assert answer is not None, f"the answer is cut: {data[:100]!r}"
        found.append(answer)
    return found


class Binary:
    """A connection."""

    def __init__(self, port, tls=None):
        self.socket = socket.create_connection((HOST, port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=HOST)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *packets):
        self.socket.sendall(b"".join(packets))

    def answer(self):
        while True:
            answer, self.buffer = take_answer(self.buffer)
            if answer is not None:
                return answer
            data = self.socket.recv(65536)
            if not data:
                raise EOFError(f"connection closed; unread: {self.buffer!r}")
            self.buffer += data

    def ask(self, request):
        self.send(request)
        return self.answer()

    def until_noop(self, *packets):
        """The answers to the packets, but for that of the noop that is sent behind them."""
        self.send(*packets, packet("noop", opaque=0xFEEDBEEF))
        found = []
        while (answer := self.answer()).opaque != 0xFEEDBEEF:
            found.append(answer)
        return found

    def stats(self, key=b""):
        self.send(packet("stat", key))
        found = {}
        while (answer := self.answer()).key:
            assert answer.status == SUCCESS
            found[answer.key.decode()] = answer.value.decode()
        return found

    def is_closed(self):
        """The other side closes without another byte; waits for it."""
        with contextlib.suppress(ConnectionResetError):
            return self.buffer == b"" and self.socket.recv(1) == b""
        return True
