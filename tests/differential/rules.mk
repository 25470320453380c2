# SPDX-License-Identifier: BSD-3-Clause
# The daemon against memcached itself: see tests/differential/differential.

.PHONY: differential
differential: all ## random requests to the daemon and to a memcached, answers compared (DIFF_ARGS=...)
	MCLISTD=$(BIN) MCLISTD_RUNNER="$(RUNNER)" tests/differential/differential $(DIFF_ARGS)
