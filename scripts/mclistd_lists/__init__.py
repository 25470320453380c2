# SPDX-License-Identifier: BSD-3-Clause
"""The parts of scripts/lists. Connections, the proxies' settings, and the names of dialects' items
are those of mclistd_convert.

    head.py       what the head of a native list says; intent.py: of transactions; problem.py: what
                  is not understood
    transactions.py  those that are not over, as all their lists tell it; settle.py: finished
    crawl.py      what the memcacheds hold: names, sizes, times; reading at a bounded rate
    listing.py    which lists there are, and what is known of each
    show.py       as a table, or as JSON lines
    backup.py     lists saved in a file, and restored
    main.py       options, order of work, exit code
"""
