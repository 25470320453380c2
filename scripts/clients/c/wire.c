/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BATCH_BYTES 16384 /* of a pipeline, sent before its answers are read */

/* --- memory --- */

bool mclistd_make_room(void **array, size_t *room, size_t wanted, size_t size)
{
    if (wanted <= *room) {
        return true;
    }
    size_t more = *room * 2 > wanted ? *room * 2 : wanted + 16;
    void *bigger = more < SIZE_MAX / size ? realloc(*array, more * size) : NULL;
    if (bigger == NULL) {
        return false;
    }
    *array = bigger;
    *room = more;
    return true;
}

bool mclistd_append(struct buffer *to, const void *bytes, size_t count)
{
    if (!mclistd_make_room((void **)&to->bytes, &to->room, to->used + count, 1)) {
        return false;
    }
    if (count > 0) {
        memcpy(to->bytes + to->used, bytes, count);
    }
    to->used += count;
    return true;
}

void mclistd_free_answers(struct mclistd *l)
{
    for (size_t i = 0; i < l->answer_count; i++) {
        free(l->answers[i].bytes.bytes);
        free(l->answers[i].blocks);
        free(l->answers[i].items);
        free(l->answers[i].groups);
    }
    free(l->answers);
    free(l->results);
    l->answers = NULL;
    l->results = NULL;
    l->answer_count = 0;
}

struct mclistd *mclistd_open(const char *address, const struct mclistd_options *options)
{
    static const struct mclistd_options defaults;
    const struct mclistd_options *o = options != NULL ? options : &defaults;
    struct mclistd *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    l->fd = -1;
    l->timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : 3000;
    l->delimiter = o->delimiter != '\0' ? o->delimiter : ',';
    const char *colon = strrchr(address, ':');
    if (strncmp(address, "unix:", 5) == 0) {
        l->host = strdup(address + 5);
    } else if (colon != NULL) {
        bool bracketed = address[0] == '[' && colon > address + 1 && colon[-1] == ']';
        l->host = strndup(address + bracketed, (size_t)(colon - address) - 2 * (size_t)bracketed);
        l->port = strdup(colon + 1);
    }
    l->login = o->login != NULL ? strdup(o->login) : NULL;
    bool is_tcp = strncmp(address, "unix:", 5) != 0;
    if (l->host == NULL || (is_tcp && l->port == NULL) || (o->login != NULL && l->login == NULL)) {
        mclistd_close(&l);
    }
    return l;
}

static void disconnect(struct mclistd *l)
{
    if (l->fd >= 0) {
        close(l->fd);
    }
    l->fd = -1;
    l->in_start = l->in_end = 0;
}

void mclistd_close(struct mclistd **lists)
{
    struct mclistd *l = *lists;
    *lists = NULL;
    if (l == NULL) {
        return;
    }
    disconnect(l);
    mclistd_free_answers(l);
    free(l->requests.bytes);
    free(l->calls);
    free(l->host);
    free(l->port);
    free(l->login);
    free(l);
}

/* --- the connection --- */

/* Returns false, so that callers can return it. */
__attribute__((format(printf, 2, 3))) static bool lost(struct mclistd *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->why, sizeof(l->why), format, arguments);
    va_end(arguments);
    return false;
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static bool wait_for(struct mclistd *l, short events)
{
    long long until = now_ms() + l->timeout_ms;
    for (;;) {
        struct pollfd poll_fd = {.fd = l->fd, .events = events};
        long long left = until - now_ms();
        int ready = poll(&poll_fd, 1, left > 0 ? (int)left : 0);
        if (ready > 0) {
            return true;
        }
        if (ready == 0) {
            return lost(l, "the proxy does not answer within %d ms", l->timeout_ms);
        }
        if (errno != EINTR) {
            return lost(l, "%s", strerror(errno));
        }
    }
}

static bool send_all(struct mclistd *l, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(l->fd, bytes, count, MSG_NOSIGNAL);
        if (sent > 0) {
            bytes += sent;
            count -= (size_t)sent;
        } else if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            return lost(l, "%s", strerror(errno));
        } else if (!wait_for(l, POLLOUT)) {
            return false;
        }
    }
    return true;
}

/* Reads what is there into `in`, whose bytes before in_start are done with. */
static bool fill(struct mclistd *l)
{
    if (l->in_start > 0) {
        memmove(l->in, l->in + l->in_start, l->in_end - l->in_start);
        l->in_end -= l->in_start;
        l->in_start = 0;
    }
    if (l->in_end == sizeof(l->in)) {
        return lost(l, "a line of the answer is too long");
    }
    for (;;) {
        ssize_t got = recv(l->fd, l->in + l->in_end, sizeof(l->in) - l->in_end, 0);
        if (got > 0) {
            l->in_end += (size_t)got;
            return true;
        }
        if (got == 0) {
            return lost(l, "the proxy has closed the connection");
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            return lost(l, "%s", strerror(errno));
        }
        if (!wait_for(l, POLLIN)) {
            return false;
        }
    }
}

/* The answer's next line with a zero byte in place of its end, valid until the next read. */
static char *read_line(struct mclistd *l)
{
    size_t seen = 0;
    for (;;) {
        char *start = l->in + l->in_start;
        char *end = memmem(start + seen, l->in_end - l->in_start - seen, "\r\n", 2);
        if (end != NULL) {
            *end = '\0';
            l->in_start = (size_t)(end + 2 - l->in);
            return start;
        }
        seen = l->in_end - l->in_start;
        seen -= seen > 0; /* it may be the first byte of the line end */
        if (!fill(l)) {
            return NULL;
        }
    }
}

/* Appends so many bytes and a zero byte; the line end behind them goes. It takes memory for what
 * has come, not for what the line has said. */
static bool read_data(struct mclistd *l, struct buffer *to, size_t count)
{
    size_t start = to->used;
    while (to->used - start < count + 2) {
        size_t left = count + 2 - (to->used - start);
        size_t there = l->in_end - l->in_start;
        if (there == 0 && !fill(l)) {
            return false;
        }
        there = l->in_end - l->in_start;
        size_t taken = there < left ? there : left;
        if (!mclistd_append(to, l->in + l->in_start, taken)) {
            return lost(l, "no memory");
        }
        l->in_start += taken;
    }
    if (memcmp(to->bytes + to->used - 2, "\r\n", 2) != 0) {
        return lost(l, "the answer is out of step");
    }
    to->used--;
    to->bytes[to->used - 1] = '\0';
    return true;
}

static bool connect_to(struct mclistd *l, const struct sockaddr *address, socklen_t bytes)
{
    l->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0) {
        return lost(l, "%s", strerror(errno));
    }
    int error = connect(l->fd, address, bytes) == 0 ? 0 : errno, on = 1;
    if (error == EINPROGRESS || error == EINTR) {
        socklen_t size = sizeof(error);
        if (!wait_for(l, POLLOUT)) {
            disconnect(l);
            return false;
        }
        getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) {
        disconnect(l);
        return lost(l, "%s", strerror(error));
    }
    if (address->sa_family != AF_UNIX) {
        setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    return true;
}

static bool connect_anywhere(struct mclistd *l)
{
    if (l->port == NULL) {
        struct sockaddr_un path = {.sun_family = AF_UNIX};
        if (strlen(l->host) >= sizeof(path.sun_path)) {
            return lost(l, "the path is too long");
        }
        memcpy(path.sun_path, l->host, strlen(l->host));
        return connect_to(l, (struct sockaddr *)&path, sizeof(path));
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int code = getaddrinfo(l->host, l->port, &hints, &found);
    if (code != 0) {
        return lost(l, "%s: %s", l->host, gai_strerror(code));
    }
    bool done = false;
    for (struct addrinfo *at = found; at != NULL && !done; at = at->ai_next) {
        done = connect_to(l, at->ai_addr, at->ai_addrlen);
    }
    freeaddrinfo(found);
    return done;
}

static bool is_error(const char *line)
{
    static const char *const words[] = {"ERROR", "CLIENT_ERROR", "SERVER_ERROR"};
    for (size_t i = 0; i < LENGTH(words); i++) {
        size_t bytes = strlen(words[i]);
        if (strncmp(line, words[i], bytes) == 0 && (line[bytes] == ' ' || line[bytes] == '\0')) {
            return true;
        }
    }
    return false;
}

/* False: the connection is lost, or *refused: the proxy has refused the login, with l->why. */
static bool ready(struct mclistd *l, bool *refused)
{
    struct pollfd poll_fd = {.fd = l->fd, .events = POLLIN};
    *refused = false;
    if (l->fd >= 0 && (l->in_end > l->in_start || poll(&poll_fd, 1, 0) != 0)) {
        disconnect(l); /* nothing was asked: the proxy has closed it */
    }
    if (l->fd >= 0) {
        return true;
    }
    if (!connect_anywhere(l)) {
        return false;
    }
    if (l->login == NULL) {
        return true;
    }
    char head[64];
    int bytes = snprintf(head, sizeof(head), "set login 0 0 %zu\r\n", strlen(l->login));
    if (!send_all(l, head, (size_t)bytes) || !send_all(l, l->login, strlen(l->login)) ||
        !send_all(l, "\r\n", 2)) {
        return false;
    }
    const char *line = read_line(l);
    if (line == NULL || strcmp(line, "STORED") == 0) {
        return line != NULL;
    }
    *refused = is_error(line);
    return lost(l, "%s", line);
}

/* --- answers --- */

/* A number of decimal digits, with a minus in front perhaps. */
static bool is_number(const char *text, long long *number)
{
    const char *start = *text == '-' ? text + 1 : text;
    size_t digits = strspn(start, "0123456789");
    if (digits == 0 || digits > 18 || start[digits] != '\0') {
        return false;
    }
    *number = strtoll(text, NULL, 10);
    return true;
}

/* Reads the block that this line begins. False: it is none, or is cut. */
static bool read_block(struct mclistd *l, struct answer *a, char *line)
{
    char *words[5] = {NULL}, *rest = line;
    bool is_stat = strncmp(line, "STAT ", 5) == 0, is_value = strncmp(line, "VALUE ", 6) == 0;
    size_t count = 0, limit = is_stat ? 3 : LENGTH(words);
    while (count + 1 < limit && rest != NULL) {
        words[count++] = strsep(&rest, " ");
    }
    if (rest != NULL) {
        words[count++] = rest;
    }
    long long bytes = 0, version = 0;
    size_t at = is_value ? 3 : 2;
    if (is_stat ? count < 2 : count <= at || !is_number(words[at], &bytes) || bytes < 0) {
        return lost(l, "a block of the answer has no length");
    }
    if (is_value && words[4] != NULL && !is_number(words[4], &version)) {
        return lost(l, "a block of the answer has no version");
    }
    if (!mclistd_make_room((void **)&a->blocks, &a->block_room, a->block_count + 1,
                           sizeof(*a->blocks))) {
        return lost(l, "no memory");
    }
    struct block *block = &a->blocks[a->block_count++];
    *block = (struct block){.name = a->bytes.used, .version = version, .is_value = is_value};
    if (!mclistd_append(&a->bytes, words[1], strlen(words[1]) + 1)) {
        return lost(l, "no memory");
    }
    block->data = a->bytes.used;
    if (!is_stat) {
        block->data_bytes = (size_t)bytes;
        return read_data(l, &a->bytes, (size_t)bytes);
    }
    const char *value = words[2] != NULL ? words[2] : "";
    block->data_bytes = strlen(value);
    return mclistd_append(&a->bytes, value, strlen(value) + 1) || lost(l, "no memory");
}

/* The items of a block, at to, if that is not NULL. Returns how many these are. */
static size_t items_of(struct mclistd *l, struct answer *a, const struct block *block,
                       enum shape shape, struct mclistd_item *to)
{
    char *data = a->bytes.bytes + block->data, *end = data + block->data_bytes;
    bool is_split = block->is_value && shape != WHOLE;
    size_t count = 0;
    if (is_split && data == end) {
        return 0;
    }
    for (;;) {
        char *stop = is_split ? memchr(data, l->delimiter, (size_t)(end - data)) : NULL;
        stop = stop != NULL ? stop : end;
        if (to != NULL) {
            to[count] = (struct mclistd_item){data, (size_t)(stop - data)};
            *stop = '\0';
        }
        count++;
        if (stop == end) {
            return count;
        }
        data = stop + 1;
    }
}

static bool give_items(struct mclistd *l, struct answer *a, enum shape shape,
                       struct mclistd_result *result)
{
    size_t count = 0;
    for (size_t i = 0; i < a->block_count; i++) {
        count += items_of(l, a, &a->blocks[i], shape, NULL);
    }
    a->items = calloc(count + 1, sizeof(*a->items));
    a->groups = calloc(a->block_count + 1, sizeof(*a->groups));
    if (a->items == NULL || a->groups == NULL) {
        return lost(l, "no memory");
    }
    *result = (struct mclistd_result){.kind = MCLISTD_ITEMS, .items = a->items, .error = ""};
    for (size_t i = 0; i < a->block_count; i++) {
        const struct block *block = &a->blocks[i];
        struct mclistd_item *items = a->items + result->count;
        size_t more = items_of(l, a, block, shape, items);
        const char *name = a->bytes.bytes + block->name;
        a->groups[i] = (struct mclistd_group){{name, strlen(name)}, items, more};
        result->count += more;
    }
    if (shape == EACH || shape == STATS) {
        result->groups = a->groups;
        result->group_count = a->block_count;
    }
    if (shape == VERSIONED) {
        result->number = a->block_count > 0 ? a->blocks[0].version : 0;
        result->kind = a->block_count > 0 ? MCLISTD_ITEMS : MCLISTD_NONE;
    }
    return true;
}

static bool give_word(struct mclistd *l, const char *line, enum shape shape,
                      struct mclistd_result *result)
{
    static const struct {
        const char *word;
        bool yes;
    } words[] = {{"STORED", true},      {"DELETED", true},    {"OK", true},     {"TOUCHED", true},
                 {"NOT_STORED", false}, {"NOT_FOUND", false}, {"EXISTS", false}};
    bool not_found = strcmp(line, "NOT_FOUND") == 0, not_stored = strcmp(line, "NOT_STORED") == 0;
    *result = (struct mclistd_result){.error = ""};
    if (shape == DONE) {
        for (size_t i = 0; i < LENGTH(words); i++) {
            if (strcmp(line, words[i].word) == 0) {
                result->kind = words[i].yes ? MCLISTD_TRUE : MCLISTD_FALSE;
                return true;
            }
        }
    } else if (shape == TOKEN && not_stored) {
        result->kind = MCLISTD_NUMBER;
        return true;
    } else if (shape == TOKEN ? strcmp(line, "EXISTS") == 0
                              : not_found || (shape == NUMBER && not_stored)) {
        result->kind = MCLISTD_NONE;
        return true;
    } else if ((shape == NUMBER || shape == TOKEN) && is_number(line, &result->number)) {
        result->kind = MCLISTD_NUMBER;
        return true;
    }
    return lost(l, "'%.80s' is no answer to this", line);
}

/* Reads a whole answer. False: it is lost. */
static bool read_answer(struct mclistd *l, struct answer *a, enum shape shape,
                        struct mclistd_result *result)
{
    for (;;) {
        char *line = read_line(l);
        if (line == NULL) {
            return false;
        }
        if (is_error(line)) {
            snprintf(a->error, sizeof(a->error), "%s", line);
            *result = (struct mclistd_result){.kind = MCLISTD_REFUSED, .error = a->error};
            return true;
        }
        if (strcmp(line, "END") == 0) {
            return shape >= ITEMS ? give_items(l, a, shape, result)
                                  : lost(l, "END is no answer to this");
        }
        if (strncmp(line, "VALUE ", 6) == 0 || strncmp(line, "ITEM ", 5) == 0 ||
            strncmp(line, "STAT ", 5) == 0) {
            if (!read_block(l, a, line)) {
                return false;
            }
        } else if (a->block_count > 0) {
            return lost(l, "'%.80s' is no part of this answer", line);
        } else {
            return give_word(l, line, shape, result);
        }
    }
}

/* --- requests --- */

/* Of all calls from this one on: the connection has ended. */
static void fail_from(struct mclistd *l, size_t at, const char *known, enum mclistd_kind kind)
{
    disconnect(l); /* a late answer must not be taken for the next one */
    for (; at < l->answer_count; at++) {
        struct answer *a = &l->answers[at];
        snprintf(a->error, sizeof(a->error), "%s%s", known, l->why);
        l->results[at] = (struct mclistd_result){.kind = kind, .error = a->error};
    }
}

void mclistd_run_calls(struct mclistd *l)
{
    bool refused;
    if (!ready(l, &refused)) {
        fail_from(l, 0,
                  refused ? "" : "nothing was sent: ", refused ? MCLISTD_REFUSED : MCLISTD_LOST);
        return;
    }
    for (size_t at = 0, end, from = 0; at < l->call_count; at = end) {
        for (end = at + 1; end < l->call_count && l->calls[end].end - from <= BATCH_BYTES; end++) {
        }
        size_t to = l->calls[end - 1].end;
        bool sent = send_all(l, l->requests.bytes + from, to - from);
        from = to;
        for (; sent && at < end; at++) {
            if (!read_answer(l, &l->answers[at], l->calls[at].shape, &l->results[at])) {
                break;
            }
        }
        if (at < end) {
            fail_from(l, at, "no answer, the outcome is unknown: ", MCLISTD_LOST);
            return;
        }
    }
}
