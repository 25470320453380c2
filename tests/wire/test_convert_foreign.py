# SPDX-License-Identifier: BSD-3-Clause
"""scripts/convert leaves alone the values that the proxies do not take for lists."""

import pytest

from test_convert_data import put, server, values_of
from test_convert_support import convert, sections, store

pytestmark = pytest.mark.release

FOREIGN = {
    "simple": ['{"a":[1,2]}', 'a:2:{i:0;s:1:"a";i:1;s:1:"b";}'],
    "tombstone": ['{"a":[1,2]}'],
    "signed": ["12345", '[5,1,1,3]', "hello"],
    "sublists": ["12345", "+apple+pear", "hello"],
}


@pytest.mark.parametrize("dialect", FOREIGN)
def test_values_of_others_are_named_and_kept(start_daemon, memcached, tmp_path, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    store(memcached, dialect, "topic-good", ["apple", "pear"])
    foreign = {f"topic-bad-{n}": value for n, value in enumerate(FOREIGN[dialect])}
    put(memcached, **foreign)
    with memcached.conn() as conn:  # compressed
        assert conn.set("topic-zip", b"\x78\x9c\x4b\x4c\x04\x00\x01\x24\x00\xc3") == b"STORED"
    path = tmp_path / "before.txt"
    for args in (["--dry-run", f"--inventory={path}"], []):
        done = convert([daemon], server(memcached), *args)
        assert done.returncode == 3, done.stdout + done.stderr
        for name in [*foreign, "topic-zip"]:
            assert f"left alone: {name}: values that the dialect cannot have: " in done.stdout
        assert "ldrop" not in done.stdout
    assert "1 of 1 lists converted, 2 items" in done.stdout
    assert path.read_text().count("\nform topic-") == len(foreign) + 1
    assert values_of(memcached, foreign) == {n: v.encode() for n, v in foreign.items()}


def test_a_value_in_the_place_of_a_list_of_the_inventory_has_failed(start_daemon, memcached, tmp_path):
    config = {"proxy": {"threads": 1}, **sections("signed")}
    daemons = [start_daemon([memcached], config=config) for _ in range(2)]
    for key in ("topic-good", "topic-bad"):
        store(memcached, "signed", key, ["apple", "pear"])
    path = tmp_path / "before.txt"
    done = convert(daemons, server(memcached), "--dry-run", f"--inventory={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    with memcached.conn() as conn:  # a client that compresses stores the list anew
        assert conn.set("topic-bad", b"compressed", 2) == b"STORED"
    assert convert(daemons, server(memcached)).returncode == 3
    done = convert(daemons, server(memcached), "--verify-only", f"--keys={path}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 of 2 lists read" in done.stdout and "1 failed" in done.stdout
    assert "failed: topic-bad: SERVER_ERROR topic-bad is not of dialect signed: flags 2" in done.stdout
    assert "ldrop" not in done.stdout
    done = convert(daemons, "--verify-only", keys=["topic-good", "topic-bad"])
    assert done.returncode == 3, done.stdout + done.stderr
    assert "left alone: topic-bad: values that the dialect cannot have: " in done.stdout
