# SPDX-License-Identifier: BSD-3-Clause
"""scripts/lists and scripts/sweep meet transactions that are not over. The heads are written by
hand, as docs/list-format.md says, so each state of a transaction can be had."""

import json
import time

import pytest

from harness import Conn, wait_until
from test_lists_script import found, lists
from test_scripts import run_well

pytestmark = pytest.mark.release

NAME = "abcdefghijklm"
OTHER = "zzzzzzzzzzzzz"
OLD_S = 1700000000


def logged(op, data):
    data = data.encode() if isinstance(data, str) else data
    return b"%s%d:%s" % (op.encode(), len(data), data)


def intent(keys, changes=b"", name=NAME, created_s=OLD_S):
    header = f"{name}.{created_s} {len(keys)} {' '.join(keys)} "
    return logged("?", header.encode() + changes)


def decision(word, name=NAME):
    return logged("&", f"{name} {word}")


def head(*entries, header=b"^1\n"):
    return header + b"".join(entries)


def store(memcached, heads):
    with Conn(memcached.port) as direct:
        for key, value in heads.items():
            assert direct.set(key + "#", value) == b"STORED"


def stored(memcached, key):
    with Conn(memcached.port) as direct:
        return direct.get(key + "#")


def transactions(*args, code=3):
    done = lists("--transactions", "--json", *args)
    assert done.returncode == code, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def sweep(*args):
    return run_well("sweep", "--wait", 0, "--delete", *args)


# --- what a head says -----------------------------------------------------------------------------


ADD_X = logged("+", "x")
AB = ["a", "b"]
def counts(keys):
    """{name: (what follows `+1:one`, (least, most))}, of the second list of these."""
    return {
        "undecided": (intent(keys, ADD_X), (1, 2)),
        "committed": (intent(keys, ADD_X) + decision("c"), (2, 2)),
        "aborted": (intent(keys, ADD_X) + decision("a"), (1, 1)),
        "first-decision-counts": (intent(keys, ADD_X) + decision("c") + decision("a"), (2, 2)),
        "decision-of-another": (intent(keys, ADD_X) + decision("c", OTHER), (1, 2)),
        "decision-in-front": (decision("c") + intent(keys, ADD_X), (1, 2)),
        "committed-clear": (intent(keys, logged("!", "") + ADD_X) + decision("c"), (1, 1)),
        "undecided-clear": (intent(keys, logged("!", "") + ADD_X), (0, 2)),
        "undecided-deletion": (intent(keys, logged("-", "one")), (0, 1)),
        "decided-by-what-is-behind": (intent(keys, ADD_X) + logged("-", "x"), (1, 1)),
        "condition-alone": (intent(keys, logged(".", "one")), (1, 1)),
        "residue": (intent(keys) + decision("c"), (1, 1)),
        "effects-stand-where-the-intent-stands": (
            intent(keys, logged("-", "one")) + logged("+", "one") + decision("c"), (1, 1)),
    }


def test_numbers_of_items_with_transactions(memcached):
    cases = {name: counts(["a", name])[name] for name in counts(["a", "b"])}
    store(memcached, {name: head(logged("+", "one"), log) for name, (log, _) in cases.items()})
    said = {
        key.decode(): (entry["items_at_least"], entry["items_at_most"])
        for key, entry in found(memcached.address).items()
    }
    assert said == {name: count for name, (_, count) in cases.items()}


def test_in_the_primary_what_conflicts_is_an_abort(memcached):
    crossed = {
        "same-item": logged("+", "x"), "clear": logged("!", ""), "condition": logged("-", "asked"),
        "other-item": logged("+", "y"), "timed": logged("@", f"{2**32 - 1}:x"),
    }
    changes = ADD_X + logged(".", "asked")
    store(memcached, {key: head(intent([key, "b"], changes), log) for key, log in crossed.items()})
    store(memcached, {"capped": head(intent(["capped", "b"], changes), logged("+", "y"),
                                     header=b"^1 #5.drop\n")})
    store(memcached, {"late": head(intent(["late", "b"], changes), decision("c"), logged("-", "x"))})
    entries = found(memcached.address)
    unfinished = {key.decode() for key, entry in entries.items() if entry["transactions"]}
    assert unfinished == {"other-item", "late"}


@pytest.mark.parametrize("log", [
    b"?5:hello", b"&3:abc", logged("&", f"{NAME} x"), logged("?", f"{NAME}.1 3 a b "),
    logged("?", f"{NAME}.1 2 a b +5:x"), logged("?", f"{NAME}.1 2 a b ~1:x"),
    logged("?", f"{NAME}.1 17 {' '.join('abcdefghijklmnopq')} "), logged("?", f"{NAME} 1 a "),
    logged("?", f"{NAME}.1 2 a b !1:x"), logged("?", f"{NAME}.1 2 a b"),
    logged("?", f"{NAME}.1 2 b c +1:x"), logged("?", f"{NAME}.1 2 a a +1:x"),
    2 * logged("?", f"{NAME}.1 2 a b +1:x"),
])
def test_entries_of_transactions_that_cannot_be(memcached, log):
    store(memcached, {"a": head(log)})
    assert found(memcached.address, code=3)[b"a"]["state"] == "foreign"


# --- scripts/lists --transactions -----------------------------------------------------------------


STATES = {
    # (head of a, head of b): (state, lacks)
    "waiting": ((intent(AB, ADD_X), b""), ("waiting", ["b"])),
    "pending": ((intent(AB, ADD_X), intent(AB, ADD_X)), ("pending", [])),
    "committed": ((intent(AB, ADD_X) + decision("c"), intent(AB, ADD_X)), ("committed", ["b"])),
    "noted": ((intent(AB) + decision("c"), intent(AB, ADD_X) + decision("c")), ("committed", [])),
    "folded": ((intent(AB) + decision("c"), logged("+", "x")), ("committed", [])),
    "aborted": ((intent(AB, ADD_X) + decision("a"), intent(AB, ADD_X)), ("aborted", ["b"])),
    "forgotten": ((logged("+", "y"), intent(AB, ADD_X)), ("aborted", ["b"])),
    "crossed": ((intent(AB, ADD_X) + logged("-", "x"), intent(AB, ADD_X)), ("aborted", ["b"])),
}
OVER = {
    "done": (intent(AB, ADD_X) + decision("c") + decision("d"), intent(AB, ADD_X) + decision("c")),
    "aborted": (intent(AB, ADD_X) + decision("a"), intent(AB, ADD_X) + decision("a")),
}


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("case", STATES)
def test_state_of_a_transaction(memcacheds, case):
    (a, b), (state, lacks) = STATES[case]
    store(memcacheds[0], {"a": head(a)})
    store(memcacheds[1], {"b": head(b), "no-part": head(logged("+", "x"))})
    addresses = [memcached.address for memcached in memcacheds]
    (entry,) = transactions(*addresses)
    assert (entry["name"], entry["state"], entry["lacks"]) == (NAME, state, lacks)
    assert (entry["primary"], entry["lists"], entry["created_s"]) == ("a", AB, OLD_S)
    assert abs(entry["age_s"] - (time.time() - OLD_S)) < 60
    assert entry["lacks_done"] == (state == "committed" and not lacks)
    table = lists("--transactions", *addresses).stdout
    assert table.splitlines()[0].split() == ["NAME", "AGE", "STATE", "PRIMARY", "LISTS", "LACKS"]
    assert f"{state}" in table and NAME in table


@pytest.mark.parametrize("case", OVER)
def test_transactions_that_are_over_are_not_shown(memcached, case):
    a, b = OVER[case]
    store(memcached, {"a": head(a), "b": head(b)})
    assert transactions(memcached.address, code=0) == []


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
def test_what_cannot_be_told_is_unknown(memcacheds):
    first, second = memcacheds
    store(first, {"b": head(intent(AB, ADD_X))})
    (entry,) = transactions(first.address)
    assert entry["state"] == "unknown" and "on none of these servers" in entry["note"]
    store(first, {"a": head(intent(AB, ADD_X))})
    store(second, {"a": head(intent(AB, ADD_X) + decision("c"))})
    (entry,) = transactions(first.address, second.address)
    assert entry["state"] == "unknown" and "several servers" in entry["note"]
    store(first, {"a": b"hello"})
    (entry,) = transactions(first.address)
    assert entry["state"] == "unknown" and "no head of a list" in entry["note"]


def test_with_a_proxy_a_list_that_is_not_there_is_nowhere(daemon, memcached):
    store(memcached, {"b": head(intent(AB, ADD_X))})
    (entry,) = transactions(f"--proxy=127.0.0.1:{daemon.port}")
    assert (entry["state"], entry["lacks"]) == ("aborted", ["b"])


def test_young_transactions_are_no_reason_for_worry(memcached):
    young = intent(AB, ADD_X, created_s=int(time.time()) - 5)
    store(memcached, {"a": head(young), "b": head(young)})
    (entry,) = transactions(memcached.address, code=0)
    assert entry["state"] == "pending" and 4 <= entry["age_s"] <= 60
    assert len(transactions("--grace=2", memcached.address, code=3)) == 1


# --- beside a proxy -------------------------------------------------------------------------------


def test_lstat_tells_what_it_has_met(conn, memcached):
    store(memcached, {"a": head(intent(AB, ADD_X)), "b": head(intent(AB, ADD_X))})
    stat = conn.stats("lstat b")
    assert (stat["transactions_waiting"], stat["transactions_pending"], stat["items"]) == ("1",) + 2 * ("0",)
    assert abs(int(stat["transaction_age"]) - (time.time() - OLD_S)) < 60
    assert conn.stats("lstat b")["transactions_waiting"] == "0"
    young = intent(AB, ADD_X, created_s=int(time.time()))
    store(memcached, {"a": head(young, decision("c"))})
    assert conn.stats("lstat a")["transactions_committed"] == "1"


@pytest.mark.thorough
def test_a_read_of_the_primary_finishes_what_is_old(conn, memcached):
    store(memcached, {"a": head(intent(AB, ADD_X), decision("c")), "b": head(intent(AB, ADD_X))})
    assert conn.llen("a") == 1
    wait_until("it is finished", lambda: decision("d") in stored(memcached, "a"))
    assert stored(memcached, "b") == head(intent(AB, ADD_X), decision("c"))
    assert transactions(memcached.address, code=0) == []
    assert "intents" in found(memcached.address)[b"a"]["marks"]
    for key in AB:
        assert conn.cmd(f"lcompact {key}") == b"OK"
        assert stored(memcached, key) == head(ADD_X)
    assert not any(entry["marks"] for entry in found(memcached.address).values())


def has_decision(value, undecided, which):
    """Several workers may meet the intent at once: each tells, and only the first decision counts."""
    told = value.removeprefix(undecided)
    return value.startswith(undecided) and told and told.replace(which, b"") == b""


def test_an_export_settles_what_it_meets(daemon, memcached, tmp_path):
    store(memcached, {"a": head(intent(AB, ADD_X), decision("c")), "b": head(intent(AB, ADD_X)),
                      "c": head(intent(["a", "c"], ADD_X, OTHER))})
    path = tmp_path / "lists.export"
    done = lists(f"--proxy=127.0.0.1:{daemon.port}", f"--export={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 lists exported, 2 items" in done.stdout and "1 are not there" in done.stdout
    assert has_decision(stored(memcached, "b"), head(intent(AB, ADD_X)), decision("c"))
    assert has_decision(stored(memcached, "c"), head(intent(["a", "c"], ADD_X, OTHER)),
                        decision("a", OTHER))


# --- scripts/sweep ---------------------------------------------------------------------------------


AFTER = {
    # what is appended to a and to b
    "waiting": (decision("a"), b""),
    "pending": (decision("a"), decision("a")),
    "committed": (decision("d"), decision("c")),
    "noted": (decision("d"), b""),
    "folded": (decision("d"), b""),
    "aborted": (b"", decision("a")),
    "forgotten": (b"", decision("a")),
    "crossed": (b"", decision("a")),
}


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("case", STATES)
def test_sweep_finishes_a_transaction(memcacheds, case):
    logs, (state, _) = STATES[case]
    for memcached, key, log in zip(memcacheds, AB, logs):
        store(memcached, {key: head(log)})
    addresses = [memcached.address for memcached in memcacheds]
    word = "committed" if state == "committed" else "aborted"
    dry = run_well("sweep", "--wait", 0, *addresses)
    assert f"would finish transaction {NAME} of a b: {word}" in dry
    assert "1 transactions to be finished (--delete), 0 left alone" in dry
    heads = [head(log) for log in logs]
    assert [stored(*pair) for pair in zip(memcacheds, AB)] == heads, "a dry run changes nothing"
    out = sweep(*addresses)
    assert f"finished transaction {NAME} of a b: {word}" in out
    assert "1 transactions finished, 0 left alone" in out
    after = [before + more for before, more in zip(heads, AFTER[case])]
    assert [stored(*pair) for pair in zip(memcacheds, AB)] == after
    assert "transaction" not in sweep(*addresses)
    assert transactions(*addresses, code=0) == []


def test_sweep_leaves_young_transactions_alone(memcached):
    young = head(intent(AB, ADD_X, created_s=int(time.time())))
    store(memcached, {"a": young, "b": young})
    assert "transaction" not in sweep(memcached.address)
    assert [stored(memcached, key) for key in AB] == [young, young]


@pytest.mark.memcacheds(2)
def test_sweep_leaves_what_it_cannot_tell(memcacheds):
    """Its other list, and so the truth, may be on a server that was not named."""
    first, second = memcacheds
    heads = {"b": head(intent(AB, ADD_X)), "c": head(intent(["c", "d"], ADD_X, OTHER), decision("c", OTHER))}
    store(first, heads)
    store(second, {"a": head(intent(AB, ADD_X), decision("c"))})
    out = sweep(first.address)
    assert f"left alone: transaction {NAME} of a b: the head of a is on none of these servers" in out
    assert "0 transactions finished, 2 left alone" in out
    assert {key: stored(first, key) for key in heads} == heads
    sweep(first.address, second.address)
    assert stored(first, "b") == head(intent(AB, ADD_X), decision("c"))


def test_sweep_keeps_sublists_of_heads_with_transactions(memcached):
    with Conn(memcached.port) as direct:
        store(memcached, {"a": head(intent(AB, ADD_X), header=b"^1 aaaaaaaaaaaaa.1:22:1\n")})
        assert direct.set("a#aaaaaaaaaaaaa.0", b"^1 0000000001\n+5:apple") == b"STORED"
        assert " 0 removed" in sweep(memcached.address)
        assert direct.get("a#aaaaaaaaaaaaa.0") == b"^1 0000000001\n+5:apple"
