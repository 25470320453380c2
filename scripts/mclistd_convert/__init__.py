# SPDX-License-Identifier: BSD-3-Clause
"""The parts of scripts/convert.

    wire.py       connections to proxies and memcacheds
    prefix.py     which [lists PREFIX] a key has
    settings.py   what the proxies are set to: prefixes, dialects, names of items
    names.py      which items a list is made of, and whose item a name is
    stored.py     what the memcacheds hold
    inventory.py  what there is under a prefix, and what of it is a list
    files.py      the files that are read and written: keys, state, inventory, backup
    restore.py    a backup is written back
    content.py    one list: reading, converting, comparing
    run.py        all lists, in parallel
    main.py       options, order of work, exit code
"""
