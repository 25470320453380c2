/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_intents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void expect_change(struct script *s, enum be_verb verb, const char *key, const char *value,
                   enum be_status status)
{
    struct list_request *r = rig_take(&s->rig, verb, key);
    if (!slice_equal(r->be.value, slice_of(value))) {
        print_error("sent: %.*s\nwanted: %s\n", SLICE_ARGS(r->be.value), value);
    }
    assert_true(slice_equal(r->be.value, slice_of(value)));
    rig_answer(&s->rig, r, status, NULL, -1);
}

void expect_write(struct script *s, enum be_verb verb, const char *value, int32_t exptime)
{
    struct list_request *r = rig_take(&s->rig, verb, "k#");
    if (value != NULL && !slice_equal(r->be.value, slice_of(value))) {
        print_error("written: %.*s\n", SLICE_ARGS(r->be.value));
    }
    assert_true(value == NULL || slice_equal(r->be.value, slice_of(value)));
    assert_int_equal(r->be.exptime, exptime);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
}

void read_list(struct script *s, const char *head)
{
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
}

void expect_count(struct script *s, uint64_t count)
{
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, count);
}

void expect_error(struct script *s, const char *text)
{
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error, text);
}
