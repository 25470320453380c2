/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What the thread writes at once. Lines of several processes may go to one file: a batch ends at
 * the end of a line. */
#define BATCH_BYTES 16384
/* Room at the end of a batch for the line about dropped lines. */
#define NOTICE_BYTES 192

static const char TOO_SLOW[] = "it is not read or written fast enough";

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;    /* there is something to write */
    pthread_cond_t written; /* all of it is */
    const _Atomic int *fd;
    char *bytes;
    size_t cap;
    size_t start; /* the oldest byte */
    size_t used;
    uint64_t untold; /* lines dropped since the last notice */
    bool writing;    /* the thread has a batch in its hands */
    _Atomic bool started;
    _Atomic uint64_t dropped;
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static size_t count_lines(const char *bytes, size_t len)
{
    size_t lines = 0;
    for (const char *at = bytes; (at = memchr(at, '\n', len - (size_t)(at - bytes))) != NULL;
         at++) {
        lines++;
    }
    return lines;
}

/* --- putting --- */

bool log_ring_started(void)
{
    return atomic_load_explicit(&ring.started, memory_order_acquire);
}

static void copy_in(const char *line, size_t len)
{
    size_t end = (ring.start + ring.used) % ring.cap;
    size_t first = len < ring.cap - end ? len : ring.cap - end;
    memcpy(ring.bytes + end, line, first);
    memcpy(ring.bytes, line + first, len - first);
    ring.used += len;
}

void log_ring_put(const char *line, size_t len)
{
    pthread_mutex_lock(&ring.lock);
    if (len > ring.cap - ring.used) {
        ring.untold++;
        atomic_fetch_add_explicit(&ring.dropped, 1, memory_order_relaxed);
    } else {
        copy_in(line, len);
    }
    pthread_cond_signal(&ring.more);
    pthread_mutex_unlock(&ring.lock);
}

uint64_t log_ring_dropped(void)
{
    return atomic_load_explicit(&ring.dropped, memory_order_relaxed);
}

void log_ring_flush(uint32_t timeout_ms)
{
    if (!log_ring_started()) {
        return;
    }
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    int rc = 0;
    pthread_mutex_lock(&ring.lock);
    while (rc == 0 && (ring.used > 0 || ring.untold > 0 || ring.writing)) {
        rc = pthread_cond_timedwait(&ring.written, &ring.lock, &end);
    }
    pthread_mutex_unlock(&ring.lock);
}

/* --- the thread --- */

/* Moves whole lines, as many as fit, from the ring to batch. Returns their bytes. */
static size_t take_lines(char *batch)
{
    size_t room = BATCH_BYTES - NOTICE_BYTES;
    size_t len = ring.used < room ? ring.used : room;
    size_t first = len < ring.cap - ring.start ? len : ring.cap - ring.start;
    memcpy(batch, ring.bytes + ring.start, first);
    memcpy(batch + first, ring.bytes, len - first);
    while (len > 0 && batch[len - 1] != '\n') {
        len--;
    }
    ring.start = (ring.start + len) % ring.cap;
    ring.used -= len;
    return len;
}

/* A line for the log about lines that are missing from it. Returns its length. */
static size_t format_notice(char out[NOTICE_BYTES], uint64_t lines, const char *reason)
{
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t len = strftime(out, NOTICE_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    int n = snprintf(out + len, NOTICE_BYTES - len,
                     ".%03ldZ warn  %" PRIu64 " lines of the log were dropped: %.80s\n",
                     ts.tv_nsec / 1000000, lines, reason);
    return len + (size_t)n;
}

/* Once the ring is empty: what was dropped came after all that was in it. */
static size_t add_notice(char *batch, size_t len)
{
    if (ring.used > 0 || ring.untold == 0) {
        return len;
    }
    len += format_notice(batch + len, ring.untold, TOO_SLOW);
    ring.untold = 0;
    return len;
}

/* Waits as long as it takes. Returns the bytes written; fewer than len, with errno, where no more
 * can be written at all (a full disk, a pipe without a reader). */
static size_t write_all(const char *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        int fd = atomic_load_explicit(ring.fd, memory_order_relaxed);
        ssize_t n = write(fd, bytes + done, len - done);
        if (n >= 0) {
            done += (size_t)n;
        } else if (errno == EAGAIN) {
            /* Another process has made a shared descriptor non-blocking. */
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (errno != EINTR) {
            break;
        }
    }
    return done;
}

/* What could not be written, the thread's own. */
struct gap {
    uint64_t lines; /* not told of yet */
    int error;
    bool torn; /* the log ends in the middle of a line */
};

/* Says what is missing, on a line of its own, in front of the first lines that can be written
 * again. Returns false when they cannot be written either. */
static bool close_gap(struct gap *gap)
{
    char notice[NOTICE_BYTES + 1] = "\n";
    char reason[64];
    size_t start = gap->torn ? 0 : 1;
    if (gap->lines == 0) {
        return true;
    }
    size_t len =
        1 + format_notice(notice + 1, gap->lines, strerror_r(gap->error, reason, sizeof reason));
    size_t done = write_all(notice + start, len - start);
    if (done < len - start) {
        gap->torn = done > 0 ? notice[start + done - 1] != '\n' : gap->torn;
        return false;
    }
    *gap = (struct gap){.lines = 0};
    return true;
}

static void write_batch(struct gap *gap, const char *batch, size_t len)
{
    size_t done = 0;
    if (close_gap(gap)) {
        done = write_all(batch, len);
        gap->torn = done > 0 && batch[done - 1] != '\n';
    }
    if (done < len) {
        gap->error = errno;
        size_t lost = count_lines(batch + done, len - done);
        gap->lines += lost;
        atomic_fetch_add_explicit(&ring.dropped, lost, memory_order_relaxed);
    }
}

static void *run(void *arg)
{
    static char batch[BATCH_BYTES];
    struct gap gap = {.lines = 0};
    (void)arg;
    pthread_mutex_lock(&ring.lock);
    for (;;) {
        while (ring.used == 0 && ring.untold == 0) {
            ring.writing = false;
            pthread_cond_broadcast(&ring.written);
            pthread_cond_wait(&ring.more, &ring.lock);
        }
        ring.writing = true;
        size_t len = add_notice(batch, take_lines(batch));
        pthread_mutex_unlock(&ring.lock);
        write_batch(&gap, batch, len);
        pthread_mutex_lock(&ring.lock);
    }
    return NULL;
}

int log_ring_start(size_t bytes, const _Atomic int *fd)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&ring.written, &monotonic);
    pthread_condattr_destroy(&monotonic);
    ring.fd = fd;
    ring.cap = bytes;
    ring.bytes = malloc(bytes);
    CHECK(ring.bytes != NULL);

    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        /* It lives as long as the process: the end must not wait for a pipe that is not read. */
        pthread_detach(thread);
        atomic_store_explicit(&ring.started, true, memory_order_release);
    }
    return rc;
}
