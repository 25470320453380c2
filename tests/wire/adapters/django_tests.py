# SPDX-License-Identifier: BSD-3-Clause
"""What Django expects of a cache, as its own tests have it, and tags, with both clients. PROXY is
the address of a daemon that runs, whose servers may be flushed; CLIENTS the folder of adapters."""

import os
import sys
import time
import unittest

for folder in ("python", "python/django"):
    sys.path.insert(0, os.path.join(os.environ["CLIENTS"], folder))

import django
from django.conf import settings

PROXY = os.environ["PROXY"]


def cache_of(client, **options):
    return {"BACKEND": f"mclistd_django.{client}", "LOCATION": PROXY, **options}


SETTINGS = {
    f"{client}{name}": cache_of(client, **options)
    for client in ("PyMemcacheCache", "PyLibMCCache")
    for name, options in (
        ("", {}),
        (" v2", {"VERSION": 2}),
        (" prefix", {"KEY_PREFIX": "pre,fix%"}),
        (" down", {"LOCATION": "127.0.0.1:1"}),
    )
}
settings.configure(CACHES={"default": SETTINGS["PyMemcacheCache"], **SETTINGS})
django.setup()

from django.core.cache import caches
from django.core.cache.backends.base import InvalidCacheKey
from mclistd import Lists
from mclistd_django import LONGEST_S


class Base:
    client = None

    def setUp(self):
        self.cache, self.v2 = caches[self.client], caches[self.client + " v2"]
        self.prefix, self.down = caches[self.client + " prefix"], caches[self.client + " down"]
        self.lists = Lists(PROXY)
        self.cache.clear()

    def tearDown(self):
        self.lists.close()

    # --- as any cache ---

    def test_simple(self):
        self.cache.set("key", "value")
        self.assertEqual(self.cache.get("key"), "value")
        self.assertIsNone(self.cache.get("does not exist".replace(" ", "")))
        self.assertEqual(self.cache.get("none", "bang"), "bang")

    def test_none_is_a_value(self):
        self.cache.set("none", None)
        self.assertIsNone(self.cache.get("none", "default"))

    def test_add(self):
        self.assertIs(self.cache.add("key", "value"), True)
        self.assertIs(self.cache.add("key", "new"), False)
        self.assertEqual(self.cache.get("key"), "value")

    def test_prefix(self):
        self.cache.set("key", 1)
        self.assertFalse(self.prefix.has_key("key"))
        self.prefix.set("key", 2)
        self.assertEqual((self.cache.get("key"), self.prefix.get("key")), (1, 2))

    def test_many(self):
        self.assertEqual(self.cache.set_many({"a": "a", "b": 2, "c": [3]}), [])
        self.assertEqual(self.cache.get_many(["a", "c", "d"]), {"a": "a", "c": [3]})
        self.assertEqual(self.cache.get_many(iter(["b"])), {"b": 2})
        self.cache.delete_many(["a", "b"])
        self.assertEqual(self.cache.get_many(["a", "b", "c"]), {"c": [3]})
        self.assertEqual((self.cache.set_many({}), self.cache.get_many([])), ([], {}))

    def test_delete(self):
        self.cache.set("key", 1)
        self.assertIs(self.cache.delete("key"), True)
        self.assertIs(self.cache.delete("key"), False)

    def test_has_key(self):
        self.cache.set("key", 1)
        self.assertTrue(self.cache.has_key("key") and "key" in self.cache)
        self.assertFalse(self.cache.has_key("other") or "other" in self.cache)

    def test_incr_decr(self):
        self.cache.set("n", 41)
        self.assertEqual(self.cache.incr("n"), 42)
        self.assertEqual(self.cache.incr("n", 10), 52)
        self.assertEqual(self.cache.incr("n", -10), 42)
        self.assertEqual(self.cache.decr("n", 2), 40)
        for call in (self.cache.incr, self.cache.decr):
            self.assertRaises(ValueError, call, "missing")

    def test_data_types(self):
        for value in ("text", "ü ☃", 42, 1.5, True, None, b"\0\xff", {"a": [1, (2,)]}, "", [], 0):
            self.cache.set("key", value)
            self.assertEqual(self.cache.get("key", "default"), value)
            self.cache.set("key", value, tags=["t"])
            self.assertEqual(self.cache.get("key", "default"), value)

    def test_expiration(self):
        self.cache.set("plain", 1, 1)
        self.cache.set("tagged", 1, 1, tags=["t"])
        deadline = time.monotonic() + 20
        while self.cache.get_many(["plain", "tagged"]) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(self.cache.get_many(["plain", "tagged"]), {})
        self.assertIs(self.cache.add("tagged", 2), True)

    def test_timeouts(self):
        for tags in ([], ["t"]):
            self.cache.set("long", 1, 60 * 60 * 24 * 30 + 1, tags=tags)
            self.cache.set("ever", 2, None, tags=tags)
            self.cache.set("float", 3, 100.2, tags=tags)
            self.assertEqual(self.cache.get_many(["long", "ever", "float"]), {"long": 1, "ever": 2, "float": 3})
            for timeout in (0, -1):
                self.cache.set("ever", 1, timeout, tags=tags)
                self.assertIsNone(self.cache.get("ever"))
            self.assertEqual(self.cache.set_many({"x": 1}, 0, tags=tags), [])
            self.assertIsNone(self.cache.get("x"))

    def test_touch(self):
        for tags in ([], ["t"]):
            self.cache.set("key", 1, 100, tags=tags)
            self.assertIs(self.cache.touch("key", 200), True)
            self.assertIs(self.cache.touch("key", 0), True)
            self.assertIsNone(self.cache.get("key"))
            self.assertIs(self.cache.touch("key"), False)

    def test_invalid_keys(self):
        for key in ("a b", "a\nb", "x" * 251):
            for call in (self.cache.get, self.cache.delete, lambda key: self.cache.set(key, 1, tags=["t"])):
                self.assertRaises(InvalidCacheKey, call, key)
        self.assertEqual(len(self.lists.lget(":tag:t")), 1)

    def test_versions(self):
        self.cache.set("key", 1)
        self.assertIsNone(self.v2.get("key"))
        self.assertEqual(self.v2.get("key", version=1), 1)
        self.assertEqual(self.cache.incr_version("key"), 2)
        self.assertEqual((self.cache.get("key"), self.v2.get("key")), (None, 1))
        self.assertEqual(self.v2.decr_version("key"), 1)
        self.assertEqual(self.cache.get("key"), 1)
        self.assertRaises(ValueError, self.cache.incr_version, "missing")

    def test_get_or_set(self):
        self.assertEqual(self.cache.get_or_set("key", lambda: 1), 1)
        self.assertEqual(self.cache.get_or_set("key", 2), 1)
        self.assertIsNone(self.cache.get_or_set("none", lambda: None))
        self.assertIsNone(self.cache.get("none", "default"))
        self.assertRaises(TypeError, self.cache.get_or_set, "key")

    def test_close(self):
        self.cache.set("key", 1, tags=["t"])
        self.cache.close()
        self.assertEqual(self.cache.get("key"), 1)

    def test_what_is_too_large_leaves_no_old_value(self):
        for tags in ([], ["t"]):
            self.cache.set("key", "small", tags=tags)
            self.cache.set("key", "x" * 2000000, tags=tags)
            self.assertIn(self.cache.get("key"), (None, "x" * 2000000))

    # --- tags ---

    def test_delete_tag(self):
        self.cache.set("a", 1, tags=["x"])
        self.cache.set("b", 2, tags=["x", "y"])
        self.cache.set_many({"c": 3, "d": 4}, tags=["y"])
        self.cache.set("e", 5)
        self.assertIs(self.cache.delete_tag("x", "unknown"), True)
        self.assertEqual(self.cache.get_many("abcde"), {"c": 3, "d": 4, "e": 5})
        self.assertFalse("b" in self.cache)
        self.cache.set("b", 6, tags=["x"])
        self.assertEqual(self.cache.get("b"), 6)

    def raw(self, key):
        """As the other programs see it."""
        return self.cache._cache.get(self.cache.make_key(key))

    def test_its_items_leave_the_memory(self):
        self.cache.set("a", 1, tags=["x"])
        self.cache.delete_tag("x")
        self.assertIsNone(self.raw("a"))

    def test_an_item_of_a_lost_tag_is_missed(self):
        self.cache.set("a", 1, tags=["x", "y"])
        self.assertTrue(self.lists.ldrop(":tag:x"))
        self.assertIsNotNone(self.raw("a"))
        self.assertEqual((self.cache.get("a"), self.cache.get_many(["a"]), "a" in self.cache), (None, {}, False))
        self.assertIs(self.cache.touch("a"), False)
        self.assertRaises(ValueError, self.cache.incr_version, "a")
        self.assertIs(self.cache.add("a", 2, tags=["x"]), True)
        self.assertEqual(self.cache.get("a"), 2)
        self.assertIs(self.cache.add("a", 3), False)

    def test_a_list_that_does_not_begin_with_a_generation_is_begun_anew(self):
        self.lists.ladd(":tag:x", "stray")
        self.cache.set("a", 1, tags=["x"])
        self.assertEqual(self.cache.get("a"), 1)

    def test_a_purge_while_a_value_is_made_is_not_missed(self):
        def make():
            self.cache.delete_tag("user 7")
            return "old"

        self.assertEqual(self.cache.get_or_set("a", make, tags=["user 7"]), "old")
        self.assertIsNone(self.cache.get("a"))
        self.assertEqual(self.cache.get_or_set("a", "new", tags=["user 7"]), "new")
        self.assertEqual(self.cache.get("a"), "new")

    def test_versions_have_the_same_tags(self):
        self.cache.set("a", 1, tags=["x"])
        self.cache.incr_version("a")
        self.assertEqual(self.v2.get("a"), 1)
        self.v2.set("b", 2, tags=["x"])
        self.cache.delete_tag("x")
        self.assertEqual(self.v2.get_many("ab"), {})

    def test_tags_and_keys_of_any_letters(self):
        tags = ["", " ", "a,b", "ü\n☃", "x" * 5000, "x" * 5001, "%2C", "/:{}"]
        for number, tag in enumerate(tags):
            self.cache.set(f"a,b%ü{number}", number, tags=[tag])
            self.prefix.set(f"a,b%ü{number}", number, tags=[tag])
        for number, tag in enumerate(tags):
            self.assertEqual(self.cache.get(f"a,b%ü{number}"), number)
            self.assertTrue(self.cache.delete_tag(tag))
            self.assertIsNone(self.raw(f"a,b%ü{number}"))
            self.assertEqual(self.prefix.get(f"a,b%ü{number}"), number)

    def test_keys_leave_a_list_behind_their_items(self):
        self.cache.set("a", 1, 100, tags=["x"])
        self.cache.set("b", 1, None, tags=["x"])
        generation, a, b = self.lists.lget(":tag:x")
        self.assertEqual(self.lists.lttl(":tag:x", generation), -1)
        self.assertTrue(100 < self.lists.lttl(":tag:x", a) <= 160)
        self.assertTrue(LONGEST_S < self.lists.lttl(":tag:x", b) <= LONGEST_S + 60)
        self.cache.touch("a", 1000)
        self.assertTrue(1000 < self.lists.lttl(":tag:x", a) <= 1060)

    def test_a_proxy_that_is_down_is_a_miss(self):
        for _ in range(5):
            self.assertEqual((self.down.get("a", 1), self.down.get_many(["a"]), "a" in self.down), (1, {}, False))
            self.assertIsNone(self.down.set("a", 1, tags=["x"]))
            self.assertIsNone(self.down.set("a", 1))
            self.assertIs(self.down.add("a", 1), False)
            self.assertEqual(self.down.set_many({"a": 1}, tags=["x"]), ["a"])
            self.assertIs(self.down.delete("a"), False)
            self.assertIs(self.down.touch("a"), False)
            self.assertIs(self.down.delete_tag("x"), False)
            self.assertEqual(self.down.get_or_set("a", lambda: 5, tags=["x"]), 5)


class PyMemcache(Base, unittest.TestCase):
    client = "PyMemcacheCache"


class PyLibMC(Base, unittest.TestCase):
    client = "PyLibMCCache"


if __name__ == "__main__":
    import logging

    logging.disable(logging.WARNING)
    unittest.main()
