# SPDX-License-Identifier: BSD-3-Clause
"""Lists are exported to a file, and imported from one: options, order of work, exit code."""

import contextlib
import os
import secrets
import sys
import threading
import time

from mclistd_convert.files import Log, keys_of_lines, lock, read_file
from mclistd_convert.run import Pool, Progress
from mclistd_convert.settings import ask
from mclistd_convert.wire import LIST_KEY, Connection, Refused, number_of, shown
from mclistd_lists import backup_file as files
from mclistd_lists.backup_read import Reader
from mclistd_lists.backup_write import Writer

SYNC_EVERY_S = 5
DONE_HEAD = "mclistd lists imported 1 "


def add_options(parser):
    group = parser.add_argument_group(
        "export and import",
        "through --proxy; each list as it was at one instant, with its time and its items' times. "
        "Both may be killed and started again, and then go on. Exit code 1: lists failed, and are "
        "named; 2: it did not start, or stopped",
    )
    add = group.add_argument
    mode = group.add_mutually_exclusive_group()
    mode.add_argument("--export", metavar="FILE", dest="export_to",
                      help="write lists to FILE; one that is unfinished is continued")
    mode.add_argument("--import", metavar="FILE", dest="import_from",
                      help="write the lists of an export into the pool; no list that is there is "
                      "changed. What is done is noted in FILE.done until all is")
    add("--keys", metavar="FILE", help="--export: exactly these lists; one key per line, "
        "percent-encoded; -: standard input. Without it: all that are found")
    add("--leave-out-failed", action="store_true",
        help="--export: end the file though lists failed; it names them")
    add("--replace", action="store_true", help="--import: also lists that are there")
    add("--parallel", type=int, default=4, metavar="N", help="connections to the proxy (4)")
    add("--lists-per-second", type=float, default=0, metavar="N",
        help="exported or imported, at most")


def wanted(options):
    return bool(options.export_to or options.import_from)


def keys_from(path):
    return keys_of_lines(path, read_file(None if path == "-" else path))


class Work:
    """Lists, in parallel. handle(connection, task) does one."""

    def __init__(self, options, handle, what, count):
        self.options, self.handle = options, handle
        self.options.proxies, self.options.stored = [options.proxy], contextlib.nullcontext()
        self.options.stored.close = lambda: None
        self.progress, self.failures = Progress(what, count), []
        self.lock = threading.Lock()

    def do(self, connections, _, task):
        try:
            self.handle(connections.proxy(0), task)
        except BaseException:  # answers to what was sent behind it may still come
            connections.close()
            raise
        with self.lock:
            self.progress.done += 1

    def failed(self, task, error):
        with self.lock:
            self.progress.done += 1
            self.failures.append((getattr(task, "key", task), str(error)))

    def run(self, tasks, sync):
        last = time.monotonic()

        def watch():
            nonlocal last
            self.progress.show()
            if time.monotonic() - last >= SYNC_EVERY_S:
                last = time.monotonic()
                sync()

        pool = Pool(self.options, self.do, self.failed, self.options.lists_per_second)
        try:
            pool.run(tasks, watch)
        finally:
            self.progress.end()
            sync()

    def name_failures(self):
        for key, reason in sorted(self.failures):
            print(f"failed: {shown(key)}: {reason}")


# --- export ----------------------------------------------------------------------------------------


def run_export(options, find_keys):
    keys = keys_from(options.keys) if options.keys else list(find_keys())
    for key in keys:
        if not LIST_KEY.fullmatch(key):
            raise Refused(f"{shown(key)}: not a list's key")
    settings, _ = ask(options.proxy)
    export = files.Export(options.export_to)
    before = export.lists
    reader = Reader(settings, os.path.dirname(os.path.abspath(options.export_to)))
    missing = [0]

    def handle(connection, key):
        content = reader.read(connection, key)
        if content is None:
            export.add_missing(key)
            missing[0] += 1
            return
        with contextlib.closing(content):
            export.add(key, content.items, content.until, content.body)

    tasks = [key for key in keys if key not in export.done]
    work = Work(options, handle, "exported", len(tasks))
    work.run(tasks, export.sync)
    work.name_failures()
    is_whole = not work.failures or options.leave_out_failed
    if is_whole:
        for key, reason in sorted(work.failures):
            export.add_failed(key, reason)
        export.end()
    least = "" if options.keys else "at least "
    print(
        f"{least}{export.lists} lists exported, {export.items} items ({before} lists by an earlier "
        f"run); {missing[0]} are not there, {len(work.failures)} failed"
        + ("" if is_whole else ": the file is unfinished; start it again, or with --leave-out-failed")
    )
    return 1 if work.failures else 0


# --- import ----------------------------------------------------------------------------------------


class Done(Log):
    """FILE.done: which lists are done, of which export, through which proxy."""

    def __init__(self, path, export_id, proxy):
        self.keys, self.scratch = set(), secrets.token_hex(6)
        self.head = f"{DONE_HEAD}{export_id} {proxy} ".encode()
        head = self.head + self.scratch.encode() + b"\n"
        super().__init__(path + ".done", head, self.take)
        if self.size == 0:
            self.add(head)

    def take(self, path, text):
        first, *lines = text.split(b"\n")
        if not lines and self.head.startswith(first[: len(self.head)]):
            return 0
        if not first.startswith(self.head) or not lines:
            raise Refused(
                f"{path}: is of another export, or of an import through another proxy; "
                "remove it to begin anew"
            )
        self.scratch = first[len(self.head) :].decode()
        *whole, torn = lines
        self.keys = {files.unquote(line) for line in whole}
        return len(text) - len(torn)

    def note(self, key):
        self.add(files.quote(key).encode() + b"\n")

    def remove(self):
        self.file.close()
        os.unlink(self.path)


def open_export(path):
    """Locked, so that one import at a time is at work with it."""
    try:
        file = open(path, "rb")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    lock(file, path)
    return file


def look_through(path, file):
    """All of the file, before anything is written. Returns (ID, lists, failed)."""
    lists, failed, export_id = [], [], None
    try:
        for kind, value in files.entries(path, file, check=True):
            if kind == "head":
                export_id = value
            elif kind == "list":
                lists.append(value)
            elif kind == "failed":
                failed.append(value)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    except files.Unfinished as where:
        raise Refused(
            f"{path}: ends in entry {where.number}, without its end mark: the export is unfinished, "
            "or the file is cut off. --export goes on with it"
        ) from None
    return export_id, lists, failed


def max_value_bytes(proxy):
    with contextlib.closing(Connection(proxy)) as connection:
        return number_of(connection.stats(b"stats settings").get(b"proxy:max_value_bytes", b"1048576"))


def run_import(options):
    with open_export(options.import_from) as file:
        return import_from(options, file)


def import_from(options, file):
    export_id, lists, left_out = look_through(options.import_from, file)
    settings, _ = ask(options.proxy)
    done = Done(options.import_from, export_id, options.proxy)
    reader = Reader(settings, None)
    writer = Writer(settings, max_value_bytes(options.proxy), done.scratch.encode(),
                    options.replace, reader)
    counts = {"written": 0, "there already": 0, "over": 0}
    counting = threading.Lock()

    def handle(connection, saved):
        if saved.until and saved.until <= time.time():
            outcome = "over"
        else:
            with open(options.import_from, "rb") as file:
                outcome = writer.write(connection, file, saved)
        done.note(saved.key)
        with counting:
            counts[outcome] += 1

    tasks = [saved for saved in lists if saved.key not in done.keys]
    work = Work(options, handle, "imported", len(tasks))
    work.run(tasks, done.sync)
    for key, reason in left_out:
        print(f"left out of the export: {shown(key)}: {reason}")
    work.name_failures()
    print(
        f"{len(lists)} lists: {counts['written']} written, {counts['there already']} were there "
        f"already, {len(lists) - len(tasks)} by an earlier run, {counts['over']} have expired since "
        f"the export, {len(work.failures)} failed"
    )
    if work.failures:
        return 1
    done.remove()
    return 0


def run(options, find_keys):
    """find_keys() returns the keys of all lists that are found."""
    if not options.proxy:
        raise Refused("--export and --import need --proxy")
    if options.import_from:
        return run_import(options)
    return run_export(options, find_keys)
