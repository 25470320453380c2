# SPDX-License-Identifier: BSD-3-Clause
"""Finishes transactions whose proxies have died, as the proxies do: docs/list-format.md. One that is
undecided is aborted in its primary. A decision is then noted in each other list that waits for it,
and that all lists know it is noted in the primary, last."""

from mclistd_lists.intent import entry
from mclistd_lists.transactions import ABORTED, COMMITTED, PENDING, UNKNOWN, WAITING

STEPS_MAX = 6  # more than it can take: one to abort it, one for the others, one for the primary


class Settler:
    """looker: of the transactions. append(server, list key, bytes): to the head if it is there."""

    def __init__(self, looker, append):
        self.looker, self.append = looker, append

    def settle(self, transactions):
        """Yields each with how it ended: committed or aborted; or None: its note says why not. All
        of them go on together, since those of the same lists are told by the same heads."""
        outcomes = {t: COMMITTED for t in transactions}
        for _ in range(STEPS_MAX):
            open_ones = self.looker.look(list(outcomes))
            for t in set(outcomes).difference(open_ones):
                yield t, outcomes.pop(t)
            for t in open_ones:
                if t.state == UNKNOWN:
                    del outcomes[t]
                    yield t, None
                else:
                    outcomes[t] = self.step(t)
        for t in outcomes:
            t.note = "it was not over after all steps"
            yield t, None

    def step(self, t):
        """What it does has to be seen before the next step: a proxy may have been faster."""
        if t.state in (WAITING, PENDING):
            self.note(t, [t.primary], b"a")
            return ABORTED
        if t.lacks:
            self.note(t, t.lacks, b"c" if t.state == COMMITTED else b"a")
        else:
            self.note(t, [t.primary], b"d")
        return t.state

    def note(self, t, keys, word):
        for key in keys:
            self.append(t.servers[key], key, entry(t.name, word))
