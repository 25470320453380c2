/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *worker_scratch(struct worker *w, size_t len)
{
    if (len > w->scratch_cap) {
        free(w->scratch);
        w->scratch_cap = len * 2;
        w->scratch = malloc(w->scratch_cap);
        CHECK(w->scratch != NULL);
    }
    return w->scratch;
}

void worker_wake(struct worker *w)
{
    uint64_t one = 1;
    if (write(w->wake_fd, &one, sizeof one) < 0) {
        log_warn("cannot wake a worker: %s", strerror(errno));
    }
}
