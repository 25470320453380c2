# SPDX-License-Identifier: BSD-3-Clause
"""scripts/convert on rings that applications have written by hand: who and when."""

import pytest

from harness import wait_until
from test_convert_data import put, server, values_of
from test_convert_support import convert, names_stored, sections

pytestmark = pytest.mark.release

KEY = "topic-X"
VISITS = {f"topic-X.{n % 256}": f"{1000 + n} {1700000000 + n}" for n in range(1, 301)}
CAPPED = {"max_items": 256, "order": "recent", "max_item_bytes": 100}


def stored(counter):
    return {**VISITS, "topic-X.seq": counter}


@pytest.mark.parametrize("slot", ["%n %v", "%n %v %t", "%t %v"])
def test_slots_of_another_template_are_named_and_kept(start_daemon, memcached, tmp_path, slot):
    """The users are numbers: nothing of them may be taken for the number of an entry."""
    daemon = start_daemon([memcached], config=sections("ring", capacity=256, slot=slot))
    put(memcached, **stored("300"))
    for options in (["--dry-run"], ["--backup", str(tmp_path / "backup.txt")]):
        done = convert([daemon], server(memcached), *options, "--allow-empty")
        assert done.returncode == 3, done.stdout + done.stderr
        assert "is not of dialect ring" in done.stdout
    with daemon.conn() as conn:
        assert conn.cmd(f"lconvert {KEY}").startswith(b"SERVER_ERROR topic-X.")
    assert values_of(memcached, list(stored("300"))) == \
        {name: text.encode() for name, text in stored("300").items()}


def test_a_counter_may_have_the_flags_of_an_integer(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("ring", capacity=8))
    with memcached.conn() as conn:
        assert conn.set("topic-X.seq", "2", flags=2) == b"STORED"
        assert conn.set("topic-X.1", "1 ann") == b"STORED"
        assert conn.set("topic-X.2", "2 bob") == b"STORED"
    done = convert([daemon], f"--server={memcached.address}")
    assert done.returncode == 0, done.stdout + done.stderr
    with daemon.conn() as conn:
        assert conn.lget("topic-X") == [b"ann", b"bob"]


def test_a_ring_that_is_larger_than_configured_is_kept(start_daemon, memcached):
    daemon = start_daemon([memcached], config=sections("ring", capacity=100, slot="%v %t"))
    put(memcached, **stored("300"))
    done = convert([daemon], server(memcached), "--allow-empty")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "topic-X.100 is not of dialect ring: a slot beyond capacity = 100" in done.stdout
    assert names_stored(memcached) == sorted(stored("300"))


def test_a_ring_that_is_larger_is_kept_where_the_slots_behind_the_last_are_missing(
        start_daemon, memcached, tmp_path):
    """The proxies ask for these two alone."""
    daemon = start_daemon([memcached], config=sections("ring", capacity=100, slot="%v %t"))
    slots = stored("300")
    del slots["topic-X.100"], slots["topic-X.101"]
    put(memcached, **slots)
    for options in (["--dry-run"], ["--backup", str(tmp_path / "backup.txt")]):
        done = convert([daemon], server(memcached), *options, "--allow-empty")
        assert done.returncode == 3, done.stdout + done.stderr
        assert "topic-X.102 is not of dialect ring: a slot beyond capacity = 100" in done.stdout
        assert names_stored(memcached) == sorted(slots)


def test_lists_that_are_read_as_empty_are_named(start_daemon, memcached):
    """Each addition is a deletion to a proxy that has the two signs exchanged."""
    signs = {"add_sign": "-", "delete_sign": "+"}
    daemon = start_daemon([memcached], config=sections("signed", **signs))
    put(memcached, **{KEY: "+ann+bob", "topic-Y": "-cat", "topic-Z": ""})
    done = convert([daemon], server(memcached), "--dry-run")
    assert "1 of the lists have no item, though something is stored for them (for instance " \
           "topic-X): do the settings of the prefix say what clients write?" in done.stdout
    assert names_stored(memcached) == [KEY, "topic-Y", "topic-Z"]


TOLD = "1 of the lists lack their counter, or a slot that it has counted: it was never written, or " \
       "evicted, or is on a server that was not named (for instance {})"


@pytest.mark.parametrize("counter, wraps, gone, told", [
    ("300", False, "topic-X.47", "topic-X.47"),
    ("300", False, "topic-X.45", "topic-X.45"),
    ("300", False, "topic-X.0", "topic-X.0"),
    ("300", False, "topic-X.seq", "topic-X.seq"),
    ("44", True, "topic-X.45", "topic-X.45"),
    ("44", True, "topic-X.0", "topic-X.0"),
    ("300", False, None, None),
    ("44", True, None, None),
])
def test_a_slot_that_is_gone_is_named(start_daemon, memcached, counter, wraps, gone, told):
    """The ring reads as if the entry had never been: once it is converted, nothing tells of that."""
    daemon = start_daemon([memcached], config=sections(
        "ring", capacity=256, slot="%v %t", counter_wraps=wraps))
    put(memcached, **stored(counter), **{"topic-short.seq": "1", "topic-short.1": "1 1700000001"})
    if gone:
        with memcached.conn() as conn:
            assert conn.cmd(f"delete {gone}") == b"DELETED"
    for more in (["--dry-run"], []):
        done = convert([daemon], server(memcached), *more)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (TOLD.format(told) in done.stdout) if told else ("counted" not in done.stdout)
    assert "counted" not in convert([daemon], server(memcached), "--allow-empty").stdout


@pytest.mark.parametrize("wraps", [False, True])
def test_visits_move_with_their_times_and_come_back(start_daemon, memcached, tmp_path, wraps):
    counter = "44" if wraps else "300"
    config = sections("ring", capacity=256, slot="%v %t", counter_wraps=wraps, **CAPPED)
    daemon = start_daemon([memcached], config=config)
    put(memcached, **stored(counter))
    backup = tmp_path / "backup.txt"
    done = convert([daemon], server(memcached), "--backup", backup)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 lists converted, 256 items" in done.stdout
    expected = [b"%d %d" % (1000 + n, 1700000000 + n) for n in range(45, 301)]
    with daemon.conn() as conn:
        assert conn.lget(KEY) == expected
        conn.send(f"laddb {KEY} 15\r\n1301 1700000301\r\n")
        assert conn.line() == b"STORED"
        # The cap is set by the compaction that this asks for.
        visits = [*expected[1:], b"1301 1700000301"]
        wait_until("the list has its cap", lambda: conn.lget(KEY) == visits)
    daemon.stop()
    done = convert([], "--restore", backup, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert values_of(memcached, list(stored(counter))) == \
        {name: text.encode() for name, text in stored(counter).items()}
