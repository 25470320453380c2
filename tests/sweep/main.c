/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build/sweep --jobs 2                                  all cases, in two processes
 * build/sweep --only native --from 13 --to 26           the groups 13 to 25 of that table
 * build/sweep --only native --case 1,0,2,3,... --trace  one of them, every step shown
 */
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/slice.h"
#include "sweep.h"

#define JOBS_MAX 64

/* Those whose groups take longest first: so all jobs end at the same time. */
static const struct table *const tables[] = {&dialects_table, &transactions_table, &native_table};

struct options {
    const struct table *only;
    const char *one;
    uint64_t shown_max, from, to, jobs;
    bool trace;
};

/* A group under way. */
struct sweep {
    const struct table *table;
    struct tally *tally;
    const struct case_id *died; /* ended the process before; NULL: none did */
    bool counting;              /* it is passed: what came before was counted then */
    bool failed;
    uint64_t shown_max;
};

static void print_case(const struct case_id *c)
{
    for (unsigned i = 0; i < CASE_NUMBERS; i++) {
        printf("%s%u", i == 0 ? "" : ",", c->n[i]);
    }
}

static void report(const struct table *table, struct tally *tally, const char *wrong,
                   uint64_t shown_max)
{
    char text[512];
    tally->failed[tally->row]++;
    if (tally->shown == shown_max) {
        tally->hidden++;
        return;
    }
    tally->shown++;
    (void)table->describe(&tally->current, text, sizeof text);
    printf("FAILED --only %s --case ", table->name);
    print_case(&tally->current);
    printf(": %s: %s\n", text, wrong);
    fflush(stdout);
}

enum result sweep_try(struct sweep *s, const struct case_id *c, unsigned row)
{
    char wrong[WRONG_MAX] = "";
    s->failed = false;
    if (s->died != NULL && memcmp(c, s->died, sizeof *c) == 0) {
        s->counting = true;
        return DONE;
    }
    s->tally->current = *c;
    s->tally->row = row;
    enum result result = s->table->play(c, false, wrong);
    s->failed = result == DONE && wrong[0] != '\0';
    if (result == DONE && s->counting) {
        if (s->table->count_events != NULL) {
            s->table->count_events(s->tally->events);
        }
        if (s->failed) {
            report(s->table, s->tally, wrong, s->shown_max);
        } else {
            s->tally->passed[row]++;
        }
    }
    return s->failed ? NONE : result;
}

bool sweep_has_failed(const struct sweep *s)
{
    return s->failed;
}

/* In a process of its own, and again without the case that ended it, if one does. */
static void run_group(const struct table *table, unsigned group, struct tally *tally,
                      uint64_t shown_max)
{
    struct case_id died;
    struct sweep s = {.table = table, .tally = tally, .counting = true, .shown_max = shown_max};
    for (;;) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            table->run_group(&s, group);
            exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (status == 0) {
            return;
        }
        char what[64];
        snprintf(what, sizeof what, WIFSIGNALED(status) ? "ended by signal %d" : "ended with %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        report(table, tally, what, shown_max);
        died = tally->current;
        s.died = &died;
        s.counting = false;
    }
}

/* Lives in memory that the jobs share; each has tallies of its own. */
struct sweep_jobs {
    _Atomic uint64_t next; /* the first group that no job has taken, counted over all tables */
    struct tally tallies[JOBS_MAX][COUNT(tables)];
};

/* Groups take from no time to seconds: a job that is free takes the next one. */
static void run_job(struct sweep_jobs *jobs, unsigned job, const struct options *o)
{
    for (;;) {
        uint64_t group = atomic_fetch_add(&jobs->next, 1);
        unsigned t = 0;
        while (t < COUNT(tables) && group >= tables[t]->group_count()) {
            group -= tables[t++]->group_count();
        }
        if (t == COUNT(tables)) {
            return;
        }
        if ((o->only == NULL || o->only == tables[t]) && group >= o->from && group < o->to) {
            run_group(tables[t], (unsigned)group, &jobs->tallies[job][t], o->shown_max);
        }
    }
}

static void tally_add(struct tally *sum, const struct tally *other)
{
    for (unsigned i = 0; i < ROWS_MAX; i++) {
        sum->passed[i] += other->passed[i];
        sum->failed[i] += other->failed[i];
    }
    for (unsigned i = 0; i < EVENTS_MAX; i++) {
        sum->events[i] += other->events[i];
    }
    sum->hidden += other->hidden;
}

/* Adds to the sums. Of a whole table each event must have happened. */
static void print_table(const struct table *table, const struct tally *tally, bool whole,
                        uint64_t *passed, uint64_t *failed)
{
    printf("%s: ", table->name);
    table->print_bounds();
    for (unsigned i = 0; i < table->row_count; i++) {
        printf("  %-22s %8llu cases  %s\n", table->rows[i].name,
               (unsigned long long)(tally->passed[i] + tally->failed[i]), table->rows[i].text);
        *passed += tally->passed[i];
        *failed += tally->failed[i];
    }
    for (unsigned i = 0; i < table->event_count; i++) {
        bool never = whole && tally->events[i] == 0;
        printf("%s%s %llu%s", i == 0 ? "  " : ", ", table->event_name(i),
               (unsigned long long)tally->events[i], never ? " (FAILED: it is to happen)" : "");
        *failed += never;
    }
    printf(table->event_count > 0 ? "\n" : "");
    if (tally->hidden > 0) {
        printf("%llu more are not shown: --shown N\n", (unsigned long long)tally->hidden);
    }
}

static int run_all(const struct options *o)
{
    uint64_t passed = 0, failed = 0;
    pid_t children[JOBS_MAX];
    struct sweep_jobs *jobs =
        mmap(NULL, sizeof *jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(jobs != MAP_FAILED);
    fflush(stdout);
    for (unsigned job = 0; job < o->jobs; job++) {
        children[job] = fork();
        CHECK(children[job] >= 0);
        if (children[job] == 0) {
            run_job(jobs, job, o);
            exit(0);
        }
    }
    for (unsigned job = 0; job < o->jobs; job++) {
        int status = 0;
        CHECK(waitpid(children[job], &status, 0) == children[job] && status == 0);
    }
    for (unsigned t = 0; t < COUNT(tables); t++) {
        struct tally *sum = &jobs->tallies[0][t];
        for (unsigned job = 1; job < o->jobs; job++) {
            tally_add(sum, &jobs->tallies[job][t]);
        }
        if (o->only == NULL || o->only == tables[t]) {
            bool whole = o->from == 0 && o->to >= tables[t]->group_count();
            print_table(tables[t], sum, whole, &passed, &failed);
        }
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed == 0 ? 0 : 1;
}

static int run_one(const struct options *o)
{
    struct case_id c = {{0}};
    struct slice rest = slice_of(o->one);
    char text[512], wrong[WRONG_MAX] = "";
    bool good = o->only != NULL;
    for (unsigned i = 0; i < CASE_NUMBERS && good && rest.len > 0; i++) {
        const char *end = memchr(rest.p, ',', rest.len);
        uint64_t number = 0;
        good = slice_to_u64(slice_take(&rest, end == NULL ? rest.len : (size_t)(end - rest.p)),
                            &number) &&
               number < 1000;
        c.n[i] = (unsigned)number;
        (void)slice_take(&rest, end != NULL);
    }
    if (!good || !o->only->describe(&c, text, sizeof text)) {
        fprintf(stderr, "sweep: there is no such case; --only TABLE says of which table\n");
        return 2;
    }
    printf("%s\n", text);
    if (o->only->begin != NULL) {
        o->only->begin(&c);
    }
    enum result result = o->only->play(&c, o->trace, wrong);
    if (o->only->end != NULL) {
        o->only->end();
    }
    if (result != DONE) {
        printf(result == NONE ? "no case: a proxy comes to rest before\n"
                              : "ends like another case\n");
        return 2;
    }
    printf("%s\n", wrong[0] != '\0' ? wrong : "passed");
    return wrong[0] != '\0';
}

static const struct table *table_of(const char *name)
{
    for (unsigned t = 0; t < COUNT(tables); t++) {
        if (strcmp(tables[t]->name, name) == 0) {
            return tables[t];
        }
    }
    return NULL;
}

static bool parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"only", 1, NULL, 'n'},  {"case", 1, NULL, 'c'},
                                          {"trace", 0, NULL, 't'}, {"shown", 1, NULL, 's'},
                                          {"from", 1, NULL, 'f'},  {"to", 1, NULL, 'o'},
                                          {"jobs", 1, NULL, 'j'},  {NULL, 0, NULL, 0}};
    int c;
    bool good = true;
    while (good && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'n') {
            o->only = table_of(optarg);
            good = o->only != NULL;
        } else if (c == 'c') {
            o->one = optarg;
        } else if (c == 't') {
            o->trace = true;
        } else {
            uint64_t *value = c == 's'   ? &o->shown_max
                              : c == 'f' ? &o->from
                              : c == 'o' ? &o->to
                              : c == 'j' ? &o->jobs
                                         : NULL;
            good = value != NULL && slice_to_u64(slice_of(optarg), value);
        }
    }
    return good && optind == argc && o->jobs > 0 && o->jobs <= JOBS_MAX;
}

int main(int argc, char **argv)
{
    struct options o = {.shown_max = 20, .to = UINT64_MAX, .jobs = 1};
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: sweep [--only native|dialects|transactions] [--from GROUP] "
                        "[--to GROUP] [--case N,N,... [--trace]] [--shown N] [--jobs N]\n");
        return 2;
    }
    if (log_open("/dev/null", LOG_ERROR_LEVEL) != 0) {
        return 2;
    }
    return o.one != NULL ? run_one(&o) : run_all(&o);
}
