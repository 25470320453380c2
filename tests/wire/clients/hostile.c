/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds the items that it is told, as hex, with the helper of docs/clients/c.md. */
#include "lists.h"

static size_t unhex(const char *hex, char *bytes)
{
    size_t count = 0;
    unsigned int byte;
    for (; sscanf(hex, "%2x", &byte) == 1 && *hex != ' '; hex += 2) {
        bytes[count++] = (char)byte;
    }
    bytes[count] = '\0';
    return count;
}

static void print(void *to, const char *item, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        fprintf(to, "%02x", (unsigned char)item[i]);
    }
    fprintf(to, "\n");
}

int main(void)
{
    struct lists lists;
    char line[8192], key[4096], item[4096];
    if (fgets(line, sizeof(line), stdin) == NULL) {
        return 1;
    }
    line[strcspn(line, "\n")] = '\0';
    if (lists_open(&lists, "127.0.0.1", line) != 0) {
        return 1;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *blank = strchr(line, ' ');
        unhex(line, key);
        size_t bytes = unhex(blank + 1, item);
        puts(lists_add(&lists, key, item, bytes) == 0 ? "stored" : "refused");
    }
    int failed = lists_items(&lists, "hostile", print, stdout);
    lists_delete(&lists, "hostile", "nothing", 7);
    lists_close(&lists);
    return failed != 0;
}
