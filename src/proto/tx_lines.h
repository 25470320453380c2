/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of an ltx: what each asks of the list that it names. */
#ifndef PROTO_TX_LINES_H
#define PROTO_TX_LINES_H

/* OP(id, word): the word at the front of the line. */
#define TX_OP_TABLE(OP) \
    OP(ADD, ladd) \
    OP(DEL, ldel) \
    OP(SET, lset) \
    OP(REQUIRE, lrequire) \
    OP(REFUSE, lrefuse)

enum tx_op {
#define TX_OP(id, word) TX_OP_##id,
    TX_OP_TABLE(TX_OP)
#undef TX_OP
        TX_OP_COUNT
};

#endif
