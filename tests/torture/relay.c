/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP relay that does harm on order.
 *
 *     relay SEED SERVER_PORT...      each is a link, counted from 0, on a port that the system
 *                                    chooses; these ports are the first line of standard output
 *
 *     proxy --- up ---> relay --- up ---> server
 *     proxy <-- down -- relay <-- down -- server
 *
 * Orders come on standard input, one per line; each is answered by "ok" or "bad" on standard
 * output. The relay ends with its input.
 *
 *     LINK clear                 no more harm; what is held goes on
 *     LINK delay DIRECTION MS    what comes is passed on that much later
 *     LINK pieces DIRECTION N    written in pieces of at most N bytes, with short breaks
 *     LINK hold DIRECTION 1      what comes is kept, and passed on when held no more: also what a
 *                                proxy has sent that has given up meanwhile
 *     LINK swallow DIRECTION 1   what comes is thrown away; a connection that has lost bytes passes
 *                                nothing any more, since a stream has no holes, and is closed when
 *                                nothing is swallowed any more
 *     LINK cut DIRECTION N       of the next two bytes or more that come some are passed on, then
 *                                the connection is closed; N times. 0 takes back what is left of it
 *     LINK refuse both 1         new connections are closed at once
 *     LINK reset                 all connections are closed
 *     LINK stats                 answered by one line of numbers before the "ok": connections so
 *                                far, open ones, cuts, bytes up, bytes down, bytes held
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 64
#define READ_BYTES 65536
/* Per direction of a connection; then the sender has to wait. */
#define QUEUE_BYTES_MAX (4u << 20)
/* The longest break between two pieces. */
#define BREAK_US 300

enum { UP, DOWN };

struct chunk {
    STAILQ_ENTRY(chunk) link;
    int64_t due_us;
    size_t from, to; /* what is left of bytes */
    char bytes[];
};

/* One direction of a connection. */
struct flow {
    STAILQ_HEAD(, chunk) queue;
    size_t queued_bytes;
    bool ended; /* the source says no more */
    bool shut;  /* and the destination has been told */
    bool dead;  /* the destination takes nothing any more */
    bool lost;  /* bytes were swallowed: nothing passes any more */
};

struct pair {
    LIST_ENTRY(pair) link;
    struct relay_link *owner;
    int fd[2]; /* the source of UP, the source of DOWN */
    struct flow flow[2];
    bool doomed; /* closed at the end of the turn */
    bool last;   /* cut: closed as soon as its queues are empty */
};

/* What is done to what comes, by direction. */
struct harm {
    int64_t delay_us;
    size_t piece_bytes;
    bool hold, swallow;
    unsigned cuts; /* still to be made */
};

struct relay_link {
    int listener;
    struct sockaddr_in server;
    LIST_HEAD(, pair) pairs;
    struct harm harm[2];
    bool refuse;
    uint64_t connections, cuts, bytes[2];
};

static struct relay_link links[LINKS_MAX];
static size_t link_count;
static uint64_t random_state;

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "relay: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Below n, from the seed: splitmix64. */
static uint64_t draw(uint64_t n)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}

static void prepare_socket(int fd)
{
    int on = 1;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) {
        die("socket options: %s", strerror(errno));
    }
}

static struct sockaddr_in local_address(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Returns the port that it listens on. */
static int open_link(struct relay_link *link, int server_port)
{
    struct sockaddr_in address = local_address(0);
    socklen_t size = sizeof address;
    link->server = local_address(server_port);
    LIST_INIT(&link->pairs);
    link->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->listener < 0 || bind(link->listener, (struct sockaddr *)&address, size) < 0 ||
        listen(link->listener, 1024) < 0 || fcntl(link->listener, F_SETFL, O_NONBLOCK) < 0 ||
        getsockname(link->listener, (struct sockaddr *)&address, &size) < 0) {
        die("cannot listen: %s", strerror(errno));
    }
    return ntohs(address.sin_port);
}

static void accept_one(struct relay_link *link)
{
    int fd = accept4(link->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    link->connections++;
    if (link->refuse) {
        close(fd);
        return;
    }
    struct pair *pair = calloc(1, sizeof *pair);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pair == NULL || server < 0) {
        die("no more connections: %s", strerror(errno));
    }
    prepare_socket(fd);
    prepare_socket(server);
    pair->owner = link;
    pair->fd[UP] = fd;
    pair->fd[DOWN] = server;
    STAILQ_INIT(&pair->flow[UP].queue);
    STAILQ_INIT(&pair->flow[DOWN].queue);
    LIST_INSERT_HEAD(&link->pairs, pair, link);
    const struct sockaddr *address = (const struct sockaddr *)&link->server;
    if (connect(server, address, sizeof link->server) < 0 && errno != EINPROGRESS) {
        pair->doomed = true;
    }
}

static void empty_queue(struct flow *flow)
{
    struct chunk *chunk;
    while ((chunk = STAILQ_FIRST(&flow->queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&flow->queue, link);
        free(chunk);
    }
    flow->queued_bytes = 0;
}

static void close_pair(struct pair *pair)
{
    /* Half of them as a reset, which also takes back what the other side has not read. */
    struct linger reset = {.l_onoff = draw(2) == 0};
    for (int d = 0; d < 2; d++) {
        (void)setsockopt(pair->fd[d], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(pair->fd[d]);
        empty_queue(&pair->flow[d]);
    }
    LIST_REMOVE(pair, link);
    free(pair);
}

static void push(struct pair *pair, int d, const char *bytes, size_t size)
{
    struct flow *flow = &pair->flow[d];
    struct chunk *chunk = malloc(sizeof *chunk + size);
    if (chunk == NULL) {
        die("out of memory");
    }
    chunk->due_us = now_us() + pair->owner->harm[d].delay_us;
    chunk->from = 0;
    chunk->to = size;
    memcpy(chunk->bytes, bytes, size);
    STAILQ_INSERT_TAIL(&flow->queue, chunk, link);
    flow->queued_bytes += size;
}

static void take_in(struct pair *pair, int d)
{
    static char bytes[READ_BYTES];
    struct flow *flow = &pair->flow[d];
    struct harm *harm = &pair->owner->harm[d];
    ssize_t size = recv(pair->fd[d], bytes, sizeof bytes, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size <= 0) {
        flow->ended = true;
        return;
    }
    pair->owner->bytes[d] += (uint64_t)size;
    flow->lost = flow->lost || harm->swallow;
    if (flow->dead || flow->lost || pair->last) {
        return;
    }
    if (harm->cuts > 0 && size > 1) {
        harm->cuts--;
        pair->owner->cuts++;
        pair->last = true;
        size = 1 + (ssize_t)draw((uint64_t)size - 1);
    }
    push(pair, d, bytes, (size_t)size);
}

/* What has come before may go now? */
static bool is_due(const struct pair *pair, int d, int64_t at_us)
{
    const struct chunk *chunk = STAILQ_FIRST(&pair->flow[d].queue);
    return chunk != NULL && !pair->owner->harm[d].hold && chunk->due_us <= at_us;
}

static void pass_on(struct pair *pair, int d)
{
    struct flow *flow = &pair->flow[d];
    size_t piece_bytes = pair->owner->harm[d].piece_bytes;
    int64_t at_us = now_us();
    while (is_due(pair, d, at_us)) {
        struct chunk *chunk = STAILQ_FIRST(&flow->queue);
        size_t size = chunk->to - chunk->from;
        if (piece_bytes > 0) {
            size_t most = 1 + draw(piece_bytes);
            size = size < most ? size : most;
        }
        ssize_t sent = send(pair->fd[1 - d], chunk->bytes + chunk->from, size, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (sent < 0) {
            flow->dead = true;
            empty_queue(flow);
            return;
        }
        chunk->from += (size_t)sent;
        flow->queued_bytes -= (size_t)sent;
        if (piece_bytes > 0) {
            chunk->due_us = at_us + (int64_t)draw(BREAK_US);
        }
        if (chunk->from == chunk->to) {
            STAILQ_REMOVE_HEAD(&flow->queue, link);
            free(chunk);
        }
    }
}

/* Tells the destination of an end once everything before it is passed on. */
static void settle(struct pair *pair)
{
    bool idle[2];
    for (int d = 0; d < 2; d++) {
        struct flow *flow = &pair->flow[d];
        idle[d] = STAILQ_EMPTY(&flow->queue);
        if (flow->ended && idle[d] && !flow->shut && !flow->lost) {
            flow->shut = true;
            (void)shutdown(pair->fd[1 - d], SHUT_WR);
        }
    }
    bool both_ended = pair->flow[UP].ended && pair->flow[DOWN].ended;
    if ((both_ended || pair->last) && idle[UP] && idle[DOWN]) {
        pair->doomed = true;
    }
}

static size_t held_bytes(const struct relay_link *link)
{
    size_t bytes = 0;
    const struct pair *pair;
    LIST_FOREACH(pair, &link->pairs, link)
    {
        bytes += pair->flow[UP].queued_bytes + pair->flow[DOWN].queued_bytes;
    }
    return bytes;
}

static void print_stats(const struct relay_link *link)
{
    unsigned open = 0;
    const struct pair *pair;
    LIST_FOREACH(pair, &link->pairs, link)
    {
        open++;
    }
    printf("%llu %u %llu %llu %llu %zu\n", (unsigned long long)link->connections, open,
           (unsigned long long)link->cuts, (unsigned long long)link->bytes[UP],
           (unsigned long long)link->bytes[DOWN], held_bytes(link));
}

static void doom_lost(struct relay_link *link)
{
    struct pair *pair;
    if (link->harm[UP].swallow || link->harm[DOWN].swallow) {
        return;
    }
    LIST_FOREACH(pair, &link->pairs, link)
    {
        pair->doomed = pair->doomed || pair->flow[UP].lost || pair->flow[DOWN].lost;
    }
}

static bool order_harm(struct harm *harm, const char *word, unsigned number)
{
    if (strcmp(word, "delay") == 0) {
        harm->delay_us = (int64_t)number * 1000;
    } else if (strcmp(word, "pieces") == 0) {
        harm->piece_bytes = number;
    } else if (strcmp(word, "hold") == 0) {
        harm->hold = number != 0;
    } else if (strcmp(word, "swallow") == 0) {
        harm->swallow = number != 0;
    } else if (strcmp(word, "cut") == 0) {
        harm->cuts = number;
    } else {
        return false;
    }
    return true;
}

static bool carry_out(const char *line)
{
    unsigned at, number = 0;
    char word[16], direction[8];
    int words = sscanf(line, "%u %15s %7s %u", &at, word, direction, &number);
    if (words < 2 || at >= link_count) {
        return false;
    }
    struct relay_link *link = &links[at];
    if (words == 2 && strcmp(word, "clear") == 0) {
        memset(link->harm, 0, sizeof link->harm);
        link->refuse = false;
    } else if (words == 2 && strcmp(word, "stats") == 0) {
        print_stats(link);
    } else if (words == 2 && strcmp(word, "reset") == 0) {
        struct pair *pair;
        LIST_FOREACH(pair, &link->pairs, link)
        {
            pair->doomed = true;
        }
    } else if (words == 4 && strcmp(word, "refuse") == 0) {
        link->refuse = number != 0;
    } else if (words == 4) {
        bool both = strcmp(direction, "both") == 0;
        bool known = both || strcmp(direction, "up") == 0 || strcmp(direction, "down") == 0;
        for (int d = 0; d < 2 && known; d++) {
            if (both || (d == UP) == (direction[0] == 'u')) {
                known = order_harm(&link->harm[d], word, number);
            }
        }
        return known;
    } else {
        return false;
    }
    return true;
}

/* Standard input is read unbuffered: a line kept in a FILE would not be seen by poll. */
static void read_orders(void)
{
    static char line[256];
    static size_t used;
    char bytes[256];
    ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
    if (size <= 0) {
        exit(0);
    }
    for (ssize_t i = 0; i < size; i++) {
        if (bytes[i] != '\n' && used + 1 < sizeof line) {
            line[used++] = bytes[i];
        } else {
            line[used] = '\0';
            used = 0;
            puts(carry_out(line) ? "ok" : "bad");
        }
    }
    fflush(stdout);
}

struct polled {
    struct pollfd *fds;
    size_t count, cap;
};

static void add_fd(struct polled *polled, int fd, short events)
{
    if (polled->count == polled->cap) {
        polled->cap = polled->cap == 0 ? 256 : polled->cap * 2;
        polled->fds = realloc(polled->fds, polled->cap * sizeof *polled->fds);
        if (polled->fds == NULL) {
            die("out of memory");
        }
    }
    /* An end that no read waits for must not be reported again and again. */
    polled->fds[polled->count++] = (struct pollfd){.fd = events != 0 ? fd : -1, .events = events};
}

static void add_pair(struct polled *polled, const struct pair *pair, int64_t at_us,
                     int64_t *wake_us)
{
    short events[2] = {0, 0};
    for (int d = 0; d < 2; d++) {
        const struct flow *flow = &pair->flow[d];
        const struct chunk *chunk = STAILQ_FIRST(&flow->queue);
        if (!flow->ended && flow->queued_bytes < QUEUE_BYTES_MAX) {
            events[d] |= POLLIN;
        }
        if (is_due(pair, d, at_us)) {
            events[1 - d] |= POLLOUT;
        } else if (chunk != NULL && !pair->owner->harm[d].hold && chunk->due_us < *wake_us) {
            *wake_us = chunk->due_us;
        }
    }
    add_fd(polled, pair->fd[UP], events[UP]);
    add_fd(polled, pair->fd[DOWN], events[DOWN]);
}

static void serve_pairs(struct relay_link *link, const struct pollfd **at)
{
    struct pair *pair;
    LIST_FOREACH(pair, &link->pairs, link)
    {
        for (int d = 0; d < 2; d++, (*at)++) {
            if (((*at)->revents & ~POLLOUT) != 0 && !pair->flow[d].ended) {
                take_in(pair, d);
            }
        }
        for (int d = 0; d < 2; d++) {
            pass_on(pair, d);
        }
        settle(pair);
    }
}

static void bury(struct relay_link *link)
{
    struct pair *next;
    doom_lost(link);
    for (struct pair *pair = LIST_FIRST(&link->pairs); pair != NULL; pair = next) {
        next = LIST_NEXT(pair, link);
        if (pair->doomed) {
            close_pair(pair);
        }
    }
}

/* One turn: wait, move bytes, obey, accept. */
static void turn(struct polled *polled)
{
    int64_t at_us = now_us(), wake_us = at_us + 1000000;
    polled->count = 0;
    add_fd(polled, STDIN_FILENO, POLLIN);
    for (size_t i = 0; i < link_count; i++) {
        struct pair *pair;
        add_fd(polled, links[i].listener, POLLIN);
        LIST_FOREACH(pair, &links[i].pairs, link)
        {
            add_pair(polled, pair, at_us, &wake_us);
        }
    }
    int64_t wait_us = wake_us - at_us;
    struct timespec timeout = {.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
    if (ppoll(polled->fds, polled->count, &timeout, NULL) < 0 && errno != EINTR) {
        die("ppoll: %s", strerror(errno));
    }
    const struct pollfd *at = polled->fds + 1;
    for (size_t i = 0; i < link_count; i++) {
        const struct pollfd *listener = at++;
        serve_pairs(&links[i], &at);
        if (listener->revents != 0) {
            accept_one(&links[i]);
        }
    }
    if (polled->fds[0].revents != 0) {
        read_orders();
    }
    for (size_t i = 0; i < link_count; i++) {
        bury(&links[i]);
    }
}

int main(int argc, char **argv)
{
    struct polled polled = {0};
    if (argc < 3 || argc - 2 > LINKS_MAX) {
        die("usage: relay SEED SERVER_PORT...");
    }
    signal(SIGPIPE, SIG_IGN);
    random_state = strtoull(argv[1], NULL, 10);
    for (int i = 2; i < argc; i++) {
        printf("%d ", open_link(&links[link_count++], (int)strtol(argv[i], NULL, 10)));
    }
    puts("");
    fflush(stdout);
    for (;;) {
        turn(&polled);
    }
}
