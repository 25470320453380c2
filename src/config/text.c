/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

int config_fail(char error[CONFIG_ERROR_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, CONFIG_ERROR_MAX, format, args);
    va_end(args);
    /* Words of the file go into the message, whatever bytes they have: it must stay one line, and
     * do nothing to a terminal. */
    for (char *at = error; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = '?';
        }
    }
    return -1;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct slice text_trim(struct slice text)
{
    while (text.len > 0 && is_blank(text.p[0])) {
        text.p++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.p[text.len - 1])) {
        text.len--;
    }
    return text;
}

bool text_next_item(struct slice *rest, bool *more, struct slice *item)
{
    if (!*more) {
        return false;
    }
    const char *comma = rest->len == 0 ? NULL : memchr(rest->p, ',', rest->len);
    *more = comma != NULL;
    *item = slice_take(rest, comma == NULL ? rest->len : (size_t)(comma - rest->p));
    if (*more) {
        (void)slice_take(rest, 1);
    }
    *item = text_trim(*item);
    return true;
}

bool text_is_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (!isalnum((unsigned char)c) && c != '.' && c != '-' && c != '_') {
            return false;
        }
    }
    return text.len > 0;
}

const char *text_show(struct slice text, char *out, size_t cap)
{
    return slice_escape_also(text, "", out, cap);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int text_unescape(struct slice text, char *out, size_t cap)
{
    size_t n = 0;
    while (text.len > 0) {
        if (n + 1 >= cap) {
            return -1;
        }
        char c = *slice_take(&text, 1).p;
        if (c == '\\') {
            if (text.len < 3 || text.p[0] != 'x') {
                return -1;
            }
            int high = hex_digit(text.p[1]);
            int low = hex_digit(text.p[2]);
            if (high < 0 || low < 0) {
                return -1;
            }
            (void)slice_take(&text, 3);
            c = (char)(high * 16 + low);
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return (int)n;
}
