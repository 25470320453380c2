/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/list_verb.h"

#include <stddef.h>

static const struct {
    enum list_verb verb;
    const char *word;
} words[] = {
#define LIST_VERB(id, kind, traits)
#define LIST_WORD(id, word, takes, answer) {LIST_##id, #word},
    LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef LIST_VERB
#undef LIST_WORD
};

const struct list_verb_info list_verbs[LIST_VERB_COUNT] = {
#define LIST_VERB(id, kind, traits) [LIST_##id] = {LIST_KIND_##kind, traits},
#define LIST_WORD(id, word, takes, answer)
    LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef LIST_VERB
#undef LIST_WORD
};

const char *list_verb_word(enum list_verb verb)
{
    size_t i = 0;
    while (words[i].verb != verb) {
        i++;
    }
    return words[i].word;
}
