/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mg, ms, md, ma and me on lists: what their flags ask for. A pure function.
 */
#include "proto/client/request_shape.h"
#include "proxy/bridge/part.h"

/* The meta flags that make sense for a list. P and L are hints for proxies, which memcached passes
 * over as well. */
static const char *known_flags(enum verb verb)
{
    switch (verb) {
    case VERB_MG:
        return "bcfkqstvOPTL";
    case VERB_MS:
        return "bckqCFMOPTL";
    case VERB_MD:
        return "bkqCOPL";
    default:
        return NULL; /* ma is refused as a whole, me has no flags but b */
    }
}

/* The parser has checked the numbers. */
static void read_flag(struct slice token, struct bridge_request *out, char *mode)
{
    struct slice value = slice_make(token.p + 1, token.len - 1);
    bool is_number = true, is_usual;
    switch (token.p[0]) {
    case 'T':
        out->has_exptime = true;
        is_number = word_to_exptime(value, &out->exptime, &is_usual);
        break;
    case 'F':
        is_number = word_to_flags(value, &out->flags);
        break;
    case 'C':
        out->has_cas = true;
        is_number = word_to_u64(value, &out->cas);
        break;
    case 'M':
        *mode = value.p[0];
        break;
    case 'v':
        out->wants_value = true;
        break;
    case 'c':
        out->wants_version = true;
        break;
    case 's':
        out->wants_size = true;
        break;
    case 't':
        out->wants_ttl = true;
        break;
    default:
        break;
    }
    CHECK(is_number);
}

/* C goes with the mode S alone: another one decides by itself what is done. */
static enum bridge_verb store_verb(char mode, struct bridge_request *out)
{
    if (out->has_cas && mode != 'S') {
        out->unknown_flag = 'C';
    }
    switch (mode) {
    case 'E':
        return BRIDGE_CREATE;
    case 'A':
        return BRIDGE_ADD;
    case 'P':
        return BRIDGE_DELETE;
    case 'R':
        return BRIDGE_REPLACE;
    default:
        return out->has_cas ? BRIDGE_CAS : BRIDGE_SET;
    }
}

void bridge_meta_read(const struct request *r, struct bridge_request *out)
{
    struct slice args = r->args, token;
    enum verb verb = r->verb->verb;
    const char *known = known_flags(verb);
    char mode = 'S';
    *out = (struct bridge_request){.verb = BRIDGE_NONE};
    if (verb == VERB_MS) {
        (void)token_next(&args, &token); /* BYTES */
    }
    while (known != NULL && token_next(&args, &token)) {
        if (strchr(known, token.p[0]) == NULL && out->unknown_flag == 0) {
            out->unknown_flag = token.p[0];
        }
        read_flag(token, out, &mode);
    }
    if (verb == VERB_MG) {
        out->verb = BRIDGE_READ;
    } else if (verb == VERB_MS) {
        out->verb = store_verb(mode, out);
    } else if (verb == VERB_MD) {
        out->verb = BRIDGE_DROP;
    } else if (verb == VERB_ME) {
        out->verb = BRIDGE_DEBUG;
    }
}
