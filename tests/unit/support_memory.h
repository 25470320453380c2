/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

/* For cmocka, as a group's teardown: gives back the free blocks that this thread has kept, so that
 * a search for leaks finds none. Returns 0. */
int give_back_blocks(void **state);

#endif
