/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/absent.h"

/* Clocks of proxies agree within a minute; the rest is for what is written late. */
#define SLACK_S (60 * 10)

bool lease_is_over(const struct head_marks *marks, int64_t now_s)
{
    int64_t left_s = marks->lease_until_s - now_s;
    return marks->lease == 0 || left_s <= 0 || left_s > LEASE_MAX_S + SLACK_S;
}

bool absent_may_go(const struct head *head, int64_t now_s)
{
    return head->marks.lease == 0 || (head->ttl_s < 0 && lease_is_over(&head->marks, now_s));
}

bool absent_is_idle(const struct head *head, int64_t now_s, int64_t grace_s)
{
    struct slice rest = head->announcements;
    struct entry entry;
    bool announces = head->residue != NULL, dead = head->garbage_count > 0;
    while (entry_next(&rest, &entry) == ENTRY_OK) {
        struct announcement announcement;
        if (entry.op == ENTRY_ANNOUNCE && announcement_parse(entry.bytes, &announcement)) {
            announces = true;
            dead = dead || announcement.range.count == 0 ||
                   announcement_is_dead(&announcement, now_s, grace_s);
        }
    }
    return dead || (!announces && absent_may_go(head, now_s));
}
