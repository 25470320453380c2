# SPDX-License-Identifier: BSD-3-Clause
"""Django's memcached backends with tags, which are lists of mclistd.

    CACHES = {"default": {"BACKEND": "mclistd_django.PyMemcacheCache", "LOCATION": "127.0.0.1:11220"}}

    cache.set("page:7", html, 3600, tags=["article:7", "author:ann"])
    cache.delete_tag("author:ann")

A tag is a list: first its generation, a name that is never used again, then the keys of its items.
A tagged item is stored with the generations under which it was made, and is there only as long as
its lists begin with the same ones. So where memcached loses a list, its items are missed. A key
leaves its list by itself, a minute behind its item.
"""

import hashlib
import logging
import secrets
import threading
import time
from urllib.parse import quote

from django.core.cache.backends import memcached
from django.core.cache.backends.base import DEFAULT_TIMEOUT

from mclistd import Error, Lists, Lost

log = logging.getLogger(__name__)

LONGEST_S = 30 * 86400  # of tagged items that have no end
SLACK_S = 60  # clocks of proxies may differ by so much
DOWN_S = 1  # the proxy is left alone so long when it has not answered
ROUNDS = 5
MISSING = object()


class Tagged:
    """What is stored of a value that has tags. made: the generation of each of its lists."""

    __slots__ = ("value", "made")

    def __init__(self, value, made):
        self.value, self.made = value, made

    def __reduce__(self):
        return Tagged, (self.value, self.made)


class TagsMixin:
    """For a backend of Django. OPTIONS["lists"] are those of mclistd.Lists."""

    down = OSError, Error  # what the client raises when the proxy, or a server, does not answer
    refused = ()  # of these, what is an error of the program

    def __init__(self, server, params):
        params = {**params, "OPTIONS": dict(params.get("OPTIONS") or {})}
        self._lists_options = {"timeout": 1.0, **params["OPTIONS"].pop("lists", {})}
        super().__init__(server, params)
        self._local = threading.local()

    # --- tags ---

    def set(self, key, value, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        if not self._put(super().set, key, value, timeout, version, self._made(tags)):
            self._try(super().delete, key, version=version)  # it must not keep its old value

    def add(self, key, value, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        return self._add(key, value, timeout, version, self._made(tags))

    def get_or_set(self, key, default, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        """The generations of the tags are read before default() is called: if one is purged while
        it reads the database, what it has read is not found any more."""
        found = self.get(key, MISSING, version=version)
        if found is not MISSING:
            return found
        made = self._made(tags)
        value = default() if callable(default) else default
        if self._add(key, value, timeout, version, made):
            return value
        return self.get(key, value, version=version)

    def set_many(self, data, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        """All of them get all of the tags."""
        made = self._made(tags)
        if made is None:
            self.delete_many(data, version=version)
            return list(data)
        if made:
            timeout = self._timeout(timeout)
            if timeout > 0 and not self._name(data, version, made, timeout):
                return list(data)
            data = {key: Tagged(value, made) for key, value in data.items()}
        failed = self._try(super().set_many, data, timeout=timeout, version=version)
        return list(data) if failed is None else failed

    def delete_tag(self, *tags):
        """Deletes all items of these tags, of all versions. False: not done, or not known to be."""
        lists = [self._list(tag) for tag in tags]
        try:
            left = [at for at, end in zip(lists, self._ask("lpurge", lists)) if isinstance(end, Error)]
            # Where they cannot be deleted the list goes: its generation ends, and they are missed.
            return not any(isinstance(end, Error) for end in self._ask("ldrop", left))
        except Error as error:
            log.warning("tags not deleted: %s", error)
            return False

    # --- as ever ---

    def get(self, key, default=None, version=None):
        raw = self._raw(key, version)
        return self._live({key: raw}).get(key, default) if raw is not MISSING else default

    def get_many(self, keys, version=None):
        found = self._try(super().get_many, keys, version=version)
        return self._live(found or {})

    def touch(self, key, timeout=DEFAULT_TIMEOUT, version=None):
        raw = self._raw(key, version)
        if raw is MISSING or not self._live({key: raw}):
            return False
        if isinstance(raw, Tagged):
            timeout = self._timeout(timeout)
            if timeout > 0 and not self._name([key], version, raw.made, timeout):
                return False
        return bool(self._try(super().touch, key, timeout=timeout, version=version))

    def incr_version(self, key, delta=1, version=None):
        version = self.version if version is None else version
        raw = self._raw(key, version)
        if raw is MISSING or not self._live({key: raw}):
            raise ValueError("Key '%s' not found" % key)
        if isinstance(raw, Tagged):
            self._put(super().set, key, raw.value, DEFAULT_TIMEOUT, version + delta, raw.made)
        else:
            self.set(key, raw, version=version + delta)
        self.delete(key, version=version)
        return version + delta

    def delete(self, key, version=None):
        return bool(self._try(super().delete, key, version=version))

    def delete_many(self, keys, version=None):
        self._try(super().delete_many, keys, version=version)

    def make_key(self, key, version=None):
        """An item of a list holds no comma."""
        return super().make_key(key, version).replace("%", "%25").replace(",", "%2C")

    def close(self, **kwargs):
        super().close(**kwargs)
        self._lists().close()

    # --- items ---

    def _raw(self, key, version):
        """As it is stored."""
        return self._try(super().get, key, MISSING, version=version, failed=MISSING)

    def _live(self, found):
        """key => value, without the items whose generations have ended."""
        lists = sorted({at for raw in found.values() if isinstance(raw, Tagged) for at in raw.made})
        try:
            first = dict(zip(lists, map(first_of, self._ask("lrange", lists, 0, 0))))
        except Error as error:
            log.warning("tags not read: %s", error)
            first = {}
        values = {}
        for key, raw in found.items():
            if not isinstance(raw, Tagged):
                values[key] = raw
            elif all(first.get(at) == generation for at, generation in raw.made.items()):
                values[key] = raw.value
        return values

    def _add(self, key, value, timeout, version, made):
        if self._put(super().add, key, value, timeout, version, made):
            return True
        raw = self._raw(key, version)
        if not isinstance(raw, Tagged) or self._live({key: raw}):
            return False
        self.delete(key, version=version)  # what stands there has ended
        return self._put(super().add, key, value, timeout, version, made)

    def _put(self, put, key, value, timeout, version, made):
        """By put, which is set or add of the backend; adds the key to the lists before. None: the
        generations are not known."""
        if made is None:
            return False
        if made:
            timeout = self._timeout(timeout)
            if timeout > 0 and not self._name([key], version, made, timeout):
                return False
            value = Tagged(value, made)
        done = self._try(put, key, value, timeout=timeout, version=version, failed=False)
        return done is not False  # set answers None

    def _timeout(self, timeout):
        """Of an item with tags, in seconds."""
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        return LONGEST_S if timeout is None else int(timeout)

    def _try(self, call, *args, failed=None, **options):
        try:
            return call(*args, **options)
        except self.refused:
            raise
        except self.down as error:
            log.warning("the cache has not done it: %s", error)
            return failed

    # --- lists ---

    def _list(self, tag):
        name = quote(f"{self.key_prefix}:tag:{tag}", safe=":")
        if len(name) <= 200:
            return name
        return name[:150] + "~" + hashlib.sha256(name.encode()).hexdigest()[:48]

    def _made(self, tags):
        """list => generation; None: one of them cannot be had."""
        wanted, made = [self._list(tag) for tag in tags], {}
        try:
            for _ in range(ROUNDS if wanted else 0):
                firsts = dict(zip(wanted, map(first_of, self._ask("lrange", wanted, 0, 0))))
                made = {at: first for at, first in firsts.items() if is_generation(first)}
                if len(made) == len(firsts):
                    return made
                self._begin({at: first for at, first in firsts.items() if at not in made})
        except Error as error:
            log.warning("tags not read: %s", error)
        return None if wanted else {}

    def _begin(self, firsts):
        """Gives lists without a generation one: those that are missing, that begin with a key that
        was added while a purge was at work, or that cannot be read."""
        pipe = self._lists().pipeline()
        for at, first in firsts.items():
            if first is not None:
                (pipe.ldrop if isinstance(first, Error) else pipe.lpurge)(at)
            pipe.lcreate(at, "gen:" + secrets.token_hex(8))
        self._run(pipe)

    def _name(self, keys, version, made, seconds):
        """Adds the keys to the lists. Whether that was done."""
        keys = [self.make_key(key, version) for key in keys]
        for key in keys:
            self.validate_key(key)
        pipe = self._lists().pipeline()
        for at in made:
            for key in keys:
                pipe.laddt(at, seconds + SLACK_S, key)
        try:
            return all(done is True for done in self._run(pipe))
        except Error as error:
            log.warning("tags not written: %s", error)
            return False

    def _ask(self, verb, lists, *words):
        pipe = self._lists().pipeline()
        for at in lists:
            getattr(pipe, verb)(at, *words)
        return self._run(pipe, even_if_down=verb in ("lpurge", "ldrop")) if lists else []

    def _run(self, pipe, even_if_down=False):
        if not even_if_down and time.monotonic() < getattr(self._local, "down_until", 0):
            raise Lost("nothing was sent: the proxy did not answer a moment ago")
        results = pipe.run()
        if isinstance(results[-1], Lost):
            self._local.down_until = time.monotonic() + DOWN_S
            if not even_if_down:
                raise results[-1]
        return results

    def _lists(self):
        """One for each thread."""
        if not hasattr(self._local, "lists"):
            server = self._servers[0]
            address = server[5:] if server.startswith("unix:") else server
            self._local.lists = Lists(address, **self._lists_options)
        return self._local.lists


def first_of(answer):
    return answer if isinstance(answer, Error) else answer[0] if answer else None


def is_generation(first):
    return isinstance(first, str) and first.startswith("gen:")


class PyMemcacheCache(TagsMixin, memcached.PyMemcacheCache):
    def __init__(self, server, params):
        super().__init__(server, params)
        # A HashClient leaves its only server alone for a minute, else.
        self._options = {"connect_timeout": 3, "timeout": 3, "dead_timeout": DOWN_S, **self._options}
        errors = self._lib.exceptions
        self.down, self.refused = (OSError, errors.MemcacheError), errors.MemcacheClientError


class PyLibMCCache(TagsMixin, memcached.PyLibMCCache):
    def __init__(self, server, params):
        super().__init__(server, params)
        self.down, self.refused = (OSError, self._lib.Error), self._lib.ClientError
