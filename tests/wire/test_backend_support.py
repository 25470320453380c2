# SPDX-License-Identifier: BSD-3-Clause
"""A server that misbehaves and other helpers of the test_backend*.py and test_ops*.py files. No
tests here."""

import re
import socket
import subprocess
import threading
import time

from harness import HOST, TIMEOUT_S, free_port, write_ini

# Of a pool: servers that are silent or gone are given up, and tried again, soon.
FAST = {"connect_timeout_ms": 300, "timeout_ms": 300, "retry_min_ms": 20, "retry_max_ms": 100}
HANDSHAKE = (
    b"VERSION 1.6.18\r\nSTAT item_size_max 1048576\r\nSTAT cas_enabled yes\r\n"
    b"STAT flush_enabled yes\r\nEND\r\n"
)


def run_to_the_end(daemon):
    """Runs it once more, with its sections as they are now, until it ends by itself: exit code and
    what it wrote to standard error."""
    write_ini(daemon.ini_path, daemon.sections)
    result = subprocess.run(
        daemon.command(), capture_output=True, text=True, timeout=3 * TIMEOUT_S,
        stdin=subprocess.DEVNULL, env=daemon.env
    )
    assert result.stdout == ""
    return result.returncode, result.stderr


class FakeServer:
    """Answers the proxy's handshake as a memcached would, then leaves each connection to behave(),
    which is given the fake itself and the socket. What came in is kept in `received`."""

    def __init__(self, behave, handshake=HANDSHAKE, port=None):
        self.behave = behave
        self.handshake = handshake
        self.port = port or free_port()
        self.received = []  # one bytearray per connection, without the handshake's question
        self.connections = 0
        self.stopping = False
        self.lock = threading.Lock()
        self.sockets = []
        self.early = {}  # socket -> what came in with the handshake's question
        self.listener = socket.create_server((HOST, self.port), backlog=100)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    def stop(self):
        self.stopping = True
        # Wakes accept().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)
        with self.lock:
            for sock in self.sockets:
                sock.close()

    def all_received(self):
        return b"".join(bytes(part) for part in self.received)

    def _accept(self):
        while not self.stopping:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(20)
            with self.lock:
                self.sockets.append(sock)
                self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            if self.handshake is not None:
                question = b""
                while b"stats settings\r\n" not in question:
                    data = sock.recv(1000)
                    if not data:
                        return
                    question += data
                # A probe may stand behind it.
                self.early[sock] = question.split(b"stats settings\r\n", 1)[1]
                sock.sendall(self.handshake)
            self.behave(self, sock)
        except OSError:
            pass
        finally:
            sock.close()

    def requests(self, sock):
        """Yields each request line as it comes, with the data block of a storage command."""
        with self.lock:
            kept = bytearray()
            self.received.append(kept)
        buffer = self.early.pop(sock, b"")
        kept += buffer
        while True:
            found = re.match(rb"([^\n]*)\r\n", buffer)
            if found:
                line = found.group(1)
                size = found.end()
                words = line.split()
                if words[0] in (b"set", b"add", b"replace", b"append", b"prepend", b"cas"):
                    size += int(words[4]) + 2
                elif words[0] == b"ms":
                    size += int(words[2]) + 2
                if len(buffer) >= size:
                    body = buffer[found.end() : size - 2]
                    buffer = buffer[size:]
                    yield line, body
                    continue
            data = sock.recv(65536)
            if not data:
                return
            kept += data
            buffer += data


def correct_answer(line):
    """What a memcached would say that holds "value" everywhere."""
    verb, *words = line.split()
    if verb == b"mg":
        value = b"v" in words
        flags = {b"k": b"k" + words[0], b"f": b"f0", b"c": b"c1", b"t": b"t-1", b"s": b"s5"}
        said = b"".join(b" " + flags[word] for word in words[1:] if word in flags)
        return b"VA 5%s\r\nvalue\r\n" % said if value else b"HD%s\r\n" % said
    return {
        b"delete": b"DELETED\r\n", b"incr": b"7\r\n", b"ms": b"HD\r\n", b"mn": b"MN\r\n"
    }.get(verb, b"STORED\r\n")


def answer_correctly(fake, sock):
    for line, _ in fake.requests(sock):
        sock.sendall(correct_answer(line))


def answer_byte_by_byte(fake, sock):
    for line, _ in fake.requests(sock):
        for byte in correct_answer(line):
            sock.sendall(bytes([byte]))
            time.sleep(0.001)


def answer_always(answer):
    def behave(fake, sock):
        for _ in fake.requests(sock):
            sock.sendall(answer)

    return behave


def answer_once_and_close(answer):
    """After the first request."""

    def behave(fake, sock):
        for _ in fake.requests(sock):
            sock.sendall(answer)
            return

    return behave


def answer_slowly(fake, sock):
    """Half a second for each answer."""
    for line, _ in fake.requests(sock):
        time.sleep(0.5)
        sock.sendall(correct_answer(line))


def close_at_once(_fake, _sock):
    pass


def never_answer(fake, sock):
    for _ in fake.requests(sock):
        pass
