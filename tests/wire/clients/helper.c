/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls scripts/clients/c as the lines of its input say; README.md has their words. */
#include "mclistd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64

struct argument {
    char kind;
    long long number;
    struct mclistd_item text;
    struct mclistd_list list;
};

static struct mclistd *lists;

/* Memory for one line of the input: what is left at the end is the helper's. */
static struct {
    _Alignas(16) char bytes[1 << 20];
    size_t used;
} memory;

static void *get(size_t count, size_t size)
{
    void *got = memory.bytes + memory.used;
    memory.used += (count * size + 15) / 16 * 16;
    if (memory.used > sizeof(memory.bytes)) {
        abort();
    }
    return memset(got, 0, count * size);
}

/* Up to a comma or the end; *text goes behind it. */
static struct mclistd_item unhex(const char **text)
{
    char *bytes = get(strlen(*text) / 2 + 1, 1);
    size_t count = 0;
    unsigned int byte;
    for (; sscanf(*text, "%2x", &byte) == 1; *text += 2) {
        bytes[count++] = (char)byte;
    }
    bytes[count] = '\0';
    return (struct mclistd_item){bytes, count};
}

static struct argument argument(const char *word)
{
    struct argument a = {.kind = *word++};
    if (a.kind == 'i') {
        a.number = strtoll(word, NULL, 10);
    } else if (a.kind == 's') {
        a.text = unhex(&word);
    } else if (a.kind == 'l' && *word != '\0') {
        struct mclistd_item *items = get(WORDS_MAX, sizeof(*items));
        for (word--; *word == ',' || *word == 'l';) {
            word++;
            items[a.list.count++] = unhex(&word);
        }
        a.list.items = items;
    }
    return a;
}

/* Those from this one on. */
static struct mclistd_list list_of(const struct argument *args, size_t count)
{
    struct mclistd_item *items = get(count + 1, sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        items[i] = args[i].text;
    }
    return (struct mclistd_list){count, NULL, items};
}

/* Keys are texts: a key with a zero byte is not what a C program can name. */
static struct mclistd_list keys_of(const struct argument *args, size_t count)
{
    const char **texts = get(count + 1, sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        texts[i] = args[i].text.data;
    }
    return (struct mclistd_list){count, texts, NULL};
}

/* --- what is printed --- */

static void show_text(struct mclistd_item item)
{
    printf("s");
    for (size_t i = 0; i < item.bytes; i++) {
        printf("%02x", (unsigned char)item.data[i]);
    }
}

static void show_items(const struct mclistd_item *items, size_t count)
{
    printf("[");
    for (size_t i = 0; i < count; i++) {
        printf("%s", i > 0 ? " " : "");
        show_text(items[i]);
    }
    printf("]");
}

static void show_groups(const struct mclistd_result *r, int are_lists)
{
    printf("{");
    for (size_t i = 0; i < r->group_count; i++) {
        printf("%s", i > 0 ? " " : "");
        show_text(r->groups[i].name);
        printf("=");
        if (are_lists) {
            show_items(r->groups[i].items, r->groups[i].count);
        } else {
            show_text(r->groups[i].items[0]);
        }
    }
    printf("}");
}

static void show(const struct mclistd_result *r, const char *name)
{
    switch (r->kind) {
    case MCLISTD_TRUE:
        printf("true");
        break;
    case MCLISTD_FALSE:
        printf("false");
        break;
    case MCLISTD_NUMBER:
        printf("i%lld", r->number);
        break;
    case MCLISTD_NONE:
    case MCLISTD_QUEUED:
        printf("null");
        break;
    case MCLISTD_REFUSED:
        printf("refused:");
        for (const char *c = r->error; *c != '\0'; c++) {
            printf("%02x", (unsigned char)*c);
        }
        break;
    case MCLISTD_LOST:
        printf("lost");
        break;
    case MCLISTD_BAD:
        printf("bad");
        break;
    case MCLISTD_MOVED:
        printf("moved");
        break;
    case MCLISTD_ITEMS:
        if (strcmp(name, "lgetx") == 0 || strcmp(name, "lstat") == 0) {
            show_groups(r, strcmp(name, "lgetx") == 0);
        } else {
            show_items(r->items, r->count);
        }
        if (strcmp(name, "lgets") == 0) {
            printf("@i%lld", r->number);
        }
    }
}

static void show_pages(struct mclistd_pages pages)
{
    const struct mclistd_result *page;
    char *text;
    size_t bytes, count = 0;
    FILE *real = stdout, *shown = open_memstream(&text, &bytes);
    stdout = shown;
    printf("[");
    while ((page = mclistd_next(&pages)) != NULL && page->kind == MCLISTD_ITEMS) {
        printf("%s", count++ > 0 ? " " : "");
        show(page, "");
    }
    printf("]");
    fclose(shown);
    stdout = real;
    if (page != NULL) {
        show(page, "");
    } else {
        printf("%s", text);
    }
    free(text);
}

/* --- calls --- */

static void open_lists(const struct argument *args, size_t count)
{
    char address[64];
    mclistd_close(&lists);
    snprintf(address, sizeof(address), "127.0.0.1:%lld", args[0].number);
    lists = mclistd_open(address,
                         &(struct mclistd_options){.timeout_ms = (int)args[1].number,
                                                   .delimiter = args[2].text.data[0],
                                                   .login = count > 3 ? args[3].text.data : NULL});
    printf("null");
}

static void run(void)
{
    size_t count;
    const struct mclistd_result *results = mclistd_run(lists, &count);
    printf("[");
    for (size_t i = 0; i < count; i++) {
        printf("%s", i > 0 ? " " : "");
        show(&results[i], "");
    }
    printf("]");
}

/* Verbs whose words are a key and items, a key and a number, a key, or keys. */
static const struct mclistd_result *call_alike(const char *name, struct argument *a, size_t n)
{
#define ITEM_VERB(verb) \
    if (strcmp(name, #verb) == 0) \
    return mclistd_##verb(lists, a[0].text.data, list_of(a + 1, n - 1))
#define NUMBER_VERB(verb) \
    if (strcmp(name, #verb) == 0) \
    return mclistd_##verb(lists, a[0].text.data, a[1].number)
#define RANGE_VERB(verb) \
    if (strcmp(name, #verb) == 0) \
    return mclistd_##verb(lists, a[0].text.data, a[1].number, a[2].number)
#define PAGE_VERB(verb) \
    if (strcmp(name, #verb) == 0) \
    return mclistd_##verb(lists, a[0].text.data, a[1].text, a[2].number)
#define KEY_VERB(verb) \
    if (strcmp(name, #verb) == 0) \
    return mclistd_##verb(lists, a[0].text.data)
#define KEYS_VERB(verb) \
    if (strcmp(name, #verb) == 0) \
    return mclistd_##verb(lists, keys_of(a, n))
#define STORE_VERB(verb) \
    if (strcmp(name, #verb) == 0) \
    return mclistd_##verb(lists, a[0].text.data, keys_of(a + 1, n - 1))
    ITEM_VERB(ladd);
    ITEM_VERB(ldel);
    ITEM_VERB(lset);
    ITEM_VERB(lcreate);
    ITEM_VERB(laddx);
    ITEM_VERB(ldelx);
    ITEM_VERB(lhas);
    NUMBER_VERB(ltouch);
    NUMBER_VERB(llease);
    NUMBER_VERB(lrandom);
    NUMBER_VERB(lpop);
    RANGE_VERB(lrange);
    RANGE_VERB(lrevrange);
    PAGE_VERB(lafter);
    PAGE_VERB(lbefore);
    KEY_VERB(ldrop);
    KEY_VERB(lpurge);
    KEY_VERB(lcompact);
    KEY_VERB(lmigrate);
    KEY_VERB(lconvert);
    KEY_VERB(lget);
    KEY_VERB(lgets);
    KEY_VERB(llen);
    KEY_VERB(lstat);
    KEYS_VERB(lgetx);
    KEYS_VERB(linter);
    KEYS_VERB(lunion);
    KEYS_VERB(ldiff);
    KEYS_VERB(linterlen);
    KEYS_VERB(lunionlen);
    KEYS_VERB(ldifflen);
    STORE_VERB(linterstore);
    STORE_VERB(lunionstore);
    STORE_VERB(ldiffstore);
    return NULL;
}

static const struct mclistd_result *call_other(const char *name, struct argument *a, size_t n)
{
    const char *key = a[0].text.data;
    struct mclistd_put options = {0};
    if (n > 2) {
        options.has_exptime = a[2].kind == 'i';
        options.exptime = a[2].number;
    }
    options.new_only = n > 2 && a[n - 1].kind == 't';
    if (strcmp(name, "lput") == 0 && n > 3) {
        options.has_token = a[3].kind == 'i';
        options.token = a[3].number;
    }
    if (strcmp(name, "lput") == 0) {
        return mclistd_lput(lists, key, a[1].list, &options);
    }
    if (strcmp(name, "lcopy") == 0) {
        return mclistd_lcopy(lists, key, a[1].text.data, &options);
    }
    if (strcmp(name, "laddt") == 0) {
        return mclistd_laddt(lists, key, a[1].number, list_of(a + 2, n - 2));
    }
    if (strcmp(name, "lttl") == 0) {
        return n > 1 ? mclistd_lttl_item(lists, key, a[1].text) : mclistd_lttl(lists, key);
    }
    if (strcmp(name, "lpopto") == 0) {
        return mclistd_lpopto(lists, key, a[1].text.data, a[2].number);
    }
    if (strcmp(name, "lmove") == 0) {
        return mclistd_lmove(lists, key, a[1].text.data, list_of(a + 2, n - 2));
    }
    struct mclistd_change changes[WORDS_MAX];
    for (size_t i = 0; strcmp(name, "ltx") == 0 && i < n; i++) {
        const struct mclistd_item *words = a[i].list.items;
        changes[i] = (struct mclistd_change){
            words[0].data, words[1].data, {a[i].list.count - 2, NULL, words + 2}};
    }
    return strcmp(name, "ltx") == 0 ? mclistd_ltx(lists, changes, n) : NULL;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        memory.used = 0;
        line[strcspn(line, "\n")] = '\0';
        char *rest = line, *name = strsep(&rest, " "), *word;
        struct argument args[WORDS_MAX] = {{0}};
        size_t count = 0;
        while ((word = strsep(&rest, " ")) != NULL) {
            args[count++] = argument(word);
        }
        if (strcmp(name, "open") == 0) {
            open_lists(args, count);
        } else if (strcmp(name, "pipeline") == 0) {
            mclistd_pipeline(lists);
            printf("null");
        } else if (strcmp(name, "run") == 0) {
            run();
        } else if (strcmp(name, "pages") == 0) {
            show_pages((struct mclistd_pages){.lists = lists,
                                              .key = args[0].text.data,
                                              .count = args[1].number,
                                              .newest = count > 2});
        } else {
            const struct mclistd_result *r = call_alike(name, args, count);
            show(r != NULL ? r : call_other(name, args, count), name);
        }
        printf("\n");
        fflush(stdout);
    }
    mclistd_close(&lists);
    free(line);
    return 0;
}
