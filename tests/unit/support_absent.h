/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of lists that are missing though they have a head (on_missing = refuse).
 */
#ifndef SUPPORT_ABSENT_H
#define SUPPORT_ABSENT_H

#include <stdio.h>

#include "support_engine.h"

#define NAME "aaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbb"
/* The rig's clock shows 1700000000. */
#define LEASED "^1 ?77.1700000030\n"
#define OVER "^1 ?77.1699999999\n"
#define YOUNG "~26:" NAME ".1.1700000000"
#define DEAD "~26:" NAME ".1.1600000000"

static inline int refuse_setup(void **state)
{
    (void)script_setup(state);
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    return 0;
}

/* The next request carries that value, and lives so many seconds. */
static inline void expect_write(struct script *s, enum be_verb verb, const char *value,
                                int32_t exptime, enum be_status status)
{
    struct list_request *request = rig_take(&s->rig, verb, "k#");
    char text[256];
    snprintf(text, sizeof text, "%.*s", SLICE_ARGS(request->be.value));
    assert_string_equal(text, value);
    assert_int_equal(request->be.exptime, exptime);
    rig_answer(&s->rig, request, status, NULL, -1);
}

/* A head that has so many seconds to live is read. */
static inline void show_head(struct script *s, const char *value, int64_t ttl_s)
{
    rig_answer(&s->rig, rig_take(&s->rig, BE_GET, "k#"), BE_HIT, value, ttl_s);
}

static inline void ask_lease(struct script *s, int64_t seconds)
{
    s->call.seconds = seconds;
    script_submit(s, LIST_LEASE, NULL, 0);
}

/* ---- it reads as missing ---- */

#define refuse_test(name) cmocka_unit_test_setup_teardown(name, refuse_setup, script_teardown)

#endif
