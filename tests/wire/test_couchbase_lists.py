# SPDX-License-Identifier: BSD-3-Clause
"""Lists on a pool of type couchbase: the tests of list verbs, once more before the fake cluster."""

import pytest

import test_bridge
import test_bridge_time
import test_capped
import test_copy
import test_joint
import test_leases
import test_list_errors
import test_list_verbs
import test_order
import test_pop
import test_purge
import test_put
import test_timed
import test_transactions
import test_transactions_refused
import test_ttl
from couchbase_support import adopt, documents
from harness import SLOW

MODULES = [test_bridge, test_bridge_time, test_capped, test_copy, test_joint, test_leases,
           test_list_errors, test_list_verbs, test_order, test_pop, test_purge, test_put, test_timed,
           test_transactions, test_transactions_refused, test_ttl]
# What asks for flags of meta commands that such a pool does not have, and for the seconds left of a
# plain key whose time is over: 0 there. And memcacheds with an -I of their own.
NOT_HERE = {"test_an_item_size_that_is_too_small_for_the_items_is_named",
            "test_a_lease_keeps_a_late_reader_from_storing_what_is_old",
            "test_a_time_that_is_over_is_shown_without_a_sign"}


@pytest.fixture
def daemon(request, cluster, start_daemon, tmp_path):
    sections = {"proxy": {"allow_flush_all": "no"}, "pool documents": documents(cluster, tmp_path, timeout_ms=int(3000 * SLOW))}
    for mark in reversed(list(request.node.iter_markers("config"))):
        for section, settings in mark.kwargs.items():
            sections.setdefault(section, {}).update(settings)
    return start_daemon(config=sections)


for each in MODULES:
    adopt(each, {"conn", "daemon"}, NOT_HERE, globals())
