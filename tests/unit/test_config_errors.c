/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of files: tests/unit/config_errors.txt, which begins with how cases are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support_config.h"

#define CASES "tests/unit/config_errors.txt"

struct block {
    char heading[128];
    char text[4096]; /* of the case, from the beginning of the file */
    size_t shared;   /* so much of it begins all cases of the block */
};

static void add_line(struct block *block, const char *line)
{
    size_t n = strlen(block->text);
    assert_true(n + strlen(line) < sizeof block->text);
    (void)snprintf(block->text + n, sizeof block->text - n, "%s", line);
}

static void begin(struct block *block, const char *heading)
{
    const char *left = block->text + block->shared;
    if (block->heading[0] != '\0' && left[strspn(left, "\n")] != '\0') {
        fail_msg("%s: no => behind the last case of %s", CASES, block->heading);
    }
    *block = (struct block){.shared = 0};
    (void)snprintf(block->heading, sizeof block->heading, "%s", heading);
}

/* Is that said which is expected? Then the text of the next case begins. */
static bool holds(struct block *block, unsigned line, const char *expected)
{
    const char *said = said_of(block->text);
    bool equal = strcmp(said, expected) == 0;
    if (!equal) {
        print_error("%s:%u (%s):\n%swhat is said:  %s\nexpected here: %s\n", CASES, line,
                    block->heading, block->text, said, expected);
    }
    block->text[block->shared] = '\0';
    return equal;
}

static void test_cases(void **state)
{
    (void)state;
    char line[1024];
    struct block block = {.shared = 0};
    unsigned number = 0, cases = 0, wrong = 0;
    FILE *file = fopen(CASES, "re");
    if (file == NULL) {
        fail_msg("%s cannot be opened; run this test from the top folder", CASES);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        number++;
        size_t n = strcspn(line, "\n");
        assert_int_equal(line[n], '\n');
        if (strncmp(line, "== ", 3) == 0 || strncmp(line, "=> ", 3) == 0) {
            line[n] = '\0';
        }
        if (strncmp(line, "== ", 3) == 0) {
            begin(&block, line + 3);
        } else if (strcmp(line, "...\n") == 0) {
            block.shared = strlen(block.text);
        } else if (strncmp(line, "=> ", 3) == 0) {
            cases++;
            wrong += !holds(&block, number, line + 3);
        } else {
            add_line(&block, line);
        }
    }
    begin(&block, "");
    fclose(file);
    print_message("%u cases\n", cases);
    assert_true(cases > 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
