/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration: one ini file and a few flags, read once into one struct that never changes
 * afterwards. config/table.c names every key with its type, range, default and help.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/log.h"
#include "base/slice.h"
#include "proto/client/verb.h"

struct users;

/* libmemcached aborts the process with more servers than this on a consistent distribution. */
#define CONFIG_SERVERS_MAX 100
#define CONFIG_LISTEN_MAX 32
#define CONFIG_LISTENERS_MAX 16
#define CONFIG_POOLS_MAX 64
#define CONFIG_LISTS_MAX 256
#define CONFIG_ROUTES_MAX 256
#define CONFIG_NAME_MAX 255
/* Longest password of a pool's servers. */
#define CONFIG_PASSWORD_MAX 255
/* Keys of all sections, at most. */
#define CONFIG_KEYS_MAX 160
/* A list's key and the prefix of a policy: room is left for the names of sublists in memcached's
 * 250 bytes. */
#define CONFIG_PREFIX_MAX 220
/* Longest name of an item: memcached's limit, and Couchbase's in a collection. */
#define CONFIG_ITEM_NAME_MAX 250
#define CONFIG_COLLECTION_NAME_MAX 246
/* What memcached needs of an item's size (-I) besides the value: header, key, CAS, slab rounding.
 */
#define CONFIG_ITEM_REST_BYTES 1024
/* Room for an address as text: host:port, [v6]:port or unix:PATH. */
#define ENDPOINT_TEXT_MAX (CONFIG_NAME_MAX + 16)
#define SERVER_NAME_MAX (ENDPOINT_TEXT_MAX + 16)

/* Where to listen or connect: a TCP address or a unix socket path. */
struct endpoint {
    char host[CONFIG_NAME_MAX + 1]; /* name or address without brackets, or the path of a unix
                                       socket */
    uint16_t port;                  /* 0 = host is a path */
};

struct endpoint_list {
    struct endpoint at[CONFIG_LISTEN_MAX];
    size_t count;
};

struct server_config {
    struct endpoint endpoint;
    uint32_t weight; /* 1 and up */
    /* POOL_COUCHBASE: couchbases:// wants TLS. */
    enum server_scheme { SCHEME_NONE, SCHEME_COUCHBASE, SCHEME_COUCHBASES } scheme;
    bool by_srv;                /* its SRV records, where there are any, name the servers */
    bool port_given;            /* else it is the default of the pool's type */
    char name[SERVER_NAME_MAX]; /* as errors and stats print it: host:port, [v6]:port, unix:PATH,
                                   SCHEME://host:port or, by_srv, SCHEME://host */
};

/* What the servers of a pool are. */
enum pool_type { POOL_MEMCACHED, POOL_COUCHBASE, POOL_TYPE_COUNT };
enum pool_distribution { DISTRIBUTION_KETAMA_WEIGHTED, DISTRIBUTION_KETAMA, DISTRIBUTION_MODULA };
enum pool_hash {
    HASH_DEFAULT,
    HASH_ONE_AT_A_TIME,
    HASH_MD5,
    HASH_CRC,
    HASH_FNV1_64,
    HASH_FNV1A_64,
    HASH_FNV1_32,
    HASH_FNV1A_32,
    HASH_JENKINS,
    HASH_MURMUR,
    HASH_HSIEH
};

/* How many nodes of a cluster must have a change before it is answered: proto/server/backend.h. */
enum pool_durability {
    POOL_DURABILITY_NONE,
    POOL_DURABILITY_MAJORITY,
    POOL_DURABILITY_MAJORITY_PERSIST,
    POOL_DURABILITY_PERSIST_MAJORITY
};
/* Which of the addresses of a cluster's nodes the proxy connects to. */
enum pool_network { NETWORK_AUTO, NETWORK_DEFAULT, NETWORK_EXTERNAL };

/* What becomes of lists that other proxies of the pool keep elsewhere, or in another way. */
enum on_unequal { ON_UNEQUAL_REFUSE, ON_UNEQUAL_WARN };

/* What reads of plain keys are answered whose server cannot be asked. */
enum down_reads { DOWN_READS_ERROR, DOWN_READS_MISS };

/* given_line below, by a key's place in the table: the line that sets it, or one of these. Of a
 * list of addresses that several lines add to, the last. */
#define CONFIG_GIVEN_NOT 0
#define CONFIG_GIVEN_BY_OPTION UINT32_MAX /* of the command line */

/* How far a change of a pool's servers has come. STEP_STAY: none is under way. */
enum pool_step { STEP_STAY, STEP_LEARN, STEP_MOVE, STEP_MOVED };

struct pool_config {
    char name[CONFIG_NAME_MAX + 1];
    enum pool_type type;
    struct server_config *servers; /* POOL_COUCHBASE: where to ask for the others */
    size_t server_count;
    enum pool_distribution distribution;
    enum pool_hash hash;
    uint32_t hash_cache_bytes; /* memory per worker for keys whose server is known; 0 = none */
    uint32_t placement_names;  /* per server, looked at when the proxy starts; 0 = none */
    uint32_t connections;      /* per server and worker */
    uint32_t connect_timeout_ms;
    uint32_t timeout_ms;     /* from submission to answer */
    uint32_t eject_failures; /* time-outs in a row; 0 = never */
    uint32_t retry_min_ms;
    uint32_t retry_max_ms;
    uint32_t watch_interval_s;  /* between looks at a server's `stats`; 0 = none */
    uint64_t max_pending_bytes; /* of requests not sent yet, per server connection */
    uint32_t max_pending;       /* requests waiting or in flight per server connection */
    enum down_reads down_reads;
    uint32_t gate_s; /* how often the pool's gate is read (proxy/core/gate.h); 0 = never */
    enum on_unequal on_unequal;
    uint32_t change; /* number of the latest change of what all proxies must agree on */
    /* The pool whose servers this one's lists move to, or "" (list/moving/moving.h). */
    char next_name[CONFIG_NAME_MAX + 1];
    uint32_t next_index;            /* position in config.pools */
    char dead[CONFIG_NAME_MAX + 1]; /* one of the servers, which is gone for good; or "" */
    enum pool_step step;            /* to begin with; the gate says what is in force */
    uint32_t next_bytes;            /* memory per worker for where lists are that move */
    bool tls;
    char tls_ca[CONFIG_NAME_MAX + 1];   /* "" = what the system trusts */
    char tls_name[CONFIG_NAME_MAX + 1]; /* "" = that of each server */
    char tls_cert[CONFIG_NAME_MAX + 1], tls_key[CONFIG_NAME_MAX + 1]; /* "" = none */
    /* POOL_COUCHBASE. */
    char bucket[CONFIG_NAME_MAX + 1], username[CONFIG_NAME_MAX + 1];
    char password_file[CONFIG_NAME_MAX + 1];
    char password[CONFIG_PASSWORD_MAX + 1]; /* see config_read_passwords */
    bool plain_login;                       /* the password itself may be sent */
    char scope[CONFIG_NAME_MAX + 1], collection[CONFIG_NAME_MAX + 1];
    enum pool_durability durability;
    uint32_t durable_timeout_ms; /* from the submission of a durable change to its answer */
    enum pool_network network;
    uint64_t item_bytes_wanted; /* of a server's -I, by the limits of lists in it; 0 = any */
    uint32_t line;              /* where the section begins in the file; 0 = not from a file */
    uint32_t given_line[CONFIG_KEYS_MAX];
};

#define CONFIG_DEFAULT_COLLECTION "_default" /* in the scope of that name */

/* Are its documents in another collection than the default one? */
static inline bool config_has_collection(const struct pool_config *pool)
{
    return strcmp(pool->scope, CONFIG_DEFAULT_COLLECTION) != 0 ||
           strcmp(pool->collection, CONFIG_DEFAULT_COLLECTION) != 0;
}

/* Is one of its servers shown by that name? */
bool config_has_server(const struct pool_config *pool, const char *name);

enum flush_all { FLUSH_ALL_EMBEDDED, FLUSH_ALL_NO, FLUSH_ALL_YES, FLUSH_ALL_KEEP_LISTS };
enum on_missing { ON_MISSING_CREATE, ON_MISSING_REFUSE };
enum on_damaged { ON_DAMAGED_ERROR, ON_DAMAGED_MISS };
enum ttl_renew { TTL_RENEW_NEVER, TTL_RENEW_CHANGE, TTL_RENEW_READ };
/* Where an item stands that is added though it is in the list: where it was, or at the end. */
enum list_order { ORDER_ADDED, ORDER_RECENT };
/* What becomes of an addition to a list that has max_items. */
enum list_cap { CAP_DROP_OLDEST, CAP_REFUSE };
enum placement { PLACEMENT_HEAD, PLACEMENT_SPREAD };
/* How lists are stored: docs/dialects.md. */
enum list_dialect {
    DIALECT_NATIVE,
    DIALECT_SIMPLE,
    DIALECT_TOMBSTONE,
    DIALECT_SIGNED,
    DIALECT_PAIRED,
    DIALECT_FLIP,
    DIALECT_MARKER,
    DIALECT_SUBLISTS,
    DIALECT_RING,
    DIALECT_COUNT
};
/* tombstone, paired: do ladd and ldel look at the list? */
enum list_changes { CHANGES_EXACT, CHANGES_BLIND };
/* sublists: what the index and the sublists hold. */
enum list_texts { TEXTS_SIGNED, TEXTS_DELIMITED };
enum list_migrate { MIGRATE_NO, MIGRATE_NATIVE };
/* May an append begin with a delimiter, which those of the manual's recipes do not, so that nothing
 * is lost? */
enum list_compatible { COMPATIBLE_SAFE, COMPATIBLE_STRICT };
/* What memcached's own verbs mean under a prefix: docs/verbs.md, "Lists by memcached's own
 * verbs". */
enum list_bridge {
    BRIDGE_NO,
    BRIDGE_YES,
    BRIDGE_SIGNED /* append adds and deletes */
};
/* What delete does there. */
enum list_bridge_delete {
    BRIDGE_DELETE_DROP,
    BRIDGE_DELETE_PURGE /* as lpurge */
};
/* Flags of values, as clients give them. */
#define CONFIG_FLAGS_MAX 16
struct flag_set {
    uint32_t count;
    uint32_t flags[CONFIG_FLAGS_MAX];
};

/* How the lists under one key prefix are kept. */
struct list_policy {
    char prefix[CONFIG_NAME_MAX + 1]; /* "" = all others */
    size_t prefix_len;
    bool anywhere;                       /* [lists *PART]: the prefix may stand anywhere in a key */
    uint32_t index;                      /* position in config.lists */
    uint32_t pool_index;                 /* position in config.pools */
    enum pool_type pool_type;            /* of that pool; set by config_finish */
    char pool_name[CONFIG_NAME_MAX + 1]; /* "" = the pool of plain keys */
    int delimiter;                       /* 0..255, or -1: none, lget is refused */
    uint32_t max_item_bytes;
    uint32_t log_limit_bytes;
    uint32_t log_hard_limit_bytes;
    uint32_t sublist_limit_bytes;
    uint64_t cache_bytes;
    uint64_t max_answer_bytes;  /* largest answer of one read */
    uint64_t fold_memory_bytes; /* memory one fold or merge may take */
    uint32_t announcement_grace_s;
    uint32_t touch_interval_s; /* 0 = never */
    uint32_t max_stale_ms;     /* of what reads answer; 0 = exact */
    uint32_t ttl_s;            /* of lists that begin here; 0 = they never expire */
    enum ttl_renew ttl_renew;
    uint32_t lease_max_s;
    enum list_order order;
    uint32_t max_items; /* of a list; 0 = any number */
    enum list_cap cap;
    bool protect_lists; /* plain verbs do not write to the items of lists */
    enum on_missing on_missing;
    enum on_damaged on_damaged;
    enum placement placement;
    enum list_dialect dialect;
    enum list_migrate migrate;
    enum list_compatible compatible;
    enum list_changes changes;
    enum list_texts sublist_text;
    enum list_bridge bridge;
    enum list_bridge_delete bridge_delete;
    struct flag_set bridge_flags_in; /* of values that are taken for text */
    uint32_t bridge_flags_out;       /* of answers */
    bool bridge_last_delimiter;      /* behind the last item of an answer, too */
    int deleted_delimiter, add_sign, delete_sign, closed_mark; /* bytes, 0..255 */
    /* Names of items, with one %s for the list's key; behind sublist_name and slot_name stands a
     * number. */
    char add_name[CONFIG_NAME_MAX + 1], delete_name[CONFIG_NAME_MAX + 1];
    char a_name[CONFIG_NAME_MAX + 1], b_name[CONFIG_NAME_MAX + 1], active_name[CONFIG_NAME_MAX + 1];
    char sublist_name[CONFIG_NAME_MAX + 1];
    char seq_name[CONFIG_NAME_MAX + 1], slot_name[CONFIG_NAME_MAX + 1];
    uint32_t capacity;              /* of a ring, entries */
    char slot[CONFIG_NAME_MAX + 1]; /* what a slot of a ring holds: dialect/ring/ring.c */
    bool counter_wraps;             /* a ring's clients set the counter back at capacity */
    uint32_t compact_chance;        /* one in so many reads that find something to fold; 0 = none */
    uint8_t name_bytes_max;         /* longest name that the pool takes; set by config_finish */
    uint8_t key_bytes_max; /* longest key whose items all have names that memcached takes; set by
                              config_finish */
    uint32_t line;         /* where the section begins in the file; 0 = not from a file */
    uint32_t given_line[CONFIG_KEYS_MAX]; /* for this prefix; 0 = inherited */
};

/* Are its lists sublists with delimiters in place of signs? */
static inline bool list_policy_delimits_sublists(const struct list_policy *policy)
{
    return policy->dialect == DIALECT_SUBLISTS && policy->sublist_text == TEXTS_DELIMITED;
}

/* Where clients connect, and what the proxy asks of those that connect there. */
struct listener_config {
    char name[CONFIG_NAME_MAX + 1]; /* "" = [proxy] */
    struct endpoint_list listen;
    char auth_file[CONFIG_NAME_MAX + 1];     /* "" = clients need not log in */
    bool insecure;                           /* clients of other machines may do anything */
    struct verb_set allow_verbs, deny_verbs; /* allow_verbs empty: all; deny_verbs wins */
    char tls_cert[CONFIG_NAME_MAX + 1];      /* "" = connections are not encrypted */
    char tls_key[CONFIG_NAME_MAX + 1], tls_client_ca[CONFIG_NAME_MAX + 1]; /* "" = none */
    struct users *users; /* who may; see config_read_passwords. NULL = all */
    uint32_t line;       /* where the section begins in the file */
    uint32_t given_line[CONFIG_KEYS_MAX];
};

/* Where operators look at the proxy: src/admin. */
struct admin_config {
    struct endpoint_list listen; /* none: there is no such place */
    uint32_t max_connections;
    uint32_t timeout_ms;                    /* of a request, from its connection to its answer */
    int socket_mode;                        /* of unix sockets; -1 = as the umask says */
    char socket_group[CONFIG_NAME_MAX + 1]; /* "" = the group of the process */
    uint32_t given_line[CONFIG_KEYS_MAX];
};

/* No pool. */
#define ROUTE_NONE UINT32_MAX
/* Shares of keys are counted in these. */
#define ROUTE_SHARE_WHOLE 1000000U

/* Where the plain keys under one prefix go. */
struct route_config {
    char prefix[CONFIG_NAME_MAX + 1]; /* "" = all others */
    size_t prefix_len;
    uint32_t index;                          /* position in config.routes */
    char pool_name[CONFIG_NAME_MAX + 1];     /* "" = that of [proxy] */
    char failover_name[CONFIG_NAME_MAX + 1]; /* "" = none */
    uint32_t failover_ttl_s;                 /* 0 = no set goes there */
    char shadow[CONFIG_NAME_MAX + 1];        /* POOL:SHARE%, "" = none */
    uint32_t shadow_bytes;                   /* of requests under way, per worker */
    /* Set by config_finish: positions in config.pools, or ROUTE_NONE. */
    uint32_t pool_index, failover_index, shadow_index;
    uint32_t shadow_share; /* of ROUTE_SHARE_WHOLE keys */
    bool moves;            /* keys of its pool go to another one: pool_config.step */
    uint32_t line;         /* where the section begins in the file; 0 = not from a file */
    uint32_t given_line[CONFIG_KEYS_MAX]; /* for this prefix; 0 = inherited */
};

/* Which section a key has, of those that name prefixes. */
struct prefix_entry {
    struct slice prefix;
    uint32_t place; /* of the section in the configuration */
    uint32_t outer; /* of the entry of its longest prefix among the others */
};
struct prefix_map {
    struct prefix_entry *at; /* sorted as bytes; the first is the empty one; see config/prefix.h */
    size_t count;
    struct prefix_inside *inside; /* those that may stand anywhere in a key; NULL: none */
};

struct config {
    char path[CONFIG_NAME_MAX + 1]; /* the file read last, "" = none; for error texts */
    /* The first one is that of [proxy], whose given_line is below; the others take from it what
     * they do not set. */
    struct listener_config listeners[CONFIG_LISTENERS_MAX];
    size_t listener_count;
    uint32_t threads;
    uint32_t max_connections;      /* of clients, all workers together */
    uint32_t reserved_connections; /* beyond these, for `stats` from this machine */
    uint32_t max_line_bytes;       /* longest request line */
    uint32_t max_value_bytes;      /* longest data block of a request */
    uint32_t max_pipeline;         /* unanswered requests (keys, for multi-gets) of one client */
    uint32_t client_output_bytes;  /* unread answer bytes above which a client is not read from any
                                      more */
    uint32_t client_input_bytes;   /* memory of a client's requests under way above which it is not
                                      read from any more */
    uint64_t memory_limit_bytes;   /* of all clients' requests and answers */
    uint32_t request_timeout_ms;   /* from a request's first byte to its last; 0 = any time */
    uint64_t client_hard_bytes;    /* unread answer bytes above which a client is closed */
    uint32_t idle_timeout_s;       /* 0 = never */
    uint32_t linger_ms;            /* before a socket that is still sent to is closed */
    uint32_t drain_timeout_ms;
    uint32_t deadline_ms;     /* of a request, from its reading to its answer */
    uint32_t long_timeout_ms; /* the same of long calls, and of compactions */
    uint32_t slow_ms;         /* from when on a request is noted as slow; 0 = none is */
    uint32_t max_users;       /* lines of an auth_file */
    uint32_t hot_percent;     /* these two: from when on a key is hot; 0 = none is */
    uint32_t hot_requests_s;
    uint32_t transaction_patience_ms; /* before an undecided change of several lists is pushed */
    uint32_t max_transaction_lines;   /* of the block of an ltx */
    uint32_t max_read_lists;          /* of one linter and its like */
    uint32_t tracked_lists;           /* lists per worker whose log size is remembered */
    uint64_t view_bytes;            /* memory per worker for the decoded content of lists in use */
    uint64_t index_bytes;           /* memory for the indexes of runs of lists that are larger */
    enum flush_all allow_flush_all; /* config_add_embedded turns EMBEDDED into YES */
    int socket_mode;                /* of unix sockets; -1 = as the umask says */
    char socket_group[CONFIG_NAME_MAX + 1]; /* "" = the group of the process */
    char user[CONFIG_NAME_MAX + 1];         /* whom root becomes; "" = root it stays */
    char resolver[CONFIG_NAME_MAX + 1]; /* DNS servers, comma-separated; "" = as the system says */
    uint32_t resolve_timeout_ms;
    uint32_t resolve_interval_s; /* 0 = only before connecting */
    uint32_t embedded_memory_mb;
    char embedded_memcached[CONFIG_NAME_MAX + 1]; /* program to start when no pool is configured */
    enum log_level log_level;
    enum log_format log_format;
    uint32_t log_buffer_bytes;           /* lines that wait for the thread that writes them */
    char log_file[CONFIG_NAME_MAX + 1];  /* "" = standard error */
    char pool_name[CONFIG_NAME_MAX + 1]; /* the pool that plain keys go to; "" = the first */
    uint32_t pool_index;

    uint32_t given_line[CONFIG_KEYS_MAX]; /* of [proxy] */

    struct admin_config admin;

    struct pool_config *pools;
    size_t pool_count;         /* 0 = the embedded memcached is wanted: main adds its pool with
                                  config_add_embedded */
    struct list_policy *lists; /* lists[0] has prefix "" and is always there */
    size_t list_count;
    struct prefix_map list_map;  /* made by config_finish */
    struct route_config *routes; /* routes[0] has prefix "" and is always there */
    size_t route_count;
    struct prefix_map route_map; /* made by config_finish */
    /* Set by config_finish. */
    bool has_bridge;      /* some prefix has one */
    bool has_routes;      /* the file has a [route] */
    bool has_moves;       /* plain keys of some route move: route_config.moves */
    uint64_t flush_pools; /* a bit for each place in pools: a flush_all goes there */
};

/* Room for the longest error text. */
#define CONFIG_ERROR_MAX 1024

/* All defaults, no pool. Owned by the caller until config_destroy. */
struct config *config_create(void);
void config_destroy(struct config **config);

/* Reads an ini file over what is there. Returns 0, or -1 with "FILE:LINE: what is wrong, what was
 * expected" in error. */
MUST_CHECK int config_load(struct config *config, const char *path, char error[CONFIG_ERROR_MAX]);

/* Sets one key of [proxy], as a line of a file would. Returns 0, or -1 with the reason in error. */
MUST_CHECK int config_set(struct config *config, const char *key, const char *value,
                          char error[CONFIG_ERROR_MAX]);

/* Overrides listen of [proxy]. addresses: comma-separated, a port may be missing there; NULL = keep
 * those in force. port: for the addresses without one or, with addresses NULL, for all TCP
 * addresses; 0 = the default one or as it was. Returns 0, or -1 with the reason in error. */
MUST_CHECK int config_set_listen(struct config *config, const char *addresses, uint16_t port,
                                 char error[CONFIG_ERROR_MAX]);

/* Parses "host", "host:port", "[v6]", "[v6]:port" or "unix:PATH". default_port is that of an
 * address without one; 0: it must have one. Returns 0, or -1 with what was expected in error. */
MUST_CHECK int endpoint_parse(struct slice text, uint16_t default_port, struct endpoint *endpoint,
                              char error[CONFIG_ERROR_MAX]);

/* Writes the address as endpoint_parse would read it. Returns out. */
const char *endpoint_format(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_MAX]);

/* Adds a pool of that name with default settings and servers as a comma-separated list ("host:port
 * weight, ..."). Returns 0, or -1 with the reason in error. For -s. */
MUST_CHECK int config_add_pool(struct config *config, const char *name, const char *servers,
                               char error[CONFIG_ERROR_MAX]);

/* Adds the pool of the embedded memcached, which listens there, to a configuration without pools,
 * and completes that with config_finish. Returns 0, or -1 with the reason in error. */
MUST_CHECK int config_add_embedded(struct config *config, const char *server,
                                   char error[CONFIG_ERROR_MAX]);

/* Completes what [lists PREFIX] inherit, cross-checks limits, resolves pool names to indexes. Call
 * when everything was read; again after config_add_pool. Without any pool it checks what the
 * embedded memcached needs. Returns 0, or -1 with the reason in error. */
MUST_CHECK int config_finish(struct config *config, char error[CONFIG_ERROR_MAX]);

/* Reads the files that hold passwords: of pools and of clients. Call when everything else was
 * checked. Returns 0, or -1 with the reason in error. */
MUST_CHECK int config_read_passwords(struct config *config, char error[CONFIG_ERROR_MAX]);

/* "[proxy]" or "[listener NAME]", for texts. Returns out. */
#define CONFIG_LISTENER_TEXT_MAX (CONFIG_NAME_MAX + 16)
const char *config_listener_text(const struct listener_config *listener,
                                 char out[CONFIG_LISTENER_TEXT_MAX]);

/* The prefix of the section as a file has it between the brackets, \xNN for what cannot be written
 * and a * in front of one that may stand anywhere. Returns out. */
#define CONFIG_PREFIX_TEXT_MAX (4 * CONFIG_NAME_MAX + 2)
const char *config_prefix_text(const struct list_policy *policy, char out[CONFIG_PREFIX_TEXT_MAX]);

/* The place of the longest prefix of the key; of those that may stand anywhere, if no other fits,
 * of the one that stands leftmost, and of several there, of the longest. */
size_t config_prefix_find(const struct prefix_map *map, struct slice key);

/* The policy with the longest prefix of key, where there are prefixes; never NULL. */
static inline const struct list_policy *config_prefix_policy(const struct config *config,
                                                             struct slice key)
{
    return &config->lists[config_prefix_find(&config->list_map, key)];
}
/* The policy for that key; never NULL. Valid as long as config. */
static inline const struct list_policy *config_list_policy(const struct config *config,
                                                           struct slice key)
{
    return config->list_count == 1 ? &config->lists[0] : config_prefix_policy(config, key);
}

/* The route of a plain key; never NULL. Valid as long as config. */
static inline const struct route_config *config_route(const struct config *config, struct slice key)
{
    return config->has_routes ? &config->routes[config_prefix_find(&config->route_map, key)]
                              : &config->routes[0];
}

/* Can plain keys of that route get to the pool? */
static inline bool route_reaches(const struct route_config *route, uint32_t pool_index)
{
    return pool_index == route->pool_index || pool_index == route->failover_index ||
           pool_index == route->shadow_index;
}

/* What a worker keeps of each kind of spare memory (base/spare.h, base/block.h), bytes at most. */
size_t config_spare_bytes(const struct config *config);

/* Calls print(arg, section, key, value, origin) for every setting in force, for `stats settings`
 * and -t -v. origin: "line 3", "line 3, in [lists]", "an option", or "" for a default. Texts are
 * valid during the call. */
typedef void config_printer(void *arg, const char *section, const char *key, const char *value,
                            const char *origin);
void config_print(const struct config *config, config_printer *print, void *arg);

#endif
