/* SPDX-License-Identifier: BSD-3-Clause */
/* libmemcached as an agent (README.md). */
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static memcached_st *client;

static void answer(memcached_return_t rc)
{
    if (rc == MEMCACHED_SUCCESS) {
        puts("yes");
    } else if (rc == MEMCACHED_NOTSTORED || rc == MEMCACHED_NOTFOUND ||
               rc == MEMCACHED_DATA_EXISTS) {
        puts("no");
    } else {
        printf("error %s\n", memcached_last_error_message(client));
    }
}

/* "<CRLF>" becomes a line end, and the rest moves up. */
static void put_line_ends(char *line)
{
    for (char *mark; (mark = strstr(line, "<CRLF>")) != NULL;) {
        mark[0] = '\r';
        mark[1] = '\n';
        memmove(mark + 2, mark + 6, strlen(mark + 6) + 1);
    }
}

/* One key, with its version. */
static void get(const char *key, uint64_t *version)
{
    size_t length = strlen(key);
    memcached_return_t rc = memcached_mget(client, &key, &length, 1);
    memcached_result_st *result = memcached_fetch_result(client, NULL, &rc);
    if (result != NULL) {
        *version = memcached_result_cas(result);
        printf("is %.*s\n", (int)memcached_result_length(result), memcached_result_value(result));
        memcached_result_free(result);
        memcached_fetch_result(client, NULL, &rc);
    } else if (rc == MEMCACHED_NOTFOUND || rc == MEMCACHED_END) {
        puts("miss");
    } else {
        answer(rc);
    }
}

int main(int argc, char **argv)
{
    memcached_return_t (*stores[])(memcached_st *, const char *, size_t, const char *, size_t,
                                   time_t, uint32_t) = {
        memcached_set, memcached_add, memcached_replace, memcached_append, memcached_prepend};
    const char *names[] = {"set", "add", "replace", "append", "prepend"};
    char line[1 << 16];
    uint64_t version = 0; /* of the last key that was asked for */

    client = memcached_create(NULL);
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
    if (strcmp(argv[2], "ketama") == 0) {
        memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA, 1);
    } else if (strcmp(argv[2], "ketama_weighted") == 0) {
        memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    }
    if (strcmp(argv[2], "binary") == 0) {
        memcached_behavior_set(client, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    }
    for (int i = 3; i < argc; i++) {
        char *port = strrchr(argv[i], ':');
        *port++ = '\0';
        memcached_server_add(client, argv[i], (in_port_t)strtoul(port, NULL, 10));
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        put_line_ends(line);
        char *rest = line;
        const char *verb = strsep(&rest, "\t"), *key = strsep(&rest, "\t");
        const char *text = rest != NULL ? rest : "";
        if (strncmp(verb, "get", 3) == 0) {
            get(key, &version);
        } else if (strcmp(verb, "cas") == 0) {
            answer(memcached_cas(client, key, strlen(key), text, strlen(text), 0, 0, version));
        } else if (strcmp(verb, "delete") == 0) {
            answer(memcached_delete(client, key, strlen(key), 0));
        } else if (strcmp(verb, "touch") == 0) {
            answer(memcached_touch(client, key, strlen(key), strtol(text, NULL, 10)));
        }
        for (int i = 0; i < 5; i++) {
            if (strcmp(verb, names[i]) == 0) {
                answer(stores[i](client, key, strlen(key), text, strlen(text), 0, 0));
            }
        }
        fflush(stdout);
    }
    memcached_free(client);
    return 0;
}
