/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/table.h"

#include <stdio.h>

#define K ((uint64_t)1 << 10)
#define M ((uint64_t)1 << 20)
#define G ((uint64_t)1 << 30)

#define BIT(dialect) (UINT32_C(1) << DIALECT_##dialect)
/* Everything the native format has and no other. Those who migrate to it use it as well. */
#define NATIVE BIT(NATIVE)
#define SINGLE (BIT(NATIVE) | BIT(SIMPLE) | BIT(TOMBSTONE) | BIT(SIGNED))
#define SIGNED (BIT(SIGNED) | BIT(FLIP) | BIT(MARKER) | BIT(SUBLISTS))
#define DELIMITED (BIT(SIMPLE) | BIT(TOMBSTONE) | BIT(PAIRED))
#define COMPACTED (SIGNED | BIT(SIMPLE) | BIT(TOMBSTONE) | BIT(PAIRED))

#define PROXY(name, field) SECTION_PROXY, name, offsetof(struct config, field), 0, 0
/* Of a listener: [proxy] has one of its own. */
#define FIRST(name, field) SECTION_PROXY, name, offsetof(struct config, listeners[0].field), 0, 0
#define LISTENER(name, field) SECTION_LISTENER, name, offsetof(struct listener_config, field), 0, 0
#define ADMIN(name, field) SECTION_ADMIN, name, offsetof(struct admin_config, field), 0, 0
#define POOL_OF(types, name, field) \
    SECTION_POOL, name, offsetof(struct pool_config, field), 0, (types)
#define POOL(name, field) POOL_OF(TYPES_ALL, name, field)
#define MEMCACHED(name, field) POOL_OF(UINT32_C(1) << POOL_MEMCACHED, name, field)
#define COUCHBASE(name, field) POOL_OF(UINT32_C(1) << POOL_COUCHBASE, name, field)
#define ROUTE(name, field) SECTION_ROUTE, name, offsetof(struct route_config, field), 0, 0
#define LISTS_OF(dialects, name, field) \
    SECTION_LISTS, name, offsetof(struct list_policy, field), (dialects), 0
#define LISTS(name, field) LISTS_OF(DIALECTS_ALL, name, field)

/* Positions follow the enums of config.h and base/log.h. */
static const char *const log_levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const types[] = {"memcached", "couchbase", NULL};
static const char *const durabilities[] = {"none", "majority", "majority_persist",
                                           "persist_majority", NULL};
static const char *const networks[] = {"auto", "default", "external", NULL};
static const char *const distributions[] = {"ketama_weighted", "ketama", "modula", NULL};
static const char *const hashes[] = {"default", "one_at_a_time", "md5",     "crc",
                                     "fnv1_64", "fnv1a_64",      "fnv1_32", "fnv1a_32",
                                     "jenkins", "murmur",        "hsieh",   NULL};
static const char *const flush_all_words[] = {"embedded", "no", "yes", "keep_lists", NULL};
static const char *const down_reads_words[] = {"error", "miss", NULL};
static const char *const on_unequal_words[] = {"refuse", "warn", NULL};
static const char *const on_missing_words[] = {"create", "refuse", NULL};
static const char *const on_damaged_words[] = {"error", "miss", NULL};
static const char *const placements[] = {"head", "spread", NULL};
static const char *const orders[] = {"added", "recent", NULL};
static const char *const caps[] = {"drop_oldest", "refuse", NULL};
static const char *const dialects[] = {"native", "simple", "tombstone", "signed", "paired",
                                       "flip",   "marker", "sublists",  "ring",   NULL};
static const char *const ttl_renew_words[] = {"never", "change", "read", NULL};
static const char *const compatibilities[] = {"safe", "strict", NULL};
static const char *const migrations[] = {"no", "native", NULL};
static const char *const step_words[] = {"stay", "learn", "move", "done", NULL};
static const char *const changes_words[] = {"exact", "blind", NULL};
static const char *const texts[] = {"signed", "delimited", NULL};
static const char *const bridges[] = {"no", "yes", "signed", NULL};
static const char *const bridge_deletes[] = {"drop", "purge", NULL};

/* Behind the help of a key: workers read it whenever they need it, so a reload may change it. What
 * a list means, where its items lie, and what is made once at the start, is not live. */
#define LIVE true
#define START false

/* clang-format off */
static const struct config_key keys[] = {
    {FIRST("listen", listen), TYPE_LISTEN, 0, 0, "127.0.0.1:11220", "", NULL,
     "where clients connect, comma-separated; without a port: 11220; may be repeated", START},
    {FIRST("auth_file", auth_file), TYPE_TEXT, 0, 1, "", "", NULL,
     "the file of those who may use the proxy, a line user:password for each, as memcached's -Y has it; clients log in with a first set whose data is the user, a blank, and the password; empty: they need not", LIVE},
    {PROXY("max_users", max_users), TYPE_COUNT, 1, 100000, "1000", "", NULL,
     "the most lines of an auth_file; each login is compared with all of them", LIVE},
    {FIRST("tls_cert", tls_cert), TYPE_TEXT, 0, 1, "", "", NULL,
     "the certificate that the proxy shows to clients, as PEM, behind it those that signed it; connections are encrypted then; empty: they are not", START},
    {FIRST("tls_key", tls_key), TYPE_TEXT, 0, 1, "", "", NULL,
     "the key of tls_cert, as PEM, without a passphrase; the daemon reads it before it becomes user, and again at each reload", START},
    {FIRST("tls_client_ca", tls_client_ca), TYPE_TEXT, 0, 1, "", "", NULL,
     "the certificates that those of clients must be signed with, as PEM; empty: clients need not show any", START},
    {FIRST("insecure", insecure), TYPE_YES_NO, 0, 0, "no", "", NULL,
     "whether clients of other machines may do anything that the proxy can, without auth_file and without TLS; else it does not start where they can connect so", LIVE},
    {FIRST("allow_verbs", allow_verbs), TYPE_VERBS, 0, 0, "", "", NULL,
     "the only verbs that the proxy takes from clients, comma-separated; empty: all", LIVE},
    {FIRST("deny_verbs", deny_verbs), TYPE_VERBS, 0, 0, "", "", NULL,
     "verbs that the proxy refuses, comma-separated, even those in allow_verbs", LIVE},
    {PROXY("socket_mode", socket_mode), TYPE_MODE, 0, 0, "", "", NULL,
     "permissions of the unix sockets, which say who may connect: 0660 for example; empty: as the umask says", START},
    {PROXY("socket_group", socket_group), TYPE_TEXT, 0, 1, "", "", NULL,
     "the group of the unix sockets; empty: that of the process", START},
    {PROXY("user", user), TYPE_TEXT, 0, 1, "", "", NULL,
     "the user that the daemon becomes once it listens, when root has started it; empty: it stays root", START},
    {PROXY("threads", threads), TYPE_COUNT, 1, 64, "2", "", NULL,
     "workers; each has its own share of the clients and its own connections to the servers", START},
    {PROXY("pool", pool_name), TYPE_TEXT, 0, 1, "", "", NULL,
     "the pool that plain keys go to; empty: the first pool of the file", START},
    {PROXY("max_connections", max_connections), TYPE_COUNT, 1, 1000000, "10000", "", NULL,
     "clients connected at the same time; the proxy refuses further ones", LIVE},
    {PROXY("reserved_connections", reserved_connections), TYPE_COUNT, 0, 1000, "4", "", NULL,
     "connections beyond max_connections that clients on this machine may make to ask for `stats`", LIVE},
    {PROXY("idle_timeout_s", idle_timeout_s), TYPE_COUNT, 0, 31536000, "0", "s", NULL,
     "the proxy closes a client that is silent for this long; 0: never", LIVE},
    {PROXY("linger_ms", linger_ms), TYPE_COUNT, 0, 60000, "2000", "ms", NULL,
     "after quit, or a request that was refused before it was whole, the proxy still takes what the client sends for this long, so that its last answers are not lost, or until a new client finds no other place; 0: it closes at once", LIVE},
    {PROXY("drain_timeout_ms", drain_timeout_ms), TYPE_COUNT, 0, 3600000, "10000", "ms", NULL,
     "time that clients get after SIGTERM to receive the answers to what they have asked", LIVE},
    {PROXY("deadline_ms", deadline_ms), TYPE_COUNT, 1, 3600000, "2000", "ms", NULL,
     "longest time from a request to its answer, whatever it waits for; with a pool of type couchbase it is twice durable_timeout_ms where the section does not name it", LIVE},
    {PROXY("long_timeout_ms", long_timeout_ms), TYPE_COUNT, 1, 86400000, "60000", "ms", NULL,
     "the same for lput, lcopy, long contents of lset and lcreate, lpurge, ltouch, lcompact, lconvert and lmigrate; also the longest time of a compaction", LIVE},
    {PROXY("slow_ms", slow_ms), TYPE_COUNT, 0, 3600000, "500", "ms", NULL,
     "a request that takes this long is noted in the log and in `stats slow`; 0: none is", LIVE},
    {PROXY("hot_percent", hot_percent), TYPE_COUNT, 0, 100, "20", "", NULL,
     "the share of all requests from which on a key is hot: log, metrics and status page say so; 0: none is", LIVE},
    {PROXY("hot_requests_s", hot_requests_s), TYPE_COUNT, 1, 100000000, "1000", "", NULL,
     "requests per second below which no key is hot, whatever its share", LIVE},
    {PROXY("transaction_patience_ms", transaction_patience_ms), TYPE_COUNT, 0, 60000, "20", "ms", NULL,
     "how long a read waits for a change of several lists that is under way in its list, before it has that change given up", LIVE},
    {PROXY("allow_flush_all", allow_flush_all), TYPE_WORD, 0, 0, "embedded", "", flush_all_words,
     "whether the proxy passes flush_all on to all servers; keep_lists: to those of plain keys, where lists have others; embedded: only to a memcached that it has started itself", LIVE},
    {PROXY("max_line_bytes", max_line_bytes), TYPE_BYTES, 2 * K, 16 * M, "1m", "bytes", NULL,
     "longest request line", LIVE},
    {PROXY("max_value_bytes", max_value_bytes), TYPE_BYTES, 1 * K, 128 * M, "1m", "bytes", NULL,
     "longest data block of a request; set it to the servers' -I", LIVE},
    {PROXY("max_transaction_lines", max_transaction_lines), TYPE_COUNT, 1, 65536, "1024", "", NULL,
     "most lines in the data block of an ltx; a worker goes through them in one turn", LIVE},
    {PROXY("max_read_lists", max_read_lists), TYPE_COUNT, 2, 1024, "1024", "", NULL,
     "most lists that one lgetx, linter, lunion, ldiff or a verb of their kind reads at one instant", LIVE},
    {PROXY("max_pipeline", max_pipeline), TYPE_COUNT, 1, 65536, "256", "", NULL,
     "unanswered requests of one client (each key of a multi-get counts) at which the proxy stops reading from it", LIVE},
    {PROXY("client_input_bytes", client_input_bytes), TYPE_BYTES, 4 * K, 1 * G, "4m", "bytes", NULL,
     "memory for unanswered requests of one client at which the proxy stops reading from it; one larger request goes alone", LIVE},
    {PROXY("client_output_bytes", client_output_bytes), TYPE_BYTES, 4 * K, 1 * G, "1m", "bytes", NULL,
     "unread answers of one client at which the proxy stops reading from it", LIVE},
    {PROXY("client_hard_bytes", client_hard_bytes), TYPE_BYTES64, 64 * K, 64 * G, "256m", "bytes", NULL,
     "unread answers of one client at which the proxy closes it", LIVE},
    {PROXY("request_timeout_ms", request_timeout_ms), TYPE_COUNT, 0, 3600000, "60000", "ms", NULL,
     "longest time from a request's first byte to its last, after which the proxy closes the client; 0: no limit", LIVE},
    {PROXY("memory_limit_bytes", memory_limit_bytes), TYPE_BYTES64, 16 * M, 1024 * G, "512m", "bytes", NULL,
     "memory for the requests and answers of all clients; at this limit the proxy closes those that hold most", LIVE},
    {PROXY("tracked_lists", tracked_lists), TYPE_COUNT, 16, 16777216, "65536", "", NULL,
     "lists per worker that it remembers: that they are lists, and how long their logs are", START},
    {PROXY("view_bytes", view_bytes), TYPE_BYTES64, 0, 16 * G, "64m", "bytes", NULL,
     "memory per worker for the decoded content of lists in use", START},
    {PROXY("index_bytes", index_bytes), TYPE_BYTES64, 0, 16 * G, "256m", "bytes", NULL,
     "memory for the indexes of lists too large for view_bytes, 4.3 bytes per item and 13 while one is made; 0: none", START},
    {PROXY("log_level", log_level), TYPE_WORD, 0, 0, "info", "", log_levels,
     "how much is logged: error, warn, info or debug", LIVE},
    {PROXY("log_format", log_format), TYPE_WORD, 0, 0, "text", "", log_formats,
     "how a line of the log looks: text, or json: an object with time, level, pid and text", LIVE},
    {PROXY("log_file", log_file), TYPE_TEXT, 0, 1, "", "", NULL,
     "the file that the log goes to; empty: standard error. SIGHUP reopens it", START},
    {PROXY("log_buffer_bytes", log_buffer_bytes), TYPE_BYTES, 4 * K, 1 * G, "256k", "bytes", NULL,
     "log lines that may wait to be written; further ones are dropped and counted", START},
    {PROXY("resolver", resolver), TYPE_TEXT, 0, 1, "", "", NULL,
     "DNS servers for the names of servers, comma-separated: IP, IP:port, [IPv6]:port; empty: those of /etc/resolv.conf", START},
    {PROXY("resolve_timeout_ms", resolve_timeout_ms), TYPE_COUNT, 100, 600000, "3000", "ms", NULL,
     "longest time to wait for DNS; the proxy asks a DNS server that does not answer four times within it", START},
    {PROXY("resolve_interval_s", resolve_interval_s), TYPE_COUNT, 0, 31536000, "30", "s", NULL,
     "how often the proxy looks up the names of servers again; 0: only before it connects", START},
    {PROXY("embedded_memory_mb", embedded_memory_mb), TYPE_COUNT, 16, 1048576, "256", "MB", NULL,
     "memory of the embedded memcached, which the daemon starts when no pool is configured", START},
    {PROXY("embedded_memcached", embedded_memcached), TYPE_TEXT, 0, 0, "memcached", "", NULL,
     "the program of the embedded memcached: a name found in PATH, or a path", START},

    {LISTENER("listen", listen), TYPE_LISTEN, 0, 0, NULL, "", NULL,
     "where clients connect to this listener, comma-separated; without a port: 11220; may be repeated", START},
    {LISTENER("auth_file", auth_file), TYPE_TEXT, 0, 1, "", "", NULL,
     "as in [proxy], for the clients of this listener", LIVE},
    {LISTENER("tls_cert", tls_cert), TYPE_TEXT, 0, 1, "", "", NULL,
     "as in [proxy], for the clients of this listener; empty: tls_key and tls_client_ca are so, too", START},
    {LISTENER("tls_key", tls_key), TYPE_TEXT, 0, 1, "", "", NULL,
     "as in [proxy], for the clients of this listener", START},
    {LISTENER("tls_client_ca", tls_client_ca), TYPE_TEXT, 0, 1, "", "", NULL,
     "as in [proxy], for the clients of this listener", START},
    {LISTENER("insecure", insecure), TYPE_YES_NO, 0, 0, "no", "", NULL,
     "as in [proxy], for the clients of this listener", LIVE},
    {LISTENER("allow_verbs", allow_verbs), TYPE_VERBS, 0, 0, "", "", NULL,
     "as in [proxy], for the clients of this listener", LIVE},
    {LISTENER("deny_verbs", deny_verbs), TYPE_VERBS, 0, 0, "", "", NULL,
     "as in [proxy], for the clients of this listener", LIVE},

    {ADMIN("listen", listen), TYPE_LISTEN, 0, 1, "", "", NULL,
     "where metrics and the status page are, comma-separated; without a port: 11221; may be repeated; empty: nowhere", START},
    {ADMIN("max_connections", max_connections), TYPE_COUNT, 1, 1000, "32", "", NULL,
     "connections to these at the same time, beside those of clients", LIVE},
    {ADMIN("timeout_ms", timeout_ms), TYPE_COUNT, 100, 600000, "10000", "ms", NULL,
     "longest time from a connection to the end of its answer", LIVE},
    {ADMIN("socket_mode", socket_mode), TYPE_MODE, 0, 0, "0600", "", NULL,
     "permissions of these unix sockets, which say who may connect; empty: as the umask says", START},
    {ADMIN("socket_group", socket_group), TYPE_TEXT, 0, 1, "", "", NULL,
     "the group of these unix sockets; empty: that of the process", START},

    {POOL("type", type), TYPE_WORD, 0, 0, "memcached", "", types,
     "what the servers are: memcacheds, or the nodes of a Couchbase cluster", START},
    {POOL("servers", servers), TYPE_SERVERS, 0, 0, NULL, "", NULL,
     "up to 100 servers, comma-separated; may be repeated. memcacheds: host:port WEIGHT, without a port: 11211; couchbase: nodes to ask for the others, without a port: 11210, or couchbase://host or couchbases://host as for Couchbase's own clients", START},
    {MEMCACHED("distribution", distribution), TYPE_WORD, 0, 0, "ketama_weighted", "", distributions,
     "how keys are spread over the servers: ketama_weighted, ketama or modula", START},
    {MEMCACHED("hash", hash), TYPE_WORD, 0, 0, "default", "", hashes,
     "hash of the keys; default: the one that clients use with that distribution", START},
    {MEMCACHED("hash_cache_bytes", hash_cache_bytes), TYPE_BYTES, 0, 1 * G, "4m", "bytes", NULL,
     "memory per worker for the servers of recent keys, where MD5 finds them; 0: none", START},
    {MEMCACHED("placement_names", placement_names), TYPE_COUNT, 0, 1000000, "1000", "", NULL,
     "names of items that the proxy asks each server for when it starts with lists of dialects, to see whether distribution and hash are those of the clients that keep them; 0: none", START},
    {POOL("connections", connections), TYPE_COUNT, 1, 64, "1", "", NULL,
     "connections per worker and server", START},
    {POOL("connect_timeout_ms", connect_timeout_ms), TYPE_COUNT, 1, 600000, "500", "ms", NULL,
     "longest time to connect to a server; of a login, for each of its answers; with type = couchbase it is 7000 where no section names it", LIVE},
    {POOL("timeout_ms", timeout_ms), TYPE_COUNT, 1, 600000, "1000", "ms", NULL,
     "longest time from a request to its answer", LIVE},
    {POOL("eject_failures", eject_failures), TYPE_COUNT, 0, 1000000, "3", "", NULL,
     "timeouts in a row after which the proxy sends a server nothing more until it answers a probe; 0: never", LIVE},
    {POOL("retry_min_ms", retry_min_ms), TYPE_COUNT, 1, 600000, "50", "ms", NULL,
     "pause after the first failed attempt to connect; it doubles with each further one", LIVE},
    {POOL("retry_max_ms", retry_max_ms), TYPE_COUNT, 1, 600000, "2000", "ms", NULL,
     "the longest such pause", LIVE},
    {MEMCACHED("watch_interval_s", watch_interval_s), TYPE_COUNT, 0, 86400, "30", "s", NULL,
     "how often one worker asks each server for its `stats`, and compares how fast they answer: evictions, restarts, slow servers; 0: never", START},
    {POOL("max_pending", max_pending), TYPE_COUNT, 1, 16777216, "65536", "", NULL,
     "requests that wait for one connection; the proxy answers further ones with an error", LIVE},
    {POOL("max_pending_bytes", max_pending_bytes), TYPE_BYTES64, 64 * K, 64 * G, "128m", "bytes", NULL,
     "bytes that wait to be sent on one connection; the proxy answers further requests with an error", LIVE},
    {POOL("down_reads", down_reads), TYPE_WORD, 0, 0, "error", "", down_reads_words,
     "the answer to get, gets, gat, gats and mg of a plain key when its server does not answer: error or miss", LIVE},
    {POOL("gate_s", gate_s), TYPE_COUNT, 0, 3600, "5", "s", NULL,
     "how often the proxy asks a pool with lists whether other proxies have the same servers and layouts of lists; 0: never", START},
    {POOL("on_unequal", on_unequal), TYPE_WORD, 0, 0, "refuse", "", on_unequal_words,
     "what becomes of lists that other proxies keep on another server or in another layout: refuse: list verbs answer an error; warn: only the log and the status page have it", LIVE},
    {POOL("change", change), TYPE_COUNT, 0, UINT32_MAX, "0", "", NULL,
     "raise it with each change of servers or layouts, in the file of all proxies: of two proxies that differ, the one with the higher number is right", START},
    {MEMCACHED("next", next_name), TYPE_TEXT, 0, 1, "", "", NULL,
     "name of the pool whose servers the lists and plain keys of this one move to; empty: they stay", START},
    {MEMCACHED("dead", dead), TYPE_TEXT, 0, 1, "", "", NULL,
     "HOST:PORT of one of the servers that is gone for good while the pool has a next: it is not asked, and its lists and plain keys are made anew on their new servers; empty: none", START},
    {MEMCACHED("step", step), TYPE_WORD, 0, 0, "stay", "", step_words,
     "the step of the move to next that the proxy begins with where no server's gate has a later one; stay: learn", START},
    {MEMCACHED("next_bytes", next_bytes), TYPE_BYTES, 64 * K, 1 * G, "2m", "bytes", NULL,
     "memory per worker for what is known of lists that move to next, and again for plain keys that are copied behind a read; a list that does not fit is looked up anew, a key is copied by a later read", START},
    {POOL("tls", tls), TYPE_YES_NO, 0, 0, "no", "", NULL,
     "whether connections to the servers are encrypted, and their certificates checked; with type = couchbase, servers without a port: 11207 then", START},
    {POOL("tls_ca", tls_ca), TYPE_TEXT, 0, 1, "", "", NULL,
     "the certificates that the servers' own must be signed with, as PEM; empty: those that the system trusts", START},
    {POOL("tls_name", tls_name), TYPE_TEXT, 0, 1, "", "", NULL,
     "the name that the servers' certificates must be for; empty: each for its own name or address", START},
    {POOL("tls_cert", tls_cert), TYPE_TEXT, 0, 1, "", "", NULL,
     "the proxy's own certificate, as PEM, behind it those that signed it; with type = couchbase it tells the nodes the user, in place of username", START},
    {POOL("tls_key", tls_key), TYPE_TEXT, 0, 1, "", "", NULL,
     "the key of tls_cert, as PEM, without a passphrase; the daemon reads it before it becomes user, and again at each reload", START},

    {COUCHBASE("bucket", bucket), TYPE_TEXT, 0, 0, NULL, "", NULL,
     "the bucket that holds the items; memcached buckets are refused", START},
    {COUCHBASE("scope", scope), TYPE_TEXT, 0, 0, CONFIG_DEFAULT_COLLECTION, "", NULL,
     "the scope of the bucket that holds the collection", START},
    {COUCHBASE("collection", collection), TYPE_TEXT, 0, 0, CONFIG_DEFAULT_COLLECTION, "", NULL,
     "the collection that holds the items; another one than the default one needs Couchbase 7.0", START},
    {COUCHBASE("username", username), TYPE_TEXT, 0, 0, NULL, "", NULL,
     "whom the proxy logs in as; not with tls_cert, which tells the user", START},
    {COUCHBASE("password_file", password_file), TYPE_TEXT, 0, 1, "", "", NULL,
     "the file whose first line is the password; empty: the password is empty", LIVE},
    {COUCHBASE("plain_login", plain_login), TYPE_YES_NO, 0, 0, "no", "", NULL,
     "whether the proxy sends the password as it is to a node that offers no SCRAM, or refuses it", START},
    {COUCHBASE("durability", durability), TYPE_WORD, 0, 0, "none", "", durabilities,
     "how many nodes must have a change before it is answered, in memory or on disk: see Couchbase's documentation", START},
    {COUCHBASE("durable_timeout_ms", durable_timeout_ms), TYPE_COUNT, 1, 600000, "6000", "ms", NULL,
     "longest time from a durable change to its answer, instead of timeout_ms; a node is told to give it up after nine tenths of that", LIVE},
    {COUCHBASE("network", network), TYPE_WORD, 0, 0, "auto", "", networks,
     "which addresses of the nodes the proxy connects to: their own, the alternate ones that the cluster calls external, or auto: those of which one was reached first", START},

    {ROUTE("pool", pool_name), TYPE_TEXT, 0, 1, "", "", NULL,
     "the pool that plain keys with this prefix go to; empty: that of [proxy]", START},
    {ROUTE("failover", failover_name), TYPE_TEXT, 0, 1, "", "", NULL,
     "the pool that is read where the first one's server cannot be asked or gives no answer; of the same type; empty: none", LIVE},
    {ROUTE("failover_ttl_s", failover_ttl_s), TYPE_COUNT, 0, 2592000, "0", "s", NULL,
     "the longest time to live of what a set stores in the failover pool because the first one's server is down; 0: no set goes there", LIVE},
    {ROUTE("shadow", shadow), TYPE_TEXT, 0, 1, "", "", NULL,
     "POOL:SHARE%, as canary:1%: requests for that share of the keys go to that pool as well, and its answers are dropped; empty: none", LIVE},
    {ROUTE("shadow_bytes", shadow_bytes), TYPE_BYTES, 4 * K, 1 * G, "1m", "bytes", NULL,
     "memory per worker for requests to the shadow pool that are under way; further ones are dropped and counted", LIVE},
    {LISTS("pool", pool_name), TYPE_TEXT, 0, 1, "", "", NULL,
     "the pool that holds the lists; empty: the one that plain keys go to", START},
    {LISTS("delimiter", delimiter), TYPE_DELIMITER, 0, 0, ",", "", NULL,
     "between the items of lget, and of simple, tombstone and paired lists: a punctuation character, \\xNN, or none (then lgetb only)", START},
    {LISTS("max_item_bytes", max_item_bytes), TYPE_BYTES, 1, 64 * K, "1024", "bytes", NULL,
     "longest item", LIVE},
    {LISTS("on_missing", on_missing), TYPE_WORD, 0, 0, "create", "", on_missing_words,
     "create: ladd makes a missing list; refuse: only lset, lput, lcreate do", START},
    {LISTS_OF(NATIVE, "on_damaged", on_damaged), TYPE_WORD, 0, 0, "error", "", on_damaged_words,
     "a list that has lost a sublist: error: reads answer an error; miss: the list is dropped and reads miss", LIVE},
    {LISTS_OF(NATIVE, "placement", placement), TYPE_WORD, 0, 0, "head", "", placements,
     "head: sublists live on the server of their list; spread: each where its own name belongs", START},
    {LISTS("log_limit_bytes", log_limit_bytes), TYPE_BYTES, 256, 450000, "16k", "bytes", NULL,
     "size of a list's log at which a proxy folds it into sublists (native) or looks whether to compact the list", LIVE},
    {LISTS("log_hard_limit_bytes", log_hard_limit_bytes), TYPE_BYTES, 512, 900000, "128k", "bytes", NULL,
     "size of a list's log at which the proxy refuses changes", LIVE},
    {LISTS_OF(NATIVE | BIT(SUBLISTS), "sublist_limit_bytes", sublist_limit_bytes), TYPE_BYTES, 512, 900000, "126k", "bytes", NULL,
     "largest sublist", LIVE},
    {LISTS("max_answer_bytes", max_answer_bytes), TYPE_BYTES64, 1 * K, 16 * G, "64m", "bytes", NULL,
     "largest answer of one read; clients read longer lists in parts with lrange", LIVE},
    {LISTS("fold_memory_bytes", fold_memory_bytes), TYPE_BYTES64, 8 * K, 64 * G, "256m", "bytes", NULL,
     "memory that one merge or fill may take, and a worker's folds of logs together", LIVE},
    {LISTS_OF(NATIVE, "cache_bytes", cache_bytes), TYPE_BYTES64, 0, 1024 * G, "256m", "bytes", NULL,
     "memory for sublists, shared by all prefixes that set no other size; 0: no cache", START},
    {LISTS_OF(NATIVE, "announcement_grace_s", announcement_grace_s), TYPE_COUNT, 1, 604800, "300", "s", NULL,
     "age at which proxies sweep up a fold that another proxy announced and did not finish", LIVE},
    {LISTS_OF(NATIVE, "touch_interval_s", touch_interval_s), TYPE_COUNT, 0, 604800, "60", "s", NULL,
     "how often a proxy touches the cached sublists of a list in use on their server; 0: never", LIVE},

    {LISTS_OF(NATIVE, "max_stale_ms", max_stale_ms), TYPE_COUNT, 0, 3600000, "0", "ms", NULL,
     "how old what a read answers may be: the proxy then need not ask the server; 0: asks for each read", START},

    {LISTS_OF(SINGLE, "ttl_s", ttl_s), TYPE_COUNT, 0, 315360000, "0", "s", NULL,
     "time to live of lists that begin here; 0: they never expire", LIVE},
    {LISTS_OF(NATIVE, "ttl_renew", ttl_renew), TYPE_WORD, 0, 0, "never", "", ttl_renew_words,
     "what gives a list that expires ttl_s anew, where it has less: never, each change, or each read as well", LIVE},
    {LISTS_OF(NATIVE, "lease_max_s", lease_max_s), TYPE_COUNT, 1, 86400, "3600", "s", NULL,
     "longest time for which llease gives a client the right to fill a missing list", LIVE},

    {LISTS_OF(NATIVE, "order", order), TYPE_WORD, 0, 0, "added", "", orders,
     "where an item goes that is added while it is in the list: added: it stays in its place; recent: to the end", START},

    {LISTS_OF(NATIVE, "max_items", max_items), TYPE_COUNT, 0, 10000, "0", "", NULL,
     "how many items a list holds at most; 0: any number", START},
    {LISTS_OF(NATIVE, "cap", cap), TYPE_WORD, 0, 0, "drop_oldest", "", caps,
     "what becomes of an addition beyond max_items: drop_oldest: the oldest item goes; refuse: it is not done", START},

    {LISTS_OF(NATIVE, "protect_lists", protect_lists), TYPE_YES_NO, 0, 0, "yes", "", NULL,
     "whether the proxy refuses plain verbs that write to KEY# and KEY#NAME.N, the items of lists", LIVE},

    {LISTS("bridge", bridge), TYPE_WORD, 0, 0, "no", "", bridges,
     "yes: get, append, set and memcached's other verbs work on the lists of this prefix; signed: append takes +a-b", START},
    {LISTS_OF(SINGLE, "bridge_delete", bridge_delete), TYPE_WORD, 0, 0, "drop", "", bridge_deletes,
     "what delete does under a bridge: drop: it removes the list; purge: it deletes the plain items that the list names, as lpurge does", START},
    {LISTS("bridge_flags_in", bridge_flags_in), TYPE_FLAGS, 0, 0, "0, 16", "", NULL,
     "flags of the values that a bridge takes, comma-separated; it refuses others as serialised or compressed", LIVE},
    {LISTS("bridge_flags_out", bridge_flags_out), TYPE_COUNT, 0, UINT32_MAX, "0", "", NULL,
     "flags of the values that a bridge answers", LIVE},
    {LISTS("bridge_last_delimiter", bridge_last_delimiter), TYPE_YES_NO, 0, 0, "no", "", NULL,
     "whether the values that a bridge answers end with the delimiter, as hand-made lists do", LIVE},

    {LISTS("dialect", dialect), TYPE_WORD, 0, 0, "native", "", dialects,
     "the format that lists are stored in: native, or one that applications keep by hand", START},
    {LISTS("migrate", migrate), TYPE_WORD, 0, 0, "no", "", migrations,
     "native: lists of this dialect are being converted, each may be in either format", START},
    {LISTS_OF(COMPACTED, "compact_chance", compact_chance), TYPE_COUNT, 0, 1000000000, "100", "", NULL,
     "a read that finds something to fold compacts with a chance of one in this many; 0: never", LIVE},
    {LISTS_OF(DELIMITED, "compatible", compatible), TYPE_WORD, 0, 0, "safe", "", compatibilities,
     "strict: an append brings no delimiter in front, as the manual's do not, at the price of what a "
     "client by hand can lose; marks of foldings stay", START},
    {LISTS_OF(BIT(TOMBSTONE) | BIT(PAIRED), "changes", changes), TYPE_WORD, 0, 0, "exact", "", changes_words,
     "exact: ladd and ldel read the list and write it whole; blind: they append, as clients by hand do, and items are counted", START},
    {LISTS_OF(BIT(SUBLISTS), "sublist_text", sublist_text), TYPE_WORD, 0, 0, "signed", "", texts,
     "signed: the index and the sublists hold +a-b; delimited: a,b, with the delimiter, and nothing of what was deleted", START},
    {LISTS_OF(BIT(TOMBSTONE), "deleted_delimiter", deleted_delimiter), TYPE_BYTE, 0, 1, "|", "", NULL,
     "between the deleted items and the added ones", START},
    {LISTS_OF(SIGNED, "add_sign", add_sign), TYPE_BYTE, 0, 0, "+", "", NULL,
     "in front of an item that was added", START},
    {LISTS_OF(SIGNED, "delete_sign", delete_sign), TYPE_BYTE, 0, 0, "-", "", NULL,
     "in front of an item that was deleted", START},
    {LISTS_OF(BIT(PAIRED), "add_name", add_name), TYPE_TEMPLATE, 0, 0, "follow-%s", "", NULL,
     "name of the item that holds what was added", START},
    {LISTS_OF(BIT(PAIRED), "delete_name", delete_name), TYPE_TEMPLATE, 0, 0, "unfollow-%s", "", NULL,
     "name of the item that holds what was deleted", START},
    {LISTS_OF(BIT(FLIP) | BIT(MARKER), "a_name", a_name), TYPE_TEMPLATE, 0, 0, "%s.a", "", NULL,
     "name of the first log", START},
    {LISTS_OF(BIT(FLIP) | BIT(MARKER), "b_name", b_name), TYPE_TEMPLATE, 0, 0, "%s.b", "", NULL,
     "name of the second log", START},
    {LISTS_OF(BIT(FLIP), "active_name", active_name), TYPE_TEMPLATE, 0, 0, "%s.active", "", NULL,
     "name of the item that holds the name of the log that takes changes", START},
    {LISTS_OF(BIT(MARKER), "closed_mark", closed_mark), TYPE_BYTE, 0, 0, "^", "", NULL,
     "first byte of a log that takes no more changes", START},
    {LISTS_OF(BIT(SUBLISTS), "sublist_name", sublist_name), TYPE_TEMPLATE, 0, 0, "%s.", "", NULL,
     "name of a sublist, in front of its number", START},
    {LISTS_OF(BIT(RING), "seq_name", seq_name), TYPE_TEMPLATE, 0, 0, "%s.seq", "", NULL,
     "name of the counter", START},
    {LISTS_OF(BIT(RING), "slot_name", slot_name), TYPE_TEMPLATE, 0, 0, "%s.", "", NULL,
     "name of a slot, in front of its number", START},
    {LISTS_OF(BIT(RING), "capacity", capacity), TYPE_COUNT, 1, 1000000, "100", "", NULL,
     "slots of a ring, which keeps so many of the last entries", START},
    {LISTS_OF(BIT(RING), "slot", slot), TYPE_ENTRY, 0, 0, "%n %v", "", NULL,
     "what a slot holds: %v, the item; %n, the number of the entry, first or last; %t, its time", START},
    {LISTS_OF(BIT(RING), "counter_wraps", counter_wraps), TYPE_YES_NO, 0, 0, "no", "", NULL,
     "whether clients set the counter back at capacity; no: it counts on", START},
};
/* clang-format on */

_Static_assert(sizeof keys / sizeof keys[0] <= CONFIG_KEYS_MAX, "given_line has one per key");
_Static_assert(sizeof dialects / sizeof dialects[0] == DIALECT_COUNT + 1, "each has a word");
_Static_assert(sizeof types / sizeof types[0] == POOL_TYPE_COUNT + 1, "each has a word");

const struct config_key *config_keys(size_t *count)
{
    *count = sizeof keys / sizeof keys[0];
    return keys;
}

const struct config_key *config_key_find(enum config_section section, struct slice name)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].section == section && slice_equal(slice_of(keys[i].name), name)) {
            return &keys[i];
        }
    }
    return NULL;
}

const struct config_key *config_key_known(enum config_section section, const char *name)
{
    const struct config_key *key = config_key_find(section, slice_of(name));
    CHECK(key != NULL);
    return key;
}

size_t config_key_index(const struct config_key *key)
{
    return (size_t)(key - keys);
}

bool config_word_find(const struct config_key *key, struct slice text, unsigned *index)
{
    for (*index = 0; key->words[*index] != NULL; (*index)++) {
        if (slice_equal(slice_of(key->words[*index]), text)) {
            return true;
        }
    }
    return false;
}

const char *config_section_name(enum config_section section)
{
    static const char *const names[] = {"[proxy]",     "[listener NAME]", "[admin]",
                                        "[pool NAME]", "[route]",         "[lists]"};
    return names[section];
}

const char *config_type_word(enum pool_type type)
{
    return types[type];
}

const char *config_types_text(uint32_t set)
{
    for (unsigned i = 0; i < POOL_TYPE_COUNT; i++) {
        if (set == UINT32_C(1) << i) {
            return types[i];
        }
    }
    return "all";
}

const char *config_dialects_text(uint32_t set, char out[CONFIG_DIALECTS_MAX])
{
    size_t n = 0;
    (void)snprintf(out, CONFIG_DIALECTS_MAX, "all");
    for (unsigned i = 0; set != DIALECTS_ALL && i < DIALECT_COUNT; i++) {
        if ((set >> i & 1) != 0) {
            n += (size_t)snprintf(out + n, CONFIG_DIALECTS_MAX - n, "%s%s", n == 0 ? "" : ", ",
                                  dialects[i]);
            CHECK(n < CONFIG_DIALECTS_MAX);
        }
    }
    return out;
}
