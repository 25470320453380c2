/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpurge: lists name plain items, which are deleted, and then the names leave the list. After each
 * write that takes names off, each of them must have had its item deleted since it was added last.
 * Items of lists are the names of plain items here, of all lists the same ones. Draws are its own,
 * so that the other draws of a seed stay.
 */
#ifndef SIM_TAGS_H
#define SIM_TAGS_H

#include "oracle.h"

struct params;

/* An lpurge instead of that verb, now and then; while one is under way, an addition more often than
 * not. number: of the call. */
enum list_verb tags_choose(const struct oracle *o, const struct params *p, uint64_t number,
                           enum list_verb verb);
/* The call was asked. */
void tags_asked(struct oracle *o, const struct sim_call *call);

/* Is it the key of a plain item? */
bool tags_is_plain(const struct params *p, const struct list_request *request);
/* A server has executed a request for a plain item. */
void tags_executed(struct oracle *o, const struct list_request *request, enum be_status status);

/* The call has added its items, unless it is an laddx. */
void tags_added(struct oracle *o, const struct sim_call *call);
/* An laddx takes effect. before: what the list holds just before it, behind the changes that the
 * same request carries in front of it: an ldelx may have taken off what the laddx adds again. What
 * is in there is not written. */
void tags_added_exactly(struct oracle *o, const struct sim_call *call, const struct ids *before);
/* A transaction that was committed has added it to that list. */
void tags_committed(struct oracle *o, unsigned list, uint16_t id);
/* The commit of a transaction that has these entries for the list is lost: the list may never hear
 * of it. */
void tags_forgotten(struct oracle *o, unsigned list, struct slice entries);
/* Its client has been told so. */
void tags_told(struct oracle *o, const struct sim_call *call, unsigned list, uint16_t id);
/* It was answered so. */
void tags_answered(struct oracle *o, const struct sim_call *call);

/* An lpurge has written a head: which names it takes off is up to it. */
void tags_written(struct oracle *o, unsigned list, const struct purpose *purpose,
                  const struct list_request *request);
/* The lpurge has written the list, which holds items now. */
void tags_purged(struct oracle *o, struct sim_call *call, const struct ids *items);
/* Is the answer right, which is no error? Returns what is wrong, or NULL. */
const char *tags_judge(const struct oracle *o, const struct sim_call *call);

#endif
