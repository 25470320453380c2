# SPDX-License-Identifier: BSD-3-Clause
"""The Django adapter as README.md says: django_agent.py ADDRESS"""

import logging
import os
import sys

for folder in ("python", "python/django"):
    sys.path.insert(0, os.path.join(os.environ["CLIENTS"], folder))

from django.conf import settings

settings.configure(
    CACHES={
        "default": {
            "BACKEND": "mclistd_django.PyMemcacheCache",
            "LOCATION": sys.argv[1],
            "OPTIONS": {"timeout": 30, "lists": {"timeout": 30}},
        }
    }
)

from django.core.cache import cache

logging.disable(logging.WARNING)
for line in sys.stdin:
    verb, key, *words = line.rstrip("\n").split("\t")
    key = key.replace(" ", "_")
    if verb == "save":
        cache.set(key, words[0], 600, tags=words[1:])
        print("yes", flush=True)
    elif verb == "get":
        found = cache.get(key)
        print("miss" if found is None else f"is {found}", flush=True)
    else:
        print("yes" if cache.delete_tag(key) else "no", flush=True)
