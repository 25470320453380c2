/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All unit tests in one program: what all of them need is linked once. Each tests/unit/test_*.c has
 * a main() of its own, which the Makefile compiles under the file's name, and is run in a process
 * of its own:
 *
 *     build/unit/tests               the names
 *     build/unit/tests test_slice    the tests of that file
 */
#include <stdio.h>
#include <string.h>

#define UNIT_TESTS(name) int name##_main(void);
#include "unit/names.h"
#undef UNIT_TESTS

static const struct {
    const char *name;
    int (*run)(void);
} files[] = {
#define UNIT_TESTS(name) {#name, name##_main},
#include "unit/names.h"
#undef UNIT_TESTS
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (argc < 2) {
            printf("%s\n", files[i].name);
        } else if (strcmp(argv[1], files[i].name) == 0) {
            return files[i].run();
        }
    }
    if (argc >= 2) {
        fprintf(stderr, "tests: there is no tests/unit/%s.c\n", argv[1]);
    }
    return argc < 2 ? 0 : 2;
}
