# SPDX-License-Identifier: BSD-3-Clause
"""A Couchbase cluster for tests, in one process on the loopback interface: nodes, a map,
rebalance and failover. Written after the protocol's documents, not measured against a real one.

    with Cluster(nodes=3) as cluster:
        cluster.nodes[0].port
        cluster.move(vbucket=5, to=1)      # a rebalance, one vBucket at a time
        cluster.nodes[2].refusals += [0x86]
        cluster.nodes[2].silence()
        cluster.fail_over(2)
"""

import json
import ssl
import threading
import time

from login import HASHES
from node import FEATURES, UNKNOWN_COLLECTION, UNKNOWN_SCOPE, Node
from storage import Refused, VBucket

FIRST_ID = 8


class Manifest:
    """All collections at a time. It never changes."""

    def __init__(self, uid=0, scopes=("_default",), collections=None, next_id=FIRST_ID):
        self.uid, self.scopes, self.next_id = uid, frozenset(scopes), next_id
        self.collections = {"_default._default": 0} if collections is None else collections

    def find(self, path):
        scope = path.split(".")[0]
        if scope not in self.scopes:
            raise Refused(UNKNOWN_SCOPE)
        if path not in self.collections:
            raise Refused(UNKNOWN_COLLECTION)
        return self.collections[path]

    def with_one(self, path):
        return Manifest(self.uid + 1, self.scopes | {path.split(".")[0]},
                        {**self.collections, path: self.next_id}, self.next_id + 1)

    def without(self, path):
        left = {name: number for name, number in self.collections.items() if name != path}
        return Manifest(self.uid + 1, self.scopes, left, self.next_id)


class Cluster:
    node_kind = Node

    def __init__(self, nodes=1, vbuckets=64, bucket="lists", user="user", password="pencil",
                 certificate=None, clients=None):
        """certificate: a file with a key and a certificate, for a second port of each node. clients:
        certificates that those who connect there must have, in place of a login."""
        self.tls = None
        if certificate is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.knows_certificates = clients is not None
        if clients is not None:
            self.tls.load_verify_locations(clients)
            self.tls.verify_mode = ssl.CERT_REQUIRED
        self.lock = threading.RLock()
        self.bucket, self.user, self.password = bucket, user, password
        self.mechanisms = [*HASHES, "PLAIN"]
        self.iterations = 4096
        self.lies = False  # accepts logins without knowing the password
        self.features = set(FEATURES)
        # What smaller servers of this protocol do.
        self.unknown = set()  # opcodes that nodes do not know
        self.login_selects = False  # the login alone decides which bucket it is
        self.one_login = False  # a node has one SCRAM for all its connections
        self.answer_pause_s = 0  # before each answer up to the map
        self.login_pause_s = 0  # before that to the last step of a login, as when it asks LDAP
        self.durable_pause_ms = 0  # before each answer to a durable change
        self.strict_meta = False  # GET_META in its second version only
        self.map_in_refusals = True  # "not my vBucket" comes with the map
        self.replicas_lag = False  # they get only what is durable: a failover loses the rest
        self.tells_forward = True  # in a rebalance, where vBuckets will go
        self.own_host = "127.0.0.1"  # what the map calls the nodes; else 127.0.0.1 is "external"
        self.without_external = set()  # indexes of nodes that have no such address
        self.spoils_map = False
        self.checks_keys = True  # that a key is sent with its own vBucket
        self.chats = False  # nodes say something unasked as soon as they may
        self.manifest = Manifest()
        self.nodes, self._revision = [], 0
        self.epoch, self.revision = 1, 1
        self.vbuckets = [VBucket() for _ in range(vbuckets)]
        self.nodes = [self.node_kind(self, i) for i in range(nodes)]
        self.members = list(range(nodes))  # those that are in the map
        self.owners = [i % nodes for i in range(vbuckets)]
        self.forward = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for node in self.nodes:
            node.stop()
            node.wake()

    # --- the map

    @property
    def revision(self):
        return self._revision

    @revision.setter
    def revision(self, number):
        """Those that want to know are told."""
        self._revision = number
        for node in self.nodes:
            node.tell_news()

    def owner(self, vbucket):
        """The node that has it, or None."""
        if vbucket >= len(self.owners) or self.owners[vbucket] < 0:
            return None
        return self.nodes[self.owners[vbucket]]

    def has_majority(self, _vbucket):
        """Of one replica for each document: is there a second node?"""
        return len(self.members) > 1

    def map_for(self, node):
        """The map as that node tells it, whose own host is $HOST."""
        if self.spoils_map:
            return b"no map"
        place = {index: i for i, index in enumerate(self.members)}
        own = lambda i: self.nodes[i] is node and self.own_host == "127.0.0.1"
        host = {i: "$HOST" if own(i) else self.own_host for i in self.members}
        count = len(self.members)
        other = lambda i: (i + 1) % count if i >= 0 and count > 1 else -1
        rows = lambda owners: [[i, other(i)] for i in (place.get(owner, -1) for owner in owners)]
        buckets = {
            "hashAlgorithm": "CRC",
            "numReplicas": 1,
            "serverList": [f"{host[i]}:{self.nodes[i].port}" for i in self.members],
            "vBucketMap": rows(self.owners),
        }
        if self.forward is not None and self.tells_forward:
            buckets["vBucketMapForward"] = rows(self.forward)
        extended = []
        for i in self.members:
            services = {"services": {"kv": self.nodes[i].port, "mgmt": 8091}}
            if self.tls is not None and self.nodes[i].tls_told:
                services["services"]["kvSSL"] = self.nodes[i].tls_port
            if not own(i):
                services["hostname"] = self.own_host
            if self.own_host != "127.0.0.1" and i not in self.without_external:
                ports = {"kv": self.nodes[i].port, "kvSSL": self.nodes[i].tls_port}
                services["alternateAddresses"] = {
                    "external": {"hostname": "127.0.0.1", "ports": ports}}
            extended.append(services)
        return json.dumps({
            "rev": self.revision, "revEpoch": self.epoch, "name": self.bucket,
            "nodeLocator": "vbucket", "vBucketServerMap": buckets, "nodesExt": extended,
        }).encode()

    # --- what happens to clusters

    def add_node(self):
        """A node without vBuckets; returns its index."""
        with self.lock:
            self.nodes.append(self.node_kind(self, len(self.nodes)))
            self.members.append(len(self.nodes) - 1)
            self.revision += 1
            return len(self.nodes) - 1

    def plan(self, owners):
        """The first step of a rebalance: the map says where vBuckets will go."""
        with self.lock:
            self.forward = list(owners)
            self.revision += 1

    def move(self, vbucket, to):
        with self.lock:
            self.owners[vbucket] = to
            self.vbuckets[vbucket].replicate()
            self.revision += 1

    def rebalance(self, pause_s=0):
        """All vBuckets to all members, evenly, one after the other."""
        with self.lock:
            owners = [self.members[i % len(self.members)] for i in range(len(self.owners))]
        self.plan(owners)
        for vbucket, to in enumerate(owners):
            if self.owners[vbucket] != to:
                self.move(vbucket, to)
                time.sleep(pause_s)
        with self.lock:
            self.forward = None
            self.revision += 1

    def make_collection(self, path):
        """SCOPE.COLLECTION; a scope that is not there is made as well."""
        with self.lock:
            self.manifest = self.manifest.with_one(path)

    def drop_collection(self, path):
        """With what it holds: its number never comes back."""
        with self.lock:
            self.manifest = self.manifest.without(path)

    def make_anew(self, vbuckets):
        """The bucket was deleted and is made again, with that many vBuckets, on other nodes."""
        with self.lock:
            self.vbuckets = [VBucket() for _ in range(vbuckets)]
            self.owners = [self.members[(i + self.revision) % len(self.members)]
                           for i in range(vbuckets)]
            self.forward = None
            self.revision += 1

    def remake_bucket(self, *paths):
        """The bucket is deleted, and made anew with these collections: its manifests count from
        the beginning, and its connections end."""
        with self.lock:
            self.manifest = Manifest()
            for path in paths:
                self.make_collection(path)
            for vbucket in self.vbuckets:
                vbucket.documents = {}
            for node in self.nodes:
                node.end_connections()

    def fail_over(self, index):
        """The others take the node's vBuckets over, as their replicas know them. The node goes on as
        it was, silent or not, but is in no map any more."""
        with self.lock:
            self.members.remove(index)
            for vbucket, owner in enumerate(self.owners):
                if owner == index:
                    self.vbuckets[vbucket].fail_over()
                    self.owners[vbucket] = self.members[vbucket % len(self.members)]
            self.revision += 1

    def lose(self, index):
        """The node is failed over, and its vBuckets have no replica: no node has them."""
        with self.lock:
            self.members.remove(index)
            self.owners = [-1 if owner == index else owner for owner in self.owners]
            self.revision += 1
