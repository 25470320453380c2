# SPDX-License-Identifier: BSD-3-Clause
"""A daemon before the fake Couchbase cluster of tests/cluster."""

import inspect
import sys
import types

import pytest

from harness import ROOT, SLOW

sys.path.insert(0, str(ROOT / "tests/cluster"))

from cluster import Cluster  # noqa: E402
from node import vbucket_of  # noqa: E402
from relay import RelayCluster  # noqa: E402

__all__ = ["Cluster", "RelayCluster", "adopt", "documents", "keys_of", "sections", "vbucket_of"]


def documents(cluster, folder, seeds=None, **settings):
    """The section of a pool before these nodes, or all."""
    password = folder / "password"
    password.write_text(cluster.password + "\n")
    nodes = cluster.nodes if seeds is None else [cluster.nodes[i] for i in seeds]
    tls = settings.get("tls", False)
    return {
        "type": "couchbase",
        "servers": [f"127.0.0.1:{node.tls_port if tls else node.port}" for node in nodes],
        "connect_timeout_ms": int(2000 * SLOW),
        "bucket": cluster.bucket,
        "username": cluster.user,
        "password_file": password,
        **settings,
    }


def sections(cluster, folder, proxy=None, **settings):
    return {
        "proxy": {"allow_flush_all": "no", **(proxy or {})},
        "pool documents": documents(cluster, folder, **settings),
    }


def keys_of(cluster, index, count, prefix="key", end=""):
    """Keys that the node has now."""
    found, number = [], 0
    while len(found) < count:
        key = f"{prefix}{number}{end}"
        vbucket = vbucket_of(key.encode(), len(cluster.owners))
        if cluster.owners[vbucket] == index:
            found.append(key)
        number += 1
    return found


def fits(test, fixtures):
    """Does it need nothing else?"""
    names = set(fixtures)
    for mark in test.pytestmark:
        if mark.name == "parametrize":
            names |= {name.strip() for name in mark.args[0].split(",")}
    return set(inspect.signature(test).parameters) <= names


def fewer(mark):
    """Of a table's rows the first of each dialect, of a table without dialects the first two: what the
    others show, no world between client and server changes."""
    names, rows = [name.strip() for name in mark.args[0].split(",")], list(mark.args[1])
    if names == ["dialect"]:
        return mark
    values = [getattr(row, "values", row) for row in rows]
    dialects = [row[0] for row in values] if names[0] == "dialect" else [n > 0 for n in range(len(rows))]
    kept = sorted(dialects.index(dialect) for dialect in set(dialects))
    ids = mark.kwargs.get("ids")
    ids = [ids[n] for n in kept] if isinstance(ids, (list, tuple)) else ids
    return pytest.mark.parametrize(mark.args[0], [rows[n] for n in kept], ids=ids).mark


def copy_of(test, module):
    """With the marks of its module, and thorough: the same once more, in another world."""
    copy = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__,
                              test.__closure__)
    of_module = getattr(module, "pytestmark", [])
    of_module = of_module if isinstance(of_module, list) else [of_module]
    marks = [*getattr(test, "pytestmark", []), *(mark.mark for mark in of_module)]
    copy.pytestmark = [fewer(mark) if mark.name == "parametrize" else mark for mark in marks]
    copy.pytestmark.append(pytest.mark.thorough.mark)
    return copy


def adopt(module, fixtures, left_out, into):
    """Copies a module's tests that need no other fixtures, for fixtures of the adopting module."""
    area = module.__name__.removeprefix("test_").removeprefix("dialects_")
    for name, test in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(test) and name not in left_out:
            copy = copy_of(test, module)
            if fits(copy, fixtures):
                into[f"test_{area}_{name.removeprefix('test_')}"] = copy
