# SPDX-License-Identifier: BSD-3-Clause
"""scripts/convert: inventory, backup and restore."""

import fcntl
import importlib
import resource
import subprocess
import sys

import pytest

from harness import ROOT, wait_until
from test_convert_support import (
    DIALECTS,
    convert,
    items_of,
    names_stored,
    sections,
    shown,
    store,
)

pytestmark = pytest.mark.release

KEY = "topic-X"
ITEMS = ["apple", "pear", "plum"]
EVERYWHERE = pytest.mark.parametrize("dialect", DIALECTS)


def server(memcached):
    return f"--server={memcached.address}"


def restore(path, *args, prefix="topic-"):
    command = [sys.executable, str(ROOT / "scripts/convert"), prefix, f"--restore={path}", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def everything(memcached):
    """{name: (value, flags, ttl)}, but for the clock items of the proxies."""
    found = {}
    with memcached.conn() as conn:
        for name in names_stored(memcached):
            if name.startswith("mclistd#clock"):
                continue
            conn.send(f"mg {name} v f t\r\n")
            _, size, *words = conn.line().split()
            found[name] = (conn.data(int(size)), *words)
    return found


@EVERYWHERE
def test_what_was_saved_is_written_back(start_daemon, memcached, tmp_path, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    for n in range(3):
        store(memcached, dialect, f"topic-{n}", ITEMS)
    before = everything(memcached)
    path = tmp_path / "backup.txt"
    done = convert([daemon], server(memcached), f"--backup={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    done = restore(path)
    assert done.returncode == 3, done.stdout
    assert "3 left alone since something newer is there" in done.stdout
    assert "topic-1: a native list of that key is there" in done.stdout
    done = restore(path, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 restored" in done.stdout
    assert everything(memcached) == before
    old = start_daemon([memcached], config=sections(dialect, migrate="no"))
    with old.conn() as conn:
        assert conn.lget("topic-1") == shown(dialect, ITEMS)
    done = restore(path)
    assert done.returncode == 0
    assert "3 are there already" in done.stdout


@EVERYWHERE
def test_an_empty_memcached_is_filled_again(start_memcached, start_daemon, tmp_path, dialect):
    memcached = start_memcached()
    daemon = start_daemon([memcached], config=sections(dialect))
    store(memcached, dialect, KEY, ITEMS)
    before = everything(memcached)
    path = tmp_path / "backup.txt"
    assert convert([daemon], server(memcached), f"--backup={path}").returncode == 0
    memcached.restart()
    done = restore(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 restored" in done.stdout
    assert everything(memcached) == before


@pytest.mark.thorough
@EVERYWHERE
def test_a_pool_of_several_memcacheds(start_memcached, start_daemon, tmp_path, dialect):
    memcacheds = [start_memcached() for _ in range(3)]
    config = sections(dialect)
    daemon = start_daemon(memcacheds, config=config)
    old = start_daemon(memcacheds, config=sections(dialect, migrate="no"))
    keys = [f"topic-{n}" for n in range(40)]  # so many that each server has some
    with old.conn() as conn:
        for key in keys:
            assert conn.cmd(f"ladd {key} {' '.join(ITEMS)}") == b"STORED"
    before = [everything(memcached) for memcached in memcacheds]
    assert all(before)
    path = tmp_path / "backup.txt"
    servers = [server(memcached) for memcached in memcacheds]
    done = convert([daemon], *servers, f"--backup={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 of 40 lists converted, 120 items" in done.stdout
    assert "40 hold exactly" in done.stdout
    done = convert([daemon], *servers, "--verify-only", f"--keys={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert restore(path, "--force").returncode == 0
    assert [everything(memcached) for memcached in memcacheds] == before


def test_what_is_newer_is_left_alone(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("sublists"))
    for n in range(3):
        store(memcached, "sublists", f"topic-{n}", ITEMS)
    path = tmp_path / "backup.txt"
    assert convert([daemon], server(memcached), f"--backup={path}").returncode == 0
    with memcached.conn() as conn:
        for n in range(3):
            conn.cmd(f"delete topic-{n}#")
        assert conn.set("topic-0.0", "+newer") == b"STORED"
        assert conn.set("topic-1.0", "+apple+pear+plum") == b"STORED"  # a restore that was killed
    done = restore(path)
    assert done.returncode == 3
    assert "newer: topic-0: topic-0.0 has changed" in done.stdout
    assert "2 restored" in done.stdout
    with memcached.conn() as conn:
        assert conn.get("topic-0.0") == b"+newer"
        assert conn.get("topic-0") is None
        assert conn.get("topic-1") == b"+0"


def test_flags_times_and_any_bytes_are_saved(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("simple"))
    with memcached.conn() as conn:
        assert conn.set("topic-%41#", b"a\r\nb,\t\xff,", 16, 5000) == b"STORED"
        assert conn.set("topic-long", b"a,", 0, 90 * 86400) == b"STORED"  # for good: a date in 1970
        assert conn.cmd("ms topic-long 2 T5000000", "a,") == b"HD"
    before = everything(memcached)
    path = tmp_path / "backup.txt"
    done = convert([daemon], server(memcached), f"--backup={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert restore(path, "--force").returncode == 0
    after = everything(memcached)
    assert after.keys() == before.keys()
    for name, (value, flags, ttl) in before.items():
        assert after[name][:2] == (value, flags)
        assert abs(int(after[name][2][1:]) - int(ttl[1:])) < 60


@pytest.mark.thorough
def test_a_backup_is_added_to_and_never_written_over(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("simple"))
    path = tmp_path / "backup.txt"
    for n in range(2):
        store(memcached, "simple", f"topic-{n}", [f"item-{n}"])
        assert convert([daemon], server(memcached), f"--backup={path}").returncode == 0
    whole = path.read_bytes()
    assert whole.count(b"\nlist ") == 2
    with open(path, "ab") as file:
        file.write(b"list topic-9 1700000000 1\nitem 127.0.0.1:1 topic-9 0 -1 000")  # killed here
    done = restore(path, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 lists in the backup: 2 restored" in done.stdout
    path.write_bytes(whole.replace(b" 0 -1 ", b" 0 -2 x", 1))
    done = restore(path)
    assert done.returncode == 2 and ":4: " in done.stderr
    path.write_text("something else\n")
    store(memcached, "simple", KEY, ["apple"])
    assert convert([daemon], server(memcached), f"--backup={path}").returncode == 2
    assert path.read_text() == "something else\n"
    assert restore(path, prefix="other-").returncode == 2


@pytest.mark.thorough
def test_what_was_saved_last_counts(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("simple"))
    path = tmp_path / "backup.txt"
    for item in ("older", "newer"):
        with memcached.conn() as conn:
            conn.cmd("delete topic-1#")
        daemon.kill()
        daemon.start()
        store(memcached, "simple", "topic-1", [item])
        assert convert([daemon], server(memcached), f"--backup={path}").returncode == 0
    done = restore(path, "--force")
    assert "1 lists in the backup: 1 restored" in done.stdout
    with memcached.conn() as conn:
        assert conn.get("topic-1") == b"newer,"


def parts_of_the_script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    names = ("files", "settings", "stored")
    return [importlib.import_module(f"mclistd_convert.{name}") for name in names]


def backup_of(files, settings, path, dialect):
    section = settings.Section(b"topic-")
    section.values[b"dialect"] = dialect.encode()
    return files.Backup(path, section)


def test_a_list_that_is_tried_again_is_saved_as_it_is_by_then(memcached, tmp_path, monkeypatch):
    files, settings, stored = parts_of_the_script(monkeypatch)
    path = tmp_path / "backup.txt"
    backup = backup_of(files, settings, path, "simple")
    for items in (ITEMS, [*ITEMS, "late"]):
        store(memcached, "simple", KEY, items)
        backup.save(stored.Stored([memcached.address]), KEY.encode())
    memcached.restart()
    assert restore(path).returncode == 0
    with memcached.conn() as conn:
        assert conn.get(KEY) == b"apple,pear,plum,late,"


def test_the_first_answer_of_a_memcached_is_awaited_for_less_than_the_others(memcached, monkeypatch):
    """One that stands still holds nothing up for minutes. One that works may take long."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    wire = importlib.import_module("mclistd_convert.wire")
    monkeypatch.setattr(wire, "GREETING_TIMEOUT_S", 0.5)
    server = wire.Server(memcached.address)
    assert server.socket.gettimeout() == wire.TIMEOUT_S
    server.close()
    memcached.pause()
    try:
        with pytest.raises(OSError, match="timed out"):
            wire.Server(memcached.address)
    finally:
        memcached.resume()


def test_two_runs_do_not_write_one_file(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("simple"))
    store(memcached, "simple", KEY, ITEMS)
    for option in ("backup", "state"):
        path = tmp_path / option
        with open(path, "wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = convert([daemon], server(memcached), f"--{option}={path}")
            assert done.returncode == 2 and f"{path}: another run is at work with it" in done.stderr
    with memcached.conn() as conn:
        assert conn.get(KEY) == b"apple,pear,plum,"


@pytest.mark.parametrize("reads", [1, 2, 3])
@pytest.mark.parametrize("dialect", ["paired", "flip", "marker", "sublists"])
def test_a_list_that_is_folded_while_it_is_saved(
    start_memcached, start_daemon, tmp_path, monkeypatch, dialect, reads
):
    files, settings, stored = parts_of_the_script(monkeypatch)
    memcached = start_memcached()
    daemon = start_daemon([memcached], config=sections(dialect, migrate="no"))
    with daemon.conn() as conn:
        assert conn.cmd(f"ladd {KEY} {' '.join(ITEMS)}") == b"STORED"
        assert conn.cmd(f"ldel {KEY} apple") == b"DELETED"

    class Folding(stored.Stored):
        """The items come one after the other, as from several servers, and the list is folded
        behind one of them."""

        reads = 0

        def items(self, keys):
            found = {}
            for name in keys:
                found.update(super().items([name]))
                self.reads += 1
                if self.reads == reads:
                    with daemon.conn() as conn:
                        assert conn.cmd(f"ladd {KEY} late") == b"STORED"
                        assert conn.cmd(f"lcompact {KEY}") == b"OK"
                        assert conn.cmd(f"ladd {KEY} apple") == b"STORED"
                        assert conn.cmd(f"ldel {KEY} pear") == b"DELETED"
            return found

    path = tmp_path / "backup.txt"
    backup_of(files, settings, path, dialect).save(Folding([memcached.address]), KEY.encode())
    memcached.restart()
    assert restore(path).returncode == 0
    with daemon.conn() as conn:
        wait_until("the proxy is connected", lambda: conn.cmd(f"llen {KEY}").isdigit())
        assert conn.lget(KEY) in ([b"pear", b"plum"], [b"plum", b"late", b"apple"])


@pytest.mark.parametrize("dialect", ["simple", "sublists"])
def test_what_comes_after_a_conversion_is_not_saved_for_it(start_daemon, memcached, tmp_path, dialect):
    daemon = start_daemon([memcached], config=sections(dialect))
    store(memcached, dialect, KEY, ITEMS)
    before = everything(memcached)
    path = tmp_path / "backup.txt"
    assert convert([daemon], server(memcached), f"--backup={path}").returncode == 0
    store(memcached, dialect, KEY, ["straggler"])  # a client that does not know of the move
    daemon.kill()
    daemon.start()
    done = convert([daemon], server(memcached), f"--backup={path}")
    assert done.returncode == 1
    assert "both a native list and an old one are stored" in done.stdout
    assert restore(path, "--force").returncode == 0
    assert everything(memcached) == before


@pytest.mark.thorough
def test_a_full_disk_ends_the_run_before_the_list_is_touched(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("simple"))
    for n in range(4):
        store(memcached, "simple", f"topic-{n}", items_of(100))
    before = everything(memcached)
    path = tmp_path / "backup.txt"
    command = [sys.executable, str(ROOT / "scripts/convert"), "topic-", server(memcached)]
    done = subprocess.run(
        [*command, f"--proxy=127.0.0.1:{daemon.port}", f"--backup={path}", "--parallel=1"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)),
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "backup.txt: File too large" in done.stderr
    text = path.read_text()
    saved = {line.split()[1] for line in text.split("\n") if line.startswith("list ")}
    assert text.endswith("\n") and 0 < len(saved) < 4
    left = everything(memcached)
    assert {name for name in before if name not in left} == saved
    done = convert([daemon], server(memcached), f"--backup={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert restore(path, "--force").returncode == 0
    assert everything(memcached) == before


# --- inventory ---


@pytest.mark.thorough
@EVERYWHERE
def test_lists_are_held_against_the_inventory(start_daemon, memcached, tmp_path, dialect):
    daemons = [start_daemon([memcached], config=sections(dialect)) for _ in range(2)]
    for n in range(4):
        store(memcached, dialect, f"topic-{n}", items_of(n + 1))
    path = tmp_path / "before.txt"
    before = start_daemon([memcached], config=sections(dialect, migrate="no"))
    done = convert([before], server(memcached), "--dry-run", f"--inventory={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 lists of the dialect, 10 items" in done.stdout
    before.stop()
    done = convert(daemons, "--verify-only", f"--keys={path}")
    assert done.returncode == 1
    assert "failed: topic-1: it is stored in the old layout" in done.stdout
    assert convert(daemons, server(memcached)).returncode == 0
    natives = [start_daemon([memcached], config=sections("native")) for _ in range(2)]
    for proxies in (daemons, natives, natives[:1]):
        done = convert(proxies, "--verify-only", f"--keys={path}")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "4 hold exactly what the inventory says" in done.stdout
    with natives[0].conn() as conn:
        assert conn.cmd("ladd topic-1 newer") == b"STORED"
        assert conn.cmd("ldrop topic-2") == b"DELETED"
    done = convert(natives, "--verify-only", f"--keys={path}")
    assert done.returncode == 1
    assert "1 were changed meanwhile" in done.stdout
    assert "failed: topic-2: it held 3 items and is not there" in done.stdout


def test_an_inventory_is_not_written_over(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("simple"))
    path = tmp_path / "before.txt"
    path.write_text("from before\n")
    store(memcached, "simple", KEY, ["apple"])
    done = convert([daemon], server(memcached), f"--inventory={path}")
    assert done.returncode == 2
    assert "name another file, or leave out --inventory" in done.stderr
    assert path.read_text() == "from before\n"
    assert names_stored(memcached) == [KEY]


def test_an_inventory_that_is_cut_off_is_refused(start_daemon, memcached, tmp_path):
    daemon = start_daemon([memcached], config=sections("simple"))
    for n in range(4):
        store(memcached, "simple", f"topic-{n}", ["apple"])
    path = tmp_path / "before.txt"
    done = convert([daemon], server(memcached), "--dry-run", f"--inventory={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    text = path.read_text()
    path.write_text(text[: text.index("list topic-2")])
    done = convert([daemon], "--verify-only", f"--keys={path}")
    assert done.returncode == 2
    assert "is cut off" in done.stderr


@pytest.mark.parametrize("is_over", [False, True])
def test_a_head_with_a_transaction_that_is_not_over_stays(start_daemon, memcached, tmp_path, is_over):
    """Its other lists would be left with half of it."""
    daemon = start_daemon([memcached], config=sections("simple"))
    store(memcached, "simple", KEY, ITEMS)
    path = tmp_path / "backup.txt"
    assert convert([daemon], server(memcached), f"--backup={path}").returncode == 0
    intent = f"abcdefghijklm.1700000000 2 {KEY} other +1:x"
    head = f"^1\n?{len(intent)}:{intent}&15:abcdefghijklm c" + "&15:abcdefghijklm d" * is_over
    with memcached.conn() as direct:
        assert direct.set(f"{KEY}#", head.encode()) == b"STORED"
        done = restore(path, "--force")
        if is_over:
            assert done.returncode == 0 and direct.get(f"{KEY}#") is None
        else:
            assert done.returncode == 3 and direct.get(f"{KEY}#") == head.encode()
            assert "with a transaction that is not over: lcompact it" in done.stdout


@pytest.mark.memcacheds(3)
def test_a_native_list_where_no_item_was_saved_is_seen(start_daemon, memcacheds, tmp_path):
    """The items of one list and its native head have names of their own, and servers of their own."""
    daemon = start_daemon(memcacheds, config=sections("signed"))
    servers = [server(memcached) for memcached in memcacheds]
    path = tmp_path / "backup.txt"

    def have(name):
        return [memcached for memcached in memcacheds if name in names_stored(memcached)]

    for number in range(100):
        key = f"topic-{number}"
        with daemon.conn() as conn:
            assert conn.set(key, "+apple") == b"STORED"
            [old] = have(key)
            assert convert([daemon], *servers, f"--backup={path}").returncode == 0
            assert conn.cmd(f"ladd {key} since") == b"STORED"
        [native] = have(f"{key}#")
        if native is not old:
            break
        path.unlink()
        with native.conn() as conn:
            assert conn.cmd(f"delete {key}#") == b"DELETED"
    daemon.stop()
    done = restore(path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"{key}: a native list of that key is there" in done.stdout
    assert have(key) == []
    native.stop()
    assert restore(path).returncode == 2, "it cannot be seen whether there is a native list"
    native.start()
    done = restore(path, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert have(f"{key}#") == []
    assert have(key) == [old]
    native.stop()
    done = restore(path, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"memcached {native.address}: " in done.stderr
    path.write_bytes(b"".join(line for line in path.read_bytes().splitlines(keepends=True)
                              if not line.startswith(b"servers ")))  # as older releases have it
    assert f"native lists are looked for on {old.address} alone" in restore(path).stderr
