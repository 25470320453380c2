/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may log in: the file that memcached reads with -Y.
 *
 *     ann:secret
 *     bob:another:secret     the first colon ends the user
 */
#ifndef CONFIG_USERS_H
#define CONFIG_USERS_H

#include <stdbool.h>

#include "base/slice.h"
#include "config/config.h"

/* The longest user, and the longest password. */
#define USER_TEXT_MAX 127

struct users;

/* Reads the file, of max lines at most. Returns who stands in it, owned by the caller until
 * users_destroy, or NULL with "FILE ..." in error. */
struct users *users_read(const char *path, size_t max, char error[CONFIG_ERROR_MAX]);
void users_destroy(struct users **users);

/* Is that a user with its password? How long it takes says nothing about either. */
bool users_know(const struct users *users, struct slice user, struct slice password);

#endif
