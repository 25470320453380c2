# SPDX-License-Identifier: BSD-3-Clause
"""The parts of scripts/cli, which is installed as mclistd-cli.

    words.py      a typed line becomes words; bytes become text that can be typed
    verbs.py      what can be typed, with usage and help
    request.py    words become requests
    wire.py       the connection, and the parts of answers
    admin.py      commands of operators, and the socket that takes them
    top.py        the live view
    show.py       answers on a terminal and in a pipe
    session.py    one line after the other
    history.py    the file of lines that were typed
    editor.py     the line that is typed: completion, usage
    private.py    the private proxy of --try
    main.py       options, exit code
"""
