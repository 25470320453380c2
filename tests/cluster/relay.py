# SPDX-License-Identifier: BSD-3-Clause
"""A node whose documents are a real memcached's: it shakes hands as the fake's nodes do, tells a map
of which it has everything, and hands all that follows to memcached's binary protocol as it is. There
is no GET_META then, and no check of vBuckets.

    with RelayCluster("127.0.0.1", memcached.port) as cluster:
        cluster.nodes[0].port
"""

import os
import socket
import threading

from cluster import Cluster
from node import Connection, GET_CONFIG, HEADER, Node, Request

PIECE = 1 << 20


def pour(source, target):
    """What one socket says goes to the other, within the kernel."""
    into, out = os.pipe()
    try:
        while (size := os.splice(source.fileno(), out, PIECE)) > 0:
            while size > 0:
                size -= os.splice(into, target.fileno(), size)
    except OSError:
        pass
    finally:
        os.close(into)
        os.close(out)
        for sock in (source, target):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class RelayConnection(Connection):
    def run(self):
        if not self.cluster.has_frames:
            self.cluster.features -= {0x10, 0x11}
        try:
            while not self.bucket or self.asked != GET_CONFIG:
                header = HEADER.unpack(self._read(HEADER.size))
                request = Request(header, self._read(header[6]))
                self.asked = request.opcode
                self.sock.sendall(self.answer(request))
            with socket.create_connection(self.node.cluster.memcached) as other:
                other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                back = threading.Thread(target=pour, args=(other, self.sock), daemon=True)
                back.start()
                pour(self.sock, other)
                back.join()
        except OSError:
            pass
        finally:
            self.sock.close()
            self.node.connections.discard(self)


class RelayNode(Node):
    connection_kind = RelayConnection


class RelayCluster(Cluster):
    """Of one node."""

    node_kind = RelayNode

    def __init__(self, host, port, has_frames=False):
        """memcached knows no frames in requests, so it has no durable changes."""
        self.memcached = (host, port)
        self.has_frames = has_frames
        super().__init__(nodes=1)
