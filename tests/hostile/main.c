/* SPDX-License-Identifier: BSD-3-Clause */
/* hostile DAEMON [--couchbase] [--answers N] [--seed N] [--one-in N]: runs the daemon before a
 * server that lies. Exit code 1 when the daemon ends, says what a sanitizer says, gives a client
 * the value of another key, or leaves a client without its answers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "hostile.h"

#define CLIENTS 8
#define SERVERS 2
#define TALKS 64
/* A client that waits for so long is given no answer any more. */
#define SILENCE_S 30

struct client {
    int fd;
    struct bytes in, out;
    time_t since_s;
};

static struct {
    const char *daemon;
    bool couchbase;
    uint64_t answers, seed;
    unsigned one_in;
    struct rng rng;
    pid_t pid;
    char folder[64];
    unsigned port, server_ports[SERVERS];
    int listeners[SERVERS];
    struct client clients[CLIENTS];
    struct talk talks[TALKS];
    int talk_fds[TALKS];
    uint64_t batches, values;
} run = {.answers = 100000, .seed = 1, .one_in = 20};

static void clean_up(void)
{
    char path[128];
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = {"ini", "log"};
        snprintf(path, sizeof path, "%s/%s", run.folder, names[i]);
        unlink(path);
    }
    rmdir(run.folder);
}

static void fail(const char *format, ...) PRINTF_LIKE(1, 2);
static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "hostile: seed %llu: ", (unsigned long long)run.seed);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nhostile: the daemon's log: %s/log\n", run.folder);
    va_end(args);
    kill(run.pid, SIGKILL);
    exit(1);
}

static int listen_anywhere(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 64) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void write_ini(void)
{
    static const char *const dialects[] = {"simple", "tombstone", "signed",   "paired",
                                           "flip",   "marker",    "sublists", "ring"};
    char path[128];
    snprintf(path, sizeof path, "%s/ini", run.folder);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fprintf(f, "[proxy]\nlisten = 127.0.0.1:%u\nthreads = 1\n%s", run.port,
            run.couchbase ? "" : "allow_flush_all = yes\n");
    fprintf(f, "[pool main]\nservers = 127.0.0.1:%u", run.server_ports[0]);
    if (run.couchbase) {
        fprintf(f, "\ntype = couchbase\nbucket = b\nusername = b\n");
    } else {
        fprintf(f, ", 127.0.0.1:%u\nconnections = 2\n", run.server_ports[1]);
    }
    fprintf(f, "timeout_ms = 200\nconnect_timeout_ms = 200\nretry_min_ms = 1\nretry_max_ms = 2\n"
               "eject_failures = 0\n");
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        fprintf(f, "[lists %s-]\ndialect = %s\n", dialects[i], dialects[i]);
    }
    fprintf(f, "[lists b]\nbridge = yes\n");
    CHECK(fclose(f) == 0);
}

static void start_daemon(void)
{
    char ini[128], log[128];
    snprintf(ini, sizeof ini, "%s/ini", run.folder);
    snprintf(log, sizeof log, "%s/log", run.folder);
    run.pid = fork();
    CHECK(run.pid >= 0);
    if (run.pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        CHECK(dup2(fd, 1) == 1 && dup2(fd, 2) == 2);
        execl(run.daemon, run.daemon, "-c", ini, (char *)NULL);
        _exit(127);
    }
}

static bool connect_client(struct client *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)run.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(c->fd >= 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(c->fd);
        return false;
    }
    CHECK(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
    c->in.len = c->out.len = 0;
    c->since_s = time(NULL);
    compose(&c->out, &run.rng);
    return true;
}

static void check_daemon(void)
{
    int status;
    if (waitpid(run.pid, &status, WNOHANG) == run.pid) {
        fail("the daemon ended, status 0x%x", status);
    }
}

/* --- what clients are given --- */

/* Does it begin with a plain key's mark, "p17="? */
static bool is_marked(struct slice value)
{
    size_t n = 1;
    while (n < value.len && value.p[n] >= '0' && value.p[n] <= '9') {
        n++;
    }
    return n > 1 && n < value.len && value.p[0] == 'p' && value.p[n] == '=';
}

/* The value of a plain key begins with its own mark, if with any: the server may lie. */
static void check_value(struct slice key, struct slice value)
{
    run.values++;
    if (is_marked(value) &&
        (key.len >= value.len || value.p[key.len] != '=' || memcmp(value.p, key.p, key.len) != 0)) {
        fail("key %.*s has the value %.*s", SLICE_ARGS(key), (int)(value.len < 60 ? value.len : 60),
             value.p);
    }
}

static struct slice word_at(struct slice line, size_t at)
{
    while (line.len > 0) {
        const char *blank = memchr(line.p, ' ', line.len);
        size_t n = blank == NULL ? line.len : (size_t)(blank - line.p);
        if (at-- == 0) {
            return slice_make(line.p, n);
        }
        (void)slice_take(&line, blank == NULL ? n : n + 1);
    }
    return SLICE_NONE;
}

static bool has_word(struct slice line, char letter)
{
    struct slice word;
    for (size_t at = line.p[0] == 'V' ? 2 : 1; (word = word_at(line, at)).len > 0; at++) {
        if (word.p[0] == letter) {
            return true;
        }
    }
    return false;
}

/* The answer to a meta command has what its opaque says that it asks for (compose.c), and nothing
 * else; a miss names what was asked at most. */
static void check_flags(struct slice line)
{
    const char *opaque = memmem(line.p, line.len, " O-", 3);
    bool value = slice_starts_with(line, SLICE_LIT("VA ")), hit = value;
    hit = hit || slice_starts_with(line, SLICE_LIT("HD "));
    if (slice_starts_with(line, SLICE_LIT("EN ")) && !strchr("kO", line.p[3])) {
        fail("a miss says more: %.*s", SLICE_ARGS(line));
    }
    if (!hit || opaque == NULL) {
        return;
    }
    struct slice asked = word_at(slice_make(opaque, (size_t)(line.p + line.len - opaque)), 1);
    for (const char *flag = "vft"; *flag != '\0'; flag++) {
        bool told = *flag == 'v' ? value : has_word(line, *flag);
        if (told != (memchr(asked.p, *flag, asked.len) != NULL)) {
            fail("flag %c: %.*s", *flag, SLICE_ARGS(line));
        }
    }
}

/* Takes a line, and its data block if it has one. Returns its length, 0 when it is not all there;
 * *end: it was MN. */
static size_t take_answer(struct slice in, bool *end)
{
    const char *newline = in.len == 0 ? NULL : memchr(in.p, '\n', in.len);
    if (newline == NULL) {
        return 0;
    }
    size_t len = (size_t)(newline - in.p) + 1;
    if (len < 2 || newline[-1] != '\r') {
        fail("a line that ends in LF: %.*s", (int)len, in.p);
    }
    struct slice line = slice_make(in.p, len - 2), key = SLICE_NONE;
    uint64_t data;
    bool value = slice_starts_with(line, SLICE_LIT("VALUE "));
    check_flags(line);
    if (value || slice_starts_with(line, SLICE_LIT("VA "))) {
        key = value ? word_at(line, 1) : SLICE_NONE;
        if (!slice_to_u64(word_at(line, value ? 3 : 1), &data)) {
            fail("no length: %.*s", SLICE_ARGS(line));
        }
    } else if (slice_starts_with(line, SLICE_LIT("ITEM "))) {
        if (!slice_to_u64(word_at(line, 2), &data)) {
            fail("no length: %.*s", SLICE_ARGS(line));
        }
    } else {
        *end = slice_equal(line, SLICE_LIT("MN"));
        return len;
    }
    if (in.len < len + data + 2) {
        return 0;
    }
    if (memcmp(in.p + len + data, "\r\n", 2) != 0) {
        fail("no line end behind %.*s", SLICE_ARGS(line));
    }
    if (value) {
        check_value(key, slice_make(in.p + len, (size_t)data));
    }
    return len + (size_t)data + 2;
}

/* `mn` may stand in the middle of a batch: the last one comes when nothing else does. */
static void take_answers(struct client *c)
{
    struct slice in = slice_make(c->in.p, c->in.len);
    size_t len;
    bool end = false;
    while ((len = take_answer(in, &end)) > 0) {
        (void)slice_take(&in, len);
    }
    bytes_take(&c->in, c->in.len - in.len);
    if (end && c->in.len == 0 && c->out.len == 0) {
        run.batches++;
        c->since_s = time(NULL);
        compose(&c->out, &run.rng);
    }
}

/* --- sockets --- */

/* False at the end of the connection. */
static bool receive(int fd, struct bytes *in)
{
    char buffer[65536];
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n > 0) {
        bytes_add(in, buffer, (size_t)n);
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool deliver(int fd, struct bytes *out)
{
    ssize_t n = out->len == 0 ? 0 : send(fd, out->p, out->len, MSG_NOSIGNAL);
    if (n > 0) {
        bytes_take(out, (size_t)n);
    }
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void serve_client(struct client *c, short events)
{
    bool alive = (events & ~POLLOUT) == 0 || receive(c->fd, &c->in);
    if (alive) {
        take_answers(c);
        alive = deliver(c->fd, &c->out);
    }
    if (!alive) {
        close(c->fd);
        check_daemon();
        while (!connect_client(c)) {
            check_daemon();
        }
    }
}

static void accept_talk(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
    for (size_t i = 0; fd >= 0 && i < TALKS; i++) {
        if (run.talk_fds[i] < 0) {
            struct talk *t = &run.talks[i];
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            run.talk_fds[i] = fd;
            t->in.len = t->out.len = 0;
            t->is_over = t->is_old = false;
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void serve_talk(size_t i, short events)
{
    struct talk *t = &run.talks[i];
    bool alive = (events & ~POLLOUT) == 0 || receive(run.talk_fds[i], &t->in);
    while (alive && !t->is_over &&
           (run.couchbase ? binary_answer(t, run.server_ports[0]) : ascii_answer(t))) {
    }
    if (!alive || !deliver(run.talk_fds[i], &t->out) || (t->is_over && t->out.len == 0)) {
        close(run.talk_fds[i]);
        run.talk_fds[i] = -1;
    }
}

static uint64_t answers(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TALKS; i++) {
        sum += run.talks[i].answers;
    }
    return sum;
}

static void turn(void)
{
    struct pollfd fds[SERVERS + CLIENTS + TALKS];
    size_t n = 0;
    for (size_t i = 0; i < SERVERS; i++) {
        fds[n++] = (struct pollfd){.fd = run.listeners[i], .events = POLLIN};
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        const struct client *c = &run.clients[i];
        fds[n++] =
            (struct pollfd){.fd = c->fd, .events = c->out.len > 0 ? POLLIN | POLLOUT : POLLIN};
    }
    for (size_t i = 0; i < TALKS; i++) {
        fds[n++] = (struct pollfd){.fd = run.talk_fds[i],
                                   .events = run.talks[i].out.len > 0 ? POLLIN | POLLOUT : POLLIN};
    }
    CHECK(poll(fds, n, 1000) >= 0 || errno == EINTR);
    for (size_t i = 0; i < TALKS; i++) {
        if (run.talk_fds[i] >= 0 && fds[SERVERS + CLIENTS + i].revents != 0) {
            serve_talk(i, fds[SERVERS + CLIENTS + i].revents);
        }
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        if (fds[SERVERS + i].revents != 0) {
            serve_client(&run.clients[i], fds[SERVERS + i].revents);
        } else if (time(NULL) > run.clients[i].since_s + SILENCE_S) {
            fail("a client waits");
        }
    }
    for (size_t i = 0; i < SERVERS; i++) {
        if (fds[i].revents != 0) {
            accept_talk(run.listeners[i]);
        }
    }
}

static void end_daemon(void)
{
    int status;
    char command[256];
    for (size_t i = 0; i < CLIENTS; i++) {
        close(run.clients[i].fd);
    }
    for (size_t i = 0; i < TALKS; i++) {
        if (run.talk_fds[i] >= 0) {
            close(run.talk_fds[i]);
        }
    }
    kill(run.pid, SIGTERM);
    CHECK(waitpid(run.pid, &status, 0) == run.pid);
    if (status != 0) {
        fail("the daemon's end: status 0x%x", status);
    }
    snprintf(command, sizeof command, "grep -qE 'Sanitizer|runtime error' %s/log", run.folder);
    if (system(command) == 0) {
        fail("a sanitizer's report");
    }
}

static void read_options(int argc, char **argv)
{
    run.daemon = argc > 1 ? argv[1] : NULL;
    for (int i = 2; i < argc; i++) {
        bool has_number = i + 1 < argc;
        if (strcmp(argv[i], "--couchbase") == 0) {
            run.couchbase = true;
        } else if (strcmp(argv[i], "--answers") == 0 && has_number) {
            run.answers = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0 && has_number) {
            run.seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--one-in") == 0 && has_number) {
            run.one_in = (unsigned)strtoul(argv[++i], NULL, 10);
        } else {
            run.daemon = NULL;
        }
    }
    if (run.daemon == NULL) {
        fprintf(stderr,
                "usage: hostile DAEMON [--couchbase] [--answers N] [--seed N] [--one-in N]\n"
                "  one answer in N is not true; 0: all are\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    rng_init_seed(&run.rng, run.seed);
    snprintf(run.folder, sizeof run.folder, "/tmp/hostile.XXXXXX");
    CHECK(mkdtemp(run.folder) != NULL);
    for (size_t i = 0; i < SERVERS; i++) {
        run.listeners[i] = listen_anywhere(&run.server_ports[i]);
    }
    close(listen_anywhere(&run.port));
    for (size_t i = 0; i < TALKS; i++) {
        run.talk_fds[i] = -1;
        run.talks[i].rng = &run.rng;
        run.talks[i].one_in = run.one_in;
    }
    write_ini();
    start_daemon();
    for (size_t i = 0; i < CLIENTS; i++) {
        while (!connect_client(&run.clients[i])) {
            check_daemon();
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
    uint64_t last_check = 0;
    while (answers() < run.answers) {
        turn();
        if (answers() > last_check + 1000) {
            last_check = answers();
            check_daemon();
        }
    }
    end_daemon();
    clean_up();
    printf("hostile: %s, seed %llu: %llu answers, one in %u not true; clients had %llu batches and "
           "%llu values: 0 failed\n",
           run.couchbase ? "couchbase" : "memcached", (unsigned long long)run.seed,
           (unsigned long long)answers(), run.one_in, (unsigned long long)run.batches,
           (unsigned long long)run.values);
    return 0;
}
