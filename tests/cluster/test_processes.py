# SPDX-License-Identifier: BSD-3-Clause
"""The fake cluster of processes: what durability keeps, what a failover loses, what a rebalance moves."""

import struct
import threading
import time

import pytest

import node as n
from node import vbucket_of
from processes import Gone, Processes
from test_cluster import Client

VBUCKETS = 8
DURABLE, DURABLE_100_MS = b"\x11\x01", b"\x13\x01\x00\x64"
STORE = struct.pack(">II", 0, 0)
IN_PROGRESS, AMBIGUOUS, RECOMMITS = 0xA2, 0xA3, 0xA4


@pytest.fixture
def start(tmp_path):
    started = []

    def start(**options):
        started.append(Processes(tmp_path, **{"vbuckets": VBUCKETS, **options}))
        return started[-1]

    yield start
    for cluster in started:
        cluster.stop()


def at(cluster, index):
    client = Client(("127.0.0.1", cluster.handles[index].ports[0]))
    return client.log_in(features=(0x10, 0x11))


def key_of(cluster, index, number=0):
    """A key that this node has, and the first replica of which the next one has."""
    keys = (b"key%d" % i for i in range(10000))
    return [key for key in (next(keys) for _ in range(200))
            if cluster.chains[vbucket_of(key, VBUCKETS)][0] == index][number]


def put(client, key, value=b"v", frames=b"", opcode=n.SET):
    extras = STORE if opcode == n.SET else b""
    return client.ask(opcode, key, extras, value, vbucket=vbucket_of(key, VBUCKETS), frames=frames)[0]


def get(client, key):
    status, _, _, value = client.ask(n.GET, key, vbucket=vbucket_of(key, VBUCKETS))
    return value if status == 0 else status


def get_committed(client, key):
    """What a get says once a change that a failover has interrupted is committed again."""
    while (value := get(client, key)) == RECOMMITS:
        pass
    return value


def is_replicated(cluster, index):
    """That it is committed as well."""
    number = lambda node, vbucket: cluster.order(node, "progress", vbucket)[2]
    return all(number(index, vbucket) == number(chain[1], vbucket)
               for vbucket, chain in enumerate(cluster.chains) if chain[0] == index)


def test_a_failover_keeps_what_is_durable_and_loses_what_was_not_replicated(start):
    cluster = start()
    one, durable, lost = (key_of(cluster, 0, i) for i in range(3))
    client = at(cluster, 0)
    assert put(client, one) == 0
    assert put(client, durable, frames=DURABLE) == 0
    while not is_replicated(cluster, 0):
        pass
    cluster.order(0, "lag", 60)
    time.sleep(0.1)  # a stream that sleeps already
    assert put(client, lost) == 0
    cluster.kill(0)
    cluster.fail_over(0)
    assert cluster.lost == 0
    owner = lambda key: cluster.chains[vbucket_of(key, VBUCKETS)][0]
    assert [get(at(cluster, owner(key)), key) for key in (one, durable, lost)] == [b"v", b"v", 1]
    # One copy of two is left.
    assert put(at(cluster, owner(one)), one, frames=DURABLE) == n.IMPOSSIBLE
    cluster.start(0)
    cluster.join(0)
    assert put(at(cluster, owner(one)), one, frames=DURABLE) == 0


def test_with_two_replicas_durable_changes_go_on_behind_a_failover(start):
    cluster = start(replicas=2)
    key = key_of(cluster, 0)
    assert put(at(cluster, 0), key, frames=DURABLE) == 0
    cluster.kill(0)
    cluster.fail_over(0)
    client = at(cluster, cluster.chains[vbucket_of(key, VBUCKETS)][0])
    assert get_committed(client, key) == b"v"
    assert put(client, key, b"w", DURABLE) == 0


def test_a_durable_change_shows_once_it_is_committed(start):
    cluster = start()
    key = key_of(cluster, 0)
    client, other = at(cluster, 0), at(cluster, 0)
    assert put(client, key, b"old", DURABLE) == 0
    cluster.order(1, "isolate", True)
    client.send(n.SET, key, STORE, b"new", vbucket=vbucket_of(key, VBUCKETS), frames=DURABLE)
    while (status := put(other, key, b"x", opcode=n.APPEND)) == 0:
        pass  # it is not there yet
    assert status == IN_PROGRESS
    old = get(other, key)
    assert old.startswith(b"old")
    cluster.order(1, "isolate", False)
    assert client.receive()[0] == 0
    assert get(other, key) == b"new"
    cluster.order(1, "isolate", True)
    assert put(client, key, b"newer", DURABLE_100_MS) == AMBIGUOUS
    assert get(other, key) == b"new" and put(other, key, b"other") == 0


def test_a_change_that_was_prepared_is_committed_behind_a_failover(start):
    cluster = start()
    key = key_of(cluster, 0)
    client = at(cluster, 0)
    assert put(client, key, b"old", DURABLE) == 0
    vbucket = vbucket_of(key, VBUCKETS)
    number = lambda node: cluster.order(node, "progress", vbucket)[2]
    while not is_replicated(cluster, 0):
        pass
    time.sleep(0.1)  # the replica's word of that is back: the stream waits for nothing
    before = number(0)
    # The replica gets it, and its word of that does not get back.
    cluster.pause(1)
    client.send(n.SET, key, STORE, b"new", vbucket=vbucket, frames=DURABLE)
    while number(0) == before:
        pass
    time.sleep(0.2)  # it is sent
    cluster.kill(0)
    cluster.resume(1)
    deadline = time.monotonic() + 5
    while number(1) == before and time.monotonic() < deadline:
        pass
    cluster.fail_over(0)
    client = at(cluster, 1)
    assert get(client, key) == RECOMMITS and put(client, key) == IN_PROGRESS
    cluster.start(0)
    cluster.join(0)
    owner = at(cluster, cluster.chains[vbucket_of(key, VBUCKETS)][0])
    assert get_committed(owner, key) == b"new"


def test_a_node_that_was_failed_over_takes_itself_for_active_and_confirms_nothing(start):
    cluster = start()
    key = key_of(cluster, 0)
    old = at(cluster, 0)
    assert put(old, key, b"1", DURABLE) == 0
    while not is_replicated(cluster, 0):
        pass
    cluster.pause(0)
    cluster.fail_over(0)
    new = at(cluster, cluster.chains[vbucket_of(key, VBUCKETS)][0])
    assert put(new, key, b"2") == 0
    cluster.resume(0)
    assert get(old, key) == b"1"
    assert put(old, key, b"3", DURABLE_100_MS) == AMBIGUOUS
    assert put(old, key, b"4") == 0
    cluster.hear(0)
    assert get(old, key) == n.NOT_MY_VBUCKET
    (vbuckets, since, until), = cluster.stale
    assert vbucket_of(key, VBUCKETS) in vbuckets and since < until
    cluster.join(0)
    owner = at(cluster, cluster.chains[vbucket_of(key, VBUCKETS)][0])
    assert get(owner, key) == b"2"


@pytest.mark.parametrize("durable", [True, False])
def test_rebalances_under_load_lose_nothing(start, durable):
    cluster = start()
    stored, over = {}, threading.Event()

    def write():
        clients = [at(cluster, i) for i in range(3)]
        keys = [b"key%d" % i for i in range(16)]
        number = 0
        while not over.is_set():
            number += 1
            key = keys[number % len(keys)]
            for client in clients:
                status = put(client, key, b"%d" % number, DURABLE if durable else b"")
                if status != n.NOT_MY_VBUCKET:
                    stored[key] = [number] if status == 0 else [*stored.get(key, [0]), number]
                    break

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(4):
        cluster.rotate()
    over.set()
    writer.join()
    assert cluster.moved >= 3 * VBUCKETS
    for key, values in stored.items():
        owner = at(cluster, cluster.chains[vbucket_of(key, VBUCKETS)][0])
        assert int(get(owner, key)) in values


def test_a_rebalance_ends_when_a_node_dies_and_nothing_durable_is_lost(start):
    cluster = start()
    keys = [b"key%d" % i for i in range(32)]
    for key in keys:
        owner = at(cluster, cluster.chains[vbucket_of(key, VBUCKETS)][0])
        assert put(owner, key, frames=DURABLE) == 0
    ended = []

    def rotate():
        try:
            cluster.rotate(0.05)
        except Gone as gone:
            ended.append(gone)

    thread = threading.Thread(target=rotate)
    thread.start()
    while cluster.moved < 2:
        time.sleep(0.001)
    cluster.kill(0)
    cluster.fail_over(0)
    thread.join()
    assert ended and cluster.lost == 0
    cluster.start(0)
    cluster.join(0)
    assert cluster.is_whole()
    assert cluster.documents() == {key: b"v" for key in keys}
