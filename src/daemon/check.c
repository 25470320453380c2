/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "config/tls_files.h"
#include "os/user.h"
#include "proxy/listen/listen_set.h"
#include "proxy/preview.h"

/* Paths and names may have any bytes: what is shown of them does nothing to a terminal. */
static void show(FILE *out, const char *text, bool lines)
{
    for (; *text != '\0'; text++) {
        bool control = (unsigned char)*text < ' ' || *text == 0x7f;
        fputc(control && !(lines && *text == '\n') ? '?' : *text, out);
    }
}

/* Keys of one section come together; the heading is printed when the section changes. */
struct printer {
    char section[1200];
};

static void print_setting(void *arg, const char *section, const char *key, const char *value,
                          const char *origin)
{
    struct printer *printer = arg;
    if (strcmp(printer->section, section) != 0) {
        printf("%s[%s]\n", printer->section[0] == '\0' ? "" : "\n", section);
        (void)snprintf(printer->section, sizeof printer->section, "%s", section);
    }
    printf("%s = ", key);
    show(stdout, value, false);
    printf("%s", origin[0] == '\0' ? "" : " # ");
    show(stdout, origin, false);
    printf("\n");
}

int check_refuse_log(const char *path)
{
    const char *reason = strerror(errno);
    fprintf(stderr, "mclistd: log_file ");
    show(stderr, path, false);
    fprintf(stderr, " cannot be opened: %s\n", reason);
    return EX_CANTCREAT;
}

/* What a start would refuse as well, though the file itself is in order. */
static int check_names(const struct config *config)
{
    char error[CONFIG_ERROR_MAX];
    struct os_user user;
    const char *log_file = config->log_file;
    int code = EX_OK;
    if (log_file[0] != '\0' && log_check(log_file) != 0) {
        return check_refuse_log(log_file);
    }
    if (tls_files_check(config, error) != 0) {
        code = EX_CONFIG;
    } else if (os_user_find(config, &user, error) != 0) {
        code = EX_NOUSER;
    } else if (listen_set_check_group(config->socket_group, error) != 0 ||
               listen_set_check_group(config->admin.socket_group, error) != 0) {
        code = EX_UNAVAILABLE;
    }
    if (code != EX_OK) {
        fprintf(stderr, "mclistd: %s\n", error);
    }
    return code;
}

static int report(const struct options *options, const struct config *config)
{
    const char *path = options->config_path;
    if (options->more_log > 0) {
        struct printer printer = {""};
        printf("# What the configuration or an option says has a mark behind it; all else is a "
               "default.\n");
        config_print(config, print_setting, &printer);
    }
    char *text = NULL;
    size_t len;
    FILE *memory = open_memstream(&text, &len);
    CHECK(memory != NULL);
    size_t unknown = preview_print(config, memory);
    CHECK(fclose(memory) == 0);
    show(stderr, text, true);
    free(text);
    fprintf(stderr, "mclistd: the configuration%s", path == NULL ? "" : " ");
    show(stderr, path == NULL ? "" : path, false);
    fprintf(stderr, " is good");
    if (unknown > 0) {
        fprintf(stderr, ", but %zu name%s no address now", unknown,
                unknown == 1 ? " has" : "s have");
    }
    fprintf(stderr, "\n");
    return options->probe ? preview_probe(config, stderr) : EX_OK;
}

int check_config(const struct options *options, const struct config *config)
{
    int code = check_names(config);
    return code == EX_OK ? report(options, config) : code;
}
