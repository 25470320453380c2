/* SPDX-License-Identifier: BSD-3-Clause */
#include "tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is written beforehand: enough requests that keys look random to the server's caches. */
#define TAPE_REQUESTS 65536u
#define TAPE_BYTES_MAX (64u << 20)
#define WIDTH_MAX 20u

static uint64_t next_random(struct tape_source *source)
{
    /* xorshift64*, by Marsaglia and Vigna. */
    source->random ^= source->random >> 12;
    source->random ^= source->random << 25;
    source->random ^= source->random >> 27;
    return source->random * 2685821657736338717u;
}

static uint64_t random_below(struct tape_source *source, uint64_t limit)
{
    return (uint64_t)(((unsigned __int128)next_random(source) * limit) >> 64);
}

/* By Zipf's law with exponent 1: number r has about 1 / (r + 1) of the draws of number 0. The
 * inverse of the logarithm, which the sum of 1/r approaches. */
static uint64_t random_zipf(struct tape_source *source, uint64_t limit)
{
    double u = (double)(next_random(source) >> 11) / (double)(1ULL << 53);
    uint64_t rank = (uint64_t)exp(u * log((double)limit + 1)) - 1;
    return rank < limit ? rank : limit - 1;
}

static char *put_number(char *out, uint64_t number, unsigned width)
{
    char digits[WIDTH_MAX];
    unsigned count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 && count < WIDTH_MAX);
    while (count < width) {
        digits[count++] = '0';
    }
    while (count > 0) {
        *out++ = digits[--count];
    }
    return out;
}

static char *put_value(char *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (char)('a' + i % 26);
    }
    return out + bytes;
}

/* One slot, at its letter; *last is the random number drawn last. Returns NULL when there is no
 * such slot. */
static char *put_slot(char *out, const struct tape *tape, char letter, unsigned width,
                      uint64_t *last)
{
    switch (letter) {
    case 'k':
        *last = random_below(tape->source, tape->ranges.keys);
        return put_number(out, *last, width);
    case 'z':
        *last = random_zipf(tape->source, tape->ranges.keys);
        return put_number(out, *last, width);
    case 'm':
        *last = random_below(tape->source, tape->ranges.members);
        return put_number(out, *last, width);
    case 'r':
        return put_number(out, *last, width);
    case 'n':
        return put_number(out, tape->source->running, width);
    case 's':
        return put_number(out, tape->source->running % tape->ranges.keys, width);
    case 'v':
        return put_value(out, tape->ranges.value_bytes);
    case '%':
        *out = '%';
        return out + 1;
    default:
        return NULL;
    }
}

static char *put_request(char *out, const struct tape *tape, const char *text)
{
    uint64_t last = 0;
    while (*text) {
        if (text[0] == '\\' && (text[1] == 'r' || text[1] == 'n')) {
            *out++ = text[1] == 'r' ? '\r' : '\n';
            text += 2;
        } else if (*text != '%') {
            *out++ = *text++;
        } else {
            char *rest;
            unsigned long width = strtoul(text + 1, &rest, 10);
            out = put_slot(out, tape, *rest, (unsigned)(width < WIDTH_MAX ? width : WIDTH_MAX),
                           &last);
            text = rest + 1;
        }
    }
    tape->source->running++;
    return out;
}

/* The most bytes that a request of this template has; 0, with the reason, when it is unreadable. */
static size_t request_bytes_max(const struct tape *tape, const char *text, bool *is_running,
                                const char **error)
{
    size_t bytes = 0;
    while (*text) {
        if (*text != '%') {
            bytes++;
            text++;
            continue;
        }
        char *rest;
        unsigned long width = strtoul(text + 1, &rest, 10);
        if (!*rest || !strchr("kmnrsvz%", *rest) || width > WIDTH_MAX) {
            *error = "a template has an unknown slot behind %";
            return 0;
        }
        *is_running = *is_running || *rest == 'n' || *rest == 's';
        bytes += *rest == 'v' ? tape->ranges.value_bytes : WIDTH_MAX;
        text = rest + 1;
    }
    if (bytes == 0) {
        *error = "a template is empty";
    }
    return bytes;
}

/* Returns the end of `count` requests; ends[i] is the end of request i, counted from `out`. */
static char *put_batch(const struct tape *tape, unsigned count, char *out, size_t *ends)
{
    char *start = out;
    for (unsigned i = 0; i < count; i++) {
        out = put_request(out, tape, tape->templates[i % tape->template_count].text);
        if (ends) {
            ends[i] = (size_t)(out - start);
        }
    }
    return out;
}

bool tape_init(struct tape *tape, const char **error)
{
    tape->batch_bytes_max = 0;
    for (unsigned i = 0; i < tape->depth; i++) {
        const char *text = tape->templates[i % tape->template_count].text;
        size_t bytes = request_bytes_max(tape, text, &tape->is_running, error);
        if (bytes == 0) {
            return false;
        }
        tape->batch_bytes_max += bytes;
    }
    if (tape->is_running) {
        return true;
    }
    tape->batch_count = TAPE_REQUESTS / tape->depth + 1;
    if (tape->batch_count > TAPE_BYTES_MAX / tape->batch_bytes_max) {
        tape->batch_count = TAPE_BYTES_MAX / tape->batch_bytes_max + 1;
    }
    tape->bytes = malloc(tape->batch_count * tape->batch_bytes_max);
    tape->ends = malloc(tape->batch_count * tape->depth * sizeof(size_t));
    if (!tape->bytes || !tape->ends) {
        *error = "no memory for the requests";
        return false;
    }
    for (size_t i = 0; i < tape->batch_count; i++) {
        put_batch(tape, tape->depth, tape->bytes + i * tape->batch_bytes_max,
                  tape->ends + i * tape->depth);
    }
    return true;
}

void tape_fini(struct tape *tape)
{
    free(tape->bytes);
    free(tape->ends);
}

const char *tape_take(struct tape *tape, unsigned count, char *room, size_t *bytes)
{
    if (tape->is_running) {
        *bytes = (size_t)(put_batch(tape, count, room, NULL) - room);
        return room;
    }
    size_t batch = tape->next_batch;
    tape->next_batch = batch + 1 < tape->batch_count ? batch + 1 : 0;
    *bytes = tape->ends[batch * tape->depth + count - 1];
    return tape->bytes + batch * tape->batch_bytes_max;
}
