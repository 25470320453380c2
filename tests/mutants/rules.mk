# SPDX-License-Identifier: BSD-3-Clause

.PHONY: mutants
mutants: ## plants known faults; the simulator, or the test that is named, must find each (MUTANTS="name name")
	@B=$(B)/mutants CC='$(CC)' scripts/run-mutants $(MUTANTS)
