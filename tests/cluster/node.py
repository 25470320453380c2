# SPDX-License-Identifier: BSD-3-Clause
"""One node: its connections, and the binary protocol. What it stores is its cluster's."""

import socket
import struct
import threading
import time
import zlib

from login import Login
from storage import Refused

HEADER = struct.Struct(">BBHBBHIIQ")
REQUEST, REQUEST_FRAMES, ANSWER, NEWS = 0x80, 0x08, 0x81, 0x82
NEWS_MAP = 0x01  # as an opcode
GET, SET, ADD, REPLACE, DELETE, INCREMENT, DECREMENT = range(7)
QUIT, NOOP, VERSION, APPEND, PREPEND, TOUCH, GAT = 0x07, 0x0A, 0x0B, 0x0E, 0x0F, 0x1C, 0x1D
HELLO, SASL_LIST, SASL_AUTH, SASL_STEP = 0x1F, 0x20, 0x21, 0x22
SELECT_BUCKET, GET_META, GET_CONFIG, GET_ERROR_MAP = 0x89, 0xA0, 0xB5, 0xFE
GET_COLLECTION_ID = 0xBB
AUTH_STALE = 0x1F
NOT_MY_VBUCKET, NO_BUCKET, INVALID, AUTH_ERROR, NO_ACCESS = 0x07, 0x08, 0x04, 0x20, 0x24
UNKNOWN, NOT_SUPPORTED, IMPOSSIBLE = 0x81, 0x83, 0xA1
UNKNOWN_COLLECTION, UNKNOWN_SCOPE = 0x88, 0x8C
FEATURES = {0x03, 0x07, 0x08, 0x10, 0x11, 0x12}
SYNC_REPLICATION, COLLECTIONS, KNOWN_MAP = 0x11, 0x12, 0x1D
TELLS_NEWS = {0x0C, 0x1F}  # of its map, with the numbers of it only
NEWEST = FEATURES | TELLS_NEWS | {KNOWN_MAP}
KEY_BYTES_MAX, COLLECTION_KEY_BYTES_MAX = 250, 246
DATA = {GET, SET, ADD, REPLACE, DELETE, INCREMENT, DECREMENT, APPEND, PREPEND, TOUCH, GAT, GET_META}
CHANGES = {SET, ADD, REPLACE, DELETE, INCREMENT, DECREMENT, APPEND, PREPEND}


def vbucket_of(key, count):
    """As Couchbase's clients spread keys."""
    return ((zlib.crc32(key) >> 16) & 0x7FFF) & (count - 1)


def take_leb128(data):
    """The number in front, in its shortest form only, and what follows."""
    number = 0
    for i, byte in enumerate(data[:5]):
        number |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            if (i and not byte) or number >> 32:
                break
            return number, data[i + 1:]
    raise Refused(INVALID)


class Request:
    def __init__(self, header, body):
        magic, self.opcode, key_len, extras_len, _, self.vbucket, _, self.opaque, self.cas = header
        frames_len = 0
        if magic == REQUEST_FRAMES:
            frames_len, key_len = key_len >> 8, key_len & 0xFF
        self.frames, body = body[:frames_len], body[frames_len:]
        self.extras, body = body[:extras_len], body[extras_len:]
        self.key, self.value = body[:key_len], body[key_len:]
        self.collection = 0

    def take_collection(self):
        """Off the key."""
        self.collection, self.key = take_leb128(self.key)

    def place(self):
        """What the document is stored by."""
        return self.key if self.collection == 0 else (self.collection, self.key)

    def durability(self):
        """The level that a frame asks for, or 0."""
        if not self.frames:
            return 0
        if self.frames[0] not in (0x11, 0x13) or len(self.frames) != 1 + (self.frames[0] & 0xF):
            raise Refused(INVALID)
        return self.frames[1]

    def durability_ms(self):
        """What the frame says, or None."""
        timed = self.frames and self.frames[0] == 0x13
        return struct.unpack(">H", self.frames[2:4])[0] if timed else None


class Connection:
    def __init__(self, node, sock):
        self.node, self.cluster, self.sock = node, node.cluster, sock
        self.features = set()
        self.login = None
        self.authenticated = False
        self.expired = False  # the login: nothing is done before another one
        self.by_certificate = False
        self.bucket = None
        self.sending = threading.Lock()

    def take_certificate(self, certificate):
        """Its common name is a user; for others there is nothing here."""
        names = dict(pair for part in certificate["subject"] for pair in part)
        self.authenticated = self.by_certificate = True
        if names.get("commonName") != self.cluster.user:
            self.sock.shutdown(socket.SHUT_RDWR)

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    def run(self):
        try:
            while True:
                header = HEADER.unpack(self._read(HEADER.size))
                if header[0] not in (REQUEST, REQUEST_FRAMES):
                    break
                request = Request(header, self._read(header[6]))
                # What comes while the node is silent is done when it is back.
                self.node.awake.wait()
                if request.opcode not in DATA:
                    time.sleep(self.cluster.answer_pause_s)
                if request.opcode == SASL_STEP:
                    time.sleep(self.cluster.login_pause_s)
                if request.frames:
                    time.sleep(self.cluster.durable_pause_ms / 1000)
                with self.cluster.lock:
                    answer = self.answer(request)
                self.send(answer)
                if request.opcode == QUIT:
                    break
        except OSError:
            pass
        finally:
            self.sock.close()
            self.node.connections.discard(self)

    def send(self, *pieces):
        """One after the other, with a moment in between."""
        with self.sending:
            for i, piece in enumerate(pieces):
                time.sleep(0.001 if i else 0)
                self.sock.sendall(piece)

    def tell_news(self, opcode=NEWS_MAP, value=b"", cut=0):
        """Says by itself which map there is; cut: in two pieces."""
        if not self.features >= TELLS_NEWS:
            return
        c = self.cluster
        body = struct.pack(">qq", c.epoch, c.revision) + c.bucket.encode() + value
        news = HEADER.pack(NEWS, opcode, len(c.bucket), 16, 0, 0, len(body), 0, 0) + body
        try:
            self.send(news[:cut], news[cut:])
        except OSError:
            pass

    def answer(self, r):
        status, cas, extras, value = 0, 0, b"", b""
        try:
            if r.opcode in self.cluster.unknown:
                raise Refused(UNKNOWN)
            if r.opcode in DATA:
                cas, extras, value = self.data(r)
            else:
                status, value = self.control(r)
                if r.opcode == GET_COLLECTION_ID:
                    extras, value = value, b""
        except Refused as refused:
            status = refused.status
            if status in (UNKNOWN_COLLECTION, UNKNOWN_SCOPE):
                value = b'{"manifest_uid":"%x"}' % self.node.manifest().uid
            if status == NOT_MY_VBUCKET and self.cluster.map_in_refusals:
                value = self.cluster.map_for(self.node)
        self.node.log.append((r.opcode, r.key, status))
        return HEADER.pack(ANSWER, r.opcode, 0, len(extras), 0, status, len(extras) + len(value),
                           r.opaque, cas) + extras + value

    def control(self, r):
        if r.opcode == HELLO:
            wanted = {code for (code,) in struct.iter_unpack(">H", r.value)}
            self.features = wanted & self.cluster.features
            self.node.chat(self)
            return 0, b"".join(struct.pack(">H", code) for code in sorted(self.features))
        if r.opcode == VERSION:
            return 0, b"7.6.0-fake"
        if r.opcode == GET_ERROR_MAP:
            return 0, b'{"version":1,"revision":1,"errors":{}}'
        if self.by_certificate and r.opcode in (SASL_LIST, SASL_AUTH, SASL_STEP):
            raise Refused(NOT_SUPPORTED)
        if r.opcode == SASL_LIST:
            return 0, " ".join(self.cluster.mechanisms).encode()
        if r.opcode == SASL_AUTH:
            c = self.cluster
            self.login = self.node.login = Login(c.user, c.password, c.iterations, c.lies)
            return self._logged(*self.login.begin(r.key.decode(), r.value))
        if r.opcode == SASL_STEP and self.login is not None:
            login, self.node.login = self.node.login, None
            if not self.cluster.one_login:
                login = self.login
            elif login is None:
                raise ConnectionError
            return self._logged(*login.step(r.value))
        if r.opcode in (QUIT, NOOP):
            return 0, b""
        if not self.authenticated:
            raise Refused(NO_ACCESS)
        if r.opcode == SELECT_BUCKET:
            if r.key.decode() != self.cluster.bucket:
                raise Refused(NO_ACCESS)
            self.bucket = r.key.decode()
            return 0, b""
        if r.opcode == GET_CONFIG:
            if self.bucket is None:
                raise Refused(NO_BUCKET)
            if r.extras and KNOWN_MAP not in self.features:
                raise Refused(INVALID)
            if r.extras and struct.unpack(">qq", r.extras) >= (self.cluster.epoch,
                                                               self.cluster.revision):
                return 0, b""
            return 0, self.cluster.map_for(self.node)
        if r.opcode == GET_COLLECTION_ID:
            if self.bucket is None:
                raise Refused(NO_BUCKET)
            manifest = self.node.manifest()
            return 0, struct.pack(">QI", manifest.uid, manifest.find(r.value.decode()))
        raise Refused(UNKNOWN)

    def _logged(self, status, value):
        self.authenticated = status == 0
        if self.authenticated and self.cluster.login_selects:
            self.bucket = self.cluster.bucket
        return status, value

    def admit(self, r):
        """Refuses what this node must not do now. Returns the level of durability, or 0."""
        if not self.authenticated:
            raise Refused(NO_ACCESS)
        if self.expired:
            raise Refused(AUTH_STALE)
        if self.bucket is None:
            raise Refused(NO_BUCKET)
        if COLLECTIONS in self.features:
            r.take_collection()
        if not self.node.owns(r.vbucket):
            raise Refused(NOT_MY_VBUCKET)
        if self.cluster.checks_keys and vbucket_of(r.key, len(self.cluster.owners)) != r.vbucket:
            raise Refused(INVALID)
        if r.collection not in self.node.manifest().collections.values():
            raise Refused(UNKNOWN_COLLECTION)
        if len(r.key) > (COLLECTION_KEY_BYTES_MAX if r.collection else KEY_BYTES_MAX):
            raise Refused(INVALID)
        self.node.refuse_if_told(r.opcode in CHANGES)
        level = r.durability()
        if level and (SYNC_REPLICATION not in self.features or r.opcode not in CHANGES):
            raise Refused(NOT_SUPPORTED)
        if level and not self.cluster.has_majority(r.vbucket):
            raise Refused(IMPOSSIBLE)
        if self.cluster.strict_meta and r.opcode == GET_META and r.extras != b"\2":
            raise Refused(INVALID)
        return level

    def data(self, r):
        """CAS, extras and value of the answer."""
        level = self.admit(r)
        self.node.durability_ms = r.durability_ms() or self.node.durability_ms
        vbucket = self.cluster.vbuckets[r.vbucket]
        result = self.carry_out(r, vbucket)
        if level or not self.cluster.replicas_lag:
            vbucket.replicate()
        return result

    @staticmethod
    def carry_out(r, vb):
        if r.opcode in (GET, GAT):
            document = vb.get(r.place())
            if r.opcode == GAT:
                document = vb.touch(r.place(), struct.unpack(">I", r.extras)[0])
            return document.cas, struct.pack(">I", document.flags), document.value
        if r.opcode == GET_META:
            document, gone = vb.meta(r.place())
            extras = struct.pack(">IIIQ", gone, document.flags, document.expires_s,
                                 document.cas & 0xFFFF)
            return document.cas, extras + (b"\0" if r.extras else b""), b""
        if r.opcode in (SET, ADD, REPLACE):
            flags, exptime = struct.unpack(">II", r.extras)
            if r.opcode == ADD:
                return vb.add(r.place(), r.value, flags, exptime).cas, b"", b""
            change = vb.set if r.opcode == SET else vb.replace
            return change(r.place(), r.value, flags, exptime, r.cas).cas, b"", b""
        if r.opcode == DELETE:
            return vb.delete(r.place(), r.cas).cas, b"", b""
        if r.opcode in (APPEND, PREPEND):
            before, after = (b"", r.value) if r.opcode == APPEND else (r.value, b"")
            return vb.extend(r.place(), before, after, r.cas).cas, b"", b""
        if r.opcode in (INCREMENT, DECREMENT):
            delta, initial, exptime = struct.unpack(">QQI", r.extras)
            difference = delta if r.opcode == INCREMENT else -delta
            number, document = vb.count(r.place(), difference, initial, exptime, r.cas)
            return document.cas, b"", struct.pack(">Q", number)
        return vb.touch(r.place(), struct.unpack(">I", r.extras)[0]).cas, b"", b""


class Node:
    """Listens on a port of its own, which stays the same when it goes and comes back."""

    connection_kind = Connection

    def __init__(self, cluster, index):
        self.cluster, self.index = cluster, index
        self.port = self.tls_port = 0
        self.tls_told = True  # its port stands in the map
        self.listeners = []
        self.connections = set()
        self.awake = threading.Event()  # cleared: it takes connections and requests, says nothing
        self.awake.set()
        self.login = None  # the last one that began
        self.durability_ms = None  # of the last durable change
        self.log = []  # opcode, key and status of each answer
        self.refusals = []  # statuses with which it refuses the next requests for documents
        self.change_refusals = []  # the same of changes alone
        self.knows = None  # a manifest that it takes for the newest one; None: it hears of each
        self.start()

    def manifest(self):
        return self.cluster.manifest if self.knows is None else self.knows

    def chat(self, connection):
        """At the very beginning, if it is one of that kind."""
        if self.cluster.chats:
            connection.tell_news()
            connection.tell_news(opcode=0x77, value=b"x" * 1000, cut=30)

    def tell_news(self, **what):
        for connection in list(self.connections):
            if connection.bucket is not None and self.awake.is_set():
                connection.tell_news(**what)

    def owns(self, vbucket):
        return self.cluster.owner(vbucket) is self

    def refuse_if_told(self, changes):
        if changes and self.change_refusals:
            raise Refused(self.change_refusals.pop(0))
        if self.refusals:
            raise Refused(self.refusals.pop(0))

    def _listen(self, port, tls):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        self.listeners.append(listener)
        threading.Thread(target=self._accept, args=(listener, tls), daemon=True).start()
        return listener.getsockname()[1]

    def start(self):
        self.port = self._listen(self.port, None)
        if self.cluster.tls is not None:
            self.tls_port = self._listen(self.tls_port, self.cluster.tls)

    def _accept(self, listener, tls):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(sock, tls), daemon=True).start()

    def _serve(self, sock, tls):
        try:
            sock = sock if tls is None else tls.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            return
        connection = self.connection_kind(self, sock)
        self.connections.add(connection)
        if tls is not None and self.cluster.knows_certificates:
            connection.take_certificate(sock.getpeercert())
        connection.run()

    def stop(self):
        """Refuses connections, and ends those that it has."""
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.listeners = []
        self.end_connections()

    def end_connections(self):
        for connection in list(self.connections):
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def expire(self):
        """All logins, as when a password has changed."""
        for connection in self.connections.copy():
            connection.expired = True

    def unselect(self):
        """No connection has a bucket any more, as when it is deleted on a node that leaves."""
        for connection in self.connections.copy():
            connection.bucket = None

    def silence(self):
        self.awake.clear()

    def wake(self):
        self.awake.set()
