# SPDX-License-Identifier: BSD-3-Clause
"""The documents of one vBucket, as Couchbase keeps them: CAS numbers that never start again,
tombstones, expiry, and a replica that may lag behind."""

import copy
import dataclasses
import time

NOT_FOUND, EXISTS, NOT_STORED, NOT_A_NUMBER, TOO_LARGE = 0x01, 0x02, 0x05, 0x06, 0x03
RELATIVE_MAX_S = 30 * 86400
VALUE_BYTES_MAX = 20 << 20


@dataclasses.dataclass
class Document:
    value: bytes
    flags: int = 0
    expires_s: int = 0  # since 1970; 0: never
    cas: int = 0
    deleted: bool = False


class Refused(Exception):
    """Ends an operation with a status."""

    def __init__(self, status):
        super().__init__(f"status {status:#x}")
        self.status = status


def absolute(exptime):
    """A time to live as clients give it, as a second since 1970."""
    if exptime == 0 or exptime > RELATIVE_MAX_S:
        return exptime
    return int(time.time()) + exptime


class VBucket:
    def __init__(self):
        self.documents = {}
        self.replica = {}
        self.last_cas = 0

    def _next_cas(self):
        """A hybrid clock: nanoseconds with the low 16 bits as a counter."""
        self.last_cas = max(time.time_ns() & ~0xFFFF, self.last_cas + 1)
        return self.last_cas

    def live(self, key):
        """The document, or None where there is none, or no more."""
        found = self.documents.get(key)
        if found is None or found.deleted or (found.expires_s and found.expires_s <= time.time()):
            return None
        return found

    def _found(self, key, cas=0, missing=NOT_FOUND):
        found = self.live(key)
        if found is None:
            raise Refused(missing)
        if cas and found.cas != cas:
            raise Refused(EXISTS)
        return found

    def _put(self, key, value, flags, expires_s, deleted=False):
        if len(value) > VALUE_BYTES_MAX:
            raise Refused(TOO_LARGE)
        document = Document(value, flags, expires_s, self._next_cas(), deleted)
        self._store(key, document)
        return document

    def _store(self, key, document):
        self.documents[key] = document

    def get(self, key):
        return self._found(key)

    def meta(self, key):
        """Also of a tombstone."""
        found = self.documents.get(key)
        if found is None:
            raise Refused(NOT_FOUND)
        return found, self.live(key) is None

    def set(self, key, value, flags, exptime, cas=0):
        if cas:
            self._found(key, cas)
        return self._put(key, value, flags, absolute(exptime))

    def add(self, key, value, flags, exptime):
        if self.live(key) is not None:
            raise Refused(EXISTS)
        return self._put(key, value, flags, absolute(exptime))

    def replace(self, key, value, flags, exptime, cas=0):
        self._found(key, cas)
        return self._put(key, value, flags, absolute(exptime))

    def delete(self, key, cas=0):
        self._found(key, cas)
        return self._put(key, b"", 0, 0, deleted=True)

    def extend(self, key, before, after, cas=0):
        found = self._found(key, cas, NOT_STORED)
        return self._put(key, before + found.value + after, found.flags, found.expires_s)

    def count(self, key, difference, initial, exptime, cas=0):
        """A new number, and its document."""
        found = self.live(key)
        if found is None:
            if exptime == 0xFFFFFFFF:
                raise Refused(NOT_FOUND)
            return initial, self._put(key, b"%d" % initial, 0, absolute(exptime))
        if cas and found.cas != cas:
            raise Refused(EXISTS)
        digits = found.value.strip()
        if not digits.isdigit() or int(digits) >= 1 << 64:
            raise Refused(NOT_A_NUMBER)
        number = int(digits) + difference
        number = number % (1 << 64) if difference >= 0 else max(number, 0)
        return number, self._put(key, b"%d" % number, found.flags, found.expires_s)

    def touch(self, key, exptime):
        """The document with another expiry, which is a change here: it has a new CAS."""
        found = self._found(key)
        if found.expires_s == absolute(exptime):
            return found
        return self._put(key, found.value, found.flags, absolute(exptime))

    def replicate(self):
        self.replica = copy.copy(self.documents)

    def fail_over(self):
        """What the replica did not get is lost."""
        self.documents = copy.copy(self.replica)
