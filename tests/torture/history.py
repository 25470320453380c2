# SPDX-License-Identifier: BSD-3-Clause
"""Recorded operations, written for build/check-history (tests/history/history.h has the format)."""

import subprocess
import threading
import time

OUTSIDE = 0  # the process number of what no client has done
UNDECIDED = 2  # exit code of check-history


def escape(name):
    return "".join(
        chr(byte) if 0x20 < byte < 0x7F and byte not in b"%=" else f"%{byte:02X}" for byte in name
    )


class History:
    """Operations on many lists. Threads add to it; a process is one connection of a client."""

    def __init__(self):
        self.lines = {True: [], False: []}  # by "on_missing = refuse"
        self.texts = []  # of errors, for a person: the checker knows one from another by outcome
        self.lock = threading.Lock()
        self.processes = OUTSIDE

    def new_process(self):
        with self.lock:
            self.processes += 1
            return self.processes

    def add(self, refuse, invoked_ns, completed_ns, process, verb, key, words, outcome, answer=()):
        """words: the items, behind the two positions of lrange; answer: items, or one number.
        completed_ns is None when there was no answer."""
        parts = [str(invoked_ns), "-" if completed_ns is None else str(completed_ns), str(process)]
        parts += [verb, key, *map(escape, words), "=", outcome, *map(escape, answer)]
        self.lines[refuse].append(" ".join(parts))

    def add_text(self, invoked_ns, process, verb, key, text):
        self.texts.append(f"{invoked_ns} {process} {verb} {key}: {text}")

    def add_restart(self, lists, stopped_ns, ready_ns):
        """A server was empty at a moment between the two. lists: (key, refuse) of those it held.
        A list that exists only when it was made may have been missing all the same: an ldrop that
        must find one would be too much."""
        for key, refuse in lists:
            outcome = "maybe" if refuse else "ok"
            self.add(refuse, stopped_ns, ready_ns, OUTSIDE, "ldrop", key, [], outcome)

    def leave_out(self, is_doubtful):
        """Takes out what is_doubtful(invoked_ns, completed_ns, verb, key, outcome, answer) is true
        of: of answers to nothing but a read of which it is known that they may be older than the
        question. Returns how many."""
        before = self.count()
        for lines in self.lines.values():
            lines[:] = [line for line in lines if not self._is_doubtful(line, is_doubtful)]
        return before - self.count()

    @staticmethod
    def _is_doubtful(line, is_doubtful):
        asked, _, answered = line.partition(" = ")
        invoked, completed, _, verb, key = asked.split(" ")[:5]
        outcome, *answer = answered.split(" ")
        completed_ns = time.monotonic_ns() if completed == "-" else int(completed)
        return is_doubtful(int(invoked), completed_ns, verb, key, outcome, answer)

    def count(self):
        return sum(map(len, self.lines.values()))

    def unknown(self):
        return sum(line.endswith(" = unknown") for lines in self.lines.values() for line in lines)

    def write(self, folder):
        """Returns the files: one per setting of on_missing."""
        paths = []
        (folder / "errors.txt").write_text("\n".join([*self.texts, ""]))
        for refuse, lines in self.lines.items():
            word = "refuse" if refuse else "create"
            paths.append(folder / f"history-{word}.txt")
            paths[-1].write_text("\n".join([f"history 1 on_missing={word}", *lines, ""]))
        return paths

    def check(self, program, folder, timeout_s):
        """Writes the files and has them checked. Returns (what is wrong, what could not be decided,
        what the checker says of each file): lists of texts."""
        faults, undecided, verdicts = [], [], []
        for path in self.write(folder):
            try:
                done = subprocess.run(
                    [program, str(path)], capture_output=True, text=True, timeout=timeout_s
                )
            except subprocess.TimeoutExpired:
                undecided.append(f"{path}: not decided within {timeout_s:.0f} s")
                continue
            output = done.stdout + done.stderr
            path.with_suffix(".verdict").write_text(output)
            last = output.strip().split("\n")[-1].replace(f"{folder}/", "")
            if done.returncode == UNDECIDED:
                undecided.append(last)
            elif done.returncode != 0:
                faults.append(f"exit code {done.returncode} of {program} {path}: {last}")
            verdicts.append(last)
        return faults, undecided, verdicts
