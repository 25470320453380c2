/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/text.h"

/* A line with its end, and one byte that shows that it is longer. */
#define LINE_MAX_BYTES (2 * USER_TEXT_MAX + sizeof ":\r\n" + 1)

/* What is behind the texts is zero, so that all of it can be compared. */
struct user {
    char name[USER_TEXT_MAX + 1];
    char password[USER_TEXT_MAX + 1];
};

struct users {
    size_t count, max;
    struct user at[];
};

/* Clients separate both by a blank. */
static bool is_text(struct slice text)
{
    return text.len > 0 && text.len <= USER_TEXT_MAX && memchr(text.p, ' ', text.len) == NULL &&
           memchr(text.p, '\0', text.len) == NULL;
}

static struct user make_user(struct slice name, struct slice password)
{
    struct user user;
    memset(&user, 0, sizeof user);
    memcpy(user.name, name.p, name.len);
    memcpy(user.password, password.p, password.len);
    return user;
}

/* Returns NULL, or what is wrong with the line; room is for that. */
static const char *add_line(struct users *users, struct slice line, char room[64])
{
    const char *colon = memchr(line.p, ':', line.len);
    if (colon == NULL) {
        return "has no colon; expected user:password";
    }
    struct slice name = slice_make(line.p, (size_t)(colon - line.p));
    struct slice password = slice_make(colon + 1, line.len - name.len - 1);
    if (!is_text(name) || !is_text(password)) {
        return "is no user:password; expected 1 to 127 bytes each, without blanks";
    }
    if (users->count == users->max) {
        (void)snprintf(room, 64, "is one too many; expected at most %zu (max_users)", users->max);
        return room;
    }
    users->at[users->count++] = make_user(name, password);
    return NULL;
}

static int read_lines(FILE *file, struct users *users, const char *path, char *error)
{
    char text[LINE_MAX_BYTES], room[64];
    unsigned number = 0;
    for (;;) {
        /* As fgets, but a NUL byte is seen. */
        size_t len = 0;
        int byte = 0;
        while (len < sizeof text && (byte = fgetc(file)) != EOF && byte != '\n') {
            text[len++] = (char)byte;
        }
        if (ferror(file)) {
            return config_fail(error, "%s cannot be read: %s", path, strerror(errno));
        }
        if (byte == EOF && len == 0) {
            break;
        }
        number++;
        len -= len > 0 && text[len - 1] == '\r';
        const char *why = add_line(users, slice_make(text, len), room);
        if (why != NULL) {
            return config_fail(error, "%s: line %u %s", path, number, why);
        }
    }
    return users->count > 0 ? 0 : config_fail(error, "%s names no user", path);
}

struct users *users_read(const char *path, size_t max, char error[CONFIG_ERROR_MAX])
{
    const char *why;
    FILE *file = file_open(path, &why);
    if (file == NULL) {
        (void)config_fail(error, "%s cannot be opened: %s", path, why);
        return NULL;
    }
    struct users *users = calloc(1, sizeof *users + max * sizeof users->at[0]);
    CHECK(users != NULL);
    users->max = max;
    if (read_lines(file, users, path, error) != 0) {
        users_destroy(&users);
    }
    fclose(file);
    return users;
}

void users_destroy(struct users **slot)
{
    if (*slot != NULL) {
        explicit_bzero((*slot)->at, (*slot)->count * sizeof(*slot)->at[0]);
        free(*slot);
        *slot = NULL;
    }
}

/* Looks at all bytes of both, and at all users. */
bool users_know(const struct users *users, struct slice user, struct slice password)
{
    if (!is_text(user) || !is_text(password)) {
        return false;
    }
    struct user given = make_user(user, password);
    const volatile unsigned char *right = (const volatile unsigned char *)&given;
    bool known = false;
    for (size_t i = 0; i < users->count; i++) {
        const volatile unsigned char *left = (const volatile unsigned char *)&users->at[i];
        unsigned char different = 0;
        for (size_t k = 0; k < sizeof given; k++) {
            different |= left[k] ^ right[k];
        }
        known |= different == 0;
    }
    explicit_bzero(&given, sizeof given);
    return known;
}
