/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mclistd: reads options and configuration, and becomes what they ask for: the daemon
 * (daemon/daemon.h), a check of the configuration (-t), or a prompt (--try).
 */
#include <pthread.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/log.h"
#include "config/config.h"
#include "config/options.h"
#include "daemon/check.h"
#include "daemon/daemon.h"
#include "os/descriptors.h"
#include "os/notify.h"
#include "os/prompt.h"

static int read_config(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    d->config = config_create();
    int code = options_read_config(&d->options, d->config, error);
    if (code != EX_OK) {
        fprintf(stderr, "mclistd: %s\n", error);
    }
    return code;
}

int main(int argc, char **argv)
{
    struct daemon daemon = {.changing = PTHREAD_MUTEX_INITIALIZER};
    descriptors_fill_standard();
    notify_init();
    int code = options_parse(argc, argv, &daemon.options);
    if (code != EX_OK) {
        return code < 0 ? EX_OK : code;
    }
    if (daemon.options.is_try) {
        return prompt_become(argc, argv);
    }
    code = read_config(&daemon);
    if (code == EX_OK && daemon.options.test_only) {
        code = check_config(&daemon.options, daemon.config);
    } else if (code == EX_OK) {
        code = daemon_start(&daemon);
        if (code == EX_OK) {
            daemon_run(&daemon);
        }
    }
    daemon_stop(&daemon);
    log_flush(LOG_FLUSH_MS);
    return code;
}
