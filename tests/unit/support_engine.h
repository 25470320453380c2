/* SPDX-License-Identifier: BSD-3-Clause */
/* A list engine with a configuration of its own, whose backend is the test. */
#ifndef SUPPORT_ENGINE_H
#define SUPPORT_ENGINE_H

#include "list/core/cache.h"
#include "list/engine.h"

struct rig {
    struct config *config;
    struct cache *cache;
    struct rng rng;
    struct metrics metrics;
    struct engine *engine;
    struct now now;
};

/* One pool, one list policy with defaults, nothing cached, a fixed time and fixed random numbers.
 */
void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);
/* The next request, for which the rig's clock may go on. */
struct list_request *rig_next(struct rig *rig);
/* The engine must send this next, for that key; the clock moves on as far as the engine waits for
 * that. Returns the request, which is to be answered. */
struct list_request *rig_take(struct rig *rig, enum be_verb verb, const char *key);
/* Gives the request back with a reply; value: of a hit, or NULL. ttl_s: -1 = no expiry. */
void rig_answer(struct rig *rig, struct list_request *request, enum be_status status,
                const char *value, int64_t ttl_s);
/* The same with that CAS number; rig_answer gives always the same. */
void rig_answer_cas(struct rig *rig, struct list_request *request, enum be_status status,
                    const char *value, int64_t ttl_s, uint64_t cas);
/* Answers the two clock items around the head of "k", which say that now it is that second, and the
 * question after the head in between. */
void rig_answer_clock(struct rig *rig, enum be_status head, int64_t left_s, int64_t now_s);

/* One call of one session for the list "k", and the conversation with the backend that it takes. */
struct script {
    struct rig rig;
    struct list_session session;
    struct list_call call;
};

/* For cmocka: *state is a script whose call is not submitted yet. */
int script_setup(void **state);
int script_teardown(void **state);
#define script_test(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
/* items: must stay until the call is done. */
void script_submit(struct script *s, enum list_verb verb, const struct slice *items, size_t count);
/* rig_take and rig_answer, for an item without expiry. */
void script_expect(struct script *s, enum be_verb verb, const char *key, enum be_status status,
                   const char *value);
/* Of a list in two logs, k.a and k.b, with k.active: answers what is read with these values, NULL
 * where nothing is, until something is written. Returns that. */
struct list_request *script_next_write(struct script *s, const char *a, const char *b,
                                       const char *pointer);
/* The call is done, and has ended so; the engine may go on behind it. */
void script_expect_answer(struct script *s, enum list_status status);
/* The same, and the engine must send nothing more. */
void script_expect_done(struct script *s, enum list_status status);

#endif
