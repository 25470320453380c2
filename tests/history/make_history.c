/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * make-history [OPTIONS] >FILE: a random history that is linearizable, to try check-history with.
 */
#include <getopt.h>
#include <stdlib.h>

#include "generate.h"

static const struct option names[] = {
    {"seed", 1, NULL, 's'},     {"operations", 1, NULL, 'n'}, {"lists", 1, NULL, 'l'},
    {"clients", 1, NULL, 'c'},  {"depth", 1, NULL, 'd'},      {"items", 1, NULL, 'i'},
    {"change", 1, NULL, 'm'},   {"unknown", 1, NULL, 'u'},    {"wipes", 1, NULL, 'w'},
    {"duration", 1, NULL, 't'}, {"refuse", 0, NULL, 'r'},     {NULL, 0, NULL, 0}};

static bool set(struct generate_options *o, int c, const char *text)
{
    uint64_t value = 0;
    if (c != 'r' && (c == '?' || !slice_to_u64(slice_of(text), &value))) {
        return false;
    }
    unsigned n = (unsigned)value;
    switch (c) {
    case 's':
        o->seed = value;
        return true;
    case 'n':
        o->operations = n;
        return true;
    case 'l':
        o->lists = n;
        return n > 0;
    case 'c':
        o->clients = n;
        return n > 0;
    case 'd':
        o->depth = n;
        return n > 0;
    case 'i':
        o->items = n;
        return n > 0;
    case 'm':
        o->items_max = n;
        return n > 0;
    case 'u':
        o->unknown_permille = n;
        return true;
    case 'w':
        o->wipe_permille = n;
        return true;
    case 't':
        o->duration = n;
        return n > 0;
    default:
        o->refuse = true;
        return true;
    }
}

int main(int argc, char **argv)
{
    struct generate_options o = {.seed = 1,
                                 .operations = 100000,
                                 .lists = 30,
                                 .clients = 20,
                                 .depth = 15,
                                 .items = 450,
                                 .items_max = 4,
                                 .unknown_permille = 10,
                                 .wipe_permille = 2,
                                 .duration = 1000};
    struct generated g;
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (!set(&o, c, optarg)) {
            fprintf(stderr, "usage: make-history [--seed N] [--operations N] [--lists N] "
                            "[--clients N] [--depth N] [--items N] [--change ITEMS] "
                            "[--unknown PERMILLE] [--wipes PERMILLE] [--duration N] [--refuse]\n");
            return 2;
        }
    }
    generate(&o, &g);
    history_write_header(stdout, o.refuse);
    for (unsigned i = 0; i < g.count; i++) {
        history_write(stdout, &g.ops[i]);
    }
    generated_fini(&g);
    return fflush(stdout) == 0 ? 0 : 1;
}
