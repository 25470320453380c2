/* SPDX-License-Identifier: BSD-3-Clause */
#include "native_scene.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../world/settings.h"
#include "base/check.h"

const struct policy_spec policies[] = {
    {"create-head", false, false, false, 1, false},
    {"refuse-spread", true, true, false, 2, false},
    {"create-spread", false, true, false, 2, false},
    {"refuse-head", true, false, false, 1, false},
    {"create-head-miss", false, false, true, 1, false},
    {"create-spread-expires", false, true, false, 2, true},
};
const unsigned policy_count = sizeof policies / sizeof policies[0];

const struct scene_spec scenes[] = {
    {"missing", NULL, NULL},
    {"empty", "", NULL},
    {"log", "+0+1+2", NULL},
    {"log-cleared", "+0+1!+2+3-2+1", NULL},
    {"log-nearly-full", "+0+1+2+3+4+6+7+8", NULL},
    {"log-foldable", "+0+1+2-0+0-1+3-2+2-3", NULL},
    {"log-unfoldable", "+5+1+11-1+1+17+4", NULL},
    {"log-flip-or-fold", "+0+1+2+3+4+6+7+9-9", NULL},
    {"log-to-nothing", "+0+1-0+2-1+3-2+4-3-4", NULL},
    {"run", "r:+0+1+2/+3+4", NULL},
    {"run-log", "r:+0+1+2/+3 +6-0+0", NULL},
    {"run-full-log", "r:+0+1/+2+3 -1+1-2+5+6+7", NULL},
    {"run-cleared", "r:+0+1/+2 +3!+2+1", NULL},
    {"run-full-cleared", "r:+0+1/+2 +5-5+7+9!+2+1+3+4", NULL},
    {"run-emptied", "r:+0+1 -1-0", NULL},
    {"two-runs-log", "r:+0+1+2/+3 r:=1-2+4 +6-0", NULL},
    {"two-small-runs", "r:+0+1 r:-1+2", NULL},
    {"three-runs-full-log", "r:+0+1 r:=1+2 r:-0+3 +5+1-2+2+6+7", NULL},
    {"five-runs", "r:+0+1+2+3+4/+5+11 r:+6 r:-0 r:=1 r:+0+7 +5-5+8+9-8-9+10-10", NULL},
    {"runs-garbage", "r:+0+1+2 r:=1 g:2/1 g:1/1 +6", NULL},
    {"dead", "d:3/2 +0+1+2", NULL},
    {"run-dead-full-log", "r:+0+1+2 d:3/1 -1+1+5+6-2", NULL},
    {"young", "+0+1 y:3/1 +2", NULL},
    {"run-young-full-log", "r:+0+1+2 -1 y:3/1 +1+5+6-2", NULL},
    {"withdrawn", "w:2 +0+1+2-1+1", NULL},
    {"garbage-alone", "g:2/2 g:1/0", NULL},
    {"all-of-it", "r:+0+1+2/+3 r:=1-2+4 g:2/2 g:2/1 d:2/1 +6-0 y:2/2 w:1 +7!+1+2+5", NULL},
    {"evicted", "r:+0+1+2/+3+4 +6", "0.1"},
    {"evicted-newer", "r:+0+1+2/+3+4 r:=1+6 +7", "1.0"},
};
const unsigned scene_count = sizeof scenes / sizeof scenes[0];

/* Heads, logs and sublists under construction. */
struct text {
    size_t used;
    char data[1024];
};

static void PRINTF_LIKE(2, 3) add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->data + t->used, sizeof t->data - t->used, format, args);
    va_end(args);
    CHECK(n >= 0 && t->used + (size_t)n < sizeof t->data);
    t->used += (size_t)n;
}

struct builder {
    struct scene *scene;
    struct text header, log;
    unsigned names; /* drawn so far */
    int evicted_name, evicted_number;
};

static void add_item(struct builder *b, const char *key, const struct text *value)
{
    struct scene *scene = b->scene;
    CHECK(scene->item_count < SCENE_ITEMS_MAX);
    struct stored_item *item = &scene->items[scene->item_count++];
    item->key_len = (uint8_t)strlen(key);
    memcpy(item->key, key, item->key_len);
    item->exptime = scene->policy->expires && key[item->key_len - 1] == '#' ? LIFE_S : 0;
    item->placement_len =
        scene->policy->spread ? item->key_len : (uint8_t)(strchr(key, '#') - key + 1);
    item->value = block_new_exact(value->used);
    block_append(&item->value, value->data, value->used);
}

/* Thirteen times the same letter. */
static void name_text(char out[14], unsigned number)
{
    memset(out, 'a' + (int)number, 13);
    out[13] = '\0';
}

static void add_sublist(struct builder *b, unsigned name, unsigned number, const struct text *value)
{
    char text[14], key[64];
    name_text(text, name);
    snprintf(key, sizeof key, LIST_KEY "#%s.%u", text, number);
    if ((int)name == b->evicted_name && (int)number == b->evicted_number) {
        b->scene->evicted = (int)b->scene->item_count;
    }
    add_item(b, key, value);
}

/* Takes OP DIGITS from the front and writes it as an entry. Returns the op. */
static char add_entry(struct text *to, const char **at)
{
    char op = *(*at)++;
    if (op == '!') {
        add(to, "!0:");
        return op;
    }
    char *end, name[ITEM_NAME_MAX];
    unsigned long id = strtoul(*at, &end, 10);
    CHECK(end != *at && id < ITEMS_MAX);
    *at = end;
    size_t len = item_name(name, (uint16_t)id);
    add(to, "%c%zu:%.*s", op, len, (int)len, name);
    return op;
}

static bool ends(const char *at)
{
    return *at == '\0' || *at == ' ';
}

/* +0+1/+2: a run. */
static void add_run(struct builder *b, const char **at)
{
    char name[14];
    unsigned number = 0, items = 0;
    size_t bytes = 0;
    do {
        struct text entries = {0}, sublist = {0};
        unsigned count = 0;
        *at += **at == '/';
        while (!ends(*at) && **at != '/') {
            items += add_entry(&entries, at) != '-';
            count++;
        }
        add(&sublist, "^1 %010u\n%.*s", count, (int)entries.used, entries.data);
        add_sublist(b, b->names, number++, &sublist);
        bytes += sublist.used;
    } while (!ends(*at));
    name_text(name, b->names++);
    add(&b->header, " %s.%u:%zu:%u", name, number, bytes, items);
}

static unsigned take_number(const char **at)
{
    char *end;
    unsigned long n = strtoul(*at, &end, 10);
    CHECK(end != *at);
    *at = end;
    return (unsigned)n;
}

/* COUNT/STORED: names of which some are stored, from or up to the last. */
static unsigned add_names(struct builder *b, const char **at, bool last)
{
    unsigned count = take_number(at), stored = 0;
    if (**at == '/') {
        ++*at;
        stored = take_number(at);
    }
    for (unsigned i = 0; i < stored; i++) {
        struct text sublist = {0};
        add(&sublist, "^1 %010u\n+3:i.0", 1);
        add_sublist(b, b->names, last ? count - 1 - i : i, &sublist);
    }
    return count;
}

static void announce(struct builder *b, const char *name, unsigned count, int64_t created_s)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s.%u.%lld", name, count, (long long)created_s);
    add(&b->log, "~%d:%s", n, text);
}

static void add_part(struct builder *b, const char **at)
{
    char kind = **at, name[14];
    if ((*at)[1] != ':') {
        while (!ends(*at)) {
            add_entry(&b->log, at);
        }
        return;
    }
    *at += 2;
    if (kind == 'r') {
        add_run(b, at);
        return;
    }
    unsigned count = add_names(b, at, kind == 'g');
    name_text(name, b->names++);
    if (kind == 'g') {
        add(&b->header, " -%s.%u", name, count);
        return;
    }
    CHECK(kind == 'd' || kind == 'y' || kind == 'w');
    announce(b, name, count, kind == 'd' ? BEGIN_WALL_S - 1000 : BEGIN_WALL_S);
    if (kind == 'w') {
        announce(b, name, 0, BEGIN_WALL_S);
    }
}

static struct config *make_config(const struct policy_spec *spec)
{
    struct config *config = settings_create(64, 256, 96);
    struct list_policy *policy = &config->lists[0];
    policy->cache_bytes = 1 << 20;
    policy->announcement_grace_s = GRACE_S;
    policy->touch_interval_s = TOUCH_INTERVAL_S;
    policy->on_missing = spec->refuse ? ON_MISSING_REFUSE : ON_MISSING_CREATE;
    policy->on_damaged = spec->miss_damaged ? ON_DAMAGED_MISS : ON_DAMAGED_ERROR;
    policy->placement = spec->spread ? PLACEMENT_SPREAD : PLACEMENT_HEAD;
    config->tracked_lists = 2;
    settings_finish(config);
    return config;
}

static void build(struct scene *scene)
{
    const struct scene_spec *spec = scene->spec;
    struct builder b = {.scene = scene, .evicted_name = -1};
    if (spec->evicted != NULL) {
        b.evicted_name = spec->evicted[0] - '0';
        b.evicted_number = spec->evicted[2] - '0';
    }
    for (const char *at = spec->parts; *at != '\0'; at += *at == ' ') {
        add_part(&b, &at);
    }
    struct text head = {0};
    add(&head, "^1%.*s\n%.*s", (int)b.header.used, b.header.data, (int)b.log.used, b.log.data);
    add_item(&b, LIST_KEY "#", &head);
    CHECK((scene->evicted >= 0) == (spec->evicted != NULL));
}

/* Reads it as the model reads lists. */
static void find_first(struct scene *scene)
{
    static struct world world;
    struct ids items = {0};
    struct stored stored;
    world_init(&world, scene->policy->servers, scene->policy->spread, 1 << 20);
    scene_load(scene, &world.cluster, true);
    model_decode(&world.cluster, slice_of(LIST_KEY), BEGIN_WALL_S, &items, &stored);
    CHECK(!stored.malformed && !stored.sublist_missing);
    CHECK(listing_of_items(&scene->first, &items, stored.exists));
    world_fini(&world);
    ids_fini(&items);
}

void scene_init(struct scene *scene, const struct policy_spec *policy,
                const struct scene_spec *spec)
{
    *scene = (struct scene){.policy = policy, .spec = spec, .evicted = -1};
    scene->config = make_config(policy);
    if (spec->parts != NULL) {
        build(scene);
    }
    find_first(scene);
}

void scene_fini(struct scene *scene)
{
    for (unsigned i = 0; i < scene->item_count; i++) {
        block_unref(&scene->items[i].value);
    }
    config_destroy(&scene->config);
}

void scene_put(const struct cluster *cluster, const struct stored_item *item)
{
    struct be_operation set = {
        .verb = BE_SET,
        .key = slice_make(item->key, item->key_len),
        .exptime = item->exptime,
        .value = slice_make(item->value->data, item->value->used),
    };
    struct be_reply reply = {0};
    struct store *store = cluster_store(cluster, slice_make(item->key, item->placement_len));
    store_execute(store, &set, BEGIN_WALL_S, &reply);
    CHECK(reply.status == BE_STORED);
}

void scene_load(const struct scene *scene, const struct cluster *cluster, bool whole)
{
    for (unsigned i = 0; i < scene->item_count; i++) {
        if (whole || (int)i != scene->evicted) {
            scene_put(cluster, &scene->items[i]);
        }
    }
}
