/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/options.h"

#include <getopt.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/log.h"
#include "base/slice.h"
#include "base/version.h"
#include "config/help.h"
#include "config/text.h"

static const char help_text[] =
    "usage: mclistd [options]\n"
    "A proxy that adds ordered sets (\"lists\") to the memcached servers you already run. Without "
    "a\n"
    "pool in the configuration and without -s it starts a memcached of its own.\n"
    "\n"
    "  -c, --config FILE    read the configuration from FILE\n"
    "  -t, --test-config    check the configuration and end; with -v print it\n"
    "      --help-config    print every setting with its default, as a file of them, and end\n"
    "      --probe          with -t: also ask the servers whether the items of lists lie where\n"
    "                       distribution and hash look for them\n"
    "  -p, --port N         listen on port N (default 11220)\n"
    "  -l, --listen LIST    listen on these addresses: host, host:port, [IPv6]:port, unix:PATH\n"
    "  -s, --servers LIST   use these memcacheds: host:port, [IPv6]:port, unix:PATH\n"
    "      --require-pool   refuse to start a memcached of its own\n"
    "      --takeover PATH  take the place of the daemon whose admin listener has the unix socket\n"
    "                       PATH: its clients find this one, and none is refused\n"
    "      --try            a prompt with a private proxy, which ends with it (mclistd-cli)\n"
    "  -T, --threads N      run N workers\n"
    "  -u, --user NAME      become this user when started as root\n"
    "  -v                   log more\n"
    "  -V, --version        print version, commit and build, and end\n"
    "  -h, --help           print this and end\n";

static int usage_error(const char *text)
{
    fprintf(stderr, "mclistd: %s\nTry mclistd --help.\n", text);
    return EX_USAGE;
}

static int parse_port(const char *text, uint16_t *port)
{
    uint64_t value;
    if (!slice_to_u64(slice_of(text), &value) || value == 0 || value > UINT16_MAX) {
        return usage_error("-p: expected a port, 1 to 65535");
    }
    *port = (uint16_t)value;
    return EX_OK;
}

/* Of two values one would be ignored without a word: `-s A -s B` would look for all keys on B. */
static int take_list(const char **option, char letter, const char *value)
{
    if (*option != NULL) {
        fprintf(stderr, "mclistd: -%c is given twice; expected one list, with commas in it\n",
                letter);
        return EX_USAGE;
    }
    *option = value;
    return EX_OK;
}

/* Of options without a letter. */
enum { OPTION_REQUIRE_POOL = 256, OPTION_TRY, OPTION_PROBE, OPTION_TAKEOVER, OPTION_HELP_CONFIG };

static int refuse_word(const char *word)
{
    char shown[128];
    fprintf(stderr,
            "mclistd: '%s' is not an option; expected -c FILE for a configuration\n"
            "Try mclistd --help.\n",
            text_show(slice_of(word), shown, sizeof shown));
    return EX_USAGE;
}

static int check_together(const struct options *options)
{
    if (options->probe && !options->test_only) {
        return usage_error("--probe: expected with -t");
    }
    return EX_OK;
}

static const struct option names[] = {
    {"config", required_argument, NULL, 'c'},
    {"test-config", no_argument, NULL, 't'},
    {"port", required_argument, NULL, 'p'},
    {"listen", required_argument, NULL, 'l'},
    {"servers", required_argument, NULL, 's'},
    {"threads", required_argument, NULL, 'T'},
    {"user", required_argument, NULL, 'u'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {"help-config", no_argument, NULL, OPTION_HELP_CONFIG},
    {"require-pool", no_argument, NULL, OPTION_REQUIRE_POOL},
    {"try", no_argument, NULL, OPTION_TRY},
    {"probe", no_argument, NULL, OPTION_PROBE},
    {"takeover", required_argument, NULL, OPTION_TAKEOVER},
    {NULL, 0, NULL, 0},
};

int options_parse(int argc, char **argv, struct options *options)
{
    int letter;
    while ((letter = getopt_long(argc, argv, "c:tp:l:s:T:u:vVh", names, NULL)) != -1) {
        switch (letter) {
        case 'c':
            options->config_path = optarg;
            break;
        case 't':
            options->test_only = true;
            break;
        case 'p':
            if (parse_port(optarg, &options->port) != EX_OK) {
                return EX_USAGE;
            }
            break;
        case 'l':
            if (take_list(&options->addresses, 'l', optarg) != EX_OK) {
                return EX_USAGE;
            }
            break;
        case 's':
            if (take_list(&options->servers, 's', optarg) != EX_OK) {
                return EX_USAGE;
            }
            break;
        case OPTION_REQUIRE_POOL:
            options->require_pool = true;
            break;
        case OPTION_PROBE:
            options->probe = true;
            break;
        case OPTION_TAKEOVER:
            options->takeover_path = optarg;
            break;
        case OPTION_TRY:
            options->is_try = true;
            break;
        case 'T':
            options->threads = optarg;
            break;
        case 'u':
            options->user = optarg;
            break;
        case 'v':
            options->more_log++;
            break;
        case 'V':
            printf("%s", version_text);
            return -1;
        case 'h':
            printf("%s", help_text);
            return -1;
        case OPTION_HELP_CONFIG:
            config_help_print(stdout);
            return -1;
        default:
            fprintf(stderr, "Try mclistd --help.\n");
            return EX_USAGE;
        }
    }
    return optind < argc ? refuse_word(argv[optind]) : check_together(options);
}

/* One option that is a key of [proxy]; value NULL: it was not given. */
static int apply_key(struct config *config, const char *option, const char *key, const char *value,
                     char *error)
{
    char why[CONFIG_ERROR_MAX];
    if (value != NULL && config_set(config, key, value, why) != 0) {
        (void)config_fail(error, "%s: %s", option, why);
        return EX_USAGE;
    }
    return EX_OK;
}

static int apply_servers(struct config *config, const char *servers, char *error)
{
    char why[CONFIG_ERROR_MAX];
    if (servers != NULL && config->pool_count > 0) {
        (void)config_fail(error,
                          "-s: the configuration has pools already; expected one or the other");
        return EX_USAGE;
    }
    if (servers != NULL && config_add_pool(config, "default", servers, why) != 0) {
        (void)config_fail(error, "-s: %s", why);
        return EX_USAGE;
    }
    return EX_OK;
}

static int apply_listen(struct config *config, const struct options *options, char *error)
{
    char why[CONFIG_ERROR_MAX];
    if ((options->addresses != NULL || options->port != 0) &&
        config_set_listen(config, options->addresses, options->port, why) != 0) {
        (void)config_fail(error, "%s: %s", options->addresses == NULL ? "-p" : "-l", why);
        return EX_USAGE;
    }
    return EX_OK;
}

static int apply(struct config *config, const struct options *options, char *error)
{
    int code = apply_listen(config, options, error);
    code = code != EX_OK ? code : apply_key(config, "-T", "threads", options->threads, error);
    code = code != EX_OK ? code : apply_key(config, "-u", "user", options->user, error);
    code = code != EX_OK ? code : apply_servers(config, options->servers, error);
    /* Beside -t it asks for the settings, which it must not change. */
    unsigned more_log = options->test_only ? 0 : options->more_log;
    for (unsigned i = 0; i < more_log && config->log_level < LOG_DEBUG_LEVEL; i++) {
        config->log_level++;
    }
    return code;
}

int options_read_config(const struct options *options, struct config *config,
                        char error[CONFIG_ERROR_MAX])
{
    if (options->config_path != NULL && config_load(config, options->config_path, error) != 0) {
        return EX_CONFIG;
    }
    int code = apply(config, options, error);
    if (code != EX_OK) {
        return code;
    }
    if (config_finish(config, error) != 0 || config_read_passwords(config, error) != 0) {
        return EX_CONFIG;
    }
    if (options->require_pool && config->pool_count == 0) {
        (void)config_fail(error, "no memcached is named; expected a [pool NAME] with servers in "
                                 "the configuration, or -s");
        return EX_CONFIG;
    }
    return EX_OK;
}
