/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one table of all configuration keys: the parser, the defaults, `stats settings`,
 * conf/mclistd.ini and docs/configuration.md follow it.
 */
#ifndef CONFIG_TABLE_H
#define CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "config/config.h"

enum config_section {
    SECTION_PROXY,
    SECTION_LISTENER,
    SECTION_ADMIN,
    SECTION_POOL,
    SECTION_ROUTE,
    SECTION_LISTS
};

enum config_type {
    TYPE_COUNT,     /* uint32_t */
    TYPE_BYTES,     /* uint32_t; k, m and g may follow the number */
    TYPE_BYTES64,   /* uint64_t, as above */
    TYPE_WORD,      /* an enum: position in words */
    TYPE_YES_NO,    /* bool */
    TYPE_MODE,      /* int: permissions as an octal number, or -1 for an empty text */
    TYPE_TEXT,      /* char[CONFIG_NAME_MAX + 1], max = 1 when it may be empty */
    TYPE_DELIMITER, /* int: a byte, or -1 for none */
    TYPE_BYTE,      /* int: a byte, max = 1 when letters and digits are refused */
    TYPE_TEMPLATE,  /* char[CONFIG_NAME_MAX + 1] with one %s */
    TYPE_ENTRY,     /* char[CONFIG_NAME_MAX + 1]: what a slot of a ring holds */
    TYPE_FLAGS,     /* struct flag_set */
    TYPE_VERBS,     /* struct verb_set */
    TYPE_LISTEN,    /* addresses; the key may be repeated */
    TYPE_SERVERS,   /* servers; the key may be repeated */
};

struct config_key {
    enum config_section section;
    const char *name;
    size_t offset;     /* in the struct of the section */
    uint32_t dialects; /* of SECTION_LISTS: who uses it, one bit for each enum list_dialect */
    uint32_t types;    /* of SECTION_POOL: the same, one bit for each enum pool_type */
    enum config_type type;
    uint64_t min;
    uint64_t max;
    const char *standard;     /* the default as it would stand in a file; NULL = must be given */
    const char *unit;         /* "" where there is none */
    const char *const *words; /* TYPE_WORD: ends in NULL */
    const char *help;         /* one line */
    bool live;                /* a reload may change it, see config/reload.h */
};

/* One bit for each dialect, and for each type of pool. */
#define DIALECTS_ALL ((UINT32_C(1) << DIALECT_COUNT) - 1)
#define TYPES_ALL ((UINT32_C(1) << POOL_TYPE_COUNT) - 1)

/* All keys, in the order of the documentation; *count of them. */
const struct config_key *config_keys(size_t *count);
/* The key of that name, or NULL. */
const struct config_key *config_key_find(enum config_section section, struct slice name);
/* The same, for a name that stands in the code: the table has it. */
const struct config_key *config_key_known(enum config_section section, const char *name);
/* Its index among all keys, by which given_line has it. */
size_t config_key_index(const struct config_key *key);
/* Which of the words of a key of TYPE_WORD the text is; false: none. */
bool config_word_find(const struct config_key *key, struct slice text, unsigned *index);
/* "[proxy]", "[listener NAME]", "[admin]", "[pool NAME]", "[route]" or "[lists]". */
const char *config_section_name(enum config_section section);

/* Room for what config_dialects_text writes. */
#define CONFIG_DIALECTS_MAX 96
/* "all" or "native, sublists". Returns out. */
const char *config_dialects_text(uint32_t dialects, char out[CONFIG_DIALECTS_MAX]);
/* The word of a type of pool in the file; lives for ever. */
const char *config_type_word(enum pool_type type);
/* "all", or the word of the only type of these. */
const char *config_types_text(uint32_t types);

#endif
