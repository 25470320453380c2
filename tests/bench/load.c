/* SPDX-License-Identifier: BSD-3-Clause */
/* A load generator: `connections` clients, each sending batches of `depth` requests and waiting for
 * all their replies. Every reply is checked; the first that is not as expected ends the run with
 * exit code 1. Prints one line of JSON. One thread. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

#define WATCHED_MAX 16
#define EVENTS_MAX 256
#define CONNECTIONS_MAX 20000

struct options {
    const char *host;
    const char *port;
    unsigned connections;
    unsigned depth;
    double seconds; /* 0: until `count` replies have come */
    double warmup_seconds;
    uint64_t count; /* 0: until the time is over */
    double timeout_seconds;
    bool by_connection;
    struct tape_ranges ranges;
    uint64_t first;
    uint64_t seed;
    struct tape_template templates[TAPE_TEMPLATES_MAX];
    size_t request_count;
    size_t expect_count;
    pid_t watched[WATCHED_MAX];
    size_t watched_count;
};

struct sample {
    uint64_t time_ns;
    uint64_t replies;
    uint64_t bytes_read;
    uint64_t bytes_written;
    double own_cpu_s;
    double cpu_s[WATCHED_MAX];
};

static const char USAGE[] =
    "usage: load --port PORT --request TEMPLATE --expect REPLY [--request ... --expect ...]\n"
    "  --host HOST            127.0.0.1\n"
    "  --connections N        1\n"
    "  --depth N              requests per batch; 1: one at a time\n"
    "  --seconds S            how long is measured, and until two batches of each\n"
    "                         connection are answered\n"
    "  --warmup S             before that, not measured\n"
    "  --count N              or: so many requests, all of them measured\n"
    "  --timeout S            10: without any reply for so long, replies are missing\n"
    "  --mix batch            several templates take turns in each batch, or\n"
    "  --mix connection       each connection has one of them\n"
    "  --keys N --members N   %k, %z and %m are random numbers below these\n"
    "  --value-bytes N        length of %v\n"
    "  --first N              where the running number %n, %s begins\n"
    "  --seed N               of the random numbers\n"
    "  --watch PID            CPU time of this process in the measured time; may be repeated\n"
    "tape.h explains templates, reply.h replies.\n";

static void usage(void)
{
    fputs(USAGE, stderr);
    exit(2);
}

static uint64_t number_of(const char *text, uint64_t max)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || *end || end == text || number > max) {
        fprintf(stderr, "load: not a number of this range: %s\n", text);
        usage();
    }
    return number;
}

static double seconds_of(const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (*end || end == text || !(seconds >= 0 && seconds < 1e6)) {
        fprintf(stderr, "load: not a time in seconds: %s\n", text);
        usage();
    }
    return seconds;
}

static const struct option OPTIONS[] = {
    {"host", required_argument, NULL, 'h'},        {"port", required_argument, NULL, 'p'},
    {"connections", required_argument, NULL, 'c'}, {"depth", required_argument, NULL, 'd'},
    {"seconds", required_argument, NULL, 's'},     {"warmup", required_argument, NULL, 'w'},
    {"count", required_argument, NULL, 'n'},       {"timeout", required_argument, NULL, 't'},
    {"mix", required_argument, NULL, 'x'},         {"keys", required_argument, NULL, 'k'},
    {"members", required_argument, NULL, 'm'},     {"value-bytes", required_argument, NULL, 'v'},
    {"first", required_argument, NULL, 'f'},       {"seed", required_argument, NULL, 'r'},
    {"watch", required_argument, NULL, 'W'},       {"request", required_argument, NULL, 'R'},
    {"expect", required_argument, NULL, 'E'},      {NULL, 0, NULL, 0},
};

static void add_expectation(struct options *options, const char *text)
{
    if (options->expect_count == TAPE_TEMPLATES_MAX ||
        !expectation_parse(text, &options->templates[options->expect_count].expectation)) {
        fprintf(stderr, "load: too many, or not an expectation: %s\n", text);
        usage();
    }
    options->expect_count++;
}

/* The options that may be repeated; false: not one of them. */
static bool add_option(struct options *options, int letter, const char *text)
{
    if (letter == 'R' && options->request_count < TAPE_TEMPLATES_MAX) {
        options->templates[options->request_count++].text = text;
    } else if (letter == 'E') {
        add_expectation(options, text);
    } else if (letter == 'W' && options->watched_count < WATCHED_MAX) {
        options->watched[options->watched_count++] = (pid_t)number_of(text, INT32_MAX);
    } else {
        return false;
    }
    return true;
}

static void set_option(struct options *options, int letter, const char *text)
{
    switch (letter) {
    case 'h':
        options->host = text;
        return;
    case 'p':
        options->port = text;
        return;
    case 'c':
        options->connections = (unsigned)number_of(text, CONNECTIONS_MAX);
        return;
    case 'd':
        options->depth = (unsigned)number_of(text, 65536);
        return;
    case 's':
        options->seconds = seconds_of(text);
        return;
    case 'w':
        options->warmup_seconds = seconds_of(text);
        return;
    case 'n':
        options->count = number_of(text, UINT64_MAX);
        return;
    case 't':
        options->timeout_seconds = seconds_of(text);
        return;
    case 'x':
        options->by_connection = strcmp(text, "connection") == 0;
        return;
    case 'k':
        options->ranges.keys = number_of(text, UINT64_MAX);
        return;
    case 'm':
        options->ranges.members = number_of(text, UINT64_MAX);
        return;
    case 'v':
        options->ranges.value_bytes = number_of(text, 1u << 30);
        return;
    case 'f':
        options->first = number_of(text, UINT64_MAX);
        return;
    case 'r':
        options->seed = number_of(text, UINT64_MAX);
        return;
    default:
        if (!add_option(options, letter, text)) {
            usage();
        }
    }
}

static struct options parse_options(int argc, char **argv)
{
    struct options options = {.host = "127.0.0.1",
                              .connections = 1,
                              .depth = 1,
                              .timeout_seconds = 10,
                              .ranges = {.keys = 1, .members = 1, .value_bytes = 32},
                              .seed = 1};
    int letter;
    while ((letter = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        set_option(&options, letter, optarg);
    }
    bool timed = options.seconds > 0;
    if (optind != argc || !options.port || options.connections == 0 || options.depth == 0 ||
        timed == (options.count > 0) || options.request_count == 0 ||
        options.request_count != options.expect_count || options.ranges.keys == 0 ||
        options.ranges.members == 0) {
        usage();
    }
    return options;
}

/* User and system time of all threads; 0 for a process that has ended. */
static double cpu_of(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct sample take_sample(const struct options *options, const struct run *run)
{
    struct sample sample = {.time_ns = clock_ns(),
                            .replies = run->replies,
                            .bytes_read = run->bytes_read,
                            .bytes_written = run->bytes_written,
                            .own_cpu_s = cpu_of(getpid())};
    for (size_t i = 0; i < options->watched_count; i++) {
        sample.cpu_s[i] = cpu_of(options->watched[i]);
    }
    return sample;
}

static void print_result(const struct options *options, const struct sample *begin,
                         const struct sample *end, const struct histogram *histogram)
{
    double seconds = (double)(end->time_ns - begin->time_ns) / 1e9;
    uint64_t replies = end->replies - begin->replies;
    printf("{\"operations\": %llu, \"seconds\": %.6f, \"ops_per_s\": %.1f, ",
           (unsigned long long)replies, seconds, (double)replies / seconds);
    printf("\"bytes_read\": %llu, \"bytes_written\": %llu, \"load_cpu_s\": %.6f, ",
           (unsigned long long)(end->bytes_read - begin->bytes_read),
           (unsigned long long)(end->bytes_written - begin->bytes_written),
           end->own_cpu_s - begin->own_cpu_s);
    static const struct {
        const char *name;
        double quantile;
    } quantiles[] = {
        {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}, {"p99_99", 0.9999}};
    printf("\"latency_us\": {");
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        printf("\"%s\": %.1f, ", quantiles[i].name,
               (double)histogram_at(histogram, quantiles[i].quantile) / 1e3);
    }
    printf("\"max\": %.1f}, \"cpu_s\": {", (double)histogram->max_ns / 1e3);
    for (size_t i = 0; i < options->watched_count; i++) {
        printf("%s\"%d\": %.6f", i > 0 ? ", " : "", (int)options->watched[i],
               end->cpu_s[i] - begin->cpu_s[i]);
    }
    printf("}}\n");
}

static bool handle_events(struct run *run, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(run->epoll, events, EVENTS_MAX, timeout_ms);
    run->now_ns = clock_ns();
    for (int i = 0; i < count; i++) {
        struct client *client = events[i].data.ptr;
        if ((events[i].events & EPOLLOUT) && !client_write(client, run)) {
            return false;
        }
        if ((events[i].events & ~(uint32_t)EPOLLOUT) && !client_read(client, run)) {
            return false;
        }
    }
    return true;
}

/* Goes on until the moment has passed and so many replies have come, or no client waits any more.
 */
static bool run_until(struct run *run, const struct options *options, uint64_t end_ns,
                      uint64_t replies_min)
{
    uint64_t replies = run->replies, replied_ns = clock_ns();
    replies_min += replies;
    while (run->waiting > 0 && (run->replies < replies_min || clock_ns() < end_ns)) {
        if (!handle_events(run, 10)) {
            return false;
        }
        if (run->replies != replies) {
            replies = run->replies;
            replied_ns = run->now_ns;
        } else if ((double)(run->now_ns - replied_ns) > options->timeout_seconds * 1e9) {
            snprintf(run->error, sizeof(run->error),
                     "replies missing on %zu connections: none came for %.0f s", run->waiting,
                     options->timeout_seconds);
            return false;
        }
    }
    return true;
}

static uint64_t after(double seconds)
{
    return clock_ns() + (uint64_t)(seconds * 1e9);
}

/* Warm-up, measurement, and the replies that are still out. */
static bool run_load(struct run *run, const struct options *options, struct client *clients)
{
    static struct histogram histogram;
    /* A time in which almost nothing came would say nothing. */
    uint64_t round = (uint64_t)options->connections * options->depth;
    uint64_t end_ns;
    run->requests_left = options->count > 0 ? options->count : UINT64_MAX;
    run->histogram = options->count > 0 ? &histogram : NULL;
    struct sample begin = take_sample(options, run);
    run->now_ns = clock_ns();
    for (unsigned i = 0; i < options->connections; i++) {
        if (!client_start(&clients[i], run)) {
            return false;
        }
    }
    if (options->count == 0) {
        if (!run_until(run, options, after(options->warmup_seconds), round)) {
            return false;
        }
        run->histogram = &histogram;
        begin = take_sample(options, run);
    }
    end_ns = options->count > 0 ? UINT64_MAX : after(options->seconds);
    if (!run_until(run, options, end_ns, 2 * round)) {
        return false;
    }
    struct sample end = take_sample(options, run);
    run->histogram = NULL;
    run->requests_left = 0;
    if (!run_until(run, options, UINT64_MAX, 0)) {
        return false;
    }
    /* A moment for replies that no request asked for. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    for (unsigned i = 0; i < options->connections; i++) {
        if (!client_check_silent(&clients[i], run)) {
            return false;
        }
    }
    print_result(options, &begin, &end, &histogram);
    return true;
}

/* One tape of all templates, or one of each. */
static size_t make_tapes(const struct options *options, struct tape_source *source,
                         struct tape *tapes)
{
    size_t tape_count = options->by_connection ? options->request_count : 1;
    size_t per_tape = options->request_count / tape_count;
    for (size_t i = 0; i < tape_count; i++) {
        const char *error = NULL;
        tapes[i] = (struct tape){.template_count = per_tape,
                                 .depth = options->depth,
                                 .ranges = options->ranges,
                                 .source = source};
        memcpy(tapes[i].templates, options->templates + i * per_tape,
               per_tape * sizeof(struct tape_template));
        if (!tape_init(&tapes[i], &error)) {
            fprintf(stderr, "load: %s\n", error);
            exit(2);
        }
    }
    return tape_count;
}

static bool connect_all(struct run *run, const struct options *options, struct client *clients,
                        struct tape *tapes, size_t tape_count)
{
    for (unsigned i = 0; i < options->connections; i++) {
        if (!client_connect(&clients[i], run, &tapes[i % tape_count], options->host,
                            options->port)) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    struct tape_source source = {.running = options.first,
                                 .random = options.seed * 2654435761u + 88172645463325252u};
    struct tape tapes[TAPE_TEMPLATES_MAX];
    size_t tape_count = make_tapes(&options, &source, tapes);
    struct run run = {.epoll = epoll_create1(EPOLL_CLOEXEC), .input = malloc(INPUT_BYTES)};
    struct client *clients = calloc(options.connections, sizeof(struct client));
    if (run.epoll < 0 || !run.input || !clients) {
        perror("load");
        return 1;
    }
    /* The tapes have drawn numbers, but these were not sent. */
    source.running = options.first;
    for (unsigned i = 0; i < options.connections; i++) {
        clients[i].fd = -1;
    }
    bool good = connect_all(&run, &options, clients, tapes, tape_count) &&
                run_load(&run, &options, clients);
    if (!good) {
        /* Control characters and quotes are not in these texts but for quotes of servers. */
        for (char *quote = run.error; (quote = strpbrk(quote, "\"\\")) != NULL;) {
            *quote = '\'';
        }
        printf("{\"error\": \"%s\"}\n", run.error);
    }
    for (unsigned i = 0; i < options.connections; i++) {
        client_close(&clients[i]);
    }
    for (size_t i = 0; i < tape_count; i++) {
        tape_fini(&tapes[i]);
    }
    free(clients);
    free(run.input);
    close(run.epoll);
    return good ? 0 : 1;
}
