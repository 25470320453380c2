# SPDX-License-Identifier: BSD-3-Clause
"""The fake cluster: what it stores beside memcached, which speaks the same protocol; maps, logins,
rebalance and failover."""

import json
import random
import socket
import struct
import subprocess
import time

import pytest

import node as n
from cluster import Cluster
from node import HEADER, vbucket_of

CONDITIONS = {n.SET, n.REPLACE, n.DELETE, n.APPEND, n.PREPEND}


class Client:
    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.sock = socket.socket(family)
        self.sock.settimeout(20)
        self.sock.connect(address)
        self.opaque = 0

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            assert piece, "closed"
            data += piece
        return data

    def send(self, opcode, key=b"", extras=b"", value=b"", cas=0, vbucket=0, frames=b""):
        self.opaque += 1
        magic, key_len = 0x80, len(key)
        if frames:
            magic, key_len = 0x08, len(frames) << 8 | len(key)
        body = frames + extras + key + value
        self.sock.sendall(HEADER.pack(magic, opcode, key_len, len(extras), 0, vbucket, len(body),
                                      self.opaque, cas) + body)

    def receive(self):
        """Status, CAS, extras and value."""
        head = HEADER.unpack(self._read(HEADER.size))
        body = self._read(head[6])
        assert head[0] == 0x81 and head[7] == self.opaque
        return head[5], head[8], body[:head[3]], body[head[3] + head[2]:]

    def ask(self, opcode, *args, **kwargs):
        self.send(opcode, *args, **kwargs)
        return self.receive()

    def log_in(self, bucket=b"lists", features=()):
        wanted = b"".join(struct.pack(">H", code) for code in features)
        assert self.ask(n.HELLO, value=wanted)[0] == 0
        assert self.ask(n.SASL_AUTH, b"PLAIN", value=b"\0user\0pencil")[0] == 0
        assert self.ask(n.SELECT_BUCKET, bucket)[0] == 0
        return self

    def map(self):
        return json.loads(self.ask(n.GET_CONFIG)[3])


def at(cluster, index):
    return Client(("127.0.0.1", cluster.nodes[index].port))


@pytest.fixture
def memcached(tmp_path):
    path = str(tmp_path / "socket")
    process = subprocess.Popen(["memcached", "-s", path, "-u", "root", "-U", "0", "-B", "binary"])
    for _ in range(1000):
        try:
            Client(path).sock.close()
            break
        except OSError:
            time.sleep(0.01)
    yield Client(path)
    process.terminate()
    process.wait()


def extras_of(rng, opcode):
    exptime = rng.choice([0, 1000, 2592001])
    if opcode in (n.SET, n.ADD, n.REPLACE):
        return struct.pack(">II", rng.randrange(3), exptime)
    if opcode in (n.INCREMENT, n.DECREMENT):
        return struct.pack(">QQI", rng.choice([0, 1, 77, (1 << 64) - 1]), 5, rng.choice([0xFFFFFFFF, 0]))
    return struct.pack(">I", exptime) if opcode in (n.TOUCH, n.GAT) else b""


def test_documents_behave_as_items_of_memcached_do(memcached):
    """Random requests to both. CAS numbers differ, and so does the text of a refusal; a number that
    gets shorter keeps its length in memcached, with blanks."""
    rng = random.Random(20261122)
    opcodes = sorted(n.DATA - {n.GET_META}) + [n.GET, n.SET]
    values = [b"", b"7", b"99", b"18446744073709551615", b"text"]
    with Cluster(vbuckets=1) as cluster:
        fake = at(cluster, 0).log_in()
        seen = {}
        for _ in range(6000):
            opcode, key = rng.choice(opcodes), rng.choice([b"a", b"b", b"c"])
            if opcode in (n.APPEND, n.PREPEND) and key == b"c":
                continue  # the one whose numbers are counted up and down
            if opcode in (n.INCREMENT, n.DECREMENT):
                key = b"c"
            extras = extras_of(rng, opcode)
            value = rng.choice(values) if opcode in CONDITIONS - {n.DELETE} or opcode == n.ADD else b""
            cases = seen.get(key, (11, 11)) if opcode in CONDITIONS and rng.random() < 0.3 else (0, 0)
            if opcode in (n.APPEND, n.PREPEND):
                cases = (0, 0)  # of a missing item memcached says something else then
            a = memcached.ask(opcode, key, extras, value, cas=cases[0])
            b = fake.ask(opcode, key, extras, value, cas=cases[1])
            assert a[0] == b[0], (hex(opcode), key, extras, value, cases)
            if a[0] == 0:
                before = seen.get(key, (11, 11))
                if opcode != n.DELETE:
                    # A new expiry is a change in Couchbase, and none in memcached.
                    seen[key] = (before[0] if opcode == n.TOUCH else a[1], b[1])
                if opcode in (n.GET, n.GAT):
                    assert a[2] == b[2] and a[3].rstrip() == b[3].rstrip()
                elif opcode in (n.INCREMENT, n.DECREMENT):
                    assert a[3] == b[3]


def test_each_key_has_one_node_and_the_others_send_the_map():
    with Cluster(nodes=3) as cluster:
        clients = [at(cluster, i).log_in() for i in range(3)]
        for i in range(20):
            key = b"key_%d" % i
            vb = vbucket_of(key, 64)
            for index, client in enumerate(clients):
                answer = client.ask(n.SET, key, struct.pack(">II", 0, 0), b"v", vbucket=vb)
                assert answer[0] == (0 if index == cluster.owners[vb] else 7)
                if answer[0] == 7:
                    told = json.loads(answer[3])["vBucketServerMap"]
                    assert told["serverList"][index].startswith("$HOST:")
                    assert told["vBucketMap"][vb][0] == cluster.owners[vb]


def test_keys_are_spread_as_by_couchbase():
    for key, of_1024, of_64 in ((b"foo", 115, 51), (b"hello", 528, 16), (b"k" * 250, 151, 23)):
        assert (vbucket_of(key, 1024), vbucket_of(key, 64)) == (of_1024, of_64)


def test_a_rebalance_keeps_documents_and_their_cas():
    with Cluster(nodes=1, vbuckets=8) as cluster:
        cluster.checks_keys = False
        client = at(cluster, 0).log_in()
        stored = {}
        for vb in range(8):
            stored[vb] = client.ask(n.SET, b"k", struct.pack(">II", 0, 0), b"v%d" % vb, vbucket=vb)[1]
        before = client.map()
        new = cluster.add_node()
        cluster.rebalance()
        after = client.map()
        assert after["rev"] > before["rev"] and len(after["nodesExt"]) == 2
        other = at(cluster, new).log_in()
        for vb in range(8):
            status, cas, _, value = (other if cluster.owners[vb] == new else client).ask(
                n.GET, b"k", vbucket=vb)
            assert (status, cas, value) == (0, stored[vb], b"v%d" % vb)
        assert sorted(set(cluster.owners)) == [0, new]


def test_a_failover_loses_what_was_not_durable():
    with Cluster(nodes=2, vbuckets=1) as cluster:
        first = at(cluster, 0).log_in(features=(0x10, 0x11))
        put = lambda key, frames: first.ask(n.SET, key, struct.pack(">II", 0, 0), b"v", frames=frames)
        put(b"old", b"")
        cluster.replicas_lag = True
        assert put(b"durable", b"\x11\x01")[0] == 0
        assert put(b"lost", b"")[0] == 0
        cluster.nodes[0].silence()
        cluster.fail_over(0)
        second = at(cluster, 1).log_in()
        assert [second.ask(n.GET, key)[0] for key in (b"old", b"durable", b"lost")] == [0, 0, 1]
        assert len(second.map()["vBucketServerMap"]["serverList"]) == 1
        assert second.ask(n.SET, b"x", struct.pack(">II", 0, 0), b"v", frames=b"\x11\x01")[0] == 0x83


def test_a_silent_node_does_what_it_was_asked_when_it_is_back():
    with Cluster() as cluster:
        client = at(cluster, 0).log_in()
        cluster.nodes[0].silence()
        client.send(n.SET, b"foo", struct.pack(">II", 0, 0), b"v", vbucket=51)
        client.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.receive()
        client.sock.settimeout(20)
        cluster.nodes[0].wake()
        assert client.receive()[0] == 0


def test_refusals_come_as_told_and_change_nothing():
    with Cluster() as cluster:
        client = at(cluster, 0).log_in()
        cluster.nodes[0].refusals += [0x86, 0x85]
        store = lambda: client.ask(n.ADD, b"foo", struct.pack(">II", 0, 0), b"v", vbucket=51)[0]
        assert [store(), store(), store(), store()] == [0x86, 0x85, 0, 2]


def test_nothing_without_a_login_and_a_bucket():
    with Cluster() as cluster:
        client = at(cluster, 0)
        assert client.ask(n.GET, b"foo", vbucket=51)[0] == 0x24
        assert client.ask(n.SELECT_BUCKET, b"lists")[0] == 0x24
        assert client.ask(n.SASL_AUTH, b"PLAIN", value=b"\0user\0wrong")[0] == 0x20
        assert client.ask(n.SASL_AUTH, b"PLAIN", value=b"\0user\0pencil")[0] == 0
        assert client.ask(n.GET, b"foo", vbucket=51)[0] == 0x08
        assert client.ask(n.SELECT_BUCKET, b"other")[0] == 0x24


def test_a_key_goes_with_its_own_vbucket():
    with Cluster() as cluster:
        client = at(cluster, 0).log_in()
        assert client.ask(n.GET, b"foo", vbucket=51)[0] == 1
        assert client.ask(n.GET, b"foo", vbucket=50)[0] == 4


def test_tombstones_have_meta_data():
    with Cluster() as cluster:
        client = at(cluster, 0).log_in()
        assert client.ask(n.GET_META, b"foo", vbucket=51)[0] == 1
        expires_s = int(time.time()) + 5000
        cas = client.ask(n.SET, b"foo", struct.pack(">II", 7, expires_s), b"v", vbucket=51)[1]
        status, same, extras, _ = client.ask(n.GET_META, b"foo", vbucket=51)
        assert (status, same) == (0, cas)
        assert struct.unpack(">III", extras[:12]) == (0, 7, expires_s)
        client.ask(n.DELETE, b"foo", vbucket=51)
        status, other, extras, _ = client.ask(n.GET_META, b"foo", vbucket=51)
        assert status == 0 and other > cas and struct.unpack(">I", extras[:4]) == (1,)


def test_the_documents_of_stopped_nodes_are_there_when_they_are_back():
    with Cluster() as cluster:
        client = at(cluster, 0).log_in()
        client.ask(n.SET, b"foo", struct.pack(">II", 0, 0), b"v", vbucket=51)
        cluster.nodes[0].stop()
        with pytest.raises(OSError):
            at(cluster, 0)
        cluster.nodes[0].start()
        assert at(cluster, 0).log_in().ask(n.GET, b"foo", vbucket=51)[3] == b"v"
