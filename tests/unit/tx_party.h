/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proxies that change several lists in one step, brought forward request by request over a store in
 * memory: each answer may be lost, late or an error, and others may come in between any two.
 */
#ifndef UNIT_TX_PARTY_H
#define UNIT_TX_PARTY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../world/store.h"
#include "support_engine.h"

#define PARTY_LISTS_MAX 3

enum fault {
    FAULT_NONE,
    FAULT_REPLY_LOST,   /* the request is done, its answer is lost */
    FAULT_REQUEST_LOST, /* it never arrives */
    FAULT_LATE,         /* it arrives when all is over */
    FAULT_NOT_STORED,   /* an append is refused by a server that has no memory for it */
    FAULT_DOWN,         /* it is not sent */
    FAULT_COUNT
};

/* A proxy with one client. */
struct party {
    struct rig rig;
    struct list_session session;
    struct list_call call;
    struct call_list lists[PARTY_LISTS_MAX];
    struct tx_change changes[PARTY_LISTS_MAX][3];
    bool done;
    unsigned steps;
};

struct tx_test {
    struct store store;
    struct party tx, other, reader;
    unsigned fault_at, fault_count; /* steps of tx that go wrong: from that one on, so many */
    enum fault fault;
    struct list_request late[8];
    struct block *late_values[8];
    size_t late_count;
    unsigned hook_at; /* a step of tx, in front of which another party does something */
    void (*hook)(struct tx_test *t);
    unsigned second_at; /* the same once more */
    void (*second)(struct tx_test *t);
};

/* For cmocka: *state is a tx_test whose lists take transactions. */
int tx_setup(void **state);
int tx_teardown(void **state);
void tx_begin_anew(void **state);
#define tx_test(name) cmocka_unit_test_setup_teardown(name, tx_setup, tx_teardown)
/* The setting of the lists, for all parties. */
struct list_policy *tx_policy(struct party *p);

/* A write past all proxies; what an item's value is. */
enum be_status tx_write_raw(struct tx_test *t, enum be_verb verb, const char *key,
                            const char *value);
void tx_assert_head(struct tx_test *t, const char *key, const char *value);
/* "a", "b" and "c" hold p, q and r. */
void tx_make_lists(struct tx_test *t);
void tx_late_ones_arrive(struct tx_test *t);

/* Answers a request. */
void tx_answer(struct tx_test *t, struct party *p, struct list_request *r, enum fault fault);
/* Brings the party forward by one answer. False when it is at rest. */
bool tx_step(struct tx_test *t, struct party *p);
/* Until it is at rest; its call must be done then. */
void tx_run(struct tx_test *t, struct party *p);

/* Lists and changes of the next call; items stay until it is done. */
void tx_name_list(struct party *p, size_t i, const char *key);
void tx_also(struct party *p, enum tx_op op, const struct slice *items, size_t count);
void tx_submit(struct party *p, enum list_verb verb);

extern const struct slice tx_x, tx_y, tx_z;
/* ltx: x joins "a", and y "b"; z "c" as well. */
void tx_submit_two(struct party *p);
void tx_submit_three(struct party *p);
/* Makes the lists, and runs tx_submit_two to its end; in front of that step the hook is called. */
void tx_run_two(struct tx_test *t, unsigned hook_at, void (*hook)(struct tx_test *t));

/* Is the item in the list, as another proxy sees it? */
bool tx_has(struct tx_test *t, const char *key, struct slice item);

enum outcome { DONE, NOTHING_DONE, UNKNOWN };
enum outcome tx_outcome(const struct party *p);
/* "a" and "b", and "c" with three, hold all that the transaction adds, or nothing of it, as the
 * client was told. */
void tx_assert_as_told(struct tx_test *t, bool three);

#endif
