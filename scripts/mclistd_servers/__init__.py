# SPDX-License-Identifier: BSD-3-Clause
"""Changes the servers of a pool while everybody reads and writes: `mclistd-cli servers`.

    main.py    the words after `servers`, and what they print
    gate.py    how far the change has come, as the servers of the pool hold it
    pools.py   the two pools, as a proxy has them, and where keys go
    sweep.py   finds what has not moved yet, and has a proxy move it; takes marks away at the end

The program keeps nothing of its own: what it was about to do stands on the servers.
"""
