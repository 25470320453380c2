/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/handshake.h"

#include <stdio.h>

#include "proto/server/backend_parse.h"

/* The first version with `HD` and all that the proxy asks by `mg`. */
static const uint64_t version_needed[3] = {1, 6, 10};

/* "1.6.18_beta2" -> 1 6 18. False when there are no three numbers. */
static bool parse_version(struct slice text, uint64_t parts[3])
{
    for (int i = 0; i < 3; i++) {
        size_t n = 0;
        while (n < text.len && text.p[n] >= '0' && text.p[n] <= '9') {
            n++;
        }
        if (!slice_to_u64(slice_make(text.p, n), &parts[i])) {
            return false;
        }
        (void)slice_take(&text, n);
        if (i < 2 && (text.len == 0 || text.p[0] != '.')) {
            return false;
        }
        if (i < 2) {
            (void)slice_take(&text, 1);
        }
    }
    return true;
}

static bool is_old(const uint64_t parts[3])
{
    for (int i = 0; i < 3; i++) {
        if (parts[i] != version_needed[i]) {
            return parts[i] < version_needed[i];
        }
    }
    return false;
}

static enum handshake_result take_version(struct handshake *hs, struct slice line,
                                          char error[HANDSHAKE_ERROR_MAX])
{
    uint64_t parts[3];
    struct slice version = line;
    /* What a memcached says to a connection above its -c, before it closes it. */
    if (slice_equal(line, SLICE_LIT("ERROR Too many open connections"))) {
        snprintf(error, HANDSHAKE_ERROR_MAX, "too many open connections, raise its -c");
        return HANDSHAKE_REFUSED;
    }
    if (!slice_starts_with(line, SLICE_LIT("VERSION "))) {
        char answer[64];
        snprintf(error, HANDSHAKE_ERROR_MAX, "no memcached, it answers \"%s\"",
                 backend_line_text(line, answer, sizeof answer));
        return HANDSHAKE_REFUSED;
    }
    (void)slice_take(&version, 8);
    backend_line_text(version, hs->version, sizeof hs->version);
    if (!parse_version(version, parts) || is_old(parts)) {
        snprintf(error, HANDSHAKE_ERROR_MAX, "memcached 1.6.10 or newer is needed, it is %s",
                 hs->version);
        return HANDSHAKE_REFUSED;
    }
    hs->version_known = true;
    return HANDSHAKE_MORE;
}

static void take_setting(struct handshake *hs, struct slice line)
{
    static const struct slice item_size_max = {"STAT item_size_max ", 19};
    if (slice_starts_with(line, item_size_max)) {
        (void)slice_take(&line, item_size_max.len);
        if (!slice_to_u64(line, &hs->item_size_max)) {
            hs->item_size_max = 0;
        }
    } else if (slice_equal(line, SLICE_LIT("STAT cas_enabled no"))) {
        hs->cas_disabled = true;
    } else if (slice_equal(line, SLICE_LIT("STAT flush_enabled no"))) {
        hs->flush_disabled = true;
    } else if (slice_equal(line, SLICE_LIT("STAT evictions off"))) {
        hs->evictions_disabled = true;
    }
}

enum handshake_result handshake_line(struct handshake *hs, struct slice line,
                                     char error[HANDSHAKE_ERROR_MAX])
{
    if (!hs->version_known) {
        return take_version(hs, line, error);
    }
    if (slice_starts_with(line, SLICE_LIT("STAT "))) {
        take_setting(hs, line);
        return HANDSHAKE_MORE;
    }
    /* A server that does not tell its settings is taken with the defaults. */
    if (slice_equal(line, SLICE_LIT("END")) || slice_starts_with(line, SLICE_LIT("ERROR")) ||
        slice_starts_with(line, SLICE_LIT("CLIENT_ERROR")) ||
        slice_starts_with(line, SLICE_LIT("SERVER_ERROR"))) {
        return HANDSHAKE_DONE;
    }
    char answer[64];
    snprintf(error, HANDSHAKE_ERROR_MAX, "no memcached, it answers \"%s\"",
             backend_line_text(line, answer, sizeof answer));
    return HANDSHAKE_REFUSED;
}
