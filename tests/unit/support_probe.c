/* SPDX-License-Identifier: BSD-3-Clause */
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support_probe.h"

static unsigned turns;

static void on_done(struct exchange *x, const struct be_reply *reply)
{
    struct probe *p = x->owner;
    assert_false(p->done);
    p->done = true;
    p->status = (int)reply->status;
    p->epoch = reply->epoch;
    p->no_times = reply->status != BE_ANSWERED && reply->no_times;
    p->turn = ++turns;
    snprintf(p->line, sizeof p->line, "%.*s", SLICE_ARGS(reply->line));
    snprintf(p->text, sizeof p->text, "%s", reply->text != NULL ? reply->text : "");
    if (reply->has_value) {
        p->value = reply->value;
        p->block = block_ref(reply->block);
    }
}

enum be_verb probe_verb(const char *line)
{
    return line[0] == 'g'                             ? BE_LINE_GET
           : line[0] == 'm' && strchr("gne", line[1]) ? BE_LINE_READ
                                                      : BE_LINE;
}

static void submit_it(struct fake_world *w, struct probe *p)
{
    p->done = false;
    p->x.done = on_done;
    p->x.owner = p;
    pool_submit(w->pool, SLICE_LIT("key"), &p->x);
    assert_false(p->done); /* never from within */
}

void submit(struct fake_world *w, struct probe *p, const char *line)
{
    p->x.op.form = fake_line_form(line);
    p->x.op.verb = probe_verb(line);
    p->x.op.line = slice_of(line);
    submit_it(w, p);
}

void submit_operation(struct fake_world *w, struct probe *p, enum be_verb verb, const char *value)
{
    p->x.op.verb = verb;
    p->x.op.key = SLICE_LIT("key");
    p->x.op.value = value == NULL ? SLICE_NONE : slice_of(value);
    submit_it(w, p);
}

void expect_answer(struct fake_world *w, struct probe *p, const char *line)
{
    fake_until(w, &p->done);
    assert_int_equal(p->status, BE_ANSWERED);
    assert_string_equal(p->line, line);
    assert_true(p->epoch != 0);
}

void expect_end(struct fake_world *w, struct probe *p, int status, const char *text)
{
    fake_until(w, &p->done);
    assert_string_equal(p->text, text);
    assert_int_equal(p->status, status);
}

uint64_t warm_up(struct fake_world *w)
{
    struct probe p = {0};
    submit(w, &p, "mn\r\n");
    fake_until_got(w, 4);
    fake_say(&w->server, "MN\r\n");
    expect_answer(w, &p, "MN");
    fake_forget(&w->server);
    return p.epoch;
}

int probe_setup(void **state)
{
    static struct fake_world w;
    fake_world_init(&w);
    *state = &w;
    return 0;
}

int probe_teardown(void **state)
{
    fake_world_fini(*state);
    return 0;
}
