# SPDX-License-Identifier: BSD-3-Clause

.PHONY: mutants
mutants: ## plants faults into the list engine; the simulator must find every one (MUTANTS="name name")
	@B=$(B)/mutants CC='$(CC)' scripts/run-mutants $(MUTANTS)
