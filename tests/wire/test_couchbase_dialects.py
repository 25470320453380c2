# SPDX-License-Identifier: BSD-3-Clause
"""Hand-made lists in a bucket: the tests of dialects, once more before the fake cluster. Its clients by
hand speak to a plain proxy before the same bucket."""

import pytest

import test_dialects_compact
import test_dialects_foreign
import test_dialects_hand
import test_dialects_logs
import test_dialects_manual
import test_dialects_pipelines
import test_dialects_ring
import test_dialects_rounds
from couchbase_support import adopt, documents
from harness import SLOW

MODULES = [test_dialects_compact, test_dialects_foreign, test_dialects_hand, test_dialects_logs,
           test_dialects_manual, test_dialects_pipelines, test_dialects_ring, test_dialects_rounds]
FIXTURES = {"memcached", "start_daemon", "hand"}
NOT_HERE = {
    # ask for a memcached's number of items
    "test_a_list_that_is_not_there",
    "test_a_dropped_ring_is_empty_and_counts_on",
    # the cluster's nodes, which are slow, serve its four writers by hand first
    "test_deletions_get_through_among_four_writers_by_hand",
    # has a configuration of its own
    "test_each_example_works_with_four_lines_of_configuration",
}


@pytest.fixture
def start_daemon(start_daemon, cluster, tmp_path):
    """Where a test names memcacheds, the bucket is taken instead."""

    def start(_servers=(), config=None, **options):
        config = {name: dict(section) for name, section in (config or {}).items()}
        config.setdefault("proxy", {})["allow_flush_all"] = "no"
        config["pool documents"] = documents(cluster, tmp_path, timeout_ms=int(3000 * SLOW))
        return start_daemon(config=config, **options)

    return start


@pytest.fixture
def memcached(start_daemon):
    return start_daemon(config={"lists": {"protect_lists": "no"}})


hand = test_dialects_hand.hand
pymemcache = test_dialects_hand.pymemcache


for each in MODULES:
    adopt(each, FIXTURES, NOT_HERE, globals())
