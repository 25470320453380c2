# SPDX-License-Identifier: BSD-3-Clause

.PHONY: teeth
teeth: ## plants faults into the list engine; the simulator must find every one (FAULTS="name name")
	@B=$(B)/faults CC='$(CC)' scripts/plant-faults $(FAULTS)
