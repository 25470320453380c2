/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

char config_error[CONFIG_ERROR_MAX];
char config_path[64];

int config_load_bytes(struct config *config, const void *text, size_t len)
{
    (void)snprintf(config_path, sizeof config_path, "/tmp/test_config.XXXXXX");
    int fd = mkstemp(config_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
    config_error[0] = '\0';
    int result = config_load(config, config_path, config_error);
    unlink(config_path);
    return result;
}

void assert_config_error(const char *expected)
{
    size_t n = strlen(config_path);
    assert_memory_equal(config_error, config_path, n);
    assert_string_equal(config_error + n, expected);
}

static int load_text(struct config *config, const char *text)
{
    int result = config_load_bytes(config, text, strlen(text));
    return result != 0 ? result : config_finish(config, config_error);
}

struct config *good(const char *text)
{
    struct config *config = config_create();
    if (load_text(config, text) != 0) {
        fail_msg("%s: %s", text, config_error);
    }
    return config;
}

void accepted(const char *text)
{
    struct config *config = good(text);
    config_destroy(&config);
}

void refused(const char *text, const char *expected)
{
    struct config *config = config_create();
    assert_int_equal(load_text(config, text), -1);
    assert_config_error(expected);
    config_destroy(&config);
}
