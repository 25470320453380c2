/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a struct mclistd: sends the requests that mclistd.c has written, and reads
 * their answers. Not to be installed. */
#ifndef MCLISTD_WIRE_H
#define MCLISTD_WIRE_H

#include "mclistd.h"

#define LINE_BYTES_MAX 65536
#define ERROR_BYTES 512
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* What an answer has to look like. */
enum shape { DONE, NUMBER, TOKEN, ITEMS, WHOLE, VERSIONED, EACH, STATS };

struct buffer {
    char *bytes;
    size_t used, room;
};

struct call {
    enum shape shape;
    size_t end; /* of its request in `requests` */
};

/* VALUE, ITEM or STAT: places in an answer's bytes. */
struct block {
    size_t name, data, data_bytes;
    long long version;
    bool is_value;
};

/* A result, and what it points to. */
struct answer {
    struct buffer bytes;
    struct block *blocks;
    size_t block_count, block_room;
    struct mclistd_item *items;
    struct mclistd_group *groups;
    char error[ERROR_BYTES];
};

struct mclistd {
    char *host, *port; /* port is NULL for the path of a unix socket */
    char *login;
    int timeout_ms, fd;
    char delimiter;
    struct buffer requests;
    bool bad, no_memory, pipelining;
    struct call *calls;
    size_t call_count, call_room;
    struct answer *answers; /* with results: one for each call of the last run */
    struct mclistd_result *results;
    size_t answer_count;
    struct mclistd_result other; /* of a call that is queued, or is not sent */
    char in[LINE_BYTES_MAX];
    size_t in_start, in_end;
    char why[ERROR_BYTES]; /* the connection is lost */
};

/* Makes room for so many elements of this size in *array, which has *room. False: no memory. */
bool mclistd_make_room(void **array, size_t *room, size_t wanted, size_t size);

/* False: no memory, and nothing is appended. */
bool mclistd_append(struct buffer *to, const void *bytes, size_t count);

/* Sends all calls and reads their answers: fills results, which like answers has an element for
 * each call. */
void mclistd_run_calls(struct mclistd *lists);

/* Frees answers and results. */
void mclistd_free_answers(struct mclistd *lists);

#endif
