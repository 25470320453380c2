# SPDX-License-Identifier: BSD-3-Clause
# The fake Couchbase cluster, and its own tests.

.PHONY: cluster
cluster: ## tests of the fake Couchbase cluster: documents beside memcached's, maps, failover
	$(PYTHON) -m pytest -q -p no:cacheprovider tests/cluster
