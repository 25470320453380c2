# SPDX-License-Identifier: BSD-3-Clause
"""One node's copy of a vBucket, and the rules by which copies follow the active one.

A durable change is prepared first: reads see the document as it was, other changes of the key are
refused. It is committed once a majority of the vBucket's chain has it. Each change of a copy has a
number; a copy takes entries in the order of these. A term is the time of one active copy; copies of
different nodes are compared by term and number. Nodes that were told of a later term take nothing of
an earlier one, so what an active copy that was replaced still prepares is never committed."""

from storage import VBucket

ACTIVE, REPLICA, DEAD = "active", "replica", "dead"
COMMITTED, AMBIGUOUS = "committed", "ambiguous"


class Prepare:
    def __init__(self, key, document, number, again=False):
        self.key, self.document, self.number = key, document, number
        self.again = again  # of an earlier active copy: reads wait for it as well
        self.outcome = None  # what the client that waits is told


class Copy(VBucket):
    def __init__(self, tell=lambda entry: None):
        """tell(entry): an entry that all other copies are to get, once this one is active."""
        super().__init__()
        self.tell = tell
        self.state = DEAD
        self.term = self.fence = self.number = 0
        self.chain = []  # nodes: this one, and those that replicate it; -1: none
        self.acked = {}  # the number up to which each of them has it
        self.prepared = {}
        self.is_durable = False  # the change that is being done
        self.prepare = None  # the one that was made last

    # --- the active copy

    def _log(self, kind, key, document=None):
        self.number += 1
        self.tell((self.term, self.number, kind, key, document))

    def _store(self, key, document):
        if self.is_durable:
            self.prepare = self.prepared[key] = Prepare(key, document, self.number + 1)
            self._log("prepare", key, document)
        else:
            self.documents[key] = document
            self._log("put", key, document)

    def majority(self):
        return len(self.chain) // 2 + 1

    def can_be_durable(self):
        return sum(node >= 0 for node in self.chain) >= self.majority()

    def settle(self):
        """Commits what a majority has, in its order. Returns whether there was any."""
        found = False
        for prepare in sorted(self.prepared.values(), key=lambda prepare: prepare.number):
            others = [node for node in self.chain[1:] if node >= 0]
            if 1 + sum(self.acked.get(node, 0) >= prepare.number for node in others) < self.majority():
                break
            self._commit(prepare.key, prepare)
            found = True
        return found

    def _commit(self, key, prepare):
        del self.prepared[key]
        self.documents[key] = prepare.document
        prepare.outcome = COMMITTED
        self._log("commit", key)

    def abort(self, prepare):
        if self.state == ACTIVE and self.prepared.get(prepare.key) is prepare:
            del self.prepared[prepare.key]
            self._log("abort", prepare.key)
        prepare.outcome = AMBIGUOUS

    def lead(self, term, chain):
        """Becomes the active copy, or has another chain from now on."""
        if self.state != ACTIVE or term != self.term:
            self.acked = {}
            for prepare in self.prepared.values():
                prepare.again = True
        self.state, self.term, self.fence, self.chain = ACTIVE, term, term, chain
        self.settle()

    def give_up(self):
        """No more active. Clients that wait are told that they cannot know."""
        self.state = DEAD
        for prepare in self.prepared.values():
            prepare.outcome = AMBIGUOUS

    # --- the others

    def whole(self):
        """All of it, for a copy that begins."""
        prepared = {key: (prepare.document, prepare.number) for key, prepare in self.prepared.items()}
        return self.term, self.number, dict(self.documents), prepared, self.last_cas

    def take_whole(self, term, number, documents, prepared, last_cas):
        """Returns whether it was taken."""
        if term < self.fence or self.state == ACTIVE:
            return False
        self.state, self.term, self.number = REPLICA, term, number
        self.documents = documents
        self.prepared = {
            key: Prepare(key, document, at) for key, (document, at) in prepared.items()
        }
        self.last_cas = max(self.last_cas, last_cas)
        return True

    def take(self, entry):
        """Returns whether it was taken: it must be the next one, of the active copy that this one
        follows."""
        term, number, kind, key, document = entry
        if self.state != REPLICA or term != self.term or term < self.fence or number != self.number + 1:
            return False
        self.number = number
        if kind == "put":
            self.documents[key] = document
        elif kind == "prepare":
            self.prepared[key] = Prepare(key, document, number)
        elif kind == "commit":
            self.documents[key] = self.prepared.pop(key).document
        else:
            del self.prepared[key]
        if document is not None:
            self.last_cas = max(self.last_cas, document.cas)
        return True
