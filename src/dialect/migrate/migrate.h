/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a dialect to the native layout, list by list, while the lists are in use (migrate = native).
 *
 * The item under the list's own key says in which of the two layouts a list is:
 *
 *     a record of a move    the list is native; its first head stands in the record
 *     another value         the list is in its dialect, if that stores something under the key
 *     nothing               the list is native if it has a head; else in its dialect, if it has
 *                           items there; else there is no list, and additions make a native one.
 *                           Where the dialect has several items, the empty list is converted
 *                           first, since other proxies may be adding to it in its dialect
 *
 * Order of writes:
 *
 *     1. ADD the sublists of a run that no head names yet
 *     2. CAS (or ADD) the item under the list's key: the record. From here on the list is native.
 *     3. ADD the head, with what came to the dialect's items since they were read
 *     4. DELETE the dialect's items, then the record
 *
 * A proxy that meets a record does steps 3 and 4 before anything else. Native heads are not removed
 * meanwhile, so that a late step 3 finds one; but their time may be over. So a proxy does no step 3
 * for a record that it has seen too long ago. Changes in a dialect of one item go by CAS, so none
 * can come behind the record. In the other dialects the proxy looks for a record or a head after it
 * has written, and repeats its changes on the native list if there is one. It deletes again what
 * was written behind step 4.
 */
#ifndef DIALECT_MIGRATE_MIGRATE_H
#define DIALECT_MIGRATE_MIGRATE_H

#include "dialect/shared/dialect.h"
#include "dialect/shared/record.h"

/* For lists with migrate = native. */
extern const struct migration migration_native;

/* The state of an operation on such a list. */
struct move {
    struct cell control; /* the item under the list's key */
    uint64_t asked_us;   /* when that was asked for */
    uint64_t record_cas;
    bool stands; /* the record, as it was when it was met */
    bool head_there;
    bool head_is_foreign;
    bool taken;                 /* there is a head, and another proxy has written it */
    bool imported_again;        /* sublists were written for a head other than the record's */
    struct name_range replaced; /* the run of the record's head; count 0: none */
    bool has_import;            /* the sublists of import were written */
    bool inlined;               /* the items are in the head */
    struct run import;
    struct fold imported; /* what the list held when import was written */
    struct block *head;
};

#endif
