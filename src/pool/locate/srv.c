/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/locate/srv.h"

#include <arpa/nameser.h>
#include <ctype.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "pool/locate/dns.h"

#define LABEL_MAX 63
/* The record of EDNS behind the question, which says how large an answer may be. */
#define EDNS_BYTES 11
/* What stands behind the name: its type, its class, and that. */
#define QUESTION_REST (4 + EDNS_BYTES)

/* --- packets -----------------------------------------------------------------------------------
 */

static char *put_u16(char *to, uint16_t n)
{
    to[0] = (char)(n >> 8);
    to[1] = (char)n;
    return to + 2;
}

size_t srv_write_question(char out[SRV_QUESTION_MAX], uint16_t id, const char *name)
{
    char *to = out;
    bool goes_on = true;
    to = put_u16(put_u16(to, id), 0x0100); /* it may ask others */
    to = put_u16(put_u16(put_u16(put_u16(to, 1), 0), 0), 1);
    while (goes_on) {
        size_t len = strcspn(name, ".");
        goes_on = name[len] == '.' && name[len + 1] != '\0';
        if (len == 0 || len > LABEL_MAX ||
            (size_t)(to - out) + len + 2 + QUESTION_REST > SRV_QUESTION_MAX) {
            return 0;
        }
        *to++ = (char)len;
        memcpy(to, name, len);
        to += len;
        name += len + goes_on;
    }
    *to++ = '\0';
    to = put_u16(put_u16(to, ns_t_srv), ns_c_in);
    *to++ = '\0'; /* the root's */
    to = put_u16(put_u16(to, ns_t_opt), SRV_ANSWER_MAX);
    to = put_u16(put_u16(put_u16(to, 0), 0), 0);
    return (size_t)(to - out);
}

/* So that it can stand in a line of the log and of an error. */
static bool is_host(const char *host)
{
    size_t len = strlen(host);
    for (size_t i = 0; i < len; i++) {
        if (host[i] <= ' ' || host[i] > '~' || strchr(":/[]\\", host[i]) != NULL) {
            return false;
        }
    }
    return len > 0 && len <= CONFIG_NAME_MAX;
}

struct ranked {
    uint16_t priority, weight;
    struct endpoint at;
};

/* Lower numbers go first; of equal ones, those that are to have more of the load. */
static int compare(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return a->priority != b->priority ? (a->priority < b->priority ? -1 : 1)
                                      : (a->weight > b->weight ? -1 : a->weight < b->weight);
}

/* False for one that is of another type, or offers nothing. */
static bool read_record(ns_msg *message, int index, struct ranked *out)
{
    ns_rr record;
    char host[NS_MAXDNAME];
    if (ns_parserr(message, ns_s_an, index, &record) < 0 || ns_rr_type(record) != ns_t_srv ||
        ns_rr_class(record) != ns_c_in || ns_rr_rdlen(record) < 7) {
        return false;
    }
    const unsigned char *data = ns_rr_rdata(record);
    int len = dn_expand(ns_msg_base(*message), ns_msg_end(*message), data + 6, host, sizeof host);
    out->priority = ns_get16(data);
    out->weight = ns_get16(data + 2);
    out->at.port = ns_get16(data + 4);
    if (len < 0 || out->at.port == 0 || !is_host(host)) {
        return false;
    }
    (void)snprintf(out->at.host, sizeof out->at.host, "%.*s", CONFIG_NAME_MAX, host);
    return true;
}

static void read_records(ns_msg *message, struct srv_records *records)
{
    struct ranked *found = calloc(SRV_RECORDS_MAX, sizeof *found);
    size_t count = 0;
    CHECK(found != NULL);
    for (int i = 0; i < ns_msg_count(*message, ns_s_an) && count < SRV_RECORDS_MAX; i++) {
        count += read_record(message, i, &found[count]);
    }
    qsort(found, count, sizeof *found, compare);
    for (size_t i = 0; i < count; i++) {
        records->at[i] = found[i].at;
    }
    records->count = count;
    free(found);
}

/* The same but for capital letters. Lengths of labels are no letters. */
static bool same_name(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i])) {
            return false;
        }
    }
    return true;
}

/* The name comes back as it was asked for, with its type and class. */
static bool answers_question(const ns_msg *message, struct slice answer, struct slice question)
{
    size_t asked = question.len - EDNS_BYTES - NS_HFIXEDSZ;
    return ns_msg_id(*message) == ns_get16((const unsigned char *)question.p) &&
           ns_msg_getflag(*message, ns_f_qr) != 0 && ns_msg_count(*message, ns_s_qd) == 1 &&
           answer.len >= NS_HFIXEDSZ + asked &&
           same_name(answer.p + NS_HFIXEDSZ, question.p + NS_HFIXEDSZ, asked);
}

enum srv_result srv_read_answer(struct slice answer, struct slice question,
                                struct srv_records *records)
{
    ns_msg message;
    records->count = 0;
    if (answer.len > SRV_ANSWER_MAX ||
        ns_initparse((const unsigned char *)answer.p, (int)answer.len, &message) < 0 ||
        !answers_question(&message, answer, question)) {
        return SRV_NO_ANSWER;
    }
    switch (ns_msg_getflag(message, ns_f_rcode)) {
    case ns_r_nxdomain:
        return SRV_FOUND;
    case ns_r_noerror:
        break;
    default:
        return SRV_FAILED;
    }
    if (ns_msg_getflag(message, ns_f_tc) != 0) {
        return SRV_FAILED;
    }
    read_records(&message, records);
    return SRV_FOUND;
}

/* --- asking ------------------------------------------------------------------------------------
 */

struct srv_lookup {
    struct event_base *base;
    struct evdns_base *dns;
    uint32_t timeout_ms;
    srv_done_fn *done;
    void *arg;
    int attempts; /* so far */
    int fd;
    struct event event;
    char question[SRV_QUESTION_MAX];
    size_t len;
};

static void close_socket(struct srv_lookup *l)
{
    if (l->fd >= 0) {
        event_del(&l->event);
        close(l->fd);
        l->fd = -1;
    }
}

/* To the next DNS server, from a port of its own. False when that cannot be done. */
static bool send_question(struct srv_lookup *l)
{
    struct sockaddr_storage to;
    int count = evdns_base_count_nameservers(l->dns);
    int len = count <= 0 ? -1
                         : evdns_base_get_nameserver_addr(l->dns, l->attempts % count,
                                                          (struct sockaddr *)&to, sizeof to);
    if (len <= 0 || len > (int)sizeof to) {
        return false;
    }
    l->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return l->fd >= 0 && connect(l->fd, (struct sockaddr *)&to, (socklen_t)len) == 0 &&
           send(l->fd, l->question, l->len, 0) == (ssize_t)l->len;
}

static void on_event(evutil_socket_t fd, short what, void *arg);

static void finish(struct srv_lookup *l, const struct srv_records *records)
{
    close_socket(l);
    l->done(l->arg, records);
}

/* Where a question cannot be sent, its time passes all the same: one address may be reachable a
 * moment later. */
static void ask(struct srv_lookup *l)
{
    uint32_t ms = l->timeout_ms / DNS_ATTEMPTS + 1;
    struct timeval tv = timeval_of_ms(ms);
    bool sent = l->len > 0 && send_question(l);
    CHECK(event_assign(&l->event, l->base, sent ? l->fd : -1, sent ? EV_READ | EV_PERSIST : 0,
                       on_event, l) == 0);
    CHECK(event_add(&l->event, &tv) == 0);
    l->attempts++;
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct srv_lookup *l = arg;
    struct srv_records records;
    char answer[SRV_ANSWER_MAX];
    enum srv_result result = SRV_FAILED;
    if ((what & EV_READ) != 0) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n >= 0) {
            result = srv_read_answer(slice_make(answer, (size_t)n), slice_make(l->question, l->len),
                                     &records);
        }
    }
    if (result == SRV_NO_ANSWER) {
        return;
    }
    if (result == SRV_FOUND) {
        finish(l, &records);
    } else if (l->attempts >= DNS_ATTEMPTS) {
        finish(l, NULL);
    } else {
        event_del(&l->event);
        close_socket(l);
        ask(l);
    }
}

struct srv_lookup *srv_look_up(struct event_base *base, struct evdns_base *dns, const char *name,
                               uint32_t timeout_ms, srv_done_fn *done, void *arg)
{
    struct srv_lookup *l = calloc(1, sizeof *l);
    struct rng rng;
    CHECK(l != NULL);
    rng_init_system(&rng);
    *l = (struct srv_lookup){
        .base = base, .dns = dns, .timeout_ms = timeout_ms, .done = done, .arg = arg, .fd = -1};
    l->len = srv_write_question(l->question, (uint16_t)rng_unique(&rng), name);
    ask(l);
    return l;
}

void srv_free(struct srv_lookup **slot)
{
    struct srv_lookup *l = *slot;
    *slot = NULL;
    if (l != NULL) {
        event_del(&l->event);
        close_socket(l);
        free(l);
    }
}
