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

const char *said_of(const char *text)
{
    struct config *config = config_create();
    const char *said = "ok";
    if (load_text(config, text) != 0) {
        size_t n = strlen(config_path);
        assert_memory_equal(config_error, config_path, n);
        said = config_error + n;
    }
    config_destroy(&config);
    return said;
}

void refused(const char *text, const char *expected)
{
    assert_string_equal(said_of(text), expected);
}
