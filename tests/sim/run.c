/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

/* Processor time of a run that neither ends nor breaks a rule. */
#define HANGS_AFTER_S 60

static void crashed(int number)
{
    trace_show();
    if (number == SIGPROF) {
        printf("VIOLATION: no end within %d s of processor time\n", HANGS_AFTER_S);
    } else {
        printf("VIOLATION: ended by signal %d\n", number);
    }
    fflush(stdout);
    sim_report(number == SIGPROF ? "end" : "signal");
    _Exit(3);
}

pid_t run_start(const struct params *params, enum trace_mode mode, bool quiet)
{
    fflush(stdout);
    pid_t child = fork();
    if (child != 0) {
        if (child < 0) {
            perror("sim");
        }
        return child;
    }
    if (quiet && (freopen("/dev/null", "w", stdout) == NULL || close(STDERR_FILENO) != 0)) {
        exit(2);
    }
    signal(SIGABRT, crashed);
    signal(SIGSEGV, crashed);
    signal(SIGPROF, crashed);
    struct itimerval limit = {.it_value = {.tv_sec = HANGS_AFTER_S}};
    setitimer(ITIMER_PROF, &limit, NULL);
    trace_mode = mode;
    if (mode != TRACE_KEEP) {
        params_print(params);
        fflush(stdout);
    }
    sim_run(params);
    exit(0);
}

bool run_wait(const struct params *params, enum trace_mode mode, bool quiet)
{
    int status = 0;
    pid_t child = run_start(params, mode, quiet);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
