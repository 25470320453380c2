/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs with intents, for scripts (support_engine.h) about list "k". */
#ifndef SUPPORT_INTENTS_H
#define SUPPORT_INTENTS_H

#include "support_engine.h"

#define T "ttttttttttttt"
#define U "uuuuuuuuuuuuu"
#define COMMITS(name) "&15:" name " c"
#define ABORTS(name) "&15:" name " a"
/* Of lists first and k, and k and other; each adds b to k. */
#define INTENT(name) "?39:" name ".1700000000 2 first k +1:b"
#define OWN_INTENT(name) "?39:" name ".1700000000 2 k other +1:b"
/* The same intent in list first. */
#define FIRST(name) "?39:" name ".1700000000 2 first k -1:b"
/* What list k keeps of it once it is committed. */
#define RESIDUE "?35:" T ".1700000000 2 k other " COMMITS(T)

/* The engine must send this next, with just that value, for that key; it is answered so. */
void expect_change(struct script *s, enum be_verb verb, const char *key, const char *value,
                   enum be_status status);
#define expect_append(s, key, value, status) expect_change(s, BE_APPEND, key, value, status)
#define expect_cas(s, key, value, status) expect_change(s, BE_CAS, key, value, status)
/* It must write that under k# next (NULL: whatever), with that time to live; it is stored. */
void expect_write(struct script *s, enum be_verb verb, const char *value, int32_t exptime);
/* Asks how long list k is; the engine reads that head. */
void read_list(struct script *s, const char *head);
/* The call must answer that number. */
void expect_count(struct script *s, uint64_t count);
/* The call must end with that error. */
void expect_error(struct script *s, const char *text);

#endif
